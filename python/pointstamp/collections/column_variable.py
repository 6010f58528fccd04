"""Collections of columns that are defined by themselves."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pointstamp import _core
from pointstamp.collections.columns import ColumnCollection
from pointstamp.collections.variable import Variable
from pointstamp.streams.arrow import check_same

if TYPE_CHECKING:
    import pyarrow as pa

    from pointstamp.scope import Scope

__all__ = ["ColumnVariable"]


class ColumnVariable:
    """A collection of columns of a loop; as `Variable`, which `Scope.variable` makes of other collections.

    Attributes:
        collection: What the variable is in a turn of the loop.

    Examples:
        >>> import pyarrow as pa
        >>> import pointstamp as ps
        >>> def build(scope):
        ...     edges = scope.column_collection(pa.table({"a": [1, 2, 3], "b": [2, 3, 4]}))
        ...     with scope.iterative() as inner:
        ...         paths = inner.variable(edges.enter(inner))
        ...         first = paths.collection.rename({"b": "over"})
        ...         last = edges.enter(inner).rename({"a": "over"})
        ...         longer = first.join(last, on="over").select("a", "b")
        ...         paths.set(longer.concat(edges.enter(inner)).distinct())
        ...         return paths.collection.leave().distinct().capture()
        >>> [(time, batch)] = ps.example(build).extract()
        >>> list(zip(*batch.select(["a", "b"]).to_pydict().values()))
        [(1, 2), (1, 3), (1, 4), (2, 3), (2, 4), (3, 4)]
    """

    __slots__ = ("_schema", "_variable", "collection")

    def __init__(self, scope: Scope, initial: ColumnCollection | None, schema: pa.Schema | None) -> None:
        if initial is None:
            columns = _core.Schema(schema)
            _core.check_columns(columns)
        elif not isinstance(initial, ColumnCollection):
            raise TypeError(f"a variable of columns starts from a collection of columns, not {initial!r}")
        else:
            columns = initial.core_schema
            if schema is not None:
                check_same(_core.Schema(schema), columns, "variable")
        self._schema = columns
        self._variable: Variable[tuple[object, ...]] = Variable(
            scope, None if initial is None else initial.core
        )
        self.collection = ColumnCollection(self._variable.collection, columns)

    def set(self, result: ColumnCollection) -> None:
        """Says what the variable is in the next turn. Call it once.

        Raises:
            GraphError: If the variable is set already, or `result` is of another scope or has other columns.
            TypeError: If it is not a collection of columns.
        """
        if not isinstance(result, ColumnCollection):
            raise TypeError(f"a variable of columns is set to a collection of columns, not {result!r}")
        check_same(self._schema, result.core_schema, "variable")
        self._variable.set(result.core)
