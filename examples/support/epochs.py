"""State of an operator in a loop for each time outside the loop, until that time is over."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Generic, TypeVar

import pointstamp as ps
from pointstamp.order import Antichain

S = TypeVar("S")

LAST = 2**64 - 1
"""The last trip that there could be."""


class PerEpoch(Generic[S]):
    """A state for each epoch: times are ``(epoch, trip)``."""

    def __init__(self, make: Callable[[], S]) -> None:
        self._make = make
        self._states: dict[Any, S] = {}

    def at(self, time: ps.Time) -> S:
        """The state of a time's epoch, made where there is none."""
        epoch: Any = time
        epoch = epoch[:-1]
        if epoch not in self._states:
            self._states[epoch] = self._make()
        return self._states[epoch]

    def forget(self, *frontiers: Antichain) -> list[tuple[Any, S]]:
        """Releases the epochs that are over at every input, and returns them."""
        over = [
            epoch
            for epoch in self._states
            if not any(frontier.less_equal((*epoch, LAST)) for frontier in frontiers)
        ]
        return [(epoch, self._states.pop(epoch)) for epoch in over]
