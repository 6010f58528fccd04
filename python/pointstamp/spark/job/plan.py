"""The plan of a dataflow: checked by the driver, built by every worker."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from pointstamp._unpicklable import unpicklable
from pointstamp.errors import GraphError
from pointstamp.spark import compat
from pointstamp.spark.job.collections import as_streams
from pointstamp.spark.job.slots import is_dataframe

if TYPE_CHECKING:
    from collections.abc import Callable

    import pyarrow as pa
    from pyspark.sql import DataFrame

    from pointstamp.api.scope import Scope
    from pointstamp.spark.job.feeding import Feed
    from pointstamp.spark.job.outputs import Declared
    from pointstamp.spark.packing.naming import Named

__all__ = ["Plan", "dataframes", "packed", "times_of", "what"]


class Plan(NamedTuple):
    """A dataflow between inputs and outputs.

    Attributes:
        build: The user's function.
        inputs: The schema of each input, by name.
        keyword: Whether `build` takes the inputs by name.
        declared: The outputs; None where `build` is yet to be asked.
        named: Its name.
        changes: The column for the diffs of collections that `build` returns; None for their rows at the end.
    """

    build: Callable[..., Any]
    inputs: dict[str, pa.Schema]
    keyword: bool
    declared: Declared | None
    named: Named
    changes: str | None = None

    def what(self, name: str) -> str:
        """Returns the name of an input for messages."""
        return what(name, self.keyword)

    def built(self, scope: Scope, feed: Feed) -> Any:
        """Calls `build` with the streams of a feed; returns its result."""
        return self.called(scope, self.streams(scope, feed))

    def streams(self, scope: Scope, feed: Feed) -> dict[str, Any]:
        """The streams of a feed, by the names of the inputs."""
        return {name: feed.stream(scope, number, name) for number, name in enumerate(self.inputs)}

    def called(self, scope: Scope, streams: dict[str, Any], see: Callable[[Any], None] | None = None) -> Any:
        """Calls `build` with streams; returns its result, with streams in place of collections."""
        built = self.build(scope, **streams) if self.keyword else self.build(scope, *streams.values())
        if see is not None:
            see(built)
        return as_streams(built, self.changes, None if self.declared is None else self.declared.schemas)


def packed(plan: Plan | Callable[..., Any]) -> bytes:
    """A plan, or the function of one, as it travels to the executors.

    Raises:
        TypeError: If `build` refers to something that cannot be pickled; it names the variable.
    """
    from pyspark import cloudpickle

    try:
        return cloudpickle.dumps(plan)  # type: ignore[no-any-return, no-untyped-call]
    except Exception as error:
        build = plan.build if isinstance(plan, Plan) else plan
        if not (found := unpicklable(build, cloudpickle.dumps)):
            raise
        raise TypeError(
            f"build cannot be sent to Spark's executors: {found}, cannot be pickled ({error}). Make locks, "
            "files and connections inside of build, or of what uses them: each executor has its own"
        ) from error


def what(name: str, keyword: bool) -> str:
    """Returns the name of an input for messages."""
    return f"input '{name}'" if keyword else "the input"


def dataframes(inputs: Any) -> dict[str, DataFrame]:
    """The inputs by name.

    Raises:
        GraphError: If one is no DataFrame, or there is none.
    """
    named = inputs if isinstance(inputs, dict) else {"input": inputs}
    if not named:
        raise GraphError("inputs is an empty dict: a dataflow in Spark has one DataFrame or more")
    for name, df in named.items():
        which = f"input '{name}'" if isinstance(inputs, dict) else "inputs"
        if not is_dataframe(df):
            kind = f"{type(df).__module__}.{type(df).__qualname__}"
            cure = ": give to_spark() of it" if hasattr(df, "to_spark") else ""
            raise GraphError(f"{which} must be a DataFrame of Spark, and is a {kind}{cure}")
        if df.isStreaming:
            raise GraphError(
                f"{which} is a streaming DataFrame: feed its batches to an Epochs, with foreachBatch"
            )
    return named


def times_of(named: dict[str, DataFrame], time: Any, keyword: bool) -> list[str | None]:
    """The column of times of each input, or None. Names are resolved as Spark resolves them.

    Raises:
        GraphError: If there is no such input or column, or it has no integers.
    """
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
    times: dict[str, str] = {}
    for name, wanted in time.items():
        column = compat.resolved(named[name], wanted)
        if column is None:
            raise GraphError(
                f"{what(name, keyword)} has no column {wanted!r} to take times from; its columns are "
                f"{named[name].columns}"
            )
        kind = named[name].schema[column].dataType
        if not isinstance(kind, ByteType | ShortType | IntegerType | LongType):
            raise GraphError(
                f"column '{column}' of {what(name, keyword)} cannot hold times, which are integers: it is "
                f"{kind.simpleString()}; cast it first"
            )
        times[name] = column
    return [times.get(name) for name in named]
