"""Spark Connect: working calls, and refused calls. In a process of its own."""

import os
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

pytest.importorskip("grpc", reason="Spark Connect needs grpc: pip install 'pyspark[connect]'")
pytest.importorskip("grpc_status", reason="Spark Connect needs grpc: pip install 'pyspark[connect]'")

PROGRAM = """
    import pytest
    from pyspark.sql import SparkSession

    import pointstamp as ps
    from pointstamp.spark import Epochs, run, setup_cluster

    spark = SparkSession.builder.remote("local[2]").config("spark.ui.enabled", "false").getOrCreate()
    rows = spark.range(0, 1000, 1, 4).selectExpr("id % 7 k", "1 n")

    def counted(scope, rows):
        return rows.aggregate("k", n_sum=ps.col("n").sum())

    out = run(rows, counted, "k bigint, n_sum bigint", num_workers=2)
    assert {row.k: row.n_sum for row in out.collect()} == {k: len(range(k, 1000, 7)) for k in range(7)}
    schemas = {"a": "k bigint, n int", "b": "n int, k bigint"}
    both = run(rows, lambda scope, rows: {"a": rows, "b": rows}, schemas, num_workers=1)
    assert both["a"].count() == both["b"].count() == 1000

    def failing(scope, rows):
        def fail(batch):
            raise LookupError("no such word")
        return rows.map_batches(fail)

    def of_yours(scope, rows):
        import module_of_yours

        return module_of_yours.counted(rows)

    with pytest.raises(ModuleNotFoundError, match="module_of_yours"):
        run(rows, of_yours, "k bigint, n_sum bigint", num_workers=1).collect()
    spark.addArtifacts({module!r}, pyfile=True)
    assert run(rows, of_yours, "k bigint, n_sum bigint", num_workers=1).count() == 7

    with pytest.raises(LookupError, match="no such word"):
        run(rows, failing, "k bigint, n int", num_workers=1).collect()
    with pytest.raises(ps.ConfigError, match="over Spark Connect the number of free slots"):
        run(rows, counted, "k bigint, n_sum bigint")
    with pytest.raises(ps.ConfigError, match="a resident cluster takes its orders from the driver"):
        setup_cluster(1, session=spark)
    with pytest.raises(ps.ConfigError, match="over Spark Connect foreachBatch runs on the server"):
        Epochs(spark, "a int", counted, "a int", "nowhere")
    print("all of it")
"""


def test_connect(tmp_path: Path) -> None:
    module = tmp_path / "module_of_yours.py"
    module.write_text(
        "import pointstamp as ps\n"
        "def counted(rows):\n    return rows.aggregate('k', n_sum=ps.col('n').sum())\n",
        encoding="utf-8",
    )
    environment = {**os.environ, "SPARK_LOCAL_IP": "127.0.0.1"}
    result = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(PROGRAM).replace("{module!r}", repr(str(module)))],
        capture_output=True,
        text=True,
        timeout=380,
        check=False,
        env=environment,
    )
    assert result.returncode == 0, result.stderr[-3000:]
    assert result.stdout.split("\n")[-2] == "all of it"
