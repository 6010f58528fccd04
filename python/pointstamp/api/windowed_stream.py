"""Streams cut into windows, and the results of a window.

Owns `WindowedStream`. Its methods each make one operator, whose results are sent when a window is final:
``(key, Window, result)``, or ``(Window, result)`` of a stream without keys.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Generic, Literal, NoReturn, TypeVar, overload

from pointstamp._validation import count_of, function_of, unknown_attribute
from pointstamp.api.classes import stream_of
from pointstamp.event_time.clock import clock_of
from pointstamp.expr import reducers
from pointstamp.expr.windows import Count
from pointstamp.logic.assigning import assigner, in_units
from pointstamp.logic.in_time_order import in_time_order
from pointstamp.logic.join_inputs import both_sides
from pointstamp.logic.join_kinds import check_join, one_sided, outer_sides
from pointstamp.logic.state import claimed
from pointstamp.logic.state_settings import settings_of

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from pointstamp.api.scope import Scope
    from pointstamp.api.stream import Stream
    from pointstamp.expr.reducers import Reducer
    from pointstamp.expr.windows import Window, WindowKind
    from pointstamp.logic.join_kinds import How, OneSided
    from pointstamp.logic.state import KeyedState
    from pointstamp.plan.node import Output

__all__ = ["WindowedStream"]

K = TypeVar("K")
T = TypeVar("T")
U = TypeVar("U")
R = TypeVar("R")


class WindowedStream(Generic[K, T]):
    """The records of each key in windows of event time: the result of `KeyedStream.window`.

    Results come when the window is final, at its last instant; with `early`, results so far come before, too.

    Examples:
        >>> import pointstamp as ps
        >>> def build(scope):
        ...     numbers, _ = scope.to_stream([1, 4, 12]).event_time(lambda n: n)
        ...     return numbers.key_by(lambda n: "all").window(ps.Tumbling(10)).sum().capture()
        >>> for time, results in ps.example(build).extract():
        ...     print(time, results)
        9 [('all', Window(start=0, end=10), 5)]
        19 [('all', Window(start=10, end=20), 12)]
    """

    __slots__ = ("_by_key", "_clock", "_early", "_output", "_state", "_window", "scope")

    def __init__(
        self,
        scope: Scope,
        output: Output,
        window: WindowKind,
        *,
        early: Any = None,
        state: KeyedState[K, Any] | None = None,
        by_key: bool = True,
    ) -> None:
        self.scope = scope
        self._output = output
        self._clock = clock_of(output)
        self._window = window
        self._early = early
        self._state = state
        self._by_key = by_key
        assigner(window, reducers.Counting(), self._clock, early)  # an invalid window is an error here

    if not TYPE_CHECKING:

        def __getattr__(self, name: str) -> NoReturn:
            unknown_attribute(self, "a stream of windows", name)

    def _reduced(
        self,
        what: str,
        name: str | None,
        reducer: Reducer,
        emit: Callable[[Any, Any], Any] | None = None,
        **given: Any,
    ) -> Stream[Any]:
        """Adds one operator.

        Args:
            what: The reducer.
            name: The operator's name in the program.
            reducer: Makes one of the records of a window.
            emit: Makes the result of a key and the reducer's result.
            given: The reducer's arguments that its states follow from.
        """
        operator = f"window: {what}"
        terms = settings_of(
            self.scope,
            operator if self._by_key else f"{operator} over all",
            self._clock,
            window=in_units(self._window, self._clock),
            early=None if self._early is None else self._clock.span("early", self._early),
            **given,
        )
        kept = claimed(self._state, terms)

        def make(kept: Any) -> Any:
            return assigner(self._window, reducer, self._clock, self._early, kept)

        made = in_time_order(
            self.scope,
            self._output,
            name or operator,
            make,
            kept,
            is_given=self._state is not None,
            by_turn=True,
            sends_at_end=isinstance(self._window, Count),
        )
        results: Stream[Any] = stream_of(self.scope, made)
        if emit is not None:
            results = results.map(lambda r: (r[0], r[1], emit(r[0], r[2])), name=name and f"{name}: emit")
        return results if self._by_key else results.map(_without_key, name=name and f"{name}: map")

    @overload
    def aggregate(
        self,
        fold: Callable[[K, T, U], U],
        emit: None = None,
        *,
        default: Callable[[], U],
        name: str | None = None,
    ) -> Stream[tuple[K, Window, U]]: ...
    @overload
    def aggregate(
        self,
        fold: Callable[[K, T, U], U],
        emit: Callable[[K, U], R],
        *,
        default: Callable[[], U],
        name: str | None = None,
    ) -> Stream[tuple[K, Window, R]]: ...
    def aggregate(
        self,
        fold: Callable[[K, T, U], U],
        emit: Callable[[K, U], Any] | None = None,
        *,
        default: Callable[[], U],
        name: str | None = None,
    ) -> Stream[tuple[K, Window, Any]]:
        """The values of each window folded into a state, in the order of time, and a result made of it.

        Args:
            fold: Called with a key, a record and the state; returns the new state. Of windows over all
                records the key is None.
            emit: Called with a key and its final state; returns the result of the window. None: the state.
            default: Makes the state to begin with.
            name: The operator's name.

        Raises:
            TypeError: When the dataflow runs, if `fold` returns None in place of a state.

        Examples:
            >>> import pointstamp as ps
            >>> def build(scope):
            ...     words = scope.to_stream([("b", 3), ("a", 1), ("c", 12)])
            ...     on_time, late = words.event_time(lambda word: word[1], lateness=5)
            ...     windows = on_time.window(ps.Tumbling(10))
            ...     return windows.aggregate(lambda _, word, text: text + word[0], default=str).capture()
            >>> ps.example(build).extract()
            [(9, [(Window(start=0, end=10), 'ab')]), (19, [(Window(start=10, end=20), 'c')])]
        """
        for function in (fold, default, *(() if emit is None else (emit,))):
            function_of("aggregate", function)
        return self._reduced("aggregate", name, reducers.Aggregate(fold, default), emit=emit)

    def reduce(self, fn: Callable[[T, T], T], *, name: str | None = None) -> Stream[tuple[K, Window, T]]:
        """The records of each window made one, two at a time, in the order of time.

        The function must not change its argument: in overlapping windows it is the same record.

        Examples:
            >>> import pointstamp as ps
            >>> def build(scope):
            ...     numbers, _ = scope.to_stream([4, 1, 12]).event_time(lambda n: n, lateness=5)
            ...     return numbers.window(ps.Tumbling(10)).reduce(lambda a, b: 10 * a + b).capture()
            >>> ps.example(build).extract()
            [(9, [(Window(start=0, end=10), 14)]), (19, [(Window(start=10, end=20), 12)])]
        """
        return self._reduced("reduce", name, reducers.Reduce(function_of("reduce", fn)))

    def count(self, *, name: str | None = None) -> Stream[tuple[K, Window, int]]:
        """Counts the records of each window.

        Examples:
            >>> import pointstamp as ps
            >>> def build(scope):
            ...     numbers, _ = scope.to_stream([1, 4, 12]).event_time(lambda n: n)
            ...     return numbers.window(ps.Tumbling(10)).count().capture()
            >>> ps.example(build).extract()
            [(9, [(Window(start=0, end=10), 2)]), (19, [(Window(start=10, end=20), 1)])]
        """
        return self._reduced("count", name, reducers.Counting())

    def sum(
        self, of: Callable[[T], Any] | None = None, *, name: str | None = None
    ) -> Stream[tuple[K, Window, Any]]:
        """Adds up the records of each window, or the results of a function of them.

        Examples:
            >>> import pointstamp as ps
            >>> def build(scope):
            ...     numbers, _ = scope.to_stream([1, 4, 12]).event_time(lambda n: n)
            ...     return numbers.window(ps.Tumbling(10)).sum().capture()
            >>> ps.example(build).extract()
            [(9, [(Window(start=0, end=10), 5)]), (19, [(Window(start=10, end=20), 12)])]
        """
        return self._reduced("sum", name, reducers.Sum(of))

    @overload
    def min(self, of: None = None, *, name: str | None = None) -> Stream[tuple[K, Window, T]]: ...
    @overload
    def min(self, of: Callable[[T], U], *, name: str | None = None) -> Stream[tuple[K, Window, U]]: ...
    def min(
        self, of: Callable[[T], Any] | None = None, *, name: str | None = None
    ) -> Stream[tuple[K, Window, Any]]:
        """The least of each window.

        Examples:
            >>> import pointstamp as ps
            >>> def build(scope):
            ...     words = scope.to_stream([("b", 1), ("a", 4), ("c", 12)])
            ...     on_time, late = words.event_time(lambda word: word[1])
            ...     return on_time.window(ps.Tumbling(10)).min(lambda word: word[0]).capture()
            >>> ps.example(build).extract()
            [(9, [(Window(start=0, end=10), 'a')]), (19, [(Window(start=10, end=20), 'c')])]
        """
        return self._reduced("min", name, reducers.Extreme(of, greatest=False))

    @overload
    def max(self, of: None = None, *, name: str | None = None) -> Stream[tuple[K, Window, T]]: ...
    @overload
    def max(self, of: Callable[[T], U], *, name: str | None = None) -> Stream[tuple[K, Window, U]]: ...
    def max(
        self, of: Callable[[T], Any] | None = None, *, name: str | None = None
    ) -> Stream[tuple[K, Window, Any]]:
        """The greatest of each window.

        Examples:
            >>> import pointstamp as ps
            >>> def build(scope):
            ...     words = scope.to_stream([("b", 1), ("a", 4), ("c", 12)])
            ...     on_time, late = words.event_time(lambda word: word[1])
            ...     return on_time.window(ps.Tumbling(10)).max(lambda word: word[0]).capture()
            >>> ps.example(build).extract()
            [(9, [(Window(start=0, end=10), 'b')]), (19, [(Window(start=10, end=20), 'c')])]
        """
        return self._reduced("max", name, reducers.Extreme(of, greatest=True))

    def mean(
        self, of: Callable[[T], Any] | None = None, *, name: str | None = None
    ) -> Stream[tuple[K, Window, Any]]:
        """The mean of each window.

        Examples:
            >>> import pointstamp as ps
            >>> def build(scope):
            ...     numbers, _ = scope.to_stream([1, 4, 12]).event_time(lambda n: n)
            ...     return numbers.window(ps.Tumbling(10)).mean().capture()
            >>> ps.example(build).extract()
            [(9, [(Window(start=0, end=10), 2.5)]), (19, [(Window(start=10, end=20), 12.0)])]
        """
        return self._reduced("mean", name, reducers.Mean(of))

    def top_k(
        self, n: int, order: Callable[[T], Any] | None = None, *, name: str | None = None
    ) -> Stream[tuple[K, Window, list[T]]]:
        """The `n` greatest records of each window, greatest first, by the result of a function.

        Raises:
            TypeError: If `n` is no int.
            ValueError: If it is less than 1.

        Examples:
            >>> import pointstamp as ps
            >>> def build(scope):
            ...     numbers, _ = scope.to_stream([1, 4, 7, 12]).event_time(lambda n: n)
            ...     return numbers.window(ps.Tumbling(10)).top_k(2).capture()
            >>> ps.example(build).extract()
            [(9, [(Window(start=0, end=10), [7, 4])]), (19, [(Window(start=10, end=20), [12])])]
        """
        n = count_of("top_k takes a number of records", n)
        return self._reduced("top_k", name, reducers.TopK(n, order), n=n)

    def collect(
        self, of: Callable[[T], U] | None = None, *, name: str | None = None
    ) -> Stream[tuple[K, Window, list[U]]]:
        """The records of each window as a list, in the order of time.

        Examples:
            >>> import pointstamp as ps
            >>> def build(scope):
            ...     numbers, _ = scope.to_stream([4, 1, 12]).event_time(lambda n: n, lateness=5)
            ...     return numbers.window(ps.Tumbling(10)).collect().capture()
            >>> ps.example(build).extract()
            [(9, [(Window(start=0, end=10), [1, 4])]), (19, [(Window(start=10, end=20), [12])])]
        """
        return self._reduced("collect", name, reducers.Collect(of))

    def distinct_count(
        self, of: Callable[[T], Any] | None = None, *, name: str | None = None
    ) -> Stream[tuple[K, Window, int]]:
        """Counts the different records of each window; they are kept until it closes.

        Examples:
            >>> import pointstamp as ps
            >>> def build(scope):
            ...     words = scope.to_stream([("a", 1), ("a", 4), ("b", 5)])
            ...     on_time, late = words.event_time(lambda word: word[1])
            ...     return on_time.window(ps.Tumbling(10)).distinct_count(lambda word: word[0]).capture()
            >>> ps.example(build).extract()
            [(9, [(Window(start=0, end=10), 2)])]
        """
        return self._reduced("distinct_count", name, reducers.Distinct(of))

    def quantiles(
        self, shares: Sequence[float], of: Callable[[T], float] | None = None, *, name: str | None = None
    ) -> Stream[tuple[K, Window, list[float]]]:
        """The least number of each window that these shares of its numbers do not exceed: 0.5 is the median.

        They are by nearest rank, so that 0.99 of four numbers is the greatest. They come from a sketch, which
        takes bounded memory: each is within one percent of the number of that rank.

        Raises:
            ValueError: For a share that is not from 0 to 1; when the dataflow runs, for a number that is
                not finite.

        Examples:
            >>> import pointstamp as ps
            >>> def build(scope):
            ...     times, _ = scope.to_stream(range(1, 10)).event_time(lambda n: n)
            ...     return times.window(ps.Tumbling(10)).quantiles([0.5, 0.99]).capture()
            >>> [(time, [(window, shares)])] = ps.example(build).extract()
            >>> [round(share) for share in shares]
            [5, 9]
        """
        for share in shares:
            if not 0 <= share <= 1:
                raise ValueError(f"{share} is not a quantile: it is a share, from 0 to 1")
        return self._reduced("quantiles", name, reducers.Quantiles(shares, of))

    @overload
    def join(
        self,
        other: WindowedStream[K, U],
        fn: None = None,
        *,
        how: Literal["inner"] = "inner",
        name: str | None = None,
    ) -> Stream[tuple[K, Window, tuple[T, U]]]: ...
    @overload
    def join(
        self,
        other: WindowedStream[K, U],
        fn: None = None,
        *,
        how: How,
        name: str | None = None,
    ) -> Stream[tuple[K, Window, tuple[T | None, U | None]]]: ...
    @overload
    def join(
        self,
        other: WindowedStream[K, U],
        fn: None = None,
        *,
        how: OneSided,
        name: str | None = None,
    ) -> Stream[tuple[K, Window, T]]: ...
    @overload
    def join(
        self,
        other: WindowedStream[K, U],
        fn: Callable[[K, T, U], R],
        *,
        how: How = "inner",
        name: str | None = None,
    ) -> Stream[tuple[K, Window, R]]: ...
    def join(
        self,
        other: WindowedStream[K, Any],
        fn: Callable[[K, Any, Any], Any] | None = None,
        *,
        how: How | OneSided = "inner",
        name: str | None = None,
    ) -> Stream[tuple[K, Window, Any]]:
        """Every pair of both streams' records with one key and window: ``(key, Window, (ours, theirs))``.

        Sessions combine both streams' records.

        Args:
            other: Cut into the same windows.
            fn: Called with the key and the two records; returns the value that replaces ``(ours, theirs)``.
                For windows over all records the key is None.
            how: The sides whose records without a match are sent, with None in place of the other record:
                this stream (``"left"``), the other (``"right"``), both (``"full"``), or none (``"inner"``).
                ``"semi"`` sends this stream's records that have a match, each once, and ``"anti"`` those
                that have none: ``(key, Window, record)``.
            name: The operator's name.

        Raises:
            ValueError: If the windows differ, `how` is another text, a side has early results, or the right
                one a state: there is one for both, of the left side.
            TypeError: If `how` is ``"semi"`` or ``"anti"`` and `fn` is given.

        Examples:
            >>> import pointstamp as ps
            >>> def build(scope):
            ...     def windows(records):
            ...         on_time, _ = scope.to_stream(records).event_time(lambda record: record[1])
            ...         by_name = on_time.key_by(lambda record: record[0], lambda record: record[1])
            ...         return by_name.window(ps.Tumbling(10))
            ...     return windows([("ann", 1), ("bob", 2)]).join(windows([("ann", 5)])).capture()
            >>> ps.example(build).extract()
            [(9, [('ann', Window(start=0, end=10), (1, 5))])]
        """
        check_join(how, fn)
        if fn is not None:
            function_of("join", fn)
        sides = both_sides(self, other, name)
        if self._window != other._window:
            raise ValueError(f"a window join needs the same windows, not {self._window} and {other._window}")
        if self._early is not None or other._early is not None:
            raise ValueError("a window join sends its pairs when a window is final: leave early= out")
        if other._state is not None:
            raise ValueError("what a window join keeps is in the state of its left side: give state= there")
        both = WindowedStream[K, Any](self.scope, sides, self._window, state=self._state)

        def matched(result: tuple[K, Window, list[tuple[int, Any]]]) -> list[Any]:
            key, window, values = result
            ours, theirs = ([value for of, value in values if of == side] for side in (0, 1))
            if one_sided(how):
                return [(key, window, value) for value in ours if bool(theirs) == (how == "semi")]
            left, right = outer_sides(how)
            pairs = [(a, b) for a in ours or [None] * right for b in theirs or [None] * left]
            return [(key, window, pair if fn is None else fn(key, *pair)) for pair in pairs]

        together = both._reduced("join", name, reducers.Collect(None))
        joined = together.flat_map(matched, name=name and f"{name}: flat_map")
        if self._by_key:
            return joined
        bare: Stream[Any] = joined.map(_without_key, name=name and f"{name}: map")
        return bare


def _without_key(result: tuple[Any, Any, Any]) -> tuple[Any, Any]:
    return result[1], result[2]
