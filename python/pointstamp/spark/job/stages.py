"""Spark's stages around a dataflow: packing at the rows' partitions, dealing to tasks, and raising failures.

A dataflow that needs no placement of rows is part of the stage that makes them (`in_place`). Any other is
three stages of Python: each input is packed in its partitions (sorted by time first, if it has one); the
packed batches of all inputs are dealt to the tasks of one barrier stage, which runs the dataflow; its packed
outputs are dealt out again and unpacked. The second shuffle lets Spark retry a barrier stage, and `limit`,
`take` and `coalesce` follow it.
"""

from __future__ import annotations

from functools import reduce
from typing import TYPE_CHECKING, Any

from pointstamp.spark import compat
from pointstamp.spark.job import in_place, task
from pointstamp.spark.packing import batches
from pointstamp.spark.packing.batches import FAILED, GUARD, PACKED
from pointstamp.spark.packing.partitioning import dealing
from pointstamp.spark.packing.pickling import ship

if TYPE_CHECKING:
    from pyspark import Accumulator
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.types import StructType

    from pointstamp.spark.job.plan import Plan
    from pointstamp.spark.job.task import Job
    from pointstamp.spark.packing.naming import Named

__all__ = ["packed_inputs", "ran", "ran_in_place", "unpacked"]


def ran_in_place(
    df: DataFrame,
    column: str | None,
    plan: Plan,
    pickled: bytes,
    rows: StructType,
    notes: Accumulator[Any] | None,
    *,
    ordered: bool,
) -> DataFrame:
    """Returns the output of a dataflow that runs in the partitions of its one input.

    Args:
        df: The input.
        column: The column of its rows' times, or None.
        plan: The plan to build.
        pickled: The same, pickled.
        rows: The schema of the output, with the column of times.
        notes: Where tasks note that they ran.
        ordered: Whether the order of times matters.
    """
    given = compat.renamed(df)  # the batches get the names again
    if ordered:
        assert column is not None
        given = given.sortWithinPartitions(given.columns[df.columns.index(column)])
    called = plan.named.part("dataflow in place")
    return given.mapInArrow(ship(called, in_place.run, pickled, column, ordered, notes), rows)


def ran(session: SparkSession, packed: DataFrame, job: Job, named: Named) -> DataFrame:
    """Returns the packed rows that the barrier stage sends, of packed inputs."""
    dealt = _dealt(session, packed, job)
    dataflow = dealt.mapInArrow(ship(named.dataflow, task.run, job), PACKED, barrier=True)
    return _raising(dealing(dataflow, job.tasks))


def unpacked(sent: DataFrame, schemas: dict[str, StructType], named: Named) -> dict[str, DataFrame]:
    """The rows of each output."""
    return {
        name: sent.mapInArrow(ship(named.part(f"unpack {name}"), batches.unpack, number), rows)
        for number, (name, rows) in enumerate(schemas.items())
    }


def _dealt(session: SparkSession, packed: DataFrame, job: Job) -> DataFrame:
    """The inputs, packed and dealt to the barrier stage's tasks, in the order of times."""
    from pyspark.sql import functions as sf

    # Rows that stand for nothing: without any row Spark would plan the barrier stage away, or without tasks.
    guard = session.range(0, job.tasks, 1, 1).select(
        sf.lit(GUARD).alias("stream"),
        sf.lit(0).cast("bigint").alias("low"),
        sf.lit(b"").alias("batch"),
        sf.col("id").cast("int").alias("turn"),
    )
    dealt = dealing(guard.union(packed), job.tasks)
    return dealt if not any(job.times) else dealt.sortWithinPartitions("low")


def _raising(ran: DataFrame) -> DataFrame:
    """Returns the rows of the barrier stage; raises where they say that the dataflow failed.

    Sorting reads all of a partition before any row is sent: an action that takes one row alone, of a dataflow
    that fails after it, gets the failure. Spark itself raises, since it tries every task four times, and
    starting Python takes most of each.
    """
    from pyspark.sql import functions as sf

    failed = sf.raise_error(sf.col("batch").cast("string")).cast("binary")
    batch = sf.when(sf.col("stream") == FAILED, failed).otherwise(sf.col("batch"))
    return ran.withColumn("batch", batch).sortWithinPartitions("stream")


def packed_inputs(
    plan: Plan, named: dict[str, DataFrame], times: list[str | None], notes: Accumulator[Any] | None = None
) -> DataFrame:
    """All the inputs' rows as packed batches, each of which is in the order of its rows' times.

    Args:
        plan: The plan to build.
        named: The inputs by name.
        times: Of each, the column of its rows' times, or None.
        notes: The accumulator for the tasks' notes on packed rows.
    """
    packed = []
    for number, ((name, df), column) in enumerate(zip(named.items(), times, strict=True)):
        rows = compat.renamed(df)  # the packed batches have the names again
        if column is not None:
            rows = rows.sortWithinPartitions(rows.columns[df.columns.index(column)])
        called = plan.named.part(f"pack {name}")
        packing = ship(
            called, task.pack, plan.named, notes, number, plan.what(name), plan.inputs[name], column
        )
        packed.append(rows.mapInArrow(packing, PACKED))
    return reduce(lambda some, more: some.union(more), packed)
