"""Runs tests, and what failed once more, by itself: `python tools/once_more.py pytest|cargo ARGUMENTS...`.

A test that passes then does not fail the run. It is a defect all the same, a race in the test or in what it
tests: its first failure stays in the output, and the last lines name it. A run in which more than a few fail
is not repeated, and neither is one that ended before its last test. `cargo` stands for `cargo test`.
"""

import json
import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

FEW = 5
"""So many tests, or so many of cargo's targets, are run again."""

TARGET = re.compile(r"error: (?:doc)?test failed, to rerun pass `(?P<target>[^`]+)`")


def run_pytest(arguments: Sequence[str]) -> tuple[int, list[str]]:
    """Returns the exit status, and the names of the tests that failed once."""
    with tempfile.TemporaryDirectory() as cache:
        command = [sys.executable, "-m", "pytest", "-o", f"cache_dir={cache}", *arguments]
        status = subprocess.call(command)
        failed = Path(cache) / "v" / "cache" / "lastfailed"
        names = list(json.loads(failed.read_text())) if failed.exists() else []
        if status != 1 or not 0 < len(names) <= FEW:
            return status, []
        again(names)
        return subprocess.call([*command, "--last-failed", "--last-failed-no-failures", "none"]), names


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
    print(f"\nrun once more, by themselves: {', '.join(names)}", flush=True)


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
