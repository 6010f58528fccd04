"""Connected components of a random graph, with NumPy inside a loop over record batches.

python examples/connected_components_arrow.py --nodes 200000 --edges 400000 --workers 2

A worker owns the nodes whose number it gets by ``node % workers``, with their edges. A node's label is the
least number that it has heard of, first its own. Whoever's label got smaller tells its neighbours, in the
next round of the loop; when nobody's did, the loop is over. A small graph is checked against NetworkX.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable
from typing import Any

import numpy as np
import pyarrow as pa

import pointstamp as ps

EDGES = pa.schema([("node", pa.int64()), ("neighbour", pa.int64())])
LABELS = pa.schema([("node", pa.int64()), ("label", pa.int64())])

SMALL = 20_000


class Labels:
    """The labels of one worker's nodes, and the operator that makes them smaller."""

    def __init__(self, nodes: int, index: int, peers: int) -> None:
        self.peers = peers
        owned = len(range(index, nodes, peers))
        self.label = np.full(owned, nodes, np.int64)
        self.edges: list[tuple[np.ndarray, np.ndarray]] = []
        self.starts = np.zeros(owned + 1, np.int64)
        self.neighbours = np.zeros(0, np.int64)

    def build(self, capability: ps.Capability, info: ps.OperatorInfo) -> Callable[..., None]:
        """The operator's constructor: its inputs are the edges and the labels that nodes are told."""
        capability.drop()
        told: dict[ps.Time, tuple[ps.Capability, list[pa.RecordBatch]]] = {}

        def logic(edges: Any, labels: Any, output: Any) -> None:
            for _, batch in edges:
                self.edges.append((batch["node"].to_numpy(), batch["neighbour"].to_numpy()))
            for message, batch in labels:
                if message.time not in told:
                    told[message.time] = message.retain(), []
                told[message.time][1].append(batch)
            if edges.frontier:
                return  # the graph is not complete yet
            if self.edges:
                self.index_edges()
            for now in sorted(t for t in told if not labels.frontier.less_equal(t)):
                held, batches = told.pop(now)
                smaller = self.take(batches)
                with held, output.session(held) as session:
                    if len(smaller):
                        session.give(self.spread(smaller))

        return logic

    def index_edges(self) -> None:
        """Brings the edges into the order of their nodes, so that a node's are one slice."""
        node = np.concatenate([node for node, _ in self.edges]) // self.peers
        neighbour = np.concatenate([neighbour for _, neighbour in self.edges])
        self.edges.clear()
        self.neighbours = neighbour[np.argsort(node, kind="stable")]
        np.cumsum(np.bincount(node, minlength=len(self.label)), out=self.starts[1:])

    def take(self, batches: list[pa.RecordBatch]) -> np.ndarray:
        """Takes the labels that nodes were told, and returns the nodes for which they are smaller."""
        before = self.label.copy()
        for batch in batches:
            np.minimum.at(self.label, batch["node"].to_numpy() // self.peers, batch["label"].to_numpy())
        return np.flatnonzero(self.label < before)

    def spread(self, nodes: np.ndarray) -> pa.RecordBatch:
        """What these nodes tell their neighbours."""
        first, degrees = self.starts[nodes], self.starts[nodes + 1] - self.starts[nodes]
        skipped = np.cumsum(degrees) - degrees
        edges = np.arange(degrees.sum()) + np.repeat(first - skipped, degrees)
        return pa.record_batch([self.neighbours[edges], np.repeat(self.label[nodes], degrees)], schema=LABELS)


def connected_components(worker: ps.Worker, nodes: int, ends: np.ndarray) -> np.ndarray:
    """The labels of this worker's nodes, in order; `ends` is its share of the edges, two columns."""
    edges, own = ps.ArrowInput(EDGES), ps.ArrowInput(LABELS)
    labels = Labels(nodes, worker.index, worker.peers)
    with worker.dataflow("connected components") as scope:
        graph, first = edges.to_stream(scope), own.to_stream(scope)
        with scope.iterative() as inner:
            handle, again = inner.loop_variable(schema=LABELS)
            (
                graph.enter(inner)
                .binary_frontier(
                    first.enter(inner).concat(again),
                    ps.Exchange("node"),
                    ps.Exchange("node"),
                    "labels",
                    labels.build,
                    schema=LABELS,
                )
                .connect_loop(handle)
            )
    both = np.concatenate([ends, ends[:, ::-1]])
    edges.send(pa.record_batch([both[:, 0].copy(), both[:, 1].copy()], schema=EDGES))
    mine = np.arange(worker.index, nodes, worker.peers)
    own.send(pa.record_batch([mine, mine], schema=LABELS))
    edges.close()
    own.close()
    worker.run()
    return labels.label


def main() -> int:
    """Makes a graph, finds its components, and checks them."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--nodes", type=int, default=200_000)
    parser.add_argument("--edges", type=int, default=400_000)
    parser.add_argument("--workers", type=int, default=2)
    arguments = parser.parse_args()
    nodes, workers = arguments.nodes, arguments.workers
    ends = np.random.default_rng(1).integers(0, nodes, (arguments.edges, 2))

    start = time.perf_counter()
    parts = ps.execute(
        lambda worker: connected_components(worker, nodes, ends[worker.index :: workers]), workers=workers
    )
    seconds = time.perf_counter() - start
    label = np.empty(nodes, np.int64)
    for index, part in enumerate(parts):
        label[index::workers] = part
    print(f"{nodes} nodes, {len(ends)} edges: {len(np.unique(label))} components in {seconds:.2f} s")

    if nodes > SMALL:
        return 0
    import networkx

    graph = networkx.Graph(ends.tolist())
    graph.add_nodes_from(range(nodes))
    expected = {node: min(part) for part in networkx.connected_components(graph) for node in part}
    right = all(label[node] == expected[node] for node in range(nodes))
    print("as NetworkX says" if right else "NOT as NetworkX says")
    return 0 if right else 1


if __name__ == "__main__":
    sys.exit(main())
