"""No worker waits for a server: readers of Kafka and PostgreSQL, with clients that do not answer."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterator
from functools import partial
from types import SimpleNamespace
from typing import Any

import pytest

import pointstamp as ps
from harness import wait_until
from pointstamp.connectors import kafka

LIMIT = 120
"""Seconds for what is over at once."""


class _Error:
    def __init__(self, code: int, said: str = "as the test has it") -> None:
        self._code = code
        self._said = said

    def code(self) -> int:
        return self._code

    def str(self) -> str:
        return self._said

    def fatal(self) -> bool:
        return False

    retriable = txn_requires_abort = fatal


class _Exception(Exception):
    pass


class _Place:
    def __init__(self, topic: str, partition: int, offset: int = -1001) -> None:
        self.offset = offset


class _Broker:
    """A client whose calls follow a test's script and are recorded."""

    def __init__(self, **calls: Callable[..., Any]) -> None:
        self.calls = calls
        self.done: list[str] = []

    def __getattr__(self, name: str) -> Any:
        def call(*arguments: Any, **options: Any) -> Any:
            self.done.append(name)
            return self.calls[name](*arguments, **options) if name in self.calls else []

        return call


def refused(code: int) -> _Exception:
    return _Exception(_Error(code))


@pytest.fixture
def reader_of(monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[..., Any]]:
    readers = []

    def open_(broker: _Broker, **options: Any) -> Any:
        client = SimpleNamespace(
            Consumer=lambda config: broker,
            TopicPartition=_Place,
            KafkaException=_Exception,
            KafkaError=_Error,
        )
        monkeypatch.setattr(kafka, "_client", lambda: client)
        broker.calls.setdefault("get_watermark_offsets", lambda *_, **__: (0, 10))
        broker.calls.setdefault("committed", lambda places, **_: places)
        reader = kafka.KafkaSource("nowhere", "t", **options).open("t/0")
        readers.append(reader)
        return reader

    yield open_
    for reader in readers:
        reader.close()
    wait_until(lambda: not [one for one in threading.enumerate() if one.name == "pointstamp-kafka"])


def ends(call: Callable[[], Any]) -> bool:
    """Whether a call on another thread ends although this one goes no further."""
    thread = threading.Thread(target=call, daemon=True)
    thread.start()
    thread.join(LIMIT)
    return not thread.is_alive()


def test_a_reader_is_closed_while_it_asks_a_broker(
    reader_of: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    ended: list[bool] = []

    def asked(*_: Any, **__: Any) -> None:
        ended.append(ends(reader.close))
        assert "close" not in broker.done, "the client is closed by who uses it last"
        raise refused(-185)

    broker = _Broker(list_topics=asked)
    monkeypatch.setattr(kafka, "STEP", 0)  # it asks whenever nothing comes
    reader = reader_of(broker)
    assert reader.read() == [], "it says where it begins first"
    assert reader.read() is None
    wait_until(lambda: "close" in broker.done)
    assert ended == [True]


def test_a_reader_is_closed_while_it_looks_where_to_begin(reader_of: Callable[..., Any]) -> None:
    def committed(*_: Any, **__: Any) -> None:
        reader.close()
        raise refused(-185)

    broker = _Broker(committed=committed)
    reader = reader_of(broker, group="g", patience=5)
    assert reader.read() is None
    assert broker.done.count("committed") == 1
    wait_until(lambda: "close" in broker.done)


def test_offsets_are_committed_by_one_thread_and_the_newest_first(reader_of: Callable[..., Any]) -> None:
    begun, free = threading.Event(), threading.Event()
    taken: list[int] = []
    threads: set[int] = set()

    def commit(*, offsets: list[_Place], **_: Any) -> None:
        taken.append(offsets[0].offset)
        threads.add(threading.get_ident())
        begun.set()
        assert free.wait(LIMIT)

    reader = reader_of(_Broker(commit=commit), group="g")
    reader.durable(1)
    assert begun.wait(LIMIT)
    for offset in range(2, 9):
        assert ends(partial(reader.durable, offset))
    free.set()
    reader.close()
    assert taken == [1, 8]
    assert len(threads) == 1


def test_a_commit_that_passes_is_tried_again_with_the_newest_offset(
    reader_of: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(kafka, "RETRY", 0)
    tried: list[int] = []

    def commit(*, offsets: list[_Place], **_: Any) -> None:
        tried.append(offsets[0].offset)
        if len(tried) == 1:
            reader.durable(2)
            raise refused(-185)

    reader = reader_of(_Broker(commit=commit), group="g")
    reader.durable(1)
    reader.close()
    assert tried == [1, 2]


def test_a_commit_that_is_refused_is_an_error_of_what_comes_next(reader_of: Callable[..., Any]) -> None:
    def commit(**_: Any) -> None:
        raise refused(22)

    reader = reader_of(_Broker(commit=commit), group="g")
    assert reader.read() == [], "it says where it begins first"
    reader.durable(1)
    with pytest.raises(ps.PointstampError, match="give it a group of its own"):
        reader.read()
    end = SimpleNamespace(error=lambda: _Error(kafka.END_OF_PARTITION))
    reader = reader_of(_Broker(commit=commit, consume=lambda *_: [end]), group="g", bounded=True)
    assert reader.read() == []
    assert reader.read() is None
    reader.durable(1)
    with pytest.raises(ps.PointstampError, match="give it a group of its own"):
        reader.close()


class _Stream:
    """A connection on which nothing comes."""

    pid = 0

    def __init__(self) -> None:
        self._ends = os.pipe()
        self.said: list[Any] = []

    def fileno(self) -> int:
        return self._ends[0]

    def take(self) -> None:
        return None

    def tell(self, durable: int, received: int, *, answer: bool = False) -> None:
        self.said.append(durable)

    def close(self) -> None:
        self.said.append("closed")
        for end in self._ends:
            os.close(end)


def slot(monkeypatch: pytest.MonkeyPatch, **options: Any) -> tuple[Any, _Stream]:
    pytest.importorskip("psycopg")
    from pointstamp.connectors.postgres import PostgresSource

    stream = _Stream()
    return PostgresSource("host=nowhere", "p", slot="s", snapshot=False, **options).open("s"), stream


def test_what_is_durable_is_left_for_the_thread_that_connects(monkeypatch: pytest.MonkeyPatch) -> None:
    reader, stream = slot(monkeypatch)
    begun, free = threading.Event(), threading.Event()
    waited: list[bool] = []

    def connect() -> None:
        begun.set()
        waited.append(free.wait(LIMIT))
        reader._stream = stream

    monkeypatch.setattr(reader, "_connect", connect)

    def read() -> None:
        while reader.read() is not None:
            pass

    thread = threading.Thread(target=read)
    thread.start()
    assert begun.wait(LIMIT)
    reader.durable(5)
    free.set()
    wait_until(lambda: 5 in stream.said)
    reader.durable(7)  # and while it waits for changes
    wait_until(lambda: 7 in stream.said)
    reader.close()
    thread.join(LIMIT)
    assert waited == [True]


def test_what_is_durable_behind_the_end_is_told_when_it_is_closed(monkeypatch: pytest.MonkeyPatch) -> None:
    for connected in (True, False):
        reader, stream = slot(monkeypatch, bounded=True)
        reader._over = True

        def connect(reader: Any = reader, stream: _Stream = stream) -> None:
            reader._stream = stream
            reader._tell()

        if connected:
            reader._stream = stream
        monkeypatch.setattr(reader, "_connect", connect)
        assert reader.read() is None
        reader.durable(7)
        assert stream.said == []
        reader.close()
        assert stream.said == [7, "closed"]
