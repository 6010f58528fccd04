"""A task of the barrier stage: one process of the cluster.

Three threads: Spark's own takes the outputs and yields them, one runs the dataflow (with more workers, one
each), and one reads the input. Nothing outlives the generator but what Spark itself leaves behind, because
its Python processes are used again.

Spark runs a barrier stage again when one of its tasks fails, three times over, each of which takes seconds.
That is right where a process or its connections are lost, and so is raised. What the user's code raises would
be raised again: such a task ends well, and sends the exception in place of output; who reads it raises it.
"""

from __future__ import annotations

import threading
import time
from typing import TYPE_CHECKING, NamedTuple

from pointstamp._errors import ClusterError, add_note
from pointstamp.execution import execute
from pointstamp.spark.job.draining import Drain, Stopped
from pointstamp.spark.job.feeding import Feed
from pointstamp.spark.job.gang import MANNERS, gather
from pointstamp.spark.packing.batches import failed, read
from pointstamp.spark.packing.merging import in_order

if TYPE_CHECKING:
    import socket
    from collections.abc import Iterator

    import pyarrow as pa

    from pointstamp.config import Config
    from pointstamp.spark.job.plan import Plan
    from pointstamp.worker import Worker

__all__ = ["Job", "run"]


_ADVICE = (
    "build was unpickled in a task of Spark: send modules of yours there, with "
    'spark.addArtifacts("module.py", pyfile=True) or addPyFile'
)


class Job(NamedTuple):
    """What every task is told.

    Attributes:
        plan: What to build: a `Plan`, pickled.
        times: Of each input, the column of its rows' times, or None.
        secret: What the tasks prove to each other.
        tasks: How many there are.
    """

    plan: bytes
    times: list[str | None]
    secret: bytes
    tasks: int


def run(job: Job, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Runs the dataflow on a task's input and yields its share of the outputs, packed."""
    from pyspark import BarrierTaskContext, cloudpickle

    context = BarrierTaskContext.get()
    _expect(len(context.getTaskInfos()), job.tasks)
    try:
        plan: Plan = cloudpickle.loads(job.plan)
    except Exception as error:
        if isinstance(error, ModuleNotFoundError):
            add_note(error, _ADVICE)
        gather(context, job.secret, ready=False)
        yield failed(error, job.tasks)
        return
    gang = gather(context, job.secret)
    if not gang.ready:
        return  # another task says why
    feed = Feed(list(plan.inputs.values()), gang.config.workers)
    assert plan.declared is not None
    drain = Drain(plan.declared)
    failures: list[BaseException] = []

    def engine() -> None:
        try:
            _execute(plan, gang.config, gang.listener, feed, drain)
        except BaseException as error:
            failures.append(error)
        finally:
            feed.stop()
            drain.end()

    # The reader cannot be interrupted while Spark sends nothing: it is a daemon, and ends with its input.
    reader = threading.Thread(
        target=lambda: feed.fill(in_order(read(batches), job.times)), name="pointstamp-input", daemon=True
    )
    runner = threading.Thread(target=engine, name="pointstamp-dataflow", daemon=True)
    reader.start()
    runner.start()
    try:
        yield from drain.rows()
    finally:
        drain.stop()
        feed.stop()
        runner.join()
    if not failures:
        reader.join()
        return
    failure = failures[0]
    if isinstance(failure, ClusterError):
        if failure.raised:
            return  # the other task itself says why
        time.sleep(MANNERS)
        raise failure
    if failure is feed.failure or not isinstance(failure, Exception):
        raise failure  # Spark's, not the user's
    # Spark deals rows that are alike to one partition each: no action sees output of a run that failed.
    yield failed(failure, job.tasks)


def _expect(tasks: int, wanted: int) -> None:
    """Refuses to run with fewer tasks than the stage has.

    Where a stage fails while one of its tasks is just ending well, Spark may count that one, and run only
    the others again: among themselves they would compute something else. Once this is refused, Spark runs
    all of them.
    """
    if tasks != wanted:
        raise ClusterError(
            f"Spark runs {tasks} of {wanted} tasks of a barrier stage again: a dataflow needs all of them"
        )


def _execute(plan: Plan, config: Config, listener: socket.socket | None, feed: Feed, drain: Drain) -> None:
    def main(worker: Worker) -> None:
        with worker.dataflow("Spark") as scope:
            drain.connect(plan.built(scope, feed))
        worker.run()

    try:
        execute(main, config=config, listener=listener)
    except Stopped:
        pass  # Spark wants no more of the output
