"""Runs tests, and failed ones once more: `python tools/once_more.py pytest|cargo ARGUMENTS...`.

A test that passes then does not fail the run. It is a defect all the same, a race in the test or in the
tested code: its first failure stays in the output, and the last lines name it. A run in which more than a few
fail is not repeated. Tests are run again alone, also where the first run had several workers (`pytest -n`).

A process of pytest ends at a test that hangs (`faulthandler_timeout` in pyproject.toml), and the stacks of
its threads are printed last, too. If it was one of several workers, another one takes over its other tests.
If not, the next run has the tests that were not begun. A run in which a process of pytest ended otherwise is
not repeated. `cargo` stands for `cargo test`.
"""

import os
import re
import subprocess
import sys
import tempfile
import threading
from collections.abc import Sequence
from pathlib import Path

import journal

FEW = 20
"""So many tests, or so many of cargo's targets, are run again: a loaded machine makes several fail."""

HUNG = "Timeout ("
"""The first words of faulthandler where a test took too long."""

STACK = re.compile(r'Timeout \(|(Current t|T)hread 0x|  File "|  \.\.\.$|  <')
"""Begins a line of faulthandler; the others are of workers that continue."""

NOT_THE_TEST = ("/_pytest/", "/pluggy/", "/xdist/", "/execnet/", journal.__file__)

FRAMES = 6
"""So many of a thread's innermost frames are repeated."""

TARGET = re.compile(r"error: (?:doc)?test failed, to rerun pass `(?P<target>[^`]+)`")


def call_pytest(file: Path, arguments: Sequence[str]) -> tuple[int, list[str]]:
    """Returns the exit status, and faulthandler's lines where a test hung."""
    command = [sys.executable, journal.__file__, str(file), *arguments]
    child = subprocess.Popen(command, stderr=subprocess.PIPE, text=True, errors="replace")
    stacks: list[str] = []

    def pass_on() -> None:
        assert child.stderr is not None
        for line in child.stderr:
            sys.stderr.write(line)
            if line.startswith(HUNG) or (stacks and STACK.match(line)):
                stacks.append(line.rstrip())

    reader = threading.Thread(target=pass_on, daemon=True)
    reader.start()
    status = child.wait()
    reader.join(5)  # Not to its end: a process that a test forked may hold it open.
    return status, stacks


def innermost(stacks: Sequence[str]) -> list[str]:
    """Returns the innermost frames of each thread, without those of pytest."""
    lines: list[str] = []
    frames = 0
    for line in stacks:
        if "hread 0x" in line:
            frames = 0
            lines.append(line)
        elif not any(place in line for place in NOT_THE_TEST) and frames < FRAMES:
            frames += 1
            lines.append(line)
    return lines


def run_pytest(arguments: Sequence[str]) -> tuple[int, list[str]]:
    """Returns the exit status, and the names of the tests that failed or hung once."""
    names: list[str] = []
    stood: list[str] = []
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "journal"
        while True:
            status, stacks = call_pytest(file, arguments)
            states = journal.states(file)
            bad = [name for name, state in states.items() if state != "passed"]
            hung = [name for name in bad if states[name] == "begun"]
            stood += [line for name in hung for line in [f"hung: {name}", *innermost(stacks)]]
            twice = set(names) & set(bad)
            if status != 1 or not bad or twice or len(names) + len(bad) > FEW or (hung and not stacks):
                break
            again(bad)
            names += bad
            arguments = [*arguments, "-n", "0"]  # alone
    if stood:
        print("", *stood, sep="\n", flush=True)
    return status, names if status == 0 else []


def run_cargo(arguments: Sequence[str]) -> tuple[int, list[str]]:
    """Returns the exit status, and the targets in which a test failed once, as cargo names them."""
    cargo = os.environ.get("CARGO", "cargo")
    child = subprocess.Popen([cargo, "test", "--no-fail-fast", *arguments], stderr=subprocess.PIPE, text=True)
    assert child.stderr is not None
    targets: list[str] = []
    for line in child.stderr:
        sys.stderr.write(line)
        if found := TARGET.match(line):
            targets.append(found["target"])
    status = child.wait()
    if status == 0 or not 0 < len(targets) <= FEW:
        return status, []
    again(targets)
    for target in targets:
        if status := subprocess.call([cargo, "test", "--locked", *target.split()]):
            break
    return status, targets


def again(names: Sequence[str]) -> None:
    """Says that these are run again."""
    print(f"\nrun once more: {', '.join(names)}", flush=True)


def main(argv: Sequence[str]) -> int:
    """Runs the tests and returns the exit status."""
    run = {"pytest": run_pytest, "cargo": run_cargo}[argv[0]]
    status, names = run(argv[1:])
    if status == 0 and names:
        print("\nfailed once and passed when run again, which is a defect to be mended:")
        print("".join(f"  {name}\n" for name in names), end="", flush=True)
    return status


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
