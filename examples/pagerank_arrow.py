"""PageRank of a random graph: in each round of a loop, every node shares its rank with those it links to.

python examples/pagerank_arrow.py --nodes 200000 --edges 800000 --workers 2

A worker owns the nodes whose number it gets by ``node % workers``, with their links. It adds up shares
before it sends them, so that a node gets one from each worker. In every round it keeps the capability for
the next one, because its nodes share their ranks whether or not they were given any. A small graph is
checked against NetworkX.
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

LINKS = pa.schema([("node", pa.int64()), ("to", pa.int64())])
SHARES = pa.schema([("node", pa.int64()), ("share", pa.float64())])

DAMPING = 0.85
SMALL = 3_000


class Ranks:
    """The ranks of one worker's nodes, and the operator that computes them."""

    def __init__(self, nodes: int, rounds: int, index: int, peers: int) -> None:
        self.nodes, self.rounds, self.peers = nodes, rounds, peers
        self.rank = np.full(len(range(index, nodes, peers)), 1.0 / nodes)
        self.links: list[tuple[np.ndarray, np.ndarray]] = []
        self.source = self.target = np.zeros(0, np.int64)
        self.degree = np.ones(len(self.rank))

    def build(self, capability: ps.Capability, info: ps.OperatorInfo) -> Callable[..., None]:
        """The operator's constructor: its inputs are the links and the shares."""
        held: ps.Capability | None = capability
        given: dict[ps.Time, np.ndarray] = {}

        def logic(links: Any, shares: Any, output: Any) -> None:
            nonlocal held
            for _, batch in links:
                self.links.append((batch["node"].to_numpy(), batch["to"].to_numpy()))
            for message, batch in shares:
                total = given.setdefault(message.time, np.zeros(len(self.rank)))
                np.add.at(total, batch["node"].to_numpy() // self.peers, batch["share"].to_numpy())
            if links.frontier:
                return  # the graph is not complete yet
            if self.links:
                self.index_links()
            while held is not None and not shares.frontier.less_equal(held.time):
                at: Any = held.time
                epoch, round = at
                if round > 0:
                    total = given.pop(held.time, np.zeros(len(self.rank)))
                    self.rank = (1 - DAMPING) / self.nodes + DAMPING * total
                if round == self.rounds:
                    held.drop()
                    held = None
                    return
                with output.session(held) as session:
                    session.give(self.shared())
                held.downgrade((epoch, round + 1))

        return logic

    def index_links(self) -> None:
        """Keeps the links as two columns, and how many each node has."""
        self.source = np.concatenate([node for node, _ in self.links]) // self.peers
        self.target = np.concatenate([to for _, to in self.links])
        self.links.clear()
        self.degree = np.maximum(np.bincount(self.source, minlength=len(self.rank)), 1)

    def shared(self) -> pa.RecordBatch:
        """What this worker's nodes give in a round, added up."""
        shares = np.bincount(self.target, (self.rank / self.degree)[self.source], minlength=self.nodes)
        nodes = np.flatnonzero(shares)
        return pa.record_batch([nodes, shares[nodes]], schema=SHARES)


def pagerank(worker: ps.Worker, nodes: int, rounds: int, ends: np.ndarray) -> np.ndarray:
    """The ranks of this worker's nodes, in order; `ends` is this worker's share of the links, two columns."""
    links = ps.ArrowInput(LINKS)
    ranks = Ranks(nodes, rounds, worker.index, worker.peers)
    by_node = ps.Exchange("node")
    with worker.dataflow("pagerank") as scope:
        graph = links.to_stream(scope)
        with scope.iterative() as inner:
            handle, shares = inner.loop_variable(schema=SHARES)
            (
                graph.enter(inner)
                .binary_frontier(shares, by_node, by_node, "ranks", ranks.build, schema=SHARES)
                .connect_loop(handle)
            )
    links.send(pa.record_batch([ends[:, 0].copy(), ends[:, 1].copy()], schema=LINKS))
    links.close()
    worker.run()
    return ranks.rank


def main() -> int:
    """Makes a graph, ranks its nodes, and checks the ranks."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--nodes", type=int, default=200_000)
    parser.add_argument("--edges", type=int, default=800_000)
    parser.add_argument("--rounds", type=int, default=50)
    parser.add_argument("--workers", type=int, default=2)
    arguments = parser.parse_args()
    nodes, rounds, workers = arguments.nodes, arguments.rounds, arguments.workers
    ends = np.random.default_rng(3).integers(0, nodes, (arguments.edges, 2))
    # Every node links to another, so that no rank is lost, and to none twice, which NetworkX would not see.
    ring = np.stack([np.arange(nodes), (np.arange(nodes) + 1) % nodes], axis=1)
    ends = np.unique(np.concatenate([ends, ring]), axis=0)

    start = time.perf_counter()
    parts = ps.execute(
        lambda worker: pagerank(worker, nodes, rounds, ends[worker.index :: workers]), workers=workers
    )
    seconds = time.perf_counter() - start
    rank = np.empty(nodes)
    for index, part in enumerate(parts):
        rank[index::workers] = part
    top = ", ".join(f"{node} ({rank[node]:.2e})" for node in np.argsort(-rank)[:3])
    print(f"{nodes} nodes, {len(ends)} links, {rounds} rounds in {seconds:.2f} s: {top}")

    if nodes > SMALL:
        return 0
    import networkx

    # The ranks are what the Google matrix of the graph leaves as it is.
    graph = networkx.DiGraph(ends.tolist())
    matrix = networkx.google_matrix(graph, alpha=DAMPING, nodelist=range(nodes))
    right = np.allclose(rank @ matrix, rank, rtol=1e-5, atol=0)
    print("as NetworkX says" if right else "NOT as NetworkX says")
    return 0 if right else 1


if __name__ == "__main__":
    sys.exit(main())
