"""Joins in time of streams of columns.

Owns the methods of `ArrowStream` that match rows of two streams by key and time. Rows are matched when their
times are final, in Rust; what can match nothing any more is freed.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal

from pointstamp import _core
from pointstamp.api.column_stream import ColumnStream
from pointstamp.errors import GraphError
from pointstamp.event_time.units import layout_of, lengths_of, unit_of, untold
from pointstamp.expr.windows import Count, Session
from pointstamp.logic.in_time_columns import Kept, in_time_order, kept_in
from pointstamp.logic.sides import left_or_inner, pairs_of
from pointstamp.plan import columns
from pointstamp.plan.node import Form, Output

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pointstamp.api.arrow_stream import ArrowStream
    from pointstamp.event_time.units import Unit
    from pointstamp.expr.windows import WindowKind
    from pointstamp.logic.state import KeyedState
    from pointstamp.plan.node import Kind

__all__ = ["JoinsInTime", "results_of_windows"]

Terms = tuple[_core.Schema, _core.Schema, list[str], tuple[str, str], tuple[bool, bool], str, str | None]


class JoinsInTime(ColumnStream):
    """Joins of rows by key and time."""

    __slots__ = ()

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
        made = (columns.INTERVAL_JOIN, name, self, other, given[2], kernel, times, joined_at, _both, 2, state)
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
        made = (columns.WINDOW_JOIN, name, self, other, given[2], kernel, times, None, _both, 2, state)
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
        made = (columns.ASOF_JOIN, name, self, other, given[2], kernel, times, times[0], _only, 1, state)
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
        made = (columns.TABLE_JOIN, name, self, table, given[2], kernel, times, times[0], _only, 1, state)
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
    names: list[Any] = [ours or left._output.time_column, theirs or right._output.time_column]
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
    return unit_of(_type_of(stream, times), lengths_of(stream._output))


def _type_of(stream: Any, column: str) -> Any:
    at = _core.time_column_of(stream._columns, column)
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
    return (left._columns, right._columns, keys, times, outer, suffix, joined_at)


def _joined(
    kind: Kind,
    name: str | None,
    left: Any,
    right: Any,
    keys: list[str],
    kernel: _core.Kernel,
    times: tuple[str, str],
    time_column: str | None,
    shown: Any,
    kinds: int,
    state: KeyedState[Any, Any] | None,
    /,
    *,
    hidden: int = 0,
    **terms: Any,
) -> ArrowStream:
    """The operator of a join, whose results tell their times in a column, or come at those of windows.

    Of what is kept, as many kinds of rows, the last `hidden` columns are not listed.
    """
    both = (left, right)
    places = [stream._columns.key(keys) for stream in both]
    at = [_core.time_column_of(side._columns, told) for side, told in zip(both, times, strict=True)]
    rows = [stream._mixed for stream in both]
    if state is not None:
        kept = Kept(kernel, places if kinds == 2 else places[1:], shown, hidden=hidden)
        kept_in(state, left.scope, kind.name, kept, on=keys, times=times, **terms)
    schema = kernel.output()
    made = (
        results_of_windows(schema, "window_end")
        if time_column is None
        else Output(Form.MIXED, schema, time_column=time_column)
    )
    sides = list(zip(rows, places, at, strict=True))
    joined: ArrowStream = left._of(in_time_order(left.scope, kind, sides, kernel, made, state, name=name))
    return joined


def results_of_windows(schema: _core.Schema, bound: str) -> Output:
    """An output for results of windows: rows at the last instants of these, which no column tells.

    `window_end` is the instant after. Windows of such rows are by their own times, so that they are those of
    the same results as records.

    Args:
        schema: Of the results.
        bound: A column that is a bound of windows.
    """
    return Output(Form.COLUMNS, schema, time_type=schema.to_pyarrow().field(bound).type)


def _both(kinds: tuple[list[Any], ...]) -> Any:
    return kinds


def _only(kinds: tuple[list[Any], ...]) -> Any:
    [[row]] = kinds
    return row
