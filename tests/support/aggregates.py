"""Aggregates of columns for tests that compare with pyarrow's `group_by`, which names its results so."""

from collections.abc import Iterable
from typing import Any

import pointstamp as ps


def named(pairs: Iterable[tuple[str, str]]) -> dict[str, Any]:
    """Returns aggregates by name, ``column_function``, for pairs of a column and pyarrow's function.

    `top_3` and `quantile_0.9` are functions, too, of any number.
    """
    return {f"{column}_{function}": _aggregate(ps.col(column), function) for column, function in pairs}


def _aggregate(column: ps.Expr, function: str) -> ps.Aggregate:
    if function.startswith("top_"):
        return column.top_k(int(function[4:]))
    if function.startswith("quantile_"):
        return column.quantile(float(function[9:]))
    others = {"list": "collect", "nunique": "distinct_count"}
    aggregate: ps.Aggregate = getattr(column, others.get(function, function))()
    return aggregate
