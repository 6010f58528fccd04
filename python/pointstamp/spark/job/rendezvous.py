"""The rendezvous of the tasks of one attempt where one executor runs all of them: over a socket, at once.

In Spark's own exchange of messages, every task polls once a second. Tasks of one executor are processes of
one machine: the first to arrive listens for the others, under a name that only the tasks of this attempt
know. Either all of them meet here, or none does.
"""

from __future__ import annotations

import errno
import os
import socket
import struct
import sys
import time

__all__ = ["met"]

PATIENCE = 5.0
"""Seconds that the first waits for the others, before all of them meet by Spark's exchange."""

LINE = 1 << 16
"""Bytes that a task says, at most."""

_BETWEEN = 0.001
"""Seconds between checks of a task that has the name, and is about to listen or to end."""

_CREDENTIALS = struct.Struct("3i")


def met(name: bytes, mine: str, number: int, count: int) -> list[str] | None:
    """Exchanges messages with the others; returns all of them, or None where they are to meet elsewhere.

    Args:
        name: A name that only this attempt's tasks know.
        mine: The line of this task.
        number: The number of this task.
        count: The number of tasks.
    """
    if sys.platform != "linux":
        return None  # a name that is no file, and ends with its socket, is Linux's
    until = time.monotonic() + PATIENCE
    message = f"{number} {mine}\n".encode()
    try:
        with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as own:
            while time.monotonic() < until:
                if _takes(own, name):
                    own.listen(count)
                    return _first(own, message, count, until)
                own.settimeout(max(until - time.monotonic(), 0.001))
                try:
                    own.connect(b"\0" + name)
                except ConnectionRefusedError:
                    time.sleep(_BETWEEN)
                else:
                    # The first gives up within its patience, which began before this connection: later than
                    # that nobody else has met here either.
                    return _other(own, message, time.monotonic() + 2 * PATIENCE)
    except OSError:
        pass  # no such socket is possible here, or the listener has ended
    return None


def _takes(own: socket.socket, name: bytes) -> bool:
    """Whether the name was free, and is this socket's now."""
    try:
        own.bind(b"\0" + name)
    except OSError as error:
        if error.errno != errno.EADDRINUSE:
            raise
        return False
    return True


def _first(own: socket.socket, message: bytes, count: int, until: float) -> list[str] | None:
    """Receives the lines of all the others, and then sends all lines to each of them."""
    received = {_number(message): message}
    others: list[socket.socket] = []
    try:
        while len(received) < count:
            own.settimeout(max(until - time.monotonic(), 0.001))
            other, _ = own.accept()
            if not _is_ours(other):
                other.close()
                continue
            others.append(other)
            said = _line(other, until)
            received[_number(said)] = said
        combined = b"".join(received[number] for number in sorted(received))
        for other in others:
            other.settimeout(max(until - time.monotonic(), 0.001))
            other.sendall(combined)
        return _messages(combined)
    finally:
        for other in others:
            other.close()


def _other(own: socket.socket, message: bytes, until: float) -> list[str] | None:
    """Sends its line to the first task, and receives all lines; None if the first has ended before."""
    if not _is_ours(own):
        return None
    own.sendall(message)
    combined = b""
    while data := _received(own, until):
        combined += data
    return _messages(combined) or None


def _line(other: socket.socket, until: float) -> bytes:
    said = b""
    while not said.endswith(b"\n"):
        data = _received(other, until)
        if not data or len(said) > LINE:
            raise ConnectionError("a task has gone before all have met, or is none")
        said += data
    return said


def _received(other: socket.socket, until: float) -> bytes:
    """Returns the next message, until a time of the monotonic clock that holds for the whole exchange."""
    other.settimeout(max(until - time.monotonic(), 0.001))
    return other.recv(1 << 12)


def _is_ours(other: socket.socket) -> bool:
    """Whether at the other end is a process of the same user."""
    said = other.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, _CREDENTIALS.size)
    return int(_CREDENTIALS.unpack(said)[1]) == os.geteuid()


def _number(message: bytes) -> int:
    return int(message.split(b" ", 1)[0])


def _messages(combined: bytes) -> list[str]:
    return [line.split(" ", 1)[1] for line in combined.decode().splitlines()]
