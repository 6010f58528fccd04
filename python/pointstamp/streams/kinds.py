"""Makes streams of every kind for a scope, for the modules that cannot name one another.

A kind is imported when its first stream is made: programs over records have no use for columns.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, overload

from pointstamp.streams.records import Stream

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from pointstamp import _core
    from pointstamp.collections import Collection, ColumnCollection
    from pointstamp.event_times.clock import Clock
    from pointstamp.event_times.magnitude import Lengths
    from pointstamp.streams.arrow import ArrowStream
    from pointstamp.streams.event_columns import EventColumns, WindowResults
    from pointstamp.streams.event_records import EventStream

__all__ = ["StreamsOf"]


class StreamsOf:
    """Streams of the extension as what programs see: what `Scope` is for this package."""

    __slots__ = ()

    name: str
    address: tuple[int, ...]
    dims: int
    index: int
    peers: int

    @overload
    def stream_of(self, core: _core.Stream) -> Stream[Any]: ...
    @overload
    def stream_of(self, core: _core.Stream, schema: _core.Schema) -> ArrowStream: ...
    @overload
    def stream_of(self, core: _core.Stream, schema: _core.Schema | None) -> Any: ...
    def stream_of(self, core: _core.Stream, schema: _core.Schema | None = None) -> Any:
        """A stream here: a `Stream` of records, or with a schema an `ArrowStream`.

        For this package: the modules of both kinds, and those below them, make streams of the other kind
        through their scope.
        """
        scope: Any = self
        if schema is None:
            return Stream(scope, core)
        from pointstamp.streams.arrow import ArrowStream

        return ArrowStream(scope, core, schema)

    def event_stream_of(self, timed: _core.Stream, clock: Clock) -> EventStream[Any]:
        """A stream of records at their event times, from columns ``(times, records)``."""
        from pointstamp.streams.event_records import EventStream

        scope: Any = self
        return EventStream(scope, timed, clock)

    def event_columns_of(self, batched: _core.Stream, schema: _core.Schema, time_column: str) -> EventColumns:
        """A stream of rows at the times that a column tells, which come in batches of mixed times."""
        from pointstamp.streams.event_columns import EventColumns

        scope: Any = self
        return EventColumns(scope, batched, schema, time_column)

    def window_results_of(self, made: _core.Stream, schema: _core.Schema, time_type: Any) -> WindowResults:
        """A stream of rows at the last instants of their windows."""
        from pointstamp.streams.event_columns import WindowResults

        scope: Any = self
        return WindowResults(scope, made, schema, time_type)

    def columns_together(self, streams: Sequence[ArrowStream]) -> ArrowStream:
        """The rows of streams of one schema; at event times, where one column tells those of all."""
        from pointstamp.streams.arrow import ArrowStream
        from pointstamp.streams.event_columns import EventColumns, WindowResults

        scope: Any = self
        schema, placed = streams[0].core_schema, streams[0].placed
        timed = [stream for stream in streams if isinstance(stream, EventColumns)]
        if len(timed) == len(streams) and len({stream.time_column for stream in timed}) == 1:
            batched = scope.core.concatenate([stream.batched for stream in timed])
            return EventColumns(scope, batched, schema, timed[0].time_column)
        made = scope.core.concatenate([stream.core for stream in streams])
        told = {stream.time_type if isinstance(stream, WindowResults) else None for stream in streams}
        if len(told) == 1 and None not in told:
            return WindowResults(scope, made, schema, told.pop())
        alike = all(stream.placed == placed for stream in streams)
        return ArrowStream(scope, made, schema, placed if alike else None)

    # ------------------------------------------------------------ the unit of times

    def tells_time(self, streams: Iterable[_core.Stream], clock: Clock) -> None:
        """Takes note that an operator has given the times of streams anew, and their unit."""
        self._clocks.extend((stream, clock) for stream in streams)

    def clock_of(self, stream: _core.Stream) -> Clock:
        """The unit of a stream's times: that of the streams that it comes from, through any operators.

        Raises:
            TypeError: If these are of different kinds.
        """
        from pointstamp.event_times.clock import Clock

        known = self._clocks
        found = [known[index][1] for index in stream.comes_from([stream for stream, _ in known])]
        if not found:
            return Clock(False, teller="nothing")
        for other in found[1:]:
            found[0].join(other)
        return found[0]

    def lengths_of(self, stream: _core.Stream) -> Lengths | None:
        """The lengths that were given as ints beside a stream's times; None where nothing tells these."""
        known = self._clocks
        found = stream.comes_from([stream for stream, _ in known])
        return known[found[0]][1].lengths if found else None

    @property
    def _clocks(self) -> list[tuple[_core.Stream, Clock]]:
        """The clocks of the whole dataflow."""
        scope: Any = self
        while scope.parent is not None:
            scope = scope.parent
        clocks: list[tuple[_core.Stream, Clock]] = scope.clocks
        return clocks

    @overload
    def collection_of(self, core: _core.Stream) -> Collection[Any]: ...
    @overload
    def collection_of(self, core: _core.Stream, schema: _core.Schema) -> ColumnCollection: ...
    @overload
    def collection_of(self, core: _core.Stream, schema: _core.Schema | None) -> Any: ...
    def collection_of(self, core: _core.Stream, schema: _core.Schema | None = None) -> Any:
        """A collection here of a stream of updates; for the modules below this one, as `stream_of`."""
        from pointstamp.collections.collection import Collection

        scope: Any = self
        rows: Collection[Any] = Collection(scope, core)
        if schema is None:
            return rows
        from pointstamp.collections.columns import ColumnCollection

        return ColumnCollection(rows, schema)
