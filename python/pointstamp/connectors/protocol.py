"""The protocol under every connector: a handful of methods for what is read, and as many for what is written.

Owns the four classes and nothing that runs: `reading` and `writing` hold the operators. A source has
partitions, each with offsets, so that it can be read by any number of workers and again from where it was. A
sink is told when a time is whole, and then in two steps to make it visible, so that either all workers show a
time or none.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from pointstamp.errors import PointstampError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    import pyarrow as pa

    from pointstamp.types import Time

__all__ = ["PartitionReader", "Sink", "SinkWriter", "Source", "number_of"]

T = TypeVar("T")


def number_of(offset: Any, partition: str, what: str, most: int = 1 << 63) -> int:
    """An offset that is a number, and may have been kept elsewhere.

    Args:
        offset: The offset.
        partition: Of which partition.
        what: What is counted, for the error.
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
    """Reads one partition. Its methods are called from one thread, but for `close` and `durable`."""

    @abstractmethod
    def read(self) -> Any:
        """The next batch: a list of records, or a `pyarrow.RecordBatch`; None at the end.

        It may wait. An empty batch is fine: it says that there was nothing now.
        """

    @property
    @abstractmethod
    def offset(self) -> Any:
        """The place where the next `read` begins: after all that was returned.

        Plain JSON data: None, a bool, an int, a float, a str, or a list or a dict with str keys of these.
        What ``json.loads(json.dumps(offset))`` returns is equal to it, and goes on at the same place.
        """

    @property
    def watermark(self) -> int | None:
        """The least event time of what `read` returns from here on; None where that is not known.

        Asked after each `read` of a source that has a `time_of`. A batch may be empty, and only tell this.
        """
        return None

    def take_rejected(self) -> list[Any]:
        """Returns the lines that could not be read since the last call. It is called after each `read`."""
        return []

    @abstractmethod
    def seek(self, offset: Any) -> None:
        """Goes to an offset that this partition gave before; called before the first `read`.

        Offsets may have been kept elsewhere: one that is not of this partition is a `PointstampError`.
        """

    def durable(self, offset: Any) -> None:  # most have nothing to do
        """Says that nothing before the offset is needed any more.

        Everything that was made of it has left the dataflow, and been committed by its sinks, and no operator
        keeps any of it. Where an operator keeps state for as long as it runs, this is never called, and a
        `NotAcknowledged` warning says so: see `Scope.read`.

        It is called on the worker's thread, which does other work, too: it must not wait. A reader that keeps
        positions for others, as a broker does, leaves this one for a thread that stores it, and has stored
        the last when `close` returns.
        """

    @property
    def acknowledges(self) -> bool:
        """Whether `durable` does something: by default, whether the reader has a method of its own."""
        return "durable" in getattr(self, "__dict__", ()) or type(self).durable is not PartitionReader.durable

    def close(self) -> None:
        """Lets go of everything. It is called once, from another thread, and ends a `read` that waits."""


class Source(ABC, Generic[T]):
    """Something to read, in partitions.

    Attributes:
        schema: Of a source of columns; None of a source of records.
        waits: Whether a `read` may wait for what is written next. Then each partition has a thread; else the
            partitions of a worker are read one after another, and one is open at a time: a reader is closed
            at its end, and `durable` may be called after that.
        time_of: Of a source whose records tell their event time: what gives it, of a record or a batch of
            columns. `read` asks it where it is given neither `time` nor `every`.
        on_error: Of a source of text, what becomes of lines that cannot be read: ``"raise"``, ``"skip"``, or
            a `Sink`. None of a source of which all can be read.
        acknowledges: Whether a reader may be told which offsets are durable. False where none has a `durable`
            of its own, or does anything there: then no operator keeps account of what it still needs. A
            subclass of one of the package's sources with an `open` of its own is taken to have some.
        discover: Every so many seconds `partitions` is asked again, for those that were added; None for
            never. A source that is asked again does not end, and needs `worker_of`.
    """

    schema: pa.Schema | None = None
    waits: bool = True
    acknowledges: bool = True
    discover: float | None = None
    on_error: Any = None
    time_of: Callable[[Any], Any] | None = None

    @abstractmethod
    def partitions(self) -> Iterable[str]:
        """The names of all partitions, the same on every worker: workers share them out by these."""

    def worker_of(self, partition: str, workers: int) -> int | None:
        """The number of the worker that reads a partition; None deals the partitions out in turn."""
        return None

    @abstractmethod
    def open(self, partition: str) -> PartitionReader[T]:
        """A reader of a partition, at its beginning."""

    def taken(self, partition: str) -> None:  # most have nothing to do
        """Says that the worker of this thread reads a partition, from now on.

        What waits on this thread for the partition to be read waits for itself.
        """

    def unread(self, partition: str) -> None:  # most have nothing to do
        """Says that a dataflow ended before it opened a partition: it was dropped, or failed.

        Who waits for a reader, to put something in, hears of it here.
        """


class SinkWriter(ABC):
    """One worker's part of a sink. Times come to their end in order, each once."""

    @abstractmethod
    def write(self, time: Time, batch: Any) -> None:
        """Takes a batch of a time that is not whole yet: a list of records, or a `pyarrow.RecordBatch`."""

    def prepare(self, time: Time) -> None:  # noqa: B027
        """Makes ready to show a time, which is whole: what can fail should fail here.

        It is called for times with a batch on this worker.
        """

    @abstractmethod
    def commit(self, time: Time) -> None:
        """Shows a time, which all workers have prepared.

        Called again after a failure, it must change nothing.
        """

    def commit_all(self, times: Sequence[Time]) -> None:
        """Shows times that have come to their end together, in order; by `commit` of each if not overridden.

        A writer for which each commit costs a wait, such as a database's, may show them in one.
        """
        for time in times:
            self.commit(time)

    def abort(self) -> None:  # noqa: B027
        """Forgets what was written and not prepared: the dataflow has failed, here or elsewhere.

        What was prepared may stay: all workers may have prepared it, and others be committing it.
        """

    def close(self) -> None:  # noqa: B027
        """Lets go of everything; called once, at the end, and after `abort`."""


class Sink(ABC):
    """Somewhere to write to.

    Attributes:
        single: Whether it takes one writer only, as a database in a file does: then all goes to the first
            worker.
    """

    single: bool = False

    @abstractmethod
    def open(self, worker: int, workers: int) -> SinkWriter:
        """The part of a worker: its number, and how many there are."""
