"""Distances from node 0 in a random graph: breadth-first search, a level in each round of a loop.

python examples/bfs_arrow.py --nodes 200000 --edges 800000 --workers 2

A worker owns the nodes whose number it gets by ``node % workers``, with the edges that lead out of them. The
round in which a node is first heard of is its distance. A small graph is checked against NetworkX.
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

EDGES = pa.schema([("node", pa.int64()), ("next", pa.int64())])
FOUND = pa.schema([("node", pa.int64())])

SMALL = 20_000
FAR = -1


class Distances:
    """The distances of one worker's nodes, and the operator that finds them."""

    def __init__(self, nodes: int, index: int, peers: int) -> None:
        self.peers = peers
        self.distance = np.full(len(range(index, nodes, peers)), FAR, np.int64)
        self.edges: list[tuple[np.ndarray, np.ndarray]] = []
        self.starts = np.zeros(len(self.distance) + 1, np.int64)
        self.next = np.zeros(0, np.int64)

    def build(self, capability: ps.Capability, info: ps.OperatorInfo) -> Callable[..., None]:
        """The operator's constructor: its inputs are the edges and the nodes that were found."""
        capability.drop()
        waiting: dict[Any, tuple[ps.Capability, list[np.ndarray]]] = {}

        def logic(edges: Any, found: Any, output: Any) -> None:
            for _, batch in edges:
                self.edges.append((batch["node"].to_numpy(), batch["next"].to_numpy()))
            for message, batch in found:
                if message.time not in waiting:
                    waiting[message.time] = message.retain(), []
                waiting[message.time][1].append(batch["node"].to_numpy())
            if edges.frontier:
                return  # the graph is not complete yet
            if self.edges:
                self.index_edges()
            for now in sorted(t for t in waiting if not found.frontier.less_equal(t)):
                held, batches = waiting.pop(now)
                nodes = np.unique(np.concatenate(batches)) // self.peers
                new = nodes[self.distance[nodes] == FAR]
                self.distance[new] = now[1]  # (epoch, round)
                with held, output.session(held) as session:
                    if len(new):
                        session.give(pa.record_batch([self.after(new)], schema=FOUND))

        return logic

    def index_edges(self) -> None:
        """Brings the edges into the order of their nodes, so that a node's are one slice."""
        node = np.concatenate([node for node, _ in self.edges]) // self.peers
        following = np.concatenate([following for _, following in self.edges])
        self.edges.clear()
        self.next = following[np.argsort(node, kind="stable")]
        np.cumsum(np.bincount(node, minlength=len(self.distance)), out=self.starts[1:])

    def after(self, nodes: np.ndarray) -> np.ndarray:
        """The nodes that edges from these lead to, each once."""
        first, degrees = self.starts[nodes], self.starts[nodes + 1] - self.starts[nodes]
        skipped = np.cumsum(degrees) - degrees
        return np.unique(self.next[np.arange(degrees.sum()) + np.repeat(first - skipped, degrees)])


def bfs(worker: ps.Worker, nodes: int, ends: np.ndarray) -> np.ndarray:
    """The distances of this worker's nodes, in order; `ends` is its share of the edges, two columns."""
    edges, roots = ps.ArrowInput(EDGES), ps.ArrowInput(FOUND)
    distances = Distances(nodes, worker.index, worker.peers)
    by_node = ps.Exchange("node")
    with worker.dataflow("bfs") as scope:
        graph, start = edges.to_stream(scope), roots.to_stream(scope)
        with scope.iterative() as inner:
            handle, again = inner.loop_variable(schema=FOUND)
            found = start.enter(inner).concat(again)
            (
                graph.enter(inner)
                .binary_frontier(found, by_node, by_node, "distances", distances.build, schema=FOUND)
                .connect_loop(handle)
            )
    edges.send(pa.record_batch([ends[:, 0].copy(), ends[:, 1].copy()], schema=EDGES))
    if worker.index == 0:
        roots.send(pa.record_batch([[0]], schema=FOUND))
    edges.close()
    roots.close()
    worker.run()
    return distances.distance


def main() -> int:
    """Makes a graph, searches it, and checks the distances."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--nodes", type=int, default=200_000)
    parser.add_argument("--edges", type=int, default=800_000)
    parser.add_argument("--workers", type=int, default=2)
    arguments = parser.parse_args()
    nodes, workers = arguments.nodes, arguments.workers
    ends = np.random.default_rng(2).integers(0, nodes, (arguments.edges, 2))

    start = time.perf_counter()
    parts = ps.execute(lambda worker: bfs(worker, nodes, ends[worker.index :: workers]), workers=workers)
    seconds = time.perf_counter() - start
    distance = np.empty(nodes, np.int64)
    for index, part in enumerate(parts):
        distance[index::workers] = part
    print(f"{nodes} nodes, {len(ends)} edges: {np.count_nonzero(distance != FAR)} reached in {seconds:.2f} s")

    if nodes > SMALL:
        return 0
    import networkx

    graph = networkx.DiGraph(ends.tolist())
    graph.add_nodes_from(range(nodes))
    expected = networkx.single_source_shortest_path_length(graph, 0)
    right = all(distance[node] == expected.get(node, FAR) for node in range(nodes))
    print("as NetworkX says" if right else "NOT as NetworkX says")
    return 0 if right else 1


if __name__ == "__main__":
    sys.exit(main())
