"""`run`: a dataflow as a step of a Spark job, from DataFrames to DataFrames."""

from __future__ import annotations

import inspect
import secrets
from typing import TYPE_CHECKING, Any

from pointstamp.checkpoint import Checkpoint
from pointstamp.errors import ConfigError
from pointstamp.spark.calls.explaining import answer_signals
from pointstamp.spark.job.checking import planned
from pointstamp.spark.job.in_place import InPlace
from pointstamp.spark.job.plan import dataframes, packed, times_of
from pointstamp.spark.job.slots import session_of, tasks
from pointstamp.spark.job.stages import packed_inputs, ran, ran_in_place, unpacked
from pointstamp.spark.job.task import Job
from pointstamp.spark.monitoring import stages
from pointstamp.spark.monitoring.accumulator import notes_of
from pointstamp.spark.monitoring.monitor_server import watched
from pointstamp.spark.packing.exceptions import listen

if TYPE_CHECKING:
    from collections.abc import Callable

    from pyspark.sql import DataFrame

__all__ = ["Outputs", "run", "step"]


class Outputs(dict[str, Any]):
    """The outputs of one dataflow, by name: DataFrames that share one run of it.

    The first action on any of them runs the dataflow and stores its output, in memory or on disk, as Spark's
    `persist` does; the others read that. `unpersist` frees it.

    Examples:
        >>> import pointstamp.spark
        >>> numbers = spark.createDataFrame([(1,), (5,)], "n bigint")
        >>> outputs = pointstamp.spark.run(numbers, lambda scope, numbers: {"same": numbers})
        >>> list(outputs)
        ['same']
    """

    def __init__(self, outputs: dict[str, DataFrame], stored: DataFrame) -> None:
        super().__init__(outputs)
        self._stored = stored

    def unpersist(self) -> None:
        """Frees the stored output: a later action runs the dataflow again.

        Examples:
            >>> import pointstamp.spark
            >>> numbers = spark.createDataFrame([(1,), (5,)], "n bigint")
            >>> outputs = pointstamp.spark.run(numbers, lambda scope, numbers: {"same": numbers})
            >>> outputs["same"].count()
            2
            >>> outputs.unpersist()
        """
        self._stored.unpersist()


def run(
    inputs: DataFrame | dict[str, DataFrame],
    build: Callable[..., Any],
    schema: Any = None,
    *,
    time: str | dict[str, str] | None = None,
    time_column: str | None = None,
    num_workers: int | None = None,
    name: str | None = None,
    progress: bool = False,
    stall_report: float | None = None,
    checkpoint: Checkpoint | None = None,
    changes: str | None = None,
) -> Any:
    """Runs a dataflow inside Spark, on DataFrames, and returns its outputs as DataFrames.

    Nothing runs before an action asks for the result, and another action may run the dataflow again; `cache`
    the result where it is used more than once. Every task of the stage is one process of a cluster, with
    `spark.task.cpus` workers.

    A dataflow of one input and one output whose only operators are `filter`, `select`, `rename`,
    `with_columns` and `map_batches` needs no rows of other partitions. It runs in the stage that makes the
    rows, as one worker for each partition, unless `num_workers`, `progress` or `stall_report` is given or
    `build` reads ``scope.index`` or ``scope.peers``.

    Args:
        inputs: A DataFrame, or several by name.
        build: Called as ``build(scope, stream)``, or for several inputs ``build(scope, **streams)``, with
            `ArrowStream`s; on every worker, and once before that in the driver, where nothing flows: so a
            mistake in it is raised here. Returns an `ArrowStream`, or a dict of them for several outputs. A
            collection in place of a stream becomes its rows at the end, or its changes (see `changes`); a
            collection of records needs `schema`.
            It travels pickled, by cloudpickle; modules of yours need `addPyFile` or `addArtifacts`.
        schema: Of the output, a `StructType` or its text (``"word string, n bigint"``); for several outputs a
            dict. Columns are found by name, put into its order and cast to its types. By default, the schemas
            of the results of `build`.
        time: The integer column that holds each row's timestamp, or for several inputs, one of each by name;
            an input without one has all rows at 0. It remains a column.
        time_column: Adds the timestamp of each output row, under this name, as the last column.
        num_workers: Tasks of the barrier stage, all of which must run at once. Left out: the slots there are.
        name: The name of the dataflow in Spark's pages. By default, the name of `build`.
        progress: Whether the driver shows a bar while the dataflow runs: the share of the packed rows that it
            has taken. It needs the package `tqdm`.
        stall_report: The seconds without movement, while something is outstanding, after which the driver
            reports the reason on standard error.
        checkpoint: The location of the barrier stage's checkpoints while it runs: a folder that all executors
            reach. Where Spark runs the stage again, because a process or an executor was lost, the dataflow
            resumes from the last one. The outputs are then written to files there before Spark gets them.
            Custom operators declare their state, as `docs/recovery.md` describes.
        changes: The name of a column. Collections that `build` returns then become their changes in place of
            their rows at the end: the column says how many more of the row there are, or fewer, from the
            time in `time_column` on.

    Returns:
        A DataFrame; of several outputs, `Outputs`: a dict of DataFrames that share one run.

    Raises:
        ConfigError: If Spark cannot run the stage: too few slots, some of which a resident cluster may hold,
            or dynamic allocation; or `progress` or `stall_report` over Spark Connect; or `checkpoint` is no
            `Checkpoint`, or says `at`.
        GraphError: If an input, a schema or a column is invalid, or `time_column` is given for the rows of a
            collection at the end, which have no times.
        BaseException: An exception of `build`. A module that the driver does not have is no error where the
            schema is given: the executors may have it.

    An exception of a task is raised by the action, as it was raised in the task, with the task's traceback in
    a note. An input's time that is null or negative is a `TimeError` that shows the row.

    Examples:
        >>> import pointstamp.spark
        >>> words = spark.createDataFrame([("to",), ("be",), ("to",)], "word string")
        >>> def count(scope, words):
        ...     return words.aggregate("word", n=pointstamp.count())
        >>> counts = pointstamp.spark.run(words, count)
        >>> sorted(tuple(row) for row in counts.collect())
        [('be', 1), ('to', 2)]
    """
    given: Any = checkpoint
    if given is not None and (not isinstance(given, Checkpoint) or given.at is not None):
        raise ConfigError(
            "checkpoint is a pointstamp.Checkpoint without at=, because a run resumes from its own "
            f"checkpoints only, and is {checkpoint!r}"
        )
    several = isinstance(inputs, dict)
    named = dataframes(inputs)
    session = session_of(next(iter(named.values())))
    times = times_of(named, time, several)
    workers = tasks(session, num_workers)
    plan, schemas, place = planned(
        session,
        {name: df.schema for name, df in named.items()},
        build,
        schema,
        keyword=several,
        time_column=time_column,
        name=name,
        capturing=checkpoint is None,
        changes=changes,
    )
    assert plan.declared is not None
    pickled = packed(plan)
    listen(session)
    answer_signals(session)
    notes = notes_of(session, stages.take_note)
    unwatched = num_workers is None and not progress and stall_report is None and checkpoint is None
    if place is not InPlace.NO and unwatched and len(named) == 1 and plan.declared.single:
        [df], [column], [rows] = named.values(), times, schemas.values()
        ordered = column is not None and (time_column is not None or place is InPlace.IN_ORDER)
        return ran_in_place(df, column, plan, pickled, rows, notes, ordered=ordered)
    watch = watched(session, progress, stall_report)
    job = Job(pickled, times, secrets.token_bytes(32), workers, notes, watch, checkpoint)
    sent = ran(session, packed_inputs(plan, named, times, notes), job, plan.named)
    if plan.declared.single:
        return next(iter(unpacked(sent, schemas, plan.named).values()))
    stored = sent.persist()
    return Outputs(unpacked(stored, schemas, plan.named), stored)


def step(build: Callable[..., Any], schema: Any = None, **options: Any) -> Callable[[DataFrame], Any]:
    """Returns a function of a DataFrame that runs a dataflow on it, for `DataFrame.transform`.

    Args:
        build: As for `run`.
        schema: As for `run`.
        options: The further arguments of `run`, by name.

    Raises:
        TypeError: If `run` has no argument of such a name.

    Examples:
        >>> import pointstamp.spark
        >>> words = spark.createDataFrame([("to",), ("be",), ("to",)], "word string")
        >>> def count(scope, words):
        ...     return words.aggregate("word", n=pointstamp.count())
        >>> counts = words.where("word <> 'be'").transform(pointstamp.spark.step(count)).where("n > 1")
        >>> [tuple(row) for row in counts.collect()]
        [('to', 2)]
    """
    inspect.signature(run).bind(None, build, schema, **options)

    def transform(df: DataFrame) -> Any:
        return run(df, build, schema, **options)

    return transform
