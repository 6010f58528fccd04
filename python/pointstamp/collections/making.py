"""Methods of scopes that make collections, whose modules are imported when the first is made."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeVar, cast, overload

from pointstamp import _core
from pointstamp._core import InputHandle
from pointstamp._mistakes import is_frame, several
from pointstamp._naming import named

if TYPE_CHECKING:
    from collections.abc import Iterable

    import pyarrow as pa

    from pointstamp.collections.arranged import Arranged, Trace
    from pointstamp.collections.collection import Collection
    from pointstamp.collections.column_input import ColumnInput
    from pointstamp.collections.column_variable import ColumnVariable
    from pointstamp.collections.columns import ColumnCollection
    from pointstamp.collections.inputs import CollectionInput
    from pointstamp.collections.variable import Variable
    from pointstamp.scope import Scope

__all__ = ["CollectionScope"]

T = TypeVar("T")
K = TypeVar("K")
V = TypeVar("V")


@named
class CollectionScope:
    """The methods of a scope that make collections."""

    __slots__ = ()

    @property
    def _scope(self) -> Scope:
        return cast("Scope", self)

    @overload
    def new_collection(
        self, *, strict: bool = False, name: str | None = None
    ) -> tuple[CollectionInput[Any], Collection[Any]]: ...
    @overload
    def new_collection(
        self, *, schema: pa.Schema, strict: bool = False, name: str | None = None
    ) -> tuple[ColumnInput, ColumnCollection]: ...
    def new_collection(
        self, *, schema: pa.Schema | None = None, strict: bool = False, name: str | None = None
    ) -> Any:
        """An input that changes a collection, and the collection.

        Args:
            schema: The columns of a collection of columns; None for a collection of Python values.
            strict: Whether an update is refused that takes away more of a record than this input has added so
                far. The input then keeps a count of each record. Without it counts may be below zero. Each
                worker's input counts what was added on that worker; in a session of `Interactive`, all
                records of a strict input go to one worker.
            name: The operator's name.

        Raises:
            GraphError: If a collection cannot keep a column of the schema, or two have one name.

        Examples:
            >>> import pointstamp as ps
            >>> def main(worker):
            ...     with worker.dataflow() as scope:
            ...         words, collection = scope.new_collection(strict=True)
            ...     words.insert("tick")
            ...     try:
            ...         words.remove("tock")
            ...     except ValueError as error:
            ...         print(str(error).partition(":")[0])
            >>> ps.execute(main) and None
            1 of 'tock' cannot be removed at time 0
        """
        handle: InputHandle[Any] = InputHandle()
        core = self._scope.core.input_from(handle, _core.StreamKind.UPDATES)
        rows: Collection[Any] = self._scope.collection_of(core)
        if schema is None:
            from pointstamp.collections.inputs import CollectionInput

            return several(
                "new_collection", "handle, collection", (CollectionInput(handle, strict=strict), rows)
            )
        from pointstamp.collections.column_input import ColumnInput
        from pointstamp.collections.columns import ColumnCollection

        columns = _core.Schema(schema)
        _core.check_columns(columns)
        made = (ColumnInput(handle, columns, strict=strict), ColumnCollection(rows, columns))
        return several("new_collection", "handle, collection", made)

    def collection(self, records: Iterable[T], *, name: str | None = None) -> Collection[T]:
        """A collection of the records, from the least time on. Each worker brings its own.

        Examples:
            >>> import pointstamp as ps
            >>> ps.example(lambda scope: scope.collection([2, 1, 2]).capture()).extract()
            [(0, [(1, 1), (2, 2)])]
        """
        if is_frame(records):
            raise TypeError(
                f"collection takes an iterable of records, not a {type(records).__name__}: column_collection "
                "makes a collection of its rows"
            )
        _core.check_records("collection", records)
        return self._scope.to_stream(records).as_collection()

    def column_collection(self, data: Any, *, name: str | None = None) -> ColumnCollection:
        """A collection of the rows of some data, as `collection` is of records.

        Args:
            data: What `ColumnInput` takes: a table, a record batch, a data frame of pandas or Polars.
            name: The operator's name.

        Raises:
            TypeError: If the data has no columns.
            GraphError: If a collection cannot keep a column of it, or two have one name.
        """
        from pointstamp.collections.column_input import schema_and_rows

        schema, given = schema_and_rows(data)
        changes, rows = self.new_collection(schema=schema)
        changes.insert(given)
        changes.close()
        return rows

    @overload
    def variable(self, initial: Collection[T] | None = None, *, name: str | None = None) -> Variable[T]: ...
    @overload
    def variable(self, initial: ColumnCollection, *, name: str | None = None) -> ColumnVariable: ...
    @overload
    def variable(self, *, schema: pa.Schema, name: str | None = None) -> ColumnVariable: ...
    def variable(
        self, initial: Any = None, *, schema: pa.Schema | None = None, name: str | None = None
    ) -> Any:
        """A collection that is defined by itself, in a scope of `iterative`. Several define each other.

        Args:
            initial: What it is in the first turn of the loop; None for nothing.
            schema: What the columns are, of a collection of columns that begins with nothing.
            name: The operator's name.

        Raises:
            GraphError: If neither the scope nor one around it is of a loop, or `initial` is of another scope.
        """
        if schema is not None or getattr(initial, "core_schema", None) is not None:
            from pointstamp.collections.column_variable import ColumnVariable

            return ColumnVariable(self._scope, initial, schema)
        from pointstamp.collections.variable import Variable

        return Variable(self._scope, initial)

    def import_trace(self, trace: Trace[K, V], *, name: str | None = None) -> Arranged[K, V]:
        """The arrangement that a trace of another dataflow of this worker reads, for joins and reduces here.

        It is not copied: both dataflows use one index, from the trace's `since` on. What is made of it is
        exact from there on, too. A trace of that may say an earlier `since`, and is not exact before.

        Raises:
            GraphError: If the trace's times have another number of coordinates than the scope's, or its
                dataflow was dropped before it was complete.
            PointstampError: If the trace is closed.
            TypeError: If it is not a `Trace`.
        """
        from pointstamp.collections.arranged import Arranged, Trace
        from pointstamp.collections.collection import Collection

        if not isinstance(trace, Trace):
            raise TypeError(
                f"import_trace needs the trace of an arrangement, as in arranged.trace, not {trace!r}"
            )
        imported = _core.import_trace(self._scope.core, trace.core)
        self._scope.imports.add(trace.dataflow)
        return Arranged(self._scope, imported, Collection)
