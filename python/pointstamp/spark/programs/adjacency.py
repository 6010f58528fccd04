"""The edges that leave one worker's nodes, in the order of their sources."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from pointstamp.spark.programs.gathering import Array

__all__ = ["Adjacency"]


class Adjacency:
    """Edges from a worker's nodes, by their places, to nodes, by their numbers.

    Args:
        place: The places of the sources.
        target: The numbers of the targets.
        count: The number of nodes of the worker.
        weight: The weights of the edges. Left out, edges have none, and each pair is kept once.

    Attributes:
        target: The targets, in the order of their sources.
        weight: The weights in that order, or None.
        first: Where the edges of each source begin; and their number.
    """

    def __init__(self, place: Array, target: Array, count: int, weight: Array | None = None) -> None:
        if len(target) and max(int(target.max()), count) >= 1 << 31:
            raise OverflowError(
                f"a graph in Spark has 2**31 nodes at most on a columnar program, and node number "
                f"{int(target.max())} was needed: select a part of the graph"
            )
        # As one number each, edges are sorted several times faster than by an index.
        edges = (place << 32) | target
        if weight is None:
            edges.sort()
            if len(edges):
                edges = edges[np.concatenate([[True], edges[1:] != edges[:-1]])]
        else:
            order = np.argsort(edges, kind="stable")
            edges, weight = edges[order], weight[order]
        self.edges = edges
        self.target = edges & 0xFFFFFFFF
        self.weight = weight
        self.first = np.zeros(count + 1, np.int64)
        np.cumsum(np.bincount(edges >> 32, minlength=count), out=self.first[1:])

    def degrees(self) -> Array:
        """Counts the edges of each node."""
        degrees: Array = np.diff(self.first)
        return degrees

    def leaving(self, places: Array) -> tuple[Array, Array]:
        """Returns the positions of the edges of some nodes, and the number of edges of each node."""
        first = self.first[places]
        degrees = self.first[places + 1] - first
        skipped = np.cumsum(degrees) - degrees
        return np.arange(degrees.sum()) + np.repeat(first - skipped, degrees), degrees
