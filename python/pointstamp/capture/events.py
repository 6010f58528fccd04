"""Capture: a stream as a sequence of events that can be kept, read and played again.

Owns `Capture`, the in-memory queue that `Stream.capture` returns, the two kinds of event, and `EventWriter`
and `EventReader`, by which events go to files and sockets and come back. The sequence keeps the stream's
promises: no messages come at a time that the progress before them has excluded. After timely dataflow's
capture and replay; the form of the bytes is in docs/design/capture.md.
"""

from __future__ import annotations

import os
import time as clock
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Generic, NamedTuple, TypeVar

from pointstamp import _core
from pointstamp._core import EventQueue
from pointstamp._nan_order import comparable
from pointstamp._validation import check_reached, early, suggesting
from pointstamp.errors import CheckpointError, CodecError, GraphError, TimeError
from pointstamp.plan import shape
from pointstamp.plan.node import Form, Output

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator
    from socket import socket
    from typing import Protocol, TypeAlias

    from pointstamp.lowering.scope import BuildingScope
    from pointstamp.types import Time

    class Writes(Protocol):
        """A binary file, or an object with its interface."""

        def write(self, data: Any, /) -> int | None: ...

    class Reads(Protocol):
        """A binary file, or an object with its interface."""

        def read(self, size: int = ..., /) -> bytes | None: ...

    Target: TypeAlias = str | os.PathLike[str] | Writes | socket
    Origin: TypeAlias = str | os.PathLike[str] | Reads | socket

__all__ = ["Capture", "EventReader", "EventWriter", "Messages", "Position", "Progress"]

T = TypeVar("T")


class Progress(NamedTuple):
    """Changes to the frontier of times that may still come.

    Attributes:
        changes: Each time that enters the frontier, with 1, or leaves it, with -1.

    Examples:
        >>> import pointstamp as ps
        >>> first, *_ = ps.example(lambda scope: scope.to_stream(["a"]).capture())
        >>> first
        Progress(changes=[(0, 1)])
    """

    changes: list[tuple[Time, int]]


class Messages(NamedTuple):
    """A batch of records at a time.

    Attributes:
        time: The time of every record in the batch.
        data: A list of records, or a `pyarrow.RecordBatch` of an `ArrowStream`.

    Examples:
        >>> import pointstamp as ps
        >>> _, messages, _ = ps.example(lambda scope: scope.to_stream(["a"]).capture())
        >>> messages.time, messages.data
        (0, ['a'])
    """

    time: Time
    data: Any


class Position(NamedTuple):
    """A place between two events of a capture.

    Attributes:
        offset: The length in bytes of the events before it.
        counts: The sums of their changes to the frontier, ``(time, count)``; None before the first event.
        mark: A checksum of the beginning of the file and of the bytes before the offset, by which a rewritten
            file is recognised; None where it is not known.

    Examples:
        >>> import os, tempfile
        >>> import pointstamp as ps
        >>> path = os.path.join(tempfile.mkdtemp(), "letters.events")
        >>> ps.example(lambda scope: scope.to_stream(list("ab")).capture_into(ps.EventWriter(path)))
        >>> reader = ps.EventReader(path, allow_pickle=True)
        >>> reader.position.counts is None
        True
    """

    offset: int
    counts: list[tuple[Time, int]] | None
    mark: int | None = None


@suggesting
class Capture(Generic[T]):
    """A queue of the events of a stream on one worker. It may be read from any thread, and after the run.

    Reading does not remove events: every iteration begins with the first.

    Examples:
        >>> import pointstamp as ps
        >>> captured = ps.example(lambda scope: scope.to_stream(list("abc")).capture())
        >>> for event in captured:
        ...     print(event)
        Progress(changes=[(0, 1)])
        Messages(time=0, data=['a', 'b', 'c'])
        Progress(changes=[(0, -1)])
        >>> captured.extract()
        [(0, ['a', 'b', 'c'])]
    """

    __slots__ = ("_behind", "_form", "_queue", "_worker")

    def __init__(self, worker: int = 0, peers: int = 1) -> None:
        self._queue = EventQueue()
        self._form: tuple[int, _core.Schema | None] | None = None
        self._behind: Callable[[], str | None] | None = None
        self._worker = (worker, peers)

    def __repr__(self) -> str:
        messages = [event for event in self._events() if isinstance(event, Messages)]
        records = sum(len(event.data) for event in messages)
        times = len({event.time for event in messages})
        worker, peers = self._worker
        own = f" of worker {worker} of {peers}" if peers > 1 else ""
        return f"<{type(self).__name__}{own}: {records} records at {times} times>"

    def __iter__(self) -> Iterator[Progress | Messages]:
        """Yields the events that are there, in order.

        Raises:
            CheckpointError: If the stream had ended at the checkpoint from which the run resumes, and the
                program had dropped the capture.
        """
        if self._queue.lost:
            raise CheckpointError(
                "the events of this capture are not in the checkpoint: the stream had ended, and the program "
                "held no reference to the capture any more. Hold one while checkpoints are made"
            )
        return self._events()

    def _events(self) -> Iterator[Progress | Messages]:
        index = 0
        while (event := self._queue.event(index)) is not None:
            time, data = event
            yield Progress(data) if time is None else Messages(time, data)
            index += 1

    def extract(self) -> list[tuple[Time, list[T]]]:
        """The records per time, in the order of times; records are sorted where all of a time can be.

        NaN is the greatest number there.

        For an `ArrowStream`: per time, its record batches, in the order of their arrival. Times without a
        total order come in the order of their coordinates, first coordinate first. Records are this worker's:
        with several workers, `execute` returns a capture of each.

        Warns:
            UsageWarning: When the worker has ended, for a call before the first step with none after it.

        Examples:
            >>> import pointstamp as ps
            >>> ps.example(lambda scope: scope.to_stream([2, 1]).delay(lambda n, time: n).capture()).extract()
            [(1, [1]), (2, [2])]
        """
        check_reached(self._behind)
        by_time: dict[Time, list[T]] = {}
        columns = False
        for event in self:
            if isinstance(event, Messages):
                at_time = by_time.setdefault(event.time, [])
                if isinstance(event.data, list):
                    at_time.extend(event.data)
                else:
                    at_time.append(event.data)
                    columns = True
        result = []
        for time in sorted(by_time):
            records = by_time[time]
            if not columns:
                # Records without an order stay in the order of arrival. They signal it in their own way:
                # comparing arrays raises ValueError.
                with suppress(Exception):
                    records = sorted(records, key=comparable)
            result.append((time, records))
        self._check_empty(result)
        return result

    def _check_empty(self, extracted: list[Any]) -> None:
        """Notes an extract, which may come too early: see `Early`.

        Args:
            extracted: The captured records.
        """
        early.extracted(self, not extracted and self._queue.event(0) is None)


@suggesting
class EventWriter:
    """Writes the events of a stream: `stream.capture_into(EventWriter(target))`, one writer for each worker.

    Every event is written when it happens. A file holds whole events and perhaps a part of one whenever the
    program ends, and can be read while it is written.

    Args:
        target: A path; a binary file object, which stays open; or a connected socket, which the writer takes
            over and closes after the last event. Writing to a socket whose other side does not read waits,
            and so does writing to a named pipe, which is opened when its stream begins and has a reader.
        overwrite: Whether an existing file is replaced. The default is an error: workers that are given one
            path by mistake do not lose each other's events. A program that reads the file meanwhile gets an
            error.

    Raises:
        FileExistsError: If there is a file at the path.
        GraphError: If another writer is writing to it at the moment.

    Examples:
        >>> import io
        >>> import pointstamp as ps
        >>> kept = io.BytesIO()
        >>> ps.example(lambda scope: scope.to_stream(list("abc")).capture_into(ps.EventWriter(kept)))
        >>> def again(scope):
        ...     kept.seek(0)
        ...     return scope.replay([ps.EventReader(kept, allow_pickle=True)]).capture()
        >>> ps.example(again).extract()
        [(0, ['a', 'b', 'c'])]
    """

    __slots__ = ("_sink",)

    def __init__(self, target: Target, *, overwrite: bool = False) -> None:
        from pointstamp.capture import carriers  # sockets and pipes: most captures stay in memory

        if isinstance(target, (str, os.PathLike)):
            if carriers.is_pipe(target):
                self._sink: _core.EventSink | None = _core.EventSink.to_object(carriers.PipeTarget(target))
            else:
                self._sink = _core.EventSink.create(os.fspath(target), overwrite)
        elif carriers.is_socket(target):
            carriers.check_connected(target)  # type: ignore[arg-type]
            self._sink = _core.EventSink.to_object(carriers.SocketTarget(target))  # type: ignore[arg-type]
        elif hasattr(target, "write"):
            self._sink = _core.EventSink.to_object(carriers.FileTarget(target))
        else:
            raise TypeError(
                f"events are written to a path, a binary file or a connected socket, not {target!r}"
            )

    def _taken(self) -> _core.EventSink:
        """Hands the target over to a stream: it is closed with the stream's dataflow.

        Raises:
            GraphError: If another stream has it already.
        """
        if self._sink is None:
            raise GraphError("this writer writes the events of a stream already: make one for each stream")
        sink, self._sink = self._sink, None
        return sink


@suggesting
class EventReader:
    """Reads the events of an `EventWriter`: `scope.replay([EventReader(source), ...])`, or event by event.

    Captures of several workers are replayed by any number of workers: give each capture to one of them.
    Iterating yields the events, as of a `Capture`; a reader is read once, by one of the two.

    Args:
        source: A path, also of a named pipe; a binary file object; or a connected socket, which the reader
            takes over and closes.
        allow_pickle: Whether records of Python objects may be read. Reading them can run code of their
            author, as with `pickle`. Columns of an `ArrowStream` are always safe.
        follow: Whether to wait at the end of a file for further events, until the captured stream is
            complete. The file need not exist yet. It may only grow: a capture that begins anew, after a
            restart, is written to a path of its own.

    Attributes:
        offset: The length in bytes of the events that were read so far.
        frontier: The times that may still come after them; none once the stream is complete.

    Raises:
        CodecError: On reading: the damage and its offset; that `allow_pickle` is needed; or that the file was
            replaced, shortened, or rewritten while it was read.

    Examples:
        >>> import os, tempfile
        >>> import pointstamp as ps
        >>> path = os.path.join(tempfile.mkdtemp(), "letters.events")
        >>> ps.example(lambda scope: scope.to_stream(list("ab")).capture_into(ps.EventWriter(path)))
        >>> for event in ps.EventReader(path, allow_pickle=True):
        ...     print(event)
        Progress(changes=[(0, 1)])
        Messages(time=0, data=['a', 'b'])
        Progress(changes=[(0, -1)])
    """

    __slots__ = ("_carrier", "_feed", "_pickle", "_started", "name")

    def __init__(self, source: Origin, *, allow_pickle: bool = False, follow: bool = False) -> None:
        from pointstamp.capture import carriers

        self._pickle = allow_pickle
        self._carrier: Any = None
        self._started = False
        if isinstance(source, (str, os.PathLike)):
            path = os.fspath(source)
            self.name = path
            if carriers.is_pipe(source):
                self._feed = _core.EventFeed.fed(path)
                self._carrier = carriers.Pipe(path, follow)
            else:
                self._feed = _core.EventFeed.open(path, path, follow)
                if not follow:
                    self._begin()  # an unreadable file is an error here
        elif carriers.is_socket(source) or hasattr(source, "read"):
            if carriers.is_socket(source):
                carriers.check_connected(source)  # type: ignore[arg-type]
            self.name = f"<{type(source).__name__}>"
            self._feed = _core.EventFeed.fed(self.name)
            self._carrier = source
        else:
            raise TypeError(
                f"events are read from a path, a binary file or a connected socket, not {source!r}"
            )

    @property
    def offset(self) -> int:
        """Bytes of the events that were read so far."""
        return self._feed.offset

    @property
    def frontier(self) -> list[Time]:
        """The times that may still come after the events that were read so far."""
        return self._feed.frontier

    @property
    def position(self) -> Position:
        """The reader's position, for `seek` of another reader of the same file, also in another process."""
        return Position(self._feed.offset, self._feed.counts, self._feed.mark())

    def seek(self, position: Position) -> None:
        """Continues after the events of another reader of the same file; before the first is read.

        Raises:
            CodecError: If the file has no beginning, ends before that position, or was written anew.

        Examples:
            >>> import os, tempfile
            >>> import pointstamp as ps
            >>> path = os.path.join(tempfile.mkdtemp(), "letters.events")
            >>> ps.example(lambda scope: scope.to_stream(list("ab")).capture_into(ps.EventWriter(path)))
            >>> first = ps.EventReader(path, allow_pickle=True)
            >>> _ = next(iter(first))
            >>> second = ps.EventReader(path, allow_pickle=True)
            >>> second.seek(first.position)
            >>> next(iter(second))
            Messages(time=0, data=['a', 'b'])
        """
        self._begin()
        if position.counts is not None:
            self._feed.seek(position.offset, position.counts, position.mark)

    def _begin(self) -> tuple[int, _core.Schema | None]:
        """Waits for the beginning of the capture: the coordinates of times, and the schema of columns."""
        if self._carrier is not None and not self._started:
            from pointstamp.capture import carriers

            carriers.start_reading(self._carrier, self._feed)
        self._started = True
        pause = 0.001
        try:
            while (start := self._feed.start()) is None:
                clock.sleep(pause)
                pause = min(2 * pause, 0.05)
            if start[1] is None and not self._pickle:
                raise CodecError(
                    f"{self.name} holds pickled records, and reading them can run code of its author: "
                    "pass allow_pickle=True if you trust it"
                )
        except BaseException:  # also of a worker that is stopped while it waits
            self._feed.close()  # which waits for the thread that reads
            raise
        return start

    def close(self) -> None:
        """Gives up unread events. A reader that has read to the end, or is replayed, needs no closing.

        Examples:
            >>> import os, tempfile
            >>> import pointstamp as ps
            >>> path = os.path.join(tempfile.mkdtemp(), "letters.events")
            >>> ps.example(lambda scope: scope.to_stream(list("ab")).capture_into(ps.EventWriter(path)))
            >>> reader = ps.EventReader(path, allow_pickle=True)
            >>> next(iter(reader))
            Progress(changes=[(0, 1)])
            >>> reader.close()
        """
        self._feed.close()

    def __iter__(self) -> Iterator[Progress | Messages]:
        """Yields the events that were not read yet; with `follow`, or of a socket, waits for more.

        A capture that ends before its stream ends here, too; `frontier` has the times that were still to
        come.

        Raises:
            GraphError: If it was given to a replay.
        """
        if self._feed.claimed:
            raise _given_away(self)
        self._begin()
        pause = 0.001
        while True:
            try:
                event = self._feed.next(True)
                if event is None:
                    clock.sleep(pause)
                    pause = min(2 * pause, 0.05)
                    continue
            except BaseException:
                self._feed.close()  # which waits for the thread that reads
                raise
            pause = 0.001
            if isinstance(event, bool):
                self._feed.close()
                return
            _, first, second = event
            if first is None:
                yield Progress(second)
            else:
                for time, data in first:
                    yield Messages(time, data)


def replayed(
    scope: BuildingScope,
    captures: Iterable[Capture[Any] | EventReader],
    schema: _core.Schema | None,
    name: str | None,
) -> Output:
    """Plays captures into a scope; returns the stream."""
    claimed: list[EventReader] = []
    try:
        played, columns = _played(scope, captures, schema, claimed)
        form, carries = Form.RECORDS, _core.StreamKind.RECORDS
        if columns is not None:
            form, carries = Form.COLUMNS, _core.StreamKind.COLUMNS
        output = Output(form, columns)
        return scope._append(shape.REPLAY, [], output, name=name, played=played, carries=carries).output
    except BaseException:
        for reader in claimed:
            reader.close()
        raise


def _given_away(reader: EventReader) -> GraphError:
    return GraphError(f"{reader.name} was given to a replay: a reader is read once; make another")


def _played(
    scope: BuildingScope,
    captures: Iterable[Capture[Any] | EventReader],
    schema: _core.Schema | None,
    claimed: list[EventReader],
) -> tuple[list[EventQueue | _core.EventFeed], _core.Schema | None]:
    played: list[EventQueue | _core.EventFeed] = []
    columns = schema
    for n, capture in enumerate(captures):
        if isinstance(capture, Capture):
            form = capture._form
            if form is None:
                raise TypeError(
                    "replay plays captures of streams, and this is none: "
                    "of a collection, capture its updates()"
                )
            dims, own = form
            played.append(capture._queue)
            name = "this capture"
        elif isinstance(capture, EventReader):
            if capture._feed.counts is not None:
                raise GraphError(
                    f"events of {capture.name} were read already: a reader is read once; make another"
                )
            if capture._carrier is not None and scope._engine.recording is not None:
                raise GraphError(
                    f"{capture.name} is no file that can be read again, and checkpoints are on: write the "
                    "capture to a file, and replay that; or run without Config(checkpoint=)"
                )
            if not capture._feed.claim():
                raise _given_away(capture)
            claimed.append(capture)
            dims, own = capture._begin()
            played.append(capture._feed)
            name = capture.name
        else:
            raise TypeError(f"replay plays captures and event readers, not {capture!r}")
        if dims != scope.dims:
            raise TimeError(
                f"{name} has times of {dims} coordinates, and this scope of {scope.dims}: "
                "replay it in a scope with as many, as `with scope.scoped(dims=...)` makes one"
            )
        if n == 0 and schema is None:
            columns = own
        elif (own is None) != (columns is None):
            raise GraphError("captures of records and captures of columns cannot be replayed as one stream")
        elif own is not None and columns is not None:
            difference = columns.difference(own)
            if difference is not None:
                raise GraphError(f"{name} cannot be replayed in a stream of this schema: {difference}")
    return played, columns
