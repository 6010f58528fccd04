"""The graph dataflows of the Spark example and benches agree with NetworkX, on 1 to 3 workers."""

from collections.abc import Callable
from typing import Any

import networkx
import numpy as np
import pyarrow as pa
import pytest

import pointstamp as ps
from support.components import EDGES, components
from support.nodes import Nodes
from support.pagerank import pagerank
from support.reachability import reachability

Links = list[tuple[int, int]]


def random_links(nodes: int, edges: int, seed: int) -> Links:
    return [(a, b) for a, b in np.random.default_rng(seed).integers(0, nodes, (edges, 2)).tolist()]


GRAPHS: dict[str, Links] = {
    "nothing": [],
    "a loop": [(0, 0)],
    "a line": [(node, node + 1) for node in range(70)],
    "a ring": [(node, (node + 1) % 65) for node in range(65)],
    "pairs": [(2 * node, 2 * node + 1) for node in range(20)],
    "a star": [(node, 7) for node in range(130)],
    "sparse": random_links(400, 350, 1),
    "about one cycle for each node": random_links(300, 330, 2),
    "dense": random_links(200, 1500, 3),
}


def run(
    build: Callable[[ps.ArrowStream], ps.ArrowStream], links: Links, workers: int
) -> list[dict[str, Any]]:
    """The rows of the result; each worker sends a part of the links, in small batches."""

    def main(worker: ps.Worker) -> Any:
        edges = ps.ArrowInput(EDGES)
        with worker.dataflow() as scope:
            captured = build(edges.to_stream(scope)).capture()
        mine = links[worker.index :: worker.peers]
        for start in range(0, len(mine), 50):
            source, target = zip(*mine[start : start + 50], strict=True)
            edges.send(pa.record_batch([source, target], schema=EDGES))
            worker.step()
        edges.close()
        worker.run()
        return [row for _, batches in captured.extract() for batch in batches for row in batch.to_pylist()]

    return [row for rows in ps.execute(main, workers=workers) for row in rows]


@pytest.fixture(params=GRAPHS)
def links(request: pytest.FixtureRequest) -> Links:
    return GRAPHS[request.param]


@pytest.fixture(params=[1, 2, 3])
def workers(request: pytest.FixtureRequest) -> int:
    number: int = request.param
    return number


def smallest(sets: Any) -> dict[int, int]:
    return {node: least for one in sets for least in [min(one)] for node in one}


@pytest.mark.parametrize("apart", [1, 1_000_003])
def test_components(links: Links, workers: int, apart: int) -> None:
    spread = [(apart * a - 5, apart * b - 5) for a, b in links]
    found = run(components, spread, workers)
    expected = smallest(networkx.connected_components(networkx.Graph(spread)))
    assert len(found) == len(expected)
    assert {row["node"]: row["component"] for row in found} == expected


@pytest.mark.parametrize("apart", [1, 1_000_003])
def test_pagerank(links: Links, workers: int, apart: int) -> None:
    once = sorted({(apart * a - 5, apart * b - 5) for a, b in links})
    found = run(pagerank, once, workers)
    expected = networkx.pagerank(networkx.DiGraph(once))
    assert len(found) == len(expected)
    assert {row["node"]: row["rank"] for row in found} == pytest.approx(expected, rel=1e-9)


def test_pagerank_stops_after_so_many_rounds() -> None:
    links = GRAPHS["dense"]
    [first, second] = [
        {
            row["node"]: row["rank"]
            for row in run(lambda edges: pagerank(edges, tolerance=0, rounds=n), links, 2)
        }
        for n in (0, 1)
    ]
    nodes = len(first)
    assert set(first.values()) == {1 / nodes}
    assert sum(second.values()) == pytest.approx(1)
    degree = {a: sum(a == source for source, _ in links) for a, _ in links}
    loose = sum(1 / nodes for node in first if node not in degree)
    node = links[0][1]
    given = sum(1 / nodes / degree[a] for a, b in links if b == node)
    assert second[node] == pytest.approx(0.15 / nodes + 0.85 * (loose / nodes + given))


@pytest.mark.parametrize("words", [None, 1, 3])
def test_reachability(links: Links, workers: int, words: int | None) -> None:
    graph = networkx.DiGraph(links)
    knots = smallest(networkx.strongly_connected_components(graph))
    found = run(lambda edges: reachability(edges, 400, words), links, workers)
    assert len(found) == len(graph)
    assert {row["node"]: (row["needs"], row["needed_by"], row["knot"]) for row in found} == {
        node: (len(networkx.descendants(graph, node)), len(networkx.ancestors(graph, node)), knots[node])
        for node in graph
    }


@pytest.mark.parametrize("ids", [[], [7], [5, 3, 5, 4], [-(2**62), 2**62, 0, 1], [2**63 - 1, -(2**63)]])
def test_nodes_are_numbered_in_order(ids: list[int]) -> None:
    nodes = Nodes(np.array(ids, np.int64))
    assert nodes.ids.tolist() == sorted(set(ids))
    assert nodes.ids[nodes.at(np.array(ids, np.int64))].tolist() == ids
