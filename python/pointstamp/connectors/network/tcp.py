"""`TCPLineSource`: lines of text from TCP connections."""

from __future__ import annotations

import socket
import ssl
import warnings
from typing import TYPE_CHECKING, Any

from pointstamp.connectors.network.lines import Lines
from pointstamp.connectors.network.reader import ConnectionReader, Lost, addresses_of, place_of
from pointstamp.connectors.protocol import PartitionReader, Source
from pointstamp.connectors.rejecting import OnError, Rejected, checked
from pointstamp.errors import TruncatedWarning

if TYPE_CHECKING:
    from collections.abc import Iterable

__all__ = ["TCPLineSource"]

PIECE = 256 * 1024
"""Bytes that are received at once."""


class TCPLineSource(Source[str]):
    r"""Lines of text that servers send: each address is connected to, and is a partition.

    Lines end with a line feed, or a carriage return and a line feed, which are removed. A connection has no
    offsets: data that the other side does not send again is not read again.

    Args:
        addresses: ``host:port``, or several.
        hello: Bytes that are sent first on each connection, for example a subscription.
        encoding: Of the text.
        max_line: Bytes of a line at most.
        tls: For TLS; `ssl.create_default_context()` checks the certificate and the name.
        reconnect: Whether to connect again when a connection ends or breaks; else an end is the partition's
            end. An incomplete line is dropped then, with a `TruncatedWarning`.
        silence: Seconds without a byte after which a connection counts as lost; None for never. The system
            detects a machine that has disappeared, after about a minute.
        patience: Seconds of failed attempts after which a connection that existed is given up.
        on_error: The treatment of lines that are too long, or no text: as in `CSVSource`.
        journal: Whether lines are logged beside the checkpoints before they are sent. With checkpoints, the
            source needs it: lines that were received and not logged before a failure are lost.

    Raises:
        ValueError: For an invalid address.

    Examples:
        A server that sends two lines:

        >>> import socket, threading
        >>> import pointstamp as ps
        >>> from pointstamp.connectors.network import TCPLineSource
        >>> server = socket.create_server(("127.0.0.1", 0))
        >>> def serve():
        ...     connection, _ = server.accept()
        ...     with connection:
        ...         connection.sendall(b"tick\ntock\n")
        >>> thread = threading.Thread(target=serve)
        >>> thread.start()
        >>> source = TCPLineSource(f"127.0.0.1:{server.getsockname()[1]}")
        >>> ps.example(lambda scope: scope.read(source).capture()).extract()
        [(0, ['tick', 'tock'])]
        >>> thread.join()
        >>> server.close()
    """

    acknowledges = False
    rewinds = False

    def __init__(
        self,
        addresses: str | Iterable[str],
        *,
        hello: bytes = b"",
        encoding: str = "utf-8",
        max_line: int = 1 << 20,
        tls: ssl.SSLContext | None = None,
        reconnect: bool = False,
        silence: float | None = None,
        patience: float = 60.0,
        on_error: OnError = "raise",
        journal: bool = False,
    ) -> None:
        if journal:
            self.journal = self.acknowledges = True
        self.on_error = checked(on_error)
        if silence is not None and not silence > 0:
            raise ValueError(f"silence is a number of seconds, more than 0, not {silence!r}")
        self._addresses = addresses_of(addresses, "addresses")
        for address in self._addresses:
            place_of(address)
        self._hello = hello
        self._encoding = encoding
        self._max_line = max_line
        self._tls = tls
        self._reconnect = reconnect
        self._silence = silence
        self._patience = patience

    def partitions(self) -> list[str]:
        """The addresses."""
        return self._addresses

    def open(self, partition: str) -> PartitionReader[str]:
        """A reader, which connects when it is first asked to read."""
        lines = Lines(self._max_line, self._encoding, raises=self.on_error == "raise")
        reader = _Reader(partition, self._hello, lines, self._tls, self._reconnect, self._patience)
        reader.silence = self._silence
        return reader


class _Reader(ConnectionReader):
    def __init__(
        self,
        name: str,
        hello: bytes,
        lines: Lines,
        tls: ssl.SSLContext | None,
        reconnect: bool,
        patience: float,
    ) -> None:
        super().__init__(name, reconnect, patience)
        self._hello = hello
        self._lines = lines
        self._tls = tls
        self._connection: socket.socket | None = None
        self.silence: float | None = None
        self._ended = False

    def _connect(self) -> None:
        host, port = place_of(self.name)
        connection = self.dial(host, port)
        try:
            self._connection = self.secured(connection, self._tls, host)
            self._connection.sendall(self._hello)
            self._connection.settimeout(self.silence)
        except ssl.SSLCertVerificationError:
            raise  # it will not be another one next time
        except OSError as error:
            raise Lost from error

    def _receive(self) -> list[Any] | None:
        assert self._connection is not None
        if self._ended:
            return None
        self._lines.check()
        try:
            data = self._connection.recv(PIECE)
        except TimeoutError:
            self._warn()
            raise Lost from TimeoutError(f"{self.name}: nothing came for {self.silence:g} seconds")
        except (OSError, ValueError) as error:  # the latter under TLS, of a connection that was shut down
            self._warn()
            raise Lost from error
        if data:
            return self._lines.feed(data)
        if self.reconnect:
            self._warn()
            return None
        self._ended = True
        return self._lines.rest()

    def take_rejected(self) -> list[Rejected]:
        return self._lines.take_rejected(self.name)

    def _warn(self) -> None:
        left = self._lines.within
        self._lines.forget()
        if left and not self.closed.is_set():
            text = f"{self.name}: the connection ended within a line, of which {left} bytes are dropped"
            warnings.warn(text, TruncatedWarning, stacklevel=2)

    def _hang_up(self) -> None:
        connection, self._connection = self._connection, None
        if connection is not None:
            connection.close()
