"""Captures of collections, and replays of pipes that have to be let go of."""

import io
import os
import threading
from collections import Counter
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import pointstamp as ps
from harness import run, share
from pointstamp.capture import Progress

COUNTED = [("word", pa.string()), ("count", pa.int64())]
TIMES = {False: pa.uint64(), True: pa.list_(pa.field("item", pa.uint64(), False), 2)}


def reader(path: Any) -> ps.EventReader:
    return ps.EventReader(path, allow_pickle=True)


def mine(scope: ps.Scope, captures: list[Any]) -> list[Any]:
    return captures[scope.index :: scope.peers]


def numbers(scope: ps.Scope) -> ps.Stream[int]:
    return share(scope, range(30)).delay(lambda x, _: x % 5)


@pytest.mark.parametrize("readers", [1, 3])
@pytest.mark.parametrize("writers", [1, 2])
def test_a_collection_and_back(writers: int, readers: int, tmp_path: Path) -> None:
    """Updates of several times come in one batch, and each is captured at its own."""
    paths = [tmp_path / f"{n}.events" for n in range(writers)]

    def write(worker: ps.Worker) -> Any:
        with worker.dataflow() as scope:
            given, words = scope.new_collection()
            squares = words.map(lambda n: n % 7).distinct()
            squares.capture_into(ps.EventWriter(paths[worker.index]))
            kept = squares.capture()
        for round_ in range(5):
            given.advance_to(round_)
            for n in range(worker.index, 10, worker.peers):
                given.insert(n * round_)
                if round_:
                    given.remove(n * (round_ - 1))
        given.close()
        worker.run()
        return kept

    def read(scope: ps.Scope) -> Any:
        pairs = scope.replay([reader(path) for path in mine(scope, paths)])
        return pairs.to_collection(diffs=True).consolidate().capture()

    def said(captures: list[Any]) -> Any:
        totals: Counter[Any] = Counter()
        for capture in captures:
            for time, updates in capture.extract():
                for record, diff in updates:
                    totals[time, record] += diff
        return {key: diff for key, diff in totals.items() if diff}

    written = said(ps.execute(write, workers=writers))
    assert written
    assert said(run(readers, read)) == written


@pytest.mark.parametrize("loop", [False, True])
@pytest.mark.parametrize(("writers", "readers"), [(1, 3), (2, 1)])
def test_a_collection_of_columns_and_back(writers: int, readers: int, loop: bool, tmp_path: Path) -> None:
    """It needs no trust, and has the times of a loop where it is inside of one."""
    paths = [tmp_path / f"{n}.events" for n in range(writers)]
    schema = pa.schema([("word", pa.string()), ("n", pa.int64())])

    def build(worker: ps.Worker, scope: ps.Scope) -> tuple[ps.ColumnInput, Any]:
        given, rows = scope.new_collection(schema=schema)
        kept: Any = None

        def inside(rows: ps.ColumnCollection) -> Any:
            counts = rows.count("word")
            counts.capture_into(ps.EventWriter(paths[worker.index]))
            return counts.capture()

        if not loop:
            return given, inside(rows)
        with scope.iterative() as inner:
            kept = inside(rows.enter(inner))
        return given, kept

    def write(worker: ps.Worker) -> Any:
        with worker.dataflow() as scope:
            given, kept = build(worker, scope)
        for round_ in range(4):
            given.advance_to(round_)
            rows = [{"word": f"w{n % 3}", "n": n} for n in range(worker.index, 10, worker.peers)]
            batch = pa.RecordBatch.from_pylist(rows, schema)
            given.update(batch, 2 if round_ % 2 == 0 else -1)
        given.close()
        worker.run()
        return kept

    def read(scope: ps.Scope) -> Any:
        captured = [ps.EventReader(path) for path in mine(scope, paths)]
        changes = [pa.field("time", TIMES[loop], False), pa.field("diff", pa.int64(), False)]
        updates = pa.schema([*COUNTED, *changes])
        with scope.scoped(dims=1) if loop else nullcontext(scope) as inner:
            again = inner.replay(captured, schema=updates).to_collection(diffs=True)
            assert again.schema.names == ["word", "count"]
            return again.capture()

    def said(captures: list[Any]) -> Any:
        totals: Counter[Any] = Counter()
        for capture in captures:
            for time, batch in capture.extract():
                for row in batch.to_pylist():
                    totals[time, row["word"], row["count"]] += row["diff"]
        return {key: diff for key, diff in totals.items() if diff}

    written = said(ps.execute(write, workers=writers))
    assert len(written) > 12
    assert said(run(readers, read)) == written


def test_updates_of_columns_that_are_none_are_refused() -> None:
    schema = pa.schema([("n", pa.int64()), ("time", pa.uint64()), ("diff", pa.int64())])

    def updates(*rows: dict[str, Any], of: pa.Schema = schema) -> Any:
        def build(scope: ps.Scope) -> Any:
            stream = scope.to_stream(rows).delay(lambda row, _: row.get("at", 0))
            columns = stream.map(lambda row: {k: v for k, v in row.items() if k != "at"}).to_arrow(of)
            return columns.to_collection(diffs=True).capture()

        return ps.example(build).extract()

    assert len(updates({"n": 1, "time": 3, "diff": 2}, {"n": 1, "time": 3, "diff": 0})) == 1
    with pytest.raises(ps.TimeError, match="is early"):
        updates({"n": 1, "time": 3, "diff": 1, "at": 4})
    with pytest.raises(ps.TimeError, match="has a null"):
        updates({"n": 1, "time": 3, "diff": None})
    with pytest.raises(ps.GraphError, match="'time' of type UInt64"):
        updates({"n": 1, "time": 3}, of=pa.schema([("n", pa.int64()), ("time", pa.uint64())]))


def test_a_pipe_that_is_buffered_is_let_go_of_at_once() -> None:
    """A part of the pipe was read ahead, and the rest is never written."""
    kept = io.BytesIO()
    ps.example(lambda scope: numbers(scope).capture_into(ps.EventWriter(kept)))
    inward, outward = os.pipe()
    os.write(outward, kept.getvalue()[:-16])
    with open(inward, "rb") as file:
        assert file.peek(1)
        made = reader(file)
        events = iter(made)
        assert isinstance(next(events), Progress)
        threads = [thread for thread in threading.enumerate() if thread.name == "pointstamp reader"]
        made.close()
        assert threads
        assert not any(thread.is_alive() for thread in threads)
    os.close(outward)
