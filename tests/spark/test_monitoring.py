"""Spark's pages and the driver's terminal for a dataflow."""

import json
import os
import signal
import subprocess
import sys
import threading
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import pointstamp as ps
from pointstamp.spark import explain, run, setup_cluster
from pointstamp.spark.monitoring import monitor_server


def api(spark: Any, path: str) -> Any:
    """Returns the answer of Spark's REST interface."""
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

        return rows.exchange("k").map_batches(passing).aggregate("k", id_count=ps.col("id").count())

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

    def found() -> list[str]:
        queries = api(spark, "sql?planDescription=true&details=true&length=5000")
        plans = [query["planDescription"] for query in queries]
        return [plan for plan in plans if "pointstamp both [" in plan and "InMemory" in plan]

    for _ in range(100):  # the page follows what happens
        if found():
            break
        time.sleep(0.1)
    [plan] = found()
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


def keeping(go_on: Path) -> Any:
    """A dataflow whose operator keeps a capability until a file is there."""

    def keep(_scope: ps.Scope, rows: ps.ArrowStream) -> ps.ArrowStream:
        def build(capability: Any, info: Any) -> Any:
            kept = [capability]
            info.activator.activate()  # on workers without rows, too

            def logic(port: Any, output: Any) -> None:
                for message, batch in port:
                    with output.session(message) as session:
                        session.give(batch)
                if go_on.exists():
                    while kept:
                        kept.pop().drop()
                else:
                    info.activator.activate_after(0.2)

            return logic

        return rows.unary(ps.Pipeline(), "keeps its capability", build, schema=rows.schema)  # type: ignore[no-any-return]

    return keep


@pytest.mark.parametrize("num_workers", [1, 2])
def test_a_dataflow_that_stands_is_explained(
    spark: Any, tmp_path: Path, num_workers: int, capsys: pytest.CaptureFixture[str]
) -> None:
    go_on = tmp_path / "go on"

    out = run(
        numbers(spark),
        keeping(go_on),
        num_workers=num_workers,
        stall_report=0.8,
        progress=True,
        name="stuck",
    )
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
    monitor_server.close()  # and with that all that was told is shown
    said = capsys.readouterr().err
    assert "bar of words: 100%" in said
    assert "3.00k/3.00k" in said


@contextmanager
def acting(action: Any, go_on: Path) -> Iterator[list[Any]]:
    """Runs an action on a thread of its own; at the end it continues, and its result is in the list."""
    results: list[Any] = []
    thread = threading.Thread(target=lambda: results.append(action()))
    thread.start()
    try:
        yield results
    finally:
        go_on.touch()
        thread.join()


def asked(spark: Any, *words: str) -> str:
    """Returns the explanation, once it has all the words."""
    end = time.monotonic() + 90
    while True:
        said = explain(session=spark)
        if all(word in said for word in words):
            return said
        assert time.monotonic() < end, said
        time.sleep(0.05)


@pytest.mark.parametrize("num_workers", [1, 2])
def test_a_dataflow_is_asked_what_it_waits_for(spark: Any, tmp_path: Path, num_workers: int) -> None:
    go_on = tmp_path / "go on"
    out = run(numbers(spark), keeping(go_on), num_workers=num_workers, name="asked")
    with acting(out.count, go_on) as counted:
        said = asked(spark, "dataflow asked, stage ", "keeps its capability", f"{Path(__file__).name}:")
        assert "What the dataflows wait for:" in said
        assert "dataflow asked, stage " in explain()  # from a thread that knows no session
    assert counted == [1000]
    assert "dataflow asked" not in explain(session=spark)


def test_a_stage_that_is_asked_names_the_slots_that_it_waits_for(spark: Any, tmp_path: Path) -> None:
    go_on = tmp_path / "go on"
    place = str(go_on)

    def holds(batches: Any) -> Any:
        while not Path(place).exists():
            time.sleep(0.05)
        yield from batches

    rows = spark.range(0, 1, 1, 1).mapInArrow(holds, "id bigint")
    out = run(numbers(spark), counting(), num_workers=2, name="slots")
    with acting(rows.count, go_on) as held:
        asked(spark, "0 of 1 tasks have ended, 1 run")
        with acting(out.count, go_on) as counted:
            said = asked(spark, "dataflow slots: its barrier stage, ")
            assert "waits for slots. It needs 2 at once, and 1 of Spark's 2 are free: 1 are taken" in said
    assert (held, counted) == ([1], [7])


def test_a_resident_cluster_is_asked_what_it_waits_for(wide: Any, tmp_path: Path) -> None:
    go_on = tmp_path / "go on"
    with setup_cluster(2, session=wide) as cluster:
        assert "Commands" not in cluster.explain()
        with acting(lambda: cluster.run(numbers(wide), keeping(go_on)).count(), go_on) as counted:
            said = asked(wide, "the resident cluster: ", "keeps its capability")
            assert "keeps its capability" in cluster.explain()
            assert "Commands" not in said
        assert counted == [1000]
    with pytest.raises(ps.ClusterError, match="shut down"):
        cluster.explain()


def test_nothing_is_asked_over_nothing(spark: Any) -> None:
    assert explain(session=spark) == "no dataflow runs in Spark, and none waits for slots"


DRIVER = """
import sys, time
from pathlib import Path
import pointstamp as ps
from pointstamp.spark import run
from pyspark.sql import SparkSession

go_on = sys.argv[1]
builder = SparkSession.builder.master("local[2]").config("spark.ui.enabled", "false")
builder = builder.config("spark.ui.showConsoleProgress", "false")
for name in ("host", "bindAddress"):
    builder = builder.config(f"spark.driver.{name}", "127.0.0.1")
spark = builder.getOrCreate()
spark.sparkContext.setLogLevel("OFF")

def stands(scope, rows):
    def passing(batch):
        print("stands", file=sys.stderr, flush=True)
        while not Path(go_on).exists():
            time.sleep(0.05)
        return batch
    return rows.map_batches(passing, name="stands here")

try:
    print(run(spark.range(0, 10, 1, 2), stands, num_workers=1, name="signals").count(), flush=True)
finally:
    spark.stop()
"""


@pytest.mark.skipif(not hasattr(signal, "SIGUSR1"), reason="no such signal")
@pytest.mark.parametrize("number", ["SIGUSR1", "SIGINT"])
def test_a_driver_that_waits_is_asked_by_a_signal(tmp_path: Path, number: str) -> None:
    go_on = tmp_path / "go on"
    with subprocess.Popen(
        [sys.executable, "-W", "ignore", "-c", DRIVER, str(go_on)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    ) as process:
        try:
            assert process.stderr is not None
            said = ""
            while "stands\n" not in said:
                line = process.stderr.readline()
                assert line, said
                said += line
            said = ""
            answered = threading.Event()

            def ask() -> None:
                """Retries: at first its task may not have connected to the driver."""
                while not answered.wait(1):
                    process.send_signal(signal.SIGUSR1)

            asking = threading.Thread(target=ask)
            asking.start()
            try:
                while "at <string>:" not in said:
                    line = process.stderr.readline()
                    assert line, said
                    said += line
            finally:
                answered.set()
                asking.join()
            if number == "SIGINT":
                process.send_signal(signal.SIGINT)
                said = ""
                while "at <string>:" not in said:
                    line = process.stderr.readline()
                    assert line, said
                    said += line
            assert "pointstamp: dataflow signals, stage " in said
            assert "runs a function of its operator 'stands here'" in said
            go_on.touch()
            out, err = process.communicate(timeout=380)
            if number == "SIGUSR1":
                assert (process.returncode, out) == (0, "10\n"), err
            else:
                assert process.returncode != 0
                assert "KeyboardInterrupt" in err
        finally:
            try:
                os.killpg(process.pid, signal.SIGKILL)
            except ProcessLookupError:
                pass
