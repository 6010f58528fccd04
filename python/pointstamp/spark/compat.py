"""All that is PySpark's own affair and is used nevertheless: private attributes, and functions replaced.

Only this file changes where another release of PySpark has another inside. It knows nothing of dataflows, and
imports nothing of the package.
"""

from __future__ import annotations

import secrets
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    import pyarrow as pa
    from pyspark import SparkContext
    from pyspark.sql import SparkSession
    from pyspark.sql.types import DataType, StructType

__all__ = [
    "Files",
    "arrow_schema",
    "cancel_stage",
    "convert_exceptions",
    "interpreter",
    "is_connect",
    "is_local",
    "query_id",
    "slots",
    "spark_type",
    "waiting_barrier_stages",
]

# ---------------------------------------------------------------- kinds of sessions, and slots


def is_connect(thing: object) -> bool:
    """Whether a DataFrame or session is one of Spark Connect's. Does not import it, which takes grpc."""
    return any(kind.__module__.startswith("pyspark.sql.connect") for kind in type(thing).__mro__)


def is_local(session: SparkSession) -> bool:
    """Whether the tasks run in the driver's own Java process."""
    return bool(_scala(session.sparkContext).isLocal())


def slots(context: SparkContext) -> int:
    """How many tasks can run at once; Spark's defaultParallelism is another number."""
    scala = _scala(context)
    return int(scala.maxNumConcurrentTasks(scala.resourceProfileManager().defaultResourceProfile()))


def interpreter(session: SparkSession) -> str:
    """What Spark starts as Python on its executors; empty where only the server knows it."""
    return "" if is_connect(session) else str(session.sparkContext.pythonExec)


def waiting_barrier_stages(context: SparkContext) -> Iterator[tuple[int, int]]:
    """The barrier stages that have been submitted and of which no task runs: numbers, and counts of tasks."""
    tracker = context.statusTracker()
    for stage in tracker.getActiveStageIds():
        info = tracker.getStageInfo(stage)
        if info is None or info.numActiveTasks or info.numCompletedTasks:
            continue
        # Only the drawing that Spark's own pages make of a stage tells whether it is a barrier stage.
        graph = _scala(context).statusStore().operationGraphForStage(stage)
        drawn: Any = context._jvm
        if "[Barrier]" in str(drawn.org.apache.spark.ui.scope.RDDOperationGraph.makeDotFile(graph)):
            yield stage, int(info.numTasks)


def cancel_stage(context: SparkContext, stage: int, reason: str) -> None:
    """Cancels a stage, and with it the jobs that need it; their exceptions carry the reason."""
    _scala(context).cancelStage(stage, reason)


def _scala(context: SparkContext) -> Any:
    java: Any = context._jsc
    return java.sc()


# ---------------------------------------------------------------- streams


def query_id(context: SparkContext) -> str | None:
    """The identity, kept in its checkpoint, of the query whose `foreachBatch` this thread is in; or None."""
    found = context.getLocalProperty("sql.streaming.queryId")
    return str(found) if found else None


# ---------------------------------------------------------------- schemas


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
    """Has PySpark raise what is made of its exceptions' texts, until the session's context is stopped.

    PySpark offers no place for that: the function that converts exceptions is replaced, and put back when the
    last session that needs it is stopped.

    Args:
        session: Whose actions are to raise it.
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
    """What a Java exception says, and what those say that caused it."""
    texts: list[str] = []
    while error is not None and len(texts) < 20:
        texts.append(str(error.toString()))
        error = error.getCause()
    return "\n".join(texts)


# ---------------------------------------------------------------- files


class Files:
    """A directory in any file system that Spark reads, by Hadoop's interface to it.

    Args:
        session: Whose configuration says how to get there.
        directory: Its address.
    """

    def __init__(self, session: SparkSession, directory: str) -> None:
        self.directory = directory
        context: Any = session.sparkContext
        self._hadoop = context._jvm.org.apache.hadoop
        self._io = context._jvm.org.apache.commons.io.IOUtils
        self._files = self._hadoop.fs.Path(directory).getFileSystem(context._jsc.hadoopConfiguration())

    def names(self, path: str = "") -> list[str]:
        """What is in a directory; nothing where it is missing."""
        there = self._path(path)
        if not self._files.exists(there):
            return []
        return [str(entry.getPath().getName()) for entry in self._files.listStatus(there)]

    def touch(self, path: str) -> None:
        """Makes an empty file."""
        self._files.create(self._path(path), True).close()

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
        """Writes a file at once: who reads it finds all of the old text or all of the new one."""
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
