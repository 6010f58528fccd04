"""Refusals of `run` before Spark starts anything, and their words."""

import threading
from collections.abc import Callable
from typing import Any

import pandas as pd
import pyarrow as pa
import pytest

import pointstamp as ps
from pointstamp.spark import run as spark_run


def identity(_scope: ps.Scope, rows: ps.ArrowStream) -> ps.ArrowStream:
    return rows


Call = Callable[[Any], Any]

run: Any = spark_run  # what types would refuse is refused when it runs, too


def around_a_lock() -> Any:
    """Builds with a function whose closure holds a lock."""
    lock = threading.Lock()

    def counted(batch: Any) -> Any:
        with lock:
            return batch

    return lambda _scope, rows: rows.map_batches(counted)


def without_a_step(scope: ps.Scope, rows: ps.ArrowStream) -> ps.ArrowStream:
    loop, back = scope.feedback(0, schema=pa.schema([("id", pa.int64())]))
    both = rows.concat(back)
    both.connect_loop(loop)
    return both


REFUSED: list[tuple[str, Call, type[Exception], str]] = [
    (
        "too few slots",
        lambda df: run(df, identity, "id bigint", num_workers=3),
        ps.ConfigError,
        r"3 tasks needs as many slots at once, and Spark has 2 .*num_workers=2 or less",
    ),
    (
        "no number",
        lambda df: run(df, identity, "id bigint", num_workers=0),
        ps.ConfigError,
        r"num_workers is a number of tasks, at least 1, not 0",
    ),
    (
        "no DataFrame",
        lambda df: run(pd.DataFrame({"id": [1]}), identity, "id bigint"),
        ps.GraphError,
        r"inputs must be a DataFrame of Spark, and is a pandas\..*DataFrame",
    ),
    (
        "no DataFrame among several",
        lambda df: run({"a": df, "b": [1, 2]}, identity, "id bigint"),
        ps.GraphError,
        r"input 'b' must be a DataFrame of Spark, and is a builtins\.list",
    ),
    (
        "a lock in a closure",
        lambda df: run(df, around_a_lock(), "id bigint"),
        TypeError,
        r"'lock' of around_a_lock\.<locals>\.counted, a _thread\.lock, cannot be pickled .* inside of build",
    ),
    (
        "a lock in a closure, without a schema",
        lambda df: run(df, around_a_lock()),
        TypeError,
        r"variable 'lock' of around_a_lock\.<locals>\.counted, a _thread\.lock",
    ),
    (
        "a loop that goes round at one time",
        lambda df: run(df, without_a_step, "id bigint"),
        ps.GraphError,
        r"the cycle through .*feedback.* does not advance timestamps",
    ),
    ("no inputs", lambda df: run({}, identity, "id bigint"), ps.GraphError, "inputs is an empty dict"),
    ("no name", lambda df: run({"a b": df}, identity, "id bigint"), ps.GraphError, "'a b' cannot be one"),
    ("no function", lambda df: run(df, "x", "id bigint"), ps.GraphError, "build is a function"),
    (
        "no schema",
        lambda df: run(df, identity, "id bigint, id int"),
        ps.GraphError,
        "the output has more than one column named 'id'",
    ),
    (
        "rubbish for a schema",
        lambda df: run(df, identity, "id bigling"),
        ps.GraphError,
        "the schema of the output is not one: 'id bigling'",
    ),
    (
        "a schema of something else",
        lambda df: run(df, identity, {"out": 3}),
        ps.GraphError,
        "the schema of output 'out' is a StructType, or text like",
    ),
    ("no outputs", lambda df: run(df, identity, {}), ps.GraphError, "schema is an empty dict"),
    (
        "a time that is missing",
        lambda df: run(df, identity, "id bigint", time="day"),
        ps.GraphError,
        r"the input has no column 'day' to take times from; its columns are \['id'\]",
    ),
    (
        "a time of an input that is missing",
        lambda df: run({"a": df}, identity, "id bigint", time={"b": "id"}),
        ps.GraphError,
        "time names the input 'b', and the inputs are a",
    ),
    (
        "a time that is no integer",
        lambda df: run(df.selectExpr("cast(id as string) id"), identity, "id string", time="id"),
        ps.GraphError,
        "column 'id' of the input cannot hold times, which are integers: it is string",
    ),
    (
        "a time column that is there",
        lambda df: run(df, identity, "id bigint", time_column="id"),
        ps.GraphError,
        "time_column adds the column 'id' to the output, whose schema has one of that name",
    ),
    (
        "two columns of one name",
        lambda df: run(df.select("id", "id"), identity, "id bigint"),
        ps.GraphError,
        "the input has more than one column named 'id'",
    ),
    (
        "a stream",
        lambda df: run(
            df.sparkSession.readStream.format("rate").load(), identity, "timestamp timestamp, value bigint"
        ),
        ps.GraphError,
        "is a streaming DataFrame: feed its batches to an Epochs, with foreachBatch",
    ),
]


@pytest.mark.parametrize(
    ("call", "error", "words"), [case[1:] for case in REFUSED], ids=[case[0] for case in REFUSED]
)
def test_refused(spark: Any, call: Call, error: type[Exception], words: str) -> None:
    jobs = spark.sparkContext.statusTracker().getJobIdsForGroup()
    with pytest.raises(error, match=words):
        call(spark.range(10))
    assert set(spark.sparkContext.statusTracker().getJobIdsForGroup()) <= set(jobs), "it ran something"


def test_dynamic_allocation_is_refused_first(spark: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    kind = type(spark.conf)
    get = kind.get
    monkeypatch.setattr(
        kind, "get", lambda self, key, *d: "true" if key.startswith("spark.dynamicA") else get(self, key, *d)
    )
    with pytest.raises(ps.ConfigError, match=r"dynamicAllocation.enabled is true, and Spark runs no barrier"):
        run(spark.range(10), identity, "id bigint")


def inside(scope: ps.Scope, rows: ps.ArrowStream) -> ps.ArrowStream:
    with scope.iterative() as inner:
        return rows.enter(inner)


BUILT: list[tuple[str, Any, Any, str]] = [
    ("nothing", lambda scope, rows: None, "id bigint", "build must return an ArrowStream, and returned None"),
    (
        "records",
        lambda scope, rows: rows.to_records(),
        "id bigint",
        r"build must return an ArrowStream, and returned .*: records have no schema, .* to_arrow\(schema\)",
    ),
    (
        "records, and no schema",
        lambda scope, rows: rows.to_records(),
        None,
        r"build must return an ArrowStream, and returned .*: records have no schema, .* to_arrow\(schema\)",
    ),
    ("nothing, and no schema", lambda scope, rows: None, None, "build must return an ArrowStream, .* None"),
    ("no outputs, and no schema", lambda scope, rows: {}, None, "build returned an empty dict"),
    (
        "a list in a dict, and no schema",
        lambda scope, rows: {"a": [rows]},
        None,
        "output 'a' of build must be an ArrowStream",
    ),
    (
        "a type that Spark does not have",
        lambda scope, rows: rows.map_batches(lambda batch: batch, pa.schema([("n", pa.uint64())])),
        None,
        "column 'n' of the output is uint64, and no integer of Spark holds all of its values",
    ),
    (
        "a stream of a loop",
        lambda scope, rows: inside(scope, rows),
        None,
        "is a stream of the scope",
    ),
    (
        "no dict",
        lambda scope, rows: rows,
        {"a": "id bigint", "b": "id bigint"},
        "there are schemas for the outputs a, b, so build must return a dict",
    ),
    (
        "other names",
        lambda scope, rows: {"a": rows},
        {"a": "id bigint", "b": "id bigint"},
        "build must return the outputs that have a schema, a, b, and returned a",
    ),
    (
        "a list in a dict",
        lambda scope, rows: {"a": [rows]},
        {"a": "id bigint"},
        "output 'a' of build must be an ArrowStream",
    ),
    (
        "too few columns",
        lambda scope, rows: rows,
        "id bigint, n int",
        r"the output lacks 'n'; its columns are",
    ),
    (
        "other columns",
        lambda scope, rows: {"a": rows},
        {"a": "n bigint"},
        r"output 'a' lacks 'n' and has 'id', which the schema does not declare; its columns are \['id'\]",
    ),
    (
        "another type",
        lambda scope, rows: rows,
        "id array<int>",
        r"column 'id' of the output is int64, which cannot be cast to the list<element: int32>",
    ),
    (
        "a column that is missing",
        lambda scope, rows: rows.exchange("nme"),
        "id bigint",
        "'nme'",
    ),
]


@pytest.mark.parametrize(
    ("build", "schema", "words"), [case[1:] for case in BUILT], ids=[case[0] for case in BUILT]
)
def test_what_build_may_not_return(spark: Any, build: Any, schema: Any, words: str) -> None:
    jobs = spark.sparkContext.statusTracker().getJobIdsForGroup()
    with pytest.raises(ps.GraphError, match=words):
        run(spark.range(10), build, schema, num_workers=1)
    assert set(spark.sparkContext.statusTracker().getJobIdsForGroup()) <= set(jobs), "it ran something"


def test_a_value_that_does_not_fit(spark: Any) -> None:
    out = run(spark.range(300, 301), identity, "id tinyint", num_workers=1)
    with pytest.raises(ValueError, match=r"column 'id' of the output is int64 and is declared as int8.*300"):
        out.collect()


@pytest.mark.parametrize(
    ("times", "words"),
    [
        ("if(id = 7, null, id)", r"'t' of the input is a row's time, and is null in the row .*'id': 7"),
        ("id - 3", r"is 0 or more, and is -3 in the row .*'id': 0"),
    ],
)
def test_times_that_are_none(spark: Any, times: str, words: str) -> None:
    rows = spark.range(10).selectExpr("id", f"{times} t")
    out = run(rows, identity, rows.schema, time="t", num_workers=1)
    with pytest.raises(ps.TimeError, match=words):
        out.collect()
