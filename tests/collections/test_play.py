"""Changes that bring their times along, beside the same changes fed by hand."""

from __future__ import annotations

import threading
import time as clock
from collections.abc import Iterator
from functools import partial
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import pointstamp as ps
from effort import examples
from harness import WORKERS

Change = tuple[Any, Any, int]

SCHEMA = pa.schema({"key": pa.int64(), "value": pa.string()})

changes_of = st.lists(
    st.tuples(
        st.tuples(st.integers(0, 4), st.sampled_from("abc")),
        st.integers(0, 12),
        st.sampled_from([-2, -1, 1, 3]),
    ),
    max_size=30,
).map(lambda changes: sorted(changes, key=lambda change: change[1]))


def by_hand(handle: Any, changes: list[Change]) -> None:
    for record, time, diff in changes:
        handle.advance_to(time)
        handle.update(record, diff)


def results(pairs: Any) -> list[Any]:
    return [pairs.capture(), pairs.distinct().capture(), pairs.value_counts().capture()]


@pytest.mark.parametrize("workers", WORKERS)
@settings(max_examples=examples(15))
@given(changes=changes_of, how=st.sampled_from(["at once", "probed", "columns", "columns, probed"]))
def test_played_changes_give_what_changes_by_hand_give(workers: int, changes: list[Change], how: str) -> None:
    def main(worker: ps.Worker, played: bool) -> Any:
        columns = "columns" in how
        with worker.dataflow() as scope:
            handle: Any
            if columns:
                handle, rows = scope.new_collection(schema=SCHEMA)
                pairs: Any = rows.to_records()
            else:
                handle, pairs = scope.new_collection()
            captured = results(pairs)
            captured.append(pairs.join(pairs).capture())
            # Each worker brings its own, and all go on to the last time, so that no worker waits for another.
            probe = pairs.join(pairs).probe()
        mine = changes[worker.index :: worker.peers]
        watched = probe if "probed" in how and worker.peers == 1 else None
        if not played and columns:
            for (key, value), time, diff in mine:
                handle.advance_to(time)
                handle.update(pa.table({"key": [key], "value": [value]}), diff)
        elif not played:
            by_hand(handle, mine)
        elif columns:
            table = pa.table(
                {
                    "key": pa.array([record[0] for record, _, _ in mine], pa.int64()),
                    "value": pa.array([record[1] for record, _, _ in mine], pa.string()),
                    "diff": pa.array([diff for *_, diff in mine], pa.int8()),
                    "time": pa.array([time for _, time, _ in mine], pa.uint64()),
                }
            )
            handle.play(table, probe=watched)
        else:
            handle.play(iter(mine), probe=watched)
        assert handle.time == (mine[-1][1] if mine else 0)
        handle.close()
        worker.run()
        return [each.extract() for each in captured]

    played, fed = (ps.execute(partial(main, played=played), workers=workers) for played in (True, False))
    assert played == fed


def test_each_time_passes_the_probe_before_the_next() -> None:
    def main(worker: ps.Worker) -> list[Any]:
        log: list[Any] = []

        def changes() -> Iterator[tuple[str, int, int]]:
            for time in range(0, 10, 2):
                log.append(time)
                yield "tick", time, 1

        with worker.dataflow() as scope:
            handle, words = scope.new_collection()
            counts = words.value_counts().inspect(lambda record, time, diff: log.append((time, record, diff)))
            probe = counts.probe()
        handle.play(changes(), probe=probe)
        assert not probe.less_than(8)
        assert probe.less_equal(8)
        handle.close()
        worker.run()
        return log

    [log] = ps.execute(main)
    seen = [entry[0] for entry in log if isinstance(entry, tuple)]
    assert seen == sorted(seen)
    # When a time is asked for, what came two before has been seen.
    for time in range(4, 10, 2):
        assert all(entry[0] < time - 2 for entry in log[: log.index(time)] if isinstance(entry, tuple))
        assert (time - 4, ("tick", (time - 2) // 2), 1) in log[: log.index(time)]


def test_what_updates_gives_can_be_played() -> None:
    def main(worker: ps.Worker) -> Any:
        with worker.dataflow() as scope:
            handle, pairs = scope.new_collection()
            written = pairs.value_counts().updates().capture()
        by_hand(handle, [(("a", 1), 0, 1), (("a", 1), 3, 2), (("b", 2), 3, 1), (("a", 1), 9, -3)])
        handle.close()
        worker.run()
        changes = [update for _, updates in written.extract() for update in updates]
        with worker.dataflow() as scope:
            handle, counts = scope.new_collection()
            again = counts.capture()
        handle.play(sorted(changes, key=lambda change: change[1]))
        handle.close()
        worker.run()
        return again.extract()

    assert ps.execute(main) == [
        [
            (0, [((("a", 1), 1), 1)]),
            (3, [((("a", 1), 1), -1), ((("a", 1), 3), 1), ((("b", 2), 1), 1)]),
            (9, [((("a", 1), 3), -1)]),
        ]
    ]


def test_what_column_updates_gives_can_be_played() -> None:
    schema = pa.schema({"n": pa.int64(), "time": pa.int64()})

    def main(worker: ps.Worker) -> Any:
        with worker.dataflow() as scope:
            handle, rows = scope.new_collection(schema=schema)
            written = rows.updates().capture()
        handle.play(pa.table({"n": [5, 6, 7], "time": [1, 1, 4]}), diff=None)  # a column of its own
        handle.close()
        worker.run()
        batches = [batch for _, batches in written.extract() for batch in batches]
        with worker.dataflow() as scope:
            handle, rows = scope.new_collection(schema=schema)
            again = rows.capture()
        for batch in batches:
            assert batch.schema.names == ["n", "time", "time", "diff"]
            handle.play(batch)
        handle.close()
        worker.run()
        return [(time, batch.to_pylist()) for time, batch in again.extract()]

    assert ps.execute(main) == [
        [
            (1, [{"n": 5, "time": 1, "diff": 1}, {"n": 6, "time": 1, "diff": 1}]),
            (4, [{"n": 7, "time": 4, "diff": 1}]),
        ]
    ]


@pytest.mark.parametrize("workers", [1, 2])
def test_updates_are_at_their_own_times_in_the_stream(workers: int) -> None:
    """A sink, which goes by the stream's times, gets the same records in every run."""
    times = range(20)

    def main(worker: ps.Worker) -> Any:
        with worker.dataflow() as scope:
            words, records = scope.new_collection()
            rows, columns = scope.new_collection(schema=pa.schema({"n": pa.int64()}))
            of_records = records.map(lambda n: n % 3).value_counts().updates().capture()
            of_columns = columns.updates().capture()
        if worker.index == 0:
            words.play([(n, n, 1) for n in times])
            rows.play(pa.table({"n": times, "time": times}), diff=None)
        words.close()
        rows.close()
        worker.run()
        found = []
        for time, updates in of_records.extract():
            found += [(time, own) for _, own, _ in updates]
        for time, batches in of_columns.extract():
            found += [(time, own) for batch in batches for own in batch.column(1).to_pylist()]
        return found

    found = [pair for pairs in ps.execute(main, workers=workers) for pair in pairs]
    assert {time for time, _ in found} == set(times)
    assert all(time == own for time, own in found), found


@pytest.mark.parametrize("columns", [False, True])
def test_times_of_several_coordinates(columns: bool) -> None:
    def main(worker: ps.Worker) -> Any:
        with worker.dataflow(dims=2) as scope:
            handle: Any
            if columns:
                handle, rows = scope.new_collection(schema=pa.schema({"n": pa.int64()}))
                captured: Any = rows.to_records().capture()
            else:
                handle, numbers = scope.new_collection()
                captured = numbers.capture()
        if columns:
            times = pa.array([[0, 1], [2, 1], [2, 5]], pa.list_(pa.uint32(), 2)).slice(1)
            handle.play(pa.table({"n": [8, 9], "at": times}), time="at", diff=None)
        else:
            handle.play([((8,), (2, 1), 1), ((9,), (2, 5), 1)])
        with pytest.raises(ps.TimeError, match=r"order of their times|too late"):
            if columns:
                handle.play(
                    pa.table({"n": [1], "time": pa.array([[3, 4]], pa.list_(pa.int64(), 2))}), diff=None
                )
            else:
                handle.play([((1,), (3, 4), 1)])
        handle.close()
        worker.run()
        return captured.extract()

    assert ps.execute(main) == [[((2, 1), [((8,), 1)]), ((2, 5), [((9,), 1)])]]


def test_what_play_refuses_leaves_the_changes_before() -> None:
    wrong: list[tuple[Any, type[Exception], str]] = [
        (("c", 4, 1), ps.TimeError, "after one at 5: play takes changes in the order of their times"),
        (("c", 5), TypeError, r"not a change with its time: it is a triple \(record, time, diff\)"),
        ("abc", TypeError, "is a triple"),
        (([], 6, 1), TypeError, "list"),
        (("c", -6, 1), ps.TimeError, "negative"),
        (("c", (6, 1), 1), ps.TimeError, "coordinate"),
        (("c", "6", 1), TypeError, "time"),
        (("c", 6, 0), ValueError, "diff 0"),
        (("c", 6, 1.5), TypeError, "diff"),
    ]

    def main(worker: ps.Worker) -> None:
        for change, kind, message in wrong:
            with worker.dataflow() as scope:
                handle, words = scope.new_collection()
                captured = words.capture()
            with pytest.raises(kind, match=message):
                handle.play([("a", 2, 1), ("b", 5, 1), change, ("d", 7, 1)])
            assert handle.time == 5
            with pytest.raises(ps.TimeError, match="comes too late: the input is at 5"):
                handle.play([("a", 2, 1)])
            handle.close()
            worker.run()
            assert captured.extract() == [(2, [("a", 1)]), (5, [("b", 1)])]
            with pytest.raises(ps.PointstampError, match="closed"):
                handle.play([])

    ps.execute(main)


def test_what_play_of_columns_refuses() -> None:
    def table(**columns: Any) -> pa.Table:
        return pa.table({"key": [1], "value": ["a"], "time": [0], "diff": [1]} | columns)

    def main(worker: ps.Worker) -> None:
        with worker.dataflow() as scope:
            handle, rows = scope.new_collection(schema=SCHEMA)
            captured = rows.capture()
        wrong: list[tuple[Any, dict[str, Any], type[Exception], str]] = [
            (
                table().drop(["time"]),
                {},
                TypeError,
                "no column 'time' with the time of each change, only key, value, diff",
            ),
            (table().drop(["diff"]), {}, TypeError, "no column 'diff'.*diff=None"),
            (table(), {"diff": None}, TypeError, "diff"),  # a column too many
            (table(time=[0.5]), {}, TypeError, "of the times, is of type Float64"),
            (table(time=pa.array([None], pa.int64())), {}, TypeError, "nulls"),
            (table(diff=["x"]), {}, TypeError, "of the diffs, is of type"),
            (table(diff=[0]), {}, ValueError, "diff 0"),
            (table(time=[-1]), {}, ps.TimeError, "-1 is not a time"),
            (table(diff=pa.array([2**63], pa.uint64())), {}, ValueError, "64 bits"),
            (table(key=["x"]), {}, TypeError, "key"),
            (7, {}, TypeError, "7|int"),
        ]
        for data, options, kind, message in wrong:
            with pytest.raises(kind, match=message):
                handle.play(data, **options)
        handle.play(table(time=pa.array([2**64 - 2], pa.uint64())))
        handle.close()
        worker.run()
        assert [time for time, _ in captured.extract()] == [2**64 - 2]

    ps.execute(main)


def test_a_probe_of_other_times_is_refused() -> None:
    def main(worker: ps.Worker) -> None:
        with worker.dataflow() as scope:
            handle, words = scope.new_collection()
            words.probe()
        with worker.dataflow(dims=2) as scope:
            _, others = scope.new_collection()
            probe = others.probe()
        with pytest.raises(ps.TimeError, match="2 coordinates, and the input's have 1"):
            handle.play([("a", 1, 1)], probe=probe)

    ps.execute(main)


def test_what_gives_the_changes_may_use_the_input() -> None:
    def main(worker: ps.Worker) -> Any:
        with worker.dataflow() as scope:
            handle, words = scope.new_collection()
            captured = words.capture()

        def changes() -> Iterator[tuple[str, int, int]]:
            yield "a", 1, 1
            handle.insert("now")  # at the input's time, which has not moved yet
            yield "b", 3, 1
            handle.advance_to(9)
            handle.insert("late")
            yield "c", 4, 1

        with pytest.raises(ps.TimeError, match="times only move forward"):
            handle.play(changes())
        assert handle.time == 9

        def closing() -> Iterator[tuple[str, int, int]]:
            yield "d", 10, 1
            handle.close()
            yield "e", 11, 1

        with pytest.raises(ps.PointstampError, match="closed"):
            handle.play(closing())
        worker.run()
        return captured.extract()

    assert ps.execute(main) == [
        [(0, [("now", 1)]), (1, [("a", 1)]), (3, [("b", 1)]), (9, [("late", 1)]), (10, [("d", 1)])]
    ]


def test_the_input_follows_its_changes() -> None:
    """Complete times can be worked on while a long list is being fed."""

    def main(worker: ps.Worker) -> None:
        with worker.dataflow() as scope:
            handle, pairs = scope.new_collection()
            captured = pairs.distinct().capture()
        changes = [((time % 7, 0), time, 1) for time in range(20_000)]
        changes += [(record, time + 1, -1) for record, time, _ in changes]
        changes.sort(key=lambda change: change[1])
        behind: list[int] = []

        def noted() -> Iterator[tuple[tuple[int, int], int, int]]:
            for change in changes:
                assert isinstance(handle.time, int)
                behind.append(change[1] - handle.time)
                yield change

        handle.play(noted())
        # It is never more than a message's changes behind.
        assert max(behind) <= 4096 // 2 + 1
        handle.close()
        worker.run()
        assert len(captured.extract()) == 20_001

    ps.execute(main)


ROWS = pa.record_batch({"key": [1] * 100, "value": ["a"] * 100}, schema=SCHEMA)
CHANGES = ROWS.append_column("time", pa.array([0] * 100)).append_column("diff", pa.array([1] * 100))


def read(batches: Iterator[pa.RecordBatch], schema: pa.Schema) -> pa.RecordBatchReader:
    return pa.RecordBatchReader.from_batches(schema, batches)


@pytest.mark.parametrize(
    ("given", "most", "feed"),
    [
        ((("a", 1), 1), 10_000_000, lambda handle, given: handle.update_many(given)),
        ((("a", 1), 0, 1), 10_000_000, lambda handle, given: handle.play(given)),
        (ROWS, 100_000, lambda handle, given: handle.insert(read(given, SCHEMA))),
        (CHANGES, 100_000, lambda handle, given: handle.play(read(given, CHANGES.schema))),
    ],
    ids=["update_many", "play", "insert columns", "play columns"],
)
def test_other_threads_run_while_changes_are_fed(given: Any, most: int, feed: Any) -> None:
    """The changes come from C code that keeps the interpreter, and end when another thread sets an event."""

    def main(worker: ps.Worker) -> list[int]:
        with worker.dataflow() as scope:
            handle: Any
            if isinstance(given, pa.RecordBatch):
                handle, _rows = scope.new_collection(schema=SCHEMA)
            else:
                handle, _pairs = scope.new_collection()
        waiting = [None, *([given] * most)]
        left: list[int] = []

        def end() -> None:
            while len(waiting) == most + 1:
                clock.sleep(0.001)
            if waiting:
                left.append(len(waiting))
                waiting.append(None)

        ending = threading.Thread(target=end)
        ending.start()
        feed(handle, iter(waiting.pop, None))
        ending.join()
        handle.close()
        worker.run()
        return left

    # Nothing makes the worker step meanwhile.
    [left] = ps.execute(main, config=ps.Config(high_water=1 << 40))
    assert left
