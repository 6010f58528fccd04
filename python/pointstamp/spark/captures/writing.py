"""``df.write.format("pointstamp")`` and ``writeStream``: a DataFrame as captured streams.

A task writes the capture of its partition into a folder whose name begins with a dot, which nothing reads.
When all have ended well, the driver gives the captures of the attempts that count their place:

- of a batch, the folder that was asked for, or a place in it;
- of micro-batch N, the folder ``batch-N`` in it. A micro-batch that is repeated finds it there, and is left
  out. So a folder belongs to one query: its file ``_query`` says which.

A job that fails leaves nothing.
"""

from __future__ import annotations

import json
import os
import secrets
import shutil
from contextlib import suppress
from typing import TYPE_CHECKING, Any

import pyarrow as pa
from pyspark.sql import datasource
from pyspark.sql.datasource import DataSourceArrowWriter, WriterCommitMessage

from pointstamp._files import make_durable, written_whole
from pointstamp.api.arrow_stream import ArrowInput
from pointstamp.capture.events import EventWriter
from pointstamp.config import Config
from pointstamp.errors import ConfigError, GraphError, TimeError
from pointstamp.runtime.execution import execute
from pointstamp.spark import compat
from pointstamp.spark.packing.batches import Packed, checked
from pointstamp.spark.packing.exceptions import adopt, raising_in_text
from pointstamp.spark.packing.merging import in_order

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from pyspark.sql.types import StructType

    from pointstamp.runtime.worker import Worker

__all__ = ["CaptureWriter", "MicroBatchWriter", "query_of"]

_ROWS = "the DataFrame"
"""The name of the rows in messages."""

_QUERY = "_query"
"""A file in the folder of a query: the identity of the query."""

_WRITING = ".writing"
"""The folder in it for the captures of a micro-batch that is not complete."""


_StreamWriter: Any = getattr(datasource, "DataSourceStreamArrowWriter", object)
"""The base of writers of streams, which Spark has for Arrow batches since 4.1."""


class _Written(WriterCommitMessage):
    """The capture that an attempt of a task has written; None for a partition without rows."""

    def __init__(self, name: str | None) -> None:
        self.name = name


def _names(messages: Iterable[WriterCommitMessage | None]) -> set[str]:
    """Returns the names of the captures that tasks have written."""
    return {
        message.name for message in messages if isinstance(message, _Written) and message.name is not None
    }


class _Rows:
    """The rows of a DataFrame, and the capture of a partition of them.

    Args:
        schema: The schema of the rows.
        time_column: The column of the rows' times, or None for rows at time 0. It is no captured column.

    Raises:
        GraphError: If there is no such column of integers, or no other column.
    """

    def __init__(self, schema: StructType, time_column: str | None) -> None:
        from pyspark.sql.types import IntegralType

        if time_column is not None and time_column not in schema.names:
            raise GraphError(f"timeColumn names no column of {_ROWS}, which has {', '.join(schema.names)}")
        if time_column is not None and not isinstance(schema[time_column].dataType, IntegralType):
            kind = schema[time_column].dataType.simpleString()
            raise GraphError(f"timeColumn is a column of integers, and '{time_column}' is {kind}: cast it")
        if not set(schema.names) - {time_column}:
            raise GraphError(f"{_ROWS} has no columns to capture")
        self._time = time_column
        self._schema = compat.arrow_schema(schema, "UTC", large=False)
        self._run = secrets.token_hex(8)

    def written(
        self, folder: str, batches: Iterator[pa.RecordBatch], *, ordered: bool, always: bool
    ) -> _Written:
        """Writes the capture of a partition, in a task; a task that fails leaves none.

        Args:
            folder: Where.
            batches: The partition.
            ordered: Whether its rows come in the order of their times; otherwise all are sorted at once.
            always: Whether a capture of no rows is written, which has the schema.

        Raises:
            TimeError: If a time is null or negative, or rows are not in the order of their times.
        """
        from pyspark import TaskContext

        context = TaskContext.get()
        assert context is not None
        given: Iterator[pa.RecordBatch] = map(self._cast, filter(len, batches))
        if not ordered:
            given = self._sorted(given)
        first = next(given, None)
        if first is None and not always:
            return _Written(None)
        name = f"part-{context.partitionId():05}-{self._run}-{context.taskAttemptId()}.events"
        path = os.path.join(folder, name)
        os.makedirs(folder, exist_ok=True)
        try:
            self._capture(path, self._packed(first, given))
        except BaseException:
            with suppress(OSError):
                os.remove(path)
            raise
        return _Written(name)

    def _cast(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        return batch if batch.schema.equals(self._schema) else batch.cast(self._schema)

    def _sorted(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        rows = pa.Table.from_batches(batches, schema=self._schema)
        if self._time is not None:
            rows = rows.sort_by(self._time)
        yield from rows.to_batches()

    def _capture(self, path: str, rows: Iterator[Packed]) -> None:
        kept = [name for name in self._schema.names if name != self._time]

        def main(worker: Worker) -> None:
            handle = ArrowInput(self._schema)
            with worker.dataflow("capture") as scope:
                handle.to_stream(scope).select(*kept).capture_into(EventWriter(path))
            for packed in in_order(rows, [self._time]):
                handle.advance_to(packed.low)
                handle.send(packed.batch)
                worker.step()
            handle.close()
            worker.run()

        execute(main, config=Config(workers=1), stall_report=False)

    def _packed(self, first: pa.RecordBatch | None, batches: Iterator[pa.RecordBatch]) -> Iterator[Packed]:
        """Packs batches, each in the order of its times."""
        passed = 0
        while first is not None:
            least = checked(_ROWS, self._time, first)
            if least < passed:
                raise TimeError(
                    f"{_ROWS} is written in the order of times, and in a partition '{self._time}' is {least} "
                    f"after {passed}: sort it first, such as with .sortWithinPartitions('{self._time}')"
                )
            passed = least
            yield Packed(0, least, first if self._time is None else first.sort_by(self._time))
            first = next(batches, None)


class CaptureWriter(DataSourceArrowWriter):
    """Writes a DataFrame, in the driver and in its tasks.

    Args:
        signing: The driver's key.
        folder: The folder of the captures.
        schema: The schema of the rows.
        time_column: The column of the rows' times, or None for rows at time 0.
        overwrite: Whether the folder is replaced; otherwise captures are added to it.

    Raises:
        GraphError: If there is no such column of integers, or no other column.
    """

    def __init__(
        self, signing: bytes, folder: str, schema: StructType, time_column: str | None, overwrite: bool
    ) -> None:
        self._rows = _Rows(schema, time_column)
        self._signing = signing
        self._folder = os.path.abspath(folder)
        self._overwrite = overwrite
        parent, name = os.path.split(self._folder)
        self._made = os.path.join(parent, f".{name}.{secrets.token_hex(8)}")

    def write(self, iterator: Iterator[pa.RecordBatch]) -> WriterCommitMessage:
        """Writes the capture of a partition; that of the first also without rows, for the schema.

        Raises:
            TimeError: If a time is null or negative, or rows are not in the order of their times.
        """
        from pyspark import TaskContext

        adopt(self._signing)
        context = TaskContext.get()
        assert context is not None
        with raising_in_text():
            return self._rows.written(self._made, iterator, ordered=True, always=context.partitionId() == 0)

    def commit(self, messages: list[WriterCommitMessage | None]) -> None:
        """Gives the captures of the attempts that count their place."""
        adopt(self._signing)
        with raising_in_text():
            try:
                self._publish(_names(messages))
            finally:
                shutil.rmtree(self._made, ignore_errors=True)

    def _publish(self, names: set[str]) -> None:
        os.makedirs(self._made, exist_ok=True)
        for name in os.listdir(self._made):
            if name not in names:
                os.remove(os.path.join(self._made, name))  # of an attempt that does not count
        if self._overwrite and os.path.isdir(self._folder):
            shutil.rmtree(self._folder)
        if not os.path.lexists(self._folder):
            os.rename(self._made, self._folder)
            return
        for name in sorted(names):
            os.rename(os.path.join(self._made, name), os.path.join(self._folder, name))

    def abort(self, messages: list[WriterCommitMessage | None]) -> None:
        """Removes what was written."""
        shutil.rmtree(self._made, ignore_errors=True)


class MicroBatchWriter(_StreamWriter):  # type: ignore[misc]
    """Writes the micro-batches of a query. Spark makes one for the tasks, and one for each commit.

    Args:
        signing: The driver's key.
        folder: The folder of the captures.
        schema: The schema of the rows.
        time_column: The column of the rows' times, or None for rows at time 0.
        query: The identity of the query.

    Raises:
        ConfigError: If this version of Spark has no such writers.
        GraphError: If there is no such column of integers, or no other column; or if the folder has the
            captures of another query.
    """

    def __init__(
        self, signing: bytes, folder: str, schema: StructType, time_column: str | None, query: str
    ) -> None:
        if _StreamWriter is object:
            raise ConfigError("writing a stream as captures needs Spark 4.1: pip install 'pyspark>=4.1'")
        self._rows = _Rows(schema, time_column)
        self._signing = signing
        self._folder = os.path.abspath(folder)
        self._query = query
        self._check()

    def _check(self) -> bool:
        """Whether the folder has the captures of this query already; refuses those of another."""
        try:
            with open(os.path.join(self._folder, _QUERY), encoding="utf-8") as file:
                known = file.read()
        except FileNotFoundError:
            return False
        if known != self._query:
            raise GraphError(
                f"{self._folder} has the captures of another query, whose micro-batches have the same "
                "numbers: write into another folder, or, where the query's checkpoint was removed, remove "
                "this folder, too"
            )
        return True

    def write(self, iterator: Iterator[pa.RecordBatch]) -> WriterCommitMessage:
        """Writes the capture of a partition's part of a micro-batch, in the order of its times.

        Raises:
            TimeError: If a time is null or negative.
        """
        adopt(self._signing)
        with raising_in_text():
            folder = os.path.join(self._folder, _WRITING)
            return self._rows.written(folder, iterator, ordered=False, always=False)

    def commit(self, messages: list[WriterCommitMessage | None], batchId: int) -> None:  # noqa: N803  # PySpark's
        """Gives the captures of the attempts that count their place, unless the micro-batch is there."""
        adopt(self._signing)
        with raising_in_text():
            os.makedirs(self._folder, exist_ok=True)
            if not self._check():
                with written_whole(os.path.join(self._folder, _QUERY)) as file:
                    file.write(self._query.encode())
            writing = os.path.join(self._folder, _WRITING)
            place = os.path.join(self._folder, f"batch-{batchId:010}")
            names = sorted(_names(messages))
            if names and not os.path.exists(place):
                made = os.path.join(self._folder, f".{os.path.basename(place)}")
                shutil.rmtree(made, ignore_errors=True)  # of a driver that was killed just here
                os.mkdir(made)
                for name in names:
                    make_durable(os.path.join(writing, name))
                    os.rename(os.path.join(writing, name), os.path.join(made, name))
                make_durable(made)
                os.rename(made, place)
                make_durable(self._folder)
            shutil.rmtree(writing, ignore_errors=True)

    def abort(self, messages: list[WriterCommitMessage | None], batchId: int) -> None:  # noqa: N803  # PySpark's
        """Removes what was written."""
        shutil.rmtree(os.path.join(self._folder, _WRITING), ignore_errors=True)


def query_of(options: Any) -> str:
    """Returns the identity of the query that Spark's options are of: its checkpoint's, where it can be read.

    Raises:
        GraphError: If they name no checkpoint.
    """
    place = options.get("checkpointLocation")
    if not place:
        raise GraphError(
            'writeStream.format("pointstamp") needs .option("checkpointLocation", folder): it says which '
            "micro-batches are there already"
        )
    try:
        with open(os.path.join(place.removeprefix("file:"), "metadata"), encoding="utf-8") as file:
            return str(json.load(file)["id"])
    except (OSError, ValueError, KeyError):
        return str(place)  # elsewhere than on this machine
