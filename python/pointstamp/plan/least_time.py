"""Streams whose rows are all at the least time, as far as a plan shows.

A join per time of such a stream with one whose rows have times of their own makes no pairs: that is rarely
meant. Costs at most `_FAR` nodes for a join.
"""

from __future__ import annotations

from enum import Enum
from functools import cache
from typing import TYPE_CHECKING, NamedTuple

from pointstamp._validation import warn_usage
from pointstamp.plan import columns, records, shape
from pointstamp.plan.node import Form

if TYPE_CHECKING:
    from pointstamp._validation import Line
    from pointstamp.plan.node import Kind, Node, Output

__all__ = ["IN_COLUMNS", "IN_RECORDS", "NeverMet", "Times", "never_meet", "times_of"]

SIDES = ("left", "right")

IN_COLUMNS = "join_so_far pairs rows across times, and table_join has the row that is valid at a row's time"
IN_RECORDS = (
    "to_collection().join pairs records that stay, and key_by(...).table_join has the row that is valid at a "
    "record's time"
)
"""The methods to use instead of a join whose sides never meet."""


class Times(Enum):
    """The times of the rows of a stream, as a plan shows them."""

    LEAST = "the least"
    OWN = "their own"
    DRIVEN = "those that main chooses"


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
        records.FILTER,
        records.FLAT_MAP,
        records.INSPECT,
        records.INSPECT_BATCH,
        records.INSPECT_TIME,
        records.MAP,
        records.MAP_BATCHES,
        records.MAP_IN_PLACE,
        shape.BROADCAST,
        shape.CONCATENATE,
        shape.ENTER,
        shape.EXCHANGE,
    )
    return frozenset(kept)


def times_of(output: Output) -> Times | None:
    """Returns the times of the rows of an output; None where they are not known, or of several kinds."""
    found: set[Times] = set()
    open_outputs, seen = [output], 0
    while open_outputs:
        here = open_outputs.pop()
        seen += 1
        kind = here.node.kind
        if here.at_least_time is not None:
            found.add(Times.LEAST if here.at_least_time else Times.OWN)
        elif kind is shape.TO_STREAM:
            found.add(Times.LEAST)
        elif kind is shape.INPUT:
            found.add(Times.DRIVEN)
        elif kind in {columns.DELAY, records.DELAY, records.DELAY_BATCH} or here.form in {
            Form.MIXED,
            Form.TIMED,
        }:
            found.add(Times.OWN)
        elif (kind in _keep_times() or _keeps_times(here.node)) and seen < _FAR:
            open_outputs += [read.output for read in here.node.inputs]
        else:
            return None
    return found.pop() if len(found) == 1 else None


def _keeps_times(node: Node) -> bool:
    """Whether an operator in Python sends all at the times of what it reads."""
    return node.kind is shape.OPERATOR and bool(node.arguments and node.arguments.get("keeps_times"))


class NeverMet(NamedTuple):
    """The sides of a join of which rows of one have no pair.

    Attributes:
        whole: The side that is at the least time, 0 for the left one.
        driven: Whether `main` chooses the times of the other side, so that its first rows may have pairs.
    """

    whole: int
    driven: bool

    @property
    def other(self) -> int:
        """The other side."""
        return 1 - self.whole

    def warn(self, cure: str, line: Line | None = None) -> None:
        """Warns of the join.

        Args:
            cure: The methods to use instead.
            line: The line of the join; None: the one that runs.
        """
        whole, other = SIDES[self.whole], SIDES[self.other]
        times = "rows of the {} side come later" if self.driven else "the {} side has times of its own"
        lost = "these have no pairs" if self.driven else "there are no pairs"
        warn_usage(
            f"join pairs what has one time: all of the {whole} side is at the least time, and "
            f"{times.format(other)}, so {lost}: {cure}",
            line,
        )


def never_meet(left: Output, right: Output) -> NeverMet | None:
    """Finds out that one side of a join per time is at the least time, and the other is not."""
    times = [times_of(left), times_of(right)]
    for whole in (0, 1):
        if times[whole] is Times.LEAST and times[1 - whole] in {Times.OWN, Times.DRIVEN}:
            return NeverMet(whole, times[1 - whole] is Times.DRIVEN)
    return None
