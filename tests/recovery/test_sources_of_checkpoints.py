"""Each source resumes at a checkpoint's offsets: every record is processed once, at consistent times."""

import gc
import json
import os
import socket
import sqlite3
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyarrow import parquet

import kafka_broker
import pointstamp as ps
import postgres_server
from pointstamp.connectors import (
    CSVSource,
    JSONLinesSource,
    ParquetSource,
    PartitionReader,
    QueueSource,
    Sink,
    Source,
    SQLiteSink,
)
from pointstamp.connectors.journal import Journal, Journaled
from pointstamp.connectors.network import (
    HTTPEventSource,
    HTTPLineSource,
    TCPLineSource,
    TCPListenSource,
    WebSocketSource,
)
from pointstamp.connectors.reading import Reading
from resuming import Enough, Found, make_checkpoint, settings

POSTGRES, KAFKA = postgres_server.missing(), kafka_broker.missing()


Read = Callable[[ps.Scope], ps.Stream[int]]
"""Reads a source; the records are numbers."""

Driver = Callable[[ps.Worker, list[Any]], None]
"""Drives a worker; gets the records that this execution has worked on so far, with their times."""


def run(folder: Path, read: Read, drive: Driver | None = None, *, workers: int = 1) -> None:
    """Writes each number that is read into a table; ends with the source or by a driver."""

    def main(worker: ps.Worker) -> None:
        with worker.dataflow() as scope:
            numbers = read(scope)
            numbers.map(lambda n: (n,)).write(SQLiteSink(folder / "out.db", "numbers", columns=["n"]))
            seen = Found(numbers).records
        if drive is not None:
            drive(worker, seen)

    ps.execute(main, config=settings(folder, workers))


def shown(folder: Path) -> Counter[int]:
    """Numbers in the table, with their counts."""
    with closing(sqlite3.connect(folder / "out.db")) as database:
        return Counter(n for (n,) in database.execute("select n from numbers"))


def cut_and_crash(least: int) -> Driver:
    """Makes a checkpoint when so many records were read, reads on, and crashes."""

    def drive(worker: ps.Worker, seen: list[Any]) -> None:
        if worker.index == 0:
            worker.step_while(lambda: len(seen) < least, timeout=60)
            make_checkpoint(worker)
            for _ in range(20):
                worker.step()
            raise Enough
        worker.step_while(lambda: True, timeout=100)  # until the other one crashes

    return drive


# ------------------------------------------------------------ files


def write_lines(path: Path, numbers: Any) -> None:
    with path.open("a") as file:
        for n in numbers:
            file.write(json.dumps({"n": n, "day": n // 10}) + "\n")


def json_lines(folder: Path, **options: Any) -> Read:
    def read(scope: ps.Scope) -> ps.Stream[int]:
        source = JSONLinesSource(folder / "*.jsonl", **options)
        records: ps.Stream[Any] = scope.read(source, time=lambda record: record["day"])
        return records.map(lambda record: record["n"])

    return read


def csv(folder: Path) -> Read:
    def read(scope: ps.Scope) -> ps.Stream[int]:
        schema = pa.schema([("n", pa.int64()), ("day", pa.int64())])
        rows = scope.read(CSVSource(folder / "*.csv", schema=schema), every=0.001)
        return rows.to_records().map(lambda row: row["n"])  # type: ignore[no-any-return]

    return read


def parquet_rows(folder: Path) -> Read:
    def read(scope: ps.Scope) -> ps.Stream[int]:
        rows = scope.read(ParquetSource(folder / "*.parquet"), time="day")
        return rows.to_records().map(lambda row: row["n"])  # type: ignore[no-any-return]

    return read


def slow_down(monkeypatch: pytest.MonkeyPatch) -> None:
    """Has batches sent one by one with a pause, so that a checkpoint is made between two."""
    receive = Reading._receive

    def slowly(reading: Reading, *arguments: Any) -> None:
        time.sleep(0.02)
        receive(reading, *arguments)

    monkeypatch.setattr(Reading, "_receive", slowly)
    monkeypatch.setattr("pointstamp.connectors.reading.BATCHES", 1)


@pytest.mark.parametrize("workers", [1, 2])
@pytest.mark.parametrize("kind", ["json", "csv", "parquet"])
def test_files_are_gone_on_with(
    kind: str, workers: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("pointstamp.connectors.text.BLOCK", 400)
    monkeypatch.setattr("pointstamp.connectors.files.ROWS", 20)
    slow_down(monkeypatch)
    for part in range(3):
        numbers = range(200 * part, 200 * (part + 1))
        if kind == "json":
            write_lines(tmp_path / f"{part}.jsonl", numbers)
        elif kind == "csv":
            rows = "".join(f"{n},{n // 10}\n" for n in numbers)
            (tmp_path / f"{part}.csv").write_text("n,day\n" + rows)
        else:
            table = pa.table({"n": list(numbers), "day": [n // 10 for n in numbers]})
            parquet.write_table(table, tmp_path / f"{part}.parquet")
    read = {"json": json_lines, "csv": csv, "parquet": parquet_rows}[kind](tmp_path)
    for least in (30, 40):
        with pytest.raises(Enough):
            run(tmp_path, read, cut_and_crash(least), workers=workers)
    run(tmp_path, read, workers=workers)
    assert shown(tmp_path) == Counter(range(600))


def test_a_file_that_is_added_takes_no_file_from_another_worker(tmp_path: Path) -> None:
    """Files are dealt out in the order of their names, and the new one is the first."""
    for part in (1, 2):
        write_lines(tmp_path / f"{part}.jsonl", range(100 * part, 100 * part + 100))
    with pytest.raises(Enough):
        run(tmp_path, json_lines(tmp_path, follow=True), cut_and_crash(50), workers=2)
    write_lines(tmp_path / "0.jsonl", range(100))
    run(tmp_path, json_lines(tmp_path), workers=2)
    assert shown(tmp_path) == Counter(range(300))


def test_a_rotated_file_is_gone_on_with(tmp_path: Path) -> None:
    path = tmp_path / "log.jsonl"
    write_lines(path, range(50))
    with pytest.raises(Enough):
        run(tmp_path, json_lines(tmp_path, follow=True), cut_and_crash(50))
    write_lines(path, range(50, 70))
    os.rename(path, tmp_path / "log.jsonl.1")
    write_lines(path, range(70, 90))

    def until_all(worker: ps.Worker, seen: list[Any]) -> None:
        worker.step_while(lambda: len(seen) < 40, timeout=60)
        write_lines(path, [100])  # after which day 8 is complete
        worker.step_while(lambda: len(seen) < 41, timeout=60)
        make_checkpoint(worker)
        raise Enough

    with pytest.raises(Enough):
        run(tmp_path, json_lines(tmp_path, follow=True), until_all)
    run(tmp_path, json_lines(tmp_path))
    assert shown(tmp_path) == Counter([*range(90), 100])


def test_a_file_that_has_gone_before_its_end_is_missed(tmp_path: Path) -> None:
    write_lines(tmp_path / "1.jsonl", range(10))
    write_lines(tmp_path / "2.jsonl", range(10, 20))

    class Slow(JSONLinesSource):
        """Waits at the end of its second file."""

        def open(self, partition: str) -> PartitionReader[Any]:
            reader = super().open(partition)
            if partition.endswith("2.jsonl"):
                opened.set()
                go.wait(60)
            return reader

    def read(scope: ps.Scope) -> ps.Stream[int]:
        records: ps.Stream[Any] = scope.read(Slow(tmp_path / "*.jsonl"), time=lambda record: record["day"])
        return records.map(lambda record: record["n"])

    def drive(worker: ps.Worker, seen: list[Any]) -> None:
        try:
            # The end of the first file has been read, and the step takes it.
            while not opened.wait(0.01):
                worker.step()
            worker.step()
            cut_and_crash(10)(worker, seen)
        finally:
            go.set()

    go, opened = threading.Event(), threading.Event()
    try:
        with pytest.raises(Enough):
            run(tmp_path, read, drive)
    finally:
        go.set()
    (tmp_path / "2.jsonl").rename(tmp_path / "gone")
    with pytest.raises(ps.CheckpointError, match=r"no partition '.*2\.jsonl' any more"):
        run(tmp_path, json_lines(tmp_path))
    (tmp_path / "gone").rename(tmp_path / "2.jsonl")
    (tmp_path / "1.jsonl").unlink()  # which was read to its end
    run(tmp_path, json_lines(tmp_path))
    assert shown(tmp_path) == Counter(range(20))


def test_a_line_that_cannot_be_read_waits_for_its_time_in_the_checkpoint(tmp_path: Path) -> None:
    """It has the time of the record after it, which the next run reads."""
    path = tmp_path / "log.jsonl"
    write_lines(path, [1])
    with path.open("a") as file:
        file.write("bad\n")
    fields = ["text", "line"]

    def read_of(follow: bool) -> Read:
        rejects = SQLiteSink(tmp_path / "bad.db", "lines", columns=fields)
        return json_lines(tmp_path, follow=follow, on_error=rejects)

    def drive(worker: ps.Worker, seen: list[Any]) -> None:
        worker.step_while(lambda: not seen, timeout=60)
        make_checkpoint(worker)
        raise Enough

    with pytest.raises(Enough):
        run(tmp_path, read_of(True), drive)
    write_lines(path, [12, 25])
    run(tmp_path, read_of(False))
    with closing(sqlite3.connect(tmp_path / "bad.db")) as database:
        assert database.execute("select text, line from lines").fetchall() == [("bad", 2)]
    assert shown(tmp_path) == Counter([1, 12, 25])


# ------------------------------------------------------------ times that are not deterministic


@pytest.mark.parametrize("times", ["event times", "arrival"])
def test_records_whose_times_are_not_deterministic_come_once(times: str, tmp_path: Path) -> None:
    """One of two files is idle, so that its next records are behind the frontier."""
    for name, numbers in (("a", [500, 510]), ("b", [400])):
        write_lines(tmp_path / f"{name}.jsonl", numbers)

    def read(scope: ps.Scope) -> ps.Stream[int]:
        source = JSONLinesSource(tmp_path / "*.jsonl", follow=True)
        if times == "arrival":
            records: ps.Stream[Any] = scope.read(source, every=0.01)
        else:
            records = scope.read(source, time=lambda record: record["day"], idle=0.05, lateness=1)
        return records.map(lambda record: record["n"])

    for turn in range(3):

        def drive(worker: ps.Worker, seen: list[Any], turn: int = turn) -> None:
            enough = 3 if turn == 0 else 2
            # Fewer come where the last run made another checkpoint, as an idle computation does.
            end = time.monotonic() + (60 if turn == 0 else 2)
            worker.step_while(lambda: len(seen) < enough and time.monotonic() < end)
            make_checkpoint(worker)
            # Behind the frontier; read by this run, too, in part, and again by the next.
            write_lines(tmp_path / "b.jsonl", [turn])
            write_lines(tmp_path / "a.jsonl", [700 + 100 * turn])
            for _ in range(10 * turn):
                worker.step_or_park(0.01)
            raise Enough

        with pytest.raises(Enough):
            run(tmp_path, read, drive)

    expected = Counter([500, 510, 400, 0, 1, 2, 700, 800, 900])

    def until_shown(worker: ps.Worker, seen: list[Any]) -> None:
        write_lines(tmp_path / "a.jsonl", [9000])
        write_lines(tmp_path / "b.jsonl", [9001])
        worker.step_while(lambda: not expected <= shown(tmp_path), timeout=60)
        raise Enough

    with pytest.raises(Enough):
        run(tmp_path, read, until_shown)
    assert Counter({n: count for n, count in shown(tmp_path).items() if n < 9000}) == expected


# ------------------------------------------------------------ acknowledgements and offsets


class Numbers(Source[int]):
    """Numbers up to a limit, and what was acknowledged."""

    waits = False

    def __init__(self, count: int, told: list[Any], offset: Callable[[int], Any] = int) -> None:
        self.count, self.told, self.offset_of = count, told, offset

    def partitions(self) -> list[str]:
        return ["numbers"]

    def open(self, partition: str) -> PartitionReader[int]:
        return NumbersReader(self)


class NumbersReader(PartitionReader[int]):
    def __init__(self, source: Numbers) -> None:
        self.source, self.next = source, 0

    def read(self) -> list[int] | None:
        if self.next >= self.source.count:
            return None
        self.next += 1
        return [self.next - 1]

    @property
    def offset(self) -> Any:
        return self.source.offset_of(self.next)

    def seek(self, offset: Any) -> None:
        self.next = int(offset)

    def durable(self, offset: Any) -> None:
        self.source.told.append(offset)


def test_offsets_are_acknowledged_when_a_checkpoint_covers_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    slow_down(monkeypatch)
    told: list[int] = []

    def read(scope: ps.Scope) -> ps.Stream[int]:
        return scope.read(Numbers(100, told), time=lambda n: n)  # type: ignore[no-any-return]

    before = []

    def drive(worker: ps.Worker, seen: list[Any]) -> None:
        worker.step_while(lambda: len(seen) < 10)
        before.extend(told)
        cut_and_crash(10)(worker, seen)

    with pytest.raises(Enough):
        run(tmp_path, read, drive)
    assert before == []
    last = max(told)
    assert shown(tmp_path).keys() >= set(range(last - 1))  # the last time may be open
    told.clear()
    run(tmp_path, read)
    assert told[0] >= last
    assert told[-1] == 100
    assert shown(tmp_path) == Counter(range(100))


def test_offsets_that_are_no_json_are_named(tmp_path: Path) -> None:
    def read(scope: ps.Scope) -> ps.Stream[int]:
        return scope.read(Numbers(10, [], lambda n: (n,)))  # type: ignore[no-any-return]

    with pytest.raises(ps.CheckpointError, match=r"partition 'numbers' of source 'read' is \(10,\)"):
        run(tmp_path, read)


# ------------------------------------------------------------ sources that cannot be read again


def reading(source: Source[Any]) -> Read:
    return lambda scope: scope.read(source)


def test_sources_that_cannot_be_read_again_are_refused(tmp_path: Path) -> None:
    sources: list[Source[Any]] = [
        QueueSource(),
        TCPLineSource("127.0.0.1:1"),
        TCPListenSource("127.0.0.1:0"),
        WebSocketSource("ws://127.0.0.1:1"),
        HTTPLineSource("http://127.0.0.1:1", live=True),
        HTTPEventSource("http://127.0.0.1:1"),
    ]
    for source in sources:
        kind = type(source).__name__
        with pytest.raises(ps.GraphError, match=f"cannot be read again .* Make the {kind} with journal=True"):
            run(tmp_path, reading(source))
    with pytest.raises(ps.GraphError, match="has a journal, which lies beside checkpoints, and none are"):
        ps.example(lambda scope: scope.read(QueueSource(journal=True)).capture())


def test_what_is_put_into_a_queue_is_read_once(tmp_path: Path) -> None:
    queues: list[QueueSource[int]] = [QueueSource(journal=True) for _ in range(3)]
    with pytest.raises(ValueError, match="put records in once that is built"):
        queues[0].put(1)

    def first(worker: ps.Worker, seen: list[Any]) -> None:
        queues[0].put_many(range(3000))
        worker.step_while(lambda: len(seen) < 1500, timeout=60)
        raise Enough  # before there is a checkpoint

    def second(worker: ps.Worker, seen: list[Any]) -> None:
        worker.step_while(lambda: len(seen) < 3000, timeout=60)
        queues[1].put_many(range(3000, 3100))
        worker.step_while(lambda: len(seen) < 3100, timeout=60)
        make_checkpoint(worker)
        queues[1].put(3100)
        raise Enough

    def third(worker: ps.Worker, seen: list[Any]) -> None:
        queues[2].put_many([3101, 3102])
        queues[2].close()

    for queue, drive in zip(queues, (first, second), strict=False):
        with pytest.raises(Enough):
            run(tmp_path, reading(queue), drive)
    run(tmp_path, reading(queues[2]), third)
    assert shown(tmp_path) == Counter(range(3103))
    [folder] = (tmp_path / "state" / "journals").glob("*/*")
    assert len(list(folder.iterdir())) == 1  # what is covered was removed


def serve(listener: socket.socket, numbers: Any) -> None:
    connection, _ = listener.accept()
    with connection:
        connection.sendall("".join(f"{n}\n" for n in numbers).encode())
        connection.recv(1)  # until the other side ends


def test_what_was_received_is_read_once(tmp_path: Path) -> None:
    """The server sends each line once."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        address = f"127.0.0.1:{listener.getsockname()[1]}"

        def read(scope: ps.Scope) -> ps.Stream[int]:
            lines: ps.Stream[str] = scope.read(TCPLineSource(address, journal=True), every=0.01)
            return lines.map(int)

        def drive(worker: ps.Worker, seen: list[Any]) -> None:
            worker.step_while(lambda: len(seen) < enough, timeout=60)
            if covered:
                make_checkpoint(worker)
            raise Enough

        for turn in range(3):
            enough, covered = [(100, False), (200, True), (100, False)][turn]
            numbers = range(100 * turn, 100 * turn + 100)
            thread = threading.Thread(target=serve, args=(listener, numbers))
            thread.start()
            with pytest.raises(Enough):
                run(tmp_path, read, drive)
            gc.collect()  # the error keeps the frames of the execution, and so its connection
            thread.join()

        def until_shown(worker: ps.Worker, seen: list[Any]) -> None:
            worker.step_while(lambda: len(shown(tmp_path)) < 300, timeout=60)
            raise Enough

        thread = threading.Thread(target=serve, args=(listener, []))
        thread.start()
        with pytest.raises(Enough):
            run(tmp_path, read, until_shown)
        gc.collect()
        thread.join()
    assert shown(tmp_path) == Counter(range(300))


# ------------------------------------------------------------ journals


def test_a_journal_has_what_was_appended(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("pointstamp.connectors.journal.MOST", 100)
    kept: list[bytes] = []
    firsts = []
    for turn in range(5):
        journal = Journal(tmp_path / "a" / "b")
        assert list(journal.read(journal.first)) == kept[journal.first :]
        assert journal.count == len(kept)
        for n in range(7):
            records = [bytes([turn, n]) * 10, b""]
            journal.append(records)
            kept += records
        journal.trim(turn * 10)
        firsts.append(journal.first)
        journal.close()
    assert firsts[-1] > 0
    left = Journal(tmp_path / "a" / "b")
    assert list(left.read(50)) == kept[50:]
    with pytest.raises(ps.CheckpointError, match=r"has the records \d+ to 70, and the checkpoint resumes at"):
        list(left.read(0))
    with pytest.raises(ps.CheckpointError, match="resumes at record 71"):
        list(left.read(71))
    left.close()


def test_who_was_overtaken_appends_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    former = Journal(tmp_path)
    former.append([b"1"])
    later = Journal(tmp_path)
    later.append([b"2"])
    with pytest.raises(ps.CheckpointError, match="another execution, which has taken over"):
        former.append([b"lost"])
    monkeypatch.setattr("pointstamp.connectors.journal.MOST", 0)
    with pytest.raises(ps.CheckpointError, match="another execution, which has taken over"):
        former.append([b"lost"])
    former.close()
    later.close()
    last = Journal(tmp_path)
    assert list(last.read(0)) == [b"1", b"2"]
    last.close()


def test_a_journal_that_was_cut_or_changed(tmp_path: Path) -> None:
    """A record that was not written to its end was not put in; damage before it is an error."""
    whole = Journal(tmp_path / "whole")
    whole.append([b"one", b"two", b"three"])
    whole.close()
    [file] = (tmp_path / "whole").iterdir()
    data = file.read_bytes()
    ends = [20, 20 + 8 + 3, 20 + 16 + 6, len(data)]
    for size in range(len(data)):
        (tmp_path / f"{size}").mkdir()
        (tmp_path / f"{size}" / file.name).write_bytes(data[:size])
        journal = Journal(tmp_path / f"{size}")
        there = sum(end <= size for end in ends[1:])
        assert list(journal.read(0)) == [b"one", b"two", b"three"][:there]
        journal.append([b"next"])
        journal.close()
        again = Journal(tmp_path / f"{size}")
        assert list(again.read(0)) == [*[b"one", b"two", b"three"][:there], b"next"]
        again.close()
    for at in [*range(20), *range(24, 31)]:
        folder = tmp_path / f"damaged {at}"
        folder.mkdir()
        (folder / file.name).write_bytes(data[:at] + bytes([data[at] ^ 1]) + data[at + 1 :])
        with pytest.raises(ps.CheckpointError, match=rf"is damaged at byte {0 if at < 20 else 20}"):
            Journal(folder)


def test_a_journaled_reader_goes_on_with_the_reader_behind_it(tmp_path: Path) -> None:
    source = Numbers(6, [])
    reader = Journaled(lambda: source.open(""), tmp_path)
    assert [reader.read() for _ in range(3)] == [[0], [1], [2]]
    offset = reader.offset
    assert json.loads(json.dumps(offset)) == offset
    assert reader.read() == [3]
    reader.close()
    again = Journaled(lambda: source.open(""), tmp_path)
    again.seek(offset)
    assert [again.read() for _ in range(4)] == [[3], [4], [5], None]
    again.durable(again.offset)
    again.close()
    last = Journaled(lambda: source.open(""), tmp_path)
    last.seek(again.offset)
    assert last.read() is None
    last.close()


# ------------------------------------------------------------ servers


@pytest.fixture(scope="module")
def server() -> Iterator[Any]:
    made = postgres_server.Server()
    made.start()
    yield made
    made.close()


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    made = kafka_broker.Broker(tmp_path_factory.mktemp("kafka"))
    made.start()
    yield made
    made.stop()


@pytest.mark.skipif(POSTGRES is not None, reason=POSTGRES or "")
@pytest.mark.parametrize("snapshot", [True, False])
def test_a_table_is_gone_on_with_in_a_snapshot_and_in_a_transaction(
    server: Any, snapshot: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from pointstamp.connectors.postgres import PostgresSource

    monkeypatch.setattr("pointstamp.connectors.postgres.source.CHANGES", 10)
    slow_down(monkeypatch)  # so that most checkpoints are made within a transaction
    table = server.published("n int primary key")
    server.do(f"insert into {table} select generate_series(0, 499)")

    def read(scope: ps.Scope) -> ps.Stream[int]:
        source = PostgresSource(server.conninfo, table, slot=table, snapshot=snapshot)
        changes: ps.Stream[Any] = scope.read(source, every=0.001)
        return changes.map(lambda change: change.row["n"])

    def begin(worker: ps.Worker, seen: list[Any]) -> None:
        if not snapshot:
            worker.step_while(lambda: not slots(server, table), timeout=60)
            server.do(f"insert into {table} select generate_series(500, 999)")
        cut_and_crash(10)(worker, seen)

    with pytest.raises(Enough):
        run(tmp_path, read, begin)
    if snapshot:
        server.do(f"insert into {table} select generate_series(500, 999)")
        with pytest.raises(Enough):
            run(tmp_path, read, cut_and_crash(10))
    server.do(f"insert into {table} values (1000)")

    def until_shown(worker: ps.Worker, seen: list[Any]) -> None:
        worker.step_while(lambda: 1000 not in shown(tmp_path), timeout=60)
        raise Enough

    with pytest.raises(Enough):
        run(tmp_path, read, until_shown)
    assert shown(tmp_path) == Counter(range(0 if snapshot else 500, 1001))


@pytest.mark.skipif(POSTGRES is not None, reason=POSTGRES or "")
@pytest.mark.parametrize("mode", ["fast", "immediate"])
def test_a_server_that_is_started_again_has_each_row_once(server: Any, mode: str, tmp_path: Path) -> None:
    """While the server goes and comes, and after a crash of the program: from a table to another table.

    A server that is stopped orderly waits until all is acknowledged that it has sent. It takes no rows
    meanwhile, so then the target is elsewhere.
    """
    from pointstamp.connectors.postgres import PostgresSink, PostgresSource

    table, target = server.published("n int primary key"), server.table("n int, total int")
    columns, query = ["n", "total"], f"select n, total from {target}"
    sink: Sink
    if mode == "fast":
        sink = SQLiteSink(tmp_path / "out.db", target, columns=columns)
    else:
        sink = PostgresSink(server.conninfo, target, columns=columns)
    given = 0

    def insert() -> None:
        nonlocal given
        server.do(f"insert into {table} select generate_series({given}, {given + 99})")
        given += 100

    def written() -> list[tuple[int, int]]:
        if mode == "fast":
            with closing(sqlite3.connect(tmp_path / "out.db")) as database:
                return database.execute(query).fetchall()
        found: list[tuple[int, int]] = server.do(query)
        return found

    def main(worker: ps.Worker) -> None:
        with worker.dataflow() as scope:
            changes: ps.Stream[Any] = scope.read(
                PostgresSource(server.conninfo, table, slot=table), every=0.01
            )
            ones = changes.key_by(lambda change: change.row["n"] % 3, lambda change: change.row["n"])
            counts = ones.state_machine(lambda _, n, seen: (seen + 1, [(n, seen + 1)]), default=int)
            counts.write(sink)
        for restarts in (False, True, True):
            insert()
            if restarts:
                restart = threading.Thread(target=lambda: (server.stop(mode), server.start()))
                restart.start()
                while restart.is_alive():
                    worker.step_or_park(0.005)
                restart.join()
            worker.step_while(lambda: len(written()) < given, timeout=60)
        insert()
        for _ in range(20):
            worker.step_or_park(0.005)
        raise Enough

    config = ps.Config(checkpoint=ps.Checkpoint(tmp_path / "state", every=0.02))
    insert()
    for _ in range(2):
        with pytest.raises(Enough):
            ps.execute(main, config=config)
    found = written()
    assert set(Counter(n for n, _ in found).values()) == {1}
    totals = [sorted(total for n, total in found if n % 3 == key) for key in range(3)]
    assert totals == [list(range(1, len(some) + 1)) for some in totals]
    assert given - 100 <= len(found) <= given


def slots(server: Any, name: str) -> list[Any]:
    found: list[Any] = server.do(
        f"select slot_name from pg_replication_slots where slot_name like '{name}%' and active"
    )
    return found


@pytest.mark.skipif(KAFKA is not None, reason=KAFKA or "")
def test_partitions_are_gone_on_with_by_other_workers(broker: Any, tmp_path: Path) -> None:
    from pointstamp.connectors.kafka import KafkaSource

    topic = broker.topic(3)
    broker.send(topic, [(n % 3, str(n).encode()) for n in range(300)])

    def read_of(bounded: bool) -> Read:
        def read(scope: ps.Scope) -> ps.Stream[int]:
            source = KafkaSource(
                broker.servers,
                topic,
                record=lambda message: int(message.value()),
                group=f"group of {topic}",
                bounded=bounded,
                discover=None,
                config={"log_level": 0},
            )
            return scope.read(source, every=0.01)  # type: ignore[no-any-return]

        return read

    for turn, workers in enumerate((1, 3, 2)):
        with pytest.raises(Enough):
            run(tmp_path, read_of(False), cut_and_crash(20), workers=workers)
        added = range(300 + 90 * turn, 300 + 90 * (turn + 1))
        broker.send(topic, [(n % 3, str(n).encode()) for n in added])
    run(tmp_path, read_of(True), workers=2)
    assert shown(tmp_path) == Counter(range(570))


@pytest.mark.skipif(KAFKA is not None, reason=KAFKA or "")
def test_the_latest_message_is_looked_up_once(broker: Any, tmp_path: Path) -> None:
    """Messages that come between two runs are read, though nothing was read of their partition before."""
    from pointstamp.connectors.kafka import KafkaSource

    topic = broker.topic(2)

    def read(scope: ps.Scope) -> ps.Stream[int]:
        source = KafkaSource(
            broker.servers,
            topic,
            record=lambda message: int(message.value()),
            start="latest",
            config={"log_level": 0},
        )
        return scope.read(source, every=0.01)  # type: ignore[no-any-return]

    def first(worker: ps.Worker, seen: list[Any]) -> None:
        n = 0
        while not seen:  # until the first partition is read at its end, and in all likelihood the second
            broker.send(topic, [(0, str(n).encode())])
            n += 1
            worker.step_or_park(0.1)
        worker.step_or_park(2.0)
        make_checkpoint(worker)
        raise Enough

    with pytest.raises(Enough):
        run(tmp_path, read, first)
    broker.send(topic, [(1, b"1000")])

    def second(worker: ps.Worker, seen: list[Any]) -> None:
        worker.step_while(lambda: 1000 not in shown(tmp_path), timeout=60)
        raise Enough

    with pytest.raises(Enough):
        run(tmp_path, read, second)
    assert set(shown(tmp_path).values()) == {1}
