"""`KeyedStream.process`: functions of the user's over records and timers of a key, in the order of time.

A timer of a key is due at an event time: it comes after every record before that time and before every
record at it. Timers are in a heap, one entry each; setting one twice for a time sets it once. A dataflow
holds its frontier back to the earliest. A snapshot of the state has the timers, too.
"""

from __future__ import annotations

from heapq import heappop, heappush
from operator import itemgetter
from typing import TYPE_CHECKING, Any

from pointstamp._errors import TimeError

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
        """Of the record, or the timer."""
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

    def emit(self, record: Any) -> None:
        """Sends a record, at this time."""
        process = self._process
        process._times.append(self._time)
        process._records.append(record)

    def set_timer(self, time: Any) -> None:
        """Asks for `on_timer` at a later time.

        Raises:
            TimeError: For a time that is not after this one.
        """
        due = self._process.clock.unit(time)
        if due <= self._time:
            raise TimeError(f"a timer for {time} is not after {self.time}, where it was set")
        self._process._set(due, self.key)

    def cancel_timer(self, time: Any) -> None:
        """Takes a timer back, if it is set."""
        self._process._timers.discard((self._process.clock.unit(time), self.key))


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
        self._timers: set[tuple[int, Any]] = set()
        self._due: list[tuple[int, int, Any]] = []
        self._entries = 0
        self._times: list[int] = []
        self._records: list[Any] = []
        self._ends = False
        state.keep_in(self)

    def run(self, rows: Rows, until: int | None, out: Results) -> None:
        """See `Logic`."""
        context = KeyContext(self)
        touch = self.state.touch if self.state.ttl is not None else None
        for time, key, value in rows:
            if self._due and self._due[0][0] <= time:
                self._fire(time, context)
            context.key, context._time = key, time
            if touch is not None:
                touch(key, time)
            self._on_record(context, value)
        # At the end those that are set are due; what they set in turn would never end.
        self._ends = until is None
        self._fire(until, context)
        self.state.forget_until(until)
        out.give(self._times, self._records)
        self._times, self._records = [], []

    def _set(self, due: int, key: Any) -> None:
        if self._on_timer is None:
            raise TypeError("a timer was set, and process has no on_timer: give it a function of a context")
        if self._ends or (due, key) in self._timers:
            return
        self._timers.add((due, key))
        self._entries += 1
        heappush(self._due, (due, self._entries, key))

    def _fire(self, until: int | None, context: KeyContext) -> None:
        while self._due and (until is None or self._due[0][0] <= until):
            due, _, key = heappop(self._due)
            if (due, key) in self._timers and self._on_timer is not None:
                self._timers.remove((due, key))
                context.key, context._time = key, due
                self._on_timer(context)

    def next_time(self, until: int) -> int | None:
        """That of the first timer."""
        return self._due[0][0] if self._due else None

    def listed(self) -> dict[Any, Any]:
        """See `Keeper`."""
        return self.state.states

    def notes(self) -> dict[Any, Any]:
        """See `Keeper`: when the timers of each key are due."""
        found: dict[Any, list[int]] = {}
        for due, key in sorted(self._timers, key=itemgetter(0)):
            found.setdefault(key, []).append(due)
        return found

    def put(self, key: Any, state: Any, note: Any) -> None:
        """See `Keeper`."""
        if state is not None:
            self.state.states[key] = state
        for due in note or ():
            self._set(due, key)
