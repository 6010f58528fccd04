"""The resident cluster, as the driver sees it: one long barrier job, and what it is asked to do.

`run` starts a cluster for each action, which takes a second or two. A resident one is there already:
DataFrames of later jobs, and the micro-batches of a stream, are brought to it by ordinary tasks, and fetched
by others. It holds as many of Spark's slots as it has processes until it is shut down, and needs one more for
those.

It does not outlive a failure: an exception in any dataflow, or a process that is lost, ends all of it.
"""

from __future__ import annotations

import secrets
import threading
from typing import TYPE_CHECKING, Any

from pointstamp._errors import ClusterError, ConfigError
from pointstamp.spark.channel import Channel, Server
from pointstamp.spark.failures import found, listen
from pointstamp.spark.gang import MANNERS
from pointstamp.spark.outputs import ONE
from pointstamp.spark.plan import dataframes, plan, spark_schemas, times_of
from pointstamp.spark.resident import Part, Residence
from pointstamp.spark.run import packed_inputs
from pointstamp.spark.session import is_connect, tasks
from pointstamp.spark.shipped import ship

if TYPE_CHECKING:
    from collections.abc import Callable
    from types import TracebackType

    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.types import StructType

    from pointstamp.spark.plan import Plan

__all__ = ["Cluster", "setup_cluster", "shutdown_cluster"]

_FORMING = 60.0
"""Seconds for the barrier job to get its slots and for its tasks to find each other."""

_ENDING = 10.0
"""Seconds for the tasks to end by themselves before the job is cancelled."""


class Cluster:
    """A resident cluster; `setup_cluster` makes it. Leaving a ``with`` block shuts it down."""

    def __init__(self, session: SparkSession, num_workers: int) -> None:
        context = session.sparkContext
        self._session = session
        self.num_workers = num_workers
        self._secret = secrets.token_bytes(32)
        self._changed = threading.Condition()
        self._channels: dict[int, Channel] = {}
        self._addresses: dict[int, tuple[str, int]] = {}
        self._answers: dict[int, list[str]] = {}
        self._requests = self._dataflows = 0
        self._failure: BaseException | None = None
        self._closed = False
        host = str(context.getConf().get("spark.driver.host", "127.0.0.1"))
        bind = str(context.getConf().get("spark.driver.bindAddress", host))
        self._server = Server(bind, self._secret, self._serve, "driver")
        self._group = f"pointstamp-{secrets.token_hex(8)}"
        self._job = threading.Thread(
            target=self._reside, args=((host, self._server.port),), name="pointstamp-resident", daemon=True
        )
        self._job.start()
        try:
            self._form()
        except BaseException:
            self.shutdown()
            raise

    # ------------------------------------------------------------ the job

    def _reside(self, address: tuple[str, int]) -> None:
        context = self._session.sparkContext
        context.setJobGroup(self._group, "pointstamp's resident cluster", interruptOnCancel=True)
        try:
            rows = self._session.range(0, self.num_workers, 1, self.num_workers)
            entry = ship("reside", Residence(address, self._secret))
            rows.mapInArrow(entry, "nothing int", barrier=True).collect()
        except BaseException as error:
            self._fail(error)
        else:
            self._fail(ClusterError("the resident cluster was shut down"))

    def _form(self) -> None:
        with self._changed:
            formed = self._changed.wait_for(
                lambda: self._failure is not None or len(self._addresses) == self.num_workers, _FORMING
            )
            if self._failure is not None:
                raise self._failure
            if not formed:
                raise ClusterError(
                    f"{len(self._addresses)} of the {self.num_workers} tasks of the resident cluster started "
                    f"within {_FORMING:.0f} seconds: other jobs may hold Spark's slots, or the executors "
                    "cannot reach the driver"
                )

    def _serve(self, channel: Channel) -> None:
        process, address = channel.receive()
        with self._changed:
            self._channels[process] = channel
            self._addresses[process] = address
            self._changed.notify_all()
        while True:
            request, failure = channel.receive()
            if request is None:
                self._fail(_raised(failure))
            with self._changed:
                self._answers.setdefault(request, []).append(failure)
                self._changed.notify_all()

    def _fail(self, error: BaseException) -> None:
        with self._changed:
            # The process that failed says why; that the others lost it, and that Spark's job ended, follows.
            if self._failure is None or isinstance(self._failure, ClusterError):
                self._failure = error
            self._changed.notify_all()

    def _ask(self, name: str, *arguments: Any) -> None:
        """Has every process do something, and returns when all have."""
        with self._changed:
            self._requests += 1
            request = self._requests
            self._answers[request] = []
            channels = list(self._channels.values())
            if self._failure is not None:
                raise self._failure
            try:
                for channel in channels:
                    channel.send((request, name, *arguments))
            except OSError as error:
                self._changed.wait_for(lambda: self._failure is not None, _ENDING)
                raise self._reason([]) or ClusterError("a process of the resident cluster is gone") from error
            answers = self._answers[request]
            self._changed.wait_for(lambda: self._said(answers) or len(answers) == len(channels))
            reason = self._reason(answers)
            del self._answers[request]
        if reason is not None:
            raise reason

    def _said(self, answers: list[str]) -> list[BaseException]:
        """What went wrong, as far as is known, with who says why before those that lost him."""
        said = [_raised(text) for text in answers if text]
        if self._failure is not None:
            said.append(self._failure)
        return sorted(said, key=lambda error: isinstance(error, ClusterError))

    def _reason(self, answers: list[str]) -> BaseException | None:
        """The first of that; if it is that somebody is lost, he has a moment to say why himself."""
        said = self._said(answers)
        if said and isinstance(said[0], ClusterError):
            self._changed.wait_for(lambda: not isinstance(self._said(answers)[0], ClusterError), MANNERS)
            said = self._said(answers)
        return said[0] if said else None

    def _explain(self) -> None:
        """Raises what ended the cluster, where a task could not reach it."""
        with self._changed:
            self._changed.wait_for(lambda: self._failure is not None, _ENDING)
            reason = self._reason([])
        if reason is not None:
            raise reason

    # ------------------------------------------------------------ what it is for

    def run(
        self,
        inputs: DataFrame | dict[str, DataFrame],
        build: Callable[..., Any],
        schema: Any,
        *,
        time: str | dict[str, str] | None = None,
        time_column: str | None = None,
    ) -> Any:
        """Runs a dataflow on DataFrames, as `pointstamp.spark.run` does, but at once.

        The result is stored on the executors, without a copy, for as long as the DataFrame is referred to.

        Args:
            inputs: As there.
            build: As there.
            schema: As there.
            time: As there.
            time_column: As there.

        Returns:
            A DataFrame; of several outputs a dict of them.

        Raises:
            ClusterError: If the cluster was shut down, or has failed earlier.
            BaseException: What the dataflow raised; the cluster has ended then.
        """
        several = isinstance(inputs, dict)
        named = dataframes(inputs)
        checked = plan(
            self._session,
            {name: df.schema for name, df in named.items()},
            build,
            schema,
            keyword=several,
            time_column=time_column,
        )
        times = times_of(named, time, several)
        schemas = spark_schemas(schema, time_column)
        dataflow = self.dataflow(checked)
        dataflow.commit(packed_inputs(checked, named, times), times, None)
        outputs = {
            name: rows.localCheckpoint()
            for name, rows in dataflow.outputs(None, self._session, schemas).items()
        }
        dataflow.close()
        return outputs if isinstance(schema, dict) else outputs[ONE]

    def dataflow(self, checked: Plan) -> Dataflow:
        """Starts a dataflow that is fed later."""
        from pyspark import cloudpickle

        with self._changed:
            self._dataflows += 1
            number = self._dataflows
        self._ask("start", number, cloudpickle.dumps(checked))  # type: ignore[no-untyped-call]
        return Dataflow(self, number, checked)

    def shutdown(self) -> None:
        """Ends the cluster and gives its slots back. Doing it twice does nothing."""
        if self._closed:
            return
        self._closed = True
        for channel in list(self._channels.values()):
            try:
                channel.send((0, "stop"))
            except OSError:
                pass  # it has ended
        self._job.join(_ENDING if self._channels else 0)
        if self._job.is_alive():
            self._session.sparkContext.cancelJobGroup(self._group)
            self._job.join()
        self._server.close()

    def __enter__(self) -> Cluster:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.shutdown()
        _forget(self)


def _raised(text: str) -> BaseException:
    """What a process has raised, of what it sent."""
    return found(text) or ClusterError("a process of the resident cluster failed")


class Dataflow:
    """A dataflow on the resident cluster."""

    def __init__(self, cluster: Cluster, number: int, checked: Plan) -> None:
        self._cluster = cluster
        self._number = number
        self._plan = checked

    def feed(self, epoch: int, rows: DataFrame) -> None:
        """Puts the rows of an epoch into the dataflow's one input, and ends the epoch."""
        [name] = self._plan.inputs
        self.commit(packed_inputs(self._plan, {name: rows}, [None]), [None], epoch)

    def commit(self, packed: DataFrame, times: list[str | None], epoch: int | None) -> None:
        """Brings packed batches to the processes, and then puts them all into the dataflow."""
        bring = ship("deliver", self._where(), self._cluster._secret, self._number)
        try:
            brought = packed.mapInArrow(bring, "partition int, attempt bigint").collect()
        except ClusterError:
            self._cluster._explain()
            raise
        counted = [Part(row.partition, row.attempt) for row in brought]
        self._cluster._ask("commit", self._number, counted, times, epoch)

    def outputs(
        self, epoch: int | None, session: SparkSession, schemas: dict[str, StructType]
    ) -> dict[str, DataFrame]:
        """What the dataflow sent at or before an epoch, once it is complete; None: all.

        Raises:
            BaseException: What ended the dataflow, as it was raised.
        """
        self._cluster._ask("wait", self._number, epoch)
        tasks = self._cluster.num_workers
        outputs = {}
        for number, (name, schema) in enumerate(schemas.items()):
            get = ship("fetch", self._where(), self._cluster._secret, self._number, epoch, number)
            outputs[name] = session.range(0, tasks, 1, tasks).mapInArrow(get, schema)
        return outputs

    def _where(self) -> list[tuple[str, int]]:
        return [address for _, address in sorted(self._cluster._addresses.items())]

    def forget(self, epoch: int | None) -> None:
        """The outputs of an epoch are not asked for again."""
        self._cluster._ask("forget", self._number, epoch)

    def close(self) -> None:
        """Ends the dataflow, and frees what it keeps."""
        if self._cluster._failure is None:
            self._cluster._ask("drop", self._number)


_current: Cluster | None = None


def setup_cluster(num_workers: int | None = None, *, session: SparkSession | None = None) -> Cluster:
    """Starts a resident cluster.

    Args:
        num_workers: How many tasks it has. Left out: all of Spark's slots but one.
        session: Where; left out: the active session.

    Raises:
        ConfigError: If there are too few slots, there is one already, or there is no session of the kind.
        ClusterError: If its tasks do not start, or do not find each other.

    Examples:
        ::

            with setup_cluster(3) as cluster:
                counts = cluster.run(words, count, "word string, n_sum bigint")
    """
    global _current
    from pyspark.sql import SparkSession

    session = session or SparkSession.getActiveSession()
    if session is None:
        raise ConfigError("there is no active session of Spark: make one, or pass session=")
    if is_connect(session):
        raise ConfigError(
            "a resident cluster takes its orders from the driver, which over Spark Connect is on the server: "
            "use run(), or a session without Connect"
        )
    if _current is not None and not _current._closed:
        raise ConfigError("there is a resident cluster already: call shutdown_cluster() first")
    slots = tasks(session, None if num_workers is None else num_workers + 1)
    if slots < 2:
        raise ConfigError(
            "a resident cluster leaves one slot to the tasks that bring it rows, and Spark has only one: "
            "give the session more cores"
        )
    listen()
    _current = Cluster(session, num_workers or slots - 1)
    return _current


def shutdown_cluster() -> None:
    """Ends the resident cluster, if there is one."""
    if _current is not None:
        _current.shutdown()
        _forget(_current)


def _forget(cluster: Cluster) -> None:
    global _current
    if _current is cluster:
        _current = None
