"""Breadth-first search: the number of edges from a root to each node, by a loop.

The second coordinate of a time counts turns of the loop, so a node's distance is the turn in which it is
first reached. The loop ends when a turn brings nothing new. The search waits for a turn to be complete before
it processes it: frontiers make that possible.

    python examples/bfs.py --nodes 10000 --edges 50000 --check
"""

import sys
from collections import defaultdict
from collections.abc import Callable
from typing import Any

import pointstamp as ps
from support.epochs import PerEpoch
from support.graphs import Edge, arguments, edges_of


def search(capability: ps.Capability, info: ps.OperatorInfo) -> Callable[..., None]:
    """The constructor of the operator that remembers which nodes have been reached.

    Its inputs are edges, and nodes to visit; its output is ``(node, distance, neighbours)``, once for
    each node. Each epoch is a search of its own.
    """
    capability.drop()
    graphs: PerEpoch[defaultdict[int, list[int]]] = PerEpoch(lambda: defaultdict(list))
    found: PerEpoch[set[int]] = PerEpoch(set)
    visits: defaultdict[ps.Time, set[int]] = defaultdict(set)
    ready = ps.FrontierNotificator()

    def logic(edges: Any, nodes: Any, output: Any) -> None:
        for message, batch in edges:
            neighbours = graphs.at(message.time)
            for source, target in batch:
                neighbours[source].append(target)
        for message, batch in nodes:
            if message.time not in visits:
                ready.notify_at(message.retain())
            visits[message.time].update(batch)
        for cap in ready.ready(edges.frontier, nodes.frontier):
            reached, neighbours = found.at(cap.time), graphs.at(cap.time)
            new = visits.pop(cap.time) - reached
            reached.update(new)
            time: Any = cap.time  # (epoch, trip)
            with cap, output.session(cap) as session:
                session.give_all((node, time[1], neighbours[node]) for node in new)
        for kept in (graphs, found):
            kept.forget(edges.frontier, nodes.frontier)

    return logic


def search_from(graph: ps.Stream[Edge], roots: ps.Stream[int]) -> ps.Stream[tuple[int, int]]:
    """The nodes that can be reached from each time's roots by its edges, with their distances."""
    with graph.scope.iterative() as loop:
        handle, again = loop.loop_variable()
        found = graph.enter(loop).binary_frontier(
            roots.enter(loop).concat(again),
            ps.Exchange(lambda edge: edge[0]),
            ps.Exchange(lambda node: node),
            "Search",
            search,
        )
        found.flat_map(lambda item: item[2]).connect_loop(handle)
        return found.map(lambda item: (item[0], item[1])).leave()


def distances(edges: list[Edge], root: int, workers: int) -> dict[int, int]:
    """The distance of every node that can be reached from the root."""

    def main(worker: ps.Worker) -> ps.Capture[tuple[int, int]]:
        with worker.dataflow("BFS") as scope:
            graph = scope.to_stream(edges[worker.index :: worker.peers])
            roots = scope.to_stream([root] if worker.index == 0 else [])
            result = search_from(graph, roots).capture()
        worker.run()
        return result

    captures = ps.execute(main, workers=workers)
    return {node: steps for capture in captures for _, batch in capture.extract() for node, steps in batch}


def main(argv: list[str] | None = None) -> int:
    """The command line."""
    parser = arguments("Breadth-first search as a loop.")
    parser.add_argument("--root", type=int, default=0, help="where the search begins (default: 0)")
    options = parser.parse_args(argv)
    edges = edges_of(options)
    found = distances(edges, options.root, options.workers)
    for steps in range(max(found.values()) + 1):
        print(f"{steps:4} edges away: {list(found.values()).count(steps):6,} nodes")
    if options.check:
        import networkx

        graph = networkx.DiGraph(edges)
        graph.add_node(options.root)
        expected = dict(networkx.single_source_shortest_path_length(graph, options.root))
        print("NetworkX agrees." if found == expected else "WRONG: NetworkX disagrees.")
        return 0 if found == expected else 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
