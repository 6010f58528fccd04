"""`TCPListenSource`: lines of text from all clients that connect."""

from __future__ import annotations

import errno
import logging
import math
import os
import selectors
import socket
import threading
import time as clock
import warnings
from functools import partial
from typing import TYPE_CHECKING, Any

from pointstamp.connectors.network.lines import Lines
from pointstamp.connectors.network.reader import addresses_of, keep_alive, place_of
from pointstamp.connectors.protocol import PartitionReader, Source
from pointstamp.connectors.rejecting import OnError, Rejected, checked, unreadable
from pointstamp.errors import CodecError, PointstampError, TruncatedWarning

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

__all__ = ["TCPListenSource"]

PIECE = 64 * 1024
"""Bytes of a connection that are received at once, so that the others get their turn."""

NO_ROOM = {errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM}
"""Errors by which the system says that it has no room for a connection, which waits."""

GONE = {
    *(errno.EAGAIN, errno.ECONNABORTED, errno.EPROTO, errno.EPERM, errno.ENOPROTOOPT, errno.EOPNOTSUPP),
    *(errno.ENETDOWN, errno.ENETUNREACH, errno.EHOSTDOWN, errno.EHOSTUNREACH, errno.ETIMEDOUT),
}
"""Errors of a connection that has closed again: Linux reports them on accepting."""

STARVED = 0.5
"""Seconds until a system that had no room is asked again."""

RESERVED = 64
"""Descriptors of the process that connections leave to the program; a quarter, where it may have few."""

LOG = logging.getLogger("pointstamp")


class TCPListenSource(Source[str]):
    r"""Lines of text that others send: each address is listened at, and is a partition.

    One worker listens at an address and reads all connections to it, each line whole. The lines of a
    connection keep their order. A connection that sends a line that is too long, or is not text, is closed,
    with a
    `TruncatedWarning`: strangers do not end the dataflow. Every host that reaches the address can send:
    listen at a loopback address, or behind a proxy that checks certificates.

    Connections take at most `most` times `max_line` bytes of memory for lines that have begun, and leave 64
    descriptors to the program. Senders that finish no line cannot keep others out: see `yields`.

    Args:
        addresses: ``host:port``, or several. For port 0 the system chooses one, which is in `bound`.
        limit: The number of connections that are taken; when they have ended, the stream does. None for no
            end.
        most: The maximum number of open connections; others wait.
        encoding: Of the text.
        max_line: Bytes of a line at most.
        silence: Seconds without a whole line after which a connection is closed; None for never. The system
            detects a machine that has disappeared, after about a minute.
        yields: Seconds without a whole line after which a connection is closed where another waits for its
            place.
        on_error: The treatment of lines that are too long, or no text: as in `CSVSource`. None closes the
            connection that sent one, and the others continue.
        journal: Whether lines are logged beside the checkpoints before they are sent. With checkpoints, the
            source needs it: lines that were received and not logged before a failure are lost.

    Raises:
        ValueError: For an invalid address, and numbers that are not positive.

    Examples:
        >>> import socket, threading
        >>> import pointstamp as ps
        >>> from pointstamp.connectors.network import TCPListenSource
        >>> source = TCPListenSource("127.0.0.1:0", limit=1)
        >>> def send():
        ...     with socket.create_connection(source.bound("127.0.0.1:0")) as connection:
        ...         connection.sendall(b"tick\ntock\n")
        >>> thread = threading.Thread(target=send)
        >>> thread.start()
        >>> ps.example(lambda scope: scope.read(source).capture()).extract()
        [(0, ['tick', 'tock'])]
        >>> thread.join()
    """

    acknowledges = False
    rewinds = False

    def __init__(
        self,
        addresses: str | Iterable[str],
        *,
        limit: int | None = None,
        most: int = 1000,
        encoding: str = "utf-8",
        max_line: int = 1 << 20,
        silence: float | None = None,
        yields: float = 60.0,
        on_error: OnError | None = None,
        journal: bool = False,
    ) -> None:
        if journal:
            self.journal = self.acknowledges = True
        self.on_error = None if on_error is None else checked(on_error)
        self._addresses = addresses_of(addresses, "addresses")
        for address in self._addresses:
            place_of(address, least=0)
        if most < 1 or (limit is not None and limit < 1):
            raise ValueError(f"at least one connection is taken, not {limit!r} with {most!r} at once")
        if silence is not None and not silence > 0:
            raise ValueError(f"silence is a number of seconds, more than 0, not {silence!r}")
        if not yields > 0:
            raise ValueError(f"yields is a number of seconds, more than 0, not {yields!r}")
        self._limit = limit
        self._most = most
        self._silence = silence
        self._yields = yields
        self._lines = partial(Lines, max_line, encoding, raises=self.on_error in (None, "raise"))
        self._lines()  # an unknown encoding is an error here
        self._listens = threading.Condition()
        self._bound: dict[str, tuple[str, int]] = {}

    def partitions(self) -> list[str]:
        """The addresses."""
        return self._addresses

    def bound(self, address: str, *, timeout: float = 10.0) -> tuple[str, int]:
        """Host and port that a worker of this process listens at, once it does.

        Raises:
            TimeoutError: If none does.

        Examples:
            >>> import socket, threading
            >>> import pointstamp as ps
            >>> from pointstamp.connectors.network import TCPListenSource
            >>> source = TCPListenSource("127.0.0.1:0", limit=1)
            >>> def send():
            ...     host, port = source.bound("127.0.0.1:0")
            ...     socket.create_connection((host, port)).close()
            >>> thread = threading.Thread(target=send)
            >>> thread.start()
            >>> ps.example(lambda scope: scope.read(source).capture()).extract()
            []
            >>> thread.join()
        """
        with self._listens:
            if not self._listens.wait_for(lambda: address in self._bound, timeout):
                raise TimeoutError(f"no worker of this process listens at {address!r}")
            return self._bound[address]

    def open(self, partition: str) -> PartitionReader[str]:
        """A reader that listens."""
        host, port = place_of(partition, least=0)
        family = socket.AF_INET6 if ":" in host else socket.AF_INET
        try:
            listener = socket.create_server((host, port), family=family)
        except OSError as error:
            raise type(error)(error.errno, f"{error.strerror} ({partition})") from error
        with self._listens:
            self._bound[partition] = listener.getsockname()[:2]
            self._listens.notify_all()
        reader = _Reader(
            partition, listener, self._limit, self._most, self._lines, self._silence, self._yields
        )
        reader.raises = self.on_error == "raise"
        return reader


def _is_short(listener: socket.socket) -> bool:
    """Returns whether the process has few descriptors left, by the number of the next one."""
    try:
        import resource
    except ImportError:  # the platform has no such limit
        return False
    most, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    if most == resource.RLIM_INFINITY:
        return False
    try:
        following = os.dup(listener.fileno())
    except OSError:
        return True
    os.close(following)
    return following >= most - min(RESERVED, most // 4)


class _Reader(PartitionReader[str]):
    """Waits for all connections in one thread."""

    def __init__(
        self,
        name: str,
        listener: socket.socket,
        limit: int | None,
        most: int,
        lines: Callable[[], Lines],
        silence: float | None,
        yields: float,
    ) -> None:
        self._name = name
        self.raises = False
        """Whether a line that cannot be read ends the dataflow, and not its connection alone."""
        self._rejected: list[Rejected] = []
        self._failed: CodecError | None = None
        self._left = limit
        self._most = most
        self._lines = lines
        self._silence = silence
        self._yields = yields
        self._closed = threading.Event()
        self._reading = threading.Lock()
        self._woken, self._waker = socket.socketpair()
        listener.setblocking(False)
        self._listener: socket.socket | None = listener
        self._listens = False
        self._starved = 0.0
        """Until when no connection is taken, because the system has no room for one; 0 where it has."""
        self._warned = False
        self._open: dict[socket.socket, Lines] = {}
        self._heard: dict[socket.socket, float] = {}
        """The time of the last end of a line, or of the connection: the oldest has the next turn."""
        self._selector = selectors.DefaultSelector()
        self._selector.register(self._woken, selectors.EVENT_READ)

    def read(self) -> Any:
        with self._reading:
            while not self._closed.is_set():
                self._listen()
                if self._failed is not None:
                    raise unreadable(self._failed)
                if self._listener is None and not self._open:
                    return None
                lines: list[str] = []
                looked = clock.monotonic()
                for key, _ in self._selector.select(self._wait()):
                    if key.fileobj is self._listener:
                        self._accept()
                    elif key.fileobj in self._open:
                        lines += self._receive(key.fileobj)
                self._end_silent(looked)
                if lines or self._rejected:
                    return lines
            return None

    def _listen(self) -> None:
        """Takes connections, or leaves them waiting, as there is room."""
        if self._listener is None:
            return
        if clock.monotonic() >= self._starved:
            self._starved = 0.0
        room = len(self._open) < self._most or clock.monotonic() >= self._yields_at()
        wanted = room and not self._starved
        if wanted and not self._listens:
            self._selector.register(self._listener, selectors.EVENT_READ)
        elif self._listens and not wanted:
            self._selector.unregister(self._listener)
        self._listens = wanted

    def _yields_at(self) -> float:
        """Returns when the connection without a line for longest has to give its place to a waiting one."""
        return next(iter(self._heard.values())) + self._yields if self._heard else math.inf

    def _accept(self) -> None:
        assert self._listener is not None
        is_short = _is_short(self._listener)
        if is_short or len(self._open) >= self._most:
            if clock.monotonic() < self._yields_at():
                if is_short:
                    self._starve("the process has few descriptors left")
                return
            why = f"it is closed, as another waits and no line came for {self._yields:g} seconds"
            self._drop(next(iter(self._heard)), why)
        try:
            connection, _ = self._listener.accept()
        except OSError as error:
            if error.errno in NO_ROOM:
                self._starve(error.strerror or str(error))
            elif error.errno not in GONE:
                raise
            return
        self._warned = False
        keep_alive(connection)
        connection.setblocking(False)
        self._open[connection] = self._lines()
        self._heard[connection] = clock.monotonic()
        self._selector.register(connection, selectors.EVENT_READ)
        if self._left is not None:
            self._left -= 1
            if not self._left:
                self._selector.unregister(self._listener)
                self._listener.close()
                self._listener = None

    def _starve(self, why: str) -> None:
        """Accepts no connection for a while: nothing would signal a free place."""
        if not self._warned:
            LOG.warning("%s takes no connections for a while: %s", self._name, why)
        self._starved, self._warned = clock.monotonic() + STARVED, True

    def _receive(self, connection: socket.socket) -> list[str]:
        lines = self._open[connection]
        found: list[str] = []
        try:
            data = connection.recv(PIECE)
            if data:
                found = lines.feed(data)
                if found:
                    self._heard.pop(connection)
                    self._heard[connection] = clock.monotonic()
                self._rejected += lines.take_rejected(self._name)
                lines.check()
                return found
            found, why = lines.rest(), None
            self._rejected += lines.take_rejected(self._name)
        except BlockingIOError:
            return []  # nothing has come after all
        except OSError as error:
            why = f"it broke within a line ({error})" if lines.within else None
        except CodecError as error:
            why = f"it is closed: {error}"
            if self.raises:
                self._failed = error
        self._drop(connection, why)
        self._starved = 0.0  # there is room again
        return found

    def take_rejected(self) -> list[Rejected]:
        taken, self._rejected = self._rejected, []
        return taken

    def _wait(self) -> float | None:
        """Returns the seconds for which nothing need be done if nothing arrives."""
        due = [self._starved] if self._starved else []
        if self._silence is not None and self._heard:
            due.append(next(iter(self._heard.values())) + self._silence)
        if self._listener is not None and not self._listens and not self._starved and self._heard:
            due.append(self._yields_at())
        return max(min(due) - clock.monotonic(), 0) if due else None

    def _end_silent(self, looked: float) -> None:
        """Closes connections of which no line had come for long at a look that found none either."""
        while self._silence is not None and self._heard:
            connection, since = next(iter(self._heard.items()))
            if looked < since + self._silence:
                return
            within = self._open[connection].within
            why = f"it is closed: no line came for {self._silence:g} seconds"
            self._drop(
                connection, f"{why}, within a line of which {within} bytes are dropped" if within else None
            )

    def _drop(self, connection: socket.socket, why: str | None) -> None:
        self._selector.unregister(connection)
        del self._open[connection], self._heard[connection]
        connection.close()
        if why is not None:
            warnings.warn(f"{self._name}: of a connection: {why}", TruncatedWarning, stacklevel=2)

    @property
    def offset(self) -> Any:
        return None

    def seek(self, offset: Any) -> None:
        if offset is not None:
            raise PointstampError(
                f"{self._name} is sent its data once, so that it cannot be read from offset {offset!r}: "
                "leave it out of offsets="
            )

    def close(self) -> None:
        if self._closed.is_set():
            return
        self._closed.set()
        self._waker.send(b"x")
        with self._reading:
            for connection in [*self._open, self._woken, self._waker]:
                connection.close()
            if self._listener is not None:
                self._listener.close()
            self._open.clear()
            self._selector.close()
