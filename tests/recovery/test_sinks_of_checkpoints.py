"""Each sink shows what a checkpoint covers once, whenever an execution ends; what does not fit is refused."""

import json
import shutil
import sqlite3
import uuid
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
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
    DuckDBSink,
    JSONLinesSource,
    ParquetSink,
    Sink,
    SinkWriter,
    SQLiteSink,
)
from pointstamp.connectors.outbox import size_of
from pointstamp.connectors.protocol import Position
from resuming import Enough, make_checkpoint, settings

COLUMNS = ["day", "n"]
LINEAGE, OTHER = "0" * 32, "1" * 32
ONE, TWO = "a" * 16, "b" * 16
Row = tuple[int, int]


class Target(ABC):
    """The target of a sink."""

    @abstractmethod
    def sink(self) -> Sink: ...

    @abstractmethod
    def rows(self) -> list[Row]: ...


class SQLite(Target):
    def __init__(self, folder: Path) -> None:
        self.path = folder / "out.db"

    def sink(self) -> Sink:
        return SQLiteSink(self.path, "rows", columns=COLUMNS)

    def rows(self) -> list[Row]:
        with closing(sqlite3.connect(self.path)) as database:
            return database.execute("select day, n from rows order by n").fetchall()


class DuckDB(Target):
    def __init__(self, folder: Path) -> None:
        self.duckdb = pytest.importorskip("duckdb")
        self.path = folder / "out.duckdb"
        with self.duckdb.connect(str(self.path)) as database:
            database.execute("create table rows (day bigint, n bigint)")

    def sink(self) -> Sink:
        return DuckDBSink(self.path, "rows", columns=COLUMNS)

    def rows(self) -> list[Row]:
        with self.duckdb.connect(str(self.path)) as database:
            found: list[Row] = database.execute("select day, n from rows order by n").fetchall()
            return found


class Parquet(Target):
    def __init__(self, folder: Path) -> None:
        self.path = folder / "out"

    def sink(self) -> Sink:
        return ParquetSink(self.path, schema=pa.schema([("day", pa.int64()), ("n", pa.int64())]))

    def rows(self) -> list[Row]:
        if not list(self.path.rglob("*.parquet")):
            return []
        found = parquet.read_table(self.path).to_pylist()
        return sorted(((row["day"], row["n"]) for row in found), key=lambda row: row[1])


class Postgres(Target):
    server: Any = None

    def __init__(self, _: Path) -> None:
        if Postgres.server is None:
            pytest.skip(postgres_server.missing() or "")
        self.table = f"t{uuid.uuid4().hex}"
        self.server.do(f"create table {self.table} (day bigint, n bigint)")

    def sink(self) -> Sink:
        from pointstamp.connectors.postgres import PostgresSink

        return PostgresSink(self.server.conninfo, self.table, columns=COLUMNS)

    def rows(self) -> list[Row]:
        found: list[Row] = self.server.do(f"select day, n from {self.table} order by n")
        return found


class Kafka(Target):
    broker: Any = None

    def __init__(self, _: Path) -> None:
        if Kafka.broker is None:
            pytest.skip(kafka_broker.missing() or "")
        self.topic = self.broker.topic(2)

    def sink(self) -> Sink:
        from pointstamp.connectors.kafka import KafkaSink

        return KafkaSink(
            self.broker.servers,
            self.topic,
            name=f"sink of {self.topic}",
            message=lambda row: (None, json.dumps([row["day"], row["n"]])),
            config={"log_level": 0},
        )

    def rows(self) -> list[Row]:
        from pointstamp.connectors.kafka import KafkaSource

        source = KafkaSource(
            self.broker.servers,
            self.topic,
            record=lambda message: tuple(json.loads(message.value())),
            bounded=True,
            config={"log_level": 0},
        )
        found = ps.example(lambda scope: scope.read(source).capture()).extract()
        return sorted((row for _, some in found for row in some), key=lambda row: row[1])


@pytest.fixture(scope="module", autouse=True)
def servers(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """The servers that can be started on this machine."""
    if postgres_server.missing() is None:
        Postgres.server = postgres_server.Server()
        Postgres.server.start()
    if kafka_broker.missing() is None:
        Kafka.broker = kafka_broker.Broker(tmp_path_factory.mktemp("kafka"))
        Kafka.broker.start()
    yield
    if Postgres.server is not None:
        Postgres.server.close()
    if Kafka.broker is not None:
        Kafka.broker.stop()


@pytest.fixture(params=[SQLite, DuckDB, Parquet, Postgres, Kafka], ids=lambda kind: kind.__name__.lower())
def target(request: pytest.FixtureRequest, tmp_path: Path) -> Target:
    made: Target = request.param(tmp_path)
    return made


class Crashing(Sink):
    """A sink whose writer raises before or after it has shown something."""

    positions = True

    def __init__(self, sink: Sink, when: str | None) -> None:
        self.inner = sink
        self.single = sink.single
        self.when = when

    def open(self, worker: int, workers: int) -> SinkWriter:
        return CrashingWriter(self.inner.open(worker, workers), self.when)


class CrashingWriter(SinkWriter):
    def __init__(self, inner: SinkWriter, when: str | None) -> None:
        self.inner = inner
        self.when = when
        self.positions = inner.positions  # type: ignore[method-assign]
        self.abort = inner.abort  # type: ignore[method-assign]
        self.close = inner.close  # type: ignore[method-assign]

    def write(self, time: ps.Time, batch: Any) -> None:
        raise AssertionError("with checkpoints, rows are given to show() alone")

    def commit(self, time: ps.Time) -> None:
        raise AssertionError("with checkpoints, rows are given to show() alone")

    def show(self, position: Position, rows: Sequence[tuple[ps.Time, Any]]) -> None:
        if self.when == "before":
            raise Enough
        self.inner.show(position, rows)
        if self.when == "after":
            raise Enough


def write_days(folder: Path, *days: int) -> list[Row]:
    """Adds three records of each day; returns them."""
    made = [(day, 3 * day + n) for day in days for n in range(3)]
    with (folder / "in.jsonl").open("a") as file:
        for day, n in made:
            file.write(json.dumps({"day": day, "n": n}) + "\n")
    return made


def run(
    folder: Path,
    sink: Sink,
    *,
    workers: int = 1,
    until: Callable[[ps.Worker, ps.ProbeHandle], None] | None = None,
    commit: Any = None,
    **options: Any,
) -> None:
    """Runs the program to its end, or, where it follows its file, until a function raises `Enough`."""

    def main(worker: ps.Worker) -> None:
        with worker.dataflow() as scope:
            source = JSONLinesSource(str(folder / "in.jsonl"), follow=until is not None)
            rows = scope.read(source, time=lambda row: row["day"])
            shown = rows.exchange(lambda row: row["n"]).write(sink, commit=commit)
            probe = shown.probe()
        if until is not None:
            until(worker, probe)

    ps.execute(main, config=settings(folder, workers, **options))


def step_until_shown(worker: ps.Worker, probe: ps.ProbeHandle, day: int) -> None:
    worker.step_while(lambda: probe.less_than(day), timeout=60)


def open_writer(target: Target) -> SinkWriter:
    return target.sink().open(0, 1)


def rows_of(*days: int) -> list[tuple[ps.Time, Any]]:
    return [(day, [{"day": day, "n": 3 * day + n} for n in range(3)]) for day in days]


def plain(rows: Sequence[tuple[ps.Time, Any]]) -> list[Row]:
    return [(row["day"], row["n"]) for _, batch in rows for row in batch]


@pytest.mark.parametrize("workers", [1, 2])
def test_a_crash_before_and_after_results_are_shown(target: Target, workers: int, tmp_path: Path) -> None:
    expected = write_days(tmp_path, 1, 2, 3)
    with pytest.raises(Enough):
        run(tmp_path, Crashing(target.sink(), "before"), workers=workers)
    assert target.rows() == []
    with pytest.raises(Enough):
        run(tmp_path, Crashing(target.sink(), "after"), workers=workers)
    run(tmp_path, Crashing(target.sink(), None), workers=workers)
    assert target.rows() == expected


def test_another_number_of_workers_shows_what_waits(tmp_path: Path) -> None:
    for before, after in ((3, 2), (1, 3)):
        folder = tmp_path / f"{before}"
        folder.mkdir()
        target = Parquet(folder)
        expected = write_days(folder, 1, 2, 3)
        with pytest.raises(Enough):
            run(folder, Crashing(target.sink(), "before"), workers=before)
        run(folder, target.sink(), workers=after)
        assert target.rows() == expected
        assert not list(target.path.glob(".*"))


def test_a_position_is_written_once_and_only_forwards(target: Target) -> None:
    writer = open_writer(target)
    try:
        assert list(writer.positions()) == []
        first, second = rows_of(1), rows_of(2, 3)
        writer.show(Position(LINEAGE, ONE, 0, 3), first)
        writer.show(Position(LINEAGE, ONE, 0, 3), first)
        writer.show(Position(LINEAGE, TWO, 0, 3), second)  # another sink has not shown it
        assert target_rows(target, writer) == plain([*first, *second])
    finally:
        writer.close()
    writer = open_writer(target)
    try:
        found = sorted(writer.positions())
        assert found == [Position(LINEAGE, ONE, 0, 3), Position(LINEAGE, TWO, 0, 3)]
        third = rows_of(4)
        writer.show(Position(LINEAGE, ONE, 0, 5), third)
        if not isinstance(target, Parquet):  # whose files have names of their own
            with pytest.raises(ps.CheckpointError, match="another execution has taken over"):
                writer.show(Position(LINEAGE, ONE, 0, 4), rows_of(9))
            with pytest.raises(ps.CheckpointError, match="results of another computation"):
                writer.show(Position(OTHER, ONE, 0, 6), rows_of(9))
        assert target_rows(target, writer) == plain([*first, *second, *third])
    finally:
        writer.close()


def target_rows(target: Target, writer: SinkWriter) -> list[Row]:
    """The rows of a target whose writer is open: DuckDB takes one connection at a time."""
    if isinstance(target, DuckDB):
        database: Any = writer._database  # type: ignore[attr-defined]
        found: list[Row] = database.execute("select day, n from rows order by n").fetchall()
        return found
    return target.rows()


def test_a_target_that_is_ahead_is_refused(target: Target, tmp_path: Path) -> None:
    numbers = []
    expected = write_days(tmp_path, 1, 2)

    def until(worker: ps.Worker, probe: ps.ProbeHandle) -> None:
        step_until_shown(worker, probe, 2)
        numbers.append(make_checkpoint(worker))
        expected.extend(write_days(tmp_path, 3))
        step_until_shown(worker, probe, 3)
        raise Enough

    with pytest.raises(Enough):
        run(tmp_path, target.sink(), until=until)
    shown = [row for row in expected if row[0] < 3]
    assert target.rows() == shown
    with pytest.raises(ps.CheckpointError, match=f"resumes from checkpoint {numbers[0]}"):
        run(tmp_path, target.sink(), at=numbers[0])
    shutil.move(tmp_path / "state", tmp_path / "former")
    with pytest.raises(ps.CheckpointError, match="results of another computation"):
        run(tmp_path, target.sink())
    assert target.rows() == shown
    shutil.rmtree(tmp_path / "state")
    shutil.move(tmp_path / "former", tmp_path / "state")
    run(tmp_path, target.sink())
    assert target.rows() == expected


def test_a_target_with_results_that_no_checkpoint_covers_is_refused(target: Target, tmp_path: Path) -> None:
    expected = write_days(tmp_path, 1)

    def build(scope: ps.Scope) -> None:
        source = JSONLinesSource(str(tmp_path / "in.jsonl"))
        scope.read(source, time=lambda row: row["day"]).write(target.sink())

    ps.example(build)
    with pytest.raises(ps.CheckpointError, match="were shown without checkpoints"):
        run(tmp_path, target.sink())
    assert target.rows() == expected


@pytest.mark.parametrize("workers", [1, 2])
def test_times_are_shown_as_they_end(target: Target, workers: int, tmp_path: Path) -> None:
    """A time that ended after the checkpoint comes again, and is skipped; an open one is in it."""
    expected = write_days(tmp_path, 1, 2)

    def until(worker: ps.Worker, probe: ps.ProbeHandle) -> None:
        step_until_shown(worker, probe, 2)
        if worker.index == 0:
            make_checkpoint(worker)  # which has the records of day 2
            expected.extend(write_days(tmp_path, 3, 4))
        step_until_shown(worker, probe, 4)
        raise Enough

    with pytest.raises(Enough):
        run(tmp_path, target.sink(), until=until, commit="time", workers=workers)
    assert target.rows() == [row for row in expected if row[0] < 4]
    with pytest.warns(ps.WrittenBefore):
        run(tmp_path, target.sink(), commit="time", workers=workers)
    assert target.rows() == expected


class Unplaced(Sink):
    """A sink without positions."""

    single = True

    def __init__(self) -> None:
        self.rows: list[Row] = []

    def open(self, worker: int, workers: int) -> SinkWriter:
        return UnplacedWriter(self.rows)


class UnplacedWriter(SinkWriter):
    def __init__(self, rows: list[Row]) -> None:
        self.rows = rows
        self.waiting: dict[ps.Time, list[Row]] = {}

    def write(self, time: ps.Time, batch: Any) -> None:
        self.waiting.setdefault(time, []).extend((row["day"], row["n"]) for row in batch)

    def commit(self, time: ps.Time) -> None:
        self.rows.extend(self.waiting.pop(time))


def test_a_sink_without_positions_is_refused_or_says_that_results_may_come_twice(tmp_path: Path) -> None:
    expected = write_days(tmp_path, 1, 2)
    with pytest.raises(ps.GraphError, match="Set positions = True in Unplaced"):
        run(tmp_path, Unplaced())
    sink = Unplaced()
    sink.at_least_once = True
    run(tmp_path, sink)
    assert sorted(sink.rows, key=lambda row: row[1]) == expected


def test_rows_that_cannot_be_pickled_are_named(tmp_path: Path) -> None:
    def main(worker: ps.Worker) -> None:
        with worker.dataflow() as scope:
            write_days(tmp_path, 1)
            rows = scope.read(JSONLinesSource(str(tmp_path / "in.jsonl")))
            rows.map(lambda row: lambda: row).write(SQLite(tmp_path).sink())

    config = settings(tmp_path)
    with pytest.raises(ps.CheckpointError, match="rows that wait for 'write' cannot be pickled"):
        ps.execute(main, config=config)


def test_sizes_are_about_those_of_the_rows() -> None:
    rows = [{"name": f"{n:0100}", "n": n} for n in range(1000)]
    assert 100_000 < size_of(rows) < 200_000
    assert size_of(pa.RecordBatch.from_pydict({"n": list(range(1000))})) == 8000
    assert size_of([]) == 0
    assert size_of([lambda: None] * 10) == 640
