"""The kinds of windows: where they begin and end, in the unit of event times.

Owns `Window`, which results carry, and the four kinds. A length is an int in the unit of the stream's
times, or a timedelta where these are datetimes; all lengths of one kind are alike. Nothing here runs:
`assigning` does.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any, NamedTuple

from pointstamp._core import Session as OutputSession
from pointstamp._validation import count_of
from pointstamp.event_time.clock import since_epoch

__all__ = ["Count", "Session", "Sliding", "Tumbling", "Window", "WindowKind"]


class Window(NamedTuple):
    """A stretch of event time.

    Attributes:
        start: The first instant; an int, or a datetime in UTC where event times are datetimes.
        end: The instant after the last.

    Examples:
        >>> import pointstamp as ps
        >>> window = ps.Window(0, 10)
        >>> window.start, window.end
        (0, 10)
    """

    start: Any
    end: Any


@dataclass(frozen=True)
class Tumbling:
    """Windows of one length, end to end: each record is in one.

    Args:
        length: An int, or a timedelta.
        offset: The start of one of the windows; all are aligned to it. A distance from the time 0, or from
            1970 in UTC; or, where the length is a timedelta, a datetime with a zone.

    Examples:
        >>> import pointstamp as ps
        >>> def build(scope):
        ...     clicks = scope.to_stream([("ann", 1), ("bob", 12), ("ann", 4)])
        ...     on_time, late = clicks.event_time(lambda click: click[1], lateness=10)
        ...     return on_time.key_by(lambda click: click[0]).window(ps.Tumbling(10)).count().capture()
        >>> ps.example(build).extract()
        [(9, [('ann', Window(start=0, end=10), 2)]), (19, [('bob', Window(start=10, end=20), 1)])]
    """

    length: Any
    offset: Any = field(default=0, kw_only=True)

    def __post_init__(self) -> None:
        _check(self, length=self.length)
        _check_offset(self, self.length, self.offset)


@dataclass(frozen=True)
class Sliding:
    """Windows of one length, a new one at every step: a record is in every window that contains its time.

    Args:
        length: An int, or a timedelta.
        every: The distance of the starts of windows; at most the length.
        offset: As of `Tumbling`.

    Examples:
        >>> import pointstamp as ps
        >>> def build(scope):
        ...     numbers, _ = scope.to_stream([1, 7]).event_time(lambda n: n)
        ...     return numbers.window(ps.Sliding(10, every=5)).sum().capture()
        >>> for time, results in ps.example(build).extract():
        ...     print(time, results)
        4 [(Window(start=-5, end=5), 1)]
        9 [(Window(start=0, end=10), 8)]
        14 [(Window(start=5, end=15), 7)]
    """

    length: Any
    every: Any = field(kw_only=True)
    offset: Any = field(default=0, kw_only=True)

    def __post_init__(self) -> None:
        _check(self, length=self.length, every=self.every)
        if self.every > self.length:
            raise ValueError(
                f"{self}: windows of {self.length} every {self.every} leave gaps, and lose records: make "
                "every at most the length"
            )
        _check_offset(self, self.length, self.offset)


class _Named(type):
    """Has sessions of outputs be instances of `Session`, too: the name was theirs."""

    def __instancecheck__(cls, instance: object) -> bool:
        return super().__instancecheck__(instance) or isinstance(instance, OutputSession)


@dataclass(frozen=True)
class Session(metaclass=_Named):
    """Windows that follow activity: records of a key closer than `gap` to one another are in one.

    A session is ``[first, last + gap)``: a record at ``last + gap`` begins the next.

    Args:
        gap: An int, or a timedelta.

    Examples:
        >>> import pointstamp as ps
        >>> def build(scope):
        ...     numbers, _ = scope.to_stream([1, 3, 20]).event_time(lambda n: n)
        ...     return numbers.window(ps.Session(gap=5)).count().capture()
        >>> for time, results in ps.example(build).extract():
        ...     print(time, results)
        7 [(Window(start=1, end=8), 2)]
        24 [(Window(start=20, end=25), 1)]
    """

    gap: Any = field(kw_only=True)

    def __post_init__(self) -> None:
        _check(self, gap=self.gap)

    def __class_getitem__(cls, item: Any) -> Any:
        """``Session[int]`` is the former meaning: the type of an output's session."""
        return OutputSession[item]


@dataclass(frozen=True)
class Count:
    """Windows of so many records of a key in time order, with the times of the first and the last.

    The records that are left over when the stream ends are a last window, with fewer records. It is sent at
    the time to which the input had come, which no event time determines: it may differ between two runs.

    Args:
        size: The number of records.

    Examples:
        >>> import pointstamp as ps
        >>> def build(scope):
        ...     numbers, _ = scope.to_stream(range(4)).event_time(lambda n: n)
        ...     return numbers.window(ps.Count(2)).sum().capture()
        >>> for time, results in ps.example(build).extract():
        ...     print(time, results)
        1 [(Window(start=0, end=2), 1)]
        3 [(Window(start=2, end=4), 5)]
    """

    size: int

    def __post_init__(self) -> None:
        size = count_of("Count takes a number of records", self.size)
        object.__setattr__(self, "size", size)  # frozen; an integer of numpy becomes an int


WindowKind = Tumbling | Sliding | Session | Count


def _check(kind: Any, **lengths: Any) -> None:
    for name, given in lengths.items():
        length: Any = given
        least = type(length)(0)
        if isinstance(length, bool) or not isinstance(length, int | timedelta):
            raise TypeError(f"{name} of {kind} is an int or a timedelta, not {length!r}")
        if length <= least:
            raise ValueError(f"{kind}: {name} must be more than 0")
    if len({type(length) for length in lengths.values()}) > 1:
        raise TypeError(f"{kind} mixes ints and timedeltas: its lengths are all of one kind")


def _check_offset(kind: Any, length: Any, offset: Any) -> None:
    if isinstance(offset, bool) or not isinstance(offset, int | timedelta | datetime):
        raise TypeError(f"offset of {kind} is an int, a timedelta or a datetime, not {offset!r}")
    if offset != 0 and isinstance(offset, int) != isinstance(length, int):
        raise TypeError(
            f"{kind} mixes ints with timedeltas or datetimes: all that it is given is of one kind"
        )
    if isinstance(offset, datetime):
        since_epoch("offset", offset)
