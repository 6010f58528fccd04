"""The tests that are to notice changes: programs that are built once, and run once for each change."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import tempfile
import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

# A change that has a test allocate without end fails it.
MEMORY = 4 << 20
"""In KiB, of address space."""
QUICK = {"PROPTEST_MAX_SHRINK_ITERS": "0", "PROPTEST_DISABLE_FAILURE_PERSISTENCE": "1", "RUST_BACKTRACE": "0"}
"""A failure is all that is asked for: nothing that makes it smaller, or keeps it."""


@dataclass(frozen=True)
class Program:
    """A test program."""

    name: str
    path: Path
    folder: Path
    """The folder of its package, in which cargo runs it."""


@dataclass(frozen=True)
class Trial:
    """A test program with settings, and its run while no change is chosen."""

    program: Program
    env: dict[str, str]
    seconds: float
    reaches: frozenset[int]
    """The changes whose code it reaches."""

    def notices(self, number: int, patience: float) -> str | None:
        """Returns the way in which a change is noticed: "caught", "timeout", or None if it is not."""
        env = {**self.env, "MUTATION_CHOSEN": str(number)}
        status = _run(self.program, env, patience + 8 * self.seconds)
        return {0: None, None: "timeout"}.get(status, "caught")


def built(cargo: str, to: Path, packages: Sequence[str], env: dict[str, str]) -> list[Program]:
    """Builds the test programs of packages."""
    chosen = [word for package in packages for word in ("-p", package)]
    words = [cargo, "test", "--locked", "--no-run", "--lib", "--tests", "--message-format=json", *chosen]
    run = subprocess.run(words, cwd=to, env=env, stdout=subprocess.PIPE, text=True, check=True)
    programs = []
    for line in run.stdout.splitlines():
        message = json.loads(line)
        if message["reason"] == "compiler-artifact" and message["profile"]["test"] and message["executable"]:
            folder = Path(message["manifest_path"]).parent
            name = f"{folder.name}/{message['target']['name']}"
            programs.append(Program(name, Path(message["executable"]), folder))
    return programs


def tried(program: Program, env: dict[str, str]) -> Trial:
    """Runs a program without a change.

    Raises:
        RuntimeError: It fails.
    """
    with tempfile.TemporaryDirectory() as folder:
        reached = Path(folder) / "reached"
        started = time.monotonic()
        status = _run(program, {**env, "MUTATION_REACHED": str(reached)}, 1800)
        seconds = time.monotonic() - started
        numbers = reached.read_text().split() if reached.exists() else []
    if status != 0:
        raise RuntimeError(f"{program.name} fails without any change: cargo test says how")
    return Trial(program, env, seconds, frozenset(map(int, numbers)))


def _run(program: Program, env: dict[str, str], limit: float) -> int | None:
    """Returns the exit status, 101 as soon as a test has failed, or None once it has run for too long (s)."""
    words = ["sh", "-c", f'ulimit -v {MEMORY} && exec "$0" "$@"', str(program.path)]
    settings = {**os.environ, **QUICK, **env, "CARGO_MANIFEST_DIR": str(program.folder)}
    child = subprocess.Popen(
        words,
        cwd=program.folder,
        env=settings,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )
    passed = threading.Event()

    def stop() -> None:
        passed.set()
        _kill(child)

    timer = threading.Timer(limit, stop)
    timer.start()
    assert child.stdout is not None
    try:
        if any(line.endswith(b" ... FAILED\n") for line in child.stdout):
            return 101
        status = child.wait()
        return None if passed.is_set() else status
    finally:
        timer.cancel()
        timer.join()  # it may be at its end, and not over
        _kill(child)
        child.stdout.close()
        child.wait()


def _kill(child: subprocess.Popen[bytes]) -> None:
    """Ends a program with all that it has started."""
    try:
        os.killpg(child.pid, signal.SIGKILL)
    except ProcessLookupError:
        pass
