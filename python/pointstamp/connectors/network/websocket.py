"""`WebSocketSource`: messages of WebSockets, by the package websockets."""

from __future__ import annotations

import ssl
from contextlib import ExitStack
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from pointstamp.connectors.network.reader import (
    CONNECTING,
    ConnectionReader,
    Lost,
    Unread,
    addresses_of,
    wake,
)
from pointstamp.connectors.optional_packages import needed
from pointstamp.connectors.protocol import PartitionReader, Source
from pointstamp.connectors.rejecting import OnError, Rejected, checked
from pointstamp.errors import CodecError

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

__all__ = ["WebSocketSource"]

MESSAGES = 1024
"""Messages that one `read` returns at most."""

GOODBYE = 1.0
"""Seconds that the end waits for the other side to say goodbye, too."""

OURS = {
    1002: "breaks the protocol",
    1007: "sends text that is not UTF-8",
    1009: "sends a message that is too long",
}
"""Why a connection is ended by us: nothing that another connection would change."""


class WebSocketSource(Source[Any]):
    """Messages that come by WebSockets: each URL is connected to, and is a partition.

    Text messages are str, others bytes. A connection has no offsets: data that the other side does not send
    again is not read again.

    Args:
        urls: ``ws://...`` or ``wss://...``, or several.
        hello: Messages that are sent first on each connection, as subscriptions.
        headers: More headers of the request.
        max_message: Bytes of a message at most.
        tls: For ``wss``; left out, certificates are checked as the system says.
        reconnect: Whether to connect again when a connection ends or breaks; else an end is the partition's
            end.
        patience: Seconds of failed attempts after which a connection that existed is given up.
        on_error: The treatment of messages that are too long, or text that is not UTF-8: as in `CSVSource`.
            By the protocol such a message ends its connection: where it is no error, another one is made.
        journal: Whether messages are logged beside the checkpoints before they are sent. With checkpoints,
            the source needs it: messages that were received and not logged before a failure are lost.

    Raises:
        ValueError: For an invalid URL.

    Examples:
        >>> from pointstamp.connectors.network import WebSocketSource
        >>> source = WebSocketSource("wss://example.org/trades", hello=["subscribe trades"])
        >>> list(source.partitions())
        ['wss://example.org/trades']
    """

    acknowledges = False
    rewinds = False

    def __init__(
        self,
        urls: str | Iterable[str],
        *,
        hello: Iterable[str | bytes] = (),
        headers: Mapping[str, str] | None = None,
        max_message: int = 1 << 20,
        tls: ssl.SSLContext | None = None,
        reconnect: bool = False,
        patience: float = 60.0,
        on_error: OnError = "raise",
        journal: bool = False,
    ) -> None:
        if journal:
            self.journal = self.acknowledges = True
        self.on_error = checked(on_error)
        self._urls = addresses_of(urls, "URLs")
        for url in self._urls:
            if urlsplit(url).scheme not in ("ws", "wss") or not urlsplit(url).hostname:
                raise ValueError(f"the URL of a WebSocket is ws://... or wss://..., and this is {url!r}")
        self._options: dict[str, Any] = {
            "hello": list(hello),
            "headers": dict(headers or {}),
            "max_message": max_message,
            "tls": tls,
            "raises": self.on_error == "raise",
        }
        self._reconnect = reconnect
        self._patience = patience

    def partitions(self) -> list[str]:
        """The URLs."""
        return self._urls

    def open(self, partition: str) -> PartitionReader[Any]:
        """A reader, which connects when it is first asked to read."""
        return _Reader(partition, self._reconnect, self._patience, **self._options)


class _Reader(ConnectionReader):
    def __init__(
        self,
        name: str,
        reconnect: bool,
        patience: float,
        *,
        hello: list[str | bytes],
        headers: dict[str, str],
        max_message: int,
        tls: ssl.SSLContext | None,
        raises: bool,
    ) -> None:
        super().__init__(name, reconnect, patience)
        self._hello = hello
        self._headers = headers
        self._max_message = max_message
        self._tls = tls
        self._raises = raises
        self._rejected: list[Rejected] = []
        self._link: Any = None
        self._stack = ExitStack()
        self._errors = needed("websockets.exceptions", "A WebSocket", "websockets", "network")
        self._client = needed("websockets.sync.client", "A WebSocket", "websockets", "network")

    def _connect(self) -> None:
        url = urlsplit(self.name)
        secure = url.scheme == "wss"
        host = url.hostname or ""
        connection = self.dial(host, url.port or (443 if secure else 80))
        tls = (self._tls or ssl.create_default_context()) if secure else None
        try:
            connection = self.secured(connection, tls, host)
            self._stack.callback(connection.close)
            linked = self._client.connect(
                self.name.replace("wss:", "ws:", 1),  # it is secured
                sock=connection,
                additional_headers=self._headers,
                max_size=self._max_message,
                open_timeout=CONNECTING,
                close_timeout=GOODBYE,
            )
            self._link = self._stack.enter_context(linked)
            for message in self._hello:
                self._link.send(message)
        except ssl.SSLCertVerificationError:
            raise  # it will not be another one next time
        except (OSError, EOFError, self._errors.ConnectionClosed) as error:
            raise Lost from error
        except self._errors.InvalidHandshake as error:
            status = getattr(getattr(error, "response", None), "status_code", 0)
            if status >= 500 or isinstance(error.__cause__, (OSError, EOFError)):
                raise Lost from error
            raise

    def _receive(self) -> list[Any] | None:
        messages: list[Any] = []
        size = 0
        try:
            messages.append(self._first())
            while len(messages) < MESSAGES and size < self._max_message:
                messages.append(self._link.recv(timeout=0))
                size += len(messages[-1])
        except TimeoutError:
            pass  # that is all for now
        except self._errors.ConnectionClosed as error:
            if messages:
                return messages  # and the error is reported again
            self._explain(error)
            if isinstance(error, self._errors.ConnectionClosedOK):
                return None
            raise Lost from error
        return messages

    def _first(self) -> Any:
        """The next message, once there is one.

        A connection that we end is over when the other side agrees; one that keeps sending never does.
        """
        ending = False
        while True:
            try:
                return self._link.recv(timeout=GOODBYE)
            except TimeoutError:
                if ending:
                    wake(self._link.socket)
                ending = self._link.state.name != "OPEN"

    def _explain(self, error: Any) -> None:
        if error.sent is not None and error.sent.code in OURS and not error.rcvd_then_sent:
            text = f"{self.name} {OURS[error.sent.code]}"
            if error.sent.code == 1009:
                text += f": more than {self._max_message} bytes (max_message)"
            if self._raises:
                raise CodecError(text) from error
            self._rejected.append(Rejected(self.name, None, None, "", text))
            raise Unread from error

    def take_rejected(self) -> list[Rejected]:
        taken, self._rejected = self._rejected, []
        return taken

    def _hang_up(self) -> None:
        self._stack.close()
        pings = getattr(self._link, "keepalive_thread", None)
        if pings is not None:  # it ends with the connection, and `close` does not wait for it
            pings.join(GOODBYE)
