"""Micro-batches for `Epochs`, and the expected results: helpers of its tests."""

import os
import signal
import time
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

import pointstamp as ps
from pointstamp import _core
from pointstamp.spark import Epochs

SUPPORT = str(Path(__file__).parent)
"""The folder of this file: a program that a test starts finds it there."""

ROWS = "word string, n bigint"


def first_seen(_scope: ps.Scope, rows: ps.ArrowStream) -> dict[str, ps.ArrowStream]:
    """Builds outputs that need state of earlier epochs, and outputs by epoch."""
    return {"words": rows.distinct_so_far("word"), "sums": rows.aggregate("word", n_sum=ps.col("n").sum())}


OUTPUTS = {"words": ROWS, "sums": "word string, n_sum bigint"}


class Source:
    """A directory of files, each of which is to be a micro-batch."""

    def __init__(self, spark: Any, root: Path) -> None:
        self.spark = spark
        self.root = root
        self.files = root / "files"
        self.files.mkdir()
        self.rows: list[tuple[str, int]] = []

    def add(self, count: int) -> None:
        for _ in range(count):
            number = len(os.listdir(self.files))
            rows = [(f"w{(number * 7 + n) % 23}", n) for n in range(12)]
            self.rows += rows
            table = pa.table({"word": [word for word, _ in rows], "n": [n for _, n in rows]})
            written = self.root / "writing"
            pq.write_table(table, written)
            os.utime(written, (1_000_000 + number, 1_000_000 + number))  # Spark's order
            written.rename(self.files / f"{number:04}.parquet")

    def stream(self) -> Any:
        return self.spark.readStream.schema(ROWS).option("maxFilesPerTrigger", 1).parquet(str(self.files))

    def run(self, epochs: Epochs, checkpoint: str = "checkpoint") -> None:
        """Runs the query to the end of its input, and raises its exceptions."""
        query = (
            self.stream()
            .writeStream.foreachBatch(epochs)
            .option("checkpointLocation", str(self.root / checkpoint))
            .trigger(availableNow=True)
            .start()
        )
        try:
            query.awaitTermination()
        finally:
            query.stop()

    def epochs(self, **options: Any) -> Epochs:
        return Epochs(
            self.spark,
            self.stream(),
            first_seen,
            OUTPUTS,
            options.pop("directory", str(self.root / "stored")),
            time_column="epoch",
            **options,
        )

    def check(self, epochs: Epochs) -> None:
        """Checks that the outputs equal a batch run of the files of the sealed batches."""
        rows = self.rows[: 12 * len(epochs.sealed)]
        words = epochs.read("words").collect()
        assert sorted(row.word for row in words) == sorted({word for word, _ in rows})
        first = {row.word: row.epoch for row in words}
        assert first == {word: min(i // 12 for i, row in enumerate(rows) if row[0] == word) for word in first}
        sums = epochs.read("sums").groupBy("word").sum("n_sum").collect()
        expected: dict[str, int] = {}
        for word, n in rows:
            expected[word] = expected.get(word, 0) + n
        assert {row[0]: row[1] for row in sums} == expected


def once(marker: str) -> bool:
    """True for the first caller."""
    try:
        os.close(os.open(marker, os.O_CREAT | os.O_EXCL))
    except FileExistsError:
        return False
    return True


def kill_the_executor(marker: str) -> None:
    """Kills the executor that this process belongs to; only the first caller does."""
    if once(marker):
        daemon = os.getppid()
        status = Path(f"/proc/{daemon}/stat").read_text()
        executor = int(status.rpartition(")")[2].split()[1])
        assert "java" in Path(f"/proc/{executor}/cmdline").read_text()
        os.kill(executor, signal.SIGKILL)


def newest(location: Path) -> int:
    """Returns the number of the newest checkpoint; 0 where there is none."""
    return max((line[0] for line in _core.checkpoints_list(str(location))), default=0)


def wait_for_checkpoints(location: Path, more: int) -> None:
    """Waits until so many checkpoints were made that began later."""
    for _ in range(more + 1):
        last = newest(location)
        while newest(location) == last:
            time.sleep(0.005)
