"""The Spark session of the examples and benches: on this machine, with this package on its tasks.

The standard error of Java and of the tasks goes to a file, so that Spark's messages do not break a progress
bar.
"""

from __future__ import annotations

import atexit
import os
import shutil
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from pyspark.sql import SparkSession

SETTINGS = {
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.driver.host": "127.0.0.1",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.driver.memory": "3g",
    "spark.sql.shuffle.partitions": "4",
    # Batches of the default, 64 MB, are fresh memory each time, on both sides of every pipe.
    "spark.sql.execution.arrow.maxBytesPerBatch": "4194304",
}


def start(tasks: int, log: Path, **settings: str) -> SparkSession:
    """A session with so many slots for tasks, whose Python is this one and knows the package `support`.

    Args:
        tasks: The number of tasks that can run at once.
        log: The file that Spark's messages go to.
        settings: More of them, or others: with ``__`` for the dots.
    """
    os.environ["PYSPARK_PYTHON"] = sys.executable
    builder = SparkSession.builder.master(f"local[{tasks}]").appName("pointstamp")
    named = {name.replace("__", "."): value for name, value in settings.items()}
    for name, value in {**SETTINGS, **named}.items():
        builder = builder.config(name, value)
    with errors_to(log):
        spark = builder.getOrCreate()
    send_support(spark)
    return spark


def send_support(spark: SparkSession) -> None:
    """Sends the package `support` to the tasks of a session."""
    package = Path(__file__).parent
    kept = tempfile.mkdtemp()  # Spark's tasks fetch the archive for as long as it runs
    atexit.register(shutil.rmtree, kept, ignore_errors=True)
    archive = shutil.make_archive(str(Path(kept) / package.name), "zip", package.parent, package.name)
    spark.addArtifacts(archive, pyfile=True)


@contextmanager
def errors_to(log: Path) -> Iterator[None]:
    """Processes that are started in the block write their errors to a file."""
    sys.stderr.flush()
    kept = os.dup(2)
    try:
        with log.open("wb") as file:
            os.dup2(file.fileno(), 2)
        yield
    finally:
        os.dup2(kept, 2)
        os.close(kept)
