"""Calls of the store that fail or end the process: nothing is lost, doubled or left behind."""

import json
import os
import sys
from pathlib import Path
from typing import Any

import pytest

from children import finished
from effort import EFFORT, seed_of
from killing import PROGRAMS, kills

LIMIT = 450.0 if EFFORT == 1 else 7000.0
"""Seconds that a campaign may take: a limit against hangs."""

STEP = 1 if EFFORT > 1 else 13
"""The distance between two calls that are tried."""


def campaign(folder: Path, **fields: Any) -> dict[str, int]:
    """Runs `faults.py`; returns its report."""
    support = PROGRAMS.parent / "support"
    path = os.pathsep.join([str(support), os.environ.get("PYTHONPATH", "")])
    command = [sys.executable, PROGRAMS / "faults.py", folder, json.dumps(fields)]
    ended = finished(command, LIMIT, {**os.environ, "PYTHONPATH": path})
    assert ended.returncode == 0, ended.stdout + ended.stderr
    said: dict[str, int] = json.loads(ended.stdout.splitlines()[-1])
    return said


@kills
@pytest.mark.timeout(LIMIT)
@pytest.mark.parametrize(
    ("workers", "processes", "where"),
    [(1, 1, 0), (2, 1, 0), (1, 2, 0), (1, 2, 1)],
    ids=["one worker", "two workers", "leader", "other process"],
)
def test_a_process_may_be_killed_at_any_call(
    tmp_path: Path, workers: int, processes: int, where: int
) -> None:
    first = 1 + (workers + 2 * processes + where) % STEP
    found = campaign(tmp_path, workers=workers, processes=processes, where=where, first=first, step=STEP)
    # The leader also makes the entries of the log.
    assert found["tried"] >= (10 if where else 40) // STEP


@kills
@pytest.mark.timeout(LIMIT)
@pytest.mark.parametrize("fault", ["full", "broken"])
def test_a_call_that_fails_once_is_borne(tmp_path: Path, fault: str) -> None:
    found = campaign(tmp_path, fault=fault, workers=2, first=1 + len(fault), step=STEP * 2, last=120)
    assert found["borne"] >= found["tried"] // 3


@kills
@pytest.mark.timeout(LIMIT)
@pytest.mark.parametrize(("processes", "where"), [(1, 0), (2, 0), (2, 1)])
def test_a_disk_that_stays_full_ends_the_program_and_nothing_is_lost(
    tmp_path: Path, processes: int, where: int
) -> None:
    found = campaign(
        tmp_path, fault="full+", processes=processes, where=where, first=2, step=STEP * 4, last=90
    )
    assert found["tried"] > 0


@kills
@pytest.mark.timeout(LIMIT)
@pytest.mark.parametrize(("workers", "processes"), [(2, 1), (1, 2)])
def test_faults_may_follow_each_other(
    tmp_path: Path, workers: int, processes: int, pytestconfig: pytest.Config
) -> None:
    kills = 3 if EFFORT == 1 else 50 * EFFORT
    seed = 10 * seed_of(pytestconfig) + workers
    found = campaign(tmp_path, workers=workers, processes=processes, again=kills, seed=seed)
    print(found)
    assert found["killed"] >= kills
