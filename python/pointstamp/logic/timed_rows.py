"""Columns of records at times of their own, as operators on event time read and send them.

Streams on event time carry batches of columns (`Timed` in the extension), so that no record needs a tuple of
its own: ``(times, records)``, and by key ``(times, keys, records)``. The columns are lists of one length;
`times` is an int where all records have that time. An operator works on whole columns, and does not touch
values that all records of a batch share. Columns that were received or sent are not changed.

Owns `Rows`, the input of logic, and `Results`, its output.
"""

from __future__ import annotations

from itertools import repeat
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["Columns", "Keyed", "Results", "Rows", "Times", "each_time", "joined", "part_of"]

Times = int | list[int]
MOST = 4096
"""The most records whose states logic has in memory at once."""

Columns = tuple[Times, list[Any]]
Keyed = tuple[Times, list[Any], list[Any]]


def each_time(times: Times, count: int) -> Any:
    """Iterates over the time of each of so many records."""
    return repeat(times, count) if isinstance(times, int) else times


class Rows:
    """Records by key in the order of time, as logic reads them: in parts, or as one.

    The parts are put together when `columns` is first read: logic that can do with one part after the other
    reads `parts`.
    """

    __slots__ = ("_columns", "_parts")

    def __init__(self, parts: list[Keyed]) -> None:
        self._parts = parts
        self._columns: Keyed | None = parts[0] if len(parts) == 1 else None

    def parts(self) -> list[Keyed]:
        """Returns the columns of each part, which is after the part before."""
        return self._parts

    def chunks(self) -> Iterator[Keyed]:
        """Yields the columns of some records after the others."""
        for part in self._parts:
            for first in range(0, len(part[1]), MOST):
                yield part_of(part, first, min(first + MOST, len(part[1])))

    @property
    def columns(self) -> Keyed:
        """The time of each record, or of all of them, the keys and the values."""
        if self._columns is None:
            self._columns = joined(self._parts)
        return self._columns

    def __iter__(self) -> Iterator[tuple[int, Any, Any]]:
        """Each record: its time, key and value."""
        for times, keys, values in self._parts:
            yield from zip(each_time(times, len(keys)), keys, values, strict=True)

    def __len__(self) -> int:
        return sum(len(keys) for _, keys, _ in self._parts)


def joined(parts: list[Keyed]) -> Keyed:
    """Returns the columns of parts, one after the other, as one."""
    keys: list[Any] = []
    values: list[Any] = []
    for _, more_keys, more_values in parts:
        keys += more_keys
        values += more_values
    moments = {times if isinstance(times, int) else -1 for times, _, _ in parts}
    if len(moments) == 1 and -1 not in moments:
        return moments.pop(), keys, values
    times: list[int] = []
    for more, more_keys, _ in parts:
        times += [more] * len(more_keys) if isinstance(more, int) else more
    return times, keys, values


def part_of(columns: Keyed, first: int, end: int) -> Keyed:
    """Returns the records from one place to another."""
    times, keys, values = columns
    if first == 0 and end == len(keys):
        return columns
    return times if isinstance(times, int) else times[first:end], keys[first:end], values[first:end]


class Results:
    """Results of logic, with their times."""

    __slots__ = ("columns",)

    def __init__(self) -> None:
        self.columns: list[Columns] = []

    def give(self, times: Times, records: list[Any]) -> None:
        """Sends results at a time, or each at its own. The lists are given away."""
        if records:
            self.columns.append((times, records))

    def pairs(self) -> list[tuple[int, Any]]:
        """Each result with its time."""
        return [
            pair
            for times, records in self.columns
            for pair in zip(each_time(times, len(records)), records, strict=True)
        ]
