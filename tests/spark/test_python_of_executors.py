"""Executors whose Python is not the driver's; functions of PySpark that are replaced and put back."""

import os
import subprocess
import sys
import textwrap
from pathlib import Path
from typing import Any

import pytest

PROGRAM = """
    import pytest
    from pyspark.errors.exceptions import captured
    from pyspark.sql import SparkSession

    from pointstamp.spark import run, setup_cluster

    original = captured.convert_exception
    settings = {"spark.ui.enabled": "false", "spark.driver.host": "127.0.0.1"}

    def start(cores):
        builder = SparkSession.builder.master(f"local[{cores}]")
        for name, value in settings.items():
            builder = builder.config(name, value)
        return builder.getOrCreate()

    spark = start(2)
    assert spark.sparkContext.pythonExec == "python3"
    out = run(spark.range(10), lambda scope, rows: rows, num_workers=1)
    assert captured.convert_exception is not original
    for action in (out.collect, lambda: setup_cluster(1)):
        with pytest.raises(ImportError) as raised:
            action()
        said = str(raised.value)
        assert "runs {bare}, which lacks pyarrow; the driver runs {ours}" in said, said
        assert "set PYSPARK_PYTHON={ours} (or spark.pyspark.python) before the session is made" in said
        assert "{bare} -m pip install '.[spark]', in a clone" in said
    other = spark.newSession()
    run(other.range(10), lambda scope, rows: rows, num_workers=1)
    spark.stop()
    assert captured.convert_exception is original

    # Another session of the process has it replaced again, and says what it is told.
    spark = start(1)
    run(spark.range(10), lambda scope, rows: rows, num_workers=1)
    theirs = lambda error: original(error)
    ours, captured.convert_exception = captured.convert_exception, theirs
    spark.stop()
    assert captured.convert_exception is theirs, "what another library has put there stays"
    print("all of it")
"""


@pytest.fixture
def bare(tmp_path: Path) -> Path:
    """A Python of the driver's version without any package, first on the PATH."""
    subprocess.run(
        [sys.executable, "-m", "venv", "--without-pip", "--symlinks", tmp_path / "bare"],
        check=True,
        timeout=380,
    )
    return tmp_path / "bare" / "bin" / "python3"


def test_an_environment_that_is_not_active(bare: Path, tmp_path: Path) -> None:
    program = textwrap.dedent(PROGRAM).replace("{bare}", str(bare)).replace("{ours}", sys.executable)
    environment: dict[str, Any] = {
        name: value for name, value in os.environ.items() if name not in ("PYSPARK_PYTHON", "PYTHONPATH")
    }
    environment["PATH"] = f"{bare.parent}{os.pathsep}{os.environ['PATH']}"
    result = subprocess.run(
        [sys.executable, "-c", program],
        capture_output=True,
        text=True,
        timeout=380,
        check=False,
        env={**environment, "SPARK_LOCAL_IP": "127.0.0.1"},
        cwd=tmp_path,
    )
    assert result.returncode == 0, result.stderr[-3000:]
    assert result.stdout.split("\n")[-2] == "all of it"
