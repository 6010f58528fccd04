"""Runs pytest with a journal, a file of the state of each test: `tools/journal.py FILE ARGUMENTS...`.

Tests that passed in an earlier run of the same journal are left out. The journal outlives a run that ends in
the middle of a test, which pytest's own record of failures does not. With `pytest -n`, the controlling
process writes the journal; a test during which a worker ended has begun and has no end. A run that leaves
tests out has no workers: give it `-n 0`.
"""

import sys
from collections.abc import Sequence
from pathlib import Path

import pytest


def states(path: Path) -> dict[str, str]:
    """Returns the state of each test, by name: `passed`, `failed`, or `begun` where its end is missing."""
    lines = path.read_text().splitlines() if path.exists() else []
    return {name: state for state, _, name in (line.partition(" ") for line in lines)}


class _Journal:
    """The hooks of pytest that write, and that leave out."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.passed = {name for name, state in states(path).items() if state == "passed"}
        self.failed: set[str] = set()  # several tests run at a time

    def write(self, state: str, name: str) -> None:
        with self.path.open("a") as file:
            file.write(f"{state} {name}\n")

    def pytest_collection_modifyitems(self, config: pytest.Config, items: list[pytest.Item]) -> None:
        left_out = [item for item in items if item.nodeid in self.passed]
        config.hook.pytest_deselected(items=left_out)
        items[:] = [item for item in items if item.nodeid not in self.passed]

    def pytest_runtest_logstart(self, nodeid: str) -> None:
        self.write("begun", nodeid)

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.failed:
            self.failed.add(report.nodeid)

    def pytest_runtest_logfinish(self, nodeid: str) -> None:
        self.write("failed" if nodeid in self.failed else "passed", nodeid)


def main(argv: Sequence[str]) -> int:
    """Runs the tests and returns pytest's exit status."""
    file, *arguments = argv
    sys.path[0] = str(Path.cwd())  # as for `python -m pytest`: processes that tests start import from there
    return int(pytest.main(arguments, plugins=[_Journal(Path(file))]))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
