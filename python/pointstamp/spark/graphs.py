"""Functions of graphs, on DataFrames of edges: each is one call, and runs inside the Spark job.

The functions are those of `pointstamp.graphs`, with the same definitions. Edges are a DataFrame with the
columns ``src`` and ``dst`` of one type, or of integers of two widths, and the result is a DataFrame. Nothing
runs before an action.

Each call chooses its program. `connected_components`, `pagerank`, `bfs`, `shortest_paths` and `triangles`
run as a batch program on columns where nodes are integers or strings: it keeps nothing for later changes, and
is much faster. The other functions, other types of nodes, and all calls with `changes` run on collections.

With ``changes="diff"``, a row adds an edge as many times as the integer in its column ``diff`` says, or takes
it away where that is negative; ``time="t"`` names the integer column of when. The result then consists of
changes, too, with the columns ``diff`` and ``time`` after its own. For Structured Streaming, pass a `build`
that calls `pointstamp.graphs` to `Epochs`.

A null is no node, as it matches nothing in Spark's joins: an edge with a null in ``src`` or ``dst``, and a
null among `nodes`, is left out. A null weight is a `ValueError` of the action, which shows the row.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from pointstamp import graphs
from pointstamp.errors import GraphError
from pointstamp.expr.expressions import record
from pointstamp.spark.calls.running import run
from pointstamp.spark.compat import selected

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    import pyarrow as pa
    from pyspark.sql import DataFrame
    from pyspark.sql.types import DataType

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


class _Changes(NamedTuple):
    """Returns the columns of a DataFrame of changes: the diff of an edge, and its time, or None."""

    diff: str
    time: str | None


def bfs(
    edges: DataFrame,
    roots: Iterable[Any],
    *,
    changes: str | None = None,
    time: str | None = None,
    num_workers: int | None = None,
) -> DataFrame:
    """Counts the edges from the nearest root to each node that can be reached: ``(node, hops)``.

    Args:
        edges: The edges, followed from ``src`` to ``dst``. Of an undirected graph, each in both directions.
        roots: Nodes.
        changes: The column with the diff of the row's edge; see the module.
        time: The column of the times of changes.
        num_workers: As for `run`.

    Examples:
        >>> from pointstamp.spark import graphs
        >>> edges = spark.createDataFrame([(1, 2), (2, 3)], "src bigint, dst bigint")
        >>> sorted(tuple(row) for row in graphs.bfs(edges, [1]).collect())
        [(1, 0), (2, 1), (3, 2)]
    """
    given = _nodes(roots)

    def build(pairs: ps.Collection[Any]) -> ps.Collection[Any]:
        return graphs.bfs(pairs, _once(pairs.scope, given))

    columns = {"node": None, "hops": "int64"}

    def batch(rows: ps.ArrowStream, node: pa.DataType) -> ps.ArrowStream:
        return _distances(rows, given, _schema(node, columns), None)

    return _call("bfs", edges, build, columns, _changes(changes, time), num_workers, batch=batch)


def shortest_paths(
    edges: DataFrame,
    roots: Iterable[Any],
    *,
    weight: str = "weight",
    changes: str | None = None,
    time: str | None = None,
    num_workers: int | None = None,
) -> DataFrame:
    """The length of the shortest path from a root to each node that can be reached: ``(node, distance)``.

    Lengths are added up as doubles.

    Args:
        edges: The edges, followed from ``src`` to ``dst``, with a column of weights, which are numbers of 0
            or more. Of an undirected graph, each in both directions.
        roots: Nodes.
        weight: The name of the column of weights.
        changes: The column with the diff of the row's edge; see the module.
        time: The column of the times of changes.
        num_workers: As for `run`.

    Examples:
        >>> from pointstamp.spark import graphs
        >>> edges = spark.createDataFrame([(1, 2, 0.5), (2, 3, 1.0)], "src bigint, dst bigint, weight double")
        >>> sorted(tuple(row) for row in graphs.shortest_paths(edges, [1]).collect())
        [(1, 0.0), (2, 0.5), (3, 1.5)]
    """
    given = _nodes(roots)

    def build(weighted: ps.Collection[Any]) -> ps.Collection[Any]:
        lengths = graphs.shortest_paths(weighted, _once(weighted.scope, given))
        return lengths.map(lambda pair: (pair[0], float(pair[1])))

    columns = {"node": None, "distance": "float64"}

    def batch(rows: ps.ArrowStream, node: pa.DataType) -> ps.ArrowStream:
        return _distances(rows, given, _schema(node, columns), weight)

    named = _changes(changes, time)
    return _call("shortest_paths", edges, build, columns, named, num_workers, weight=weight, batch=batch)


def connected_components(
    edges: DataFrame,
    nodes: DataFrame | None = None,
    *,
    changes: str | None = None,
    time: str | None = None,
    num_workers: int | None = None,
) -> DataFrame:
    """The component of each node: ``(node, component)``, its least node.

    Args:
        edges: The edges. Their direction does not matter.
        nodes: A DataFrame with the column ``node``: nodes that are there also without an edge. With
            `changes`, it has the columns of changes, too.
        changes: The column with the diff of the row's edge; see the module.
        time: The column of the times of changes.
        num_workers: As for `run`.

    Examples:
        >>> from pointstamp.spark import graphs
        >>> edges = spark.createDataFrame([(1, 2), (3, 4)], "src bigint, dst bigint")
        >>> sorted(tuple(row) for row in graphs.connected_components(edges).collect())
        [(1, 1), (2, 1), (3, 3), (4, 3)]
    """

    def batch(rows: ps.ArrowStream, node: pa.DataType) -> ps.ArrowStream:
        from pointstamp.spark.programs.components import components

        return components(rows, node)

    columns = {"node": None, "component": None}
    named, build = _changes(changes, time), graphs.connected_components
    return _call("connected_components", edges, build, columns, named, num_workers, batch=batch, nodes=nodes)


def strongly_connected_components(
    edges: DataFrame,
    nodes: DataFrame | None = None,
    *,
    changes: str | None = None,
    time: str | None = None,
    num_workers: int | None = None,
) -> DataFrame:
    """The strong component of each node: ``(node, component)``, its least node.

    Args:
        edges: The edges, followed from ``src`` to ``dst``.
        nodes: A DataFrame with the column ``node``: nodes that are there also without an edge. With
            `changes`, it has the columns of changes, too.
        changes: The column with the diff of the row's edge; see the module.
        time: The column of the times of changes.
        num_workers: As for `run`.

    Examples:
        >>> from pointstamp.spark import graphs
        >>> edges = spark.createDataFrame([(1, 2), (2, 1), (2, 3)], "src bigint, dst bigint")
        >>> sorted(tuple(row) for row in graphs.strongly_connected_components(edges).collect())
        [(1, 1), (2, 1), (3, 3)]
    """
    columns = {"node": None, "component": None}
    named, build = _changes(changes, time), graphs.strongly_connected_components
    return _call("strongly_connected_components", edges, build, columns, named, num_workers, nodes=nodes)


def pagerank(
    edges: DataFrame,
    nodes: DataFrame | None = None,
    *,
    iterations: int = 20,
    damping: float = 0.85,
    tolerance: float | None = None,
    rounding: float | None = None,
    changes: str | None = None,
    time: str | None = None,
    num_workers: int | None = None,
) -> DataFrame:
    """PageRank: ``(node, rank)``; the ranks add up to 1.

    Args:
        edges: The edges, from ``src`` to ``dst``; an edge that is there several times counts once. Of an
            undirected graph, each in both directions.
        nodes: A DataFrame with the column ``node``: nodes that are there also without an edge. With
            `changes`, it has the columns of changes, too.
        iterations: The number of turns, from ranks that are all equal; with `tolerance`, the greatest.
        damping: The share of a rank that is passed on along edges.
        tolerance: Ends after a turn that changed all ranks together by this or less, as a part of 1; not
            with `changes`. None: there are `iterations` turns.
        rounding: The step to which ranks are rounded, as in `pointstamp.graphs.pagerank`; only with
            `changes`. None: 1e-4.
        changes: The column with the diff of the row's edge; see the module.
        time: The column of the times of changes.
        num_workers: As for `run`.

    Raises:
        GraphError: If `iterations` is less than 0, or `damping`, `tolerance` or `rounding` not from 0 to 1;
            for a `tolerance` with `changes`, or of nodes that are neither integers nor strings; for a
            `rounding` without `changes`.

    Examples:
        >>> from pointstamp.spark import graphs
        >>> edges = spark.createDataFrame([(1, 2), (2, 1)], "src bigint, dst bigint")
        >>> sorted((row.node, round(row.rank, 2)) for row in graphs.pagerank(edges).collect())
        [(1, 0.5), (2, 0.5)]
    """
    named = _changes(changes, time)
    graphs._check_iterations("pagerank", iterations)
    graphs._check_shares("pagerank", damping=damping, tolerance=tolerance or 0.0, rounding=rounding or 0.0)
    if named is not None and tolerance is not None:
        raise GraphError(
            "graphs.pagerank: tolerance ends the turns early for a graph that does not change: with "
            "changes=, give rounding=, the step to which ranks are rounded"
        )
    if named is None and rounding is not None:
        raise GraphError(
            "graphs.pagerank: rounding makes changes of the graph cheaper, and there is no changes=: give "
            "tolerance=, which ends the turns early"
        )
    columns = {"node": None, "rank": "float64"}

    def build(pairs: ps.Collection[Any], nodes: ps.Collection[Any] | None = None) -> ps.Collection[Any]:
        if tolerance:
            raise GraphError(
                "graphs.pagerank: a tolerance needs nodes that are integers or strings: cast the columns "
                "src and dst, or leave it out"
            )
        # Where nothing changes, nothing is to be gained by rounding.
        step = 0.0 if named is None else 1e-4 if rounding is None else rounding
        return graphs.pagerank(pairs, nodes, iterations=iterations, damping=damping, rounding=step)

    def batch(rows: ps.ArrowStream, node: pa.DataType) -> ps.ArrowStream:
        from pointstamp.spark.programs.numbering import numbered
        from pointstamp.spark.programs.ranks import ranks

        until: dict[str, Any] = {"iterations": iterations, "damping": damping, "tolerance": tolerance or 0.0}
        return ranks(numbered(rows, node), _schema(node, columns), **until)

    return _call("pagerank", edges, build, columns, named, num_workers, batch=batch, nodes=nodes)


def label_propagation(
    edges: DataFrame,
    nodes: DataFrame | None = None,
    *,
    iterations: int,
    changes: str | None = None,
    time: str | None = None,
    num_workers: int | None = None,
) -> DataFrame:
    """Communities by label propagation: ``(node, label)``.

    Args:
        edges: The edges, which count in both directions. Of an undirected graph, each once.
        nodes: A DataFrame with the column ``node``: nodes that are there also without an edge. With
            `changes`, it has the columns of changes, too.
        iterations: The number of turns.
        changes: The column with the diff of the row's edge; see the module.
        time: The column of the times of changes.
        num_workers: As for `run`.

    Examples:
        >>> from pointstamp.spark import graphs
        >>> edges = spark.createDataFrame([(1, 2), (2, 3), (1, 3)], "src bigint, dst bigint")
        >>> sorted(tuple(row) for row in graphs.label_propagation(edges, iterations=3).collect())
        [(1, 1), (2, 1), (3, 1)]
    """

    def build(pairs: ps.Collection[Any], nodes: ps.Collection[Any] | None = None) -> ps.Collection[Any]:
        return graphs.label_propagation(pairs, nodes, iterations=iterations)

    columns = {"node": None, "label": None}
    return _call(
        "label_propagation", edges, build, columns, _changes(changes, time), num_workers, nodes=nodes
    )


def clustering_coefficients(
    edges: DataFrame,
    nodes: DataFrame | None = None,
    *,
    changes: str | None = None,
    time: str | None = None,
    num_workers: int | None = None,
) -> DataFrame:
    """The share of the pairs of a node's neighbours that have an edge: ``(node, coefficient)``.

    Args:
        edges: The edges, from ``src`` to ``dst``. Of an undirected graph, each in both directions.
        nodes: A DataFrame with the column ``node``: nodes that are there also without an edge. With
            `changes`, it has the columns of changes, too.
        changes: The column with the diff of the row's edge; see the module.
        time: The column of the times of changes.
        num_workers: As for `run`.

    Examples:
        >>> from pointstamp.spark import graphs
        >>> edges = spark.createDataFrame([(1, 2), (2, 3), (1, 3)], "src bigint, dst bigint")
        >>> sorted(tuple(row) for row in graphs.clustering_coefficients(edges).collect())
        [(1, 0.5), (2, 0.5), (3, 0.5)]
    """
    columns = {"node": None, "coefficient": "float64"}
    named, build = _changes(changes, time), graphs.clustering_coefficients
    return _call("clustering_coefficients", edges, build, columns, named, num_workers, nodes=nodes)


def triangles(
    edges: DataFrame,
    *,
    changes: str | None = None,
    time: str | None = None,
    num_workers: int | None = None,
) -> DataFrame:
    """The triangles of an undirected graph, each once: ``(a, b, c)`` in their order.

    Every process holds the edges of the whole graph, 16 bytes each.

    Args:
        edges: The edges, in either direction or in both.
        changes: The column with the diff of the row's edge; see the module.
        time: The column of the times of changes.
        num_workers: As for `run`.

    Examples:
        >>> from pointstamp.spark import graphs
        >>> edges = spark.createDataFrame([(1, 2), (2, 3), (1, 3)], "src bigint, dst bigint")
        >>> [tuple(row) for row in graphs.triangles(edges).collect()]
        [(1, 2, 3)]
    """

    def batch(rows: ps.ArrowStream, node: pa.DataType) -> ps.ArrowStream:
        from pointstamp.spark.programs import triangles as program
        from pointstamp.spark.programs.numbering import numbered

        return program.triangles(numbered(rows, node, by_degree=True))

    columns = {"a": None, "b": None, "c": None}

    def build(pairs: ps.Collection[Any]) -> ps.Collection[Any]:
        return graphs.triangles(pairs)

    return _call("triangles", edges, build, columns, _changes(changes, time), num_workers, batch=batch)


def k_core(
    edges: DataFrame,
    k: int,
    *,
    changes: str | None = None,
    time: str | None = None,
    num_workers: int | None = None,
) -> DataFrame:
    """The edges among the nodes of the k-core of an undirected graph, each both ways: ``(src, dst)``.

    Args:
        edges: The edges, in either direction or in both.
        k: The least number of neighbours, 1 or more.
        changes: The column with the diff of the row's edge; see the module.
        time: The column of the times of changes.
        num_workers: As for `run`.

    Examples:
        >>> from pointstamp.spark import graphs
        >>> edges = spark.createDataFrame([(1, 2), (2, 3), (1, 3), (3, 4)], "src bigint, dst bigint")
        >>> sorted(tuple(row) for row in graphs.k_core(edges, 2).collect())
        [(1, 2), (1, 3), (2, 1), (2, 3), (3, 1), (3, 2)]
    """
    columns = {"src": None, "dst": None}

    def build(pairs: ps.Collection[Any]) -> ps.Collection[Any]:
        return graphs.k_core(pairs, k)

    return _call("k_core", edges, build, columns, _changes(changes, time), num_workers)


def _distances(
    rows: ps.ArrowStream, roots: list[Any], result: pa.Schema, weight: str | None
) -> ps.ArrowStream:
    """Runs the batch program of `bfs` and `shortest_paths`."""
    import pyarrow as pa

    from pointstamp.spark.programs.numbering import numbered
    from pointstamp.spark.programs.paths import distances

    node = result.field(0).type
    try:
        given = pa.array(roots, node)
    except (pa.ArrowException, OverflowError) as error:
        raise TypeError(f"roots are nodes, of type {node} in these edges: {error}") from None
    given = given.drop_null().unique()
    weighed = None if weight is None else lambda batches: _weights(batches, weight)
    return distances(numbered(rows, node, weighed=weighed, more=given), given, result)


def _weights(batches: list[pa.RecordBatch], weight: str) -> Any:
    """The weights of the edges of some batches, as doubles.

    Raises:
        ValueError: For a weight that is null, NaN or less than 0; it shows the edge.
    """
    import numpy as np
    import pyarrow.compute as pc

    found = [np.zeros(0)]
    for batch in batches:
        column = batch[weight]
        if column.null_count:
            [row] = batch.slice(pc.index(column.is_null(), True).as_py(), 1).to_pylist()
            _weighted(row, weight)
        weights = column.to_numpy()
        wrong = np.flatnonzero(~(weights >= 0))
        if len(wrong):
            [row] = batch.slice(wrong[0], 1).to_pylist()
            graphs._has_weight((row["src"], (row["dst"], row[weight])))
        found.append(weights.astype(np.float64, copy=False))
    return np.concatenate(found)


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


def _changes(diff: str | None, time: str | None) -> _Changes | None:
    """The columns of changes, where they are named."""
    if diff is None:
        if time is not None:
            raise GraphError(
                "time names the column of the times of changes, and needs changes=, the column that says "
                "how often a row adds its edge: for edges that are only added, a column of ones"
            )
        return None
    return _Changes(diff, time)


def _schema(node: pa.DataType, columns: Mapping[str, str | None]) -> pa.Schema:
    """Returns the schema of a result; columns without a type have the type of the nodes."""
    import pyarrow as pa

    return pa.schema(
        [(name, node if kind is None else pa.type_for_alias(kind)) for name, kind in columns.items()]
    )


def _call(
    title: str,
    edges: DataFrame,
    function: Callable[..., ps.Collection[Any]],
    columns: Mapping[str, str | None],
    changes: _Changes | None,
    num_workers: int | None,
    *,
    weight: str | None = None,
    batch: Callable[[ps.ArrowStream, pa.DataType], ps.ArrowStream] | None = None,
    nodes: DataFrame | None = None,
) -> DataFrame:
    """The result of a function of edges.

    Args:
        title: The name of the function.
        edges: The edges.
        function: Computes the result on collections, from the edges and, where they are given, the nodes that
            are there also without one.
        columns: The columns of the result; columns without a type have the type of the nodes.
        changes: The columns of changes, or None.
        num_workers: As for `run`.
        weight: The column of weights, or None.
        batch: Computes the result on columns, from edges and the type of their nodes; None where there is no
            such program. A row without a ``dst`` is a node.
        nodes: Nodes that are there also without an edge, or None.
    """
    named = ["src", "dst"] if weight is None else ["src", "dst", weight]
    of_changes = [] if changes is None else [name for name in changes if name is not None]
    named += of_changes
    _check_frame("edges", edges, named)
    _check_nodes(edges)
    time = None if changes is None else changes.time
    with_nodes = nodes is not None

    def build(_scope: ps.Scope, rows: ps.ArrowStream) -> ps.ArrowStream:
        import pyarrow as pa

        node = _wider(rows.schema.field("src").type, rows.schema.field("dst").type)
        numbers = weight is None or _number(rows.schema.field(weight).type)
        if changes is None and batch is not None and numbers and _plain(node):
            return batch(rows, node)
        if changes is None and weight is None and all(_plain(kind) for kind in rows.schema.types):
            pairs: ps.Collection[Any] = rows.to_collection().to_records()
        else:
            records: ps.Stream[Any] = rows.to_records()
            if changes is None:
                pairs = records.map(lambda row: _edge(row, weight)).to_collection()
            else:
                diff = changes.diff
                pairs = records.map(lambda row: (_edge(row, weight), _times(row, diff))).to_collection(
                    diffs=True
                )
        given = [pairs]
        if with_nodes:
            given = [
                pairs.filter(lambda edge: edge[1] is not None),
                pairs.filter(lambda edge: edge[1] is None).map(record[0]),
            ]
        updates = function(*given).consolidate().updates()
        schema = _schema(node, columns)
        if changes is None:
            return updates.map(lambda update: update[0]).to_arrow(schema)
        schema = schema.append(pa.field("diff", pa.int64()))
        return updates.map(lambda update: (*update[0], update[2])).to_arrow(schema)

    ends = selected(edges, named)
    ends = ends.where(ends["src"].isNotNull() & ends["dst"].isNotNull())
    if nodes is not None:
        ends = ends.union(_alone(nodes, edges, of_changes))
    name = f"graphs.{title}"
    frame: DataFrame = run(
        ends,
        build,
        time=time,
        time_column=None if changes is None else "time",
        num_workers=num_workers,
        name=name,
    )
    return frame


def _check_frame(what: str, frame: Any, columns: Sequence[str]) -> None:
    """Refuses what is no DataFrame with these columns."""
    from pyspark import sql

    if not isinstance(frame, sql.DataFrame):
        raise TypeError(
            f"the {what} are a DataFrame of Spark, not {type(frame).__name__}: spark.createDataFrame(...) "
            "makes one of rows, or of a frame of pandas"
        )
    missing = [name for name in columns if name not in frame.columns]
    if missing:
        raise GraphError(
            f"the {what} have no column {missing[0]!r}: they have {', '.join(frame.columns)}; rename one "
            "with withColumnRenamed"
        )


def _alone(nodes: DataFrame, edges: DataFrame, of_changes: Sequence[str]) -> DataFrame:
    """Nodes as rows of edges that have no ``dst``; a null is no node."""
    from pyspark.sql import functions as sf

    _check_frame("nodes", nodes, ["node", *of_changes])
    kind, other = nodes.schema["node"].dataType, edges.schema["src"].dataType
    if not _alike(kind, other) and kind != other:
        raise TypeError(
            f"the nodes are of type {kind.simpleString()}, and the edges lead from nodes of type "
            f"{other.simpleString()}: cast one column, such as withColumn('node', "
            f"nodes.node.cast('{other.simpleString()}'))"
        )
    alone = selected(nodes, ["node", *of_changes])
    alone = alone.where(alone["node"].isNotNull())
    without = sf.lit(None).cast(edges.schema["dst"].dataType)
    rest = [alone[name] for name in of_changes]
    return alone.select(alone["node"].alias("src"), without.alias("dst"), *rest)


def _edge(row: dict[str, Any], weight: str | None) -> tuple[Any, Any]:
    """The edge of a row."""
    return (row["src"], row["dst"]) if weight is None else _weighted(row, weight)


def _times(row: dict[str, Any], diff: str) -> int:
    """Returns the diff of a row's edge."""
    times = row[diff]
    if not isinstance(times, int):
        raise ValueError(
            f"column '{diff}' has the diff of a row's edge, an integer, and is {times!r} in the row {row}"
        )
    return times


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
        TypeError: The message names the types, and the cast that mends them.
    """
    source, target = (edges.schema[name].dataType for name in ("src", "dst"))
    if _alike(source, target):
        return
    kinds = [source.simpleString(), target.simpleString()]
    if kinds[0] != kinds[1]:
        raise TypeError(
            f"the edges lead from nodes of type {kinds[0]} (src) to nodes of type {kinds[1]} (dst), and "
            f"nodes are of one type: cast one column, such as withColumn('dst', edges.dst.cast('{kinds[0]}'))"
        )


def _alike(one: DataType, other: DataType) -> bool:
    """Whether both are types of integers, or of strings."""
    from pyspark.sql.types import IntegralType, StringType

    return any(isinstance(one, kind) and isinstance(other, kind) for kind in (IntegralType, StringType))


def _wider(one: pa.DataType, other: pa.DataType) -> pa.DataType:
    """Returns the common type of both columns' nodes: for two integer types, one that holds both."""
    import pyarrow as pa

    if pa.types.is_integer(one) and pa.types.is_integer(other) and other.bit_width > one.bit_width:
        return other
    return one


def _plain(kind: pa.DataType) -> bool:
    """Whether a node of this type is the same in a row of columns as in a record."""
    import pyarrow as pa

    return bool(pa.types.is_integer(kind) or pa.types.is_string(kind) or pa.types.is_large_string(kind))


def _number(kind: pa.DataType) -> bool:
    """Whether weights of this type are added up as doubles on columns, too."""
    import pyarrow as pa

    return bool(pa.types.is_integer(kind) or pa.types.is_float32(kind) or pa.types.is_float64(kind))
