"""Runs tests that are not about processes on them: `pytest -p on_processes ...`, tests/support on the path.

Where a test asks `pointstamp.execute` for an even number of workers, it gets two processes of half as many.
With `--processes 3` it is three processes, and a test that is parametrized by 2 or 4 `workers` gets 3 or 6.
They are threads, with connections of their own, so that the test can inspect their observations.
"""

from collections import Counter
from collections.abc import Callable
from typing import Any

import pytest

import pointstamp as ps
import processes_in_threads

alone = ps.execute
shapes: Counter[tuple[int, int]] = Counter()
"""Clusters that were made, by processes and workers of each."""
whole = True
"""Whether no test was left out: failed ones are run again by themselves."""


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--processes", type=int, default=2, help="how many processes a cluster has")


def pytest_configure(config: pytest.Config) -> None:
    processes: int = config.getoption("--processes")

    def execute(main: Callable[[ps.Worker], Any], *, workers: int = 1, **options: Any) -> list[Any]:
        if options or workers < processes or workers % processes:
            return alone(main, workers=workers, **options)
        shapes[processes, workers // processes] += 1
        return processes_in_threads.execute(main, processes, workers // processes)

    ps.execute = execute


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    processes: int = config.getoption("--processes")
    for item in items:
        parameters = item.callspec.params if hasattr(item, "callspec") else {}
        if parameters.get("workers", 1) % 2 == 0:
            parameters["workers"] = parameters["workers"] // 2 * processes


def pytest_deselected(items: list[pytest.Item]) -> None:
    global whole
    whole = whole and not items


@pytest.hookimpl(optionalhook=True)
def pytest_testnodedown(node: Any) -> None:
    """Adds the clusters that were made in a worker of `pytest -n`."""
    for processes, workers, count in getattr(node, "workeroutput", {}).get("shapes", []):
        shapes[processes, workers] += count


def pytest_sessionfinish(session: pytest.Session) -> None:
    if hasattr(session.config, "workeroutput"):
        session.config.workeroutput["shapes"] = [[*shape, count] for shape, count in shapes.items()]
        return
    processes: int = session.config.getoption("--processes")
    for workers in (1, 2) if whole else ():
        assert shapes[processes, workers], f"no test has run on {processes} processes of {workers}: {shapes}"
    print("".join(f"\n{shapes[p, w]} clusters of {p} processes of {w}" for p, w in sorted(shapes)))
