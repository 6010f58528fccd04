"""What fails inside a run, and what Spark makes of it: the right exception, or the right answer once."""

import os
import signal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import functions as sf

import pointstamp as ps
from harness import notes
from pointstamp.spark import run

COUNTS = "k bigint, n_sum bigint"


def numbers(spark: Any) -> Any:
    return spark.range(0, 3000, 1, 4).select(
        (sf.col("id") % 10).alias("k"), sf.lit(1).cast("bigint").alias("n")
    )


RIGHT = {k: 300 for k in range(10)}


def once(marker: str) -> bool:
    """True for the first who asks."""
    try:
        os.close(os.open(marker, os.O_CREAT | os.O_EXCL))
    except FileExistsError:
        return False
    return True


def counting(kill: Any) -> Any:
    """Counts, and calls a function in the middle of the run, on one worker."""

    def build(_scope: ps.Scope, rows: ps.ArrowStream) -> ps.ArrowStream:
        def passing(batch: pa.RecordBatch) -> pa.RecordBatch:
            kill()
            return batch

        return rows.exchange("k").map_batches(passing).aggregate("k", [("n", "sum")])

    return build


def counted(out: Any) -> dict[int, int]:
    rows = out.collect()
    assert len(rows) == len({row.k for row in rows}), "a key came out twice"
    return {row.k: row.n_sum for row in rows}


@pytest.mark.parametrize("num_workers", [1, 2])
@pytest.mark.timeout(150)
def test_an_operator_that_raises(spark: Any, num_workers: int) -> None:
    def fail() -> None:
        raise LookupError("no such key")

    with pytest.raises(LookupError, match="no such key") as raised:
        run(numbers(spark), counting(fail), COUNTS, num_workers=num_workers).collect()
    said = "\n".join(notes(raised.value))
    assert "raised in operator 'map_batches' on worker" in said
    assert 'raise LookupError("no such key")' in said, "the line of the operator"
    assert counted(run(numbers(spark), counting(lambda: None), COUNTS, num_workers=num_workers)) == RIGHT


def test_an_exception_that_cannot_be_pickled(spark: Any) -> None:
    def fail() -> None:
        class Local(Exception):
            def __reduce__(self):  # type: ignore[no-untyped-def]
                raise TypeError("not me")

        raise Local("no such key")

    with pytest.raises(ps.PointstampError, match="Local: no such key"):
        run(numbers(spark), counting(fail), COUNTS, num_workers=1).collect()


def test_an_operator_of_one_process_that_raises(spark: Any, tmp_path: Path) -> None:
    marker = str(tmp_path / "raised")

    def build(scope: ps.Scope, rows: ps.ArrowStream) -> ps.ArrowStream:
        def passing(batch: pa.RecordBatch) -> pa.RecordBatch:
            if scope.index == 1:
                once(marker)
                raise LookupError("only here")
            return batch

        return rows.exchange("k").map_batches(passing).aggregate("k", [("n", "sum")])

    with pytest.raises(LookupError, match="only here"):
        run(numbers(spark), build, COUNTS, num_workers=2).collect()
    assert os.path.exists(marker)


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

    with pytest.raises(Exception, match=r"Python worker exited unexpectedly|ClusterError"):
        run(numbers(spark), counting(kill), COUNTS, num_workers=2).collect()


@pytest.mark.executors
def test_separate_executors(executors: Any) -> None:
    assert counted(run(numbers(executors), counting(lambda: None), COUNTS)) == RIGHT


@pytest.mark.executors
def test_an_executor_that_is_killed(executors: Any, tmp_path: Path) -> None:
    marker = str(tmp_path / "killed")

    def kill() -> None:
        if once(marker):
            daemon = os.getppid()
            status = Path(f"/proc/{daemon}/stat").read_text()
            executor = int(status.rpartition(")")[2].split()[1])
            assert "java" in Path(f"/proc/{executor}/cmdline").read_text()
            os.kill(executor, signal.SIGKILL)

    assert counted(run(numbers(executors), counting(kill), COUNTS, num_workers=2)) == RIGHT
    assert os.path.exists(marker)
