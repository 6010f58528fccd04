"""Threads that are waited for, whatever interrupts the waiting thread.

Ctrl-C raises `KeyboardInterrupt`, and a signal handler of the user's own any exception, between any two
instructions of the main thread. That includes `Thread.start`, where nothing shows whether the thread will
run, and `Thread.join`, after which CPython before 3.13 takes a running thread for one that has ended. So each
thread itself notes whether it has begun, and when it ends.

Python prints and drops exceptions of `__del__`. Where an operator waits for its threads there, the
interruption is kept until its worker has left it.
"""

from __future__ import annotations

import math
import threading
import time
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

__all__ = ["Helper", "join", "raise_deferred", "raised_later"]

_LONG = 2.0
"""Seconds that an interruption waits for threads; another that comes later leaves them to themselves."""


_deferred: list[BaseException] = []


@contextmanager
def raised_later() -> Iterator[None]:
    """For the body of `__del__`: an exception that interrupts it is raised at the worker's next step.

    Raises:
        BaseException: Other exceptions than interruptions, which Python prints.
    """
    try:
        yield
    except BaseException as error:
        if isinstance(error, Exception) or threading.current_thread() is not threading.main_thread():
            raise
        _deferred.append(error)


def raise_deferred() -> None:
    """Raises an exception that has interrupted a `__del__` of this run.

    Raises:
        BaseException: The first such.
    """
    if _deferred and threading.current_thread() is threading.main_thread():
        first = _deferred[0]
        _deferred.clear()
        raise first


class Helper(threading.Thread):
    """Runs a function once; never, where `start` was interrupted and its end is waited for first."""

    def __init__(self, function: Callable[[], None], name: str, *, daemon: bool | None = None) -> None:
        super().__init__(name=name, daemon=daemon)
        self._function = function
        self._verdict: dict[str, bool] = {}
        self._runs = False
        """Whether `start` has returned: then the thread begins, however late."""
        self._ended = threading.Event()

    def start(self) -> None:
        """Starts it."""
        super().start()
        self._runs = True

    def run(self) -> None:
        """Runs the thread's function."""
        try:
            if self._begins(True):
                self._function()
        finally:
            self._ended.set()

    def ends(self, seconds: float) -> bool:
        """Waits for its end, for at most so many seconds; whether it is over."""
        if not self._runs and not self._begins(False):
            return True
        if not self._ended.wait(seconds):
            return False
        # No limit: it has ended, but for its last instructions.
        self.join()
        return True

    def _begins(self, wish: bool) -> bool:
        # The first caller decides, in one step, and gets the same result if interrupted and asking again.
        return self._verdict.setdefault("begins", wish)


def join(
    threads: Sequence[Helper],
    every: float,
    press: Callable[[], None] = lambda: None,
    *,
    patience: float = math.inf,
) -> bool:
    """Waits until threads that should end have ended, and calls `press` at intervals meanwhile.

    Args:
        threads: The threads.
        every: Seconds between calls of `press`.
        press: The call that may make them end.
        patience: Seconds to wait at most.

    Returns:
        Whether they have ended.

    Raises:
        BaseException: The exception that interrupts the wait: when it is over, or long after it has begun.
    """
    begin = time.monotonic()
    interruption, over = None, False
    while True:
        try:
            while not (over := all(thread.ends(every) for thread in threads)):
                if time.monotonic() - begin > patience:
                    break
                press()
            break
        except BaseException as error:  # of a signal's handler, or of `press`
            interruption = error
            if time.monotonic() - begin > _LONG:
                break
    if interruption is not None:
        raise interruption
    return over
