"""Lines of all who connect: each once and whole, whatever strangers send, and let go of at once."""

import socket
import struct
import threading
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from typing import Any

import pytest

import pointstamp as ps
from harness import notes, run, wait_until
from pointstamp.connectors.network import TCPListenSource

HERE = "127.0.0.1:0"


def senders(source: TCPListenSource, *serve: Callable[[socket.socket], None]) -> list[threading.Thread]:
    def send(one: Callable[[socket.socket], None]) -> None:
        with socket.create_connection(source.bound(HERE)) as connection:
            one(connection)

    threads = [threading.Thread(target=send, args=[one]) for one in serve]
    for thread in threads:
        thread.start()
    return threads


def got(source: TCPListenSource, workers: int, threads: list[threading.Thread]) -> Counter[str]:
    captures = run(workers, lambda scope: scope.read(source).capture())
    for thread in threads:
        thread.join()
    return Counter(line for capture in captures for _, lines in capture.extract() for line in lines)


@pytest.mark.parametrize("most", [1, 100])
@pytest.mark.parametrize("workers", [1, 3])
def test_lines_of_all_who_connect(workers: int, most: int) -> None:
    source = TCPListenSource(HERE, limit=4, most=most)

    def sends(number: int) -> Callable[[socket.socket], None]:
        def serve(connection: socket.socket) -> None:
            for n in range(50):
                connection.sendall(f"{number} {n}".encode())
                connection.sendall(b"\n" if n < 49 else b"")  # the last line has no end

        return serve

    threads = senders(source, *(sends(number) for number in range(4)))
    assert got(source, workers, threads) == Counter(f"{a} {b}" for a in range(4) for b in range(50))


@pytest.mark.filterwarnings("ignore::pointstamp.TruncatedWarning")
def test_strangers_do_not_end_the_dataflow() -> None:
    source = TCPListenSource(HERE, limit=4, max_line=100)
    closed = threading.Event()

    def endless(connection: socket.socket) -> None:
        try:
            while True:
                connection.sendall(b"x" * 1000)
        except OSError:
            closed.set()

    def no_text(connection: socket.socket) -> None:
        connection.sendall(b"\xff\xfe\n")

    def breaks(connection: socket.socket) -> None:
        connection.sendall(b"half")
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))

    def good(connection: socket.socket) -> None:
        connection.sendall(b"good\n")

    threads = senders(source, endless, no_text, breaks, good)
    lines = got(source, 1, threads)
    assert lines["good"] == 1
    assert set(lines) <= {"good", "half"}
    assert closed.is_set()


def test_who_is_closed_is_said() -> None:
    source = TCPListenSource(HERE, limit=1, max_line=10)
    threads = senders(source, lambda connection: connection.sendall(b"x" * 50))
    with pytest.warns(ps.TruncatedWarning, match="line 1 is longer than 10 bytes"):
        assert got(source, 1, threads) == Counter()


def test_a_reader_that_waits_is_let_go_of_and_a_port_that_is_taken_is_said() -> None:
    source = TCPListenSource(HERE)
    reader = source.open(HERE)
    ended: list[Any] = []
    thread = threading.Thread(target=lambda: ended.append(reader.read()))
    thread.start()
    address = source.bound(HERE)
    with socket.create_connection(address) as connection:
        wait_until(thread.is_alive)
        reader.close()
        thread.join()
        assert ended == [None]
        with suppress(ConnectionResetError):  # where it was not taken yet
            assert connection.recv(1) == b""
    with socket.create_server(("127.0.0.1", 0)) as taken:
        name = f"127.0.0.1:{taken.getsockname()[1]}"
        with pytest.raises(OSError, match=f"in use .*{name}") as raised:
            run(1, lambda scope: scope.read(TCPListenSource(name)).capture())
    assert f"while reading partition '{name}' from the beginning" in notes(raised.value)
    for wrong in ("127.0.0.1", "127.0.0.1:x", "127.0.0.1:70000"):
        with pytest.raises(ValueError, match="host:port"):
            TCPListenSource(wrong)
