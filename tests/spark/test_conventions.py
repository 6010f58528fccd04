"""Spark's conventions: collections as outputs, `transform`, case of names, intervals, overflow."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import pointstamp as ps
from pointstamp.spark import Epochs, run, setup_cluster, step


def same(_scope: ps.Scope, rows: Any) -> Any:
    return rows


def counts(_scope: ps.Scope, rows: ps.ArrowStream) -> Any:
    return rows.to_collection().count("word")


@pytest.fixture
def words(spark: Any) -> Any:
    rows = [(0, "to", 1), (0, "be", 2), (1, "to", 3)]
    return spark.createDataFrame(rows, "day bigint, word string, n bigint")


def rows_of(frame: Any) -> list[tuple[Any, ...]]:
    return sorted(map(tuple, frame.collect()))


CHANGES = [("be", 1, 1, 0), ("to", 1, -1, 1), ("to", 1, 1, 0), ("to", 2, 1, 1)]


@pytest.mark.parametrize("num_workers", [1, 2])
def test_a_collection_becomes_its_rows_at_the_end_or_its_changes(words: Any, num_workers: int) -> None:
    assert rows_of(run(words, counts, time="day", num_workers=num_workers)) == [("be", 1), ("to", 2)]
    changes = run(words, counts, time="day", num_workers=num_workers, changes="diff", time_column="t")
    assert changes.columns == ["word", "count", "diff", "t"]
    assert rows_of(changes) == CHANGES


def test_rows_are_there_as_often_as_the_collection_has_them(words: Any) -> None:
    out = run(words, lambda _, rows: rows.select("word").to_collection())
    assert rows_of(out) == [("be",), ("to",), ("to",)]
    several = run(words, lambda _, rows: {"stream": rows, "collection": counts(_, rows)})
    assert rows_of(several["stream"]) == rows_of(words)
    assert rows_of(several["collection"]) == [("be", 1), ("to", 2)]


def test_a_collection_of_records_needs_a_schema(words: Any) -> None:
    def records(_scope: ps.Scope, rows: ps.ArrowStream) -> Any:
        return rows.to_collection().to_records().map(lambda row: (row[1], row[2]))

    expected = [("be", 2), ("to", 1), ("to", 3)]
    assert rows_of(run(words, records, "word string, n bigint")) == expected
    changes = run(words, records, "word string, n bigint, diff bigint", changes="diff")
    assert rows_of(changes) == [(*row, 1) for row in expected]
    values = run(words, lambda _, rows: records(_, rows).map(lambda row: row[0]), "word string")
    assert rows_of(values) == [("be",), ("to",), ("to",)]
    with pytest.raises(ps.GraphError, match=r"the output is a collection of records, .* give the schema"):
        run(words, records)
    with pytest.raises(ValueError, match=r"the output has the record \('\w+', \d\), and the schema has 3"):
        run(words, records, "word string, n bigint, m bigint").collect()


@pytest.mark.parametrize(
    ("build", "options", "message"),
    [
        (counts, {"time_column": "t"}, "the output is a collection, and its rows at the end have no times"),
        (counts, {"changes": "count"}, r"changes= adds the column 'count' to the output, a collection that"),
        (counts, {"changes": 1}, "changes is the name of a column"),
    ],
)
def test_collections_that_are_refused(words: Any, build: Any, options: Any, message: str) -> None:
    with pytest.raises(ps.GraphError, match=message):
        run(words, build, **options)


def test_rows_of_which_more_were_taken_than_there_are(words: Any) -> None:
    out = run(words, lambda _, rows: rows.select("word").to_collection().negate())
    with pytest.raises(ValueError, match=r"has a row -[12] times at the end, because more of it was taken"):
        out.collect()


def test_collections_of_a_resident_cluster_and_of_streams(spark: Any, words: Any, tmp_path: Path) -> None:
    with setup_cluster(1) as cluster:
        assert rows_of(cluster.run(words, counts)) == [("be", 1), ("to", 2)]
        changes = cluster.run(words, counts, time="day", changes="diff", time_column="t")
        assert rows_of(changes) == CHANGES
    with pytest.raises(ps.GraphError, match="this dataflow has no end: changes='diff' gives its changes"):
        Epochs(spark, words, counts, directory=str(tmp_path / "refused"))
    with Epochs(
        spark, words, counts, directory=str(tmp_path / "stored"), changes="diff", time_column="t"
    ) as epochs:
        for number in range(2):
            epochs(words, number)
        assert rows_of(epochs.read()) == [
            ("be", 1, -1, 1),
            ("be", 1, 1, 0),
            ("be", 2, 1, 1),
            ("to", 2, -1, 1),
            ("to", 2, 1, 0),
            ("to", 4, 1, 1),
        ]


def test_a_step_of_transform(words: Any) -> None:
    def count(_scope: ps.Scope, rows: ps.ArrowStream) -> ps.ArrowStream:
        return rows.aggregate("word", n=ps.count())

    many = words.where("n > 0").transform(step(count, time="day", time_column="t")).where("word = 'to'")
    assert rows_of(many) == [("to", 1, 0), ("to", 1, 1)]
    with pytest.raises(TypeError, match="tim"):
        step(count, tim="day")


def test_names_are_resolved_as_in_spark(spark: Any, words: Any) -> None:
    assert rows_of(run(words, same, time="DAY", time_column="t")) == [
        (*row, row[0]) for row in rows_of(words)
    ]
    with pytest.raises(ps.GraphError, match="time_column adds the column 'Word' to the output"):
        run(words, same, time_column="Word")
    both = words.withColumnRenamed("n", "Day")
    with pytest.raises(ps.GraphError, match="the input has no column 'DAY' to take times from"):
        run(both, same, time="DAY")
    spark.conf.set("spark.sql.caseSensitive", "true")
    try:
        with pytest.raises(ps.GraphError, match="the input has no column 'DAY' to take times from"):
            run(words, same, time="DAY")
        assert run(words, same, time="day", time_column="Day").columns == ["day", "word", "n", "Day"]
    finally:
        spark.conf.unset("spark.sql.caseSensitive")


def test_intervals_of_days_to_seconds(spark: Any) -> None:
    frame = spark.sql("select interval '1' day v, interval '1 02:03:04.5' day to second w, 1 k")
    made = run(frame, same)
    kinds = "v:interval day to second,w:interval day to second,k:int"
    assert made.schema.simpleString() == f"struct<{kinds}>", "what holds every duration"
    assert made.collect() == frame.collect()
    with pytest.raises(ps.GraphError, match="column 'v' of the input is interval, which Spark cannot turn"):
        run(spark.sql("select make_interval(1, 2, 3) v"), same)


@pytest.mark.parametrize(
    "build",
    [
        lambda _, rows: rows.select(),
        lambda _, rows: rows.map_batches(lambda batch: batch.select([]), pa.schema([])),
    ],
)
def test_an_output_without_columns_is_refused(spark: Any, build: Callable[..., Any]) -> None:
    with pytest.raises(ps.GraphError, match="the output has no columns, and Spark takes no rows without"):
        run(spark.range(3), build)
    with pytest.raises(ps.GraphError, match="the output has no columns"):
        run(spark.range(3), build, "")


@pytest.mark.parametrize("ansi", ["true", "false"])
def test_expressions_raise_what_spark_raises_in_its_ansi_mode(spark: Any, ansi: str) -> None:
    """With `spark.sql.ansi.enabled` off, Spark wraps and gives null; a dataflow does not."""
    frame = spark.sql("select 9223372036854775807 a, cast(2147483647 as int) b, cast(0 as bigint) z")
    spark.conf.set("spark.sql.ansi.enabled", ansi)
    try:
        with pytest.raises(OverflowError, match="is no int of 64 bits"):
            run(frame, lambda _, rows: rows.select(x=ps.col("a") + 1)).collect()
        quotients = run(frame, lambda _, rows: rows.select(x=ps.col("a") / ps.col("z"))).collect()
        assert quotients[0].x is None, "a division by 0 is null"
        with pytest.raises(ValueError, match="column 'x' of the output is int64 and is declared as int32"):
            run(frame, lambda _, rows: rows.select(x=ps.col("b") + 1), "x int").collect()
    finally:
        spark.conf.unset("spark.sql.ansi.enabled")
