"""`HTTPLineSource` and `HTTPEventSource`: lines of responses, and server-sent events, by the package httpx.

A document has offsets, in bytes: a response that breaks off is continued by a range request, or where the
server supports none, read again and skipped. A stream of events has the last event's id.
"""

from __future__ import annotations

import ssl
from abc import abstractmethod
from typing import TYPE_CHECKING, Any, NamedTuple

from pointstamp.connectors.network.lines import Lines
from pointstamp.connectors.network.reader import CONNECTING, ConnectionReader, Lost, addresses_of
from pointstamp.connectors.optional_packages import needed
from pointstamp.connectors.protocol import PartitionReader, Source, number_of
from pointstamp.connectors.rejecting import LONGEST, OnError, Rejected, checked
from pointstamp.errors import CodecError, PointstampError

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

__all__ = ["Event", "HTTPEventSource", "HTTPLineSource"]


class Event(NamedTuple):
    """A server-sent event.

    Attributes:
        event: Its kind, "message" if it says none.
        data: Its text.
        id: The last id that the server has given; empty if none.

    Examples:
        >>> from pointstamp.connectors.network import Event
        >>> Event("message", "tick", "7").data
        'tick'
    """

    event: str
    data: str
    id: str


class _Source(Source[Any]):
    """The common part of both sources of HTTP."""

    acknowledges = False

    def __init__(
        self,
        urls: str | Iterable[str],
        headers: Mapping[str, str] | None,
        tls: ssl.SSLContext | None,
        silence: float | None,
        patience: float,
        on_error: OnError,
        *,
        rewinds: bool,
        journal: bool,
    ) -> None:
        self.rewinds = rewinds
        if journal and not rewinds:
            self.journal = self.acknowledges = True
        self.on_error = checked(on_error)
        self._urls = addresses_of(urls, "URLs")
        for url in self._urls:
            if not url.startswith(("http://", "https://")):
                raise ValueError(f"a URL is http://... or https://..., and this is {url!r}")
        self._request = _Request(dict(headers or {}), tls, silence)
        self._patience = patience

    def partitions(self) -> list[str]:
        """The URLs."""
        return self._urls


class HTTPLineSource(_Source):
    """The lines of text of responses to GET: each URL is a partition.

    Args:
        urls: ``http://...`` or ``https://...``, or several.
        live: Whether a response is a stream without an end, so that another is requested when one ends or
            breaks; else it is a document, which ends, and whose offsets are numbers of bytes.
        headers: More headers of the request.
        max_line: Bytes of a line at most.
        tls: For https; left out, certificates are checked.
        silence: Seconds without a byte after which a connection is taken as lost; None for never.
        patience: Seconds of failed attempts after which a connection that existed is given up.
        on_error: The treatment of lines and events that are too long, or no text: as in `CSVSource`.
        journal: Whether lines are logged beside the checkpoints before they are sent. With checkpoints, a
            live source needs it; a document has offsets, and no journal.

    Raises:
        ValueError: For an invalid URL.

    Examples:
        >>> from pointstamp.connectors.network import HTTPLineSource
        >>> list(HTTPLineSource("https://example.org/log.txt").partitions())
        ['https://example.org/log.txt']
    """

    def __init__(
        self,
        urls: str | Iterable[str],
        *,
        live: bool = False,
        headers: Mapping[str, str] | None = None,
        max_line: int = 1 << 20,
        tls: ssl.SSLContext | None = None,
        silence: float | None = None,
        patience: float = 60.0,
        on_error: OnError = "raise",
        journal: bool = False,
    ) -> None:
        super().__init__(urls, headers, tls, silence, patience, on_error, rewinds=not live, journal=journal)
        self._live = live
        self._max_line = max_line

    def open(self, partition: str) -> PartitionReader[str]:
        """A reader, which asks when it is first asked to read."""
        kind = _Stream if self._live else _Document
        return kind(partition, self._request, self._max_line, self._patience, self.on_error)


class HTTPEventSource(_Source):
    """Server-sent events (``text/event-stream``): each URL is a partition.

    Where events have ids, they are offsets: after a lost connection, and after a failure with
    ``scope.read(offsets=)``, the server is asked for the events after the last. A server that answers 204
    ends the stream.

    Args:
        urls: ``http://...`` or ``https://...``, or several.
        headers: More headers of the request.
        max_event: Bytes of an event at most.
        tls: For https; left out, certificates are checked.
        silence: Seconds without a byte after which a connection is taken as lost; None for never.
        patience: Seconds of failed attempts after which a connection that existed is given up.
        on_error: The treatment of lines and events that are too long, or no text: as in `CSVSource`.
        journal: Whether events are logged beside the checkpoints before they are sent. With checkpoints, the
            source needs it, as the server decides which events it sends again.

    Raises:
        ValueError: For an invalid URL.

    Examples:
        >>> from pointstamp.connectors.network import HTTPEventSource
        >>> list(HTTPEventSource("https://example.org/events").partitions())
        ['https://example.org/events']
    """

    def __init__(
        self,
        urls: str | Iterable[str],
        *,
        headers: Mapping[str, str] | None = None,
        max_event: int = 1 << 20,
        tls: ssl.SSLContext | None = None,
        silence: float | None = None,
        patience: float = 60.0,
        on_error: OnError = "raise",
        journal: bool = False,
    ) -> None:
        super().__init__(urls, headers, tls, silence, patience, on_error, rewinds=False, journal=journal)
        self._max_event = max_event

    def open(self, partition: str) -> PartitionReader[Event]:
        """A reader, which asks when it is first asked to read."""
        return _Events(partition, self._request, self._max_event, self._patience, self.on_error)


class _Request(NamedTuple):
    headers: dict[str, str]
    tls: ssl.SSLContext | None
    silence: float | None


class _Reader(ConnectionReader):
    """Reads the body of a response, as it comes."""

    def __init__(self, name: str, request: _Request, most: int, patience: float, on_error: OnError) -> None:
        super().__init__(name, True, patience)
        self._request = request
        self._most = most
        self._httpx = needed("httpx", "HTTP", "httpx", "network")
        self._raises = on_error == "raise"
        self._lines = Lines(most, "utf-8", raises=self._raises)
        self._client: Any = None
        self._response: Any = None
        self._body: Iterator[bytes] = iter(())
        self._ended = False

    def _ask(self, headers: dict[str, str]) -> Any:
        """Sends the request; returns the response, whose body has not been read.

        Raises:
            Lost: If there is no answer, or the server asks to try again later.
            PointstampError: If it is another than there should be.
        """
        request = self._request
        client = self._client = self._httpx.Client(
            verify=request.tls or True,
            follow_redirects=True,
            timeout=self._httpx.Timeout(CONNECTING, read=request.silence),
        )
        asked = client.build_request(
            "GET",
            self.name,
            headers={"Accept-Encoding": "identity", **request.headers, **headers},
            extensions={"trace": self._traced},
        )
        try:
            response = self.apart(lambda: client.send(asked, stream=True), client.close)
            self._response = response
        except Lost:
            self._client = None  # the thread that is left behind closes it
            raise
        except self._httpx.TransportError as error:
            if isinstance(error.__context__, ssl.SSLCertVerificationError) or "CERTIFICATE" in str(error):
                raise
            raise Lost from error
        if response.status_code in (429, 500, 502, 503, 504) and self.begun:
            raise Lost(f"{self.name} answered {response.status_code} {response.reason_phrase}")
        if not response.is_success and response.status_code != 416:
            raise PointstampError(f"{self.name} answered {response.status_code} {response.reason_phrase}")
        self._body = response.iter_raw()
        return response

    def _traced(self, event: str, info: Mapping[str, Any]) -> None:
        if event in ("connection.connect_tcp.complete", "connection.start_tls.complete"):
            connection = info["return_value"].get_extra_info("socket")
            if connection is not None:
                self.watch(connection)

    def _more(self) -> bytes | None:
        """Returns the bytes of the body that come next; None at its end."""
        self._lines.check()
        try:
            return next(self._body, None)
        except self._httpx.TransportError as error:
            raise Lost from error

    def take_rejected(self) -> list[Rejected]:
        return self._lines.take_rejected(self.name)

    def _hang_up(self) -> None:
        response, self._response = self._response, None
        client, self._client = self._client, None
        self._lines.forget()
        if response is not None:
            response.close()
        if client is not None:
            client.close()

    @abstractmethod
    def _receive(self) -> list[Any] | None: ...


class _Stream(_Reader):
    """Lines of responses that follow one another."""

    def _connect(self) -> None:
        self._ask({})

    def _receive(self) -> list[Any] | None:
        data = self._more()
        return None if data is None else self._lines.feed(data)


class _Document(_Reader):
    """Lines of one response; an offset is the number of bytes before a line."""

    def __init__(self, name: str, request: _Request, most: int, patience: float, on_error: OnError) -> None:
        super().__init__(name, request, most, patience, on_error)
        self._tag: str | None = None
        self._is_known = False
        self._skip = 0

    @property
    def offset(self) -> dict[str, Any]:
        return {"position": self._lines.bytes, "tag": self._tag}

    def seek(self, offset: Any) -> None:
        fields = offset if isinstance(offset, dict) else {}
        if set(fields) != {"position", "tag"} or not isinstance(fields["tag"], str | None):
            raise PointstampError(
                f"{offset!r:.200} is no offset of {self.name}: that is a dict with the number of bytes as "
                "'position' and the document's ETag, or None, as 'tag'. Without an offset it is read from "
                "its beginning"
            )
        position = number_of(fields["position"], self.name, "a number of bytes")
        self._lines.bytes, self._tag = position, fields["tag"]
        self._is_known = position > 0

    def take_rejected(self) -> list[Rejected]:
        return self._lines.take_rejected(self.name, counted=True)

    def _connect(self) -> None:
        offset = self._lines.bytes
        headers = {"Range": f"bytes={offset}-"} if offset else {}
        response = self._ask(headers)
        tag = response.headers.get("etag") or response.headers.get("last-modified")
        if (self.begun or self._is_known) and tag != self._tag:
            raise PointstampError(
                f"{self.name} has changed while it was read, at offset {offset}: without an offset the new "
                "document is read from its beginning"
            )
        self._tag, self._is_known = tag, True
        self._skip = offset if response.status_code == 200 else 0
        if response.status_code == 416:  # nothing is left
            self._body = iter(())

    def _receive(self) -> list[Any] | None:
        if self._ended:
            return None
        data = self._more()
        if data is None:
            if self._skip:
                raise PointstampError(
                    f"{self.name} ends {self._skip} bytes before the offset at which it was to be read on: "
                    "without an offset it is read from its beginning"
                )
            self._ended, self.reconnect = True, False
            return self._lines.rest()
        skipped = min(self._skip, len(data))
        self._skip -= skipped
        return self._lines.feed(data[skipped:])


class _Events(_Reader):
    """Server-sent events; an offset is an id."""

    def __init__(self, name: str, request: _Request, most: int, patience: float, on_error: OnError) -> None:
        super().__init__(name, request, most, patience, on_error)
        self._id = ""
        self._dropped: list[Rejected] = []
        self._wrong: CodecError | None = None
        self._begin()

    def _begin(self) -> None:
        self._kind = ""
        self._data: list[str] = []
        self._size = 0
        self._next_id = self._id

    @property
    def offset(self) -> str:
        return self._id

    def seek(self, offset: Any) -> None:
        if not isinstance(offset, str) or len(offset) > self._most or not offset.isprintable():
            raise PointstampError(
                f"{offset!r:.200} is no offset of {self.name}: it is the id of the last event. Without an "
                "offset the server begins where it likes"
            )
        self._id = offset

    def _connect(self) -> None:
        self._begin()
        headers = {"Accept": "text/event-stream", "Cache-Control": "no-store"}
        if self._id:
            headers["Last-Event-ID"] = self._id
        response = self._ask(headers)
        if response.status_code == 204:
            self._ended, self.reconnect = True, False
            return
        kind = response.headers.get("content-type", "").partition(";")[0].strip()
        if kind != "text/event-stream":
            raise PointstampError(
                f"{self.name} answers with {kind or 'no content type'}, and a stream of events is "
                "text/event-stream: correct the URL, or read a document by HTTPLineSource"
            )

    def _receive(self) -> list[Any] | None:
        if self._wrong is not None:
            raise self._wrong
        data = None if self._ended else self._more()
        if data is None:
            return None
        events: list[Event] = []
        try:
            for line in self._lines.feed(data):
                self._line(line, events)
        except CodecError as error:
            self._wrong = error
            if not events:
                raise
        return events

    def take_rejected(self) -> list[Rejected]:
        taken, self._dropped = self._dropped, []
        return [line._replace(records=0) for line in super().take_rejected()] + taken  # of lines, not events

    def _line(self, line: str, events: list[Event]) -> None:
        if not line:
            self._id = self._next_id
            if self._size > self._most:
                why = f"the event is longer than {self._most} bytes"
                text = "\n".join(self._data)[:LONGEST]
                self._dropped.append(Rejected(self.name, None, self._lines.count, text, why, len(events)))
            elif self._data:
                events.append(Event(self._kind or "message", "\n".join(self._data), self._id))
            self._begin()
            return
        name, _, value = line.partition(":")
        value = value.removeprefix(" ")
        if name == "data":
            self._size += len(value) + 1
            if self._size <= self._most:
                self._data.append(value)
            elif self._raises:
                raise CodecError(
                    f"an event of {self.name} is longer than {self._most} bytes: raise max_event"
                )
        elif name == "event":
            self._kind = value
        elif name == "id" and "\0" not in value:
            self._next_id = value
