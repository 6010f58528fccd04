"""Connections to PostgreSQL, and the one by which a server sends changes: its commands and its frames.

Every wait on these connections has a limit. A connection without traffic for that long raises
`psycopg.OperationalError` and is closed: TCP reports a lost link only after hours, and a Unix socket to a
server that was stopped never does.

`ChangeStream` owns one replication connection of libpq, over psycopg, which has no interface of its own for
it. `take` does not wait: it returns the changes that have arrived.
"""

from __future__ import annotations

import math
import struct
import time as clock
from functools import cache
from typing import TYPE_CHECKING, Any

from pointstamp.connectors.optional_packages import needed

if TYPE_CHECKING:
    from collections.abc import Callable, Generator

__all__ = ["ChangeStream", "checked_patience", "client", "connected", "lsn_of", "text_of"]

CONNECTING = 10
"""Seconds for making a connection, where neither the program nor a shorter patience says otherwise."""

SILENT = 0.5
"""The part of the patience after which a connection on which the server says nothing counts as lost: in the
rest another one is tried.
"""

EPOCH = 946_684_800
"""Seconds from 1970 to 2000, which is when the server begins to count."""

GOODBYE = 1.0
"""Seconds that the end waits for the server to receive the last acknowledgement."""

LOST = "the server closed the connection"


def client() -> Any:
    """The module psycopg."""
    return needed("psycopg", "PostgreSQL", "psycopg", "postgres")


def checked_patience(patience: float) -> float:
    """Returns a number of seconds that the program has given.

    Raises:
        ValueError: If it is not more than 0.
    """
    if not patience > 0:
        raise ValueError(f"patience is a number of seconds, more than 0, not {patience!r}")
    return patience


def connected(conninfo: str, patience: float, closed: Callable[[], bool] = bool, **options: Any) -> Any:
    """Makes a connection in autocommit mode, whose waits have a limit.

    Args:
        conninfo: The connection string. Its settings of timeouts and TCP's keepalives take precedence.
        patience: Seconds for which a server is waited for, over several connections. Half of them without a
            byte from or to it end a wait, and the connection.
        closed: Whether the connection is not wanted any more, asked ten times a second while it waits.
        options: More parameters of the connection.

    Raises:
        psycopg.OperationalError: If there is no connection within ten seconds, or half of a shorter patience.
    """
    given = client().conninfo.conninfo_to_dict(conninfo)
    for name, value in _limits(patience).items():
        if name not in given:
            options[name] = value
    connection = _connection().connect(conninfo, autocommit=True, **options)
    connection.patience = patience
    connection.unwanted = closed
    return connection


def _limits(patience: float) -> dict[str, int]:
    """Parameters by which libpq and the system's TCP give up a silent server."""
    if math.isinf(patience):
        return {"connect_timeout": CONNECTING}
    return {
        "connect_timeout": max(1, min(CONNECTING, math.ceil(SILENT * patience))),
        "tcp_user_timeout": math.ceil(1000 * SILENT * patience),
        "keepalives_idle": max(1, int(patience / 3)),
        "keepalives_interval": max(1, int(patience / 6)),
        "keepalives_count": 3,
    }


@cache
def _connection() -> Any:
    class Connection(client().Connection):  # type: ignore[misc]
        """A connection whose waits have a limit."""

        patience = math.inf
        unwanted: Callable[[], bool] = bool

        def wait(self, gen: Any, *arguments: Any, **options: Any) -> Any:
            """Runs one of psycopg's exchanges with the server to its end."""
            try:
                return super().wait(self._limited(gen), *arguments, **options)
            except client().OperationalError as error:
                if isinstance(error.__cause__, TimeoutError):
                    self.close()
                raise

        def _limited(self, exchange: Any) -> Generator[Any, Any, Any]:
            """The exchange, which is asked at least ten times a second whether something can continue."""
            since = clock.monotonic()
            try:
                wanted = next(exchange)
                while True:
                    ready = yield wanted
                    if ready:
                        since = clock.monotonic()
                    elif self.unwanted():
                        raise _gives_up("the connection is not wanted any more")
                    elif clock.monotonic() - since > self.patience * SILENT:
                        raise _gives_up(
                            f"the server did not answer for {self.patience * SILENT:g} s, half of "
                            f"patience={self.patience:g}: it or the network has gone silent, or what it was "
                            "asked takes longer"
                        )
                    wanted = exchange.send(ready)
            except StopIteration as end:
                return end.value

    return Connection


def _gives_up(why: str) -> Exception:
    error: Exception = client().OperationalError(why)
    error.__cause__ = TimeoutError(why)
    return error


def lsn_of(text: str) -> int:
    """Returns a position in the log from the server's text."""
    high, _, low = text.partition("/")
    return (int(high, 16) << 32) | int(low, 16)


def text_of(lsn: int) -> str:
    """A place in the log as the server writes it."""
    return f"{lsn >> 32:X}/{lsn & 0xFFFFFFFF:X}"


class ChangeStream:
    """A replication connection.

    Args:
        conninfo: The connection string.
        patience: As for `connected`.
        closed: As for `connected`.
    """

    def __init__(self, conninfo: str, patience: float, closed: Callable[[], bool] = bool) -> None:
        self._pq = client().pq
        self._connection = connected(conninfo, patience, closed, replication="database")
        self._link = self._connection.pgconn
        self._started = False
        self.pid: int = self._link.backend_pid
        """The number of the server's process at the other end, kept for when the link is closed."""

    def command(self, text: str) -> list[str]:
        """Runs a command of the replication protocol; returns the row that it gives.

        Raises:
            psycopg.Error: If the server refuses.
        """
        result = self._result(text)
        if result.status not in (self._pq.ExecStatus.TUPLES_OK, self._pq.ExecStatus.COMMAND_OK):
            raise client().errors.error_from_result(result)
        values = [result.get_value(0, n) for n in range(result.nfields)] if result.ntuples else []
        return [(value or b"").decode() for value in values]

    def start(self, slot: str, lsn: int, publication: str) -> None:
        """Asks for all changes of a publication from a place on."""
        quoted = publication.replace("'", "''")
        name = '"' + quoted.replace('"', '""') + '"'
        options = f"proto_version '1', publication_names '{name}'"
        result = self._result(f"START_REPLICATION SLOT {slot} LOGICAL {text_of(lsn)} ({options})")
        if result.status != self._pq.ExecStatus.COPY_BOTH:
            raise client().errors.error_from_result(result)
        self._link.nonblocking = 1
        self._started = True

    def _result(self, text: str) -> Any:
        """The result of a command, which libpq's own call would wait for without a limit."""
        self._link.send_query(text.encode())
        return self._connection.wait(client().generators.execute(self._link))[-1]

    def fileno(self) -> int:
        """Returns the descriptor that becomes readable when something comes."""
        number: int = self._link.socket
        return number

    @property
    def connection(self) -> Any:
        """Psycopg's connection, whose settings determine the text of values."""
        return self._connection

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
        """Sends the server the position up to which all was received, and the durable one."""
        now = int((clock.time() - EPOCH) * 1_000_000)
        status = struct.pack("!cQQQqB", b"r", received, durable, durable, now, answer)
        self._link.put_copy_data(status)
        self._link.flush()

    def close(self) -> None:
        """Ends the connection, after the server has received the acknowledgements."""
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
