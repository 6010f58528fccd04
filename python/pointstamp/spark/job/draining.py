"""A run's outputs on their way to Spark: operators that fill a bounded queue, and who empties it.

Batches are cast to the declared schema by the worker that has them, and gathered until they are worth a row
of their own. Only whole runs can be seen in the end, so nothing is gained by sending a small batch early.
"""

from __future__ import annotations

import threading
from collections import deque
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from pointstamp.spark.packing.batches import packed

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from pointstamp.info import OperatorInfo
    from pointstamp.spark.job.outputs import Declared, Output

__all__ = ["Drain", "Stopped"]

_BOUND = 32 << 20
"""Bytes of the outputs that may wait for Spark."""

_ROWS = 1 << 16
"""Rows that are gathered into one batch,"""

_BYTES = 4 << 20
"""or bytes, whichever comes first."""


class Stopped(Exception):
    """The task has ended: its output is not taken any more."""


class Drain:
    """The outputs of one task, from all its workers."""

    def __init__(self, declared: Declared) -> None:
        self._declared = declared
        self._changed = threading.Condition()
        self._queue: deque[tuple[int, pa.RecordBatch]] = deque()
        self._bytes = 0
        self._ended = False
        self._stopped = False

    def connect(self, built: Any) -> None:
        """Adds the operators that take what `build` returned."""
        self._declared.sink(built, self._sink)

    def end(self) -> None:
        """Nothing will be put any more."""
        with self._changed:
            self._ended = True
            self._changed.notify_all()

    def stop(self) -> None:
        """Nothing will be taken any more: who puts something is stopped."""
        with self._changed:
            self._stopped = True
            self._changed.notify_all()

    def rows(self) -> Iterator[pa.RecordBatch]:
        """Packed batches, until `end`."""
        gathered = [_Gathered(number) for number in range(len(self._declared.schemas))]
        while (taken := self._get()) is not None:
            number, batch = taken
            if gathered[number].add(batch):
                yield gathered[number].take()
        for waiting in gathered:
            if waiting.rows:
                yield waiting.take()

    def _get(self) -> tuple[int, pa.RecordBatch] | None:
        with self._changed:
            while not self._queue:
                if self._ended:
                    return None
                self._changed.wait()
            number, batch = self._queue.popleft()
            self._bytes -= batch.nbytes
            self._changed.notify_all()
            return number, batch

    def _put(self, number: int, batch: pa.RecordBatch) -> None:
        with self._changed:
            while self._bytes > _BOUND and not self._stopped:
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


class _Gathered:
    """Batches of one output, until they are worth a row."""

    def __init__(self, number: int) -> None:
        self._number = number
        self._batches: list[pa.RecordBatch] = []
        self.rows = self._bytes = 0

    def add(self, batch: pa.RecordBatch) -> bool:
        """Adds one, and says whether they are."""
        self._batches.append(batch)
        self.rows += batch.num_rows
        self._bytes += batch.nbytes
        return self.rows >= _ROWS or self._bytes >= _BYTES

    def take(self) -> pa.RecordBatch:
        """All of them as one packed batch."""
        batches, self._batches = self._batches, []
        self.rows = self._bytes = 0
        return packed(self._number, 0, batches[0] if len(batches) == 1 else pa.concat_batches(batches))
