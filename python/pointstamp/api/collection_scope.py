"""Methods of scopes that make collections, whose modules are imported when the first is made."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeVar, cast, overload

from pointstamp import _core
from pointstamp._core import InputHandle
from pointstamp._validation import is_frame, several
from pointstamp.api.classes import collection_of
from pointstamp.api.collection_nodes import named_part
from pointstamp.plan import collections
from pointstamp.plan.node import Form, Output

if TYPE_CHECKING:
    from collections.abc import Iterable

    import pyarrow as pa

    from pointstamp.api.arranged import Arranged, Trace
    from pointstamp.api.collection import Collection
    from pointstamp.api.collection_input import CollectionInput
    from pointstamp.api.column_collection import ColumnCollection
    from pointstamp.api.column_input import ColumnInput
    from pointstamp.api.scope import Scope
    from pointstamp.api.variable import Variable

__all__ = ["CollectionScope"]

T = TypeVar("T")
K = TypeVar("K")
V = TypeVar("V")


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
        columns = None if schema is None else _core.Schema(schema)
        if columns is not None:
            _core.check_columns(columns)
        handle: InputHandle[Any] = InputHandle()
        made = self._scope._input_from(handle, _core.StreamKind.UPDATES, Output(Form.UPDATES, columns), name)
        changes: Any
        if columns is None:
            from pointstamp.api.collection_input import CollectionInput

            changes = CollectionInput(handle, strict=strict)
        else:
            from pointstamp.api.column_input import ColumnInput

            changes = ColumnInput(handle, columns, strict=strict)
        pair = (changes, collection_of(self._scope, made))
        return several("new_collection", "handle, collection", pair)

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
        stream = self._scope.to_stream(records, name=name)
        return stream.as_collection(name=named_part(name, "as_collection"))

    def column_collection(self, data: Any, *, name: str | None = None) -> ColumnCollection:
        """A collection of the rows of some data, as `collection` is of records.

        Args:
            data: What `ColumnInput` takes: a table, a record batch, a data frame of pandas or Polars.
            name: The operator's name.

        Raises:
            TypeError: If the data has no columns.
            GraphError: If a collection cannot keep a column of it, or two have one name.
        """
        from pointstamp.api.column_input import schema_and_rows

        schema, given = schema_and_rows(data)
        changes, rows = self.new_collection(schema=schema, name=name)
        changes.insert(given)
        changes.close()
        return rows

    @overload
    def variable(
        self, initial: Collection[T] | None = None, *, name: str | None = None
    ) -> Variable[Collection[T]]: ...
    @overload
    def variable(
        self, initial: ColumnCollection, *, name: str | None = None
    ) -> Variable[ColumnCollection]: ...
    @overload
    def variable(self, *, schema: pa.Schema, name: str | None = None) -> Variable[ColumnCollection]: ...
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
        from pointstamp.api.variable import Variable

        columns = None if schema is None else _core.Schema(schema)
        if columns is not None:
            _core.check_columns(columns)
        made: Variable[Any] = Variable(self._scope, initial, columns, name)
        return made

    def import_trace(self, trace: Trace[K, V], *, name: str | None = None) -> Arranged[K, V]:
        """The arrangement that a trace of another dataflow of this worker reads, for joins and reduces here.

        It is not copied: both dataflows use one index, from the trace's `since` on. What is made of it is
        exact from there on, too. A trace of that may say an earlier `since`, and is not exact before.

        Raises:
            GraphError: If the trace's times have another number of coordinates than the scope's, its dataflow
                is still being built, was never built, or was dropped before it was complete.
            PointstampError: If the trace is closed.
            TypeError: If it is not a `Trace`.
        """
        from pointstamp.api.arranged import Arranged, Trace

        if not isinstance(trace, Trace):
            raise TypeError(
                f"import_trace needs the trace of an arrangement, as in arranged.trace, not {trace!r}"
            )
        scope, reads = self._scope, trace._reads
        scope._plan_scope.check_building()
        with scope._building.making(collections.IMPORT.name, name):
            imported = _core.import_trace(scope.core, reads)
        node = scope._append(collections.IMPORT, [], Output(Form.BY_KEY), name=name)
        scope._building.reserve(node, imported)
        scope._imports.add(trace._dataflow.address[0])
        made: Arranged[K, V] = Arranged(scope, node.output)
        made._bind(imported)
        return made
