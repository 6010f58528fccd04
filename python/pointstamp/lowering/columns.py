"""Rules of nodes over columns, and columns at their event times."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from pointstamp import _core
from pointstamp._validation import Line
from pointstamp.lowering.rules import converts, rule
from pointstamp.plan import columns
from pointstamp.plan.least_time import IN_COLUMNS, never_meet
from pointstamp.plan.node import Form

if TYPE_CHECKING:
    from pointstamp.lowering.building import Building
    from pointstamp.plan.node import Node, Output

__all__: list[str] = []


@rule(
    columns.MAP_BATCHES,
    columns.FILTER,
    columns.SELECT,
    columns.RENAME,
    columns.WITH_COLUMNS,
    columns.WITH_ONE_KEY,
    columns.TO_ARROW,
)
def map_batches(_building: Building, node: Node, stream: _core.Stream) -> _core.Stream:
    """Calls a function with each batch."""
    return _core.map_batches(stream, node["function"], _schema_of(node.output), node.title)


@rule(columns.INSPECT_BATCH)
def inspect_batch(_building: Building, node: Node, stream: _core.Stream) -> _core.Stream:
    """Calls a function with the time and each batch."""
    return _core.inspect_columns(stream, node["function"])


@rule(columns.TO_RECORDS)
def to_records(_building: Building, _node: Node, stream: _core.Stream) -> _core.Stream:
    """Makes a dict of each row."""
    return _core.to_records(stream)


@rule(columns.BRANCH_WHEN)
def branch_when(_building: Building, node: Node, stream: _core.Stream) -> tuple[_core.Stream, _core.Stream]:
    """Splits batches by a condition on their time."""
    return _core.branch_columns_when(stream, node["function"])


@rule(columns.TO_COLLECTION)
def to_collection(_building: Building, node: Node, stream: _core.Stream) -> _core.Stream:
    """Makes updates of rows."""
    return _core.collect_columns(stream, _read_schema(node), node["diffs"])


@rule(columns.DELAY)
def delay(_building: Building, node: Node, stream: _core.Stream) -> _core.Stream:
    """Moves each row to the time in its column."""
    return _core.delay_columns(stream, node["at"])


@rule(columns.OWN_TIMES)
def own_times(_building: Building, node: Node, stream: _core.Stream) -> _core.Stream:
    """Adds the times of rows as a column."""
    return _core.with_own_times(stream, _read_schema(node), node["times"])


# ------------------------------------------------------------ by key


@rule(columns.EXCHANGE)
def exchange(_building: Building, node: Node, stream: _core.Stream) -> _core.Stream:
    """Moves rows to the workers of their keys."""
    return _core.exchange_columns(stream, node["key"])


@rule(columns.PARTITION)
def partition(_building: Building, node: Node, stream: _core.Stream) -> list[_core.Stream] | _core.Stream:
    """Splits rows by key."""
    parts = _core.partition_columns(stream, len(node.outputs), node["key"])
    return parts if len(parts) > 1 else parts[0]


@rule(columns.AGGREGATE)
def aggregate(building: Building, node: Node, stream: _core.Stream) -> _core.Stream:
    """Aggregates per time and key: of an exchange that was left out, the rows before it."""
    in_place = building.source_of(node.inputs[0].output).placed == node["key"]
    divisible = building.root.recording is not None
    return _core.aggregate_columns(
        stream, _read_schema(node), node["by"], node["aggregations"], in_place, divisible
    )


@rule(columns.DISTINCT)
def distinct(_building: Building, node: Node, stream: _core.Stream) -> _core.Stream:
    """Keeps one row of each key per time."""
    return _core.distinct_columns(stream, _read_schema(node), node["key"], node["in_place"])


@rule(columns.DISTINCT_SO_FAR)
def distinct_so_far(_building: Building, node: Node, stream: _core.Stream) -> _core.Stream:
    """Keeps one row of each key at the first times that have one."""
    return _core.distinct_so_far_columns(stream, _read_schema(node), node["key"], node["in_place"])


@rule(columns.JOIN)
def join(_building: Building, node: Node, left: _core.Stream, right: _core.Stream) -> _core.Stream:
    """Pairs rows of two streams by key, at each time."""
    schema, other = _read_schema(node), _read_schema(node, 1)
    terms = (node["by"], node["suffix"], node["how"], node["in_place"])
    unmet = never_meet(*(read.output for read in node.inputs))
    later = None
    if unmet is not None and unmet.driven:
        line = None if node.line is None else Line(node.line.file, node.line.number, "")
        later = (bool(unmet.other), partial(unmet.warn, IN_COLUMNS, line))
    return _core.join_columns(left, schema, right, other, *terms, later)


@rule(columns.JOIN_SO_FAR)
def join_so_far(_building: Building, node: Node, left: _core.Stream, right: _core.Stream) -> _core.Stream:
    """Pairs rows of two streams by key, across times."""
    schema, other = _read_schema(node), _read_schema(node, 1)
    return _core.join_so_far_columns(left, schema, right, other, node["by"], node["suffix"], node["in_place"])


@rule(columns.WINDOW)
def window(_building: Building, node: Node, stream: _core.Stream) -> _core.Stream:
    """Aggregates per key and window of event time, as rows come."""
    return _core.window_columns(
        stream,
        _read_schema(node),
        node["by"],
        node["aggregations"],
        node["column"],
        node["layout"],
        node["in_place"],
    )


@rule(
    columns.WINDOW_IN_ORDER,
    columns.SCAN,
    columns.DEDUP,
    columns.INTERVAL_JOIN,
    columns.WINDOW_JOIN,
    columns.ASOF_JOIN,
    columns.TABLE_JOIN,
)
def in_time_order(_building: Building, node: Node, *streams: _core.Stream) -> _core.Stream:
    """Feeds a kernel with rows in the order of event time."""
    sides = [(stream, key, at) for stream, (key, at) in zip(streams, node["sides"], strict=True)]
    return _core.in_time_order(sides, node["kernel"], node.kind.name, node["keeper"])


# ------------------------------------------------------------ event times


@converts(Form.MIXED, Form.COLUMNS)
def at_event_times(_building: Building, output: Output, mixed: _core.Stream) -> _core.Stream:
    """Moves each row to its own time."""
    assert output.time_column is not None
    return _core.delay_columns(mixed, _core.time_column_of(_schema_of(output), output.time_column))


def _schema_of(output: Output) -> _core.Schema:
    assert output.schema is not None
    return output.schema


def _read_schema(node: Node, number: int = 0) -> _core.Schema:
    """Returns the schema of a node's input."""
    return _schema_of(node.inputs[number].output)
