"""Runs pytest with a journal, a file of what became of each test: `tools/journal.py FILE ARGUMENTS...`.

What passed in the runs that the file knows is left out. The file outlives a run that ends in the middle of a
test, which pytest's own record of failures does not.
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
        self.failed = False

    def write(self, state: str, name: str) -> None:
        with self.path.open("a") as file:
            file.write(f"{state} {name}\n")

    def pytest_collection_modifyitems(self, config: pytest.Config, items: list[pytest.Item]) -> None:
        left_out = [item for item in items if item.nodeid in self.passed]
        config.hook.pytest_deselected(items=left_out)
        items[:] = [item for item in items if item.nodeid not in self.passed]

    def pytest_runtest_logstart(self, nodeid: str) -> None:
        self.failed = False
        self.write("begun", nodeid)

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        self.failed = self.failed or report.failed

    def pytest_runtest_logfinish(self, nodeid: str) -> None:
        self.write("failed" if self.failed else "passed", nodeid)


def main(argv: Sequence[str]) -> int:
    """Runs the tests and returns pytest's exit status."""
    file, *arguments = argv
    sys.path[0] = str(Path.cwd())  # as for `python -m pytest`: processes that tests start import from there
    return int(pytest.main(arguments, plugins=[_Journal(Path(file))]))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
