"""Messages between processes: between a program and the processes that it starts, and inside Spark.

A channel carries pickled messages. It begins in one of two ways, and nothing is unpickled before:

- `pair` makes a channel and the socket of its other end, which a process inherits and passes to `inherited`.
  The pair has no address, so no other process can connect to it.
- `connect` reaches a `Server` over TCP. Both ends prove that they know a secret, by a handshake that never
  sends it, and that they mean the same server and run the same version. Everything after that is
  encrypted and authenticated. A recorded handshake is rejected.

Limits, which are equal for all channels:

- A message has at most `LIMIT` bytes. The sender raises an error before it sends more. The receiver ends the
  channel, and allocates memory as bytes arrive, not as they are announced.
- A handshake takes at most `PATIENCE` seconds. Unauthenticated connections are bounded in number by a
  `Gate`, and each has a thread: a silent or slow one does not block others. A flood of them delays
  members, and does not make them fail. The logger "pointstamp.channel" gets a warning of each rejection.
- After the handshake there is no time limit: the next message may be the end of a long computation. TCP's
  keepalive ends a channel to a lost machine, and the end of a process ends its channels.
"""

from __future__ import annotations

import logging
import pickle
import socket
import threading
import time
from typing import TYPE_CHECKING, Any

from pointstamp import _core
from pointstamp.errors import ClusterError
from pointstamp.runtime.bootstrap.gate import PAUSE, Gate
from pointstamp.runtime.bootstrap.listening import listening

if TYPE_CHECKING:
    from collections.abc import Callable

    from pointstamp.runtime.bootstrap.gate import PendingConnection

__all__ = ["LIMIT", "MessageChannel", "Server", "connect", "inherited", "pair", "pickled"]

LIMIT = 1 << 32
"""Bytes of a message, at most."""

PATIENCE = 10.0
"""Seconds for a connection to be made and both ends to prove themselves."""

REMEMBERED = 1 << 17
"""Handshakes of which a recording is rejected, at least; twice as many at most."""

_log = logging.getLogger("pointstamp.channel")


def _context(name: str) -> dict[str, str]:
    """Returns the facts that must be equal at both ends of a connection to a server of this name."""
    return {"the server": name, "pointstamp": _core.__version__}


def _name(address: tuple[str, int]) -> str:
    return f"{address[0]}:{address[1]}"


def pickled(message: Any) -> bytes:
    """Pickles a message for `MessageChannel.send_pickled`.

    Raises:
        ValueError: If it has more than `LIMIT` bytes.
        Exception: If it cannot be pickled.
    """
    data = pickle.dumps(message, protocol=5)
    if len(data) > LIMIT:
        raise ValueError(
            f"a message of {len(data):,} bytes, pickled, is longer than the {LIMIT:,} bytes that processes "
            "exchange at once: send less, or in several parts, for example by files"
        )
    return data


class MessageChannel:
    """One end of a channel. One thread may receive while others send; messages of several threads stay whole.

    Args:
        link: The link that carries the messages as bytes.
    """

    def __init__(self, link: _core.MessageLink) -> None:
        self._link = link

    def send(self, message: Any) -> None:
        """Sends an object that can be pickled. Waits while the other end takes nothing.

        Raises:
            OSError: If the channel has ended.
            ValueError: If the message has more than `LIMIT` bytes, pickled; nothing was sent.
            Exception: If it cannot be pickled; nothing was sent.
        """
        self.send_pickled(pickled(message))

    def send_pickled(self, data: bytes) -> None:
        """Sends a message that `pickled` has returned. Waits while the other end takes nothing.

        Raises:
            OSError: If the channel has ended.
        """
        self._link.send(data)

    def receive(self) -> Any:
        """Waits for the next message and unpickles it.

        Raises:
            EOFError: If the other end has closed between two messages.
            OSError: If the channel broke inside a message, the message has more than `LIMIT` bytes, or it was
                changed on the way. The channel has ended.
            Exception: If the message cannot be unpickled here. The channel continues with the next one.
        """
        # No limit: the next message may be the end of a long computation. The system ends a link to a lost
        # machine.
        data = self._link.receive(LIMIT)
        if data is None:
            raise EOFError("the other process has closed the channel")
        return pickle.loads(data)

    def close(self) -> None:
        """Ends the channel from any thread: threads that wait in it at either end get an error."""
        self._link.close()

    def __enter__(self) -> MessageChannel:
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()


def pair() -> tuple[MessageChannel, socket.socket]:
    """Returns a channel, and the socket of its other end for a process to inherit.

    Raises:
        OSError: If there are too many open files.
    """
    here, there = socket.socketpair()
    try:
        return inherited(here.detach()), there
    except BaseException:
        there.close()
        raise


def inherited(descriptor: int) -> MessageChannel:
    """Returns the channel of a descriptor that this process has inherited, and takes over.

    Raises:
        OSError: If it is not a socket.
    """
    return MessageChannel(_core.MessageLink.inherited(descriptor))


def connect(address: tuple[str, int], secret: bytes, name: str | None = None) -> MessageChannel:
    """Returns a channel to a server.

    Args:
        address: Host and port of the server.
        secret: The secret that both ends prove to know.
        name: The server's name; its address if it has no other.

    Raises:
        ClusterError: If no server there has this name and the secret, within `PATIENCE` seconds.
    """
    where = _name(address)
    server = "the server" if name is None else f"the server {name!r}"
    try:
        link = _core.MessageLink.connect(*address, secret, _context(name or where), PATIENCE)
    except PermissionError as error:
        raise ClusterError(
            f"what listens at {where} is not {server} of this cluster: {error}. Both ends must run the same "
            "release and have been started by the same driver"
        ) from error
    except OSError as error:
        raise ClusterError(
            f"{server} of this cluster cannot be reached at {where}: {error}. See whether its process still "
            "runs, and whether a firewall is between"
        ) from error
    return MessageChannel(link)


class _Handshakes:
    """The keys of earlier handshakes, to reject recordings; the oldest are forgotten."""

    def __init__(self) -> None:
        self._now: set[bytes] = set()
        self._before: set[bytes] = set()

    def add(self, key: bytes) -> bool:
        """Adds a key, and returns whether it is new."""
        if key in self._now or key in self._before:
            return False
        if len(self._now) >= REMEMBERED:
            self._before, self._now = self._now, set()
        self._now.add(key)
        return True


class Server:
    """Accepts channels on a port of its own, and serves each on a thread.

    Args:
        host: The interface, by a name that other machines have for it.
        secret: The secret that both ends prove to know.
        serve: Called with each channel, which is closed when the call returns.
        name: The server's name for `connect`; its address by default.

    Attributes:
        port: The port on which it listens.

    Raises:
        OSError: If it cannot listen there.
    """

    def __init__(
        self, host: str, secret: bytes, serve: Callable[[MessageChannel], None], name: str | None = None
    ) -> None:
        self._secret = secret
        self._serve = serve
        self._listener, _ = listening(host, or_all=True)
        self._listener.settimeout(1)
        self.port: int = self._listener.getsockname()[1]
        self._context = _context(name or _name((host, self.port)))
        self._channels: set[MessageChannel] = set()
        self._handshakes = _Handshakes()
        self._gate = Gate(name or _name((host, self.port)), _log)
        self._threads: set[threading.Thread] = set()
        self._closed = False
        self._lock = threading.Lock()
        self._accepting = threading.Thread(target=self._accept, name="pointstamp-server", daemon=True)
        self._accepting.start()

    def _accept(self) -> None:
        while self._gate.make_room():
            try:
                connection, address = self._listener.accept()
            except TimeoutError:
                continue  # closing the listener does not wake this thread on every system
            except OSError as error:
                if self._closed:
                    return
                # The connection broke before it was accepted, or there are too many open files: both pass.
                _log.warning("a connection could not be accepted: %s", error)
                time.sleep(PAUSE)
                continue
            try:
                self._begin(connection, _name(address))
            except (OSError, RuntimeError) as error:  # no more files, no more threads
                _log.warning("a connection could not be served: %s", error)
                connection.close()
                time.sleep(PAUSE)

    def _begin(self, connection: socket.socket, origin: str) -> None:
        """Starts the thread of a connection."""
        peer = self._gate.enter(connection, origin)
        thread = threading.Thread(
            target=self._run, args=(connection, peer), name="pointstamp-channel", daemon=True
        )
        with self._lock:
            try:
                thread.start()
            except RuntimeError:
                self._gate.leave(peer)
                raise
            self._threads = {known for known in self._threads if known.is_alive()} | {thread}

    def _run(self, connection: socket.socket, peer: PendingConnection) -> None:
        try:
            channel = self._authenticated(connection, peer)
        except OSError as error:
            self._gate.turned_away(peer.origin, peer.sent_away or error)
            return
        finally:
            self._gate.leave(peer)
        with self._lock:
            if self._closed:
                channel.close()
                return
            self._channels.add(channel)
        try:
            self._serve(channel)
        except (OSError, EOFError):
            pass  # the other end has closed
        finally:
            with self._lock:
                self._channels.discard(channel)
            channel.close()

    def _authenticated(self, connection: socket.socket, peer: PendingConnection) -> MessageChannel:
        def is_new(key: bytes) -> bool:
            with self._lock:
                peer.proved = self._handshakes.add(key)
                return peer.proved

        link = _core.MessageLink.accept(connection.detach(), self._secret, self._context, PATIENCE, is_new)
        return MessageChannel(link)

    def close(self) -> None:
        """Closes the listener and all channels, and waits `PATIENCE` seconds at most for their threads."""
        with self._lock:
            self._closed = True
            channels = list(self._channels)
        self._gate.close()
        try:
            self._listener.shutdown(socket.SHUT_RDWR)  # wakes the thread that accepts
        except OSError:
            pass  # some systems do not shut down listeners
        self._listener.close()
        for channel in channels:
            channel.close()
        until = time.monotonic() + PATIENCE
        for thread in [self._accepting, *self._threads]:
            if thread is not threading.current_thread():
                thread.join(max(0.0, until - time.monotonic()))  # `serve` may have something else to finish
        self._gate.end()
