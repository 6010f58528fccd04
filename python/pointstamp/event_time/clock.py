"""The unit of event times: ints of the program's own, or datetimes, which are microseconds since 1970 in UTC.

Owns `Clock`: every stream of event times has one, and all streams made from it share it; where several
streams come together, their clocks are joined. The kind, ints or datetimes, is known from a length that was
given, or from the first record, and then fixed. Times in a column are in the column's unit.
"""

from __future__ import annotations

from datetime import date, datetime, timedelta, timezone
from operator import index
from time import time as seconds_now
from typing import TYPE_CHECKING, Any, Literal

from pointstamp.errors import TimeError
from pointstamp.event_time.unit_warnings import Lengths

if TYPE_CHECKING:
    from collections.abc import Callable

    from pointstamp.plan.node import Output

__all__ = ["Clock", "LengthUnitError", "clock_of", "not_ahead", "refuse_negative", "since_epoch"]

_EPOCH = datetime(1970, 1, 1, tzinfo=timezone.utc)
_MICROSECOND = timedelta(microseconds=1)
_KINDS = ("ints", "datetimes")

_TOLD = "a record has the event time"

_UNITS = "the columns of event times of streams that come together have different units"

Unit = tuple[int, int]


def _cure(given: Any) -> str:
    """Returns the hint of what to return instead of a value that is no event time."""
    if isinstance(given, float):
        return ": return a whole number of some unit, such as int(seconds * 1000) for milliseconds"
    if isinstance(given, date):
        return ": return datetime.combine(day, time(), timezone.utc), its first instant, or day.toordinal()"
    if isinstance(given, str):
        return ": return datetime.fromisoformat(text), which needs a zone, or int(text)"
    if given is None:
        return (
            ": filter such records out before, with .filter(...); where `read` has "
            "event_time=, write scope.read(source).filter(...).event_time(...)"
        )
    return ""


class LengthUnitError(TypeError):
    """A length, such as a lateness, of another kind than the event times: the length is the mistake."""


class _Kind:
    """The common knowledge of clocks that have come together."""

    __slots__ = ("clocks", "datetimes", "length", "lengths", "origins", "unit")

    def __init__(self, clock: Clock, datetimes: bool | None, unit: Unit | None, origin: str) -> None:
        self.clocks = [clock]
        self.datetimes = datetimes
        self.unit = unit
        # The source of the times: records, columns of timestamps, or nothing.
        self.origins = {origin}
        # The length that fixed the kind, where no record has.
        self.length = ""
        # Lengths that were given as ints, whose unit the first time may contradict.
        self.lengths = Lengths()


class Clock:
    """The unit of a stream's event times.

    Args:
        datetimes: Whether they are datetimes; None until the first record, or a length, decides.
        unit: The unit of the times where they are datetimes: so many microseconds, or the first of so many
            parts of them.
        origin: The source of the times: ``"records"``, ``"columns"`` of timestamps, or ``"nothing"``, where
            they are the times of the stream itself.
        lengths: The lengths that were given as ints beside the times; None for none so far.
    """

    __slots__ = ("_kind",)

    def __init__(
        self,
        datetimes: bool | None = None,
        unit: Unit = (1, 1),
        origin: Literal["records", "columns", "nothing"] = "records",
        *,
        lengths: Lengths | None = None,
    ) -> None:
        self._kind = _Kind(self, datetimes, unit, origin)
        if lengths is not None:
            self._kind.lengths = lengths

    @property
    def datetimes(self) -> bool | None:
        """Whether the times are datetimes; None where that is not known yet."""
        return self._kind.datetimes

    @property
    def lengths(self) -> Lengths:
        """The lengths that were given as ints."""
        return self._kind.lengths

    def described(self) -> str | None:
        """Describes the known unit of the times: ints, or datetimes with their unit; None if unknown."""
        kind = self._kind
        if kind.datetimes is None:
            return None
        if not kind.datetimes:
            return "ints"
        microseconds, parts = kind.unit or (1, 1)
        return f"datetimes in units of {microseconds}/{parts} us"

    def restore(self, described: str) -> None:
        """Sets the unit from a checkpoint, in the form of `described`, unless it is known."""
        if self._kind.datetimes is None:
            self._kind.datetimes = described != "ints"

    def join(self, other: Clock) -> None:
        """Notes that two streams come together: both then know the unit of either.

        Raises:
            TypeError: If they are known to be of different kinds.
        """
        ours, theirs = self._kind, other._kind
        if ours is theirs:
            return
        known = {kind.datetimes for kind in (ours, theirs)} - {None}
        if len(known) > 1:
            raise TypeError("streams that come together need event times of one kind, ints or datetimes")
        if {"columns", "nothing"} <= (origins := ours.origins | theirs.origins):
            raise TypeError(
                "streams that come together need event times of one kind: one has them in a column of "
                "timestamps, and another has none, so that its records would be of 1970: take that one "
                "from event_time, too"
            )
        if ours.unit != theirs.unit:
            if True in known:
                raise TypeError(f"{_UNITS}: cast the columns of times to one type before event_time")
            ours.unit = None
        ours.datetimes = next(iter(known), None)
        ours.length = ours.length or theirs.length
        ours.origins = origins
        ours.lengths.join(theirs.lengths)
        ours.clocks += theirs.clocks
        for clock in theirs.clocks:
            clock._kind = ours

    def span(self, what: str, length: Any) -> int:
        """A length in units, which must be of the clock's kind. Zero is of either.

        Raises:
            TypeError: If it is no length, or an int among datetimes, or a timedelta among ints.
            ValueError: If it is not a whole number of units.
        """
        if isinstance(length, bool) or not isinstance(length, (int, timedelta)):
            raise TypeError(f"{what} is an int or a timedelta, not {length!r}")
        if length != 0 or isinstance(length, timedelta):
            self._settle(isinstance(length, timedelta), f"{what} is", length, is_length=True)
        if not isinstance(length, timedelta):
            self._kind.lengths.note(what, index(length))
            return index(length)
        microseconds, parts = self._unit
        units, rest = divmod(length // _MICROSECOND * parts, microseconds)
        if rest:
            raise ValueError(f"{what} is {length!r}, which is no whole number of the event times' units")
        return units

    def place(self, what: str, at: Any) -> int:
        """Converts a moment to units: a datetime with a zone, or a distance from 0, or from 1970.

        Raises:
            TypeError: If it is neither, or not of the clock's kind.
            ValueError: If it is not a whole number of units.
        """
        if not isinstance(at, datetime):
            return self.span(what, at)
        self._settle(True, f"{what} is", at, is_length=True)
        return self.span(what, since_epoch(what, at))

    @property
    def _unit(self) -> Unit:
        if self._kind.unit is None:
            raise TypeError(f"{_UNITS}: give an int")
        return self._kind.unit

    def _settle(self, datetimes: bool, who: str, value: Any, *, is_length: bool = False) -> None:
        """Notes the kind of the stream's times, which a length or a record's time shows.

        The kind that records show stands, and a length that does not fit is the mistake.

        Args:
            datetimes: The kind: datetimes, or ints.
            who: The start of a message, which ends with the value.
            value: The length or the time. It is formatted only where a message needs it: this runs for each
                timer that a program sets.
            is_length: Whether it is a length.

        Raises:
            TypeError: If the kind was known to be the other.
        """
        kind = self._kind
        if kind.datetimes == datetimes:
            if not is_length:
                kind.length = ""
            return
        because = f"{who} {value!r}"
        lengths = ("an int, in their unit", "a timedelta")
        if kind.datetimes is None:
            kind.datetimes = datetimes
            kind.length = because if is_length else ""
        elif not is_length and kind.length:
            raise LengthUnitError(f"{kind.length}, and {because}: give {lengths[datetimes]}")
        elif not is_length:
            raise TypeError(
                f"{because}, and those before it are {_KINDS[kind.datetimes]}: give one kind of them"
            )
        elif kind.length:
            raise TypeError(
                f"{because}, and {kind.length}: give both as timedeltas where event times are datetimes, "
                "and as ints where they are ints"
            )
        else:
            raise TypeError(
                f"{because}, and the event times of this stream are {_KINDS[kind.datetimes]}: give "
                f"{lengths[kind.datetimes]}"
            )

    def units(self, times: list[Any]) -> list[int]:
        """Converts the results of a function of timestamps to units.

        Raises:
            TypeError: For something that is no time, a datetime without a zone, or a mix.
        """
        kinds = set(map(type, times))
        if kinds == {int}:
            self._settle(False, _TOLD, times[0])
            if not self._kind.lengths.is_known:
                self._kind.lengths.saw(max(times))
            return times
        if all(issubclass(kind, datetime) for kind in kinds):
            self._settle(True, _TOLD, times[0])
            microseconds, parts = self._unit
            if (microseconds, parts) == (1, 1):
                return [_microseconds(time) for time in times]
            # Not before the instant, where it is between two of them.
            return [-(-_microseconds(time) * parts // microseconds) for time in times]
        for time in times:
            if isinstance(time, datetime):
                self._settle(True, _TOLD, time)
            elif isinstance(time, bool) or not hasattr(time, "__index__"):
                raise TypeError(f"an event time is an int or a datetime, not {time!r}{_cure(time)}")
            else:
                self._settle(False, _TOLD, time)
        return [index(time) for time in times]

    def unit(self, time: Any) -> int:
        """One time in units; see `units`."""
        if type(time) is int:
            self._settle(False, _TOLD, time)
            return time
        return self.units([time])[0]

    def shown(self, time: int) -> Any:
        """A time as the program writes it.

        Raises:
            TimeError: If there is no such datetime.
        """
        kind = self._kind
        if not kind.datetimes:
            return time
        microseconds, parts = kind.unit or (1, 1)
        since = time * microseconds // parts
        try:
            return _EPOCH + since * _MICROSECOND
        except OverflowError:
            end = "after the year 9999" if time > 0 else "before the year 1"
            raise TimeError(
                f"the time {since} microseconds from 1970 is {end} in UTC, where there are no datetimes: "
                "leave out records whose datetime stands for none, such as 9999-12-31, before event_time"
            ) from None


def since_epoch(what: str, at: datetime) -> timedelta:
    """Returns the time from 1970 in UTC to a datetime.

    Raises:
        TypeError: If it has no zone.
    """
    try:
        return at - _EPOCH
    except TypeError:
        raise TypeError(
            f"{what} is {at!r}, which has no zone, so that it is no instant: write "
            "replace(tzinfo=timezone.utc), or the zone that it is of"
        ) from None


def _microseconds(time: datetime) -> int:
    if time != time:  # pandas.NaT, which is a datetime
        raise TypeError(
            f"the event time {time!r} stands for none: leave such records out, or give them a time, before "
            "event_time"
        )
    try:
        return (time - _EPOCH) // _MICROSECOND
    except TypeError:
        raise TypeError(
            f"the event time {time!r} has no zone, so that it is no instant: write "
            "time.replace(tzinfo=timezone.utc), or the zone that it was taken in"
        ) from None


def not_ahead(ahead: Any, units: Callable[[str, Any], int]) -> Callable[[], int] | None:
    """Returns the function that gives the latest credible time; None where all times are credible.

    Args:
        ahead: A timedelta, or None.
        units: Makes units of the times of a length.

    Raises:
        TypeError: If it is no timedelta.
    """
    if ahead is None:
        return None
    if not isinstance(ahead, timedelta):
        raise TypeError(
            f"ahead is a timedelta, which only datetimes can be ahead of the clock by, not {ahead!r}"
        )
    span, second = units("ahead", ahead), units("a second", timedelta(seconds=1))
    return lambda: int(seconds_now() * second) + span


def refuse_negative(time: int, clock: Clock) -> None:
    """Refuses a time that a dataflow has no timestamp for.

    Raises:
        TimeError: Always, if it is below 0.
    """
    if time < 0:
        shown = "before 1970" if clock.datetimes else "below 0"
        raise TimeError(f"the event time {clock.shown(time)} is {shown}, where there are no timestamps")


def clock_of(output: Output) -> Clock:
    """Returns the unit of an output's times, from the source that it is derived from.

    Raises:
        TypeError: If it comes from streams with times of different kinds.
    """
    clocks = output.clocks or ()
    if not clocks:
        return Clock(False, origin="nothing")
    for other in clocks[1:]:
        clocks[0].join(other)
    return clocks[0]
