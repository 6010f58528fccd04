"""The resident cluster keeps nothing of runs that are over, and gives its memory back."""

import gc
import json
import os
import time
import urllib.request
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import pointstamp as ps
from effort import EFFORT
from pointstamp.observability.collector import resident
from pointstamp.spark import compat, setup_cluster

ROUNDS = 60 if EFFORT < 10 else 10_000
ROWS = 1000
MB = 1 << 20


def measured(_scope: ps.Scope, rows: ps.ArrowStream) -> ps.ArrowStream:
    """Returns in a row the use of its process: objects of the package, bytes of Arrow, memory, files."""
    schema = pa.schema(
        [("objects", pa.string()), ("arrow", pa.int64()), ("memory", pa.int64()), ("files", pa.int64())]
    )

    def measure(_: pa.RecordBatch) -> pa.RecordBatch:
        gc.collect()
        types = (type(thing) for thing in gc.get_objects())
        ours = Counter(one.__qualname__ for one in types if str(one.__module__).startswith("pointstamp"))
        sizes = pa.total_allocated_bytes(), resident(), len(os.listdir("/proc/self/fd"))
        return pa.record_batch([[repr(sorted(ours.items()))], *([size] for size in sizes)], schema=schema)

    return rows.map_batches(measure, schema=schema)


def passed_on(_scope: ps.Scope, rows: ps.ArrowStream) -> ps.ArrowStream:
    return rows


def files(spark: Any) -> int:
    """The blocks that Spark has in files."""
    folder = Path(spark.conf.get("spark.local.dir"))
    return sum(1 for file in folder.glob("blockmgr-*/**/*") if file.is_file())


def eventually(holds: Callable[[], bool]) -> bool:
    """Whether something holds within a minute: Spark removes results on a thread of its own."""
    until = time.monotonic() + 60
    while not (held := holds()) and time.monotonic() < until:
        time.sleep(0.1)
    return held


@pytest.mark.timeout(450 if EFFORT < 10 else 7000)
def test_runs_of_a_resident_cluster_leave_nothing(spark: Any) -> None:
    context = spark.sparkContext
    rows = spark.range(0, ROWS, 1, 2).selectExpr("id", "concat('name', id) text").cache()
    one = spark.range(1)

    def looked() -> Any:
        return cluster.run(one, measured).collect()[0]

    def stored() -> int:
        return int(context._jsc.getPersistentRDDs().size())

    with setup_cluster(1) as cluster:
        for _ in range(10):
            cluster.run(rows, passed_on)
        looked()
        before, there, opened = looked(), files(spark), len(os.listdir("/proc/self/fd"))
        gc.collect()
        objects = len(gc.get_objects())
        compat.collect_garbage(context)
        kept = stored()
        for _ in range(ROUNDS):
            assert cluster.run(rows, passed_on).count() == ROWS
        after = looked()
        gc.collect()
        grown = len(gc.get_objects()) - objects  # some hundred come and go
        assert grown < max(1000, ROUNDS // 2), "the driver keeps something of each run"
    rows.unpersist()
    assert after.objects == before.objects
    assert after.files <= before.files + 2, "connections of tasks that end while it looks"
    assert after.arrow < before.arrow + ROWS * 8, "not even one run's output"
    assert after.memory < before.memory + 8 * MB
    assert files(spark) <= there
    assert len(os.listdir("/proc/self/fd")) <= opened + 2
    compat.collect_garbage(context)
    assert eventually(lambda: stored() <= kept + 3), "of 60 runs and more"


@pytest.mark.executors
@pytest.mark.timeout(450)
@pytest.mark.skipif(EFFORT == 1, reason="stores a gigabyte: `make test-spark` runs it")
def test_stored_results_are_freed_before_the_memory_for_them_is_full(executors: Any) -> None:
    """The driver's Java has little to do, so that it does not collect garbage by itself."""
    context = executors.sparkContext
    rows = executors.range(0, 250_000, 1, 2).selectExpr("id", "repeat(cast(id as string), 40) text").cache()
    assert rows.count() == 250_000
    stored = 0
    with setup_cluster(1) as cluster:
        before, limit = compat.storage(context)
        while stored < limit:
            assert cluster.run(rows, passed_on).count() == 250_000
            used, _ = compat.storage(context)
            assert used < limit // 2
            stored += max(0, used - before)
            before = used
    rows.unpersist()


def test_memory_is_given_back_and_is_on_the_page(spark: Any) -> None:
    def large(_scope: ps.Scope, rows: ps.ArrowStream) -> ps.ArrowStream:
        text = pa.schema([("text", pa.string())])
        return rows.map_batches(lambda _: pa.record_batch([["x" * 1000] * 5000], schema=text), text)

    def memory() -> int:
        with urllib.request.urlopen(f"{cluster.dashboard}state", timeout=60) as answer:
            state = json.load(answer)
        [worker] = state["workers"]
        size: int = worker["memory"]
        return size

    with setup_cluster(1, dashboard=0) as cluster:
        cluster.run(spark.range(1), large)
        before = memory()
        assert cluster.run(spark.range(0, 40, 1, 40), large).count() == 200_000
        assert eventually(lambda: memory() < before + 50 * MB), "it kept 200 MB"
        with urllib.request.urlopen(f"{cluster.dashboard}metrics", timeout=60) as answer:
            assert b"pointstamp_process_resident_memory_bytes" in answer.read()
        with urllib.request.urlopen(f"{cluster.dashboard}explain", timeout=60) as answer:
            assert answer.status == 200
