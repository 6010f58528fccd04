"""`KeyedStream.process`: functions of the user's over records and timers of a key, in the order of time.

A timer of a key is due at an event time: it comes after every record before that time and before every
record at it. It runs when that time is final, so that a snapshot at the time has it still. Timers are in a
heap, one entry each; one that is taken back leaves it when it would be due, or when more than half of those
in it were. Setting one twice for a time sets it once. A dataflow holds its frontier back to the earliest. A
snapshot of the state has the timers, too.
"""

from __future__ import annotations

import logging
from heapq import heapify, heappop, heappush
from operator import itemgetter
from typing import TYPE_CHECKING, Any, NoReturn

from pointstamp._errors import CapabilityError, TimeError

if TYPE_CHECKING:
    from collections.abc import Callable

    from pointstamp.event_times.clock import Clock
    from pointstamp.keyed.rows import Results, Rows
    from pointstamp.keyed.state import KeyedState

__all__ = ["KeyContext", "Process"]


class KeyContext:
    """A key at an instant: what the functions of `KeyedStream.process` are given.

    Attributes:
        key: The key.
        time: Of the record, or the timer.
    """

    __slots__ = ("_process", "_time", "key")

    def __init__(self, process: Process) -> None:
        self._process = process
        self._time = 0
        self.key: Any = None

    @property
    def time(self) -> Any:
        """The time of the record, or of the timer."""
        return self._process.clock.shown(self._time)

    @property
    def state(self) -> Any:
        """The key's state; None where there is none. Setting it to None forgets it."""
        return self._process.state.states.get(self.key)

    @state.setter
    def state(self, state: Any) -> None:
        states = self._process.state.states
        if state is None:
            states.pop(self.key, None)
        else:
            states[self.key] = state

    @property
    def ended(self) -> bool:
        """Whether the stream has ended and only timers are left. A timer that is set now is not due."""
        return self._process._ends

    def emit(self, record: Any) -> None:
        """Sends a record, at this time.

        Raises:
            CapabilityError: After the function that was given the context has returned.
        """
        process = self._process
        if process._context is not self:
            _refuse_kept()
        process._times.append(self._time)
        process._records.append(record)

    def set_timer(self, time: Any) -> None:
        """Asks for `on_timer` at a later time.

        A timer that is set by one after the stream has `ended` is not due, which a warning says.

        Raises:
            TimeError: For a time that is not after this one.
            CapabilityError: After the function that was given the context has returned.
        """
        if self._process._context is not self:
            _refuse_kept()
        due = self._process.clock.unit(time)
        if due <= self._time:
            raise TimeError(f"a timer for {time} is not after {self.time}, where it was set")
        self._process._set(due, self.key)

    def cancel_timer(self, time: Any) -> None:
        """Takes a timer back, if it is set."""
        self._process._cancel(self._process.clock.unit(time), self.key)


def _refuse_kept() -> NoReturn:
    raise CapabilityError(
        "a context of process was kept, and used when its time was over: emit, and set timers, while the "
        "function runs that was given it"
    )


def _refuse_returned(which: str, function: Any, returned: Any) -> NoReturn:
    name = getattr(function, "__qualname__", repr(function))
    raise TypeError(
        f"{which} of process, {name}, returned {returned!r:.100}, which goes nowhere: send records with "
        "context.emit(record), and return nothing"
    )


class Process:
    """The logic."""

    def __init__(
        self,
        state: KeyedState[Any, Any],
        clock: Clock,
        on_record: Callable[[KeyContext, Any], Any],
        on_timer: Callable[[KeyContext], Any] | None,
    ) -> None:
        self.state = state
        self.clock = clock
        self._on_record = on_record
        self._on_timer = on_timer
        # Those in the heap, and whether they are set still.
        self._timers: dict[tuple[int, Any], bool] = {}
        self._due: list[tuple[int, int, Any]] = []
        self._entries = 0
        self._cancelled = 0
        self._context: KeyContext | None = None
        self._times: list[int] = []
        self._records: list[Any] = []
        self._ends = False
        self._in_vain = 0
        state.keep_in(self)

    def run(self, rows: Rows, until: int | None, out: Results) -> None:
        """See `Logic`."""
        self._context = context = KeyContext(self)
        touch = self.state.touch if self.state.ttl is not None else None
        for time, key, value in rows:
            if self._due and self._due[0][0] <= time:
                self._fire(time + 1, context)
            context.key, context._time = key, time
            if touch is not None:
                touch(key, time)
            if (returned := self._on_record(context, value)) is not None:
                _refuse_returned("on_record", self._on_record, returned)
        # At the end those that are set are due; what they set in turn would never end.
        self._ends = until is None
        self._fire(until, context)
        if self._in_vain:
            logging.getLogger("pointstamp.keyed").warning(
                "process: %d timer(s) were set by timers after the stream had ended, and are not due: look "
                "at context.ended before set_timer",
                self._in_vain,
            )
        self.state.forget_until(until)
        out.give(self._times, self._records)
        self._times, self._records = [], []
        self._context = None

    def _set(self, due: int, key: Any) -> None:
        if self._on_timer is None:
            raise TypeError("a timer was set, and process has no on_timer: give it a function of a context")
        if self._ends:
            self._in_vain += 1
            return
        known = self._timers.get((due, key))
        self._timers[due, key] = True
        if known is None:
            self._entries += 1
            heappush(self._due, (due, self._entries, key))
        elif not known:
            self._cancelled -= 1

    def _cancel(self, due: int, key: Any) -> None:
        if not self._timers.get((due, key)):
            return
        self._timers[due, key] = False
        self._cancelled += 1
        if self._cancelled > 64 and 2 * self._cancelled > len(self._due):
            self._due = [entry for entry in self._due if self._timers[entry[0], entry[2]]]
            heapify(self._due)
            self._timers = {timer: True for timer, is_set in self._timers.items() if is_set}
            self._cancelled = 0

    def _fire(self, until: int | None, context: KeyContext) -> None:
        """Runs those that are due before a time, or all."""
        while self._due and (until is None or self._due[0][0] < until):
            due, _, key = heappop(self._due)
            if not self._timers.pop((due, key)):
                self._cancelled -= 1
            elif self._on_timer is not None:
                context.key, context._time = key, due
                if (returned := self._on_timer(context)) is not None:
                    _refuse_returned("on_timer", self._on_timer, returned)

    def next_time(self, until: int) -> int | None:
        """Returns the time of the first timer."""
        return self._due[0][0] if self._due else None

    def listed(self) -> dict[Any, Any]:
        """See `Keeper`."""
        return self.state.states

    def notes(self) -> dict[Any, Any]:
        """See `Keeper`: when the timers of each key are due."""
        found: dict[Any, list[int]] = {}
        for due, key in sorted(self._timers, key=itemgetter(0)):
            if self._timers[due, key]:
                found.setdefault(key, []).append(due)
        return found

    def put(self, key: Any, state: Any, note: Any) -> None:
        """See `Keeper`."""
        if state is not None:
            self.state.states[key] = state
        for due in note or ():
            self._set(due, key)
