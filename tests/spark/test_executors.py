"""Executors in processes of their own, one of which is killed, or one of Spark's Python processes.

`make test` runs the resident cluster's loss of an executor; `make test-spark` runs all.
"""

import os
import re
import shlex
import signal
import subprocess
import sys
import tarfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import functions as sf

import pointstamp as ps
from effort import EFFORT
from micro_batches import Source, kill_the_executor, once
from pointstamp.spark import capture_into, register_captures, run, setup_cluster

pytestmark = pytest.mark.executors

all_of_them = pytest.mark.skipif(EFFORT == 1, reason="takes minutes: `make test-spark` runs it")

ROOT = Path(__file__).parents[2]
REACHED = pa.schema([("node", pa.int64())])
COUNTED = {k: 300 for k in range(10)}


def kill_the_python_worker(marker: str) -> None:
    """Kills the process that runs the operator; only the first caller does."""
    if once(marker):
        os.kill(os.getpid(), signal.SIGKILL)


killed = pytest.mark.parametrize("kill", [kill_the_executor, kill_the_python_worker])


def passing(kill: Callable[[str], None], marker: Path) -> Callable[[pa.RecordBatch], pa.RecordBatch]:
    """A function of batches that kills something at the first batch with rows."""
    name = str(marker)

    def passed(batch: pa.RecordBatch) -> pa.RecordBatch:
        if batch.num_rows:
            kill(name)
        return batch

    return passed


def numbers(spark: Any) -> Any:
    return spark.range(0, 3000, 1, 4).select("id", (sf.col("id") % 10).alias("k"))


def counting(passed: Callable[[pa.RecordBatch], pa.RecordBatch]) -> Any:
    def build(_scope: ps.Scope, rows: ps.ArrowStream) -> ps.ArrowStream:
        return rows.exchange("k").map_batches(passed).aggregate("k", count=ps.count())

    return build


def counted(out: Any) -> dict[int, int]:
    rows = out.collect()
    assert len(rows) == len({row.k for row in rows}), "a key came out twice"
    return {row.k: row["count"] for row in rows}


@all_of_them
@killed
def test_run(executors: Any, tmp_path: Path, kill: Callable[[str], None]) -> None:
    marker = tmp_path / "killed"
    assert counted(run(numbers(executors), counting(passing(kill, marker)))) == COUNTED
    assert marker.exists()


@all_of_them
@killed
def test_a_dataflow_in_place(executors: Any, tmp_path: Path, kill: Callable[[str], None]) -> None:
    marker = tmp_path / "killed"
    passed = passing(kill, marker)
    out = run(numbers(executors), lambda _scope, rows: rows.map_batches(passed))
    assert sorted(row.id for row in out.collect()) == list(range(3000))
    assert marker.exists()


@all_of_them
@killed
def test_a_loop(executors: Any, tmp_path: Path, kill: Callable[[str], None]) -> None:
    """Something ends in the middle of the rounds: the stage is run again from its inputs."""
    marker = str(tmp_path / "killed")

    def onward(batch: pa.RecordBatch) -> pa.RecordBatch:
        if 20 in batch["next"].to_pylist():
            kill(marker)
        return pa.record_batch([batch["next"]], schema=REACHED)

    def reach(scope: ps.Scope, roots: ps.ArrowStream, edges: ps.ArrowStream) -> ps.ArrowStream:
        with scope.iterative() as inner:
            handle, again = inner.loop_variable(schema=REACHED)
            found = roots.enter(inner).concat(again).distinct_so_far()
            found.join_so_far(edges.enter(inner), "node").map_batches(onward, REACHED).connect_loop(handle)
            return found.leave()

    roots = executors.createDataFrame([(0,)], "node bigint")
    edges = executors.range(0, 40).select(sf.col("id").alias("node"), (sf.col("id") + 1).alias("next"))
    out = run({"roots": roots, "edges": edges}, reach)
    assert sorted(row.node for row in out.collect()) == list(range(41))
    assert os.path.exists(marker)


@pytest.mark.parametrize("kill", [kill_the_executor, pytest.param(kill_the_python_worker, marks=all_of_them)])
def test_a_resident_cluster(executors: Any, tmp_path: Path, kill: Callable[[str], None]) -> None:
    """A process is lost: this call and later ones raise, and another cluster takes its place."""
    marker = tmp_path / "killed"
    with setup_cluster(1, session=executors) as cluster:
        assert counted(cluster.run(numbers(executors), counting(lambda batch: batch))) == COUNTED
        with pytest.raises(ps.ClusterError):
            cluster.run(numbers(executors), counting(passing(kill, marker)))
        assert marker.exists()
        with pytest.raises(ps.ClusterError, match="the resident cluster failed earlier"):
            cluster.run(numbers(executors), counting(lambda batch: batch))
    with setup_cluster(1, session=executors) as cluster:
        assert counted(cluster.run(numbers(executors), counting(lambda batch: batch))) == COUNTED


@all_of_them
@killed
def test_a_task_that_brings_rows_to_a_resident_cluster(
    executors: Any, tmp_path: Path, kill: Callable[[str], None]
) -> None:
    """Spark tries the task again, and its rows count once."""
    marker = tmp_path / "killed"
    passed = passing(kill, marker)
    rows = numbers(executors)
    late = rows.mapInArrow(lambda batches: map(passed, batches), rows.schema)
    with setup_cluster(1, session=executors) as cluster:
        assert counted(cluster.run(late, counting(lambda batch: batch))) == COUNTED
    assert marker.exists()


@all_of_them
@killed
def test_epochs_on_a_resident_cluster(executors: Any, tmp_path: Path, kill: Callable[[str], None]) -> None:
    """The query ends; another one on another cluster resumes, and nothing is lost or doubled."""
    source = Source(executors, tmp_path)
    source.add(3)
    with setup_cluster(1, session=executors) as cluster, source.epochs(cluster=cluster) as epochs:
        source.run(epochs)
        source.check(epochs)
        source.add(2)
        [place] = _processes(executors, cluster)
        if kill is kill_the_executor:
            place = _parent(_parent(place))
        os.kill(place, signal.SIGKILL)
        with pytest.raises(ps.ClusterError):
            source.run(epochs)
    with setup_cluster(1, session=executors) as cluster, source.epochs(cluster=cluster) as epochs:
        source.run(epochs)
        assert epochs.sealed == list(range(5))
        source.check(epochs)


@all_of_them
@killed
def test_captures(executors: Any, tmp_path: Path, kill: Callable[[str], None]) -> None:
    """A capture is complete, of one attempt; and a reader that is lost reads again."""
    folder = str(tmp_path / "captured")
    writing, reading = tmp_path / "writing", tmp_path / "reading"
    written, read = passing(kill, writing), passing(kill, reading)

    def build(_scope: ps.Scope, rows: ps.ArrowStream) -> ps.ArrowStream:
        moved = rows.exchange("k").map_batches(written)
        capture_into(moved, folder)
        return moved.aggregate("k", count=ps.count())

    assert counted(run(numbers(executors), build)) == COUNTED
    assert writing.exists()
    register_captures(executors)
    captured = executors.read.format("pointstamp").load(folder)
    again = captured.mapInArrow(lambda batches: map(read, batches), captured.schema)
    assert sorted(row.id for row in again.collect()) == list(range(3000))
    assert reading.exists()
    assert os.listdir(tmp_path / "captured") != []
    assert [name for name in os.listdir(tmp_path) if name.startswith(".")] == [], "nothing is left beside it"


PROGRAM = """
import pointstamp as ps
import pointstamp.spark
from pyspark.sql import SparkSession

spark = SparkSession.builder.getOrCreate()


def count(scope, rows):
    return rows.aggregate("k", count=ps.count())


rows = spark.range(0, 100, 1, 4).selectExpr("id % 5 k")
print(sorted(map(tuple, pointstamp.spark.run(rows, count).collect())))
"""


@all_of_them
def test_a_program_of_spark_submit(tmp_path: Path) -> None:
    program = tmp_path / "program.py"
    program.write_text(PROGRAM, encoding="utf-8")
    submit = Path(sys.executable).with_name("spark-submit")
    options = ["--master", "local-cluster[2,1,1024]", "--conf", "spark.ui.enabled=false"]
    options += ["--conf", "spark.driver.host=127.0.0.1", "--conf", "spark.dynamicAllocation.enabled=false"]
    done = subprocess.run(
        [submit, *options, program],
        env={**os.environ, "PYSPARK_PYTHON": sys.executable},
        capture_output=True,
        text=True,
        timeout=380,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip().splitlines()[-1] == "[(0, 20), (1, 20), (2, 20), (3, 20), (4, 20)]"


SUBMITTED = re.findall(
    r"^spark-submit (?:.*\\\n)*.*$", (ROOT / "docs" / "spark.md").read_text(encoding="utf-8"), re.MULTILINE
)

ENDS = {
    "yarn": "ResourceManager at",
    "k8s": "UnknownHostException",
    "spark": "Failed to connect to master",
}
"""The first thing that the machine of the tests lacks, by the master: all before that is right."""


@all_of_them
@pytest.mark.parametrize("command", SUBMITTED)
def test_the_commands_of_the_page_are_understood(command: str, tmp_path: Path) -> None:
    words = shlex.split(command.replace("\\\n", " ").replace("HOST", "nowhere.invalid"))
    (tmp_path / "program.py").write_text(PROGRAM, encoding="utf-8")
    with tarfile.open(tmp_path / "env.tar.gz", "w:gz") as archive:
        archive.add(tmp_path / "program.py", "program.py")
    submit = Path(sys.executable).with_name("spark-submit")
    (tmp_path / "conf").mkdir()
    environment = {"HADOOP_CONF_DIR": str(tmp_path / "conf"), "PYSPARK_PYTHON": sys.executable}
    process = subprocess.Popen(
        [submit, "--verbose", *words[1:]],
        env={**os.environ, **environment},
        cwd=tmp_path,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        start_new_session=True,
    )
    assert process.stdout is not None
    wanted, said = ENDS[words[words.index("--master") + 1].partition(":")[0]], []
    try:
        for line in process.stdout:  # Spark tries some of them again for minutes
            said.append(line)
            if wanted in line:
                break
    finally:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        process.stdout.close()
    text = "".join(said)
    assert wanted in text, text
    for setting in (word for word in words if word.startswith("spark.")):
        name, _, value = setting.partition("=")
        assert f"({name},{value})" in text


def _processes(spark: Any, cluster: Any) -> list[int]:
    """The numbers of the processes of a resident cluster."""
    schema = pa.schema([("process", pa.int64())])

    def build(_scope: ps.Scope, rows: ps.ArrowStream) -> ps.ArrowStream:
        return rows.map_batches(lambda _: pa.record_batch([[os.getpid()]], schema=schema), schema)

    return sorted({row.process for row in cluster.run(spark.range(1), build).collect()})


def _parent(process: int) -> int:
    status = Path(f"/proc/{process}/stat").read_text()
    return int(status.rpartition(")")[2].split()[1])
