"""The ordinary tasks of Spark that come to the resident cluster: some bring rows, others fetch some."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import pyarrow as pa

from pointstamp.errors import ClusterError
from pointstamp.runtime.message_channel import connect

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["Part", "deliver", "fetch"]


class Part(NamedTuple):
    """Stands for the rows that one attempt of a task has brought.

    Attributes:
        partition: The number of the task's partition.
        attempt: Spark's number for the attempt.
    """

    partition: int
    attempt: int


def deliver(
    addresses: list[tuple[str, int]], secret: bytes, flow: int, batches: Iterator[pa.RecordBatch]
) -> Iterator[pa.RecordBatch]:
    """An ordinary task that brings the packed rows of its partition to one of the processes."""
    from pyspark import TaskContext

    context = TaskContext.get()
    assert context is not None
    address = addresses[context.partitionId() % len(addresses)]
    part = Part(context.partitionId(), context.taskAttemptId())
    with connect(address, secret) as channel:
        channel.send(("deliver", flow, part))
        # No limit: a process answers, or its end closes the channel; Spark cancels tasks.
        _check(channel.receive(), address)
        for rows in batches:
            for stream, low, data, _ in zip(*(column.to_pylist() for column in rows.columns), strict=True):
                channel.send((stream, low, data))
        channel.send(None)
        _check(channel.receive(), address)
    yield pa.record_batch(
        [pa.array([part.partition], pa.int32()), pa.array([part.attempt])], names=part._fields
    )


def fetch(
    addresses: list[tuple[str, int]],
    secret: bytes,
    flow: int,
    epoch: int | None,
    number: int,
    batches: Iterator[pa.RecordBatch],
) -> Iterator[pa.RecordBatch]:
    """An ordinary task that fetches the rows of an output from the processes named in its rows."""
    for rows in batches:
        for process in rows.column(0).to_pylist():
            with connect(addresses[process], secret) as channel:
                channel.send(("fetch", flow, epoch, number))
                # No limit: as in `deliver`; rows come when the dataflow has them.
                _check(channel.receive(), addresses[process])
                while (data := channel.receive()) is not None:
                    yield from pa.ipc.open_stream(pa.py_buffer(data))


def _check(answer: str, address: tuple[str, int]) -> None:
    if answer:
        raise ClusterError(f"the process of the resident cluster at {address[0]}:{address[1]} says: {answer}")
