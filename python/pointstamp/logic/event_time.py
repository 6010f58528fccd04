"""`event_time`: a stream whose frontier is the watermark of its records' own times.

The operator has no path from its input to its output: the records alone determine the times of its results.
It holds a capability at the watermark, which is the latest time of a record on this worker minus the
permitted lateness, and advances it after every batch. So each worker has a watermark, and the stream's
frontier is the least of them.

A worker without records would hold the frontier for ever. It holds nothing once its input has ended; and a
worker that has had no record for `idle` seconds follows the others: it moves to the least watermark of the
workers that are not idle, or to the greatest where all are. For that, workers send each other their
watermarks through a loop, as long as any of them is idle, and no longer.

Cost: two passes over a batch's times, and of a batch that has late records, a compare for each record.
"""

from __future__ import annotations

import threading
import time
from typing import TYPE_CHECKING, Any

from pointstamp._core import PactKind, give_timed
from pointstamp.logic.in_time_order import root_only
from pointstamp.logic.planned import PlannedOperator
from pointstamp.observability.held_times import register_explanation
from pointstamp.plan.node import Form

if TYPE_CHECKING:
    from collections.abc import Callable

    from pointstamp._core import Capability, FrontieredInput, OutputPort, Retention
    from pointstamp.event_time.clock import Clock
    from pointstamp.event_time.units import Late
    from pointstamp.logic.declared_state import Division, Restored
    from pointstamp.lowering.scope import BuildingScope
    from pointstamp.plan.node import Output

    # For a batch, the latest time so far (-1: none), the floor, and the lateness: returns the rows on time
    # (None: nothing), the late rows, and the latest time now.
    Split = Callable[[Any, int, int, int], tuple[Any, Late, int]]

__all__ = ["event_times"]

_TITLE = "event_time"
_ACTIVE, _IDLE, _ENDED = range(3)


def event_times(
    scope: BuildingScope,
    read: Output,
    split: Split,
    clock: Clock,
    *,
    lateness: int,
    idle: float | None,
    name: str | None,
    time_column: str | None = None,
) -> tuple[Output, Output]:
    """Appends the operator; returns records on time, in batches of mixed times, and late ones.

    Records on time are sent at the watermark before their batch, as `split` gives them: columns ``(times,
    records)``, or a record batch. Late ones are sent at the watermark that they came behind, however records
    are cut into batches.

    Args:
        scope: Where.
        read: The records, or columns.
        split: Reads a batch.
        clock: The unit of the times that `split` returns.
        lateness: The maximum distance of a record behind the latest one, in units.
        idle: The seconds without a record after which a worker no longer holds the others up; None: never.
        name: The operator's name in the program.
        time_column: For columns, the column with the times.
    """
    root_only(scope, _TITLE)
    if idle is not None and (isinstance(idle, bool) or not isinstance(idle, int | float)):
        raise TypeError(f"idle is a number of seconds, or None, not {idle!r}")
    if idle is not None and not idle >= 0:
        raise ValueError(f"idle is a number of seconds, at least 0, or None: not {idle}")
    schema = read.schema
    operator = PlannedOperator(scope, name or _TITLE)
    operator.new_input(read, (PactKind.PIPELINE, None))
    form = Form.TIMED if schema is None else Form.MIXED
    on_time, on_time_made, capability = operator.new_output(schema, form=form, clock=clock)
    on_time_made.time_column = time_column
    late, late_made, late_capability = operator.new_output(schema, clock=clock)
    for output in (0, 1):
        operator.set_summary(0, output, None)
    watermark = Watermark(on_time, capability, late, late_capability, split, lateness, clock)
    info = operator.info
    register_explanation(info, watermark)
    if idle is None or idle > threading.TIMEOUT_MAX:
        operator.keeps_waiting(watermark)
        watermark.retention = operator.retention([on_time_made, late_made])
        operator.build(watermark.alone, tuple, start=True)
        return on_time_made, late_made
    # Also present with one worker: the computation may resume from a checkpoint with any number of workers.
    announcements, announced, announcing = operator.new_output()
    watermark.announcing = announcing
    operator.set_summary(0, 2, None)
    if scope.peers == 1:
        operator.keeps_waiting(watermark)
        watermark.retention = operator.retention([on_time_made, late_made])
        operator.build(watermark.alone, tuple, start=True)
        return on_time_made, late_made
    loop = scope._feedback(1, None, retains=False, name=name and f"{name}: feedback")
    operator.new_input(loop.output, (PactKind.BROADCAST, None))
    for input, output in ((1, 0), (1, 1), (1, 2)):
        operator.set_summary(input, output, None)
    watermark.neighbours = neighbours = Neighbours(watermark, info, announcements, announcing, idle)
    operator.keeps_waiting(watermark)
    watermark.retention = operator.retention([on_time_made, late_made])
    if watermark.retention is not None:
        operator.set_summary(1, 3, None)
    operator.build(neighbours.run, tuple, start=True)
    scope._connect(loop, announced)
    return on_time_made, late_made


class Watermark:
    """A worker's part: the latest time, and the capabilities that stand at the watermark.

    Another number of workers resumes from a checkpoint with the least watermark of all: then a record is late
    where it was late on every worker.
    """

    division: Division = "groups"

    def __init__(
        self,
        on_time: OutputPort[Any],
        capability: Capability,
        late: OutputPort[Any],
        late_capability: Capability,
        split: Split,
        lateness: int,
        clock: Clock,
    ) -> None:
        self._clock = clock
        self._on_time = (on_time, capability)
        self._late = (late, late_capability)
        self._split = split
        self._lateness = lateness
        self._latest = -1
        self._stands = 0
        self._sent = 0
        self.floor = 0
        self.ended = False
        # The retention of sent records: their times in the source are of another kind.
        self.retention: Retention | None = None
        # The broadcast to other workers: the capability, and the output.
        self.announcing: Capability | None = None
        self.neighbours: Neighbours | None = None
        self._restored = False

    def taken(self) -> tuple[Any, ...]:
        """See `Waiting`."""
        others = None if self.neighbours is None else self.neighbours.taken()
        times = self._latest, self._stands, self._sent, self.floor
        return times, self.ended, self._clock.described(), others

    def give_back(self, taken: tuple[Any, ...], restored: Restored) -> None:
        """See `Waiting`."""
        times, ended, unit, others = taken
        if not self._restored:
            self._latest, self._stands, self._sent, self.floor = times
        else:
            latest, stands, sent, floor = times
            self._latest = min(self._latest, latest)
            self._stands, self._sent = min(self._stands, stands), max(self._sent, sent)
            self.floor = min(self.floor, floor)
        self._restored = True
        self.ended = ended
        if unit is not None:
            self._clock.restore(unit)
        if self.neighbours is not None:
            self.neighbours.give_back(others, restored, ended=ended)

    def holding(self) -> tuple[str, str]:
        """See `ExplainsTimes`."""
        what = "No record has given it a time yet."
        if self._latest >= 0:
            what = f"The latest time of a record is {self._latest}, less the lateness {self._lateness}."
        return what, "Its times move on with later records, or when its input ends."

    @property
    def own(self) -> int:
        """Returns the watermark of this worker's records."""
        return max(self._latest - self._lateness, 0)

    @property
    def time(self) -> int:
        """No record before it is on time."""
        return max(self.floor, self.own)

    def run(self, data: FrontieredInput[Any]) -> bool:
        """Passes on waiting records; returns whether there were any."""
        if self.retention is not None:  # records still to be read are not before the frontier
            frontier: Any = data.frontier.elements
            self.retention.settle(self._sent, frontier[0] if frontier else None)
        any_came = False
        for _, batch in data:
            any_came = True
            on_time, late, self._latest = self._split(batch, self._latest, self.floor, self._lateness)
            if on_time is not None:
                output, capability = self._on_time
                if isinstance(on_time, tuple):
                    give_timed(output, capability, on_time)
                else:
                    _send(output, capability, on_time)
                self._sent = max(self._sent, self._stands)
            output, capability = self._late
            for watermark, part in late:
                _send(output, capability.delayed(watermark), part)
                self._sent = max(self._sent, watermark)
        if not self.ended and not data.frontier:
            self.ended = True
            for _, capability in (self._on_time, self._late):
                capability.drop()
            if self.neighbours is None and self.announcing is not None:
                self.announcing.drop()
        self.settle()
        return any_came

    def alone(self, data: FrontieredInput[Any]) -> None:
        """The logic of a worker that waits for no other."""
        self.run(data)

    def settle(self) -> None:
        """Moves the capabilities to the watermark."""
        if not self.ended and self.time > self._stands:
            self._stands = self.time
            for _, capability in (self._on_time, self._late):
                capability.downgrade(self._stands)


def _send(output: OutputPort[Any], capability: Capability, part: Any) -> None:
    with output.session(capability) as session:
        (session.give_all if isinstance(part, list) else session.give)(part)


class Neighbours:
    """Notices between the workers, so that one without records does not hold the others up."""

    def __init__(
        self,
        watermark: Watermark,
        info: Any,
        announcements: OutputPort[Any],
        announcing: Capability,
        patience: float,
    ) -> None:
        self._watermark = watermark
        self._info = info
        self._announcements = announcements
        self._announcing = announcing
        self._patience = patience
        self._state = _ACTIVE
        self._said: tuple[int, int] | None = None
        self._others = {peer: (_ACTIVE, 0) for peer in range(info.peers) if peer != info.index}
        self._last_record = time.monotonic()
        self._alarm: float | None = None

    def taken(self) -> tuple[Any, ...]:
        """Returns the known watermarks of the others, for a checkpoint."""
        return self._info.peers, self._state, self._said, self._others

    def give_back(self, taken: tuple[Any, ...] | None, restored: Restored, *, ended: bool) -> None:
        """Takes back the result of `taken`. With another number of workers, their watermarks are dropped."""
        if taken is not None and taken[0] == restored.peers:
            _, self._state, self._said, self._others = taken
        elif ended:
            self._state = _ENDED

    def run(self, data: FrontieredInput[Any], notices: FrontieredInput[Any]) -> None:
        """Runs the watermark, and then finds workers that wait for others."""
        for _, said in notices:
            self._others.update({peer: (state, time) for peer, state, time in said if peer in self._others})
        if self._state == _ENDED:
            self._watermark.run(data)
            return
        now = time.monotonic()
        if self._watermark.run(data):
            self._last_record = now
            self._state = _ACTIVE
        if self._watermark.ended:
            self._state = _ENDED
        elif now >= self._last_record + self._patience:
            self._state = _IDLE
        else:
            self._wake(now)
        if self._state == _IDLE:
            active = [time for state, time in self._others.values() if state == _ACTIVE]
            idle = [time for state, time in self._others.values() if state == _IDLE]
            follows = min(active) if active else max(idle, default=0)
            self._watermark.floor = max(self._watermark.floor, follows)
            self._watermark.settle()
        self._tell()

    def _wake(self, now: float) -> None:
        due = self._last_record + self._patience
        if self._alarm is None or now >= self._alarm:
            self._alarm = due
            self._info.activator.activate_after(due - now)

    def _tell(self) -> None:
        """Sends the watermark that others need, once."""
        saying = (self._state, self._watermark.own)
        was_idle = self._said is not None and self._said[0] == _IDLE
        asked = was_idle or any(state == _IDLE for state, _ in self._others.values())
        if saying != self._said and (asked or self._state != _ACTIVE):
            self._said = saying
            with self._announcements.session(self._announcing) as session:
                session.give((self._info.index, *saying))
        if self._state == _ENDED:
            self._announcing.drop()
