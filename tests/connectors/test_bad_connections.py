"""Connections that are silent, send something wrong, or find no place: good records are not lost."""

import errno
import itertools
import logging
import os
import socket
import threading
from collections import Counter
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest

import pointstamp as ps
from harness import run
from network_servers import all_of, answers, needs_network, sends, server
from pointstamp.connectors.network import (
    HTTPEventSource,
    HTTPLineSource,
    TCPLineSource,
    TCPListenSource,
    listening,
)

HERE = "127.0.0.1:0"


def first_and_error(source: Any) -> tuple[list[Any], str]:
    """Returns the first read of a source, and the error of the second."""
    [partition] = source.partitions()
    reader = source.open(partition)
    first = reader.read()
    with pytest.raises(ps.CodecError) as raised:
        reader.read()
    reader.close()
    return first, str(raised.value)


def listened(source: TCPListenSource, *serve: Callable[[socket.socket], None]) -> Counter[str]:
    """The lines that a source reads from its clients."""

    def send(one: Callable[[socket.socket], None]) -> None:
        with socket.create_connection(source.bound(HERE, timeout=100)) as connection:
            one(connection)

    threads = [threading.Thread(target=send, args=[one]) for one in serve]
    for thread in threads:
        thread.start()
    [capture] = run(1, lambda scope: scope.read(source).capture())
    for thread in threads:
        thread.join()
    return Counter(line for _, lines in capture.extract() for line in lines)


def whole(data: bytes) -> Callable[[socket.socket], None]:
    """Sends bytes that are few enough to be received as one."""
    return lambda connection: connection.sendall(data)


def said_before(source: TCPListenSource, *said: bytes) -> list[str]:
    """The lines of clients that connect in turn, and have sent everything before the source reads."""
    reader = source.open(HERE)
    connections = [socket.create_connection(source.bound(HERE)) for _ in said]
    for connection, data in zip(connections, said, strict=True):
        connection.sendall(data)
    lines: list[str] = []
    while (batch := reader.read()) is not None:
        lines += batch
    reader.close()
    for connection in connections:
        connection.close()
    return lines


def until_closed(connection: socket.socket) -> None:
    """Sends nothing until the other side has ended the connection."""
    connection.settimeout(120)
    assert connection.recv(1) == b""


# ------------------------------------------------------------ what is wrong


def test_lines_before_one_that_is_wrong_come_first() -> None:
    with server(whole(b"one\ntwo\n\xff\xfe\nthree\n")) as address:
        first, error = first_and_error(TCPLineSource(address))
    assert first == ["one", "two"]
    assert "line 3 is not utf-8" in error


def test_a_stranger_loses_only_what_comes_after_what_is_wrong() -> None:
    source = TCPListenSource(HERE, limit=1, max_line=20)
    with pytest.warns(ps.TruncatedWarning, match="line 3 is longer than 20 bytes"):
        lines = listened(
            source, lambda connection: connection.sendall(b"one\ntwo\n" + b"x" * 50 + b"\nfour\n")
        )
    assert lines == Counter(["one", "two"])


@needs_network
def test_lines_and_events_of_http_before_one_that_is_wrong_come_first() -> None:
    with server(answers(b"one\ntwo\n\xff\nthree\n")) as address:
        first, error = first_and_error(HTTPLineSource(f"http://{address}/"))
    assert first == ["one", "two"]
    assert "line 3 is not utf-8" in error
    long = b"data: " + b"x" * 50 + b"\n"
    with server(answers(b"data: one\n\ndata: two\n\n" + 2 * long + b"\n")) as address:
        events, error = first_and_error(HTTPEventSource(f"http://{address}/", max_event=80))
    assert [event.data for event in events] == ["one", "two"]
    assert "longer than 80 bytes" in error


# ------------------------------------------------------------ silence


def test_a_connection_that_says_nothing_is_made_again() -> None:
    with server(until_closed, sends(b"one\n")) as address:
        reader: Any = TCPLineSource(address, reconnect=True, silence=0.2).open(address)
        connect = reader._connect
        silences = iter([0.2, None])  # the second speaks, whenever its server's thread gets to it

        def connects() -> None:
            reader.silence = next(silences)
            connect()

        reader._connect = connects
        assert reader.read() == ["one"]
        assert next(silences, "both were made") == "both were made"
        reader.close()


def test_a_connection_that_says_nothing_ends_one_that_is_not_made_again() -> None:
    with server(until_closed) as address, pytest.raises(TimeoutError, match=r"nothing came for 0\.2 seconds"):
        all_of(TCPLineSource(address, silence=0.2), 1)


def test_who_says_nothing_leaves_his_place_to_others() -> None:
    source = TCPListenSource(HERE, limit=3, most=1, silence=0.2)
    assert said_before(source, b"", b"", b"one\n") == ["one"]


def test_what_has_come_is_read_by_a_thread_that_runs_late(monkeypatch: pytest.MonkeyPatch) -> None:
    source = TCPListenSource(HERE, limit=1, silence=0.2)
    hours = itertools.count(step=3600.0)  # one passes between any two looks at the clock
    monkeypatch.setattr(listening, "clock", SimpleNamespace(monotonic=lambda: next(hours)))
    assert said_before(source, b"one\n") == ["one"]


def test_the_end_of_silence_is_said_where_something_is_lost() -> None:
    source = TCPListenSource(HERE, limit=1, silence=0.2)
    with pytest.warns(
        ps.TruncatedWarning, match=r"no line came for 0\.2 seconds, within a line of which 4 bytes"
    ):
        assert said_before(source, b"half") == []


def test_a_silence_is_a_number_of_seconds() -> None:
    for make in (lambda: TCPLineSource(HERE, silence=0), lambda: TCPListenSource(HERE, silence=-1)):
        with pytest.raises(ValueError, match="silence is a number of seconds"):
            make()


def test_the_system_is_told_to_look_whether_the_other_side_is_there() -> None:
    with server(sends(b"one\n")) as address:
        reader: Any = TCPLineSource(address).open(address)
        assert reader.read() == ["one"]
        connection = reader._connection
        assert connection.getsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE) == 1
        if hasattr(socket, "TCP_KEEPIDLE"):
            assert connection.getsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPIDLE) == 30
        reader.close()


# ------------------------------------------------------------ no room


class Full:
    """A listening socket of a system that has no room for so many attempts, and then is one again."""

    def __init__(self, listener: socket.socket, errors: list[int]) -> None:
        self.listener = listener
        self.errors = errors

    def __getattr__(self, name: str) -> Any:
        return getattr(self.listener, name)

    def accept(self) -> Any:
        if self.errors:
            code = self.errors.pop(0)
            raise OSError(code, os.strerror(code))
        return self.listener.accept()


def test_a_connection_that_there_is_no_room_for_waits(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    create, errors = socket.create_server, [errno.EMFILE, errno.ECONNABORTED, errno.ENFILE, errno.EPROTO]
    monkeypatch.setattr(
        socket, "create_server", lambda *args, **options: Full(create(*args, **options), errors)
    )
    source = TCPListenSource(HERE, limit=1)
    with caplog.at_level(logging.WARNING, "pointstamp"):
        lines = listened(source, lambda connection: connection.sendall(b"one\n"))
    assert lines == Counter(["one"])
    assert errors == []
    said = [record.getMessage() for record in caplog.records if "takes no connections" in record.getMessage()]
    assert len(said) == 1
    assert os.strerror(errno.EMFILE) in said[0]
