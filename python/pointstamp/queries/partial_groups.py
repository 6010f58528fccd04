"""Parts of large groups: a change computes one part of its group again, and not the group.

Counts, and sums of integers and decimals, need no parts: `ColumnCollection.aggregate` keeps their totals, to
which a change adds. For other aggregates rows are divided by their values. A group of all rows, and groups by
text or by computed values, are likely to be large; groups by columns of numbers and dates are likely to be
small, and have no parts.

Cost: a change reads the rows of one part and the results of all parts; each part has a result of its own.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pyarrow as pa

from pointstamp.expr.expressions import col, lit
from pointstamp.expr.functions import coalesce

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pointstamp._core import Aggregate, Expr
    from pointstamp.queries.relations import Relation

__all__ = ["PARTS", "add_up", "combined", "dividing", "part_of", "worth_parts"]

PARTS = 256
"""The number of parts that a group has at most."""

_RESULTS = 1024
"""The number of results of all parts, about."""

_READ = 4
"""Columns whose values decide about the part of a row."""


def part_of(relation: Relation, results: int = 1) -> Expr | None:
    """The number of the part that a row is in, from some of its numbers and dates; None without these.

    Args:
        relation: The rows.
        results: The number of results of a part: with many, there are fewer parts.
    """
    parts = max(min(PARTS, _RESULTS // results), 8)
    numbers: list[Expr] = []
    others: list[Expr] = []
    for field in relation.rows.schema:
        if _is_number(field.type):
            number = col(field.name)
            numbers.append(number.cast(pa.int32()) if pa.types.is_date32(field.type) else number)
        elif pa.types.is_floating(field.type) or pa.types.is_decimal128(field.type):
            others.append(col(field.name).try_cast(pa.int64()))  # null where it is too large
    numbers += others
    made = lit(0)
    for number in numbers[:_READ]:
        made = made * 7 + coalesce(number % PARTS, 0)
    return made % parts if numbers else None


def dividing(relation: Relation, kept: set[str]) -> set[str]:
    """The column that is kept so that rows can be divided: none where one of the kept columns does that."""
    numbers = [field.name for field in relation.rows.schema if _is_number(field.type)]
    return set() if kept.intersection(numbers) else set(numbers[:1])


def _is_number(kind: pa.DataType) -> bool:
    """Whether values of a type decide first about the part of a row."""
    return bool(pa.types.is_date32(kind) or pa.types.is_signed_integer(kind))


def worth_parts(relation: Relation, keys: Sequence[Expr]) -> bool:
    """Whether groups by some expressions are likely to be large."""
    for key in keys:
        if key._column is None:
            continue  # a computed value, such as a year
        kind = relation.rows.schema.field(key._column).type
        if not (pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_boolean(kind)):
            return False
    return True


def add_up(schema: pa.Schema, aggregates: dict[str, Aggregate]) -> bool:
    """Whether a change of a row adds to each of some aggregates, without a look at other rows."""
    for aggregate in aggregates.values():
        if aggregate.function == "count":
            continue
        of = aggregate.of
        if aggregate.function != "sum" or of is None or of._column is None:
            return False
        if pa.types.is_floating(schema.field(of._column).type):
            return False
    return True


_OF_PARTS = {"sum": "sum", "count": "sum", "min": "min", "max": "max"}
"""The aggregate of the results of parts that an aggregate is."""


def combined(aggregates: dict[str, Aggregate]) -> tuple[dict[str, Any], dict[str, Any]] | None:
    """The aggregates of the results of parts that some aggregates are, and the columns to compute of them.

    None where one has to see all rows at once.
    """
    made: dict[str, Any] = {}
    computed: dict[str, Any] = {}
    for name, aggregate in aggregates.items():
        function = _OF_PARTS.get(aggregate.function)
        if function is None:
            return None
        made[name] = getattr(col(name), function)()
        if aggregate.function == "count":
            computed[name] = coalesce(col(name), lit(0))
    return made, computed
