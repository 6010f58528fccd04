"""The common part of readers of a connection: connecting, connecting again, and ending while they wait.

A reader's thread waits in the operating system for bytes. `close` comes from another thread and shuts the
socket down, which ends the wait, also during a handshake. Owns the socket, and the limits after which to give
up.
"""

from __future__ import annotations

import errno
import os
import random
import select
import socket
import ssl
import threading
import time as clock
from abc import abstractmethod
from typing import TYPE_CHECKING, Any, TypeVar

from pointstamp.connectors.protocol import PartitionReader
from pointstamp.connectors.rejecting import unreadable
from pointstamp.errors import CodecError, PointstampError, add_note

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

T = TypeVar("T")

__all__ = ["ConnectionReader", "Lost", "Unread", "addresses_of", "keep_alive", "place_of", "wake"]

CONNECTING = 10.0
"""Seconds for a connection and its handshake."""

FIRST, LONGEST = 0.1, 5.0
"""Seconds before the first attempt to connect again, and before each of many."""

KEEP_ALIVE = {"TCP_KEEPIDLE": 30, "TCP_KEEPINTVL": 10, "TCP_KEEPCNT": 3}
"""Seconds of silence, seconds between probes, and the number without an answer that end a connection. The
system's default for the first probe is two hours."""

LOOK = 0.1
"""The interval at which a connecting thread checks whether it should continue, in seconds."""


class Unread(Exception):
    """A message that is left out, and has ended its connection: another one is made."""


class Lost(Exception):
    """A connection that ended where it should not have; `__cause__` has the reason."""


def addresses_of(addresses: str | Iterable[str], what: str) -> list[str]:
    """A list of different addresses, of one or several."""
    found = [addresses] if isinstance(addresses, str) else list(addresses)
    if not found or len(set(found)) < len(found):
        raise ValueError(f"{what} are named each once, and at least one, not {found!r}")
    return found


def place_of(address: str, least: int = 1) -> tuple[str, int]:
    """Host and port of ``host:port``, or ``[::1]:port``."""
    host, _, port = address.rpartition(":")
    if not host or not port.isdecimal() or not least <= int(port) < 65536:
        raise ValueError(f"an address is host:port, and this is {address!r}")
    return host.removeprefix("[").removesuffix("]"), int(port)


class ConnectionReader(PartitionReader[Any]):
    """Reads from a connection, which is made when it is needed.

    Args:
        name: The partition.
        reconnect: Whether another connection is made when one has ended.
        patience: Seconds of failed attempts after which the reader gives up, once it had a connection.
    """

    def __init__(self, name: str, reconnect: bool, patience: float) -> None:
        self.name = name
        self.reconnect = reconnect
        self._patience = patience
        self.closed = threading.Event()
        self._lock = threading.Lock()
        self._reading = threading.Lock()
        self._socket: socket.socket | None = None
        self._connected = False
        self.begun = False
        self._since: float | None = None
        self._pause = FIRST

    # ------------------------------------------------------------ the part of each kind of connection

    @abstractmethod
    def _connect(self) -> None:
        """Makes a connection."""

    @abstractmethod
    def _receive(self) -> list[Any] | None:
        """Returns the records that come next, once some do; None when the other side has ended.

        Raises:
            Lost: If the connection broke. All that came before was returned.
        """

    @abstractmethod
    def _hang_up(self) -> None:
        """Closes the connection, if there is one. Called by the thread that reads, or after it."""

    # ------------------------------------------------------------ the protocol of readers

    def read(self) -> Any:
        """Returns the records that come next, over as many connections as that takes; None at the end."""
        with self._reading:
            return self._read()

    def _read(self) -> Any:
        while not self.closed.is_set():
            try:
                if not self._connected:
                    self._connect()
                    self._connected = self.begun = True
                batch = self._receive()
            except Lost as error:
                cause: BaseException = error.__cause__ or error
                if not self.closed.is_set():
                    self._again(cause)
                continue
            except Unread:
                self._drop()
                self.closed.wait(self._pause)  # a new connection may be sent the same again
                self._pause = min(2 * self._pause, LONGEST)
                return []
            except BaseException as error:
                self._drop()
                if self.closed.is_set():
                    return None  # it was shut down, and says so in its own way
                if isinstance(error, CodecError):
                    add_note(error, "pass on_error='skip', or a sink for lines that cannot be read")
                    unreadable(error)
                raise
            if batch is not None:
                self._since, self._pause = None, FIRST
                return batch
            if not self.reconnect or self.closed.is_set():
                break
            self._again(None)
        self._drop()
        return None

    @property
    def offset(self) -> Any:
        """None: data that was sent once is not sent again."""
        return None

    def seek(self, offset: Any) -> None:
        """Refuses any offset."""
        if offset is not None:
            raise PointstampError(
                f"{self.name} sends its data once, so that it cannot be read from offset {offset!r}: leave "
                "it out of offsets="
            )

    def close(self) -> None:
        """Closes the connection, and ends a thread that waits for it."""
        self.closed.set()
        with self._lock:
            wake(self._socket)
        if self._reading.acquire(timeout=CONNECTING):
            self._drop()
            self._reading.release()

    # ------------------------------------------------------------ connections

    def _drop(self) -> None:
        self._connected = False
        self._hang_up()
        with self._lock:
            self._socket = None

    def _again(self, cause: BaseException | None) -> None:
        """Waits before the next attempt, or gives up."""
        self._drop()
        if not self.reconnect or not self.begun:
            raise cause or Lost()
        now = clock.monotonic()
        self._since = now if self._since is None else self._since
        if now - self._since > self._patience:
            raise PointstampError(
                f"there was no connection to {self.name} for {self._patience:g} seconds: see whether the "
                "server runs, or give the source a longer patience="
            ) from cause
        self.closed.wait(self._pause * random.uniform(0.5, 1))  # not all readers at once
        self._pause = min(2 * self._pause, LONGEST)

    def watch(self, connection: socket.socket) -> None:
        """Notes the socket that is to be shut down; shuts it down at once where the reader was closed."""
        keep_alive(connection)
        with self._lock:
            self._socket = connection
            if self.closed.is_set():
                wake(connection)

    def dial(self, host: str, port: int) -> socket.socket:
        """A connected socket.

        Raises:
            Lost: If no peer answers.
        """
        until = clock.monotonic() + CONNECTING
        refused: BaseException | None = None
        try:
            places = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
        except OSError as error:
            raise Lost from error
        for family, kind, protocol, _, place in places:
            try:
                connection = socket.socket(family, kind, protocol)
            except OSError as error:  # too many files are open, or the family is not known here
                refused = error
                continue
            try:
                self._finish(connection, place, until)
                connection.setblocking(True)
                self.watch(connection)
                return connection
            except BaseException as error:
                connection.close()
                if not isinstance(error, OSError):
                    raise
                refused = type(error)(error.errno, f"{error.strerror or error} ({self.name})")
        raise Lost from refused

    def _finish(self, connection: socket.socket, place: Any, until: float) -> None:
        connection.setblocking(False)
        code = connection.connect_ex(place)
        poll = select.poll()
        poll.register(connection, select.POLLOUT)
        while code == errno.EINPROGRESS and not self.closed.is_set() and clock.monotonic() < until:
            if poll.poll(LOOK * 1000):
                code = connection.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR)
        if self.closed.is_set():
            raise OSError(errno.ECANCELED, os.strerror(errno.ECANCELED))
        if code:
            code = errno.ETIMEDOUT if code == errno.EINPROGRESS else code
            raise OSError(code, os.strerror(code))

    def apart(self, call: Callable[[], T], drop: Callable[[], None]) -> T:
        """Returns the result of a call that cannot be woken: it runs in a thread of its own.

        Args:
            call: The call, which ends by itself at some time.
            drop: Releases the result of the call, and is called by its thread, when the result is not needed.

        Raises:
            Lost: If it is not wanted any more; the thread is left behind.
        """
        done, lock = threading.Event(), threading.Lock()
        said: list[tuple[Any, BaseException | None]] = []
        left = False

        def run() -> None:
            try:
                answer: tuple[Any, BaseException | None] = (call(), None)
            except BaseException as error:  # it belongs to the caller
                answer = (None, error)
            with lock:
                said.append(answer)
                unwanted = left
            done.set()
            if unwanted:
                drop()

        threading.Thread(target=run, name=f"connect to {self.name}", daemon=True).start()
        while not done.wait(LOOK) and not self.closed.is_set():
            pass
        with lock:
            left = not said
        if left:
            raise Lost
        ((result, failed),) = said
        if failed is not None:
            raise failed
        return result  # type: ignore[no-any-return]

    def secured(self, connection: socket.socket, tls: ssl.SSLContext | None, host: str) -> socket.socket:
        """The connection under TLS, if that is wanted."""
        if tls is None:
            return connection
        connection.settimeout(CONNECTING)
        wrapped = tls.wrap_socket(connection, server_hostname=host, do_handshake_on_connect=False)
        try:
            self.watch(wrapped)
            wrapped.do_handshake()
        except BaseException:
            wrapped.close()
            raise
        wrapped.settimeout(None)
        return wrapped


def keep_alive(connection: socket.socket) -> None:
    """Has the system ask whether the other side is there still, and end a connection where it is not."""
    try:
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
        for name, value in KEEP_ALIVE.items():
            if hasattr(socket, name):  # where the system has it
                connection.setsockopt(socket.IPPROTO_TCP, getattr(socket, name), value)
    except OSError:
        pass  # it has closed already, or is no TCP connection


def wake(connection: socket.socket | None) -> None:
    """Ends whatever waits for a socket.

    Under TLS, too, whose own shutdown would remove its state while another thread reads.
    """
    if connection is not None:
        try:
            socket.socket.shutdown(connection, socket.SHUT_RDWR)
        except OSError:
            pass  # it is not connected any more
