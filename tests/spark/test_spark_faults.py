"""Failures inside a run, and what Spark makes of them: the right exception, or the right answer once."""

import os
import signal
import tempfile
import textwrap
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark import BarrierTaskContext, TaskContext
from pyspark.sql import functions as sf

import pointstamp as ps
from harness import notes
from micro_batches import kill_the_executor, once
from pointstamp.spark import run, setup_cluster

COUNTS = "k bigint, n_sum bigint"


def numbers(spark: Any) -> Any:
    return spark.range(0, 3000, 1, 4).select(
        (sf.col("id") % 10).alias("k"), sf.lit(1).cast("bigint").alias("n")
    )


RIGHT = {k: 300 for k in range(10)}


def counting(kill: Any) -> Any:
    """Counts, and calls a function in the middle of the run, on one worker."""

    def build(_scope: ps.Scope, rows: ps.ArrowStream) -> ps.ArrowStream:
        def passing(batch: pa.RecordBatch) -> pa.RecordBatch:
            kill()
            return batch

        return rows.exchange("k").map_batches(passing).aggregate("k", n_sum=ps.col("n").sum())

    return build


def counted(out: Any) -> dict[int, int]:
    rows = out.collect()
    assert len(rows) == len({row.k for row in rows}), "a key came out twice"
    return {row.k: row.n_sum for row in rows}


def marking(build: Any, directory: Path) -> Any:
    """Leaves a file in a directory for each time that a dataflow is built."""
    name = str(directory)

    def marked(scope: ps.Scope, rows: ps.ArrowStream) -> Any:
        if TaskContext.get() is not None:  # in the driver it is only tried
            tempfile.mkstemp(dir=name)
        return build(scope, rows)

    return marked


def times_built(directory: Path) -> int:
    return len(list(directory.iterdir()))


@pytest.mark.parametrize("num_workers", [1, 2])
def test_an_operator_that_raises(spark: Any, tmp_path: Path, num_workers: int) -> None:
    def fail() -> None:
        raise LookupError("no such key")

    failing = marking(counting(fail), tmp_path)
    with pytest.raises(LookupError, match="no such key") as raised:
        run(numbers(spark), failing, COUNTS, num_workers=num_workers).collect()
    said = "\n".join(notes(raised.value))
    assert "raised in operator 'map_batches' on worker" in said
    assert 'raise LookupError("no such key")' in said, "the line of the operator"
    assert times_built(tmp_path) == num_workers, "Spark ran it again"
    assert counted(run(numbers(spark), counting(lambda: None), COUNTS, num_workers=num_workers)) == RIGHT


@pytest.mark.parametrize("num_workers", [1, 2])
def test_no_row_of_a_run_that_failed_is_seen(spark: Any, num_workers: int) -> None:
    def build(_scope: ps.Scope, rows: ps.ArrowStream) -> ps.ArrowStream:
        def longer(batch: pa.RecordBatch) -> pa.RecordBatch:
            if batch["id"][0].as_py() == 30:
                raise LookupError("too late")
            return pa.record_batch({"text": ["x" * (5 << 20)]})  # what goes to Spark at once

        return rows.map_batches(longer, pa.schema([("text", pa.string())]))

    name = "spark.sql.execution.arrow.maxRecordsPerBatch"
    usual = spark.conf.get(name)
    spark.conf.set(name, 1)  # Spark does not read ahead
    try:
        out = run(spark.range(31), build, "text string", time="id", num_workers=num_workers)
        with pytest.raises(LookupError, match="too late"):
            out.take(1)
    finally:
        spark.conf.set(name, usual)


def test_the_package_is_missing(spark: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    hiding = """
        import sys

        class Hiding:
            def find_spec(self, name, path=None, target=None):
                if name == "pointstamp":
                    raise ModuleNotFoundError("No module named 'pointstamp'")

        sys.meta_path.insert(0, Hiding())
    """
    (tmp_path / "sitecustomize.py").write_text(textwrap.dedent(hiding), encoding="utf-8")
    monkeypatch.setitem(spark.sparkContext.environment, "PYTHONPATH", str(tmp_path))
    advice = r"which lacks pointstamp; .*-m pip install '\.\[spark\]'"
    with pytest.raises(ImportError, match=advice):
        run(numbers(spark), counting(lambda: None), COUNTS, num_workers=1).collect()
    with pytest.raises(ImportError, match=advice):
        setup_cluster(1, session=spark)


def test_a_build_that_only_one_task_can_load(spark: Any, tmp_path: Path) -> None:
    def missing() -> Any:
        if TaskContext.get() is not None and BarrierTaskContext.get().partitionId() == 1:
            raise ModuleNotFoundError("No module named 'of_yours'")
        return None

    class Using:
        def __reduce__(self) -> Any:
            return missing, ()

    using: Any = Using()

    def build(_scope: ps.Scope, rows: ps.ArrowStream) -> Any:
        assert using is None
        return rows

    rows = spark.range(100)
    with pytest.raises(ModuleNotFoundError, match="of_yours") as raised:
        run(rows, marking(build, tmp_path), "id bigint", num_workers=2).collect()
    assert "addArtifacts" in notes(raised.value)[0]
    assert times_built(tmp_path) == 0


def test_every_action_raises_it(spark: Any, tmp_path: Path) -> None:
    def fail() -> None:
        raise LookupError("no such key")

    actions: list[Callable[[Any], Any]] = [
        lambda out: out.count(),
        lambda out: out.show(),
        lambda out: out.toArrow(),
        lambda out: list(out.toLocalIterator()),
        lambda out: out.write.parquet(str(tmp_path / "written")),
        lambda out: out.groupBy().sum("n_sum").collect(),
        lambda out: out.join(out, "k").collect(),
    ]
    for action in actions:
        with pytest.raises(LookupError, match="no such key"):
            action(run(numbers(spark), counting(fail), COUNTS, num_workers=1))


def test_an_exception_that_cannot_be_pickled(spark: Any) -> None:
    def fail() -> None:
        class Local(Exception):
            def __reduce__(self):  # type: ignore[no-untyped-def]
                raise TypeError("not me")

        raise Local("no such key")

    with pytest.raises(ps.PointstampError, match="Local: no such key"):
        run(numbers(spark), counting(fail), COUNTS, num_workers=1).collect()


def test_an_operator_of_one_process_that_raises(spark: Any, tmp_path: Path) -> None:
    def build(scope: ps.Scope, rows: ps.ArrowStream) -> ps.ArrowStream:
        def passing(batch: pa.RecordBatch) -> pa.RecordBatch:
            if scope.index == 1:
                raise LookupError("only here")
            return batch

        return rows.exchange("k").map_batches(passing).aggregate("k", n_sum=ps.col("n").sum())

    with pytest.raises(LookupError, match="only here"):
        run(numbers(spark), marking(build, tmp_path), COUNTS, num_workers=2).collect()
    assert times_built(tmp_path) == 2, "Spark ran it again"


@pytest.mark.parametrize("num_workers", [1, 2])
def test_a_python_worker_that_is_killed(spark: Any, tmp_path: Path, num_workers: int) -> None:
    marker = str(tmp_path / "killed")

    def kill() -> None:
        if once(marker):
            os.kill(os.getpid(), signal.SIGKILL)

    assert counted(run(numbers(spark), counting(kill), COUNTS, num_workers=num_workers)) == RIGHT
    assert os.path.exists(marker)


def test_a_python_worker_that_is_killed_every_time(spark: Any) -> None:
    def kill() -> None:
        os.kill(os.getpid(), signal.SIGKILL)

    with pytest.raises(Exception, match="Python worker exited unexpectedly"):
        run(numbers(spark), counting(kill), COUNTS, num_workers=1).collect()


def test_the_daemon_of_sparks_python_processes_is_restarted(spark: Any, tmp_path: Path) -> None:
    # Spark itself ends it, and starts another, when a task of any job is killed while its process starts.
    started, ended = tmp_path / "started", tmp_path / "ended"

    def wait() -> None:
        started.touch()
        while not ended.exists():
            time.sleep(0.05)
        print("what is printed goes nowhere then", flush=True)

    def end_the_daemon() -> None:
        while not started.exists():
            time.sleep(0.05)

        def killing(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
            os.kill(os.getppid(), signal.SIGTERM)
            yield from batches
            time.sleep(30)  # until the daemon ends this process

        try:
            with pytest.raises(Exception, match="exited unexpectedly"):
                spark.range(1).mapInArrow(killing, "id bigint").collect()
        finally:
            ended.touch()

    other = threading.Thread(target=end_the_daemon)
    other.start()
    built = tmp_path / "built"
    built.mkdir()
    assert counted(run(numbers(spark), marking(counting(wait), built), COUNTS, num_workers=1)) == RIGHT
    other.join()
    assert times_built(built) == 1, "Spark ran it again"


@pytest.mark.executors
def test_separate_executors(executors: Any) -> None:
    assert counted(run(numbers(executors), counting(lambda: None), COUNTS)) == RIGHT


@pytest.mark.executors
def test_an_executor_that_is_killed(executors: Any, tmp_path: Path) -> None:
    marker = str(tmp_path / "killed")

    def kill() -> None:
        kill_the_executor(marker)

    assert counted(run(numbers(executors), counting(kill), COUNTS, num_workers=2)) == RIGHT
    assert os.path.exists(marker)
