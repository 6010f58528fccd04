"""A task of the barrier stage: one process of the cluster.

Three threads: Spark's own takes the outputs and yields them, one runs the dataflow (with more workers, one
each), and one reads the input. Nothing outlives the generator but what Spark itself leaves behind, because
its Python processes are used again.
"""

from __future__ import annotations

import threading
import time
from typing import TYPE_CHECKING, NamedTuple

from pointstamp._errors import ClusterError
from pointstamp.execution import execute
from pointstamp.spark.draining import Drain, Stopped
from pointstamp.spark.feeding import Feed
from pointstamp.spark.gang import gather
from pointstamp.spark.merging import in_order
from pointstamp.spark.packing import read

if TYPE_CHECKING:
    import socket
    from collections.abc import Iterator

    import pyarrow as pa

    from pointstamp.config import Config
    from pointstamp.spark.plan import Plan
    from pointstamp.worker import Worker

__all__ = ["Job", "run"]

_MANNERS = 2.0
"""Seconds that a task whose peer failed waits with saying so: Spark reports the first that it hears of."""


class Job(NamedTuple):
    """What every task is told.

    Attributes:
        plan: What to build.
        times: Of each input, the column of its rows' times, or None.
        secret: What the tasks prove to each other.
    """

    plan: Plan
    times: list[str | None]
    secret: bytes


def run(job: Job, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Runs the dataflow on a task's input and yields its share of the outputs, packed."""
    from pyspark import BarrierTaskContext

    config, listener = gather(BarrierTaskContext.get(), job.secret)
    feed = Feed(list(job.plan.inputs.values()), config.workers)
    drain = Drain(job.plan.declared)
    failures: list[BaseException] = []

    def engine() -> None:
        try:
            _execute(job.plan, config, listener, feed, drain)
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
    if failures:
        if isinstance(failures[0], ClusterError):
            time.sleep(_MANNERS)
        raise failures[0]
    reader.join()


def _execute(plan: Plan, config: Config, listener: socket.socket | None, feed: Feed, drain: Drain) -> None:
    def main(worker: Worker) -> None:
        with worker.dataflow("Spark") as scope:
            drain.connect(plan.built(scope, feed))
        worker.run()

    try:
        if listener is None:
            execute(main, config=config)
        else:
            execute(main, config=config, listener=listener)
    except Stopped:
        pass  # Spark wants no more of the output
