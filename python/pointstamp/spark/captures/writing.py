"""``df.write.format("pointstamp")``: a DataFrame as captured streams, one for each partition with rows.

Tasks write into a folder beside the requested one, whose name begins with a dot. When all have ended well,
the driver gives the folder its name, or moves the captures of the attempts that count into the folder that is
there. A job that fails leaves nothing.
"""

from __future__ import annotations

import os
import secrets
import shutil
from typing import TYPE_CHECKING

from pyspark.sql.datasource import DataSourceArrowWriter, WriterCommitMessage

from pointstamp.api.arrow_stream import ArrowInput
from pointstamp.capture.events import EventWriter
from pointstamp.config import Config
from pointstamp.errors import GraphError, TimeError
from pointstamp.runtime.execution import execute
from pointstamp.spark import compat
from pointstamp.spark.packing.batches import Packed, checked
from pointstamp.spark.packing.exceptions import adopt, raising_in_text
from pointstamp.spark.packing.merging import in_order

if TYPE_CHECKING:
    from collections.abc import Iterator

    import pyarrow as pa
    from pyspark.sql.types import StructType

    from pointstamp.runtime.worker import Worker

__all__ = ["CaptureWriter"]

_ROWS = "the DataFrame"
"""The name of the rows in messages."""


class _Written(WriterCommitMessage):
    """The capture that an attempt of a task has written; None for a partition without rows."""

    def __init__(self, name: str | None) -> None:
        self.name = name


class CaptureWriter(DataSourceArrowWriter):
    """Writes a DataFrame, in the driver and in its tasks.

    Args:
        signing: The driver's key.
        folder: The folder of the captures.
        schema: The schema of the rows.
        time_column: The column of the rows' times, or None for rows at time 0. It is no captured column.
        overwrite: Whether the folder is replaced; otherwise captures are added to it.

    Raises:
        GraphError: If there is no such column of integers, or no other column.
    """

    def __init__(
        self, signing: bytes, folder: str, schema: StructType, time_column: str | None, overwrite: bool
    ) -> None:
        from pyspark.sql.types import IntegralType

        if time_column is not None and time_column not in schema.names:
            raise GraphError(f"timeColumn names no column of {_ROWS}, which has {', '.join(schema.names)}")
        if time_column is not None and not isinstance(schema[time_column].dataType, IntegralType):
            kind = schema[time_column].dataType.simpleString()
            raise GraphError(f"timeColumn is a column of integers, and '{time_column}' is {kind}: cast it")
        if not set(schema.names) - {time_column}:
            raise GraphError(f"{_ROWS} has no columns to capture")
        self._signing = signing
        self._folder = os.path.abspath(folder)
        self._time = time_column
        self._overwrite = overwrite
        self._run = secrets.token_hex(8)
        self._schema = compat.arrow_schema(schema, "UTC", large=False)

    @property
    def _made(self) -> str:
        parent, name = os.path.split(self._folder)
        return os.path.join(parent, f".{name}.{self._run}")

    # ------------------------------------------------------------ in a task

    def write(self, iterator: Iterator[pa.RecordBatch]) -> WriterCommitMessage:
        """Writes the capture of a partition.

        Raises:
            TimeError: If a time is null or negative, or rows are not in the order of their times.
        """
        from pyspark import TaskContext

        adopt(self._signing)
        context = TaskContext.get()
        assert context is not None
        with raising_in_text():
            batches = (batch for batch in iterator if batch.num_rows)
            first = next(batches, None)
            if first is None and context.partitionId():
                return _Written(None)  # one capture has the schema, also of a DataFrame without rows
            name = f"part-{context.partitionId():05}-{self._run}-{context.taskAttemptId()}.events"
            os.makedirs(self._made, exist_ok=True)
            self._capture(os.path.join(self._made, name), first, batches)
            return _Written(name)

    def _capture(self, path: str, first: pa.RecordBatch | None, batches: Iterator[pa.RecordBatch]) -> None:
        rows = in_order(self._ordered(first, batches), [self._time])
        kept = [name for name in self._schema.names if name != self._time]

        def main(worker: Worker) -> None:
            handle = ArrowInput(self._schema)
            with worker.dataflow("capture") as scope:
                handle.to_stream(scope).select(*kept).capture_into(EventWriter(path))
            for packed in rows:
                handle.advance_to(packed.low)
                handle.send(packed.batch)
                worker.step()
            handle.close()
            worker.run()

        execute(main, config=Config(workers=1), stall_report=False)

    def _ordered(self, first: pa.RecordBatch | None, batches: Iterator[pa.RecordBatch]) -> Iterator[Packed]:
        """Packs batches, each in the order of its times."""
        passed = 0
        while first is not None:
            batch = first.cast(self._schema) if not first.schema.equals(self._schema) else first
            least = checked(_ROWS, self._time, batch)
            if least < passed:
                raise TimeError(
                    f"{_ROWS} is written in the order of times, and in a partition '{self._time}' is {least} "
                    f"after {passed}: sort it first, such as with .sortWithinPartitions('{self._time}')"
                )
            passed = least
            yield Packed(0, least, batch if self._time is None else batch.sort_by(self._time))
            first = next(batches, None)

    # ------------------------------------------------------------ in the driver

    def commit(self, messages: list[WriterCommitMessage | None]) -> None:
        """Gives the captures of the attempts that count their place."""
        adopt(self._signing)
        with raising_in_text():
            names = {message.name for message in messages if isinstance(message, _Written)} - {None}
            try:
                self._publish({name for name in names if name is not None})
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
