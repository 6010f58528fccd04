"""`Epochs`: a dataflow that Structured Streaming feeds, a micro-batch an epoch.

Owns the durable state, in a directory on any file system that Spark reads:

- ``description``: which query feeds it, and the schemas; written before all else, and compared with later;
- ``input/N``: the rows of micro-batch N, as Parquet, written before the dataflow gets them;
- ``output/NAME/N``: the dataflow's output for it;
- ``sealed/N``: an empty file, made last. A micro-batch is sealed once it exists, and never run again.

After a crash before a micro-batch is sealed, Spark sends it again, and its stored parts are overwritten;
after a later crash it is skipped. So nothing is lost and nothing counts twice.

Without checkpoints the dataflow's own state is in memory only. It is recomputed at a start, by running the
inputs of the sealed micro-batches through the dataflow again; their outputs are dropped, as they are stored.

With checkpoints, one is made when the outputs of a micro-batch are stored; then it is sealed, and the inputs
up to it are deleted. The checkpoint says which micro-batches it has, and of which of them the outputs are
stored (`Standing`). At a start, one of those that is not sealed is sealed; one that was fed and whose outputs
are not stored is not fed again; and later ones that are sealed, as after `Checkpoint(at=)`, are recomputed.
"""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Any

from pointstamp.checkpoint import Checkpoint
from pointstamp.errors import CheckpointError, ConfigError, GraphError
from pointstamp.spark.calls.inprocess import InProcess, Recorded
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

    from pointstamp.spark.calls.epoch_queue import Standing
    from pointstamp.spark.resident.cluster import Cluster

__all__ = ["Epochs"]

_REMEDY = "To start anew, remove the location, the directory and the query's checkpoint together"


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
        checkpoint: The location of the dataflow's checkpoints: a folder that the driver reaches. Each
            micro-batch ends with a checkpoint, and the inputs before it are deleted. A start then resumes
            from it, whatever was killed, also with another number of `workers`. The folder goes with the
            directory: remove both or neither. Of `build`, what `docs/recovery.md` says of changed programs.
        changes: The column for the diffs of collections that `build` returns. A micro-batch's output has
            their changes in it. Without it, `build` may not return collections.

    Raises:
        ConfigError: Over Spark Connect; for both `workers` and `cluster`; or for both `cluster` and
            `checkpoint`, because a checkpoint has all dataflows of its workers, and those of a resident
            cluster run dataflows of other calls, too.
        CheckpointError: If the checkpoint cannot be resumed, or is not the directory's.
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
        checkpoint: Checkpoint | None = None,
        changes: str | None = None,
    ) -> None:
        if is_connect(session):
            raise ConfigError(
                "over Spark Connect foreachBatch runs on the server, where this dataflow is not: run the "
                "stream in a session of its own, without Connect"
            )
        if workers is not None and cluster is not None:
            raise ConfigError("a dataflow has workers in this process or runs on a cluster, not both")
        if checkpoint is not None and not isinstance(checkpoint, Checkpoint):
            raise ConfigError(
                f"checkpoint is a pointstamp.Checkpoint, such as Checkpoint('state/'), not {checkpoint!r}"
            )
        if checkpoint is not None and cluster is not None:
            raise ConfigError(
                "a checkpoint has all dataflows of its workers, and those of a resident cluster run "
                "dataflows of other calls, too: leave out cluster=, and say with workers= how many threads "
                "the dataflow has; or leave out checkpoint=, and the stored inputs are run again at a start"
            )
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
            changes=changes,
            ends=False,
        )
        assert plan.declared is not None
        self._single = plan.declared.single
        self._before: Standing | None = None
        self._store = Store(session, str(directory), self._input, self._schemas)
        self._lock = threading.Lock()
        self._sealed = self._store.opened()
        self._fed: set[int] = set()
        self._recorded = None if checkpoint is None else Recorded(plan, workers or 1, checkpoint)
        self._location = None if checkpoint is None else checkpoint.location
        self._dataflow: Any = self._recorded
        if self._dataflow is None:
            self._dataflow = InProcess(plan, workers or 1) if cluster is None else cluster._start(plan)
        try:
            self._recompute(self._go_on())
        except BaseException:
            self.close()
            raise

    def _go_on(self) -> int:
        """Resumes from the checkpoint, if there is one; returns its last micro-batch, or -1."""
        standing = None if self._recorded is None else self._recorded.standing
        if standing is None:
            return -1
        stored = standing.stored
        if stored >= 0 and stored not in self._sealed:
            if not self._store.has_outputs(stored):
                raise CheckpointError(
                    f"the checkpoint in {self._location} has micro-batch {stored}, whose outputs are not in "
                    f"{self._store.directory}: that directory was removed, or is another. {_REMEDY}"
                )
            self._seal(stored)  # it was killed between the two
        self._fed = {epoch for epoch in standing.fed if epoch not in self._sealed}
        self._before = standing
        for epoch in standing.fed:
            if epoch in self._sealed:
                self._store_again(epoch)
        return max((stored, *standing.fed))

    def _recompute(self, known: int) -> None:
        """Runs the micro-batches that are sealed and that the dataflow has not had through it again."""
        missing = sorted(epoch for epoch in self._sealed if epoch > known)
        gone = set(missing) - self._store.inputs()
        if gone and self._recorded is None:
            raise CheckpointError(
                f"the rows of micro-batch {min(gone)} of {self._store.directory} were deleted, because a "
                "checkpoint had them: give checkpoint= with the location of the checkpoints"
            )
        if gone:
            what = "has no checkpoint" if known < 0 else f"has a checkpoint of micro-batch {known}"
            raise CheckpointError(
                f"{self._location} {what}, and {self._store.directory} has sealed micro-batch "
                f"{max(missing)}, without the rows of {min(gone)}, which a later checkpoint had: resume from "
                f"the newest checkpoint of the location that was used with the directory. {_REMEDY}"
            )
        if missing and self._recorded is not None:
            self._recorded.fed_by(self._store.query)
        for epoch in missing:
            self._dataflow.feed(epoch, self._stored_input(epoch))
            self._store_again(epoch)

    def _store_again(self, epoch: int) -> None:
        """Drops the outputs of a micro-batch, which are stored."""
        self._dataflow.wait(epoch)
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
        query = query_id(self._session.sparkContext)
        self._store.belongs_to(query)
        if self._before is not None and query != self._before.query:
            raise CheckpointError(
                f"the checkpoint in {self._location} is of the query {self._before.query}, and {query} feeds "
                f"the dataflow now: each numbers its micro-batches from 0. {_REMEDY}"
            )
        if batch_id in self._sealed:
            return
        if self._sealed and batch_id < max(self._sealed):
            raise GraphError(
                f"micro-batch {batch_id} comes after micro-batch {max(self._sealed)} was sealed: "
                f"{self._store.directory} belongs to another query, or its checkpoint was removed"
            )
        if self._recorded is not None:
            self._recorded.fed_by(query)
        if batch_id not in self._fed:
            self._store.write(selected(batch, self._input.names), "input", batch_id)
            self._dataflow.feed(batch_id, self._stored_input(batch_id))
            self._fed.add(batch_id)
        outputs = self._dataflow.outputs(batch_id, self._session, self._schemas)
        for name, rows in outputs.items():
            self._store.write(rows, f"output/{name}", batch_id)
        if self._recorded is None:
            self._dataflow.forget(batch_id)
        else:
            self._recorded.stored(batch_id)
        self._seal(batch_id)

    def _seal(self, epoch: int) -> None:
        self._store.seal(epoch)
        self._sealed.add(epoch)
        self._fed.discard(epoch)
        if self._recorded is not None:
            self._store.drop_inputs(epoch)

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
