"""Requests that come before a program can answer them: SIGUSR1, while `python -m pointstamp` is imported.

By default the signal ends a process. The package sets no handler when it is imported, but for this command.
"""

from __future__ import annotations

import signal
import sys

__all__ = ["begin", "too_early"]


def too_early(number: int, frame: object) -> None:
    """Handles a request before there is a computation to ask: there is nothing to say."""


def begin() -> None:
    """Takes requests while Python is importing this package because of ``python -m``."""
    if sys.argv[:1] != ["-m"]:  # Python's value until it has found the module
        return
    given = sys.orig_argv[: len(sys.orig_argv) - len(sys.argv) + 1]
    request = getattr(signal, "SIGUSR1", None)  # not on every system
    if given[-1:] in (["pointstamp"], ["-mpointstamp"]) and request is not None:
        try:
            if signal.getsignal(request) == signal.SIG_DFL:
                signal.signal(request, too_early)
        except ValueError:
            pass  # not the main thread


begin()
