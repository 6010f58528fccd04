"""Dataflows inside Spark beside the same in DataFrames, GraphFrames and recursive SQL, in one session.

python benches/python/bench_spark.py [NAME...] [--graphframes JAR]

    components   components of 100,000 nodes and 1,000,000 edges, by min-label and by large/small-star
    pagerank     ten rounds of PageRank on as many, beside joins
    paths        lengths of shortest paths from one of as many nodes, beside joins
    triangles    the triangles of as many, beside joins
    rows         5,000,000 rows of four columns through a dataflow, beside a mapInArrow that does nothing
    hops         how far 100,000 nodes of a tree are from its root, beside a recursive query
    identity     rows through a dataflow that does nothing, beside a mapInArrow that does nothing

Every row is a ratio to the dataflow's time, from this run; above 1, the dataflow is faster. Each side
starts with the edges in Spark's memory, and ends with numbers of its result that must be equal. `--large`
takes 1,000,000 nodes and 10,000,000 edges, once; `--scale` a part of the size, for a quick look.

The session has Arrow batches of 4 MB at most, as `docs/spark.md` advises, for all sides.

GraphFrames is beside ours where its jar is given: `build_graphframes.py` makes one. Of ours there are two:
the dataflow of `examples/support` and the one call of `pointstamp.spark.graphs`.
"""

from __future__ import annotations

import argparse
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import graphframes_programs as graphframes
import numpy as np
import pyarrow as pa
import spark_programs as peers
from figures import leave
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as sf

sys.path.insert(0, str(Path(__file__).parents[2] / "examples"))

import pointstamp.spark
import pointstamp.spark.graphs
from support.components import EDGES, components
from support.pagerank import pagerank
from support.session import start

ROUNDS = 10
ROWS = 20_000_000
WIDE = 5_000_000
TIMES = 100

BATCH = "spark.sql.execution.arrow.maxBytesPerBatch"

AIM = 0.1
"""Ratios to the time of joins of DataFrames, of GraphFrames and of recursive queries."""


class Side(NamedTuple):
    """A program: its name, what runs it and returns numbers of its result, and the aim beside it.

    Attributes:
        name: What the table calls it.
        run: Runs it.
        ours: Whether it is ours: others are compared with each that is.
        aim: What our time is to be of its own at most; None where nothing is aimed at.
    """

    name: str
    run: Callable[[], Any]
    ours: bool = False
    aim: float | None = None


def compare(title: str, sides: list[Side], turns: int) -> list[float]:
    """Runs the sides by turns, the first unmeasured; prints and returns the medians of their seconds."""
    print(f"\n{title}", flush=True)
    seconds: list[list[float]] = [[] for _ in sides]
    expected: Any = None
    for turn in range(-1 if turns > 1 else 0, turns):
        for times, side in zip(seconds, sides, strict=True):
            began = time.perf_counter()
            result = side.run()
            if turn >= 0:
                times.append(time.perf_counter() - began)
            expected = result if expected is None else expected
            if result != expected:
                raise SystemExit(f"wrong: {side.name} says {result}, and {sides[0].name} {expected}")
    medians = [statistics.median(times) for times in seconds]
    for side, median in zip(sides, medians, strict=True):
        print(f"  {side.name:<44}{median:9.2f} s{median / medians[0]:9.2f}", flush=True)
    for ours, own in zip(sides, medians, strict=True):
        for peer, their in zip(sides, medians, strict=True):
            if ours.ours and not peer.ours:
                leave("Spark", f"{title}: {ours.name}", own, peer.name, their, aim=peer.aim)
    return medians


def table(spark: SparkSession, source: Any, target: Any) -> DataFrame:
    """Edges in Spark's memory."""
    edges = spark.createDataFrame(pa.table([source, target], schema=EDGES)).repartition(4).persist()
    edges.count()
    return edges


def called(edges: DataFrame) -> DataFrame:
    """Edges as the calls of `pointstamp.spark.graphs` have them."""
    return edges.toDF("src", "dst")


def bench_components(spark: SparkSession, nodes: int, count: int, turns: int) -> None:
    """Connected components of a random graph."""
    random = np.random.default_rng(1)
    edges = table(spark, random.integers(0, nodes, count), random.integers(0, nodes, count))

    def numbers(found: DataFrame) -> Any:
        # How many nodes and components there are, and what the components are.
        return tuple(found.agg(sf.count("*"), sf.countDistinct("component"), sf.sum("component")).first())

    def ours() -> Any:
        schema = "node bigint, component bigint"
        return numbers(pointstamp.spark.run(edges, lambda scope, edges: components(edges), schema))

    def call() -> Any:
        return numbers(pointstamp.spark.graphs.connected_components(called(edges)))

    def theirs(algorithm: str) -> Callable[[], Any]:
        return lambda: graphframes.freed(spark, lambda: numbers(graphframes.components(edges, algorithm)))

    sides = [
        Side("pointstamp.spark.run", ours, ours=True),
        Side("pointstamp.spark.graphs", call, ours=True),
        Side("DataFrames: min-label", lambda: numbers(peers.min_label(edges)), aim=AIM),
        Side("DataFrames: large-star, small-star", lambda: numbers(peers.stars(edges)), aim=AIM),
    ]
    if graphframes.known(spark):
        sides.append(Side("GraphFrames: its default, two-phase", theirs("two_phase"), aim=AIM))
        sides.append(Side("GraphFrames: GraphX", theirs("graphx"), aim=AIM))
    compare(f"Connected components, {nodes:,} nodes, {count:,} edges", sides, turns)
    edges.unpersist()


def bench_pagerank(spark: SparkSession, nodes: int, count: int, turns: int) -> None:
    """PageRank of a random graph in which all nodes have links."""
    # Each link once: one that is there twice counts once for `graphs`, and twice for the others.
    targets = np.random.default_rng(2).integers(0, nodes, (nodes, count // nodes))
    source, target = np.divmod(np.unique(np.arange(nodes)[:, None] * nodes + targets), nodes)
    edges = table(spark, source, target)

    def numbers(found: DataFrame) -> Any:
        row = found.agg(
            sf.count("*"), sf.sum("rank"), sf.sum(sf.col("rank") * (sf.col("node") % 101))
        ).first()
        return tuple(round(number, 8) for number in row)

    def ours() -> Any:
        def build(scope: Any, edges: Any) -> Any:
            return pagerank(edges, tolerance=0, rounds=ROUNDS)

        return numbers(pointstamp.spark.run(edges, build, "node bigint, rank double"))

    def call() -> Any:
        return numbers(pointstamp.spark.graphs.pagerank(called(edges), iterations=ROUNDS))

    def theirs() -> Any:
        return graphframes.freed(spark, lambda: numbers(graphframes.pagerank(edges, nodes, ROUNDS)))

    sides = [
        Side("pointstamp.spark.run", ours, ours=True),
        Side("pointstamp.spark.graphs", call, ours=True),
        Side("DataFrames", lambda: numbers(peers.pagerank(edges, nodes, ROUNDS)), aim=AIM),
    ]
    if graphframes.known(spark):
        sides.append(Side("GraphFrames", theirs, aim=AIM))
    compare(f"PageRank, {ROUNDS} rounds, {nodes:,} nodes, {len(source):,} links", sides, turns)
    edges.unpersist()


def bench_paths(spark: SparkSession, nodes: int, count: int, turns: int) -> None:
    """Shortest paths along weighted edges of a random graph."""
    random = np.random.default_rng(5)
    edges = table(spark, random.integers(0, nodes, count), random.integers(0, nodes, count))
    weighted = edges.withColumn("weight", sf.pmod(sf.hash("source", "target"), sf.lit(100)).cast("double"))

    def numbers(found: DataFrame) -> Any:
        return tuple(found.agg(sf.count("*"), sf.sum("distance"), sf.max("distance")).first())

    def ours() -> Any:
        return numbers(pointstamp.spark.graphs.shortest_paths(weighted.toDF("src", "dst", "weight"), [0]))

    sides = [
        Side("pointstamp.spark.graphs", ours, ours=True),
        Side("DataFrames", lambda: numbers(peers.shortest_paths(weighted, 0)), aim=AIM),
    ]
    compare(f"Shortest paths, {nodes:,} nodes, {count:,} edges", sides, turns)
    if graphframes.known(spark):  # it has them without weights
        sides = [
            Side(
                "pointstamp.spark.graphs",
                lambda: _hops(pointstamp.spark.graphs.bfs(called(edges), [0])),
                ours=True,
            ),
            Side(
                "GraphFrames",
                lambda: graphframes.freed(spark, lambda: _hops(graphframes.distances(edges, 0))),
                aim=AIM,
            ),
        ]
        compare(f"Hops from one node, {nodes:,} nodes, {count:,} edges", sides, turns)
    edges.unpersist()


def bench_triangles(spark: SparkSession, nodes: int, count: int, turns: int) -> None:
    """Triangles of a random graph."""
    random = np.random.default_rng(6)
    edges = table(spark, random.integers(0, nodes, count), random.integers(0, nodes, count))

    def numbers(found: DataFrame) -> Any:
        return tuple(found.agg(sf.count("*"), sf.sum(sf.expr("a + b + c"))).first())

    def theirs() -> Any:
        found = graphframes.triangles(edges)
        total, ends = found.agg(sf.sum("count"), sf.sum(sf.expr("node * count"))).first()
        return total // 3, ends

    sides = [
        Side(
            "pointstamp.spark.graphs",
            lambda: numbers(pointstamp.spark.graphs.triangles(called(edges))),
            ours=True,
        ),
        Side("DataFrames", lambda: numbers(peers.triangles(edges)), aim=AIM),
    ]
    if graphframes.known(spark):
        sides.append(Side("GraphFrames", lambda: graphframes.freed(spark, theirs), aim=AIM))
    compare(f"Triangles, {nodes:,} nodes, {count:,} edges", sides, turns)
    edges.unpersist()


def bench_hops(spark: SparkSession, nodes: int, turns: int) -> None:
    """The distances of a tree's nodes from its root: what a recursive query can be asked of a graph."""
    children = np.arange(1, nodes)
    parents = (np.random.default_rng(4).random(nodes - 1) * children).astype(np.int64)
    edges = table(spark, parents, children)

    sides = [
        Side(
            "pointstamp.spark.graphs",
            lambda: _hops(pointstamp.spark.graphs.bfs(called(edges), [0])),
            ours=True,
        ),
        Side("WITH RECURSIVE", lambda: _hops(graphframes.hops(edges, 0)), aim=AIM),
    ]
    compare(f"Hops from the root of a tree of {nodes:,} nodes", sides, turns)
    edges.unpersist()


def _hops(found: DataFrame) -> Any:
    return tuple(found.agg(sf.count("*"), sf.sum("hops"), sf.max("hops")).first())


def bench_rows(spark: SparkSession, rows: int, turns: int) -> None:
    """Rows of four columns, in and out: where they are, and exchanged; without times, and at a hundred.

    The peer of rows that are exchanged is the same `mapInArrow`, which exchanges nothing.
    """
    wide = spark.range(0, rows, 1, 4).select(
        "id",
        (sf.col("id") * TIMES / rows).cast("bigint").alias("day"),
        sf.rand(1).alias("x"),
        sf.concat(sf.lit("word "), sf.col("id") % 1000).alias("word"),
    )
    schema = "id bigint, day bigint, x double, word string"

    def into_nothing(result: DataFrame) -> None:
        result.write.format("noop").mode("overwrite").save()

    def ours(title: str, aim: float, **how: Any) -> Side:
        def build(scope: Any, rows: Any) -> Any:
            return rows.exchange("id") if title.startswith("exchanged") else rows

        run = pointstamp.spark.run
        return Side(title, lambda: into_nothing(run(wide, build, schema, **how)), ours=True, aim=aim)

    sides = [
        ours("in place", 1 / 0.7),
        ours("in place, time=", 1 / 0.5, time="day"),
        ours("in place, time= and time_column=", 1 / 0.5, time="day", time_column="t"),
        ours("exchanged", 1 / 0.7),
        ours("exchanged, time=", 1 / 0.5, time="day"),
        Side("mapInArrow", lambda: into_nothing(wide.mapInArrow(lambda batches: batches, schema))),
    ]
    default = spark.conf.get(BATCH)
    for size in (default, "64MB"):
        spark.conf.set(BATCH, size)
        title = f"Rows of four columns, {rows:,}, Arrow batches of {size} at most"
        seconds = compare(title, sides, turns)
        for side, median in zip(sides, seconds, strict=True):
            print(f"  {side.name:<44}{rows / median / 1e6:9.2f} M/s{seconds[-1] / median:9.2f}", flush=True)
    spark.conf.set(BATCH, default)


def bench_identity(spark: SparkSession, rows: int, turns: int) -> None:
    """The cost of a dataflow, with its start, and the cost of each further row."""
    some = identity(spark, rows // 4, turns)
    all_of_them = identity(spark, rows, turns)
    further = (all_of_them - some) / (rows - rows // 4) * 1e9
    leave("Spark", "Each further row more than through mapInArrow", further, unit="ns")
    print(f"  each further row: {further:.0f} ns more; the start is the rest", flush=True)


def identity(spark: SparkSession, rows: int, turns: int) -> float:
    """Rows of a bigint and a double, in and out, into nothing: the seconds more than through mapInArrow."""
    numbers = spark.range(0, rows, 1, 4).select("id", sf.rand(1).alias("x"))
    schema = "id bigint, x double"

    def into_nothing(result: DataFrame) -> None:
        result.write.format("noop").mode("overwrite").save()

    sides = [
        Side(
            "pointstamp.spark.run, identity",
            lambda: into_nothing(pointstamp.spark.run(numbers, lambda scope, rows: rows, schema)),
            ours=True,
        ),
        Side(
            "mapInArrow, identity",
            lambda: into_nothing(numbers.mapInArrow(lambda batches: batches, schema)),
        ),
    ]
    run, bare = compare(f"Identity, {rows:,} rows", sides, turns)
    speeds = f"{rows / run / 1e6:.1f} million rows/s, and {rows / bare / 1e6:.1f} through mapInArrow"
    more = f"{(run - bare) / rows * 1e9:.0f} ns more for each row, {run / bare:.2f} times"
    print(f"  {speeds}: {more}", flush=True)
    return run - bare


def main() -> None:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument(
        "names",
        nargs="*",
        metavar="NAME",
        help="components, pagerank, paths, triangles, hops, rows, identity; default: all",
    )
    parser.add_argument("--large", action="store_true", help="ten times the nodes and the edges")
    parser.add_argument("--graphframes", metavar="JAR", help="GraphFrames, which is beside ours then")
    parser.add_argument("--scale", type=float, default=1.0, help="a part of the size, for a quick look")
    parser.add_argument("--turns", type=int, default=3, help="of each side, for the median (default: 3)")
    parser.add_argument("--tasks", type=int, default=2, help="Spark's slots (default: 2)")
    options = parser.parse_args()
    size = (1_000_000, 10_000_000) if options.large else (100_000, 1_000_000)
    nodes, edges = (int(number * options.scale) for number in size)
    turns = 1 if options.large else options.turns
    with tempfile.TemporaryDirectory() as made:
        settings = {"spark__driver__memory": "8g" if options.large else "3g"}
        if options.graphframes:
            settings["spark__jars"] = options.graphframes
        spark = start(options.tasks, Path(made) / "spark.log", **settings)
        setup = f"local[{options.tasks}], spark.sql.shuffle.partitions=4"
        print(f"Spark {spark.version}, {setup}, medians of {turns}")
        for name, bench in (
            ("components", lambda: bench_components(spark, nodes, edges, turns)),
            ("pagerank", lambda: bench_pagerank(spark, nodes, edges, turns)),
            ("paths", lambda: bench_paths(spark, nodes, edges, turns)),
            ("triangles", lambda: bench_triangles(spark, nodes, edges, turns)),
            ("hops", lambda: bench_hops(spark, nodes, turns)),
            ("rows", lambda: bench_rows(spark, int(WIDE * options.scale), turns)),
            ("identity", lambda: bench_identity(spark, int(ROWS * options.scale), turns)),
        ):
            if not options.names or name in options.names:
                bench()
        spark.stop()


if __name__ == "__main__":
    main()
