"""The peers of bench_spark.py: graph algorithms as people write them in DataFrames.

Every loop cuts its plan with `localCheckpoint` in each round: without it, a plan grows with the rounds.
"""

from __future__ import annotations

from pyspark.sql import DataFrame
from pyspark.sql import functions as sf


def both_ways(edges: DataFrame) -> DataFrame:
    """The edges, and the same from their ends to their starts."""
    turned = edges.select(sf.col("target").alias("source"), sf.col("source").alias("target"))
    return edges.select("source", "target").union(turned)


def min_label(edges: DataFrame) -> DataFrame:
    """Components: each round tells every node its neighbours' smallest label: (node, component)."""
    neighbours = both_ways(edges).localCheckpoint()
    labels = (
        neighbours.select(sf.col("source").alias("node")).distinct().withColumn("component", sf.col("node"))
    )
    while True:
        told = (
            neighbours.join(labels, neighbours["source"] == labels["node"])
            .groupBy(sf.col("target").alias("node"))
            .agg(sf.min("component").alias("told"))
        )
        news = labels.join(told, "node").select(
            "node",
            sf.least("component", "told").alias("component"),
            (sf.col("told") < sf.col("component")).alias("changed"),
        )
        news = news.localCheckpoint()
        labels = news.select("node", "component")
        if news.where("changed").isEmpty():
            return labels


def stars(edges: DataFrame) -> DataFrame:
    """Components by large-star and small-star (Kiveris and others, 2014): (node, component)."""
    nodes = both_ways(edges).select(sf.col("source").alias("node")).distinct().localCheckpoint()
    edges = edges.where("source <> target").distinct()
    before = None
    while True:
        edges = small_star(large_star(edges)).localCheckpoint()
        now = edges.agg(sf.count("*"), sf.sum(sf.hash("source", "target").cast("long"))).first()
        if now == before:
            break
        before = now
    roots = edges.select(sf.col("source").alias("node"), sf.col("target").alias("component"))
    return nodes.join(roots, "node", "left").select(
        "node", sf.coalesce("component", "node").alias("component")
    )


def large_star(edges: DataFrame) -> DataFrame:
    """Every node links its larger neighbours to its smallest."""
    neighbours = both_ways(edges)
    least = neighbours.groupBy("source").agg(sf.least(sf.min("target"), sf.col("source")).alias("least"))
    larger = neighbours.join(least, "source").where("target > source")
    return larger.select(sf.col("target").alias("source"), sf.col("least").alias("target")).distinct()


def small_star(edges: DataFrame) -> DataFrame:
    """Every node links its smaller neighbours, and itself, to its smallest."""
    downwards = edges.select(
        sf.greatest("source", "target").alias("source"), sf.least("source", "target").alias("target")
    )
    least = downwards.groupBy("source").agg(sf.min("target").alias("least"))
    smaller = downwards.join(least, "source").where("target <> least")
    linked = smaller.select(sf.col("target").alias("source"), sf.col("least").alias("target"))
    return linked.union(least.select("source", "least")).distinct()


def pagerank(edges: DataFrame, nodes: int, rounds: int, damping: float = 0.85) -> DataFrame:
    """PageRank of nodes that all have links: (node, rank)."""
    degree = edges.groupBy("source").agg(sf.count("*").alias("degree"))
    links = edges.join(degree, "source").localCheckpoint()
    ranks = degree.select(sf.col("source").alias("node"), sf.lit(1.0 / nodes).alias("rank"))
    for _ in range(rounds):
        given = (
            links.join(ranks, links["source"] == ranks["node"])
            .groupBy("target")
            .agg(sf.sum(sf.col("rank") / sf.col("degree")).alias("given"))
        )
        share = sf.lit((1 - damping) / nodes) + damping * sf.coalesce("given", sf.lit(0.0))
        ranks = (
            ranks.join(given, ranks["node"] == given["target"], "left")
            .select("node", share.alias("rank"))
            .localCheckpoint()
        )
    return ranks


def shortest_paths(edges: DataFrame, root: int) -> DataFrame:
    """Lengths of shortest paths along edges with a `weight`, by rounds of joins: (node, distance)."""
    edges = edges.localCheckpoint()
    known = edges.sparkSession.createDataFrame([(root, 0.0)], "node bigint, distance double")
    changed = known
    while not changed.isEmpty():
        further = (
            edges.join(changed, edges["source"] == changed["node"])
            .groupBy(sf.col("target").alias("node"))
            .agg(sf.min(sf.col("distance") + sf.col("weight")).alias("distance"))
        )
        before = known.withColumnRenamed("distance", "before")
        changed = (
            further.join(before, "node", "left")
            .where("before IS NULL OR distance < before")
            .select("node", "distance")
            .localCheckpoint()
        )
        known = known.union(changed).groupBy("node").agg(sf.min("distance").alias("distance"))
        known = known.localCheckpoint()
    return known


def triangles(edges: DataFrame) -> DataFrame:
    """Triangles of an undirected graph, by joins of edges from lesser to greater nodes: (a, b, c)."""
    up = (
        edges.where("source <> target")
        .select(sf.least("source", "target").alias("a"), sf.greatest("source", "target").alias("b"))
        .distinct()
        .localCheckpoint()
    )
    second = up.select(sf.col("a").alias("b"), sf.col("b").alias("c"))
    closing = up.select("a", sf.col("b").alias("c"))
    return up.join(second, "b").join(closing, ["a", "c"]).select("a", "b", "c")
