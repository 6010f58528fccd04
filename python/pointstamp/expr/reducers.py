"""Reducers of the values of a key in a window.

A reducer has the initial state, the step for a value, and the final result; `extend` takes the columns of one
window at once. States are plain data, which can be pickled.
"""

from __future__ import annotations

from collections import Counter
from copy import deepcopy
from operator import ne
from typing import TYPE_CHECKING, Any

from pointstamp._core import Sketch, with_one_nan
from pointstamp._nan_order import comparable, is_greater, is_less
from pointstamp.logic.folds import no_state

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

__all__ = [
    "Aggregate",
    "Collect",
    "Counting",
    "Distinct",
    "Extreme",
    "Mean",
    "Quantiles",
    "Reduce",
    "Reducer",
    "Sum",
    "TopK",
]

_MISSING: Any = object()


class Reducer:
    """A fold over the values of a key.

    Args:
        of: Makes of a record the value that counts; None takes the record.
    """

    __slots__ = ("of",)

    def __init__(self, of: Callable[[Any], Any] | None = None) -> None:
        self.of = of

    def prepared(self, _keys: list[Any], values: list[Any]) -> list[Any]:
        """Returns the values that count of each record."""
        of = self.of
        return values if of is None else [of(value) for value in values]

    def step(self, state: Any, value: Any) -> Any:
        """The state after a prepared value; `_MISSING` is the state before the first."""
        raise NotImplementedError

    def finish(self, state: Any) -> Any:
        """The result of a state."""
        return state

    def peek(self, state: Any) -> Any:
        """The result so far, which later values do not change."""
        return self.finish(state)

    def extend(self, states: dict[Any, Any], keys: list[Any], values: list[Any]) -> None:
        """Adds prepared values to their keys' states."""
        step, get = self.step, states.get
        for key, value in zip(keys, values, strict=True):
            states[key] = step(get(key, _MISSING), value)

    def first(self, value: Any) -> Any:
        """The state of one prepared value."""
        return self.step(_MISSING, value)


class Aggregate(Reducer):
    """A fold by functions of the user's, which gets the key, too."""

    __slots__ = ("_default", "_fold")

    def __init__(self, fold: Callable[[Any, Any, Any], Any], default: Callable[[], Any]) -> None:
        super().__init__()
        self._fold = fold
        self._default = default

    def prepared(self, keys: list[Any], values: list[Any]) -> list[Any]:
        """See `Reducer`: each value with its key."""
        return list(zip(keys, values, strict=True))

    def step(self, state: Any, value: Any) -> Any:
        """See `Reducer`."""
        key, record = value
        made = self._fold(key, record, self._default() if state is _MISSING else state)
        if made is None and self._default() is not None:
            raise TypeError(no_state("aggregate", self._fold))
        return made

    def peek(self, state: Any) -> Any:
        """See `Reducer`: the function may keep changing the state."""
        return deepcopy(state)


class Reduce(Reducer):
    """Two values made one, by a function of the user's."""

    __slots__ = ("_reduce",)

    def __init__(self, reduce: Callable[[Any, Any], Any]) -> None:
        super().__init__()
        self._reduce = reduce

    def step(self, state: Any, value: Any) -> Any:
        """See `Reducer`."""
        return value if state is _MISSING else self._reduce(state, value)

    def peek(self, state: Any) -> Any:
        """See `Reducer`: the function may keep changing the state."""
        return deepcopy(state)


class Counting(Reducer):
    """Counts values."""

    __slots__ = ()

    def step(self, state: Any, value: Any) -> Any:
        """See `Reducer`."""
        return 1 if state is _MISSING else state + 1

    def extend(self, states: dict[Any, Any], keys: list[Any], values: list[Any]) -> None:
        """See `Reducer`."""
        for key, count in Counter(keys).items():
            states[key] = states.get(key, 0) + count


class Sum(Reducer):
    """Adds values up."""

    __slots__ = ()

    def step(self, state: Any, value: Any) -> Any:
        """See `Reducer`."""
        return value if state is _MISSING else state + value


class Extreme(Reducer):
    """The least or the greatest: the first among equal values. NaN is the greatest number."""

    __slots__ = ("_greatest",)

    def __init__(self, of: Callable[[Any], Any] | None, *, greatest: bool) -> None:
        super().__init__(of)
        self._greatest = greatest

    def step(self, state: Any, value: Any) -> Any:
        """See `Reducer`."""
        if state is _MISSING:
            return value
        is_better = is_greater if self._greatest else is_less
        return value if is_better(value, state) else state

    def extend(self, states: dict[Any, Any], keys: list[Any], values: list[Any]) -> None:
        """See `Reducer`. Values that have an order are compared here, without a call for each."""
        get = states.get
        if self._greatest:
            for key, value in zip(keys, values, strict=True):
                state = get(key, _MISSING)
                if (
                    state is _MISSING
                    or value > state
                    or (not value < state and value != state and is_greater(value, state))
                ):
                    states[key] = value
        else:
            for key, value in zip(keys, values, strict=True):
                state = get(key, _MISSING)
                if (
                    state is _MISSING
                    or value < state
                    or (not value > state and value != state and is_less(value, state))
                ):
                    states[key] = value


class Mean(Reducer):
    """The sum over the number."""

    __slots__ = ()

    def step(self, state: Any, value: Any) -> Any:
        """See `Reducer`."""
        return (value, 1) if state is _MISSING else (state[0] + value, state[1] + 1)

    def finish(self, state: Any) -> Any:
        """See `Reducer`."""
        return state[0] / state[1]


class Collect(Reducer):
    """All of them, in the order of time."""

    __slots__ = ()

    def step(self, state: Any, value: Any) -> Any:
        """See `Reducer`."""
        if state is _MISSING:
            return [value]
        state.append(value)
        return state

    def peek(self, state: Any) -> Any:
        """See `Reducer`."""
        return list(state)


class Values(set[Any]):
    """Different values. Unpickled, they contain the one NaN that keys and values of this process contain."""

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickles the values as a list."""
        return _values_of, (list(self),)


def _values_of(values: list[Any]) -> Values:
    return Values(with_one_nan(values))


class Distinct(Reducer):
    """Counts different values."""

    __slots__ = ()

    def prepared(self, keys: list[Any], values: list[Any]) -> list[Any]:
        """See `Reducer`."""
        return with_one_nan(super().prepared(keys, values))

    def step(self, state: Any, value: Any) -> Any:
        """See `Reducer`."""
        if state is _MISSING:
            return Values([value])
        state.add(value)
        return state

    def finish(self, state: Any) -> Any:
        """See `Reducer`."""
        return len(state)


class TopK(Reducer):
    """The greatest few, greatest first; of equal ones, the earlier first. NaN is the greatest number."""

    __slots__ = ("_by", "_count")

    def __init__(self, count: int, by: Callable[[Any], Any] | None) -> None:
        super().__init__()
        self._count = count
        self._by = by

    def step(self, state: Any, value: Any) -> Any:
        """See `Reducer`."""
        if state is _MISSING:
            return [value]
        state.append(value)
        if len(state) > 2 * self._count + 16:
            state = self.finish(state)
        return state

    def extend(self, states: dict[Any, Any], keys: list[Any], values: list[Any]) -> None:
        """See `Reducer`."""
        get, most = states.get, 2 * self._count + 16
        for key, value in zip(keys, values, strict=True):
            state = get(key)
            if state is None:
                states[key] = [value]
                continue
            state.append(value)
            if len(state) > most:
                states[key] = self.finish(state)

    def finish(self, state: Any) -> Any:
        """See `Reducer`."""
        keys = state if self._by is None else list(map(self._by, state))
        kinds = set(map(type, keys))
        if any(issubclass(kind, tuple) for kind in kinds) or (
            any(issubclass(kind, float) for kind in kinds) and any(map(ne, keys, keys))
        ):
            keys = list(map(comparable, keys))
        order = sorted(range(len(keys)), key=keys.__getitem__, reverse=True)
        return [state[at] for at in order[: self._count]]


class Quantiles(Reducer):
    """Quantiles by a sketch: within one percent, in bounded memory."""

    __slots__ = ("_shares",)

    def __init__(self, shares: Sequence[float], of: Callable[[Any], Any] | None) -> None:
        super().__init__(of)
        self._shares = list(shares)

    def step(self, state: Any, value: Any) -> Any:
        """See `Reducer`."""
        if state is _MISSING:
            state = Sketch()
        state.add(value)
        return state

    def finish(self, state: Any) -> Any:
        """See `Reducer`."""
        return [state.quantile(share) for share in self._shares]
