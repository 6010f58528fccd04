"""Distances from node 0 in a random graph: breadth-first search, a level in each round of a loop.

python examples/bfs_arrow.py --nodes 200000 --edges 800000 --workers 2

A worker owns the nodes whose number is its own by ``node % workers``, with the edges that lead out of them.
The round in which a node is first reached is its distance. A small graph is checked against NetworkX.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from typing import Any

import numpy as np
import pyarrow as pa

import pointstamp as ps
from support.arrays import EDGES, Part, Rounds, arguments, batch_of, in_order, loop, random_edges, verdict

FOUND = pa.schema([("node", pa.int64())])

SMALL = 20_000
FAR = -1


def far(part: Part) -> np.ndarray:
    """The distances of a worker's nodes before any was found."""
    return np.full(len(part.nodes), FAR, np.int64)


def visit(distance: np.ndarray, part: Part, now: Any, batches: list[pa.RecordBatch]) -> pa.RecordBatch:
    """New nodes reach their targets, if these had not been reached before."""
    places = np.unique(np.concatenate([part.places(batch["node"]) for batch in batches]))
    new = places[distance[places] == FAR]
    distance[new] = now[1]  # (epoch, round)
    targets, _ = part.after(new)
    return pa.record_batch([np.unique(targets)], schema=FOUND)


def search(
    edges: ps.ArrowStream, roots: ps.ArrowStream, nodes: int, over: Callable[[Any, np.ndarray], None]
) -> ps.ArrowStream:
    """Searches each epoch's graph from its roots; `over` gets the epoch and this worker's distances."""
    return loop(edges, FOUND, "distances", Rounds(nodes, far, visit, over).build, roots)


def bfs(worker: ps.Worker, nodes: int, edges: np.ndarray) -> np.ndarray:
    """The distances of this worker's nodes, in order; `edges` is its share of the edges, two columns."""
    found: dict[Any, np.ndarray] = {}
    graph, roots = ps.ArrowInput(EDGES), ps.ArrowInput(FOUND)
    with worker.dataflow("bfs") as scope:
        search(graph.to_stream(scope), roots.to_stream(scope), nodes, found.__setitem__)
    graph.send(batch_of(edges))
    if worker.index == 0:
        roots.send(pa.record_batch([[0]], schema=FOUND))
    graph.close()
    roots.close()
    worker.run()
    return found.get((0,), far(Part(nodes, worker.index, worker.peers)))


def main() -> int:
    """Makes a graph, searches it, and checks the distances."""
    options = arguments(__doc__.splitlines()[0], edges=800_000).parse_args()
    nodes, workers = options.nodes, options.workers
    edges = random_edges(options, seed=2)

    start = time.perf_counter()
    parts = ps.execute(lambda worker: bfs(worker, nodes, edges[worker.index :: workers]), workers=workers)
    seconds = time.perf_counter() - start
    distance = in_order(parts)
    print(
        f"{nodes} nodes, {len(edges)} edges: {np.count_nonzero(distance != FAR)} reached in {seconds:.2f} s"
    )

    if nodes > SMALL:
        return 0
    import networkx

    graph = networkx.DiGraph(edges.tolist())
    graph.add_nodes_from(range(nodes))
    expected = networkx.single_source_shortest_path_length(graph, 0)
    return verdict(all(distance[node] == expected.get(node, FAR) for node in range(nodes)))


if __name__ == "__main__":
    sys.exit(main())
