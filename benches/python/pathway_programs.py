"""Programs of `collection_peers.py` with Pathway, each in a process of its own: prints one line of JSON.

    python benches/python/pathway_programs.py degrees|bfs|components NODES EDGES

Runs with any Python that has Pathway; this package is not needed. Reads no files: edges come from pandas, as
in Pathway's own examples. Prints processor seconds of building and running, and what came out as a count and
a sum.
"""

from __future__ import annotations

import json
import sys
import time
from typing import Any

import numpy as np
import pandas as pd
import pathway as pw

# The node from which `bfs` begins, as in `collection_peers.py`.
ROOT = 1


def numbers(index: Any) -> Any:
    """Numbers of an endless list (splitmix64), as `bench_collections.py` makes them."""
    with np.errstate(over="ignore"):
        z = (index.astype(np.uint64) + np.uint64(1)) * np.uint64(0x9E37_79B9_7F4A_7C15)
        z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58_476D_1CE4_E5B9)
        z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D0_49BB_1331_11EB)
        return z ^ (z >> np.uint64(31))


def edges_of(nodes: int, edges: int) -> pd.DataFrame:
    """The same edges as there."""
    index = np.arange(edges, dtype=np.uint64)
    ends = [numbers(np.uint64(2) * index + np.uint64(end)) % np.uint64(nodes) for end in (0, 1)]
    return pd.DataFrame({"source": ends[0].astype(np.int64), "target": ends[1].astype(np.int64)})


def degrees(edges: pw.Table) -> pw.Table:
    """The number of nodes with each number of edges; both keys by Python functions."""
    sources = edges.select(node=pw.apply_with_type(lambda edge: edge, int, edges.source))
    counts = sources.groupby(sources.node).reduce(degree=pw.reducers.count())
    degrees = counts.select(degree=pw.apply_with_type(lambda degree: degree, int, counts.degree))
    return degrees.groupby(degrees.degree).reduce(degrees.degree, count=pw.reducers.count())


def least(pairs: pw.Table) -> pw.Table:
    """The least value of each node."""
    return pairs.groupby(pairs.node).reduce(pairs.node, value=pw.reducers.min(pairs.value))


def bfs(edges: pw.Table) -> pw.Table:
    """The distance of each node from one of them."""
    start = pw.debug.table_from_pandas(pd.DataFrame({"node": [ROOT], "value": [0]}))

    def turn(reached: pw.Table, edges: pw.Table) -> pw.Table:
        steps = reached.join(edges, reached.node == edges.source).select(
            node=edges.target, value=reached.value + 1
        )
        return least(pw.Table.concat_reindex(reached, steps))

    return pw.iterate(
        lambda reached, edges: {"reached": turn(reached, edges), "edges": edges},
        reached=pw.iterate_universe(least(start)),
        edges=edges,
    ).reached


def components(edges: pw.Table) -> pw.Table:
    """The least node of each component."""
    back = edges.select(source=edges.target, target=edges.source)
    both = pw.Table.concat_reindex(edges, back)
    own = least(both.select(node=both.source, value=both.source))

    def turn(labels: pw.Table, edges: pw.Table) -> pw.Table:
        passed = labels.join(edges, labels.node == edges.source).select(node=edges.target, value=labels.value)
        return least(pw.Table.concat_reindex(labels, passed))

    return pw.iterate(
        lambda labels, edges: {"labels": turn(labels, edges), "edges": edges},
        labels=pw.iterate_universe(own),
        edges=both,
    ).labels


if __name__ == "__main__":
    program, nodes, edges = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
    frame = edges_of(nodes, edges)
    began = time.process_time()
    table = {"degrees": degrees, "bfs": bfs, "components": components}[program](
        pw.debug.table_from_pandas(frame)
    )
    found = pw.debug.table_to_pandas(table, include_id=False)
    took = time.process_time() - began
    first, second = (found.iloc[:, column].to_numpy(dtype=np.uint64) for column in (0, 1))
    with np.errstate(over="ignore"):
        total = int(numbers(first << np.uint64(32) | second).sum())
    print(json.dumps({"load": took, "check": [len(found), total]}))
