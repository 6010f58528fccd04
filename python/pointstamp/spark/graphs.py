"""Functions of graphs, on DataFrames of edges: each is one call, and runs inside the Spark job.

The functions are those of `pointstamp.graphs`, with the same definitions. Edges are a DataFrame with the
columns ``src`` and ``dst`` of one type, or of integers of two widths, and the result is a DataFrame. Nothing
runs before an action asks for it.

A null is no node, as it matches nothing in Spark's joins: an edge with a null in ``src`` or ``dst`` is left
out. A null weight is a `ValueError` of the action, which shows the row.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pointstamp import graphs
from pointstamp.errors import GraphError
from pointstamp.spark.calls.running import run
from pointstamp.spark.compat import selected

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    import pyarrow as pa
    from pyspark.sql import DataFrame

    import pointstamp as ps

__all__ = [
    "bfs",
    "clustering_coefficients",
    "connected_components",
    "k_core",
    "label_propagation",
    "pagerank",
    "shortest_paths",
    "strongly_connected_components",
    "triangles",
]


def bfs(edges: DataFrame, roots: Iterable[Any], *, num_workers: int | None = None) -> DataFrame:
    """Counts the edges from the nearest root to each node that can be reached: ``(node, hops)``.

    Args:
        edges: The edges, from ``src`` to ``dst``.
        roots: Nodes.
        num_workers: As for `run`.
    """
    given = _nodes(roots)

    def build(pairs: ps.Collection[Any]) -> ps.Collection[Any]:
        return graphs.bfs(pairs, _once(pairs.scope, given))

    return _call(edges, build, {"node": None, "hops": "int64"}, num_workers)


def shortest_paths(
    edges: DataFrame, roots: Iterable[Any], *, weight: str = "weight", num_workers: int | None = None
) -> DataFrame:
    """The length of the shortest path from a root to each node that can be reached: ``(node, distance)``.

    Args:
        edges: The edges, from ``src`` to ``dst``, with a column of weights, which are numbers of 0 or more.
        roots: Nodes.
        weight: The name of the column of weights.
        num_workers: As for `run`.
    """
    given = _nodes(roots)

    def build(weighted: ps.Collection[Any]) -> ps.Collection[Any]:
        lengths = graphs.shortest_paths(weighted, _once(weighted.scope, given))
        return lengths.map(lambda pair: (pair[0], float(pair[1])))

    return _call(edges, build, {"node": None, "distance": "float64"}, num_workers, weight)


def connected_components(edges: DataFrame, *, num_workers: int | None = None) -> DataFrame:
    """The component of each node, whichever way its edges point: ``(node, component)``, its least node."""
    return _call(edges, graphs.connected_components, {"node": None, "component": None}, num_workers)


def strongly_connected_components(edges: DataFrame, *, num_workers: int | None = None) -> DataFrame:
    """The strong component of each node: ``(node, component)``, its least node."""
    return _call(edges, graphs.strongly_connected_components, {"node": None, "component": None}, num_workers)


def pagerank(
    edges: DataFrame, *, iterations: int = 20, damping: float = 0.85, num_workers: int | None = None
) -> DataFrame:
    """PageRank after so many turns: ``(node, rank)``; the ranks add up to 1.

    Args:
        edges: The edges, from ``src`` to ``dst``.
        iterations: How many turns, from ranks that are all equal.
        damping: What share of a rank is passed on along edges.
        num_workers: As for `run`.
    """

    def build(pairs: ps.Collection[Any]) -> ps.Collection[Any]:
        # Nothing changes here, so nothing is to be gained by rounding.
        return graphs.pagerank(pairs, iterations=iterations, damping=damping, tolerance=0)

    return _call(edges, build, {"node": None, "rank": "float64"}, num_workers)


def label_propagation(edges: DataFrame, *, iterations: int, num_workers: int | None = None) -> DataFrame:
    """Communities by label propagation: ``(node, label)``."""

    def build(pairs: ps.Collection[Any]) -> ps.Collection[Any]:
        return graphs.label_propagation(pairs, iterations=iterations)

    return _call(edges, build, {"node": None, "label": None}, num_workers)


def clustering_coefficients(edges: DataFrame, *, num_workers: int | None = None) -> DataFrame:
    """The share of the pairs of a node's neighbours that have an edge: ``(node, coefficient)``."""
    columns = {"node": None, "coefficient": "float64"}
    return _call(edges, graphs.clustering_coefficients, columns, num_workers)


def triangles(edges: DataFrame, *, num_workers: int | None = None) -> DataFrame:
    """The triangles of an undirected graph, each once: ``(a, b, c)`` in their order."""
    return _call(edges, graphs.triangles, {"a": None, "b": None, "c": None}, num_workers)


def k_core(edges: DataFrame, k: int, *, num_workers: int | None = None) -> DataFrame:
    """The edges among the nodes of the k-core of an undirected graph, each both ways: ``(src, dst)``."""
    return _call(edges, lambda pairs: graphs.k_core(pairs, k), {"src": None, "dst": None}, num_workers)


def _once(scope: ps.Scope, nodes: list[Any]) -> ps.Collection[Any]:
    """Nodes that are there once, and not on every worker."""
    return scope.collection(nodes if scope.index == 0 else [])


def _nodes(roots: Iterable[Any]) -> list[Any]:
    """The nodes that a caller names."""
    if isinstance(roots, str | bytes) or hasattr(roots, "columns"):
        raise TypeError(
            f"roots are nodes, such as [0] or ['a'], not {type(roots).__name__}; of a DataFrame, "
            "[row.node for row in roots.collect()]"
        )
    return list(roots)


def _call(
    edges: DataFrame,
    function: Callable[[Any], ps.Collection[Any]],
    columns: dict[str, str | None],
    num_workers: int | None,
    weight: str | None = None,
) -> DataFrame:
    """The result of a function of edges; columns without a type have that of the nodes."""
    from pyspark import sql

    if not isinstance(edges, sql.DataFrame):
        raise TypeError(
            f"the edges are a DataFrame of Spark, not {type(edges).__name__}: spark.createDataFrame(...) "
            "makes one of rows, or of a frame of pandas"
        )
    named = ["src", "dst"] if weight is None else ["src", "dst", weight]
    missing = [name for name in named if name not in edges.columns]
    if missing:
        raise GraphError(
            f"the edges have no column {missing[0]!r}: they have {', '.join(edges.columns)}; rename one with "
            "withColumnRenamed"
        )
    _check_nodes(edges)

    def build(_scope: ps.Scope, rows: ps.ArrowStream) -> ps.ArrowStream:
        import pyarrow as pa

        node = _wider(rows.schema.field("src").type, rows.schema.field("dst").type)
        pairs: ps.Collection[Any]
        if weight is None and all(_plain(kind) for kind in rows.schema.types):
            pairs = rows.to_collection().to_records()
        else:
            records: ps.Stream[Any] = rows.to_records()
            if weight is None:
                pairs = records.map(lambda row: (row["src"], row["dst"])).to_collection()
            else:
                pairs = records.map(lambda row: _weighted(row, weight)).to_collection()
        result = function(pairs).consolidate().updates().map(lambda update: update[0])
        types = {name: node if kind is None else pa.type_for_alias(kind) for name, kind in columns.items()}
        return result.to_arrow(pa.schema(list(types.items())))

    ends = selected(edges, named)
    ends = ends.where(ends["src"].isNotNull() & ends["dst"].isNotNull())
    return run(ends, build, num_workers=num_workers)  # type: ignore[no-any-return]


def _weighted(row: dict[str, Any], weight: str) -> tuple[Any, tuple[Any, Any]]:
    """The edge of a row, with its weight."""
    if row[weight] is None:
        raise ValueError(
            f"graphs.shortest_paths: column '{weight}' is null in the row {row}: leave out such rows, "
            f"such as with edges.dropna(subset=['{weight}']), or fill in a weight of 0 or more"
        )
    return row["src"], (row["dst"], row[weight])


def _check_nodes(edges: DataFrame) -> None:
    """Refuses edges from nodes of one type to nodes of another, which are never the same node.

    Raises:
        TypeError: It names the types, and how to cast one.
    """
    from pyspark.sql.types import IntegralType, StringType

    source, target = (edges.schema[name].dataType for name in ("src", "dst"))
    if any(isinstance(source, kind) and isinstance(target, kind) for kind in (IntegralType, StringType)):
        return
    kinds = [source.simpleString(), target.simpleString()]
    if kinds[0] != kinds[1]:
        raise TypeError(
            f"the edges lead from nodes of type {kinds[0]} (src) to nodes of type {kinds[1]} (dst), and "
            f"nodes are of one type: cast one column, such as withColumn('dst', edges.dst.cast('{kinds[0]}'))"
        )


def _wider(one: pa.DataType, other: pa.DataType) -> pa.DataType:
    """The type of nodes, of those of both columns: of two integers that which holds either."""
    import pyarrow as pa

    if pa.types.is_integer(one) and pa.types.is_integer(other) and other.bit_width > one.bit_width:
        return other
    return one


def _plain(kind: pa.DataType) -> bool:
    """Whether a node of this type is the same in a row of columns as in a record."""
    import pyarrow as pa

    return bool(pa.types.is_integer(kind) or pa.types.is_string(kind) or pa.types.is_large_string(kind))
