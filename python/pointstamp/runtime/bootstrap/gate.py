"""The connections at a listener whose other end has not proved its identity, bounded in number and in time.

At most `PENDING` such connections are handled at once. Beyond that the oldest is closed, but not before it
has had `GRACE`: until then further ones wait in the operating system's queue. So a flood of strangers makes
legitimate peers wait, and does not make them fail. A peer that has proved its identity is not closed. Closed
connections are logged: the first ones one by one, then in sums.

The rule is the one of the cluster's own listener, `crates/net/src/gate.rs`.
"""

from __future__ import annotations

import socket
import threading
import time
from contextlib import suppress
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import logging

__all__ = ["Gate", "PendingConnection"]

PENDING = 64
"""Strangers that are handled at once; more wait in the operating system's queue."""

GRACE = 0.2
"""Seconds that each of them has to prove itself, however many there are."""

LOGGED = 20
"""Strangers that are logged one by one."""

SUMMED = 10.0
"""Seconds between two sums of the others."""

PAUSE = 0.05
"""Seconds before the next try where the system has no room for another connection."""


class PendingConnection:
    """A connection whose other end has not proved its identity.

    Attributes:
        origin: Where it comes from, for the log.
        since: When it came, by the monotonic clock.
        proved: Whether the other end has proved itself: then the connection is not ended in favour of others.
        sent_away: Why this end has ended the connection; None if it has not.
    """

    def __init__(self, connection: socket.socket, origin: str) -> None:
        self._connection = connection.dup()
        self.origin = origin
        self.since = time.monotonic()
        self.proved = False
        self.sent_away: str | None = None

    def send_away(self, why: str) -> None:
        """Ends the connection, and the wait of the thread that reads it."""
        self.sent_away = why
        with suppress(OSError):
            self._connection.shutdown(socket.SHUT_RDWR)

    def forget(self) -> None:
        """Releases the connection, which stays as it is."""
        self._connection.close()


class Gate:
    """The pending connections of one listener.

    Args:
        where: The server that they have connected to, for the log.
        log: The log of closed connections.
    """

    def __init__(self, where: str, log: logging.Logger) -> None:
        self.pending: list[PendingConnection] = []
        self._strangers = Strangers(where, log)
        self._changed = threading.Condition()
        self._closed = False

    def make_room(self) -> bool:
        """Waits until another connection can be handled; closes the oldest of too many. False at the end."""
        with self._changed:
            while not self._closed:
                strangers = [peer for peer in self.pending if not peer.proved]
                if len(strangers) < PENDING:
                    return True
                left = strangers[0].since + GRACE - time.monotonic()
                if left <= 0:
                    self.pending.remove(strangers[0])
                    strangers[0].send_away("it said nothing while others waited")
                    return True
                self._changed.wait(left)
        return False

    def enter(self, connection: socket.socket, origin: str) -> PendingConnection:
        """Notes a new connection.

        Raises:
            OSError: If there are too many open files.
        """
        peer = PendingConnection(connection, origin)
        with self._changed:
            self.pending.append(peer)
            if self._closed:
                peer.send_away("it had not proved itself when the listener was closed")
        return peer

    def leave(self, peer: PendingConnection) -> None:
        """Removes a peer: it has proved its identity, or has closed."""
        with self._changed:
            if peer in self.pending:
                self.pending.remove(peer)
            peer.forget()
            self._changed.notify_all()

    def send_away_older(self, seconds: float) -> None:
        """Closes strangers who have had so many seconds to prove their identity."""
        with self._changed:
            for peer in self.pending:
                if not peer.proved and peer.sent_away is None and time.monotonic() - peer.since > seconds:
                    peer.send_away(f"it had not proved its identity within {seconds:g} s")

    def turned_away(self, origin: str, why: object) -> None:
        """Logs a peer that was no member."""
        self._strangers.turned_away(origin, why)

    def close(self) -> None:
        """Sends all strangers away, and lets no more in."""
        with self._changed:
            self._closed = True
            for peer in self.pending:
                if not peer.proved:
                    peer.send_away("it had not proved itself when the listener was closed")
            self._changed.notify_all()

    def end(self) -> None:
        """Logs the sum of strangers that were not logged one by one."""
        self._strangers.end()


class Strangers:
    """Logs closed connections: the first ones one by one, then in sums."""

    def __init__(self, where: str, log: logging.Logger) -> None:
        self._where = where
        self._log = log
        self._lock = threading.Lock()
        self._all = 0
        self._unsaid = 0
        self._said = time.monotonic()

    def turned_away(self, origin: str, why: object) -> None:
        """Logs a stranger, at once or in the next sum."""
        with self._lock:
            self._all += 1
            if self._all > LOGGED:
                self._unsaid += 1
                if time.monotonic() - self._said >= SUMMED:
                    self._sum(f"; the last from {origin}: {why}")
                return
            self._said = time.monotonic()
        self._log.warning("a stranger at %s was turned away from %s: %s", origin, self._where, why)

    def end(self) -> None:
        """Logs the last sum."""
        with self._lock:
            self._sum("")

    def _sum(self, last: str) -> None:
        if self._unsaid:
            self._log.warning("%s more strangers were turned away from %s%s", self._unsaid, self._where, last)
            self._unsaid, self._said = 0, time.monotonic()
