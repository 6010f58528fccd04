"""`Epochs`: a dataflow that Structured Streaming feeds, a micro-batch an epoch.

Owns what is durable, in a directory on any file system that Spark reads:

- ``input/N``: the rows of micro-batch N, as Parquet, written before the dataflow gets them;
- ``output/NAME/N``: what the dataflow sent for it;
- ``sealed/N``: an empty file, made last. A micro-batch is sealed once it exists, and never run again.

The dataflow's own state is in memory only. It is recomputed at a start, by running the inputs of the sealed
micro-batches through the dataflow again; their outputs are dropped, as they are stored. A crash before a
micro-batch is sealed has Spark send it again, and what was stored of it is overwritten; a crash after that
has it skipped. So nothing is lost and nothing counts twice, and starting takes as long as all the input does.
"""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Any

from pointstamp._errors import ConfigError, GraphError
from pointstamp.spark.failures import listen, remember
from pointstamp.spark.inprocess import InProcess
from pointstamp.spark.outputs import ONE
from pointstamp.spark.plan import plan, spark_schemas
from pointstamp.spark.schemas import to_struct
from pointstamp.spark.session import is_connect

if TYPE_CHECKING:
    from collections.abc import Callable
    from types import TracebackType

    from pyspark.sql import DataFrame, SparkSession

    from pointstamp.spark.cluster import Cluster

__all__ = ["Epochs"]


class Epochs:
    """Feeds micro-batches to a dataflow and stores what it sends: pass it to `foreachBatch`.

    Micro-batch N is the epoch N: its rows have the timestamp N. A call returns when the epoch is complete and
    sealed, so that Spark then counts the micro-batch as done.

    Args:
        session: Where the stream runs.
        rows: What comes in: a `StructType`, its text, or the streaming DataFrame itself.
        build: Called as ``build(scope, rows)``, on every worker, as in `run`.
        schema: Of the output; for several outputs a dict.
        directory: Where inputs, outputs and seals are stored. One query's alone: the batches are numbered
            by it, and go with its checkpoint. Remove both or neither.
        time_column: Adds each output row's timestamp, which is the micro-batch's number, under this name.
        workers: Worker threads, where the dataflow runs in this process.
        cluster: The resident cluster to run it on, in place of this process.

    Raises:
        ConfigError: Over Spark Connect, or for both `workers` and `cluster`.
        GraphError: If a schema is not what it should be.

    Examples:
        ::

            with Epochs(spark, words, count, "word string, n bigint", "/data/counts") as epochs:
                query = words.writeStream.foreachBatch(epochs).option("checkpointLocation", place).start()
                query.awaitTermination()
                epochs.read().show()
    """

    def __init__(
        self,
        session: SparkSession,
        rows: Any,
        build: Callable[..., Any],
        schema: Any,
        directory: str,
        *,
        time_column: str | None = None,
        workers: int | None = None,
        cluster: Cluster | None = None,
    ) -> None:
        if is_connect(session):
            raise ConfigError(
                "over Spark Connect foreachBatch runs on the server, where this dataflow is not: run the "
                "stream in a session of its own, without Connect"
            )
        if workers is not None and cluster is not None:
            raise ConfigError("a dataflow has workers in this process or runs on a cluster, not both")
        listen()
        self._session = session
        self._input = to_struct(getattr(rows, "schema", rows), "the input")
        self._schemas = spark_schemas(schema, time_column)
        self._single = not isinstance(schema, dict)
        self._store = _Store(session, str(directory))
        self._lock = threading.Lock()
        self._sealed = self._store.sealed()
        self._fed: set[int] = set()
        checked = plan(session, {"input": self._input}, build, schema, keyword=False, time_column=time_column)
        self._dataflow = InProcess(checked, workers or 1) if cluster is None else cluster.dataflow(checked)
        try:
            self._recompute()
        except BaseException:
            self.close()
            raise

    def _recompute(self) -> None:
        for epoch in sorted(self._sealed):
            self._dataflow.feed(epoch, self._stored_input(epoch))
            self._dataflow.outputs(epoch, self._session, self._schemas)
            self._dataflow.forget(epoch)

    def __call__(self, batch: DataFrame, batch_id: int) -> None:
        """Runs a micro-batch, unless it is sealed already. Spark calls it.

        Raises:
            GraphError: If the rows are not what was declared, or a later micro-batch is sealed already.
            BaseException: What the dataflow raised. It has ended then: make another `Epochs`.
        """
        try:
            with self._lock:
                self._run(batch, batch_id)
        except BaseException as error:
            remember(error, f"raised in micro-batch {batch_id} of {self._store.directory}")
            raise

    def _run(self, batch: DataFrame, batch_id: int) -> None:
        if batch_id in self._sealed:
            return
        if self._sealed and batch_id < max(self._sealed):
            raise GraphError(
                f"micro-batch {batch_id} comes after micro-batch {max(self._sealed)} was sealed: "
                f"{self._store.directory} belongs to another query, or its checkpoint was removed"
            )
        if batch_id not in self._fed:
            self._store.write(batch.select(*self._input.names), "input", batch_id)
            self._dataflow.feed(batch_id, self._stored_input(batch_id))
            self._fed.add(batch_id)
        outputs = self._dataflow.outputs(batch_id, self._session, self._schemas)
        for name, rows in outputs.items():
            self._store.write(rows, f"output/{name}", batch_id)
        self._dataflow.forget(batch_id)
        self._store.seal(batch_id)
        self._sealed.add(batch_id)
        self._fed.discard(batch_id)

    def read(self, name: str | None = None) -> DataFrame:
        """The output of every sealed micro-batch.

        Args:
            name: Which output, where there are several.

        Raises:
            GraphError: If there is no such output.
        """
        name = ONE if name is None and self._single else name
        if name not in self._schemas:
            raise GraphError(f"there is no output {name!r}; there are {', '.join(self._schemas)}")
        return self._store.read(f"output/{name}", self._schemas[name], sorted(self._store.sealed()))

    def _stored_input(self, epoch: int) -> DataFrame:
        return self._store.read("input", self._input, [epoch])

    @property
    def sealed(self) -> list[int]:
        """The numbers of the micro-batches that are sealed, in order."""
        return sorted(self._sealed)

    def close(self) -> None:
        """Ends the dataflow. What is stored stays."""
        self._dataflow.close()

    def __enter__(self) -> Epochs:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.close()


class _Store:
    """The directory, by Hadoop's file systems, as Spark itself reads and writes it."""

    def __init__(self, session: SparkSession, directory: str) -> None:
        self.directory = directory.rstrip("/")
        self._session = session
        jvm: Any = session.sparkContext._jvm
        self._path = jvm.org.apache.hadoop.fs.Path
        root = self._path(self.directory)
        self._files = root.getFileSystem(session.sparkContext._jsc.hadoopConfiguration())

    def sealed(self) -> set[int]:
        """The epochs that are sealed."""
        seals = self._path(f"{self.directory}/sealed")
        if not self._files.exists(seals):
            return set()
        names = [str(entry.getPath().getName()) for entry in self._files.listStatus(seals)]
        return {int(name) for name in names if name.isdigit()}

    def seal(self, epoch: int) -> None:
        """Seals an epoch."""
        self._files.create(self._path(f"{self.directory}/sealed/{epoch}"), True).close()

    def write(self, rows: DataFrame, what: str, epoch: int) -> None:
        """Stores what belongs to an epoch, in place of what may be there."""
        rows.write.mode("overwrite").parquet(f"{self.directory}/{what}/{epoch}")

    def read(self, what: str, schema: Any, epochs: list[int]) -> DataFrame:
        """What belongs to some epochs."""
        if not epochs:
            return self._session.createDataFrame([], schema)
        paths = [f"{self.directory}/{what}/{epoch}" for epoch in epochs]
        return self._session.read.schema(schema).parquet(*paths)
