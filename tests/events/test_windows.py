"""Windows against brute force: every kind and reducer, out of order and late, on several workers."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import pointstamp as ps
from effort import examples
from event_data import Event, by_key, collected, events, timely
from harness import WORKERS, run
from pointstamp import _core

LENGTHS = st.tuples(st.integers(1, 30), st.integers(1, 30), st.integers(0, 40))


def in_windows(data: list[Event], length: int, every: int, offset: int) -> dict[ps.Window, list[Event]]:
    """The events of every window that has some, by looking at each window and event."""
    last = max((event.at for event in data), default=0)
    found: dict[ps.Window, list[Event]] = {}
    for start in range(offset % every - length // every * every - every, last + 1, every):
        inside = [event for event in data if start <= event.at < start + length]
        if inside:
            found[ps.Window(start, start + length)] = inside
    return found


def in_sessions(data: list[Event], gap: int) -> dict[ps.Window, list[Event]]:
    """The events of one key in sessions."""
    found: list[list[Event]] = []
    for event in sorted(data, key=lambda event: event.at):
        if found and event.at - found[-1][-1].at < gap:
            found[-1].append(event)
        else:
            found.append([event])
    return {ps.Window(session[0].at, session[-1].at + gap): session for session in found}


def bag(values: list[Event]) -> tuple[int, ...]:
    return tuple(sorted(event.value for event in values))


def expected(
    data: list[Event], cut: Callable[[list[Event]], dict[ps.Window, list[Event]]], result: Callable[..., Any]
) -> list[tuple[int, Any]]:
    results = [
        (window.end - 1, (key, window, result(inside)))
        for key, mine in by_key(data).items()
        for window, inside in cut(mine).items()
    ]
    return sorted(results, key=lambda item: (item[0], repr(item[1])))


def on_workers(test: Callable[..., None]) -> Any:
    return pytest.mark.parametrize("workers", WORKERS)(settings(max_examples=examples(12))(test))


def collecting(window: Any) -> Callable[[ps.Stream[Event]], ps.Stream[Any]]:
    def program(stream: ps.Stream[Event]) -> ps.Stream[Any]:
        results: ps.Stream[Any] = stream.key_by(lambda event: event.key).window(window).collect()
        return results.map(lambda result: (*result[:2], bag(result[2])))

    return program


@on_workers
@given(data=events(), lateness=st.sampled_from([0, 5, 100]), lengths=LENGTHS, idle=st.booleans())
def test_sliding_and_tumbling(
    workers: int, data: list[Event], lateness: int, lengths: tuple[int, int, int], idle: bool
) -> None:
    length, every, offset = lengths
    every = min(length, every)
    window: Any = ps.Sliding(length, every=every, offset=offset)
    if every == length:
        window = ps.Tumbling(length, offset=offset)
    found = collected(workers, data, collecting(window), lateness=lateness, idle=idle)
    on_time = timely(data, workers, idle, lateness)
    assert found == expected(on_time, lambda mine: in_windows(mine, length, every, offset), bag)


@on_workers
@given(data=events(), lateness=st.sampled_from([0, 5, 100]), gap=st.integers(1, 20), idle=st.booleans())
def test_sessions(workers: int, data: list[Event], lateness: int, gap: int, idle: bool) -> None:
    found = collected(workers, data, collecting(ps.Session(gap=gap)), lateness=lateness, idle=idle)
    on_time = timely(data, workers, idle, lateness)
    assert found == expected(on_time, lambda mine: in_sessions(mine, gap), bag)


@on_workers
@given(data=events(), size=st.integers(1, 5))
def test_counted(workers: int, data: list[Event], size: int) -> None:
    found = collected(workers, data, collecting(ps.Count(size)), lateness=100)
    results: list[Any] = []
    for key, mine in by_key(timely(data, workers, False, 100)).items():
        times = [event.at for event in mine]
        for start in range(0, len(times), size):
            part = times[start : start + size]
            results.append((key, ps.Window(part[0], part[-1] + 1), len(part)))
    # Which events of one time are in which window follows from their arrival.
    assert Counter((key, window, len(values)) for _, (key, window, values) in found) == Counter(results)
    full = [(time, window) for time, (_, window, values) in found if len(values) == size]
    assert all(time == window.end - 1 for time, window in full)


def of(event: Event) -> int:
    return event.value


REDUCERS: list[tuple[str, Callable[[ps.WindowedStream[str, Event]], Any], Callable[[list[Event]], Any]]] = [
    (
        "aggregate",
        lambda w: w.aggregate(lambda _, event, total: total + event.at, default=int),
        lambda e: sum(x.at for x in e),
    ),
    ("reduce", lambda w: w.reduce(max), max),
    ("count", lambda w: w.count(), len),
    ("sum", lambda w: w.sum(of), lambda e: sum(map(of, e))),
    ("min", lambda w: w.min(of), lambda e: min(map(of, e))),
    ("max", lambda w: w.max(of), lambda e: max(map(of, e))),
    ("mean", lambda w: w.mean(of), lambda e: sum(map(of, e)) / len(e)),
    ("top_k", lambda w: w.top_k(2, of), lambda e: sorted(e, key=of, reverse=True)[:2]),
    ("distinct", lambda w: w.distinct_count(lambda x: x.value % 3), lambda e: len({x.value % 3 for x in e})),
]


@pytest.mark.parametrize("name", [name for name, _, _ in REDUCERS])
@pytest.mark.parametrize("window", [ps.Tumbling(10), ps.Session(gap=6)])
@settings(max_examples=examples(6))
@given(data=events())
def test_reducers(name: str, window: Any, data: list[Event]) -> None:
    _, program, oracle = next(reducer for reducer in REDUCERS if reducer[0] == name)
    found = collected(2, data, lambda stream: program(stream.key_by(lambda event: event.key).window(window)))
    cut = in_sessions if isinstance(window, type(ps.Session(gap=1))) else None

    def windows(mine: list[Event]) -> dict[ps.Window, list[Event]]:
        return cut(mine, 6) if cut else in_windows(mine, 10, 10, 0)

    assert found == expected(timely(data, 2, False, 5), windows, oracle)


@pytest.mark.parametrize(
    ("count", "share", "rank"),
    [
        (4, 0.99, 4),
        (4, 0.5, 2),
        (4, 0.51, 3),
        (4, 0, 1),
        (4, 1, 4),
        (30, 0.1, 3),
        (1, 0.5, 1),
        (100, 0.99, 99),
    ],
)
def test_quantiles_are_the_nearest_rank(count: int, share: float, rank: int) -> None:
    """The 99th percentile of four numbers is the fourth."""
    sketch = _core.Sketch()
    for number in range(1, count + 1):
        sketch.add(number)
    assert sketch.quantile(share) == pytest.approx(rank, rel=0.011)


@settings(max_examples=examples(15))
@given(data=events(), shares=st.lists(st.integers(0, 100), min_size=1, max_size=3))
def test_quantiles_are_within_one_percent(data: list[Event], shares: list[int]) -> None:
    found = collected(
        2,
        data,
        lambda stream: stream.window(ps.Tumbling(20)).quantiles(
            [share / 100 for share in shares], lambda event: event.value + 1
        ),
    )
    windows = in_windows(timely(data, 2, False, 5), 20, 20, 0)
    assert len(found) == len(windows)
    for _, (window, quantiles) in found:
        values = sorted(event.value + 1 for event in windows[window])
        for share, quantile in zip(shares, quantiles, strict=True):
            nearest = values[max(1, math.ceil(Fraction(share, 100) * len(values))) - 1]
            assert nearest * 0.989 <= quantile <= nearest * 1.011


@on_workers
@given(data=events())
def test_over_all_keys(workers: int, data: list[Event]) -> None:
    found = collected(workers, data, lambda stream: stream.window(ps.Tumbling(10)).sum(of))
    windows = in_windows(timely(data, workers, False, 5), 10, 10, 0)
    assert found == [(window.end - 1, (window, sum(map(of, inside)))) for window, inside in windows.items()]


@on_workers
@given(data=events())
def test_a_window_of_a_window_is_in_the_same_place(workers: int, data: list[Event]) -> None:
    def program(stream: ps.Stream[Event]) -> ps.Stream[Any]:
        counts = stream.key_by(lambda event: event.key).window(ps.Tumbling(5)).count()
        return counts.window(ps.Tumbling(20)).sum(lambda result: result[2])

    windows = in_windows(timely(data, workers, False, 5), 20, 20, 0)
    assert collected(workers, data, program) == [
        (w.end - 1, (w, len(inside))) for w, inside in windows.items()
    ]


@settings(max_examples=examples(20))
@given(data=events(), every=st.integers(1, 12))
def test_early_results_say_what_has_come_by_then(data: list[Event], every: int) -> None:
    found = collected(
        2, data, lambda stream: stream.key_by(lambda e: e.key).window(ps.Tumbling(10), early=every).count()
    )
    on_time = timely(data, 2, False, 5)
    finals = set(expected(on_time, lambda mine: in_windows(mine, 10, 10, 0), len))
    assert finals <= set(found)
    for time, (key, window, count) in found:
        so_far = [e for e in on_time if e.key == key and window.start <= e.at <= min(time, window.end - 1)]
        assert count == len(so_far)
        assert (time + 1) % every == 0 or time == window.end - 1
    ticks = {
        (tick - 1, event.key)
        for event in on_time
        if (tick := event.at - event.at % every + every) < event.at - event.at % 10 + 10
    }
    early = {(time, key) for time, (key, window, _) in found if time < window.end - 1}
    assert early == ticks


HOW = ["inner", "left", "right", "full"]


@on_workers
@given(left=events(most=15), right=events(most=15), how=st.sampled_from([*HOW, "semi", "anti"]))
def test_window_join(workers: int, left: list[Event], right: list[Event], how: Any) -> None:
    def build(scope: ps.Scope) -> Any:
        sides = []
        for data in (left, right):
            mine = scope.to_stream(data[scope.index :: scope.peers])
            on_time, _ = mine.event_time(lambda event: event.at, lateness=100)
            sides.append(on_time.key_by(lambda event: event.key, of).window(ps.Tumbling(10)))
        return sides[0].join(sides[1], how=how).capture()

    found = [
        record for capture in run(workers, build) for _, records in capture.extract() for record in records
    ]
    results = []
    for key in "ab":
        ours = in_windows([event for event in left if event.key == key], 10, 10, 0)
        theirs = in_windows([event for event in right if event.key == key], 10, 10, 0)
        for window in {**ours, **theirs}:
            mine: list[Any] = [event.value for event in ours.get(window, [])]
            others: list[Any] = [event.value for event in theirs.get(window, [])]
            if how in ("semi", "anti"):
                results += [(key, window, a) for a in mine if bool(others) == (how == "semi")]
                continue
            if not mine and how in ("right", "full"):
                mine = [None]
            if not others and how in ("left", "full"):
                others = [None]
            results += [(key, window, (a, b)) for a in mine for b in others]
    assert Counter(found) == Counter(results)


def test_windows_of_plain_streams_go_by_their_times() -> None:
    def build(scope: ps.Scope) -> Any:
        stream = scope.to_stream(range(25)).delay(lambda x, _: x)
        return stream.key_by(lambda x: x % 2).window(ps.Tumbling(10)).count().capture()

    counts = [record for _, records in ps.example(build).extract() for record in records]
    assert counts == [
        (key, ps.Window(start, start + 10), 5 if start < 20 else 3 - key)
        for start in (0, 10, 20)
        for key in (0, 1)
    ]


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: ps.Tumbling(0), "length must be more than 0"),
        (lambda: ps.Tumbling("day"), "an int or a timedelta, not 'day'"),
        (lambda: ps.Sliding(5, every=6), "leave gaps"),
        (lambda: ps.Session(gap=True), "an int or a timedelta, not True"),
        (lambda: ps.Count(0), "at least 1"),
    ],
)
def test_windows_that_are_none_are_refused(make: Callable[[], Any], message: str) -> None:
    with pytest.raises((TypeError, ValueError), match=message):
        make()


@pytest.mark.parametrize(
    ("program", "message"),
    [
        (lambda keyed: keyed.window(10), "a window is Tumbling"),
        (lambda keyed: keyed.window(ps.Count(2), early=5), "early results are those of tumbling"),
        (lambda keyed: keyed.window(ps.Tumbling(2)).quantiles([2]), "a share, from 0 to 1"),
        (lambda keyed: keyed.window(ps.Tumbling(2)).join(keyed.window(ps.Tumbling(3))), "the same windows"),
    ],
)
def test_what_makes_no_sense_is_refused(program: Callable[[Any], Any], message: str) -> None:
    with pytest.raises((TypeError, ValueError), match=message):
        ps.example(lambda scope: program(scope.to_stream([1]).key_by(lambda x: x)))


ROWS = pa.schema([("at", pa.int64())])


@pytest.mark.parametrize(
    "program",
    [
        lambda stream: stream.event_time(lambda x: x),
        lambda stream: stream.to_arrow(ROWS).event_time("at"),
        lambda stream: stream.to_arrow(ROWS).delay("at"),
        lambda stream: stream.to_arrow(ROWS).window(ps.Tumbling(5), "at", column="at"),
    ],
)
def test_event_times_in_a_loop_are_refused(program: Callable[[Any], Any]) -> None:
    def build(scope: ps.Scope) -> None:
        with scope.iterative() as inner:
            program(scope.to_stream([1]).enter(inner))

    with pytest.raises(ps.GraphError, match=r"times in .* have 2 coordinates"):
        ps.example(build)


def test_a_function_makes_the_result_of_a_pair_of_windows() -> None:
    def build(scope: ps.Scope) -> Any:
        numbers = scope.to_stream([1, 2]).window(ps.Tumbling(10))
        return numbers.join(
            scope.to_stream([5]).window(ps.Tumbling(10)), lambda key, a, b: (key, a + b)
        ).capture()

    window = ps.Window(0, 10)
    assert ps.example(build).extract() == [(9, [(window, (None, 6)), (window, (None, 7))])]


def test_what_a_window_join_would_not_do_is_refused() -> None:
    """Early results, and a state of its own for the right side."""

    def build(scope: ps.Scope, left: dict[str, Any], right: dict[str, Any]) -> Any:
        keyed = scope.to_stream([1]).key_by(lambda n: n)
        return keyed.window(ps.Tumbling(10), **left).join(keyed.window(ps.Tumbling(10), **right))

    with pytest.raises(ValueError, match="when a window is final: leave early= out"):
        ps.example(lambda scope: build(scope, {"early": 5}, {}))
    with pytest.raises(ValueError, match="when a window is final: leave early= out"):
        ps.example(lambda scope: build(scope, {}, {"early": 5}))
    with pytest.raises(ValueError, match="the state of its left side"):
        ps.example(lambda scope: build(scope, {}, {"state": ps.KeyedState()}))
    with pytest.raises(TypeError, match="a WindowedStream joins another WindowedStream"):
        ps.example(lambda scope: scope.to_stream([1]).window(ps.Tumbling(5)).join(scope.to_stream([1])))  # type: ignore[call-overload]


KEEP: dict[str, tuple[Callable[[Any], Any], list[Any]]] = {
    "collect": (lambda window: window.collect(), [[1, 2], [1, 2, 14], [1, 2, 14, 14]]),
    "top_k": (lambda window: window.top_k(2), [[2, 1], [14, 2], [14, 14]]),
    "distinct_count": (lambda window: window.distinct_count(), [2, 3, 3]),
    "quantiles": (lambda window: window.quantiles([0]), [[1.0], [1.0], [1.0]]),
    "aggregate": (
        lambda window: window.aggregate(lambda _, n, kept: kept.append(n) or kept, default=list),
        [[1, 2], [1, 2, 14], [1, 2, 14, 14]],
    ),
}


@pytest.mark.parametrize("name", KEEP)
@pytest.mark.parametrize("kind", [ps.Tumbling(30), ps.Sliding(30, every=30)])
def test_windows_that_keep_records_have_early_results(name: str, kind: Any) -> None:
    """Each result has the records so far: later records do not change a result that was sent."""
    reduced, expected = KEEP[name]

    def build(scope: ps.Scope) -> Any:
        on_time, _ = scope.to_stream([(1, 1), (2, 2), (14, 14), (25, 14)]).event_time(lambda pair: pair[0])
        values = on_time.key_by(lambda _: "a", lambda pair: pair[1])
        return reduced(values.window(kind, early=10)).capture()

    found = [(time, result) for time, some in ps.example(build).extract() for _, _, result in some]
    assert found == list(zip([9, 19, 29], expected, strict=True))
