"""State that changes in place while a checkpoint is written: the state at the cut is written."""

import json
from pathlib import Path
from typing import Any

from killing import kills, rows, run_killed

LINES = 12_000


@kills
def test_what_is_written_is_what_was_at_the_cut(tmp_path: Path) -> None:
    with (tmp_path / "in.jsonl").open("w") as file:
        for line in range(LINES):
            file.write(json.dumps({"day": line // 40, "name": line % 3, "number": line}) + "\n")
    assert run_killed("in_place.py", tmp_path, turns=6) >= 1
    found: dict[int, list[Any]] = {0: [], 1: [], 2: []}
    for name, seen in rows(tmp_path / "out.db", "select name, seen from seen order by rowid"):
        found[name].append(seen)
    for name, seen in found.items():
        numbers = range(name, LINES, 3)
        assert seen == [sum(numbers[: count + 1]) * 1000 + count + 1 for count in range(len(numbers))]
