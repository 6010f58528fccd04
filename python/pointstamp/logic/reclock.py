"""`Stream.reclock`: records wait for the tick of another stream, and are sent at its time.

After timely dataflow's operator of that name, with its two rules: a tick at a time sends what is here of that
time or before, and records that no tick releases are never sent.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pointstamp.logic.notify import FrontierNotificator
from pointstamp.order import less_equal

if TYPE_CHECKING:
    from collections.abc import Callable

    from pointstamp._core import Capability, FrontieredInput, OutputPort
    from pointstamp.info import OperatorInfo
    from pointstamp.types import Time

__all__ = ["reclock"]


def reclock(
    capability: Capability, _info: OperatorInfo
) -> Callable[[FrontieredInput[Any], FrontieredInput[Any], OutputPort[Any]], None]:
    """The constructor of the operator; its inputs are the data and the clock."""
    capability.drop()
    held: dict[Time, list[Any]] = {}
    ticks = FrontierNotificator()
    pending: set[Time] = set()

    def logic(data: FrontieredInput[Any], clock: FrontieredInput[Any], output: OutputPort[Any]) -> None:
        # Records without a capability to send them: the tick's, which is later, will do.
        for message, records in data:
            held.setdefault(message.time, []).append(records)
        for tick, _ in clock:
            if tick.time not in pending:
                pending.add(tick.time)
                ticks.notify_at(tick.retain())
        for cap in ticks.ready(data.frontier, clock.frontier):
            with cap, output.session(cap) as session:
                pending.discard(cap.time)
                for time in sorted(t for t in held if less_equal(t, cap.time)):
                    for records in held.pop(time):
                        give = session.give_all if isinstance(records, list) else session.give
                        give(records)
        if not pending and not clock.frontier:
            held.clear()  # the clock has stopped: nothing releases these any more

    return logic
