"""Operators that keep a source from acknowledging for long say so, once; others do not."""

from __future__ import annotations

import threading
import warnings
from collections.abc import Callable
from typing import Any

import pyarrow as pa
import pytest

import pointstamp as ps
from counting_reader import CountingReader
from keyed_operators import COLUMNS, SCHEMA
from pointstamp.connectors import PartitionReader, QueueSource, Source
from pointstamp.logic import holding_back

ROWS = [(at, "a", at % 3) for at in range(400)]


class Log(Source[Any]):
    """The rows, one by one; it notes what is acknowledged."""

    def __init__(self, *, columns: bool = False, ends: bool = True) -> None:
        self.ends = ends
        self.kept: list[int] = []
        self.schema = SCHEMA if columns else None

    def partitions(self) -> list[str]:
        return ["0"]

    def open(self, partition: str) -> PartitionReader[Any]:
        return Part(self)


class Part(CountingReader):
    def __init__(self, log: Log) -> None:
        self.log, self.at = log, 0
        self.closed = threading.Event()

    def read(self) -> Any:
        if self.at == len(ROWS):
            if not self.log.ends:
                self.closed.wait()
            return None
        self.at += 1
        row = ROWS[self.at - 1]
        if self.log.schema is None:
            return [row]
        return pa.RecordBatch.from_pylist([dict(zip(SCHEMA.names, row, strict=True))], SCHEMA)

    def durable(self, offset: int) -> None:
        self.log.kept.append(offset)

    def close(self) -> None:
        self.closed.set()


def said(
    build: Callable[[Any], Any],
    monkeypatch: pytest.MonkeyPatch,
    *,
    columns: bool = False,
    workers: int = 1,
    batches: int = 3,
) -> list[str]:
    """Runs a dataflow whose operators warn after so many batches; returns the warnings."""
    monkeypatch.setattr(holding_back, "BATCHES", batches)

    def main(worker: ps.Worker) -> None:
        with worker.dataflow() as scope:
            log = Log(columns=columns)
            build(scope.read(log, event_time="at" if columns else (lambda row: row[0]))[0])
        worker.run()

    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        ps.execute(main, workers=workers)
    return [str(w.message) for w in caught if w.category is ps.NotAcknowledged]


def by_key(stream: Any) -> Any:
    return stream.key_by(lambda row: row[1])


@pytest.mark.parametrize("name", sorted(COLUMNS))
def test_many_rows_of_one_time_are_no_reason_to_warn(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    # While the frontier stands, no snapshot could let go of a row.
    monkeypatch.setitem(globals(), "ROWS", [(0, "a", n) for n in range(60)])
    assert said(lambda s: COLUMNS[name](s, s, ps.KeyedState()), monkeypatch, columns=True) == []


@pytest.mark.parametrize("workers", [1, 2])
def test_a_state_of_which_no_snapshot_is_taken(workers: int, monkeypatch: pytest.MonkeyPatch) -> None:
    def build(stream: Any) -> Any:
        return by_key(stream).scan(lambda _key, _, n: n + 1, default=int, state=ps.KeyedState())

    [text] = said(build, monkeypatch, workers=workers)
    assert "operator 'scan'" in text
    assert __file__ in text
    assert "no snapshot of the KeyedState" in text
    assert "snapshot()" in text


def test_a_state_of_columns_of_which_no_snapshot_is_taken(monkeypatch: pytest.MonkeyPatch) -> None:
    def build(stream: Any) -> Any:
        return COLUMNS["table join"](stream, stream, ps.KeyedState())

    [text] = said(build, monkeypatch, columns=True)
    assert "operator 'table_join'" in text
    assert "no snapshot of the KeyedState" in text


@pytest.mark.parametrize("workers", [1, 2])
def test_a_key_that_is_never_silent(workers: int, monkeypatch: pytest.MonkeyPatch) -> None:
    def build(stream: Any) -> Any:
        return by_key(stream).scan(lambda _key, _, n: n + 1, default=int, ttl=3)

    [text] = said(build, monkeypatch, workers=workers)
    assert "operator 'scan'" in text
    assert __file__ in text
    assert "key 'a' has not been silent for its ttl" in text


QUIET: dict[str, Callable[[Any], Any]] = {
    "a long ttl": lambda s: by_key(s).scan(lambda _key, _, n: n + 1, default=int, ttl=1000),
    "a long window": lambda s: by_key(s).window(ps.Tumbling(1000)).count(),
    "keys that end": lambda s: s.key_by(lambda row: row[0] // 10).scan(
        lambda _key, _, n: n + 1, default=int, ttl=3
    ),
    "windows with a state": lambda s: by_key(s).window(ps.Tumbling(5), state=ps.KeyedState()).count(),
}


@pytest.mark.parametrize("name", QUIET)
def test_what_passes_is_not_worth_a_word(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    found = said(QUIET[name], monkeypatch, batches=200)
    assert not found


def test_nobody_is_told_where_no_source_upstream_acknowledges(monkeypatch: pytest.MonkeyPatch) -> None:
    def build(stream: Any) -> Any:
        source: QueueSource[Any] = QueueSource()
        source.put_many(ROWS)
        source.close()
        beside, _ = stream.scope.read(source, event_time=lambda row: row[0])
        return by_key(beside).scan(lambda _key, _, n: n + 1, default=int, state=ps.KeyedState())

    assert not said(build, monkeypatch)


def test_a_snapshot_that_cannot_be_made_is_none() -> None:
    """A snapshot that raised holds nothing, and no offset of what it was to hold is acknowledged."""
    log = Log(ends=False)

    def main(worker: ps.Worker) -> None:
        state: ps.KeyedState[Any, Any] = ps.KeyedState()
        with worker.dataflow() as scope:
            rows, _ = scope.read(log, event_time=lambda row: row[0])
            by_key(rows).scan(lambda _key, _, lock: lock, default=threading.Lock, state=state).map(
                lambda _: None
            )
        worker.step_while(lambda: state.frontier is None or state.frontier < ROWS[-1][0], timeout=60)
        with pytest.raises(ps.CodecError, match="lock"):
            state.snapshot()
        for _ in range(50):
            worker.step()
        worker.drop_dataflow(worker.installed_dataflows()[0])

    ps.execute(main)
    assert not log.kept


def test_a_source_that_says_too_little_is_told() -> None:
    log = Log()
    log.acknowledges = False

    def main(worker: ps.Worker) -> None:
        with worker.dataflow() as scope:
            scope.read(log)
        worker.run()

    with pytest.raises(ps.GraphError, match=r"Log have a durable.*acknowledges = False: set it to True"):
        ps.execute(main)
