"""Leftovers of a capture: no thread where a replay cannot begin, and records as they arrived."""

import io
import os
import socket
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import pointstamp as ps
from pointstamp.capture import carriers


def test_a_reader_that_is_waited_for_ends_with_the_computation() -> None:
    """Another worker fails while this one waits for a capture to begin: no thread reads any more."""
    ours, theirs = socket.socketpair()
    waits = threading.Event()

    class Waiting(ps.EventReader):
        def _begin(self) -> Any:
            waits.set()
            return super()._begin()

    def main(worker: ps.Worker) -> None:
        with worker.dataflow() as scope:
            if worker.index == 1:
                scope.replay([Waiting(ours, allow_pickle=True)])
            assert waits.wait(120)
            raise LookupError("enough")

    with theirs, pytest.raises(LookupError, match="enough"):
        ps.execute(main, workers=2)
    assert not any(thread.name == "pointstamp reader" for thread in threading.enumerate())


def test_a_replay_that_is_refused_lets_go_of_its_readers() -> None:
    """The first of two captures fits, and neither has come to its end."""
    kept = io.BytesIO()
    ps.example(lambda scope: scope.to_stream([1]).capture_into(ps.EventWriter(kept)))
    pairs = [socket.socketpair() for _ in range(2)]
    for _, theirs in pairs:
        theirs.sendall(kept.getvalue()[:-1])
    readers = [ps.EventReader(ours, allow_pickle=True) for ours, _ in pairs]
    captures: list[Any] = [*readers, "no capture"]
    with pytest.raises(TypeError, match="replay plays captures"):
        ps.example(lambda scope: scope.replay(captures))
    assert not any(thread.name == "pointstamp reader" for thread in threading.enumerate())
    for _, theirs in pairs:
        theirs.close()


@pytest.mark.parametrize(
    "records",
    [[5, 3, 1, 4, 2, 9, 7, 8, None, 6], [np.array([1, 2]), np.array([0, 2])], [("b", 1), ("a", 1)]],
    ids=["mixed", "arrays", "ordered"],
)
def test_records_without_an_order_are_extracted_as_they_arrived(records: list[Any]) -> None:
    captured = ps.example(lambda scope: scope.to_stream(records).capture())
    [(time, found)] = captured.extract()
    assert time == 0
    expected = sorted(records) if isinstance(records[0], tuple) else records
    assert len(found) == len(records)
    assert all(one is other for one, other in zip(found, expected, strict=True))


def test_sockets_that_are_not_connected_are_refused() -> None:
    """Waiting for one would have no end."""
    with socket.create_server(("127.0.0.1", 0)) as listener, socket.socket() as alone:
        for made in (listener, alone):
            with pytest.raises(ValueError, match=r"not connected: .* take accept"):
                ps.EventWriter(made)
            with pytest.raises(ValueError, match=r"not connected: .* take accept"):
                ps.EventReader(made)


def test_a_reader_that_was_iterated_is_not_replayed() -> None:
    kept = io.BytesIO()
    ps.example(lambda scope: scope.to_stream([1]).capture_into(ps.EventWriter(kept)))
    kept.seek(0)
    reader = ps.EventReader(kept, allow_pickle=True)
    next(iter(reader))
    with pytest.raises(ps.GraphError, match="read already"):
        ps.example(lambda scope: scope.replay([reader]))
    reader.close()


def test_a_reader_that_is_replayed_goes_on_when_another_use_is_refused() -> None:
    """A use that would take its events, or close it, is refused, and the first replay has all of them."""
    kept = io.BytesIO()
    ps.example(lambda scope: scope.to_stream(range(5)).capture_into(ps.EventWriter(kept)))
    ours, theirs = socket.socketpair()
    written = kept.getvalue()
    theirs.sendall(written[:-1])
    reader = ps.EventReader(ours, allow_pickle=True)

    def main(worker: ps.Worker) -> Any:
        with worker.dataflow() as scope:
            captured = scope.replay([reader]).capture()
        for others in ([reader], [reader, "no capture"]):
            with pytest.raises(ps.GraphError, match="a reader is read once"), worker.dataflow() as scope:
                scope.replay(others)  # type: ignore[arg-type]
        with pytest.raises(ps.GraphError, match="a reader is read once"):
            next(iter(reader))
        theirs.sendall(written[-1:])
        theirs.close()
        worker.run()
        return captured

    assert ps.execute(main)[0].extract() == [(0, [0, 1, 2, 3, 4])]


def test_a_file_that_takes_nothing_is_an_error() -> None:
    class Full(io.BytesIO):
        def write(self, data: Any) -> int:
            return 0

    with pytest.raises(BlockingIOError, match="takes nothing"):
        ps.example(lambda scope: scope.to_stream([1]).capture_into(ps.EventWriter(Full())))


class Fed:
    """A feed that wants no more once it is closed."""

    def __init__(self) -> None:
        self.closed = False
        self.fed = threading.Event()

    def on_close(self, stop: Callable[[], None]) -> None:
        self.stop = stop

    def feed(self, data: bytes) -> bool:
        self.fed.set()
        return not self.closed

    def end(self, error: BaseException | None = None) -> None:
        assert error is None


@pytest.mark.parametrize("kind", ["socket", "pipe"])
def test_a_thread_that_can_be_woken_has_ended_when_the_replay_has(
    kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(carriers, "FORBEARANCE", 0)  # no time at all for one that may hang
    feed: Any = Fed()
    before = set(threading.enumerate())
    ours, theirs = socket.socketpair()
    path = tmp_path / "pipe"
    os.mkfifo(path)
    carriers.start_reading(ours if kind == "socket" else carriers.Pipe(str(path), True), feed)
    with theirs, ours:
        if kind == "socket":
            theirs.sendall(b"x")
        else:
            path.write_bytes(b"x")
        assert feed.fed.wait(60)
        feed.closed = True
        feed.stop()
        assert set(threading.enumerate()) <= before


@pytest.mark.parametrize("when", ["its block fails", "its lowering fails"])
@pytest.mark.parametrize("columns", [False, True])
def test_who_waits_for_a_dataflow_that_was_never_built_hears_that_nothing_comes(
    when: str, columns: bool, tmp_path: Path
) -> None:
    """A capture in memory is played to its end, a file may be written again, and sockets and threads end."""
    import pyarrow as pa

    kept = io.BytesIO()
    ps.example(lambda scope: scope.to_stream([1]).capture_into(ps.EventWriter(kept)))
    path = tmp_path / "events"
    read, theirs = socket.socketpair()
    theirs.sendall(kept.getvalue()[:-1])
    written, sink = socket.socketpair()
    file, socket_writer = ps.EventWriter(path), ps.EventWriter(sink)
    reader = ps.EventReader(read, allow_pickle=True)

    def main(worker: ps.Worker) -> None:
        failures: Any = (KeyError, ps.GraphError)
        with pytest.raises(failures), worker.dataflow() as scope:
            stream: Any = scope.to_stream(pa.table({"a": [1]}) if columns else [1])
            capture = stream.capture()
            stream.capture_into(file)
            stream.capture_into(socket_writer)
            scope.replay([reader]).capture()
            if when == "its block fails":
                raise KeyError
            scope.feedback()
        with worker.dataflow() as scope:
            probe = scope.replay([capture]).probe()
        with pytest.warns(ps.TruncatedWarning):
            worker.step_while(lambda: not probe.done())

    ps.execute(main)
    ps.EventWriter(path, overwrite=True)
    assert not any(thread.name == "pointstamp reader" for thread in threading.enumerate())
    written.settimeout(120)
    while written.recv(1 << 16):
        pass
    written.close()
    theirs.close()
