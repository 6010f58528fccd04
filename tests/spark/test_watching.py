"""What Spark's pages and the driver's terminal show of a dataflow."""

import json
import threading
import time
import urllib.request
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import pointstamp as ps
from pointstamp.spark import run
from pointstamp.spark.watching import desk


def api(spark: Any, path: str) -> Any:
    """What Spark's REST interface says."""
    context = spark.sparkContext
    address = f"{context.uiWebUrl}/api/v1/applications/{context.applicationId}/{path}"
    with urllib.request.urlopen(address, timeout=60) as answer:
        return json.load(answer)


def stages(spark: Any, name: str) -> list[dict[str, Any]]:
    """The stages whose names begin so, the latest first."""
    return [stage for stage in api(spark, "stages") if stage["name"].startswith(name)]


def counting(wait: Any = None) -> Any:
    def count_words(_scope: ps.Scope, rows: ps.ArrowStream) -> ps.ArrowStream:
        def passing(batch: pa.RecordBatch) -> pa.RecordBatch:
            if wait is not None:
                wait()
            return batch

        return rows.exchange("k").map_batches(passing).aggregate("k", [("id", "count")])

    return count_words


def numbers(spark: Any, count: int = 1000) -> Any:
    return spark.range(0, count, 1, 3).selectExpr("id", "id % 7 k")


@pytest.mark.parametrize("num_workers", [1, 2])
def test_the_stage_is_named_and_has_metrics(spark: Any, num_workers: int) -> None:
    out = run(numbers(spark), counting(), num_workers=num_workers, name=f"count words {num_workers}")
    assert out.count() == 7
    [stage] = stages(spark, f"dataflow count words {num_workers} [")
    assert stage["name"].endswith("]: exchange, map_batches, aggregate"), stage["name"]
    assert stage["status"] == "COMPLETE"
    counts = {one["name"]: int(one["value"]) for one in stage["accumulatorUpdates"]}
    assert counts["map_batches: records in"] == counts["map_batches: records out"] == 1000
    assert counts["output output: records in"] == 7
    assert "input input: milliseconds" in counts or "map_batches: milliseconds" in counts


def test_functions_are_named_in_the_plan(spark: Any) -> None:
    outputs = run(
        {"words": numbers(spark)}, lambda _scope, words: {"counts": words}, num_workers=1, name="both"
    )
    assert outputs["counts"].count() == 1000
    outputs.unpersist()
    plans = [
        query["planDescription"] for query in api(spark, "sql?planDescription=true&details=true&length=500")
    ]
    [plan] = [plan for plan in plans if "pointstamp both [" in plan and "InMemory" in plan]
    for part in ("pack words", "dataflow", "unpack counts"):
        assert f"]: {part}(" in plan, plan


def test_the_stage_is_named_while_it_runs(spark: Any, tmp_path: Path) -> None:
    go_on = tmp_path / "go on"

    def wait() -> None:
        while not go_on.exists():
            time.sleep(0.05)

    out = run(numbers(spark), counting(wait), num_workers=1, name="a slow one")
    action = threading.Thread(target=out.count)
    action.start()
    found: list[Any] = []
    try:
        for _ in range(400):
            if found := stages(spark, "dataflow a slow one ["):
                break
            time.sleep(0.05)
        assert [stage["status"] for stage in found] == ["ACTIVE"]
    finally:
        go_on.touch()
        action.join()


def test_a_name_is_what_pages_can_show(spark: Any) -> None:
    out = run(numbers(spark), lambda _scope, rows: rows, num_workers=1, name="<b>words\n& 'more'" + "x" * 100)
    assert out.count() == 1000
    [stage] = stages(spark, "dataflow b words 'more'xxx")
    assert len(stage["name"]) < 120
    run(numbers(spark), lambda _scope, rows: rows, num_workers=1).count()
    assert stages(spark, "dataflow dataflow [")
    with pytest.raises(ps.ConfigError, match="stall_report is a number of seconds above 0"):
        run(numbers(spark), lambda _scope, rows: rows, num_workers=1, stall_report=0)


@pytest.mark.parametrize("num_workers", [1, 2])
def test_a_dataflow_that_stands_is_explained(
    spark: Any, tmp_path: Path, num_workers: int, capsys: pytest.CaptureFixture[str]
) -> None:
    go_on = tmp_path / "go on"

    def build(scope: ps.Scope, rows: ps.ArrowStream) -> ps.ArrowStream:
        def keeping(capability: Any, _info: Any) -> Any:
            kept = [capability]

            def logic(port: Any, output: Any) -> None:
                for message, batch in port:
                    with output.session(message) as session:
                        session.give(batch)
                if go_on.exists():
                    while kept:
                        kept.pop().drop()
                else:
                    _info.activator.activate_after(0.2)

            return logic

        return rows.unary(ps.Pipeline(), "keeps its capability", keeping, schema=rows.schema)  # type: ignore[no-any-return]

    out = run(numbers(spark), build, num_workers=num_workers, stall_report=0.8, progress=True, name="stuck")
    counted: list[int] = []
    action = threading.Thread(target=lambda: counted.append(out.count()))
    action.start()
    said = ""
    try:
        for _ in range(400):
            said += capsys.readouterr().err
            if "What the dataflows wait for" in said and "time" in said:
                break
            time.sleep(0.05)
    finally:
        go_on.touch()
        action.join()
    assert counted == [1000]
    assert "pointstamp: dataflow stuck, stage " in said
    assert "nothing has moved for 0.8 s. What the dataflows wait for:" in said
    assert "keeps its capability" in said
    assert f"{Path(__file__).name}:" in said, "the line that made it"


def test_a_bar_counts_rows(spark: Any, capsys: pytest.CaptureFixture[str]) -> None:
    def slow() -> None:
        time.sleep(0.3)

    out = run(numbers(spark, 3000), counting(slow), num_workers=1, progress=True, name="bar of words")
    assert out.count() == 7
    desk.close()  # and with that all that was told is shown
    said = capsys.readouterr().err
    assert "bar of words: 100%" in said
    assert "3.00k/3.00k" in said
