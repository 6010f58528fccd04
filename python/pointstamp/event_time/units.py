"""The event times in a column: their unit, and which rows are late.

Owns `Unit`, and the reading of a batch of columns by the operator of `event_time`. The work on a batch is
pyarrow's.
"""

from __future__ import annotations

from datetime import datetime, timedelta
from operator import index
from typing import TYPE_CHECKING, Any

from pointstamp.errors import GraphError, TimeError
from pointstamp.event_time.clock import Clock, since_epoch
from pointstamp.event_time.unit_warnings import Lengths
from pointstamp.expr.windows import Count, Session, Sliding, Tumbling
from pointstamp.logic.selection import rows_where

if TYPE_CHECKING:
    from collections.abc import Callable

    from pointstamp.plan.node import Output

__all__ = [
    "Late",
    "Unit",
    "ends_of",
    "layout_of",
    "lengths_of",
    "null_time",
    "split_columns",
    "split_rows",
    "unit_of",
    "untold",
    "whole_times",
]

Late = list[tuple[int, Any]]
"""Late parts of a batch, and the watermark that each came behind, from the least on."""

_MICROSECOND = timedelta(microseconds=1)
_MOST = 2**62
"""Units of the greatest length: times of 64 bits reach twice as far."""


class Unit:
    """The step of a column's times: some microseconds, or parts of one; or an int of the program's."""

    __slots__ = ("_microseconds", "_parts", "lengths")

    def __init__(
        self, microseconds: int | None = None, parts: int = 1, *, lengths: Lengths | None = None
    ) -> None:
        self._microseconds = microseconds
        self._parts = parts
        if microseconds is not None:
            lengths = Lengths(10**6 * parts // microseconds or None)
        self.lengths = lengths or Lengths()

    def span(self, what: str, length: Any) -> int:
        """A length in units.

        Raises:
            TypeError: If it is none, or a timedelta among ints.
            ValueError: If it is not a whole number of units.
        """
        if not isinstance(length, timedelta):
            if isinstance(length, bool) or not hasattr(length, "__index__"):
                raise TypeError(f"{what} is an int or a timedelta, not {length!r}")
            units = _fitting(what, index(length))
            self.lengths.note(what, units)
            return units
        if self._microseconds is None:
            raise TypeError(
                f"{what} is {length!r}, and the column's times are ints: give an int, in their unit"
            )
        units, rest = divmod(length // _MICROSECOND * self._parts, self._microseconds)
        if rest:
            raise ValueError(f"{what} is {length!r}, which is no whole number of the column's units")
        return _fitting(what, units)

    def place(self, what: str, at: Any) -> int:
        """Converts a moment to units: a datetime with a zone, or a distance from 0, or from 1970.

        Raises:
            TypeError: If it is neither, or no int, and the times are ints.
            ValueError: If it is not a whole number of units.
        """
        return self.span(what, since_epoch(what, at) if isinstance(at, datetime) else at)

    def clock(self) -> Clock:
        """Returns the clock of records made of the rows: a length decides whether they are datetimes."""
        if self._microseconds is None:
            return Clock(False, lengths=self.lengths)
        return Clock(None, (self._microseconds, self._parts), "columns")


def _fitting(what: str, units: int) -> int:
    if not -_MOST <= units <= _MOST:
        raise ValueError(f"{what} is {units}, which is longer than times of 64 bits reach")
    return units


def untold(of: str = "") -> GraphError:
    """Returns the error for a stream without a known column of times."""
    return GraphError(
        f"no column of times is known{of}: take the stream from event_time, or give column=, such as "
        "column='window_end' for results of windows. Rows concatenated with late ones have none; records "
        "may be late: on_time.to_records().concat(late.to_records())"
    )


def unit_of(data_type: Any, lengths: Lengths | None = None) -> Unit:
    """The unit of a column of times.

    Args:
        data_type: The column's type.
        lengths: The lengths that were given as ints beside the stream's times, for a column of ints.
    """
    import pyarrow as pa

    if pa.types.is_timestamp(data_type):
        return {
            "s": Unit(1_000_000),
            "ms": Unit(1000),
            "us": Unit(1),
            "ns": Unit(1, 1000),
        }[data_type.unit]
    if pa.types.is_date32(data_type):
        return Unit(86_400_000_000)
    return Unit(1000) if pa.types.is_date64(data_type) else Unit(lengths=lengths)


def lengths_of(output: Output) -> Lengths | None:
    """Returns the lengths given as ints beside an output's times; None for times without a unit."""
    return output.clocks[0].lengths if output.clocks else None


def layout_of(window: Any, unit: Unit) -> tuple[int, int, int]:
    """Returns a window's length, the distance of windows, and the start of one, in units.

    Raises:
        TypeError: If it is no window of one length.
    """
    if not isinstance(window, Tumbling | Sliding):
        raise TypeError(f"a window is Tumbling, Sliding, Session or Count, not {window!r}")
    length = unit.span("the length of a window", window.length)
    every = unit.span("every", window.every) if isinstance(window, Sliding) else length
    return length, every, unit.place("offset", window.offset)


def ends_of(window: Session | Count, unit: Unit) -> tuple[int | None, int]:
    """When a window that follows the rows of a key ends: after so many units of silence, or so many rows."""
    return (unit.span("gap", window.gap), 0) if isinstance(window, Session) else (None, window.size)


def null_time(column: str = "") -> TimeError:
    """The error for a row without an event time."""
    name = column or "t"
    return TimeError(
        f"a row has no event time, but null{f' in column {column!r}' if column else ''}: leave such rows out "
        f"before .event_time({name!r}, ...), with .filter(pc.field({name!r}).is_valid()); where `read` has "
        f"event_time=, write rows = scope.read(source), and on_time, late = "
        f"rows.filter(pc.field({name!r}).is_valid()).event_time({name!r}, ...)"
    )


def whole_times(times: Any, column: str = "") -> Any:
    """A column of times as integers of 64 bits.

    Raises:
        TimeError: For a null, or a time that is too great.
    """
    import pyarrow as pa
    import pyarrow.compute as pc

    if times.null_count:
        raise null_time(column)
    if pa.types.is_date32(times.type):
        times = times.cast(pa.int32())
    try:
        return times.cast(pa.int64())
    except pa.ArrowInvalid:
        raise TimeError(
            f"an event time is {pc.max(times)}, where there are no timestamps: they end at 2**63 - 1"
        ) from None


def split_columns(
    at: int, limit: Callable[[], int] | None = None, lengths: Lengths | None = None
) -> Callable[..., Any]:
    """Returns the function that reads a batch whose times are in a column, for `event_time`.

    Rows after the limit, if there is one, are late, and move nothing.
    """

    def split(batch: Any, latest: int, floor: int, lateness: int) -> tuple[Any, Late, int]:
        import pyarrow.compute as pc

        times = whole_times(batch.column(at), batch.schema.names[at])
        ends = pc.min_max(times).as_py()
        low, high = ends["min"], ends["max"]
        if low is None:
            return None, [], latest
        if low < 0:
            raise TimeError(f"the event time {low} is below 0, where there are no timestamps")
        if lengths is not None and not lengths.is_known:
            lengths.saw(high)
        if limit is not None and high > (most := limit()):
            ahead = pc.greater(times, most)
            return split_rows(batch, times, latest, floor, lateness, ahead)
        return split_rows(batch, times, latest, floor, lateness)

    return split


def split_rows(
    batch: Any, times: Any, latest: int, floor: int, lateness: int, ahead: Any = None
) -> tuple[Any, Late, int]:
    """Splits a batch: rows on time (None: no rows), late ones, and the latest time with these.

    Args:
        batch: Of rows.
        times: Theirs, as integers of 64 bits.
        latest: The latest time before.
        floor: Rows before it are late, too.
        lateness: The maximum distance of a row behind the latest one.
        ahead: Which rows go with the late ones, and move nothing; None: no row.
    """
    import pyarrow as pa
    import pyarrow.compute as pc

    if ahead is None:
        ends = pc.min_max(times).as_py()
        low, high = ends["min"], ends["max"]
        if low is None:
            return None, [], latest
        if low >= max(latest, high) - lateness and low >= floor:
            return batch, [], max(latest, high)
        believed = times
    else:
        believed = pc.if_else(ahead, pa.scalar(latest), times)
    # A late row never raises the maximum, so that the maximum over all rows is the maximum over those on
    # time.
    most = pc.max_element_wise(pc.cumulative_max(believed), pa.scalar(latest))
    least = pc.max_element_wise(pc.subtract(most, lateness), pa.scalar(floor))
    on_time = pc.greater_equal(times, least)
    if ahead is not None:
        on_time = pc.and_not(on_time, ahead)
    is_late = pc.invert(on_time)
    kept, late = (rows_where(batch, mask) for mask in (on_time, is_late))
    return kept if kept.num_rows else None, _at_watermarks(late, least.filter(is_late)), most[-1].as_py()


def _at_watermarks(late: Any, watermarks: Any) -> Late:
    """Late rows, by the watermark that they came behind, which does not go down from row to row."""
    import pyarrow.compute as pc

    parts, start = [], 0
    for watermark, rows in zip(*pc.value_counts(watermarks).flatten(), strict=True):
        parts.append((max(watermark.as_py(), 0), late.slice(start, rows.as_py())))
        start += rows.as_py()
    return parts
