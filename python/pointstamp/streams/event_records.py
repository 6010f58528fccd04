"""Streams of records that know their event times.

Owns `EventStream`, a `Stream` whose records are at the times that they tell. Underneath they travel as
columns ``(times, records)`` (see `pointstamp.keyed.rows`), in batches of mixed times, because a message for
each time would cost more than the work on its records. Operators that go on by event time (`key_by`,
`window`, and `map`, `filter` and their kin before them) read those; any other operator finds each record at
its time, by one more operator that is made when it is first asked for.
"""

from __future__ import annotations

from itertools import compress
from typing import TYPE_CHECKING, Any, TypeVar

from pointstamp import _core
from pointstamp._core import PactKind, StageKind
from pointstamp._mistakes import function_of
from pointstamp._naming import named, named_later
from pointstamp.event_times.splitting import with_keys
from pointstamp.streams.records import Stream

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable, Iterable

    from pointstamp._core import Stream as CoreStream
    from pointstamp.event_times.clock import Clock
    from pointstamp.keyed.rows import Columns, Times
    from pointstamp.scope import Scope

__all__ = ["EventStream"]

T = TypeVar("T")
U = TypeVar("U")


@named
class EventStream(Stream[T]):
    """A `Stream` of records at their event times."""

    __slots__ = ("_made", "clock", "timed")

    def __init__(self, scope: Scope, timed: CoreStream, clock: Clock) -> None:
        self.scope = scope
        self.timed = timed
        self.clock = clock
        self._made: CoreStream | None = None
        if scope.parent is not None:
            _ = self.core  # it may be read when the scope's block has ended

    @property
    def core(self) -> CoreStream:  # type: ignore[override]  # made when it is asked for
        """The extension's stream of the records at their times."""
        if self._made is None:
            with named_later(self.scope):
                self._made = _core.at_event_times(self.timed)
        return self._made

    def _each(
        self,
        kind: str,
        given: Callable[..., Any],
        function: Callable[[Times, list[Any]], Columns],
        name: str | None,
    ) -> EventStream[Any]:
        function_of(kind, given)
        (made,) = self.timed.stage(StageKind.MAP_TIMED, function, name or kind, 1)
        return EventStream(self.scope, made, self.clock)

    def map(self, fn: Callable[[T], U], *, name: str | None = None) -> EventStream[U]:
        """Each record through a function; its time stays."""
        return self._each("map", fn, lambda times, records: (times, [fn(record) for record in records]), name)

    def filter(self, predicate: Callable[[T], bool], *, name: str | None = None) -> EventStream[T]:
        """The records for which the predicate is true."""

        def kept(times: Times, records: list[Any]) -> Columns:
            if isinstance(times, int):
                return times, [record for record in records if predicate(record)]
            passes = [predicate(record) for record in records]
            return list(compress(times, passes)), list(compress(records, passes))

        return self._each("filter", predicate, kept, name)

    def flat_map(self, fn: Callable[[T], Iterable[U]], *, name: str | None = None) -> EventStream[U]:
        """Each record through a function that returns any number of records, which have its time."""

        def flat(times: Times, records: list[Any]) -> Columns:
            if isinstance(times, int):
                return times, [made for record in records for made in fn(record)]
            made: list[Any] = []
            when: list[int] = []
            for time, record in zip(times, records, strict=True):
                made += fn(record)
                when += [time] * (len(made) - len(when))
            return when, made

        return self._each("flat_map", fn, flat, name)

    def inspect(self, fn: Callable[[T], Any], *, name: str | None = None) -> EventStream[T]:
        """Calls a function with each record, and passes the records on."""

        def seen(times: Times, records: list[Any]) -> Columns:
            for record in records:
                fn(record)
            return times, records

        return self._each("inspect", fn, seen, name)

    def concat(self, *others: Stream[T], name: str | None = None) -> Stream[T]:
        """The records of this stream and the others."""
        streams = [other for other in others if isinstance(other, EventStream)]
        if len(streams) < len(others):
            return super().concat(*others)
        for stream in streams:
            self.clock.join(stream.clock)
        timed = self.scope.core.concatenate([stream.timed for stream in (self, *streams)])
        return EventStream(self.scope, timed, self.clock)

    def exchange(self, key: Callable[[T], Hashable], *, name: str | None = None) -> EventStream[T]:
        """Moves each record to the worker that its key chooses; as `Stream.exchange`."""
        function_of("exchange", key)
        moved = self.timed.forward(name or "exchange", PactKind.EXCHANGE, key)
        return EventStream(self.scope, moved, self.clock)

    def with_keys(
        self, key: Callable[[Any], Any], value: Callable[[Any], Any] | None
    ) -> tuple[CoreStream, Clock]:
        """Returns columns ``(times, keys, values)``, and the unit of the times; for `key_by`."""
        (made,) = self.timed.stage(StageKind.MAP_TIMED, with_keys(key, value), "key_by", 1)
        return made, self.clock
