"""Union-find: each worker leaves out the edges that join nothing new, and one worker puts the rest together.

An edge that closes a circle among a worker's own edges cannot matter to the result. What is left is a
forest: at most as many edges as there are nodes travel, however large the graph is.

    python examples/union_find.py --nodes 10000 --edges 100000 --check
"""

import sys
from collections.abc import Callable
from typing import Any

import pointstamp as ps
from support.graphs import Edge, arguments, edges_of, nodes_of


def union_find(capability: ps.Capability, info: ps.OperatorInfo) -> Callable[..., None]:
    """The constructor of an operator that passes on edges that join separate parts, as they come."""
    capability.drop()
    above: dict[int, int] = {}

    def root(node: int) -> int:
        while (parent := above.setdefault(node, node)) != node:
            above[node] = above[parent]
            node = parent
        return node

    def logic(edges: Any, output: Any) -> None:
        for message, batch in edges:
            with output.session(message) as session:
                for edge in batch:
                    left, right = root(edge[0]), root(edge[1])
                    if left != right:
                        above[max(left, right)] = min(left, right)
                        session.give(edge)

    return logic


def forest(edges: list[Edge], workers: int) -> tuple[list[Edge], int]:
    """Edges that connect the same nodes as the graph, without circles; and how many travelled."""

    def main(worker: ps.Worker) -> tuple[ps.Capture[Edge], list[int]]:
        travelled: list[int] = []
        with worker.dataflow("Union-find") as scope:
            mine = scope.to_stream(edges[worker.index :: worker.peers])
            sparse = mine.unary(ps.Pipeline(), "Mine", union_find)
            sparse.count().inspect(travelled.append)
            result = sparse.unary(ps.Exchange(lambda edge: 0), "All", union_find).capture()
        worker.run()
        return result, travelled

    results = ps.execute(main, workers=workers)
    trees = [edge for capture, _ in results for _, batch in capture.extract() for edge in batch]
    return trees, sum(sum(travelled) for _, travelled in results)


def main(argv: list[str] | None = None) -> int:
    """The command line."""
    options = arguments("Connected components by union-find.").parse_args(argv)
    edges = edges_of(options)
    trees, travelled = forest(edges, options.workers)
    components = len(nodes_of(edges)) - len(trees)
    print(f"{components} components; {travelled} of {len(edges)} edges travelled, {len(trees)} remain.")
    if options.check:
        import networkx

        whole, remaining = networkx.Graph(edges), networkx.Graph(trees)
        remaining.add_nodes_from(whole)
        parts = {frozenset(part) for part in networkx.connected_components(whole)}
        agrees = parts == {frozenset(part) for part in networkx.connected_components(remaining)}
        agrees = agrees and len(parts) == components
        print("NetworkX agrees." if agrees else "WRONG: NetworkX disagrees.")
        return 0 if agrees else 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
