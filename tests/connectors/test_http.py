"""Lines and events of HTTP, against servers that behave, break off, and mean harm."""

import http.server
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from typing import Any

import pytest

import pointstamp as ps
import pointstamp.connectors.network.http as http_module
from harness import wait_until
from network_servers import Serve, all_of, answers, first_of, needs_network, refused, sends, server
from pointstamp.connectors import Source
from pointstamp.connectors.network import (
    Event,
    HTTPEventSource,
    HTTPLineSource,
)


class Document(http.server.BaseHTTPRequestHandler):
    """Gives a document, with or without ranges, and breaks off `cuts` times."""

    protocol_version = "HTTP/1.1"
    text = "".join(f"line {n}\n" for n in range(20_000)).encode() + b"the last"
    ranges = True
    tag = '"1"'
    cuts = 0
    asked_for: list[str | None]

    def log_message(self, *_: object) -> None:
        pass

    def do_GET(self) -> None:
        kind = type(self)
        wanted = self.headers.get("Range")
        kind.asked_for.append(wanted)
        start = int(wanted[6:-1]) if wanted and self.ranges else 0
        body = self.text[start:]
        self.send_response(206 if start else 200)
        self.send_header("Content-Length", str(len(body)))
        self.send_header("ETag", self.tag)
        self.end_headers()
        if kind.cuts:
            kind.cuts -= 1
            self.wfile.write(body[: len(body) // 2])
            self.close_connection = True
        else:
            self.wfile.write(body)


@contextmanager
def document(**settings: Any) -> Iterator[tuple[str, type[Document]]]:
    kind = type("Served", (Document,), {"asked_for": [], **settings})
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), kind) as made:
        made.daemon_threads = False  # so that the end waits for them
        thread = threading.Thread(target=made.serve_forever, args=(0.02,))
        thread.start()
        try:
            yield f"http://127.0.0.1:{made.server_address[1]}/a", kind
        finally:
            made.shutdown()
            thread.join()


LINES = sorted(Document.text.decode().split("\n"))


@needs_network
@pytest.mark.parametrize("ranges", [True, False])
def test_a_document_that_breaks_off_is_read_on(ranges: bool) -> None:
    with document(cuts=3, ranges=ranges) as (url, kind):
        assert all_of(HTTPLineSource(url)) == LINES
        assert len(kind.asked_for) == 4
        assert kind.asked_for[0] is None
        assert kind.asked_for[1] is not None


@needs_network
def test_a_document_is_read_from_an_offset() -> None:
    with document() as (url, _):
        reader = HTTPLineSource(url).open(url)
        first = reader.read()
        offset = reader.offset
        reader.close()
        source = HTTPLineSource(url)
        got = ps.example(lambda scope: scope.read(source, offsets={url: offset}).capture()).extract()
        assert sorted(first + got[0][1]) == LINES


@needs_network
def test_a_live_feed_goes_on_with_another_response() -> None:
    head = b"Content-Type: text/plain\r\n"
    turns = [answers(b"a\nb", b"c\nhal", head=head), answers(b"d\n", head=head), answers(b"e\n", head=head)]
    with server(*turns) as address:
        assert first_of(HTTPLineSource(f"http://{address}/", live=True), 4) == ["a", "bc", "d", "e"]


@needs_network
def test_server_sent_events_go_on_after_the_last_id() -> None:
    requests: list[bytes] = []

    def noting(serve: Serve) -> Serve:
        def noted(connection: socket.socket) -> None:
            data = connection.recv(10_000, socket.MSG_PEEK)
            requests.append(data)
            serve(connection)

        return noted

    first = answers(
        b": hello\nid: 1\ndata: a\ndata: b\n\nevent: tick\nda", b"ta: c\nid: 2\n\nid: 3\ndata: half"
    )
    second = answers(b"data:d\nid\n\n")
    end = answers(status=b"204 No Content")
    with server(*map(noting, (first, second, end))) as address:
        url = f"http://{address}/"
        source = HTTPEventSource(url)
        got = ps.example(lambda scope: scope.read(source, offsets={url: "0"}).capture()).extract()
    assert got == [(0, [Event("message", "a\nb", "1"), Event("message", "d", ""), Event("tick", "c", "2")])]
    asked_after = [[line for line in r.lower().split(b"\r\n") if b"last-event-id" in line] for r in requests]
    assert asked_after == [[b"last-event-id: 0"], [b"last-event-id: 2"], []]


@needs_network
def test_hostile_http() -> None:
    def case(
        serve: Serve, source: Callable[[str], Source[Any]], error: type[BaseException], match: str
    ) -> None:
        with server(serve) as address:
            url = f"http://{address}/"
            refused(source(url), url, error, match)

    def endless(connection: socket.socket) -> None:
        answers()(connection)
        while True:
            connection.sendall(b"data: " + b"x" * 10_000)

    def endless_event(connection: socket.socket) -> None:
        answers()(connection)
        while True:
            connection.sendall(b"data: " + b"x" * 100 + b"\n")

    case(endless, lambda url: HTTPLineSource(url, max_line=50_000), ps.CodecError, "longer than 50000")
    case(endless, lambda url: HTTPEventSource(url, max_event=50_000), ps.CodecError, "longer than 50000")
    case(
        endless_event, lambda url: HTTPEventSource(url, max_event=50_000), ps.CodecError, "longer than 50000"
    )
    case(answers(b"a\n\xff\n"), HTTPLineSource, ps.CodecError, "line 2 is not utf-8")
    case(answers(status=b"404 Not Found"), HTTPLineSource, ps.PointstampError, "answered 404 Not Found")
    case(answers(head=b"Content-Type: text/html\r\n"), HTTPEventSource, ps.PointstampError, "text/html")
    case(sends(b"no HTTP at all\r\n\r\n"), HTTPLineSource, Exception, ".")
    silent = answers(b"a\n", head=b"Content-Length: 100\r\n")

    def waits(connection: socket.socket) -> None:
        silent(connection)
        connection.recv(1)

    case(
        waits,
        lambda url: HTTPLineSource(url, silence=0.1, patience=0.2),
        ps.PointstampError,
        "no connection to .* for 0.2 seconds",
    )


@needs_network
def test_a_reader_that_connects_is_let_go_of_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Connecting by httpx cannot be interrupted: its thread ends by itself."""
    monkeypatch.setattr(http_module, "CONNECTING", 1.5)
    with socket.create_server(("127.0.0.1", 0), backlog=0) as listener, ExitStack() as stack:
        for _ in range(3):  # the kernel takes these, and answers no others
            waiting = stack.enter_context(socket.socket())
            waiting.setblocking(False)
            waiting.connect_ex(listener.getsockname())
        reader = HTTPLineSource(f"http://127.0.0.1:{listener.getsockname()[1]}/").open(
            f"http://127.0.0.1:{listener.getsockname()[1]}/"
        )
        got: list[Any] = []
        reading = threading.Thread(target=lambda: got.append(reader.read()))
        before = set(threading.enumerate())
        reading.start()
        wait_until(lambda: len(set(threading.enumerate()) - before) == 2)
        (connecting,) = set(threading.enumerate()) - before - {reading}
        reader.close()
        reading.join()
        assert connecting.is_alive(), "it was waited for"
        assert got == [None]
        connecting.join()


def test_a_document_that_has_changed_is_refused() -> None:
    with document(cuts=1) as (url, kind):

        class Changed(HTTPLineSource):
            def open(self, partition: str) -> Any:
                reader = super().open(partition)
                read = reader.read

                def then_change() -> Any:
                    batch = read()
                    kind.tag = '"2"'
                    return batch

                reader.read = then_change  # type: ignore[method-assign]
                return reader

        refused(Changed(url), url, ps.PointstampError, "has changed while it was read, at offset")
