"""Streams whose rows are all at the least time, as far as a plan shows.

A join per time of such a stream with one whose rows have times of their own makes no pairs: that is rarely
meant. Costs at most `_FAR` nodes for a join.
"""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING

from pointstamp.plan import columns, records, shape
from pointstamp.plan.node import Form

if TYPE_CHECKING:
    from pointstamp.plan.node import Kind, Output

__all__ = ["all_at_least_time", "never_meet"]

_FAR = 100
"""The number of nodes that are looked at; behind them, nothing is known."""


@cache
def _keep_times() -> frozenset[Kind]:
    """Kinds of nodes whose results are at the times of what they read."""
    kept = (
        columns.AGGREGATE,
        columns.DISTINCT,
        columns.EXCHANGE,
        columns.FILTER,
        columns.INSPECT_BATCH,
        columns.MAP_BATCHES,
        columns.PARTITION,
        columns.RENAME,
        columns.SELECT,
        columns.TO_ARROW,
        columns.TO_RECORDS,
        columns.WITH_COLUMNS,
        records.DISTINCT,
        records.FILTER,
        records.FLAT_MAP,
        records.INSPECT,
        records.INSPECT_BATCH,
        records.INSPECT_TIME,
        records.MAP,
        records.MAP_BATCHES,
        records.MAP_IN_PLACE,
        records.VALUE_COUNTS,
        shape.BROADCAST,
        shape.CONCATENATE,
        shape.ENTER,
        shape.EXCHANGE,
    )
    return frozenset(kept)


def all_at_least_time(output: Output) -> bool | None:
    """Whether all rows are at the least time; False where they have their own times, None where unknown."""
    found: set[bool] = set()
    open_outputs, seen = [output], 0
    while open_outputs:
        here = open_outputs.pop()
        seen += 1
        kind = here.node.kind
        if here.at_least_time is not None:
            found.add(here.at_least_time)
        elif kind is shape.TO_STREAM:
            found.add(True)
        elif kind in {columns.DELAY, records.DELAY, records.DELAY_BATCH} or here.form in {
            Form.MIXED,
            Form.TIMED,
        }:
            found.add(False)
        elif kind in _keep_times() and seen < _FAR:
            open_outputs += [read.output for read in here.node.inputs]
        else:
            return None
    return found.pop() if len(found) == 1 else None


def never_meet(left: Output, right: Output) -> str:
    """Returns a hint where one side is at the least time and the other is not; else ""."""
    least = {"left": all_at_least_time(left), "right": all_at_least_time(right)}
    if set(least.values()) != {True, False}:
        return ""
    whole, other = sorted(least, key=lambda side: not least[side])
    return (
        f"join pairs what has one time: all of the {whole} side is at the least time, and the {other} side "
        "has times of its own"
    )
