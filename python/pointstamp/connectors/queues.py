"""`QueueSource`: records that other threads, or coroutines, put in while the dataflow runs."""

from __future__ import annotations

import threading
import time as clock
from collections import deque
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from pointstamp.connectors.protocol import PartitionReader, Source

if TYPE_CHECKING:
    from collections.abc import Iterable

    import pyarrow as pa

__all__ = ["QueueSource"]

T = TypeVar("T")

MOST = 1024
"""Records that one `read` returns at most."""


class QueueSource(Source[T]):
    """A queue that any thread may put records into, read by one worker.

    Args:
        size: How many records, or with a schema how many batches, wait in it at most: then putting waits.
        schema: Of a queue of `pyarrow.RecordBatch`; None of a queue of records.

    Examples:
        >>> import pointstamp as ps
        >>> from pointstamp.connectors import QueueSource
        >>> queue = QueueSource()
        >>> queue.put_many([3, 1, 2])
        >>> queue.close()
        >>> ps.example(lambda scope: scope.read(queue).capture()).extract()
        [(0, [1, 2, 3])]
    """

    def __init__(self, *, size: int = 100_000, schema: pa.Schema | None = None) -> None:
        if size < 1:
            raise ValueError(f"a queue holds at least 1 record, not {size}")
        self.schema = schema
        self._size = size
        self._items: deque[Any] = deque()
        self._changed = threading.Condition()
        self._closed = False
        self._read = False

    def put(self, record: T, *, timeout: float | None = None) -> None:
        """Puts a record in, from any thread; waits while the queue is full.

        Raises:
            TimeoutError: If it was full for `timeout` seconds.
            ValueError: If it is closed.
        """
        until = None if timeout is None else clock.monotonic() + timeout
        with self._changed:
            while not self._room():
                left = None if until is None else until - clock.monotonic()
                if left is not None and left <= 0:
                    raise TimeoutError(
                        f"the queue was full for {timeout} seconds: nobody reads it fast enough"
                    )
                self._changed.wait(left)
            self._items.append(record)
            self._changed.notify_all()

    def put_many(self, records: Iterable[T]) -> None:
        """Puts records in, one after another."""
        for record in records:
            self.put(record)

    async def aput(self, record: T) -> None:
        """As `put`, from a coroutine: while the queue is full, others run."""
        with self._changed:
            if self._room():
                self._items.append(record)
                self._changed.notify_all()
                return
        import asyncio  # it is slow to import, and who awaits has it

        await asyncio.to_thread(self.put, record)

    def close(self) -> None:
        """Says that nothing comes any more: the stream ends with what was put in."""
        with self._changed:
            self._closed = True
            self._changed.notify_all()

    def _room(self) -> bool:
        if self._closed:
            raise ValueError("the queue is closed: nothing can be put in any more")
        return len(self._items) < self._size

    def partitions(self) -> list[str]:
        """The queue."""
        return ["queue"]

    def open(self, partition: str) -> PartitionReader[T]:
        """The one reader of the queue."""
        with self._changed:
            if self._read:
                raise ValueError("a queue is read once: make another for another dataflow")
            self._read = True
        return _Reader(self)

    def take(self, wanted: threading.Event) -> list[Any] | None:
        """What is there, once something is; None at the end, and when nobody wants it any more."""
        with self._changed:
            while not self._items and not self._closed and wanted.is_set():
                self._changed.wait()
            if not self._items or not wanted.is_set():
                return None
            count = 1 if self.schema is not None else min(len(self._items), MOST)
            taken = [self._items.popleft() for _ in range(count)]
            self._changed.notify_all()
            return taken

    def wake(self) -> None:
        """Lets whoever waits look again."""
        with self._changed:
            self._changed.notify_all()


class _Reader(PartitionReader[T], Generic[T]):
    def __init__(self, queue: QueueSource[T]) -> None:
        self._queue = queue
        self._count = 0
        self._wanted = threading.Event()
        self._wanted.set()

    def read(self) -> Any:
        taken = self._queue.take(self._wanted)
        if taken is None:
            return None
        self._count += len(taken)
        return taken if self._queue.schema is None else taken[0]

    @property
    def offset(self) -> int:
        return self._count

    def seek(self, offset: int) -> None:
        if offset != 0:
            raise ValueError("a queue keeps nothing that was taken, and cannot begin after the beginning")

    def close(self) -> None:
        self._wanted.clear()
        self._queue.wake()
