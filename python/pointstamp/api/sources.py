"""Sources of every `Scope`: captured streams, and connectors.

Owns the methods; `capture` and `connectors` have what they do. The second is imported with the first source.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeVar, cast, overload

from pointstamp import _core
from pointstamp._validation import function_of, several
from pointstamp.api.classes import stream_of
from pointstamp.capture.events import replayed
from pointstamp.errors import GraphError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    import pyarrow as pa

    from pointstamp.api.arrow_stream import ArrowStream
    from pointstamp.api.scope import Scope
    from pointstamp.api.stream import Stream
    from pointstamp.capture.events import Capture, EventReader
    from pointstamp.connectors.protocol import Source

__all__ = ["FromOutside"]

T = TypeVar("T")


class FromOutside:
    """Streams of what comes from outside the dataflow."""

    __slots__ = ()

    core: _core.Scope
    dims: int
    index: int
    peers: int

    @overload
    def replay(self, captures: Iterable[Capture[T]], *, name: str | None = None) -> Stream[T]: ...
    @overload
    def replay(self, captures: Iterable[Capture[Any] | EventReader], *, name: str | None = None) -> Any: ...
    @overload
    def replay(
        self, captures: Iterable[Capture[Any] | EventReader], *, schema: pa.Schema, name: str | None = None
    ) -> ArrowStream: ...
    def replay(
        self,
        captures: Iterable[Capture[Any] | EventReader],
        *,
        schema: pa.Schema | None = None,
        name: str | None = None,
    ) -> Any:
        """The stream that was captured, with its times and its frontier.

        Several captures are one stream, whatever the number of workers that wrote them and that replay them.
        Each capture is replayed by one worker; a worker may have none. The captured dataflow may still run,
        in this process (`Stream.capture`) or in another.

        Args:
            captures: What this worker replays: captures of streams in memory, and objects of `EventReader`.
                A reader of a socket, or of a file that it follows, is waited for until its capture has begun.
            schema: Of columns. Where a worker may have no capture, it says that the stream is an
                `ArrowStream`.
            name: The operator's name.

        Returns:
            A `Stream` of records, or an `ArrowStream` of columns.

        Raises:
            CodecError: For records of a reader that does not allow them; when the dataflow runs, for damage,
                with its offset.
            TimeError: If the times have another number of coordinates than the scope's.
            GraphError: If the captures have different schemas, or a reader was replayed before.

        Warns:
            TruncatedWarning: When the dataflow runs, if a capture ends before its stream did. What was whole
                is replayed, and then its times are over.

        Examples:
            >>> import pointstamp as ps
            >>> first = ps.example(lambda scope: scope.to_stream(range(3)).capture())
            >>> second = ps.example(lambda scope: scope.to_stream(range(3, 5)).capture())
            >>> both = ps.example(lambda scope: scope.replay([first, second]).capture())
            >>> both.extract()
            [(0, [0, 1, 2, 3, 4])]
        """
        columns = None if schema is None else _core.Schema(schema)
        scope = cast("Scope", self)
        return stream_of(scope, replayed(scope, captures, columns, name))

    def read(
        self,
        source: Source[Any],
        *,
        time: Callable[[Any], int] | str | None = None,
        event_time: Callable[[Any], Any] | str | None = None,
        lateness: Any = 0,
        idle: float | None = 10.0,
        every: float | None = None,
        offsets: Mapping[str, Any] | None = None,
        durable: Callable[[str, Any], None] | None = None,
        acknowledge_past_state: bool = False,
        name: str = "read",
    ) -> Any:
        r"""The records of a source, whose partitions are shared out to the workers.

        Each partition is read by one worker. Left to itself everything has the minimum time, which ends with
        the source, unless the source knows times. For times of arrival say `every`, for those that the
        records tell `time`.

        Args:
            source: What is read; the same on every worker.
            time: A function of a record, or of columns the name of a column or a function of a batch, which
                gives the records' times: ints that are not negative. The frontier follows the latest time of
                each partition; what comes behind the frontier is sent at the frontier. `Stream.event_time`
                separates it instead, and knows datetimes.
            event_time: As `time`, and datetimes with a zone or a column of timestamps, too; what comes behind
                the frontier is late, and on a stream of its own. It has a watermark for each partition, where
                `Stream.event_time` has one for each worker.
            lateness: With `time`: how far behind the latest of its partition a record may come; with
                `event_time` an int or a timedelta.
            idle: With a time: after how many seconds without a record a partition holds the others up no
                longer; None for never. One that is read to its end, such as a file, is never idle.
            every: Seconds: the time of a batch is the number of such intervals since 1970.
            offsets: Where to begin, for some partitions: offsets that they gave. Others are read from their
                beginning.
            durable: A function that is called with a partition and an offset, plain JSON data, when nothing
                before the offset is needed any more: what was made of it has left the dataflow and was
                committed by its sinks, and no operator keeps any of it. A later run that is given the latest
                offset of each partition as `offsets` goes on there. It is called on the thread of the worker
                that reads the partition; an error that it raises ends the dataflow.
            acknowledge_past_state: Has offsets acknowledged (`durable`, `PartitionReader.durable`, a group of
                Kafka, a slot of PostgreSQL) even where an operator keeps state of the records before them for
                as long as it runs: for a program that brings the state back itself, or can do without.
            name: The operator's name.

        Returns:
            A `Stream` of records, or of a source with a schema an `ArrowStream`; with `event_time` two of
            them: what is at its event time, and what is late.

        Raises:
            GraphError: If times have more than one coordinate here, or `offsets` names no partition.
            TypeError: If `durable` is no function.

        Warns:
            NotAcknowledged: When the dataflow runs, if somebody wants to hear of offsets, and none is
                acknowledged because of an operator that keeps state.

        Examples:
            >>> import os, tempfile
            >>> import pointstamp as ps
            >>> from pointstamp.connectors import JSONLinesSource
            >>> path = os.path.join(tempfile.mkdtemp(), "numbers.jsonl")
            >>> with open(path, "w") as file:
            ...     _ = file.write("1\n2\n")
            >>> kept = {}
            >>> def build(scope):
            ...     source = JSONLinesSource(path)
            ...     numbers = scope.read(source, offsets=kept, durable=kept.__setitem__)
            ...     return numbers.capture()
            >>> ps.example(build).extract()
            [(0, [1, 2])]
            >>> with open(path, "a") as file:
            ...     _ = file.write("3\n")
            >>> ps.example(build).extract()
            [(0, [3])]
        """
        from pointstamp.connectors.reading import Reading
        from pointstamp.connectors.timing import Arrival, EventTime, Timing
        from pointstamp.logic.late import late_apart, times_of

        if self.dims != 1:
            raise GraphError(f"a source gives times of one coordinate, and they have {self.dims} here")
        if sum(given is not None for given in (time, event_time, every)) > 1:
            raise GraphError("records have the times that they tell, or those of their arrival: not both")
        scope = cast("Scope", self)
        columns = None if source.schema is None else _core.Schema(source.schema)
        if not source.waits:
            idle = None  # its partitions are read one after another: one whose turn has not come is not idle
        if durable is not None:
            durable = function_of("durable", durable)
        told: Any = {"past_state": acknowledge_past_state, "durable": durable}
        if event_time is not None:
            times, units, unit = times_of(event_time, lateness, source.schema)
            timing: Timing = EventTime(times, units, idle, apart=True)
            reading = Reading(name, source, offsets or {}, timing, **told)
            read = reading.install(scope, columns)
            column = None if columns is None else str(event_time)
            made = late_apart(scope, read, times, unit, column)
            on_time, late = (stream_of(scope, output) for output in made)
            return several("read", "on_time, late", (on_time, late))
        timing = Timing()
        if time is not None:
            timing = EventTime(time, lateness, idle)
        elif every is not None:
            timing = Arrival(every)
        elif source.time_of is not None:
            timing = EventTime(source.time_of, lateness, idle, own=True)
        reading = Reading(name, source, offsets or {}, timing, **told)
        return stream_of(scope, reading.install(scope, columns))
