"""The peers of bench_spark.py that others have written: GraphFrames, and recursive queries of Spark SQL.

GraphFrames is called in Spark's JVM, where it runs: its Python package does the same. What it leaves in
Spark's memory is freed after each call.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as sf


def known(spark: SparkSession) -> bool:
    """Whether the session has GraphFrames."""
    jvm: Any = spark.sparkContext._jvm
    loader = jvm.Thread.currentThread().getContextClassLoader()
    return loader.getResource("org/graphframes/GraphFrame.class") is not None


def components(edges: DataFrame, algorithm: str) -> DataFrame:
    """Components by one of its algorithms, the least node of each being its name: (node, component)."""
    finding = _graph(edges).connectedComponents().setAlgorithm(algorithm).setUseLabelsAsComponents(True)
    found = DataFrame(finding.setUseLocalCheckpoints(True).run(), edges.sparkSession)
    return found.select(sf.col("id").alias("node"), "component")


def pagerank(edges: DataFrame, nodes: int, rounds: int, damping: float = 0.85) -> DataFrame:
    """PageRank of nodes that all have links, which its ranks add up to the number of: (node, rank)."""
    ranking = _graph(edges).pageRank().maxIter(rounds).resetProbability(1 - damping)
    found = DataFrame(ranking.run().vertices(), edges.sparkSession)
    return found.select(sf.col("id").alias("node"), (sf.col("pagerank") / nodes).alias("rank"))


def distances(edges: DataFrame, root: int) -> DataFrame:
    """Counts the edges from a root to each node that can be reached: (node, hops).

    GraphFrames counts those to a landmark, so the edges are turned around.
    """
    session = edges.sparkSession
    # A list of the JVM's own longs: from Python, small numbers come as other types.
    [known] = session.range(root, root + 1).agg(sf.collect_list("id")).select("*")._jdf.collectAsList()
    jvm: Any = session.sparkContext._jvm
    turned = edges.select(sf.col("target").alias("source"), sf.col("source").alias("target"))
    finding = _graph(turned).shortestPaths().landmarks(jvm.java.util.ArrayList(known.getList(0)))
    found = DataFrame(finding.run(), session).where("size(distances) > 0")
    return found.select(sf.col("id").alias("node"), sf.map_values("distances")[0].alias("hops"))


def triangles(edges: DataFrame) -> DataFrame:
    """The number of triangles of each node: (node, count)."""
    found = DataFrame(_graph(edges).triangleCount().run(), edges.sparkSession)
    return found.select(sf.col("id").alias("node"), "count")


def hops(edges: DataFrame, root: int) -> DataFrame:
    """The distance of each node from the root of a tree, by a recursive query: (node, hops).

    Spark's `WITH RECURSIVE` has `UNION ALL` alone, so it goes along every path: a graph with circles would
    not end, and components cannot be asked for.
    """
    edges.createOrReplaceTempView("edges_of_tree")
    return edges.sparkSession.sql(
        f"""
        WITH RECURSIVE reached(node, hops) MAX RECURSION LEVEL 1000 AS (
            SELECT CAST({root} AS BIGINT), 0
            UNION ALL
            SELECT target, hops + 1 FROM reached JOIN edges_of_tree ON node = source
        )
        SELECT node, hops FROM reached LIMIT ALL
        """
    )


def freed(spark: SparkSession, call: Callable[[], Any]) -> Any:
    """Returns the result of a call, and then frees the memory that it left in Spark."""
    jsc: Any = spark.sparkContext._jsc
    before = set(jsc.getPersistentRDDs())
    try:
        return call()
    finally:
        for number, kept in dict(jsc.getPersistentRDDs()).items():
            if number not in before:
                kept.unpersist()


def _graph(edges: DataFrame) -> Any:
    named: Any = edges.select(sf.col("source").alias("src"), sf.col("target").alias("dst"))
    jvm: Any = edges.sparkSession.sparkContext._jvm
    return jvm.org.graphframes.GraphFrame.fromEdges(named._jdf)
