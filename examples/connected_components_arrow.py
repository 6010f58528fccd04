"""Connected components of a random graph, with NumPy inside a loop over record batches.

python examples/connected_components_arrow.py --nodes 200000 --edges 400000 --workers 2

A worker owns the nodes whose number is its own by ``node % workers``, with their edges. A node's label is the
least number that it has received, first its own. A node whose label got smaller sends it to its neighbours,
in the next round of the loop; when none did, the loop is over. A small graph is checked against NetworkX.
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

LABELS = pa.schema([("node", pa.int64()), ("label", pa.int64())])

SMALL = 20_000


def unlabelled(part: Part) -> np.ndarray:
    """The labels of a worker's nodes before any was sent: larger than all."""
    return np.full(len(part.nodes), np.iinfo(np.int64).max)


def improve(label: np.ndarray, part: Part, _: Any, batches: list[pa.RecordBatch]) -> pa.RecordBatch:
    """Nodes take the labels that they receive, and send their neighbours those that are smaller."""
    before = label.copy()
    for batch in batches:
        np.minimum.at(label, part.places(batch["node"]), batch["label"].to_numpy())
    smaller = np.flatnonzero(label < before)
    neighbours, degrees = part.after(smaller)
    return pa.record_batch([neighbours, np.repeat(label[smaller], degrees)], schema=LABELS)


def components(
    edges: ps.ArrowStream, own: ps.ArrowStream, nodes: int, over: Callable[[Any, np.ndarray], None]
) -> ps.ArrowStream:
    """Labels the nodes of each epoch's graph; `over` gets the epoch and the labels of this worker's nodes.

    Edges are there in both directions, and `own` has each node with its own number as its label.
    """
    return loop(edges, LABELS, "labels", Rounds(nodes, unlabelled, improve, over).build, own)


def connected_components(worker: ps.Worker, nodes: int, edges: np.ndarray) -> np.ndarray:
    """The labels of this worker's nodes, in order; `edges` is its share of the edges, two columns."""
    found: dict[Any, np.ndarray] = {}
    mine = np.arange(worker.index, nodes, worker.peers)
    graph, own = ps.ArrowInput(EDGES), ps.ArrowInput(LABELS)
    with worker.dataflow("connected components") as scope:
        components(graph.to_stream(scope), own.to_stream(scope), nodes, found.__setitem__)
    graph.send(batch_of(np.concatenate([edges, edges[:, ::-1]])))
    own.send(pa.record_batch([mine, mine], schema=LABELS))
    graph.close()
    own.close()
    worker.run()
    return found.get((0,), mine)


def main() -> int:
    """Makes a graph, finds its components, and checks them."""
    options = arguments(__doc__.splitlines()[0], edges=400_000).parse_args()
    nodes, workers = options.nodes, options.workers
    edges = random_edges(options, seed=1)

    start = time.perf_counter()
    parts = ps.execute(
        lambda worker: connected_components(worker, nodes, edges[worker.index :: workers]), workers=workers
    )
    seconds = time.perf_counter() - start
    label = in_order(parts)
    print(f"{nodes} nodes, {len(edges)} edges: {len(np.unique(label))} components in {seconds:.2f} s")

    if nodes > SMALL:
        return 0
    import networkx

    graph = networkx.Graph(edges.tolist())
    graph.add_nodes_from(range(nodes))
    expected = {node: min(part) for part in networkx.connected_components(graph) for node in part}
    return verdict(all(label[node] == expected[node] for node in range(nodes)))


if __name__ == "__main__":
    sys.exit(main())
