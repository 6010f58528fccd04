"""Programs of the book and examples are killed once, and go on: they show nothing but what they show else."""

import os
import re
import signal
import subprocess
import sys
import zlib
from pathlib import Path

import pytest

from book_programs import PROGRAMS, Program

ROOT = Path(__file__).parents[2]
HOOK = ROOT / "tests" / "support" / "checkpointing"

UNRECORDED = re.compile(
    r"capture_into|new_unordered_input|UnorderedInput|EventReader|new_log|mkdir|GraphError|CheckpointError"
    r"|checkpoint=|Interactive|processes=|simulate|time\.|explain|example\(|class .*Sink"
    r"|\.(unary|binary)\w*\(|\.(source|operator|sink|vertex)\("
)
"""The parts of programs that have no part in checkpoints, or say something of the run."""

KILLED = [
    program
    for program in PROGRAMS
    if "execute(" in program.text
    and not UNRECORDED.search(program.text)
    # A computation that had ended would write again to a table, in which another one has its position.
    and not ("Sink(" in program.text and program.text.count("execute(") > 1)
]

EXAMPLES = {
    "barrier.py": [],
    "hello.py": ["--workers", "2"],
    "import_graph.py": ["--modules", "60", "--edits", "10"],
    "live_components.py": ["--people", "500", "--friendships", "550", "--changes", "100"],
    "ping_pong.py": ["--trips", "1000"],
}
"""Examples that may make checkpoints, with arguments. What they print has times of the clock."""


def run(
    program: Path, folder: Path, arguments: list[str], **environment: str
) -> subprocess.CompletedProcess[str]:
    path = os.pathsep.join(filter(None, [str(HOOK), os.environ.get("PYTHONPATH")]))
    return subprocess.run(
        [sys.executable, program, *arguments],
        capture_output=True,
        text=True,
        timeout=380,
        check=False,
        cwd=folder,
        env={**os.environ, "PYTHONPATH": path, "CHECKPOINTS_OF_A_TEST": str(folder / "state"), **environment},
    )


def killed_once(program: Path, folder: Path, arguments: list[str], name: str) -> set[str] | None:
    """Returns the lines that a program prints that is killed at some call of the location, and run again.

    None where the computation has ended before the kill.
    """
    call = 4 + zlib.crc32(name.encode()) % 40
    killed = run(program, folder, arguments, POINTSTAMP_FAILPOINT=f"kill@{call}")
    assert killed.returncode in (0, -signal.SIGABRT), killed.stderr
    if killed.returncode == 0:
        return set(killed.stdout.splitlines())
    again = run(program, folder, arguments)
    if "the computation has ended: checkpoint" in again.stderr:
        return None  # it was killed between its last checkpoint and what it prints of its results
    assert again.returncode == 0, again.stderr
    whole = killed.stdout[: killed.stdout.rfind("\n") + 1]  # it may be killed in the middle of a line
    return {*whole.splitlines(), *again.stdout.splitlines()}


def test_there_are_programs() -> None:
    assert len(KILLED) >= 15


@pytest.mark.parametrize("program", KILLED, ids=lambda program: f"{program.chapter}-{program.line}")
def test_a_program_of_the_book_shows_the_same(program: Program, tmp_path: Path) -> None:
    path = tmp_path / "program.py"
    path.write_text(program.text, encoding="utf-8")
    lines = killed_once(path, tmp_path, [], f"{program.chapter}-{program.number}")
    expected = set(program.output.splitlines())
    if lines is None:
        return
    assert {line.replace(f"{tmp_path}{os.sep}", "") for line in lines} == expected


@pytest.mark.parametrize("name", EXAMPLES)
def test_an_example_goes_on(name: str, tmp_path: Path) -> None:
    assert killed_once(ROOT / "examples" / name, tmp_path, EXAMPLES[name], name)
