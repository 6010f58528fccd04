"""Functions that make an expression of several: cases, and the first value that is not null."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pointstamp import _core

if TYPE_CHECKING:
    from pointstamp._core import Expr

__all__ = ["case", "coalesce"]


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
