"""Keyed state compared with loops over sorted events: results, kept and forgotten keys, and snapshots."""

from __future__ import annotations

import tracemalloc
from collections import Counter
from collections.abc import Callable
from functools import partial
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import pointstamp as ps
from effort import examples
from event_data import Event, by_key, collected, events, timely
from harness import WORKERS, run
from pointstamp.event_time.clock import Clock
from pointstamp.expr.reducers import Counting
from pointstamp.logic.arrivals import Arrivals
from pointstamp.logic.assigning import assigner
from pointstamp.logic.timed_rows import Results, Rows


def on_workers(test: Callable[..., None]) -> Any:
    return pytest.mark.parametrize("workers", WORKERS)(settings(max_examples=examples(12))(test))


def keyed(stream: ps.Stream[Event]) -> ps.KeyedStream[str, int]:
    return stream.key_by(lambda event: event.key, lambda event: event.at)


def alive(data: list[Event], ttl: int | None) -> list[tuple[Event, list[Event]]]:
    """Each event of a key with those before it, since the key was last silent for `ttl`."""
    found: list[tuple[Event, list[Event]]] = []
    for event in data:
        before = [*found[-1][1], found[-1][0]] if found else []
        if before and ttl is not None and event.at - before[-1].at >= ttl:
            before = []
        found.append((event, before))
    return found


@on_workers
@given(data=events(), ttl=st.none() | st.integers(1, 20))
def test_scan(workers: int, data: list[Event], ttl: int | None) -> None:
    found = collected(
        workers, data, lambda stream: keyed(stream).scan(lambda _, b, a: a + b, default=int, ttl=ttl)
    )
    expected = [
        (event.at, (key, event.at + sum(other.at for other in before)))
        for key, mine in by_key(timely(data, workers, False, 5)).items()
        for event, before in alive(mine, ttl)
    ]
    assert Counter(found) == Counter(expected)


@on_workers
@given(data=events(), ttl=st.none() | st.integers(1, 20))
def test_dedup(workers: int, data: list[Event], ttl: int | None) -> None:
    found = collected(workers, data, lambda stream: keyed(stream).dedup(ttl=ttl))
    expected = [
        (event.at, event.at)
        for mine in by_key(timely(data, workers, False, 5)).values()
        for event, before in alive(mine, ttl)
        if not before
    ]
    assert Counter(found) == Counter(expected)


@on_workers
@given(data=events())
def test_state_machine(workers: int, data: list[Event]) -> None:
    def one(key: str, at: int, seen: int) -> tuple[int | None, list[Any]]:
        seen += 1
        return (None if seen == 3 else seen), [(key, (at, seen))]

    def two(key: str, at: int, seen: int) -> tuple[int | None, list[Any]]:
        return one(key, at, seen)[0], [(key, at)] * 2

    found = collected(workers, data, lambda stream: keyed(stream).state_machine(one, default=int))
    flat = collected(workers, data, lambda stream: keyed(stream).state_machine(two, default=int))
    on_time = by_key(timely(data, workers, False, 5))
    expected = [(e.at, (key, (e.at, n % 3 + 1))) for key, mine in on_time.items() for n, e in enumerate(mine)]
    assert Counter(found) == Counter(expected)
    assert Counter(flat) == Counter((e.at, (key, e.at)) for key, mine in on_time.items() for e in mine * 2)


@on_workers
@given(data=events())
def test_top_k(workers: int, data: list[Event]) -> None:
    found = collected(
        workers, data, lambda stream: stream.key_by(lambda e: e.key, lambda e: e.value).top_k_so_far(2)
    )
    expected: list[Any] = []
    for key, mine in by_key(timely(data, workers, False, 5)).items():
        before: list[int] = []
        for at in sorted({event.at for event in mine}):
            top = sorted((event.value for event in mine if event.at <= at), reverse=True)[:2]
            if top != before:
                expected.append((at, (key, top)))
            before = top
    assert sorted(found, key=repr) == sorted(expected, key=repr)


@on_workers
@given(data=events())
def test_reduce_and_aggregate_are_per_time(workers: int, data: list[Event]) -> None:
    def values(stream: ps.Stream[Event]) -> ps.KeyedStream[str, int]:
        return stream.key_by(lambda event: event.key, lambda event: event.value)

    reduced = collected(workers, data, lambda stream: values(stream).reduce(max))
    folded = collected(
        workers, data, lambda stream: values(stream).aggregate(lambda k, _, n: n + 1, default=int)
    )
    groups: dict[Any, list[int]] = {}
    for event in timely(data, workers, False, 5):
        groups.setdefault((event.at, event.key), []).append(event.value)
    assert dict.fromkeys(reduced) == dict.fromkeys(
        sorted(
            ((at, (key, max(inside))) for (at, key), inside in groups.items()),
            key=lambda r: (r[0], repr(r[1])),
        )
    )
    assert Counter(folded) == Counter((at, (key, len(inside))) for (at, key), inside in groups.items())


@on_workers
@given(data=events(), silence=st.integers(1, 15))
def test_timers(workers: int, data: list[Event], silence: int) -> None:
    """A key that is silent for so long is reported once."""

    def heard(context: Any, at: int) -> None:
        if context.state is not None:
            context.cancel_timer(context.state + silence)
        context.state = at
        context.set_timer(at + silence)

    def silent(context: Any) -> None:
        context.emit((context.key, context.state))
        context.state = None

    found = collected(workers, data, lambda stream: keyed(stream).process(heard, silent))
    expected = []
    for key, mine in by_key(timely(data, workers, False, 5)).items():
        for event, following in zip(mine, [*mine[1:], None], strict=True):
            if following is None or following.at >= event.at + silence:
                expected.append((event.at + silence, (key, event.at)))
    assert sorted(found) == sorted(expected)


def test_timers_that_cannot_be_are_refused() -> None:
    def build(set_timer: Any, on_timer: Any) -> Any:
        return lambda scope: scope.to_stream([1]).key_by(lambda x: x).process(set_timer, on_timer).capture()

    with pytest.raises(ps.TimeError, match="a timer for 0 is not after 0"):
        ps.example(build(lambda context, _: context.set_timer(0), lambda _: None))
    with pytest.raises(TypeError, match="process has no on_timer"):
        ps.example(build(lambda context, _: context.set_timer(5), None))


@pytest.mark.parametrize("workers", WORKERS)
def test_state_is_listed_written_and_read_by_other_workers(workers: int) -> None:
    def counted(words: list[str], snapshots: list[bytes], peers: int) -> list[tuple[dict[str, int], bytes]]:
        def main(worker: ps.Worker) -> Any:
            state: ps.KeyedState[str, int] = ps.KeyedState.restore(
                snapshots, index=worker.index, peers=worker.peers
            )
            with worker.dataflow() as scope:
                mine = scope.to_stream(words[worker.index :: worker.peers])
                mine.key_by(lambda word: word).scan(lambda _key, _, n: n + 1, default=int, state=state)
            worker.run()
            return dict(state.items()), state.snapshot()

        return ps.execute(main, workers=peers)

    first = counted(["a", "b", "a", "c", "d"], [], 2)
    second = counted(["a", "e"], [snapshot for _, snapshot in first], workers)
    totals: dict[str, int] = {}
    for states, _ in second:
        assert not totals.keys() & states.keys()
        totals |= states
    assert totals == {"a": 3, "b": 1, "c": 1, "d": 1, "e": 1}


def test_a_snapshot_is_of_a_frontier() -> None:
    def main(worker: ps.Worker) -> Any:
        state: ps.KeyedState[int, int] = ps.KeyedState()
        with worker.dataflow() as scope:
            source, stream = scope.new_input()
            on_time, _ = stream.event_time(lambda at: at, lateness=2)
            on_time.key_by(lambda at: at % 2).scan(
                lambda _key, _, n: n + 1, default=int, ttl=100, state=state
            )
        source.send_batch([5, 3, 4, 8])
        source.flush()
        for _ in range(20):
            worker.step()
        found = state.frontier, dict(state.items()), state.snapshot()
        source.close()
        worker.run()
        return *found, state[1], state.get(7), len(state), 0 in state, state.frontier

    [(frontier, states, snapshot, *after)] = ps.execute(main)
    assert (frontier, states) == (6, {1: 2, 0: 1})
    assert after == [2, None, 2, True, None]
    restored = ps.KeyedState.restore([snapshot])
    assert (restored.frontier, dict(restored.items())) == (6, states)
    with pytest.raises(ValueError, match="no operator's yet"):
        ps.KeyedState[int, int]().snapshot()
    with pytest.raises(ps.CodecError):
        ps.KeyedState.restore([b"nothing of ours"])
    from_buffer = ps.KeyedState.restore([bytearray(snapshot)])  # type: ignore[list-item]
    assert dict(from_buffer.items()) == states
    with pytest.raises(TypeError, match=r"the bytes that KeyedState.snapshot returned, not None"):
        ps.KeyedState.restore([None])  # type: ignore[list-item]


def test_a_state_is_one_operators() -> None:
    def build(scope: ps.Scope) -> None:
        state: ps.KeyedState[int, int] = ps.KeyedState()
        stream = scope.to_stream([1]).key_by(lambda x: x)
        stream.scan(lambda _, n, most: max(most, n), default=int, state=state)
        stream.scan(lambda _, n, most: max(most, n), default=int, state=state)

    with pytest.raises(ValueError, match="another operator's already"):
        ps.example(build)


# ------------------------------------------------------------ what is held


@settings(max_examples=examples(100))
@given(
    st.lists(st.tuples(st.lists(st.integers(0, 50), max_size=8), st.integers(0, 60)), max_size=12),
)
def test_arrivals_come_out_in_order(steps: list[tuple[list[int], int]]) -> None:
    arrivals, count = Arrivals(), 0
    waiting: list[Any] = []
    for times, until in sorted(steps, key=lambda step: step[1]):
        new = [(time, "key", count + n) for n, time in enumerate(times)]
        count += len(times)
        values = [value for _, _, value in new]
        one_time = len(set(times)) == 1 and until % 2
        arrivals.add((times[0] if one_time else times, ["key"] * len(times), values))
        waiting = sorted(waiting + new, key=lambda record: record[0])
        final = [record for record in waiting if record[0] < until]
        assert list(arrivals.take(until)) == final
        waiting = waiting[len(final) :]
        assert arrivals.least() == min((record[0] for record in waiting), default=None)
        assert len(arrivals) == len(waiting)
    assert list(arrivals.take(None)) == waiting


@pytest.mark.parametrize("window", [ps.Tumbling(10), ps.Session(gap=10)])
def test_closed_windows_leave_nothing(window: Any) -> None:
    """Memory after a hundred thousand keys is that after the first ten thousand."""
    logic = assigner(window, Counting(), Clock(False), None)

    def feed(first: int, last: int) -> int:
        for at in range(first, last, 100):
            times = [at + n // 10 for n in range(100)]
            logic.run(Rows([(times, list(range(at, at + 100)), [None] * 100)]), at, Results())
        return tracemalloc.get_traced_memory()[0]

    tracemalloc.start()
    try:
        early = feed(0, 10_000)
        late = feed(10_000, 100_000)
    finally:
        tracemalloc.stop()
    assert late < early * 1.5 + 20_000


def test_state_with_time_to_live_is_freed() -> None:
    state: ps.KeyedState[int, int] = ps.KeyedState()

    def build(scope: ps.Scope) -> Any:
        on_time, _ = scope.to_stream(range(20_000)).event_time(lambda at: at)
        return (
            on_time.key_by(lambda at: at)
            .scan(lambda _, n, most: max(most, n), default=int, ttl=50, state=state)
            .probe()
        )

    ps.example(build)
    assert len(state) <= 1100  # what was final at the last frontier
    assert len(state._due) == len(state._seen) == len(state)


def remembered(_key: str, value: str, _state: Any) -> tuple[str | None, list[str]]:
    return (None if value == "drop" else value), []


def dropped_by_process(context: Any, value: str) -> None:
    context.state, _ = remembered(context.key, value, None)


FORGETFUL: dict[str, Callable[..., Any]] = {
    "state_machine": lambda keyed, **given: keyed.state_machine(remembered, default=str, **given),
    "process": lambda keyed, **given: keyed.process(dropped_by_process, **given),
}

Spoken = list[tuple[int, str, str]]


def run_with_ttl(
    name: str, records: Spoken, snapshots: list[bytes], end: int, ttl: int | None = 10
) -> tuple[bytes, Any]:
    """Returns the state at the end, and its snapshot, after resuming from another snapshot."""

    def main(worker: ps.Worker) -> Any:
        state: ps.KeyedState[str, Any] = ps.KeyedState.restore(snapshots)
        source = ps.InputHandle[Any]()
        with worker.dataflow() as scope:
            words = source.to_stream(scope).key_by(lambda record: record[0], lambda record: record[1])
            FORGETFUL[name](words, ttl=ttl, state=state)
        for at, *record in records:
            source.advance_to(at)
            source.send(record)
        source.advance_to(end)
        worker.step_while(lambda: state.frontier != end)
        return state.snapshot(), (dict(state.items()), sorted(state._seen))

    [found] = ps.execute(main)
    return found  # type: ignore[no-any-return]


@pytest.mark.parametrize("name", FORGETFUL)
def test_after_a_snapshot_a_key_that_had_no_state_is_forgotten_too(name: str) -> None:
    """Nothing is left of a key that is silent for its time to live, as in one run."""
    before: Spoken = [(1, "a", "x"), (5, "a", "drop"), (6, "b", "y")]
    snapshot, kept = run_with_ttl(name, before, [], 7)
    assert kept == ({"b": "y"}, ["a", "b"])
    for after in ([], [(8, "a", "y")]):
        last = after[-1][0] if after else 5
        _, kept = run_with_ttl(name, after, [snapshot], last + 9)
        assert "a" in kept[1]
        _, kept = run_with_ttl(name, after, [snapshot], last + 11)
        assert kept == run_with_ttl(name, before + after, [], last + 11)[1] == ({}, [])


def test_what_a_run_without_time_to_live_did_not_see_does_not_count() -> None:
    """The run between does not know the last record of a key: its time begins with the next run."""
    first, _ = run_with_ttl("process", [(1, "a", "x"), (1, "b", "drop")], [], 2)
    second, kept = run_with_ttl("process", [(20, "a", "z")], [first], 21, ttl=None)
    assert kept == ({"a": "z"}, [])
    _, kept = run_with_ttl("process", [(22, "b", "y")], [second], 30)
    assert kept == ({"a": "z", "b": "y"}, ["a", "b"])
    _, kept = run_with_ttl("process", [], [second], 31)
    assert kept == ({}, [])


def test_programs_on_several_workers_agree() -> None:
    def build(scope: ps.Scope) -> Any:
        numbers = scope.to_stream(range(scope.index, 500, scope.peers))
        on_time, _ = numbers.event_time(lambda at: at, lateness=500)
        return (
            on_time.key_by(lambda at: at % 7).scan(lambda _, b, a: a * 31 % 1009 + b, default=int).capture()
        )

    def results(workers: int) -> Counter[Any]:
        return Counter(
            (time, record)
            for capture in run(workers, build)
            for time, records in capture.extract()
            for record in records
        )

    assert results(1) == results(2) == results(4)


def named(stream: ps.Stream[Event], *, name: Any, ttl: int | None) -> ps.Stream[Any]:
    return stream.key_by(lambda event: event.key).running(name, lambda event: event.value, ttl=ttl)


@on_workers
@given(data=events(), ttl=st.none() | st.integers(1, 20))
def test_running_functions(workers: int, data: list[Event], ttl: int | None) -> None:
    """Each by name is what a scan by a closure is."""
    data = list({(event.at, event.key): event for event in data}.values())
    closures: dict[Any, Callable[[list[int]], Any]] = {
        "count": len,
        "sum": sum,
        "min": min,
        "max": max,
        "mean": lambda values: sum(values) / len(values),
    }
    for name, closure in closures.items():
        found = collected(
            workers,
            data,
            partial(named, name=name, ttl=ttl),
        )
        expected = collected(
            workers,
            data,
            lambda stream: stream.key_by(lambda event: event.key, lambda event: event.value).scan(
                lambda _, value, values: [*values, value], default=list, ttl=ttl
            ),
        )
        assert found == sorted(
            ((time, (key, closure(values))) for time, (key, values) in expected),
            key=lambda result: (result[0], repr(result[1])),
        )


def test_a_running_function_has_a_name() -> None:
    with pytest.raises(ValueError, match="one of count, sum, min, max, mean"):
        ps.example(lambda scope: scope.to_stream([1]).key_by(lambda n: n).running("median"))  # type: ignore[arg-type]


@pytest.mark.parametrize("returned", [None, 5, "ab", (1,), (1, 2, 3), {"state": 1, "result": 2}])
def test_state_machine_returns_a_pair(returned: Any) -> None:
    def build(scope: ps.Scope) -> Any:
        by_key = scope.to_stream([1]).key_by(lambda n: n)
        return by_key.state_machine(lambda k, n, s: returned, default=int).probe()

    with pytest.raises(TypeError, match=r"function of state_machine, .*, must return \(state, outputs\)"):
        ps.example(build)
