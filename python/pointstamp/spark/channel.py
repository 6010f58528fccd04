"""Messages between the driver, the resident processes, and tasks that bring rows to them or fetch some.

A connection carries pickled messages over the same sealed link as those of a cluster: both ends prove
that they know the secret, that they mean the same server and that they run the same version, and everything
after that is encrypted and authenticated. Nothing of a stranger's is unpickled, and it is heard for a few
seconds at most.
"""

from __future__ import annotations

import pickle
import socket
import threading
from typing import TYPE_CHECKING, Any

from pointstamp import _core
from pointstamp._errors import ClusterError
from pointstamp._listening import listening

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["Channel", "Server", "connect"]

_PATIENCE = 10.0
"""Seconds for a connection to be made and both ends to prove themselves."""

_LONGEST = 1 << 32
"""Bytes of a message, at most; memory is taken as they come, and not as they are announced."""

_GREETED = 128
"""Connections that are greeted at once; more wait in the operating system's queue."""


def _context(name: str) -> dict[str, str]:
    """What both ends of a connection to a server of this name have in common."""
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
        ClusterError: If nobody is there who knows the secret and has this name.
    """
    where = _name(address)
    try:
        link = _core.SealedLink.connect(*address, secret, _context(name or where), _PATIENCE)
    except PermissionError as error:
        raise ClusterError(f"what listens at {where} is not of this resident cluster: {error}") from error
    except OSError as error:
        raise ClusterError(f"nothing of the resident cluster can be reached at {where}: {error}") from error
    return Channel(link)


class Server:
    """Accepts channels on a port of its own, each of which is served by a thread.

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
        self._room = threading.BoundedSemaphore(_GREETED)
        self._channels: set[Channel] = set()
        self._greeted: set[threading.Thread] = set()
        self._closed = False
        self._lock = threading.Lock()
        self._accepting = threading.Thread(target=self._accept, name="pointstamp-server", daemon=True)
        self._accepting.start()

    def _accept(self) -> None:
        while True:
            if not self._room.acquire(timeout=1):
                if self._closed:
                    return
                continue
            try:
                connection, _ = self._listener.accept()
            except TimeoutError:
                self._room.release()
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
        try:
            link = _core.SealedLink.accept(connection.detach(), self._secret, self._context, _PATIENCE)
        except OSError:
            return  # a stranger
        finally:
            self._room.release()
        channel = Channel(link)
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
