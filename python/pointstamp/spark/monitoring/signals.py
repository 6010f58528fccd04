"""Signals that ask a driver why its dataflows wait: SIGUSR1, and Ctrl-C while an action runs.

Handlers are set by the main thread, where the program has none of its own for SIGUSR1; the handler of Ctrl-C
is put in front of the existing one, which is PySpark's. The report is made on a thread of its own: the main
one may hold any lock.
"""

from __future__ import annotations

import os
import signal
import threading
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING, Any

from pointstamp._interrupts import too_early
from pointstamp.observability.stalls import say
from pointstamp.runtime.threads import Helper, join

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["Asked"]

_QUICK = 3.0
"""Seconds that dataflows have to answer before an interruption continues."""


class Asked:
    """Answers signals, until it is ended.

    Args:
        explain: Returns the reasons, within so many seconds.
        briefly: The same of dataflows that run, without asking Spark; empty where there are none.
    """

    def __init__(self, explain: Callable[[], str], briefly: Callable[[float], str]) -> None:
        self._explain = explain
        self._briefly = briefly
        self._process = os.getpid()
        self._helpers: list[Helper] = []
        self._before: dict[int, Any] = {}
        if threading.current_thread() is not threading.main_thread():
            return
        request = getattr(signal, "SIGUSR1", None)  # not on every system
        if request is not None and signal.getsignal(request) in (signal.SIG_DFL, too_early):
            self._take(request, self._on_request)
        if callable(signal.getsignal(signal.SIGINT)):
            self._take(signal.SIGINT, self._on_interruption)

    def _take(self, number: int, handler: Any) -> None:
        self._before[number] = signal.getsignal(number)
        signal.signal(number, handler)

    def _on_request(self, number: int, frame: object) -> None:
        if os.getpid() == self._process:
            self._begin(lambda: say(self._explain()))

    def _on_interruption(self, number: int, frame: object) -> None:
        try:
            if os.getpid() == self._process:
                helper = self._begin(partial(self._say_briefly))
                join([helper], 0.1, patience=2 * _QUICK)
        finally:
            self._before[number](number, frame)

    def _say_briefly(self) -> None:
        if text := self._briefly(_QUICK):
            say(text)

    def _begin(self, function: Callable[[], None]) -> Helper:
        def run() -> None:
            with suppress(Exception):  # Spark may be about to stop
                function()

        helper = Helper(run, "pointstamp-report", daemon=True)
        self._helpers = [*(one for one in self._helpers if one.is_alive()), helper]
        helper.start()
        return helper

    def end(self) -> None:
        """Restores the earlier handlers, where this is the main thread."""
        join(self._helpers, 0.1)
        if threading.current_thread() is threading.main_thread():
            for number, before in self._before.items():
                if signal.getsignal(number) in (self._on_request, self._on_interruption):
                    signal.signal(number, before)
            self._before.clear()
