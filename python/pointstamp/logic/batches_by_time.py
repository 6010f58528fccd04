"""Batches that wait for their times: in memory, and on disk where memory has no room for them.

Owns `BatchesByTime`. A batch is plain data that can be pickled: a list of records, a record batch. Batches
leave memory one at a time, those that came last first, so that a time that gets many is not written again for
each.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pointstamp.logic.states import States

if TYPE_CHECKING:
    from collections.abc import Iterable

    from pointstamp._core import Disk
    from pointstamp.types import Time

__all__ = ["BatchesByTime"]

_TOGETHER = 1024
"""The number of records from which on a list gets no more."""


class BatchesByTime:
    """Batches by time, in the order of their arrival."""

    __slots__ = ("_batches", "_counts")

    def __init__(self) -> None:
        self._counts: dict[Time, int] = {}
        self._batches: States[tuple[Time, int], Any] = States(latest_first=True)

    def spill_to(self, disk: Disk) -> None:
        """See `Spilling`."""
        self._batches.spill_to(disk)

    def settle(self) -> None:
        """Has batches go to disk if there is too much in memory."""
        self._batches.settle()

    def add(self, time: Time, batch: Any) -> None:
        """Takes in a batch; of a list, the records."""
        count = self._counts.get(time, 0)
        if isinstance(batch, list):
            last = self._batches.get((time, count - 1))
            if isinstance(last, list) and len(last) < _TOGETHER:
                last += batch
                return
            batch = list(batch)
        self._counts[time] = count + 1
        self._batches[time, count] = batch

    def pop(self, time: Time) -> list[Any]:
        """Takes out the batches of a time."""
        keys = [(time, number) for number in range(self._counts.pop(time, 0))]
        self._batches.bring(keys)
        return [self._batches.pop(key) for key in keys]

    def every(self) -> Iterable[tuple[Time, list[Any]]]:
        """Iterates over the times with their batches."""
        for time, count in list(self._counts.items()):
            yield time, [self._batches.find((time, number)) for number in range(count)]

    def __contains__(self, time: Time) -> bool:
        return time in self._counts

    def __len__(self) -> int:
        return len(self._counts)
