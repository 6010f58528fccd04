"""The types of computations on columns."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

from pointstamp._core import Reduction
from pointstamp.errors import GraphError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from pointstamp._core import Expr

__all__ = [
    "accumulates",
    "aggregated",
    "check_plain",
    "check_types",
    "columns_of",
    "is_number",
    "mean_of",
    "reduction_of",
    "schema_of",
    "sum_of",
]


_FUNCTIONS = {
    "sum": Reduction.SUM,
    "count": Reduction.COUNT,
    "distinct_count": Reduction.DISTINCT,
    "min": Reduction.MIN,
    "max": Reduction.MAX,
    "mean": Reduction.MEAN,
    "var_1": Reduction.VARIANCE,
    "var_0": Reduction.VARIANCE_OF_ALL,
    "std_1": Reduction.DEVIATION,
    "std_0": Reduction.DEVIATION_OF_ALL,
}

_NAMES = ("sum", "mean", "min", "max", "count", "distinct_count", "var", "std")

_SPREADS = ("var_1", "var_0", "std_1", "std_0")

_ACCUMULATED = frozenset({Reduction.SUM, Reduction.COUNT, Reduction.MEAN})
"""Reductions that follow from sums and counts; those of columns of floats have other names."""

ROWS = "rows"
"""The function that counts rows; it is computed of a value that is never null."""


def aggregated(
    schema: Any, check: Callable[[str], Any], aggregates: Sequence[tuple[str, str, str]]
) -> tuple[list[str | None], list[tuple[Reduction, int]], list[tuple[str, Any]]]:
    """Returns the values that aggregates read, the reduction of each, and the names and types of results.

    A value is a column, or None for a value that is never null.
    """
    of: list[str | None] = []
    wanted: list[tuple[Reduction, int]] = []
    made: list[tuple[str, Any]] = []
    for name, column, function in aggregates:
        value = None if function == ROWS else column
        if value is not None:
            check(value)
            if function not in _FUNCTIONS:
                raise GraphError(
                    f"a collection aggregates by {', '.join(_NAMES)}, not by {function.split('_')[0]!r}: "
                    "map_groups takes any function of a group's rows"
                )
        if value not in of:
            of.append(value)
        if value is None:
            wanted.append((Reduction.COUNT, of.index(None)))
            made.append((name, "int64"))
            continue
        field = schema.field(value)
        types: dict[str, Callable[[Any], Any]] = {"sum": sum_of, "mean": mean_of}
        types |= {spread: partial(mean_of, operator=spread[:3]) for spread in _SPREADS}
        kind = (
            "int64"
            if function in {"count", "distinct_count"}
            else types.get(function, lambda field: field.type)(field)
        )
        wanted.append((reduction_of(function, field), of.index(value)))
        made.append((name, kind))
    return of, wanted, made


def accumulates(wanted: Sequence[tuple[Reduction, int]]) -> bool:
    """Whether all reductions follow from sums of integers and from counts, which diffs can add up to."""
    return all(reduction in _ACCUMULATED for reduction, _ in wanted)


def reduction_of(function: str, field: Any) -> Reduction:
    """Returns the reduction for a function of a column: rows hold floats that are whole as integers."""
    import pyarrow as pa

    if pa.types.is_floating(field.type) and function == "sum":
        return Reduction.SUM_OF_FLOATS
    if pa.types.is_floating(field.type) and function == "mean":
        return Reduction.MEAN_OF_FLOATS
    return _FUNCTIONS[function]


def columns_of(of: Expr, columns: Sequence[str]) -> tuple[Expr, ...]:
    """The columns that a value holds, of one column itself, and of several a tuple."""
    if len(columns) == 1:
        return (of,)
    return tuple(of[index] for index in range(len(columns)))


def check_plain(operator: str, fields: Iterable[Any]) -> None:
    """Refuses columns whose values differ in columns and records: all except integers and strings."""
    import pyarrow as pa

    for field in fields:
        kind = field.type
        if not (pa.types.is_integer(kind) or pa.types.is_string(kind) or pa.types.is_large_string(kind)):
            raise GraphError(
                f"{operator} takes integers and strings, and column '{field.name}' is {kind}: "
                "cast it, or leave it out with select"
            )


def check_types(operator: str, mine: Any, theirs: Any, key: Iterable[str]) -> None:
    """Refuses two schemas in which a column of the key has two types."""
    for name in key:
        here, there = mine.field(name).type, theirs.field(name).type
        if here != there:
            raise GraphError(
                f"{operator}'s key column '{name}' is {here} here and {there} in the other collection: "
                "cast one of them before it comes in"
            )


def schema_of(before: Any, columns: Sequence[tuple[str, Any]]) -> Any:
    """A schema of names and types; None for the type that the column has in the one before."""
    import pyarrow as pa

    seen = set()
    fields = []
    for index, (name, kind) in enumerate(columns):
        if name in seen:
            raise GraphError(f"the result would have two columns named '{name}': rename one of them")
        seen.add(name)
        kind = before.field(index).type if kind is None else kind
        fields.append(pa.field(name, getattr(pa, kind)() if isinstance(kind, str) else kind))
    return pa.schema(fields)


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


def is_number(kind: Any) -> bool:
    """Whether values of a type are added up."""
    import pyarrow as pa

    return bool(
        pa.types.is_floating(kind)
        or pa.types.is_integer(kind)
        or pa.types.is_boolean(kind)
        or pa.types.is_decimal128(kind)
    )


def mean_of(field: Any, operator: str = "mean") -> Any:
    """The type of a mean of a column, of a variance and of a standard deviation."""
    import pyarrow as pa

    kind = field.type
    if pa.types.is_floating(kind) or pa.types.is_integer(kind) or pa.types.is_boolean(kind):
        return pa.float64()
    raise _no_numbers(operator, field)


def _no_numbers(operator: str, field: Any) -> GraphError:
    return GraphError(
        f"{operator} is not defined for column '{field.name}' of type {field.type}: cast it before it "
        "comes in"
    )
