"""Dataflows that need no placement run where the rows are: one stage, and the same results."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from pyspark.sql import functions as sf

import pointstamp as ps
from pointstamp.plan import columns
from pointstamp.spark import run
from pointstamp.spark.job.in_place import InPlace, in_place, watched


def plan_of(df: Any) -> str:
    return str(df._jdf.queryExecution().toString())


def doubled(scope: ps.Scope, rows: ps.ArrowStream) -> ps.ArrowStream:
    return rows.map_batches(lambda batch: batch.set_column(0, "id", pc.multiply(batch["id"], 2)))


def added(scope: ps.Scope, rows: ps.ArrowStream) -> ps.ArrowStream:
    return rows.filter(ps.col("id") > 2).with_columns(more=ps.col("id") + 1).select("more", "t")


def counted(scope: ps.Scope, rows: ps.ArrowStream) -> ps.ArrowStream:
    return rows.aggregate("t", ids=ps.col("id").count())


def placed(scope: ps.Scope, rows: ps.ArrowStream) -> ps.ArrowStream:
    assert scope.index < scope.peers
    return rows.select("id")


@pytest.mark.parametrize(
    ("build", "expected"),
    [
        (doubled, InPlace.IN_ORDER),
        (added, InPlace.ANY_ORDER),
        (lambda scope, rows: rows, InPlace.ANY_ORDER),
        (counted, InPlace.NO),
        (lambda scope, rows: rows.exchange("id"), InPlace.NO),
        (lambda scope, rows: rows.distinct(), InPlace.NO),
        (lambda scope, rows: rows.limit(1), InPlace.NO),
    ],
)
def test_plans_without_placement_are_known(build: Callable[..., Any], expected: InPlace) -> None:
    found = []

    def main(worker: ps.Worker) -> None:
        rows = ps.ArrowInput(pa.schema([("id", pa.int64()), ("t", pa.int64())]))
        with worker.dataflow() as scope:
            stream = rows.to_stream(scope)
            before = len(scope._building.plan.nodes)
            build(scope, stream)
            found.append(in_place(scope._building.plan.nodes[before:]))
        rows.close()

    ps.execute(main)
    assert found == [expected]


def test_uses_of_the_number_of_workers_are_seen() -> None:
    def main(worker: ps.Worker) -> None:
        with worker.dataflow() as scope:
            with watched(scope) as reads:
                assert scope.name
                assert reads == []
                assert (scope.index, scope.peers) == (0, 1)
            assert scope.index == 0
        assert reads == ["index", "peers"]

    ps.execute(main)
    assert columns.MAP_BATCHES.state.value == "none"


def test_rows_are_worked_off_where_they_are(spark: Any) -> None:
    rows = spark.range(0, 60, 1, 3).select("id", ((sf.col("id") * 7) % 5).alias("t"))
    out = run(rows, added, time="t")
    assert "Exchange" not in plan_of(out)
    assert "Sort " not in plan_of(out)
    expected = sorted((n + 1, n * 7 % 5) for n in range(3, 60))
    assert sorted(map(tuple, out.collect())) == expected
    timed = run(rows, added, time="t", time_column="when")
    assert "Exchange" not in plan_of(timed)
    assert sorted(map(tuple, timed.collect())) == [(*row, row[1]) for row in expected]
    for other in (run(rows, added, num_workers=1), run(rows, placed), run(rows, counted)):
        assert "Exchange" in plan_of(other)


def test_functions_see_rows_in_the_order_of_times(spark: Any) -> None:
    rows = spark.range(0, 40, 1, 2).select("id", ((sf.col("id") * 7) % 5).alias("t"))

    def build(scope: ps.Scope, rows: ps.ArrowStream) -> ps.ArrowStream:
        seen: list[int] = []

        def check(batch: pa.RecordBatch) -> pa.RecordBatch:
            assert len(batch["t"].unique()) == 1
            seen.append(batch["t"][0].as_py())
            assert seen == sorted(seen)
            return batch

        return rows.map_batches(check)

    out = run(rows, build, time="t")
    assert "Exchange" not in plan_of(out)
    assert sorted(row.id for row in out.collect()) == list(range(40))


def test_failures_in_place_are_raised_as_they_are(spark: Any) -> None:
    def build(scope: ps.Scope, rows: ps.ArrowStream) -> ps.ArrowStream:
        def fail(batch: pa.RecordBatch) -> pa.RecordBatch:
            raise LookupError("no such key")

        return rows.map_batches(fail)

    with pytest.raises(LookupError, match="no such key") as raised:
        run(spark.range(4), build).collect()
    assert any(
        "raised in operator 'map_batches' on worker 0" in note
        for note in getattr(raised.value, "__notes__", [])
    )
    with pytest.raises(ps.TimeError, match=r"is null in the row \{'id': 1, 't': None\}"):
        run(spark.sql("SELECT 1L id, CAST(NULL AS bigint) t"), added, time="t").collect()


def test_less_than_all_of_an_output_in_place_can_be_taken(spark: Any) -> None:
    out = run(spark.range(0, 1000, 1, 4), doubled)
    assert len(out.limit(3).collect()) == 3
    assert out.first().id % 2 == 0
