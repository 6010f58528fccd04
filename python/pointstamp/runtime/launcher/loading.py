"""SIGTERM while the program is imported: it says where that stands, and ends the process as by default.

A computation, which answers the signal at length, has not begun. A program that is imported may set a handler
of its own, which stays.
"""

from __future__ import annotations

import signal
import threading
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from pointstamp import _core
from pointstamp.observability.stalls import STUCK, say

if TYPE_CHECKING:
    from collections.abc import Iterator
    from types import FrameType

__all__ = ["answering"]


@contextmanager
def answering(name: str) -> Iterator[None]:
    """While the block runs, which imports a program of this name, the signal is answered."""

    def on_terminate(number: int, frame: FrameType | None) -> None:
        signal.signal(number, signal.SIG_DFL)
        where = "" if frame is None else f", at {frame.f_code.co_filename}:{frame.f_lineno}"
        say(f"SIGTERM came while {name} was imported{where}. Nothing has run")
        signal.raise_signal(number)

    main = threading.current_thread() is threading.main_thread()
    if not main or signal.getsignal(signal.SIGTERM) != signal.SIG_DFL:
        yield
        return
    signal.signal(signal.SIGTERM, on_terminate)
    guard: Any = _core.Guard(STUCK)
    try:
        yield
    finally:
        guard.end()
        if signal.getsignal(signal.SIGTERM) is on_terminate:
            signal.signal(signal.SIGTERM, signal.SIG_DFL)
