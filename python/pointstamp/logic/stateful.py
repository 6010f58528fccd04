"""Logic that keeps a state for each key, and changes it with each record, in the order of time.

Each class is one operator's logic over a `KeyedState`. A state that becomes None is forgotten at once.
"""

from __future__ import annotations

from bisect import bisect_right
from typing import TYPE_CHECKING, Any

from pointstamp._core import running
from pointstamp.expr.reducers import TopK
from pointstamp.logic.folds import no_state, outputs_of
from pointstamp.logic.join_and_sort import Sides, matched
from pointstamp.logic.timed_rows import MOST, Rows, each_time, part_of

if TYPE_CHECKING:
    from collections.abc import Callable

    from pointstamp._core import Reduction
    from pointstamp.logic.state import KeyedState
    from pointstamp.logic.timed_rows import Keyed, Results

__all__ = ["Aggregated", "Dedup", "Joined", "Largest", "Reduced", "Running", "Scan", "StateMachine"]


class Stateful:
    """The common part of stateful logic: the state, and the keys that are due."""

    def __init__(self, state: KeyedState[Any, Any]) -> None:
        self.state = state

    def run(self, rows: Rows, until: int | None, out: Results) -> None:
        """Takes records, and drops states that are due."""
        for part in rows.chunks():
            first, count = 0, len(part[1])
            self.state._bring(part[1])
            if self.state._ttl is not None:
                is_past, states = self.state._is_past, self.state._states
                for at, (time, key) in enumerate(zip(each_time(part[0], count), part[1], strict=True)):
                    if is_past(key, time):
                        self.apply(part_of(part, first, at), out)
                        first = at
                        states.pop(key, None)
            self.apply(part_of(part, first, count), out)
            self.state._settle()
        self.state._forget_until(until)

    def apply(self, part: Keyed, out: Results) -> None:
        """Takes a part of the final records."""
        raise NotImplementedError

    def next_time(self, until: int) -> int | None:
        """It sends nothing without a record."""
        return None

    def needs(self, until: int) -> int | None:
        """See `Logic`: a state depends on all records since the key's first one."""
        return self.state._known_since(until)


class _Folding(Stateful):
    """A state that a function of key, record and state makes anew."""

    def __init__(
        self,
        state: KeyedState[Any, Any],
        fold: Callable[[Any, Any, Any], Any],
        default: Callable[[], Any],
    ) -> None:
        super().__init__(state)
        self._fold = fold
        self._default = default


class Scan(_Folding):
    """The state after each record."""

    def apply(self, part: Keyed, out: Results) -> None:
        """See `Stateful`."""
        fold, default, states = self._fold, self._default, self.state._states
        results: list[Any] = []
        append = results.append
        times, keys, values = part
        for key, value in zip(keys, values, strict=True):
            try:
                state = states[key]
            except KeyError:
                state = default()
            states[key] = state = fold(key, value, state)
            append((key, state))
        out.give(times, results)


class Running(Stateful):
    """A count, sum, extreme or mean so far, after each record; the loop over records is in Rust."""

    def __init__(self, state: KeyedState[Any, Any], kind: Reduction, of: Callable[[Any], Any] | None) -> None:
        super().__init__(state)
        self._kind = kind
        self._of = of

    def apply(self, part: Keyed, out: Results) -> None:
        """See `Stateful`."""
        times, keys, values = part
        if self._of is not None:
            of = self._of
            values = [of(value) for value in values]
        out.give(times, running(self._kind, self.state._states, keys, values))


class StateMachine(_Folding):
    """Any number of results for each record, by a function of key, record and state."""

    def apply(self, part: Keyed, out: Results) -> None:
        """See `Stateful`."""
        fold, default, states = self._fold, self._default, self.state._states
        each, keys, values = part
        times: list[int] = []
        results: list[Any] = []
        for time, key, value in zip(each_time(each, len(keys)), keys, values, strict=True):
            returned = fold(key, value, states[key] if key in states else default())
            # Almost all functions return (state, [...]), which needs no further look.
            if type(returned) is not tuple or len(returned) != 2 or type(returned[1]) is not list:
                returned = outputs_of(returned, fold)
            state, made = returned
            if state is None:
                states.pop(key, None)
            else:
                states[key] = state
            results += made
            if len(times) < len(results):
                times += [time] * (len(results) - len(times))
        out.give(each if isinstance(each, int) else times, results)


class Dedup(Stateful):
    """The first record of each key; with a time to live, the first after a silence."""

    def apply(self, part: Keyed, out: Results) -> None:
        """See `Stateful`."""
        states = self.state._states
        times: list[int] = []
        results: list[Any] = []
        for time, key, value in Rows([part]):
            if key not in states:
                states[key] = True
                times.append(time)
                results.append(value)
        out.give(times, results)


class Largest(Stateful):
    """The greatest few of each key, sent at each time that changes them."""

    def __init__(self, state: KeyedState[Any, Any], k: int, by: Callable[[Any], Any] | None) -> None:
        super().__init__(state)
        self._top = TopK(k, by)

    def run(self, rows: Rows, until: int | None, out: Results) -> None:
        """See `Stateful`: a time is looked at whole."""
        touch = self.state._touch if self.state._ttl is not None else None
        changed: dict[Any, list[Any]] = {}
        now = 0
        times: list[int] = []
        results: list[Any] = []
        for time, key, value in rows:
            if time != now:
                results += self._changed(changed)
                times += [now] * (len(results) - len(times))
                now = time
            if touch is not None:
                touch(key, time)
            changed.setdefault(key, []).append(value)
        results += self._changed(changed)
        times += [now] * (len(results) - len(times))
        out.give(times, results)
        self.state._forget_until(until)

    def _changed(self, changed: dict[Any, list[Any]]) -> list[Any]:
        """Takes the values of one time, and returns the keys whose greatest have changed."""
        states = self.state._states
        results: list[Any] = []
        keys = list(changed)
        for first in range(0, len(keys), MOST):
            some = keys[first : first + MOST]
            self.state._bring(some)
            for key in some:
                before = states.get(key, [])
                after = self._top.finish([*before, *changed[key]])
                if after != before:
                    states[key] = after
                    results.append((key, list(after)))
            self.state._settle()
        changed.clear()
        return results


class PerTime:
    """The records of each key and time made one."""

    def run(self, rows: Rows, until: int | None, out: Results) -> None:
        """Each time is in one call, whole. The results of all times are sent together."""
        times, keys, values = rows.columns
        if isinstance(times, int):
            out.give(times, self.results(keys, values))
            return
        at: list[int] = []
        results: list[Any] = []
        first = 0
        while first < len(times):
            end = bisect_right(times, times[first], first)
            results += self.results(keys[first:end], values[first:end])
            at += [times[first]] * (len(results) - len(at))
            first = end
        out.give(at, results)

    def results(self, keys: list[Any], values: list[Any]) -> list[Any]:
        """The results of one time."""
        raise NotImplementedError

    def next_time(self, until: int) -> int | None:
        """It keeps nothing."""
        return None

    def needs(self, until: int) -> int | None:
        """See `Logic`."""
        return until


class Reduced(PerTime):
    """The records of each key and time made one, two at a time."""

    def __init__(self, fn: Callable[[Any, Any], Any]) -> None:
        self._fn = fn

    def results(self, keys: list[Any], values: list[Any]) -> list[Any]:
        """See `PerTime`."""
        fn = self._fn
        states: dict[Any, Any] = {}
        for key, value in zip(keys, values, strict=True):
            states[key] = fn(states[key], value) if key in states else value
        return list(states.items())


class Aggregated(PerTime):
    """The records of each key and time folded into a state."""

    def __init__(
        self,
        fold: Callable[[Any, Any, Any], Any],
        emit: Callable[[Any, Any], Any] | None,
        default: Callable[[], Any],
    ) -> None:
        self._fold = fold
        self._emit = emit
        self._default = default

    def results(self, keys: list[Any], values: list[Any]) -> list[Any]:
        """See `PerTime`."""
        fold, default, emit = self._fold, self._default, self._emit
        states: dict[Any, Any] = {}
        for key, value in zip(keys, values, strict=True):
            state = fold(key, value, states[key] if key in states else default())
            if state is None and default() is not None:
                raise TypeError(no_state("aggregate", fold))
            states[key] = state
        return list(states.items()) if emit is None else [emit(*pair) for pair in states.items()]


class Joined(PerTime):
    """Joins the records of two sides of each key and time; a record is ``(side, value)``."""

    def __init__(self, fn: Callable[[Any, Any, Any], Any] | None, how: str) -> None:
        self._fn = fn
        self._how = how

    def results(self, keys: list[Any], values: list[Any]) -> list[Any]:
        """See `PerTime`."""
        sides: dict[Any, Sides] = {}
        for key, (side, value) in zip(keys, values, strict=True):
            sides.setdefault(key, ([], []))[side].append(value)
        return list(matched(sides.items(), self._fn, self._how))
