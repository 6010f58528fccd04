"""Records that have arrived and are not final yet.

Owns `Arrivals`: runs of records by key, each sorted by time once, from whose fronts the records before a time
are taken. Records of one time come in the order of their arrival. A heap of next times finds the runs that
have any, so that taking costs nothing for the others. Records from several runs are sorted by a sort that
exploits sorted runs, and not at all where one run follows the other. Where memory has no room for them, runs
are on disk, those that came last first, until records of them are taken.
"""

from __future__ import annotations

from bisect import bisect_left
from heapq import heappop, heappush
from operator import itemgetter
from typing import TYPE_CHECKING, Any

from pointstamp._core import with_one_nan
from pointstamp.logic.states import States
from pointstamp.logic.timed_rows import Keyed, Rows, Times, joined, part_of

if TYPE_CHECKING:
    from pointstamp._core import Disk

__all__ = ["Arrivals"]


class Arrivals:
    """Records until their times are final."""

    __slots__ = ("_added", "_count", "_order", "_runs")

    def __init__(self) -> None:
        # A heap of the next time and the number of each run. Runs are numbered by arrival.
        self._order: list[tuple[int, int]] = []
        # By number: the number of records taken, and the columns.
        self._runs: States[int, tuple[int, Times, list[Any], list[Any]]] = States(latest_first=True)
        self._added = 0
        self._count = 0

    def spill_to(self, disk: Disk) -> None:
        """See `Spilling`."""
        self._runs.spill_to(disk)

    def settle(self) -> None:
        """Has runs go to disk if there is too much in memory."""
        self._runs.settle()

    def add(self, columns: Keyed) -> int:
        """Takes records in; returns the latest time of them, 0 where there are none."""
        if columns[1]:
            times, keys, values = _sorted(columns)
            first = times if isinstance(times, int) else times[0]
            self._count += len(keys)
            self._added += 1
            heappush(self._order, (first, self._added))
            self._runs[self._added] = (0, times, keys, values)
            return times if isinstance(times, int) else times[-1]
        return 0

    def take(self, until: int | None) -> Rows:
        """Takes out the records before a time, or all, in the order of time."""
        order, runs = self._order, self._runs
        pieces: list[tuple[int, Keyed]] = []
        while order and (until is None or order[0][0] < until):
            _, number = heappop(order)
            was_here = number in runs
            if not was_here:
                runs.bring((number,))
            start, times, keys, values = runs.pop(number)
            if not was_here:
                keys = with_one_nan(keys)  # each that is read is an object of its own
            end = len(keys)
            if until is not None and not isinstance(times, int) and times[-1] >= until:
                end = bisect_left(times, until, start)
                heappush(order, (times[end], number))
                runs[number] = (end, times, keys, values)
            pieces.append((number, part_of((times, keys, values), start, end)))
            self._count -= end - start
        pieces.sort(key=itemgetter(0))
        parts = [part for _, part in pieces]
        return Rows(parts if _in_order(parts) else [_sorted(joined(parts))])

    def least(self) -> int | None:
        """The earliest time of a record that is held."""
        return self._order[0][0] if self._order else None

    def kept(self) -> list[Keyed]:
        """The records that are held, by order of arrival."""
        runs = sorted(self._runs.every(), key=itemgetter(0))
        return [part_of((times, keys, values), start, len(keys)) for _, (start, times, keys, values) in runs]

    def __len__(self) -> int:
        return self._count


def _in_order(parts: list[Keyed]) -> bool:
    """Whether each part is after the one before; each is in the order of time."""
    latest = 0
    for times, _, _ in parts:
        first, last = (times, times) if isinstance(times, int) else (times[0], times[-1])
        if first < latest:
            return False
        latest = last
    return True


def _sorted(columns: Keyed) -> Keyed:
    """Returns records in the order of time; records of one time stay in their order."""
    times, keys, values = columns
    if isinstance(times, int):
        return columns
    ordered = sorted(times)
    if ordered == times:
        return columns
    order = sorted(range(len(times)), key=times.__getitem__)
    return ordered, [keys[at] for at in order], [values[at] for at in order]
