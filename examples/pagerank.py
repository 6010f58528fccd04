"""PageRank: ranks flow along edges, round after round, and all of a round is there before the next begins.

Each worker keeps the nodes whose number leads to it. In every round a node passes its rank on to its
targets, in equal shares; the rank of nodes without edges is shared among all. The loop ends after a number
of rounds.

    python examples/pagerank.py --nodes 1000 --edges 5000 --rounds 50 --check
"""

import sys
from collections import defaultdict
from collections.abc import Callable
from typing import Any

import pointstamp as ps
from support.epochs import PerEpoch
from support.graphs import Edge, arguments, edges_of, nodes_of

DAMPING = 0.85


def ranking(nodes: set[int], rounds: int) -> Callable[..., Any]:
    """Makes the constructor of the operator that ranks.

    Its inputs are edges, and shares ``(worker, node, amount)``: the node is None for what all nodes of
    the worker divide among them. It sends the same, and after the last round the ranks, as ``(None,
    node, rank)``. Each epoch is a graph of its own, over the same nodes; what says that it has begun is on
    the third input, of every worker.
    """
    total = len(nodes)

    def build(capabilities: list[ps.Capability], info: ps.OperatorInfo) -> Callable[..., None]:
        mine = [node for node in nodes if node % info.peers == info.index]
        graphs: PerEpoch[defaultdict[int, list[int]]] = PerEpoch(lambda: defaultdict(list))
        shares: defaultdict[ps.Time, defaultdict[int | None, float]]
        shares = defaultdict(lambda: defaultdict(float))
        ready = ps.FrontierNotificator()
        for capability in capabilities:
            capability.drop()

        def rank(received: dict[int | None, float], round: int) -> dict[int, float]:
            if round == 0:
                return {node: 1 / total for node in mine}
            everyone = (1 - DAMPING + DAMPING * received.get(None, 0.0)) / total
            return {node: everyone + DAMPING * received.get(node, 0.0) for node in mine}

        def logic(inputs: Any, outputs: Any) -> None:
            edges, incoming, begun = inputs
            [output] = outputs
            for message, _ in begun:
                if message.time not in shares:  # every worker has a first round, whatever else arrives
                    shares[message.time]
                    ready.notify_at(message.retain())
            for message, batch in edges:
                targets = graphs.at(message.time)
                for source, target in batch:
                    targets[source].append(target)
            for message, batch in incoming:
                received = shares[message.time]
                for _, node, amount in batch:
                    received[node] += amount
            for cap in ready.ready(*(input.frontier for input in inputs)):
                time: Any = cap.time
                epoch, round = time
                targets = graphs.at(time)
                ranks = rank(shares.pop(time, {}), round)
                with cap, output.session(cap) as session:
                    if round == rounds:
                        session.give_all((None, node, value) for node, value in ranks.items())
                        continue
                    ready.notify_at(cap.delayed((epoch, round + 1)))
                    idle = 0.0
                    for node, value in ranks.items():
                        for target in targets[node]:
                            session.give((target % info.peers, target, value / len(targets[node])))
                        if not targets[node]:
                            idle += value
                    session.give_all((worker, None, idle) for worker in range(info.peers))
            graphs.forget(*(input.frontier for input in inputs))

        return logic

    return build


def ranks_of(graph: ps.Stream[Edge], nodes: set[int], rounds: int) -> ps.Stream[tuple[None, int, float]]:
    """The rank of every node by each time's edges, as ``(None, node, rank)``."""
    begun = graph.map_batches(lambda edges: edges[:1]).broadcast()
    with graph.scope.iterative() as loop:
        handle, again = loop.loop_variable()
        builder = loop.operator("Rank")
        builder.new_input(graph.enter(loop), ps.Exchange(lambda edge: edge[0]))
        builder.new_input(again, ps.Exchange(lambda share: share[0]))
        builder.new_input(begun.enter(loop), ps.Pipeline())
        _, sent = builder.new_output()
        builder.build(ranking(nodes, rounds))
        shares, ranks = sent.branch(lambda _time, share: share[0] is None)
        shares.connect_loop(handle)
        result: ps.Stream[tuple[None, int, float]] = ranks.leave()
    return result


def pagerank(edges: list[Edge], rounds: int, workers: int) -> dict[int, float]:
    """The rank of every node."""
    nodes = nodes_of(edges)

    def main(worker: ps.Worker) -> ps.Capture[tuple[None, int, float]]:
        with worker.dataflow("PageRank") as scope:
            graph = scope.to_stream(edges[worker.index :: worker.peers])
            result = ranks_of(graph, nodes, rounds).capture()
        worker.run()
        return result

    captures = ps.execute(main, workers=workers)
    return {node: rank for capture in captures for _, batch in capture.extract() for _, node, rank in batch}


def main(argv: list[str] | None = None) -> int:
    """The command line."""
    parser = arguments("PageRank as a loop.")
    parser.add_argument("--rounds", type=int, default=50, help="trips round the loop (default: 50)")
    options = parser.parse_args(argv)
    edges = list(dict.fromkeys(edges_of(options)))  # NetworkX knows an edge once
    ranks = pagerank(edges, options.rounds, options.workers)
    for node in sorted(ranks, key=lambda node: -ranks[node])[:5]:
        print(f"node {node:6}: {ranks[node]:.6f}")
    print(f"{len(ranks)} nodes, ranks add up to {sum(ranks.values()):.6f}")
    if options.check:
        import networkx
        from networkx.algorithms.link_analysis.pagerank_alg import _pagerank_python  # without SciPy

        expected = _pagerank_python(networkx.DiGraph(edges), DAMPING, tol=1e-10, max_iter=1000)
        worst = max(abs(ranks[node] - expected[node]) for node in expected)
        agrees = ranks.keys() == expected.keys() and worst < 1e-3 / len(ranks)
        print(f"NetworkX {'agrees' if agrees else 'DISAGREES'}: the largest difference is {worst:.1e}.")
        return 0 if agrees else 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
