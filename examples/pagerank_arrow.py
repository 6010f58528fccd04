"""PageRank of a random graph: in each round of a loop, every node shares its rank with its targets.

python examples/pagerank_arrow.py --nodes 200000 --edges 800000 --workers 2

A worker owns the nodes whose number it gets by ``node % workers``, with their links. It adds up shares
before it sends them, so that a node gets one from each worker. In every round it keeps the capability for
the next one, because its nodes share their ranks whether or not they were given any. A small graph is
checked against NetworkX.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from typing import Any

import numpy as np
import pyarrow as pa

import pointstamp as ps
from support.arrays import EDGES, Part, arguments, batch_of, in_order, loop, random_edges, verdict
from support.epochs import PerEpoch

SHARES = pa.schema([("node", pa.int64()), ("share", pa.float64())])

DAMPING = 0.85
SMALL = 3_000


class Ranks:
    """The ranks of one worker's nodes in one epoch."""

    def __init__(self, nodes: int, rounds: int, part: Part) -> None:
        self.nodes, self.rounds, self.part = nodes, rounds, part
        self.rank = np.full(len(part.nodes), 1.0 / nodes)
        self.given: dict[int, np.ndarray] = {}
        """By round, the shares of each node."""

    def take(self, round: int, batch: pa.RecordBatch) -> None:
        """Notes the shares of nodes in a round."""
        total = self.given.setdefault(round, np.zeros(len(self.rank)))
        np.add.at(total, self.part.places(batch["node"]), batch["share"].to_numpy())

    def after(self, round: int) -> np.ndarray:
        """The ranks when all of a round has been given."""
        if round > 0:
            total = self.given.pop(round, np.zeros(len(self.rank)))
            self.rank = (1 - DAMPING) / self.nodes + DAMPING * total
        return self.rank

    def shared(self) -> pa.RecordBatch:
        """Returns the ranks that this worker's nodes give in a round, added up."""
        share = np.repeat(self.rank / np.maximum(self.part.degrees, 1), self.part.degrees)
        shares = np.bincount(self.part.targets, share, minlength=self.nodes)
        nodes = np.flatnonzero(shares)
        return pa.record_batch([nodes, shares[nodes]], schema=SHARES)


def ranks(
    links: ps.ArrowStream, nodes: int, rounds: int, over: Callable[[Any, np.ndarray], None]
) -> ps.ArrowStream:
    """Ranks the nodes of each epoch's graph; `over` gets the epoch and the ranks of this worker's nodes."""

    def build(capability: ps.Capability, info: ps.OperatorInfo) -> Callable[..., None]:
        """The operator's constructor: its inputs are the links and the shares."""
        capability.drop()
        epochs = PerEpoch(lambda: Ranks(nodes, rounds, Part(nodes, info.index, info.peers)))
        next_round: dict[Any, ps.Capability] = {}  # of the epochs in which this worker has links

        def logic(links: Any, shares: Any, output: Any) -> None:
            for message, batch in links:
                if message.time[0] not in next_round:
                    next_round[message.time[0]] = message.retain()
                epochs.at(message.time).part.add(batch)
            for message, batch in shares:
                epochs.at(message.time).take(message.time[1], batch)
            frontiers = [links.frontier, shares.frontier]
            for epoch, held in list(next_round.items()):
                while not any(frontier.less_equal(held.time) for frontier in frontiers):
                    at: Any = held.time
                    own = epochs.at(at)
                    if at[1] == rounds:
                        next_round.pop(epoch).drop()
                        break
                    own.part.complete()
                    own.after(at[1])
                    with output.session(held) as session:
                        session.give(own.shared())
                    held.downgrade((epoch, at[1] + 1))
            for done, own in epochs.forget(*frontiers):
                over(done, own.after(rounds))

        return logic

    return loop(links, SHARES, "ranks", build)


def pagerank(worker: ps.Worker, nodes: int, rounds: int, edges: np.ndarray) -> np.ndarray:
    """The ranks of this worker's nodes, in order; `edges` is its share of the links, two columns."""
    links = ps.ArrowInput(EDGES)
    found: dict[Any, np.ndarray] = {}
    with worker.dataflow("pagerank") as scope:
        ranks(links.to_stream(scope), nodes, rounds, found.__setitem__)
    links.send(batch_of(edges))
    links.close()
    worker.run()
    return found[0,]


def main() -> int:
    """Makes a graph, ranks its nodes, and checks the ranks."""
    parser = arguments(__doc__.splitlines()[0], edges=800_000)
    parser.add_argument("--rounds", type=int, default=50)
    options = parser.parse_args()
    nodes, rounds, workers = options.nodes, options.rounds, options.workers
    # Every node links to another, so that no rank is lost, and to none twice, which NetworkX would not see.
    ring = np.stack([np.arange(nodes), (np.arange(nodes) + 1) % nodes], axis=1)
    edges = np.unique(np.concatenate([random_edges(options, seed=3), ring]), axis=0)

    start = time.perf_counter()
    parts = ps.execute(
        lambda worker: pagerank(worker, nodes, rounds, edges[worker.index :: workers]), workers=workers
    )
    seconds = time.perf_counter() - start
    rank = in_order(parts)
    top = ", ".join(f"{node} ({rank[node]:.2e})" for node in np.argsort(-rank)[:3])
    print(f"{nodes} nodes, {len(edges)} links, {rounds} rounds in {seconds:.2f} s: {top}")

    if nodes > SMALL:
        return 0
    import networkx

    # The ranks are what the Google matrix of the graph leaves as it is.
    graph = networkx.DiGraph(edges.tolist())
    matrix = networkx.google_matrix(graph, alpha=DAMPING, nodelist=range(nodes))
    return verdict(np.allclose(rank @ matrix, rank, rtol=1e-5, atol=0))


if __name__ == "__main__":
    sys.exit(main())
