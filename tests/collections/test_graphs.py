"""The functions of `pointstamp.graphs` against NetworkX, on graphs whose edges come and go."""

from __future__ import annotations

import itertools
import random
import re
from collections import Counter
from collections.abc import Callable
from decimal import Decimal
from pathlib import Path
from typing import Any

import networkx as nx
import pyarrow as pa
import pytest

import pointstamp as ps
from pointstamp import graphs

Edges = set[tuple[int, int]]
ROUNDS = 150


def graph(edges: Edges) -> Any:
    found = nx.DiGraph()
    found.add_edges_from(edges)
    return found


def weight(edge: tuple[int, int]) -> int:
    return (edge[0] * 7 + edge[1] * 3) % 5


def labelled(components: Any) -> set[Any]:
    return {(node, min(component)) for component in components for node in component}


def bfs(edges: Edges) -> set[Any]:
    if not any(0 in edge for edge in edges):
        return {(0, 0)}
    return set(nx.single_source_shortest_path_length(graph(edges), 0).items())


def shortest(edges: Edges) -> set[Any]:
    if not any(0 in edge for edge in edges):
        return {(0, 0)}
    weighted = nx.DiGraph()
    weighted.add_weighted_edges_from((*edge, weight(edge)) for edge in edges)
    return set(nx.single_source_dijkstra_path_length(weighted, 0).items())


def triangles(edges: Edges) -> set[Any]:
    both = {frozenset(edge) for edge in edges if len(set(edge)) == 2}
    nodes = sorted({node for edge in edges for node in edge})
    return {
        three for three in itertools.combinations(nodes, 3)
        if all(frozenset(pair) in both for pair in itertools.combinations(three, 2))
    }  # fmt: skip


def core(edges: Edges) -> set[Any]:
    undirected = nx.Graph()
    undirected.add_edges_from(edge for edge in edges if edge[0] != edge[1])
    kept = nx.k_core(undirected, 3).edges
    return {pair for a, b in kept for pair in ((a, b), (b, a))}


def propagated(edges: Edges) -> set[Any]:
    labels = {node: node for edge in edges for node in edge}
    for _ in range(3):
        seen: dict[Any, Counter[Any]] = {node: Counter() for node in labels}
        for source, target in edges:
            seen[source][labels[target]] += 1
            seen[target][labels[source]] += 1
        labels = {node: min(c, key=lambda label: (-c[label], label)) for node, c in seen.items()}
    return set(labels.items())


def clustered(edges: Edges) -> set[Any]:
    found = set()
    for node in {node for edge in edges for node in edge}:
        around = {b if a == node else a for a, b in edges if node in (a, b)} - {node}
        pairs = sum((a, b) in edges for a in around for b in around if a != b)
        possible = len(around) * (len(around) - 1)
        found.add((node, pairs / possible if pairs else 0.0))
    return found


def ranked(edges: Edges) -> set[Any]:
    nodes = {node for edge in edges for node in edge}
    ranks = {node: 1 / len(nodes) for node in nodes}
    out = Counter(source for source, _ in edges)
    for _ in range(5):
        lost = sum(ranks[node] for node in nodes if not out[node])
        new = {node: (0.15 + 0.85 * lost) / len(nodes) for node in nodes}
        for source, target in edges:
            new[target] += 0.85 * ranks[source] / out[source]
        ranks = new
    return set(ranks.items())


def roots(collection: Any) -> Any:
    return collection.scope.collection([0] if collection.scope.index == 0 else [])


FUNCTIONS: dict[str, tuple[Callable[[Any], Any], Callable[[Edges], set[Any]]]] = {
    "bfs": (lambda e: graphs.bfs(e, roots(e)), bfs),
    "shortest_paths": (
        lambda e: graphs.shortest_paths(e.map(lambda edge: (edge[0], (edge[1], weight(edge)))), roots(e)),
        shortest,
    ),
    "connected_components": (
        graphs.connected_components,
        lambda edges: labelled(nx.weakly_connected_components(graph(edges))),
    ),
    "strongly_connected_components": (
        graphs.strongly_connected_components,
        lambda edges: labelled(nx.strongly_connected_components(graph(edges))),
    ),
    "triangles": (graphs.triangles, triangles),
    "k_core": (lambda e: graphs.k_core(e, 3), core),
    "label_propagation": (lambda e: graphs.label_propagation(e, iterations=3), propagated),
    "clustering_coefficients": (graphs.clustering_coefficients, clustered),
    "pagerank": (lambda e: graphs.pagerank(e, iterations=5, rounding=0), ranked),
}


# ------------------------------------------------------------ pagerank's rounding


def differences(edges: Edges, rounding: float, iterations: int, damping: float) -> float:
    """The sum of the absolute errors of all ranks."""

    def build(scope: ps.Scope) -> Any:
        given = scope.collection(sorted(edges))
        options: Any = {"iterations": iterations, "damping": damping}
        exact = graphs.pagerank(given, rounding=0, **options)
        rounded = graphs.pagerank(given, rounding=rounding, **options)
        return exact.join(rounded).capture()

    [(_, records)] = ps.example(build).extract()
    return float(sum(abs(exact - rounded) for ((_, (exact, rounded)), _) in records))


@pytest.mark.parametrize("rounding", [1e-6, 1e-4, 1e-2, 1.0])
@pytest.mark.parametrize(("iterations", "damping"), [(1, 0.85), (10, 0.85), (30, 0.5), (7, 1.0), (3, 0.0)])
def test_ranks_are_within_the_bound_that_the_rounding_gives(
    rounding: float, iterations: int, damping: float
) -> None:
    chance = random.Random(iterations)
    edges = {(chance.randrange(60), chance.randrange(60)) for _ in range(200)}
    bound = rounding * sum(damping**turn for turn in range(iterations))
    assert differences(edges, rounding, iterations, damping) <= bound + 1e-9


def test_a_rounding_stops_changes_and_leaves_what_computing_anew_gives() -> None:
    """A node that a changed edge hardly affects keeps its rank; the others get those of the new graph."""
    chance = random.Random(2)
    edges = sorted({(chance.randrange(400), chance.randrange(400)) for _ in range(1600)})
    gone = edges[7]

    def ranks(given: list[Any], rounding: float) -> Any:
        def main(worker: ps.Worker) -> Any:
            with worker.dataflow() as scope:
                changes, collection = scope.new_collection()
                captured = graphs.pagerank(collection, iterations=10, rounding=rounding).capture()
            for time, step in enumerate(given):
                changes.advance_to(time)
                changes.update_many(step)
            changes.close()
            worker.run()
            return dict(captured.extract())

        [found] = ps.execute(main)
        return found

    changes = [[(edge, 1) for edge in edges], [(gone, -1)]]
    anew = ranks([[(edge, 1) for edge in edges if edge != gone]], 1e-2)[0]
    found = ranks(changes, 1e-2)
    now = Counter(dict(found[0]))
    now.update(dict(found[1]))
    assert {one: n for one, n in now.items() if n} == dict(anew)
    assert len(found[1]) < len(ranks(changes, 0)[1]) / 4


@pytest.mark.parametrize("rounding", [-1e-9, 1.5, float("nan")])
def test_a_rounding_is_a_share(rounding: float) -> None:
    with pytest.raises(ps.GraphError, match=r"graphs\.pagerank: rounding is a share from 0 to 1, not"):
        ps.example(lambda scope: graphs.pagerank(scope.collection([(1, 2)]), rounding=rounding).capture())


# ------------------------------------------------------------ graphs that are none


EDGES = "an edge is a pair"
WEIGHTED = r"an edge is \(source, \(target, weight\)\)"


@pytest.mark.parametrize("workers", [1, 2])
@pytest.mark.parametrize("name", graphs.__all__)
@pytest.mark.parametrize("record", [(1, 2, 3), 5, "ab", None, (1,)], ids=repr)
def test_a_record_of_another_form_names_the_function(name: str, record: Any, workers: int) -> None:
    expected = WEIGHTED if name == "shortest_paths" else EDGES
    given: Any = [record, record]

    def build(scope: Any) -> Any:
        more: list[Any] = [scope.collection([1])] if name in ("bfs", "shortest_paths") else []
        more = [2] if name == "k_core" else more
        options = {"iterations": 1} if name in ("pagerank", "label_propagation") else {}
        return getattr(graphs, name)(scope.collection(given), *more, **options).capture()

    def main(worker: ps.Worker) -> None:
        with worker.dataflow() as scope:
            build(scope)
        worker.run()

    with pytest.raises(
        TypeError, match=rf"^graphs\.{name}: {expected}.*and got {re.escape(repr(record))}"
    ) as e:
        ps.execute(main, workers=workers)
    assert any(
        f"graphs.{name}: edges" in note for note in getattr(e.value, "__notes__", [f"graphs.{name}: edges"])
    )


@pytest.mark.parametrize(
    ("weight", "error", "message"),
    [
        ("a", TypeError, "the edge from 1 to 2 has the weight 'a', of type str: weights are numbers"),
        (None, TypeError, "the edge from 1 to 2 has the weight None, of type NoneType"),
        (1j, TypeError, "the edge from 1 to 2 has the weight 1j, of type complex"),
        (
            float("nan"),
            ValueError,
            "the edge from 1 to 2 has the weight nan: weights are numbers of 0 or more",
        ),
        (Decimal("nan"), ValueError, "the edge from 1 to 2 has the weight Decimal"),
        (-1, ValueError, "the edge from 1 to 2 has the weight -1: weights are numbers of 0 or more"),
        (
            Decimal(1),
            TypeError,
            "the weight Decimal.'1'. of the edge from 1 to 2 cannot be added to the distance",
        ),
    ],
)
def test_a_weight_that_is_none_is_named_with_its_edge(weight: Any, error: Any, message: str) -> None:
    def build(scope: ps.Scope) -> Any:
        edges: Any = scope.collection([(0, (1, 0.5)), (1, (2, weight))])
        return graphs.shortest_paths(edges, scope.collection([0])).capture()

    with pytest.raises(error, match=rf"^graphs\.shortest_paths: {message}"):
        ps.example(build)


def history(seed: int, rounds: int, nodes: int, most: int) -> list[list[tuple[tuple[int, int], int]]]:
    """Rounds of edges that come and go; the more there are, up to the most, the more go."""
    chance = random.Random(seed)
    there: set[tuple[int, int]] = set()
    made = []
    for _ in range(rounds):
        changes = []
        for _ in range(chance.choice([1, 1, 1, 2, 5])):
            edge = (chance.randrange(nodes), chance.randrange(nodes))
            if chance.random() < len(there) / most:
                edge = chance.choice(sorted(there))
            changes.append((edge, -1 if edge in there else 1))
            there ^= {edge}
        made.append(changes)
    return made


def close(found: set[Any], expected: set[Any]) -> bool:
    """Equal, where floats may differ by rounding."""
    if not any(isinstance(pair[1], float) for pair in expected):
        return found == expected
    numbers = dict(expected)
    return len(found) == len(expected) and all(abs(value - numbers[key]) < 1e-9 for key, value in found)


@pytest.mark.parametrize("name", FUNCTIONS)
@pytest.mark.parametrize("workers", [1, 2])
@pytest.mark.parametrize(("nodes", "most"), [(9, 81), (5, 8)], ids=["dense", "sparse"])
def test_at_every_time_as_networkx_has_it(name: str, workers: int, nodes: int, most: int) -> None:
    """Edges are so few that nodes come down to one neighbour and to none while they are part of a result."""
    check(name, history(len(name), ROUNDS if workers == 1 else 30, nodes, most), workers)


def either(node: int) -> Any:
    """Returns equal nodes of two types in turn."""
    return next(TURNS)(node)


TURNS: Any = itertools.cycle([int, float, float])

OTHER_NODES: dict[str, Callable[[int], Any]] = {
    "numbers that begin far from 0": lambda node: 10**12 - node,
    "numbers below 0": lambda node: -node,
    "strings": lambda node: f"the node of the number {node}",
    "tuples": lambda node: (node % 3, str(node)),
    "equal numbers of two types": either,
}


@pytest.mark.parametrize("name", ["connected_components", "strongly_connected_components"])
@pytest.mark.parametrize("workers", [1, 4])
@pytest.mark.parametrize("nodes", OTHER_NODES)
def test_components_of_any_nodes(name: str, workers: int, nodes: str) -> None:
    """There are large components, which fall apart and come together."""
    check(name, history(workers, 40, 60, 90), workers, OTHER_NODES[nodes])


@pytest.mark.parametrize("workers", [1, 2])
def test_components_of_a_path_that_is_cut(workers: int) -> None:
    """A label takes more turns to the end of the path than there are between those at which labels begin."""
    path = [(node, node + 1) for node in range(700)]
    rounds = [[(edge, 1) for edge in path], [(path[650], -1)], [(path[3], -1), (path[650], 1)]]
    check("connected_components", [*rounds, [(path[3], 1)]], workers, lambda node: node * 7919 % 1009)


def check(
    name: str,
    rounds: list[list[tuple[tuple[int, int], int]]],
    workers: int,
    node: Callable[[int], Any] = int,
) -> None:
    """Compares a function with its model at every time, while edges between such nodes come and go."""
    build, expected = FUNCTIONS[name]
    rounds = [[((node(a), node(b)), diff) for (a, b), diff in changes] for changes in rounds]

    def main(worker: ps.Worker) -> Any:
        with worker.dataflow() as scope:
            edges, collection = scope.new_collection()
            result = build(collection)
            captured, probe = result.capture(), result.probe()
        for time, changes in enumerate(rounds):
            if time % worker.peers == worker.index:
                edges.update_many(changes)
            edges.advance_to(time + 1)
            if time % 3:  # now and then several times are open
                worker.step_while(lambda now=time + 1: probe.less_than(now))  # type: ignore[misc]
        edges.close()
        return captured

    changed: dict[int, Counter[Any]] = {}
    for captured in ps.execute(main, workers=workers):
        for time, records in captured.extract():
            for record, diff in records:
                changed.setdefault(time, Counter())[record] += diff
    there: Edges = set()
    found: Counter[Any] = Counter()
    for time, changes in enumerate(rounds):
        for edge, _ in changes:
            there ^= {edge}
        found.update(changed.get(time, {}))
        assert set(found.values()) <= {0, 1}
        records = {record for record, count in found.items() if count}
        assert close(records, expected(there)), f"at {time}"


# ------------------------------------------------------------ Graphalytics

DATA = Path(__file__).parents[3] / "shared" / "data" / "graphalytics"


def table(path: Path) -> list[list[str]]:
    return [line.split() for line in path.read_text().splitlines() if line.strip()]


@pytest.mark.skipif(not DATA.is_dir(), reason="the example graphs of Graphalytics are not here")
@pytest.mark.parametrize("kind", ["directed", "undirected"])
@pytest.mark.parametrize("algorithm", ["BFS", "CDLP", "LCC", "PR", "SSSP", "WCC"])
def test_the_examples_of_graphalytics(kind: str, algorithm: str) -> None:
    # Label propagation and PageRank are of 2 turns each: the results are of that many exactly.
    nodes = [int(row[0]) for row in table(DATA / f"example-{kind}.v")]
    rows = [(int(row[0]), int(row[1]), float(row[2])) for row in table(DATA / f"example-{kind}.e")]
    once = [(a, b) for a, b, _ in rows]
    weighted = [(a, (b, w)) for a, b, w in rows]
    both = once
    if kind == "undirected":
        both = once + [(b, a) for a, b in once]
        weighted += [(b, (a, w)) for a, b, w in rows]

    def build(scope: ps.Scope) -> Any:
        there = scope.collection(nodes)
        edges = scope.collection(both)
        result: Any
        match algorithm:
            case "BFS":
                result = graphs.bfs(edges, scope.collection([nodes[0]]))
            case "SSSP":
                result = graphs.shortest_paths(scope.collection(weighted), scope.collection([nodes[0]]))
            case "CDLP":
                result = graphs.label_propagation(scope.collection(once), there, iterations=2)
            case "LCC":
                result = graphs.clustering_coefficients(edges, there)
            case "PR":
                result = graphs.pagerank(edges, there, iterations=2, rounding=0)
            case _:
                result = graphs.connected_components(edges, there)
        return result.capture()

    [(_, records)] = ps.example(build).extract()
    found = {pair[0]: float(pair[1]) for pair, _ in records}
    expected = {int(node): float(value) for node, value in table(DATA / f"example-{kind}-{algorithm}")}
    if algorithm == "WCC":
        assert partition(found) == partition(expected)
        return
    # What cannot be reached: the largest number, or infinity.
    expected = {node: value for node, value in expected.items() if value < 9e18}
    assert found.keys() == expected.keys()
    assert all(abs(found[node] - value) <= 1e-4 * max(abs(value), 1e-9) for node, value in expected.items())


def partition(labels: dict[int, float]) -> set[frozenset[int]]:
    groups: dict[float, set[int]] = {}
    for node, label in labels.items():
        groups.setdefault(label, set()).add(node)
    return {frozenset(group) for group in groups.values()}


@pytest.mark.parametrize("name", graphs.__all__)
def test_what_is_not_a_collection_is_refused(name: str) -> None:
    def build(scope: Any) -> None:
        edges = scope.collection([(1, 2)])
        more: list[Any] = [edges] if name in ("bfs", "shortest_paths") else [2] if name == "k_core" else []
        options = {"iterations": 1} if name in ("pagerank", "label_propagation") else {}
        mistakes: list[list[Any]] = [[scope.to_stream([(1, 2)]), *more], [[(1, 2)], *more]]
        if name in ("bfs", "shortest_paths"):
            mistakes += [[edges, 1], [edges, None]]
        elif name not in ("k_core", "triangles"):
            mistakes += [[edges, []]]
        for mistake in mistakes:
            with pytest.raises(
                TypeError, match=rf"^graphs\.{name} needs collections, not .*: scope\.collection"
            ):
                getattr(graphs, name)(*mistake, **options)

    ps.example(build)


@pytest.mark.parametrize("name", graphs.__all__)
def test_columns_are_made_records_of_first(name: str) -> None:
    def build(scope: Any) -> None:
        rows = scope.new_collection(schema=pa.schema([("src", pa.int64()), ("dst", pa.int64())]))[1]
        more: list[Any] = [rows] if name in ("bfs", "shortest_paths") else [2] if name == "k_core" else []
        options = {"iterations": 1} if name in ("pagerank", "label_propagation") else {}
        with pytest.raises(
            TypeError, match=rf"^graphs\.{name} needs collections of records, .*\.to_records\(\)"
        ):
            getattr(graphs, name)(rows, *more, **options)

    ps.example(build)
