"""A dataflow in the driver's own process, fed with DataFrames epoch by epoch.

It needs no cluster and no slots; every row passes through the driver. Owns the thread that runs it.
"""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Any

from pointstamp.config import Config
from pointstamp.runtime.execution import execute
from pointstamp.spark.calls.epoch_queue import EpochQueue, Standing
from pointstamp.spark.job.feeding import Feed
from pointstamp.spark.job.results import Results
from pointstamp.spark.packing.batches import Packed
from pointstamp.spark.packing.schemas import like

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.types import StructType

    from pointstamp.checkpoint import Checkpoint
    from pointstamp.runtime.worker import Worker
    from pointstamp.spark.job.plan import Plan

__all__ = ["InProcess", "Recorded"]


class InProcess:
    """A dataflow that runs in this process until it is closed.

    Args:
        plan: The plan to build.
        workers: Worker threads.
    """

    def __init__(self, plan: Plan, workers: int) -> None:
        self._feed = Feed(list(plan.inputs.values()), workers)
        self._start(plan, Config(workers=workers), self._feed)

    def _start(self, plan: Plan, config: Config, feed: Any) -> None:
        assert plan.declared is not None
        self._plan = plan
        self._outputs = plan.declared.outputs()
        self._results = Results(plan.declared, config.workers)
        self._streams = feed
        self._thread = threading.Thread(
            target=self._run, args=(config,), name="pointstamp-driver-dataflow", daemon=True
        )
        self._thread.start()

    def _run(self, config: Config) -> None:
        def main(worker: Worker) -> None:
            with worker.dataflow(self._plan.named.name) as scope:
                self._results.connect(self._plan.built(scope, self._streams))
            self._drive(worker)

        ended: BaseException = RuntimeError("the dataflow was closed")
        try:
            execute(main, config=config, stall_report=False)
        except _Closed:
            pass
        except BaseException as error:
            ended = error
        self._fail(ended)

    def _drive(self, worker: Worker) -> None:
        """Drives a worker until its dataflow is complete."""
        worker.run()

    def _fail(self, error: BaseException) -> None:
        """Ends every wait for the dataflow, which has ended, with its error."""
        self._results.fail(error)
        self._feed.stop()

    def _batches(self, rows: DataFrame) -> list[pa.RecordBatch]:
        [schema] = self._plan.inputs.values()
        table: pa.Table = rows.toArrow()
        return [like(batch, schema) for batch in table.to_batches() if batch.num_rows]

    def feed(self, epoch: int, rows: DataFrame) -> None:
        """Puts the rows of an epoch into the dataflow's one input, and ends the epoch."""
        batches = self._batches(rows)
        self._feed.advance_to(epoch)
        for batch in batches:
            self._feed.put(Packed(0, epoch, batch))
        self._feed.advance_to(epoch + 1)

    def wait(self, epoch: int) -> None:
        """Returns once the output at or before an epoch is complete.

        Raises:
            BaseException: The exception that ended the dataflow.
        """
        self._results.wait(epoch)

    def outputs(
        self, epoch: int, session: SparkSession, schemas: dict[str, StructType]
    ) -> dict[str, DataFrame]:
        """Returns the output of the dataflow at or before an epoch, once it is complete.

        Raises:
            BaseException: The exception that ended the dataflow.
        """
        import pyarrow as pa

        self.wait(epoch)
        return {
            output.name: session.createDataFrame(
                pa.Table.from_batches(batches, output.rows), schemas[output.name]
            )
            for output, batches in zip(self._outputs, self._results.batches(epoch), strict=True)
        }

    def forget(self, epoch: int) -> None:
        """The outputs of an epoch are not asked for again."""
        self._results.forget(epoch)

    def close(self) -> None:
        """Ends the dataflow, and waits until its thread has."""
        self._feed.end()
        # No limit: the input has ended, and the dataflow processes the rest.
        self._thread.join()


class Recorded(InProcess):
    """A dataflow of which checkpoints are made. It runs in this process until it is closed, or fails.

    Args:
        plan: What to build.
        workers: Worker threads.
        checkpoint: Where checkpoints are kept.

    Attributes:
        standing: The micro-batches in the checkpoint from which it resumes; None where it begins.

    Raises:
        BaseException: An exception that ended the dataflow during construction: a `CheckpointError` where it
            cannot resume.
    """

    def __init__(self, plan: Plan, workers: int, checkpoint: Checkpoint) -> None:
        [schema] = plan.inputs.values()
        self._epochs = EpochQueue(schema)
        self._changed = threading.Condition()
        self._unbuilt = workers
        self._wanted = self._made = 0
        self._closing = False
        self._failure: BaseException | None = None
        self._start(plan, Config(workers=workers, checkpoint=checkpoint), self._epochs)
        self._await(lambda: not self._unbuilt)
        self.standing: Standing | None = self._epochs.restored
        if self.standing is not None:
            self._results.forget(self.standing.stored)  # the checkpoint was made when they were stored
        self._epochs.wake()

    def _await(self, condition: Any) -> None:
        with self._changed:
            # No limit: it takes as long as it takes; the end of the dataflow ends this.
            self._changed.wait_for(lambda: condition() or self._failure is not None)
            if not condition():
                assert self._failure is not None
                raise self._failure

    def _drive(self, worker: Worker) -> None:
        with self._changed:
            self._unbuilt -= 1
            self._changed.notify_all()
        while True:
            # The first worker alone is woken; the error that it raises ends all.
            worker.step_while(lambda: worker.index != 0 or not (self._closing or self._made < self._wanted))
            wanted = self._wanted
            if not self._closing:
                self._record(worker)
            if self._closing:
                raise _Closed
            with self._changed:
                self._made = wanted
                self._changed.notify_all()

    def _record(self, worker: Worker) -> None:
        made = worker.checkpoint()
        worker.step_while(lambda: not (self._closing or made.done))

    def _fail(self, error: BaseException) -> None:
        self._results.fail(error)
        with self._changed:
            self._failure = error
            self._changed.notify_all()

    def feed(self, epoch: int, rows: DataFrame) -> None:
        """Puts the rows of an epoch into the dataflow's one input, and ends the epoch."""
        self._epochs.put(epoch, self._batches(rows))

    def fed_by(self, query: str | None) -> None:
        """Notes Spark's identity of the query that feeds it; None for something else."""
        self._epochs.fed_by(query)

    def stored(self, epoch: int) -> None:
        """Makes a checkpoint that has a micro-batch whose outputs are stored, and forgets the outputs.

        Raises:
            BaseException: What ended the dataflow: a `CheckpointError` where no checkpoint could be made, as
                often as `Checkpoint.tolerate` says.
        """
        self._epochs.stored(epoch)
        with self._changed:
            self._wanted = wanted = self._wanted + 1
        self._epochs.wake()
        self._await(lambda: self._made >= wanted)
        self._results.forget(epoch)

    def close(self) -> None:
        """Ends the dataflow where it stands, and waits until its thread has. Its inputs do not end."""
        self._closing = True
        if self._failure is None and not self._unbuilt:
            self._epochs.wake()
        # No limit: an operator may be at work.
        self._thread.join()


class _Closed(Exception):
    """Ends a dataflow whose inputs have not ended."""
