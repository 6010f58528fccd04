"""`Stream.reclock`: records wait for the tick of another stream, and are sent at its time.

After timely dataflow's operator of that name, with its two rules: a tick at a time sends the waiting records
of that time or before, and records that no tick releases are never sent.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pointstamp.logic.per_time import PerTime
from pointstamp.order import less_equal

if TYPE_CHECKING:
    from collections.abc import Callable

    from pointstamp._core import Capability, FrontieredInput, OutputPort
    from pointstamp.info import OperatorInfo
    from pointstamp.logic.declared_state import Division, Restored
    from pointstamp.types import Time

__all__ = ["Held", "reclock"]


class Held:
    """Records that wait for a tick, and the ticks whose times are not closed."""

    division: Division = "workers"

    def __init__(self) -> None:
        self.records: dict[Time, list[Any]] = {}
        self.ticks: PerTime[None] = PerTime(lambda: None)

    def taken(self) -> tuple[dict[Time, list[Any]], list[Any]]:
        """See `Waiting`."""
        return self.records, self.ticks.taken()

    def give_back(self, taken: tuple[dict[Time, list[Any]], list[Any]], restored: Restored) -> None:
        """See `Waiting`."""
        self.records, ticks = taken
        self.ticks.give_back(ticks, restored)


def reclock(
    kept: Held, capability: Capability, _info: OperatorInfo
) -> Callable[[FrontieredInput[Any], FrontieredInput[Any], OutputPort[Any]], None]:
    """The constructor of the operator; its inputs are the data and the clock."""
    capability.drop()
    held, ticks = kept.records, kept.ticks

    def logic(data: FrontieredInput[Any], clock: FrontieredInput[Any], output: OutputPort[Any]) -> None:
        # Records without a capability to send them: the tick's, which is later, will do.
        for message, records in data:
            held.setdefault(message.time, []).append(records)
        for tick, _ in clock:
            ticks.at(tick)
        for cap, _ in ticks.closed(data.frontier, clock.frontier):
            with output.session(cap) as session:
                for time in sorted(t for t in held if less_equal(t, cap.time)):
                    for records in held.pop(time):
                        give = session.give_all if isinstance(records, list) else session.give
                        give(records)
        if not len(ticks) and not clock.frontier:
            held.clear()  # the clock has stopped: nothing releases these any more

    return logic
