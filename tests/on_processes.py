"""Runs tests that are not about processes on them: `pytest -p on_processes ...`, with tests/ on the path.

Where a test asks `pointstamp.execute` for an even number of workers, it gets two processes of half as many.
They are threads, with connections of their own, so that the test can look at what they have seen.
"""

from collections.abc import Callable
from typing import Any

import pointstamp as ps
import processes

alone = ps.execute
clusters = 0


def execute(main: Callable[[ps.Worker], Any], *, workers: int = 1, **options: Any) -> list[Any]:
    global clusters
    if options or workers < 2 or workers % 2:
        return alone(main, workers=workers, **options)
    clusters += 1
    return processes.execute(main, 2, workers // 2)


ps.execute = execute


def pytest_sessionfinish() -> None:
    assert clusters, "no test has asked for two workers: is this what was to be run?"
    print(f"\n{clusters} clusters of two processes")
