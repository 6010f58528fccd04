"""`run`: a dataflow as a step of a Spark job, from DataFrames to DataFrames.

Owns the plan. Three stages of Python: each input is packed where it is (sorted by time first, if it has one);
the packed batches of all inputs are dealt to the tasks of one barrier stage, which runs the dataflow; its
packed outputs are dealt out again and unpacked. The second shuffle is what lets Spark retry a barrier stage,
and `limit`, `take` and `coalesce` follow it.
"""

from __future__ import annotations

import secrets
from typing import TYPE_CHECKING, Any

from pointstamp._errors import GraphError
from pointstamp.spark import schemas
from pointstamp.spark.failures import listen
from pointstamp.spark.packing import GUARD, PACKED
from pointstamp.spark.session import is_connect, is_dataframe, session_of, tasks
from pointstamp.spark.shipped import ship
from pointstamp.spark.task import Job

if TYPE_CHECKING:
    from collections.abc import Callable

    from pyspark.sql import DataFrame, SparkSession

__all__ = ["Outputs", "run"]

ONE = "output"
"""The name of an output that has none, for messages and as an operator's name."""


class Outputs(dict[str, Any]):
    """The outputs of one dataflow, by name: DataFrames that share one run of it.

    The first action on any of them runs the dataflow and stores what it sent, in memory or on disk, as
    Spark's `persist` does; the others read that. `unpersist` frees it.
    """

    def __init__(self, outputs: dict[str, DataFrame], stored: DataFrame) -> None:
        super().__init__(outputs)
        self._stored = stored

    def unpersist(self) -> None:
        """Frees what is stored: an action that comes later runs the dataflow again."""
        self._stored.unpersist()


def run(
    inputs: DataFrame | dict[str, DataFrame],
    build: Callable[..., Any],
    schema: Any,
    *,
    time: str | dict[str, str] | None = None,
    time_column: str | None = None,
    num_workers: int | None = None,
) -> Any:
    """Runs a dataflow inside Spark, on DataFrames, and returns its outputs as DataFrames.

    Nothing runs before an action asks for the result, and another action may run the dataflow again; `cache`
    the result where it is used more than once. Every task of the stage is one process of a cluster, with
    `spark.task.cpus` workers.

    Args:
        inputs: A DataFrame, or several by name.
        build: Called as ``build(scope, stream)``, or for several inputs ``build(scope, **streams)``, with
            `ArrowStream`s; on every worker. Returns an `ArrowStream`, or a dict of them for several outputs.
            It travels pickled, by cloudpickle; modules of yours need `addPyFile` or `addArtifacts`.
        schema: Of the output, a `StructType` or its text (``"word string, n bigint"``); for several outputs a
            dict. Columns are found by name, put into its order and cast to its types.
        time: The integer column that holds each row's timestamp, or for several inputs, one of each by name;
            an input without one has all rows at 0. It remains a column.
        time_column: Adds the timestamp of each output row, under this name, as the last column.
        num_workers: Tasks of the barrier stage, all of which must run at once. Left out: the slots there are.

    Returns:
        A DataFrame; of several outputs, `Outputs`: a dict of DataFrames that share one run.

    Raises:
        ConfigError: If Spark cannot run the stage: too few slots, or dynamic allocation.
        GraphError: If an input, a schema or a column is not what it should be.

    An exception of a task is raised by the action, as it was raised in the task, with the task's traceback in
    a note. An input's time that is null or negative is a `TimeError` that shows the row.
    """
    if not callable(build):
        raise GraphError(f"build is a function that is given a scope and streams, not {build!r}")
    named = _named(inputs)
    session = session_of(next(iter(named.values())))
    times = _times(named, time, isinstance(inputs, dict))
    declared = _declared(schema, time_column)
    workers = tasks(session, num_workers)
    if not is_connect(session):
        listen()
    settings = _settings(session)
    several = isinstance(inputs, dict)
    columns = {name: _arrow(df.schema, _what(name, several), settings) for name, df in named.items()}
    job = Job(
        build=build,
        inputs=columns,
        keyword=several,
        times=times,
        outputs={name: _arrow(one, f"output '{name}'", settings) for name, one in declared.items()},
        single=not isinstance(schema, dict),
        time_column=time_column,
        secret=secrets.token_bytes(32),
    )
    dealt = _dealt(session, named, job, workers)
    ran = dealt.mapInArrow(ship("run", job), PACKED, barrier=True).repartition(workers)
    if job.single:
        return _unpacked(ran, 0, declared[ONE], time_column)
    stored = ran.persist()
    unpacked = {
        name: _unpacked(stored, number, declared[name], time_column) for number, name in enumerate(declared)
    }
    return Outputs(unpacked, stored)


def _named(inputs: Any) -> dict[str, DataFrame]:
    named = inputs if isinstance(inputs, dict) else {"input": inputs}
    if not named:
        raise GraphError("inputs is an empty dict: a dataflow in Spark has one DataFrame or more")
    for name, df in named.items():
        which = f"input '{name}'" if isinstance(inputs, dict) else "inputs"
        if not is_dataframe(df):
            raise GraphError(f"{which} must be a DataFrame of Spark, and is {_kind(df)}")
        if getattr(df, "isStreaming", False):
            raise GraphError(f"{which} is a streaming DataFrame: feed its batches with foreachBatch")
        if isinstance(inputs, dict) and not (isinstance(name, str) and name.isidentifier()):
            raise GraphError(f"an input's name is an argument of build, and {name!r} cannot be one")
        schemas.check_names(df.columns, _what(name, isinstance(inputs, dict)))
    return named


def _kind(thing: object) -> str:
    return f"a {type(thing).__module__}.{type(thing).__qualname__}"


def _what(name: str, several: bool) -> str:
    return f"input '{name}'" if several else "the input"


def _times(named: dict[str, DataFrame], time: Any, several: bool) -> list[str | None]:
    from pyspark.sql.types import ByteType, IntegerType, LongType, ShortType

    if time is None:
        return [None] * len(named)
    if isinstance(time, str):
        time = dict.fromkeys(named, time)
    if not isinstance(time, dict):
        raise GraphError(f"time is the name of a column, or a dict of them by input, not {time!r}")
    unknown = [name for name in time if name not in named]
    if unknown:
        raise GraphError(f"time names the input {unknown[0]!r}, and the inputs are {', '.join(named)}")
    for name, column in time.items():
        what = _what(name, several)
        if column not in named[name].columns:
            raise GraphError(
                f"{what} has no column {column!r} to take times from; its columns are {named[name].columns}"
            )
        kind = named[name].schema[column].dataType
        if not isinstance(kind, ByteType | ShortType | IntegerType | LongType):
            raise GraphError(
                f"column '{column}' of {what} cannot hold times, which are integers: it is "
                f"{kind.simpleString()}; cast it first"
            )
    return [time.get(name) for name in named]


def _declared(schema: Any, time_column: str | None) -> dict[str, Any]:
    given = schema if isinstance(schema, dict) else {ONE: schema}
    if not given:
        raise GraphError("schema is an empty dict: a dataflow in Spark has one output or more")
    declared = {}
    for name, one in given.items():
        what = f"output '{name}'" if isinstance(schema, dict) else "the output"
        declared[name] = schemas.to_struct(one, what)
        if time_column in declared[name].names:
            raise GraphError(
                f"time_column adds the column '{time_column}' to {what}, whose schema has one of that name"
            )
    return declared


def _settings(session: SparkSession) -> tuple[str, bool]:
    """The session's time zone, and whether it sends strings with long offsets."""
    large = session.conf.get("spark.sql.execution.arrow.useLargeVarTypes")
    return str(session.conf.get("spark.sql.session.timeZone")), str(large).lower() == "true"


def _arrow(schema: Any, what: str, settings: tuple[str, bool]) -> Any:
    timezone, large = settings
    return schemas.to_arrow(schema, timezone, large, what)


def _dealt(session: SparkSession, named: dict[str, DataFrame], job: Job, workers: int) -> DataFrame:
    """The inputs, packed and dealt to the barrier stage's tasks, in the order of times."""
    from pyspark.sql import functions as sf

    # Rows that stand for nothing: without any row Spark would plan the barrier stage away, or without tasks.
    dealt = session.range(0, workers, 1, 1).select(
        sf.lit(GUARD).alias("stream"), sf.lit(0).cast("bigint").alias("low"), sf.lit(b"").alias("batch")
    )
    several = job.keyword
    for number, ((name, df), column) in enumerate(zip(named.items(), job.times, strict=True)):
        ordered = df if column is None else df.sortWithinPartitions(column)
        packing = ship("pack", number, _what(name, several), job.inputs[name], column)
        dealt = dealt.union(ordered.mapInArrow(packing, PACKED))
    dealt = dealt.repartition(workers)
    return dealt if not any(job.times) else dealt.sortWithinPartitions("low")


def _unpacked(ran: DataFrame, number: int, schema: Any, time_column: str | None) -> DataFrame:
    from pyspark.sql.types import LongType, StructField, StructType

    fields = list(schema.fields)
    if time_column is not None:
        fields.append(StructField(time_column, LongType()))
    return ran.mapInArrow(ship("unpack", number), StructType(fields))
