"""Files as sources: CSV, JSON lines and Parquet, by batches.

Each file is a partition, so that workers share the files out and no two open the same one. `text` reads
blocks that end with a line; there an offset is a number of bytes, and for Parquet one of rows.
"""

from __future__ import annotations

import csv
import glob
import io
import json
import os
import re
import threading
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pointstamp._validation import names_of
from pointstamp.connectors import text
from pointstamp.connectors.protocol import PartitionReader, Source, number_of
from pointstamp.connectors.rejecting import OnError, checked
from pointstamp.connectors.text import BadLine, NoNames, TextReader
from pointstamp.errors import add_note

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence
    from typing import TypeAlias

    import pyarrow as pa

    Paths: TypeAlias = str | os.PathLike[str] | Iterable[str | os.PathLike[str]]

__all__ = ["CSVSource", "JSONLinesSource", "ParquetSource"]

ROWS = 1 << 16
"""Rows of Parquet that are read at once."""

NULL = re.compile(rb"^[ \t\r]*null[ \t\r]*$", re.MULTILINE)
"""A line that holds no row."""


class _Files(Source[Any]):
    """Files, by paths, patterns and directories."""

    acknowledges = False

    ending: str

    def __init__(self, paths: Paths) -> None:
        listed = _listed(paths)
        real = {os.path.realpath(path): str(path) for path in _expanded(listed, self.ending)}
        self._files = sorted(real.values())  # a file with several names is read once
        if not self._files:
            raise FileNotFoundError(_not_found(listed, self.ending))

    def partitions(self) -> list[str]:
        """The files' paths."""
        return self._files

    @contextmanager
    def _finding(self, path: str) -> Iterator[None]:
        """Makes the error of a missing file name the source, and the remedy."""
        try:
            yield
        except FileNotFoundError as error:
            waited = text.LOOKS * text.LOOK_AGAIN
            during = f" and was looked for during {waited:g} seconds" if self.waits else ""
            beside = "" if os.path.isabs(path) else f" in the directory {os.getcwd()!r}"
            raise FileNotFoundError(
                f"{type(self).__name__} is to read {path!r}, which does not exist{beside}{during}. Correct "
                "the path, or make the file before the dataflow is run"
            ) from error


def _listed(paths: Paths) -> list[str]:
    given = [paths] if isinstance(paths, (str, os.PathLike)) else paths
    return [os.fspath(path) for path in given]


def _not_found(listed: list[str], ending: str) -> str:
    """Returns the pattern that was looked for, where nothing was found."""
    if not listed:
        return "there are no files to read: the list of paths is empty"
    what = f"there are no files at {', '.join(map(repr, listed))}"
    folders = [path for path in listed if os.path.isdir(path)]
    if not folders:
        return f"{what}: nothing matches the pattern{'s' if len(listed) > 1 else ''}"
    there = (file for file in sorted(Path(folders[0]).iterdir()) if not file.name.startswith((".", "_")))
    other = next((file.suffix for file in there if file.suffix and file.is_file()), ".*")
    return (
        f"{what}: of a directory, files are read whose names end in {ending!r} and begin with neither "
        f"'.' nor '_'. Others are read by a pattern, such as {os.path.join(folders[0], f'*{other}')!r}"
    )


def _expanded(listed: list[str], ending: str) -> Iterator[Path]:
    for path in listed:
        if os.path.isdir(path):
            found = Path(path).rglob(f"*{ending}")
            yield from sorted(file for file in found if not file.name.startswith((".", "_")))
        elif glob.has_magic(path) and not os.path.exists(path):
            yield from map(Path, sorted(glob.glob(path, recursive=True)))
        else:
            yield Path(path)


class CSVSource(_Files):
    r"""Rows of CSV files, as columns.

    Args:
        paths: A path, a pattern such as ``"logs/*.csv"``, a directory, or several of these.
        schema: The columns; left out, they are inferred from the first block of the first file.
        follow: Whether to wait at the end of each file for appended lines, and to continue with the next file
            of its name when it was rotated; then the stream does not end.
        delimiter: The separator of values.
        on_error: The treatment of rows that cannot be read. ``"raise"``: the rows before the first are sent,
            and written where their times are complete, and then the dataflow ends, by an error that names the
            line. ``"skip"``: they are left out, and counted. A sink: it is written a dict for each, with
            `partition`, `offset`, `line`, `text` and `reason` of `Rejected`.
        null_values: The texts that are null in columns of other types than text; None for pyarrow's: an empty
            value, ``NULL``, ``null``, ``NA``, ``N/A``, ``n/a``, ``#NA``, ``#N/A``, ``#N/A N/A``, ``NaN``,
            ``nan``, ``-NaN``, ``-nan``, ``1.#IND``, ``-1.#IND``, ``1.#QNAN`` and ``-1.#QNAN``. So NaN is null
            in a column of floats; with ``[""]`` it is NaN.

    A value that is null is null with quotes, too. In columns of text nothing is null: ``NA`` is two letters,
    and an empty value the empty text.

    Values in quotes may contain line breaks, the names of columns may not. Each file begins with the names of
    its columns; columns that the schema does not have are left out.

    Raises:
        FileNotFoundError: If no file is found; of a path that is no pattern, when the file is opened.
        TypeError: If `null_values` is one text, and not a list of texts.

    Examples:
        >>> import os, tempfile
        >>> import pointstamp as ps
        >>> from pointstamp.connectors import CSVSource
        >>> path = os.path.join(tempfile.mkdtemp(), "rain.csv")
        >>> with open(path, "w") as file:
        ...     _ = file.write("city,rain\nUlm,NaN\nRom,0.5\n")
        >>> for nulls in (None, [""]):
        ...     source = CSVSource(path, null_values=nulls)
        ...     ps.example(lambda scope: scope.read(source).to_records().capture()).extract()
        [(0, [{'city': 'Ulm', 'rain': None}, {'city': 'Rom', 'rain': 0.5}])]
        [(0, [{'city': 'Ulm', 'rain': nan}, {'city': 'Rom', 'rain': 0.5}])]
    """

    ending = ".csv"

    def __init__(
        self,
        paths: Paths,
        *,
        schema: pa.Schema | None = None,
        follow: bool = False,
        delimiter: str = ",",
        on_error: OnError = "raise",
        null_values: Sequence[str] | None = None,
    ) -> None:
        super().__init__(paths)
        self.on_error = checked(on_error)
        self.waits = follow
        self._delimiter = delimiter
        if isinstance(null_values, str | bytes):
            raise TypeError(f"null_values is a list of texts, such as [{null_values!r}], not {null_values!r}")
        self._nulls = null_values if null_values is None else list(null_values)
        if schema is None:
            with self._finding(self._files[0]), open(self._files[0], "rb") as file:
                block = file.read(text.BLOCK)
            try:
                self._names(block.partition(b"\n")[0])
                schema = self._table(block[: block.rfind(b"\n") + 1] or block, None, None).schema
            except ValueError as error:
                add_note(error, f"while the columns were inferred from {self._files[0]}: give a schema=")
                raise
        self.schema = schema

    def open(self, partition: str) -> PartitionReader[Any]:
        """A reader of a file."""
        begins = re.escape(self._delimiter.encode())
        quoted = re.compile(rb'(?:^|(?<=[\n%s]))"[^"]*(?:""[^"]*)*("?)' % begins)
        with self._finding(partition):
            return TextReader(
                partition, self._batch, follow=self.waits, header=True, quoted=quoted, on_error=self.on_error
            )

    def _batch(self, block: bytes, header: bytes) -> Any:
        assert self.schema is not None
        table = self._table(block, self._names(header), self.schema).combine_chunks()
        batches = table.select(self.schema.names).to_batches()
        return batches[0] if batches else []

    def _names(self, header: bytes) -> list[str]:
        try:
            text = header.decode("utf-8-sig").rstrip("\r\n")  # some programs begin files with a mark
        except UnicodeDecodeError as error:
            raise NoNames(f"the names of columns are not UTF-8: {error}") from error
        return next(csv.reader([text], delimiter=self._delimiter), [])

    def _table(self, block: bytes, names: list[str] | None, schema: pa.Schema | None) -> pa.Table:
        from pyarrow import csv as reader

        types = {} if schema is None else {field.name: field.type for field in schema}
        return reader.read_csv(
            io.BytesIO(block),
            read_options=reader.ReadOptions(column_names=names, block_size=len(block) + 1, use_threads=False),
            parse_options=reader.ParseOptions(delimiter=self._delimiter, newlines_in_values=True),
            convert_options=reader.ConvertOptions(column_types=types, null_values=self._nulls),
        )


class JSONLinesSource(_Files):
    r"""Files with a JSON value on each line: as records, or with a schema as columns.

    Args:
        paths: A path, a pattern, a directory, or several of these.
        schema: The schema of columns; None for records, the results of `json.loads` for each line.
        follow: Whether to wait at the end of each file for appended lines, and to continue with the next file
            of its name when it was rotated; then the stream does not end.
        on_error: As of `CSVSource`.

    Raises:
        FileNotFoundError: As `CSVSource`.

    Examples:
        >>> import os, tempfile
        >>> import pointstamp as ps
        >>> from pointstamp.connectors import JSONLinesSource
        >>> path = os.path.join(tempfile.mkdtemp(), "rain.jsonl")
        >>> with open(path, "w") as file:
        ...     _ = file.write('{"city": "Ulm", "mm": 3}\n{"city": "Bonn", "mm": 5}\n')
        >>> def build(scope):
        ...     return scope.read(JSONLinesSource(path)).map(lambda row: row["mm"]).capture()
        >>> ps.example(build).extract()
        [(0, [3, 5])]
    """

    ending = ".jsonl"

    def __init__(
        self,
        paths: Paths,
        *,
        schema: pa.Schema | None = None,
        follow: bool = False,
        on_error: OnError = "raise",
    ) -> None:
        super().__init__(paths)
        self.on_error = checked(on_error)
        self.schema = schema
        self.waits = follow

    def open(self, partition: str) -> PartitionReader[Any]:
        """A reader of a file."""
        parse = self._records if self.schema is None else self._columns
        with self._finding(partition):
            return TextReader(partition, parse, follow=self.waits, on_error=self.on_error)

    def _records(self, block: bytes, _: bytes) -> list[Any]:
        records = []
        for number, line in enumerate(block.split(b"\n")):
            if line.strip():
                try:
                    records.append(json.loads(line))
                except (ValueError, RecursionError) as error:
                    raise BadLine(number, error) from None
        return records

    def _columns(self, block: bytes, _: bytes) -> Any:
        from pyarrow import json as reader

        null = NULL.search(block)
        if null is not None:  # which pyarrow takes for a row of nulls, or crashes at
            raise BadLine(block.count(b"\n", 0, null.start()), ValueError("null is no row: rows are objects"))
        options = reader.ParseOptions(explicit_schema=self.schema, unexpected_field_behavior="ignore")
        table = reader.read_json(io.BytesIO(block), parse_options=options).combine_chunks()
        batches = table.to_batches()
        return batches[0] if batches else []


class ParquetSource(_Files):
    """Rows of Parquet files, as columns.

    Args:
        paths: A path, a pattern, a directory, or several of these; all with the schema of the first.
        columns: The names of the columns to read; None for all.

    Raises:
        FileNotFoundError: If no file is found, or the first does not exist.
        TypeError: If `columns` is one name, and not a list of names.

    Examples:
        >>> import os, tempfile
        >>> import pyarrow as pa, pyarrow.parquet as pq
        >>> import pointstamp as ps
        >>> from pointstamp.connectors import ParquetSource
        >>> path = os.path.join(tempfile.mkdtemp(), "rain.parquet")
        >>> pq.write_table(pa.table({"city": ["Ulm", "Bonn"], "mm": [3, 5]}), path)
        >>> ps.example(lambda scope: scope.read(ParquetSource(path)).to_records().capture()).extract()
        [(0, [{'city': 'Ulm', 'mm': 3}, {'city': 'Bonn', 'mm': 5}])]
    """

    ending = ".parquet"
    waits = False

    def __init__(self, paths: Paths, *, columns: list[str] | None = None) -> None:
        from pyarrow import parquet

        super().__init__(paths)
        self._columns = columns = None if columns is None else names_of("columns", columns)
        try:
            with self._finding(self._files[0]):
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
        with self._finding(partition):
            return _Rows(partition, self._columns)


class _Rows(PartitionReader[Any]):
    def __init__(self, path: str, columns: list[str] | None) -> None:
        from pyarrow import parquet

        self._path = path
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
        """Yields batches from the one that has a row; earlier groups are not read."""
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

    def seek(self, offset: Any) -> None:
        most = self._file.metadata.num_rows + 1
        self._offset = number_of(offset, self._path, "a number of rows of the file", most)

    def close(self) -> None:
        with self._lock:
            self._file.close()
