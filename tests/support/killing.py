"""Programs that are killed and run again: helpers of the tests of recovery.

A program is a file in `tests/recovery`. It is run as `python PROGRAM FOLDER ...`, reads and writes in the
folder, and keeps its checkpoints in `FOLDER/state`.
"""

import json
import os
import random
import signal
import sqlite3
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any, NamedTuple

import pytest

PROGRAMS = Path(__file__).parents[1] / "recovery"
"""The folder of the programs."""

LIMIT = 300.0
"""Seconds that a program may take: a limit against hangs."""

kills = pytest.mark.skipif(not hasattr(os, "killpg"), reason="needs process groups")
"""The mark of tests that kill programs."""


class Outcome(NamedTuple):
    """The end of a run of a program."""

    status: int
    """The exit status, as of `subprocess`: of a program that was killed, the signal below 0."""
    said: str
    """Its standard error."""

    @property
    def killed(self) -> bool:
        """Whether it was killed, here or by a failpoint."""
        return self.status in (-signal.SIGKILL, -signal.SIGABRT)

    @property
    def ended(self) -> bool:
        """Whether the computation has come to its end, in this run or before it."""
        return self.status == 0 or "the computation has ended" in self.said


def entries(state: Path) -> list[int]:
    """Returns the numbers in the log of a location, in order."""
    log = state / "log"
    return sorted(int(name) for name in os.listdir(log) if name.isdecimal()) if log.is_dir() else []


def newest(state: Path) -> int:
    """Returns the highest number in the log of a location; 0 where there is none."""
    return max(entries(state), default=0)


def run(
    program: str,
    folder: Path,
    *arguments: object,
    until: Callable[[], bool] | None = None,
    env: Mapping[str, str] | None = None,
    limit: float = LIMIT,
) -> Outcome:
    """Runs a program to its end, or kills it, and all that it started, once a condition holds.

    Args:
        program: The name of its file.
        folder: Its folder, the first argument.
        arguments: Further ones.
        until: The condition; it is asked every millisecond.
        env: Variables that are added to the environment.
        limit: Seconds that it may take.

    Raises:
        AssertionError: If it takes longer.
    """
    command = [sys.executable, str(PROGRAMS / program), str(folder), *map(str, arguments)]
    # A group of its own: so processes that it starts are killed with it.
    child = subprocess.Popen(
        command,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
        env={**os.environ, "PYTHONFAULTHANDLER": "1", **(env or {})},
    )
    end, said = time.monotonic() + limit, ""
    try:
        while True:
            try:
                _, said = child.communicate(timeout=0.001 if until is not None else limit)
                break
            except subprocess.TimeoutExpired:
                if time.monotonic() >= end:
                    child.send_signal(signal.SIGABRT)  # which has it say where it stands
                    _, said = child.communicate(timeout=20)
                    raise AssertionError(f"{program} hangs\n{said[-6000:]}") from None
                if until is not None and until():
                    os.killpg(child.pid, signal.SIGKILL)
                    until = None
    finally:
        try:
            os.killpg(child.pid, signal.SIGKILL)
        except ProcessLookupError:
            pass  # all have ended
        child.wait()
    return Outcome(child.returncode, said)


def run_until(
    program: str, folder: Path, *arguments: object, entries: int, env: Mapping[str, str] | None = None
) -> Outcome:
    """Runs a program until its log has so many more entries: a fence is one, and each checkpoint."""
    state = folder / "state"
    enough = newest(state) + entries
    return run(program, folder, *arguments, until=lambda: newest(state) >= enough, env=env)


def run_killed(
    program: str, folder: Path, *, shapes: Sequence[Sequence[object]] = ((),), turns: int = 12, seed: int = 0
) -> int:
    """Kills a program again and again after one to four entries of its log, and then runs it to its end.

    Args:
        program: The name of its file.
        folder: Its folder.
        shapes: Its further arguments, in turn.
        turns: The maximum number of kills.
        seed: Draws when.

    Returns:
        The number of kills.

    Raises:
        AssertionError: If a run fails.
    """
    drawn = random.Random(seed)
    for turn in range(turns):
        outcome = run_until(program, folder, *shapes[turn % len(shapes)], entries=drawn.randint(1, 4))
        if outcome.ended:
            return turn
        assert outcome.killed, outcome.said
    outcome = run(program, folder, *shapes[0])
    assert outcome.ended, outcome.said
    return turns


def rows(database: Path, query: str) -> list[tuple[Any, ...]]:
    """Returns the result of a query of an SQLite database; an empty one where its table is missing."""
    with closing(sqlite3.connect(database)) as connection:
        try:
            return list(connection.execute(query))
        except sqlite3.OperationalError as error:
            if "no such table" in str(error):
                return []
            raise


def entry(state: Path, number: int) -> dict[str, Any]:
    """Returns an entry of the log."""
    text = (state / "log" / str(number)).read_text()
    found: dict[str, Any] = json.loads(text[: text.rindex("\ncrc32c ")])
    return found


def check_folder(state: Path) -> None:
    """Checks that a location has the objects that its newest entry names, and no others.

    Raises:
        AssertionError: If something is missing or left over.
    """
    last = entry(state, newest(state))
    manifest = last["manifest"]  # none, where it is a fence
    log = {last["number"], *(kept["number"] for kept in last["kept"])}
    packs = {name for kept in last["kept"] for name in kept["packs"]}
    if manifest is not None:
        packs.update(pack["name"] for pack in manifest["packs"])
    expected = {"head", *(f"log/{number}" for number in log), *packs}
    found = {str(path.relative_to(state)) for path in state.rglob("*") if not path.is_dir()}
    assert found == expected, f"left: {sorted(found - expected)}, missing: {sorted(expected - found)}"
