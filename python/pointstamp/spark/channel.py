"""Messages between the driver, the resident processes, and tasks that bring rows to them or fetch some.

A connection carries pickled messages, each with its length before it. Both ends first prove that they know
the secret, by answering the other's random challenge; until then only bytes of a fixed number are read, and
for a few seconds at most, so a stranger can have nothing unpickled and hold up nobody.
"""

from __future__ import annotations

import hashlib
import hmac
import pickle
import secrets
import socket
import struct
import threading
from typing import TYPE_CHECKING, Any

from pointstamp._errors import ClusterError
from pointstamp._listening import listening

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["Channel", "Server", "connect"]

_PATIENCE = 10.0
"""Seconds for a connection to be made and both ends to prove themselves."""

_NONCE = 32
_LENGTH = struct.Struct("<Q")


class Channel:
    """A connection, both ends of which have proved themselves. One thread may send while another receives."""

    def __init__(self, connection: socket.socket) -> None:
        self._connection = connection
        self._sending = threading.Lock()

    def send(self, message: Any) -> None:
        """Sends anything that can be pickled."""
        data = pickle.dumps(message, protocol=5)
        with self._sending:
            self._connection.sendall(_LENGTH.pack(len(data)))
            self._connection.sendall(data)

    def receive(self) -> Any:
        """The next message.

        Raises:
            EOFError: If the other end has closed.
        """
        (length,) = _LENGTH.unpack(_read(self._connection, _LENGTH.size))
        return pickle.loads(_read(self._connection, length))

    def close(self) -> None:
        """Closes it; who receives at either end gets an EOFError."""
        try:
            self._connection.shutdown(socket.SHUT_RDWR)
        except OSError:
            pass  # the other end has closed
        self._connection.close()

    def __enter__(self) -> Channel:
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()


def connect(address: tuple[str, int], secret: bytes) -> Channel:
    """A channel to a server.

    Raises:
        ClusterError: If nobody is there who knows the secret.
    """
    where = f"{address[0]}:{address[1]}"
    try:
        connection = socket.create_connection(address, timeout=_PATIENCE)
    except OSError as error:
        raise ClusterError(f"nothing of the resident cluster can be reached at {where}: {error}") from error
    try:
        _prove(connection, secret, b"client", b"server")
    except (OSError, EOFError) as error:
        connection.close()
        raise ClusterError(f"what listens at {where} is not of this resident cluster: {error}") from error
    return _opened(connection)


class Server:
    """Accepts channels on a port of its own, each of which is served by a thread.

    Args:
        host: The interface, by a name that others have for it.
        secret: What both ends prove.
        serve: Called with each channel; it is closed when that returns.
    """

    def __init__(self, host: str, secret: bytes, serve: Callable[[Channel], None]) -> None:
        self._secret = secret
        self._serve = serve
        self._listener, _ = listening(host, or_all=True)
        self._listener.settimeout(1)
        self.port: int = self._listener.getsockname()[1]
        self._channels: set[Channel] = set()
        self._greeted: set[threading.Thread] = set()
        self._closed = False
        self._lock = threading.Lock()
        self._accepting = threading.Thread(target=self._accept, name="pointstamp-server", daemon=True)
        self._accepting.start()

    def _accept(self) -> None:
        while True:
            try:
                connection, _ = self._listener.accept()
            except TimeoutError:
                continue  # not everywhere does closing it wake who accepts
            except OSError:
                return  # closed
            thread = threading.Thread(
                target=self._greet, args=(connection,), name="pointstamp-channel", daemon=True
            )
            with self._lock:
                self._greeted = {greeted for greeted in self._greeted if greeted.is_alive()} | {thread}
                thread.start()

    def _greet(self, connection: socket.socket) -> None:
        connection.settimeout(_PATIENCE)
        try:
            _prove(connection, self._secret, b"server", b"client")
        except (OSError, EOFError):
            connection.close()
            return  # a stranger
        channel = _opened(connection)
        with self._lock:
            if self._closed:
                channel.close()
                return
            self._channels.add(channel)
        try:
            self._serve(channel)
        except (OSError, EOFError):
            pass  # the other end has gone
        finally:
            with self._lock:
                self._channels.discard(channel)
            channel.close()

    def close(self) -> None:
        """Accepts nothing any more, closes what is open, and waits until its threads have ended."""
        with self._lock:
            self._closed = True
            channels = list(self._channels)
        try:
            self._listener.shutdown(socket.SHUT_RDWR)  # wakes the thread that accepts
        except OSError:
            pass  # not everywhere can what listens be shut down
        self._listener.close()
        for channel in channels:
            channel.close()
        for thread in [self._accepting, *self._greeted]:
            if thread is not threading.current_thread():
                thread.join(_PATIENCE)  # a stranger is waited for no longer than it may take


def _prove(connection: socket.socket, secret: bytes, mine: bytes, theirs: bytes) -> None:
    challenge = secrets.token_bytes(_NONCE)
    connection.sendall(challenge)
    challenged = _read(connection, _NONCE)
    connection.sendall(hmac.digest(secret, mine + challenged + challenge, hashlib.sha256))
    answer = _read(connection, hashlib.sha256().digest_size)
    if not hmac.compare_digest(answer, hmac.digest(secret, theirs + challenge + challenged, hashlib.sha256)):
        raise EOFError("it does not know the secret")


def _opened(connection: socket.socket) -> Channel:
    connection.settimeout(None)
    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return Channel(connection)


def _read(connection: socket.socket, size: int) -> bytearray:
    data = bytearray(size)
    view = memoryview(data)
    while view:
        count = connection.recv_into(view)
        if count == 0:
            raise EOFError("the connection was closed")
        view = view[count:]
    return data
