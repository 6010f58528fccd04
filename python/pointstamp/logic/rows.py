"""`ArrowStream.sort` and `limit`: the rows of each time, together on one worker."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any

from pointstamp.logic.per_time import at_closing
from pointstamp.logic.selection import rows_in_order

if TYPE_CHECKING:
    from collections.abc import Callable

    from pointstamp._core import Capability, FrontieredInput, OutputPort
    from pointstamp.logic.declared_state import Division, Restored
    from pointstamp.logic.per_time import BatchesPerTime

__all__ = ["limited", "sorted_per_time"]


def sorted_per_time(keys: list[int], descending: bool) -> tuple[Callable[..., Any], BatchesPerTime]:
    """The constructor and the state of an operator that sends a time's rows in order when it closes."""

    def in_order(batches: list[Any]) -> Any:
        import pyarrow as pa

        return pa.Table.from_batches(rows_in_order(batches, keys, descending), batches[0].schema)

    return at_closing(in_order)


class Passed:
    """By time, the number of rows that have passed."""

    division: Division = "parts"

    def __init__(self) -> None:
        self.rows: Counter[Any] = Counter()

    def taken(self) -> dict[Any, int]:
        """See `Waiting`."""
        return dict(self.rows)

    def give_back(self, taken: dict[Any, int], _restored: Restored) -> None:
        """See `Waiting`."""
        self.rows.update(taken)


def limited(rows: int) -> tuple[Callable[..., Any], Passed]:
    """The constructor and the state of an operator that drops all but a time's first rows."""
    kept = Passed()
    passed = kept.rows

    def build(capability: Capability, _info: Any) -> Callable[..., None]:
        capability.drop()

        def logic(port: FrontieredInput[Any], output: OutputPort[Any]) -> None:
            for message, batch in port:
                room = rows - passed[message.time]
                if room > 0:
                    rows_of: Any = batch
                    part = rows_of.slice(0, min(room, rows_of.num_rows))
                    passed[message.time] = rows - room + part.num_rows
                    with output.session(message) as session:
                        session.give(part)
            frontier = port.frontier
            for time in [time for time in passed if not frontier.less_equal(time)]:
                del passed[time]

        return logic

    return build, kept
