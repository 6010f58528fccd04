"""Slow sinks, sources that wait, large backlogs, and mains that block: no deadlock, and bounded memory."""

import json
import threading
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

import pointstamp as ps
from killing import LIMIT, check_folder, rows
from pointstamp.connectors import (
    JSONLinesSource,
    PartitionReader,
    QueueSource,
    Sink,
    SinkWriter,
    Source,
    SQLiteSink,
    outbox,
    reading,
)
from pointstamp.connectors.protocol import Position
from resuming import make_checkpoint, run_until_stopped, settings, stop_at_checkpoint


class Slow(Sink):
    """A target in memory that takes a while for each outbox."""

    positions = True

    def __init__(self, seconds: float) -> None:
        self.seconds = seconds
        self.rows: list[Any] = []
        self.positions_shown: dict[int, Position] = {}

    def open(self, worker: int, workers: int) -> SinkWriter:
        return _SlowWriter(self)


class _SlowWriter(SinkWriter):
    def __init__(self, sink: Slow) -> None:
        self._sink = sink

    def write(self, time: ps.Time, batch: Any) -> None:
        raise AssertionError("rows are given to show")

    def commit(self, time: ps.Time) -> None:
        raise AssertionError("rows are given to show")

    def positions(self) -> list[Position]:
        return list(self._sink.positions_shown.values())

    def show(self, position: Position, rows: Sequence[tuple[ps.Time, Any]]) -> None:
        time.sleep(self._sink.seconds)
        self._sink.rows += [row for _, batch in rows for row in batch]
        self._sink.positions_shown[position.part] = position


@pytest.mark.parametrize("workers", [1, 2])
def test_a_slow_sink_slows_checkpoints_and_nothing_else(tmp_path: Path, workers: int) -> None:
    sink = Slow(0.05)
    with (tmp_path / "in.jsonl").open("w") as file:
        for line in range(20_000):
            file.write(json.dumps({"day": line // 50, "number": line}) + "\n")

    def main(worker: ps.Worker) -> None:
        with worker.dataflow() as scope:
            source = JSONLinesSource(str(tmp_path / "in.jsonl"))
            records = scope.read(source, time=lambda record: record["day"])
            records.map(lambda record: record["number"]).write(sink)

    checkpoint = ps.Checkpoint(tmp_path / "state", every=0.005)
    ps.execute(main, config=ps.Config(workers=workers, checkpoint=checkpoint))
    assert sorted(sink.rows) == list(range(20_000))
    check_folder(tmp_path / "state")


class Many(Source[tuple[int, str]]):
    """Partitions with many rows each, in batches."""

    PARTITIONS, BATCHES, ROWS, LENGTH = 8, 200, 100, 500

    def __init__(self) -> None:
        self.read = 0

    def partitions(self) -> list[str]:
        return [str(number) for number in range(self.PARTITIONS)]

    def open(self, partition: str) -> PartitionReader[tuple[int, str]]:
        return _ManyReader(self)


class _ManyReader(PartitionReader[tuple[int, str]]):
    def __init__(self, source: Many) -> None:
        self._source = source
        self._next = 0

    def read(self) -> list[tuple[int, str]] | None:
        if self._next == Many.BATCHES:
            return None
        self._next += 1
        self._source.read += Many.ROWS
        return [(self._next, "x" * Many.LENGTH) for _ in range(Many.ROWS)]

    @property
    def offset(self) -> int:
        return self._next

    def seek(self, offset: int) -> None:
        self._next = offset


class Stands(Sink):
    """A target that the first worker waits for once, while the other reads on."""

    positions = True

    def __init__(self, source: Many) -> None:
        self.source = source
        self.shown = 0
        self.waiting: int | None = None
        """The rows that were read and not shown, at the end of that time."""

    def open(self, worker: int, workers: int) -> SinkWriter:
        return _StandingWriter(self, worker)


class _StandingWriter(_SlowWriter):
    def __init__(self, sink: Stands, worker: int) -> None:
        self._target = sink
        self._worker = worker

    def positions(self) -> list[Position]:
        return []

    def show(self, position: Position, rows: Sequence[tuple[ps.Time, Any]]) -> None:
        if self._worker == 0 and self._target.waiting is None:
            time.sleep(2)
            self._target.waiting = self._target.source.read - self._target.shown
        self._target.shown += sum(len(batch) for _, batch in rows)


def test_rows_that_wait_for_a_slow_sink_are_bounded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    full = 1 << 20
    monkeypatch.setattr(outbox, "LARGE", full // 2)
    monkeypatch.setattr(outbox, "FULL", full)
    source = Many()
    sink = Stands(source)

    def main(worker: ps.Worker) -> None:
        with worker.dataflow() as scope:
            scope.read(source, time=lambda row: row[0]).write(sink)

    checkpoint = ps.Checkpoint(tmp_path / "state", every=None)
    ps.execute(main, config=ps.Config(workers=2, checkpoint=checkpoint))
    assert sink.shown == source.read == Many.PARTITIONS * Many.BATCHES * Many.ROWS
    # For each worker an outbox and what a run sends to it; and what is read ahead.
    rows = 2 * (full // Many.LENGTH + 2 * reading.RECORDS)
    rows += Many.PARTITIONS * (reading.AHEAD + 2) * Many.ROWS
    assert sink.waiting is not None
    assert sink.waiting < rows < source.read / 4


def test_a_source_that_waits_holds_no_checkpoint_up(tmp_path: Path) -> None:
    queue: QueueSource[int] = QueueSource(journal=True)
    sink = Slow(0)

    def main(worker: ps.Worker) -> list[int]:
        with worker.dataflow() as scope:
            scope.read(queue, every=0.01).write(sink)
        made = []
        for number in range(5):
            if number == 2:
                queue.put(7)
            made.append(make_checkpoint(worker))
        queue.close()
        worker.run()
        return made

    [made] = ps.execute(main, config=settings(tmp_path))
    assert made == sorted(set(made))
    assert sink.rows == [7]


def test_a_main_that_blocks_delays_checkpoints_and_stops_nobody(tmp_path: Path) -> None:
    sink = Slow(0)
    goes_on = threading.Event()

    def main(worker: ps.Worker) -> None:
        with worker.dataflow() as scope:
            scope.to_stream([worker.index]).write(sink)
        if worker.index == 1:
            goes_on.wait(LIMIT)
        else:
            handle = worker.checkpoint()
            end = time.monotonic() + 1.5  # three attempts and more
            worker.step_while(lambda: time.monotonic() < end)
            assert not handle.done
            goes_on.set()
            worker.step_while(lambda: not handle.done)

    checkpoint = ps.Checkpoint(tmp_path / "state", every=0.01)
    ps.execute(main, config=ps.Config(workers=2, checkpoint=checkpoint))
    assert sorted(sink.rows) == [0, 1]


def test_a_large_outbox_is_shown_without_an_interval(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nobody asks for a checkpoint, and results never pause."""
    monkeypatch.setattr(outbox, "QUIET", 1e6)
    monkeypatch.setattr(outbox, "LARGE", 100_000)
    sink = Slow(0)
    text = "x" * 100

    def main(worker: ps.Worker) -> int:
        with worker.dataflow() as scope:
            numbers, stream = scope.new_input()
            stream.write(sink)
        sent = 0
        while not sink.rows and sent < 100_000:
            numbers.send(f"{sent} {text}")
            sent += 1
            numbers.advance_to(sent)
            worker.step()
        return sent

    [sent] = ps.execute(main, config=settings(tmp_path))
    assert 500 < sent < 100_000, "it was shown before it was large, or not until the end"
    assert len(sink.rows) == len(set(sink.rows)) == sent


def test_a_large_backlog_of_a_queue_is_shown_once(tmp_path: Path) -> None:
    sink = Slow(0)
    queue: QueueSource[int] = QueueSource(journal=True)
    count = 100_000

    def feed() -> None:
        for first in range(0, count, 1000):
            queue.put_many(range(first, first + 1000))
        queue.close()

    def main(worker: ps.Worker) -> None:
        with worker.dataflow() as scope:
            scope.read(queue, every=0.001).write(sink)
        feeding.start()  # the journal is there now

    feeding = threading.Thread(target=feed)
    ps.execute(main, config=settings(tmp_path))
    feeding.join()
    assert sorted(sink.rows) == list(range(count))


def test_dataflows_that_were_dropped_and_finished_before_stay_so(tmp_path: Path) -> None:
    (tmp_path / "in.jsonl").write_text('{"day": 1, "n": 1}\n{"day": 2, "n": 2}\n')

    def main(worker: ps.Worker) -> None:
        with worker.dataflow("finished") as scope:
            scope.to_stream([[1], [2]]).write(SQLiteSink(tmp_path / "a.db", "t", columns=["n"]), name="a")
        with worker.dataflow("dropped") as scope:
            scope.read(JSONLinesSource(str(tmp_path / "in.jsonl"), follow=True), time=lambda r: r["day"])
        worker.drop_dataflow(1)
        with worker.dataflow("running") as scope:
            source = JSONLinesSource(str(tmp_path / "in.jsonl"), follow=worker.resumed is None)
            records = scope.read(source, time=lambda record: record["day"])
            records.write(SQLiteSink(tmp_path / "b.db", "t", columns=["n"]))
        if worker.resumed is None:
            end = time.monotonic() + LIMIT
            while not (
                rows(tmp_path / "a.db", "select n from t") and rows(tmp_path / "b.db", "select n from t")
            ):
                worker.step_or_park(0.01)
                assert time.monotonic() < end
            stop_at_checkpoint(worker)

    config = ps.Config(checkpoint=ps.Checkpoint(tmp_path / "state", every=0.05))
    run_until_stopped(main, config)
    ps.execute(main, config=config)
    assert sorted(rows(tmp_path / "a.db", "select n from t")) == [(1,), (2,)]
    assert sorted(rows(tmp_path / "b.db", "select n from t")) == [(1,), (2,)]
    with pytest.raises(ps.CheckpointError, match="has ended"):
        ps.execute(main, config=config)
    check_folder(tmp_path / "state")


def test_many_checkpoints_leave_no_more_than_a_few(tmp_path: Path) -> None:
    state = tmp_path / "state"

    def main(worker: ps.Worker) -> int:
        with worker.dataflow() as scope:
            input_, stream = scope.new_input()
            stream.write(SQLiteSink(tmp_path / "out.db", "t", columns=["n"]))
        most = 0
        for number in range(100):
            input_.send({"n": number})
            input_.advance_to(number + 1)
            make_checkpoint(worker)
            most = max(most, sum(1 for path in state.rglob("*") if path.is_file()))
        return most

    [most] = ps.execute(main, config=settings(tmp_path, keep=2))
    assert most < 30
    assert len(rows(tmp_path / "out.db", "select n from t")) == 100
    check_folder(state)
