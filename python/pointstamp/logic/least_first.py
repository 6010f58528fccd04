"""Records by key that wait for their times, at times of several coordinates."""

from __future__ import annotations

from heapq import heappop, heappush
from itertools import chain
from typing import TYPE_CHECKING, Any

from pointstamp._core import pairs_with_one_nan
from pointstamp.logic.batches_by_time import BatchesByTime

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pointstamp._core import Capability, CapabilityRef, Disk
    from pointstamp.logic.declared_state import Restored
    from pointstamp.order import Antichain

__all__ = ["LeastFirst"]


class LeastFirst:
    """Records ``(key, value)`` by time, which are taken out in the order of the coordinates of their times.

    That is a linear extension of the order of times: a time comes out once no earlier one can come.
    """

    __slots__ = ("_heap", "_held", "_records")

    def __init__(self) -> None:
        self._held: dict[Any, Capability] = {}
        self._records = BatchesByTime()
        self._heap: list[Any] = []

    def spill_to(self, disk: Disk) -> None:
        """See `Spilling`."""
        self._records.spill_to(disk)

    def add(self, message: CapabilityRef, records: list[tuple[Any, Any]]) -> None:
        """Takes in the records of a message."""
        time = message.time
        if time not in self._held:
            self._hold(message.retain())
        self._records.add(time, pairs_with_one_nan(records))

    def _hold(self, capability: Capability) -> None:
        self._held[capability.time] = capability
        heappush(self._heap, capability.time)

    def closed(self, frontier: Antichain) -> Iterator[tuple[Capability, list[tuple[Any, Any]]]]:
        """Takes out the records that are final, least first.

        Each time comes with its capability, which is dropped when the next one is asked for.
        """
        self._records.settle()
        open_from = min(frontier.elements, default=None)
        while self._heap and (open_from is None or self._heap[0] < open_from):
            time = heappop(self._heap)
            with self._held.pop(time) as capability:
                records = list(chain.from_iterable(self._records.pop(time)))
                # Of a record that was on disk each NaN is an object of its own.
                yield capability, pairs_with_one_nan(records)

    def taken(self) -> list[tuple[Capability, list[tuple[Any, Any]]]]:
        """See `Waiting`."""
        every = self._records.every()
        return [(self._held[time], list(chain.from_iterable(batches))) for time, batches in every]

    def give_back(self, taken: list[tuple[Capability, list[tuple[Any, Any]]]], restored: Restored) -> None:
        """See `Waiting`."""
        for capability, records in taken:
            mine = [pair for pair in pairs_with_one_nan(records) if restored.is_mine(pair[0])]
            if mine:
                if capability.time not in self._held:
                    self._hold(capability)
                self._records.add(capability.time, mine)
