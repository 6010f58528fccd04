"""`Epochs`: a dataflow that Structured Streaming feeds, a micro-batch an epoch.

Owns the durable state, in a directory on any file system that Spark reads:

- ``description``: which query feeds it, and the schemas; written before all else, and compared with later;
- ``input/N``: the rows of micro-batch N, as Parquet, written before the dataflow gets them;
- ``output/NAME/N``: the dataflow's output for it;
- ``sealed/N``: an empty file, made last. A micro-batch is sealed once it exists, and never run again.

The dataflow's own state is in memory only. It is recomputed at a start, by running the inputs of the sealed
micro-batches through the dataflow again; their outputs are dropped, as they are stored. After a crash before
a micro-batch is sealed, Spark sends it again, and its stored parts are overwritten; after a later crash it is
skipped. So nothing is lost and nothing counts twice, and starting takes as long as all the input does.
"""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Any

from pointstamp.errors import ConfigError, GraphError
from pointstamp.spark.calls.inprocess import InProcess
from pointstamp.spark.calls.store import Store
from pointstamp.spark.compat import is_connect, query_id, selected
from pointstamp.spark.job.checking import planned
from pointstamp.spark.job.outputs import ONE
from pointstamp.spark.packing.exceptions import listen, remember
from pointstamp.spark.packing.schemas import to_struct

if TYPE_CHECKING:
    from collections.abc import Callable
    from types import TracebackType

    from pyspark.sql import DataFrame, SparkSession

    from pointstamp.spark.resident.cluster import Cluster

__all__ = ["Epochs"]


class Epochs:
    """Feeds micro-batches to a dataflow and stores its output: pass it to `foreachBatch`.

    Micro-batch N is the epoch N: its rows have the timestamp N. A call returns when the epoch is complete and
    sealed, so that Spark then counts the micro-batch as done.

    Args:
        session: Where the stream runs.
        rows: The schema of the input: a `StructType`, its text, or the streaming DataFrame itself.
        build: Called as ``build(scope, rows)``, on every worker, and once before that to check it, as `run`
            does.
        schema: Of the output; for several outputs a dict. By default, the schemas of the results of `build`.
        directory: The storage of inputs, outputs and seals. It belongs to one query: the query numbers the
            batches, and the directory belongs to its checkpoint. Remove both or neither. The function `build`
            may change from one start to the next, and then applies to later input; the schemas may not.
        time_column: Adds each output row's timestamp, which is the micro-batch's number, under this name.
        workers: Worker threads, where the dataflow runs in this process.
        cluster: The resident cluster to run it on, in place of this process.

    Raises:
        ConfigError: Over Spark Connect, or for both `workers` and `cluster`.
        GraphError: If a schema is invalid, or the directory has other schemas.
        ClusterError: If the cluster was shut down, or has failed earlier.
        BaseException: An exception of `build`.

    Examples:
        >>> import tempfile
        >>> import pointstamp.spark
        >>> words = spark.createDataFrame([("to",), ("be",), ("to",)], "word string")
        >>> def count(scope, words):
        ...     return words.aggregate("word", n=pointstamp.count())
        >>> epochs = pointstamp.spark.Epochs(spark, words, count, directory=tempfile.mkdtemp() + "/counts")
        >>> epochs(words, 0)  # as foreachBatch calls it, with the number of the micro-batch
        >>> sorted(tuple(row) for row in epochs.read().collect())
        [('be', 1), ('to', 2)]
        >>> epochs.close()
    """

    def __init__(
        self,
        session: SparkSession,
        rows: Any,
        build: Callable[..., Any],
        schema: Any = None,
        directory: str = "",
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
        if not directory:
            raise ConfigError("directory= is missing: the one that inputs and outputs are stored in")
        listen(session)
        self._session = session
        self._input = to_struct(getattr(rows, "schema", rows), "the input")
        plan, self._schemas, _ = planned(
            session,
            {"input": self._input},
            build,
            schema,
            keyword=False,
            time_column=time_column,
            travels=cluster is not None,
        )
        assert plan.declared is not None
        self._single = plan.declared.single
        self._store = Store(session, str(directory), self._input, self._schemas)
        self._lock = threading.Lock()
        self._sealed = self._store.opened()
        self._fed: set[int] = set()
        self._dataflow = InProcess(plan, workers or 1) if cluster is None else cluster.dataflow(plan)
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
            GraphError: If the directory belongs to another query or to an earlier checkpoint of this one, the
                rows do not have the declared schema, or a later micro-batch is sealed already.
            BaseException: An exception of the dataflow. It has ended then: make another `Epochs`.
        """
        try:
            with self._lock:
                self._run(batch, batch_id)
        except BaseException as error:
            remember(error, f"raised in micro-batch {batch_id} of {self._store.directory}")
            raise

    def _run(self, batch: DataFrame, batch_id: int) -> None:
        self._store.belongs_to(query_id(self._session.sparkContext))
        if batch_id in self._sealed:
            return
        if self._sealed and batch_id < max(self._sealed):
            raise GraphError(
                f"micro-batch {batch_id} comes after micro-batch {max(self._sealed)} was sealed: "
                f"{self._store.directory} belongs to another query, or its checkpoint was removed"
            )
        if batch_id not in self._fed:
            self._store.write(selected(batch, self._input.names), "input", batch_id)
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

        Examples:
            >>> import tempfile
            >>> import pointstamp.spark
            >>> rows = spark.createDataFrame([(1,), (5,)], "n bigint")
            >>> place = tempfile.mkdtemp() + "/rows"
            >>> same = lambda scope, rows: rows
            >>> with pointstamp.spark.Epochs(spark, rows, same, directory=place) as epochs:
            ...     epochs(rows, 0)
            ...     epochs.read().count()
            2
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
        """Ends the dataflow. The stored results stay.

        Examples:
            >>> import tempfile
            >>> import pointstamp.spark
            >>> rows = spark.createDataFrame([(1,), (5,)], "n bigint")
            >>> place = tempfile.mkdtemp() + "/rows"
            >>> epochs = pointstamp.spark.Epochs(spark, rows, lambda scope, rows: rows, directory=place)
            >>> epochs.close()
        """
        self._dataflow.close()

    def __enter__(self) -> Epochs:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.close()
