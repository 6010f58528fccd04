"""Targets and origins of captured events that are objects of Python's, beside files that Rust opens.

Owns the two ends of a socket, a named pipe or a binary file object. Writing happens in the capturing
operator, which waits while the other side does not read. Reading happens in a thread of its own. It waits for
bytes without using processor time, passes them to a feed, waits until they are taken, and ends with the feed.
Its errors are raised by the operator that replays.
"""

from __future__ import annotations

import errno
import fcntl
import io
import os
import select
import selectors
import socket
import stat
import threading
import time
from contextlib import suppress
from typing import TYPE_CHECKING, Any, NamedTuple

from pointstamp.errors import GraphError

if TYPE_CHECKING:
    from pointstamp._core import EventFeed

PIECE = 256 * 1024
"""Bytes that are read at once."""

LOOK_UP = 0.25
"""Seconds after which a thread that waits for a pipe looks whether more is wanted still."""

ASK_AGAIN = 0.02
"""Seconds after which a pipe without a reader is tried again."""

PATIENCE = 60
"""Seconds that an end waits for a thread that ends by itself: on a loaded machine that may take a while."""

FORBEARANCE = 1
"""Seconds that an end waits for a thread that may stand in a call that nothing wakes: it is left behind, and
ends when the object gives something, or with the process."""


def is_socket(carrier: Any) -> bool:
    """Whether something sends and receives as a connected socket does."""
    return isinstance(carrier, socket.socket)


def is_pipe(path: str | os.PathLike[str]) -> bool:
    """Whether a path is a named pipe: opening one waits for the other side."""
    try:
        return stat.S_ISFIFO(os.stat(path).st_mode)
    except (OSError, ValueError):
        return False


class Pipe(NamedTuple):
    """A named pipe to read.

    Attributes:
        path: Of the pipe.
        follow: Whether to wait for another writer when all have closed it.
    """

    path: str
    follow: bool


def check_connected(connection: socket.socket) -> None:
    """Refuses a socket that listens, or is not connected: waiting for it would have no end.

    Raises:
        ValueError: If it is not connected.
    """
    try:
        connection.getpeername()
    except OSError as error:
        if error.errno == errno.ENOTCONN:
            raise ValueError(
                f"{connection!r} is not connected: of a socket that listens take accept()[0]"
            ) from None
        raise


class SocketTarget:
    """Writes to a connected socket, which is closed at the end."""

    def __init__(self, connection: socket.socket) -> None:
        connection.setblocking(True)
        with suppress(OSError):  # a family without this option: TCP alone waits before it sends
            connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._socket = connection

    def write(self, data: bytes) -> None:
        """Sends all bytes."""
        # In pieces: a worker whose computation has ended elsewhere is interrupted between two of them. TLS
        # has no flags, and waits within a piece.
        flags = 0 if hasattr(self._socket, "cipher") else getattr(socket, "MSG_DONTWAIT", 0)
        rest = memoryview(data)
        with selectors.DefaultSelector() as room:
            room.register(self._socket, selectors.EVENT_WRITE)
            while rest:
                if room.select(LOOK_UP):
                    with suppress(BlockingIOError):
                        rest = rest[self._socket.send(rest[:PIECE], flags) :]

    def finish(self) -> None:
        """Says that nothing more comes."""
        try:
            self._socket.shutdown(socket.SHUT_WR)
        except OSError:
            pass  # the other side has left, after everything for it was sent
        self._socket.close()

    def __del__(self) -> None:
        self._socket.close()


class PipeTarget:
    """Writes to a named pipe, which is opened once there is something to write and a reader."""

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self._path = os.fspath(path)
        self._descriptor: int | None = None

    def write(self, data: bytes) -> None:
        """Writes all bytes.

        Writes in pieces that need not wait: a worker whose computation has ended elsewhere is interrupted
        between two.
        """
        if self._descriptor is None:
            self._descriptor = self._opened()
        rest = memoryview(data)
        while rest:
            if _is_ready(self._descriptor, select.POLLOUT):
                with suppress(BlockingIOError):
                    rest = rest[os.write(self._descriptor, rest[:PIECE]) :]

    def _opened(self) -> int:
        while True:
            try:
                descriptor = os.open(self._path, os.O_WRONLY | os.O_NONBLOCK)
            except OSError as error:
                if error.errno != errno.ENXIO:  # it has no reader yet
                    raise
                time.sleep(ASK_AGAIN)
                continue
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                os.close(descriptor)
                raise GraphError(
                    f"another writer is writing to {self._path}: give each worker and each stream a pipe of "
                    "its own"
                ) from None
            return descriptor

    def finish(self) -> None:
        """Says that nothing more comes."""
        descriptor, self._descriptor = self._descriptor, None
        if descriptor is not None:
            os.close(descriptor)

    def __del__(self) -> None:
        self.finish()


class FileTarget:
    """Writes to a binary file object, which stays open."""

    def __init__(self, file: Any) -> None:
        self._file = file

    def write(self, data: bytes) -> None:
        """Writes all bytes, and flushes the object's buffer."""
        rest = memoryview(data)
        while rest:
            written = self._file.write(rest)
            if not written:
                raise BlockingIOError(f"{self._file!r} takes nothing now: captures need a file that waits")
            rest = rest[written:]
        self._flush()

    def finish(self) -> None:
        """Every event was flushed; other targets than files may need more at the end."""
        finish = getattr(self._file, "finish", None)
        if finish is not None:
            finish()

    def _flush(self) -> None:
        flush = getattr(self._file, "flush", None)
        if flush is not None:
            flush()


def start_reading(carrier: Any, feed: EventFeed) -> None:
    """Starts the thread that reads a socket, which it closes at the end, or a binary file object.

    The thread ends with its feed: it is joined when no more is wanted.
    """
    read = _read_socket if is_socket(carrier) else _read_pipe if isinstance(carrier, Pipe) else _read_file
    over = threading.Event()
    thread = threading.Thread(
        target=_run, args=(read, carrier, feed, over), name="pointstamp reader", daemon=True
    )

    def stop() -> None:
        ends = isinstance(carrier, Pipe)  # which polls between reads
        if is_socket(carrier):
            try:
                carrier.shutdown(socket.SHUT_RDWR)  # wakes the thread
                ends = True
            except OSError:
                pass  # it is closed: by the thread, which has set `over`, or by others, which wakes no thread
        elif hasattr(carrier, "wake"):
            carrier.wake()
            ends = True
        if thread.is_alive():  # else it has ended, or begins in a moment and finds the feed closed
            thread.join(PATIENCE if ends or over.is_set() else FORBEARANCE)

    feed.on_close(stop)
    thread.start()


def _run(read: Any, carrier: Any, feed: EventFeed, over: threading.Event) -> None:
    try:
        try:
            read(carrier, feed)
        finally:
            over.set()
            if is_socket(carrier):
                carrier.close()
    except BaseException as error:  # any error: it belongs to the operator that replays
        feed.end(error)
    else:
        feed.end()


def _read_socket(connection: socket.socket, feed: EventFeed) -> None:
    connection.setblocking(True)
    while not feed.closed and (data := connection.recv(PIECE)) and feed.feed(data):
        pass


def _is_ready(file: Any, event: int) -> bool:
    """Waits for a moment for a file, or a descriptor, that can be read or written."""
    poll = select.poll()  # `select` takes no descriptor past 1,023
    poll.register(file, event)
    return bool(poll.poll(LOOK_UP * 1000))


def _read_pipe(pipe: Pipe, feed: EventFeed) -> None:
    # Opened so, it is there at once; that it can be read says that there is a writer, or was one.
    descriptor = os.open(pipe.path, os.O_RDONLY | os.O_NONBLOCK)
    with open(descriptor, "rb", buffering=0) as file:
        while not feed.closed:
            if not _is_ready(file, select.POLLIN):
                continue
            data = file.read(PIECE)
            if data is None:
                continue  # another reader of the pipe was first
            if data and not feed.feed(data):
                return
            if not data and not pipe.follow:
                return
            if not data:
                time.sleep(LOOK_UP)  # it can be read, until another writer comes


def _read_file(file: Any, feed: EventFeed) -> None:
    if isinstance(file, io.BufferedReader) and _waits(file.raw):
        # Bytes in a buffer do not make a descriptor readable: they are taken first, and then the pipe is read
        # itself.
        there = _buffered(file)
        if there and not feed.feed(there):
            return
        file = file.raw
    read = getattr(file, "read1", file.read)  # the available bytes, rather than a complete piece later
    waits = _waits(file)
    while not feed.closed:
        if waits and not _is_ready(file, select.POLLIN):
            continue
        data = read(PIECE)
        if not isinstance(data, (bytes, bytearray, memoryview)):
            raise TypeError(f"{file!r} gives {type(data).__name__}, not bytes: open it in binary mode")
        if not data or not feed.feed(bytes(data)):
            return


def _buffered(file: io.BufferedReader) -> bytes:
    """Returns the bytes that were read ahead, or can be had without waiting."""
    descriptor = file.fileno()
    blocking = os.get_blocking(descriptor)
    os.set_blocking(descriptor, False)
    try:
        return file.read1(len(file.peek(1)))
    finally:
        os.set_blocking(descriptor, blocking)


def _waits(file: Any) -> bool:
    """Whether reading may wait for others, as on a pipe, and says before that it would."""
    try:
        mode = os.fstat(file.fileno()).st_mode
    except (AttributeError, OSError, ValueError):
        return False
    return (stat.S_ISFIFO(mode) or stat.S_ISCHR(mode)) and not isinstance(file, io.BufferedIOBase)
