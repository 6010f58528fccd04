"""Joins in time of streams of columns.

Owns the methods of `ArrowStream` that match rows of two streams by key and time. Rows are matched when their
times are final, in Rust; what can match nothing any more is freed.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal

from pointstamp import _core
from pointstamp._errors import GraphError
from pointstamp._naming import named
from pointstamp.event_times.columns import layout_of, unit_of, untold
from pointstamp.event_times.windows import Count, Session
from pointstamp.keyed.sides import left_or_inner, pairs_of
from pointstamp.operators.in_time_columns import Kept, in_time_order, kept_in

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pointstamp.event_times.columns import Unit
    from pointstamp.event_times.windows import WindowKind
    from pointstamp.keyed.state import KeyedState
    from pointstamp.scope import Scope
    from pointstamp.streams.arrow import ArrowStream

__all__ = ["JoinsInTime"]

Terms = tuple[_core.Schema, _core.Schema, list[str], tuple[str, str], tuple[bool, bool], str, str | None]


@named
class JoinsInTime:
    """Joins of rows by key and time."""

    __slots__ = ()

    scope: Scope

    def interval_join(
        self,
        other: ArrowStream,
        on: str | Sequence[str],
        *,
        lower: Any,
        upper: Any,
        how: Literal["inner", "left", "right", "outer"] = "inner",
        suffix: str = "_right",
        joined_at: str = "joined_at",
        column: str | tuple[str, str] | None = None,
        state: KeyedState[Any, Any] | None = None,
        name: str | None = None,
    ) -> ArrowStream:
        """Pairs of rows with one key, the other's time in ``[time + lower, time + upper]``.

        The columns are ours, the other's but for its key, and one that tells when both were there, the later
        of their times: this is the time of the pair, an int64 where the times are integers. What matches
        nothing is sent, where asked for, when nothing can match it any more, with nulls in the other's
        columns. A null in a key matches nothing.

        Args:
            other: The right side; its column of times has the type of ours, or both are of integers.
            on: The key's column, or columns, on both sides.
            lower: An int in the unit of the times, or for timestamps a timedelta; may be negative.
            upper: Not less than `lower`.
            how: Whose rows without a match come all the same.
            suffix: Added to names of the right side that the left side has, too.
            joined_at: The name of the column with the time of the pair.
            column: The times of both, or of each; left out: the columns of `event_time`.
            state: Where to keep what can still be matched, to be listed, or restored from a snapshot: of
                each key
                the rows of the left and of the right as a pair of lists of dicts, in which ``matched`` says
                whether a row has been.
            name: The operator's name.

        Raises:
            GraphError: If there is no such column, or the columns of times or keys differ in type.
        """
        times = _times(self, other, column)
        unit = _unit_of(self, times[0])
        low, high = unit.span("lower", lower), unit.span("upper", upper)
        if low > high:
            raise ValueError(f"no time is between {lower} and {upper} after another: lower is at most upper")
        given = _terms(self, other, on, times, pairs_of(how), suffix, joined_at)
        kernel = _core.Kernel.interval_join(given, low, high)
        made = ("interval_join", self, other, given[2], kernel, times, joined_at, _both, 2, state)
        return _joined(*made, lower=low, upper=high)

    def window_join(
        self,
        other: ArrowStream,
        on: str | Sequence[str],
        window: WindowKind,
        *,
        how: Literal["inner", "left", "right", "outer"] = "inner",
        suffix: str = "_right",
        column: str | tuple[str, str] | None = None,
        state: KeyedState[Any, Any] | None = None,
        name: str | None = None,
    ) -> ArrowStream:
        """Every pair of both streams' rows with one key in one window, when the window is final.

        The columns are ours, the other's but for its key, and ``window_start`` and ``window_end``
        (exclusive), as those of `window`; results are at the window's last instant. Sessions are those of
        both streams' rows together. A null in a key matches nothing, and is a session of its own.

        Args:
            other: The right side; its column of times has the type of ours, or both are of integers.
            on: The key's column, or columns, on both sides.
            window: `Tumbling`, `Sliding` or `Session`; lengths are ints in the unit of the times, or for
                timestamps timedeltas.
            how: Whose rows without any on the other side of their window come all the same, with nulls in
                the other's columns.
            suffix: As in `interval_join`.
            column: As in `interval_join`.
            state: Where to keep the rows of open windows, to be listed, or restored from a snapshot: of each
                key those of the left and of the right as a pair of lists of dicts.
            name: The operator's name.

        Raises:
            GraphError: As in `interval_join`.

        Examples:
            >>> import pyarrow as pa
            >>> import pointstamp as ps
            >>> def build(scope):
            ...     def rows(name, records):
            ...         schema = pa.schema([("at", pa.int64()), ("user", pa.string()), (name, pa.string())])
            ...         return scope.to_stream(records).to_arrow(schema).event_time("at", lateness=99)[0]
            ...     clicks = rows("page", [(3, "ann", "home"), (12, "ann", "shop")])
            ...     views = rows("ad", [(7, "ann", "shoes"), (31, "bob", "hats")])
            ...     both = clicks.window_join(views, "user", ps.Tumbling(10))
            ...     return both.select("page", "ad", "window_start").to_records().capture()
            >>> ps.example(build).extract()
            [(9, [{'page': 'home', 'ad': 'shoes', 'window_start': 0}])]
        """
        times = _times(self, other, column)
        unit = _unit_of(self, times[0])
        if isinstance(window, Count):
            raise ValueError(
                "a window join of columns is over tumbling or sliding windows or sessions, not "
                f"{window}: join to_records() in such windows"
            )
        silence = unit.span("gap", window.gap) if isinstance(window, Session) else 0
        layout = None if isinstance(window, Session) else layout_of(window, unit)
        given = _terms(self, other, on, times, pairs_of(how), suffix, None)
        kernel = _core.Kernel.window_join(given, layout, silence)
        made = ("window_join", self, other, given[2], kernel, times, None, _both, 2, state)
        return _joined(*made, hidden=2, window=layout or silence, kind=type(window).__name__)

    def asof_join(
        self,
        other: ArrowStream,
        on: str | Sequence[str],
        *,
        within: Any = None,
        how: Literal["left", "inner"] = "left",
        suffix: str = "_right",
        column: str | tuple[str, str] | None = None,
        state: KeyedState[Any, Any] | None = None,
        name: str | None = None,
    ) -> ArrowStream:
        """Each row with the latest of the other stream at or before its time, by key.

        The columns are ours and the other's but for its key, null where there is no such row; the time of a
        result is that of our row.

        Args:
            other: The right side; of each key its latest row is kept.
            on: The key's column, or columns, on both sides.
            within: How long before at most; an int or a timedelta. An older row of the other side
                is freed.
            how: ``"inner"`` leaves out rows without one.
            suffix: As in `interval_join`.
            column: As in `interval_join`.
            state: As in `interval_join`: of each key the latest row of the other stream, as a dict.
            name: The operator's name.

        Raises:
            GraphError: As in `interval_join`.

        Examples:
            >>> import pyarrow as pa
            >>> import pointstamp as ps
            >>> def build(scope):
            ...     def rows(at, name, records):
            ...         schema = pa.schema([(at, pa.int64()), ("stock", pa.string()), (name, pa.int64())])
            ...         return scope.to_stream(records).to_arrow(schema).event_time(at, lateness=9)[0]
            ...     trades = rows("at", "amount", [(3, "A", 10), (7, "A", 20)])
            ...     quotes = rows("quoted", "price", [(2, "A", 5), (6, "A", 8)])
            ...     priced = trades.asof_join(quotes, "stock").select("at", "amount", "price")
            ...     return priced.to_records().capture()
            >>> [row for _, rows in ps.example(build).extract() for row in rows]
            [{'at': 3, 'amount': 10, 'price': 5}, {'at': 7, 'amount': 20, 'price': 8}]
        """
        times = _times(self, other, column)
        span = None if within is None else _unit_of(self, times[0]).span("within", within)
        if span is not None and span < 0:
            raise ValueError(f"within is how long before a row the other may be, at least 0, not {within}")
        outer = (left_or_inner("asof_join", how), False)
        given = _terms(self, other, on, times, outer, suffix, None)
        kernel = _core.Kernel.asof_join(given, span, None)
        made = ("asof_join", self, other, given[2], kernel, times, times[0], _only, 1, state)
        return _joined(*made, hidden=1, within=span)

    def table_join(
        self,
        table: ArrowStream,
        on: str | Sequence[str],
        *,
        ends: str | None = None,
        ttl: Any = None,
        how: Literal["inner", "left"] = "inner",
        suffix: str = "_right",
        column: str | tuple[str, str] | None = None,
        state: KeyedState[Any, Any] | None = None,
        name: str | None = None,
    ) -> ArrowStream:
        """Each row with its key's row of a table, as of the row's time.

        Args:
            table: The table's changes: a row is the new row of its key from its time on.
            on: The key's column, or columns, on both sides.
            ends: A column of booleans of the table: where it is true, the row ends its key's row, and is
                none.
            ttl: A row of the table ends when there has been no new one of its key for so long, in event time:
                at exactly so long after its time it is gone, as in `scan`. None: never.
            how: ``"inner"``: a row without one of the table is left out; ``"left"``: it has nulls in its
                place.
            suffix: As in `interval_join`.
            column: As in `interval_join`.
            state: As in `interval_join`: of each key the row of the table, as a dict.
            name: The operator's name.

        Raises:
            GraphError: As in `interval_join`.
        """
        times = _times(self, table, column)
        span = None if ttl is None else _unit_of(self, times[0]).span("ttl", ttl)
        if span is not None and span <= 0:
            raise ValueError(f"ttl is how long a row of the table lasts, more than 0, not {ttl}")
        outer = (left_or_inner("table_join", how), False)
        given = _terms(self, table, on, times, outer, suffix, None)
        within = None if span is None else span - 1  # times are whole units
        kernel = _core.Kernel.asof_join(given, within, ends)
        made = ("table_join", self, table, given[2], kernel, times, times[0], _only, 1, state)
        return _joined(*made, hidden=1, ttl=span, ends=ends)


def _times(left: Any, right: Any, column: Any) -> tuple[str, str]:
    """The columns of times of both sides.

    Raises:
        TypeError: If the other side is no stream of columns.
        GraphError: If a column is not known, or they are of different types, not all integers, or scopes.
    """
    if not isinstance(right, JoinsInTime):
        raise TypeError(f"an ArrowStream joins another ArrowStream, not {right!r}")
    if left.scope is not right.scope:
        raise GraphError("a join needs both streams in one scope: enter() or leave() it first")
    if isinstance(column, str) or column is None:
        ours, theirs = column, column
    elif isinstance(column, tuple | list) and len(column) == 2:
        ours, theirs = column
    else:
        raise TypeError(f"column is the name of the times of both sides, or a pair of names, not {column!r}")
    names: list[Any] = [
        ours or getattr(left, "time_column", None),
        theirs or getattr(right, "time_column", None),
    ]
    if None in names:
        side = ("left", "right")[names.index(None)]
        raise untold(f" of the {side} side")
    types = [_type_of(side, name) for side, name in zip((left, right), names, strict=True)]
    import pyarrow as pa

    if types[0] != types[1] and not all(pa.types.is_integer(each) for each in types):
        raise GraphError(
            f"the times of both sides need one type, and '{names[0]}' is {types[0]} and '{names[1]}' is "
            f"{types[1]}: cast one of them before event_time"
        )
    return names[0], names[1]


def _unit_of(stream: Any, times: str) -> Unit:
    """The unit of a stream's column of times."""
    return unit_of(_type_of(stream, times), stream.scope.lengths_of(stream.core))


def _type_of(stream: Any, column: str) -> Any:
    at = _core.time_column_of(stream.core_schema, column)
    return stream.schema.field(at).type


def _terms(
    left: Any,
    right: Any,
    on: str | Sequence[str],
    times: tuple[str, str],
    outer: tuple[bool, bool],
    suffix: str,
    joined_at: str | None,
) -> Terms:
    keys = [on] if isinstance(on, str) else list(on)
    return (left.core_schema, right.core_schema, keys, times, outer, suffix, joined_at)


def _joined(
    name: str,
    left: Any,
    right: Any,
    keys: list[str],
    kernel: _core.Kernel,
    times: tuple[str, str],
    time_column: str | None,
    shown: Any,
    kinds: int,
    state: KeyedState[Any, Any] | None,
    *,
    hidden: int = 0,
    **terms: Any,
) -> ArrowStream:
    """The operator of a join, whose results tell their times in a column, or come at those of windows.

    Of what is kept, as many kinds of rows, the last `hidden` columns are not listed.
    """
    both = (left, right)
    places = [stream.core_schema.key(keys) for stream in both]
    at = [_core.time_column_of(side.core_schema, told) for side, told in zip(both, times, strict=True)]
    rows = [getattr(stream, "batched", None) or stream.core for stream in both]
    scope: Any = left.scope
    if state is not None:
        kept = Kept(kernel, places if kinds == 2 else places[1:], shown, hidden=hidden)
        kept_in(state, scope, name, kept, on=keys, times=times, **terms)
    made, schema = in_time_order(scope, list(zip(rows, places, at, strict=True)), kernel, name, state)
    if time_column is None:
        told = schema.to_pyarrow().field("window_end").type
        windows: ArrowStream = scope.window_results_of(made, schema, told)
        return windows
    joined: ArrowStream = scope.event_columns_of(made, schema, time_column)
    return joined


def _both(kinds: tuple[list[Any], ...]) -> Any:
    return kinds


def _only(kinds: tuple[list[Any], ...]) -> Any:
    [[row]] = kinds
    return row
