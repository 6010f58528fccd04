"""Triangles of an undirected graph, each once.

Each edge leads from its end with fewer edges to the one with more, so that no list of targets is long. Each
list is shown to every worker, which finds edges between two targets among those of its own nodes. Each worker
has to hold the edges of the whole graph for that, 16 bytes each.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from pointstamp.pacts import Broadcast, Exchange, Pipeline
from pointstamp.spark.programs.adjacency import Adjacency
from pointstamp.spark.programs.gathering import PIECE, column, gathered
from pointstamp.spark.programs.numbering import EDGES, names_of

if TYPE_CHECKING:
    from collections.abc import Iterator

    import pointstamp as ps
    from pointstamp.spark.programs.gathering import Array, Batches
    from pointstamp.spark.programs.numbering import Numbered

__all__ = ["triangles"]

_FOUND = pa.schema([("a", pa.int64()), ("b", pa.int64()), ("c", pa.int64())])

_PAIRS = 1 << 21
"""Pairs of targets that are looked up at once."""


def triangles(graph: Numbered) -> ps.ArrowStream:
    """Returns the triangles ``(a, b, c)`` of a graph numbered `by_degree`, in the order of the names."""
    scope = graph.edges.scope
    [lists] = gathered(scope, "lists of targets", [(graph.edges, Exchange("src"))], [EDGES], _lists)
    [found] = gathered(scope, "closed pairs", [(lists, Pipeline()), (lists, Broadcast())], [_FOUND], _closed)
    named = names_of(graph.names, found, ["a", "b", "c"])
    return named.map_batches(_in_order, named.schema, name="order")


def _lists(info: ps.OperatorInfo, edges: Batches) -> list[Iterator[pa.RecordBatch]]:
    """Each edge once, by its source; the edges of one source are in one batch."""
    place = column(edges, "src") // info.peers
    out = Adjacency(place, column(edges, "dst"), int(place.max()) + 1 if len(place) else 0)
    source = (out.edges >> 32) * info.peers + info.index

    def batches() -> Iterator[pa.RecordBatch]:
        start = 0
        while start < len(source):
            # Up to the last source that fits, or one source whose list is longer than a piece.
            fits = np.searchsorted(out.first, start + PIECE, side="right") - 1
            end = int(out.first[fits])
            if end <= start:
                end = int(out.first[np.searchsorted(out.first, start, side="right")])
            yield pa.record_batch([source[start:end], out.target[start:end]], schema=EDGES)
            start = end

    return [batches()]


def _closed(info: ps.OperatorInfo, own: Batches, lists: Batches) -> list[Iterator[pa.RecordBatch]]:
    edges = _Set((column(own, "src") << 32) | column(own, "dst"))
    return [(found for batch in lists for found in _closed_of(batch, edges, info))]


def _closed_of(batch: pa.RecordBatch, edges: _Set, info: ps.OperatorInfo) -> Iterator[pa.RecordBatch]:
    """The triangles of the sources of a batch in which the second node is this worker's."""
    source, target = batch["src"].to_numpy(), batch["dst"].to_numpy()
    starts = np.flatnonzero(np.concatenate([[True], source[1:] != source[:-1]]))
    lengths = np.diff(np.append(starts, len(source)))
    start, length = np.repeat(starts, lengths), np.repeat(lengths, lengths)
    rows = np.flatnonzero(target % info.peers == info.index)
    rows = rows[length[rows] > 1]
    ends = np.cumsum(length[rows])
    begin = 0
    while begin < len(rows):
        done = int(ends[begin - 1]) if begin else 0
        end = max(int(np.searchsorted(ends, done + _PAIRS, side="right")), begin + 1)
        part = rows[begin:end]
        many = length[part]
        skipped = np.cumsum(many) - many
        other = np.arange(many.sum()) + np.repeat(start[part] - skipped, many)
        pairs = np.repeat(target[part] << 32, many) | target[other]
        hits = edges.positions_of(pairs)
        if len(hits):
            first = np.searchsorted(skipped, hits, side="right") - 1
            yield pa.record_batch(
                [source[part][first], pairs[hits] >> 32, pairs[hits] & 0xFFFFFFFF], schema=_FOUND
            )
        begin = end


class _Set:
    """A set of numbers, with a table of bits that rules out most that are not in it."""

    def __init__(self, numbers: Array) -> None:
        self._numbers = np.sort(numbers)
        self._shift = np.uint64(64 - max((16 * len(numbers)).bit_length(), 6))
        self._bits = np.zeros((1 << int(64 - self._shift)) >> 3, np.uint8)
        place = self._place(self._numbers)
        np.bitwise_or.at(self._bits, place >> 3, np.uint8(1) << (place & 7).astype(np.uint8))

    def _place(self, numbers: Array) -> Array:
        place: Array = (numbers.astype(np.uint64) * np.uint64(0x9E3779B97F4A7C15)) >> self._shift
        return place.astype(np.int64)

    def positions_of(self, numbers: Array) -> Array:
        """Returns the positions, in `numbers`, of the numbers that are in the set."""
        if not len(self._numbers):
            return np.zeros(0, np.int64)
        place = self._place(numbers)
        maybe = np.flatnonzero((self._bits[place >> 3] >> (place & 7).astype(np.uint8)) & 1)
        at = np.searchsorted(self._numbers, numbers[maybe])
        at = np.minimum(at, len(self._numbers) - 1)
        hits: Array = maybe[self._numbers[at] == numbers[maybe]]
        return hits


def _in_order(batch: pa.RecordBatch) -> pa.RecordBatch:
    """Puts the nodes of each triangle into their order."""
    a, b, c = batch.columns
    low, high = pc.min_element_wise(a, b), pc.max_element_wise(a, b)
    least, most = pc.min_element_wise(low, c), pc.max_element_wise(high, c)
    middle: Any = pc.max_element_wise(low, pc.min_element_wise(high, c))
    return pa.record_batch([least, middle, most], schema=batch.schema)
