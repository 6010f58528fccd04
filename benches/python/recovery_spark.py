"""The work of `recovery.py` with Structured Streaming and its RocksDB state store: prints one line of JSON.

    python benches/python/recovery_spark.py STATES RECORDS SECONDS

A query of Spark always makes checkpoints: one with each micro-batch. So there is no run without them, and a
micro-batch has as many records as come in so many seconds, with 1 % of the keys changed in each. Two shuffle
partitions, on two cores.
"""

from __future__ import annotations

import json
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import SparkSession, functions

MICRO_BATCHES = 10
"""Micro-batches of changes, behind the one that makes all states."""

ROCKSDB = "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"


def write(folder: Path, states: int, records: int) -> None:
    """Writes a file for each micro-batch."""
    drawn, some = np.random.default_rng(7), max(1, states // 100)
    each = max(1, records // MICRO_BATCHES)
    batches = [np.arange(states)]
    batches += [turn * some + drawn.integers(0, some, each) for turn in range(MICRO_BATCHES)]
    for number, keys in enumerate(batches):
        table = pa.table({"key": keys.astype(np.int64), "amount": np.ones(len(keys), np.int64)})
        pq.write_table(table, folder / f"{number:03}.parquet")
        time.sleep(0.01)  # Spark reads files in the order of their times


def main() -> None:
    """The command line."""
    states, records = int(sys.argv[1]), int(sys.argv[2])
    session = SparkSession.builder.master("local[2]").config("spark.ui.enabled", False)
    session = session.config("spark.sql.shuffle.partitions", 2).config("spark.driver.memory", "4g")
    spark = session.config("spark.sql.streaming.stateStore.providerClass", ROCKSDB).getOrCreate()
    spark.sparkContext.setLogLevel("ERROR")
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder)
        (place / "in").mkdir()
        write(place / "in", states, records)
        stream = spark.readStream.schema("key bigint, amount bigint").option("maxFilesPerTrigger", 1)
        totals = stream.parquet(f"{place}/in").groupBy("key").agg(functions.sum("amount").alias("total"))
        query = totals.writeStream.outputMode("update").format("noop").trigger(availableNow=True)
        running = query.option("checkpointLocation", f"{place}/checkpoint").start()
        running.awaitTermination()
        progress = [one for one in running.recentProgress if one["numInputRows"]]
    spark.stop()
    changes = progress[1:]  # the first one makes all states
    assert sum(one["numInputRows"] for one in changes) == records // MICRO_BATCHES * MICRO_BATCHES
    seconds = sum(one["durationMs"]["triggerExecution"] for one in changes) / 1000
    print(json.dumps({"without": None, "with": seconds}))


if __name__ == "__main__":
    main()
