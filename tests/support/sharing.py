"""The distribution of tests among workers that run at the same time: `pytest -n auto` (tests/conftest.py).

One worker runs all tests of a file, so that the servers of a module's fixture are started once. The files of
`tests/spark` are one group, since they share one Spark: one worker has a JVM. Groups begin in the order of
`FIRST`, then in the order of collection.
"""

import os
from typing import Any

import pytest
from xdist.scheduler import LoadScopeScheduling

TOGETHER = "tests/spark/"
"""The folder whose files are one group."""

FIRST = (
    TOGETHER,
    "tests/package/test_benches.py",
    "tests/observability/test_reports.py",
    "tests/failures/test_garbage.py",
    "tests/observability/test_session_ends.py",
    "tests/package/test_examples.py",
    "tests/processes/test_faults.py",
    "tests/connectors/test_postgres.py",
    "tests/failures/test_flat.py",
    "tests/engine/test_size.py",
    "tests/recovery/test_faults.py",
    "tests/recovery/test_operators.py",
    "tests/recovery/test_killed_programs.py",
    "tests/recovery/test_sources_of_checkpoints.py",
)
"""The groups that take longest (pytest --durations), by name: none of them may begin last."""

MOST = 4
"""Workers at most: each needs memory, and a test that starts processes needs cores."""


def workers() -> int:
    """Returns the number of workers: one more than cores, since most tests wait for a part of their time."""
    return min(len(os.sched_getaffinity(0)) + 1 if hasattr(os, "sched_getaffinity") else 2, MOST)


def group_of(nodeid: str) -> str:
    """Returns the group of a test: its file, or the folder whose files are one group."""
    return TOGETHER if nodeid.startswith(TOGETHER) else nodeid.split("::", 1)[0]


def sort(items: list[pytest.Item]) -> None:
    """Sorts tests by the order in which their groups begin."""
    ranks = {group: rank for rank, group in enumerate(FIRST)}
    items.sort(key=lambda item: ranks.get(group_of(item.nodeid), len(FIRST)))


class Groups(LoadScopeScheduling):  # type: ignore[misc]  # without types
    """Assigns groups of tests, in the order in which the tests are listed."""

    def __init__(self, config: pytest.Config, log: Any = None) -> None:
        super().__init__(config, log)
        config.option.loadscopereorder = False

    def _split_scope(self, nodeid: str) -> str:
        return group_of(nodeid)

    def remove_node(self, node: Any) -> str | None:
        """Assigns the remaining tests of an ended worker; returns the test in which it ended."""
        left = {
            group: [name for name, done in tests.items() if not done]
            for group, tests in self.assigned_work.pop(node).items()
        }
        died_in: str | None = None
        for group, names in left.items():
            if names and died_in is None:
                died_in, *names = names
            if names:
                self.workqueue[group] = dict.fromkeys(names, False)
                self.workqueue.move_to_end(group, last=False)
        if died_in is not None:
            for other in self.assigned_work:
                self._reschedule(other)
        return died_in
