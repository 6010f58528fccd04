"""The protocol of all connectors: a few methods for reading, and as many for writing.

Owns the four classes and nothing that runs: `reading` and `writing` hold the operators. A source has
partitions, each with offsets, so that any number of workers can read it, and again from an offset. A sink is
notified when a time is complete, and then in two steps to make it visible, so that either all workers show a
time or none.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Any, Generic, NamedTuple, TypeVar

from pointstamp.errors import PointstampError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence
    from pathlib import Path

    import pyarrow as pa

    from pointstamp.types import Time

__all__ = ["PartitionReader", "Position", "Sink", "SinkWriter", "Source", "number_of"]

T = TypeVar("T")


def number_of(offset: Any, partition: str, what: str, most: int = 1 << 63) -> int:
    """An offset that is a number, and may have been kept elsewhere.

    Args:
        offset: The offset.
        partition: Of which partition.
        what: The counted unit, for the error.
        most: The offset is less than this.

    Raises:
        PointstampError: If it is something else.
    """
    if isinstance(offset, bool) or not isinstance(offset, int) or not 0 <= offset < most:
        raise PointstampError(
            f"{offset!r:.200} is no offset of {partition}: it is {what}, from 0 on and below {most}. Without "
            "an offset it is read from its beginning"
        )
    return offset


class PartitionReader(ABC, Generic[T]):
    r"""Reads one partition. Its methods are called from one thread, but for `close` and `durable`.

    Examples:
        >>> import os, tempfile
        >>> from pointstamp.connectors import JSONLinesSource
        >>> path = os.path.join(tempfile.mkdtemp(), "numbers.jsonl")
        >>> with open(path, "w") as file:
        ...     _ = file.write("1\n2\n")
        >>> [partition] = JSONLinesSource(path).partitions()
        >>> reader = JSONLinesSource(path).open(partition)
        >>> reader.read(), reader.read()
        ([1, 2], None)
        >>> reader.close()
    """

    @abstractmethod
    def read(self) -> Any:
        """The next batch: a list of records, or a `pyarrow.RecordBatch`; None at the end.

        It may wait. An empty batch is fine: it says that there was nothing now.

        Examples:
            >>> from pointstamp.connectors import PartitionReader
            >>> class Countdown(PartitionReader):
            ...     left = 2
            ...     def read(self):
            ...         if self.left == 0:
            ...             return None
            ...         self.left -= 1
            ...         return [self.left]
            ...     @property
            ...     def offset(self):
            ...         return self.left
            ...     def seek(self, offset):
            ...         self.left = offset
            >>> reader = Countdown()
            >>> reader.read(), reader.read(), reader.read()
            ([1], [0], None)
        """

    @property
    @abstractmethod
    def offset(self) -> Any:
        """The place where the next `read` begins, after all that was returned.

        Plain JSON data: None, a bool, an int, a float, a str, or a list or a dict with str keys of these. The
        result of ``json.loads(json.dumps(offset))`` is equal to it, and resumes at the same position.
        """

    @property
    def watermark(self) -> int | None:
        """Returns the least event time of later results of `read`; None where that is not known.

        Called after each `read` of a source that has a `time_of`. A batch may be empty, and only advance
        this.
        """
        return None

    def take_rejected(self) -> list[Any]:
        r"""Returns the lines that could not be read since the last call. It is called after each `read`.

        Examples:
            >>> import os, tempfile
            >>> from pointstamp.connectors import JSONLinesSource
            >>> path = os.path.join(tempfile.mkdtemp(), "numbers.jsonl")
            >>> with open(path, "w") as file:
            ...     _ = file.write("1\ntwo\n3\n")
            >>> source = JSONLinesSource(path, on_error="skip")
            >>> [partition] = source.partitions()
            >>> reader = source.open(partition)
            >>> reader.read()
            [1, 3]
            >>> [(rejected.line, rejected.text) for rejected in reader.take_rejected()]
            [(2, 'two')]
            >>> reader.close()
        """
        return []

    @abstractmethod
    def seek(self, offset: Any) -> None:
        """Seeks to an offset that this partition returned before; called before the first `read`.

        Offsets may have been kept elsewhere: an offset of another partition is a `PointstampError`.

        Examples:
            >>> from pointstamp.connectors import PartitionReader
            >>> class Numbers(PartitionReader):
            ...     next = 0
            ...     def read(self):
            ...         self.next += 1
            ...         return [self.next - 1]
            ...     @property
            ...     def offset(self):
            ...         return self.next
            ...     def seek(self, offset):
            ...         self.next = offset
            >>> first, second = Numbers(), Numbers()
            >>> first.read(), first.read()
            ([0], [1])
            >>> second.seek(first.offset)
            >>> second.read()
            [2]
        """

    def durable(self, offset: Any) -> None:  # most have nothing to do
        """Says that nothing before the offset is needed any more.

        Everything that was made of it has left the dataflow, and been committed by its sinks, and no operator
        keeps any of it. Where an operator keeps state for as long as it runs, this is never called, and a
        `NotAcknowledged` warning says so: see `Scope.read`.

        It is called on the worker's thread, which does other work, too: it must not wait. A reader that keeps
        positions for others, as a broker does, leaves this one for a thread that stores it, and has stored
        the last when `close` returns.

        Examples:
            A reader that prints the offsets that are durable:

            >>> import pointstamp as ps
            >>> from pointstamp.connectors import PartitionReader, Source
            >>> class Numbers(PartitionReader):
            ...     next = 0
            ...     def read(self):
            ...         self.next += 1
            ...         return [self.next] if self.next < 3 else None
            ...     @property
            ...     def offset(self):
            ...         return self.next
            ...     def seek(self, offset):
            ...         self.next = offset
            ...     def durable(self, offset):
            ...         print("durable:", offset)
            >>> class NumberSource(Source):
            ...     waits = False
            ...     def partitions(self):
            ...         return ["numbers"]
            ...     def open(self, partition):
            ...         return Numbers()
            >>> ps.example(lambda scope: scope.read(NumberSource()).probe()).done()
            durable: 2
            True
        """

    @property
    def acknowledges(self) -> bool:
        """Whether `durable` does something. By default, whether the reader has a method of its own."""
        return "durable" in getattr(self, "__dict__", ()) or type(self).durable is not PartitionReader.durable

    def close(self) -> None:
        r"""Releases all resources. It is called once, from another thread, and ends a `read` that waits.

        Examples:
            >>> import os, tempfile
            >>> from pointstamp.connectors import JSONLinesSource
            >>> path = os.path.join(tempfile.mkdtemp(), "numbers.jsonl")
            >>> with open(path, "w") as file:
            ...     _ = file.write("1\n2\n")
            >>> [partition] = JSONLinesSource(path).partitions()
            >>> reader = JSONLinesSource(path).open(partition)
            >>> reader.read()
            [1, 2]
            >>> reader.close()
        """


class Source(ABC, Generic[T]):
    """Something to read, in partitions.

    Attributes:
        schema: Of a source of columns; None of a source of records.
        waits: Whether a `read` may wait for new data. Then each partition has a thread; else the partitions
            of a worker are read one after another, and one is open at a time: a reader is closed at its end,
            and `durable` may be called after that.
        time_of: For a source whose records have an event time: the function that returns it, of a record or a
            batch of columns. `read` uses it where it is given neither `time` nor `every`.
        on_error: For a source of text, the treatment of lines that cannot be read: ``"raise"``, ``"skip"``,
            or a `Sink`. None for a source whose lines can always be read.
        acknowledges: Whether a reader is called with durable offsets. False where no reader has a `durable`
            of its own, or one with an effect: then no operator tracks the records that it still needs. A
            subclass of one of the package's sources with an `open` of its own is assumed to have such
            readers.
        rewinds: Whether a reader resumes at any offset that it returned, in another run, too. False where
            records cannot be read again: with checkpoints, such a source needs a journal.
        journal: Whether records are logged beside the checkpoints before they are sent.
        discover: The interval in seconds at which `partitions` is called again, for added ones; None for
            never. A source with an interval does not end.

    Examples:
        A source of two partitions:

        >>> import pointstamp as ps
        >>> from pointstamp.connectors import PartitionReader, Source
        >>> class Letters(PartitionReader):
        ...     def __init__(self, letters):
        ...         self.letters, self.next = letters, 0
        ...     def read(self):
        ...         self.next += 1
        ...         return [self.letters[self.next - 1]] if self.next <= len(self.letters) else None
        ...     @property
        ...     def offset(self):
        ...         return self.next
        ...     def seek(self, offset):
        ...         self.next = offset
        >>> class LetterSource(Source):
        ...     waits = False
        ...     def partitions(self):
        ...         return ["ab", "cde"]
        ...     def open(self, partition):
        ...         return Letters(partition)
        >>> ps.example(lambda scope: scope.read(LetterSource()).capture()).extract()
        [(0, ['a', 'b', 'c', 'd', 'e'])]
    """

    schema: pa.Schema | None = None
    waits: bool = True
    acknowledges: bool = True
    rewinds: bool = True
    journal: bool = False
    discover: float | None = None
    on_error: Any = None
    time_of: Callable[[Any], Any] | None = None

    @abstractmethod
    def partitions(self) -> Iterable[str]:
        r"""The names of all partitions, the same on every worker: workers share them out by these.

        Examples:
            >>> import os, tempfile
            >>> from pointstamp.connectors import JSONLinesSource
            >>> folder = tempfile.mkdtemp()
            >>> for name in ("a.jsonl", "b.jsonl"):
            ...     with open(os.path.join(folder, name), "w") as file:
            ...         _ = file.write("1\n")
            >>> len(list(JSONLinesSource(os.path.join(folder, "*.jsonl")).partitions()))
            2
        """

    def worker_of(self, partition: str, workers: int) -> int | None:
        """The number of the worker that reads a partition.

        With None the partitions are dealt out in turn; of a source with `discover`, by the hashes of their
        names.

        Examples:
            >>> from pointstamp.connectors import QueueSource
            >>> print(QueueSource().worker_of("queue", 4))
            None
        """
        return None

    @abstractmethod
    def open(self, partition: str) -> PartitionReader[T]:
        r"""A reader of a partition, at its beginning.

        Examples:
            >>> import os, tempfile
            >>> from pointstamp.connectors import JSONLinesSource
            >>> path = os.path.join(tempfile.mkdtemp(), "numbers.jsonl")
            >>> with open(path, "w") as file:
            ...     _ = file.write("1\n2\n")
            >>> source = JSONLinesSource(path)
            >>> [partition] = source.partitions()
            >>> reader = source.open(partition)
            >>> reader.read()
            [1, 2]
            >>> reader.close()
        """

    def recorded(self, partition: str, journal: Path | None) -> None:  # most have nothing to do
        """Notes that checkpoints have the records that this thread's worker reads of a partition.

        Args:
            partition: The partition.
            journal: A folder beside the checkpoints, for a journal of the partition; None in a bucket.

        Examples:
            >>> from pathlib import Path
            >>> from pointstamp.connectors import JSONLinesSource
            >>> JSONLinesSource("rain.jsonl").recorded("rain.jsonl", Path("state/journals"))  # it keeps none
        """

    def taken(self, partition: str) -> None:  # most have nothing to do
        """Notes that this thread's worker reads a partition.

        A call on this thread that waits for the partition to be read would wait for itself.

        Examples:
            >>> from pointstamp.connectors import QueueSource
            >>> queue = QueueSource(size=1)
            >>> queue.taken("queue")  # as if this thread were the worker that reads it
            >>> queue.put(1)
            >>> try:
            ...     queue.put(2)
            ... except ValueError as error:
            ...     print(str(error).partition(",")[0])
            the queue is full
        """

    def unread(self, partition: str) -> None:  # most have nothing to do
        """Says that a dataflow ended, and this worker has not opened a partition.

        The dataflow was dropped or failed before, or the partition is another worker's. Waiting senders are
        notified here.

        Examples:
            >>> from pointstamp.connectors import QueueSource
            >>> queue = QueueSource()
            >>> queue.unread("queue")  # from now on `put` raises ValueError
        """


class Position(NamedTuple):
    """The place of an outbox among all that a sink shows: written to the target together with its rows."""

    lineage: str
    """The random identity of the place where checkpoints are kept."""
    sink: str
    """A short name of the `write` in the dataflow: two that write under one name have different ones."""
    part: int
    """The worker that made the outbox."""
    number: int
    """The number of the checkpoint that covers it."""


class SinkWriter(ABC):
    """One worker's part of a sink. Times come to their end in order, each once.

    With checkpoints, rows are given to `show` alone. Else `write`, `prepare` and `commit_all` are called.

    Examples:
        A sink that prints each time when it is complete:

        >>> import pointstamp as ps
        >>> from pointstamp.connectors import Sink, SinkWriter
        >>> class Printed(SinkWriter):
        ...     def __init__(self):
        ...         self.rows = {}
        ...     def write(self, time, batch):
        ...         self.rows.setdefault(time, []).extend(batch)
        ...     def commit(self, time):
        ...         print(time, self.rows.pop(time, []))
        >>> class PrintedSink(Sink):
        ...     def open(self, worker, workers):
        ...         return Printed()
        >>> def build(scope):
        ...     scope.to_stream([2, 1]).delay(lambda n, time: n).write(PrintedSink())
        >>> ps.example(build)
        1 [1]
        2 [2]
    """

    @abstractmethod
    def write(self, time: Time, batch: Any) -> None:
        """Takes a batch of a time that is not whole yet: a list of records, or a `pyarrow.RecordBatch`.

        Examples:
            >>> import os, sqlite3, tempfile
            >>> from pointstamp.connectors import SQLiteSink
            >>> path = os.path.join(tempfile.mkdtemp(), "rain.db")
            >>> writer = SQLiteSink(path, "rain", columns=["city", "mm"]).open(0, 1)
            >>> writer.write(0, [("Ulm", 3)])
            >>> writer.abort()
            >>> writer.close()
        """

    def prepare(self, time: Time) -> None:  # noqa: B027
        """Prepares a time, which is complete, for showing: steps that can fail should fail here.

        It is called for times with a batch on this worker.

        Examples:
            >>> import os, sqlite3, tempfile
            >>> from contextlib import closing
            >>> from pointstamp.connectors import SQLiteSink
            >>> path = os.path.join(tempfile.mkdtemp(), "rain.db")
            >>> writer = SQLiteSink(path, "rain", columns=["city", "mm"]).open(0, 1)
            >>> writer.write(0, [("Ulm", 3)])
            >>> writer.prepare(0)
            >>> writer.commit(0)
            >>> writer.close()
            >>> with closing(sqlite3.connect(path)) as database:
            ...     database.execute("SELECT city, mm FROM rain").fetchall()
            [('Ulm', 3)]
        """

    @abstractmethod
    def commit(self, time: Time) -> None:
        """Shows a time, which all workers have prepared.

        Called again after a failure, it must change nothing.

        Examples:
            >>> import os, sqlite3, tempfile
            >>> from contextlib import closing
            >>> from pointstamp.connectors import SQLiteSink
            >>> path = os.path.join(tempfile.mkdtemp(), "rain.db")
            >>> writer = SQLiteSink(path, "rain", columns=["city", "mm"]).open(0, 1)
            >>> writer.write(0, [("Ulm", 3)])
            >>> writer.prepare(0)
            >>> writer.commit(0)
            >>> writer.close()
            >>> with closing(sqlite3.connect(path)) as database:
            ...     database.execute("SELECT city, mm FROM rain").fetchall()
            [('Ulm', 3)]
        """

    def commit_all(self, times: Sequence[Time]) -> None:
        """Shows times that have come to their end together, in order; by `commit` of each if not overridden.

        A writer for which each commit costs a wait, such as a database's, may show them in one.

        Examples:
            >>> import os, sqlite3, tempfile
            >>> from contextlib import closing
            >>> from pointstamp.connectors import SQLiteSink
            >>> path = os.path.join(tempfile.mkdtemp(), "rain.db")
            >>> writer = SQLiteSink(path, "rain", columns=["city", "mm"]).open(0, 1)
            >>> for time, row in enumerate([("Ulm", 3), ("Bonn", 5)]):
            ...     writer.write(time, [row])
            ...     writer.prepare(time)
            >>> writer.commit_all([0, 1])
            >>> writer.close()
            >>> with closing(sqlite3.connect(path)) as database:
            ...     database.execute("SELECT city, mm FROM rain").fetchall()
            [('Ulm', 3), ('Bonn', 5)]
        """
        for time in times:
            self.commit(time)

    def positions(self) -> Iterable[Position]:
        """Returns the positions that the target has under the sink's name, whoever wrote them.

        It is called once, before the first `show`. None are there where the sink notes none.

        Examples:
            >>> import os, tempfile
            >>> from pointstamp.connectors import SQLiteSink
            >>> from pointstamp.connectors.protocol import Position
            >>> path = os.path.join(tempfile.mkdtemp(), "rain.db")
            >>> writer = SQLiteSink(path, "rain", columns=["city", "mm"]).open(0, 1)
            >>> list(writer.positions())
            []
            >>> writer.show(Position("lineage", "rain", 0, 7), [(0, [("Ulm", 3)])])
            >>> [position.number for position in writer.positions()]
            [7]
            >>> writer.close()
        """
        return ()

    def show(self, position: Position, rows: Sequence[tuple[Time, Any]]) -> None:
        """Shows an outbox, and notes its position in the same transaction: both are there, or neither.

        Where the target has the position already, nothing changes. No transaction stays prepared when the
        process ends.

        Args:
            position: Its position. `positions` has it from then on.
            rows: Batches with their times, in the order of times; at least one.

        Raises:
            CheckpointError: If the target has a later position of the part, or one of another lineage: see
                `positions.is_shown`.

        Examples:
            >>> import os, sqlite3, tempfile
            >>> from contextlib import closing
            >>> from pointstamp.connectors import SQLiteSink
            >>> from pointstamp.connectors.protocol import Position
            >>> path = os.path.join(tempfile.mkdtemp(), "rain.db")
            >>> writer = SQLiteSink(path, "rain", columns=["city", "mm"]).open(0, 1)
            >>> writer.show(Position("lineage", "rain", 0, 7), [(0, [("Ulm", 3)])])
            >>> writer.close()
            >>> with closing(sqlite3.connect(path)) as database:
            ...     database.execute("SELECT city, mm FROM rain").fetchall()
            [('Ulm', 3)]
        """
        times = dict.fromkeys(time for time, _ in rows)
        for time, batch in rows:
            self.write(time, batch)
        for time in times:
            self.prepare(time)
        self.commit_all(list(times))

    def abort(self) -> None:  # noqa: B027
        """Drops written records that are not prepared: the dataflow has failed, here or elsewhere.

        Prepared records may stay: all workers may have prepared them, and others be committing.

        Examples:
            >>> import os, sqlite3, tempfile
            >>> from pointstamp.connectors import SQLiteSink
            >>> path = os.path.join(tempfile.mkdtemp(), "rain.db")
            >>> writer = SQLiteSink(path, "rain", columns=["city", "mm"]).open(0, 1)
            >>> writer.write(0, [("Ulm", 3)])
            >>> writer.abort()
            >>> writer.close()
        """

    def close(self) -> None:  # noqa: B027
        """Releases all resources; called once, at the end, and after `abort`.

        Examples:
            >>> import os, tempfile
            >>> from pointstamp.connectors import SQLiteSink
            >>> path = os.path.join(tempfile.mkdtemp(), "rain.db")
            >>> writer = SQLiteSink(path, "rain", columns=["city", "mm"]).open(0, 1)
            >>> writer.close()
        """


class Sink(ABC):
    """Somewhere to write to.

    Attributes:
        single: Whether it takes one writer only, as a database in a file does: then all records go to the
            first worker.
        positions: Whether its writers have `positions` and `show` of their own, so that after a recovery each
            result is there once.
        at_least_once: Whether results may be there twice after a recovery: needed for checkpoints where there
            are no positions.

    Examples:
        >>> import os, sqlite3, tempfile
        >>> from contextlib import closing
        >>> import pointstamp as ps
        >>> from pointstamp.connectors import SQLiteSink
        >>> path = os.path.join(tempfile.mkdtemp(), "rain.db")
        >>> sink = SQLiteSink(path, "rain", columns=["city", "mm"])
        >>> sink.single, sink.positions
        (True, True)
        >>> ps.example(lambda scope: scope.to_stream([("Ulm", 3)]).write(sink).probe()).done()
        True
        >>> with closing(sqlite3.connect(path)) as database:
        ...     database.execute("SELECT city, mm FROM rain").fetchall()
        [('Ulm', 3)]
    """

    single: bool = False
    positions: bool = False
    at_least_once: bool = False

    @abstractmethod
    def open(self, worker: int, workers: int) -> SinkWriter:
        """The part of a worker: its number, and the number of workers.

        Examples:
            >>> import os, tempfile
            >>> from pointstamp.connectors import SQLiteSink
            >>> path = os.path.join(tempfile.mkdtemp(), "rain.db")
            >>> writer = SQLiteSink(path, "rain", columns=["city", "mm"]).open(0, 1)
            >>> writer.close()
        """
