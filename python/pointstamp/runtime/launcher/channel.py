"""Objects between a program and the processes that it started: pickled, behind their length, on a socket.

Both ends are the program's own: what arrives was sent by code of this package, under the same user.
"""

from __future__ import annotations

import pickle
import struct
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import socket

__all__ = ["LENGTH", "frame", "receive"]

LENGTH = struct.Struct("<Q")
"""The header of each object: its length in bytes."""


def frame(message: Any) -> bytes:
    """An object as it is sent."""
    data = pickle.dumps(message, protocol=5)
    return LENGTH.pack(len(data)) + data


def receive(channel: socket.socket) -> Any:
    """Waits for the next object.

    Raises:
        EOFError: If the other end has closed the channel.
    """
    (length,) = LENGTH.unpack(_exactly(channel, LENGTH.size))
    return pickle.loads(_exactly(channel, length))


def _exactly(channel: socket.socket, size: int) -> bytearray:
    data = bytearray(size)
    view = memoryview(data)
    while view:
        # No limit: the other end is the process that started this one, and its end closes the channel.
        count = channel.recv_into(view)
        if count == 0:
            raise EOFError("the other process has closed the channel")
        view = view[count:]
    return data
