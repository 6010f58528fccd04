"""Offsets are plain data: through JSON they stay what they are, and resume at the same place."""

from __future__ import annotations

import json
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import pointstamp as ps
from pointstamp.connectors import CSVSource, JSONLinesSource, ParquetSource, QueueSource
from pointstamp.connectors import files as of_files
from pointstamp.connectors.network import (
    HTTPEventSource,
    HTTPLineSource,
    TCPLineSource,
    TCPListenSource,
    WebSocketSource,
)

SCHEMA = pa.schema([("n", pa.int64())])


@contextmanager
def serving(answer: Callable[[bytes], bytes]) -> Iterator[int]:
    """A server that answers each request, and ends the connection."""
    listener = socket.create_server(("127.0.0.1", 0))

    def serve() -> None:
        while True:
            try:
                connection, _ = listener.accept()
            except OSError:
                return
            with connection:
                connection.sendall(answer(connection.recv(1 << 16)))

    thread = threading.Thread(target=serve)
    thread.start()
    try:
        yield listener.getsockname()[1]
    finally:
        listener.shutdown(socket.SHUT_RDWR)
        listener.close()
        thread.join(60)


def http(body: bytes, *more: str, status: str = "200 OK") -> bytes:
    head = [f"HTTP/1.1 {status}", f"Content-Length: {len(body)}", "Connection: close", *more, "", ""]
    return "\r\n".join(head).encode() + body


LINES = [str(n).encode() for n in range(20)]
BODY = b"\n".join(LINES) + b"\n"


def document(request: bytes) -> bytes:
    begins = int(request.split(b"bytes=")[1].split(b"-")[0]) if b"bytes=" in request else 0
    status = "206 Partial Content" if begins else "200 OK"
    return http(BODY[begins : begins + 25] if not begins else BODY[begins:], 'ETag: "one"', status=status)


def events(request: bytes) -> bytes:
    lower = request.lower()
    last = int(lower.split(b"last-event-id: ")[1].split(b"\r")[0]) if b"last-event-id" in lower else -1
    if last == 19:
        return http(b"", status="204 No Content")
    some = range(last + 1, min(last + 8, 20))
    body = b"".join(b"id: %d\ndata: %d\n\n" % (n, n) for n in some)
    return http(body, "Content-Type: text/event-stream")


def read_all(reader: Any) -> tuple[list[Any], list[tuple[Any, int]]]:
    """All that a reader gives, and each of its offsets with how much was given before it."""
    found: list[Any] = []
    offsets = [(reader.offset, 0)]
    while (batch := reader.read()) is not None:
        found += batch.to_pylist() if isinstance(batch, pa.RecordBatch) else batch
        offsets.append((reader.offset, len(found)))
    reader.close()
    return found, offsets


def each_goes_on(source: Any, partition: str, least: int) -> None:
    """Every offset is plain data, at which reading resumes."""
    found, offsets = read_all(source.open(partition))
    assert len(offsets) >= least
    for offset, before in offsets:
        kept = json.loads(json.dumps(offset))
        assert kept == offset
        again = source.open(partition)
        if kept is not None:
            again.seek(kept)
            assert json.loads(json.dumps(again.offset)) == kept
        assert read_all(again)[0] == found[before:]


def a_file(folder: Path, kind: str) -> tuple[Any, str]:
    path = folder / f"a.{kind}"
    if kind == "jsonl":
        path.write_text("".join(f"{n}\n" for n in range(20)))
        return JSONLinesSource(path), str(path)
    if kind == "csv":
        path.write_text("n\n" + "".join(f"{n}\n" for n in range(20)))
        return CSVSource(path, schema=SCHEMA), str(path)
    pq.write_table(pa.table({"n": list(range(20))}), path, row_group_size=7)
    return ParquetSource(path), str(path)


@pytest.mark.parametrize("kind", ["jsonl", "csv", "parquet"])
def test_of_files(kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("pointstamp.connectors.text.BLOCK", 7)
    monkeypatch.setattr(of_files, "ROWS", 3)
    each_goes_on(*a_file(tmp_path, kind), 5)


def test_of_a_document() -> None:
    pytest.importorskip("httpx")
    with serving(document) as port:
        url = f"http://127.0.0.1:{port}/"
        source = HTTPLineSource(url)
        reader = source.open(url)
        first = reader.read()
        offset = json.loads(json.dumps(reader.offset))
        assert offset == reader.offset
        assert offset["tag"] == '"one"'
        reader.close()
        again = source.open(url)
        again.seek(offset)
        assert [*first, *read_all(again)[0]] == [line.decode() for line in LINES]
        changed = source.open(url)
        changed.seek(offset | {"tag": '"another"'})
        with pytest.raises(ps.PointstampError, match="has changed"):
            changed.read()


def test_of_events() -> None:
    pytest.importorskip("httpx")
    with serving(events) as port:
        url = f"http://127.0.0.1:{port}/"
        source = HTTPEventSource(url)
        found, offsets = read_all(source.open(url))
        assert [event.data for event in found] == [str(n) for n in range(20)]
        for offset, before in offsets[1:]:
            kept = json.loads(json.dumps(offset))
            assert kept == offset
            again = source.open(url)
            again.seek(kept)
            assert read_all(again)[0] == found[before:]


def test_of_what_is_sent_once() -> None:
    pytest.importorskip("websockets")
    sources: list[tuple[Any, str]] = [
        (TCPLineSource("127.0.0.1:1"), "127.0.0.1:1"),
        (TCPListenSource("127.0.0.1:0"), "127.0.0.1:0"),
        (WebSocketSource("ws://127.0.0.1:1"), "ws://127.0.0.1:1"),
    ]
    for source, partition in sources:
        reader = source.open(partition)
        assert json.loads(json.dumps(reader.offset)) is None
        reader.seek(None)
        with pytest.raises(ps.PointstampError, match="cannot be read from offset 3"):
            reader.seek(3)
        reader.close()


def test_of_a_queue() -> None:
    queue: QueueSource[int] = QueueSource()
    reader = queue.open(*queue.partitions())
    queue.put(1)
    assert reader.read() == [1]
    assert json.loads(json.dumps(reader.offset)) == reader.offset == 1
    reader.close()


WRONG: list[Any] = [None, -1, 1.5, True, 1 << 70, [], {"position": -1, "tag": None}, {"position": 1}]


@pytest.mark.parametrize("wrong", WRONG, ids=str)
def test_what_is_no_offset_is_refused(wrong: Any, tmp_path: Path) -> None:
    pytest.importorskip("httpx")
    sources = [a_file(tmp_path, kind) for kind in ("jsonl", "csv", "parquet")]
    sources += [(HTTPLineSource("http://h"), "http://h"), (HTTPEventSource("http://h"), "http://h")]
    for source, partition in sources:
        reader = source.open(partition)
        with pytest.raises(ps.PointstampError, match="is no offset of"):
            reader.seek(wrong)
        reader.close()


def test_of_kafka_and_postgres() -> None:
    """Their offsets are numbers; anything else is refused without a server."""
    pytest.importorskip("confluent_kafka")
    pytest.importorskip("psycopg")
    from pointstamp.connectors.kafka import KafkaSource
    from pointstamp.connectors.postgres import PostgresSource

    sources = (
        (KafkaSource("127.0.0.1:1", "a", config={"log_level": 0}), "a/0"),
        (
            PostgresSource("host=nowhere", "p", slot="a"),
            "a",
        ),
    )
    for source, partition in sources:  # which connect when they are read
        reader: Any = source.open(partition)
        for wrong in ("3", -1, True, 1.0, 1 << 70, {"position": 1}):
            with pytest.raises(ps.PointstampError, match="is no offset of"):
                reader.seek(wrong)
        if isinstance(source, PostgresSource):
            reader.seek(json.loads(json.dumps(1 << 63)))
            assert reader.offset == 1 << 63
        reader.close()


def test_a_function_is_told_of_offsets(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Offsets of each kind of file are plain data, at which another run resumes."""
    monkeypatch.setattr(of_files, "ROWS", 3)
    monkeypatch.setattr("pointstamp.connectors.text.BLOCK", 7)
    for kind in ("jsonl", "csv", "parquet"):
        source, path = a_file(tmp_path, kind)
        told: list[tuple[str, Any]] = []
        reader = source.open(path)
        ends = read_all(reader)[1][-1][0]

        begin: dict[str, Any] = {}

        def build(scope: ps.Scope, source: Any = source, told: Any = told, begin: Any = begin) -> Any:
            return scope.read(
                source, offsets=begin, durable=lambda *given: told.append(given), every=0.01
            ).capture()

        ps.example(build)
        assert told[-1] == (path, ends)
        assert json.loads(json.dumps(told)) == [list(pair) for pair in told]
        begin[path] = ends
        assert ps.example(build).extract() == []


def test_a_function_is_told_of_no_offset_past_state(tmp_path: Path) -> None:
    source, path = a_file(tmp_path, "jsonl")
    for past in (False, True):
        told: list[str] = []

        def build(scope: ps.Scope, past: bool = past, told: list[str] = told) -> None:
            rows = scope.read(
                source, durable=lambda partition, _: told.append(partition), acknowledge_past_state=past
            )
            rows.key_by(lambda n: n % 2).scan(lambda _, n, sum: sum + n, default=int).probe()

        if past:
            ps.example(build)
        else:
            with pytest.warns(ps.NotAcknowledged, match="acknowledges no offset"):
                ps.example(build)
        assert set(told) == ({path} if past else set())


def test_what_the_function_raises_ends_the_dataflow(tmp_path: Path) -> None:
    source, _ = a_file(tmp_path, "jsonl")

    def durable(partition: str, offset: Any) -> None:
        raise OSError("no space left")

    def build(scope: ps.Scope) -> None:
        scope.read(source, durable=durable)

    with pytest.raises(OSError, match="no space left"):
        ps.example(build)
    wrong: Any = {}
    with pytest.raises(TypeError, match="durable needs a function"):
        ps.example(lambda scope: scope.read(source, durable=wrong).probe())
