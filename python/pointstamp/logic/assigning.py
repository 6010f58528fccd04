"""Assigns records to windows, and closes these: the logic of windows over records in time's order.

Three kinds of logic: aligned windows (tumbling and sliding), sessions, and counted windows. A window is
open from its first record until the frontier has passed its end; then its results are sent, at its last
instant, and nothing of it is left. Early results, where asked for, are sent at the last instant before each
tick, for keys that have changed since.

Open windows are plain data, which a `KeyedState` lists by key: for aligned windows the reducer's state by the
start of the window; for a session ``[first, last, state]``; for a counted window ``[first, last, count,
state]``.

Cost of aligned windows: neighbours with the same windows are added at once to each of them. Of
sessions, a look-up for each record, and a heap's for each session.
"""

from __future__ import annotations

from bisect import bisect_left
from heapq import heapify, heappop, heappush
from itertools import islice
from typing import TYPE_CHECKING, Any

from pointstamp.errors import TimeError, add_note
from pointstamp.expr.windows import Count, Session, Sliding, Tumbling, Window
from pointstamp.logic.states import NO_STATE, Keys, States
from pointstamp.logic.timed_rows import MOST, each_time

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator

    from pointstamp.event_time.clock import Clock
    from pointstamp.expr.reducers import Reducer
    from pointstamp.expr.windows import WindowKind
    from pointstamp.logic.in_time_order import Logic
    from pointstamp.logic.state import KeyedState
    from pointstamp.logic.timed_rows import Results, Rows

__all__ = ["assigner", "in_units"]

_LAST_TIME = 2**64 - 1
"""The greatest time: windows that reach beyond it end there, and hold it."""

FEW = 64
"""The number of entries of a heap below which past ones are not searched for."""


def in_units(kind: WindowKind, clock: Clock) -> WindowKind:
    """The kind of windows with its lengths in units of the clock.

    Raises:
        TypeError: If it is no kind of window, or its lengths are not of the clock's kind.
    """
    if isinstance(kind, Tumbling):
        length = clock.span("the length of a window", kind.length)
        return Tumbling(length, offset=clock.place("offset", kind.offset))
    if isinstance(kind, Sliding):
        length, every = clock.span("the length of a window", kind.length), clock.span("every", kind.every)
        return Sliding(length, every=every, offset=clock.place("offset", kind.offset))
    if isinstance(kind, Session):
        return Session(gap=clock.span("gap", kind.gap))
    if isinstance(kind, Count):
        return kind
    raise TypeError(f"a window is Tumbling, Sliding, Session or Count, not {kind!r}")


def assigner(
    kind: WindowKind,
    reducer: Reducer,
    clock: Clock,
    early: Any,
    state: KeyedState[Any, Any] | None = None,
) -> Logic:
    """The logic of a kind of windows; open windows are listed by `state`.

    Raises:
        TypeError: If it is no kind of window, or its lengths are not of the clock's kind.
    """
    tick = None if early is None else clock.span("early", early)
    if tick is not None and tick <= 0:
        raise ValueError(
            f"early results come at every multiple of a length, which is more than 0, not {early}"
        )
    made: Windows
    exact = in_units(kind, clock)
    if isinstance(exact, Tumbling | Sliding):
        every = exact.every if isinstance(exact, Sliding) else exact.length
        made = Aligned((exact.length, every, exact.offset), reducer, clock, tick)
    elif tick is not None:
        raise TypeError(f"early results are those of tumbling and sliding windows, not of {kind}")
    elif isinstance(exact, Session):
        made = Sessions(exact.gap, reducer, clock)
    else:
        made = Counted(exact.size, reducer, clock)
    if state is not None:
        made.keeps(state)
    return made


class Windows:
    """The common part of windows: a reducer, and a state that lists the open ones."""

    def __init__(self, reducer: Reducer, clock: Clock) -> None:
        self._reducer = reducer
        self.clock = clock
        self._state: KeyedState[Any, Any] | None = None

    def keeps(self, state: KeyedState[Any, Any]) -> None:
        """Continues with the restored windows, and lists them."""
        self._state = state
        state._keep_in(self)

    def run(self, rows: Rows, until: int | None, out: Results) -> None:
        """See `Logic`."""
        self.add(rows, until, out)
        if self._state is not None:
            self._state._stands_at(until)

    def needs(self, until: int) -> int | None:
        """See `Logic`."""
        raise NotImplementedError

    def add(self, rows: Rows, until: int | None, out: Results) -> None:
        """Adds records to their windows; called by `run`."""
        raise NotImplementedError

    def next_time(self, until: int) -> int | None:
        """See `Logic`."""
        raise NotImplementedError

    def changes(self, keys: Collection[Any]) -> None:
        """Notes that the state of some keys is about to change, although they have no record."""
        if self._state is not None:
            self._state._changes(keys)

    def states(self) -> States[Any, Any]:
        """Returns a place for states by key."""
        return States() if self._state is None else self._state._states.another()

    def keys(self) -> Collection[Any]:
        """See `Keeper`."""
        raise NotImplementedError

    def entries(self, keys: Collection[Any]) -> Iterator[tuple[Any, Any, Any]]:
        """See `Keeper`."""
        raise NotImplementedError

    def put(self, key: Any, state: Any, note: Any) -> None:
        """See `Keeper`."""
        raise NotImplementedError

    def prepared(self, rows: Rows, opened: States[Any, Any]) -> Iterator[tuple[int, Any, Any]]:
        """Each record with its value for the reducer. Meanwhile its key's state is in memory."""
        for times, keys, values in rows.chunks():
            opened.bring(keys)
            yield from zip(
                each_time(times, len(keys)), keys, self._reducer.prepared(keys, values), strict=True
            )
            opened.settle()

    def window(self, start: int, end: int) -> Window:
        """A window in the form of results."""
        begin = self.clock.shown(start)
        try:
            return Window(begin, self.clock.shown(min(end, _LAST_TIME)))
        except TimeError as error:
            add_note(error, f"the window that begins at {begin} ends there")
            raise


def _last_instant(end: int) -> int:
    """The last instant of a window, at which its results are sent."""
    return min(end - 1, _LAST_TIME)


class Aligned(Windows):
    """Windows of one length, at fixed places."""

    def __init__(
        self, layout: tuple[int, int, int], reducer: Reducer, clock: Clock, tick: int | None
    ) -> None:
        super().__init__(reducer, clock)
        self._length, self._every, self._offset = layout
        self._tick = tick
        # By start: the states of keys, and the keys that have changed.
        self._open: dict[int, States[Any, Any]] = {}
        self._changed: dict[int, set[Any]] = {}
        self._next_tick = 0

    def keeps(self, state: KeyedState[Any, Any]) -> None:
        """See `Windows`."""
        super().keeps(state)
        self._open = dict(sorted(self._open.items()))

    def add(self, rows: Rows, until: int | None, out: Results) -> None:
        """See `Windows`."""
        times, keys, given = rows.columns
        values = self._reducer.prepared(keys, given)
        at, count = 0, len(keys)
        while at < count:
            time = times if isinstance(times, int) else times[at]
            if self._tick is not None and self._changed and self._next_tick <= time:
                self._early(self._next_tick, out)
            last, first = self._floor(time), self._floor(time - self._length) + self._every
            boundary = min(last + self._every, first + self._length)
            if self._tick is not None:
                if not self._changed:
                    self._next_tick = time - time % self._tick + self._tick
                boundary = min(boundary, self._next_tick)
            end = count
            if not isinstance(times, int) and times[-1] >= boundary:
                end = bisect_left(times, boundary, lo=at)
            whole = end - at == count
            these = keys if whole else keys[at:end]
            for start in range(first, last + 1, self._every):
                states = self._open.get(start)
                if states is None:
                    states = self._open[start] = self.states()
                self._extend(states, these, values if whole else values[at:end])
                if self._tick is not None:
                    self._changed.setdefault(start, set()).update(these)
            at = end
        reached = until is None or self._next_tick <= until
        if self._tick is not None and self._changed and reached and self._next_tick <= _LAST_TIME:
            self._early(self._next_tick, out)
        self._close(until, out)

    def _extend(self, states: States[Any, Any], keys: list[Any], values: list[Any]) -> None:
        """Adds values to the states of a window."""
        if states.is_unbounded():
            self._reducer.extend(states, keys, values)
            return
        for first in range(0, len(keys), MOST):
            some = keys[first : first + MOST]
            states.bring(some)
            self._reducer.extend(states, some, values[first : first + MOST])
            states.settle()

    def _floor(self, time: int) -> int:
        return time - (time - self._offset) % self._every

    def _close(self, until: int | None, out: Results) -> None:
        finish = self._reducer.finish
        # They were opened in the order of their starts.
        for start in list(self._open):
            end = start + self._length
            if until is not None and end > until:
                return
            window = self.window(start, end)
            results = []
            states = self._open[start].every()
            while some := list(islice(states, MOST)):
                self.changes([key for key, _ in some])
                results += [(key, window, finish(state)) for key, state in some]
            self._changed.pop(start, None)
            del self._open[start]
            out.give(_last_instant(end), results)

    def _early(self, tick: int, out: Results) -> None:
        for start, keys in self._changed.items():
            self.changes(keys)
            end = start + self._length
            if end > tick:
                window = self.window(start, end)
                states, peek = self._open[start], self._reducer.peek
                out.give(tick - 1, [(key, window, peek(states.find(key))) for key in keys])
        self._changed.clear()

    def needs(self, until: int) -> int | None:
        """See `Logic`: the start of the first window that is open then."""
        return min(max(self._floor(until - self._length) + self._every, 0), until)

    def next_time(self, until: int) -> int | None:
        """See `Logic`."""
        for start in self._open:
            end = _last_instant(start + self._length)
            return min(end, self._next_tick - 1) if self._changed else end
        return None

    def keys(self) -> Collection[Any]:
        """See `Keeper`."""
        return Keys(list(self._open.values()))

    def entries(self, keys: Collection[Any]) -> Iterator[tuple[Any, Any, Any]]:
        """See `Keeper`: the states by start; the next tick, and the windows that have changed since the last.

        The cost follows the windows, and in each the keys that are asked for or open, whichever are fewer.
        """
        by_start: dict[Any, dict[int, Any]] = {key: {} for key in keys}
        for start, states in self._open.items():
            some = by_start.keys() if states.count() > len(states) else states.keys() & by_start.keys()
            for key in some:
                if (state := states.find(key)) is not NO_STATE:
                    by_start[key][start] = state
        changed: dict[Any, list[int]] = {}
        for start, those in self._changed.items():
            for key in by_start.keys() & those:
                changed.setdefault(key, []).append(start)
        for key, found in by_start.items():
            yield key, found or NO_STATE, (self._next_tick, changed[key]) if key in changed else None

    def put(self, key: Any, state: Any, note: Any) -> None:
        """See `Keeper`."""
        for start, kept in state.items():
            states = self._open.get(start)
            if states is None:
                states = self._open[start] = self.states()
            states[key] = kept
            if len(states) % MOST == 0:
                states.settle()
        if note is not None and self._tick is not None:
            self._next_tick, starts = note
            for start in starts:
                self._changed.setdefault(start, set()).add(key)


class Sessions(Windows):
    """Windows that end when a key has been silent for a while."""

    def __init__(self, gap: int, reducer: Reducer, clock: Clock) -> None:
        super().__init__(reducer, clock)
        self._gap = gap
        # By key: the first and the last time, and the state.
        self._open: States[Any, list[Any]] = States()
        # When a session ends if nothing more comes, and when it began. One entry for each that is open, of
        # its end at the time of the entry.
        self._ends: list[tuple[int, int, Any, int]] = []
        # When each session began that may be open.
        self._begins: list[tuple[int, int, Any]] = []
        self._entries = 0

    def keeps(self, state: KeyedState[Any, Any]) -> None:
        """See `Windows`."""
        self._open = state._states.another()
        super().keeps(state)

    def add(self, rows: Rows, until: int | None, out: Results) -> None:
        """See `Windows`."""
        opened, gap, step = self._open, self._gap, self._reducer.step
        times: list[int] = []
        results: list[Any] = []
        for time, key, value in self.prepared(rows, opened):
            session = opened.get(key)
            if session is not None:
                if time - session[1] < gap:
                    session[1] = time
                    session[2] = step(session[2], value)
                    continue
                times.append(_last_instant(session[1] + gap))
                results.append(self._result(key, session))
            self.put(key, [time, time, self._reducer.first(value)], None)
        ends = self._ends
        while ends and (until is None or ends[0][0] <= until):
            end, entry, key, began = heappop(ends)
            session = self._session(key, began)
            if session is None:
                continue
            if session[1] + gap > end:
                heappush(ends, (session[1] + gap, entry, key, began))
            else:
                self.changes((key,))
                opened.bring((key,))
                del opened[key]
                times.append(_last_instant(end))
                results.append(self._result(key, session))
        out.give(times, results)

    def _session(self, key: Any, began: int) -> list[Any] | None:
        """Returns the session of a key that began at a time, if it is open."""
        session: list[Any] | None = self._open.find(key, None)
        return session if session is not None and session[0] == began else None

    def _result(self, key: Any, session: list[Any]) -> tuple[Any, Window, Any]:
        first, last, state = session
        return key, self.window(first, last + self._gap), self._reducer.finish(state)

    def next_time(self, until: int) -> int | None:
        """See `Logic`."""
        return _last_instant(self._ends[0][0]) if self._ends else None

    def needs(self, until: int) -> int | None:
        """See `Logic`: when the first session that is open began."""
        begins = self._begins
        while begins and self._session(begins[0][2], begins[0][0]) is None:
            heappop(begins)
        return min(begins[0][0], until) if begins else until

    def keys(self) -> Collection[Any]:
        """See `Keeper`."""
        return Keys([self._open])

    def entries(self, keys: Collection[Any]) -> Iterator[tuple[Any, Any, Any]]:
        """See `Keeper`."""
        for key in keys:
            window = self._open.find(key)
            yield key, window if window is NO_STATE else list(window), None

    def put(self, key: Any, state: Any, note: Any) -> None:
        """See `Keeper`."""
        self._open[key] = state
        self._entries += 1
        heappush(self._ends, (state[1] + self._gap, self._entries, key, state[0]))
        heappush(self._begins, (state[0], self._entries, key))
        if len(self._begins) > 2 * self._open.count() + FEW:  # most have ended
            self._begins = [begin for begin in self._begins if self._session(begin[2], begin[0]) is not None]
            heapify(self._begins)


class Counted(Windows):
    """Every so many records of a key."""

    def __init__(self, size: int, reducer: Reducer, clock: Clock) -> None:
        super().__init__(reducer, clock)
        self._size = size
        # By key: the first and the last time, the number of records, and the state.
        self._open: States[Any, list[Any]] = States()
        self._stands = 0

    def keeps(self, state: KeyedState[Any, Any]) -> None:
        """See `Windows`."""
        self._stands = state.frontier or 0
        self._open = state._states.another()
        super().keeps(state)

    def add(self, rows: Rows, until: int | None, out: Results) -> None:
        """See `Windows`."""
        opened, step, first, size = self._open, self._reducer.step, self._reducer.first, self._size
        times: list[int] = []
        results: list[Any] = []
        time = self._stands
        for time, key, value in self.prepared(rows, opened):
            window = opened.get(key)
            if window is None:
                window = opened[key] = [time, time, 1, first(value)]
            else:
                window[1] = time
                window[2] += 1
                window[3] = step(window[3], value)
            if window[2] == size:
                del opened[key]
                times.append(time)
                results.append(self._result(key, window))
        self._stands = max(self._stands, time)
        out.give(times, results)
        if until is None:
            every = opened.every()
            while some := list(islice(every, MOST)):
                self.changes([key for key, _ in some])
                out.give(self._stands, [self._result(key, window) for key, window in some])
            opened.drop()
        else:
            self._stands = max(self._stands, until)

    def _result(self, key: Any, window: list[Any]) -> tuple[Any, Window, Any]:
        first, last, _, state = window
        return key, self.window(first, last + 1), self._reducer.finish(state)

    def next_time(self, until: int) -> int | None:
        """See `Logic`."""
        return max(until, self._stands) if self._open.count() else None

    def needs(self, until: int) -> int | None:
        """See `Logic`: the start of a key's window depends on all records of the key."""
        return None

    def keys(self) -> Collection[Any]:
        """See `Keeper`."""
        return Keys([self._open])

    def entries(self, keys: Collection[Any]) -> Iterator[tuple[Any, Any, Any]]:
        """See `Keeper`."""
        for key in keys:
            window = self._open.find(key)
            yield key, window if window is NO_STATE else list(window), None

    def put(self, key: Any, state: Any, note: Any) -> None:
        """See `Keeper`."""
        self._open[key] = state
