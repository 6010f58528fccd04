"""The operator library against plain Python models: several workers, times of one and of two coordinates."""

import gc
import weakref
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable
from operator import add
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import pointstamp as ps
from effort import examples
from harness import WORKERS, merged, run, share
from pointstamp.order import less_equal

Timed = list[tuple[tuple[int, int], Any]]
"""Records with their times, of which flat programs use the first coordinate."""

TIMES = st.tuples(st.integers(0, 4), st.integers(0, 3))
WORDS = st.sampled_from(["a", "b", "c", 1, 1.0, True, None, ("x", 2)])
PAIRS = st.tuples(st.sampled_from(["k", "l", 3]), st.integers(-5, 5))


def timed(records: st.SearchStrategy[Any]) -> st.SearchStrategy[Timed]:
    return st.lists(st.tuples(TIMES, records), max_size=40)


def at_times(scope: ps.Scope, data: Timed) -> ps.Stream[Any]:
    return share(scope, data).delay(lambda item, _time: item[0][0])


def on_workers(
    workers: int, nested: bool, data: Timed, operator: Callable[[ps.Stream[Any]], ps.Stream[Any]]
) -> dict[ps.Time, Counter[Any]]:
    """Returns the results of an operator, in the root scope or in a scope with a second coordinate."""

    def build(scope: ps.Scope) -> ps.Capture[Any]:
        stream = at_times(scope, data)
        if not nested:
            return operator(stream.map(lambda item: item[1])).capture()
        with scope.iterative() as inner:
            entered = stream.enter_at(inner, lambda item: item[0][1])
            return operator(entered.map(lambda item: item[1])).capture()

    return merged(run(workers, build))


def by_time(data: Timed, nested: bool) -> dict[ps.Time, list[Any]]:
    result: dict[ps.Time, list[Any]] = defaultdict(list)
    for time, record in data:
        result[time if nested else time[0]].append(record)
    return result


def on_all(test: Callable[..., None]) -> Any:
    test = settings(max_examples=examples(15))(test)
    test = pytest.mark.parametrize("nested", [False, True])(test)
    return pytest.mark.parametrize("workers", WORKERS)(test)


@on_all
@given(data=timed(WORDS))
def test_counts(workers: int, nested: bool, data: Timed) -> None:
    expected = {time: Counter(Counter(records).items()) for time, records in by_time(data, nested).items()}
    assert on_workers(workers, nested, data, lambda stream: stream.value_counts()) == expected


@on_all
@given(data=timed(WORDS))
def test_distinct(workers: int, nested: bool, data: Timed) -> None:
    expected = {time: Counter(set(records)) for time, records in by_time(data, nested).items()}
    assert on_workers(workers, nested, data, lambda stream: stream.distinct()) == expected


@on_all
@given(data=timed(WORDS))
def test_count_and_accumulate(workers: int, nested: bool, data: Timed) -> None:
    expected = {time: Counter([len(records)]) for time, records in by_time(data, nested).items()}

    def folded(stream: ps.Stream[Any], **given: Any) -> ps.Stream[int]:
        return stream.accumulate(int, lambda total, batch: total + len(batch), **given)

    assert on_workers(workers, nested, data, lambda stream: stream.count()) == expected
    assert on_workers(workers, nested, data, folded) == expected
    assert on_workers(workers, nested, data, lambda stream: folded(stream, combine=add)) == expected


@on_all
@given(data=timed(PAIRS))
def test_aggregate(workers: int, nested: bool, data: Timed) -> None:
    expected: dict[ps.Time, Counter[Any]] = {}
    for time, records in by_time(data, nested).items():
        sums: dict[Any, int] = defaultdict(int)
        for key, value in records:
            sums[key] += value
        expected[time] = Counter(sums.items())

    def sums_by_key(stream: ps.Stream[Any]) -> ps.Stream[Any]:
        return stream.aggregate(lambda _k, v, s: s + v, lambda k, s: (k, s), default=int)

    assert on_workers(workers, nested, data, sums_by_key) == expected


@on_all
@given(data=timed(PAIRS))
def test_state_machine_applies_values_in_time_order(workers: int, nested: bool, data: Timed) -> None:
    data = [(time, (key, time)) for time, (key, _) in data]

    def fold(key: Any, time: Any, seen: tuple[Any, ...]) -> Any:
        return (*seen, time), [(key, time, seen)]

    found = on_workers(workers, nested, data, lambda stream: stream.state_machine(fold, default=tuple))
    times = by_time(data, nested)
    assert {time: Counter((k, t) for k, t, _ in some.elements()) for time, some in found.items()} == {
        time: Counter(records) for time, records in times.items()
    }
    for at, results in found.items():
        for key, _, seen in results:
            before = [t if nested else t[0] for t in seen]
            for time, records in times.items():
                values = sum(k == key for k, _ in records)
                if time != at and less_equal(time, at):
                    assert before.count(time) == values, "all that is earlier was applied"
                elif time != at and less_equal(at, time):
                    assert time not in before, "nothing that is later was"


@pytest.mark.parametrize("by_key", [False, True])
@pytest.mark.parametrize("how", ["inner", "left", "right", "full", "semi", "anti"])
@on_all
@given(data=timed(st.tuples(st.sampled_from(["k", None, float("nan")]), st.integers(0, 3), st.booleans())))
def test_join_per_time(workers: int, nested: bool, data: Timed, how: Any, by_key: bool) -> None:
    """None and NaN equal themselves as keys."""
    data = [(time, (repr(key), value, ours)) for time, (key, value, ours) in data]
    expected: dict[ps.Time, Counter[Any]] = defaultdict(Counter)
    for time, records in by_time(data, nested).items():
        ours = [(key, value) for key, value, left in records if left]
        theirs = [(key, value) for key, value, left in records if not left]
        some: list[Any] = [(key, a, b) for key, a in ours for other, b in theirs if key == other]
        if how in {"semi", "anti"}:
            some = [(key, a) for key, a in ours if (key in dict(theirs)) == (how == "semi")]
        if how in {"left", "full"}:
            some += [(key, a, None) for key, a in ours if key not in dict(theirs)]
        if how in {"right", "full"}:
            some += [(key, None, b) for key, b in theirs if key not in dict(ours)]
        if some:
            expected[time].update(some)
    keys = {repr(key): key for key in ("k", None, float("nan"))}

    def joined(stream: ps.Stream[Any], fn: Any) -> ps.Stream[Any]:
        no, yes = stream.branch(lambda _, record: record[2])
        if by_key:
            ours, theirs = (side.key_by(lambda r: keys[r[0]], lambda r: r[1]) for side in (yes, no))
            return ours.join(theirs, fn, how=how)
        left, right = (side.map(lambda r: (keys[r[0]], r[1])) for side in (yes, no))
        return left.join(right, fn, how=how)

    def flat(stream: ps.Stream[Any]) -> ps.Stream[Any]:
        if how in {"semi", "anti"}:
            return joined(stream, None).map(lambda r: (repr(r[0]), r[1]))
        return joined(stream, None).map(lambda r: (repr(r[0]), *r[1]))

    assert on_workers(workers, nested, data, flat) == expected
    if how in {"semi", "anti"}:
        with pytest.raises(TypeError, match=f"how='{how}' makes no pairs for fn: leave fn out"):
            on_workers(workers, nested, data, lambda s: joined(s, lambda *pair: pair))
    else:
        made = on_workers(workers, nested, data, lambda s: joined(s, lambda k, a, b: (repr(k), a, b)))
        assert made == expected


@pytest.mark.parametrize("workers", WORKERS)
@settings(max_examples=examples(15))
@given(steps=st.dictionaries(st.integers(0, 12), st.sampled_from([1, 2, None])))
def test_state_machine_forgets_keys(workers: int, steps: dict[int, int | None]) -> None:
    def fold(_key: str, value: int | None, total: int) -> Any:
        return (None, ["gone"]) if value is None else (total + value, [total + value])

    data = [((time, 0), ("key", value)) for time, value in steps.items()]
    expected: dict[ps.Time, Counter[Any]] = {}
    total = 0
    for time, value in sorted(steps.items()):
        total = 0 if value is None else total + value
        expected[time] = Counter(["gone" if value is None else total])
    found = on_workers(workers, False, data, lambda stream: stream.state_machine(fold, default=int))
    assert found == expected


@on_all
@given(data=timed(st.integers()), ticks=st.lists(TIMES, max_size=6))
def test_reclock(workers: int, nested: bool, data: Timed, ticks: list[tuple[int, int]]) -> None:
    data = [(time, (i, time)) for i, (time, _) in enumerate(data)]

    def build(scope: ps.Scope) -> ps.Capture[Any]:
        stream = at_times(scope, data)
        if not nested:
            ticking = at_times(scope, [(tick, None) for tick in ticks]).broadcast()
            return stream.map(lambda item: item[1]).reclock(ticking).capture()
        with scope.iterative() as inner:
            entered = stream.enter_at(inner, lambda item: item[0][1]).map(lambda item: item[1])
            ticking = at_times(scope, [(tick, None) for tick in ticks]).enter_at(
                inner, lambda item: item[0][1]
            )
            return entered.reclock(ticking.broadcast()).capture()

    found = merged(run(workers, build))
    clock = {tick if nested else tick[0] for tick in ticks}
    released = {record: at for at, some in found.items() for record in some.elements()}
    assert sum(some.total() for some in found.values()) == len(released), "no record comes twice"
    for _, record in data:
        time = record[1] if nested else record[1][0]
        later = [tick for tick in clock if less_equal(time, tick)]
        if later:
            assert released[record] in later
            assert nested or released[record] == min(later)
        else:
            assert record not in released


@on_all
@given(data=timed(st.integers(0, 3)))
def test_delay_and_delay_batch(workers: int, nested: bool, data: Timed) -> None:
    data = [(time, (time, wait)) for time, wait in data]

    def later(time: ps.Time, wait: int) -> ps.Time:
        return time + wait if isinstance(time, int) else (time[0] + wait % 2, time[1] + wait)

    moved: dict[ps.Time, Counter[Any]] = defaultdict(Counter)
    rounded: dict[ps.Time, Counter[Any]] = defaultdict(Counter)
    for time, records in by_time(data, nested).items():
        for record in records:
            moved[later(time, record[1])][record] += 1
            rounded[later(time, 2)][record] += 1
    assert on_workers(workers, nested, data, lambda s: s.delay(lambda r, t: later(t, r[1]))) == moved
    assert on_workers(workers, nested, data, lambda s: s.delay_batch(lambda t: later(t, 2))) == rounded


def test_delay_waits_for_nothing() -> None:
    def main(worker: ps.Worker) -> None:
        handle: ps.InputHandle[int] = ps.InputHandle()
        seen: list[tuple[ps.Time, list[int]]] = []
        with worker.dataflow() as scope:
            delayed = handle.to_stream(scope).delay(lambda x, _: x).delay_batch(lambda time: time)
            delayed.inspect_batch(lambda time, batch: seen.append((time, batch)))
        handle.send_batch([5, 7, 5])
        worker.step_while(lambda: len(seen) < 2)
        assert seen == [(5, [5, 5]), (7, [7])], "the input is still at time 0"

    ps.execute(main)


class Word(str):
    """A string that can be watched."""


def sums(stream: ps.Stream[Any]) -> ps.Stream[Any]:
    return stream.map(lambda x: (x, x)).aggregate(lambda *_: 0, lambda *_: 0, default=int)


def forgetful(stream: ps.Stream[Any]) -> ps.Stream[Any]:
    return stream.map(lambda x: (x, x)).state_machine(lambda *_: (None, []), default=int)


def collected(stream: ps.Stream[Any]) -> ps.Stream[Any]:
    return stream.accumulate(list, lambda all, batch: all + batch)


def stopped_clock(stream: ps.Stream[Any]) -> ps.Stream[Any]:
    return stream.reclock(stream.scope.empty())


@pytest.mark.parametrize("workers", WORKERS[:2])
@pytest.mark.parametrize(
    "operator",
    [
        lambda s: s.value_counts(),
        lambda s: s.distinct(),
        lambda s: s.count(),
        lambda s: s.delay(lambda _, t: t),
        collected,
        sums,
        forgetful,
        stopped_clock,
        lambda s: s.reclock(s),
    ],
)
def test_what_is_kept_for_a_time_goes_when_it_closes(workers: int, operator: Any) -> None:
    def main(worker: ps.Worker) -> None:
        handle: ps.InputHandle[Word] = ps.InputHandle()
        with worker.dataflow() as scope:
            probe = operator(handle.to_stream(scope)).probe()
        for time in range(3):
            words = [Word(f"{worker.index} {time} {i % 2}") for i in range(4)]
            watched = [weakref.ref(word) for word in words]
            handle.send_batch(words)
            del words
            handle.advance_to(time + 1)
            worker.step_while(lambda: probe.less_equal(time))  # runs before the next round
            worker.barrier()  # no other worker is in the middle of something
            worker.step()
            gc.collect()
            assert [ref() for ref in watched] == [None] * 4

    ps.execute(main, workers=workers)


def test_counts_of_many_distinct_records_are_sent_before_the_time_closes() -> None:
    """More distinct records than a sender holds."""
    n = 200_000

    def build(scope: ps.Scope) -> list[int]:
        totals: list[int] = []
        counted = scope.to_stream(range(n)).concat(scope.to_stream(range(n))).value_counts()
        counted.map_batches(lambda batch: [sum(c for _, c in batch), len(batch)]).inspect(totals.append)
        return totals

    assert sum(sum(totals) for totals in run(2, build)) == 2 * 2 * n + n


@pytest.mark.parametrize("workers", WORKERS)
@pytest.mark.parametrize(
    ("records", "operator", "message"),
    [
        ([[1]], lambda s: s.value_counts(), "list"),
        ([[1]], lambda s: s.distinct(), "list"),
        ([range(3)], lambda s: s.value_counts(), "range has no stable hash"),
        ([range(3)], lambda s: s.distinct(), "range has no stable hash"),
        (
            [(range(3), 1)],
            sums_of := lambda s: s.aggregate(max, max, default=int),
            "range has no stable hash",
        ),
        ([7], sums_of, r"aggregate reads records of the form \(key, value\), and got 7"),
        ([(1, 2, 3)], lambda s: s.state_machine(max, default=int), r"state_machine reads .* got \(1, 2, 3\)"),
    ],
)
def test_records_that_cannot_be_keys(
    workers: int, records: Iterable[Any], operator: Any, message: str
) -> None:
    with pytest.raises(TypeError, match=message) as caught:
        run(workers, lambda scope: operator(scope.to_stream(records)).capture())
    (note,) = getattr(caught.value, "__notes__", ["no note"])
    assert any(name in note for name in ("counts", "distinct", "aggregate", "state_machine"))


@pytest.mark.parametrize(
    ("operator", "message"),
    [
        (lambda s: s.delay(lambda _x, _t: 2), "delay would move the record 'x' from time 3 back to 2"),
        (lambda s: s.delay_batch(lambda _t: 2), "delay_batch would move records from time 3 back to 2"),
        (lambda s: s.delay(lambda _x, _t: (4, 4)), "expected 1 coordinate, got 2"),
        (lambda s: s.delay_batch(lambda _t: -1), "negative"),
    ],
)
def test_times_that_cannot_be(operator: Any, message: str) -> None:
    with pytest.raises(ps.TimeError, match=message):
        run(1, lambda scope: operator(scope.to_stream(list("x")).delay(lambda _x, _t: 3)))


@pytest.mark.parametrize("method", ["delay", "delay_batch"])
def test_what_is_no_function_is_refused_where_it_is_given(method: str) -> None:
    with pytest.raises(TypeError, match=f"{method} needs a function, not 3"):
        run(1, lambda scope: getattr(scope.to_stream(list("x")), method)(3))
