"""`pointstamp.order` against what its words mean, written down plainly."""

import copy
import pickle
from collections import Counter
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pointstamp import Time, TimeError
from pointstamp.order import Antichain, MutableAntichain, followed_by, less_equal, results_in

TOP = 2**64 - 1


def times(dims: int) -> st.SearchStrategy[Time]:
    """Times of `dims` coordinates: small ones, so that they meet, and the largest there is."""
    coordinate = st.integers(0, 4) | st.just(TOP)
    if dims == 1:
        return coordinate
    return st.tuples(*[coordinate] * dims)


def coordinates(time: Time) -> tuple[int, ...]:
    return time if isinstance(time, tuple) else (time,)


def before(a: Time, b: Time) -> bool:
    return all(x <= y for x, y in zip(coordinates(a), coordinates(b), strict=True))


def minimal(found: set[Time]) -> set[Time]:
    return {a for a in found if not any(before(b, a) and b != a for b in found)}


dims = st.integers(0, 5)
pairs = dims.flatmap(lambda k: st.tuples(times(k), times(k)))
triples = dims.flatmap(lambda k: st.tuples(times(k), times(k), times(k)))
sets = dims.flatmap(lambda k: st.tuples(st.lists(times(k), max_size=8), times(k)))
histories = dims.flatmap(
    lambda k: st.lists(st.lists(st.tuples(times(k), st.integers(-3, 3)), max_size=6), max_size=8)
)


@given(pairs)
def test_less_equal(pair: tuple[Time, Time]) -> None:
    assert less_equal(*pair) is before(*pair)


@given(sets)
def test_antichain(case: tuple[list[Time], Time]) -> None:
    given_times, time = case
    antichain = Antichain(given_times)
    expected = minimal(set(given_times))
    assert set(antichain) == expected
    assert antichain.elements == list(antichain) == sorted(expected, key=coordinates)
    assert len(antichain) == len(expected)
    assert bool(antichain) == bool(expected)
    assert antichain.less_equal(time) is any(before(a, time) for a in expected)
    assert antichain.less_than(time) is any(before(a, time) and a != time for a in expected)
    assert antichain == Antichain(reversed(given_times))
    assert antichain.insert(time) is (not any(before(a, time) for a in expected))
    assert set(antichain) == minimal(expected | {time})


@given(histories)
def test_mutable_antichain(history: list[list[tuple[Time, int]]]) -> None:
    outstanding = MutableAntichain()
    counts: Counter[Time] = Counter()
    frontier: set[Time] = set()
    for changes in history:
        reported = outstanding.update(changes)
        for time, diff in changes:
            counts[time] += diff
        then, frontier = frontier, minimal({t for t, count in counts.items() if count > 0})
        assert dict(reported) == {t: 1 for t in frontier - then} | {t: -1 for t in then - frontier}
        assert len(reported) == len(dict(reported))
        assert outstanding.frontier == Antichain(frontier)
        for time, count in counts.items():
            assert outstanding.count_for(time) == count


@given(pairs)
def test_results_in(pair: tuple[Time, Time]) -> None:
    summary, time = pair
    total = tuple(map(sum, zip(coordinates(summary), coordinates(time), strict=True)))
    result = results_in(summary, time)
    if any(coordinate > TOP for coordinate in total):
        assert result is None
    else:
        assert result is not None
        assert coordinates(result) == total
        assert type(result) is type(time)


@given(triples)
def test_followed_by_is_one_path_after_the_other(triple: tuple[Time, Time, Time]) -> None:
    first, second, time = triple
    path = followed_by(first, second)
    middle = results_in(first, time)
    assert (None if path is None else results_in(path, time)) == (
        None if middle is None else results_in(second, middle)
    )


def test_an_int_increments_the_last_coordinate() -> None:
    assert results_in(2, (5, 7)) == (5, 9)
    assert results_in((2,), 7) == 9
    assert followed_by(2, (1, 0)) == followed_by((1, 0), 2) == (1, 2)
    assert followed_by(2, 3) == 5
    assert results_in((), ()) == ()


def test_python_sorts_tuples_in_another_order() -> None:
    assert (1, 5) <= (2, 0)
    assert not less_equal((1, 5), (2, 0))


def test_antichains_are_sets() -> None:
    antichain = Antichain([(0, 3), (3, 0), (3, 3)])
    assert antichain == Antichain([(3, 0), (0, 3)])
    assert antichain != Antichain([(3, 0)])
    assert antichain != {(3, 0), (0, 3)}
    assert Antichain() == Antichain([])
    assert repr(antichain) == "Antichain([(0, 3), (3, 0)])"
    assert repr(Antichain([7])) == "Antichain([7])"
    assert (0, 3) in antichain
    assert (3, 3) not in antichain
    with pytest.raises(TypeError, match="unhashable"):
        hash(antichain)
    for duplicate in (copy.copy(antichain), pickle.loads(pickle.dumps(antichain))):
        assert duplicate == antichain
        assert duplicate.insert((1, 1))
        assert duplicate != antichain


def test_a_frontier_that_was_taken_is_a_copy() -> None:
    outstanding = MutableAntichain()
    outstanding.update([(3, 1)])
    taken = outstanding.frontier
    taken.insert(1)
    assert outstanding.frontier == Antichain([3])
    # What is being updated may be looked at.
    assert outstanding.update((t, -outstanding.count_for(t)) for t in [3]) == [(3, -1)]
    assert repr(outstanding) == "MutableAntichain([])"


class Index:
    """Counts as an int wherever Python takes an index."""

    def __init__(self, value: int) -> None:
        self.value = value

    def __index__(self) -> int:
        return self.value


def test_whatever_is_an_index_is_a_coordinate() -> None:
    anything: Any = Index(4)
    assert Antichain([anything]).elements == [4]
    assert Antichain([(True, anything)]).elements == [(1, 4)]
    assert type(Antichain([True]).elements[0]) is int


@pytest.mark.parametrize(
    ("bad", "says"),
    [
        (3, r"^expected 2 coordinates, got 1: 3$"),
        ((1, 2, 3), r"^expected 2 coordinates, got 3: \(1, 2, 3\)$"),
        ((), r"^expected 2 coordinates, got 0: \(\)$"),
        ((1,), r"^\(1,\) is not a time: one coordinate is written as a plain int$"),
        ((1, -2), r"^\(1, -2\) is not a time: a coordinate cannot be negative$"),
        ((2**64, 0), r"^\(18446744073709551616, 0\) is not a time: .* at most 18446744073709551615$"),
    ],
)
def test_what_is_no_time_here_is_a_time_error(bad: Time, says: str) -> None:
    antichain = Antichain([(5, 5)])
    outstanding = MutableAntichain()
    outstanding.update([((5, 5), 1)])
    for call in (
        antichain.insert,
        antichain.less_than,
        antichain.less_equal,
        outstanding.count_for,
        lambda time: outstanding.update([((6, 6), 1), (time, 1)]),
        lambda time: Antichain([(5, 5), time]),
        lambda time: less_equal((5, 5), time),
    ):
        with pytest.raises(TimeError, match=says):
            call(bad)
    assert antichain == Antichain([(5, 5)])
    assert outstanding.count_for((6, 6)) == 0


@pytest.mark.parametrize(
    ("bad", "says"),
    [
        ("3", "a time is an int or a tuple of ints, not str"),
        (1.0, "a time is an int or a tuple of ints, not float"),
        ([1, 2], "a time is an int or a tuple of ints, not list"),
        (None, "a time is an int or a tuple of ints, not NoneType"),
        ((1, "x"), r"\(1, 'x'\) is not a time: a coordinate is an int, not str"),
        ((1, (2, 3)), r"\(1, \(2, 3\)\) is not a time: .* not tuple; tuples are flat"),
    ],
)
def test_what_is_no_time_anywhere_is_a_type_error(bad: Any, says: str) -> None:
    with pytest.raises(TypeError, match=says):
        Antichain([bad])


def test_summaries_of_the_wrong_shape() -> None:
    calls: list[tuple[Callable[[], object], str]] = [
        (lambda: results_in((1, 2), 3), r"expected 1 coordinate, got 2: \(1, 2\)"),
        (lambda: results_in((1, 2), (1, 2, 3)), r"expected 3 coordinates, got 2: \(1, 2\)"),
        (lambda: results_in(1, ()), r"has none to add 1 to: the only summary is \(\)"),
        (lambda: results_in(-1, 3), "-1 is not a path summary: a coordinate cannot be negative"),
        (lambda: followed_by((1, 2), (1, 2, 3)), r"cannot follow each other: \(1, 2\) and \(1, 2, 3\)"),
    ]
    for call, says in calls:
        with pytest.raises(TimeError, match=says):
            call()
