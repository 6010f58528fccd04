"""`QueueSource`: records that other threads, or coroutines, put in while the dataflow runs."""

from __future__ import annotations

import logging
import pickle
import threading
import time as clock
from collections import deque
from contextlib import suppress
from itertools import islice
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from pointstamp._validation import count_of
from pointstamp.connectors.journal import Journal, pickled
from pointstamp.connectors.protocol import PartitionReader, Source, number_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence
    from pathlib import Path

    import pyarrow as pa

__all__ = ["QueueSource"]

T = TypeVar("T")

_log = logging.getLogger("pointstamp")

MOST = 1024
"""Records that one `read` returns at most."""

GRACE = 20
"""Twentieths of a second for which `put` waits before it raises that the reader has ended."""


class QueueSource(Source[T]):
    """A queue that any thread may put records into, read by worker 0.

    The threads of one process can share a queue that was made before `execute`. The records of a queue that a
    worker makes for itself, and does not read, are not sent: there is a warning.

    Args:
        size: The maximum number of records, or with a schema of batches, that wait in it: then putting waits.
        schema: Of a queue of `pyarrow.RecordBatch`; None of a queue of records.
        journal: Whether records are logged beside the checkpoints before putting returns, so that they are
            read once, whatever is killed after that. A queue that is read with checkpoints needs it. Records
            are put in after the dataflow was built, and only those that no earlier run was given: these come
            from the journal. Each call waits for the disk, so put many at once; a coroutine's loop waits,
            too.

    Raises:
        GraphError: When it is read, if checkpoints are made and there is no journal, or none are made and
            there is one.

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
    rewinds = False

    def __init__(
        self, *, size: int = 100_000, schema: pa.Schema | None = None, journal: bool = False
    ) -> None:
        size = count_of("a queue holds a number of records", size)
        if journal:
            self.journal = self.acknowledges = self.rewinds = True
        self._log: Journal | None = None
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
                that reads it would wait for itself; if it has a journal, and is not read yet.
            TypeError: If it has a journal, and the record cannot be pickled.
            CheckpointError: If it has a journal, and another execution has taken over.
            OSError: If the journal cannot be written. The record was not put in.

        Examples:
            >>> import pointstamp as ps
            >>> from pointstamp.connectors import QueueSource
            >>> queue = QueueSource()
            >>> queue.put("tick", timeout=1.0)
            >>> queue.close()
            >>> ps.example(lambda scope: scope.read(queue).capture()).extract()
            [(0, ['tick'])]
        """
        self._put_all([record], timeout)

    def _put_all(self, records: Sequence[T], timeout: float | None) -> None:
        try:
            self._put(records, timeout)
        except ValueError:
            # A worker that puts in records for another is stopped by the other's failure, and does not hide
            # it.
            for _ in range(GRACE if self._left else 0):
                clock.sleep(0.05)
            raise

    def _put(self, records: Sequence[T], timeout: float | None) -> None:
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
            self._add(records)

    def _add(self, records: Sequence[T]) -> None:
        """Puts records in, once they are logged, in the same order."""
        if self._log is not None:
            self._log.append(pickled(records))
        self._items.extend(records)
        self._tell()

    def put_many(self, records: Iterable[T]) -> None:
        """Puts records in, one after another.

        With a journal, up to 1,024 are logged together. A call that raises leaves the earlier ones in the
        queue.

        Examples:
            >>> import pointstamp as ps
            >>> from pointstamp.connectors import QueueSource
            >>> queue = QueueSource()
            >>> queue.put_many(["tick", "tock"])
            >>> queue.close()
            >>> ps.example(lambda scope: scope.read(queue).capture()).extract()
            [(0, ['tick', 'tock'])]
        """
        if not self.journal:
            for record in records:
                self.put(record)
            return
        left = iter(records)
        while some := list(islice(left, MOST)):
            self._put_all(some, None)

    async def aput(self, record: T) -> None:
        """Puts from a coroutine: while the queue is full, others run. Cancelled, it puts nothing in.

        Examples:
            >>> import asyncio
            >>> import pointstamp as ps
            >>> from pointstamp.connectors import QueueSource
            >>> queue = QueueSource()
            >>> asyncio.run(queue.aput("tick"))
            >>> queue.close()
            >>> ps.example(lambda scope: scope.read(queue).capture()).extract()
            [(0, ['tick'])]
        """
        import asyncio  # slow to import, and awaiting callers have it

        loop = asyncio.get_running_loop()
        while True:
            with self._changed:
                if self._room():
                    self._add([record])
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
        """Declares that nothing comes any more: the stream ends with the present records.

        Examples:
            >>> from pointstamp.connectors import QueueSource
            >>> queue = QueueSource()
            >>> queue.close()
            >>> try:
            ...     queue.put("tick")
            ... except ValueError as error:
            ...     print(error)
            the queue is closed: nothing can be put in any more
        """
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
        if self.journal and self._log is None:
            raise ValueError(
                "the queue has a journal, which lies beside the checkpoints of the dataflow that reads it: "
                "put records in once that is built"
            )
        return len(self._items) < self._size

    def recorded(self, partition: str, journal: Path | None) -> None:
        """Opens the journal, after which records can be put in."""
        if self.journal and journal is not None:
            with self._changed:
                self._log = Journal(journal)
                self._tell()

    def partitions(self) -> list[str]:
        """The queue."""
        return ["queue"]

    def open(self, partition: str) -> PartitionReader[T]:
        """The one reader of the queue."""
        with self._changed:
            if self._read:
                raise ValueError("a queue is read once: make another for another dataflow")
            self._read = True
        return _Reader(self) if self._log is None else _LoggedReader(self, self._log)

    def take(self, wanted: threading.Event) -> list[Any] | None:
        """Returns the records that are there, once some are; None at the end, and once it is closed.

        Examples:
            A reader takes the waiting records; programs use `Scope.read`:

            >>> import threading
            >>> from pointstamp.connectors import QueueSource
            >>> queue = QueueSource()
            >>> queue.put_many(["tick", "tock"])
            >>> wanted = threading.Event()
            >>> wanted.set()
            >>> queue.take(wanted)
            ['tick', 'tock']
        """
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
        """Notes that a dataflow ended without reading it: putting need not wait for it."""
        if self._read:
            return  # by another worker, whose reader ends it
        self.leave()
        if self._items:
            _log.warning(
                "%d records wait in a queue that was not read: of several workers, worker 0 reads a queue. "
                "Make it before execute(), for all threads of the process, or put into it on worker 0",
                len(self._items),
            )

    def leave(self) -> None:
        """Notes that its reader has ended: waiting senders are notified.

        Examples:
            >>> from pointstamp.connectors import QueueSource
            >>> queue = QueueSource()
            >>> queue.leave()  # from now on `put` raises ValueError
        """
        with self._changed:
            self._left, self._worker = True, None
            if self._log is not None:
                self._log.close()
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


class _LoggedReader(_Reader[T], Generic[T]):
    """Reads the records of earlier runs from the journal, and then the queue."""

    def __init__(self, queue: QueueSource[T], log: Journal) -> None:
        super().__init__(queue)
        self._log = log
        self._count = log.first
        self._logged: Iterator[bytes] | None = None

    def read(self) -> Any:
        if self._logged is None:
            self._logged = self._log.read(self._count)
        most = 1 if self._queue.schema is not None else MOST
        found = [pickle.loads(record) for record in islice(self._logged, most)]
        if not found:
            return super().read()
        self._count += len(found)
        return found if self._queue.schema is None else found[0]

    def seek(self, offset: Any) -> None:
        self._count = number_of(offset, "a queue", "a number of records")

    def durable(self, offset: Any) -> None:
        self._log.trim(offset)
