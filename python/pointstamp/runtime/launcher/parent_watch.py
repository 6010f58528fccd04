"""A watch of the parent process: a started process ends, with its own child processes, when its parent ends.

The parent holds the other end of a socket and sends nothing on it. The socket is closed when the parent ends,
also by `kill -9`. (Linux has a signal for this, `PR_SET_PDEATHSIG`; other systems do not.)
"""

from __future__ import annotations

import os
import signal
import threading
import time
from contextlib import suppress
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import socket

PATIENCE = 3.0
"""Seconds between SIGTERM and SIGKILL to this process's group after the parent has ended."""


def hold(watch: socket.socket) -> None:
    """Ends this process and its group once the socket is closed. The process must lead its process group."""
    threading.Thread(target=_end_with, args=(watch,), name="pointstamp-watch", daemon=True).start()


def _end_with(watch: socket.socket) -> None:
    with suppress(OSError):
        while watch.recv(1):
            pass
    for last in (signal.SIGTERM, signal.SIGKILL):
        os.killpg(0, last)
        time.sleep(PATIENCE)
