"""Programs that write snapshots and resume from them: the recipe of the book, and streams of `scope.read`."""

from __future__ import annotations

import asyncio
import re
import threading
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

import pointstamp as ps
from effort import examples
from keyed_operators import COLUMNS, RECORDS, SCHEMA
from pointstamp.connectors import PartitionReader, Source

CHAPTER = Path(__file__).parents[2] / "docs" / "windows.md"


class PowerFailed(Exception):
    """Ends a run."""


def recipe() -> dict[str, Any]:
    """The functions of the program in the book."""
    text = CHAPTER.read_text(encoding="utf-8").split("### Resuming from snapshots")[1]
    [program] = re.findall(r"```python\n(.*?)^with tempfile", text, re.MULTILINE | re.DOTALL)[:1]
    names: dict[str, Any] = {}
    exec(program, names)
    return names


Fails = tuple[int, int, bool]
"""At which time a run fails, on which worker, and whether that has written its snapshot of the time."""


def run_of_the_recipe(folder: Path, workers: int, fails: Fails | None) -> list[tuple[int, Any]]:
    """Returns the results that a run shows until it ends, or fails: once the others have written theirs."""
    names = recipe()
    keep = names["keep"]
    shown: list[tuple[int, Any]] = []

    def show(text: str, *_: object) -> None:
        if found := re.fullmatch(r"day (\d+): (.*)", text):
            shown.append((int(found[1]), found[2]))

    def keep_or_fail(at: Path, state: Any, worker: ps.Worker) -> None:
        if fails is None or state.frontier != fails[0]:
            return keep(at, state, worker)  # type: ignore[no-any-return]
        if worker.index != fails[1] % workers or fails[2]:
            keep(at, state, worker)
        if worker.index == fails[1] % workers:
            others = [at / str(fails[0]) / f"{n} of {workers}" for n in range(workers) if n != worker.index]
            while not all(file.exists() for file in others):
                time.sleep(0.001)
            raise PowerFailed
        return None

    names["keep"] = keep_or_fail
    names["print"] = show
    try:
        ps.execute(lambda worker: names["main"](worker, folder, None), workers=workers)
    except PowerFailed:
        pass
    return shown


def latest(folder: Path) -> int:
    """The latest time for which every worker of a run has written, as the files show."""
    return max(
        (
            int(at.name)
            for at in folder.iterdir()
            for peers in (1, 2, 3)
            if all((at / f"{index} of {peers}").exists() for index in range(peers))
        ),
        default=0,
    )


@settings(max_examples=examples(10), deadline=None)
@given(
    runs=st.lists(
        st.tuples(st.integers(1, 3), st.tuples(st.sampled_from([3, 7]), st.integers(0, 2), st.booleans())),
        max_size=4,
    ),
    last=st.integers(1, 3),
)
@example(runs=[(2, (3, 1, False)), (1, (3, 0, True))], last=1)
@example(runs=[(2, (3, 1, False)), (3, (3, 2, False)), (2, (3, 0, True))], last=2)
def test_the_recipe_goes_on_with_any_number_of_workers(runs: list[tuple[int, Fails]], last: int) -> None:
    whole = {(1, "('ann', 5)"), (2, "('bob', 2)"), (3, "('ann', 8)"), (5, "('bob', 6)"), (6, "('ann', 9)")}
    with TemporaryDirectory() as name:
        shown = []
        for workers, fails in runs:
            shown += run_of_the_recipe(Path(name), workers, fails)
        cut = latest(Path(name))
        final = run_of_the_recipe(Path(name), last, None)
    assert {*shown, *final} == whole
    assert sorted(final) == sorted(row for row in whole if row[0] >= cut)


# ------------------------------------------------------------ streams of `scope.read`

Row = tuple[int, str, int]


class Rows(Source[Any]):
    """Lists of rows, a few in each batch, which come one by one as the worker steps."""

    def __init__(self, partitions: list[list[Row]], columns: bool) -> None:
        self.rows = partitions
        self.gate = threading.Semaphore(0)
        self.schema = SCHEMA if columns else None

    def partitions(self) -> Iterator[str]:
        return map(str, range(len(self.rows)))

    def open(self, partition: str) -> PartitionReader[Any]:
        return RowsReader(self.rows[int(partition)], self.schema, self.gate)


class RowsReader(PartitionReader[Any]):
    def __init__(self, rows: list[Row], schema: pa.Schema | None, gate: threading.Semaphore) -> None:
        self.rows, self.schema, self.gate, self.at = rows, schema, gate, 0

    def read(self) -> Any:
        self.gate.acquire()
        if self.at >= len(self.rows):
            return None
        batch = self.rows[self.at : self.at + 2]
        self.at += len(batch)
        if self.schema is None:
            return batch
        return pa.RecordBatch.from_pylist(
            [dict(zip(self.schema.names, row, strict=True)) for row in batch], schema=self.schema
        )

    @property
    def offset(self) -> int:
        return self.at

    def seek(self, offset: Any) -> None:
        self.at = offset


NAMES = ("tumbling", "session", "scan", "dedup", "interval join", "as-of join", "table join")


async def later(record: Any) -> Any:
    await asyncio.sleep(0.001)
    return record


def read(
    name: str, columns: bool, partitions: list[list[Row]], snapshots: list[bytes], stops: int | None
) -> tuple[Counter[str], list[bytes]]:
    """Returns the results before the snapshot after which the run stops, and that snapshot; or all."""
    program: Any = (COLUMNS if columns else RECORDS)[name]
    found: list[tuple[Counter[str], list[bytes]]] = []
    source = Rows(partitions, columns)

    def main(worker: ps.Worker) -> None:
        state: ps.KeyedState[Any, Any] = ps.KeyedState.restore(snapshots)
        sent: list[str] = []
        with worker.dataflow() as scope:
            stream: Any
            by: Any = "at" if columns else lambda row: row[0]
            stream, _ = scope.read(source, event_time=by, lateness=20, idle=None)
            if not columns:
                stream = stream.key_by(lambda row: row[1])
            results = program(stream, stream, state)
            results = results.to_records() if columns else results
            results, _ = results.async_map(later)  # what is behind the state takes steps of its own
            probe = results.inspect_time(lambda record, at: sent.append(repr((at, record)))).probe()
        taken = steps = 0
        while worker.step():
            steps += 1
            if steps % 4 == 0:
                source.gate.release()
                time.sleep(0.0005)  # so that few batches come at once
            if state.frontier and not probe.less_than(state.frontier):
                taken += 1
                if taken == stops:
                    found.append((Counter(sent), [state.snapshot()]))
                    source.gate.release(1000)
                    raise PowerFailed
        found.append((Counter(sent), []))

    try:
        ps.execute(main)
    except PowerFailed:
        pass
    return found[-1]


@pytest.mark.parametrize(
    ("name", "columns"), [(name, columns) for name in NAMES for columns in (False, True)]
)
@settings(max_examples=examples(6), deadline=None)
@given(data=st.data())
def test_a_snapshot_of_a_stream_that_is_read(name: str, columns: bool, data: st.DataObject) -> None:
    """A snapshot on one worker is right once the probe is past it: earlier results have been sent."""
    partitions: list[list[Row]] = []
    for part in range(data.draw(st.integers(1, 2))):
        now = 0
        rows: list[Row] = []
        for step in data.draw(st.lists(st.sampled_from([1, 2, 7, 30]), min_size=8, max_size=16)):
            now += step
            early = data.draw(st.integers(0, min(9, now)))
            rows.append((2 * (now - early) + part, data.draw(st.sampled_from("aab")), len(rows)))
        partitions.append(list({row[0]: row for row in rows}.values()))
    whole, _ = read(name, columns, partitions, [], None)
    first, snapshots = read(name, columns, partitions, [], data.draw(st.integers(1, 9)))
    second, _ = read(name, columns, partitions, snapshots, None) if snapshots else (Counter(), [])
    assert first + second == whole
