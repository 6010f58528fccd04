"""Streams of records that know their event times.

Owns `EventStream`, a `Stream` whose records are at the times that they tell. Underneath they travel as
pairs ``(time, record)``, in batches of mixed times, because a message for each time would cost more than
the work on its records. Operators that go on by event time (`key_by`, `window`, and `map`, `filter` and
their kin before them) read those pairs; any other operator finds each record at its time, by one more
operator that is made when it is first asked for.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeVar

from pointstamp import _core
from pointstamp._core import PactKind, StageKind
from pointstamp._mistakes import function_of
from pointstamp.streams.records import Stream

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable, Iterable

    from pointstamp._core import Stream as CoreStream
    from pointstamp.event_times.clock import Clock
    from pointstamp.scope import Scope

__all__ = ["EventStream"]

T = TypeVar("T")
U = TypeVar("U")


class EventStream(Stream[T]):
    """A `Stream` of records at their event times."""

    __slots__ = ("_made", "clock", "pairs")

    def __init__(self, scope: Scope, pairs: CoreStream, clock: Clock) -> None:
        self.scope = scope
        self.pairs = pairs
        self.clock = clock
        self._made: CoreStream | None = None
        if scope.parent is not None:
            _ = self.core  # it may be read when the scope's block has ended

    @property
    def core(self) -> CoreStream:  # type: ignore[override]  # made when it is asked for
        """The extension's stream of the records at their times."""
        if self._made is None:
            self._made = _core.at_event_times(self.pairs)
        return self._made

    def _each(self, kind: str, given: Callable[..., Any], batch: Callable[..., Any]) -> EventStream[Any]:
        function_of(kind, given)
        (made,) = self.pairs.stage(StageKind.MAP_BATCH, batch, kind, 1)
        return EventStream(self.scope, made, self.clock)

    def map(self, fn: Callable[[T], U], *, name: str | None = None) -> EventStream[U]:
        """Each record through a function; its time stays."""
        return self._each("map", fn, lambda pairs: [(time, fn(record)) for time, record in pairs])

    def filter(self, predicate: Callable[[T], bool], *, name: str | None = None) -> EventStream[T]:
        """The records for which the predicate is true."""
        return self._each("filter", predicate, lambda pairs: [pair for pair in pairs if predicate(pair[1])])

    def flat_map(self, fn: Callable[[T], Iterable[U]], *, name: str | None = None) -> EventStream[U]:
        """Each record through a function that returns any number of records, which have its time."""
        return self._each(
            "flat_map", fn, lambda pairs: [(time, made) for time, record in pairs for made in fn(record)]
        )

    def inspect(self, fn: Callable[[T], Any]) -> EventStream[T]:
        """Calls a function with each record, and passes the records on."""

        def seen(pairs: list[tuple[int, T]]) -> list[tuple[int, T]]:
            for _, record in pairs:
                fn(record)
            return pairs

        return self._each("inspect", fn, seen)

    def concat(self, *others: Stream[T]) -> Stream[T]:
        """The records of this stream and the others."""
        streams = [other for other in others if isinstance(other, EventStream)]
        if len(streams) < len(others) or any(other.clock is not self.clock for other in streams):
            return super().concat(*others)
        pairs = self.scope.core.concatenate([stream.pairs for stream in (self, *streams)])
        return EventStream(self.scope, pairs, self.clock)

    def exchange(self, key: Callable[[T], Hashable]) -> EventStream[T]:
        """Moves each record to the worker that its key chooses; as `Stream.exchange`."""
        function_of("exchange", key)
        pairs = self.pairs.forward("exchange", PactKind.EXCHANGE, lambda pair: key(pair[1]))
        return EventStream(self.scope, pairs, self.clock)

    def triples(
        self, key: Callable[[Any], Any], value: Callable[[Any], Any] | None
    ) -> tuple[CoreStream, Clock]:
        """The records as ``(time, key, value)``, and the unit of the times; for `key_by`."""

        def keyed(pairs: list[tuple[int, Any]]) -> list[tuple[int, Any, Any]]:
            if value is not None:
                return [(time, key(record), value(record)) for time, record in pairs]
            return [(time, key(record), record) for time, record in pairs]

        (made,) = self.pairs.stage(StageKind.MAP_BATCH, keyed, "key_by", 1)
        return made, self.clock
