"""Records in columns: how streams on event time carry them, so that no record needs a tuple of its own.

An element of such a stream is a *stretch*: ``(times, records)``, and by key ``(times, keys, records)``. The
columns are lists of one length; `times` is an int where all records have that time. An operator works on
whole columns, and what all records of a stretch share is not touched. What is sent is a `Bundle` or a
`KeyedBundle`: the extension counts the records in those, and any other element as one.

Owns `Rows`, what logic reads, and `Results`, what it sends.
"""

from __future__ import annotations

from itertools import repeat
from typing import TYPE_CHECKING, Any, NamedTuple

from pointstamp.operators.per_time import MOST

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = [
    "Bundle",
    "Keyed",
    "KeyedBundle",
    "Results",
    "Rows",
    "Stretch",
    "Times",
    "each_time",
    "joined",
    "part_of",
    "stretch_of",
]

Times = int | list[int]
Stretch = tuple[Times, list[Any]]
Keyed = tuple[Times, list[Any], list[Any]]


class Bundle(NamedTuple):
    """A stretch on its way. Its class tells the extension how many records it carries."""

    times: Times
    records: list[Any]


class KeyedBundle(NamedTuple):
    """A stretch by key on its way."""

    times: Times
    keys: list[Any]
    records: list[Any]


def each_time(times: Times, count: int) -> Any:
    """The time of each of so many records, to be gone through."""
    return repeat(times, count) if isinstance(times, int) else times


class Rows:
    """Records by key in the order of time, as logic reads them: stretches, or their columns.

    The columns are put together when they are first asked for: logic that can do with one stretch after the
    other asks for `parts`.
    """

    __slots__ = ("_columns", "_stretches")

    def __init__(self, stretches: list[Keyed]) -> None:
        self._stretches = stretches
        self._columns: Keyed | None = stretches[0] if len(stretches) == 1 else None

    def parts(self) -> list[Keyed]:
        """The stretches, each of which is after the one before."""
        return self._stretches

    @property
    def columns(self) -> Keyed:
        """The time of each record, or of all of them, the keys and the values."""
        if self._columns is None:
            self._columns = joined(self._stretches)
        return self._columns

    def __iter__(self) -> Iterator[tuple[int, Any, Any]]:
        """Each record: its time, key and value."""
        for times, keys, values in self._stretches:
            yield from zip(each_time(times, len(keys)), keys, values, strict=True)

    def __len__(self) -> int:
        return sum(len(keys) for _, keys, _ in self._stretches)


def joined(stretches: list[Keyed]) -> Keyed:
    """The columns of stretches, one after the other, as one."""
    keys: list[Any] = []
    values: list[Any] = []
    for _, more_keys, more_values in stretches:
        keys += more_keys
        values += more_values
    moments = {times if isinstance(times, int) else -1 for times, _, _ in stretches}
    if len(moments) == 1 and -1 not in moments:
        return moments.pop(), keys, values
    times: list[int] = []
    for more, more_keys, _ in stretches:
        times += [more] * len(more_keys) if isinstance(more, int) else more
    return times, keys, values


def part_of(stretch: Keyed, first: int, end: int) -> Keyed:
    """The records of a stretch from one place to another."""
    times, keys, values = stretch
    if first == 0 and end == len(keys):
        return stretch
    return times if isinstance(times, int) else times[first:end], keys[first:end], values[first:end]


def stretch_of(times: list[int], records: list[Any]) -> Bundle:
    """A stretch, whose time is an int where all times are one."""
    return Bundle(times[0] if times.count(times[0]) == len(times) else times, records)


class Results:
    """Results of logic, with their times."""

    __slots__ = ("stretches",)

    def __init__(self) -> None:
        self.stretches: list[Stretch] = []

    def give(self, times: Times, records: list[Any]) -> None:
        """Sends results at a time, or each at its own. The lists are given away."""
        if records:
            self.stretches.append((times, records))

    def pieces(self) -> Iterator[Bundle]:
        """The stretches, none of which is too long."""
        for times, records in self.stretches:
            for at in range(0, len(records), MOST):
                part = records if len(records) <= MOST else records[at : at + MOST]
                if isinstance(times, int):
                    yield Bundle(times, part)
                else:
                    yield stretch_of(times if part is records else times[at : at + MOST], part)

    def pairs(self) -> list[tuple[int, Any]]:
        """Each result with its time."""
        return [
            pair
            for times, records in self.stretches
            for pair in zip(each_time(times, len(records)), records, strict=True)
        ]
