"""The common part of the graph dataflows: nodes, their edges, and messages that wait for their round.

Node ids are any int64. A worker owns the nodes that are exchanged to it, and numbers them from 0: its
positions. All that happens to a node then happens to a row of an array. Edges are kept in the order of
where they start, so that the edges of some nodes are found without looking at the others: what a round
costs follows what changed.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Generic, TypeVar

import numpy as np
import pyarrow as pa

import pointstamp as ps
from pointstamp.order import Antichain

Array = np.ndarray[Any, np.dtype[Any]]
T = TypeVar("T")
G = TypeVar("G")

LAST = 2**64 - 1
"""The last round that there could be."""

NONE: Array = np.zeros(0, np.int64)


class Nodes:
    """Ids, each once and in order, and the position of each."""

    def __init__(self, ids: Array) -> None:
        least, most = (int(ids.min()), int(ids.max())) if len(ids) else (0, -1)
        self.first = least
        # Ids that lie close together are looked up in a table, others by bisection.
        if most - least < 8 * len(ids) + 1024:
            here = np.zeros(most - least + 1, bool)
            here[ids - least] = True
            self.ids = np.flatnonzero(here) + least
            self.table: Array | None = (np.cumsum(here, dtype=np.int32) - 1).astype(np.int32)
        else:
            self.ids = np.unique(ids)
            self.table = None

    def __len__(self) -> int:
        return len(self.ids)

    def at(self, ids: Array) -> Array:
        """The positions of ids that are among these."""
        if self.table is not None:
            found: Array = self.table[ids - self.first]
            return found
        return np.searchsorted(self.ids, ids).astype(np.int32)


class Edges:
    """Edges from rows of one array to rows of another, in the order of where they start."""

    def __init__(self, start: Array, end: Array, rows: int) -> None:
        # As one number each, edges are sorted several times faster than by an index of their starts.
        edges = (start.astype(np.int64) << 32) | end
        edges.sort()
        self.end = edges.astype(np.int32)  # the lower half
        self.first = np.zeros(rows + 1, np.int64)
        np.cumsum(np.bincount(start, minlength=rows), out=self.first[1:])

    def degrees(self, rows: Array) -> Array:
        """Counts the edges of each of these rows."""
        degrees: Array = self.first[rows + 1] - self.first[rows]
        return degrees

    def of(self, rows: Array) -> Array:
        """Returns the ends of the edges of these rows, row by row."""
        if len(rows) == len(self.first) - 1:
            return self.end  # all of them, in order
        degrees = self.degrees(rows)
        skipped = np.cumsum(degrees) - degrees
        ends: Array = self.end[np.arange(degrees.sum()) + np.repeat(self.first[rows] - skipped, degrees)]
        return ends


def once(rows: Array, of: int) -> Array:
    """Each of some rows once and in order, of an array that has so many."""
    if len(rows) < of // 16:
        return np.unique(rows)
    here = np.zeros(of, bool)
    here[rows] = True
    return np.flatnonzero(here)


class Waiting(Generic[T]):
    """Messages of rounds that are not over, each round with a capability for it."""

    def __init__(self) -> None:
        self.rounds: dict[Any, tuple[ps.Capability, list[T]]] = {}

    def add(self, message: ps.CapabilityRef, part: T, output: int = 0) -> None:
        """Keeps a part of a round until the round is over."""
        if message.time not in self.rounds:
            self.rounds[message.time] = message.retain(output), []
        self.rounds[message.time][1].append(part)

    def over(self, frontier: Antichain) -> list[tuple[ps.Capability, list[T]]]:
        """The rounds of which no more can arrive, in order; they are no longer kept."""
        over = sorted(time for time in self.rounds if not frontier.less_equal(time))
        return [self.rounds.pop(time) for time in over]


class Graphs(Generic[G]):
    """The graphs of a loop's epochs, a graph for each time outside the loop.

    A graph is made when its edges are complete, and kept until its loop is over. What it sends is sent by
    capabilities of its epoch: the first round's, by output 0, and the result's, by the last output.
    """

    def __init__(self, make: Callable[[list[pa.RecordBatch]], G], outputs: int) -> None:
        self.make, self.outputs = make, outputs
        self.arriving: dict[Any, tuple[list[ps.Capability], list[pa.RecordBatch]]] = {}
        self.open: dict[Any, tuple[list[ps.Capability], G]] = {}

    def announce(self, message: ps.CapabilityRef, *batches: pa.RecordBatch) -> None:
        """Keeps edges of a message's epoch, if there are any on this worker, until there are no more."""
        time: Any = message.time
        if time[:-1] not in self.arriving:
            self.arriving[time[:-1]] = [message.retain(output) for output in range(self.outputs)], []
        self.arriving[time[:-1]][1].extend(batches)

    def complete(self, *frontiers: Antichain) -> list[tuple[list[ps.Capability], G]]:
        """The graphs of which no edge can arrive any more, made now; with a capability for each output."""
        over = sorted(
            epoch
            for epoch in self.arriving
            if not any(frontier.less_equal((*epoch, 0)) for frontier in frontiers)
        )
        for epoch in over:
            capabilities, batches = self.arriving.pop(epoch)
            self.open[epoch] = capabilities, self.make(batches)
        return [self.open[epoch] for epoch in over]

    def of(self, capability: ps.Capability) -> G:
        """The graph of a capability's epoch."""
        time: Any = capability.time
        return self.open[time[:-1]][1]

    def over(self, frontier: Antichain) -> list[tuple[list[ps.Capability], G]]:
        """The graphs whose rounds are over, with their capabilities; they are released."""
        over = sorted(epoch for epoch in self.open if not frontier.less_equal((*epoch, LAST)))
        return [self.open.pop(epoch) for epoch in over]

    def reopen(self, capability: ps.Capability, capabilities: list[ps.Capability], graph: G) -> None:
        """Keeps a graph for more rounds, in the epoch of a capability."""
        time: Any = capability.time
        self.open[time[:-1]] = capabilities, graph


def column(batches: list[pa.RecordBatch], name: str) -> Array:
    """A column of some batches as one array."""
    if not batches:
        return NONE
    return np.concatenate([batch[name].to_numpy() for batch in batches])
