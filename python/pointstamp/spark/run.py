"""`run`: a dataflow as a step of a Spark job, from DataFrames to DataFrames.

Owns the plan. Three stages of Python: each input is packed where it is (sorted by time first, if it has one);
the packed batches of all inputs are dealt to the tasks of one barrier stage, which runs the dataflow; its
packed outputs are dealt out again and unpacked. The second shuffle is what lets Spark retry a barrier stage,
and `limit`, `take` and `coalesce` follow it.
"""

from __future__ import annotations

import secrets
from functools import reduce
from typing import TYPE_CHECKING, Any

from pointstamp.spark.failures import listen
from pointstamp.spark.packing import FAILED, GUARD, PACKED
from pointstamp.spark.plan import dataframes, plan, spark_schemas, times_of
from pointstamp.spark.session import is_connect, session_of, tasks
from pointstamp.spark.shipped import ship
from pointstamp.spark.task import Job

if TYPE_CHECKING:
    from collections.abc import Callable

    from pyspark.sql import DataFrame, SparkSession

    from pointstamp.spark.plan import Plan

__all__ = ["Outputs", "packed_inputs", "run"]


class Outputs(dict[str, Any]):
    """The outputs of one dataflow, by name: DataFrames that share one run of it.

    The first action on any of them runs the dataflow and stores what it sent, in memory or on disk, as
    Spark's `persist` does; the others read that. `unpersist` frees it.
    """

    def __init__(self, outputs: dict[str, DataFrame], stored: DataFrame) -> None:
        super().__init__(outputs)
        self._stored = stored

    def unpersist(self) -> None:
        """Frees what is stored: an action that comes later runs the dataflow again."""
        self._stored.unpersist()


def run(
    inputs: DataFrame | dict[str, DataFrame],
    build: Callable[..., Any],
    schema: Any,
    *,
    time: str | dict[str, str] | None = None,
    time_column: str | None = None,
    num_workers: int | None = None,
) -> Any:
    """Runs a dataflow inside Spark, on DataFrames, and returns its outputs as DataFrames.

    Nothing runs before an action asks for the result, and another action may run the dataflow again; `cache`
    the result where it is used more than once. Every task of the stage is one process of a cluster, with
    `spark.task.cpus` workers.

    Args:
        inputs: A DataFrame, or several by name.
        build: Called as ``build(scope, stream)``, or for several inputs ``build(scope, **streams)``, with
            `ArrowStream`s; on every worker. Returns an `ArrowStream`, or a dict of them for several outputs.
            It travels pickled, by cloudpickle; modules of yours need `addPyFile` or `addArtifacts`.
        schema: Of the output, a `StructType` or its text (``"word string, n bigint"``); for several outputs a
            dict. Columns are found by name, put into its order and cast to its types.
        time: The integer column that holds each row's timestamp, or for several inputs, one of each by name;
            an input without one has all rows at 0. It remains a column.
        time_column: Adds the timestamp of each output row, under this name, as the last column.
        num_workers: Tasks of the barrier stage, all of which must run at once. Left out: the slots there are.

    Returns:
        A DataFrame; of several outputs, `Outputs`: a dict of DataFrames that share one run.

    Raises:
        ConfigError: If Spark cannot run the stage: too few slots, or dynamic allocation.
        GraphError: If an input, a schema or a column is not what it should be.

    An exception of a task is raised by the action, as it was raised in the task, with the task's traceback in
    a note. An input's time that is null or negative is a `TimeError` that shows the row.
    """
    from pyspark import cloudpickle

    several = isinstance(inputs, dict)
    named = dataframes(inputs)
    session = session_of(next(iter(named.values())))
    checked = plan(
        session,
        {name: df.schema for name, df in named.items()},
        build,
        schema,
        keyword=several,
        time_column=time_column,
    )
    pickled: bytes = cloudpickle.dumps(checked)  # type: ignore[no-untyped-call]
    times = times_of(named, time, several)
    workers = tasks(session, num_workers)
    job = Job(pickled, times, secrets.token_bytes(32), workers)
    listen(connect=is_connect(session))
    packed = packed_inputs(checked, named, job.times)
    dealt = _dealt(session, packed, job, workers)
    ran = _raising(dealt.mapInArrow(ship("run", job), PACKED, barrier=True).repartition(workers))
    stored = ran.persist() if isinstance(schema, dict) else ran
    unpacked = {
        name: stored.mapInArrow(ship("unpack", number), rows)
        for number, (name, rows) in enumerate(spark_schemas(schema, time_column).items())
    }
    if isinstance(schema, dict):
        return Outputs(unpacked, stored)
    return next(iter(unpacked.values()))


def _dealt(session: SparkSession, packed: DataFrame, job: Job, workers: int) -> DataFrame:
    """The inputs, packed and dealt to the barrier stage's tasks, in the order of times."""
    from pyspark.sql import functions as sf

    # Rows that stand for nothing: without any row Spark would plan the barrier stage away, or without tasks.
    guard = session.range(0, workers, 1, 1).select(
        sf.lit(GUARD).alias("stream"), sf.lit(0).cast("bigint").alias("low"), sf.lit(b"").alias("batch")
    )
    dealt = guard.union(packed).repartition(workers)
    return dealt if not any(job.times) else dealt.sortWithinPartitions("low")


def _raising(ran: DataFrame) -> DataFrame:
    """What the barrier stage sent; it raises where that says that the dataflow failed.

    Sorting has all of a partition read before any of it goes on: who asks for one row alone, of a dataflow
    that failed after it, is told. Spark itself raises, since it tries every task four times, and starting
    Python takes most of each.
    """
    from pyspark.sql import functions as sf

    failed = sf.raise_error(sf.col("batch").cast("string")).cast("binary")
    batch = sf.when(sf.col("stream") == FAILED, failed).otherwise(sf.col("batch"))
    return ran.withColumn("batch", batch).sortWithinPartitions("stream")


def packed_inputs(plan: Plan, named: dict[str, DataFrame], times: list[str | None]) -> DataFrame:
    """All the inputs' rows as packed batches, each of which is in the order of its rows' times."""
    packed = []
    for number, ((name, df), column) in enumerate(zip(named.items(), times, strict=True)):
        ordered = df if column is None else df.sortWithinPartitions(column)
        packing = ship("pack", number, plan.what(name), plan.inputs[name], column)
        packed.append(ordered.mapInArrow(packing, PACKED))
    return reduce(lambda some, more: some.union(more), packed)
