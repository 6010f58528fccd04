"""Records by key that wait for their times, at times of several coordinates."""

from __future__ import annotations

from heapq import heappop, heappush
from typing import TYPE_CHECKING, Any

from pointstamp._core import pairs_with_one_nan

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pointstamp._core import Capability, CapabilityRef
    from pointstamp.logic.declared_state import Restored
    from pointstamp.order import Antichain

__all__ = ["LeastFirst"]


class LeastFirst:
    """Records ``(key, value)`` by time, which are taken out in the order of the coordinates of their times.

    That is a linear extension of the order of times: a time comes out once no earlier one can come.
    """

    __slots__ = ("_heap", "_waiting")

    def __init__(self) -> None:
        self._waiting: dict[Any, tuple[Capability, list[tuple[Any, Any]]]] = {}
        self._heap: list[Any] = []

    def add(self, message: CapabilityRef, records: list[tuple[Any, Any]]) -> None:
        """Takes in the records of a message."""
        time = message.time
        if time not in self._waiting:
            self._put(message.retain(), [])
        self._waiting[time][1].extend(pairs_with_one_nan(records))

    def _put(self, capability: Capability, records: list[tuple[Any, Any]]) -> None:
        self._waiting[capability.time] = capability, records
        heappush(self._heap, capability.time)

    def closed(self, frontier: Antichain) -> Iterator[tuple[Capability, list[tuple[Any, Any]]]]:
        """Takes out the records that are final, least first.

        Each time comes with its capability, which is dropped when the next one is asked for.
        """
        open_from = min(frontier.elements, default=None)
        while self._heap and (open_from is None or self._heap[0] < open_from):
            capability, records = self._waiting.pop(heappop(self._heap))
            with capability:
                yield capability, records

    def taken(self) -> list[tuple[Capability, list[tuple[Any, Any]]]]:
        """See `Waiting`."""
        return list(self._waiting.values())

    def give_back(self, taken: list[tuple[Capability, list[tuple[Any, Any]]]], restored: Restored) -> None:
        """See `Waiting`."""
        for capability, records in taken:
            mine = [pair for pair in pairs_with_one_nan(records) if restored.is_mine(pair[0])]
            if capability.time in self._waiting:
                self._waiting[capability.time][1].extend(mine)
            elif mine:
                self._put(capability, mine)
