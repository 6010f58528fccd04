"""The Python benchmarks run, with a tenth of their work; what they measure is not judged here."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from children import finished
from effort import EFFORT

RUN = Path(__file__).parents[2] / "benches" / "python" / "run.py"


def test_every_part_runs_and_agrees_with_its_peer() -> None:
    command = [sys.executable, "-W", "error", str(RUN), "--quick"]
    result = finished(command, 380)
    assert result.returncode == 0, result.stdout + result.stderr
    assert result.stdout.count("pointstamp, 2 workers ") == 2
    assert "import pointstamp: " in result.stdout


def test_the_benches_of_columns_run() -> None:
    command = [sys.executable, "-W", "error", str(RUN.parent / "bench_arrow.py"), "--scale", "0.01"]
    result = finished(command, 380)
    assert result.returncode == 0, result.stdout + result.stderr
    for name in ("memory:", "words:", "exchange:", "components:", "speedup,"):
        assert name in result.stdout


def test_the_benches_of_windows_run() -> None:
    given = ["--records", "2000", "--rows", "20000", "--calls", "200", "--sessions", "20000"]
    command = [sys.executable, "-W", "error", str(RUN.parent / "windows.py"), *given]
    result = finished(command, 380)
    assert result.returncode == 0, result.stdout + result.stderr
    for name in ("by a closure:", "by name:", "columns:", "joined in time", "async_map:"):
        assert name in result.stdout


def test_the_bench_of_recovery_runs() -> None:
    given = ["--states", "2000", "--records", "20000", "--megabytes", "1", "--state", "1"]
    given += ["--every", "0.2", "--rounds", "3", "--turns", "1", "--pairs", "20000", "--changes", "4000"]
    parts = [] if EFFORT > 1 else ["states", "off", "pairs", "sizes", "late", "kill", "bytewax"]
    command = [sys.executable, "-W", "error", str(RUN.parent / "recovery.py"), *given, *parts]
    result = finished(command, 380)
    assert result.returncode == 0, result.stdout + result.stderr
    for name in ("of without", "longest time", "1 MB of changes", "bytes written", "shown after", "a kill"):
        assert name in result.stdout


def test_the_bench_of_graphs_runs_and_agrees_with_its_peers() -> None:
    given = ["--nodes", "200", "--edges", "900", "--changes", "2", "--workers", "1", "2"]
    given += ["--only", "components"]
    command = [sys.executable, "-W", "error", str(RUN.parent / "graphs.py"), *given]
    result = finished(command, 380)
    assert result.returncode == 0, result.stdout + result.stderr
    for name in ("ints, 1 worker: load", "ints, 2 workers: load", "strings, 2 workers: load", "SciPy:"):
        assert name in result.stdout


def of_spark(*names: str, scale: float = 0.001) -> str:
    """Returns the output of the benches of Spark, at a small size."""
    command = [sys.executable, "-W", "error", str(RUN.parent / "bench_spark.py"), *names]
    result = finished([*command, "--scale", str(scale), "--turns", "1"], 380)
    assert result.returncode == 0, result.stdout + result.stderr
    return result.stdout


needs_java = pytest.mark.skipif(
    not os.environ.get("JAVA_HOME") and shutil.which("java") is None, reason="Spark needs Java"
)


@needs_java
@pytest.mark.skipif(EFFORT == 1, reason="takes minutes: `make test-spark` runs it")
def test_the_benches_of_spark_run_and_agree_with_their_peers() -> None:
    said = of_spark("components", "pagerank", "hops", "identity")
    assert said.count("pointstamp.spark.run") == 4  # identity of two sizes
    assert said.count("pointstamp.spark.graphs") == 3
    assert said.count("WITH RECURSIVE") == 1
    assert said.count("DataFrames") == 3
    assert "ns more for each row" in said


@needs_java
def test_the_benches_of_paths_and_triangles_agree_with_joins() -> None:
    said = of_spark("paths", "triangles", scale=0.0003)
    assert said.count("pointstamp.spark.graphs") == 2
    assert said.count("DataFrames") == 2


def test_the_benches_of_processes_run() -> None:
    command = [sys.executable, "-W", "error", str(RUN.parent / "bench_processes.py"), "--scale", "0.01"]
    result = finished([*command, "--turns", "1", "--most", "2"], 380)
    assert result.returncode == 0, result.stdout + result.stderr
    for name in ("words:", "exchange:", "rounds:", "progress:", "2 x 2"):
        assert name in result.stdout


def test_the_benches_of_more_workers_run_and_agree() -> None:
    given = ["--scale", "0.01", "--turns", "1", "--most", "2"]
    command = [sys.executable, "-W", "error", str(RUN.parent / "scaling.py"), *given]
    result = finished(command, 380)
    assert result.returncode == 0, result.stdout + result.stderr
    assert result.stdout.count("2 workers: ") == result.stdout.count("2 processes: ") == 5


def test_a_fast_source_waits_for_a_slow_worker() -> None:
    """Up to a high water of 34 MB waits in each process, and some batches of 10 MB between them."""
    command = [sys.executable, "-W", "error", str(RUN.parent / "backpressure.py"), "--seconds", "2"]
    result = finished(command, 380)
    assert result.returncode == 0, result.stdout + result.stderr
    ahead = [int(number) for number in re.findall(r"(\d+) MB ahead", result.stdout)]
    grown = [int(number) for number in re.findall(r"grew by (\d+) MB", result.stdout)]
    assert len(ahead) == len(grown) == 2, result.stdout
    assert max(ahead) < 4 * 34, result.stdout
    assert max(grown) < 5 * 34, result.stdout


PEER = """#!{python}
import json, subprocess, sys

program, workers, *sizes = sys.argv[1:]
given = json.dumps([program, int(workers), *map(int, sizes)])
done = subprocess.run([sys.executable, "{bench}", "--one", given], check=True, capture_output=True, text=True)
count, total = json.loads(done.stdout)["check"]
print("load 1.0", "rounds 1.0", "median 1.0", f"check {{count + {off}}} {{total}}", sep="\\n")
"""


def test_dbsp_is_left_out_of_the_collections_where_it_is_missing_and_has_to_agree(tmp_path: Path) -> None:
    """Programs that run ours stand in for the peers."""
    bench = RUN.parent / "bench_collections.py"
    for name, off in (("agrees", 0), ("differs", 1)):
        (tmp_path / name).write_text(PEER.format(python=sys.executable, bench=bench, off=off))
        (tmp_path / name).chmod(0o755)

    def run(dbsp: str) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "-W", "error", str(bench), "--scale", "0", "--only", "degrees"]
        given = ["--peer", str(tmp_path / "agrees"), "--dbsp", str(tmp_path / dbsp)]
        out = ["--out", str(tmp_path / "table.md")]
        return finished([*command, *given, *out], 380)

    missing = run("nothing")
    assert missing.returncode == 0, missing.stdout + missing.stderr
    assert missing.stdout.count("left out: there is no") == 2
    differing = run("differs")
    assert differing.returncode != 0
    assert "with DBSP" in differing.stderr
