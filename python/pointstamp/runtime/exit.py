"""Computations that still run when the program ends, on threads that the interpreter does not wait for.

CPython before 3.14 ends such a thread where it next takes the interpreter, and unwinds its native frames:
where these are the engine's, the process is ended by a signal. So computations on other threads than the main
one are listed while they run, and stopped by `atexit`, in the way of a lost computation: workers end at their
next step, and Python code is interrupted. The program's end waits for them, for `PATIENCE` at most. A thread
that is blocked in native code for longer stays there, and ends with the process.

`atexit` calls functions in reverse order of registration. This one is registered when the package is
imported: a function of the program that is registered after that runs before, and may end a computation in
its own way.
"""

from __future__ import annotations

import atexit
import os
import threading
import time
from typing import TYPE_CHECKING

from pointstamp.errors import ClusterError, WorkerStopped

if TYPE_CHECKING:
    from collections.abc import Sequence
    from types import TracebackType

    from pointstamp import _core

__all__ = ["StoppedAtExit"]

PATIENCE = 5.0
"""Seconds that the program's end waits for computations."""

_EVERY = 0.1
"""Seconds that a worker has to end by itself; then its Python code is interrupted, again after as many."""


class _Running:
    """A computation that runs on another thread than the main one."""

    def __init__(self, clusters: Sequence[_core.Cluster]) -> None:
        self.clusters = clusters
        self.over = threading.Event()
        self.stopped = False


class _Listed:
    """The processes of this program that are listed."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._running: set[_Running] = set()
        self._ends = False

    def begins(self, running: _Running) -> None:
        """Lists a computation.

        Raises:
            SystemExit: If the program ends already.
        """
        with self._lock:
            if not self._ends:
                self._running.add(running)
                return
        raise _leaving()

    def ended(self, running: _Running) -> None:
        """Removes a computation, whose threads run nothing of the engine any more."""
        with self._lock:
            self._running.discard(running)
        running.over.set()

    def stop(self) -> None:
        """Stops all of them, and waits for their threads."""
        with self._lock:
            self._ends = True
            left = list(self._running)
        for running in left:
            running.stopped = True
            for cluster in running.clusters:
                cluster.abandon("the program has ended")
        end = time.monotonic() + PATIENCE
        while left:
            left[0].over.wait(_EVERY)
            left = [running for running in left if not running.over.is_set()]
            if time.monotonic() > end:
                return
            for running in left:
                for cluster in running.clusters:
                    cluster.interrupt()

    def forked(self) -> None:
        """Begins anew in a process that was forked."""
        # Its threads are not there, and its lock may be held by one of them.
        self._lock = threading.Lock()
        self._running = set()
        self._ends = False


_listed = _Listed()
atexit.register(_listed.stop)
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_listed.forked)


class StoppedAtExit:
    """For as long as a computation runs; on the main thread, which ends before the program, it does nothing.

    A class: `contextlib` would set the traceback of a program's own exception, which may refuse that.

    Raises:
        SystemExit: Once the computation was stopped because the program ends. A thread ends with it silently.
    """

    def __init__(self, *clusters: _core.Cluster) -> None:
        self._clusters = clusters
        self._running: _Running | None = None

    def __enter__(self) -> None:
        if threading.current_thread() is not threading.main_thread():
            self._running = _Running(self._clusters)
            _listed.begins(self._running)

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        if self._running is None:
            return
        try:
            # An exception of another process here, which was stopped first, has no further information.
            if self._running.stopped and (error is None or isinstance(error, WorkerStopped | ClusterError)):
                raise _leaving() from None
        finally:
            _listed.ended(self._running)


def _leaving() -> SystemExit:
    return SystemExit("the program has ended, and its computations with it")
