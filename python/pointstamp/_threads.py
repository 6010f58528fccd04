"""Threads that somebody waits for, whatever interrupts him.

Ctrl-C raises `KeyboardInterrupt` between any two instructions of the main thread, also inside `Thread.start`:
the thread may then begin or not, and nothing says which. `Helper` knows what can be known about that.
"""

from __future__ import annotations

import threading
import time
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

__all__ = ["Helper", "join"]

BEGINS = 1.0
"""Seconds in which a thread begins, if it does; one that is later than that does nothing."""


class Helper(threading.Thread):
    """A thread that runs a function, and knows how far it has come."""

    def __init__(self, function: Callable[[], None], name: str) -> None:
        super().__init__(name=name)
        self._function = function
        self._launched = False
        self._ended = False
        self._given_up = False

    def start(self) -> None:
        """Starts the thread."""
        self._launched = True
        super().start()

    def run(self) -> None:
        """What the thread does."""
        try:
            if not self._given_up:
                self._function()
        finally:
            self._ended = True

    def is_gone(self, *, late: bool) -> bool:
        """Whether it has ended, or was never started; when it is late, also if it has not begun."""
        if self.ident is None and late:
            self._given_up = True
        return not self._launched or self._given_up or (self._ended and not self.is_alive())


def join(threads: Sequence[Helper], every: float, press: Callable[[], None] | None = None) -> None:
    """Waits until threads have ended that were told to; `press` is called every so many seconds meanwhile."""
    late = time.monotonic() + BEGINS
    presses = time.monotonic() + every
    while True:
        try:
            now = time.monotonic()
            waiting = [thread for thread in threads if not thread.is_gone(late=now >= late)]
            if not waiting:
                return
            if press is not None and now >= presses:
                press()
                presses += every
            if waiting[0].is_alive():
                waiting[0].join(every)
            else:
                time.sleep(every / 100)
        except KeyboardInterrupt:
            continue
