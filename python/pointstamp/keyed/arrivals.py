"""What has arrived and is not final yet.

Owns `Arrivals`: records ``(time, key, value)`` in sorted runs, of which those before a time are taken out
in order. Records of one time come in the order of their arrival. Runs that are as long as the one before
are merged with it, so that a record is sorted a logarithmic number of times, by a sort that knows what is
sorted already; taking looks at each run's end.
"""

from __future__ import annotations

from bisect import bisect_left
from operator import itemgetter
from typing import Any

__all__ = ["Arrivals", "Triple"]

Triple = tuple[int, Any, Any]

_TIME = itemgetter(0)


def _descending(record: Triple) -> int:
    return -record[0]


class Arrivals:
    """Records until their times are final."""

    __slots__ = ("_fresh", "_runs")

    def __init__(self) -> None:
        self._fresh: list[Triple] = []
        # Each from the latest to the earliest, so that the earliest are taken off the end; of one time, the
        # last comes first.
        self._runs: list[list[Triple]] = []

    def add(self, records: list[Triple]) -> None:
        """Takes records in."""
        self._fresh += records

    def take(self, until: int | None) -> list[Triple]:
        """Takes out the records before a time, or all, in the order of time."""
        fresh, self._fresh = self._fresh, []
        if until is None and not self._runs:
            fresh.sort(key=_TIME)
            return fresh
        if fresh:
            self._keep(fresh)
        taken: list[Triple] = []
        pieces = 0
        for run in self._runs:
            cut = 0 if until is None else bisect_left(run, 1 - until, key=_descending)
            if cut < len(run):
                piece = run[cut:]
                del run[cut:]
                piece.reverse()
                taken += piece
                pieces += 1
        self._runs = [run for run in self._runs if run]
        if pieces > 1:
            taken.sort(key=_TIME)
        return taken

    def _keep(self, fresh: list[Triple]) -> None:
        fresh.reverse()
        fresh.sort(key=_TIME, reverse=True)
        runs = self._runs
        runs.append(fresh)
        while len(runs) > 1 and len(runs[-2]) <= 2 * len(runs[-1]):
            later = runs.pop()
            # Those that arrived later stand before those of the same time that arrived earlier.
            later += runs[-1]
            later.sort(key=_TIME, reverse=True)
            runs[-1] = later

    def least(self) -> int | None:
        """The earliest time of a record that is held."""
        if self._fresh:
            self._keep(self._fresh)
            self._fresh = []
        return min((run[-1][0] for run in self._runs), default=None)

    def __len__(self) -> int:
        return len(self._fresh) + sum(map(len, self._runs))
