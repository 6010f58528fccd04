"""Names and types that Spark allows, and nulls: kept, or refused with what to write."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

pytest.importorskip("pyspark")

import pyspark.sql.functions as sf
from pyspark.sql import SparkSession

import pointstamp as ps
import pointstamp.spark as pss
from pointstamp.spark import graphs


def same(_scope: ps.Scope, rows: Any) -> Any:
    return rows


@pytest.mark.parametrize("names", [["a.b", "c"], ["`", "a`.b"], ["x", "X"], ["", " "], ["c1", "c0"]], ids=str)
def test_columns_are_found_by_exactly_their_names(spark: SparkSession, names: list[str]) -> None:
    frame = spark.range(3).select("id", (sf.col("id") + 10)).toDF(*names)
    expected = sorted(map(tuple, frame.collect()))
    made = pss.run(frame, same)
    assert made.columns == names
    assert sorted(map(tuple, made.collect())) == expected
    made = pss.run(frame, same, time=names[1], time_column="when")
    assert sorted(map(tuple, made.collect())) == [(*row, row[1]) for row in expected]


def test_a_frame_without_columns_is_refused(spark: SparkSession) -> None:
    with pytest.raises(ps.GraphError, match=r"the input has no columns, .*: add one, such as withColumn"):
        pss.run(spark.range(3).select(), same)


def test_a_column_keeps_its_collation(spark: SparkSession) -> None:
    frame = spark.sql("select c collate UNICODE_CI as c, c as plain from values ('a'), ('A') t(c)")
    made = pss.run(frame, same)
    assert made.schema.simpleString() == frame.schema.simpleString()
    assert made.groupBy("c").count().count() == frame.groupBy("c").count().count() == 1
    made = pss.run(frame, lambda scope, rows: rows.aggregate("c", plain_count=ps.col("plain").count()))
    assert made.schema["c"].dataType == frame.schema["c"].dataType
    with pytest.raises(
        ps.GraphError, match=r"column 'c' of the output could be of each of the types .* give the schema"
    ):
        pss.run(
            {"a": frame, "b": frame.select(sf.col("plain").alias("c"))}, lambda scope, a, b: a.select("c")
        )


@pytest.mark.parametrize(
    ("frame", "message"),
    [
        (
            lambda s: s.sql("select interval '1' year v"),
            "column 'v' of the input is interval year, which Spark cannot",
        ),
        (
            lambda s: s.sql("select null v, 1 k"),
            "column 'v' of the output is null, for which Spark has no type: give",
        ),
        (
            lambda s: s.range(3).pandas_api(),
            r"inputs must be a DataFrame of Spark, .*: give to_spark\(\) of it",
        ),
    ],
)
def test_what_spark_cannot_send_is_named(
    spark: SparkSession, frame: Callable[[Any], Any], message: str
) -> None:
    with pytest.raises(ps.GraphError, match=message):
        pss.run(frame(spark), same)


def test_times_of_updates_need_a_schema(spark: SparkSession) -> None:
    def updates(_scope: ps.Scope, rows: Any) -> Any:
        return rows.to_collection().count("id").updates()

    with pytest.raises(ps.GraphError, match=r"column 'time' of the output is uint64, .*decimal\(20, 0\)"):
        pss.run(spark.range(2), updates)
    made = pss.run(spark.range(2), updates, "id bigint, count bigint, time decimal(20, 0), diff bigint")
    assert sorted(tuple(row)[:2] for row in made.collect()) == [(0, 1), (1, 1)]


def test_a_null_is_unknown_one_group_and_matches_nothing(spark: SparkSession) -> None:
    """Results are those of Spark's own operators."""
    frame = spark.sql(
        "select * from values (1, 2.0d), (null, 3.0d), (null, null), (1, null), (2, double('nan')) t(k, v)"
    )
    both = {"a": frame, "b": frame.withColumnRenamed("v", "w")}
    grouped = pss.run(
        frame, lambda scope, rows: rows.aggregate("k", v_count=ps.col("v").count(), v_sum=ps.col("v").sum())
    )
    ours = sorted(map(str, grouped.collect()))
    assert ours == sorted(
        map(str, frame.groupBy("k").agg(sf.count("v").alias("v_count"), sf.sum("v").alias("v_sum")).collect())
    )
    for join in (
        lambda scope, a, b: a.join(b, "k"),
        lambda scope, a, b: a.to_collection().join(b.to_collection(), on="k").updates().select("k", "v", "w"),
    ):
        made = pss.run(both, join)
        wanted = frame.join(both["b"], "k").select(*made.columns)
        assert sorted(map(str, made.collect())) == sorted(map(str, wanted.collect()))

    def small(_scope: ps.Scope, rows: Any) -> Any:
        return rows.to_collection().filter(~(ps.col("v") < 3)).updates().select("k", "v")

    found = [row.k for row in pss.run(frame.where(~sf.isnan("v") | sf.col("v").isNull()), small).collect()]
    assert found == [None]


FUNCTIONS: dict[str, Callable[[Any], Any]] = {
    "bfs": lambda edges: graphs.bfs(edges, [1]),
    "shortest_paths": lambda edges: graphs.shortest_paths(edges, [1], weight="we.ight"),
    "connected_components": graphs.connected_components,
    "strongly_connected_components": graphs.strongly_connected_components,
    "pagerank": graphs.pagerank,
    "label_propagation": lambda edges: graphs.label_propagation(edges, iterations=2),
    "clustering_coefficients": graphs.clustering_coefficients,
    "triangles": graphs.triangles,
    "k_core": lambda edges: graphs.k_core(edges, 1),
}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_an_edge_with_a_null_end_is_left_out(spark: SparkSession, name: str) -> None:
    schema = "src long, dst long, `we.ight` double"
    whole = [(1, 2, 0.5), (2, 3, 1.0), (3, 1, 1.0)]
    nulls = [(None, 3, 1.0), (4, None, 1.0), (None, None, None), (None, 1, 1.0)]
    with_nulls, without = (
        FUNCTIONS[name](spark.createDataFrame(rows, schema)) for rows in (whole + nulls, whole)
    )
    assert sorted(with_nulls.collect()) == sorted(without.collect()) != []


def test_a_null_weight_names_row_and_column(spark: SparkSession) -> None:
    edges = spark.createDataFrame([(1, 2, None), (1, 3, 2.0)], "src long, dst long, weight double")
    message = r"graphs\.shortest_paths: column 'weight' is null in the row .*'src': 1, 'dst': 2.*dropna"
    with pytest.raises(ValueError, match=message):
        graphs.shortest_paths(edges, [1]).collect()
