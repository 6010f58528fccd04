"""What is to be built, and of which streams: what the driver has checked and every worker is told.

Everything that can be known to be wrong before Spark starts anything is refused here, with a sentence.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from pointstamp._errors import GraphError
from pointstamp.spark import schemas
from pointstamp.spark.outputs import ONE, Declared
from pointstamp.spark.session import is_dataframe

if TYPE_CHECKING:
    from collections.abc import Callable

    import pyarrow as pa
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.types import StructType

    from pointstamp.scope import Scope
    from pointstamp.spark.feeding import Feed

__all__ = ["Plan", "dataframes", "plan", "spark_schemas", "times_of"]


class Plan(NamedTuple):
    """A dataflow between inputs and outputs.

    Attributes:
        build: The user's function.
        inputs: The schema of each input, by name.
        keyword: Whether `build` takes the inputs by name.
        declared: The outputs.
    """

    build: Callable[..., Any]
    inputs: dict[str, pa.Schema]
    keyword: bool
    declared: Declared

    def what(self, name: str) -> str:
        """What messages call an input."""
        return what(name, self.keyword)

    def built(self, scope: Scope, feed: Feed) -> Any:
        """What `build` returns, called with the streams of a feed."""
        streams = {name: feed.stream(scope, number, name) for number, name in enumerate(self.inputs)}
        return self.build(scope, **streams) if self.keyword else self.build(scope, *streams.values())


def plan(
    session: SparkSession,
    inputs: dict[str, StructType],
    build: Callable[..., Any],
    schema: Any,
    *,
    keyword: bool,
    time_column: str | None,
) -> Plan:
    """Checks what can be checked, and converts the schemas.

    Raises:
        GraphError: If something is not what it should be.
    """
    if not callable(build):
        raise GraphError(f"build is a function that is given a scope and streams, not {build!r}")
    declared = spark_schemas(schema, None)
    for name, one in declared.items():
        if time_column in one.names:
            raise GraphError(
                f"time_column adds the column '{time_column}' to {_output(name, schema)}, whose schema has "
                "one of that name"
            )
    timezone, large = _settings(session)
    for name, one in inputs.items():
        if keyword and not str(name).isidentifier():
            raise GraphError(f"an input's name is an argument of build, and {name!r} cannot be one")
        schemas.check_names(one.names, what(name, keyword))
    return Plan(
        build=build,
        inputs={
            name: schemas.to_arrow(one, timezone, large, what(name, keyword)) for name, one in inputs.items()
        },
        keyword=keyword,
        declared=Declared(
            {
                name: schemas.to_arrow(one, timezone, large, _output(name, schema))
                for name, one in declared.items()
            },
            not isinstance(schema, dict),
            time_column,
        ),
    )


def what(name: str, keyword: bool) -> str:
    """What messages call an input."""
    return f"input '{name}'" if keyword else "the input"


def _output(name: str, schema: Any) -> str:
    return f"output '{name}'" if isinstance(schema, dict) else "the output"


def spark_schemas(schema: Any, time_column: str | None) -> dict[str, StructType]:
    """The schemas of the outputs, by name, with the column of times.

    Raises:
        GraphError: If one is no schema, or there is none.
    """
    from pyspark.sql.types import LongType, StructField, StructType

    given = schema if isinstance(schema, dict) else {ONE: schema}
    if not given:
        raise GraphError("schema is an empty dict: a dataflow in Spark has one output or more")
    declared = {name: schemas.to_struct(one, _output(name, schema)) for name, one in given.items()}
    if time_column is None:
        return declared
    return {
        name: StructType([*one.fields, StructField(time_column, LongType())])
        for name, one in declared.items()
    }


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
            raise GraphError(f"{which} must be a DataFrame of Spark, and is a {kind}")
        if df.isStreaming:
            raise GraphError(
                f"{which} is a streaming DataFrame: feed its batches to an Epochs, with foreachBatch"
            )
    return named


def times_of(named: dict[str, DataFrame], time: Any, keyword: bool) -> list[str | None]:
    """The column of times of each input, or None.

    Raises:
        GraphError: If there is no such input or column, or it holds no integers.
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
    for name, column in time.items():
        if column not in named[name].columns:
            raise GraphError(
                f"{what(name, keyword)} has no column {column!r} to take times from; its columns are "
                f"{named[name].columns}"
            )
        kind = named[name].schema[column].dataType
        if not isinstance(kind, ByteType | ShortType | IntegerType | LongType):
            raise GraphError(
                f"column '{column}' of {what(name, keyword)} cannot hold times, which are integers: it is "
                f"{kind.simpleString()}; cast it first"
            )
    return [time.get(name) for name in named]


def _settings(session: SparkSession) -> tuple[str, bool]:
    """The session's time zone, and whether it sends strings with long offsets."""
    large = session.conf.get("spark.sql.execution.arrow.useLargeVarTypes")
    return str(session.conf.get("spark.sql.session.timeZone")), str(large).lower() == "true"
