"""State by key of columns, early results of their windows, and snapshots: beside records and brute force."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import pointstamp as ps
from aggregates import named
from columns import canonical
from effort import examples
from event_data import Event, by_key, events, shares, timely
from harness import WORKERS, run

SCHEMA = pa.schema([("at", pa.int64()), ("key", pa.string()), ("value", pa.int64())])
FUNCTIONS = ["count", "sum", "min", "max", "mean"]


def on_workers(test: Callable[..., None]) -> Any:
    return pytest.mark.parametrize("workers", WORKERS)(settings(max_examples=examples(12))(test))


def found(
    workers: int, data: list[Event], idle: bool, program: Callable[[ps.ArrowStream], ps.ArrowStream]
) -> list[tuple[Any, ...]]:
    """Each result's time and columns."""

    def build(scope: ps.Scope) -> Any:
        mine = scope.to_stream(shares(data, workers, idle)[scope.index])
        rows = mine.map_batches(lambda batch: [tuple(event) for event in batch]).to_arrow(SCHEMA)
        return program(rows.event_time("at", lateness=5)[0]).to_records().capture()

    return [
        (time, *row.values())
        for capture in run(workers, build)
        for time, rows in capture.extract()
        for row in rows
    ]


def told_apart(data: list[Event]) -> list[Event]:
    """One event of each key and time: rows of one time come in no order from several workers."""
    return list({(event.at, event.key): event for event in data}.values())


@on_workers
@given(data=events(), idle=st.booleans(), ttl=st.none() | st.integers(1, 20))
def test_running_functions(workers: int, data: list[Event], idle: bool, ttl: int | None) -> None:
    data = told_apart(data)
    results = found(
        workers,
        data,
        idle,
        lambda rows: rows.running("key", **named(("value", f) for f in FUNCTIONS), ttl=ttl),
    )
    expected: list[Any] = []
    for rows in by_key(timely(data, workers, idle, 5)).values():
        kept: list[Event] = []
        for event in rows:
            if ttl is not None and kept and event.at - kept[-1].at >= ttl:
                kept = []
            kept.append(event)
            v = [event.value for event in kept]
            expected.append((event.at, *event, len(v), sum(v), min(v), max(v), sum(v) / len(v)))
    assert Counter(map(canonical, results)) == Counter(map(canonical, expected))


@on_workers
@given(data=events(), idle=st.booleans(), ttl=st.none() | st.integers(1, 20))
def test_dedup(workers: int, data: list[Event], idle: bool, ttl: int | None) -> None:
    data = told_apart(data)
    results = found(workers, data, idle, lambda rows: rows.dedup("key", ttl=ttl))
    expected: list[Any] = []
    for rows in by_key(timely(data, workers, idle, 5)).values():
        before: int | None = None
        for event in rows:
            if before is None or (ttl is not None and event.at - before >= ttl):
                expected.append((event.at, *event))
            before = event.at
    assert Counter(results) == Counter(expected)


def test_running_functions_of_any_type() -> None:
    schema = pa.schema(
        [
            ("at", pa.int64()),
            ("key", pa.bool_()),
            ("word", pa.dictionary(pa.int8(), pa.string())),
            ("share", pa.float32()),
            ("big", pa.uint64()),
            ("day", pa.date32()),
        ]
    )
    rows = pa.table(
        {
            "at": [1, 2, 3, 4],
            "key": [None, True, None, None],
            "word": pa.array(["b", "x", None, "a"]).dictionary_encode(),
            "share": pa.array([float("nan"), 1.5, 2.0, 0.5], pa.float32()),
            "big": pa.array([2**64 - 4, 5, 3, None], pa.uint64()),
            "day": pa.array([3, 2, 1, 4], pa.int32()).cast(pa.date32()),
        }
    ).cast(schema)
    wanted = [("word", "min"), ("share", "max"), ("share", "count"), ("big", "sum"), ("day", "max")]

    def ran(start: int, state: Any) -> list[Any]:
        def main(worker: ps.Worker) -> Any:
            source = ps.ArrowInput(schema)
            with worker.dataflow() as scope:
                results = source.to_stream(scope).running("key", **named(wanted), column="at", state=state)
                captured = results.to_records().capture()
            source.send(rows.slice(start))
            source.advance_to(4)
            while len(state) == 0 or state.frontier < 4:
                worker.step()
            snapshots.append(state.snapshot())
            source.close()
            worker.run()
            return [row for _, rows in captured.extract() for row in rows]

        results: list[list[Any]] = ps.execute(main)
        return results[0]

    snapshots: list[bytes] = []
    made = ran(0, ps.KeyedState())
    assert [row["word_min"] for row in made] == ["b", "x", "b", "a"]
    assert str([row["share_max"] for row in made]) == "[nan, 1.5, nan, nan]"
    assert [row["share_count"] for row in made] == [1, 1, 2, 3]
    assert [row["big_sum"] for row in made] == [2**64 - 4, 5, 2**64 - 1, 2**64 - 1]
    assert [row["day_max"].day for row in made] == [4, 3, 4, 5]
    again = ran(3, ps.KeyedState.restore(snapshots))
    assert str(again) == str(made[3:])

    def refused(function: tuple[str, str]) -> None:
        def build(scope: ps.Scope) -> Any:
            return scope.to_stream([]).to_arrow(schema).running("key", **named([function]), column="at")

        ps.example(build)

    with pytest.raises(ps.GraphError, match="'median' is no running aggregate"):
        refused(("big", "median"))
    with pytest.raises(ps.GraphError, match="sum is not defined for column 'word'"):
        refused(("word", "sum"))


@on_workers
@given(
    data=events(),
    idle=st.booleans(),
    length=st.integers(1, 30),
    every=st.integers(1, 30),
    early=st.integers(1, 25),
)
def test_early_results_are_those_of_records(
    workers: int, data: list[Event], idle: bool, length: int, every: int, early: int
) -> None:
    kind: Any = ps.Sliding(length, every=min(length, every))
    columns = found(
        workers,
        data,
        idle,
        lambda rows: rows.window(kind, "key", value_sum=ps.col("value").sum(), early=early),
    )

    def build(scope: ps.Scope) -> Any:
        mine = scope.to_stream(shares(data, workers, idle)[scope.index])
        on_time, _ = mine.event_time(lambda event: event.at, lateness=5)
        keyed = on_time.key_by(lambda event: event.key, lambda event: event.value)
        return keyed.window(kind, early=early).sum().capture()

    expected = [
        (time, key, *window, total)
        for capture in run(workers, build)
        for time, records in capture.extract()
        for key, window, total in records
    ]
    assert Counter(columns) == Counter(expected)


# -------------------------------------------------------------------- snapshots

Program = Callable[[ps.ArrowStream, ps.ArrowStream, Any], ps.ArrowStream]

WANTED = [("value", "sum"), ("value", "max"), ("value", "mean"), ("value", "count")]
TIMES: Any = {"column": "at"}

KEPT = [("value", function) for function in ("list", "first", "last", "nunique", "top_2", "median")]


def kept(kind: Any, early: int | None = None) -> Program:
    return lambda left, _, s: left.window(kind, "key", **named(KEPT), early=early, state=s, **TIMES)


def window_join(kind: Any, how: Any) -> Program:
    return lambda left, right, s: left.window_join(right, "key", kind, how=how, state=s, **TIMES)


PROGRAMS: dict[str, Program] = {
    "kept, tumbling": kept(ps.Tumbling(10, offset=3)),
    "kept, sliding": kept(ps.Sliding(12, every=5)),
    "kept, early": kept(ps.Tumbling(20), early=6),
    "kept, session": kept(ps.Session(gap=6)),
    "kept, count": kept(ps.Count(3)),
    "window join": window_join(ps.Tumbling(9), "inner"),
    "sliding join": window_join(ps.Sliding(12, every=5), "full"),
    "session join": window_join(ps.Session(gap=6), "full"),
    "tumbling": lambda left, _, s: left.window(
        ps.Tumbling(10, offset=3), "key", **named(WANTED), state=s, **TIMES
    ),
    "sliding": lambda left, _, s: left.window(
        ps.Sliding(12, every=5), "key", **named(WANTED), state=s, **TIMES
    ),
    "early": lambda left, _, s: left.window(
        ps.Tumbling(20), "key", **named(WANTED), early=6, state=s, **TIMES
    ),
    "session": lambda left, _, s: left.window(ps.Session(gap=6), "key", **named(WANTED), state=s, **TIMES),
    "count": lambda left, _, s: left.window(ps.Count(3), "key", **named(WANTED), state=s, **TIMES),
    "interval join": lambda left, right, s: left.interval_join(
        right, "key", lower=-4, upper=9, how="full", state=s, **TIMES
    ),
    "as-of join": lambda left, right, s: left.asof_join(right, "key", within=12, state=s, **TIMES),
    "table join": lambda left, right, s: left.table_join(right, "key", how="left", state=s, **TIMES),
    "scan": lambda left, _, s: left.running("key", **named(WANTED), ttl=8, state=s, **TIMES),
    "dedup": lambda left, _, s: left.dedup("key", ttl=5, state=s, **TIMES),
}


def ran(
    program: Program, data: list[Event], workers: int, snapshots: list[bytes], start: int, end: int | None
) -> tuple[Counter[Any], list[bytes]]:
    """Returns the results for the events before `end`, and the state then; all results where it is None."""

    def main(worker: ps.Worker) -> Any:
        state: ps.KeyedState[Any, Any] = ps.KeyedState.restore(
            snapshots, index=worker.index, peers=worker.peers
        )
        sources = [ps.ArrowInput(SCHEMA), ps.ArrowInput(SCHEMA)]
        sent: list[Any] = []
        with worker.dataflow() as scope:
            left, right = (source.to_stream(scope) for source in sources)
            results = program(left, right, state).to_records()
            results.inspect_time(lambda row, time: sent.append((time, repr(row))))
        for source in sources:
            source.advance_to(start)
        for place, event in enumerate(data):
            for source in sources:
                source.advance_to(event.at)
            if place % worker.peers == worker.index:
                sources[event.value % 2].send(pa.Table.from_pylist([event._asdict()], schema=SCHEMA))
        if end is None:
            for source in sources:
                source.close()
            worker.run()
            return sent, b""
        for source in sources:
            source.advance_to(end)
        worker.step_while(lambda: state.frontier != end)
        for _ in range(5):
            worker.step()
        listed = dict(state.items())
        assert len(state) == len(listed)
        assert set(listed) <= set("abcd")
        return list(sent), state.snapshot()

    results = ps.execute(main, workers=workers)
    return Counter(item for sent, _ in results for item in sent), [snapshot for _, snapshot in results]


@pytest.mark.parametrize(("before", "after"), [(1, 1), (2, 1), (1, 2)])
@pytest.mark.parametrize("name", PROGRAMS)
@settings(max_examples=examples(4))
@given(data=st.data())
def test_a_run_goes_on_from_a_snapshot(name: str, before: int, after: int, data: st.DataObject) -> None:
    times = sorted(data.draw(st.lists(st.integers(0, 50), max_size=25)))
    drawn = [Event(at, data.draw(st.sampled_from("aaab")), value) for value, at in enumerate(times)]
    drawn = told_apart(drawn)
    cut = data.draw(st.integers(1, 55))
    program = PROGRAMS[name]
    early, late = ([event for event in drawn if (event.at < cut) == first] for first in (True, False))
    whole, _ = ran(program, drawn, 1, [], 0, None)
    first, snapshots = ran(program, early, before, [], 0, cut)
    second, _ = ran(program, late, after, snapshots, cut, None)
    sent = first + second
    if name.endswith("count"):  # what is left over has the time that the stream ends at
        sent, whole = (Counter(row for _, row in found.elements()) for found in (sent, whole))
    assert sent == whole


def test_a_snapshot_is_of_its_kind_of_operator() -> None:
    rows: list[Any] = []

    def main(worker: ps.Worker) -> bytes:
        state: ps.KeyedState[Any, Any] = ps.KeyedState()
        source = ps.ArrowInput(SCHEMA)
        with worker.dataflow() as scope:
            source.to_stream(scope).running("key", value_max=ps.col("value").max(), column="at", state=state)
        source.send(pa.Table.from_pylist([{"at": 3, "key": "a", "value": 7}], schema=SCHEMA))
        source.close()
        worker.run()
        rows.append(dict(state.items()))
        return state.snapshot()

    [snapshot] = ps.execute(main)
    assert rows == [{"a": {"key": "a", "seen": 3, "value_max": 7}}]

    def other(scope: ps.Scope) -> None:
        state: ps.KeyedState[Any, Any] = ps.KeyedState.restore([snapshot])
        scope.to_stream([("a", 1)]).key_by(lambda pair: pair[0]).asof_join(
            scope.to_stream([("a", 1)]).key_by(lambda pair: pair[0]), state=state
        )

    with pytest.raises(ValueError, match=r"snapshot is of scan of columns.*, and was given to asof_join"):
        ps.example(other)
