"""Servers on loopback that behave, break off, or attack, and their readers, for the tests of sources."""

import importlib.util
import socket
import ssl
import struct
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest

import pointstamp as ps
from harness import Seen, notes, run, wait_until
from pointstamp.connectors import Source

needs_network = pytest.mark.skipif(
    not all(importlib.util.find_spec(name) for name in ("websockets", "httpx")),
    reason="websockets and httpx are not installed: pip install --group test",
)

Serve = Callable[[socket.socket], None]


@contextmanager
def server(*turns: Serve, tls: ssl.SSLContext | None = None) -> Iterator[str]:
    """Each connection gets the next turn, and is closed after it; the address."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        address = f"127.0.0.1:{listener.getsockname()[1]}"

        def work() -> None:
            for turn in turns:
                try:
                    connection, _ = listener.accept()
                except OSError:
                    return
                try:
                    if tls is not None:
                        connection = tls.wrap_socket(connection, server_side=True)
                    turn(connection)
                except OSError:
                    pass  # the other side has closed
                connection.close()
            listener.close()

        thread = threading.Thread(target=work)
        thread.start()
        try:
            yield address
        finally:
            try:
                listener.shutdown(socket.SHUT_RDWR)
            except OSError:
                pass  # all turns were taken
            thread.join()


def sends(*pieces: bytes) -> Serve:
    def serve(connection: socket.socket) -> None:
        for piece in pieces:
            connection.sendall(piece)
            time.sleep(0.01)  # so that they come one by one

    return serve


def breaks(*pieces: bytes) -> Serve:
    """Sends, and resets the connection."""

    def serve(connection: socket.socket) -> None:
        sends(*pieces)(connection)
        time.sleep(0.1)
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))

    return serve


def answers(
    *pieces: bytes, head: bytes = b"Content-Type: text/event-stream\r\n", status: bytes = b"200 OK"
) -> Serve:
    """Reads a request of HTTP and answers it, without a length."""

    def serve(connection: socket.socket) -> None:
        asked(connection)
        sends(b"HTTP/1.1 " + status + b"\r\n" + head + b"\r\n", *pieces)(connection)

    return serve


def asked(connection: socket.socket) -> bytes:
    data = b""
    while b"\r\n\r\n" not in data:
        data += connection.recv(4096)
    return data


def all_of(source: Source[Any], workers: int = 1) -> list[Any]:
    captures = run(workers, lambda scope: scope.read(source).capture())
    return sorted(record for capture in captures for _, part in capture.extract() for record in part)


class Enough(Exception):
    pass


def first_of(source: Source[Any], count: int) -> list[Any]:
    """Returns the first records of a source that does not end, in order."""
    seen: Seen[Any] = Seen()

    def main(worker: ps.Worker) -> None:
        with worker.dataflow() as scope:
            scope.read(source).inspect(seen.note)
        worker.step_while(lambda: len(seen) < count)
        raise Enough

    with pytest.raises(Enough):
        ps.execute(main)
    return list(seen)


def refused(source: Source[Any], partition: str, error: type[BaseException], match: str) -> None:
    with pytest.raises(error, match=match) as raised:
        all_of(source)
    assert any(f"while reading partition '{partition}'" in note for note in notes(raised.value))


@contextmanager
def websockets_server(handler: Callable[[Any], None], **options: Any) -> Iterator[str]:
    from websockets.sync.server import serve

    with serve(handler, "127.0.0.1", 0, **options) as made:
        thread = threading.Thread(target=made.serve_forever)
        thread.start()
        try:
            yield f"127.0.0.1:{made.socket.getsockname()[1]}"
        finally:
            made.shutdown()
            thread.join()
    wait_until(lambda: not any(t.name.startswith("Thread-") for t in threading.enumerate()))
