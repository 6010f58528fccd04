"""Work in flight when a checkpoint is requested: sources bound theirs, and what does not end is named."""

import logging
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import pointstamp as ps
from killing import check_folder, rows
from pointstamp.connectors import PartitionReader, Source, SQLiteSink
from pointstamp.connectors import reading as source_reading
from resuming import Enough, make_checkpoint, run_until_stopped, settings, stop_at_checkpoint
from small_fuel import fuel_of

RECORDS = 2000


class Batches(Source[int]):
    """Batches that are given, by partition."""

    def __init__(self, *batches: list[list[int]]) -> None:
        self._batches = batches

    def partitions(self) -> list[str]:
        return [str(number) for number in range(len(self._batches))]

    def open(self, partition: str) -> PartitionReader[int]:
        return _Reader(self._batches[int(partition)])


class _Reader(PartitionReader[int]):
    def __init__(self, batches: list[list[int]]) -> None:
        self._batches = batches
        self._next = 0

    def read(self) -> list[int] | None:
        if self._next == len(self._batches):
            return None
        self._next += 1
        return self._batches[self._next - 1]

    @property
    def offset(self) -> int:
        return self._next

    def seek(self, offset: int) -> None:
        self._next = offset


def in_one_batch(partitions: int = 1) -> Batches:
    """Returns a source of all records, those of a partition in one batch."""
    return Batches(*([list(range(first, RECORDS, partitions))] for first in range(partitions)))


class Seen:
    """Counts records, each after a pause."""

    def __init__(self, seconds: float = 0) -> None:
        self.count = 0
        self._seconds = seconds

    def see(self, _record: int) -> None:
        """Counts one."""
        self.count += 1
        if self._seconds:
            time.sleep(self._seconds)


def written(folder: Path) -> list[int]:
    return sorted(n for (n,) in rows(folder / "out.db", "select n from t"))


@pytest.mark.parametrize("workers", [(1, 1), (1, 3, 2), (2, 2)])
def test_a_batch_of_many_times_is_in_checkpoints_in_part(tmp_path: Path, workers: tuple[int, ...]) -> None:
    """Each run is stopped as soon as it has some records, and the last one goes to the end."""
    parts: list[int] = []

    def run(number: int, peers: int) -> None:
        seen = Seen(0.001)  # so that the checkpoint is made before all are read

        def main(worker: ps.Worker) -> None:
            with worker.dataflow() as scope:
                stream = scope.read(in_one_batch(2), time=lambda record: record).inspect(seen.see)
                counts = stream.map(lambda record: (record % 7, record)).to_collection().count()
                changes = counts.updates().map(lambda update: (update[1],))
                changes.exchange(lambda row: row[0]).write(
                    SQLiteSink(tmp_path / "times.db", "t", columns=["n"])
                )
                stream.map(lambda record: (record,)).write(
                    SQLiteSink(tmp_path / "out.db", "t", columns=["n"])
                )
            if number == len(workers):
                return
            if worker.index == 0:
                worker.step_while(lambda: not seen.count)
                stop_at_checkpoint(worker)
            worker.run()

        config = settings(tmp_path, peers)
        if number == len(workers):
            ps.execute(main, config=config)
        else:
            run_until_stopped(main, config)
        parts.append(seen.count)

    for number, peers in enumerate(workers, 1):
        run(number, peers)
    assert written(tmp_path) == list(range(RECORDS))
    assert 0 < parts[-1] < RECORDS, "a checkpoint waited for the whole batch, or had nothing of it"
    times = Counter(n for (n,) in rows(tmp_path / "times.db", "select n from t"))
    # A change of a count takes the old one away, but for the first of each key.
    assert times == {n: 1 if n < 7 else 2 for n in range(RECORDS)}
    check_folder(tmp_path / "state")


def test_late_records_of_a_batch_that_is_sent_in_parts_keep_their_order(tmp_path: Path) -> None:
    """Without checkpoints, too: no frontier passes a record that is not sent."""

    half = RECORDS // 2
    mixed = Batches([[*range(half, RECORDS), *range(half)]])

    def main(worker: ps.Worker) -> list[Any]:
        with worker.dataflow() as scope:
            stream = scope.read(mixed, time=lambda record: record)
            kept = stream.accumulate(int, lambda total, _: total + 1).capture()
        worker.run()
        found: list[Any] = kept.extract()
        return found

    [found] = ps.execute(main)
    assert [(at, count) for at, [count] in found] == [(at, 1) for at in range(RECORDS)]


def test_a_partition_whose_batch_waits_is_not_idle(monkeypatch: pytest.MonkeyPatch) -> None:
    """The batch of another partition takes longer than `idle`."""
    monkeypatch.setattr(source_reading, "TIMES", 10)
    seen = Seen(0.001)

    def main(worker: ps.Worker) -> list[Any]:
        with worker.dataflow() as scope:
            stream = scope.read(in_one_batch(2), time=lambda record: record, idle=0.1)
            kept = stream.inspect(seen.see).capture()
        worker.run()
        found: list[Any] = kept.extract()
        return found

    [found] = ps.execute(main)
    assert [record for at, records in found for record in records if record != at] == []


def test_records_of_one_time_are_sent_in_parts_where_they_take_long(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(source_reading, "SLOW", 0.002)
    seen, first, last = Seen(0.0001), source_reading.RECORDS, 3 * source_reading.RECORDS
    source = Batches([list(range(first)), list(range(first, last))])

    def main(worker: ps.Worker) -> int:
        with worker.dataflow() as scope:
            stream = scope.read(source, time=lambda record: int(record >= first)).inspect(seen.see)
            numbers = stream.map(lambda record: (record,))
            numbers.write(SQLiteSink(tmp_path / "out.db", "t", columns=["n"]))
        worker.step_while(lambda: seen.count <= first)
        return seen.count

    [before] = ps.execute(main, config=settings(tmp_path))
    assert before < last
    assert written(tmp_path) == list(range(last))


def test_what_does_not_drain_is_named_once_and_by_explain(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """Records of main that wait at an operator are in flight, however long that takes."""

    def slowly(_key: int, _values: list[tuple[int, int]]) -> list[int]:
        time.sleep(0.05)
        return [1]

    def main(worker: ps.Worker) -> tuple[str, str]:
        with worker.dataflow() as scope:
            numbers, collection = scope.new_collection()
            probe = collection.map_groups(slowly, name="slow").probe()
        numbers.update_many(((number, number), 1) for number in range(60))
        numbers.advance_to(1)
        worker.step()
        made = worker.checkpoint()
        worker.step_while(lambda: not caplog.records)
        during = worker.explain(probe)
        worker.step_while(lambda: not made.done)
        return str(during), str(worker.explain(probe))

    config = ps.Config(workers=1, checkpoint=ps.Checkpoint(tmp_path / "state", every=None, drain=0.25))
    with caplog.at_level(logging.WARNING, logger="pointstamp"), fuel_of(1):
        [(during, after)] = ps.execute(main, config=config)
    [record] = caplog.records
    assert "no checkpoint could be made" in record.message
    assert '"slow"' in record.message
    assert "'slow'" in during.splitlines()[-1]
    assert "checkpoint" in during.splitlines()[-1]
    assert "checkpoint" not in after


def test_a_worker_that_does_not_step_is_named(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    def main(worker: ps.Worker) -> None:
        with worker.dataflow() as scope:
            scope.to_stream([1]).probe()
        if worker.index == 1:
            end = time.monotonic() + 60
            while not caplog.records and time.monotonic() < end:
                time.sleep(0.01)  # it steps not
        made = worker.checkpoint()
        worker.step_while(lambda: not made.done)

    checkpoint = ps.Checkpoint(tmp_path / "state", every=0.01, drain=1)
    with caplog.at_level(logging.WARNING, logger="pointstamp"):
        ps.execute(main, config=ps.Config(workers=2, checkpoint=checkpoint))
    assert [record for record in caplog.records if "worker 1 did not step" in record.message]


def test_a_main_that_waits_for_room_is_in_checkpoints(tmp_path: Path) -> None:
    """Sending steps the worker while too much is in flight, and checkpoints are made meanwhile."""

    def main(worker: ps.Worker) -> None:
        with worker.dataflow() as scope:
            texts, stream = scope.new_input()
            lengths = stream.exchange(lambda text: int(text[:5])).map(lambda text: (int(text[:5]),))
            lengths.write(SQLiteSink(tmp_path / "out.db", "t", columns=["n"]))
        if worker.index == 0:
            for number in range(400):
                texts.send(f"{number:05}" + "x" * 10_000)
                texts.advance_to(number + 1)
                if worker.resumed is None and number == 300:
                    stop_at_checkpoint(worker)
        texts.close()
        worker.run()

    config = ps.Config(workers=2, high_water=30_000, checkpoint=ps.Checkpoint(tmp_path / "state", every=0.01))
    with pytest.raises(Enough):
        ps.execute(main, config=config)
    ps.execute(main, config=config)
    assert written(tmp_path) == list(range(400))
    check_folder(tmp_path / "state")


class Flight:
    """The most records that were sent by main and not seen."""

    def __init__(self) -> None:
        self.sent = self.seen = self.most = 0

    def sends(self, count: int = 1) -> None:
        """Notes records that are about to be sent."""
        self.sent += count
        self.most = max(self.most, self.sent - self.seen)

    def see(self, _record: Any) -> None:
        """Counts one that has arrived."""
        self.seen += 1


@pytest.mark.parametrize("how", ["send", "times", "send_batch", "updates", "columns"])
@pytest.mark.parametrize("checkpoints", [True, False])
def test_main_that_does_not_step_has_little_in_flight(tmp_path: Path, how: str, checkpoints: bool) -> None:
    """Sending does the work of what was sent before, where checkpoints are made."""
    flight = Flight()
    count = 40_000 if how != "times" else 2000

    def main(worker: ps.Worker) -> None:
        records: Any = None
        numbers: Any = None
        rows: Any = None
        with worker.dataflow() as scope:
            if how == "updates":
                numbers, collection = scope.new_collection()
                collection.updates().inspect(flight.see)
            elif how == "columns":
                rows = ps.ArrowInput(pa.schema([("n", pa.int64())]))
                rows.to_stream(scope).to_records().inspect(flight.see)
            else:
                records, stream = scope.new_input()
                stream.inspect(flight.see)
        for n in range(count):
            if how == "send":
                flight.sends()
                records.send(n)
            elif how == "times":
                flight.sends()
                records.send(n)
                records.advance_to(n + 1)
            elif how == "updates":
                flight.sends()
                numbers.insert(n)
            elif how == "columns" and n % 1000 == 0:
                flight.sends(1000)
                rows.send(pa.RecordBatch.from_pydict({"n": list(range(n, n + 1000))}))
        if how == "send_batch":

            def noted() -> Iterator[int]:
                for n in range(count):
                    flight.sends()
                    yield n

            records.send_batch(noted())

    config = settings(tmp_path) if checkpoints else ps.Config()
    ps.execute(main, config=config)
    assert flight.seen == count
    if checkpoints:
        assert flight.most <= (257 if how == "times" else 20_000 if how == "columns" else 10_000)
    else:
        assert flight.most == count


def test_a_backlog_that_main_sends_is_in_checkpoints_in_part(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """The work of all takes longer than a drain may. After a kill, main sends the same again."""
    runs: list[int] = []

    def run(*, stops: bool) -> None:
        seen = Seen(0.001)

        def main(worker: ps.Worker) -> None:
            with worker.dataflow() as scope:
                records, stream = scope.new_input()
                rows = stream.inspect(seen.see).map(lambda n: (n,))
                rows.write(SQLiteSink(tmp_path / "out.db", "t", columns=["n"]))
            if stops:
                worker.checkpoint(stop=True)
            for n in range(RECORDS):
                records.send(n)
                records.advance_to(n + 1)

        checkpoint = ps.Checkpoint(tmp_path / "state", every=None, drain=0.7)
        ps.execute(main, config=ps.Config(checkpoint=checkpoint))
        runs.append(seen.count)

    with caplog.at_level(logging.WARNING, logger="pointstamp"):
        run(stops=True)
        run(stops=False)
    assert not caplog.records
    assert written(tmp_path) == list(range(RECORDS))
    assert runs[0] < RECORDS // 2, "the checkpoint waited for all that main has sent"
    assert runs[1] < RECORDS, "the checkpoint has nothing"


def test_a_checkpoint_before_all_dataflows_are_built_has_no_records_of_an_input_that_continues(
    tmp_path: Path,
) -> None:
    def main(worker: ps.Worker) -> None:
        with worker.dataflow("first") as scope:
            numbers, stream = scope.new_input(resume="continue")
            stream.probe()
        numbers.send(1)
        make_checkpoint(worker)
        with worker.dataflow("second") as scope:
            more, others = scope.new_input()
            others.probe()
        more.send(2)
        make_checkpoint(worker)
        raise Enough

    config = settings(tmp_path)
    run_until_stopped(main, config)
    with pytest.raises(ps.CheckpointError, match=r"the input 'input' sends now are not in it: build all"):
        ps.execute(main, config=config)


@pytest.mark.parametrize("again", [True, False])
def test_a_dataflow_that_is_built_late_goes_on(tmp_path: Path, again: bool) -> None:
    """Sources wait until the dataflow that was built after the first checkpoint is built again.

    A `main` that waits for the same checkpoint `again` has it: the one that it resumes from.
    """

    def main(worker: ps.Worker) -> None:
        for number in range(2):
            with worker.dataflow(f"flow {number}") as scope:
                stream = scope.read(in_one_batch(), time=lambda record: record)
                stream.map(lambda record, number=number: (record, number)).write(
                    SQLiteSink(tmp_path / f"{number}.db", "t", columns=["n", "flow"])
                )
            if worker.resumed is None or again:
                made.append(make_checkpoint(worker))
        if worker.resumed is None:
            raise Enough

    made: list[int] = []

    run_until_stopped(main, settings(tmp_path))
    ps.execute(main, config=settings(tmp_path))
    for number in range(2):
        found = sorted(rows(tmp_path / f"{number}.db", "select n, flow from t"))
        assert found == [(record, number) for record in range(RECORDS)]
    if again:
        assert made[0] < made[1] == made[2] < made[3]
    check_folder(tmp_path / "state")
