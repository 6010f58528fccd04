"""Functions that make an expression of several, and places of rows in an order, for windows."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pointstamp import _core

if TYPE_CHECKING:
    from pointstamp._core import Aggregate, Expr

__all__ = ["case", "coalesce", "dense_rank", "rank", "row_number"]


def case(*branches: tuple[Any, Any], default: Any = None) -> Expr:
    """Returns the value beside the first condition that is true.

    A value is computed only for the rows that it is for.

    Args:
        branches: Pairs of a condition and a value.
        default: The value where no condition is true.

    Raises:
        TypeError: Without a branch.

    Examples:
        >>> import pyarrow as pa
        >>> import pointstamp as ps
        >>> def build(scope):
        ...     rows = scope.column_collection(pa.table({"n": [-2, 0, 5]}))
        ...     sign = ps.case((ps.col("n") > 0, "+"), (ps.col("n") < 0, "-"), default="0")
        ...     return rows.select("n", sign=sign).capture()
        >>> [(time, batch)] = ps.example(build).extract()
        >>> batch["sign"].to_pylist()
        ['-', '0', '+']
    """
    if not branches:
        raise TypeError("case takes pairs of a condition and a value, as in case((col('n') > 0, 'positive'))")
    parts: list[Any] = []
    for branch in branches:
        if len(branch) != 2:
            raise TypeError(f"case takes pairs of a condition and a value, not {branch!r}")
        parts += branch
    return _core.call_expr("case", "", [*parts, default])


def coalesce(*values: Any) -> Expr:
    """Returns the first value that is not null.

    Args:
        values: Expressions and constants.

    Raises:
        TypeError: Without a value.

    Examples:
        >>> import pyarrow as pa
        >>> import pointstamp as ps
        >>> def build(scope):
        ...     rows = scope.column_collection(pa.table({"n": [1, None]}))
        ...     return rows.select(n=ps.coalesce(ps.col("n"), 0)).capture()
        >>> [(time, batch)] = ps.example(build).extract()
        >>> batch["n"].to_pylist()
        [0, 1]
    """
    if not values:
        raise TypeError("coalesce takes values, as in coalesce(col('n'), 0)")
    return _core.call_expr("coalesce", "", list(values))


def row_number() -> Aggregate:
    """Returns the place of a row among those of its key, from 1 on, for `ColumnCollection.over`.

    Examples:
        >>> import pyarrow as pa
        >>> import pointstamp as ps
        >>> rain = pa.table({"city": ["Ulm", "Ulm", "Ulm"], "mm": [3, 3, 4]})
        >>> def build(scope):
        ...     return scope.column_collection(rain).over("city", "mm", place=ps.row_number()).capture()
        >>> [changes["place"].to_pylist() for _, changes in ps.example(build).extract()]
        [[1, 2, 3]]
    """
    return _core.aggregate_expr("row_number")


def rank() -> Aggregate:
    """Returns the place of the first row that is alike in the order, for `ColumnCollection.over`.

    Examples:
        >>> import pyarrow as pa
        >>> import pointstamp as ps
        >>> rain = pa.table({"city": ["Ulm", "Ulm", "Ulm"], "mm": [3, 3, 4]})
        >>> def build(scope):
        ...     return scope.column_collection(rain).over("city", "mm", place=ps.rank()).capture()
        >>> [changes["place"].to_pylist() for _, changes in ps.example(build).extract()]
        [[1, 3]]
    """
    return _core.aggregate_expr("rank")


def dense_rank() -> Aggregate:
    """Returns the number of unlike rows up to a row in the order, for `ColumnCollection.over`.

    Examples:
        >>> import pyarrow as pa
        >>> import pointstamp as ps
        >>> rain = pa.table({"city": ["Ulm", "Ulm", "Ulm"], "mm": [3, 3, 4]})
        >>> def build(scope):
        ...     return scope.column_collection(rain).over("city", "mm", place=ps.dense_rank()).capture()
        >>> [changes["place"].to_pylist() for _, changes in ps.example(build).extract()]
        [[1, 2]]
    """
    return _core.aggregate_expr("dense_rank")
