"""A data pipeline on Spark, with a dataflow inside: words of Python's library, and its import graph.

    python examples/spark_pipeline.py                          the whole library of the Python that runs it
    python examples/spark_pipeline.py --packages json,email    some packages of it
    python examples/spark_pipeline.py --scale 10               ten copies of it, which import each their own

Spark reads every .py file and makes two tables of them: the words of each package, and the import graph.
Two dataflows run inside Spark, as steps of its jobs. The first counts words, with a timestamp for each
batch of packages: the counts of a batch come out when the batch is over, and not later. The second is
three loops over the import graph, side by side: its connected components, PageRank, and what each module
needs, directly or through others. What they give are DataFrames again: joined by Spark, written as
Parquet, compared with what Spark SQL and NetworkX say, and shown as tables and as a picture.

Exit codes: 0 when all agrees, 1 when something does not, 2 when there is nothing to read or no Java.
"""

from __future__ import annotations

import argparse
import os
import shutil
import sys
import tempfile
from pathlib import Path
from typing import Any

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as sf
from rich.console import Console

import pointstamp as ps
import pointstamp.spark
from support import python_library as library
from support.checks import check_graph, check_words
from support.components import components
from support.pagerank import pagerank
from support.picture import draw
from support.reachability import reachability
from support.session import start
from support.steps import Steps
from support.tables import show_modules, show_packages

COUNTED = pa.schema(
    [("batch", pa.int64()), ("package", pa.string()), ("word", pa.string()), ("uses", pa.int64())]
)

# ---------------------------------------------------------------- the dataflows


def count_words(scope: ps.Scope, words: ps.ArrowStream) -> ps.ArrowStream:
    """Counts each word of each package; final for a batch of packages when its time closes."""
    counted = words.aggregate(["batch", "package", "word"], uses_sum=ps.col("uses").sum())
    return counted.map_batches(lambda batch: batch.rename_columns(COUNTED.names), COUNTED)


def study_graph(count: int) -> Any:
    """Three loops over one graph of so many nodes."""

    def build(scope: ps.Scope, imports: ps.ArrowStream) -> dict[str, ps.ArrowStream]:
        return {
            "components": components(imports),
            "ranks": pagerank(imports),
            "reach": reachability(imports, count),
        }

    return build


GRAPH_SCHEMAS = {
    "components": "node bigint, component bigint",
    "ranks": "node bigint, rank double",
    "reach": "node bigint, needs bigint, needed_by bigint, knot bigint",
}


# ---------------------------------------------------------------- before: Spark makes the tables


def words_of(parsed: DataFrame) -> DataFrame:
    """The words of each file: (batch, package, word, uses)."""
    return parsed.select("batch", "package", sf.explode("words").alias("word", "uses"))


def import_names(spark: SparkSession, parsed: DataFrame, copies: int) -> DataFrame:
    """The import graph by name: (source, target), each pair once, within the library alone."""
    builtin = [(name,) for name in sorted(library.builtin_modules(copies))]
    known = parsed.select(sf.col("module").alias("target")).union(
        spark.createDataFrame(builtin, "target string")
    )
    statements = parsed.select(
        sf.col("module").alias("source"), sf.posexplode("imports").alias("statement", "candidates")
    )
    named = statements.select("source", "statement", sf.posexplode("candidates").alias("place", "target"))
    # Of the names that an import could stand for, the longest that is a module's.
    resolved = (
        named.join(sf.broadcast(known.distinct()), "target")
        .groupBy("source", "statement")
        .agg(sf.min_by("target", "place").alias("target"))
    )
    return resolved.select("source", "target").where("source <> target").distinct()


def number_modules(names: DataFrame) -> DataFrame:
    """The graph's modules in the order of their names, numbered from 0: (node, module)."""
    ends = names.select(sf.col("source").alias("module")).union(names.select("target"))
    return ends.select(sf.posexplode(sf.array_sort(sf.collect_set("module"))).alias("node", "module")).select(
        sf.col("node").cast("bigint"), "module"
    )


def import_numbers(names: DataFrame, modules: DataFrame) -> DataFrame:
    """The import graph by number: (source, target)."""
    ends = {end: modules.select(sf.col("node"), sf.col("module").alias(end)) for end in ("source", "target")}
    return (
        names.join(sf.broadcast(ends["source"]), "source")
        .withColumnRenamed("node", "from")
        .join(sf.broadcast(ends["target"]), "target")
        .select(sf.col("from").alias("source"), sf.col("node").alias("target"))
    )


# ---------------------------------------------------------------- after: Spark joins the results


def module_table(modules: DataFrame, imports: DataFrame, found: dict[str, DataFrame]) -> DataFrame:
    """A row for each module of the graph, with all that was found out about it."""
    direct = imports.groupBy("target").agg(sf.count("*").alias("imported_by"))
    names = modules.withColumn("package", sf.substring_index("module", ".", 1))
    table = names
    for one in found.values():
        table = table.join(one, "node")
    size = found["reach"].groupBy("knot").agg(sf.count("*").alias("knot_size"))
    return (
        table.join(direct, names["node"] == direct["target"], "left")
        .join(size, "knot")
        .select(
            "node", "module", "package", "component", "rank", "needs", "needed_by", "knot", "knot_size",
            sf.coalesce("imported_by", sf.lit(0)).alias("imported_by"),
        )
    )  # fmt: skip


# ---------------------------------------------------------------- the program


def main() -> int:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--packages", metavar="A,B,...", help="only these packages (default: all)")
    parser.add_argument(
        "--tasks", type=int, default=min(max(os.cpu_count() or 2, 2), 8), help="Spark's slots"
    )
    parser.add_argument(
        "--scale", type=int, default=1, help="read so many copies of the library (default: 1)"
    )
    parser.add_argument("--out", type=Path, help="where to write the results (default: a new directory)")
    options = parser.parse_args()
    if options.tasks < 1:
        parser.error(f"--tasks {options.tasks}: it takes at least 1")
    if options.scale < 1:
        parser.error(f"--scale {options.scale}: it takes at least 1")
    if not os.environ.get("JAVA_HOME") and shutil.which("java") is None:
        parser.error("Spark needs Java 17 or newer: there is none on the PATH, and JAVA_HOME is not set")
    files = library.files(set(options.packages.split(",")) if options.packages else None, options.scale)
    if not files.num_rows:
        parser.error(f"there is no .py file of {options.packages} in {', '.join(map(str, library.roots()))}")
    out = options.out or Path(tempfile.mkdtemp(prefix="pointstamp-demo-"))
    out.mkdir(parents=True, exist_ok=True)
    console = Console(width=None if sys.stdout.isatty() else 100, highlight=False)
    console.print(
        f"Spark reads {files.num_rows:,} files of Python's library, and runs dataflows on what they say, "
        f"on {options.tasks} tasks."
    )
    steps = Steps(console)
    with steps.step("Start Spark"):
        spark = start(options.tasks, out / "spark.log")
    steps.context = spark.sparkContext
    try:
        return pipeline(spark, files, out, steps, options.tasks, options.scale)
    finally:
        spark.stop()


def pipeline(spark: SparkSession, files: pa.Table, out: Path, steps: Steps, tasks: int, scale: int) -> int:
    """From files to tables, through the dataflows, to the report; returns the exit code."""
    console = steps.console
    packages = len(files["package"].unique())
    batches = len(files["batch"].unique())
    with steps.step("Read and parse the files"):
        parsed = (
            spark.createDataFrame(files)
            .repartition(8 * tasks)
            .mapInArrow(library.parse, library.PARSED)
            .persist()
        )
        [(lines, size)] = parsed.agg(sf.sum("lines"), sf.sum("bytes")).collect()
    with steps.step("Make the import graph"):
        names = import_names(spark, parsed, scale).persist()
        modules = number_modules(names).persist()
        imports = import_numbers(names, modules).persist()
        nodes, edges = modules.count(), imports.count()

    words = words_of(parsed)
    with steps.step("Dataflow: count words, batch by batch"):
        counts = pointstamp.spark.run(
            words,
            count_words,
            "batch bigint, package string, word string, uses bigint",
            time="batch",
            time_column="time",
        )
        counts.write.mode("overwrite").parquet(str(out / "words"))
    with steps.step("Dataflow: three loops over the import graph"):
        found = pointstamp.spark.run({"imports": imports}, study_graph(nodes), GRAPH_SCHEMAS)
        module_table(modules, imports, found).write.mode("overwrite").parquet(str(out / "modules"))

    counts, table = spark.read.parquet(str(out / "words")), spark.read.parquet(str(out / "modules"))
    with steps.step("Check the words with Spark SQL"):
        wrong_words = check_words(counts, words)
    with steps.step("Check the graph with NetworkX"):
        links = imports.toArrow()
        rows = sorted(table.toArrow().to_pylist(), key=lambda row: -row["rank"])
        wrong_graph = check_graph(links, rows)
    with steps.step("Draw the most central modules"):
        picture = out / "modules.png"
        draw(rows, links, picture)

    show_packages(console, counts)
    show_modules(console, rows)
    parts = {row["component"] for row in rows}
    for line in (
        f"Words: {lines:,} lines ({size / 1e6:,.1f} MB) of {packages:,} packages, at {batches} times.",
        f"Graph: {nodes:,} modules with {edges:,} imports, in {len(parts):,} connected component(s).",
        f"Both dataflows ran inside Spark, each in a barrier stage of {tasks} tasks.",
        f"Checked: Spark SQL counts {wrong_words or 'the same words'}.",
        f"Checked: NetworkX finds {wrong_graph or 'the same components, cycles, ranks and needs'}.",
    ):
        console.print(line)
    console.print(f"Written to {out}: words and modules, as Parquet, and {picture.name}.")
    return 1 if wrong_words or wrong_graph else 0


if __name__ == "__main__":
    sys.exit(main())
