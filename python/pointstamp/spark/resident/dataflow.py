"""A dataflow on the resident cluster, as the driver sees it: fed by ordinary jobs, and read by others."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pointstamp.errors import ClusterError
from pointstamp.spark import compat
from pointstamp.spark.job.stages import packed_inputs
from pointstamp.spark.packing.pickling import ship
from pointstamp.spark.resident import tasks
from pointstamp.spark.resident.tasks import Part

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.types import StructType

    from pointstamp.spark.job.plan import Plan
    from pointstamp.spark.resident.link import Link

__all__ = ["Dataflow"]


class Dataflow:
    """A dataflow that the processes have started.

    Args:
        link: To them.
        number: Theirs for it.
        plan: The plan to build.
    """

    def __init__(self, link: Link, number: int, plan: Plan) -> None:
        self._link = link
        self._number = number
        self._plan = plan

    def feed(self, epoch: int, rows: DataFrame) -> None:
        """Puts the rows of an epoch into the dataflow's one input, and ends the epoch."""
        [name] = self._plan.inputs
        self.commit(packed_inputs(self._plan, {name: rows}, [None]), [None], epoch)

    def commit(self, packed: DataFrame, times: list[str | None], epoch: int | None) -> None:
        """Brings packed batches to the processes, and then puts them all into the dataflow."""
        called = self._plan.named.part("bring")
        bring = ship(called, tasks.deliver, self._link.addresses(), self._link.secret, self._number)
        try:
            with compat.described(packed.sparkSession.sparkContext, self._plan.named.stage):
                brought = packed.mapInArrow(bring, "partition int, attempt bigint").collect()
        except ClusterError:
            self._link.explain()
            raise
        counted = [Part(row.partition, row.attempt) for row in brought]
        self._link.ask("commit", self._number, counted, times, epoch)

    def wait(self, epoch: int | None) -> None:
        """Returns once the output at or before an epoch is complete; None: all.

        Raises:
            BaseException: The exception that ended the dataflow.
        """
        self._link.ask("wait", self._number, epoch)

    def outputs(
        self, epoch: int | None, session: SparkSession, schemas: dict[str, StructType]
    ) -> dict[str, DataFrame]:
        """Returns the dataflow's output at or before an epoch, once it is complete; None: all.

        Raises:
            BaseException: The exception that ended the dataflow.
        """
        self.wait(epoch)
        count = self._link.processes
        outputs = {}
        for number, (name, schema) in enumerate(schemas.items()):
            called = self._plan.named.part(f"fetch {name}")
            get = ship(
                called,
                tasks.fetch,
                self._link.addresses(),
                self._link.secret,
                self._number,
                epoch,
                number,
            )
            outputs[name] = session.range(0, count, 1, count).mapInArrow(get, schema)
        return outputs

    def forget(self, epoch: int | None) -> None:
        """The outputs of an epoch are not asked for again."""
        self._link.ask("forget", self._number, epoch)

    def close(self) -> None:
        """Ends the dataflow, and frees its state."""
        if not self._link.failed:
            self._link.ask("drop", self._number)
