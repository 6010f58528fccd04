"""NaN is one key: whatever object it is, on threads and on processes, alone and in a tuple."""

from __future__ import annotations

import gc
import math
import pickle
from collections import Counter
from decimal import Decimal
from typing import Any, NamedTuple
from weakref import ref

import numpy as np
import pandas as pd
import pytest

import pointstamp as ps
from harness import WORKERS, run
from pointstamp import _core


class Place(NamedTuple):
    """A key with a number in it."""

    name: str
    height: float


class Town:
    """A key of two parts, equal by its parts: none with a NaN equals itself."""

    def __init__(self, name: str, height: float) -> None:
        self.name = name
        self.height = height

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Town) and self.name == other.name and self.height == other.height

    def __hash__(self) -> int:
        return hash(self.name)

    def __repr__(self) -> str:
        return f"Town({self.name}, {self.height})"


class Slotted:
    """A town without a `__weakref__`, which is not registered."""

    __slots__ = ("height", "name")

    def __init__(self, name: str, height: float) -> None:
        self.name = name
        self.height = height

    __hash__: Any = Town.__hash__

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Slotted) and self.name == other.name and self.height == other.height


class Celsius(float):
    """A float with a unit."""

    unit = "C"


class Column:
    """Its `==` makes an expression, which has no truth value."""

    def __init__(self, name: str) -> None:
        self.name = name

    def __eq__(self, other: object) -> Any:
        return Expression()

    def __hash__(self) -> int:
        return hash(self.name)


class Expression:
    """A value that is neither true nor false."""

    def __bool__(self) -> bool:
        raise TypeError("an expression has no truth value")


class Incomparable:
    """Its `==` raises."""

    error: BaseException = RuntimeError("this is not to be compared")

    def __eq__(self, other: object) -> bool:
        raise self.error

    __hash__: Any = object.__hash__


ps.register_key(Column, lambda column: column.name)
ps.register_key(Incomparable, lambda _: 0)
ps.register_key(type(pd.NA), lambda _: 0)
ps.register_key(Town, lambda town: (town.name, str(town.height)))


def nan() -> float:
    """A NaN that equals no other."""
    made: float = pickle.loads(pickle.dumps(math.nan))
    assert made is not math.nan
    return made


MAKES: dict[str, Any] = {
    "float": nan,
    "numpy": lambda: np.float64("nan"),
    "short": lambda: np.float32("nan"),
    "subclass": lambda: Celsius("nan"),
    "no time": lambda: pd.NaT,
    "decimal": lambda: Decimal("nan"),
    "tuple": lambda: ("a", (nan(), 1)),
    "named": lambda: Place("a", nan()),
    "parts": lambda: Town("a", nan()),
}


def shown(captures: list[Any]) -> Counter[str]:
    return Counter(repr(record) for one in captures for _, some in one.extract() for record in some)


def distinct(keys: list[Any]) -> Any:
    return lambda scope: scope.to_stream(keys).distinct().capture()


@pytest.mark.parametrize("workers", WORKERS)
@pytest.mark.parametrize("name", MAKES)
def test_operators_by_key_have_one(workers: int, name: str) -> None:
    make = MAKES[name]

    def build(scope: ps.Scope) -> Any:
        records = [(make(), n) for n in range(scope.index, 12, scope.peers)]
        by_key = scope.to_stream(records).key_by(lambda record: record[0], lambda record: record[1])
        counted = by_key.window(ps.Tumbling(10)).count()
        largest = by_key.aggregate(lambda _, __, n: n + 1, default=int)
        first = by_key.map_values(lambda _: 0).dedup()
        sums = scope.to_stream(records).aggregate(
            lambda key, value, total: total + value, lambda key, total: ("sum", total), default=int
        )
        states = scope.to_stream(records).state_machine(lambda key, _, n: (n + 1, [n + 1]), default=int)
        both = scope.to_stream(records).join(scope.to_stream(records)).map(lambda pair: pair[1])
        streams: list[ps.Stream[Any]] = [
            counted.map(lambda r: r[2]),
            largest.map(lambda r: r[1]),
            first,
            sums,
            states,
            both,
        ]
        return [stream.capture() for stream in streams]

    results = list(zip(*run(workers, build), strict=True))
    counted, largest, first, sums, states, both = (shown(list(captures)) for captures in results)
    assert counted == largest == Counter(["12"])
    assert first == Counter(["0"])
    assert sums == Counter([repr(("sum", 66))])
    assert states == Counter(map(repr, range(1, 13)))
    assert sum(both.values()) == 144


@pytest.mark.parametrize("workers", WORKERS)
def test_records_that_are_none(workers: int) -> None:
    def build(scope: ps.Scope) -> Any:
        numbers = scope.to_stream([nan() for _ in range(4)])
        distinct = numbers.map(lambda n: (n, 1)).key_by(lambda _: 0)
        return (
            numbers.distinct().capture(),
            numbers.value_counts().capture(),
            distinct.window(ps.Tumbling(5)).distinct_count(lambda pair: pair[0]).capture(),
        )

    distinct, counts, windows = zip(*run(workers, build), strict=True)
    assert shown(list(distinct)) == Counter(["nan"])
    assert shown(list(counts)) == Counter([repr((math.nan, 4 * workers))])
    assert [key[2] for one in windows for _, some in one.extract() for key in some] == [1]


@pytest.mark.parametrize("workers", WORKERS)
def test_objects_of_several_parts_stay_apart(workers: int) -> None:
    def build(scope: ps.Scope) -> Any:
        towns = [Town(name, nan()) for name in "aabac"] + [Town("a", 1.0)]
        stream = scope.to_stream(towns)
        return (
            stream.distinct().capture(),
            stream.value_counts().capture(),
            stream.key_by(lambda town: town).aggregate(lambda _, __, n: n + 1, default=int).capture(),
        )

    distinct, counts, folded = (shown(list(made)) for made in zip(*run(workers, build), strict=True))
    expected = {"Town(a, nan)": 3, "Town(b, nan)": 1, "Town(c, nan)": 1, "Town(a, 1.0)": 1}
    assert distinct == Counter(expected.keys())
    shown_counts = Counter(f"({town}, {n * workers})" for town, n in expected.items())
    assert counts == folded == shown_counts


def test_values_of_types_that_are_no_keys_stay_apart() -> None:
    """Windows that count different values need no stable hash: values are distinguished by their pickles."""

    def build(scope: ps.Scope) -> Any:
        values = [Slotted(name, nan()) for name in "aabac"] + [complex(nan(), 1), complex(nan(), 1)]
        keyed = scope.to_stream(values).key_by(lambda _: 0)
        return keyed.window(ps.Tumbling(5)).distinct_count().capture()

    assert [record[2] for _, some in ps.example(build).extract() for record in some] == [4]


def test_one_that_cannot_be_told_from_others_is_its_own() -> None:
    class Local(Town):
        __hash__: Any = Town.__hash__

        def __reduce__(self) -> Any:
            raise ValueError("this is not to be pickled")

    class Other:
        def __eq__(self, other: object) -> bool:
            return False

        __hash__: Any = object.__hash__

        def __reduce__(self) -> Any:
            raise ValueError("this is not to be pickled")

    keys = [Other(), Other()]
    assert _core.with_one_nan(keys) is keys
    first, second = _core.with_one_nan([Local("a", nan()), Local("a", nan())])
    assert first is second


@pytest.mark.parametrize("kind", [np.float64, Celsius])
def test_floats_of_other_types_keep_them(kind: type[float]) -> None:
    first, second, *rest = _core.with_one_nan([kind("nan"), kind("nan"), kind("1.5"), math.nan])
    assert first is second
    assert (type(first), rest) == (kind, [1.5, math.nan])
    keys = [(kind("nan"), 1), (kind("nan"), 1)]
    assert {type(record[0]) for _, some in ps.example(distinct(keys)).extract() for record in some} == {kind}
    assert len(ps.example(distinct(keys)).extract()[0][1]) == 1


@pytest.mark.parametrize(
    "key",
    [pd.NA, (pd.NA, 1), Column("a"), Incomparable()],
    ids=["missing", "tuple", "column", "incomparable"],
)
def test_keys_that_do_not_say_whether_they_equal_themselves_are_found_by_identity(key: Any) -> None:
    keys = [key, key]
    assert _core.with_one_nan(keys) is keys
    assert ps.example(distinct(keys)).extract() == [(0, [key])]


def test_a_comparison_that_ends_the_program_does() -> None:
    key = Incomparable()
    key.error = KeyboardInterrupt()
    with pytest.raises(KeyboardInterrupt):
        _core.with_one_nan([key])


def test_a_missing_time_hashes_as_that_of_numpy() -> None:
    assert ps.stable_hash(pd.NaT) == ps.stable_hash(np.datetime64("NaT"))


def test_what_stands_for_others_is_not_kept_for_ever() -> None:
    first = Town("nobody else's", nan())
    assert _core.with_one_nan([Town("nobody else's", nan()), first])[1] is not first
    gone = ref(first)
    assert _core.with_one_nan([first])[0] is first
    other = Town("nobody else's", nan())
    assert _core.with_one_nan([other])[0] is first
    del first
    gc.collect()
    assert gone() is None
    assert _core.with_one_nan([other])[0] is other


def test_it_is_listed_and_restored() -> None:
    """A state is found by `math.nan`, also one that was written and read."""

    def main(worker: ps.Worker, snapshots: list[bytes]) -> Any:
        state: ps.KeyedState[Any, int] = ps.KeyedState.restore(snapshots)
        with worker.dataflow() as scope:
            stream = scope.to_stream([nan(), nan()]).key_by(lambda n: n)
            stream.scan(lambda _key, _, n: n + 1, default=int, state=state)
        worker.run()
        return dict(state.items()), state[math.nan], state.snapshot()

    [(listed, found, snapshot)] = ps.execute(lambda worker: main(worker, []))
    assert (len(listed), found) == (1, 2)
    [(listed, found, _)] = ps.execute(lambda worker: main(worker, [snapshot]))
    assert (len(listed), found) == (1, 4)


def test_keys_without_any_are_left_as_they_are() -> None:
    keys: list[Any] = [1, "a", 2.5, None, True, b"x", ("a", (1.5,)), Place("a", 2.0), Decimal(1), math.nan]
    assert _core.with_one_nan(keys) is keys
    pairs = [(key, nan()) for key in keys]
    assert _core.pairs_with_one_nan(pairs) is pairs
    odd = [(nan(), 1), "no pair", (nan(), 2, 3)]
    made = _core.pairs_with_one_nan(odd)
    assert made[0][0] is math.nan
    assert made[1:] == odd[1:]
    assert odd[0][0] is not math.nan
