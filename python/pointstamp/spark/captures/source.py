"""``format("pointstamp")``: captured streams as DataFrames, read and written, in batches and as streams.

Every capture is a partition. A batch reads the complete events of each; a stream remembers its position in
each, which Spark keeps in the query's checkpoint, and reads later events, of new captures, too. Planning a
micro-batch skips over new events without decoding them; a task reads its own part alone.

A filter that Spark pushes leaves out rows before Spark gets them, where it compares integers, booleans or
text. Spark evaluates it again.

Damage is a `CodecError` in the driver, as an exception of `run` is: it names the file and the byte.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, ClassVar

from pyspark.sql.datasource import (
    DataSource,
    DataSourceReader,
    DataSourceStreamReader,
    DataSourceStreamWriter,
    DataSourceWriter,
    InputPartition,
)

from pointstamp.errors import GraphError
from pointstamp.spark.captures.filters import Condition, conditions
from pointstamp.spark.captures.reading import Captures, Reach
from pointstamp.spark.captures.writing import CaptureWriter, MicroBatchWriter, query_of
from pointstamp.spark.packing.exceptions import adopt, raising_in_text

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    import pyarrow as pa
    from pyspark.sql.types import StructType

__all__ = ["CaptureSource"]

_FORMAT = "pointstamp"


class CaptureSource(DataSource):
    """The data source.

    Attributes:
        signing: The driver's key.
        pushing: Whether Spark pushes filters to data sources in Python.
    """

    signing: ClassVar[bytes] = b""
    pushing: ClassVar[bool] = False

    @classmethod
    def name(cls) -> str:
        """Returns the name that `format` is given."""
        return _FORMAT

    def captures(self) -> Captures:
        """Returns the captures that the options name."""
        adopt(self.signing)
        return Captures.of_options(self.options)

    def schema(self) -> StructType:
        """Returns the schema of the first capture."""
        with raising_in_text():
            return self.captures().schema()

    def reader(self, schema: StructType) -> DataSourceReader:
        """Reads the present events."""
        reader = _PushingReader if self.pushing else _Reader
        return reader(self.signing, self.captures(), schema)

    def streamReader(self, schema: StructType) -> DataSourceStreamReader:  # noqa: N802  # PySpark's name
        """Reads the present events, and later ones."""
        return _StreamReader(self.signing, self.captures(), schema)

    def writer(self, schema: StructType, overwrite: bool) -> DataSourceWriter:
        """Writes a folder of captures."""
        with raising_in_text():
            captures = self.captures()
            return CaptureWriter(self.signing, captures.path, schema, captures.time_column, overwrite)

    def streamWriter(self, schema: StructType, overwrite: bool) -> DataSourceStreamWriter:  # noqa: N802
        """Writes the captures of micro-batches into a folder."""
        with raising_in_text():
            captures = self.captures()
            if overwrite:
                raise GraphError(
                    'a stream is written as captures in the output mode "append": for another, give the '
                    "changes, such as Epochs with changes= does"
                )
            given = self.signing, captures.path, schema, captures.time_column, query_of(self.options)
            return MicroBatchWriter(*given)


class _Part(InputPartition):
    """The part of one capture that a task reads, from one position to another."""

    def __init__(self, reach: Reach) -> None:
        super().__init__(reach)
        self.reach = reach


class _Reader(DataSourceReader):
    def __init__(self, signing: bytes, captures: Captures, schema: StructType) -> None:
        self._signing = signing
        self._captures = captures
        self._schema = schema
        self._conditions: list[Condition] = []

    def partitions(self) -> Sequence[InputPartition]:
        adopt(self._signing)
        with raising_in_text():
            return [_Part(Reach(path, None, None)) for path in self._captures.paths()]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        assert isinstance(partition, _Part)
        adopt(self._signing)
        with raising_in_text():
            yield from self._captures.read(partition.reach, self._schema, self._conditions)


class _PushingReader(_Reader):
    """Spark refuses readers that take filters while it does not push any."""

    def pushFilters(self, filters: list[Any]) -> list[Any]:  # noqa: N802  # PySpark's name
        """Takes the filters that can be evaluated here; Spark evaluates all of them again."""
        self._conditions = conditions(filters, self._schema)
        return filters


class _StreamReader(DataSourceStreamReader):
    def __init__(self, signing: bytes, captures: Captures, schema: StructType) -> None:
        self._signing = signing
        self._captures = captures
        self._schema = schema
        self._latest: Mapping[str, str] = {}

    def initialOffset(self) -> dict[str, Any]:  # noqa: N802  # PySpark's name
        return {}

    def latestOffset(self, start: Any = None, limit: Any = None) -> dict[str, Any]:  # noqa: N802
        """Returns the end of each capture now, from where the last micro-batch ended."""
        adopt(self._signing)
        with raising_in_text():
            before = self._latest if start is None else start
            latest = dict(before)
            for path in self._captures.paths(missing=True):
                position = _position(before.get(path))
                found = self._captures.end(path, position)
                if found is not None:
                    latest[path] = json.dumps(found)
            self._latest = latest
            return latest

    def partitions(self, start: dict[str, Any], end: dict[str, Any]) -> Sequence[InputPartition]:
        return [
            _Part(Reach(path, _position(start.get(path)), _position(place)))
            for path, place in end.items()
            if place != start.get(path)
        ]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        assert isinstance(partition, _Part)
        adopt(self._signing)
        with raising_in_text():
            yield from self._captures.read(partition.reach, self._schema)


def _position(text: str | None) -> Any:
    """A position, of an offset of Spark's; times of several coordinates are lists there."""
    if text is None:
        return None
    offset, counts, *mark = json.loads(text)  # checkpoints of before have no mark
    times = [(tuple(time) if isinstance(time, list) else time, count) for time, count in counts]
    return offset, times, mark[0] if mark else None
