"""Lines of all clients: each once and whole, whatever others send, and freed at once."""

import os
import socket
import struct
import threading
from collections import Counter
from collections.abc import Callable
from contextlib import ExitStack, suppress
from pathlib import Path
from time import sleep
from typing import Any

import pytest

import pointstamp as ps
from harness import notes, run, wait_until
from pointstamp.connectors.network import TCPListenSource, listening

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
    with pytest.raises(ValueError, match="yields is a number of seconds"):
        TCPListenSource(HERE, yields=0)


class Reading:
    """Reads a source that does not end, on a thread."""

    def __init__(self, source: TCPListenSource) -> None:
        self.lines: list[str] = []
        self.reader = source.open(HERE)
        self.address = source.bound(HERE)
        self.thread = threading.Thread(target=self._read)

    def _read(self) -> None:
        while (lines := self.reader.read()) is not None:
            self.lines += lines

    def __enter__(self) -> "Reading":
        self.thread.start()
        return self

    def __exit__(self, *exc: object) -> None:
        self.reader.close()
        self.thread.join()

    def connect(self) -> socket.socket:
        return socket.create_connection(self.address, timeout=60)


@pytest.mark.filterwarnings("ignore::pointstamp.TruncatedWarning")
def test_senders_that_finish_no_line_do_not_keep_others_out() -> None:
    """However often a byte of theirs comes."""
    with Reading(TCPListenSource(HERE, most=4, yields=0.5)) as reading, ExitStack() as stack:
        strangers = [stack.enter_context(reading.connect()) for _ in range(20)]
        over = threading.Event()

        def drip() -> None:
            while not over.wait(0.02):
                for stranger in strangers:
                    with suppress(OSError):
                        stranger.sendall(b"x")

        dripping = threading.Thread(target=drip)
        dripping.start()
        try:
            with reading.connect() as member:
                member.sendall(b"heard\n")
                wait_until(lambda: reading.lines == ["heard"])
        finally:
            over.set()
            dripping.join()


def test_a_connection_that_is_quiet_keeps_its_place_while_nobody_waits() -> None:
    with Reading(TCPListenSource(HERE, most=1, yields=0.1)) as reading, reading.connect() as quiet:
        for number in range(3):
            quiet.sendall(f"{number}\n".encode())
            wait_until(lambda count=number: len(reading.lines) == count + 1)  # type: ignore[misc]
            sleep(0.3)
    assert reading.lines == ["0", "1", "2"]


@pytest.mark.skipif(not Path("/proc/self/fd").exists(), reason="how descriptors are counted is Linux's")
def test_connections_leave_descriptors_to_the_program(caplog: pytest.LogCaptureFixture) -> None:
    import resource

    before = resource.getrlimit(resource.RLIMIT_NOFILE)
    reading = Reading(TCPListenSource(HERE))
    with ExitStack() as stack:
        for _ in range(100):  # they wait in the system's queue
            stack.enter_context(reading.connect())
        following = os.dup(0)
        os.close(following)
        resource.setrlimit(resource.RLIMIT_NOFILE, (following + 50 + listening.RESERVED, before[1]))
        try:
            with reading:
                wait_until(lambda: "few descriptors left" in caplog.text)
                files = [stack.enter_context(open(os.devnull)) for _ in range(listening.RESERVED // 2)]
        finally:
            resource.setrlimit(resource.RLIMIT_NOFILE, before)
        assert len(files) == listening.RESERVED // 2
