"""Loops inside Spark, against NetworkX."""

import random
from typing import Any

import networkx as nx
import pyarrow as pa
import pytest

import pointstamp as ps
from pointstamp.spark import run

NODES = 300
LABELS = pa.schema([("node", pa.int64()), ("label", pa.int64())])
PAIRS = pa.schema([("start", pa.int64()), ("node", pa.int64())])


@pytest.fixture
def edges(spark: Any) -> tuple[list[tuple[int, int]], Any]:
    chosen = random.Random(7)
    pairs = [(chosen.randrange(NODES), chosen.randrange(NODES)) for _ in range(260)]
    return pairs, spark.createDataFrame(pairs, "source bigint, target bigint").repartition(3)


def smaller(seen: dict[int, int]) -> Any:
    """Lets a label pass that is less than all that its node had."""

    def pick(batch: pa.RecordBatch) -> pa.RecordBatch:
        kept = []
        for node, label in zip(batch["node"].to_pylist(), batch["label"].to_pylist(), strict=True):
            if label < seen.get(node, NODES):
                seen[node] = label
                kept.append({"node": node, "label": label})
        return pa.RecordBatch.from_pylist(kept, schema=LABELS)

    return pick


@pytest.mark.parametrize("num_workers", [1, 2])
def test_connected_components(edges: tuple[Any, Any], num_workers: int) -> None:
    pairs, rows = edges

    def build(scope: ps.Scope, edges: ps.ArrowStream) -> ps.ArrowStream:
        def both(batch: pa.RecordBatch) -> pa.Table:
            a, b = batch["source"], batch["target"]
            return pa.table({"node": pa.chunked_array([a, b]), "other": pa.chunked_array([b, a])})

        def own(batch: pa.RecordBatch) -> pa.RecordBatch:
            return pa.record_batch([batch["node"], batch["node"]], schema=LABELS)

        def onward(batch: pa.RecordBatch) -> pa.RecordBatch:
            return pa.record_batch([batch["other"], batch["label"]], schema=LABELS)

        neighbours = edges.map_batches(both, pa.schema([("node", pa.int64()), ("other", pa.int64())]))
        first = neighbours.map_batches(own, LABELS)
        with scope.iterative() as inner:
            handle, again = inner.loop_variable(schema=LABELS)
            labels = first.enter(inner).concat(again).exchange("node").map_batches(smaller({}))
            labels.join_so_far(neighbours.enter(inner), "node").map_batches(onward, LABELS).connect_loop(
                handle
            )
            return labels.leave().aggregate("node", label_min=ps.col("label").min())

    out = run(rows, build, "node bigint, label_min bigint", num_workers=num_workers).collect()
    graph = nx.Graph(pairs)
    expected = {node: min(part) for part in nx.connected_components(graph) for node in part}
    assert sorted(map(tuple, out)) == sorted(expected.items())


@pytest.mark.parametrize("num_workers", [1, 2])
def test_reachability(edges: tuple[Any, Any], spark: Any, num_workers: int) -> None:
    pairs, rows = edges
    starts = [0, 17, 123]

    def build(scope: ps.Scope, edges: ps.ArrowStream, starts: ps.ArrowStream) -> ps.ArrowStream:
        def begin(batch: pa.RecordBatch) -> pa.RecordBatch:
            return pa.record_batch([batch["start"], batch["start"]], schema=PAIRS)

        def onward(batch: pa.RecordBatch) -> pa.RecordBatch:
            return pa.record_batch([batch["start"], batch["target"]], schema=PAIRS)

        def named(batch: pa.RecordBatch) -> pa.RecordBatch:
            return batch.rename_columns(["node", "target"])

        following = edges.map_batches(named, pa.schema([("node", pa.int64()), ("target", pa.int64())]))
        with scope.iterative() as inner:
            handle, again = inner.loop_variable(schema=PAIRS)
            reached = starts.map_batches(begin, PAIRS).enter(inner).concat(again).distinct_so_far()
            reached.join_so_far(following.enter(inner), "node").map_batches(onward, PAIRS).connect_loop(
                handle
            )
            return reached.leave()

    inputs = {"edges": rows, "starts": spark.createDataFrame([(s,) for s in starts], "start bigint")}
    out = run(inputs, build, "start bigint, node bigint", num_workers=num_workers).collect()
    graph = nx.DiGraph(pairs)
    graph.add_nodes_from(starts)
    expected = {(start, node) for start in starts for node in nx.descendants(graph, start) | {start}}
    assert sorted(map(tuple, out)) == sorted(expected)
