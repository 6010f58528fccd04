"""The batch programs of `pointstamp.spark.graphs` agree with the functions on collections."""

from __future__ import annotations

import itertools
import math
import random
from collections.abc import Callable
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import pointstamp as ps
from effort import EFFORT
from pointstamp import graphs
from pointstamp.spark.graphs import _distances
from pointstamp.spark.programs.components import components, least_connected
from pointstamp.spark.programs.encoding import encoded
from pointstamp.spark.programs.numbering import numbered
from pointstamp.spark.programs.ranks import ranks
from pointstamp.spark.programs.triangles import triangles


def batch_result(
    build: Callable[[ps.ArrowStream], ps.ArrowStream], rows: list[tuple[Any, ...]], schema: Any, workers: int
) -> list[tuple[Any, ...]]:
    """Runs a program on some workers, each of which has a part of the rows."""

    def main(worker: ps.Worker) -> list[Any]:
        input, found = ps.ArrowInput(schema), []
        with worker.dataflow() as scope:
            build(input.to_stream(scope)).inspect_batch(lambda _, batch: found.append(batch))
        own = rows[worker.index :: workers]
        columns: list[Any] = list(zip(*own, strict=True)) if own else [[] for _ in schema]
        input.send(
            pa.record_batch(
                [pa.array(c, f.type) for c, f in zip(columns, schema, strict=True)], schema=schema
            )
        )
        input.close()
        worker.run()
        return found

    parts = ps.execute(main, workers=workers)
    return sorted(tuple(row.values()) for part in parts for batch in part for row in batch.to_pylist())


def on_collections(build: Callable[[ps.Scope], ps.Collection[Any]]) -> list[Any]:
    found = ps.example(lambda scope: build(scope).consolidate().capture()).extract()
    return sorted(record for _, updates in found for record, _ in updates)


def drawn(seed: int) -> tuple[random.Random, Any, Any, list[tuple[Any, Any]], int]:
    """A random graph: how nodes are named, their type, the edges, and the number of workers."""
    rng = random.Random(seed)
    spread = rng.choice([1, 10**12, -7])
    text = rng.random() < 0.5
    name: Any = (lambda n: f"n{n * spread}") if text else (lambda n: n * spread)
    nodes = rng.choice([3, 8, 20, 60])
    edges = [
        (name(rng.randrange(nodes)), name(rng.randrange(nodes)))
        for _ in range(rng.choice([0, 1, 9, 40, 150]))
    ]
    return rng, name, pa.string() if text else pa.int64(), edges, rng.choice([1, 2, 3, 5])


@pytest.mark.parametrize("seed", range(12 * EFFORT))
def test_programs_agree_with_collections(seed: int) -> None:
    rng, name, kind, edges, workers = drawn(seed)
    schema = pa.schema([("src", kind), ("dst", kind)])

    def of(*columns: tuple[str, Any]) -> Any:
        return pa.schema([("node", kind), *columns])

    assert batch_result(lambda rows: components(rows, kind), edges, schema, workers) == on_collections(
        lambda scope: graphs.connected_components(scope.collection(edges))
    )
    turns = rng.randrange(5)
    found = batch_result(
        lambda rows: ranks(
            numbered(rows, kind), of(("rank", pa.float64())), iterations=turns, damping=0.85, tolerance=0
        ),
        edges,
        schema,
        workers,
    )
    expected = on_collections(
        lambda scope: graphs.pagerank(scope.collection(edges), iterations=turns, rounding=0)
    )
    assert [node for node, _ in found] == [node for node, _ in expected]
    assert [rank for _, rank in found] == pytest.approx([rank for _, rank in expected], abs=1e-15)
    roots = [name(rng.randrange(64)) for _ in range(rng.choice([0, 1, 3]))]
    assert batch_result(
        lambda rows: _distances(rows, roots, of(("hops", pa.int64())), None), edges, schema, workers
    ) == on_collections(lambda scope: graphs.bfs(scope.collection(edges), scope.collection(roots)))
    assert batch_result(
        lambda rows: triangles(numbered(rows, kind, by_degree=True)), edges, schema, workers
    ) == on_collections(lambda scope: graphs.triangles(scope.collection(edges)))
    weighted = [(*edge, rng.choice([0.0, 0.5, 1.0, 2.25, 7.0, math.inf])) for edge in edges]
    assert batch_result(
        lambda rows: _distances(rows, roots, of(("distance", pa.float64())), "weight"),
        weighted,
        schema.append(pa.field("weight", pa.float64())),
        workers,
    ) == on_collections(
        lambda scope: graphs.shortest_paths(
            scope.collection([(a, (b, weight)) for a, b, weight in weighted]), scope.collection(roots)
        )
    )


def test_pagerank_ends_at_its_tolerance() -> None:
    rng = random.Random(5)
    edges = [(rng.randrange(30), rng.randrange(30)) for _ in range(90)]
    kind = pa.int64()
    schema = pa.schema([("src", kind), ("dst", kind)])

    def run(iterations: int, tolerance: float) -> Any:
        found = batch_result(
            lambda rows: ranks(
                numbered(rows, kind),
                pa.schema([("node", kind), ("rank", pa.float64())]),
                iterations=iterations,
                damping=0.85,
                tolerance=tolerance,
            ),
            edges,
            schema,
            2,
        )
        return np.array([rank for _, rank in found])

    turns = [run(n, 0) for n in range(30)]
    changes = [np.abs(after - before).sum() for before, after in itertools.pairwise(turns)]
    tolerance = 1e-4
    first = next(n for n, change in enumerate(changes) if change <= tolerance)
    assert 3 < first < 25  # otherwise this shows nothing
    assert np.array_equal(run(1000, tolerance), turns[first + 1])
    assert np.array_equal(run(first - 1, tolerance), turns[first - 1])


@pytest.mark.parametrize("seed", range(6 * EFFORT))
def test_least_connected_is_the_least_of_a_component(seed: int) -> None:
    import networkx

    rng = np.random.default_rng(seed)
    count = int(rng.integers(1, 400))
    edges = rng.integers(0, count, (int(rng.integers(0, 500)), 2))
    if seed % 2:  # a long path in any order
        order = rng.permutation(count)
        edges = np.stack([order[:-1], order[1:]], axis=1)
    graph = networkx.Graph(edges.tolist())
    graph.add_nodes_from(range(count))
    expected = {node: min(part) for part in networkx.connected_components(graph) for node in part}
    found = least_connected(edges[:, 0], edges[:, 1], count)
    assert found.tolist() == [expected[node] for node in range(count)]


@pytest.mark.parametrize(
    ("values", "kind"),
    [
        ([], "int64"),
        ([5, 3, 5, 4], "int32"),
        ([2**63 - 1, -(2**63), 0, 0], "int64"),
        (["b", "", "ä", "b", "\U0001f600", "a"], "string"),
    ],
)
def test_codes_are_positions_among_the_values_in_order(values: list[Any], kind: str) -> None:
    kind = pa.type_for_alias(kind)
    half = len(values) // 2
    columns = [[pa.array(values[:half], kind)], [pa.array([], kind), pa.array(values[half:], kind)], []]
    found, codes = encoded(columns, kind)
    assert found.type == kind
    assert found.to_pylist() == sorted(set(values))
    assert [found[int(code)].as_py() for part in codes for code in part] == values
    assert [len(part) for part in codes] == [half, len(values) - half, 0]
