"""Streams by key.

Owns `KeyedStream`: what `Stream.key_by` returns. Underneath it carries columns ``(times, keys, values)`` (see
`rows`), so that its operators read times without a message for each. All of them see a key's records on one
worker, in the order of time, once these are final.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Generic, Literal, NoReturn, TypeVar

from pointstamp._core import Reduction
from pointstamp._validation import count_of, function_of, unknown_attribute
from pointstamp.api.classes import stream_of
from pointstamp.api.windowed_stream import WindowedStream
from pointstamp.event_time.clock import clock_of
from pointstamp.logic import stateful
from pointstamp.logic.in_time_order import in_time_order, root_only
from pointstamp.logic.joins_in_time import AsOf, Interval, Table
from pointstamp.logic.process import KeyContext, Process
from pointstamp.logic.sides import both_sides, left_or_inner, pairs_of
from pointstamp.logic.state import KeyedState, claimed
from pointstamp.logic.terms import terms_of
from pointstamp.logic.timed import map_timed

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from pointstamp.api.scope import Scope
    from pointstamp.api.stream import Stream
    from pointstamp.expr.windows import WindowKind
    from pointstamp.logic.in_time_order import Logic
    from pointstamp.logic.timed_rows import Keyed, Times
    from pointstamp.plan.node import Output

__all__ = ["KeyedStream"]

K = TypeVar("K")
T = TypeVar("T")
U = TypeVar("U")
S = TypeVar("S")


_RUNNING = {
    "count": Reduction.COUNT,
    "sum": Reduction.SUM,
    "min": Reduction.MIN,
    "max": Reduction.MAX,
    "mean": Reduction.MEAN,
}


class KeyedStream(Generic[K, T]):
    """The records of a stream with a key for each: windows, joins in time, and state.

    Attributes:
        scope: The scope that the stream is in.

    Examples:
        >>> import pointstamp as ps
        >>> def build(scope):
        ...     bids = scope.to_stream([("pen", 3), ("cup", 5), ("pen", 4)])
        ...     by_item = bids.key_by(lambda bid: bid[0], lambda bid: bid[1])
        ...     return by_item.fold(list, lambda seen, bid: [*seen, bid]).capture()
        >>> ps.example(build).extract()
        [(0, [('cup', [5]), ('pen', [3, 4])])]
    """

    __slots__ = ("_clock", "_output", "scope")

    def __init__(self, scope: Scope, output: Output) -> None:
        root_only(scope, "a stream by key")
        self.scope = scope
        self._output = output
        self._clock = clock_of(output)

    if not TYPE_CHECKING:

        def __getattr__(self, name: str) -> NoReturn:
            unknown_attribute(self, "a stream by key", name)

    def __repr__(self) -> str:
        return f"<KeyedStream in {self.scope!r}>"

    def _stateful(
        self,
        operator: str,
        name: str | None,
        make: Callable[[KeyedState[Any, Any]], Logic],
        state: KeyedState[Any, Any] | None,
        ttl: Any,
        **given: Any,
    ) -> Stream[Any]:
        span = None if ttl is None else self._clock.span("ttl", ttl)
        if span is not None and span <= 0:
            raise ValueError(
                f"ttl is how long a key is silent before it is forgotten, more than 0, not {ttl}"
            )
        kept = claimed(state, terms_of(self.scope, operator, self._clock, **given), span)
        made = in_time_order(
            self.scope,
            self._output,
            name or operator,
            lambda: make(kept),
            kept,
            is_given=state is not None,
        )
        return stream_of(self.scope, made)  # type: ignore[no-any-return]

    def map_values(self, fn: Callable[[T], U], *, name: str | None = None) -> KeyedStream[K, U]:
        """Each record through a function; key and time stay.

        Examples:
            >>> import pointstamp as ps
            >>> def build(scope):
            ...     words = scope.to_stream(["tea", "rye", "tin"]).key_by(lambda word: word[0])
            ...     return words.map_values(len).reduce(max).capture()
            >>> ps.example(build).extract()
            [(0, [('r', 3), ('t', 3)])]
        """
        function_of("map", fn)

        def mapped(times: Times, keys: list[Any], values: list[Any]) -> Keyed:
            return times, keys, [fn(value) for value in values]

        return KeyedStream(self.scope, map_timed(self.scope, self._output, mapped, name or "map_values"))

    # ------------------------------------------------------------ windows

    def window(
        self, window: WindowKind, *, early: Any = None, state: KeyedState[K, Any] | None = None
    ) -> WindowedStream[K, T]:
        """The records of each key in windows of event time.

        Args:
            window: `Tumbling`, `Sliding`, `Session` or `Count`.
            early: Results so far at every multiple of this length, for the keys that have changed since; an
                int or a timedelta. None: only final ones.
            state: As in `scan`, for the one operator that is made of the windows: of each key what is open.
                Of tumbling and sliding windows that is a dict from the start of each to the state of its
                reducer, of a session ``[first, last, state]``, of a counted window ``[first, last, count,
                state]``; times are in units.

        Raises:
            TypeError: If it is no window, or its lengths are not of the kind of the stream's times.

        Examples:
            >>> import pointstamp as ps
            >>> def build(scope):
            ...     calls = scope.to_stream([("ann", 1), ("bob", 2), ("ann", 8), ("ann", 12)])
            ...     on_time, late = calls.event_time(lambda call: call[1])
            ...     by_name = on_time.key_by(lambda call: call[0])
            ...     return by_name.window(ps.Tumbling(10)).count().capture()
            >>> for time, results in ps.example(build).extract():
            ...     print(time, results)
            9 [('ann', Window(start=0, end=10), 2), ('bob', Window(start=0, end=10), 1)]
            19 [('ann', Window(start=10, end=20), 1)]
        """
        return WindowedStream(self.scope, self._output, window, early=early, state=state)

    # ------------------------------------------------------------ per time

    def reduce(self, fn: Callable[[T, T], T], *, name: str | None = None) -> Stream[tuple[K, T]]:
        """Per time, the records of each key made one, two at a time.

        Examples:
            >>> import pointstamp as ps
            >>> def build(scope):
            ...     bids = scope.to_stream([("pen", 3), ("cup", 5), ("pen", 4)])
            ...     return bids.key_by(lambda bid: bid[0], lambda bid: bid[1]).reduce(max).capture()
            >>> ps.example(build).extract()
            [(0, [('cup', 5), ('pen', 4)])]
        """
        function_of("reduce", fn)
        made = in_time_order(self.scope, self._output, name or "reduce", lambda: stateful.PerTime(None, fn))
        return stream_of(self.scope, made)  # type: ignore[no-any-return]

    def fold(
        self, init: Callable[[], S], fn: Callable[[S, T], S], *, name: str | None = None
    ) -> Stream[tuple[K, S]]:
        """Per time, the records of each key folded into one state.

        Args:
            init: Makes the state to begin with.
            fn: Called with the state and a record; returns the new state.
            name: The operator's name.

        Examples:
            >>> import pointstamp as ps
            >>> def build(scope):
            ...     words = scope.to_stream(["tea", "rye", "tin"]).key_by(lambda word: word[0])
            ...     return words.fold(str, lambda text, word: text + word).capture()
            >>> ps.example(build).extract()
            [(0, [('r', 'rye'), ('t', 'teatin')])]
        """
        function_of("fold", init)
        function_of("fold", fn)
        made = in_time_order(self.scope, self._output, name or "fold", lambda: stateful.PerTime(init, fn))
        return stream_of(self.scope, made)  # type: ignore[no-any-return]

    # ------------------------------------------------------------ state

    def scan(
        self,
        init: Callable[[], S],
        fn: Callable[[S, T], S],
        *,
        ttl: Any = None,
        state: KeyedState[K, S] | None = None,
        name: str | None = None,
    ) -> Stream[tuple[K, S]]:
        """The state of each key after each of its records, at the record's time.

        Args:
            init: Makes the state of a key that has none.
            fn: Called with the state and a record; returns the new state.
            ttl: A key is forgotten when no record of it has come for so long, in event time: a record at
                exactly so long after the last finds it forgotten. An int or a timedelta. None: never.
            state: Where to keep it, to be listed, or restored from a snapshot.
            name: The operator's name.

        Examples:
            >>> import pointstamp as ps
            >>> def build(scope):
            ...     bids = scope.to_stream([("pen", 3), ("cup", 5), ("pen", 2)])
            ...     return bids.key_by(lambda bid: bid[0], lambda bid: bid[1]).scan(int, max).capture()
            >>> ps.example(build).extract()
            [(0, [('cup', 5), ('pen', 3), ('pen', 3)])]
        """
        function_of("scan", init)
        function_of("scan", fn)
        return self._stateful("scan", name, lambda kept: stateful.Scan(kept, init, fn), state, ttl)

    def running(
        self,
        function: Literal["count", "sum", "min", "max", "mean"],
        of: Callable[[T], Any] | None = None,
        *,
        ttl: Any = None,
        state: KeyedState[K, Any] | None = None,
        name: str | None = None,
    ) -> Stream[tuple[K, Any]]:
        """Accumulates each key's records, with a result after each of them; as `scan`, without a closure.

        Args:
            function: ``"count"``, ``"sum"``, ``"min"``, ``"max"`` or ``"mean"``; of equals, the first is the
                least and the greatest.
            of: Returns what counts of a record; None: the record.
            ttl: As in `scan`.
            state: As in `scan`; of a mean it is the sum and the number.
            name: The operator's name.

        Examples:
            >>> import pointstamp as ps
            >>> def build(scope):
            ...     bids = scope.to_stream([("pen", 3), ("cup", 5), ("pen", 2)])
            ...     return bids.key_by(lambda bid: bid[0], lambda bid: bid[1]).running("max").capture()
            >>> ps.example(build).extract()
            [(0, [('cup', 5), ('pen', 3), ('pen', 3)])]
        """
        if function not in _RUNNING:
            raise ValueError(f"a running function is one of {', '.join(_RUNNING)}, not {function!r}")
        if of is not None:
            function_of("running", of)
        kind = _RUNNING[function]
        return self._stateful(
            "running",
            name,
            lambda kept: stateful.Running(kept, kind, of),
            state,
            ttl,
            function=function,
        )

    def flat_map_with_state(
        self,
        fn: Callable[[S | None, T], tuple[S | None, Iterable[U]]],
        *,
        ttl: Any = None,
        state: KeyedState[K, S] | None = None,
        name: str | None = None,
    ) -> Stream[tuple[K, U]]:
        """Calls a function of the key's state for each record, with any number of results: ``(key, result)``.

        Args:
            fn: Called with the state, None where there is none, and a record; returns the new state, or None
                to forget the key, and the results.
            ttl: As in `scan`.
            state: As in `scan`.
            name: The operator's name.

        Examples:
            The difference of each reading to the one before:

            >>> import pointstamp as ps
            >>> def build(scope):
            ...     readings = scope.to_stream([("a", 3), ("a", 5), ("b", 1), ("a", 4)])
            ...     by_sensor = readings.key_by(lambda reading: reading[0], lambda reading: reading[1])
            ...     change = lambda last, now: (now, [] if last is None else [now - last])
            ...     return by_sensor.flat_map_with_state(change).capture()
            >>> ps.example(build).extract()
            [(0, [('a', -1), ('a', 2)])]
        """
        function_of("flat_map_with_state", fn)
        return self._stateful(
            "flat_map_with_state", name, lambda kept: stateful.FlatMapWithState(kept, fn), state, ttl
        )

    def dedup(
        self, *, ttl: Any = None, state: KeyedState[K, bool] | None = None, name: str | None = None
    ) -> Stream[T]:
        """The first record of each key.

        Args:
            ttl: A key is new again when no record of it has come for so long, as in `scan`; None: never.
            state: As in `scan`.
            name: The operator's name.

        Examples:
            >>> import pointstamp as ps
            >>> def build(scope):
            ...     words = scope.to_stream(["tea", "rye", "tin"])
            ...     return words.key_by(lambda word: word[0]).dedup().capture()
            >>> ps.example(build).extract()
            [(0, ['rye', 'tea'])]
        """
        return self._stateful("dedup", name, stateful.Dedup, state, ttl)

    def top_k(
        self,
        n: int,
        order: Callable[[T], Any] | None = None,
        *,
        ttl: Any = None,
        state: KeyedState[K, list[T]] | None = None,
        name: str | None = None,
    ) -> Stream[tuple[K, list[T]]]:
        """The `n` greatest records of each key so far, greatest first, at each time that changes them.

        Args:
            n: How many.
            order: What they are compared by; None: the records themselves.
            ttl: As in `scan`.
            state: As in `scan`.
            name: The operator's name.

        Raises:
            TypeError: If `n` is no int.
            ValueError: If it is less than 1.

        Examples:
            >>> import pointstamp as ps
            >>> def build(scope):
            ...     bids = scope.to_stream([("pen", 3), ("pen", 9), ("pen", 4)])
            ...     return bids.key_by(lambda bid: bid[0], lambda bid: bid[1]).top_k(2).capture()
            >>> ps.example(build).extract()
            [(0, [('pen', [9, 4])])]
        """
        n = count_of("top_k takes a number of records", n)
        return self._stateful("top_k", name, lambda kept: stateful.Largest(kept, n, order), state, ttl, n=n)

    def process(
        self,
        on_record: Callable[[KeyContext, T], Any],
        on_timer: Callable[[KeyContext], Any] | None = None,
        *,
        ttl: Any = None,
        state: KeyedState[K, Any] | None = None,
        name: str | None = None,
    ) -> Stream[Any]:
        """Calls functions with the records and the timers of each key, in the order of event time.

        At one time the state of a key expires first, then its timer runs, then its records come.

        Args:
            on_record: Called with the key's context and a record. It sends with `KeyContext.emit`, and
                returns nothing.
            on_timer: Called with the key's context when a timer is due, after all that is before it and
                before the records of its time. When the stream ends, all timers run, also those that timers
                set: one that sets another each time stops when `KeyContext.ended`, or is an error.
            ttl: As in `scan`, from the key's last record or the last timer that set its state. An int or a
                timedelta. Timers are not forgotten with the state.
            state: As in `scan`.
            name: The operator's name.

        Examples:
            >>> import pointstamp as ps
            >>> def build(scope):
            ...     beats = scope.to_stream([("a", 1), ("a", 3), ("b", 9)])
            ...     on_time, late = beats.event_time(lambda beat: beat[1])
            ...     def heard(context, beat):
            ...         context.cancel_timer((context.state or 0) + 5)
            ...         context.state = beat[1]
            ...         context.set_timer(beat[1] + 5)
            ...     def silence(context):
            ...         context.emit(f"{context.key} is silent")
            ...     return on_time.key_by(lambda beat: beat[0]).process(heard, silence).capture()
            >>> ps.example(build).extract()
            [(8, ['a is silent']), (14, ['b is silent'])]
        """
        function_of("process", on_record)
        if on_timer is not None:
            function_of("process", on_timer)
        return self._stateful(
            "process", name, lambda kept: Process(kept, self._clock, on_record, on_timer), state, ttl
        )

    # ------------------------------------------------------------ joins in time

    def interval_join(
        self,
        other: KeyedStream[K, U],
        *,
        lower: Any,
        upper: Any,
        how: Literal["inner", "left", "right", "full"] = "inner",
        state: KeyedState[K, Any] | None = None,
        name: str | None = None,
    ) -> Stream[tuple[K, tuple[Any, Any]]]:
        """Pairs of records with one key, the other's time in ``[time + lower, time + upper]``.

        A pair is ``(key, (ours, theirs))``, and is sent at the later of its times. What matches nothing is
        sent, where asked for, when nothing can match it any more.

        Args:
            other: The right side.
            lower: An int or a timedelta; may be negative.
            upper: An int or a timedelta, not less than `lower`.
            how: Whose records without a match come all the same, with None in the other's place.
            state: As in `scan`: of each key what can still be matched of ours and of theirs, each a list
                ``[time, record, whether it was matched]``.
            name: The operator's name.

        Examples:
            >>> import pointstamp as ps
            >>> def build(scope):
            ...     def timed(records):
            ...         on_time, _ = scope.to_stream(records).event_time(lambda record: record[1])
            ...         return on_time.key_by(lambda record: record[0], lambda record: record[1])
            ...     orders, payments = timed([("ann", 1), ("ann", 9)]), timed([("ann", 3)])
            ...     return orders.interval_join(payments, lower=0, upper=5).capture()
            >>> ps.example(build).extract()
            [(3, [('ann', (1, 3))])]
        """
        low, high = self._clock.span("lower", lower), self._clock.span("upper", upper)
        if low > high:
            raise ValueError(f"no time is between {lower} and {upper} after another: lower is at most upper")
        outer = pairs_of(how)
        return self._joined(
            other,
            "interval_join",
            name,
            lambda kept: Interval(kept, low, high, outer),
            state,
            lower=low,
            upper=high,
        )

    def asof_join(
        self,
        other: KeyedStream[K, U],
        *,
        within: Any = None,
        how: Literal["left", "inner"] = "left",
        state: KeyedState[K, tuple[int, U]] | None = None,
        name: str | None = None,
    ) -> Stream[tuple[K, tuple[T, U | None]]]:
        """Each record with the latest of the other stream at or before its time: ``(key, (ours, theirs))``.

        Args:
            other: The right side; of each key its latest record is kept.
            within: How long before at most; an int or a timedelta. A key of the other side that is older is
                freed.
            how: ``"left"``: a record without one has None in its place; ``"inner"``: it is left out.
            state: As in `scan`: of each key the time and the latest record of the other stream.
            name: The operator's name.

        Examples:
            >>> import pointstamp as ps
            >>> def build(scope):
            ...     def timed(records):
            ...         on_time, _ = scope.to_stream(records).event_time(lambda record: record[1])
            ...         return on_time.key_by(lambda record: record[0], lambda record: record[2])
            ...     trades = timed([("A", 3, "buy"), ("A", 7, "sell")])
            ...     prices = timed([("A", 2, 50), ("A", 6, 80)])
            ...     return trades.asof_join(prices).capture()
            >>> ps.example(build).extract()
            [(3, [('A', ('buy', 50))]), (7, [('A', ('sell', 80))])]
        """
        left = left_or_inner("asof_join", how)
        span = None if within is None else self._clock.span("within", within)
        if span is not None and span < 0:
            raise ValueError(f"within is how long before a record its match may be, at least 0, not {within}")
        return self._joined(
            other, "asof_join", name, lambda kept: AsOf(kept, span, left=left), state, within=span
        )

    def table_join(
        self,
        table: KeyedStream[K, U],
        *,
        ttl: Any = None,
        how: Literal["inner", "left"] = "inner",
        state: KeyedState[K, tuple[int, U]] | None = None,
        name: str | None = None,
    ) -> Stream[tuple[K, tuple[T, U | None]]]:
        """Each record with its key's row of a table, as of the record's time: ``(key, (ours, row))``.

        Args:
            table: The table's changes: a record is the new row of its key from its time on, and None ends
                the row.
            ttl: A row ends when there has been no new one of its key for so long, in event time: at exactly
                so long after its time it is gone, as in `scan`. An int or a timedelta. None: never.
            how: ``"inner"``: a record without a row is left out; ``"left"``: it has None in its place.
            state: As in `scan`: of each key the time and the row.
            name: The operator's name.

        Examples:
            >>> import pointstamp as ps
            >>> def build(scope):
            ...     def timed(records):
            ...         on_time, _ = scope.to_stream(records).event_time(lambda record: record[1])
            ...         return on_time.key_by(lambda record: record[0], lambda record: record[2])
            ...     rides = timed([("city", 3, "ann"), ("city", 7, "bob")])
            ...     tariffs = timed([("city", 1, 10), ("city", 5, 12)])
            ...     return rides.table_join(tariffs).capture()
            >>> ps.example(build).extract()
            [(3, [('city', ('ann', 10))]), (7, [('city', ('bob', 12))])]
        """
        left = left_or_inner("table_join", how)
        span = None if ttl is None else self._clock.span("ttl", ttl)
        if span is not None and span <= 0:
            raise ValueError(f"ttl is how long a row of the table lasts, more than 0, not {ttl}")
        return self._joined(
            table, "table_join", name, lambda kept: Table(kept, span, left=left), state, ttl=span
        )

    def _joined(
        self,
        other: Any,
        operator: str,
        name: str | None,
        make: Callable[[KeyedState[Any, Any]], Logic],
        state: KeyedState[Any, Any] | None,
        **given: Any,
    ) -> Stream[Any]:
        both = both_sides(self, other, name)
        kept = claimed(state, terms_of(self.scope, operator, self._clock, **given))
        given_one = state is not None
        made = in_time_order(self.scope, both, name or operator, lambda: make(kept), kept, is_given=given_one)
        return stream_of(self.scope, made)  # type: ignore[no-any-return]
