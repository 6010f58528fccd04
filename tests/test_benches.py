"""The Python benchmarks run, with a tenth of their work; what they measure is not judged here."""

import subprocess
import sys
from pathlib import Path

RUN = Path(__file__).parent.parent / "benches" / "python" / "run.py"


def test_every_part_runs_and_agrees_with_its_peer() -> None:
    command = [sys.executable, "-W", "error", str(RUN), "--quick"]
    result = subprocess.run(command, capture_output=True, text=True, timeout=50, check=False)
    assert result.returncode == 0, result.stdout + result.stderr
    assert result.stdout.count("pointstamp, 2 workers") == 2
    assert "import pointstamp: " in result.stdout


def test_the_benches_of_columns_run() -> None:
    command = [sys.executable, "-W", "error", str(RUN.parent / "bench_arrow.py"), "--scale", "0.01"]
    result = subprocess.run(command, capture_output=True, text=True, timeout=50, check=False)
    assert result.returncode == 0, result.stdout + result.stderr
    for name in ("memory:", "words:", "exchange:", "components:", "speedup,"):
        assert name in result.stdout


def test_the_benches_of_processes_run() -> None:
    command = [sys.executable, "-W", "error", str(RUN.parent / "bench_processes.py"), "--scale", "0.01"]
    result = subprocess.run(
        [*command, "--turns", "1"], capture_output=True, text=True, timeout=55, check=False
    )
    assert result.returncode == 0, result.stdout + result.stderr
    for name in ("words:", "exchange:", "rounds:", "progress:", "4 x 4"):
        assert name in result.stdout
