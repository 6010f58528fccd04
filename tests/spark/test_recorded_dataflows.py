"""A dataflow of which `Epochs` makes checkpoints, without Spark: it resumes at any moment."""

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import pointstamp as ps
from micro_batches import first_seen, wait_for_checkpoints
from pointstamp.spark.calls.inprocess import Recorded
from pointstamp.spark.job.outputs import Declared
from pointstamp.spark.job.plan import Plan

ROWS = pa.schema([("word", pa.string()), ("n", pa.int64())])
SUMS = pa.schema([("word", pa.string()), ("n_sum", pa.int64())])


class Named:
    """The name of a dataflow."""

    name = "words"


class Frame:
    """Rows of a micro-batch, in place of a DataFrame."""

    def __init__(self, number: int) -> None:
        self.number = number

    def toArrow(self) -> pa.Table:  # noqa: N802 (as Spark calls it)
        words = [f"w{(self.number * 7 + n) % 23}" for n in range(12)]
        return pa.table({"word": words, "n": list(range(12))}, schema=ROWS)


class Session:
    """Makes rows of tables, in place of a session of Spark."""

    def createDataFrame(self, table: pa.Table, _schema: None) -> list[tuple[Any, ...]]:  # noqa: N802
        return sorted(tuple(row.values()) for row in table.to_pylist())


def plan(function: Any = first_seen) -> Any:
    declared = Declared({"words": ROWS, "sums": SUMS}, False, "epoch")
    return Plan(function, {"input": ROWS}, False, declared, Named)  # type: ignore[arg-type]


def outputs(dataflow: Recorded, epoch: int) -> Any:
    return dataflow.outputs(epoch, Session(), {"words": None, "sums": None})  # type: ignore[arg-type, dict-item]


def expected(folder: Path, epochs: int) -> list[Any]:
    dataflow = Recorded(plan(), 1, ps.Checkpoint(folder / "whole", every=None))
    found = []
    for epoch in range(epochs):
        dataflow.feed(epoch, Frame(epoch))  # type: ignore[arg-type]
        found.append(outputs(dataflow, epoch))
        dataflow.stored(epoch)
    dataflow.close()
    return found


def test_it_goes_on_with_other_numbers_of_workers(tmp_path: Path) -> None:
    right = expected(tmp_path, 6)
    for part, workers in enumerate([1, 2, 3, 1]):
        dataflow = Recorded(plan(), workers, ps.Checkpoint(tmp_path / "state", every=None))
        assert dataflow.standing == (None if part == 0 else ("query", 2 * part - 1, ()))
        dataflow.fed_by("query")
        for epoch in range(2 * part, min(2 * part + 2, 6)):
            dataflow.feed(epoch, Frame(epoch))  # type: ignore[arg-type]
            assert outputs(dataflow, epoch) == right[epoch]
            dataflow.stored(epoch)
        dataflow.close()


@pytest.mark.parametrize("workers", [1, 2])
def test_outputs_that_were_not_stored_come_again(tmp_path: Path, workers: int) -> None:
    right = expected(tmp_path, 3)
    location = tmp_path / "state"
    dataflow = Recorded(plan(), workers, ps.Checkpoint(location, every=0.01))
    dataflow.feed(0, Frame(0))  # type: ignore[arg-type]
    outputs(dataflow, 0)
    dataflow.stored(0)
    dataflow.feed(1, Frame(1))  # type: ignore[arg-type]
    outputs(dataflow, 1)
    wait_for_checkpoints(location, 1)
    dataflow.close()
    dataflow = Recorded(plan(), 3 - workers, ps.Checkpoint(location, every=None))
    assert dataflow.standing == (None, 0, (1,))
    assert outputs(dataflow, 1) == right[1]
    dataflow.stored(1)
    dataflow.feed(2, Frame(2))  # type: ignore[arg-type]
    assert outputs(dataflow, 2) == right[2]
    dataflow.close()


def test_an_operator_that_raises_ends_it_and_the_next_goes_on(tmp_path: Path) -> None:
    def failing(scope: ps.Scope, rows: ps.ArrowStream) -> dict[str, ps.ArrowStream]:
        def passing(batch: pa.RecordBatch) -> pa.RecordBatch:
            if batch["word"][0].as_py() in refused:
                raise LookupError("no such word")
            return batch

        return first_seen(scope, rows.map_batches(passing))

    right = expected(tmp_path, 2)
    refused = {"w7"}
    dataflow = Recorded(plan(failing), 1, ps.Checkpoint(tmp_path / "state", every=None))
    dataflow.feed(0, Frame(0))  # type: ignore[arg-type]
    outputs(dataflow, 0)
    dataflow.stored(0)
    dataflow.feed(1, Frame(1))  # type: ignore[arg-type]
    with pytest.raises(LookupError, match="no such word"):
        outputs(dataflow, 1)
    with pytest.raises(LookupError, match="no such word"):
        dataflow.stored(1)
    dataflow.close()
    refused.clear()
    dataflow = Recorded(plan(failing), 1, ps.Checkpoint(tmp_path / "state", every=None))
    dataflow.feed(1, Frame(1))  # type: ignore[arg-type]
    assert outputs(dataflow, 1) == right[1]
    dataflow.close()


def test_a_mistake_in_build_is_raised(tmp_path: Path) -> None:
    def silent(scope: ps.Scope, rows: ps.ArrowStream) -> dict[str, ps.ArrowStream]:
        def logic(capability: Any, info: Any) -> Any:
            return lambda port, output: None

        return first_seen(scope, rows.unary(ps.Pipeline(), "silent", logic, schema=ROWS))

    with pytest.raises(ps.GraphError, match=r"'silent' .* does not say what its state is"):
        Recorded(plan(silent), 2, ps.Checkpoint(tmp_path / "state"))
