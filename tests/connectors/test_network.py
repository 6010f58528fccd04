"""Lines of TCP connections, with TLS and without, and what all sources of the network share."""

import importlib.util
import socket
import ssl
import subprocess
import threading
import time
from pathlib import Path
from typing import Any

import pytest

import pointstamp as ps
from network_servers import (
    Enough,
    all_of,
    answers,
    breaks,
    first_of,
    refused,
    sends,
    server,
    websockets_server,
)
from pointstamp.connectors import Source
from pointstamp.connectors.network import (
    HTTPLineSource,
    TCPLineSource,
    WebSocketSource,
)
from pointstamp.connectors.network.lines import Lines

# ------------------------------------------------------------ lines


def test_lines_come_whole_however_they_are_cut() -> None:
    text = "one\r\nzwei äöü\n\n" + "x" * 50 + "\nlast"
    data = text.encode()
    for size in (1, 2, 3, 7, len(data)):
        lines = Lines(50, "utf-8")
        got = [line for at in range(0, len(data), size) for line in lines.feed(data[at : at + size])]
        assert got == ["one", "zwei äöü", "", "x" * 50]
        assert lines.bytes == data.rindex(b"\n") + 1
        assert lines.rest() == ["last"]
        assert (lines.bytes, lines.count) == (len(data), 5)


@pytest.mark.parametrize(
    "data", [b"ok\n" + b"x" * 60, b"ok\n" + b"x" * 60 + b"\n", b"ok\n" + b"x" * 60 + b"\nok\n"]
)
@pytest.mark.parametrize("size", [7, 1000])
def test_a_line_that_is_too_long_is_refused_before_it_ends(data: bytes, size: int) -> None:
    with pytest.raises(ps.CodecError, match="longer than 50 bytes"):
        lines = Lines(50, "utf-8")
        for at in range(0, len(data), size):
            lines.feed(data[at : at + size])
        lines.check()


def test_the_lines_before_one_that_is_wrong_are_given() -> None:
    lines = Lines(50, "utf-8")
    assert lines.feed(b"one\ntwo\n\xff\nthree\n") == ["one", "two"]
    for ask in (lines.check, lines.rest, lambda: lines.feed(b"four\n")):
        with pytest.raises(ps.CodecError, match="line 3 is not utf-8"):
            ask()
    lines.forget()
    assert lines.feed(b"five\n") == ["five"]


@pytest.mark.parametrize("encoding", ["utf-16", "utf-32-le", "cp037"])
def test_an_encoding_whose_lines_end_otherwise_is_refused(encoding: str) -> None:
    with pytest.raises(ValueError, match=f"those of '{encoding}' do not"):
        Lines(50, encoding)


# ------------------------------------------------------------ TCP


@pytest.mark.parametrize("workers", [1, 2])
def test_each_address_is_read_once(workers: int) -> None:
    with server(sends(b"a\nb", b"c\n")) as one, server(sends(b"", b"d\r\ne")) as two:
        assert all_of(TCPLineSource([one, two]), workers) == ["a", "bc", "d", "e"]


def test_a_subscription_is_sent_on_each_connection_and_half_lines_are_dropped_with_a_warning() -> None:
    def echo(connection: socket.socket) -> None:
        connection.sendall(connection.recv(100) + b"half")

    source_of = {"hello": b"hello\n", "reconnect": True}
    with server(echo, echo, breaks(b"after\nhalf"), echo) as address:
        with pytest.warns(ps.TruncatedWarning, match=f"{address}: .* 4 bytes are dropped"):
            got = first_of(TCPLineSource(address, **source_of), 4)  # type: ignore[arg-type]
    assert got == ["hello", "hello", "after", "hello"]


def test_an_endless_line_is_refused_with_its_partition_while_it_comes() -> None:
    def endless(connection: socket.socket) -> None:
        connection.sendall(b"fine\n")
        while True:
            connection.sendall(b"x" * 10_000)

    with server(endless) as address:
        refused(
            TCPLineSource(address, max_line=50_000), address, ps.CodecError, "line 2 is longer than 50000"
        )


@pytest.mark.filterwarnings("ignore::pointstamp.TruncatedWarning")
def test_hostile_lines() -> None:
    with server(sends(b"fine\n\xff\xfe\n")) as address:
        refused(TCPLineSource(address), address, ps.CodecError, "line 2 is not utf-8")
    with server(breaks(b"fine\nhalf")) as address:
        refused(TCPLineSource(address), address, ConnectionResetError, "reset")
    with socket.create_server(("127.0.0.1", 0)) as listener:
        gone = f"127.0.0.1:{listener.getsockname()[1]}"
    refused(TCPLineSource(gone, reconnect=True), gone, ConnectionRefusedError, gone)
    with server(sends(b"fine\n")) as address:
        source = TCPLineSource(address, reconnect=True, patience=0.3)
        refused(source, address, ps.PointstampError, "no connection to .* for 0.3 seconds")
    for wrong in ("localhost", "host:none", ":1", "host:70000"):
        with pytest.raises(ValueError, match="host:port"):
            TCPLineSource(wrong)
    with pytest.raises(ValueError, match="each once"):
        TCPLineSource([])


def test_who_sends_faster_than_the_dataflow_takes_has_to_wait() -> None:
    sent = 0
    line = b"x" * 9999 + b"\n"

    def fast(connection: socket.socket) -> None:
        nonlocal sent
        for _ in range(10_000):
            connection.sendall(line)
            sent += len(line)

    def main(worker: ps.Worker) -> None:
        with worker.dataflow() as scope:
            scope.read(TCPLineSource(address)).inspect(lambda _: None)
        worker.step()
        before = -1
        while before != sent:  # no more is taken, and the sender stops
            before = sent
            time.sleep(0.3)
        raise Enough

    with server(fast) as address:
        with pytest.raises(Enough):
            ps.execute(main)
    assert 0 < sent < 50_000_000


def test_a_reader_that_waits_is_let_go_of_at_once() -> None:
    """The reader is closed while it connects, shakes hands, or waits for a silent server."""
    with socket.create_server(("127.0.0.1", 0)) as silent:
        address = f"127.0.0.1:{silent.getsockname()[1]}"
        sources: list[Source[Any]] = [
            TCPLineSource(address),
            TCPLineSource(address, tls=ssl.create_default_context()),
            TCPLineSource("127.0.0.1:9", reconnect=True),
        ]
        if importlib.util.find_spec("httpx"):
            sources += [WebSocketSource(f"ws://{address}"), HTTPLineSource(f"http://{address}/")]
        for source in sources:
            reader = source.open(next(iter(source.partitions())))
            ended = threading.Event()

            def read(reader: Any = reader, ended: threading.Event = ended) -> None:
                try:
                    reader.read()
                except OSError:
                    pass  # nothing listens at port 9
                ended.set()

            thread = threading.Thread(target=read)
            thread.start()
            time.sleep(0.1)
            reader.close()
            assert ended.wait(9), source
            thread.join()


# ------------------------------------------------------------ TLS


@pytest.fixture(scope="module")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    folder = tmp_path_factory.mktemp("tls")
    key, made = folder / "key.pem", folder / "cert.pem"
    words = [
        "openssl",
        "req",
        "-x509",
        "-newkey",
        "rsa:2048",
        "-nodes",
        "-days",
        "2",
        "-keyout",
        str(key),
        "-out",
    ]
    more = ["-subj", "/CN=127.0.0.1", "-addext", "subjectAltName=IP:127.0.0.1"]
    subprocess.run([*words, str(made), *more], check=True, capture_output=True, timeout=380)
    return key, made


def test_tls_and_a_certificate_that_is_not_trusted(certificate: tuple[Path, Path]) -> None:
    key, made = certificate
    theirs = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    theirs.load_cert_chain(made, key)
    ours = ssl.create_default_context(cafile=str(made))
    with server(sends(b"secret\n"), tls=theirs) as address:
        assert all_of(TCPLineSource(address, tls=ours)) == ["secret"]
    with server(sends(b"secret\n"), tls=theirs) as address:
        stranger = TCPLineSource(address, tls=ssl.create_default_context(), reconnect=True)
        refused(stranger, address, ssl.SSLCertVerificationError, "certificate")
    if importlib.util.find_spec("httpx") is None:
        return
    reply = answers(b"secret\n")
    with server(reply, tls=theirs) as address:
        assert all_of(HTTPLineSource(f"https://{address}/", tls=ours)) == ["secret"]
    with server(reply, tls=theirs) as address:
        refused(HTTPLineSource(f"https://{address}/"), f"https://{address}/", Exception, "(?i)certificate")
    with websockets_server(lambda link: link.send("secret"), ssl=theirs) as address:
        assert all_of(WebSocketSource(f"wss://{address}", tls=ours)) == ["secret"]
