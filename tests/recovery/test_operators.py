"""Operators that go on from a checkpoint make what they would have made without one."""

from __future__ import annotations

import runpy
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from tests.recovery.cutting import Build, Records, in_parts, outs
from tests.recovery.operator_programs import PROGRAMS, RESCALED

import pointstamp as ps
from budgets import SMALL
from pointstamp.logic import frames
from resuming import Enough, make_checkpoint, run_until_stopped, settings

DOCS = Path(__file__).parents[2] / "docs"
STATES: dict[str, Any] = runpy.run_path(
    str(Path(__file__).parents[2] / "docs" / "states.py"), run_name="states"
)
ROWS = 20_000
"""Rows of a frame: more than are sent until a checkpoint is made."""

SAME, REFUSED = STATES["SAME"], STATES["REFUSED"]

DIVISIONS = {name: division for name, (_, division) in STATES["states"]().items()}
"""The division of each operator's state among workers, by class and method."""

KEPT = [name for name in PROGRAMS if DIVISIONS.get(name) != REFUSED]
"""The programs that can be cut."""


def workers_of(name: str) -> list[int]:
    """The numbers of workers of the parts of a program: of windows, also so many that one has no key."""
    return [1, 3, 2, 5] if name.endswith(".window") else [1, 3, 2]


@pytest.fixture(scope="module")
def uncut(tmp_path_factory: pytest.TempPathFactory) -> Callable[[Build], Records]:
    """Returns a function that returns the results of a program in one run of one worker."""

    @cache
    def run(program: Build) -> Records:
        return in_parts(tmp_path_factory.mktemp("uncut") / "through", program, [1])

    return run


@pytest.mark.parametrize("name", [name for name in PROGRAMS if name not in KEPT])
def test_an_operator_that_has_no_part_in_checkpoints_is_refused(tmp_path: Path, name: str) -> None:
    with pytest.raises(ps.GraphError, match="has no part in checkpoints"):
        in_parts(tmp_path / "parts", PROGRAMS[name], [1, 1])


@pytest.mark.parametrize("name", KEPT)
def test_an_operator_goes_on_where_it_was(
    tmp_path: Path, name: str, uncut: Callable[[Build], Records]
) -> None:
    through = uncut(PROGRAMS[name])
    assert through
    assert in_parts(tmp_path / "parts", PROGRAMS[name], [1, 1]) == through


@pytest.mark.parametrize("name", KEPT)
def test_an_operator_goes_on_with_other_workers_or_says_that_it_cannot(
    tmp_path: Path, name: str, uncut: Callable[[Build], Records]
) -> None:
    program = RESCALED.get(name, PROGRAMS[name])
    if DIVISIONS[name] == SAME:
        with pytest.raises(
            ps.CheckpointError, match=f"'{name.split('.')[1]}'.* resume with 2 workers, as before"
        ):
            in_parts(tmp_path / "parts", program, [2, 3], files=4)
        through = in_parts(tmp_path / "through", program, [2], files=4)
        assert in_parts(tmp_path / "same", program, [2, 2], files=4) == through
    else:
        assert in_parts(tmp_path / "parts", program, workers_of(name), files=4) == uncut(program)


@pytest.mark.parametrize("name", [name for name in KEPT if "Collection" not in name])
def test_an_operator_whose_state_is_on_disk_goes_on(
    tmp_path: Path, name: str, uncut: Callable[[Build], Records], monkeypatch: pytest.MonkeyPatch
) -> None:
    expected = uncut(PROGRAMS[name])
    monkeypatch.setenv("POINTSTAMP_MEMORY", SMALL)
    assert in_parts(tmp_path / "parts", PROGRAMS[name], [1, 1]) == expected


@pytest.mark.parametrize(
    "name",
    [name for name in KEPT if name.startswith("ArrowStream") and DIVISIONS[name] != SAME],
)
def test_columns_on_disk_go_on_with_other_workers(
    tmp_path: Path, name: str, uncut: Callable[[Build], Records], monkeypatch: pytest.MonkeyPatch
) -> None:
    program = RESCALED.get(name, PROGRAMS[name])
    expected = uncut(program)
    monkeypatch.setenv("POINTSTAMP_MEMORY", SMALL)
    assert in_parts(tmp_path / "parts", program, workers_of(name), files=4) == expected


def test_a_frame_goes_on_behind_the_batches_that_were_sent(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(frames, "ROWS", 1)
    frame = pa.table({"n": list(range(ROWS))})
    made: list[str] = []

    def main(worker: ps.Worker) -> None:
        goes_on = worker.resumed is not None
        with worker.dataflow() as scope:
            rows = ps.ArrowStream(scope, frames.frame_to_stream(scope, frame, None))
            [out] = outs(rows)
        if not goes_on:
            while len(out.made) < 5:
                worker.step()
            make_checkpoint(worker)
            made.extend(record for *_, record in out.made[: out.until])
            raise Enough
        worker.run()
        made.extend(record for *_, record in out.made)

    config = settings(tmp_path)
    run_until_stopped(main, config)
    assert 5 <= len(made) < ROWS
    ps.execute(main, config=config)
    assert made == [repr({"n": n}) for n in range(ROWS)]


def test_the_table_has_each_operator_and_is_the_books() -> None:
    for kind, verbs in STATES["CLASSES"].items():
        methods = {name for name in dir(kind) if not name.startswith("_") and callable(getattr(kind, name))}
        assert methods - STATES["OTHERS"] == set(verbs), kind
    assert set(PROGRAMS) == set(DIVISIONS)
    written = (DOCS / "operator-state.md").read_text(encoding="utf-8")
    assert STATES["page"]() == written, "write it again: python docs/states.py"
