"""Methods of every `Stream` for times, keys and the world outside.

Owns the methods of `Stream` that lead to event time, keys and windows, those of the everyday that work per
time, and calls that wait. Each is a few lines over the module that has its operator, which is imported when
the method is called, so that `import pointstamp` does not load it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Generic, TypeVar

from pointstamp._nan_order import key_function
from pointstamp._validation import count_of, function_of, several
from pointstamp._validation import stream_of as stream_given
from pointstamp.api.classes import stream_of
from pointstamp.logic.planned import single_output
from pointstamp.logic.timed import map_timed
from pointstamp.pacts import ByKey

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable
    from datetime import timedelta

    from pointstamp.api.keyed_stream import KeyedStream
    from pointstamp.api.scope import Scope
    from pointstamp.api.stream import Stream
    from pointstamp.api.windowed_stream import WindowedStream
    from pointstamp.expr.windows import WindowKind
    from pointstamp.logic.state import KeyedState
    from pointstamp.plan.node import Output

__all__ = ["Timely"]

T = TypeVar("T")
U = TypeVar("U")
K = TypeVar("K")
V = TypeVar("V")


class Timely(Generic[T]):
    """Event time, keys, windows, and what is done per time."""

    __slots__ = ()

    scope: Scope

    _output: Output

    # ------------------------------------------------------------ event time

    def event_time(
        self,
        timestamp: Callable[[T], Any],
        *,
        lateness: Any = 0,
        idle: float | None = 10.0,
        ahead: timedelta | None = None,
        name: str | None = None,
    ) -> tuple[Stream[T], Stream[T]]:
        """The records at the times that they tell, and those that came too late.

        The first stream's frontier is the watermark: the least, over the workers, of the latest time that a
        worker's records have told, less the lateness. A record is late if its time is more than the
        lateness behind the latest of its worker's records before it. Each record is on one of the two
        streams; ``late.count()`` counts them.

        The times of the stream itself do not matter: a source may send everything at one time. A worker
        whose input has ended holds nothing up, and one that is idle follows the least watermark of those
        that are not.

        Args:
            timestamp: Returns a record's time: an int that is not negative, in a unit of your own, or a
                datetime with a zone, which becomes microseconds since 1970.
            lateness: How far behind the latest a record may be; an int, or a timedelta for datetimes.
            idle: After how many seconds without a record a worker no longer holds the others up; None: never.
            ahead: For datetimes: how long after now, by the machine's clock, a record may be. One that is
                later, such as of the year 9999, would make all that come after it late: it goes with the late
                ones, and moves no watermark. None: any is believed.
            name: The operator's name.

        Returns:
            The records at their times, and the late ones, at the watermark that they found.

        Raises:
            TypeError: When the dataflow runs, for something that is no time, or a datetime without a zone.
            TimeError: When the dataflow runs, for a time below 0, or before 1970.

        Examples:
            >>> import pointstamp as ps
            >>> def build(scope):
            ...     words = scope.to_stream([("b", 5), ("a", 3), ("c", 1), ("d", 6)])
            ...     on_time, late = words.event_time(lambda word: word[1], lateness=2)
            ...     return on_time.capture(), late.capture()
            >>> on_time, late = ps.example(build)
            >>> on_time.extract()
            [(3, [('a', 3)]), (5, [('b', 5)]), (6, [('d', 6)])]
            >>> [words for _, words in late.extract()]
            [[('c', 1)]]
        """
        from pointstamp.event_time.clock import Clock, not_ahead
        from pointstamp.logic.event_time import event_times
        from pointstamp.logic.splitting import split_records

        function_of("event_time", timestamp)
        clock = Clock()
        units = clock.span("lateness", lateness)
        if units < 0:
            raise ValueError(f"lateness is at least 0, not {lateness}")
        split = split_records(timestamp, clock, not_ahead(ahead, clock.span))
        made = event_times(self.scope, self._output, split, clock, lateness=units, idle=idle, name=name)
        on_time, late = (stream_of(self.scope, output) for output in made)
        return several("event_time", "on_time, late", (on_time, late))

    def key_by(
        self, key: Callable[[T], K], value: Callable[[T], V] | None = None, *, name: str | None = None
    ) -> KeyedStream[K, Any]:
        """The records with a key for each: windows, joins in time and state are methods of what it returns.

        Args:
            key: Returns a record's key: anything that `stable_hash` takes.
            value: Returns what is kept of a record; None keeps the record.
            name: The operator's name.
        """
        from pointstamp.api.keyed_stream import KeyedStream
        from pointstamp.logic.in_time_order import root_only
        from pointstamp.logic.splitting import with_keys

        function_of("key_by", key)
        if value is not None:
            function_of("key_by", value)
        root_only(self.scope, "a stream by key")
        keyed = map_timed(self.scope, self._output, with_keys(key, value), name or "key_by")
        return KeyedStream(self.scope, keyed)

    def window(
        self, window: WindowKind, *, early: Any = None, state: KeyedState[None, Any] | None = None
    ) -> WindowedStream[None, T]:
        """All records in windows of event time, whatever their keys: results are ``(Window, result)``.

        One worker has all of them: where there are many records, `key_by` and window first, and this after.

        Args:
            window: As in `KeyedStream.window`.
            early: As in `KeyedStream.window`.
            state: As in `KeyedStream.window`; its one key is None.
        """
        from pointstamp.api.windowed_stream import WindowedStream

        keyed = self.key_by(_no_key)
        return WindowedStream(self.scope, keyed._output, window, early=early, state=state, by_key=False)

    # ------------------------------------------------------------ calls to the outside

    def async_map(
        self,
        function: Callable[[Any], Awaitable[Any]],
        *,
        ordered: bool = True,
        capacity: int = 100,
        timeout: float | None = None,
        retry: int = 0,
        backoff: float = 0.1,
        batch: int | None = None,
        linger: float = 0.01,
        name: str | None = None,
    ) -> tuple[Stream[Any], Stream[tuple[T, Exception]]]:
        """Each record through a coroutine function, many at a time; and the records whose calls failed.

        Coroutines run on one event loop for each worker, beside the dataflow. A result is sent at its
        record's time, which stays open until then. When the dataflow ends early, the calls that are out are
        cancelled.

        Args:
            function: Called with a record; what it returns is awaited. With `batch` it is called with a
                list of records, and returns a list of as many results.
            ordered: Results come in the order of their records, on each worker; else as they are done.
            capacity: How many calls are out at a time, on each worker. As many again are read ahead; while
                there are so many, the sources of the computation wait, in all processes, and so does who
                sends with an input, once there is as much as `Config.high_water` that has not moved. What a
                call waits for must not depend on them.
            timeout: Seconds for one attempt; None: as long as it takes. A call that takes no notice of being
                cancelled then goes on beside the others, and its result is not used.
            retry: How many further attempts a call has that raised, or took too long.
            backoff: Seconds before the first of them; twice as long before each next.
            batch: How many records one call takes at most; None: one record, by itself.
            linger: Seconds that records wait for others to fill a batch.
            name: The operator's name.

        Returns:
            The results, and the dead letters: each record whose last attempt failed, with its exception.

        Raises:
            TypeError: When the dataflow runs, if what the function returns cannot be awaited, or a batch's
                results are not as many as its records.

        Examples:
            >>> import asyncio
            >>> import pointstamp as ps
            >>> async def invert(n):
            ...     await asyncio.sleep(0.001)
            ...     return 1 / n
            >>> def build(scope):
            ...     inverted, failed = scope.to_stream([4, 0, 2]).async_map(invert)
            ...     return inverted.capture(), failed.map(lambda letter: letter[0]).capture()
            >>> [captured.extract() for captured in ps.example(build)]
            [[(0, [0.25, 0.5])], [(0, [0])]]
        """
        from pointstamp.logic.async_map import Terms, async_map

        if not callable(function):
            raise TypeError(f"async_map needs a coroutine function, not {function!r}")
        terms = Terms(
            ordered=ordered,
            capacity=capacity,
            timeout=timeout,
            retry=retry,
            backoff=backoff,
            batch=batch,
            linger=linger,
        )
        made = async_map(self.scope, self._output, function, terms, name or "async_map")
        streams = tuple(stream_of(self.scope, output) for output in made)
        return several("async_map", "results, failed", streams)

    # ------------------------------------------------------------ per time

    def join(
        self: Timely[tuple[K, V]], other: Stream[tuple[K, U]], *, name: str | None = None
    ) -> Stream[tuple[K, tuple[V, U]]]:
        """Per time, pairs of both streams' ``(key, value)`` records of one key: ``(key, (ours, theirs))``.

        Pairs are sent when the time closes. For times that differ there is `KeyedStream.interval_join`, and
        for what lasts, `Collection.join`.

        Examples:
            >>> import pointstamp as ps
            >>> def build(scope):
            ...     ages, towns = scope.to_stream([("ann", 7), ("bob", 9)]), scope.to_stream([("ann", "Ulm")])
            ...     return ages.join(towns).capture()
            >>> ps.example(build).extract()
            [(0, [('ann', (7, 'Ulm'))])]
        """
        from pointstamp.logic.everyday import join_per_time

        inputs = [(self._output, ByKey()), (stream_given("join", other)._output, ByKey())]
        made = single_output(self.scope, name or "join", inputs, join_per_time, notify=True)
        return stream_of(self.scope, made)  # type: ignore[no-any-return]

    def reduce(
        self: Timely[tuple[K, V]], f: Callable[[V, V], V], *, name: str | None = None
    ) -> Stream[tuple[K, V]]:
        """Per time and key, the values of ``(key, value)`` records made one, two at a time.

        Examples:
            >>> import pointstamp as ps
            >>> def build(scope):
            ...     return scope.to_stream([("a", 3), ("b", 1), ("a", 2)]).reduce(max).capture()
            >>> ps.example(build).extract()
            [(0, [('a', 3), ('b', 1)])]
        """
        function_of("reduce", f)
        missing = object()

        def fold(_key: K, value: V, so_far: Any) -> Any:
            return value if so_far is missing else f(so_far, value)

        stream: Any = self
        result: Stream[tuple[K, V]] = stream.aggregate(
            fold, lambda key, value: (key, value), default=lambda: missing, name=name
        )
        return result

    def top_k(self, k: int, by: Callable[[T], Any] | None = None, *, name: str | None = None) -> Stream[T]:
        """The `k` greatest records of each time, of all workers, greatest first; sent when the time closes.

        Args:
            k: How many.
            by: What they are compared by; None: the records themselves. NaN is the greatest number.
            name: The operator's name.

        Raises:
            TypeError: If `k` is no int.
            ValueError: If it is less than 1.
        """
        from pointstamp.logic.everyday import gathered

        k = count_of("top_k takes a number of records", k)
        if by is not None:
            function_of("top_k", by)
        key = key_function(by)
        made = gathered(
            self.scope,
            self._output,
            name or "top_k",
            lambda records: sorted(records, key=key, reverse=True)[:k],
            locally=True,
        )
        return stream_of(self.scope, made)  # type: ignore[no-any-return]

    def sort(
        self, by: Callable[[T], Any] | None = None, *, reverse: bool = False, name: str | None = None
    ) -> Stream[T]:
        """The records of each time, of all workers, in order, on one worker; sent when the time closes.

        Args:
            by: What they are compared by; None: the records themselves. NaN is the greatest number.
            reverse: The greatest first.
            name: The operator's name.
        """
        from pointstamp.logic.everyday import gathered

        if by is not None:
            function_of("sort", by)
        key = key_function(by)
        made = gathered(
            self.scope,
            self._output,
            name or "sort",
            lambda records: sorted(records, key=key, reverse=reverse),
            locally=False,
        )
        return stream_of(self.scope, made)  # type: ignore[no-any-return]


def _no_key(_record: Any) -> None:
    return None
