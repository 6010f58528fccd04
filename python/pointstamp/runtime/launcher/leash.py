"""The leash of a process that was started here: it ends, with what it has started, when its starter ends.

The other end of the socket is the starter's, which sends nothing on it. The socket comes to its end when the
starter does, however that came about, also by `kill -9`. (On Linux a signal could do that,
`PR_SET_PDEATHSIG`; other systems have nothing such.)
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
"""Seconds between asking this process's group to end, when the starter is gone, and making it."""


def hold(leash: socket.socket) -> None:
    """Ends this process and its group once the leash comes to its end. Needs: it leads a group of its own."""
    threading.Thread(target=_end_with, args=(leash,), name="pointstamp-leash", daemon=True).start()


def _end_with(leash: socket.socket) -> None:
    with suppress(OSError):
        while leash.recv(1):
            pass
    for last in (signal.SIGTERM, signal.SIGKILL):
        os.killpg(0, last)
        time.sleep(PATIENCE)
