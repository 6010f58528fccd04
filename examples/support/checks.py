"""Computes the results with other tools, and lists differences: words by Spark SQL, the graph by NetworkX."""

from __future__ import annotations

from typing import Any

import networkx
import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as sf

Row = dict[str, Any]


def check_words(counts: DataFrame, words: DataFrame) -> str:
    """Compares counts with Spark's `groupBy`, and their timestamps with their batches."""
    if (early := counts.where("time <> batch").first()) is not None:
        return f"otherwise: a count of batch {early.batch} came out at time {early.time}"
    expected = words.groupBy("package", "word").agg(sf.sum("uses").alias("expected"))
    differing = counts.join(expected, ["package", "word"], "full").where("not (uses <=> expected)")
    row = differing.first()
    return (
        "" if row is None else f"otherwise: {row.word!r} of {row.package}: {row.uses}, and not {row.expected}"
    )


def check_graph(imports: pa.Table, rows: list[Row]) -> str:
    """Compares every number of every module."""
    graph = networkx.DiGraph()
    graph.add_edges_from(zip(imports["source"].to_pylist(), imports["target"].to_pylist(), strict=True))
    by_node = {row["node"]: row for row in rows}
    if by_node.keys() != set(graph):
        return f"otherwise: {len(by_node)} modules, and not {len(graph)}"
    expected: dict[str, dict[int, Any]] = {
        "component": smallest_of(networkx.weakly_connected_components(graph)),
        "knot": smallest_of(networkx.strongly_connected_components(graph)),
        "needs": reached(graph),
        "needed_by": reached(graph.reverse()),
    }
    for name, values in expected.items():
        for node, value in values.items():
            if by_node[node][name] != value:
                return (
                    f"otherwise: {name} of {by_node[node]['module']}: {by_node[node][name]}, and not {value}"
                )
    for node, rank in networkx.pagerank(graph).items():
        if abs(by_node[node]["rank"] - rank) > 1e-5 * max(rank, 1 / len(graph)):
            return f"otherwise: rank of {by_node[node]['module']}: {by_node[node]['rank']}, and not {rank}"
    return ""


def smallest_of(sets: Any) -> dict[int, int]:
    """The smallest node of each node's set."""
    return {node: smallest for one in sets for smallest in [min(one)] for node in one}


def reached(graph: Any) -> dict[int, int]:
    """Counts the nodes that each node reaches: by the condensation, the last parts first, as sets of bits."""
    parts = networkx.condensation(graph)
    sets: dict[int, int] = {}
    result: dict[int, int] = {}
    for part in reversed(list(networkx.topological_sort(parts))):
        members = parts.nodes[part]["members"]
        reach = sum(1 << node for node in members) if len(members) < 64 else int_of(members)
        for following in parts.successors(part):
            reach |= sets[following]
        sets[part] = reach
        result.update(dict.fromkeys(members, reach.bit_count() - 1))
    return result


def int_of(members: set[int]) -> int:
    """A number with these bits."""
    data = bytearray(max(members) // 8 + 1)
    for node in members:
        data[node // 8] |= 1 << node % 8
    return int.from_bytes(data, "little")
