"""Logic that keeps a state for each key, and changes it with each record, in the order of time.

Each class is one operator's logic over a `KeyedState`. A state that becomes None is forgotten at once.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pointstamp.keyed.reducers import TopK
from pointstamp.operators.folds import outputs_of

if TYPE_CHECKING:
    from collections.abc import Callable

    from pointstamp.keyed.arrivals import Triple
    from pointstamp.keyed.state import KeyedState

__all__ = ["Dedup", "FlatMapWithState", "Largest", "MapWithState", "PerTime", "Scan"]

Out = list[tuple[int, Any]]

_MISSING: Any = object()


class Stateful:
    """What they have in common: the state, and what is due."""

    def __init__(self, state: KeyedState[Any, Any]) -> None:
        self.state = state

    def run(self, records: list[Triple], until: int | None, out: Out) -> None:
        """Takes records in, and forgets what is due."""
        if records:
            self.apply(records, out)
        self.state.forget_until(until)

    def apply(self, records: list[Triple], out: Out) -> None:
        """Takes records in."""
        raise NotImplementedError

    def next_time(self, until: int) -> int | None:
        """It sends nothing without a record."""
        return None


class Scan(Stateful):
    """The state after each record."""

    def __init__(
        self, state: KeyedState[Any, Any], init: Callable[[], Any], f: Callable[[Any, Any], Any]
    ) -> None:
        super().__init__(state)
        self._init = init
        self._f = f

    def apply(self, records: list[Triple], out: Out) -> None:
        """See `Stateful`."""
        f, init, states, append = self._f, self._init, self.state.states, out.append
        touch = self.state.touch if self.state.ttl is not None else None
        for time, key, value in records:
            if touch is not None:
                touch(key, time)
            states[key] = state = f(states[key] if key in states else init(), value)
            append((time, (key, state)))


class MapWithState(Stateful):
    """One result for each record, by a function of state and record."""

    def __init__(self, state: KeyedState[Any, Any], f: Callable[[Any, Any], Any]) -> None:
        super().__init__(state)
        self._f = f

    def apply(self, records: list[Triple], out: Out) -> None:
        """See `Stateful`."""
        f, states, append = self._f, self.state.states, out.append
        get = states.get
        touch = self.state.touch if self.state.ttl is not None else None
        for time, key, value in records:
            if touch is not None:
                touch(key, time)
            state, result = f(get(key), value)
            if state is None:
                states.pop(key, None)
            else:
                states[key] = state
            append((time, (key, result)))


class FlatMapWithState(Stateful):
    """Any number of results for each record, by a function of state and record."""

    def __init__(self, state: KeyedState[Any, Any], f: Callable[[Any, Any], Any]) -> None:
        super().__init__(state)
        self._f = f

    def apply(self, records: list[Triple], out: Out) -> None:
        """See `Stateful`."""
        states = self.state.states
        touch = self.state.touch if self.state.ttl is not None else None
        for time, key, value in records:
            if touch is not None:
                touch(key, time)
            state, results = outputs_of(self._f(states.get(key), value), self._f)
            if state is None:
                states.pop(key, None)
            else:
                states[key] = state
            out.extend((time, (key, result)) for result in results)


class Dedup(Stateful):
    """The first record of each key; with a time to live, the first after a silence."""

    def apply(self, records: list[Triple], out: Out) -> None:
        """See `Stateful`."""
        states = self.state.states
        touch = self.state.touch if self.state.ttl is not None else None
        for time, key, value in records:
            if touch is not None:
                touch(key, time)
            if key not in states:
                states[key] = True
                out.append((time, value))


class Largest(Stateful):
    """The greatest few of each key, sent at each time that changes them."""

    def __init__(self, state: KeyedState[Any, Any], k: int, by: Callable[[Any], Any] | None) -> None:
        super().__init__(state)
        self._top = TopK(k, by)

    def apply(self, records: list[Triple], out: Out) -> None:
        """See `Stateful`."""
        states = self.state.states
        touch = self.state.touch if self.state.ttl is not None else None
        at = 0
        while at < len(records):
            time = records[at][0]
            changed: dict[Any, list[Any]] = {}
            while at < len(records) and records[at][0] == time:
                _, key, value = records[at]
                if touch is not None:
                    touch(key, time)
                changed.setdefault(key, []).append(value)
                at += 1
            for key, values in changed.items():
                before = states.get(key, [])
                after = self._top.finish([*before, *values])
                if after != before:
                    states[key] = after
                    out.append((time, (key, list(after))))


class PerTime:
    """The records of each key and time folded into one."""

    def __init__(self, init: Callable[[], Any] | None, f: Callable[[Any, Any], Any]) -> None:
        self._init = init
        self._f = f

    def run(self, records: list[Triple], until: int | None, out: Out) -> None:
        """Each time is in one call, whole."""
        f, init = self._f, self._init
        states: dict[Any, Any] = {}
        now = records[0][0] if records else 0
        for time, key, value in records:
            if time != now:
                out.extend((now, item) for item in states.items())
                states.clear()
                now = time
            if key in states:
                states[key] = f(states[key], value)
            else:
                states[key] = value if init is None else f(init(), value)
        out.extend((now, item) for item in states.items())

    def next_time(self, until: int) -> int | None:
        """It keeps nothing."""
        return None
