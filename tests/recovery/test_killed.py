"""A program that is killed again and again shows each result once."""

import json
import random
from collections import Counter
from pathlib import Path

import pytest

from killing import check_folder, entry, kills, newest, rows, run, run_killed, run_until

NAMES = ["ann", "bob", "cyd", "dan"]
LINES = 40_000


def write_sales(folder: Path) -> dict[str, list[int]]:
    """Writes four files of sales; returns the running totals that each name has."""
    drawn = random.Random(7)
    files = [(folder / f"sales{number}.jsonl").open("w") for number in range(4)]
    totals: Counter[str] = Counter()
    shown: dict[str, list[int]] = {name: [] for name in NAMES}
    for line in range(LINES):
        name = drawn.choice(NAMES)
        files[line % 4].write(json.dumps({"day": line // 40, "name": name, "amount": 1}) + "\n")
        totals[name] += 1
        shown[name].append(totals[name])
    for file in files:
        file.close()
    return shown


@kills
@pytest.mark.parametrize(
    "shapes",
    [[(1, 1)], [(2, 1)], [(1, 2)], [(1, 1), (3, 1), (2, 1), (1, 2)]],
    ids=["one worker", "two workers", "two processes", "other numbers of workers"],
)
def test_each_result_is_shown_once(tmp_path: Path, shapes: list[tuple[int, int]]) -> None:
    expected = write_sales(tmp_path)
    run_killed("sales.py", tmp_path, shapes=shapes, seed=len(shapes))
    check(tmp_path, expected)


@kills
@pytest.mark.parametrize(
    "shapes",
    [[(1, 1), (3, 1), (2, 1), (5, 1)], [(1, 1), (1, 3), (1, 2), (1, 5)]],
    ids=["threads", "processes"],
)
def test_each_number_of_workers_goes_on_from_the_one_before(
    tmp_path: Path, shapes: list[tuple[int, int]]
) -> None:
    """Each but the last is killed after its second checkpoint."""
    expected = write_sales(tmp_path)
    state = tmp_path / "state"
    for shape in shapes[:-1]:
        outcome = run_until("sales.py", tmp_path, *shape, entries=3, env={"PAUSE": "0.001"})
        assert outcome.killed, outcome.said
        assert made_by(state) == shape[0] * shape[1]
    outcome = run("sales.py", tmp_path, *shapes[-1])
    assert outcome.status == 0, outcome.said
    assert made_by(state) == 5
    check(tmp_path, expected)


def made_by(state: Path) -> int:
    """Returns the number of workers of the newest checkpoint."""
    workers: int = entry(state, newest(state))["manifest"]["checkpoint"]["workers"]
    return workers


def check(tmp_path: Path, expected: dict[str, list[int]]) -> None:
    """Checks that the target has each result once, and the location nothing else than its checkpoints."""
    shown: dict[str, list[int]] = {name: [] for name in NAMES}
    for name, total in rows(tmp_path / "totals.db", "select name, total from totals"):
        shown[name].append(total)
    assert {name: sorted(totals) for name, totals in shown.items()} == expected
    check_folder(tmp_path / "state")
