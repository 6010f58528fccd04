"""The types of what is computed of columns."""

from __future__ import annotations

from typing import Any

from pointstamp._errors import GraphError

__all__ = ["is_plain", "mean_of", "sum_of"]


def is_plain(kind: Any) -> bool:
    """Whether values of a type are the same in rows of columns and in records: integers and strings."""
    import pyarrow as pa

    return bool(pa.types.is_integer(kind) or pa.types.is_string(kind) or pa.types.is_large_string(kind))


def sum_of(field: Any) -> Any:
    """The type of a sum of a column: of 64 bits, and a decimal of 38 digits of decimals."""
    import pyarrow as pa

    kind = field.type
    if pa.types.is_floating(kind):
        return pa.float64()
    if pa.types.is_unsigned_integer(kind):
        return pa.uint64()
    if pa.types.is_integer(kind) or pa.types.is_boolean(kind):
        return pa.int64()
    if pa.types.is_decimal128(kind):
        return pa.decimal128(38, kind.scale)
    raise _no_numbers("sum", field)


def mean_of(field: Any) -> Any:
    """The type of a mean of a column."""
    import pyarrow as pa

    kind = field.type
    if pa.types.is_floating(kind) or pa.types.is_integer(kind) or pa.types.is_boolean(kind):
        return pa.float64()
    raise _no_numbers("mean", field)


def _no_numbers(operator: str, field: Any) -> GraphError:
    return GraphError(
        f"{operator} is not defined for column '{field.name}' of type {field.type}: cast it before it "
        "comes in"
    )
