"""Finds captures, and reads their rows as Spark wants them.

A position is ``(offset, counts, mark)``: a byte offset, the sums of the frontier's changes up to there, and a
checksum by which a rewritten file is recognised. It is always the end of an event, so the rows of a task do
not depend on the progress of a writer.
"""

from __future__ import annotations

import glob
import os
from typing import TYPE_CHECKING, Any, NamedTuple

import pyarrow as pa

from pointstamp.capture.events import EventReader, Messages
from pointstamp.capture.events import Position as Place
from pointstamp.errors import CodecError, GraphError
from pointstamp.spark import compat
from pointstamp.spark.packing.schemas import check, conform, inferred

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from pyspark.sql.types import StructType

    from pointstamp.spark.captures.filters import Condition
    from pointstamp.types import Time

    _Position = tuple[int, list[tuple[Time, int]], int | None]

__all__ = ["Captures", "Reach"]

_OPTIONS = ("path", "timecolumn", "allowpickle", "checkpointlocation")
"""In small letters. Spark itself reads `checkpointLocation`."""

_RECORDS = (
    "{path} holds pickled records, and reading them can run code of its author: say "
    '.option("allowPickle", "true") if you trust it'
)


class Reach(NamedTuple):
    """A part of a capture.

    Attributes:
        path: The capture.
        start: The position that it begins at; None for the beginning.
        end: The position that it ends at; None for the end that the file has when it is read.
    """

    path: str
    start: _Position | None
    end: _Position | None


class Captures(NamedTuple):
    """The captures that a data source was asked for.

    Attributes:
        path: Of a capture or a folder of them, or a pattern.
        time_column: The column for times, or None.
        pickle: Whether records may be read.
    """

    path: str
    time_column: str | None
    pickle: bool

    @classmethod
    def of_options(cls, options: Mapping[str, str]) -> Captures:
        """Returns the captures that Spark's options name.

        Raises:
            GraphError: If the path is missing, or an option is none of ours.
        """
        path = options.get("path")
        if not path:
            raise GraphError('a capture is read from a path: .load("/data/words.events")')
        unknown = sorted(name for name in options if name.lower() not in _OPTIONS)
        if unknown:
            raise GraphError(
                f"the format pointstamp has no option {unknown[0]!r}: it has timeColumn and allowPickle"
            )
        said = options.get("allowPickle", "false").strip().lower()
        if said not in ("true", "false"):
            raise GraphError(f'the option allowPickle is "true" or "false", not {said!r}')
        return cls(path.removeprefix("file:"), options.get("timeColumn"), said == "true")

    def paths(self, *, missing: bool = False) -> list[str]:
        """Returns the captures' paths, in order; names that begin with a dot or an underscore are incomplete.

        Args:
            missing: Whether there may be none, yet.

        Raises:
            FileNotFoundError: If there is none.
        """
        if os.path.isdir(self.path):
            batches = glob.glob(os.path.join(glob.escape(self.path), "batch-*"))  # of a query's micro-batches
            found = [entry.path for place in (self.path, *batches) for entry in _entries(place)]
        elif os.path.exists(self.path):
            found = [self.path]
        else:
            found = [path for path in glob.glob(self.path) if os.path.isfile(path)]
        found = sorted(path for path in found if not os.path.basename(path).startswith((".", "_")))
        if not found and not missing:
            raise FileNotFoundError(f"there is no capture at {self.path}")
        return found

    def schema(self) -> StructType:
        """The schema of the rows, of the first capture.

        Raises:
            CodecError: If it is damaged, or holds records and `pickle` was not allowed.
            GraphError: If it holds records, which have no schema.
        """
        from pyspark.sql.types import ArrayType, LongType, StructField

        path = self.paths()[0]
        dims, columns = self._begin(path)[1:]
        if columns is None:
            raise GraphError(
                f'{path} holds records, which have no schema: give it, as in .schema("word string, n bigint")'
            )
        schema = inferred(columns, path)
        if self.time_column is None:
            return schema
        if self.time_column in schema.names:
            raise GraphError(f"timeColumn adds the column '{self.time_column}', and {path} has one already")
        kind = LongType() if dims == 1 else ArrayType(LongType())
        return type(schema)([*schema.fields, StructField(self.time_column, kind)])

    def _begin(self, path: str) -> tuple[EventReader, int, pa.Schema | None]:
        reader = EventReader(path, allow_pickle=True)  # nothing is unpickled before the checks below
        dims, columns = reader._begin()
        if columns is None and not self.pickle:
            reader.close()
            raise CodecError(_RECORDS.format(path=path))
        return reader, dims, None if columns is None else columns.to_pyarrow()

    def end(self, path: str, start: _Position | None) -> _Position | None:
        """The end of the last event that is whole; None where a capture has none yet.

        Raises:
            CodecError: If the bytes after the start are damaged.
        """
        if os.path.getsize(path) == 0:
            return None
        reader = EventReader(path, allow_pickle=True, follow=True)
        try:
            if reader._feed.start() is None:
                return None  # its beginning is being written
            if start is not None:
                reader.seek(Place(*start))
            while not isinstance(event := reader._feed.next(False), bool) and event is not None:
                pass
            offset, counts, mark = reader.position
        finally:
            reader.close()
        return None if counts is None else (offset, counts, mark)

    def read(
        self, reach: Reach, schema: StructType, conditions: Sequence[Condition] = ()
    ) -> Iterator[pa.RecordBatch]:
        """The rows of a part of a capture.

        Args:
            reach: The part.
            schema: The columns that are read; others of the capture are not.
            conditions: The conditions on rows. Those on times skip whole events.

        Raises:
            CodecError: If it is damaged; or holds records, and `pickle` was not allowed.
            GraphError: If it lacks a column of the schema.
            ValueError: If a value or a record does not fit the schema.
        """
        wanted = compat.arrow_schema(schema, "UTC", large=False)
        reader, _, columns = self._begin(reach.path)
        try:
            names = [name for name in wanted.names if name != self.time_column]
            plain = pa.schema([wanted.field(name) for name in names])
            if columns is not None:
                check(columns, plain, reach.path, others=True)
            if reach.start is not None:
                reader.seek(Place(*reach.start))
            of_times = [one for one in conditions if one.column == self.time_column]
            of_rows = [one for one in conditions if one.column != self.time_column]
            for event in _events(reader, reach.end):
                if isinstance(event.time, int) and not all(one.may_hold(event.time) for one in of_times):
                    continue
                batch = (
                    conform(event.data, plain, reach.path)
                    if columns is not None
                    else _of_records(event.data, plain, reach.path)
                )
                for condition in of_rows:
                    batch = condition.kept(batch)
                if batch.num_rows:
                    yield self._timed(batch, event.time, wanted)
            if reach.end is not None and reach.end[2] not in (None, reader.position.mark):
                raise CodecError(
                    f"{reach.path}: it was shortened or written anew since the batch was planned. A capture "
                    "may only grow while it is read: what begins anew writes to a path of its own"
                )
        finally:
            reader.close()

    def _timed(self, batch: pa.RecordBatch, time: Time, wanted: pa.Schema) -> pa.RecordBatch:
        if self.time_column is None or self.time_column not in wanted.names:
            return batch
        field = wanted.field(self.time_column)
        value = list(time) if isinstance(time, tuple) else time
        if pa.types.is_list(field.type) and not isinstance(value, list):
            value = [value]
        times = pa.repeat(pa.scalar(value, field.type), batch.num_rows)
        columns = [times if name == self.time_column else batch.column(name) for name in wanted.names]
        return pa.RecordBatch.from_arrays(columns, schema=wanted)


def _entries(folder: str) -> list[os.DirEntry[str]]:
    """The files in a folder; none where it is a file."""
    return [entry for entry in os.scandir(folder) if entry.is_file()] if os.path.isdir(folder) else []


def _events(reader: EventReader, end: _Position | None) -> Iterator[Messages]:
    """The messages up to a position. A batch has no more than the file had when it was opened."""
    while end is None or reader.offset < end[0]:
        event = reader._feed.next(True)
        if event is None or isinstance(event, bool):
            return
        _, first, _ = event
        for time, data in first or ():
            yield Messages(time, data)


def _of_records(records: list[Any], schema: pa.Schema, path: str) -> pa.RecordBatch:
    """Records as columns: each a tuple or a dict of them, or the value of the only one."""
    rows: list[Any] = []
    for record in records:
        if isinstance(record, dict):
            rows.append([record.get(name) for name in schema.names])
        elif isinstance(record, (tuple, list)) and len(record) == len(schema):
            rows.append(record)
        elif len(schema) == 1:
            rows.append([record])
        else:
            raise ValueError(f"{path} has the record {record!r}, which is no row of {schema.names}")
    columns = zip(*rows, strict=True) if rows else [[] for _ in schema]
    arrays = []
    for field, values in zip(schema, columns, strict=True):
        try:
            arrays.append(pa.array(values, field.type))
        except (pa.ArrowInvalid, pa.ArrowTypeError) as error:
            raise ValueError(f"column '{field.name}' of {path} does not hold every value: {error}") from error
    return pa.RecordBatch.from_arrays(arrays, schema=schema)
