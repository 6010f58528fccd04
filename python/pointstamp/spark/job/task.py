"""A task of the barrier stage: one process of the cluster.

Three threads: Spark's own takes the outputs and yields them, one runs the dataflow (with more workers, one
each), and one reads the input. Nothing outlives the generator except Spark's own state, because its Python
processes are used again.

Spark runs a barrier stage again when one of its tasks fails, three times over, each of which takes seconds.
That is right for a lost process or connection, whose error is raised. An exception of the user's code would
be raised again: such a task ends well, and sends the exception in place of output; its reader raises it.
"""

from __future__ import annotations

import dataclasses
import time
from contextlib import nullcontext
from typing import TYPE_CHECKING, Any, NamedTuple

from pointstamp import _core
from pointstamp.errors import CheckpointError, ClusterError, add_note
from pointstamp.runtime.execution import execute
from pointstamp.spark.captures.sink import Gathering
from pointstamp.spark.job.barrier_group import MANNERS, BarrierGroup, gather
from pointstamp.spark.job.daemon_restarts import outliving_the_daemon
from pointstamp.spark.job.draining import Drain, Stopped
from pointstamp.spark.job.feeding import Feed
from pointstamp.spark.job.stage_checkpoints import KeptFeed, KeptOutputs, StageFolder
from pointstamp.spark.job.task_threads import outputs_of
from pointstamp.spark.monitoring.accumulator import Packed, Ran
from pointstamp.spark.monitoring.reporter import Reporter, Watched
from pointstamp.spark.packing import batches as packing
from pointstamp.spark.packing.batches import failed, read
from pointstamp.spark.packing.merging import in_order

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from contextlib import AbstractContextManager

    import pyarrow as pa
    from pyspark import Accumulator

    from pointstamp.checkpoint import Checkpoint
    from pointstamp.runtime.worker import Worker
    from pointstamp.spark.job.plan import Plan
    from pointstamp.spark.packing.naming import Named

__all__ = ["Job", "run"]


_ADVICE = (
    "build was unpickled in a task of Spark: send modules of yours there, with "
    'spark.addArtifacts("module.py", pyfile=True) or addPyFile'
)


class Job(NamedTuple):
    """The instructions of every task.

    Attributes:
        plan: The plan to build: a `Plan`, pickled.
        times: Of each input, the column of its rows' times, or None.
        secret: The secret that the tasks share.
        tasks: The number of tasks.
        notes: The accumulator for their notes; None where Spark has no place for them.
        watched: The watcher, or None.
        checkpoint: Where checkpoints are kept; None for none.
    """

    plan: bytes
    times: list[str | None]
    secret: bytes
    tasks: int
    notes: Accumulator[Any] | None
    watched: Watched | None
    checkpoint: Checkpoint | None = None


def run(job: Job, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Runs the dataflow on a task's input and yields its share of the outputs, packed."""
    with outliving_the_daemon():
        yield from _run(job, batches)


def _run(job: Job, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
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
    word = "-"
    if job.checkpoint is not None:
        word = StageFolder(job.checkpoint, job.secret, context.stageId()).word
    group = gather(context, job.secret, word=word)
    if not group.ready:
        return  # another task says why
    assert plan.declared is not None
    schemas, workers = list(plan.inputs.values()), group.config.workers
    folder = None
    drain: Drain | KeptOutputs
    if job.checkpoint is None:
        feed = Feed(schemas, workers)
        drain = Drain(plan.declared, context.partitionId())
    else:
        folder = StageFolder(job.checkpoint, job.secret, context.stageId(), group.word)
        feed = KeptFeed(schemas, workers)
        drain = KeptOutputs(plan.declared, folder, context.partitionId(), job.tasks)
        group = group._replace(config=dataclasses.replace(group.config, checkpoint=folder.checkpoint))
    failures: list[BaseException] = []
    recorders: list[_core.Recorder] = []
    stage = context.stageId()

    def watched(worker: Worker) -> AbstractContextManager[object]:
        if job.watched is None or worker.index:
            return nullcontext()
        return Reporter(job.watched, plan.named, stage, worker._collector)

    gathering = Gathering(plan.named.number, str(group.attempt), context.partitionId() == 0)

    def engine() -> None:
        try:
            with gathering.current():
                if folder is not None and folder.complete:
                    if group.listener is not None:
                        group.listener.close()
                elif not _execute(plan, group, feed, drain, recorders, watched):
                    return
                gathering.publish()
                if folder is not None and isinstance(drain, KeptOutputs):
                    drain.complete = True
                    if context.partitionId() == 0:
                        folder.completed()
        except BaseException as error:
            failures.append(error)
        finally:
            feed.stop()
            drain.end()

    pieces = in_order(read(batches, digests=folder is not None), job.times)
    if isinstance(feed, KeptFeed):
        pieces = feed.unsent(pieces)
    yield from outputs_of(engine, feed, pieces, drain, drain.rows(), failures)
    if not failures:
        if job.notes is not None:
            totals = [operator for recorder in recorders for operator in recorder.take_totals()]
            job.notes.add([Ran(plan.named, stage, group.attempt, job.tasks, totals)])
        if folder is not None:
            context.barrier()  # all have read the files that they hand to Spark
            if context.partitionId() == 0:
                folder.remove()
        return
    failure = failures[0]
    if folder is not None and folder.resumes and isinstance(failure, CheckpointError):
        folder.start_anew()
        raise ClusterError(f"the next attempt starts anew: {failure}") from failure
    if isinstance(failure, ClusterError) and not failure.raised:
        time.sleep(MANNERS)
        _note_folder(failure, folder)
        raise failure
    if failure is feed.failure or not isinstance(failure, Exception):
        _note_folder(failure, folder)
        raise failure  # Spark's, not the user's
    if folder is not None:
        folder.remove()  # by each task, when it has ended: Spark makes no other attempt
    if isinstance(failure, ClusterError):
        return  # the other task itself says why
    # One is dealt to each partition: no action sees output of a run that failed.
    yield failed(failure, job.tasks)


def _note_folder(failure: BaseException, folder: StageFolder | None) -> None:
    """Says where the checkpoints of a stage are, which stay for the next attempt."""
    if folder is not None:
        add_note(
            failure,
            f"the checkpoints of this run are in {folder.root}, for Spark's next attempt: remove the folder "
            "where Spark makes none",
        )


def pack(
    named: Named,
    notes: Accumulator[Any] | None,
    stream: int,
    name: str,
    schema: pa.Schema,
    time: str | None,
    batches: Iterator[pa.RecordBatch],
) -> Iterator[pa.RecordBatch]:
    """An ordinary task that packs its part of an input, and notes the number of rows."""
    from pyspark import TaskContext

    context = TaskContext.get()
    assert context is not None
    rows = 0

    def counted() -> Iterator[pa.RecordBatch]:
        nonlocal rows
        for batch in batches:
            rows += batch.num_rows
            yield batch

    yield from packing.pack(stream, name, schema, time, context.partitionId(), counted())
    if notes is not None:
        notes.add([Packed(named, rows)])


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


def _execute(
    plan: Plan,
    group: BarrierGroup,
    feed: Feed,
    drain: Drain | KeptOutputs,
    recorders: list[_core.Recorder],
    watched: Callable[[Worker], AbstractContextManager[object]],
) -> bool:
    """Runs the dataflow on this process's workers, which are recorded; returns whether it is complete."""

    def main(worker: Worker) -> None:
        recorder = _core.Recorder(False, keeps_totals=True)
        worker._engine.record(recorder)
        recorders.append(recorder)
        with worker.dataflow(plan.named.name) as scope:
            drain.connect(plan.built(scope, feed))
        with watched(worker):
            worker.run()

    try:
        execute(main, config=group.config, listener=group.listener, stall_report=False)
    except Stopped:
        return False  # Spark wants no more of the output
    return True
