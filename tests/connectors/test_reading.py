"""Reading: a partition that waits stops nothing, errors are raised, and ended partitions are freed."""

import asyncio
import json
import os
import resource
import threading
from collections.abc import Callable
from contextlib import nullcontext, suppress
from datetime import datetime, timedelta, timezone
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest

import pointstamp as ps
from harness import notes
from pointstamp.connectors import (
    CSVSource,
    JSONLinesSource,
    ParquetSource,
    PartitionReader,
    QueueSource,
    Source,
)


class Given(Source[Any]):
    """Partitions, each read by a function that gets how often it was called before."""

    def __init__(self, **partitions: Callable[[int], Any]) -> None:
        self.given = partitions
        self.closed: list[str] = []
        self.let = threading.Event()
        self.opens: Callable[[str], None] = lambda name: None
        self.closes: Callable[[str], None] = lambda name: None

    def partitions(self) -> list[str]:
        return list(self.given)

    def open(self, partition: str) -> PartitionReader[Any]:
        self.opens(partition)
        return _Reader(self, partition)


class _Reader(PartitionReader[Any]):
    def __init__(self, source: Given, name: str) -> None:
        self.source = source
        self.name = name
        self.count = 0

    def read(self) -> Any:
        found = self.source.given[self.name](self.count)
        self.count += 1
        return found

    @property
    def offset(self) -> int:
        return self.count

    def seek(self, offset: int) -> None:
        self.count = offset

    def close(self) -> None:
        self.source.closed.append(self.name)
        self.source.closes(self.name)


def once(*records: Any) -> Callable[[int], Any]:
    return lambda count: list(records) if count == 0 else None


def test_partitions_are_opened_at_the_same_time() -> None:
    source = Given(a=once(1), b=once(2), c=once(3))
    begun = threading.Barrier(3, timeout=120)

    def opens(_: str) -> None:
        begun.wait()

    source.opens = opens
    assert ps.example(lambda scope: scope.read(source).capture()).extract() == [(0, [1, 2, 3])]


def test_an_open_that_waits_does_not_keep_a_failure(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("pointstamp.connectors.reading.PATIENCE", 0.2)
    source = Given(a=once(1))
    opening = threading.Event()

    def opens(_: str) -> None:
        opening.set()
        source.let.wait(120)

    def main(worker: ps.Worker) -> None:
        with worker.dataflow() as scope:
            scope.read(source)
        worker.step_while(lambda: not opening.is_set())
        raise ZeroDivisionError("main's own")

    source.opens = opens
    with pytest.raises(ZeroDivisionError, match="main's own"):
        ps.execute(main)
    source.let.set()
    while not source.closed:  # what was opened too late is closed all the same
        pass


def test_every_reader_is_closed_and_the_first_error_is_raised() -> None:
    begun = threading.Barrier(3, timeout=120)

    def waits(count: int) -> Any:
        if count == 0:
            begun.wait()
        return [] if source.let.wait(0.05) else None

    def fails(_: int) -> Any:
        begun.wait()
        raise ZeroDivisionError("b cannot be read")

    def closes(name: str) -> None:
        if name == "a":
            raise OSError("while closing")

    source = Given(a=waits, b=fails, c=waits)
    source.closes = closes
    with pytest.raises(ZeroDivisionError, match="b cannot be read") as caught:
        ps.example(lambda scope: _use(scope.read(source)))
    assert set(source.closed) == {"a", "b", "c"}
    assert any("OSError: while closing" in note for note in notes(caught.value))


def _use(stream: ps.Stream[Any]) -> None:
    stream.probe()


def test_a_directory_of_many_files_has_one_open_at_a_time(tmp_path: Path) -> None:
    for n in range(120):
        (tmp_path / f"{n:03}.jsonl").write_text(f"{n}\n")
    before = resource.getrlimit(resource.RLIMIT_NOFILE)
    used = len(os.listdir("/proc/self/fd")) if os.path.isdir("/proc/self/fd") else 200
    resource.setrlimit(resource.RLIMIT_NOFILE, (used + 60, before[1]))
    try:
        found = ps.example(lambda scope: scope.read(JSONLinesSource(tmp_path)).capture()).extract()
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, before)
    assert found == [(0, list(range(120)))]


@pytest.mark.parametrize("workers", [1, 2, 3])
def test_a_worker_without_a_partition_follows_the_others(workers: int) -> None:
    """It may get one later, so it holds a capability, and not at the least time."""

    def fifty(count: int) -> list[int]:
        if count <= 50:
            return [count]
        source.let.wait(120)
        return []

    source = Given(a=fifty)
    source.discover = 0.05
    source.worker_of = lambda partition, workers: 0  # type: ignore[method-assign]

    def main(worker: ps.Worker) -> None:
        with worker.dataflow() as scope:
            probe = scope.read(source, time=lambda n: n, idle=None).probe()
        worker.step_while(lambda: probe.less_than(50), timeout=120)
        source.let.set()
        worker.barrier()
        raise StopAsyncIteration  # a source that is asked for more never ends

    with pytest.raises(StopAsyncIteration):
        ps.execute(main, workers=workers)


def test_offsets_that_wait_for_the_end_are_one_entry() -> None:
    queue: QueueSource[int] = QueueSource()
    queue.acknowledges = True
    waiting: list[int] = []

    def main(worker: ps.Worker) -> None:
        from pointstamp.connectors.reading import Reading

        seen: list[int] = []
        readings: list[Reading] = []
        install = Reading.install

        def noted(self: Reading, *given: Any) -> Any:
            readings.append(self)
            return install(self, *given)

        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(Reading, "install", noted)
            patch.setattr(PartitionReader, "acknowledges", True)
            with worker.dataflow() as scope:
                scope.read(queue).inspect(seen.append)
            for n in range(50):
                queue.put(n)
                worker.step_while(partial(lambda n: len(seen) <= n, n))
        waiting.append(sum(map(len, readings[0]._pending.values())))
        queue.close()
        worker.run()

    ps.execute(main)
    assert waiting == [1]


@pytest.mark.parametrize("time", [-1, None, 1.5, "x"])
def test_times_that_are_none_are_refused_with_their_partition(time: Any) -> None:
    source = Given(a=once(1))
    with pytest.raises(TypeError, match="the times that time= gives are ints from 0 on") as caught:
        ps.example(lambda scope: _use(scope.read(source, time=lambda _: time)))
    assert any("in partition 'a'" in note for note in notes(caught.value))


def test_workers_that_find_other_partitions_are_refused(tmp_path: Path) -> None:
    """Each would take its share of another list: some files would be read twice, and others by nobody."""
    (tmp_path / "b.jsonl").write_text("1\n")
    listed = threading.Event()

    def main(worker: ps.Worker) -> None:
        if worker.index == 1:
            assert listed.wait(120)
        source = JSONLinesSource(tmp_path)
        with worker.dataflow() as scope:
            scope.read(source).probe()
            if worker.index == 0:
                (tmp_path / "a.jsonl").write_text("2\n")
                listed.set()
        worker.run()

    with pytest.raises(ps.GraphError, match=r"2 partitions of source 'read'.* has 1 partitions"):
        ps.execute(main, workers=2)


class _Growing(Source[str]):
    """Partitions that are found one after another, by each worker in an order of its own."""

    acknowledges = False
    discover = 0.01

    def __init__(self, names: list[str]) -> None:
        self._names = names
        self._found = 0

    def partitions(self) -> list[str]:
        self._found += 1
        return self._names[: self._found]

    def open(self, partition: str) -> PartitionReader[str]:
        return _Once(partition)


class _Once(PartitionReader[str]):
    """Reads the partition's name, and then waits."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._count = 0
        self._closed = threading.Event()

    def read(self) -> list[str] | None:
        if self._count:
            self._closed.wait(120)
            return None
        self._count = 1
        return [self._name]

    @property
    def offset(self) -> int:
        return self._count

    def seek(self, offset: int) -> None:
        self._count = offset

    def close(self) -> None:
        self._closed.set()


def test_partitions_that_workers_find_in_other_orders_are_read_once() -> None:
    names = [f"part {number}" for number in range(12)]
    read: list[str] = []

    def main(worker: ps.Worker) -> None:
        with worker.dataflow() as scope:
            # One finds several at first, and the others later.
            found = names if worker.index == 0 else [*reversed(names)]
            probe = scope.read(_Growing(found)).inspect(read.append).probe()
        worker.step_while(lambda: len(set(read)) < len(names))
        for _ in range(50):
            worker.step()
        assert probe.less_equal(0)
        worker.drop_dataflow(worker.installed_dataflows()[0])

    ps.execute(main, workers=2)
    assert sorted(read) == sorted(names)


# ------------------------------------------------------------ queues


def test_a_queue_that_a_worker_made_and_does_not_read_is_left(caplog: pytest.LogCaptureFixture) -> None:
    ended: list[bool] = []

    def main(worker: ps.Worker) -> None:
        queue: QueueSource[int] = QueueSource(size=1)
        with worker.dataflow() as scope:
            scope.read(queue).probe()

        def put() -> None:
            with suppress(ValueError):
                for number in range(3):
                    queue.put(number)
                queue.close()

        putting = threading.Thread(target=put, daemon=True)
        putting.start()
        worker.run()
        putting.join(120)
        ended.append(not putting.is_alive())

    ps.execute(main, workers=2)
    assert ended == [True, True]
    assert "1 records wait in a queue that was not read" in caplog.text


def test_putting_ends_when_the_reader_has_gone() -> None:
    queue: QueueSource[int] = QueueSource(size=10)
    said: list[str] = []

    def produce() -> None:
        try:
            for n in range(100_000):
                queue.put(n)
        except ValueError as error:
            said.append(str(error))

    producer = threading.Thread(target=produce)
    producer.start()
    with pytest.raises(ZeroDivisionError):
        ps.example(lambda scope: _use(scope.read(queue).map(lambda n: 1 / (n - 50))))
    producer.join(120)
    assert not producer.is_alive()
    assert "the queue is not read any more" in said[0]


def test_a_worker_that_puts_does_not_hide_the_failure_of_the_reader() -> None:
    queue: QueueSource[int] = QueueSource(size=10)

    def main(worker: ps.Worker) -> None:
        with worker.dataflow() as scope:
            scope.read(queue).map(lambda n: 1 / (n - 50)).probe()
        if worker.index == 1:
            for n in range(100_000):
                queue.put(n)
        worker.run()

    with pytest.raises(ZeroDivisionError):
        ps.execute(main, workers=2)


def test_a_cancelled_put_puts_nothing_in() -> None:
    queue: QueueSource[int] = QueueSource(size=1)

    async def main() -> None:
        await queue.aput(0)
        with pytest.raises(asyncio.TimeoutError):
            await asyncio.wait_for(queue.aput(1), 0.05)
        waiting = asyncio.create_task(queue.aput(2))
        await asyncio.sleep(0)
        reading = queue.open("queue")
        assert await asyncio.to_thread(reading.read) == [0]
        await asyncio.wait_for(waiting, 20)
        queue.close()
        assert [await asyncio.to_thread(reading.read) for _ in range(2)] == [[2], None]

    asyncio.run(main())


# ------------------------------------------------------------ files


def test_a_followed_file_that_is_cut_is_an_error(tmp_path: Path) -> None:
    path = tmp_path / "log.jsonl"
    path.write_text("1\n2\n3\n")
    seen: list[int] = []

    def main(worker: ps.Worker) -> None:
        with worker.dataflow() as scope:
            scope.read(JSONLinesSource(path, follow=True)).inspect(seen.append)
        worker.step_while(lambda: len(seen) < 3)
        path.write_text("4\n")
        worker.run()

    with pytest.raises(ps.PointstampError, match=r"log\.jsonl was cut: it has [02] bytes, and 6 were read"):
        ps.execute(main)
    assert seen == [1, 2, 3]


def csv(path: Path, text: bytes) -> list[Any]:
    path.write_bytes(text)
    captured = ps.example(lambda scope: scope.read(CSVSource(path)).capture())
    return [row for _, batches in captured.extract() for batch in batches for row in batch.to_pylist()]


def test_the_header_of_a_csv_is_read_as_its_rows_are(tmp_path: Path) -> None:
    assert csv(tmp_path / "a.csv", b"\xef\xbb\xbfa,b\r\n1,2\r\n") == [{"a": 1, "b": 2}]
    assert csv(tmp_path / "b.csv", b'"name, first",b\n1,2\n') == [{"name, first": 1, "b": 2}]


def test_a_followed_csv_may_begin_empty(tmp_path: Path) -> None:
    import pyarrow as pa

    path = tmp_path / "a.csv"
    path.write_text("")
    schema = pa.schema([("a", pa.int64()), ("b", pa.int64())])
    seen: list[Any] = []

    def main(worker: ps.Worker) -> None:
        with worker.dataflow() as scope:
            stream = scope.read(CSVSource(path, schema=schema, follow=True))
            stream.inspect_batch(lambda _, batch: seen.extend(batch.to_pylist()))
        for text in ("a,", "b\n", "1,2\n3,", "4\n"):
            worker.step()
            with path.open("a") as file:
                file.write(text)
        worker.step_while(lambda: len(seen) < 2)
        raise StopAsyncIteration

    with pytest.raises(StopAsyncIteration):
        ps.execute(main)
    assert seen == [{"a": 1, "b": 2}, {"a": 3, "b": 4}]


def test_a_bad_line_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("pointstamp.connectors.text.BLOCK", 16)
    path = tmp_path / "a.jsonl"
    path.write_text("".join(f"{n}\n" for n in range(1000, 1200)) + "nonsense\n")
    with pytest.raises(ValueError, match=r"line 201 of .*a\.jsonl"):
        ps.example(lambda scope: _use(scope.read(JSONLinesSource(path))))
    with pytest.raises(ValueError, match="Empty CSV") as caught:
        csv(tmp_path / "empty.csv", b"")
    assert any("empty.csv" in note for note in notes(caught.value))


@pytest.mark.parametrize("fails", [True, False])
def test_putting_ends_when_the_dataflow_ends_before_it_reads(fails: bool) -> None:
    queue: QueueSource[int] = QueueSource(size=5)
    said: list[str] = []

    def put() -> None:
        try:
            for n in range(20):
                queue.put(n)
        except ValueError as error:
            said.append(str(error))

    def main(worker: ps.Worker) -> None:
        with worker.dataflow() as scope:
            scope.read(queue).probe()
        if fails:
            raise RuntimeError("before the first step")
        worker.drop_dataflow(worker.installed_dataflows()[0])

    thread = threading.Thread(target=put, daemon=True)
    thread.start()
    with pytest.raises(RuntimeError, match="before the first") if fails else nullcontext():
        ps.execute(main)
    thread.join(120)
    assert said
    assert not thread.is_alive()


def _lines(path: Path, first: datetime, seconds: list[int]) -> None:
    days = [{"at": (first + timedelta(seconds=n)).isoformat(), "n": n} for n in seconds]
    path.write_text("".join(json.dumps(day) + "\n" for day in days))


@pytest.mark.parametrize("workers", [1, 2])
def test_each_partition_has_a_watermark_of_its_own(tmp_path: Path, workers: int) -> None:
    """The second of two files that one worker reads in turn is not late; a record late in its own file is."""
    first = datetime(2024, 5, 1, tzinfo=timezone.utc)
    _lines(tmp_path / "a.jsonl", first, [0, 50, 100])
    _lines(tmp_path / "b.jsonl", first, [1, 60, 2, 101])

    def build(scope: ps.Scope) -> Any:
        on_time, late = scope.read(
            JSONLinesSource(str(tmp_path / "*.jsonl")),
            event_time=lambda record: datetime.fromisoformat(record["at"]),
            lateness=timedelta(seconds=10),
        )
        windows = on_time.window(ps.Tumbling(timedelta(minutes=1))).count()
        return on_time.capture(), late.capture(), windows.capture()

    results = _results(build, workers)
    kept = [(time, record["n"]) for on_time, _, _ in results for time, some in on_time for record in some]
    start = int(first.timestamp()) * 1_000_000
    late = [record["n"] for _, found, _ in results for _, some in found for record in some]
    assert late == [2]
    assert sorted([n for _, n in kept] + late) == [0, 1, 2, 50, 60, 100, 101]
    assert all(time == start + n * 1_000_000 for time, n in kept)
    counts = {window.start: count for *_, found in results for _, some in found for window, count in some}
    assert sum(counts.values()) == 7 - len(late)
    assert counts[first + timedelta(minutes=1)] == 3


def _results(build: Callable[[ps.Scope], Any], workers: int) -> list[Any]:
    def main(worker: ps.Worker) -> Any:
        with worker.dataflow() as scope:
            captures = build(scope)
        worker.run()
        return [capture.extract() for capture in captures]

    return ps.execute(main, workers=workers)


def test_columns_of_timestamps_are_read_at_their_times(tmp_path: Path) -> None:
    first = datetime(2024, 5, 1, tzinfo=timezone.utc)
    schema = pa.schema([("at", pa.timestamp("ms", "UTC")), ("n", pa.int64())])
    for name, seconds in (("a", [0, 50, 100]), ("b", [1, 60, 101])):
        rows = [{"at": first + timedelta(seconds=n), "n": n} for n in seconds]
        pq.write_table(pa.Table.from_pylist(rows, schema=schema), tmp_path / f"{name}.parquet")

    def build(scope: ps.Scope) -> Any:
        source = ParquetSource(str(tmp_path))
        on_time, late = scope.read(source, event_time="at", lateness=timedelta(seconds=1))
        counted = on_time.window(
            ps.Tumbling(timedelta(minutes=1)), [], n_count=ps.col("n").count(), column="at"
        )
        return counted.to_records().capture(), late.to_records().capture()

    [[counted, late]] = _results(build, 1)
    assert late == []
    assert [row["n_count"] for _, rows in counted for row in rows] == [3, 3]
    with pytest.raises(ps.GraphError, match="is the name of a column"):
        ps.example(lambda scope: scope.read(ParquetSource(str(tmp_path)), event_time=len))
    with pytest.raises(ps.GraphError, match="not both"):
        ps.example(lambda scope: scope.read(ParquetSource(str(tmp_path)), event_time="at", every=1))
    with pytest.raises(ValueError, match="at least 0"):
        ps.example(lambda scope: scope.read(ParquetSource(str(tmp_path)), event_time="at", lateness=-1))


def test_columns_at_their_times_travel_whole_and_tell_them(tmp_path: Path) -> None:
    """A batch of many times is not cut into as many, and the stream knows its column of times."""
    schema = pa.schema([("at", pa.int64()), ("n", pa.int64())])
    rows = [{"at": 3 * n, "n": n} for n in range(5000)]
    pq.write_table(pa.Table.from_pylist(rows, schema=schema), tmp_path / "a.parquet")
    batches: list[int] = []

    def seen(batch: pa.RecordBatch) -> Any:
        batches.append(batch.num_rows)
        return pc.is_valid(batch["n"])

    def build(scope: ps.Scope) -> Any:
        on_time, late = scope.read(ParquetSource(str(tmp_path)), event_time="at")
        counted = on_time.filter(seen).window(ps.Tumbling(6000), [], n_count=ps.col("n").count())
        times = on_time.filter(lambda batch: pc.less(batch["n"], 3))
        return counted.to_records().capture(), late.to_records().capture(), times.to_records().capture()

    [[counted, late, times]] = _results(build, 1)
    assert [row["n_count"] for _, found in counted for row in found] == [2000, 2000, 1000]
    assert late == []
    assert [(time, row["n"]) for time, found in times for row in found] == [(0, 0), (3, 1), (6, 2)]
    assert sum(batches) == 5000
    assert len(batches) < 50


def test_the_rows_of_each_time_are_cut_out_of_a_sorted_batch(tmp_path: Path) -> None:
    schema = pa.schema([("at", pa.int64()), ("n", pa.int64())])
    rows = [{"at": 10 * (n % 7), "n": n} for n in range(50)]
    pq.write_table(pa.Table.from_pylist(rows, schema=schema), tmp_path / "a.parquet")

    def build(scope: ps.Scope) -> Any:
        return [scope.read(ParquetSource(str(tmp_path)), time="at").to_records().capture()]

    [[found]] = _results(build, 1)
    expected = [(10 * k, list(range(k, 50, 7))) for k in range(7)]
    assert [(time, [row["n"] for row in some]) for time, some in found] == expected


def test_a_file_whose_turn_has_not_come_is_not_idle(tmp_path: Path) -> None:
    """Reading the first takes longer than `idle`: the second's records keep their times all the
    same."""
    (tmp_path / "a.jsonl").write_text("".join(f"{n}\n" for n in range(1000, 3000)))
    (tmp_path / "b.jsonl").write_text("5\n6\n")

    def build(scope: ps.Scope) -> Any:
        read = scope.read(JSONLinesSource(str(tmp_path / "*.jsonl")), time=lambda n: n, idle=0.0)
        return [read.capture()]

    [[found]] = _results(build, 1)
    assert found[0] == (5, [5])


def test_frontiers_move_while_a_source_has_more() -> None:
    seen, said = 0, [0]

    def work(_time: ps.Time, batch: list[int]) -> None:
        nonlocal seen
        seen += len(batch)
        threading.Event().wait(0.01)  # in which the source reads as far as it may

    source = Given(a=lambda n: list(range(5000 * n, 5000 * n + 5000)) if n < 20 else None)
    read = partial(ps.Scope.read, source=source, time=lambda x: x // 1000)
    ps.example(
        lambda scope: read(scope).inspect_batch(work).value_counts().inspect(lambda _: said.append(seen))
    )
    assert seen == 100_000
    assert max(after - before for before, after in pairwise(said)) <= 25_000


def test_what_is_no_source_is_refused() -> None:
    path: Any = "orders.jsonl"
    with pytest.raises(
        TypeError, match=r"read takes a source, such as .*JSONLinesSource.*not 'orders.jsonl'"
    ):
        ps.example(lambda scope: scope.read(path).probe())


def test_a_stream_in_place_of_a_collection_is_refused_with_the_way_to_one() -> None:
    def build(scope: ps.Scope) -> Any:
        stream: Any = scope.to_stream([("a", 1)])
        return scope.collection([("a", 2)]).join(stream).probe()

    with pytest.raises(TypeError, match=r"join needs a collection, not .*: call to_collection\(\) on it"):
        ps.example(build)
