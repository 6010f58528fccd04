"""Warnings of lengths whose unit is probably not the unit of the event times.

Event times that are ints have no unit of their own. Times of this century in seconds, milliseconds,
microseconds and nanoseconds since 1970 differ in magnitude, so that the first time reveals the unit. A
lateness of 5 beside milliseconds is then probably meant in seconds, and one of 5000 beside seconds in
milliseconds. Both work, so that this is a warning, at the line that gave the length.
"""

from __future__ import annotations

from typing import NamedTuple

from pointstamp._validation import Line, program_line, warn_usage

__all__ = ["Lengths"]

_UNITS = (
    (10**9, 1, "seconds"),
    (10**11, 1000, "milliseconds"),
    (10**14, 10**6, "microseconds"),
    (10**17, 10**9, "nanoseconds"),
)
"""The least event time of a unit, the number of units in a second, and its name."""

_CENTURY = 4_102_444_800
"""Seconds from 1970 to 2100: later times are no times of this century in that unit."""

_DAY = 86_400
"""Seconds of a day: a length of more is probably not meant in seconds."""


class _Given(NamedTuple):
    what: str
    length: int
    line: Line


class Lengths:
    """The lengths that were given as ints beside event times, until the first time reveals the unit.

    Args:
        second: The number of units in a second, where that is known; None until the first time reveals it.
    """

    __slots__ = ("_given", "_noted", "_second", "_time", "is_known")

    def __init__(self, second: int | None = None) -> None:
        self._given: list[_Given] = []
        self._noted: set[_Given] = set()
        self._second = second
        self._time: int | None = None
        self.is_known = second is not None

    def note(self, what: str, length: int) -> None:
        """Notes a length that the program gives now."""
        given = _Given(what, length, program_line())
        if given in self._noted:
            return  # an operator may ask twice
        self._noted.add(given)
        if self.is_known:
            self._check(given)
        else:
            self._given.append(given)

    def saw(self, time: int) -> None:
        """Notes the first event time above 0."""
        if self.is_known or time <= 0:
            return
        self.is_known, self._time = True, time
        for least, second, _ in _UNITS:
            if least <= time < _CENTURY * second:
                self._second = second
        given, self._given = self._given, []
        for one in given:
            self._check(one)

    def join(self, other: Lengths) -> None:
        """Takes over the lengths of another stream, which comes together with this one."""
        given, other._given = other._given, []
        if not self.is_known and other.is_known:
            self.is_known, self._second, self._time = True, other._second, other._time
            given += self._given
            self._given = []
        for one in given:
            if self.is_known:
                self._check(one)
            else:
                self._given.append(one)

    def _check(self, given: _Given) -> None:
        if self._second is None or not (other := _other_unit(given.length, self._second)):
            return
        unit = next(name for _, second, name in _UNITS if second == self._second)
        unit = (
            f"the event times are in {unit}"
            if self._time is None
            else f"event times such as {self._time} look like {unit} since 1970"
        )
        warn_usage(
            f"{given.what} is {given.length}, and {unit}: {_in_seconds(given.length, self._second)}. If "
            f"{other} were meant, multiply or divide, so that both are of one unit; if it is meant so, "
            f"warnings.filterwarnings('ignore', category=pointstamp.UsageWarning)",
            given.line,
        )


def _other_unit(length: int, second: int) -> str:
    """Returns the probable unit of a length, if it is not that of the times, or else ""."""
    if length <= 0:
        return ""
    few = min(second, _DAY)
    small = second > 1 and (length < few // 10 or (length < few and length % 60 == 0))
    if small:
        return "seconds" if second == 1000 else "seconds or milliseconds"
    thousand, hour = 1000 * second, 3600 * second
    great = (length % thousand == 0 and length % hour != 0) or length % (1000 * hour) == 0
    if great and second < 10**9:
        return next(name for _, units, name in _UNITS if units == thousand)
    return ""


def _in_seconds(length: int, second: int) -> str:
    seconds = length / second
    return f"it is {seconds:g} s" if seconds < 60 else f"it is {seconds / 60:g} minutes"
