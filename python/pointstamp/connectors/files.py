"""Files as sources: CSV, JSON lines and Parquet, by batches.

Each file is a partition, so that workers share the files out and no two open the same one. Text is read in
blocks that end with a line; an offset is a number of bytes, and for Parquet one of rows. A file that is
followed is read on as it grows.
"""

from __future__ import annotations

import glob
import io
import json
import os
import threading
from pathlib import Path
from typing import TYPE_CHECKING, Any

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

LOOK_AGAIN = 0.05
"""Seconds after which a file that is followed is asked whether it has grown."""


class _Files(Source[Any]):
    """Files, by paths, patterns and directories."""

    ending: str

    def __init__(self, paths: Paths) -> None:
        self._files = sorted({str(path) for path in _expanded(paths, self.ending)})
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

    def __init__(self, path: str, follow: bool, parse: Callable[[bytes], Any]) -> None:
        self._file = open(path, "rb")  # noqa: SIM115  # until `close`
        self._offset = 0
        self._parse = parse
        self._follow = follow
        self._closed = threading.Event()
        self._lock = threading.Lock()

    def read(self) -> Any:
        while True:
            with self._lock:
                if self._closed.is_set():
                    return None
                block = self._lines()
                if block:
                    batch = self._parse(block)
                    self._offset += len(block)
                    return batch
            if not self._follow:
                return None
            self._closed.wait(LOOK_AGAIN)

    def _lines(self) -> bytes:
        """Whole lines; nothing where there is none, or at the end."""
        self._file.seek(self._offset)
        block = b""
        while more := self._file.read(BLOCK):
            block += more
            end = block.rfind(b"\n") + 1
            if end:
                return block[:end]
        return b"" if self._follow else block  # the last line may have no end

    @property
    def offset(self) -> int:
        return self._offset

    def pass_header(self, parse: Callable[[bytes, bytes], Any]) -> None:
        """Takes the first line for one that says how to parse those behind it."""
        header = self._file.readline()
        self._offset = len(header)
        self._parse = lambda block: parse(header, block)

    def seek(self, offset: int) -> None:
        self._offset = max(offset, self._offset)

    def close(self) -> None:
        self._closed.set()
        with self._lock:
            self._file.close()


class CSVSource(_Files):
    """Rows of CSV files, as columns.

    Args:
        paths: A path, a pattern such as ``"logs/*.csv"``, a directory, or several of these.
        schema: The columns; left out, they are inferred from the first block of the first file.
        follow: Whether to wait at the end of each file for what is appended; then the stream does not end.
        delimiter: What separates values.

    Values that contain line breaks are not supported. Each file begins with the names of its columns.
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
            schema = self._table(block[: block.rfind(b"\n") + 1] or block, None, None).schema
        self.schema = schema

    def open(self, partition: str) -> PartitionReader[Any]:
        """A reader of a file."""
        reader = _Lines(partition, self.waits, bytes)
        reader.pass_header(self._parse)
        return reader

    def _parse(self, header: bytes, block: bytes) -> Any:
        names = [name.strip('"') for name in header.decode().rstrip("\r\n").split(self._delimiter)]
        table = self._table(block, names, self.schema).combine_chunks()
        assert self.schema is not None
        batches = table.select(self.schema.names).to_batches()
        return batches[0] if batches else []

    def _table(self, block: bytes, names: list[str] | None, schema: pa.Schema | None) -> pa.Table:
        from pyarrow import csv

        types = {} if schema is None else {field.name: field.type for field in schema}
        return csv.read_csv(
            io.BytesIO(block),
            read_options=csv.ReadOptions(column_names=names, block_size=2 * BLOCK, use_threads=False),
            parse_options=csv.ParseOptions(delimiter=self._delimiter),
            convert_options=csv.ConvertOptions(column_types=types),
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
        return _Lines(partition, self.waits, self._records if self.schema is None else self._columns)

    def _records(self, block: bytes) -> list[Any]:
        return [json.loads(line) for line in block.splitlines() if line.strip()]

    def _columns(self, block: bytes) -> Any:
        from pyarrow import json as reader

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
        schema = parquet.read_schema(self._files[0]).remove_metadata()
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
