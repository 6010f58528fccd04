"""Record batches as rows of a DataFrame: the data between Spark's stages and into the barrier stage.

A packed batch is one row of four columns: which input or output it belongs to, the least time in it, the
batch in Arrow's IPC format, and its turn when batches are dealt to tasks. One stage so carries inputs of any
schemas, Spark shuffles batches instead of rows, and the types arrive as they were. Batches are gathered until
they are worth a row: each costs a fixed time at every step of its way, whatever is in it.
"""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc

from pointstamp.errors import TimeError
from pointstamp.spark.packing.exceptions import in_text
from pointstamp.spark.packing.schemas import like

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = [
    "FAILED",
    "GUARD",
    "PACKED",
    "Gathered",
    "Packed",
    "checked",
    "failed",
    "pack",
    "packed",
    "read",
    "unpack",
]

PACKED = "stream int, low bigint, batch binary, turn int"
"""The schema of packed batches, for Spark."""

GUARD = -1
"""The `stream` of rows that stand for nothing. They keep Spark from planning a stage without input away."""

FAILED = -2
"""The `stream` of rows that hold an exception, as text, in place of a batch."""

_PACKED = pa.schema(
    [("stream", pa.int32()), ("low", pa.int64()), ("batch", pa.binary()), ("turn", pa.int32())]
)

_ROWS = 1 << 16
"""Rows that are gathered into one packed batch,"""

_BYTES = 4 << 20
"""or bytes, whichever comes first."""


class Packed(NamedTuple):
    """A batch, unpacked: its stream's number, the least time in it, its rows, and a digest.

    The digest, where one was asked for, is that of the packed batch; parts of it by time keep it.
    """

    stream: int
    low: int
    batch: pa.RecordBatch
    digest: bytes = b""


class Gathered:
    """Batches of one schema, until they are worth a packed one."""

    def __init__(self) -> None:
        self._batches: list[pa.RecordBatch] = []
        self.rows = self._bytes = 0

    def add(self, batch: pa.RecordBatch) -> bool:
        """Adds one, and says whether they are."""
        self._batches.append(batch)
        self.rows += batch.num_rows
        self._bytes += batch.nbytes
        return self.rows >= _ROWS or self._bytes >= _BYTES

    def take(self) -> pa.RecordBatch:
        """All of them as one."""
        batches, self._batches = self._batches, []
        self.rows = self._bytes = 0
        return batches[0] if len(batches) == 1 else pa.concat_batches(batches)


def packed(stream: int, low: int, batch: pa.RecordBatch, turn: int = 0) -> pa.RecordBatch:
    """A packed batch, as a row."""
    buffer = pa.BufferOutputStream()
    with pa.ipc.new_stream(buffer, batch.schema) as writer:
        writer.write_batch(batch)
    data = buffer.getvalue()
    ends = pa.array([0, data.size], pa.int32()).buffers()[1]
    binary = pa.Array.from_buffers(pa.binary(), 1, [None, ends, data])
    return pa.record_batch(
        [pa.array([stream], pa.int32()), pa.array([low], pa.int64()), binary, pa.array([turn], pa.int32())],
        schema=_PACKED,
    )


def failed(error: BaseException, copies: int) -> pa.RecordBatch:
    """Rows that say that the dataflow failed: one for each task that they are dealt to."""
    text = in_text(error).encode()
    return pa.record_batch(
        [
            pa.array([FAILED] * copies, pa.int32()),
            pa.array([0] * copies, pa.int64()),
            pa.array([text] * copies, pa.binary()),
            pa.array(range(copies), pa.int32()),
        ],
        schema=_PACKED,
    )


def read(batches: Iterator[pa.RecordBatch], *, digests: bool = False) -> Iterator[Packed]:
    """The packed batches of a task's input, in order, without copying them; guards are left out."""
    for rows in batches:
        streams, lows, data, _ = rows.columns
        for stream, low, batch in zip(streams.to_pylist(), lows.to_pylist(), data, strict=True):
            if stream != GUARD:
                buffer = batch.as_buffer()
                digest = hashlib.blake2b(buffer, digest_size=16).digest() if digests else b""
                for unpacked in pa.ipc.open_stream(buffer):
                    yield Packed(stream, low, unpacked, digest)


def pack(
    stream: int, name: str, schema: pa.Schema, time: str | None, turn: int, batches: Iterator[pa.RecordBatch]
) -> Iterator[pa.RecordBatch]:
    """Packs the rows of an input, whose partitions are sorted by the time column.

    Args:
        stream: Its number.
        name: The input's name in messages.
        schema: Its schema.
        time: The column of times, or None.
        turn: The turn of the first batch; a partition's number spreads partitions of few batches.
        batches: The rows.

    Raises:
        TimeError: If a time is null or negative; it shows the row.
    """
    gathered = Gathered()

    def row() -> pa.RecordBatch:
        nonlocal turn
        batch = gathered.take()
        turn += 1
        return packed(stream, checked(name, time, batch), batch, turn - 1)

    for batch in batches:
        if batch.num_rows and gathered.add(like(batch, schema)):
            yield row()
    if gathered.rows:
        yield row()


def unpack(stream: int, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """The rows of one output, and of no other."""
    for unpacked in read(batches):
        if unpacked.stream == stream:
            yield unpacked.batch


def checked(name: str, time: str | None, batch: pa.RecordBatch) -> int:
    """Returns the least time in a batch of an input; 0 without a column of times.

    Raises:
        TimeError: If a time is null or negative; it shows the row.
    """
    if time is None:
        return 0
    column = batch.column(time)
    if column.null_count:
        row = pc.index(column.is_null(), True).as_py()
        raise TimeError(f"column '{time}' of {name} is a row's time, and is null in {_shown(batch, row)}")
    least: int = pc.min(column).as_py()
    if least < 0:
        row = pc.index(column, pa.scalar(least, column.type)).as_py()
        raise TimeError(
            f"column '{time}' of {name} is a row's time, which is 0 or more, and is {least} in "
            f"{_shown(batch, row)}"
        )
    return least


def _shown(batch: pa.RecordBatch, row: int) -> str:
    [record] = batch.slice(row, 1).to_pylist()
    return f"the row {record}"
