"""Programs for the launcher's tests, each in a directory of its own, and starting the launcher there."""

import os
import subprocess
import sys
import textwrap
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Protocol

SECONDS = 380

# A program's own code, before its function is called, runs in every process, also where no cluster is formed.
# It can only find out by order of arrival in which process it runs; `turn()` gives each a number.
PREAMBLE = """
import os, signal, subprocess, sys, time
from pathlib import Path

here = Path(__file__).parent

def turn():
    for number in range(100):
        try:
            (here / f"turn-{number}").touch(exist_ok=False)
            (here / f"pid-{os.getpid()}").touch()
            return number
        except FileExistsError:
            pass

def wait_for(name):
    while not (here / name).exists():
        time.sleep(0.01)

def main(worker):
    sys.stdout.write(f"worker {worker.index} of {worker.peers} has {sys.argv[1:]}\\n")
"""


class Write(Protocol):
    """Writes a program, after the preamble, and returns its directory."""

    def __call__(self, text: str = ...) -> Path: ...


@contextmanager
def written(directory: Path) -> Iterator[Write]:
    """Yields a writer of program.py in a directory; at the block's end none of its processes may be left."""

    def write(text: str = "") -> Path:
        (directory / "program.py").write_text(PREAMBLE + textwrap.dedent(text))
        return directory

    yield write
    left = [int(path.name[4:]) for path in directory.glob("pid-*")]
    until(lambda: not any(map(alive, left)))


def alive(pid: int) -> bool:
    """Whether a process runs; an ended one that was not waited for does not."""
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    stat = Path(f"/proc/{pid}/stat")
    try:
        return stat.read_text().rpartition(")")[2].split()[0] not in "ZX"
    except (FileNotFoundError, ProcessLookupError):
        return not stat.parent.parent.joinpath("self").exists()


def until(condition: Callable[[], bool], seconds: float = 120) -> None:
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, "it did not come to pass"
        time.sleep(0.01)


@contextmanager
def start(directory: Path, *arguments: str) -> "Iterator[subprocess.Popen[str]]":
    """A launcher, which is killed at the end of the block if it still runs."""
    process = subprocess.Popen(
        [sys.executable, "-W", "error", "-m", "pointstamp", "run", *arguments],
        cwd=directory,
        env={name: value for name, value in os.environ.items() if name != "PYTHONUNBUFFERED"},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    with process:
        try:
            yield process
        finally:
            process.kill()


def run(directory: Path, *arguments: str) -> "tuple[int, str, str]":
    with start(directory, *arguments) as process:
        out, err = process.communicate(timeout=SECONDS)
    return process.returncode, out, err
