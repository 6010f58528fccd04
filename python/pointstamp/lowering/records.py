"""Rules of nodes over records, and records at their event times."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pointstamp import _core
from pointstamp.lowering.rules import converts, rule
from pointstamp.plan import records
from pointstamp.plan.node import Form

if TYPE_CHECKING:
    from pointstamp.lowering.building import Building
    from pointstamp.plan.node import Node, Output

__all__: list[str] = []


@rule(records.TO_COLLECTION)
def to_collection(_building: Building, node: Node, stream: _core.Stream) -> _core.Stream:
    """Makes updates of records."""
    return _core.to_collection(stream, node["diffs"])


@rule(records.COUNT)
def count(_building: Building, _node: Node, stream: _core.Stream) -> _core.Stream:
    """Counts the records of each time on this worker."""
    return _core.count(stream)


@rule(records.DELAY)
def delay(_building: Building, node: Node, stream: _core.Stream) -> _core.Stream:
    """Moves records to later times."""
    return _core.delay(stream, node["function"])


@rule(records.DELAY_BATCH)
def delay_batch(_building: Building, node: Node, stream: _core.Stream) -> _core.Stream:
    """Moves batches to later times."""
    return _core.delay_batch(stream, node["function"])


@rule(records.ENTER_AT)
def enter_at(_building: Building, node: Node, stream: _core.Stream) -> _core.Stream:
    """Moves records to the appended coordinates that a function chooses."""
    return _core.enter_at(stream, node["function"], node["appended"])


@converts(Form.TIMED, Form.RECORDS)
def at_event_times(_building: Building, _output: Output, timed: _core.Stream) -> _core.Stream:
    """Gives each record its own time."""
    return _core.at_event_times(timed)
