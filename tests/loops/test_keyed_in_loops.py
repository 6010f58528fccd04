"""Keyed streams in scopes whose times have two coordinates, against models, and in loops through them."""

from collections import Counter, defaultdict
from collections.abc import Callable
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import pointstamp as ps
from effort import examples
from harness import WORKERS, merged, run, share

Time = tuple[int, int]
Data = dict[tuple[Time, str], int]
"""The value of each key at a time, one at most: the order within a time is not defined."""

Results = dict[ps.Time, Counter[Any]]
Operator = Callable[[ps.KeyedStream[str, int]], ps.Stream[Any]]

DATA = st.dictionaries(
    st.tuples(st.tuples(st.integers(0, 5), st.integers(0, 3)), st.sampled_from("kl")),
    st.integers(-5, 5),
    max_size=25,
)


def on_workers(test: Callable[..., None]) -> Any:
    return pytest.mark.parametrize("workers", WORKERS)(settings(max_examples=examples(15))(test))


def keyed(scope: ps.Scope, inner: ps.Scope, data: Data) -> ps.KeyedStream[str, int]:
    """Returns the data in a scope, at their times."""
    records = share(scope, [(time, key, value) for (time, key), value in data.items()])
    entered = records.delay(lambda r, _: r[0][0]).enter_at(inner, lambda r: r[0][1])
    return entered.key_by(lambda r: r[1], lambda r: r[2])


def found(workers: int, data: Data, operator: Operator) -> Results:
    def build(scope: ps.Scope) -> ps.Capture[Any]:
        with scope.iterative() as inner:
            return operator(keyed(scope, inner, data)).capture()

    return merged(run(workers, build))


def in_order(data: Data, key: str) -> list[tuple[Time, int]]:
    """Returns the values of a key in the order of the coordinates of their times."""
    return sorted((time, value) for (time, of), value in data.items() if of == key)


def results(pairs: list[tuple[Time, Any]]) -> Results:
    by_time: dict[ps.Time, Counter[Any]] = defaultdict(Counter)
    for time, record in pairs:
        by_time[time][record] += 1
    return by_time


@on_workers
@given(data=DATA)
def test_per_time(workers: int, data: Data) -> None:
    expected = results([(time, (key, value + 1)) for (time, key), value in data.items()])
    added = found(workers, data, lambda k: k.map_values(lambda value: value + 1).reduce(max))
    folded = found(workers, data, lambda k: k.aggregate(lambda _, value, n: n + value, default=lambda: 1))
    assert added == folded == expected
    named = found(
        workers, data, lambda k: k.aggregate(lambda k, v, n: n + v, lambda k, n: f"{k} {n}", default=int)
    )
    assert named == results([(time, f"{key} {value}") for (time, key), value in data.items()])


@on_workers
@given(data=DATA, ttl=st.none() | st.integers(1, 4))
def test_state_in_the_order_of_times(workers: int, data: Data, ttl: int | None) -> None:
    sums, firsts, tops = [], [], []
    for key in "kl":
        total, seen, last, top = 0, False, 0, [0][:0]
        for time, value in in_order(data, key):
            if ttl is not None and seen and time[0] - last >= ttl:
                total, seen, top = 0, False, []
            total += value
            sums.append((time, (key, total)))
            if not seen:
                firsts.append((time, value))
            best = sorted([*top, value], reverse=True)[:2]
            if best != top:
                tops.append((time, (key, tuple(best))))
            seen, last, top = True, time[0], best
    scanned = found(workers, data, lambda k: k.scan(lambda _, value, n: n + value, default=int, ttl=ttl))
    running = found(workers, data, lambda k: k.running("sum", ttl=ttl))
    machine = found(
        workers,
        data,
        lambda k: k.state_machine(lambda k, v, n: (n + v, [(k, n + v)]), default=int, ttl=ttl),
    )
    assert scanned == running == machine == results(sums)
    assert found(workers, data, lambda k: k.dedup(ttl=ttl)) == results(firsts)
    largest = found(workers, data, lambda k: k.top_k_so_far(2, ttl=ttl).map(lambda r: (r[0], tuple(r[1]))))
    assert largest == results(tops)


@on_workers
@given(data=DATA)
def test_a_state_machine_of_pairs_has_the_same_order(workers: int, data: Data) -> None:
    def fold(key: str, value: int, total: int) -> tuple[int | None, list[Any]]:
        return (None if value == 0 else total + value), [(key, total)]

    def build(scope: ps.Scope) -> ps.Capture[Any]:
        with scope.iterative() as inner:
            pairs = keyed(scope, inner, data).process(lambda context, v: context.emit((context.key, v)))
            return pairs.state_machine(fold, default=int).capture()

    by_key = found(workers, data, lambda k: k.state_machine(fold, default=int))
    assert merged(run(workers, build)) == by_key


@on_workers
@given(left=DATA, right=DATA, within=st.none() | st.integers(0, 3))
def test_lookups_in_the_order_of_times(workers: int, left: Data, right: Data, within: int | None) -> None:
    expected = []
    for (time, key), value in left.items():
        before = [other for other in in_order(right, key) if other[0] <= time]
        match = before[-1] if before and (within is None or time[0] - before[-1][0][0] <= within) else None
        expected.append((time, (key, (value, match and match[1]))))

    def build(scope: ps.Scope) -> ps.Capture[Any]:
        with scope.iterative() as inner:
            return keyed(scope, inner, left).asof_join(keyed(scope, inner, right), within=within).capture()

    assert merged(run(workers, build)) == results(expected)


def windows(data: Data, starts: Callable[[int], list[int]], length: int) -> list[tuple[Time, Any]]:
    """Returns the sum of each turn, key and window, at the window's last instant."""
    sums: dict[Any, int] = defaultdict(int)
    for ((at, turn), key), value in data.items():
        for start in starts(at):
            sums[turn, key, start] += value
    return [
        ((start + length - 1, turn), (key, ps.Window(start, start + length), total))
        for (turn, key, start), total in sums.items()
    ]


@on_workers
@given(data=DATA)
def test_windows_are_those_of_each_turn(workers: int, data: Data) -> None:
    tumbling = found(workers, data, lambda k: k.window(ps.Tumbling(2)).sum())
    assert tumbling == results(windows(data, lambda at: [at - at % 2], 2))
    sliding = found(
        workers,
        data,
        lambda k: k.window(ps.Sliding(4, every=2, offset=4)).aggregate(lambda _, v, n: n + v, default=int),
    )
    assert sliding == results(windows(data, lambda at: [at - at % 2 - 2, at - at % 2], 4))
    sessions: list[tuple[Time, Any]] = []
    for turn in range(4):
        for key in "kl":
            ats = [time[0] for time, _ in in_order(data, key) if time[1] == turn]
            while ats:
                count = next((n for n in range(1, len(ats)) if ats[n] - ats[n - 1] >= 2), len(ats))
                window = ps.Window(ats[0], ats[count - 1] + 2)
                sessions.append(((window.end - 1, turn), (key, window, count)))
                ats = ats[count:]
    assert found(workers, data, lambda k: k.window(ps.Session(gap=2)).count()) == results(sessions)


@on_workers
@given(left=DATA, right=DATA)
def test_joins_in_time_are_those_of_each_turn(workers: int, left: Data, right: Data) -> None:
    expected: list[tuple[Time, Any]] = []
    matched = set()
    for (time, key), value in left.items():
        here = [
            (other, (other[0][0], theirs))
            for other, theirs in right.items()
            if other[1] == key and other[0][1] == time[1] and -1 <= other[0][0] - time[0] <= 2
        ]
        for other, (at, theirs) in here:
            matched.add(other)
            expected.append(((max(time[0], at), time[1]), (key, (value, theirs))))
        if not here:
            expected.append(((time[0] + 2, time[1]), (key, (value, None))))
    for other, theirs in right.items():
        if other not in matched:
            expected.append(((other[0][0] + 1, other[0][1]), (other[1], (None, theirs))))

    def build(scope: ps.Scope) -> ps.Capture[Any]:
        with scope.iterative() as inner:
            ours, others = keyed(scope, inner, left), keyed(scope, inner, right)
            return ours.interval_join(others, lower=-1, upper=2, how="full").capture()

    assert merged(run(workers, build)) == results(expected)


@on_workers
@given(data=DATA)
def test_timers_run_in_their_turn(workers: int, data: Data) -> None:
    def on_record(context: Any, value: int) -> None:
        context.state = (context.state or 0) + value
        context.set_timer(context.time + 2)

    def due(context: Any) -> None:
        context.emit((context.key, context.time, context.state))

    expected = []
    for (time, key), _ in data.items():
        seen = sum(v for t, v in in_order(data, key) if t[1] == time[1] and t[0] < time[0] + 2)
        expected.append(((time[0] + 2, time[1]), (key, time[0] + 2, seen)))
    assert found(workers, data, lambda k: k.process(on_record, due)) == results(expected)


@pytest.mark.parametrize("workers", WORKERS)
def test_dedup_ends_a_loop(workers: int) -> None:
    """Each node is reached once, in the first turn of the first epoch that reaches it."""
    steps = {n: [(2 * n) % 40, (n + 7) % 40] for n in range(40)}
    starts = {0: [3], 1: [0, 3], 3: [11]}

    def build(scope: ps.Scope) -> ps.Capture[Any]:
        first = share(scope, [(epoch, node) for epoch, nodes in starts.items() for node in nodes])
        with scope.iterative() as inner:
            handle, again = inner.loop_variable()
            entered = first.delay(lambda r, _: r[0]).map(lambda r: r[1]).enter(inner)
            reached = entered.concat(again).key_by(lambda node: node).dedup()
            reached.flat_map(lambda node: steps[node]).connect_loop(handle)
            return reached.capture()

    seen: set[int] = set()
    expected = []
    for epoch, nodes in starts.items():
        turn, front = 0, set(nodes) - seen
        while front:
            expected += [((epoch, turn), node) for node in front]
            seen |= front
            turn, front = turn + 1, {other for node in front for other in steps[node]} - seen
    assert merged(run(workers, build)) == results(expected)


@pytest.mark.parametrize("workers", WORKERS)
def test_a_loop_through_a_window_goes_on(workers: int) -> None:
    """The number of records of a window, once more as so many records less one, until there are none."""

    def build(scope: ps.Scope) -> ps.Capture[Any]:
        first = share(scope, [(at, "k") for at in range(8)]).delay(lambda r, _: r[0])
        with scope.iterative() as inner:
            handle, again = inner.loop_variable()
            counts = first.map(lambda r: r[1]).enter(inner).concat(again).key_by(str)
            made = counts.window(ps.Tumbling(4)).count().map(lambda r: r[2])
            made.flat_map(lambda n: ["k"] * (n - 1)).connect_loop(handle)
            return made.capture()

    expected = [((end, turn), 4 - turn) for end in (3, 7) for turn in range(4)]
    assert merged(run(workers, build)) == results(expected)


def test_a_given_state_is_refused() -> None:
    def build(scope: ps.Scope) -> None:
        with scope.iterative() as inner:
            numbers = scope.to_stream([1]).enter(inner).key_by(str)
            numbers.scan(lambda _, n, most: max(most, n), default=int, state=ps.KeyedState())

    with pytest.raises(ps.GraphError, match=r"takes no state=.* have 2 coordinates"):
        ps.example(build)


# ------------------------------------------------------------ windows of a number of records


def sums_of_two(records: ps.Stream[int]) -> ps.Stream[int]:
    return records.key_by(lambda _: "k").window(ps.Count(2)).sum().map(lambda r: r[2])


@pytest.mark.parametrize("workers", WORKERS)
def test_a_counted_window_in_a_loop_has_the_records_of_a_turn(workers: int) -> None:
    """Adds up two numbers at a time, turn by turn, until they are large: the last of a turn is alone."""

    def build(scope: ps.Scope) -> ps.Capture[Any]:
        with scope.iterative() as inner:
            handle, again = inner.loop_variable()
            made = sums_of_two(share(scope, [1] * 5).enter(inner).concat(again))
            made.filter(lambda n: 1 < n < 4).connect_loop(handle)
            return made.capture()

    expected = [((0, 0), 2), ((0, 0), 2), ((0, 0), 1), ((0, 1), 4)]
    assert merged(run(workers, build)) == results(expected)


def test_a_counted_window_whose_input_waits_for_it_is_refused() -> None:
    def records(scope: ps.Scope) -> None:
        handle, again = scope.feedback(1)
        sums_of_two(scope.to_stream([1]).concat(again)).connect_loop(handle)

    def columns(scope: ps.Scope) -> None:
        schema = pa.schema([("at", pa.int64()), ("n", pa.int64())])
        handle, again = scope.feedback(1, schema=schema)
        rows, _ = scope.to_stream([(0, 1)]).to_arrow(schema).concat(again).event_time("at")
        sums = rows.window(ps.Count(2), [], n=ps.col("n").sum())
        sums.select(at=ps.col("window_start"), n=ps.col("n")).connect_loop(handle)

    for build in (records, columns):
        message = r"operator 'window|sum' \(made at .*\) is in a loop, which would never end: .*iterative\(\)"
        with pytest.raises(ps.GraphError, match=message):
            ps.example(build)


def test_a_counted_window_beside_a_loop_is_not_refused() -> None:
    def build(scope: ps.Scope) -> ps.Capture[Any]:
        handle, again = scope.feedback(1)
        each = scope.to_stream([3]).concat(again)
        each.map(lambda n: n - 1).filter(lambda n: n > 0).connect_loop(handle)
        return sums_of_two(each).capture()

    assert ps.example(build).extract() == [(1, [5]), (2, [1])]
