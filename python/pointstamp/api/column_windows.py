"""Window functions of collections of columns.

Owns `Windows`, the nodes that `ColumnCollection.over` appends: expressions become columns, the rows are
arranged by the key, and one reduction gives each row of a key with the results of all functions.

Cost: a change computes the functions of all rows with its key again.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pyarrow as pa

from pointstamp._core import Aggregate, Expr, Frame, Reduction, WindowFunction
from pointstamp.api.collection_nodes import named_part, reduced
from pointstamp.api.column_arguments import no_aggregate
from pointstamp.api.column_types import columns_of, mean_of, sum_of
from pointstamp.errors import GraphError
from pointstamp.expr.expressions import col, lit, record
from pointstamp.plan import collections

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pointstamp.api.column_collection import ColumnCollection

__all__ = ["FRAMES", "Windows"]

FRAMES = {frame.label: frame for frame in (Frame.RANGE, Frame.ROWS, Frame.ALL)}
"""Frames by their names."""

_OF_ROWS = {
    "row_number": WindowFunction.NUMBER,
    "rank": WindowFunction.RANK,
    "dense_rank": WindowFunction.DENSE_RANK,
    "count": WindowFunction.COUNT,
}
"""Functions that read no column."""

_OF_VALUES = {
    "lag": WindowFunction.LAG,
    "lead": WindowFunction.LAG,
    "first": WindowFunction.FIRST,
    "last": WindowFunction.LAST,
    "count": WindowFunction.COUNT,
    "sum": WindowFunction.SUM,
    "mean": WindowFunction.SUM,
    "min": WindowFunction.MIN,
    "max": WindowFunction.MAX,
}


class Windows:
    """Window functions of some rows.

    Args:
        rows: The rows.
        given: The functions, by the names of their columns.
        name: The operator's name.

    Raises:
        GraphError: If a function is none of windows, or is not defined for its column's type, or a result
            has the name of a column.
        TypeError: If something is no function of rows.
    """

    __slots__ = ("_functions", "_made", "_name", "_read", "_results", "_rows", "_values")

    def __init__(self, rows: ColumnCollection, given: Mapping[str, Any], name: str | None) -> None:
        self._name, self._read = name, rows
        self._functions: list[tuple[WindowFunction, str | None, int, str | None]] = []
        self._made: list[tuple[str, Any]] = []
        self._values: dict[str, Any] = {}
        self._results: dict[str, Expr] = {}
        if not given:
            raise GraphError("over needs a function or more, such as place=ps.row_number()")
        for title, function in given.items():
            if not isinstance(function, Aggregate):
                raise TypeError(no_aggregate("over", title, function))
            if title in rows.schema.names:
                raise GraphError(f"over would give two columns the name {title!r}: rename one of them")
            self._results[title] = col(title)
            self._add(title, function)
        self._rows = rows.with_columns(**self._values) if self._values else rows

    def _add(self, title: str, function: Aggregate) -> None:
        """Adds a function, and the columns that it reads."""
        name, of = function.function, function.of
        kind = (_OF_ROWS if of is None else _OF_VALUES).get(name)
        if kind is None:
            names = ", ".join(sorted({*_OF_ROWS, *_OF_VALUES}))
            raise GraphError(f"over has {names}, and not {name}: aggregate, and join the results by the key")
        if of is None:
            self._put(title, kind, None, "int64")
            return
        field = self._field(of)
        if name == "mean":
            double = mean_of(field)
            value, total, count = self._value(title, of.cast(double)), f"{title}: sum", f"{title}: count"
            self._put(total, WindowFunction.SUM_OF_FLOATS, value, double)
            self._put(count, WindowFunction.COUNT, value, "int64")
            self._results[title] = col(total) / col(count)
            return
        value = self._value(title, of)
        if name == "sum":
            made = sum_of(field)
            floats = pa.types.is_floating(made)
            self._put(title, WindowFunction.SUM_OF_FLOATS if floats else kind, value, made)
        elif kind is WindowFunction.LAG:
            by, default = function.argument
            other = None
            if default is not None:
                expr = default if isinstance(default, Expr) else lit(default)
                other = self._value(f"{title}: default", expr.cast(field.type))
            self._put(title, kind, value, field.type, by if name == "lag" else -by, other)
        else:
            self._put(title, kind, value, "int64" if name == "count" else field.type)

    def _put(
        self,
        title: str,
        kind: WindowFunction,
        value: str | None,
        made: Any,
        by: int = 0,
        default: str | None = None,
    ) -> None:
        self._functions.append((kind, value, by, default))
        self._made.append((title, made))

    def _field(self, of: Expr) -> Any:
        """The field that an expression makes."""
        name = of._column or repr(of)
        return self._read.select(**{name: of}).schema.field(0)

    def _value(self, title: str, of: Expr) -> str:
        """The column that an expression is, or becomes."""
        if of._column is not None:
            self._read._index(of._column)
            return of._column
        name = f"{title}: value"
        self._values[name] = of
        return name

    def over(
        self,
        keys: list[str],
        order: list[str],
        places: list[tuple[bool, bool]],
        frame: Frame,
    ) -> ColumnCollection:
        """The rows with the results.

        Args:
            keys: The columns of the key.
            order: The columns that the rows of a key are ordered by.
            places: Whether each of them descends, and whether nulls come first.
            frame: The rows that aggregates are computed of.
        """
        rows, before = self._rows, self._read.schema
        read = {column for _, value, _, default in self._functions for column in (value, default)}
        names = [column for column in rows.schema.names if column not in keys or column in read]
        by = [
            (names.index(column), *place)
            for column, place in zip(order, places, strict=True)
            if column not in keys  # which have one value
        ]
        # In the order of the columns, by which rows that are alike in the order follow each other.
        values: Any = tuple(record[rows._index(column)] for column in names) or (1,)
        functions = [
            (kind, _place(value, names), by_rows, _place(default, names))
            for kind, value, by_rows, default in self._functions
        ]
        parts = dict(zip(keys, columns_of(record[0], keys), strict=True))
        parts |= {column: record[1][0][index] for index, column in enumerate(names) if column not in keys}
        results = [record[1][1][index] for index in range(len(self._made))]
        flat = (*(parts[column] for column in before.names), *results)
        schema = rows._keyed(list(before.names), self._made)
        pairs = rows._projected((rows._part(keys), values), named_part(self._name, "map"))
        kind, argument = collections.OVER, (by, frame, functions)
        made = reduced(rows.scope, kind, pairs, Reduction.OVER, argument, name=self._name)
        done = rows._flat(flat, made, schema, self._name)
        if len(self._made) == len(self._results):
            return done
        return done.select(*before.names, **self._results)


def _place(column: str | None, names: list[str]) -> int | None:
    return None if column is None else names.index(column)
