"""Sinks report what they do not write, and refuse data that they cannot write correctly."""

import math
import os
import sqlite3
import warnings
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import pointstamp as ps
from harness import notes, script
from pointstamp.connectors import DuckDBSink, ParquetSink, Sink, SinkWriter, SQLiteSink

SCHEMA = pa.schema([("k", pa.string()), ("v", pa.int64())])


def write(records: list[Any], *sinks: Sink, workers: int = 1) -> None:
    def main(worker: ps.Worker) -> None:
        with worker.dataflow() as scope:
            for sink in sinks:
                scope.to_stream(records[worker.index :: worker.peers]).write(sink)

    ps.execute(main, workers=workers)


def rows(path: Path) -> list[Any]:
    database = sqlite3.connect(path)
    try:
        return sorted(database.execute("select * from t").fetchall())
    finally:
        database.close()


def sink(kind: str, folder: Path, name: str | None = None) -> Sink:
    if kind == "parquet":
        return ParquetSink(folder / "t", schema=SCHEMA, name=name)
    return SQLiteSink(folder / "t.db", "t", columns=["k", "v"], name=name)


def read(kind: str, folder: Path) -> list[Any]:
    if kind == "parquet":
        return sorted((row["k"], row["v"]) for row in pq.read_table(folder / "t").to_pylist())
    return rows(folder / "t.db")


@pytest.mark.parametrize("kind", ["parquet", "sqlite"])
@pytest.mark.parametrize("workers", [1, 2])
def test_a_second_run_is_warned_of_what_it_does_not_write(kind: str, workers: int, tmp_path: Path) -> None:
    write([("mon", 1), ("mon", 2)], sink(kind, tmp_path), workers=workers)
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        write([("tue", 1), ("tue", 2)], sink(kind, tmp_path), workers=workers)
    assert read(kind, tmp_path) == [("mon", 1), ("mon", 2)]
    assert {one.category for one in said} == {ps.WrittenBefore}
    assert sum(int(str(one.message).split()[0]) for one in said) == 2
    assert all("name=" in str(one.message) for one in said)


@pytest.mark.parametrize("kind", ["parquet", "sqlite"])
@pytest.mark.parametrize("workers", [1, 2])
def test_runs_with_names_of_their_own_add_up(kind: str, workers: int, tmp_path: Path) -> None:
    for day in ("mon", "tue", "mon-0"):
        write([(day, 1), (day, 2)], sink(kind, tmp_path, day), workers=workers)
    assert read(kind, tmp_path) == sorted((day, n) for day in ("mon", "tue", "mon-0") for n in (1, 2))


@pytest.mark.parametrize("kind", ["parquet", "sqlite"])
def test_two_sinks_of_one_target_are_refused_unless_they_have_names(kind: str, tmp_path: Path) -> None:
    with pytest.raises(ps.GraphError, match=r"open already.*name="):
        write([("a", 1)], sink(kind, tmp_path), sink(kind, tmp_path))
    write([("a", 1)], sink(kind, tmp_path, "one"), sink(kind, tmp_path, "two"))
    assert read(kind, tmp_path) == [("a", 1), ("a", 1)]


@pytest.mark.parametrize("kind", ["parquet", "sqlite"])
def test_a_sink_that_could_not_be_opened_can_be_tried_again(kind: str, tmp_path: Path) -> None:
    folder = tmp_path / "folder"
    folder.mkdir()
    place = folder / ("t" if kind == "parquet" else "t.db")
    place.write_text("neither a directory nor a database")
    with pytest.raises((OSError, sqlite3.DatabaseError)) as kept:
        write([("a", 1)], sink(kind, folder))
    place.unlink()
    write([("a", 1)], sink(kind, folder))  # while the exception is kept, with all the frames of the first
    assert read(kind, folder) == [("a", 1)]
    assert kept.value.__traceback__ is not None


# In a process of its own, which a lock that is taken twice would stop.
COLLECTS = """
import gc
import pointstamp as ps
from pointstamp.connectors.claims import Claim

held = Claim("held", "a sink")
for n in range(300):
    ring = []
    ring += [ring, Claim(n, "a sink in garbage")]
    del ring
    gc.set_threshold(1 + n % 9, 1, 1)
    try:
        Claim("held", "a second sink")
    except ps.GraphError:
        pass
print("over")
"""


def test_a_sink_that_dies_in_a_collection_while_another_is_opened_stops_nothing() -> None:
    assert script(COLLECTS, timeout=380) == "over\n"


def test_the_table_is_there_when_nothing_was_written(tmp_path: Path) -> None:
    write([], sink("sqlite", tmp_path))
    assert rows(tmp_path / "t.db") == []


@pytest.mark.parametrize("record", [{"kk": "a", "v": 1}, {"v": 1}, ("a",), 5])
def test_parquet_refuses_records_that_are_no_rows_of_its_schema(record: Any, tmp_path: Path) -> None:
    with pytest.raises(TypeError, match="a Parquet sink makes rows of"):
        write([record], sink("parquet", tmp_path))


class _Failing(Sink):
    """Fails when it writes, and then at every other step; notes that it was closed."""

    def __init__(self) -> None:
        self.closed = False

    def open(self, worker: int, workers: int) -> SinkWriter:
        outer = self

        class Writer(SinkWriter):
            def write(self, time: ps.Time, batch: Any) -> None:
                raise OSError("disk full")

            def prepare(self, time: ps.Time) -> None: ...

            def commit(self, time: ps.Time) -> None: ...

            def abort(self) -> None:
                raise RuntimeError("abort failed, too")

            def close(self) -> None:
                outer.closed = True
                raise RuntimeError("and close")

        return Writer()


def test_what_failed_first_is_raised_and_the_writer_is_closed() -> None:
    failing = _Failing()
    with pytest.raises(OSError, match="disk full") as caught:
        write([1], failing)
    assert failing.closed
    notes = "\n".join(getattr(caught.value, "__notes__", []))
    assert "abort failed, too" in notes
    assert "and close" in notes


# ------------------------------------------------------------ what is no row, and no table for it


@pytest.mark.parametrize(
    ("record", "said"),
    [
        ("ab", "not 'ab'"),
        ((1,), "sequences of 2 values, not \\(1,\\)"),
        ({"x": 1}, "has no 'y': {'x': 1}"),
        (7, "not 7"),
        ((1, [2]), r"column 'y' of table 't' was given \[2\]: SQLite keeps None"),
    ],
)
def test_databases_refuse_records_that_are_no_rows(record: Any, said: str, tmp_path: Path) -> None:
    path = tmp_path / "t.db"
    with pytest.raises(TypeError, match=said) as raised:
        ps.example(lambda scope: scope.to_stream([record]).write(SQLiteSink(path, "t", columns=["x", "y"])))
    assert f"while time 0 was written to table 't' of {path}" in notes(raised.value)


def test_numbers_of_numpy_are_numbers_in_a_database(tmp_path: Path) -> None:
    path = tmp_path / "t.db"
    row = (np.int64(5), np.float32(0.5), np.bool_(True), np.str_("a"), 7)
    sink = SQLiteSink(path, "t", columns=list("abcde"))
    ps.example(lambda scope: scope.to_stream([row]).write(sink))
    with sqlite3.connect(path) as database:
        assert database.execute("select * from t").fetchall() == [(5, 0.5, 1, "a", 7)]


@pytest.mark.parametrize("value", [np.array([1, 2]), np.datetime64(5, "ns"), np.longdouble(1)], ids=repr)
def test_a_database_keeps_no_bytes_of_what_numpy_has_beside_numbers(value: Any, tmp_path: Path) -> None:
    with pytest.raises(TypeError, match=r"column 'y' of table 't' was given .*: SQLite keeps None"):
        sink = SQLiteSink(tmp_path / "t.db", "t", columns=["x", "y"])
        ps.example(lambda scope: scope.to_stream([(1, value)]).write(sink))


def test_a_database_without_its_folder_is_refused(tmp_path: Path) -> None:
    sink = SQLiteSink(tmp_path / "none" / "t.db", "t", columns=["x", "y"])
    with pytest.raises(ps.PointstampError, match=r"cannot open the database .*none.t.db: .*Its folder"):
        ps.example(lambda scope: scope.to_stream([(1, 2)]).write(sink))


def test_a_time_that_no_database_keeps_is_refused(tmp_path: Path) -> None:
    def build(scope: ps.Scope) -> None:
        rows = scope.to_stream([(1, 2)]).delay(lambda row, _: 1 << 63)
        rows.write(SQLiteSink(tmp_path / "t.db", "t", columns=["x", "y"]))

    with pytest.raises(ps.TimeError, match="below 2"):
        ps.example(build)


@pytest.mark.parametrize("value", [None, math.nan, np.float32("nan")], ids=repr)
@pytest.mark.parametrize("key", [["x"], ["y", "x"]])
def test_a_key_that_a_database_keeps_as_null_is_refused(value: Any, key: list[str], tmp_path: Path) -> None:
    path = tmp_path / "t.db"
    sink = SQLiteSink(path, "t", columns=["x", "y"], key=key)
    said = r"column 'x' is of the key of table 't', and the record .* has (None|nan) there: .* null"
    with pytest.raises(ValueError, match=said):
        ps.example(lambda scope: scope.to_stream([(1, 2), (value, 3)]).write(sink))
    assert rows(path) == []
    plain = SQLiteSink(path, "t", columns=["x", "y"], key=["y"], name="other")
    (tmp_path / "t.db").unlink()
    ps.example(lambda scope: scope.to_stream([(1, 2), (value, 3)]).write(plain))
    assert sorted(row[1] for row in sqlite3.connect(path).execute("select * from t")) == [2, 3]


def test_a_table_without_the_key_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "t.db"

    def write(key: list[str]) -> None:
        sink = SQLiteSink(path, "t", columns=["x", "y"], key=key, name="-".join(key))
        ps.example(lambda scope: scope.to_stream([(1, 2), (1, 3)]).write(sink))

    with sqlite3.connect(path) as database:
        database.execute("create table t (x, y, primary key (y, x))")
    with pytest.raises(ps.PointstampError, match=r"no unique key of .'x'."):
        write(["x"])
    write(["x", "y"])
    database.execute("delete from t")
    database.execute("create unique index by_x on t (x)")
    database.commit()
    write(["x"])
    assert database.execute("select x, y from t").fetchall() == [(1, 3)]
    database.close()


def test_two_ways_to_one_directory_are_one_target(tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to(tmp_path / "out")
    (tmp_path / "out").mkdir()
    schema = pa.schema([("n", pa.int64())])

    def build(scope: ps.Scope) -> None:
        rows = scope.to_stream([{"n": 1}])
        rows.write(ParquetSink(tmp_path / "out", schema=schema))
        rows.write(ParquetSink(tmp_path / "link", schema=schema))

    with pytest.raises(ps.GraphError, match="is open already"):
        ps.example(build)


def test_what_parquet_commits_outlives_a_loss_of_power(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """File, directory, name: each is written to the disk before the next step relies on it."""
    said: list[tuple[str, int]] = []
    sync, rename = os.fsync, os.rename

    def synced(descriptor: int) -> None:
        said.append(("sync", os.fstat(descriptor).st_ino))
        sync(descriptor)

    def renamed(source: Path, target: Path) -> None:
        said.append(("rename", os.stat(source).st_ino))
        rename(source, target)

    monkeypatch.setattr(os, "fsync", synced)
    monkeypatch.setattr(os, "rename", renamed)
    out = tmp_path / "out"
    write([{"k": "a", "v": 1}], ParquetSink(out, schema=SCHEMA))
    [folder] = out.iterdir()
    [file] = folder.iterdir()
    assert said == [
        ("sync", file.stat().st_ino),
        ("sync", folder.stat().st_ino),
        ("rename", folder.stat().st_ino),
        ("sync", out.stat().st_ino),
    ]


def changes(path: Path) -> int:
    """Counts the transactions that have changed a SQLite database: its file counts them in its header."""
    return int.from_bytes(path.read_bytes()[24:28], "big")


def test_times_that_end_together_share_a_transaction(tmp_path: Path) -> None:
    def write(records: list[tuple[int, int]], path: Path) -> None:
        def build(scope: ps.Scope) -> None:
            at_times = scope.to_stream(records).delay(lambda record, _: record[0])
            at_times.write(SQLiteSink(path, "t", columns=["time", "x"]))

        ps.example(build)

    one, many = tmp_path / "one.db", tmp_path / "many.db"
    write([(0, 0)], one)
    write([(time, 10 * time) for time in range(200)], many)
    assert rows(many) == [(time, 10 * time) for time in range(200)]
    assert changes(many) == changes(one)


def test_a_time_that_cannot_be_written_takes_those_of_its_transaction_with_it(tmp_path: Path) -> None:
    path = tmp_path / "t.db"

    def run(records: list[tuple[int, Any]]) -> None:
        def build(scope: ps.Scope) -> None:
            at_times = scope.to_stream(records).delay(lambda record, _: record[0])
            at_times.write(SQLiteSink(path, "t", columns=["time", "x"]))

        ps.example(build)

    with pytest.raises(TypeError, match="column 'x'") as failed:
        run([(1, 1), (2, [2]), (3, 3)])
    assert "while time 2 was written to table 't'" in "".join(notes(failed.value))
    assert rows(path) == []
    run([(1, 1), (2, 2), (3, 3)])  # the same times, mended: all of them are new
    assert rows(path) == [(1, 1), (2, 2), (3, 3)]


@pytest.mark.parametrize(
    ("made", "columns", "key", "match"),
    [
        ("", ["k", "v"], ["k"], r'create table "t" \("k" \.\.\., "v" \.\.\., primary key \("k"\)\)'),
        ("create table t (k text)", ["k", "v"], None, r"no column 'v'; it has \['k'\].*alter table"),
        ("create table t (k text, v int)", ["k", "v"], ["k"], "no primary key of .'k'"),
    ],
)
def test_a_table_of_duckdb_that_is_not_as_it_is_wanted_is_found_when_the_dataflow_is_built(
    made: str, columns: list[str], key: list[str] | None, match: str, tmp_path: Path
) -> None:
    path = tmp_path / "t.db"
    with duckdb.connect(str(path)) as database:
        database.execute(made or "create table other (x int)")
    with pytest.raises(ps.PointstampError, match=match):
        write([], DuckDBSink(path, "t", columns=columns, key=key))
    with duckdb.connect(str(path)) as database:  # nothing has it open any more
        assert "pointstamp_times" not in [row[0] for row in database.execute("show tables").fetchall()]


@pytest.mark.parametrize("kind", [SQLiteSink, DuckDBSink])
def test_the_names_of_columns_may_be_in_any_case_and_the_key_in_any_order(kind: Any, tmp_path: Path) -> None:
    path = tmp_path / "t.db"
    made = "create table t (A int, B int, v int, primary key (A, B))"
    if kind is DuckDBSink:
        with duckdb.connect(str(path)) as database:
            database.execute(made)
    write([(1, 2, 3), (1, 2, 4)], kind(path, "t", columns=["a", "b", "v"], key=["b", "a"]))


def test_a_table_of_sqlite_without_a_column_is_found_when_the_dataflow_is_built(tmp_path: Path) -> None:
    path = tmp_path / "t.db"
    database = sqlite3.connect(path)
    database.execute("create table t (k text)")
    database.close()
    with pytest.raises(ps.PointstampError, match=r"no column 'v'; it has \['k'\]"):
        write([], SQLiteSink(path, "t", columns=["k", "v"]))


def test_a_database_that_another_program_has_locked_is_waited_for(tmp_path: Path) -> None:
    path = tmp_path / "t.db"
    write([], SQLiteSink(path, "t", columns=["k"]))
    locked = sqlite3.connect(path, isolation_level=None)
    taken: list[Any] = []

    def lock(record: tuple[int]) -> tuple[int]:
        if not taken:
            taken.append(locked.execute("begin exclusive"))
        return record

    def build(scope: ps.Scope) -> None:
        scope.to_stream([(1,)]).map(lock).write(SQLiteSink(path, "t", columns=["k"], patience=0.1))

    try:
        with pytest.raises(sqlite3.OperationalError, match="locked") as failed:
            ps.example(build)
    finally:
        locked.close()
    said = "".join(notes(failed.value))
    assert "while time 0 was written to table 't'" in said
    assert "another program was waited for, for 0.1 s (patience=)" in said
    with pytest.raises(ValueError, match="patience is a number of seconds, more than 0"):
        SQLiteSink(path, "t", columns=["k"], patience=-1)
