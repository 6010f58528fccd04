"""The resident cluster keeps nothing of runs that are over."""

import gc
from collections import Counter
from typing import Any

import pyarrow as pa
import pytest

import pointstamp as ps
from effort import EFFORT
from pointstamp.spark import setup_cluster

ROUNDS = 8 if EFFORT == 1 else 1000
ROWS = 20_000


def measured(_scope: ps.Scope, rows: ps.ArrowStream) -> ps.ArrowStream:
    """Says in a row what there is in the process that runs it: objects of ours, and bytes of Arrow."""
    schema = pa.schema([("objects", pa.string()), ("bytes", pa.int64())])

    def measure(batch: pa.RecordBatch) -> pa.RecordBatch:
        gc.collect()
        types = (type(thing) for thing in gc.get_objects())
        ours = Counter(one.__qualname__ for one in types if str(one.__module__).startswith("pointstamp"))
        return pa.record_batch([[repr(sorted(ours.items()))], [pa.total_allocated_bytes()]], schema=schema)

    return rows.map_batches(measure, schema=schema)


def passed_on(_scope: ps.Scope, rows: ps.ArrowStream) -> ps.ArrowStream:
    return rows


@pytest.mark.timeout(400 if EFFORT == 1 else 7000)
def test_runs_of_a_resident_cluster_leave_nothing(spark: Any) -> None:
    one = spark.range(1)
    rows = spark.range(0, ROWS, 1, 2).selectExpr("id", "concat('name', id) text").cache()

    def looked() -> Any:
        return cluster.run(one, measured, "objects string, bytes bigint").collect()[0]

    with setup_cluster(1) as cluster:
        for _ in range(3):
            cluster.run(rows, passed_on)
            looked()
        before = looked()
        for _ in range(ROUNDS):
            assert cluster.run(rows, passed_on).count() == ROWS
        after = looked()
    rows.unpersist()
    assert after.objects == before.objects
    assert after.bytes < before.bytes + ROWS * 8, "not even one run's output"
