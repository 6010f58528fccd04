"""WebSockets, against servers that behave, break off, and mean harm."""

import socket
from typing import Any

import pytest

import pointstamp as ps
from harness import run
from network_servers import (
    Serve,
    answers,
    asked,
    first_of,
    needs_network,
    refused,
    sends,
    server,
    websockets_server,
)
from pointstamp.connectors.network import (
    HTTPLineSource,
    WebSocketSource,
)


@needs_network
@pytest.mark.parametrize("workers", [1, 2])
def test_messages_come_in_order_and_a_close_ends_the_stream(workers: int) -> None:
    def talk(link: Any) -> None:
        for n in range(int(link.recv())):
            link.send(f"text {n}" if n % 2 else bytes([n % 256]))

    with websockets_server(talk) as address:
        source = WebSocketSource(f"ws://{address}/feed", hello=["3000"])
        captures = run(workers, lambda scope: scope.read(source).capture())
    (events,) = [[r for _, part in [*c] for r in part] for c in map(_batches, captures) if c]
    assert events == [f"text {n}" if n % 2 else bytes([n % 256]) for n in range(3000)]


def _batches(capture: Any) -> list[tuple[Any, list[Any]]]:
    return [(event.time, event.data) for event in capture if isinstance(event, ps.capture.Messages)]


@needs_network
def test_a_websocket_that_breaks_is_connected_again() -> None:
    count = iter(range(100))

    def talk(link: Any) -> None:
        turn = next(count)
        link.send(f"{link.recv()} {turn}")
        if turn == 1:
            link.socket.shutdown(socket.SHUT_RDWR)

    with websockets_server(talk) as address:
        made = WebSocketSource(f"ws://{address}", hello=["turn"], reconnect=True)
        assert first_of(made, 4) == [f"turn {n}" for n in range(4)]


def handshake(connection: socket.socket) -> None:
    from websockets.utils import accept_key

    request = asked(connection).decode()
    (key,) = (
        line[19:].strip() for line in request.split("\r\n") if line.lower().startswith("sec-websocket-key:")
    )
    connection.sendall(
        b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
        b"Sec-WebSocket-Accept: " + accept_key(key).encode() + b"\r\n\r\n"
    )


def frames(*pieces: bytes) -> Serve:
    def serve(connection: socket.socket) -> None:
        handshake(connection)
        sends(*pieces)(connection)

    return serve


def endless_message(connection: socket.socket) -> None:
    handshake(connection)
    connection.sendall(b"\x01\x7e\x10\x00" + b"x" * 4096)
    while True:
        connection.sendall(b"\x00\x7e\x10\x00" + b"x" * 4096)


@needs_network
@pytest.mark.parametrize(
    ("serve", "error", "match"),
    [
        (frames(b"\x81\x7f" + (1 << 40).to_bytes(8, "big")), ps.CodecError, "more than 50000 bytes"),
        (endless_message, ps.CodecError, "more than 50000 bytes"),
        (frames(b"\x81\x02\xff\xfe"), ps.CodecError, "not UTF-8"),
        (frames(b"\xf1\x01x"), ps.CodecError, "breaks the protocol"),
        (frames(b"\x81\x02ok", b"\x81\x05h"), Exception, "no close frame"),
        (answers(b"no", status=b"403 Forbidden"), Exception, "403"),
        (sends(b"SSH-2.0-nothing of this kind\r\n"), Exception, "."),
    ],
)
def test_hostile_websockets(serve: Serve, error: type[BaseException], match: str) -> None:
    with server(serve) as address:
        url = f"ws://{address}"
        refused(WebSocketSource(url, max_message=50_000), url, error, match)


def test_urls_are_checked() -> None:
    with pytest.raises(ValueError, match="ws://"):
        WebSocketSource("http://localhost")
    with pytest.raises(ValueError, match="http://"):
        HTTPLineSource("ftp://localhost")
