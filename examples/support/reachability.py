"""A dataflow of the nodes that each node needs, directly or through others, and of mutual needs.

    reachability(edges, count)    edges: an ArrowStream of (source, target) with ids below `count`;
                                  gives (node, needs, needed_by, knot)

The edges of each time are a graph of their own.

`needs` is how many other nodes a node reaches, `needed_by` how many reach it, and `knot` the smallest id
of its strongly connected component: of those that it reaches and that reach it.

A node's set of nodes is a row of bits. In each round of the loop the nodes whose sets have grown pass on
what is new, along their edges: forwards the nodes that reach them, and backwards those that they reach. Both
meet on the worker that owns the node, whose knot is then the first bit that both have.

Sets of all nodes take 2 * count * count bits. So the loop runs once for each slice of ids, with the bits of
these alone: the memory is bounded, and grows with the edges only.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pyarrow as pa

import pointstamp as ps
from support.components import EDGES
from support.nodes import Array, Edges, Graphs, Nodes, Waiting, column

REACH = pa.schema(
    [("node", pa.int64()), ("needs", pa.int64()), ("needed_by", pa.int64()), ("knot", pa.int64())]
)
SIDED = pa.schema([*EDGES, ("side", pa.int8())])

FORWARD, BACKWARD = 0, 1
SLICE = 64  # words of a set that are passed on in one go, so that few are in memory twice
SETS = 256 << 20  # bytes of the sets of all nodes, for one slice of ids


def with_sides(edges: pa.RecordBatch) -> Iterator[pa.RecordBatch]:
    """The edges for the forward side, and turned around for the backward side."""
    source, target = edges["source"], edges["target"]
    for side, ends in ((FORWARD, [source, target]), (BACKWARD, [target, source])):
        yield pa.record_batch([*ends, np.full(len(source), side, np.int8)], schema=SIDED)


def reachability(edges: ps.ArrowStream, count: int, words: int | None = None) -> ps.ArrowStream:
    """The reach of every node of each time's graph, which consists of the edges at the time.

    Args:
        edges: The edges.
        count: The number that all ids are below.
        words: The words of 64 ids in a slice. By default, as many as `SETS` has space for.
    """
    all_words = -(-count // 64)
    words = words or min(all_words, max(SETS // (16 * count), 1))
    slices = -(-all_words // words)
    sets = pa.schema([("node", pa.int64()), ("side", pa.int8()), ("set", pa.binary(8 * words))])

    def grow(capabilities: list[ps.Capability], info: ps.OperatorInfo) -> Callable[..., None]:
        """The operator's constructor."""
        for capability in capabilities:
            capability.drop()
        graphs = Graphs(lambda edges: Reach(edges, words), outputs=2)
        waiting: Waiting[pa.RecordBatch] = Waiting()

        def logic(inputs: list[Any], outputs: list[Any]) -> None:
            edges, grown = inputs
            more, found = outputs
            for message, batch in edges:
                graphs.announce(message, batch)
            for message, batch in grown:
                waiting.add(message, batch)
            for capabilities, reach in graphs.complete(edges.frontier):
                begin(more, capabilities[0], reach)
            for capability, batches in waiting.over(grown.frontier):
                reach = graphs.of(capability)
                with capability:
                    send(more, capability, reach, *reach.take(batches))
            for capabilities, reach in graphs.over(grown.frontier):
                first, last = capabilities
                reach.counted()
                if reach.slice + 1 < slices:
                    reach.slice += 1
                    graphs.reopen(first, capabilities, reach)
                    begin(more, first, reach)
                else:
                    with last, found.session(last) as session:
                        session.give(reach.result())

        def begin(output: Any, first: ps.Capability, reach: Reach) -> None:
            """Begins a slice; keeps the capability for the next one."""
            send(output, first, reach, *reach.themselves())
            if reach.slice + 1 < slices:
                epoch: Any = first.time
                first.downgrade((*epoch[:-2], reach.slice + 1, 0))
            else:
                first.drop()

        def send(output: Any, capability: ps.Capability, reach: Reach, rows: Array, new: Array) -> None:
            with output.session(capability) as session:
                for part in reach.passed_on(rows, new):
                    session.give(pa.record_batch(part, schema=sets))

        return logic

    sided = edges.map_batches(with_sides, SIDED, name="both sides")
    # A time is (epoch, slice, round); nothing goes around in the outer scope.
    with edges.scope.iterative("slices") as outer, outer.iterative("reachability") as inner:
        handle, grown = inner.loop_variable(schema=sets)
        builder = inner.operator("reach")
        builder.new_input(sided.enter(outer).enter(inner), ps.Exchange("source"))
        builder.new_input(grown, ps.Exchange("node"))
        _, more = builder.new_output(sets)
        found, reached = builder.new_output(REACH)
        builder.set_summary(1, found, None)  # the result comes out once, when the loop has ended
        builder.build(grow)
        more.connect_loop(handle)
        result: ps.ArrowStream = reached.leave().leave()
    return result


class Reach:
    """The sets of one worker's nodes, of a slice of ids. A node has two rows, one for each side."""

    def __init__(self, graph: list[pa.RecordBatch], words: int) -> None:
        source, target, side = (column(graph, name) for name in SIDED.names)
        self.nodes, self.neighbours = Nodes(source), Nodes(target)
        self.rows, self.ends = 2 * len(self.nodes), 2 * len(self.neighbours)
        self.edges = Edges(2 * self.nodes.at(source) + side, 2 * self.neighbours.at(target) + side, self.rows)
        self.slice, self.words = 0, words
        self.set = np.zeros((self.rows, words), np.uint64)
        self.passed = np.zeros((self.ends, words), np.uint64)
        self.needs, self.needed_by = np.zeros((2, len(self.nodes)), np.int64)
        self.knot = np.full(len(self.nodes), -1)

    def themselves(self) -> tuple[Array, Array]:
        """Puts the nodes of the slice into their own sets; returns their rows, and the new bits."""
        self.set[:] = 0
        self.passed[:] = 0
        place, bit = np.divmod(self.nodes.ids - 64 * self.words * self.slice, 64)
        there = np.flatnonzero((place >= 0) & (place < self.words))
        rows = (2 * there[:, None] + [FORWARD, BACKWARD]).ravel()
        bits = np.left_shift(np.uint64(1), bit.astype(np.uint64))
        self.set[rows, np.repeat(place[there], 2)] = np.repeat(bits[there], 2)
        return rows, self.set[rows]

    def take(self, batches: list[pa.RecordBatch]) -> tuple[Array, Array]:
        """Adds arriving bits to the sets; returns the rows that have grown, and their new bits."""
        rows = 2 * self.nodes.at(column(batches, "node")) + column(batches, "side")
        given = np.concatenate([bits_of(batch["set"]) for batch in batches])
        rows, given = merged(rows, given)
        given &= ~self.set[rows]
        grown = given.any(axis=1)
        rows, given = rows[grown], given[grown]
        self.set[rows] |= given
        return rows, given

    def passed_on(self, rows: Array, new: Array) -> Iterator[list[Any]]:
        """Yields the new bits of these rows that their neighbours have not received, as columns."""
        ends = self.edges.of(rows)
        if not len(ends):
            return
        start = np.repeat(np.arange(len(rows)), self.edges.degrees(rows))
        order = np.argsort(ends, kind="stable")
        start, ends = start[order], ends[order]
        first = np.flatnonzero(np.diff(ends, prepend=-1))
        to = ends[first]
        told = np.empty((len(to), new.shape[1]), np.uint64)
        for word in range(0, new.shape[1], SLICE):
            part = new[:, word : word + SLICE]
            np.bitwise_or.reduceat(part[start], first, axis=0, out=told[:, word : word + SLICE])
        told &= ~self.passed[to]
        news = told.any(axis=1)
        to, told = to[news], told[news]
        self.passed[to] |= told
        yield [self.neighbours.ids[to // 2], (to % 2).astype(np.int8), column_of(told)]

    def counted(self) -> None:
        """Counts the bits of a slice that has ended, and finds the knots that are in it."""
        reaching, reached = self.set[FORWARD::2], self.set[BACKWARD::2]
        self.needs += np.bitwise_count(reached).sum(axis=1, dtype=np.int64)
        self.needed_by += np.bitwise_count(reaching).sum(axis=1, dtype=np.int64)
        open_ = np.flatnonzero(self.knot < 0)
        both = reaching[open_] & reached[open_]
        word = (both != 0).argmax(axis=1)
        bits = both[np.arange(len(both)), word]
        lowest = np.bitwise_count((bits & (~bits + np.uint64(1))) - np.uint64(1)).astype(np.int64)
        found = np.flatnonzero(bits)
        self.knot[open_[found]] = (64 * (self.words * self.slice + word) + lowest)[found]

    def result(self) -> pa.RecordBatch:
        """The numbers and the knots of this worker's nodes."""
        return pa.record_batch([self.nodes.ids, self.needs - 1, self.needed_by - 1, self.knot], schema=REACH)


def merged(rows: Array, sets: Array) -> tuple[Array, Array]:
    """Each row once, with the union of its sets."""
    order = np.argsort(rows, kind="stable")
    rows = rows[order]
    first = np.flatnonzero(np.diff(rows, prepend=-1))
    return rows[first], np.bitwise_or.reduceat(sets[order], first, axis=0)


def bits_of(column: pa.FixedSizeBinaryArray) -> Array:
    """The sets of a column, as rows of words."""
    words = column.type.byte_width // 8
    data = np.frombuffer(column.buffers()[1], np.uint64)
    return data[column.offset * words : (column.offset + len(column)) * words].reshape(-1, words)


def column_of(sets: Array) -> pa.FixedSizeBinaryArray:
    """Rows of words as a column."""
    width = 8 * sets.shape[1]
    return pa.FixedSizeBinaryArray.from_buffers(pa.binary(width), len(sets), [None, pa.py_buffer(sets)])
