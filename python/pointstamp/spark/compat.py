"""All that is PySpark's own affair and is used nevertheless: private attributes, and functions replaced.

Only this file changes where another release of PySpark has another inside. It knows nothing of dataflows, and
imports nothing of the package.
"""

from __future__ import annotations

import secrets
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    import pyarrow as pa
    from pyspark import SparkContext
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.types import DataType, StructType

__all__ = [
    "BarrierStage",
    "Files",
    "arrow_schema",
    "barrier_stages",
    "cancel_stage",
    "collect_garbage",
    "convert_exceptions",
    "describe_stage",
    "described",
    "driver_address",
    "interpreter",
    "is_case_sensitive",
    "is_connect",
    "is_local",
    "query_id",
    "reason",
    "renamed",
    "resolved",
    "selected",
    "slots",
    "spark_type",
    "storage",
    "when_stopped",
]

# ---------------------------------------------------------------- kinds of sessions, and slots


def is_connect(thing: object) -> bool:
    """Whether a DataFrame or session is one of Spark Connect's. Does not import it, which takes grpc."""
    return any(kind.__module__.startswith("pyspark.sql.connect") for kind in type(thing).__mro__)


def is_local(session: SparkSession) -> bool:
    """Whether the tasks run in the driver's own Java process."""
    return bool(_scala(session.sparkContext).isLocal())


def slots(context: SparkContext) -> int:
    """Returns the number of tasks that can run at once; Spark's defaultParallelism is another number."""
    scala = _scala(context)
    return int(scala.maxNumConcurrentTasks(scala.resourceProfileManager().defaultResourceProfile()))


def interpreter(session: SparkSession) -> str:
    """Returns the Python that Spark starts on its executors; empty where only the server knows it."""
    return "" if is_connect(session) else str(session.sparkContext.pythonExec)


class BarrierStage(NamedTuple):
    """A barrier stage that has been submitted and has not ended.

    Attributes:
        number: Spark's number for it.
        tasks: The number of tasks.
        waits: Whether none of them has begun.
        plan: The plan of the query that it is of; empty where it is of none.
    """

    number: int
    tasks: int
    waits: bool
    plan: str


def barrier_stages(session: SparkSession) -> Iterator[BarrierStage]:
    """The barrier stages that have been submitted and have not ended."""
    context = session.sparkContext
    tracker = context.statusTracker()
    for number in tracker.getActiveStageIds():
        info = tracker.getStageInfo(number)
        stage = _stage(context, number)
        if info is None or stage is None or not stage.rdd().isBarrier():
            continue
        waits = not (info.numActiveTasks or info.numCompletedTasks)
        yield BarrierStage(number, int(info.numTasks), waits, _plan(session, stage))


def _stage(context: SparkContext, number: int) -> Any:
    """Spark's own object for a stage of a job that runs; None where there is none."""
    found = _scala(context).dagScheduler().stageIdToStage().get(number)
    return found.get() if found.isDefined() else None


def _plan(session: SparkSession, stage: Any) -> str:
    """The text of the plan of the query that a stage is of."""
    running = _scala(session.sparkContext).dagScheduler().jobIdToActiveJob()
    java: Any = session
    queries = java._jsparkSession.sharedState().statusStore()
    for job in str(stage.jobIds().mkString(",")).split(","):
        found = running.get(int(job)) if job else None
        if found is None or not found.isDefined():
            continue
        query = found.get().properties().getProperty("spark.sql.execution.id")
        known = queries.execution(int(query)) if query is not None else None
        if known is not None and known.isDefined():
            return str(known.get().physicalPlanDescription())
    return ""


@contextmanager
def described(context: SparkContext, description: str) -> Iterator[None]:
    """Describes the jobs that this thread begins in the block, unless they are described already."""
    if context.getLocalProperty("spark.job.description"):
        yield
        return
    context.setJobDescription(description)
    try:
        yield
    finally:
        context.setLocalProperty("spark.job.description", None)  # type: ignore[arg-type]


def describe_stage(
    context: SparkContext, number: int, name: str, counts: dict[str, int] | None = None
) -> None:
    """Gives a stage that has not ended a name, and accumulators.

    Spark has no call for the name of one stage: it is taken from the line that submits it. Its own
    description of the stage is changed, which all listeners receive when the stage ends; its pages, which
    have a copy, are changed at once.

    Args:
        context: Where it runs.
        number: Spark's number for it.
        name: The name.
        counts: Accumulators: their names and values. Only where no task of the stage is just ending, and so
            on the thread that the scheduler waits for.
    """
    stage = _stage(context, number)
    if stage is None:
        return
    java: Any = context._jvm
    info = stage.latestInfo()
    field = info.getClass().getDeclaredField("name")
    field.setAccessible(True)
    field.set(info, name)
    if counts:
        # Py4J asks Java about every part of a name, each time: the names are looked up once for all.
        spark = java.org.apache.spark
        new_id, described = spark.util.AccumulatorContext.newId, spark.scheduler.AccumulableInfo
        option, put = java.scala.Option.apply, info.accumulables().put
        none = option(None)
        for what, count in counts.items():
            identity = new_id()
            put(identity, described(identity, option(what), none, option(count), False, False, none))
    store = _scala(context).statusStore()
    listener = store.listener().get()
    field = listener.getClass().getDeclaredField("liveStages")
    field.setAccessible(True)
    for live in field.get(listener).values():
        if int(live.info().stageId()) == number:
            live.write(store.store(), java.java.lang.System.nanoTime(), False)


def cancel_stage(context: SparkContext, stage: int, reason: str) -> None:
    """Cancels a stage, and with it the jobs that need it; their exceptions carry the reason."""
    _scala(context).cancelStage(stage, reason)


def storage(context: SparkContext) -> tuple[int, int]:
    """Returns the bytes that Spark's executors store in memory, and the bytes that they can store there."""
    limit = free = 0
    sizes = _scala(context).getExecutorMemoryStatus().values().iterator()
    while sizes.hasNext():
        size = sizes.next()
        limit += int(size._1())
        free += int(size._2())
    return limit - free, limit


def collect_garbage(context: SparkContext) -> None:
    """Has the driver's Java collect its garbage; then Spark removes the stored results of what was found."""
    java: Any = context._jvm
    java.java.lang.System.gc()


def driver_address(context: SparkContext) -> tuple[str, str]:
    """The driver's host, as executors reach it, and the interface that it listens on."""
    host = str(context.getConf().get("spark.driver.host", "127.0.0.1"))
    return host, str(context.getConf().get("spark.driver.bindAddress", host))


def when_stopped(context: SparkContext, function: Callable[[], None]) -> None:
    """Calls a function before a context is stopped."""
    stop = context.stop

    def stopped() -> None:
        vars(context).pop("stop", None)
        try:
            function()
        finally:
            stop()

    context.stop = stopped  # type: ignore[method-assign]


def _scala(context: SparkContext) -> Any:
    java: Any = context._jsc
    return java.sc()


# ---------------------------------------------------------------- streams


def query_id(context: SparkContext) -> str | None:
    """Returns the checkpointed identity of the query whose `foreachBatch` runs on this thread; or None."""
    found = context.getLocalProperty("sql.streaming.queryId")
    return str(found) if found else None


# ---------------------------------------------------------------- columns and schemas


def renamed(df: DataFrame) -> DataFrame:
    """The same columns under the names c0, c1, ...

    PySpark's functions of names, `mapInArrow` among them, do not quote: dots, backticks and names that differ
    in case alone lead to other columns, or to none.
    """
    return df.toDF(*(f"c{place}" for place in range(len(df.columns))))


def selected(df: DataFrame, names: Sequence[str]) -> DataFrame:
    """The columns of exactly these names, whatever characters are in them."""
    places = [f"c{df.columns.index(name)}" for name in names]
    return renamed(df).select(*places).toDF(*names)


def resolved(df: DataFrame, name: str) -> str | None:
    """The column that a name means: the one of that name, or else the only one that differs in case alone.

    Only the first with ``spark.sql.caseSensitive``. None where there is none.
    """
    if name in df.columns:
        return name
    if is_case_sensitive(df.sparkSession):
        return None
    found = [column for column in df.columns if column.lower() == name.lower()]
    return found[0] if len(found) == 1 else None


def is_case_sensitive(session: SparkSession) -> bool:
    """Whether names that differ in case alone are different columns in a session's queries."""
    return str(session.conf.get("spark.sql.caseSensitive")).lower() == "true"


def arrow_schema(schema: StructType, timezone: str, large: bool) -> pa.Schema:
    """Spark's schema as Arrow's, as Spark itself converts it."""
    from pyspark.sql.pandas.types import to_arrow_schema

    return to_arrow_schema(schema, timezone=timezone, prefers_large_types=large)


def spark_type(kind: pa.DataType) -> DataType:
    """Arrow's type as Spark's, as Spark itself converts it."""
    from pyspark.sql.pandas.types import from_arrow_type

    return from_arrow_type(kind)


# ---------------------------------------------------------------- exceptions


class _Converter:
    """Takes the place of the function that makes Python's exceptions of Spark's, while a session needs it."""

    def __init__(self, module: Any, recover: Callable[[str], Any], connect: bool) -> None:
        self._module = module
        self._original = module.convert_exception
        self._recover = recover
        self._connect = connect
        self._users: set[int] = set()
        module.convert_exception = self

    def __call__(self, error: Any, *details: Any, **options: Any) -> Any:
        if not self._users:
            return self._original(error, *details, **options)
        if self._connect:
            raised = self._original(error, *details, **options)
            return self._recover(str(raised)) or raised
        return self._recover(_text(error)) or self._original(error, *details, **options)

    def use(self, session: Any) -> None:
        """Converts until a session, or the context that it shares with others, is stopped."""
        user = session if self._connect else session.sparkContext
        if id(user) in self._users:
            return
        self._users.add(id(user))
        stop = user.stop

        def stopped() -> None:
            vars(user).pop("stop", None)
            try:
                stop()
            finally:
                self._leave(id(user))

        user.stop = stopped

    def _leave(self, user: int) -> None:
        self._users.discard(user)
        if not self._users and self._module.convert_exception is self:
            self._module.convert_exception = self._original


def convert_exceptions(session: SparkSession, recover: Callable[[str], Any]) -> None:
    """Lets PySpark raise exceptions made from its exceptions' texts, until the session's context is stopped.

    PySpark offers no place for that: the function that converts exceptions is replaced, and put back when the
    last session that needs it is stopped.

    Args:
        session: The session whose actions raise them.
        recover: Given a text; returns the exception to raise in place of Spark's, or None.
    """
    module: Any
    connect = is_connect(session)
    if connect:
        from pyspark.sql.connect.client import core as module
    else:
        from pyspark.errors.exceptions import captured as module
    converter = module.convert_exception
    if not isinstance(converter, _Converter):
        converter = _Converter(module, recover, connect)
    converter.use(session)


def _text(error: Any) -> str:
    """Returns the text of a Java exception, and of its causes."""
    texts: list[str] = []
    while error is not None and len(texts) < 20:
        texts.append(str(error.toString()))
        error = error.getCause()
    return "\n".join(texts)


def reason(error: BaseException) -> str | None:
    """Spark's words for a failed job, without Java's stack traces; None for other exceptions."""
    if not type(error).__module__.startswith(("py4j.", "pyspark.")):
        return None
    java = getattr(error, "java_exception", None)
    text = str(error) if java is None else str(java.getMessage())
    lines = [line.strip() for line in text.splitlines() if line[:1] not in ("\t", "")]
    said = [line for line in lines if not line.startswith(("Caused by:", "at ", "Driver stacktrace:"))]
    return " ".join(said)


# ---------------------------------------------------------------- files


class Files:
    """A directory in any file system that Spark reads, by Hadoop's interface to it.

    Args:
        session: The session whose configuration has the access settings.
        directory: Its address.
    """

    def __init__(self, session: SparkSession, directory: str) -> None:
        self.directory = directory
        context: Any = session.sparkContext
        self._hadoop = context._jvm.org.apache.hadoop
        self._io = context._jvm.org.apache.commons.io.IOUtils
        self._files = self._hadoop.fs.Path(directory).getFileSystem(context._jsc.hadoopConfiguration())

    def names(self, path: str = "") -> list[str]:
        """Returns the names in a directory; nothing where it is missing."""
        there = self._path(path)
        if not self._files.exists(there):
            return []
        return [str(entry.getPath().getName()) for entry in self._files.listStatus(there)]

    def touch(self, path: str) -> None:
        """Makes an empty file."""
        self._files.create(self._path(path), True).close()

    def delete(self, path: str) -> None:
        """Deletes a file, or a directory with all that is in it."""
        self._files.delete(self._path(path), True)

    def read(self, path: str) -> str | None:
        """The text of a file; None where it is missing."""
        there = self._path(path)
        if not self._files.exists(there):
            return None
        stream = self._files.open(there)
        try:
            return str(self._io.toString(stream, "UTF-8"))
        finally:
            stream.close()

    def replace(self, path: str, text: str) -> None:
        """Writes a file atomically: readers find all of the old text or all of the new one."""
        made = self._path(f"{path}.{secrets.token_hex(8)}.tmp")
        stream = self._files.create(made, True)
        try:
            self._io.write(text, stream, "UTF-8")
        finally:
            stream.close()
        there = self._path(path)
        # Not every file system renames onto a file that is there; elsewhere it is missing for a moment.
        if self._files.rename(made, there):
            return
        self._files.delete(there, False)
        if not self._files.rename(made, there):
            raise OSError(f"{self.directory}/{path} cannot be written: the file system does not rename to it")

    def _path(self, path: str) -> Any:
        return self._hadoop.fs.Path(f"{self.directory}/{path}" if path else self.directory)
