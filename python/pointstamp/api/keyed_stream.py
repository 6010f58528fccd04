"""Streams by key.

Owns `KeyedStream`, the result of `Stream.key_by`. Its streams carry columns ``(times, keys, values)`` (see
`rows`), so that its operators read times without a message for each. All of them see a key's records on one
worker, in the order of time, once these are final.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Generic, Literal, NoReturn, TypeVar, overload

from pointstamp._core import Reduction
from pointstamp._validation import count_of, function_of, unknown_attribute
from pointstamp.api.classes import stream_of
from pointstamp.api.windowed_stream import WindowedStream
from pointstamp.event_time.clock import clock_of
from pointstamp.logic import stateful
from pointstamp.logic.in_time_order import in_time_order
from pointstamp.logic.join_inputs import both_sides, check_sides
from pointstamp.logic.join_kinds import check_how, check_join, left_or_inner
from pointstamp.logic.joins_in_time import AsOf, Interval, Table
from pointstamp.logic.process import KeyContext, Process
from pointstamp.logic.state import KeyedState, claimed
from pointstamp.logic.state_settings import settings_of
from pointstamp.logic.timed import map_timed

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from pointstamp.api.scope import Scope
    from pointstamp.api.stream import Stream
    from pointstamp.expr.windows import WindowKind
    from pointstamp.logic.in_time_order import Logic
    from pointstamp.logic.join_kinds import How, OneSided
    from pointstamp.logic.timed_rows import Keyed, Times
    from pointstamp.plan.node import Output

__all__ = ["KeyedStream"]

K = TypeVar("K")
T = TypeVar("T")
U = TypeVar("U")
S = TypeVar("S")
R = TypeVar("R")


_RUNNING = {
    "count": Reduction.COUNT,
    "sum": Reduction.SUM,
    "min": Reduction.MIN,
    "max": Reduction.MAX,
    "mean": Reduction.MEAN,
}


class KeyedStream(Generic[K, T]):
    """The records of a stream with a key for each: windows, joins in time, and state.

    It works in any scope. Where times have several coordinates, such as in loops, the first is the event time
    and the others count turns. Operators whose results come at their records' times (`scan`, `running`,
    `state_machine`, `dedup`, `top_k_so_far`, `asof_join`, `table_join`) see all turns of one event time
    before the next. Operators that send at later event times (`window`, `interval_join`, `process`) see each
    turn by itself. `state=` is for times of one coordinate.

    Attributes:
        scope: The scope that the stream is in.

    Examples:
        >>> import pointstamp as ps
        >>> def build(scope):
        ...     bids = scope.to_stream([("pen", 3), ("cup", 5), ("pen", 4)])
        ...     by_item = bids.key_by(lambda bid: bid[0], lambda bid: bid[1])
        ...     return by_item.aggregate(lambda item, bid, seen: [*seen, bid], default=list).capture()
        >>> ps.example(build).extract()
        [(0, [('cup', [5]), ('pen', [3, 4])])]
    """

    __slots__ = ("_clock", "_output", "scope")

    def __init__(self, scope: Scope, output: Output) -> None:
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
        *,
        by_turn: bool = False,
        **given: Any,
    ) -> Stream[Any]:
        span = None if ttl is None else self._clock.span("ttl", ttl)
        if span is not None and span <= 0:
            raise ValueError(
                f"ttl is how long a key is silent before it is forgotten, more than 0, not {ttl}"
            )
        kept = claimed(state, settings_of(self.scope, operator, self._clock, **given), span)
        made = in_time_order(
            self.scope,
            self._output,
            name or operator,
            make,
            kept,
            is_given=state is not None,
            by_turn=by_turn,
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
        if self.scope.dims > 1:
            pairs = stream_of(self.scope, self._output)
            return KeyedStream(
                self.scope, pairs.map(lambda pair: (pair[0], fn(pair[1])), name=name or "map_values")._output
            )

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
            state: As in `scan`, for the one operator that is made of the windows: for each key its open
                windows. For tumbling and sliding windows that is a dict from the start of each to the state
                of its reducer, for a session ``[first, last, state]``, for a counted window ``[first, last,
                count, state]``; times are in units.

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
        if self.scope.dims > 1:
            return stream_of(self.scope, self._output).reduce(fn, name=name)  # type: ignore[no-any-return]
        made = in_time_order(self.scope, self._output, name or "reduce", lambda _: stateful.Reduced(fn))
        return stream_of(self.scope, made)  # type: ignore[no-any-return]

    @overload
    def aggregate(
        self,
        fold: Callable[[K, T, S], S],
        emit: None = None,
        *,
        default: Callable[[], S],
        name: str | None = None,
    ) -> Stream[tuple[K, S]]: ...
    @overload
    def aggregate(
        self,
        fold: Callable[[K, T, S], S],
        emit: Callable[[K, S], R],
        *,
        default: Callable[[], S],
        name: str | None = None,
    ) -> Stream[R]: ...
    def aggregate(
        self,
        fold: Callable[[K, T, S], S],
        emit: Callable[[K, S], Any] | None = None,
        *,
        default: Callable[[], S],
        name: str | None = None,
    ) -> Stream[Any]:
        """Per time, the records of each key folded into a state, and a record made of it.

        Args:
            fold: Called with a key, a record and the key's state; returns the new state.
            emit: Called with a key and its final state; returns the record to send. None: ``(key, state)``.
            default: Makes the state to begin with.
            name: The operator's name.

        Raises:
            TypeError: When the dataflow runs, if `fold` returns None in place of a state.

        Examples:
            >>> import pointstamp as ps
            >>> def build(scope):
            ...     words = scope.to_stream(["tea", "rye", "tin"]).key_by(lambda word: word[0])
            ...     return words.aggregate(lambda initial, word, text: text + word, default=str).capture()
            >>> ps.example(build).extract()
            [(0, [('r', 'rye'), ('t', 'teatin')])]
        """
        for function in (fold, default, *(() if emit is None else (emit,))):
            function_of("aggregate", function)
        if self.scope.dims > 1:
            pairs = stream_of(self.scope, self._output)
            return pairs.aggregate(fold, emit, default=default, name=name)  # type: ignore[no-any-return]
        made = in_time_order(
            self.scope,
            self._output,
            name or "aggregate",
            lambda _: stateful.Aggregated(fold, emit, default),
        )
        return stream_of(self.scope, made)  # type: ignore[no-any-return]

    @overload
    def join(
        self,
        other: KeyedStream[K, U],
        fn: None = None,
        *,
        how: Literal["inner"] = "inner",
        name: str | None = None,
    ) -> Stream[tuple[K, tuple[T, U]]]: ...
    @overload
    def join(
        self,
        other: KeyedStream[K, U],
        fn: None = None,
        *,
        how: How,
        name: str | None = None,
    ) -> Stream[tuple[K, tuple[T | None, U | None]]]: ...
    @overload
    def join(
        self,
        other: KeyedStream[K, U],
        fn: None = None,
        *,
        how: OneSided,
        name: str | None = None,
    ) -> Stream[tuple[K, T]]: ...
    @overload
    def join(
        self,
        other: KeyedStream[K, U],
        fn: Callable[[K, T, U], R],
        *,
        how: How = "inner",
        name: str | None = None,
    ) -> Stream[R]: ...
    def join(
        self,
        other: KeyedStream[K, U],
        fn: Callable[[K, T, U], Any] | None = None,
        *,
        how: How | OneSided = "inner",
        name: str | None = None,
    ) -> Stream[Any]:
        """Per time, pairs of both streams' records with one key: ``(key, (ours, theirs))``.

        Args:
            other: The other stream.
            fn: Called with the key and the two records; returns the result. None: ``(key, (ours, theirs))``.
            how: The sides whose records without a match are sent, with None in place of the other: this
                stream (``"left"``), the other (``"right"``), both (``"full"``), or none (``"inner"``).
                ``"semi"`` sends this stream's records that have a match, each once, and ``"anti"`` those
                that have none: ``(key, record)``.
            name: The operator's name.

        Raises:
            ValueError: If `how` is another text.
            TypeError: If `how` is ``"semi"`` or ``"anti"`` and `fn` is given.
            GraphError: If `other` is of another scope.

        Examples:
            >>> import pointstamp as ps
            >>> def build(scope):
            ...     def by_name(records):
            ...         return scope.to_stream(records).key_by(lambda r: r[0], lambda r: r[1])
            ...     ages, towns = by_name([("ann", 7), ("bob", 9)]), by_name([("ann", "Ulm")])
            ...     lines = ages.join(towns, lambda name, *pair: f"{name} {pair}", how="left")
            ...     return lines.capture()
            >>> ps.example(build).extract()
            [(0, ["ann (7, 'Ulm')", 'bob (9, None)'])]
        """
        check_join(how, fn)
        if fn is not None:
            function_of("join", fn)
        check_sides(self, other)
        if self.scope.dims > 1:
            ours, theirs = (stream_of(self.scope, side._output) for side in (self, other))
            return ours.join(theirs, fn, how=how, name=name)  # type: ignore[no-any-return]
        both = both_sides(self, other, name)
        made = in_time_order(self.scope, both, name or "join", lambda _: stateful.Joined(fn, how))
        return stream_of(self.scope, made)  # type: ignore[no-any-return]

    # ------------------------------------------------------------ state

    def scan(
        self,
        fold: Callable[[K, T, S], S],
        *,
        default: Callable[[], S],
        ttl: Any = None,
        state: KeyedState[K, S] | None = None,
        name: str | None = None,
    ) -> Stream[tuple[K, S]]:
        """The state of each key after each of its records, at the record's time.

        Args:
            fold: Called with a key, a record and the key's state; returns the new state.
            default: Makes the state of a key that has none.
            ttl: A key is forgotten when no record of it has come for so long, in event time: a record at
                exactly so long after the last finds it forgotten. An int or a timedelta. None: never.
            state: Where to keep it, to be listed, or restored from a snapshot.
            name: The operator's name.

        Examples:
            >>> import pointstamp as ps
            >>> def build(scope):
            ...     bids = scope.to_stream([("pen", 3), ("cup", 5), ("pen", 2)])
            ...     by_item = bids.key_by(lambda bid: bid[0], lambda bid: bid[1])
            ...     return by_item.scan(lambda item, bid, most: max(bid, most), default=int).capture()
            >>> ps.example(build).extract()
            [(0, [('cup', 5), ('pen', 3), ('pen', 3)])]
        """
        function_of("scan", fold)
        function_of("scan", default)
        return self._stateful("scan", name, lambda kept: stateful.Scan(kept, fold, default), state, ttl)

    def running(
        self,
        kind: Literal["count", "sum", "min", "max", "mean"],
        of: Callable[[T], Any] | None = None,
        *,
        ttl: Any = None,
        state: KeyedState[K, Any] | None = None,
        name: str | None = None,
    ) -> Stream[tuple[K, Any]]:
        """Accumulates each key's records, with a result after each of them; as `scan`, without a closure.

        Args:
            kind: ``"count"``, ``"sum"``, ``"min"``, ``"max"`` or ``"mean"``; of equals, the first is the
                least and the greatest.
            of: Returns the value of a record; None: the record.
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
        if kind not in _RUNNING:
            raise ValueError(f"running takes one of {', '.join(_RUNNING)}, not {kind!r}")
        if of is not None:
            function_of("running", of)
        reduction = _RUNNING[kind]
        return self._stateful(
            "running",
            name,
            lambda kept: stateful.Running(kept, reduction, of),
            state,
            ttl,
            function=kind,
        )

    def state_machine(
        self,
        fold: Callable[[K, T, S], tuple[S | None, Iterable[U]]],
        *,
        default: Callable[[], S],
        ttl: Any = None,
        state: KeyedState[K, S] | None = None,
        name: str | None = None,
    ) -> Stream[U]:
        """A state for each key, changed by each of its records, and any number of records sent with it.

        Args:
            fold: Called with a key, a record and the key's state; returns the new state, or None to forget
                the key, and the records to send at the record's time.
            default: Makes the state of a key that has none.
            ttl: As in `scan`.
            state: As in `scan`.
            name: The operator's name.

        Examples:
            The difference of each reading to the one before:

            >>> import pointstamp as ps
            >>> def build(scope):
            ...     readings = scope.to_stream([("a", 3), ("a", 5), ("b", 1), ("a", 4)])
            ...     by_sensor = readings.key_by(lambda reading: reading[0], lambda reading: reading[1])
            ...     def change(sensor, now, last):
            ...         return now, [] if last is None else [(sensor, now - last)]
            ...     return by_sensor.state_machine(change, default=lambda: None).capture()
            >>> ps.example(build).extract()
            [(0, [('a', -1), ('a', 2)])]
        """
        function_of("state_machine", fold)
        function_of("state_machine", default)
        return self._stateful(
            "state_machine", name, lambda kept: stateful.StateMachine(kept, fold, default), state, ttl
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

    def top_k_so_far(
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
            n: The number of values.
            order: The value by which they are compared; None: the records themselves.
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
            ...     return bids.key_by(lambda bid: bid[0], lambda bid: bid[1]).top_k_so_far(2).capture()
            >>> ps.example(build).extract()
            [(0, [('pen', [9, 4])])]
        """
        n = count_of("top_k_so_far takes a number of records", n)
        return self._stateful(
            "top_k_so_far", name, lambda kept: stateful.Largest(kept, n, order), state, ttl, n=n
        )

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
            on_timer: Called with the key's context when a timer is due, after all earlier records and before
                the records of its time. When the stream ends, all timers run, also those that timers
                set: a timer that sets another each time stops when `KeyContext.ended`, or is an error.
            ttl: As in `scan`, from the key's last record or the last timer that set its state. An int or a
                timedelta. Timers are not forgotten with the state.
            state: As in `scan`.
            name: The operator's name.

        Examples:
            >>> import pointstamp as ps
            >>> def build(scope):
            ...     beats = scope.to_stream([("a", 1), ("a", 3), ("b", 9)])
            ...     on_time, late = beats.event_time(lambda beat: beat[1])
            ...     def on_beat(context, beat):
            ...         context.cancel_timer((context.state or 0) + 5)
            ...         context.state = beat[1]
            ...         context.set_timer(beat[1] + 5)
            ...     def silence(context):
            ...         context.emit(f"{context.key} is silent")
            ...     return on_time.key_by(lambda beat: beat[0]).process(on_beat, silence).capture()
            >>> ps.example(build).extract()
            [(8, ['a is silent']), (14, ['b is silent'])]
        """
        function_of("process", on_record)
        if on_timer is not None:
            function_of("process", on_timer)
        return self._stateful(
            "process",
            name,
            lambda kept: Process(kept, self._clock, on_record, on_timer),
            state,
            ttl,
            by_turn=True,
        )

    # ------------------------------------------------------------ joins in time

    @overload
    def interval_join(
        self,
        other: KeyedStream[K, U],
        *,
        lower: Any,
        upper: Any,
        how: Literal["inner"] = "inner",
        state: KeyedState[K, Any] | None = None,
        name: str | None = None,
    ) -> Stream[tuple[K, tuple[T, U]]]: ...
    @overload
    def interval_join(
        self,
        other: KeyedStream[K, U],
        *,
        lower: Any,
        upper: Any,
        how: How,
        state: KeyedState[K, Any] | None = None,
        name: str | None = None,
    ) -> Stream[tuple[K, tuple[T | None, U | None]]]: ...
    @overload
    def interval_join(
        self,
        other: KeyedStream[K, U],
        *,
        lower: Any,
        upper: Any,
        how: OneSided,
        state: KeyedState[K, Any] | None = None,
        name: str | None = None,
    ) -> Stream[tuple[K, T]]: ...
    def interval_join(
        self,
        other: KeyedStream[K, Any],
        *,
        lower: Any,
        upper: Any,
        how: How | OneSided = "inner",
        state: KeyedState[K, Any] | None = None,
        name: str | None = None,
    ) -> Stream[Any]:
        """Pairs of records with one key, the other's time in ``[time + lower, time + upper]``.

        A pair is ``(key, (ours, theirs))``, and is sent at the later of its times. Records without a match
        are sent, where requested, when nothing can match them any more.

        Args:
            other: The right side.
            lower: An int or a timedelta; may be negative.
            upper: An int or a timedelta, not less than `lower`.
            how: The sides whose records without a match are sent, with None in the other's place. ``"semi"``
                sends this stream's records ``(key, ours)`` that have a match, each once, at the time of its
                first pair, and ``"anti"`` those that have none.
            state: As in `scan`: for each key the records of ours and of theirs that can still be matched,
                each a list ``[time, record, whether it was matched]``.
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
        check_how(how)
        return self._joined(
            other,
            "interval_join",
            name,
            lambda kept: Interval(kept, low, high, how),
            state,
            by_turn=True,
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
            within: The maximum distance back in time; an int or a timedelta. An older record of the other
                side is freed.
            how: ``"left"``: a record without a match has None in its place; ``"inner"``: it is left out.
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
            ttl: A row ends when there has been no new one of its key for this long, in event time: at exactly
                this time after its own it is removed, as in `scan`. An int or a timedelta. None: never.
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
        *,
        by_turn: bool = False,
        **given: Any,
    ) -> Stream[Any]:
        both = both_sides(self, other, name)
        kept = claimed(state, settings_of(self.scope, operator, self._clock, **given))
        given_one = state is not None
        made = in_time_order(
            self.scope, both, name or operator, make, kept, is_given=given_one, by_turn=by_turn
        )
        return stream_of(self.scope, made)  # type: ignore[no-any-return]
