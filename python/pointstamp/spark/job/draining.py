"""A run's outputs on their way to Spark: operators that fill a bounded queue, and the reader that empties it.

Batches are cast to the declared schema by the worker that has them, and gathered until they are worth a row
of their own. Only whole runs can be seen in the end, so nothing is gained by sending a small batch early.
"""

from __future__ import annotations

import threading
from collections import deque
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from pointstamp.spark.packing.batches import Gathered, packed

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from pointstamp.info import OperatorInfo
    from pointstamp.spark.job.outputs import Declared, Output

__all__ = ["Drain", "Stopped"]

_BOUND = 32 << 20
"""Bytes of the outputs that may wait for Spark."""


class Stopped(Exception):
    """The task has ended: its output is not taken any more."""


class Drain:
    """The outputs of one task, from all its workers.

    Args:
        declared: The outputs.
        turn: The turn of the first packed batch: see `packed`.
    """

    def __init__(self, declared: Declared, turn: int) -> None:
        self._declared = declared
        self._turn = turn
        self._changed = threading.Condition()
        self._queue: deque[tuple[int, pa.RecordBatch]] = deque()
        self._bytes = 0
        self._ended = False
        self._stopped = False

    def connect(self, built: Any) -> None:
        """Adds the operators that take the streams of `build`."""
        self._declared.sink(built, self._sink)

    def end(self) -> None:
        """Nothing will be put any more."""
        with self._changed:
            self._ended = True
            self._changed.notify_all()

    def stop(self) -> None:
        """Nothing will be taken any more: writers are stopped."""
        with self._changed:
            self._stopped = True
            self._changed.notify_all()

    def batches(self) -> Iterator[pa.RecordBatch]:
        """The batches of a single output, as they come, until `end`."""
        while (taken := self._get()) is not None:
            yield taken[1]

    def rows(self) -> Iterator[pa.RecordBatch]:
        """Packed batches, until `end`."""
        gathered = [Gathered() for _ in self._declared.schemas]
        while (taken := self._get()) is not None:
            number, batch = taken
            if gathered[number].add(batch):
                yield self._packed(number, gathered[number])
        for number, waiting in enumerate(gathered):
            if waiting.rows:
                yield self._packed(number, waiting)

    def _packed(self, number: int, gathered: Gathered) -> pa.RecordBatch:
        self._turn += 1
        return packed(number, 0, gathered.take(), self._turn - 1)

    def _get(self) -> tuple[int, pa.RecordBatch] | None:
        with self._changed:
            while not self._queue:
                if self._ended:
                    return None
                # No limit: rows come when the dataflow has some; its end, and a failure, end this.
                self._changed.wait()
            number, batch = self._queue.popleft()
            self._bytes -= batch.nbytes
            self._changed.notify_all()
            return number, batch

    def _put(self, number: int, batch: pa.RecordBatch) -> None:
        with self._changed:
            while self._bytes > _BOUND and not self._stopped:
                # No limit: back-pressure, until Spark takes a batch or ends the task.
                self._changed.wait()
            if self._stopped:
                raise Stopped
            self._queue.append((number, batch))
            self._bytes += batch.nbytes
            self._changed.notify_all()

    def _sink(self, number: int, output: Output) -> Callable[[OperatorInfo], Callable[..., None]]:
        def build(_info: OperatorInfo) -> Callable[..., None]:
            def take(port: Any) -> None:
                for message, batch in port:
                    if batch.num_rows:
                        self._put(number, output.shaped(batch, message.time))

            return take

        return build
