"""Starting a computation again after a process was lost."""

from __future__ import annotations

import sys
import time
from typing import TYPE_CHECKING, TypeVar

from pointstamp.errors import ClusterError, add_note

if TYPE_CHECKING:
    from collections.abc import Callable

    from pointstamp.restart import Restart

__all__ = ["LostProcess", "Starts", "restarting"]

R = TypeVar("R")

FIRST = 0.1
"""Seconds between the first loss and the next start; twice as long after each further one."""

LONGEST = 30.0
"""The longest wait, in seconds."""


class LostProcess(ClusterError):
    """A process ended without its workers' results."""


LostProcess.__qualname__ = LostProcess.__name__ = "ClusterError"
LostProcess.__module__ = ClusterError.__module__


class Starts:
    """The losses of a computation so far."""

    def __init__(self, restart: Restart) -> None:
        self._restart = restart
        self._losses: list[float] = []

    def lost(self) -> float | None:
        """Notes a loss; returns the seconds until the next start, None where there were too many."""
        now = time.monotonic()
        self._losses = [loss for loss in self._losses if now - loss < self._restart.within]
        if len(self._losses) >= self._restart.times:
            return None
        self._losses.append(now)
        return float(min(FIRST * 2 ** (len(self._losses) - 1), LONGEST))

    def __str__(self) -> str:
        return f"it was started again {len(self._losses)} times within {self._restart.within:g} seconds"


def restarting(run: Callable[[], R], restart: Restart) -> R:
    """Runs a computation, and runs it again when a process is lost.

    Raises:
        ClusterError: If processes were lost too often.
        BaseException: Other exceptions of the computation.
    """
    starts = Starts(restart)
    kinds: tuple[type[BaseException], ...] = (LostProcess, *restart.retry_on)
    while True:
        try:
            return run()
        except kinds as error:
            wait = starts.lost()
            if wait is None:
                add_note(error, str(starts))
                raise
            said = f"{type(error).__name__}: {error}"
        say_restart(said, wait)
        time.sleep(wait)


def say_restart(why: str, wait: float) -> None:
    """Says on standard error why all processes are started again."""
    if sys.stderr is not None:
        sys.stderr.write(f"pointstamp: {why}: all start again from the last checkpoint in {wait:g} s\n")
        sys.stderr.flush()
