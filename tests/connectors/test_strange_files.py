"""Files of other programs that are not what they should be: errors that name them, no crash."""

import csv
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import pointstamp as ps
from harness import notes
from pointstamp.connectors import CSVSource, JSONLinesSource, ParquetSource, text

NUMBERS = pa.schema([("a", pa.int64())])


def rows_of(make: Any) -> list[Any]:
    captured = ps.example(lambda scope: scope.read(make()).to_records().capture())
    return [row for _, rows in captured.extract() for row in rows]


@pytest.mark.parametrize("encoding", ["latin-1", "utf-16"])
def test_names_of_columns_that_are_not_text(encoding: str, tmp_path: Path) -> None:
    path = tmp_path / "sizes.csv"
    path.write_bytes("größe,n\n1,2\n".encode(encoding))
    with pytest.raises(ValueError, match="names of columns are not UTF-8") as raised:
        rows_of(lambda: CSVSource(path))
    assert any(str(path) in note for note in notes(raised.value))
    with pytest.raises(ValueError, match="names of columns are not UTF-8") as raised:
        rows_of(lambda: CSVSource(path, schema=NUMBERS))
    assert any(str(path) in note for note in notes(raised.value))


def test_a_schema_whose_names_are_not_text_is_refused() -> None:
    """pyarrow makes such schemas, and readers in Rust panic at them."""
    from pyarrow import csv as reader

    table = reader.read_csv(pa.BufferReader("größe\n1\n".encode("latin-1")))
    with pytest.raises(ValueError, match=r"(?i)utf-8"):
        ps.ArrowInput(table.schema)
    for data in (table, table.to_batches()[0]):
        given = ps.ArrowInput(NUMBERS)

        def build(scope: ps.Scope, data: Any = data, given: ps.ArrowInput = given) -> None:
            given.to_stream(scope)
            given.send(data)

        with pytest.raises(ValueError, match=r"(?i)utf-8"):
            ps.example(build)


@pytest.mark.parametrize(
    ("text", "line"), [("null\n", 1), ('{"a": 1}\n null\t\n{"a": 2}\n', 2), ('{"a": 1}\r\nnull', 2)]
)
def test_a_line_that_is_null_is_no_row(text: str, line: int, tmp_path: Path) -> None:
    """pyarrow crashes at a block of such lines, and reads one as a row elsewhere."""
    path = tmp_path / "n.jsonl"
    path.write_text(text)
    with pytest.raises(ValueError, match=rf"line {line} of .*n\.jsonl: null is no row"):
        rows_of(lambda: JSONLinesSource(path, schema=NUMBERS))
    path.write_text('{"a": null}\n{"a": 3}\n')
    assert rows_of(lambda: JSONLinesSource(path, schema=NUMBERS)) == [{"a": None}, {"a": 3}]


def test_parquet_that_is_none_is_named(tmp_path: Path) -> None:
    good, empty, other = (tmp_path / name for name in ("a.parquet", "b.parquet", "c.parquet"))
    pq.write_table(pa.table({"a": [1]}), good)
    empty.write_bytes(b"")
    pq.write_table(pa.table({"a": ["text"]}), other)
    cases: list[tuple[list[Path], Path]] = [([empty], empty), ([good, empty], empty), ([good, other], other)]
    for paths, named in cases:
        with pytest.raises((ValueError, TypeError)) as raised:
            rows_of(lambda paths=paths: ParquetSource(paths))
        assert any(str(named) in note for note in notes(raised.value))


def test_a_file_of_several_names_is_read_once(tmp_path: Path) -> None:
    path = tmp_path / "a.parquet"
    pq.write_table(pa.table({"a": [1]}), path)
    (tmp_path / "link.parquet").symlink_to(path)
    spelled: list[Any] = [path, tmp_path / "link.parquet", f"{tmp_path}/../{tmp_path.name}/a.parquet"]
    assert rows_of(lambda: ParquetSource(spelled)) == [{"a": 1}]


@pytest.mark.parametrize("delimiter", [",", "|"])
def test_line_breaks_in_quotes_wherever_blocks_end(
    delimiter: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    texts = ["plain", "two\nlines", 'a "word"', "a, | b\n\n", 'ends in ""\n"', "", '5" pipe'] * 6
    path = tmp_path / "texts.csv"
    with path.open("w", newline="") as file:
        writer = csv.writer(file, delimiter=delimiter, lineterminator="\n")
        writer.writerow(["n", "text"])
        writer.writerows(enumerate(texts))
        file.write(f'{len(texts)}{delimiter}stray " quote\n')  # which opens nothing
    expected = [*texts, 'stray " quote']
    schema = pa.schema([("n", pa.int64()), ("text", pa.string())])
    for block in (20, 33, 64, 100, 1 << 20):
        monkeypatch.setattr(text, "BLOCK", block)
        got = rows_of(lambda: CSVSource(path, schema=schema, delimiter=delimiter))
        assert [row["text"] for row in sorted(got, key=lambda row: row["n"])] == expected, block


def test_a_quote_that_has_no_end_is_an_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "open.csv"
    path.write_text('a\n1\n"2' + "\n3" * 500 + "\n")
    monkeypatch.setattr(text, "BLOCK", 100)
    monkeypatch.setattr(text, "MOST_QUOTED", 1000)
    with pytest.raises(ValueError, match=r"line 3 of .*open\.csv: a value in quotes has no end"):
        rows_of(lambda: CSVSource(path, schema=NUMBERS))
