"""Epochs with checkpoints: stopped and killed, they go on where they stood, and keep no inputs."""

import os
import shutil
import signal
import subprocess
import sys
import textwrap
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import pointstamp as ps
from micro_batches import (
    ROWS,
    SUPPORT,
    Source,
    first_seen,
    kill_the_executor,
    wait_for_checkpoints,
)
from pointstamp.spark import Epochs, setup_cluster


class Checked(Source):
    """A source of micro-batches for a dataflow with checkpoints."""

    def epochs(self, **options: Any) -> Epochs:
        given = {"checkpoint": ps.Checkpoint(self.root / "state", every=None), **options}
        return super().epochs(**given)

    def inputs(self) -> list[str]:
        """The micro-batches whose rows are stored."""
        folder = self.root / "stored" / "input"
        return sorted(os.listdir(folder)) if folder.exists() else []

    def check(self, epochs: Epochs) -> None:
        super().check(epochs)
        assert [name for name in self.inputs() if not name.startswith(".")] == []


@pytest.fixture
def source(spark: Any, tmp_path: Path) -> Iterator[Checked]:
    yield Checked(spark, tmp_path)
    for query in spark.streams.active:
        query.stop()


def test_a_start_goes_on_from_the_checkpoint(source: Checked) -> None:
    source.add(2)
    with source.epochs() as epochs:
        source.run(epochs)
        assert epochs.sealed == [0, 1]
        source.check(epochs)
    source.add(2)
    with source.epochs(workers=2) as epochs:
        source.run(epochs)
        assert epochs.sealed == [0, 1, 2, 3]
        source.check(epochs)
    with source.epochs() as epochs:
        source.check(epochs)


def test_a_directory_without_checkpoints_goes_on_with_them(source: Checked) -> None:
    source.add(2)
    with source.epochs(checkpoint=None) as epochs:
        source.run(epochs)
    assert len(source.inputs()) == 2
    source.add(1)
    with source.epochs() as epochs:
        source.run(epochs)
        source.check(epochs)


def test_what_does_not_belong_together_is_refused(source: Checked) -> None:
    stored, state = source.root / "stored", source.root / "state"
    source.add(2)
    with source.epochs() as epochs:
        source.run(epochs)
    with pytest.raises(ps.CheckpointError, match=r"micro-batch 0 .* were deleted, .*: give checkpoint="):
        source.epochs(checkpoint=None)
    with pytest.raises(
        ps.CheckpointError, match=r"other has no checkpoint, and .* sealed micro-batch 1, without"
    ):
        source.epochs(checkpoint=ps.Checkpoint(source.root / "other"))
    with pytest.raises(
        ps.CheckpointError, match=r"has a checkpoint of micro-batch 0, and .* micro-batch 1, without"
    ):
        source.epochs(checkpoint=ps.Checkpoint(state, at=min(map(int, os.listdir(state / "log")))))
    stored.rename(source.root / "moved")
    with pytest.raises(ps.CheckpointError, match=r"has micro-batch 1, whose outputs are not in .*stored"):
        source.epochs()
    (source.root / "moved").rename(stored)

    def other(_scope: ps.Scope, rows: ps.ArrowStream) -> dict[str, ps.ArrowStream]:
        return {"words": rows.distinct_so_far("word", name="others")}

    shutil.rmtree(source.root / "checkpoint")
    with source.epochs() as epochs:
        with pytest.raises(
            ps.GraphError, match=r"is fed by the query .*, and its sealed micro-batches are of"
        ):
            source.run(epochs)
    with pytest.raises(ps.CheckpointError, match="others"):
        Epochs(
            source.spark,
            ROWS,
            lambda scope, rows: {**other(scope, rows), "sums": first_seen(scope, rows)["sums"]},
            directory=str(stored),
            time_column="epoch",
            checkpoint=ps.Checkpoint(state),
        )

    batch = source.spark.createDataFrame([("a", 1)], ROWS)
    checkpoint = ps.Checkpoint(source.root / "new state", every=0.01)
    options = {"directory": str(source.root / "new"), "checkpoint": checkpoint}
    with source.epochs(**options) as epochs:
        recorded: Any = epochs._recorded
        recorded.fed_by("of yesterday")
        recorded.feed(0, batch)
        recorded.outputs(0, source.spark, epochs._schemas)
        wait_for_checkpoints(source.root / "new state", 1)
    with source.epochs(**options) as epochs:
        with pytest.raises(ps.CheckpointError, match=r"is of the query of yesterday, and None feeds"):
            epochs(batch, 0)


def test_mistakes_are_named(source: Checked) -> None:
    with pytest.raises(ps.ConfigError, match=r"checkpoint is a pointstamp.Checkpoint, .* not 'state'"):
        source.epochs(checkpoint="state")
    with setup_cluster(1) as cluster, pytest.raises(ps.ConfigError, match="leave out cluster="):
        source.epochs(cluster=cluster)


KILLED = """
    import os, signal, sys
    from pathlib import Path
    sys.path[:0] = [{tests!r}, {support!r}]
    import conftest, test_epochs_with_checkpoints
    from pointstamp.spark.calls.store import Store

    called, part, when = {where!r}
    plain = getattr(Store, called)

    def fails(self, *arguments):
        dies = arguments[-1] == 1 and (part is None or part in arguments)
        if dies and when == "before":
            os.kill(os.getpid(), signal.SIGKILL)
        plain(self, *arguments)
        if dies:
            os.kill(os.getpid(), signal.SIGKILL)

    setattr(Store, called, fails)
    sessions = conftest.Sessions(Path({root!r}))
    source = test_epochs_with_checkpoints.Checked.__new__(test_epochs_with_checkpoints.Checked)
    source.spark, source.root = sessions.get(conftest.EXECUTORS), Path({root!r})
    source.files = source.root / "files"
    with source.epochs() as epochs:
        source.run(epochs)
"""


@pytest.mark.executors
@pytest.mark.parametrize(
    "where",
    [("write", "output/words", "after"), ("seal", None, "before")],
    ids=["before the checkpoint", "after the checkpoint"],
)
def test_a_driver_that_is_killed(executors: Any, tmp_path: Path, where: tuple[str, str | None, str]) -> None:
    source = Checked(executors, tmp_path)
    source.add(3)
    program = KILLED.format(
        tests=str(Path(__file__).parent), support=SUPPORT, where=where, root=str(tmp_path)
    )
    result = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(program)],
        capture_output=True,
        text=True,
        timeout=380,
        check=False,
    )
    assert result.returncode == -signal.SIGKILL, result.stderr
    with source.epochs() as epochs:
        assert epochs.sealed == ([0, 1] if where[0] == "seal" else [0])
        source.run(epochs)
        assert epochs.sealed == [0, 1, 2]
        source.check(epochs)


@pytest.mark.executors
def test_an_executor_that_is_killed(executors: Any, tmp_path: Path) -> None:
    from pyspark.sql import functions as sf

    marker = str(tmp_path / "killed")

    def killing(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        kill_the_executor(marker)
        yield from batches

    source = Checked(executors, tmp_path)
    source.add(2)
    rows = executors.read.schema(ROWS).parquet(str(source.files))
    with source.epochs() as epochs:
        epochs(rows.where(sf.input_file_name().endswith("0000.parquet")), 0)
        epochs(rows.where(sf.input_file_name().endswith("0001.parquet")).mapInArrow(killing, ROWS), 1)
        assert os.path.exists(marker)
        source.check(epochs)
