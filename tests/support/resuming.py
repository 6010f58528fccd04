"""Runs programs that are stopped at a checkpoint, and run again: helpers of the tests of recovery."""

import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import pointstamp as ps

Main = Callable[[ps.Worker], Any]

LIMIT = 60.0
"""Seconds that a checkpoint may take: a limit against hangs."""


class Enough(Exception):
    """Ends a program where a test wants it."""


def settings(folder: Path, workers: int = 1, **options: Any) -> ps.Config:
    """The configuration of a program that requests its checkpoints."""
    checkpoint = ps.Checkpoint(folder / "state", every=None, **options)
    return ps.Config(workers=workers, checkpoint=checkpoint)


def make_checkpoint(worker: ps.Worker) -> int:
    """Makes a checkpoint, also where all dataflows end before it; returns its number."""
    made = worker.checkpoint()
    end = time.monotonic() + LIMIT
    while not made.done:  # not `step_while`, which returns when no dataflow is left
        assert time.monotonic() < end, made.failed
        worker.step_or_park(0.01)
    assert made.number is not None
    return made.number


def stop_at_checkpoint(worker: ps.Worker) -> None:
    """Makes a checkpoint, and ends the program as if it had failed there."""
    make_checkpoint(worker)
    raise Enough


def run_until_stopped(main: Main, config: ps.Config) -> None:
    """Runs a program that ends by `Enough`, as `stop_at_checkpoint` does it."""
    with pytest.raises(Enough):
        ps.execute(main, config=config)


class Found:
    """Returns the records of a stream on this worker, with their times, in order of arrival."""

    def __init__(self, stream: ps.Stream[Any]) -> None:
        self.records: list[tuple[Any, Any]] = []
        stream.inspect_time(self._take)

    def _take(self, record: Any, time: Any) -> None:
        self.records.append((time, record))
