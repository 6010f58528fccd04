"""Filters that Spark pushes to captures: conditions that leave out rows which Spark would leave out.

Only comparisons of integers, booleans and text are taken, which Arrow decides as Spark does. Doubles are not:
in Spark, NaN equals itself and is the greatest. Text with a collation is not, either.
"""

from __future__ import annotations

import operator
from typing import TYPE_CHECKING, Any, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from pyspark.sql.types import StructType

__all__ = ["Condition", "conditions"]

_COMPARISONS: dict[str, tuple[Callable[[Any, Any], Any], str]] = {
    "EqualTo": (operator.eq, "equal"),
    "GreaterThan": (operator.gt, "greater"),
    "GreaterThanOrEqual": (operator.ge, "greater_equal"),
    "LessThan": (operator.lt, "less"),
    "LessThanOrEqual": (operator.le, "less_equal"),
}
"""By the name of Spark's class: the comparison of two values, and Arrow's of a column with one."""


class Condition(NamedTuple):
    """A comparison of a column with a value.

    Attributes:
        column: The name of the column.
        kind: The name of Spark's class for the filter.
        value: The value, or for `In` a tuple of values.
    """

    column: str
    kind: str
    value: Any

    def may_hold(self, value: Any) -> bool:
        """Whether the condition holds for a value of the column."""
        if self.kind == "In":
            return value in self.value
        compare, _ = _COMPARISONS[self.kind]
        return bool(compare(value, self.value))

    def kept(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        """The rows of a batch for which it holds."""
        column = batch.column(self.column)
        if self.kind == "In":
            return batch.filter(pc.is_in(column, value_set=pa.array(list(self.value), column.type)))
        value = pa.scalar(self.value, column.type)
        _, kernel = _COMPARISONS[self.kind]
        return batch.filter(pc.call_function(kernel, [column, value]))


def conditions(filters: Sequence[Any], schema: StructType) -> list[Condition]:
    """The filters that can be evaluated on batches, as conditions."""
    from pyspark.sql.types import BooleanType, IntegralType, StringType

    found = []
    for one in filters:
        kind = type(one).__name__
        path: Any = getattr(one, "attribute", ())
        if (kind not in _COMPARISONS and kind != "In") or len(path) != 1 or path[0] not in schema.names:
            continue
        of = schema[path[0]].dataType
        plain = isinstance(of, IntegralType | BooleanType) or of == StringType()
        value = one.value if kind != "In" else tuple(one.value)
        values = value if kind == "In" else (value,)
        wanted = str if isinstance(of, StringType) else int
        if plain and all(isinstance(each, wanted) for each in values):
            found.append(Condition(path[0], kind, value))
    return found
