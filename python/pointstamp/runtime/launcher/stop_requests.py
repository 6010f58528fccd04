"""SIGUSR1, which asks a program on several processes for the reason why it waits.

The launcher passes the signal on to the first process, which answers for all. A process starts with the
signal blocked, and unblocks it when it can answer: the signal ends no process that is just starting.
"""

from __future__ import annotations

import os
import signal
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING

from pointstamp._interrupts import too_early

if TYPE_CHECKING:
    import subprocess
    from collections.abc import Iterable, Iterator

__all__ = ["REQUEST", "ask_first", "held_back", "let_in"]

REQUEST = signal.SIGUSR1


@contextmanager
def held_back() -> Iterator[None]:
    """Processes that are started in the block begin with requests held back."""
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {REQUEST})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def let_in() -> None:
    """In a started process: requests are answered afterwards, if only by nothing."""
    if signal.getsignal(REQUEST) == signal.SIG_DFL:
        signal.signal(REQUEST, too_early)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, {REQUEST})


def ask_first(processes: Iterable[subprocess.Popen[bytes]], number: int = REQUEST) -> None:
    """Passes a signal on to the first process that runs; not to its children, which it may end."""
    for process in processes:
        if process.poll() is None:
            with suppress(ProcessLookupError, PermissionError):
                os.kill(process.pid, number)
            return
