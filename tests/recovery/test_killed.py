"""A program that is killed again and again shows each result once."""

import json
import random
from collections import Counter
from pathlib import Path

import pytest

from killing import check_folder, kills, rows, run_killed

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
    shown: dict[str, list[int]] = {name: [] for name in NAMES}
    for name, total in rows(tmp_path / "totals.db", "select name, total from totals"):
        shown[name].append(total)
    assert {name: sorted(totals) for name, totals in shown.items()} == expected
    check_folder(tmp_path / "state")
