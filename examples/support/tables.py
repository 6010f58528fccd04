"""Prints the tables of the Spark example: the packages with the most words, and the most central modules."""

from __future__ import annotations

from typing import Any

from pyspark.sql import DataFrame
from pyspark.sql import functions as sf
from rich.console import Console
from rich.table import Table


def show_packages(console: Console, counts: DataFrame, top: int = 8, words: int = 5) -> None:
    """The packages with the most words, and the words that are most theirs."""
    packages = counts.groupBy("package").agg(
        sf.sum("uses").alias("words"), sf.count("*").alias("different"), sf.first("time").alias("time")
    )
    largest = packages.orderBy(sf.desc("words")).limit(top).persist()
    everywhere = counts.groupBy("word").agg(sf.sum("uses").alias("everywhere"))
    total = counts.agg(sf.sum("uses")).collect()[0][0]
    # A word is a package's own in proportion to its frequency there over everywhere.
    weight = sf.expr(f"uses * ln(uses / words / (everywhere / {total}))")
    weighed = counts.join(largest.select("package", "words"), "package").join(everywhere, "word")
    ordered = sf.array_sort(sf.collect_list(sf.struct((-weight).alias("weight"), "word")))
    own = weighed.groupBy("package").agg(sf.slice(ordered, 1, words).alias("own"))
    table = Table(title="Most words", title_justify="left", title_style="bold")
    for name in ("package", "at time", "words", "different", "its own"):
        table.add_column(name, justify="right" if name in ("at time", "words", "different") else "left")
    for row in largest.join(own, "package").orderBy(sf.desc("words")).collect():
        theirs = " ".join(word for _, word in row.own)
        table.add_row(row.package, str(row.time), f"{row.words:,}", f"{row.different:,}", theirs)
    console.print(table)


def show_modules(console: Console, rows: list[dict[str, Any]], top: int = 15) -> None:
    """The most central modules: by rank."""
    table = Table(title="Most central modules", title_justify="left", title_style="bold")
    names = ("", "module", "rank", "imported by", "needed by", "needs", "in a cycle of")
    for name in names:
        table.add_column(name, justify="left" if name == "module" else "right")
    for place, row in enumerate(rows[:top], 1):
        cycle = f"{row['knot_size']:,}" if row["knot_size"] > 1 else ""
        numbers = (f"{row[name]:,}" for name in ("imported_by", "needed_by", "needs"))
        table.add_row(str(place), row["module"], f"{row['rank']:.4f}", *numbers, cycle)
    console.print(table)
