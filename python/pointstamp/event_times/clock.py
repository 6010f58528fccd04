"""The unit of event times: ints of the program's own, or datetimes, which are microseconds since 1970 in UTC.

Owns `Clock`: every stream of event times has one, and all streams made from it share it. Whether it counts
ints or datetimes is known from a timedelta that was given, or from the first record, and then holds for good.
"""

from __future__ import annotations

from datetime import datetime, timedelta, timezone
from operator import index
from typing import Any

from pointstamp._errors import TimeError

__all__ = ["Clock", "length_of", "refuse_negative"]

_EPOCH = datetime(1970, 1, 1, tzinfo=timezone.utc)
_MICROSECOND = timedelta(microseconds=1)
_KINDS = ("ints", "datetimes")


def length_of(length: Any) -> int:
    """A stretch of time in units: a timedelta in microseconds."""
    return length // _MICROSECOND if isinstance(length, timedelta) else index(length)


class Clock:
    """Which unit the event times of a stream have.

    Args:
        datetimes: Whether they are datetimes; None where the first record will tell.
    """

    __slots__ = ("_length", "datetimes")

    def __init__(self, datetimes: bool | None = None) -> None:
        self.datetimes = datetimes
        # The length that told the kind, where no record has.
        self._length = ""

    def span(self, what: str, length: Any) -> int:
        """A length in units, which must be of the clock's kind. Zero is of either.

        Raises:
            TypeError: If it is no length, or an int among datetimes, or a timedelta among ints.
        """
        if isinstance(length, bool) or not isinstance(length, int | timedelta):
            raise TypeError(f"{what} is an int or a timedelta, not {length!r}")
        if length != 0 or isinstance(length, timedelta):
            self._settle(isinstance(length, timedelta), f"{what} is {length!r}", length=True)
        return length_of(length)

    def _settle(self, datetimes: bool, because: str, *, length: bool) -> None:
        """Takes note of the kind of the stream's times, which a length tells, or a record.

        What records tell stands, and a length that does not fit is the mistake.

        Raises:
            TypeError: If it was known to be the other.
        """
        lengths = ("an int, in their unit", "a timedelta")
        if self.datetimes is None:
            self.datetimes = datetimes
            self._length = because if length else ""
        elif self.datetimes == datetimes:
            if not length:
                self._length = ""
        elif not length and self._length:
            raise TypeError(f"{self._length}, and {because}: give {lengths[datetimes]}")
        elif not length:
            raise TypeError(
                f"{because}, and those before it are {_KINDS[self.datetimes]}: give one kind of them"
            )
        elif self._length:
            raise TypeError(
                f"{because}, and {self._length}: give both as timedeltas where event times are datetimes, "
                "and as ints where they are ints"
            )
        else:
            raise TypeError(
                f"{because}, and the event times of this stream are {_KINDS[self.datetimes]}: give "
                f"{lengths[self.datetimes]}"
            )

    def units(self, times: list[Any]) -> list[int]:
        """What a function of timestamps returned for records, in units.

        Raises:
            TypeError: For something that is no time, a datetime without a zone, or a mix.
        """
        kinds = set(map(type, times))
        if kinds == {int}:
            self._settle(False, f"a record has the event time {times[0]}", length=False)
            return times
        if all(issubclass(kind, datetime) for kind in kinds):
            self._settle(True, f"a record has the event time {times[0]!r}", length=False)
            return [_microseconds(time) for time in times]
        for time in times:
            if isinstance(time, datetime):
                self._settle(True, f"a record has the event time {time!r}", length=False)
            elif isinstance(time, bool) or not hasattr(time, "__index__"):
                raise TypeError(f"an event time is an int or a datetime, not {time!r}")
            else:
                self._settle(False, f"a record has the event time {time!r}", length=False)
        return [index(time) for time in times]

    def unit(self, time: Any) -> int:
        """One time in units; see `units`."""
        return self.units([time])[0]

    def shown(self, time: int) -> Any:
        """A time as the program writes it.

        Raises:
            TimeError: If there is no such datetime.
        """
        if not self.datetimes:
            return time
        try:
            return _EPOCH + time * _MICROSECOND
        except OverflowError:
            end = "after the year 9999" if time > 0 else "before the year 1"
            raise TimeError(
                f"the time {time} microseconds from 1970 is {end} in UTC, where there are no datetimes: "
                "leave out records whose datetime stands for none, such as 9999-12-31, before event_time"
            ) from None


def _microseconds(time: datetime) -> int:
    try:
        return (time - _EPOCH) // _MICROSECOND
    except TypeError:
        raise TypeError(
            f"the event time {time!r} has no zone, so that it is no instant: write "
            "time.replace(tzinfo=timezone.utc), or the zone that it was taken in"
        ) from None


def refuse_negative(time: int, clock: Clock) -> None:
    """Refuses a time that a dataflow has no timestamp for.

    Raises:
        TimeError: Always, if it is below 0.
    """
    if time < 0:
        shown = "before 1970" if clock.datetimes else "below 0"
        raise TimeError(f"the event time {clock.shown(time)} is {shown}, where there are no timestamps")
