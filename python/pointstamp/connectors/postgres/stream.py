"""The connection by which a server sends changes: its commands, its frames, and what it is told in return.

Owns one replication connection of libpq, over psycopg, which has no interface of its own for it. Nothing here
waits but connecting and the commands: `take` gives what has come.
"""

from __future__ import annotations

import struct
import time as clock
from typing import TYPE_CHECKING, Any

from pointstamp.connectors.needs import needed

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["ChangeStream", "client", "connected", "lsn_of", "text_of"]

EPOCH = 946_684_800
"""Seconds from 1970 to 2000, which is when the server begins to count."""

GOODBYE = 1.0
"""Seconds that the end waits for the server to have heard what it was told last."""

LOST = "the server closed the connection"


def client() -> Any:
    """The module psycopg."""
    return needed("psycopg", "PostgreSQL", "psycopg", "postgres")


def connected(conninfo: str, **options: Any) -> Any:
    """A connection without transactions of its own. It waits for 10 s, if nothing else is said."""
    psycopg = client()
    if "connect_timeout" not in psycopg.conninfo.conninfo_to_dict(conninfo):
        options["connect_timeout"] = 10
    return psycopg.connect(conninfo, autocommit=True, **options)


def lsn_of(text: str) -> int:
    """A place in the log, from how the server writes it."""
    high, _, low = text.partition("/")
    return (int(high, 16) << 32) | int(low, 16)


def text_of(lsn: int) -> str:
    """A place in the log as the server writes it."""
    return f"{lsn >> 32:X}/{lsn & 0xFFFFFFFF:X}"


class ChangeStream:
    """A replication connection."""

    def __init__(self, conninfo: str) -> None:
        self._pq = client().pq
        self._connection = connected(conninfo, replication="database")
        self._link = self._connection.pgconn
        self._started = False

    def command(self, text: str) -> list[str]:
        """Runs a command of the replication protocol; returns the row that it gives.

        Raises:
            psycopg.Error: If the server refuses.
        """
        result = self._link.exec_(text.encode())
        if result.status not in (self._pq.ExecStatus.TUPLES_OK, self._pq.ExecStatus.COMMAND_OK):
            raise client().errors.error_from_result(result)
        values = [result.get_value(0, n) for n in range(result.nfields)] if result.ntuples else []
        return [(value or b"").decode() for value in values]

    def start(self, slot: str, lsn: int, publication: str) -> None:
        """Asks for all changes of a publication from a place on."""
        quoted = publication.replace("'", "''")
        name = '"' + quoted.replace('"', '""') + '"'
        options = f"proto_version '1', publication_names '{name}'"
        result = self._link.exec_(
            f"START_REPLICATION SLOT {slot} LOGICAL {text_of(lsn)} ({options})".encode()
        )
        if result.status != self._pq.ExecStatus.COPY_BOTH:
            raise client().errors.error_from_result(result)
        self._link.nonblocking = 1
        self._started = True

    def fileno(self) -> int:
        """Returns the descriptor that becomes readable when something comes."""
        number: int = self._link.socket
        return number

    def loader(self) -> Callable[[int, memoryview], Any]:
        """Makes Python values of texts of a type, as psycopg's cursors do."""
        transformer = client().adapt.Transformer(self._connection)
        text = self._pq.Format.TEXT
        return lambda oid, data: transformer.get_loader(oid, text).load(data)

    def take(self) -> memoryview | None:
        """The next frame, if it has come.

        Raises:
            psycopg.OperationalError: If the connection is lost or the server ended it.
        """
        length, data = self._link.get_copy_data(1)
        if length == 0:
            self._link.consume_input()
            length, data = self._link.get_copy_data(1)
        if length > 0:
            return memoryview(data)
        if length < 0:
            result = self._link.get_result()
            refused = result is not None and result.status == self._pq.ExecStatus.FATAL_ERROR
            if refused and self._link.status == self._pq.ConnStatus.OK:
                raise client().errors.error_from_result(result)
            raise client().OperationalError(LOST)
        return None

    def tell(self, durable: int, received: int, *, answer: bool = False) -> None:
        """Tells the server how far all has been received, and how far it need not be kept."""
        now = int((clock.time() - EPOCH) * 1_000_000)
        status = struct.pack("!cQQQqB", b"r", received, durable, durable, now, answer)
        self._link.put_copy_data(status)
        self._link.flush()

    def close(self) -> None:
        """Ends the connection, after the server has heard what it was told."""
        if self._started and self._link.status == self._pq.ConnStatus.OK:
            until = clock.monotonic() + GOODBYE
            try:
                self._link.put_copy_end()
                self._link.flush()
                while self._link.get_copy_data(1)[0] >= 0 and clock.monotonic() < until:
                    clock.sleep(0.001)
                    self._link.consume_input()
            except client().Error:
                pass  # it is lost: the server keeps more than it must
        self._connection.close()
