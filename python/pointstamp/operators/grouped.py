"""`ArrowStream.aggregate` with functions that need all rows of a key: first, last, list, nunique, quantiles.

A time's batches are kept on the worker of their key, and grouped by pyarrow when the time closes.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pointstamp._errors import GraphError
from pointstamp.operators.per_time import at_closing
from pointstamp.pacts import Exchange

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["aggregation", "grouped", "is_grouped"]

_KERNELS = {"nunique": "count_distinct", "median": "tdigest"}
_PLAIN = frozenset(["first", "last", "list", "nunique", "median"])
_QUANTILE = "quantile_"
_TOP = "top_"


def is_grouped(function: str) -> bool:
    """Whether an aggregation is one of these."""
    return function in _PLAIN or function.startswith((_QUANTILE, _TOP))


def grouped(stream: Any, by: list[str], wanted: list[tuple[str, str]]) -> Any:
    """The aggregations per time and key.

    Raises:
        GraphError: If there is no such column, or a function is not defined for it.
    """
    import pyarrow as pa

    aggregate = aggregation(stream.schema, by, wanted)
    schema = aggregate(pa.Table.from_batches([], stream.schema)).schema

    build = at_closing(lambda batches: aggregate(pa.Table.from_batches(batches)))
    return stream.unary_frontier(Exchange(by), "aggregate", build, schema=schema)


def aggregation(schema: Any, by: list[str], wanted: list[tuple[str, str]]) -> Callable[[Any], Any]:
    """The function of a table of this schema that groups and aggregates its rows.

    Raises:
        GraphError: If there is no such column, or a function is not defined for it.
    """
    import pyarrow as pa

    for column in [*by, *[column for column, _ in wanted]]:
        if column not in schema.names:
            raise GraphError(f"there is no column '{column}': the columns are {', '.join(schema.names)}")
    made = [*by, *[f"{column}_{function}" for column, function in wanted]]
    for name in made:
        if made.count(name) > 1:
            raise GraphError(f"the result would have two columns named '{name}': rename one")
    aggregate = _aggregation(by, wanted)
    try:
        aggregate(pa.Table.from_batches([], schema))
    except pa.ArrowException as error:
        raise GraphError(f"an aggregation is not defined for its column: {error}") from error
    return aggregate


def _aggregation(by: list[str], wanted: list[tuple[str, str]]) -> Callable[[Any], Any]:
    import pyarrow.compute as pc

    calls: list[Any] = []
    for column, function in wanted:
        kernel: Any = (column, _KERNELS.get(function, function))
        if function == "nunique":
            kernel = (*kernel, pc.CountOptions(mode="only_valid"))
        elif kernel[1] == "tdigest":
            kernel = (*kernel, pc.TDigestOptions(q=0.5))
        elif function.startswith(_TOP):
            _few(function)
            kernel = (column, "list")
        elif function.startswith(_QUANTILE):
            kernel = (column, "tdigest", pc.TDigestOptions(q=_share(function)))
        calls.append(kernel)
    names = [*by, *[f"{column}_{function}" for column, function in wanted]]

    def aggregate(table: Any) -> Any:
        fields = [table.schema.field(name) for name in by]
        table = _with_one_zero(_plain(table, {*by, *[column for column, _ in wanted]}), by)
        made = table.group_by(by, use_threads=False).aggregate(calls)
        columns = [_again(column, field.type) for column, field in zip(made.columns, fields, strict=False)]
        for (_, function), call, column in zip(wanted, calls, made.columns[len(by) :], strict=True):
            if call[1] == "tdigest":
                columns.append(pc.list_flatten(column))
            elif function.startswith(_TOP):
                columns.append(_greatest(column.combine_chunks(), _few(function)))
            else:
                columns.append(column)
        return type(table).from_arrays(columns, names=names)

    return aggregate


def _plain(table: Any, names: set[str]) -> Any:
    """The table with the values of dictionaries: batches have each their own, and none of them all values."""
    import pyarrow as pa

    for at, field in enumerate(table.schema):
        if field.name in names and pa.types.is_dictionary(field.type):
            plain = field.type.value_type
            table = table.set_column(at, field.with_type(plain), table.column(at).cast(plain))
    return table


def _again(column: Any, data_type: Any) -> Any:
    """A key's values as dictionaries, if they were: in as many as these have room for."""
    import pyarrow as pa

    if not pa.types.is_dictionary(data_type):
        return column
    room = 1 << (data_type.index_type.bit_width - 1)
    parts = [column.slice(start, room) for start in range(0, len(column), room)]
    chunks = [chunk.cast(data_type) for part in parts for chunk in part.chunks]
    return pa.chunked_array(chunks, data_type)


def _few(function: str) -> int:
    count = function.removeprefix(_TOP)
    if not count.isdecimal() or int(count) < 1:
        raise GraphError(f"'{function}' is not an aggregation: the greatest are so many, such as top_3")
    return int(count)


def _greatest(lists: Any, count: int) -> Any:
    """Of each list the greatest few, greatest first, without nulls."""
    import pyarrow as pa
    import pyarrow.compute as pc

    values, of = pc.list_flatten(lists), pc.list_parent_indices(lists)
    both = pa.table({"of": of, "value": values}).filter(pc.is_valid(values))
    both = both.sort_by([("of", "ascending"), ("value", "descending")])
    found = both.group_by("of", use_threads=False).aggregate([("value", "count")])
    held = dict(zip(found["of"].to_pylist(), found["value_count"].to_pylist(), strict=True))
    offsets = [0]
    for at in range(len(lists)):
        offsets.append(offsets[-1] + held.get(at, 0))
    sorted_lists = pa.ListArray.from_arrays(
        pa.array(offsets, pa.int32()), both["value"].combine_chunks().cast(lists.type.value_type)
    )
    return pc.list_slice(sorted_lists, 0, count)


def _with_one_zero(table: Any, by: list[str]) -> Any:
    """The table with 0.0 for -0.0 in its key, which are one key everywhere else."""
    import pyarrow as pa
    import pyarrow.compute as pc

    for name in by:
        at = table.schema.get_field_index(name)
        column = table.column(at)
        if pa.types.is_float32(column.type) or pa.types.is_float64(column.type):
            zero = pc.equal(column, pa.scalar(0.0, column.type))
            table = table.set_column(
                at, table.schema.field(at), pc.if_else(zero, pa.scalar(0.0, column.type), column)
            )
    return table


def _share(function: str) -> float:
    try:
        share = float(function.removeprefix(_QUANTILE))
    except ValueError:
        share = -1.0
    if not 0 <= share <= 1:
        raise GraphError(
            f"'{function}' is not an aggregation: a quantile is of a share, such as quantile_0.9"
        )
    return share
