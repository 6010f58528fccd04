"""Dataflows that need no placement of rows, and so run in the partitions where the rows are.

Such a dataflow has only operators that work off each batch by itself: nothing is exchanged, joined or
counted, and nothing waits for a frontier. Each partition is then the input of a dataflow of one worker, in an
ordinary stage of Spark. No row is packed, and none is shuffled.
"""

from __future__ import annotations

from contextlib import contextmanager
from enum import Enum
from typing import TYPE_CHECKING, Any

from pointstamp.api.scope import Scope
from pointstamp.config import Config
from pointstamp.plan import columns
from pointstamp.runtime.execution import execute
from pointstamp.spark.job.daemon_restarts import outliving_the_daemon
from pointstamp.spark.job.draining import Drain, Stopped
from pointstamp.spark.job.feeding import Feed
from pointstamp.spark.job.task_threads import outputs_of
from pointstamp.spark.monitoring.accumulator import Ran
from pointstamp.spark.packing.batches import Packed, checked
from pointstamp.spark.packing.merging import in_order
from pointstamp.spark.packing.schemas import like

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    import pyarrow as pa
    from pyspark import Accumulator

    from pointstamp.plan.node import Node
    from pointstamp.runtime.worker import Worker
    from pointstamp.spark.job.plan import Plan

__all__ = ["InPlace", "in_place", "run", "watched"]

_EXPRESSIONS = {columns.FILTER, columns.SELECT, columns.RENAME, columns.WITH_COLUMNS}
"""Kinds of operators that give the same for a row, whatever other rows there are."""


class InPlace(Enum):
    """The ways in which a dataflow runs in the partitions where its rows are.

    Attributes:
        NO: The dataflow does not: it needs rows of other partitions, or may.
        IN_ORDER: Functions of the program see the rows in the order of their times.
        ANY_ORDER: The order of rows makes no difference.
    """

    NO = "no"
    IN_ORDER = "in the order of times"
    ANY_ORDER = "in any order"


def in_place(nodes: Iterable[Node]) -> InPlace:
    """Returns the way in which a dataflow runs in place, of its nodes without inputs and outputs."""
    kinds = {node.kind for node in nodes}
    if kinds <= _EXPRESSIONS:
        return InPlace.ANY_ORDER
    return InPlace.IN_ORDER if kinds <= _EXPRESSIONS | {columns.MAP_BATCHES} else InPlace.NO


@contextmanager
def watched(scope: Scope) -> Iterator[list[str]]:
    """Lists the uses of `index` and `peers` of a scope while the block runs.

    A program that uses them depends on the number of workers, and has to run on as many as it was given.
    """
    reads: list[str] = []

    class Watched(Scope):
        __slots__ = ()

        @property
        def index(self) -> int:  # type: ignore[override]
            reads.append("index")
            return super().index

        @property
        def peers(self) -> int:  # type: ignore[override]
            reads.append("peers")
            return super().peers

    usual = type(scope)
    scope.__class__ = Watched
    try:
        yield reads
    finally:
        scope.__class__ = usual


def run(
    pickled: bytes,
    time: str | None,
    ordered: bool,
    notes: Accumulator[Any] | None,
    batches: Iterator[pa.RecordBatch],
) -> Iterator[pa.RecordBatch]:
    """Runs a dataflow of one worker on a partition, in an ordinary task; yields its output.

    Args:
        pickled: A `Plan` with one input and one output.
        time: The column of the rows' times, or None.
        ordered: Whether the partition is sorted by it, and each row is to be at its time; else all are at 0.
        notes: Where the task notes that it ran, or None.
        batches: The partition.
    """
    from pyspark import TaskContext, cloudpickle

    plan: Plan = cloudpickle.loads(pickled)
    assert plan.declared is not None
    [(name, schema)] = plan.inputs.items()
    feed, drain = Feed([schema], 1), Drain(plan.declared, 0)
    failures: list[BaseException] = []

    def rows() -> Iterator[Packed]:
        for batch in batches:
            if batch.num_rows:
                given = like(batch, schema)
                least = checked(plan.what(name), time, given)
                yield Packed(0, least if ordered else 0, given)

    def main(worker: Worker) -> None:
        with worker.dataflow(plan.named.name) as scope:
            drain.connect(plan.built(scope, feed))
        worker.run()

    def engine() -> None:
        try:
            execute(main, config=Config(workers=1), stall_report=False)
        except Stopped:
            pass  # Spark wants no more of the output
        except BaseException as error:
            failures.append(error)
        finally:
            feed.stop()
            drain.end()

    pieces = in_order(rows(), [time if ordered else None])
    with outliving_the_daemon():
        yield from outputs_of(engine, feed, pieces, drain, drain.batches(), failures)
    if failures:
        raise failures[0]
    context = TaskContext.get()
    if notes is not None and context is not None:
        notes.add([Ran(plan.named, context.stageId(), context.attemptNumber(), 0, [])])
