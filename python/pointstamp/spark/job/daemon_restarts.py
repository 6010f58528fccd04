"""Keeping a task's process when Spark restarts the daemon that forked it.

Spark's `PythonWorkerFactory` takes a task that is killed while its Python process starts for a lost daemon:
it ends the daemon, which sends SIGHUP to all processes that it has forked, those of other jobs too. So one
failed job ended the dataflows of others. The daemon also sends it when the executor has ended, and then this
process must end: it checks whether the executor still runs.
"""

from __future__ import annotations

import os
import signal
import threading
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["outliving_the_daemon"]

_LOOK = 1.0
"""Seconds between checks of the executor, once the daemon has ended."""


@contextmanager
def outliving_the_daemon() -> Iterator[None]:
    """While the block runs, SIGHUP ends this process only if the executor has ended, too.

    Output here goes to the daemon's pipe, which is closed then; it is redirected to the null device, so that
    printing does not raise. Where the system has no ``/proc``, nothing is changed: Spark then runs the stage
    again.
    """
    executor = _parent(os.getppid())
    if executor is None or threading.current_thread() is not threading.main_thread():
        yield  # only the main thread can handle a signal
        return
    over = threading.Event()

    def end_with_it() -> None:
        while _runs(executor):
            if over.wait(_LOOK):
                return
        os.kill(os.getpid(), signal.SIGKILL)  # no receiver of a report is left

    def on_hangup(_signal: int, _frame: object) -> None:
        _print_to_nowhere()
        threading.Thread(target=end_with_it, name="pointstamp-executor", daemon=True).start()

    before = signal.signal(signal.SIGHUP, on_hangup)
    try:
        yield
    finally:
        over.set()
        signal.signal(signal.SIGHUP, before)  # Spark gives the process to other tasks afterwards


def _print_to_nowhere() -> None:
    nowhere = os.open(os.devnull, os.O_WRONLY)
    for descriptor in (1, 2):
        os.dup2(nowhere, descriptor)
    os.close(nowhere)


def _status(process: int) -> list[str] | None:
    """Returns the fields of a process's state, after its name; None where there is no such process."""
    try:
        text = Path(f"/proc/{process}/stat").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return None
    return text.rpartition(")")[2].split()


def _parent(process: int) -> int | None:
    status = _status(process)
    return None if status is None else int(status[1])


def _runs(process: int) -> bool:
    status = _status(process)
    return status is not None and status[0] != "Z"
