"""Which window a record is in, and when it closes: the logic of windows over records in time's order.

Three kinds of logic: aligned windows (tumbling and sliding), sessions, and counted windows. A window is
open from its first record until the frontier has passed its end; then its results are sent, at its last
instant, and nothing of it is left. Early results, where asked for, are sent at the last instant before each
tick, for keys that have changed since.

Cost of aligned windows: a stretch of records with the same windows is added at once to each of them. Of
sessions, a look-up for each record, and a heap's for each session.
"""

from __future__ import annotations

from bisect import bisect_left
from heapq import heappop, heappush
from operator import itemgetter
from typing import TYPE_CHECKING, Any

from pointstamp.event_times.windows import Count, Session, Sliding, Tumbling, Window

if TYPE_CHECKING:
    from pointstamp.event_times.clock import Clock
    from pointstamp.event_times.windows import WindowKind
    from pointstamp.keyed.arrivals import Triple
    from pointstamp.keyed.ordered import Logic
    from pointstamp.keyed.reducers import Reducer

__all__ = ["assigner"]

_TIME = itemgetter(0)

Out = list[tuple[int, Any]]


def assigner(kind: WindowKind, reducer: Reducer, clock: Clock, early: Any) -> Logic:
    """The logic of a kind of windows.

    Raises:
        TypeError: If it is no kind of window, or its lengths are not of the clock's kind.
    """
    tick = None if early is None else clock.span("early", early)
    if isinstance(kind, Tumbling | Sliding):
        length = clock.span("the length of a window", kind.length)
        every = clock.span("every", kind.every) if isinstance(kind, Sliding) else length
        return Aligned((length, every, clock.span("offset", kind.offset)), reducer, clock, tick)
    if tick is not None:
        raise TypeError(f"early results are those of tumbling and sliding windows, not of {kind}")
    if isinstance(kind, Session):
        return Sessions(clock.span("gap", kind.gap), reducer, clock)
    if isinstance(kind, Count):
        return Counted(kind.size, reducer, clock)
    raise TypeError(f"a window is Tumbling, Sliding, Session or Count, not {kind!r}")


class Aligned:
    """Windows of one length, at fixed places."""

    def __init__(
        self, layout: tuple[int, int, int], reducer: Reducer, clock: Clock, tick: int | None
    ) -> None:
        self._length, self._every, self._offset = layout
        self._reducer = reducer
        self.clock = clock
        self._tick = tick
        # By start, which is the order in which they open: the states of keys, and the keys that have changed.
        self._open: dict[int, dict[Any, Any]] = {}
        self._changed: dict[int, set[Any]] = {}
        self._next_tick = 0

    def run(self, records: list[Triple], until: int | None, out: Out) -> None:
        at = 0
        while at < len(records):
            time = records[at][0]
            if self._tick is not None and self._changed and self._next_tick <= time:
                self._early(self._next_tick, out)
            last = self._floor(time)
            boundary = min(last + self._every, self._floor(time - self._length) + self._every + self._length)
            if self._tick is not None:
                if not self._changed:
                    self._next_tick = time - time % self._tick + self._tick
                boundary = min(boundary, self._next_tick)
            end = len(records)
            if records[-1][0] >= boundary:
                end = bisect_left(records, boundary, lo=at, key=_TIME)
            stretch = records if end - at == len(records) else records[at:end]
            for start in range(self._floor(time - self._length) + self._every, last + 1, self._every):
                states = self._open.get(start)
                if states is None:
                    states = self._open[start] = {}
                self._reducer.extend(states, stretch)
                if self._tick is not None:
                    self._changed.setdefault(start, set()).update(record[1] for record in stretch)
            at = end
        if self._tick is not None and self._changed and (until is None or self._next_tick <= until):
            self._early(self._next_tick, out)
        self._close(until, out)

    def _floor(self, time: int) -> int:
        return time - (time - self._offset) % self._every

    def _close(self, until: int | None, out: Out) -> None:
        finish, append = self._reducer.finish, out.append
        for start in list(self._open):
            end = start + self._length
            if until is not None and end > until:
                return
            window = Window(self.clock.shown(start), self.clock.shown(end))
            self._changed.pop(start, None)
            for key, state in self._open.pop(start).items():
                append((end - 1, (key, window, finish(state))))

    def _early(self, tick: int, out: Out) -> None:
        for start, keys in self._changed.items():
            end = start + self._length
            if end > tick:
                window = Window(self.clock.shown(start), self.clock.shown(end))
                states, peek = self._open[start], self._reducer.peek
                out.extend((tick - 1, (key, window, peek(states[key]))) for key in keys)
        self._changed.clear()

    def next_time(self, until: int) -> int | None:
        for start in self._open:
            end = start + self._length - 1
            return min(end, self._next_tick - 1) if self._changed else end
        return None


class Sessions:
    """Windows that end when a key has been silent for a while."""

    def __init__(self, gap: int, reducer: Reducer, clock: Clock) -> None:
        self._gap = gap
        self._reducer = reducer
        self.clock = clock
        # By key: the first and the last time, and the state.
        self._open: dict[Any, list[Any]] = {}
        # When a session ends if nothing more comes. One entry for each that is open, of its end at the time
        # of the entry.
        self._ends: list[tuple[int, int, Any, list[Any]]] = []
        self._entries = 0

    def run(self, records: list[Triple], until: int | None, out: Out) -> None:
        opened, gap, reducer = self._open, self._gap, self._reducer
        for time, key, value in records:
            session = opened.get(key)
            if session is not None:
                if time - session[1] < gap:
                    session[1] = time
                    session[2] = reducer.next(session[2], value)
                    continue
                self._send(key, session, out)
            session = opened[key] = [time, time, reducer.first(value)]
            self._entries += 1
            heappush(self._ends, (time + gap, self._entries, key, session))
        ends = self._ends
        while ends and (until is None or ends[0][0] <= until):
            end, entry, key, session = heappop(ends)
            if opened.get(key) is not session:
                continue
            if session[1] + gap > end:
                heappush(ends, (session[1] + gap, entry, key, session))
            else:
                del opened[key]
                self._send(key, session, out)

    def _send(self, key: Any, session: list[Any], out: Out) -> None:
        first, last, state = session
        end = last + self._gap
        window = Window(self.clock.shown(first), self.clock.shown(end))
        out.append((end - 1, (key, window, self._reducer.finish(state))))

    def next_time(self, until: int) -> int | None:
        return self._ends[0][0] - 1 if self._ends else None


class Counted:
    """Every so many records of a key."""

    def __init__(self, size: int, reducer: Reducer, clock: Clock) -> None:
        self._size = size
        self._reducer = reducer
        self.clock = clock
        # By key: the first and the last time, how many, and the state.
        self._open: dict[Any, list[Any]] = {}
        self._stands = 0

    def run(self, records: list[Triple], until: int | None, out: Out) -> None:
        opened, reducer = self._open, self._reducer
        for time, key, value in records:
            window = opened.get(key)
            if window is None:
                window = opened[key] = [time, time, 1, reducer.first(value)]
            else:
                window[1] = time
                window[2] += 1
                window[3] = reducer.next(window[3], value)
            if window[2] == self._size:
                del opened[key]
                out.append((time, self._result(key, window)))
        if records:
            self._stands = max(self._stands, records[-1][0])
        if until is None:
            for key, window in opened.items():
                out.append((self._stands, self._result(key, window)))
            opened.clear()
        else:
            self._stands = max(self._stands, until)

    def _result(self, key: Any, window: list[Any]) -> tuple[Any, Window, Any]:
        first, last, _, state = window
        bounds = Window(self.clock.shown(first), self.clock.shown(last + 1))
        return key, bounds, self._reducer.finish(state)

    def next_time(self, until: int) -> int | None:
        return until if self._open else None
