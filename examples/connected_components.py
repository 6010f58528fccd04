"""Connected components: nodes send their neighbours the least label they have, until none changes.

Nothing here waits for a turn of the loop to end: a better label travels at once. The loop is over when no
label is in flight any more, which the engine's progress tracking detects; then the last label of each node is
its component.

    python examples/connected_components.py --nodes 10000 --edges 10000 --check
"""

import sys
from collections import defaultdict
from collections.abc import Callable
from typing import Any

import pointstamp as ps
from support.epochs import PerEpoch
from support.graphs import Edge, arguments, edges_of


def improve(capability: ps.Capability, info: ps.OperatorInfo) -> Callable[..., None]:
    """The constructor of the operator that keeps each node's label.

    Its inputs are edges, in both directions, and labels ``(node, label)``; it sends ``(node, label,
    neighbours to inform)``. Each epoch is a graph of its own.
    """
    capability.drop()
    graphs: PerEpoch[defaultdict[int, list[int]]] = PerEpoch(lambda: defaultdict(list))
    known: PerEpoch[dict[int, int]] = PerEpoch(dict)

    def logic(edges: Any, proposals: Any, output: Any) -> None:
        for message, batch in edges:
            neighbours, labels = graphs.at(message.time), known.at(message.time)
            with output.session(message) as session:
                for node, neighbour in batch:
                    neighbours[node].append(neighbour)
                    session.give((node, labels.setdefault(node, node), [neighbour]))
        for message, batch in proposals:
            neighbours, labels = graphs.at(message.time), known.at(message.time)
            with output.session(message) as session:
                for node, label in batch:
                    if label < labels.setdefault(node, node):
                        labels[node] = label
                        session.give((node, label, neighbours[node]))
        for kept in (graphs, known):
            kept.forget(edges.frontier, proposals.frontier)

    return logic


def components_of(edges: ps.Stream[Edge]) -> ps.Stream[tuple[int, int]]:
    """Each node of each time's graph, with the least node of its component."""
    graph = edges.flat_map(lambda edge: [edge, (edge[1], edge[0])])
    with edges.scope.iterative() as loop:
        handle, again = loop.loop_variable()
        improved = graph.enter(loop).binary_frontier(
            again,
            ps.Exchange(lambda edge: edge[0]),
            ps.Exchange(lambda proposal: proposal[0]),
            "Improve",
            improve,
        )
        improved.flat_map(lambda item: [(node, item[1]) for node in item[2]]).connect_loop(handle)
        labels = improved.map(lambda item: (item[0], item[1])).leave()
    return labels.aggregate(
        lambda _node, label, best: min(label, best), lambda *item: item, default=lambda: sys.maxsize
    )


def components(edges: list[Edge], workers: int) -> dict[int, int]:
    """The least node of each node's component."""

    def main(worker: ps.Worker) -> ps.Capture[tuple[int, int]]:
        with worker.dataflow("Components") as scope:
            mine = scope.to_stream(edges[worker.index :: worker.peers])
            result = components_of(mine).capture()
        worker.run()
        return result

    captures = ps.execute(main, workers=workers)
    return {node: label for capture in captures for _, batch in capture.extract() for node, label in batch}


def main(argv: list[str] | None = None) -> int:
    """The command line."""
    options = arguments("Connected components by a loop over labels.").parse_args(argv)
    edges = edges_of(options)
    labels = components(edges, options.workers)
    sizes: defaultdict[int, int] = defaultdict(int)
    for label in labels.values():
        sizes[label] += 1
    print(f"{len(sizes)} components of {len(labels)} nodes; the largest has {max(sizes.values())} nodes.")
    if options.check:
        import networkx

        parts = networkx.connected_components(networkx.Graph(edges))
        expected = {node: min(part) for part in parts for node in part}
        print("NetworkX agrees." if labels == expected else "WRONG: NetworkX disagrees.")
        return 0 if labels == expected else 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
