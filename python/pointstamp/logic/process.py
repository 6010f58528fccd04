"""`KeyedStream.process`: user functions over the records and timers of a key, in the order of event time.

The events of a key are ordered by event time. At one time the state expires first, then the timer runs, then
the records come in the order of their arrival. Expiry is `ttl` after the key was last touched: by a record,
or by a timer that set its state. Every event finds the state as this order leaves it, however far the
frontier moved in a step: a state that is due is dropped before the next event of its key, and the frontier
only frees memory earlier.

Timers are in a heap, one entry each. A timer that is taken back leaves the heap when it would be due, or when
more than half of the entries were taken back. Setting a timer twice for a time sets it once. A timer runs
when its time is final, so that a snapshot at that time still has it. The operator holds its capability back
to the earliest timer. A snapshot of the state has the timers, too.

At the end of the stream event time advances to its end: all timers run, also those that timers set. They run
key by key, so that a key whose timers set timers without end is found after `MOST_IN_TURN` of them.
"""

from __future__ import annotations

from heapq import heapify, heappop, heappush
from typing import TYPE_CHECKING, Any, NoReturn

from pointstamp.errors import CapabilityError, TimeError
from pointstamp.logic.states import Keys
from pointstamp.logic.timed_rows import MOST, Rows

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator

    from pointstamp.event_time.clock import Clock
    from pointstamp.logic.state import KeyedState
    from pointstamp.logic.timed_rows import Results

__all__ = ["MOST_IN_TURN", "KeyContext", "Process"]

MOST_IN_TURN = 10_000
"""Timers that the timers of one key may set after the stream has ended."""


class KeyContext:
    """A key at an event time: the argument of the functions of `KeyedStream.process`.

    Attributes:
        key: The key.
        time: The event time of the record or the timer.

    Examples:
        >>> import pointstamp as ps
        >>> def number(context, word):
        ...     context.state = (context.state or 0) + 1
        ...     context.emit((context.key, context.state, word))
        >>> def build(scope):
        ...     words = scope.to_stream(["tea", "rye", "tin"])
        ...     return words.key_by(lambda word: word[0]).process(number).capture()
        >>> ps.example(build).extract()
        [(0, [('r', 1, 'rye'), ('t', 1, 'tea'), ('t', 2, 'tin')])]
    """

    __slots__ = ("_process", "_time", "key")

    def __init__(self, process: Process) -> None:
        self._process = process
        self._time = 0
        self.key: Any = None

    @property
    def time(self) -> Any:
        """The event time of the record or the timer."""
        return self._process.clock.shown(self._time)

    @property
    def state(self) -> Any:
        """The key's state; None where there is none. Setting it to None forgets it.

        With `ttl=`, setting a state touches the key: it expires `ttl` after this time. Changing a state in
        place does not.

        Raises:
            CapabilityError: When it is set after the function that was given the context has returned.
        """
        return self._process.state._states.find(self.key, None)

    @state.setter
    def state(self, state: Any) -> None:
        process = self._process
        if process._context is not self:
            _refuse_kept()
        kept = process.state
        if state is None:
            kept._drop(self.key)
            return
        if kept._ttl is not None:
            kept._touch(self.key, self._time)
        kept._states[self.key] = state

    @property
    def ended(self) -> bool:
        """Whether the stream has ended and only timers are left.

        A timer that sets a timer each time it runs stops here: ``if not context.ended``. When the end becomes
        known depends on the order of steps, not on event time: a result that depends on `ended` may differ
        between two runs.
        """
        return self._process._ends

    def emit(self, record: Any) -> None:
        """Sends a record, at this time.

        Raises:
            CapabilityError: After the function that was given the context has returned.

        Examples:
            >>> import pointstamp as ps
            >>> def twice(context, word):
            ...     context.emit(word)
            ...     context.emit(word.upper())
            >>> def build(scope):
            ...     return scope.to_stream(["a"]).key_by(len).process(twice).capture()
            >>> ps.example(build).extract()
            [(0, ['A', 'a'])]
        """
        process = self._process
        if process._context is not self:
            _refuse_kept()
        process._times.append(self._time)
        process._records.append(record)

    def set_timer(self, time: Any) -> None:
        """Asks for `on_timer` at a later time. It runs whether or not the key still has a state then.

        Raises:
            TimeError: For a time that is not after this one; for the 10,001st timer that the timers of a key
                set after the stream has ended.
            CapabilityError: After the function that was given the context has returned.

        Examples:
            >>> import pointstamp as ps
            >>> def begin(context, word):
            ...     context.set_timer(context.time + 5)
            >>> def end(context):
            ...     context.emit(f"{context.key} is over at {context.time}")
            >>> def build(scope):
            ...     return scope.to_stream(["a"]).key_by(str).process(begin, on_timer=end).capture()
            >>> ps.example(build).extract()
            [(5, ['a is over at 5'])]
        """
        if self._process._context is not self:
            _refuse_kept()
        due = self._process.clock.unit(time)
        if due <= self._time:
            raise TimeError(
                f"a timer for {time} is not after {self.time}, where it was set: set it for a later time, "
                "such as context.time plus a length"
            )
        self._process._set(due, self.key)

    def cancel_timer(self, time: Any) -> None:
        """Takes a timer back, if it is set.

        Raises:
            CapabilityError: After the function that was given the context has returned.

        Examples:
            >>> import pointstamp as ps
            >>> def wait(context, word):
            ...     context.set_timer(5)
            ...     if word == "stop":
            ...         context.cancel_timer(5)
            >>> def build(scope):
            ...     words = scope.to_stream(["go", "stop"])
            ...     keyed = words.key_by(lambda word: "all")
            ...     late = keyed.process(wait, lambda context: context.emit("late"))
            ...     return late.capture()
            >>> ps.example(build).extract()
            []
        """
        if self._process._context is not self:
            _refuse_kept()
        self._process._cancel(self._process.clock.unit(time), self.key)


def _refuse_kept() -> NoReturn:
    raise CapabilityError(
        "a context of process was kept, and used when its time was over: emit, and set timers, while the "
        "function runs that was given it"
    )


def _refuse_returned(which: str, function: Any, returned: Any) -> NoReturn:
    name = getattr(function, "__qualname__", repr(function))
    raise TypeError(
        f"{which} of process, {name}, returned {returned!r:.100}, which is dropped: send records with "
        "context.emit(record), and return nothing"
    )


class Process:
    """The logic of `KeyedStream.process`."""

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
        # By key and time: the timers in the heap, and whether they are still set.
        self._timers: dict[Any, dict[int, bool]] = {}
        self._due: list[tuple[int, int, Any]] = []
        self._entries = 0
        self._cancelled = 0
        self._context: KeyContext | None = None
        self._times: list[int] = []
        self._records: list[Any] = []
        self._ends = False
        self._in_turn = 0
        self._fired = 0
        state._keep_in(self)

    def run(self, rows: Rows, until: int | None, out: Results) -> None:
        """See `Logic`."""
        self._context = context = KeyContext(self)
        touch = self.state._touch if self.state._ttl is not None else None
        for part in rows.chunks():
            self.state._bring(part[1])
            for time, key, value in Rows([part]):
                if self._due and self._due[0][0] <= time:
                    self._fire(time + 1, context, part[1])
                context.key, context._time = key, time
                if touch is not None:
                    touch(key, time)
                if (returned := self._on_record(context, value)) is not None:
                    _refuse_returned("on_record", self._on_record, returned)
            self.state._settle()
        if until is None:
            self._finish(context)
        else:
            self._fire(until, context)
        self.state._forget_until(until)
        out.give(self._times, self._records)
        self._times, self._records = [], []
        self._context = None

    def _set(self, due: int, key: Any) -> None:
        if self._on_timer is None:
            raise TypeError("a timer was set, and process has no on_timer: give it a function of a context")
        if self._ends:
            self._in_turn += 1
            if self._in_turn > MOST_IN_TURN:
                self._refuse_endless(key)
        timers = self._timers.setdefault(key, {})
        known = timers.get(due)
        timers[due] = True
        if known is None:
            self._entries += 1
            heappush(self._due, (due, self._entries, key))
        elif not known:
            self._cancelled -= 1

    def _cancel(self, due: int, key: Any) -> None:
        if not self._timers.get(key, {}).get(due):
            return
        self._timers[key][due] = False
        self._cancelled += 1
        if self._cancelled > 64 and 2 * self._cancelled > len(self._due):
            self._due = [entry for entry in self._due if self._timers[entry[2]][entry[0]]]
            heapify(self._due)
            self._drop_cancelled()

    def _drop_cancelled(self) -> None:
        still = ((key, {due: True for due in timers if timers[due]}) for key, timers in self._timers.items())
        self._timers = {key: timers for key, timers in still if timers}
        self._cancelled = 0

    def _refuse_endless(self, key: Any) -> NoReturn:
        function = self._on_timer
        name = getattr(function, "__qualname__", repr(function))
        raise TimeError(
            f"on_timer of process, {name}, set {MOST_IN_TURN:,} timers one after the other for the key "
            f"{key!r:.100} after the stream had ended, and would never end: set one only "
            "`if not context.ended`"
        )

    def _fire(self, until: int | None, context: KeyContext, in_hand: Collection[Any] = ()) -> None:
        """Runs the timers that are due before a time, or all.

        The states of the keys in hand stay in memory.
        """
        expire = self.state._expire if self.state._ttl is not None else None
        while self._due and (until is None or self._due[0][0] < until):
            due, _, key = heappop(self._due)
            self.state._changes((key,))
            timers = self._timers[key]
            was_set = timers.pop(due)
            if not timers:
                del self._timers[key]
            if not was_set:
                self._cancelled -= 1
            elif self._on_timer is not None:
                context.key, context._time = key, due
                if expire is not None:
                    expire(key, due)
                if (returned := self._on_timer(context)) is not None:
                    _refuse_returned("on_timer", self._on_timer, returned)
            self._fired += 1
            if self._fired % MOST == 0:
                self.state._settle()
                self.state._bring(in_hand)

    def _finish(self, context: KeyContext) -> None:
        """Runs all timers, key by key, and sorts the sent records by time."""
        self._ends = True
        self._drop_cancelled()
        by_key: dict[Any, list[tuple[int, int, Any]]] = {}
        for entry in sorted(self._due):
            if entry[0] in self._timers.get(entry[2], ()):
                by_key.setdefault(entry[2], []).append(entry)
        for due in by_key.values():
            self._due, self._in_turn = due, 0
            self._fire(None, context)
        if len(by_key) > 1:
            order = sorted(range(len(self._times)), key=self._times.__getitem__)
            self._times = [self._times[at] for at in order]
            self._records = [self._records[at] for at in order]

    def next_time(self, until: int) -> int | None:
        """Returns the time of the first timer."""
        return self._due[0][0] if self._due else None

    def needs(self, until: int) -> int | None:
        """See `Logic`: a timer may be of any record before it."""
        return None if self._on_timer is not None else self.state._known_since(until)

    def keys(self) -> Collection[Any]:
        """See `Keeper`."""
        return Keys([self.state._states], self._timers)

    def entries(self, keys: Collection[Any]) -> Iterator[tuple[Any, Any, Any]]:
        """See `Keeper`: the states, and when the timers of the keys are due."""
        for key in keys:
            due = sorted(due for due, is_set in self._timers.get(key, {}).items() if is_set)
            yield key, self.state._states.find(key), due or None

    def put(self, key: Any, state: Any, note: Any) -> None:
        """See `Keeper`."""
        if state is not None:
            self.state._states[key] = state
        for due in note or ():
            self._set(due, key)
