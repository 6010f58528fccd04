"""Messages between the driver, the resident processes, and tasks that bring rows to them or fetch some.

A connection carries pickled messages over the same sealed link as those of a cluster: both ends prove
that they know the secret, that they mean the same server and that they run the same version, and everything
after that is encrypted and authenticated. Nothing of a stranger's is unpickled, and it is heard for a few
seconds at most. Strangers who come in numbers make those who belong here wait, and do not make them fail: the
rule is that of a cluster's listener. Who was turned away is logged, to the logger "pointstamp.spark".
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

    from pointstamp.runtime.bootstrap.gate import Guest

__all__ = ["Channel", "Server", "connect"]

_PATIENCE = 10.0
"""Seconds for a connection to be made and both ends to prove themselves."""

_LONGEST = 1 << 32
"""Bytes of a message, at most; memory is taken as they come, and not as they are announced."""

_REMEMBERED = 1 << 17
"""Greetings of which a recording is refused, at least; twice as many at most."""

_log = logging.getLogger("pointstamp.spark")


def _context(name: str) -> dict[str, str]:
    """Returns the common context of both ends of a connection to a server of this name."""
    return {"the server": name, "pointstamp": _core.__version__}


def _name(address: tuple[str, int]) -> str:
    return f"{address[0]}:{address[1]}"


class Channel:
    """A connection, both ends of which have proved themselves. One thread may send while another receives."""

    def __init__(self, link: _core.SealedLink) -> None:
        self._link = link

    def send(self, message: Any) -> None:
        """Sends anything that can be pickled.

        Raises:
            OSError: If the connection has ended.
        """
        self._link.send(pickle.dumps(message, protocol=5))

    def receive(self) -> Any:
        """The next message.

        Raises:
            EOFError: If the other end has closed.
            OSError: If the connection broke, or what came was changed on the way.
        """
        # No limit: the next message may be the end of a long computation. The system ends a link to a machine
        # that is gone.
        data = self._link.receive(_LONGEST)
        if data is None:
            raise EOFError("the connection was closed")
        return pickle.loads(data)

    def close(self) -> None:
        """Closes it; who receives at either end gets an EOFError."""
        self._link.close()

    def __enter__(self) -> Channel:
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()


def connect(address: tuple[str, int], secret: bytes, name: str | None = None) -> Channel:
    """A channel to a server.

    Args:
        address: Where it listens.
        secret: What both ends prove.
        name: The server's name; its address if it has no other.

    Raises:
        ClusterError: If no party there knows the secret and has this name.
    """
    where = _name(address)
    try:
        link = _core.SealedLink.connect(*address, secret, _context(name or where), _PATIENCE)
    except PermissionError as error:
        raise ClusterError(f"what listens at {where} is not of this resident cluster: {error}") from error
    except OSError as error:
        raise ClusterError(f"nothing of the resident cluster can be reached at {where}: {error}") from error
    return Channel(link)


class _Greetings:
    """The keys of greetings that showed the secret; the oldest are forgotten."""

    def __init__(self) -> None:
        self._now: set[bytes] = set()
        self._before: set[bytes] = set()

    def add(self, key: bytes) -> bool:
        """Whether this one is new."""
        if key in self._now or key in self._before:
            return False
        if len(self._now) >= _REMEMBERED:
            self._before, self._now = self._now, set()
        self._now.add(key)
        return True


class Server:
    """Accepts channels on a port of its own, each of which is served by a thread.

    Those who have not shown the secret are bounded in number by a `Gate`, and have ten seconds in all.

    Args:
        host: The interface, by a name that others have for it.
        secret: What both ends prove.
        serve: Called with each channel; it is closed when that returns.
        name: What those who connect call it: its address, as they have it, unless this says otherwise.
    """

    def __init__(
        self, host: str, secret: bytes, serve: Callable[[Channel], None], name: str | None = None
    ) -> None:
        self._secret = secret
        self._serve = serve
        self._listener, _ = listening(host, or_all=True)
        self._listener.settimeout(1)
        self.port: int = self._listener.getsockname()[1]
        self._context = _context(name or _name((host, self.port)))
        self._channels: set[Channel] = set()
        self._greetings = _Greetings()
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
                continue  # not everywhere does closing it wake who accepts
            except OSError as error:
                if self._closed:
                    return
                # It broke off before it was accepted, or there are too many open files: both pass.
                _log.warning("a connection could not be accepted: %s", error)
                time.sleep(PAUSE)
                continue
            try:
                self._hear(connection, _name(address))
            except (OSError, RuntimeError) as error:  # no more files, no more threads
                _log.warning("a connection could not be served: %s", error)
                connection.close()
                time.sleep(PAUSE)

    def _hear(self, connection: socket.socket, origin: str) -> None:
        """Begins to hear who connected."""
        guest = self._gate.enter(connection, origin)
        thread = threading.Thread(
            target=self._greet, args=(connection, guest), name="pointstamp-channel", daemon=True
        )
        with self._lock:
            try:
                thread.start()
            except RuntimeError:
                self._gate.leave(guest)
                raise
            self._threads = {known for known in self._threads if known.is_alive()} | {thread}

    def _greet(self, connection: socket.socket, guest: Guest) -> None:
        try:
            channel = self._prove(connection, guest)
        except OSError as error:
            self._gate.turned_away(guest.origin, guest.sent_away or error)
            return
        finally:
            self._gate.leave(guest)
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

    def _prove(self, connection: socket.socket, guest: Guest) -> Channel:
        def fresh(key: bytes) -> bool:
            with self._lock:
                guest.proved = self._greetings.add(key)
                return guest.proved

        descriptor = connection.detach()
        return Channel(_core.SealedLink.accept(descriptor, self._secret, self._context, _PATIENCE, fresh))

    def close(self) -> None:
        """Accepts nothing any more, closes what is open, and waits until its threads have ended."""
        with self._lock:
            self._closed = True
            channels = list(self._channels)
        self._gate.close()
        try:
            self._listener.shutdown(socket.SHUT_RDWR)  # wakes the thread that accepts
        except OSError:
            pass  # not everywhere can what listens be shut down
        self._listener.close()
        for channel in channels:
            channel.close()
        for thread in [self._accepting, *self._threads]:
            if thread is not threading.current_thread():
                thread.join(_PATIENCE)  # what serves a channel may have something else to finish
        self._gate.end()
