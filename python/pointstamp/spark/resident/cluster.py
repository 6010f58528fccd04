"""The resident cluster, as the driver sees it: one long barrier job, and the requests to it.

`run` starts a cluster for each action, which takes a second or two. A resident one exists already: DataFrames
of later jobs, and the micro-batches of a stream, are sent to it by ordinary tasks, and fetched by others. It
holds as many of Spark's slots as it has processes until it is shut down, and needs one more for the ordinary
tasks. A barrier stage of another dataflow that needs more slots than are left would wait as long as this
stays; such a stage is cancelled, with the reason.

It does not outlive a failure: an exception in any dataflow, or a process that is lost, ends all of it.
"""

from __future__ import annotations

import itertools
import json
import secrets
import threading
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from pointstamp.errors import ClusterError
from pointstamp.observability.dashboard import Page, announce, live_answers
from pointstamp.spark import compat
from pointstamp.spark.job import slots
from pointstamp.spark.job.checking import planned
from pointstamp.spark.job.plan import dataframes, packed, times_of
from pointstamp.spark.job.stages import packed_inputs
from pointstamp.spark.packing.exceptions import coded
from pointstamp.spark.packing.naming import BARRIER
from pointstamp.spark.packing.pickling import ship
from pointstamp.spark.resident import process
from pointstamp.spark.resident.dataflow import Dataflow
from pointstamp.spark.resident.link import ENDING, Link
from pointstamp.spark.resident.process import Residence

if TYPE_CHECKING:
    from collections.abc import Callable
    from types import TracebackType

    from pyspark.sql import DataFrame, SparkSession

    from pointstamp.observability.dashboard import Answers
    from pointstamp.spark.job.plan import Plan

__all__ = ["Cluster"]

_FORMING = 60.0
"""Seconds for the barrier job to get its slots and for its tasks to find each other."""

_LOOK = 1.0
"""Seconds between checks of waiting stages; only a stage that is found twice is cancelled."""


_ANSWER = 10.0
"""Seconds that the processes have to answer the live page."""

_SHARE = 0.1
"""Growth of the stored results that makes Java collect garbage, as a share of the memory for them."""


running: list[Cluster] = []
"""The clusters that were not shut down."""


class Cluster:
    """A resident cluster; `setup_cluster` makes it. Leaving a ``with`` block shuts it down."""

    def __init__(
        self,
        session: SparkSession,
        num_workers: int,
        stall_report: float | None = None,
        dashboard: tuple[str, int] | None = None,
    ) -> None:
        context = session.sparkContext
        self._session = session
        self.num_workers = num_workers
        self._dataflows = itertools.count(1)
        self._closed = False
        self._over = threading.Event()
        self._page = None if dashboard is None else Page(*dashboard, self._pages())
        host, bind = compat.driver_address(context)
        self._link = Link(bind, secrets.token_bytes(32), num_workers)
        self._group = f"pointstamp-{secrets.token_hex(8)}"
        residence = Residence((host, self._link.port), self._link.secret, stall_report)
        self._release = slots.hold(context, num_workers)
        self._job = threading.Thread(
            target=self._reside, args=(residence,), name="pointstamp-resident", daemon=True
        )
        self._watcher = threading.Thread(target=self._watch, name="pointstamp-slots", daemon=True)
        self._stored = 0  # the least number of bytes in Spark's storage since the last collection
        if self._page is not None:
            self._page.__enter__()
            announce(self._page.url)
        self._job.start()
        try:
            self._link.form(_FORMING, self._busy)
            with suppress(Exception):  # a name is for show
                for stage in self._own():
                    compat.describe_stage(context, stage, f"pointstamp resident cluster of {num_workers}")
            self._watcher.start()
            running.append(self)
        except BaseException:
            self.shutdown()
            raise

    # ------------------------------------------------------------ the job

    def _reside(self, residence: Residence) -> None:
        context = self._session.sparkContext
        try:
            context.setJobGroup(self._group, "pointstamp's resident cluster", interruptOnCancel=True)
            rows = self._session.range(0, self.num_workers, 1, self.num_workers)
            stay = ship("pointstamp resident cluster: process", process.reside, residence)
            rows.mapInArrow(stay, "nothing int", barrier=True).collect()
        except BaseException as error:
            self._link.fail(_lost(error))
            self._link.stop()  # a process whose executor has ended may still run, and Spark does not stop it
        else:
            self._link.ended()
        finally:
            self._release()
            self._over.set()

    def _busy(self) -> str:
        """Counts the tasks of other jobs that run, for a message."""
        tracker = self._session.sparkContext.statusTracker()
        infos = [tracker.getStageInfo(stage) for stage in tracker.getActiveStageIds()]
        running = sum(info.numActiveTasks for info in infos if info is not None)
        return f" ({running} tasks run)"

    def _watch(self) -> None:
        """Cancels stages of `run` that wait for slots which they cannot get while this cluster stays.

        Barrier stages of others wait, as they would for any other job.
        """
        context = self._session.sparkContext
        before: set[int] = set()
        while not self._over.wait(_LOOK):
            try:
                there, free = self._free()
                stuck = {
                    stage.number: stage.tasks
                    for stage in compat.barrier_stages(self._session)
                    if stage.waits and stage.tasks > free and BARRIER.search(stage.plan)
                }
                for stage in stuck.keys() & before - self._own():
                    compat.cancel_stage(context, stage, coded(slots.too_few(context, stuck[stage], there)))
            except Exception:
                if self._job.is_alive():
                    continue  # a stage that has ended since, or Spark is about to stop
                return
            before = set(stuck)

    def _free(self) -> tuple[int, int]:
        context = self._session.sparkContext
        there = compat.slots(context)
        return there, there - slots.held(context)

    def _own(self) -> set[int]:
        """The stages of the cluster's own job."""
        tracker = self._session.sparkContext.statusTracker()
        jobs = [tracker.getJobInfo(job) for job in tracker.getJobIdsForGroup(self._group)]
        return {stage for job in jobs if job is not None for stage in job.stageIds}

    def _pages(self) -> Answers:
        """The answers of the live page, by the first process."""

        def asked(what: str) -> str:
            return self._link.asked(_ANSWER, what)

        return live_answers(lambda: json.loads(asked("state")), lambda: asked("explain"))

    def _tidy(self) -> None:
        """Frees stored results to which nothing refers.

        Spark removes a result when Java's garbage collector has found that nothing refers to it. Results are
        in the memory of executors, or on their disks, and do not cause a collection in the driver.
        """
        context = self._session.sparkContext
        stored, limit = compat.storage(context)
        self._stored = min(self._stored, stored)
        if stored - self._stored > limit * _SHARE:
            compat.collect_garbage(context)
            self._stored = stored  # less at the next call, when Spark has removed them

    # ------------------------------------------------------------ requests

    def run(
        self,
        inputs: DataFrame | dict[str, DataFrame],
        build: Callable[..., Any],
        schema: Any = None,
        *,
        time: str | dict[str, str] | None = None,
        time_column: str | None = None,
        name: str | None = None,
        changes: str | None = None,
    ) -> Any:
        """Runs a dataflow on DataFrames, as `pointstamp.spark.run` does, but at once.

        The result is stored on the executors, without a copy, for as long as the DataFrame is referred to.

        Args:
            inputs: As there.
            build: As there.
            schema: As there.
            time: As there.
            time_column: As there.
            name: As there.
            changes: As there.

        Returns:
            A DataFrame; of several outputs a dict of them.

        Raises:
            ClusterError: If the cluster was shut down, or has failed earlier; the message names the first
                failure.
            BaseException: An exception of the dataflow; the cluster has ended then.

        Examples:
            >>> import pointstamp.spark
            >>> words = spark.createDataFrame([("to", 1), ("be", 1), ("to", 1)], "word string, n bigint")
            >>> def build(scope, words):
            ...     return words.aggregate("word", n=pointstamp.col("n").sum())
            >>> with pointstamp.spark.setup_cluster(1) as cluster:
            ...     counts = cluster.run(words, build)
            ...     print(sorted(tuple(row) for row in counts.collect()))
            [('be', 1), ('to', 2)]
        """
        self._link.check()
        several = isinstance(inputs, dict)
        named = dataframes(inputs)
        times = times_of(named, time, several)
        plan, schemas, _ = planned(
            self._session,
            {name: df.schema for name, df in named.items()},
            build,
            schema,
            keyword=several,
            time_column=time_column,
            name=name,
            changes=changes,
        )
        assert plan.declared is not None
        dataflow = self._start(plan)
        try:
            dataflow.commit(packed_inputs(plan, named, times), times, None)
            sent = dataflow.outputs(None, self._session, schemas)
            with compat.described(self._session.sparkContext, plan.named.stage):
                outputs = {output: rows.localCheckpoint() for output, rows in sent.items()}
        finally:
            dataflow.close()
        self._tidy()
        return next(iter(outputs.values())) if plan.declared.single else outputs

    def _start(self, plan: Plan) -> Dataflow:
        """Starts a dataflow that is fed later.

        Raises:
            ClusterError: If the cluster was shut down, or has failed earlier.
        """
        self._link.check()
        number = next(self._dataflows)
        self._link.ask("start", number, packed(plan))
        return Dataflow(self._link, number, plan)

    def explain(self, *, timeout: float = 10.0) -> str:
        """Explains why the dataflows that run in the cluster wait, in the words of `Worker.explain`.

        May be called from any thread, also while another waits for a dataflow.

        Args:
            timeout: Seconds that its processes have to answer.

        Raises:
            ClusterError: If the cluster was shut down, or has failed earlier.

        Examples:
            >>> import pointstamp.spark
            >>> with pointstamp.spark.setup_cluster(1) as cluster:
            ...     isinstance(cluster.explain(), str)
            True
        """
        return self._link.asked(timeout)

    @property
    def session(self) -> SparkSession:
        """The session that it is of."""
        return self._session

    @property
    def closed(self) -> bool:
        """Whether it runs nothing any more, because it was shut down or has failed."""
        return self._closed or self._link.failed

    def shutdown(self) -> None:
        """Ends the cluster and gives its slots back. Doing it twice does nothing.

        Examples:
            >>> import pointstamp.spark
            >>> cluster = pointstamp.spark.setup_cluster(1)
            >>> cluster.shutdown()
            >>> cluster.closed
            True
        """
        if self._closed:
            return
        self._closed = True
        if self in running:
            running.remove(self)
        self._job.join(ENDING if self._link.stop() else 0)
        if self._job.is_alive():
            self._session.sparkContext.cancelJobGroup(self._group)
            self._job.join(ENDING)
        if self._watcher.ident is not None:
            self._watcher.join(ENDING)
        self._link.close()
        if self._page is not None:
            self._page.__exit__(None, None, None)

    @property
    def dashboard(self) -> str | None:
        """The address of the live page; None where there is none."""
        return None if self._page is None else self._page.url

    def __enter__(self) -> Cluster:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.shutdown()


def _lost(error: BaseException) -> BaseException:
    """The reason why the job of a cluster failed: an exception of a task, or that a process is gone."""
    said = compat.reason(error)  # without a cause: its text is Java's stack, and would come first
    return error if said is None else ClusterError(f"a process of the resident cluster was lost: {said}")
