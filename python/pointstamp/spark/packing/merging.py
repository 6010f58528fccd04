"""One task's input in the order of times.

The packed batches of a partition come in the order of their least times, and each is sorted in itself: they
are merged with a heap. A batch is held from its first row's turn to its last one's, so the batches held at
once are those whose times overlap: one of each of the stage's earlier partitions where those were sorted.
Each turn costs the logarithm of their number, whatever the rows.
"""

from __future__ import annotations

import heapq
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from pointstamp.spark.packing.batches import Packed

__all__ = ["in_order"]


class _Open:
    """A batch that is being merged: where each of its times begins, and which is next."""

    __slots__ = ("_next", "_starts", "_times", "packed")

    def __init__(self, packed: Packed, column: str) -> None:
        self.packed = packed
        times = packed.batch.column(column).to_numpy()
        starts = np.concatenate([[0], np.flatnonzero(times[1:] != times[:-1]) + 1])
        self._times: list[int] = times[starts].tolist()
        self._starts: list[int] = [*starts.tolist(), len(times)]
        self._next = 0

    @property
    def time(self) -> int:
        return self._times[self._next]

    def take(self) -> Packed:
        """The rows of its present time; then it is at its next."""
        start, end = self._starts[self._next : self._next + 2]
        taken = self.packed._replace(low=self.time, batch=self.packed.batch.slice(start, end - start))
        self._next += 1
        return taken

    @property
    def ended(self) -> bool:
        return self._next == len(self._times)


def in_order(batches: Iterable[Packed], times: Sequence[str | None]) -> Iterator[Packed]:
    """Cuts batches so that each has one time, its `low`, and orders them by it.

    Args:
        batches: In the order of their `low`; each in the order of its own rows' times.
        times: For each stream, the column of its rows' times; None: all at `low`.
    """
    opened: list[tuple[int, int, _Open]] = []
    number = 0
    for packed in batches:
        while opened and opened[0][0] < packed.low:
            yield from _turn(opened)
        column = times[packed.stream]
        if column is None:
            yield packed
        else:
            batch = _Open(packed, column)
            heapq.heappush(opened, (batch.time, number, batch))
            number += 1
    while opened:
        yield from _turn(opened)


def _turn(opened: list[tuple[int, int, _Open]]) -> Iterator[Packed]:
    _, number, batch = opened[0]
    yield batch.take()
    if batch.ended:
        heapq.heappop(opened)
    else:
        heapq.heapreplace(opened, (batch.time, number, batch))
