"""Dataflows inside Spark beside the same in DataFrames, in one session.

python benches/python/bench_spark.py [NAME...]

    components   components of 100,000 nodes and 500,000 edges, by min-label and by large/small-star
    pagerank     ten rounds of PageRank on as many, beside joins
    identity     rows through a dataflow that does nothing, beside a mapInArrow that does nothing

Every row is a ratio to the dataflow's time, from this run; above 1, the dataflow is faster. Each side
starts with the graph in Spark's memory, and ends with numbers of its result that must be equal. `--large`
takes 1,000,000 nodes and 10,000,000 edges, once; `--scale` a part of the size, for a quick look.
"""

from __future__ import annotations

import argparse
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import spark_programs as peers
from figures import leave
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as sf

sys.path.insert(0, str(Path(__file__).parents[2] / "examples"))

import pointstamp.spark
from support.components import EDGES, components
from support.pagerank import pagerank
from support.session import start

ROUNDS = 10
ROWS = 20_000_000

Side = tuple[str, Callable[[], Any]]


def compare(title: str, sides: list[Side], turns: int) -> list[float]:
    """Runs the sides by turns, the first unmeasured; prints and returns the medians of their seconds."""
    print(f"\n{title}", flush=True)
    seconds: list[list[float]] = [[] for _ in sides]
    expected: Any = None
    for turn in range(-1 if turns > 1 else 0, turns):
        for times, (name, run) in zip(seconds, sides, strict=True):
            began = time.perf_counter()
            result = run()
            if turn >= 0:
                times.append(time.perf_counter() - began)
            expected = result if expected is None else expected
            if result != expected:
                raise SystemExit(f"wrong: {name} says {result}, and {sides[0][0]} {expected}")
    medians = [statistics.median(times) for times in seconds]
    for (name, _), median in zip(sides, medians, strict=True):
        print(f"  {name:<44}{median:9.2f} s{median / medians[0]:9.2f}", flush=True)
    for (name, _), median in list(zip(sides, medians, strict=True))[1:]:
        leave("Spark", title, medians[0], name, median)
    return medians


def graph(spark: SparkSession, source: Any, target: Any) -> DataFrame:
    """A graph in Spark's memory."""
    edges = spark.createDataFrame(pa.table([source, target], schema=EDGES)).repartition(4).persist()
    edges.count()
    return edges


def bench_components(spark: SparkSession, nodes: int, count: int, turns: int) -> None:
    """Connected components of a random graph."""
    random = np.random.default_rng(1)
    edges = graph(spark, random.integers(0, nodes, count), random.integers(0, nodes, count))

    def numbers(found: DataFrame) -> Any:
        # How many nodes and components there are, and what the components are.
        return tuple(found.agg(sf.count("*"), sf.countDistinct("component"), sf.sum("component")).first())

    def ours() -> Any:
        schema = "node bigint, component bigint"
        return numbers(pointstamp.spark.run(edges, lambda scope, edges: components(edges), schema))

    sides: list[Side] = [
        ("pointstamp.spark.run", ours),
        ("DataFrames: min-label", lambda: numbers(peers.min_label(edges))),
        ("DataFrames: large-star, small-star", lambda: numbers(peers.stars(edges))),
    ]
    compare(f"Connected components, {nodes:,} nodes, {count:,} edges", sides, turns)
    edges.unpersist()


def bench_pagerank(spark: SparkSession, nodes: int, count: int, turns: int) -> None:
    """PageRank of a random graph in which all nodes have as many links."""
    source = np.repeat(np.arange(nodes), count // nodes)
    edges = graph(spark, source, np.random.default_rng(2).integers(0, nodes, len(source)))

    def numbers(found: DataFrame) -> Any:
        row = found.agg(
            sf.count("*"), sf.sum("rank"), sf.sum(sf.col("rank") * (sf.col("node") % 101))
        ).first()
        return tuple(round(number, 8) for number in row)

    def ours() -> Any:
        def build(scope: Any, edges: Any) -> Any:
            return pagerank(edges, tolerance=0, rounds=ROUNDS)

        return numbers(pointstamp.spark.run(edges, build, "node bigint, rank double"))

    sides: list[Side] = [
        ("pointstamp.spark.run", ours),
        ("DataFrames", lambda: numbers(peers.pagerank(edges, nodes, ROUNDS))),
    ]
    compare(f"PageRank, {ROUNDS} rounds, {nodes:,} nodes, {len(source):,} links", sides, turns)
    edges.unpersist()


def bench_identity(spark: SparkSession, rows: int, turns: int) -> None:
    """What it costs to go through a dataflow, with its start, and what each further row costs."""
    some = identity(spark, rows // 4, turns)
    all_of_them = identity(spark, rows, turns)
    further = (all_of_them - some) / (rows - rows // 4) * 1e9
    print(f"  each further row: {further:.0f} ns more; the start is the rest", flush=True)


def identity(spark: SparkSession, rows: int, turns: int) -> float:
    """Rows of a bigint and a double, in and out, into nothing: the seconds more than through mapInArrow."""
    numbers = spark.range(0, rows, 1, 4).select("id", sf.rand(1).alias("x"))
    schema = "id bigint, x double"

    def into_nothing(result: DataFrame) -> None:
        result.write.format("noop").mode("overwrite").save()

    sides: list[Side] = [
        (
            "pointstamp.spark.run, identity",
            lambda: into_nothing(pointstamp.spark.run(numbers, lambda scope, rows: rows, schema)),
        ),
        ("mapInArrow, identity", lambda: into_nothing(numbers.mapInArrow(lambda batches: batches, schema))),
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
        "names", nargs="*", metavar="NAME", help="components, pagerank, identity; default: all"
    )
    parser.add_argument("--large", action="store_true", help="ten times the nodes and twenty times the edges")
    parser.add_argument("--scale", type=float, default=1.0, help="a part of the size, for a quick look")
    parser.add_argument("--turns", type=int, default=3, help="of each side, for the median (default: 3)")
    parser.add_argument("--tasks", type=int, default=2, help="Spark's slots (default: 2)")
    options = parser.parse_args()
    size = (1_000_000, 10_000_000) if options.large else (100_000, 500_000)
    nodes, edges = (int(number * options.scale) for number in size)
    turns = 1 if options.large else options.turns
    with tempfile.TemporaryDirectory() as made:
        memory = "6g" if options.large else "3g"
        spark = start(options.tasks, Path(made) / "spark.log", spark__driver__memory=memory)
        setup = f"local[{options.tasks}], spark.sql.shuffle.partitions=4"
        print(f"Spark {spark.version}, {setup}, medians of {turns}")
        for name, bench in (
            ("components", lambda: bench_components(spark, nodes, edges, turns)),
            ("pagerank", lambda: bench_pagerank(spark, nodes, edges, turns)),
            ("identity", lambda: bench_identity(spark, int(ROWS * options.scale), turns)),
        ):
            if not options.names or name in options.names:
                bench()
        spark.stop()


if __name__ == "__main__":
    main()
