"""`QueueSource`: records that other threads, or coroutines, put in while the dataflow runs."""

from __future__ import annotations

import threading
import time as clock
from collections import deque
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from pointstamp._validation import count_of
from pointstamp.connectors.protocol import PartitionReader, Source

if TYPE_CHECKING:
    from collections.abc import Iterable

    import pyarrow as pa

__all__ = ["QueueSource"]

T = TypeVar("T")

MOST = 1024
"""Records that one `read` returns at most."""

GRACE = 20
"""Twentieths of a second for which `put` waits before it says that the reader has gone."""


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

    acknowledges = False

    def __init__(self, *, size: int = 100_000, schema: pa.Schema | None = None) -> None:
        size = count_of("a queue holds a number of records", size)
        self.schema = schema
        self._size = size
        self._items: deque[Any] = deque()
        self._changed = threading.Condition()
        self._closed = False
        self._read = False
        self._left = False
        self._worker: int | None = None  # the thread of the worker that reads it
        self._waiting: list[tuple[Any, Any]] = []  # coroutines: a loop, and a future of it

    def put(self, record: T, *, timeout: float | None = None) -> None:
        """Puts a record in, from any thread; waits while the queue is full.

        Raises:
            TimeoutError: If it was full for `timeout` seconds.
            ValueError: If it is closed, or the dataflow that read it has ended; if it is full, and the worker
                that reads it would wait for itself.
        """
        try:
            self._put(record, timeout)
        except ValueError:
            # A worker that puts in what another reads is stopped by that one's failure, and does not hide it.
            for _ in range(GRACE if self._left else 0):
                clock.sleep(0.05)
            raise

    def _put(self, record: T, timeout: float | None) -> None:
        until = None if timeout is None else clock.monotonic() + timeout
        with self._changed:
            while not self._room():
                if until is None and threading.get_ident() == self._worker:
                    raise ValueError(
                        f"the queue is full, with {self._size} waiting, and this is the thread of the worker "
                        "that reads it: it would wait for itself. Put from another thread, step the worker "
                        "between, or give the queue a larger size="
                    )
                left = None if until is None else until - clock.monotonic()
                if left is not None and left <= 0:
                    raise TimeoutError(
                        f"the queue was full for {timeout} seconds: it is not read fast enough"
                    )
                self._changed.wait(left)
            self._items.append(record)
            self._tell()

    def put_many(self, records: Iterable[T]) -> None:
        """Puts records in, one after another."""
        for record in records:
            self.put(record)

    async def aput(self, record: T) -> None:
        """Puts from a coroutine: while the queue is full, others run. Cancelled, it puts nothing in."""
        import asyncio  # it is slow to import, and who awaits has it

        loop = asyncio.get_running_loop()
        while True:
            with self._changed:
                if self._room():
                    self._items.append(record)
                    self._tell()
                    return
                turn = (loop, loop.create_future())
                self._waiting.append(turn)
            try:
                await turn[1]
            finally:
                with self._changed:
                    if turn in self._waiting:
                        self._waiting.remove(turn)

    def close(self) -> None:
        """Says that nothing comes any more: the stream ends with what was put in."""
        with self._changed:
            self._closed = True
            self._tell()

    def _tell(self) -> None:
        """Lets all that wait look again."""
        self._changed.notify_all()
        waiting, self._waiting = self._waiting, []
        for loop, turn in waiting:
            with suppress(RuntimeError):  # nothing waits in a loop that was closed
                loop.call_soon_threadsafe(_wake, turn)

    def _room(self) -> bool:
        if self._closed:
            raise ValueError("the queue is closed: nothing can be put in any more")
        if self._left:
            raise ValueError(
                "the queue is not read any more: its dataflow has ended, or it failed, and then what ran it "
                "raises why"
            )
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
        """Returns the records that are there, once some are; None at the end, and once it is closed."""
        with self._changed:
            while not self._items and not self._closed and wanted.is_set():
                # No limit: a source waits for its next records for as long as it is open; `close` ends it.
                self._changed.wait()
            if not self._items or not wanted.is_set():
                return None
            count = 1 if self.schema is not None else min(len(self._items), MOST)
            taken = [self._items.popleft() for _ in range(count)]
            self._tell()
            return taken

    def taken(self, partition: str) -> None:
        """Notes the thread of the dataflow: putting on it would wait for itself."""
        self._worker = threading.get_ident()

    def unread(self, partition: str) -> None:
        """Notes that a dataflow ended before it began: putting need not wait for it."""
        self.leave()

    def leave(self) -> None:
        """Is told that its reader has gone: who waits with something to put in hears of it."""
        with self._changed:
            self._left, self._worker = True, None
            self._tell()


def _wake(turn: Any) -> None:
    if not turn.done():
        turn.set_result(None)


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

    def seek(self, offset: Any) -> None:
        if offset != 0:
            raise ValueError("a queue keeps nothing that was taken, and cannot begin after the beginning")

    def close(self) -> None:
        self._wanted.clear()
        self._queue.leave()
