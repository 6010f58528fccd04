"""Processes of a cluster that are threads of this interpreter, with connections of their own over loopback.

Closures and lists can be looked at by the test, and they start quickly, so that properties can be tested.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

import pointstamp as ps
from pointstamp.cluster import bind

R = TypeVar("R")

alone = ps.execute  # before `on_processes` puts another in its place

SHAPES = [(2, 1), (2, 2), (3, 1), (3, 2)]
"""Processes, and workers of each."""


def outcomes(
    main: Callable[[ps.Worker], R],
    processes: int,
    workers: int = 1,
    *,
    each: Sequence[dict[str, Any]] | None = None,
    **options: Any,
) -> list[list[R] | BaseException]:
    """Runs `pointstamp.execute` in several processes, which are threads; returns each one's results or error.

    The options are for the configurations of all; `each` has further ones for each process.
    """
    bound = [bind() for _ in range(processes)]
    addresses = [address for _, address in bound]
    found: list[list[R] | BaseException] = [AssertionError("it did not end")] * processes

    def process(number: int) -> None:
        try:
            own = {"workers": workers, "secret": "of the tests", **options, **(each[number] if each else {})}
            config = ps.Config(processes=processes, process=number, addresses=addresses, **own)
            found[number] = alone(main, config=config, listener=bound[number][0])
        except BaseException as error:
            found[number] = error

    threads = [threading.Thread(target=process, args=(number,)) for number in range(processes)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return found


def execute(main: Callable[[ps.Worker], R], processes: int, workers: int = 1, **options: Any) -> list[R]:
    """Runs as `pointstamp.execute` with as many workers; raises the original exception."""
    found = outcomes(main, processes, workers, **options)
    failures = [outcome for outcome in found if isinstance(outcome, BaseException)]
    for failure in failures:
        if not isinstance(failure, ps.ClusterError):
            raise failure
    for failure in failures:
        raise failure
    return [result for outcome in found if isinstance(outcome, list) for result in outcome]
