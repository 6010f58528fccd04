"""A dataflow in the driver's own process, fed with DataFrames epoch by epoch.

It needs no cluster and no slots; every row passes through the driver. Owns the thread that runs it.
"""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING

from pointstamp.config import Config
from pointstamp.runtime.execution import execute
from pointstamp.spark.job.feeding import Feed
from pointstamp.spark.job.results import Results
from pointstamp.spark.packing.batches import Packed
from pointstamp.spark.packing.schemas import like

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.types import StructType

    from pointstamp.runtime.worker import Worker
    from pointstamp.spark.job.plan import Plan

__all__ = ["InProcess"]


class InProcess:
    """A dataflow that runs in this process until it is closed.

    Args:
        plan: The plan to build.
        workers: Worker threads.
    """

    def __init__(self, plan: Plan, workers: int) -> None:
        assert plan.declared is not None
        self._plan = plan
        self._outputs = plan.declared.outputs()
        self._feed = Feed(list(plan.inputs.values()), workers)
        self._results = Results(plan.declared, workers)
        config = Config(workers=workers)
        self._thread = threading.Thread(
            target=self._run, args=(config,), name="pointstamp-driver-dataflow", daemon=True
        )
        self._thread.start()

    def _run(self, config: Config) -> None:
        def main(worker: Worker) -> None:
            with worker.dataflow(self._plan.named.name) as scope:
                self._results.connect(self._plan.built(scope, self._feed))
            worker.run()

        try:
            execute(main, config=config, stall_report=False)
        except BaseException as error:
            self._results.fail(error)
        else:
            self._results.fail(RuntimeError("the dataflow was closed"))
        finally:
            self._feed.stop()

    def feed(self, epoch: int, rows: DataFrame) -> None:
        """Puts the rows of an epoch into the dataflow's one input, and ends the epoch."""
        [schema] = self._plan.inputs.values()
        table: pa.Table = rows.toArrow()
        self._feed.advance_to(epoch)
        for batch in table.to_batches():
            if batch.num_rows:
                self._feed.put(Packed(0, epoch, like(batch, schema)))
        self._feed.advance_to(epoch + 1)

    def outputs(
        self, epoch: int, session: SparkSession, schemas: dict[str, StructType]
    ) -> dict[str, DataFrame]:
        """Returns the output of the dataflow at or before an epoch, once it is complete.

        Raises:
            BaseException: The exception that ended the dataflow.
        """
        import pyarrow as pa

        self._results.wait(epoch)
        taken = self._results.take(epoch)
        return {
            output.name: session.createDataFrame(
                pa.Table.from_batches(batches, output.rows), schemas[output.name]
            )
            for output, batches in zip(self._outputs, taken, strict=True)
        }

    def forget(self, epoch: int) -> None:
        """The outputs of an epoch are not asked for again; they were not kept anyway."""
        self._results.take(epoch)

    def close(self) -> None:
        """Ends the dataflow, and waits until its thread has."""
        self._feed.end()
        # No limit: the input has ended, and the dataflow processes the rest.
        self._thread.join()
