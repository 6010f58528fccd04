"""The line of `python -m pointstamp run`: on a terminal, and nowhere else."""

import fcntl
import os
import pty
import struct
import subprocess
import sys
import termios
import textwrap
from typing import Any

import pytest

PROGRAM = """
import time

def main(worker):
    with worker.dataflow("days") as scope:
        numbers, stream = scope.new_input()
        probe = stream.probe()
    numbers.advance_to(7)
    end = time.monotonic() + 2.5
    print("begun")
    while time.monotonic() < end:
        worker.step_or_park(0.05)
    print("ended")
"""


@pytest.fixture
def program(tmp_path: Any) -> str:
    path = tmp_path / "job.py"
    path.write_text(textwrap.dedent(PROGRAM))
    return f"{path}:main"


def on_terminal(command: list[str]) -> tuple[int, str]:
    """Returns the text that a program writes whose output and errors are a terminal."""
    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 100, 0, 0))
    try:
        with subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=theirs, stderr=theirs) as process:
            os.close(theirs)
            written = b""
            while True:
                try:
                    data = os.read(ours, 1 << 16)
                except OSError:  # the terminal is closed
                    break
                written += data
            return process.wait(60), written.decode()
    finally:
        os.close(ours)


@pytest.mark.parametrize("processes", [1, 2])
def test_it_is_shown_on_a_terminal_beside_what_the_program_writes(program: str, processes: int) -> None:
    command = [sys.executable, "-m", "pointstamp", "run", "-n", str(processes), program]
    code, written = on_terminal(command)
    assert code == 0
    assert "'days' at 7" in written
    lines = [line.rpartition("\r")[2] for line in written.replace("\r\n", "\n").splitlines()]
    for word in ("begun", "ended"):
        assert lines.count(word) == processes, written
    assert "\x1e" not in written


def test_nothing_is_written_to_a_pipe(program: str) -> None:
    command = [sys.executable, "-m", "pointstamp", "run", "-n", "2", program]
    ended = subprocess.run(command, capture_output=True, text=True, timeout=380)
    assert sorted(ended.stdout.split()) == ["begun", "begun", "ended", "ended"]
    assert ended.stderr == ""
