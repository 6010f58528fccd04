"""Files as sources: CSV, JSON lines and Parquet, by batches.

Each file is a partition, so that workers share the files out and no two open the same one. Text is read in
blocks that end with a line; an offset is a number of bytes, and for Parquet one of rows. A file that is
followed is read on as it grows.
"""

from __future__ import annotations

import csv
import glob
import io
import json
import os
import re
import threading
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pointstamp._errors import PointstampError, add_note
from pointstamp.connectors.protocol import PartitionReader, Source

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator
    from typing import TypeAlias

    import pyarrow as pa

    Paths: TypeAlias = str | os.PathLike[str] | Iterable[str | os.PathLike[str]]

__all__ = ["CSVSource", "JSONLinesSource", "ParquetSource"]

BLOCK = 1 << 20
"""Bytes of text that are read at once."""

ROWS = 1 << 16
"""Rows of Parquet that are read at once."""

NULL = re.compile(rb"^[ \t\r]*null[ \t\r]*$", re.MULTILINE)
"""A line that holds no row."""

MOST_QUOTED = 8 << 20
"""Bytes that are read at most before a value in quotes has ended. A line without quotes may be longer."""

LOOK_AGAIN = 0.05
"""Seconds after which a file that is followed is asked whether it has grown."""


class _Files(Source[Any]):
    """Files, by paths, patterns and directories."""

    ending: str

    def __init__(self, paths: Paths) -> None:
        real = {os.path.realpath(path): str(path) for path in _expanded(paths, self.ending)}
        self._files = sorted(real.values())  # one that has several names is read once
        if not self._files:
            raise FileNotFoundError(f"there are no files at {paths!r}")

    def partitions(self) -> list[str]:
        """The files' paths."""
        return self._files


def _expanded(paths: Paths, ending: str) -> Iterator[Path]:
    if isinstance(paths, (str, os.PathLike)):
        paths = [paths]
    for path in paths:
        text = os.fspath(path)
        if os.path.isdir(text):
            yield from sorted(p for p in Path(text).rglob(f"*{ending}") if not p.name.startswith((".", "_")))
        elif glob.has_magic(text) and not os.path.exists(text):
            yield from map(Path, sorted(glob.glob(text, recursive=True)))
        else:
            yield Path(text)


class _Lines(PartitionReader[Any]):
    """Reads blocks of whole lines; an offset is the number of bytes before a line."""

    def __init__(self, path: str, parse: Callable[[bytes], Any], follow: bool) -> None:
        self._path = path
        self._file = open(path, "rb")  # noqa: SIM115  # until `close`
        self._offset = 0
        self._parse = parse
        self._follow = follow
        self._quoted: re.Pattern[bytes] | None = None  # what a value in quotes is, where lines may be in it
        self._closed = threading.Event()
        self._lock = threading.Lock()

    def _cut(self, block: bytes, end: int) -> int:
        """The end of the last row that is whole; 0 where none is. Lines end at `end`."""
        if self._quoted is None or block.count(b'"', 0, end) % 2 == 0:
            return end
        for value in self._quoted.finditer(block, 0, end):
            if not value[1]:  # it goes on behind the block
                return block.rfind(b"\n", 0, value.start()) + 1
        return end

    def pass_header(self) -> bytes:
        """Takes the first line; nothing of one that is not yet whole in a file that is followed."""
        header = self._file.readline()
        if self._follow and not header.endswith(b"\n"):
            return b""
        self._offset = len(header)
        return header

    def read(self) -> Any:
        while True:
            with self._lock:
                if self._closed.is_set():
                    return None
                block = self._lines()
                if block:
                    try:
                        batch = self._parse(block)
                    except _BadLine as bad:
                        at = self._line() + bad.line
                        raise ValueError(f"line {at} of {self._path}: {bad.error}") from bad.error
                    except Exception as error:
                        add_note(error, f"in {self._path}, in the rows from line {self._line()} on")
                        raise
                    self._offset += len(block)
                    return batch
            if not self._follow:
                return None
            self._closed.wait(LOOK_AGAIN)

    def _line(self) -> int:
        """The number of the line that is read next, from 1."""
        with open(self._path, "rb") as file:
            left, lines = self._offset, 1
            while left > 0 and (block := file.read(min(left, BLOCK))):
                lines += block.count(b"\n")
                left -= len(block)
        return lines

    def _lines(self) -> bytes:
        """Whole lines; nothing where there is none, or at the end."""
        size = os.fstat(self._file.fileno()).st_size
        if size < self._offset:
            raise PointstampError(
                f"{self._path} was cut: it has {size} bytes, and {self._offset} were read. What was written "
                "to it meanwhile is lost; a file that is followed may only grow (of logrotate take 'create', "
                "not 'copytruncate')"
            )
        self._file.seek(self._offset)
        block = b""
        while more := self._file.read(BLOCK):
            block += more
            end = block.rfind(b"\n") + 1
            if end:
                end = self._cut(block, end)
            if end:
                return block[:end]
            if len(block) > MOST_QUOTED and b"\n" in block:
                raise ValueError(
                    f"line {self._line()} of {self._path}: a value in quotes has no end in {len(block)} bytes"
                )
        return b"" if self._follow else block  # the last line may have no end

    @property
    def offset(self) -> int:
        return self._offset

    def seek(self, offset: int) -> None:
        self._offset = max(offset, self._offset)

    def close(self) -> None:
        self._closed.set()
        with self._lock:
            self._file.close()


class _BadLine(Exception):
    """A line of a block that cannot be read: its number in the block, from 0, and why."""

    def __init__(self, line: int, error: Exception) -> None:
        super().__init__(line, error)
        self.line = line
        self.error = error


class CSVSource(_Files):
    """Rows of CSV files, as columns.

    Args:
        paths: A path, a pattern such as ``"logs/*.csv"``, a directory, or several of these.
        schema: The columns; left out, they are inferred from the first block of the first file.
        follow: Whether to wait at the end of each file for what is appended; then the stream does not end.
        delimiter: What separates values.

    Values in quotes may contain line breaks, the names of columns may not. Each file begins with the names of
    its columns; those that the schema does not have are left out.
    """

    ending = ".csv"

    def __init__(
        self,
        paths: Paths,
        *,
        schema: pa.Schema | None = None,
        follow: bool = False,
        delimiter: str = ",",
    ) -> None:
        super().__init__(paths)
        self.waits = follow
        self._delimiter = delimiter
        if schema is None:
            with open(self._files[0], "rb") as file:
                block = file.read(BLOCK)
            try:
                self._names(block.partition(b"\n")[0])
                schema = self._table(block[: block.rfind(b"\n") + 1] or block, None, None).schema
            except ValueError as error:
                add_note(error, f"while the columns were inferred from {self._files[0]}: give a schema=")
                raise
        self.schema = schema

    def open(self, partition: str) -> PartitionReader[Any]:
        """A reader of a file."""
        reader = _Lines(partition, bytes, self.waits)
        begins = re.escape(self._delimiter.encode())
        reader._quoted = re.compile(rb'(?:^|(?<=[\n%s]))"[^"]*(?:""[^"]*)*("?)' % begins)
        header = reader.pass_header()
        try:
            names = self._names(header) if header else []
        except ValueError:
            reader.close()
            raise

        def parse(block: bytes) -> Any:
            if not names:
                first, _, block = block.partition(b"\n")
                names.extend(self._names(first))
                if not block:
                    return []
            table = self._table(block, names, self.schema).combine_chunks()
            assert self.schema is not None
            batches = table.select(self.schema.names).to_batches()
            return batches[0] if batches else []

        reader._parse = parse
        return reader

    def _names(self, header: bytes) -> list[str]:
        try:
            text = header.decode("utf-8-sig").rstrip("\r\n")  # some programs begin files with a mark
        except UnicodeDecodeError as error:
            raise ValueError(f"the names of columns are not UTF-8: {error}") from error
        return next(csv.reader([text], delimiter=self._delimiter), [])

    def _table(self, block: bytes, names: list[str] | None, schema: pa.Schema | None) -> pa.Table:
        from pyarrow import csv as reader

        types = {} if schema is None else {field.name: field.type for field in schema}
        return reader.read_csv(
            io.BytesIO(block),
            read_options=reader.ReadOptions(column_names=names, block_size=len(block) + 1, use_threads=False),
            parse_options=reader.ParseOptions(delimiter=self._delimiter, newlines_in_values=True),
            convert_options=reader.ConvertOptions(column_types=types),
        )


class JSONLinesSource(_Files):
    """Files with a JSON value on each line: as records, or with a schema as columns.

    Args:
        paths: A path, a pattern, a directory, or several of these.
        schema: Of columns; None for records, which are what `json.loads` makes of a line.
        follow: Whether to wait at the end of each file for what is appended; then the stream does not end.
    """

    ending = ".jsonl"

    def __init__(self, paths: Paths, *, schema: pa.Schema | None = None, follow: bool = False) -> None:
        super().__init__(paths)
        self.schema = schema
        self.waits = follow

    def open(self, partition: str) -> PartitionReader[Any]:
        """A reader of a file."""
        return _Lines(partition, self._records if self.schema is None else self._columns, self.waits)

    def _records(self, block: bytes) -> list[Any]:
        records = []
        for number, line in enumerate(block.split(b"\n")):
            if line.strip():
                try:
                    records.append(json.loads(line))
                except ValueError as error:
                    raise _BadLine(number, error) from None
        return records

    def _columns(self, block: bytes) -> Any:
        from pyarrow import json as reader

        null = NULL.search(block)
        if null is not None:  # which pyarrow takes for a row of nulls, or crashes at
            raise _BadLine(
                block.count(b"\n", 0, null.start()), ValueError("null is no row: rows are objects")
            )
        options = reader.ParseOptions(explicit_schema=self.schema, unexpected_field_behavior="ignore")
        table = reader.read_json(io.BytesIO(block), parse_options=options).combine_chunks()
        batches = table.to_batches()
        return batches[0] if batches else []


class ParquetSource(_Files):
    """Rows of Parquet files, as columns.

    Args:
        paths: A path, a pattern, a directory, or several of these; all with the schema of the first.
        columns: The names of the columns to read; None for all.
    """

    ending = ".parquet"
    waits = False

    def __init__(self, paths: Paths, *, columns: list[str] | None = None) -> None:
        from pyarrow import parquet

        super().__init__(paths)
        self._columns = columns
        try:
            schema = parquet.read_schema(self._files[0]).remove_metadata()
        except Exception as error:
            add_note(error, f"while the columns were read from {self._files[0]}")
            raise
        if columns is not None:
            import pyarrow as pa

            schema = pa.schema([schema.field(name) for name in columns])
        self.schema = schema

    def open(self, partition: str) -> PartitionReader[Any]:
        """A reader of a file."""
        return _Rows(partition, self._columns)


class _Rows(PartitionReader[Any]):
    def __init__(self, path: str, columns: list[str] | None) -> None:
        from pyarrow import parquet

        self._file = parquet.ParquetFile(path)
        self._columns = columns
        self._offset = 0
        self._batches: Iterator[Any] | None = None
        self._skip = 0
        self._lock = threading.Lock()

    def read(self) -> Any:
        with self._lock:
            return None if self._file.closed else self._read()

    def _read(self) -> Any:
        if self._batches is None:
            self._batches = self._from(self._offset)
        batch = next(self._batches, None)
        if batch is None:
            return None
        batch = batch.slice(self._skip)
        self._skip = 0
        self._offset += batch.num_rows
        return batch

    def _from(self, row: int) -> Iterator[Any]:
        """Batches from the one that has a row; groups before it are not read."""
        metadata = self._file.metadata
        first = 0
        while first < metadata.num_row_groups and row >= metadata.row_group(first).num_rows:
            row -= metadata.row_group(first).num_rows
            first += 1
        groups = range(first, metadata.num_row_groups)
        for batch in self._file.iter_batches(ROWS, row_groups=list(groups), columns=self._columns):
            if row >= batch.num_rows:
                row -= batch.num_rows
                continue
            self._skip, row = row, 0
            yield batch.replace_schema_metadata(None)

    @property
    def offset(self) -> int:
        return self._offset

    def seek(self, offset: int) -> None:
        self._offset = offset

    def close(self) -> None:
        with self._lock:
            self._file.close()
