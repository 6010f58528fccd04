"""`pointstamp.spark.graphs` gives what the functions of `pointstamp.graphs` give."""

from __future__ import annotations

import random
from typing import Any

import pytest

import pointstamp as ps
from pointstamp import graphs
from pointstamp.spark import graphs as spark_graphs

CHANCE = random.Random(3)
EDGES = sorted({(CHANCE.randrange(12), CHANCE.randrange(12)) for _ in range(25)})


def here(function: Any) -> list[Any]:
    """Returns the result of a function of the edges without Spark."""
    [(_, records)] = ps.example(lambda scope: function(scope, scope.collection(EDGES)).capture()).extract()
    return sorted(record for record, _ in records)


CALLS: dict[str, tuple[Any, Any]] = {
    "connected_components": (
        lambda df: spark_graphs.connected_components(df),
        lambda _, edges: graphs.connected_components(edges),
    ),
    "pagerank": (
        lambda df: spark_graphs.pagerank(df, iterations=3),
        lambda _, edges: graphs.pagerank(edges, iterations=3, rounding=0),
    ),
    "bfs": (
        lambda df: spark_graphs.bfs(df, [EDGES[0][0]]),
        lambda scope, edges: graphs.bfs(edges, scope.collection([EDGES[0][0]])),
    ),
    "shortest_paths": (
        lambda df: spark_graphs.shortest_paths(df.selectExpr("src", "dst", "src + dst AS weight"), [0]),
        lambda scope, edges: graphs.shortest_paths(
            edges.map(lambda edge: (edge[0], (edge[1], edge[0] + edge[1]))), scope.collection([0])
        ),
    ),
    "strongly_connected_components": (
        spark_graphs.strongly_connected_components,
        lambda _, edges: graphs.strongly_connected_components(edges),
    ),
    "label_propagation": (
        lambda df: spark_graphs.label_propagation(df, iterations=3),
        lambda _, edges: graphs.label_propagation(edges, iterations=3),
    ),
    "clustering_coefficients": (
        spark_graphs.clustering_coefficients,
        lambda _, edges: graphs.clustering_coefficients(edges),
    ),
    "k_core": (lambda df: spark_graphs.k_core(df, 2), lambda _, edges: graphs.k_core(edges, 2)),
    "triangles": (spark_graphs.triangles, lambda _, edges: graphs.triangles(edges)),
}


@pytest.mark.parametrize("name", CALLS)
def test_one_call_on_a_dataframe(spark: Any, name: str) -> None:
    call, function = CALLS[name]
    frame = call(spark.createDataFrame(EDGES, "src long, dst long"))
    found = sorted(tuple(row) for row in frame.collect())
    expected = here(function)
    assert [row[:-1] for row in found] == [row[:-1] for row in expected]
    assert [row[-1] for row in found] == pytest.approx([row[-1] for row in expected])


@pytest.mark.parametrize(("kind", "node"), [("string", str), ("double", float), ("int", int)])
def test_nodes_of_other_types(spark: Any, kind: str, node: Any) -> None:
    edges = spark.createDataFrame(EDGES, "src long, dst long").selectExpr(
        f"CAST(CAST(src AS int) AS {kind}) src", f"CAST(CAST(dst AS int) AS {kind}) dst"
    )
    found = spark_graphs.connected_components(edges)
    assert [field.simpleString() for field in found.schema] == [f"node:{kind}", f"component:{kind}"]
    expected = here(
        lambda _, pairs: graphs.connected_components(pairs.map(lambda edge: (node(edge[0]), node(edge[1]))))
    )
    assert sorted(tuple(row) for row in found.collect()) == expected


WITH_NODES: dict[str, tuple[Any, Any]] = {
    "connected_components": (spark_graphs.connected_components, graphs.connected_components),
    "pagerank": (
        lambda edges, nodes: spark_graphs.pagerank(edges, nodes, iterations=3),
        lambda edges, nodes: graphs.pagerank(edges, nodes, iterations=3, rounding=0),
    ),
    "strongly_connected_components": (
        spark_graphs.strongly_connected_components,
        graphs.strongly_connected_components,
    ),
    "label_propagation": (
        lambda edges, nodes: spark_graphs.label_propagation(edges, nodes, iterations=3),
        lambda edges, nodes: graphs.label_propagation(edges, nodes, iterations=3),
    ),
    "clustering_coefficients": (
        spark_graphs.clustering_coefficients,
        graphs.clustering_coefficients,
    ),
}


@pytest.mark.parametrize("kind", ["bigint", "double"])
@pytest.mark.parametrize("name", WITH_NODES)
def test_nodes_without_an_edge(spark: Any, name: str, kind: str) -> None:
    """Integers run as a batch program where there is one, doubles on collections. A repeated node is one."""
    call, function = WITH_NODES[name]
    edges = spark.createDataFrame(EDGES, "src long, dst long").selectExpr(
        f"CAST(src AS {kind}) src", f"CAST(dst AS {kind}) dst"
    )
    nodes = spark.createDataFrame([(EDGES[0][0],), (77,), (78,), (77,), (None,)], "node long")
    found = call(edges, nodes.selectExpr("'x' more", f"CAST(node AS {kind}) node"))
    rows = sorted(tuple(row) for row in found.collect())
    expected = here(lambda scope, pairs: function(pairs, scope.collection([EDGES[0][0], 77, 78])))
    assert [row[0] for row in rows] == [row[0] for row in expected]
    assert [row[1] for row in rows] == pytest.approx([row[1] for row in expected])
    assert {77, 78} <= {row[0] for row in rows}


def test_nodes_change_as_edges_do(spark: Any) -> None:
    edges = spark.createDataFrame([(1, 2, 1, 0)], "src long, dst long, diff int, t int")
    nodes = spark.createDataFrame([(7, 1, 0), (7, -1, 2)], "node long, diff int, t int")
    found = spark_graphs.connected_components(edges, nodes, changes="diff", time="t")
    rows = sorted((row.time, row.node, row.component, row.diff) for row in found.collect())
    assert rows == [(0, 1, 1, 1), (0, 2, 1, 1), (0, 7, 7, 1), (2, 7, 7, -1)]


def test_nodes_that_are_none_are_refused(spark: Any) -> None:
    edges = spark.createDataFrame([(1, 2)], "src long, dst long")
    with pytest.raises(TypeError, match="the nodes are a DataFrame of Spark, not list"):
        spark_graphs.connected_components(edges, [7])  # type: ignore[arg-type]
    with pytest.raises(ps.GraphError, match="the nodes have no column 'node': they have src, dst"):
        spark_graphs.pagerank(edges, edges)
    texts = spark.createDataFrame([("a",)], "node string")
    with pytest.raises(TypeError, match=r"the nodes are of type string, .* of type bigint: cast one column"):
        spark_graphs.label_propagation(edges, texts, iterations=1)


def test_edges_without_the_columns_are_refused(spark: Any) -> None:
    with pytest.raises(ps.GraphError, match="the edges have no column 'src': they have a, b"):
        spark_graphs.triangles(spark.createDataFrame(EDGES, "a long, b long"))


def test_what_is_no_dataframe_and_no_node_is_refused(spark: Any) -> None:
    edges = spark.createDataFrame([(1, 2)], "src long, dst long")
    with pytest.raises(TypeError, match=r"the edges are a DataFrame of Spark, not list"):
        spark_graphs.pagerank([(1, 2)])  # type: ignore[arg-type]
    for roots in (edges, "ab"):
        with pytest.raises(TypeError, match=r"roots are nodes, such as \[0\] or \['a'\], not"):
            spark_graphs.bfs(edges, roots)


@pytest.mark.parametrize("name", CALLS)
def test_edges_between_nodes_of_two_types_are_refused(spark: Any, name: str) -> None:
    edges = spark.createDataFrame([(1, "1", 1.0)], "src long, dst string, weight double")
    calls = {
        **CALLS,
        "shortest_paths": (lambda df: spark_graphs.shortest_paths(df, [1]), None),
    }
    with pytest.raises(
        TypeError,
        match=r"nodes of type bigint \(src\) to nodes of type string \(dst\).*edges\.dst\.cast\('bigint'\)",
    ):
        calls[name][0](edges)


def test_integers_of_two_widths_are_nodes_of_the_wider(spark: Any) -> None:
    far = 2**40
    edges = spark.createDataFrame([(1, 2), (2, far)], "src int, dst long")
    for way, columns in (("there", ("src", "dst")), ("back", ("dst", "src"))):
        found = spark_graphs.k_core(edges.toDF(*columns), 1)
        assert [field.simpleString() for field in found.schema] == ["src:bigint", "dst:bigint"], way
        rows = sorted(tuple(row) for row in found.collect())
        assert rows == [(1, 2), (2, 1), (2, far), (far, 2)]


def test_changes_give_the_changes_of_the_result(spark: Any) -> None:
    rows = [(1, 2, 1, 0), (2, 3, 1, 0), (2, 3, -1, 2), (3, 4, 2, 3)]
    edges = spark.createDataFrame(rows, "src long, dst long, diff int, t int")
    found = spark_graphs.connected_components(edges, changes="diff", time="t")
    assert found.columns == ["node", "component", "diff", "time"]
    changes = [tuple(row) for row in found.collect()]
    for now, expected in (
        (1, {(1, 1), (2, 1), (3, 1)}),
        (2, {(1, 1), (2, 1)}),
        (3, {(1, 1), (2, 1), (3, 3), (4, 3)}),
    ):
        counts: dict[Any, int] = {}
        for node, component, diff, time in changes:
            if time <= now:
                counts[node, component] = counts.get((node, component), 0) + diff
        assert {pair for pair, count in counts.items() if count} == expected
        assert set(counts.values()) <= {0, 1}


def test_weights_that_are_no_weights_show_their_edge(spark: Any) -> None:
    edges = spark.createDataFrame([(1, 2, 1), (2, 3, -4)], "src long, dst long, weight long")
    with pytest.raises(ValueError, match=r"the edge from 2 to 3 has the weight -4: weights are numbers of 0"):
        spark_graphs.shortest_paths(edges, [1]).collect()


def test_mistakes_are_raised_by_the_call(spark: Any) -> None:
    edges = spark.createDataFrame([(1, 2)], "src long, dst long")
    with pytest.raises(ps.GraphError, match=r"time names .*, and needs changes="):
        spark_graphs.k_core(edges, 2, time="src")
    with pytest.raises(ps.GraphError, match="the edges have no column 'diff': they have src, dst"):
        spark_graphs.triangles(edges, changes="diff")
    with pytest.raises(TypeError, match="roots are nodes, of type int64 in these edges"):
        spark_graphs.bfs(edges, ["a"])
    wrongs: list[dict[str, Any]] = [
        {"tolerance": -0.1},
        {"damping": 2},
        {"iterations": -1},
        {"rounding": 1e-3},
        {"tolerance": 1e-3, "changes": "dst"},
        {"rounding": 2, "changes": "dst"},
    ]
    for wrong in wrongs:
        with pytest.raises(ps.GraphError, match=r"graphs\.pagerank"):
            spark_graphs.pagerank(edges, **wrong)
    doubles = edges.selectExpr("CAST(src AS double) src", "CAST(dst AS double) dst")
    with pytest.raises(ps.GraphError, match="a tolerance needs nodes that are integers or strings"):
        spark_graphs.pagerank(doubles, tolerance=0.1)
