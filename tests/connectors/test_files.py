"""Files and databases as sources and sinks: all rows, once, whatever the number of workers, and again after a
failure."""

import json
import os
import sqlite3
import subprocess
import sys
import textwrap
from collections import Counter
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import pointstamp as ps
from harness import notes, run
from pointstamp.connectors import (
    CSVSource,
    DuckDBSink,
    JSONLinesSource,
    ParquetSink,
    ParquetSource,
    SQLiteSink,
)
from pointstamp.connectors.postgres import PostgresSink

WORKERS = [1, 3]
SCHEMA = pa.schema([("word", pa.string()), ("n", pa.int64())])


def rows(count: int, start: int = 0) -> list[dict[str, Any]]:
    return [{"word": f"w{n % 7}", "n": n} for n in range(start, start + count)]


def bag(items: Any) -> Counter[str]:
    return Counter(json.dumps(item, sort_keys=True) for item in items)


def table_of(captures: list[Any]) -> list[dict[str, Any]]:
    batches = [batch for capture in captures for _, batches in capture.extract() for batch in batches]
    assert all(batch.schema == SCHEMA for batch in batches)
    rows: list[dict[str, Any]] = pa.Table.from_batches(batches, SCHEMA).to_pylist()
    return rows


# ------------------------------------------------------------ sources


OPENS = """
    import sys
    from collections import Counter
    import pointstamp as ps
    from pointstamp.connectors import CSVSource, JSONLinesSource, ParquetSource

    folder, kind, workers = sys.argv[1:]
    source = {"csv": CSVSource, "jsonl": JSONLinesSource, "parquet": ParquetSource}[kind](folder)
    opened, read = Counter(), Counter()

    def hook(event, args):
        if event == "open" and str(args[0]).startswith(folder):
            opened[str(args[0])] += 1

    sys.addaudithook(hook)
    plain = source.open
    source.open = lambda partition: read.update([partition]) or plain(partition)

    def main(worker):
        with worker.dataflow() as scope:
            scope.read(source).probe()
        worker.run()

    ps.execute(main, workers=int(workers))
    print(sorted(read.values()), sorted((opened if kind != "parquet" else read).values()))
"""


@pytest.mark.parametrize("kind", ["csv", "jsonl", "parquet"])
def test_on_several_workers_no_file_is_opened_twice(kind: str, folder: Path) -> None:
    words = [sys.executable, "-c", textwrap.dedent(OPENS), str(folder), kind, "3"]
    done = subprocess.run(words, capture_output=True, text=True, timeout=380, check=False)
    assert done.stdout == "[1, 1, 1, 1] [1, 1, 1, 1]\n", done.stderr


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for n in range(4):
        part = rows(10, 10 * n)
        (tmp_path / f"{n}.csv").write_text("word,n\n" + "".join(f"{r['word']},{r['n']}\n" for r in part))
        (tmp_path / f"{n}.jsonl").write_text("\n".join(json.dumps(r) for r in part))
        pq.write_table(pa.Table.from_pylist(part, SCHEMA), tmp_path / f"{n}.parquet", row_group_size=3)
    (tmp_path / ".hidden.csv").write_text("not, what, others, are\n1")
    return tmp_path


@pytest.mark.parametrize("workers", WORKERS)
@pytest.mark.parametrize("make", [CSVSource, ParquetSource, lambda p: JSONLinesSource(p, schema=SCHEMA)])
def test_directories_are_read_once(make: Any, workers: int, folder: Path) -> None:
    captures = run(workers, lambda scope: scope.read(make(folder)).capture())
    assert bag(table_of(captures)) == bag(rows(40))


@pytest.mark.parametrize("workers", WORKERS)
def test_json_lines_are_records_without_a_schema(workers: int, folder: Path) -> None:
    captures = run(workers, lambda scope: scope.read(JSONLinesSource(folder / "*.jsonl")).capture())
    assert bag(r for c in captures for _, rs in c.extract() for r in rs) == bag(rows(40))


def test_patterns_lists_and_columns(folder: Path) -> None:
    some: list[Any] = [folder / "1.parquet", str(folder / "[23].parquet")]
    (capture,) = run(1, lambda scope: scope.read(ParquetSource(some, columns=["n"])).capture())
    ns = [n for _, batches in capture.extract() for b in batches for n in b.column("n").to_pylist()]
    assert sorted(ns) == list(range(10, 40))
    with pytest.raises(FileNotFoundError, match="no files"):
        CSVSource(folder / "*.tsv")


@pytest.mark.parametrize("kind", [CSVSource, JSONLinesSource, ParquetSource])
def test_where_no_file_is_it_says_what_it_looks_for(kind: Any, tmp_path: Path) -> None:
    (tmp_path / "x.json").write_text("1\n")
    (tmp_path / f"_y{kind.ending}").write_text("1\n")
    with pytest.raises(FileNotFoundError) as of_directory:
        kind(path for path in [tmp_path])
    said = str(of_directory.value)
    assert said.startswith(f"there are no files at {str(tmp_path)!r}: of a directory, files are read whose")
    assert f"end in {kind.ending!r} and begin with neither '.' nor '_'" in said
    assert said.endswith(f"such as {str(tmp_path / '*.json')!r}")
    with pytest.raises(FileNotFoundError, match=r"nothing matches the pattern$"):
        kind(tmp_path / "*.z")
    with pytest.raises(FileNotFoundError, match="the list of paths is empty"):
        kind([])


def test_a_pattern_that_is_advised_finds_the_file(tmp_path: Path) -> None:
    (tmp_path / "x.json").write_text("1\n")
    with pytest.raises(FileNotFoundError) as raised:
        JSONLinesSource(tmp_path)
    advised = str(raised.value).rpartition("such as ")[2].strip("'")
    (capture,) = run(1, lambda scope: scope.read(JSONLinesSource(advised)).capture())
    assert capture.extract() == [(0, [1])]


def _parquet(columns: Any, folder: Path) -> ParquetSource:
    pq.write_table(pa.table({"k": ["a"], "v": [1]}), folder / "t.parquet")
    return ParquetSource(folder / "t.parquet", columns=columns)


@pytest.mark.parametrize(
    ("make", "argument"),
    [
        (lambda names, folder: SQLiteSink(folder / "t.db", "t", columns=names), "columns"),
        (lambda names, folder: SQLiteSink(folder / "t.db", "t", columns=["k"], key=names), "key"),
        (lambda names, folder: DuckDBSink(folder / "t.db", "t", columns=names), "columns"),
        (lambda names, folder: DuckDBSink(folder / "t.db", "t", columns=["k"], key=names), "key"),
        (lambda names, folder: PostgresSink("dbname=x", "t", columns=names), "columns"),
        (lambda names, folder: PostgresSink("dbname=x", "t", columns=["k"], key=names), "key"),
        (_parquet, "columns"),
    ],
)
def test_one_text_is_no_list_of_names(make: Any, argument: str, tmp_path: Path) -> None:
    make(["k"], tmp_path)
    for given, meant in [("k", ["k"]), ("kv", ["kv"]), ("k, v", ["k", "v"]), (b"k", ["k"])]:
        with pytest.raises(TypeError) as raised:
            make(given, tmp_path)
        said = str(raised.value)
        assert said.startswith(f"{argument} is a list of names, and was given {given!r}")
        assert said.endswith(f"write {argument}={meant!r}")


@pytest.mark.parametrize("make", [CSVSource, ParquetSource, lambda p: JSONLinesSource(p, schema=SCHEMA)])
def test_every_offset_is_a_place_to_go_on(make: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("pointstamp.connectors.text.BLOCK", 40)
    monkeypatch.setattr("pointstamp.connectors.files.ROWS", 4)
    part = rows(17)
    csv, lines, parquet = (tmp_path / f"a.{end}" for end in ("csv", "jsonl", "parquet"))
    csv.write_text("word,n\n" + "".join(f"{r['word']},{r['n']}\n" for r in part))
    lines.write_text("\n".join(json.dumps(r) for r in part))
    pq.write_table(pa.Table.from_pylist(part, SCHEMA), parquet, row_group_size=5)
    source = make(tmp_path)
    (name,) = source.partitions()
    reader = source.open(name)
    offsets, read = [reader.offset], [0]
    while (batch := reader.read()) is not None:
        offsets.append(reader.offset)
        read.append(read[-1] + len(batch))
    reader.close()
    assert read[-1] == 17
    assert len(offsets) >= 4
    for offset, before in zip(offsets, read, strict=True):
        again = source.open(name)
        again.seek(offset)
        rest = []
        while (batch := again.read()) is not None:
            rest += batch.to_pylist()
        again.close()
        assert rest == part[before:]


def test_a_file_is_followed_as_it_grows(tmp_path: Path) -> None:
    path = tmp_path / "log.jsonl"
    path.write_text('{"n": 0}\n{"n": 1')  # a line that is not whole yet
    seen: list[int] = []

    def main(worker: ps.Worker) -> None:
        with worker.dataflow() as scope:
            scope.read(JSONLinesSource(path, follow=True)).inspect(lambda r: seen.append(r["n"]))
        worker.step_while(lambda: len(seen) < 1)
        with path.open("a") as file:
            file.write('1}\n{"n": 2}\n')
        worker.step_while(lambda: len(seen) < 3)
        raise StopAsyncIteration  # it would follow for ever

    with pytest.raises(StopAsyncIteration):
        ps.execute(main)
    assert seen == [0, 11, 2]


def test_what_cannot_be_read_is_named(tmp_path: Path) -> None:
    path = tmp_path / "bad.jsonl"
    path.write_text('{"n": 0}\nnonsense\n')
    with pytest.raises(ValueError, match=r"line 2 of .*bad\.jsonl") as raised:
        run(2, lambda scope: scope.read(JSONLinesSource(path)).capture())
    said = "\n".join(notes(raised.value))
    assert f"while reading partition '{path}' from offset {{'position': 9" in said
    assert "It begins at byte 9: 'nonsense'. Mend it" in said


# ------------------------------------------------------------ sinks


def timed(scope: ps.Scope, count: int = 40) -> ps.Stream[Any]:
    mine = [r for r in rows(count) if r["n"] % scope.peers == scope.index]
    times = ((t, [r for r in mine if r["n"] // 10 == t]) for t in range(count // 10))
    return scope.iterator_source("rows", times, in_flight=2)


def failing(scope: ps.Scope) -> ps.Stream[Any]:
    def check(row: Any) -> Any:
        if row["n"] == 25:
            raise RuntimeError("row 25")
        return row

    return timed(scope).map(check)


@pytest.mark.parametrize("workers", WORKERS)
def test_parquet_has_whole_times(workers: int, tmp_path: Path) -> None:
    run(workers, lambda scope: timed(scope).write(ParquetSink(tmp_path / "out", schema=SCHEMA)))
    names = sorted(os.listdir(tmp_path / "out"))
    assert names == [f"{time:020}" for time in range(4)]
    assert all(len(os.listdir(tmp_path / "out" / name)) == workers for name in names)
    assert bag(pq.read_table(tmp_path / "out").to_pylist()) == bag(rows(40))
    assert bag(pq.read_table(tmp_path / "out" / names[0]).to_pylist()) == bag(rows(10))


@pytest.mark.filterwarnings("ignore::pointstamp.WrittenBefore")  # the second run is told, as it should be
def test_parquet_of_a_dataflow_that_failed_has_no_part_of_a_time(tmp_path: Path) -> None:
    out = tmp_path / "out"
    with pytest.raises(RuntimeError, match="row 25"):
        run(2, lambda scope: failing(scope).write(ParquetSink(out, schema=SCHEMA)))
    shown = [name for name in sorted(os.listdir(out)) if not name.startswith(".")]
    assert shown == [f"{time:020}" for time in range(len(shown))]
    left = bag(pq.read_table(out).to_pylist()) if shown else Counter[str]()
    assert left == bag(rows(10 * len(shown))), "whole times"
    run(2, lambda scope: timed(scope).write(ParquetSink(out, schema=SCHEMA)))
    assert bag(pq.read_table(out).to_pylist()) == bag(rows(40)), "again: nothing is there twice"
    run(3, lambda scope: timed(scope).write(ParquetSink(out, schema=SCHEMA)))
    assert bag(pq.read_table(out).to_pylist()) == bag(rows(40))
    assert [name for name in os.listdir(out) if name.startswith(".")] == []


def sqlite_rows(path: Path) -> list[dict[str, Any]]:
    database = sqlite3.connect(path)
    try:
        return [{"word": w, "n": n} for w, n in database.execute("select word, n from words")]
    finally:
        database.close()


@pytest.mark.filterwarnings("ignore::pointstamp.WrittenBefore")  # the second run is told, as it should be
@pytest.mark.parametrize("workers", WORKERS)
def test_sqlite_shows_each_row_once_also_after_a_failure(workers: int, tmp_path: Path) -> None:
    path = tmp_path / "words.db"
    sink = SQLiteSink(path, "words", columns=["word", "n"])
    with pytest.raises(RuntimeError, match="row 25"):
        run(workers, lambda scope: failing(scope).write(sink))
    if path.exists():
        assert bag(sqlite_rows(path)) in [bag(rows(10 * n)) for n in range(3)]
    run(workers, lambda scope: timed(scope).write(sink))
    assert bag(sqlite_rows(path)) == bag(rows(40))


def test_sqlite_replaces_by_key(tmp_path: Path) -> None:
    path = tmp_path / "words.db"
    sink = SQLiteSink(path, "words", columns=["word", "n"], key=["word"])
    run(2, lambda scope: timed(scope).write(sink))
    assert bag(sqlite_rows(path)) != Counter()
    assert {r["word"] for r in sqlite_rows(path)} == {f"w{n}" for n in range(7)}
    assert len(sqlite_rows(path)) == 7
    with pytest.raises(ValueError, match="key is some of them"):
        SQLiteSink(path, "words", columns=["word"], key=["n"])


@pytest.mark.filterwarnings("ignore::pointstamp.WrittenBefore")  # the second run is told, as it should be
@pytest.mark.parametrize("workers", WORKERS)
@pytest.mark.parametrize("columns", [True, False])
def test_duckdb_takes_columns_and_records(columns: bool, workers: int, tmp_path: Path) -> None:
    path = str(tmp_path / "words.duckdb")
    with duckdb.connect(path) as database:
        database.execute("create table words (n bigint, word text)")

    def build(scope: ps.Scope) -> None:
        stream: Any = timed(scope)
        if columns:
            stream = stream.to_arrow(SCHEMA)
        stream.write(DuckDBSink(path, "words", columns=["word", "n"]))

    run(workers, build)
    run(workers, build)  # what is there is not written again
    with duckdb.connect(path) as database:
        found = database.execute("select word, n from words").fetchall()
    assert bag({"word": w, "n": n} for w, n in found) == bag(rows(40))


def test_a_database_that_cannot_be_written_ends_the_dataflow(tmp_path: Path) -> None:
    sink = SQLiteSink(tmp_path / "none" / "words.db", "words", columns=["word", "n"])
    with pytest.raises(ps.PointstampError, match=r"unable to open.*folder must be there") as raised:
        run(2, lambda scope: timed(scope).write(sink))
    assert isinstance(raised.value.__cause__, sqlite3.OperationalError)


# ------------------------------------------------------------ nulls, and files that are not there

NULLS = [
    "",
    "#N/A",
    "#N/A N/A",
    "#NA",
    "-1.#IND",
    "-1.#QNAN",
    "-NaN",
    "-nan",
    "1.#IND",
    "1.#QNAN",
    "N/A",
    "NA",
]
NULLS += ["NULL", "NaN", "n/a", "nan", "null"]


def column_of(source: CSVSource) -> list[tuple[str, Any]]:
    captured = ps.example(lambda scope: scope.read(source).to_records().capture())
    return [(row["s"], row["f"]) for _, records in captured.extract() for row in records]


def test_the_texts_that_are_null(tmp_path: Path) -> None:
    """The docstring and the chapter list them: also in quotes, and never in a column of text."""
    from pyarrow import csv

    assert sorted(csv.ConvertOptions().null_values) == NULLS
    book = (Path(__file__).parents[2] / "docs" / "missing-values.md").read_text()
    assert all(f"`{text}`" in book and f"``{text}``" in str(CSVSource.__doc__) for text in NULLS if text)
    path = tmp_path / "a.csv"
    path.write_text("s,f\n" + "".join(f'{text},{text}\n"{text}","{text}"\n' for text in NULLS) + "1,1\n")
    schema = pa.schema([("s", pa.string()), ("f", pa.float64())])
    doubled = [text for text in NULLS for _ in range(2)]
    assert column_of(CSVSource(path, schema=schema)) == [*((text, None) for text in doubled), ("1", 1.0)]


def test_other_texts_may_be_null(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    path.write_text("s,f\na,NaN\nb,\nc,-\nd,1\n")
    for given in (None, pa.schema([("s", pa.string()), ("f", pa.float64())])):
        found = column_of(CSVSource(path, schema=given, null_values=["", "-"]))
        assert [(s, repr(f)) for s, f in found] == [("a", "nan"), ("b", "None"), ("c", "None"), ("d", "1.0")]
    with pytest.raises(TypeError, match="null_values is a list of texts, such as \\['NA'\\], not 'NA'"):
        CSVSource(path, null_values="NA")


@pytest.mark.parametrize("follow", [False, True])
def test_a_file_that_is_not_there_is_named_with_its_source(
    follow: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("pointstamp.connectors.text.LOOKS", 2)
    made: dict[str, Any] = {
        "CSVSource": lambda path: CSVSource(path, schema=SCHEMA, follow=follow),
        "JSONLinesSource": lambda path: JSONLinesSource(path, follow=follow),
    }
    if not follow:
        made["ParquetSource"] = ParquetSource
    for name, make in made.items():
        for path, where in (("a.log", f" in the directory '{tmp_path}'"), (f"{tmp_path}/a.log", "")):

            def build(scope: ps.Scope, make: Any = make, path: str = path) -> None:
                scope.read(make(path))

            with pytest.raises(FileNotFoundError) as raised:
                ps.example(build)
            waited = " and was looked for during 0.1 seconds" if follow else ""
            assert str(raised.value) == (
                f"{name} is to read '{path}', which does not exist{where}{waited}. Correct the path, or make "
                "the file before the dataflow is run"
            )
    with pytest.raises(FileNotFoundError, match=r"^CSVSource is to read 'a.log', which does not exist"):
        CSVSource("a.log")
