"""A barrier stage that Spark tries again resumes where it was."""

import os
import random
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import pointstamp as ps
from micro_batches import kill_the_executor, wait_for_checkpoints
from pointstamp.spark import run
from pointstamp.spark.job.outputs import Declared
from pointstamp.spark.job.plan import Plan
from pointstamp.spark.job.stage_checkpoints import KeptFeed, KeptOutputs, StageFolder
from pointstamp.spark.packing import batches as packing
from pointstamp.spark.packing.batches import read, unpack
from pointstamp.spark.packing.merging import in_order

ROWS = pa.schema([("k", pa.int64()), ("t", pa.int64())])
SUMS = pa.schema([("k", pa.int64()), ("t_sum", pa.int64())])


class Lost(Exception):
    """Ends an attempt as the loss of a process does."""


class Named:
    """The name of a dataflow."""

    name = "sums"


def plan(each: Callable[[], None]) -> Any:
    def build(_scope: ps.Scope, rows: ps.ArrowStream) -> ps.ArrowStream:
        def passing(batch: pa.RecordBatch) -> pa.RecordBatch:
            each()
            return batch

        return rows.exchange("k").map_batches(passing).aggregate("k", t_sum=ps.col("t").sum())

    return Plan(build, {"input": ROWS}, False, Declared({"output": SUMS}, True, "time"), Named)  # type: ignore[arg-type]


def packed_rows(timed: bool) -> list[pa.RecordBatch]:
    """Packed batches of one task, as Spark's shuffle brings them."""
    made = []
    for part in range(6):
        rows = sorted((number * 7 % 60, number % 11) for number in range(part * 50, part * 50 + 50))
        batch = pa.record_batch({"k": [k for _, k in rows], "t": [t for t, _ in rows]}, schema=ROWS)
        for first in range(0, 50, 10):
            piece = batch.slice(first, 10)
            low = piece["t"][0].as_py() if timed else 0
            made.append(packing.packed(0, low, pa.record_batch(piece.columns, schema=ROWS)))
    return made


class Attempts:
    """Attempts at a stage of one task."""

    def __init__(self, folder: Path, timed: bool, workers: int) -> None:
        self.place = ps.Checkpoint(folder, every=0.005)
        self.times = ["t"] if timed else [None]
        self.workers = workers
        self.resumed = False

    def attempt(self, rows: list[pa.RecordBatch], lose_at: int | None) -> Counter[Any] | None:
        """Runs the stage; it is lost at a batch of the input, behind a checkpoint that has those before."""
        folder = StageFolder(self.place, b"secret", 7)
        self.resumed = folder.resumes
        lost = False

        def each() -> None:
            if lost:
                raise Lost

        def given() -> Iterator[pa.RecordBatch]:
            nonlocal lost
            for number, row in enumerate(sorted(rows, key=lambda row: row.column(1)[0].as_py())):
                if number == lose_at:
                    (state := Path(folder.checkpoint.location)).mkdir(parents=True, exist_ok=True)
                    wait_for_checkpoints(state, 1)
                    lost = True
                yield row

        built = plan(each)
        feed = KeptFeed([ROWS], self.workers)
        outputs = KeptOutputs(built.declared, folder, 0, 1)

        def main(worker: ps.Worker) -> None:
            with worker.dataflow("sums") as scope:
                outputs.connect(built.built(scope, feed))
            worker.run()

        pieces = feed.unsent(in_order(read(given(), digests=True), self.times))
        reader = threading.Thread(target=lambda: feed.fill(pieces))
        reader.start()
        config = ps.Config(workers=self.workers, checkpoint=folder.checkpoint)
        try:
            ps.execute(main, config=config, stall_report=False)
        except Lost:
            return None
        except ps.CheckpointError:
            folder.start_anew()
            return None
        finally:
            feed.stop()
            outputs.end()
            reader.join()
        folder.completed()
        assert StageFolder(self.place, b"secret", 7).complete
        outputs.complete = True
        batches = unpack(0, iter(list(outputs.rows())))
        found = pa.Table.from_batches(batches, SUMS.append(pa.field("time", pa.int64())))
        folder.remove()
        assert os.listdir(self.place.location) == []
        return Counter(tuple(row.values()) for row in found.to_pylist())


def expected(timed: bool) -> Counter[Any]:
    sums: Counter[Any] = Counter()
    for piece in read(iter(packed_rows(timed))):
        for row in piece.batch.to_pylist():
            sums[row["k"], row["t"] if timed else 0] += row["t"]
    return Counter({(k, total, time): 1 for (k, time), total in sums.items()})


@pytest.mark.parametrize("timed", [False, True], ids=["at once", "in time"])
@pytest.mark.parametrize("workers", [1, 2])
def test_an_attempt_goes_on_in_another_order(tmp_path: Path, timed: bool, workers: int) -> None:
    drawn = random.Random(workers)
    attempts = Attempts(tmp_path, timed, workers)
    rows = packed_rows(timed)
    lost = 0
    while (found := attempts.attempt(rows, None if lost == 3 else drawn.randrange(30))) is None:
        drawn.shuffle(rows)
        lost += 1
    assert lost > 0
    assert found == expected(timed)


def test_other_batches_than_before_start_anew(tmp_path: Path) -> None:
    attempts = Attempts(tmp_path, True, 1)
    assert attempts.attempt(packed_rows(True), 15) is None
    halves = [
        packing.packed(0, piece.batch["t"][0].as_py(), pa.record_batch(piece.batch.columns, schema=ROWS))
        for whole in read(iter(packed_rows(True)))
        for piece in (
            whole._replace(batch=whole.batch.slice(0, 5)),
            whole._replace(batch=whole.batch.slice(5)),
        )
    ]
    assert attempts.attempt(halves, None) is None
    resumed = [attempts.resumed]
    found = attempts.attempt(halves, None)
    resumed.append(attempts.resumed)
    assert resumed == [True, False]
    assert found == expected(True)


def test_a_run_goes_on_from_its_own_checkpoints_only(tmp_path: Path) -> None:
    wrong: Any
    for wrong in ("state", ps.Checkpoint(tmp_path, at=3)):
        with pytest.raises(ps.ConfigError, match=r"checkpoint is a pointstamp\.Checkpoint without at="):
            run({}, lambda scope: None, checkpoint=wrong)


@pytest.mark.executors
def test_an_executor_that_is_killed(executors: Any, tmp_path: Path) -> None:
    from pyspark.sql import functions as sf

    marker, log, before = (str(tmp_path / name) for name in ("killed", "log", "before"))
    state = tmp_path / "state"

    def build(scope: ps.Scope, rows: ps.ArrowStream) -> ps.ArrowStream:
        passed = 0

        def passing(batch: pa.RecordBatch) -> pa.RecordBatch:
            nonlocal passed
            passed += 1
            with open(log, "a") as file:
                file.write("".join(f"{t}\n" for t in batch["t"].to_pylist()))
            if passed > 200:
                # Where all rows came at once, no checkpoint was made yet: it waits until they are through.
                there = any(state.glob("*/*/state/log/2"))
                with suppress(FileExistsError), open(before, "x") as file:
                    file.write(str(len(Path(log).read_text().split())) if there else "")
                kill_the_executor(marker)
            return batch

        return rows.exchange("k").map_batches(passing).aggregate("k", n=ps.col("t").count())

    rows = executors.range(0, 12000, 1, 4).select(
        (sf.col("id") % 10).alias("k"), (sf.col("id") / 20).cast("bigint").alias("t")
    )
    out = run(rows, build, time="t", num_workers=2, checkpoint=ps.Checkpoint(state, every=0.05))
    counts = Counter({row.k: row.n for row in out.groupBy("k").agg(sf.sum("n").alias("n")).collect()})
    assert counts == dict.fromkeys(range(10), 1200)
    assert os.path.exists(marker)
    rows_passed = len(Path(log).read_text().split())
    passed_before = Path(before).read_text()
    assert not passed_before or rows_passed < 12000 + int(passed_before), "it has begun anew"
    assert os.listdir(state) == []


def test_a_run_whose_operator_fails_leaves_nothing(spark: Any, tmp_path: Path) -> None:
    state = tmp_path / "state"

    def build(scope: ps.Scope, rows: ps.ArrowStream) -> ps.ArrowStream:
        def failing(batch: pa.RecordBatch) -> pa.RecordBatch:
            raise ValueError("no")

        return rows.exchange("id").map_batches(failing)

    out = run(spark.range(1000), build, num_workers=2, checkpoint=ps.Checkpoint(state, every=0.05))
    with pytest.raises(ValueError, match="no"):
        out.collect()
    assert os.listdir(state) == []
