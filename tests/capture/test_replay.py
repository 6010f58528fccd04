"""Streams that leave a dataflow and come back: the same records at the same times under the same frontier."""

import io
import os
import socket
import threading
from collections import Counter
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import pointstamp as ps
import processes_in_threads as several
from effort import examples
from harness import merged, run, share
from pointstamp.capture import Messages, Progress
from random_dataflows import Steps, checked, dataflow, inputs
from random_dataflows import programs as any_steps

SCHEMA = pa.schema([("word", pa.string()), ("n", pa.int64())])
ROWS = [{"word": "one", "n": 1}, {"word": "two", "n": None}, {"word": "one", "n": 3}]


def numbers(scope: ps.Scope, count: int = 30) -> ps.Stream[int]:
    return share(scope, range(count)).delay(lambda x, _: x % 5)


def reader(path: Any, **options: Any) -> ps.EventReader:
    return ps.EventReader(path, allow_pickle=True, **options)


def mine(scope: ps.Scope, captures: list[Any]) -> list[Any]:
    return captures[scope.index :: scope.peers]


EXPECTED = {t: Counter(range(t, 30, 5)) for t in range(5)}

# ------------------------------------------------------------ other numbers of workers


@pytest.mark.parametrize("readers", [1, 3, 4])
@pytest.mark.parametrize("writers", [1, 2, 5])
def test_files_of_some_workers_are_replayed_by_others(writers: int, readers: int, tmp_path: Path) -> None:
    paths = [tmp_path / f"{n}.events" for n in range(writers)]
    run(writers, lambda scope: numbers(scope).capture_into(ps.EventWriter(paths[scope.index])))

    def build(scope: ps.Scope) -> Any:
        return checked(scope.replay([reader(path) for path in mine(scope, paths)])).capture()

    assert merged(run(readers, build)) == EXPECTED


@pytest.mark.parametrize("writers", [1, 2, 5])
def test_files_are_replayed_by_two_processes(writers: int, tmp_path: Path) -> None:
    paths = [tmp_path / f"{n}.events" for n in range(writers)]
    run(writers, lambda scope: numbers(scope).capture_into(ps.EventWriter(paths[scope.index])))

    def main(worker: ps.Worker) -> Any:
        with worker.dataflow() as scope:
            stream = scope.replay([reader(path) for path in mine(scope, paths)])
            capture = stream.exchange(lambda x: x).capture()
        worker.run()
        return capture

    assert merged(several.execute(main, 2, 1)) == EXPECTED


@pytest.mark.parametrize("readers", [1, 3])
def test_sockets_as_in_the_book(readers: int) -> None:
    pairs = [socket.socketpair() for _ in range(5)]

    def send() -> None:
        run(5, lambda scope: numbers(scope).capture_into(ps.EventWriter(pairs[scope.index][0])))

    sender = threading.Thread(target=send)
    sender.start()

    def build(scope: ps.Scope) -> Any:
        return checked(scope.replay([reader(b) for _, b in mine(scope, pairs)])).capture()

    try:
        assert merged(run(readers, build)) == EXPECTED
    finally:
        sender.join()
    assert all(a.fileno() == b.fileno() == -1 for a, b in pairs), "who took them over closed them"


@pytest.mark.parametrize("readers", [1, 3])
def test_captures_in_memory_are_replayed_while_they_grow(readers: int) -> None:
    captured: list[Any] = [None, None]
    ready = threading.Barrier(3)
    go = threading.Event()

    def capturing() -> None:
        def main(worker: ps.Worker) -> None:
            handle: ps.InputHandle[int] = ps.InputHandle()
            with worker.dataflow() as scope:
                captured[worker.index] = handle.to_stream(scope).capture()
            ready.wait()
            go.wait()
            for time in range(5):
                handle.send_batch(x for x in range(time, 30, 5) if x % worker.peers == worker.index)
                handle.advance_to(time + 1)
                worker.step()
            handle.close()
            worker.run()

        ps.execute(main, workers=2)

    thread = threading.Thread(target=capturing)
    thread.start()
    ready.wait()

    def main(worker: ps.Worker) -> Any:
        with worker.dataflow() as scope:
            result = checked(scope.replay(mine(scope, captured))).capture()
        go.set()
        worker.run()
        return result

    try:
        assert merged(ps.execute(main, workers=readers)) == EXPECTED
    finally:
        thread.join()


def test_a_worker_without_captures_has_a_stream_that_is_over() -> None:
    assert ps.example(lambda scope: scope.replay([]).capture()).extract() == []
    empty = ps.example(lambda scope: scope.replay([], schema=SCHEMA).to_records().capture())
    assert empty.extract() == []


# ------------------------------------------------------------ frontiers


def history(capture: Any) -> list[tuple[list[ps.Time], ps.Time | None, Any]]:
    """Returns the events in order: frontier, time and records."""
    counts: Counter[Any] = Counter()
    said: list[tuple[list[ps.Time], ps.Time | None, Any]] = []
    for event in capture:
        if isinstance(event, Progress):
            counts.update(dict(event.changes))
            said.append((sorted(t for t, n in counts.items() if n), None, None))
        else:
            said.append((sorted(t for t, n in counts.items() if n), event.time, event.data))
    return said


def test_the_frontier_is_reproduced_exactly() -> None:
    def main(worker: ps.Worker) -> Any:
        handle: ps.InputHandle[int] = ps.InputHandle()
        with worker.dataflow() as scope:
            captured = handle.to_stream(scope).capture()
        for time in [0, 3, 4, 9]:
            handle.advance_to(time)
            worker.step()
            handle.send(time)
            worker.step()
        handle.close()
        worker.run()
        return captured

    (captured,) = ps.execute(main)
    kept = io.BytesIO()

    def write(scope: ps.Scope) -> None:
        scope.replay([captured]).capture_into(ps.EventWriter(kept))

    ps.example(write)
    kept.seek(0)
    frontiers = [said[0] for said in history(captured) if said[1] is None]
    assert frontiers == [[0], [3], [4], [9], []]
    assert {said[1] for said in history(reader(kept))} == {None, 0, 3, 4, 9}


def test_the_frontier_follows_a_file_that_is_written(tmp_path: Path) -> None:
    path = tmp_path / "growing.events"

    def main(worker: ps.Worker) -> Any:
        handle: ps.InputHandle[int] = ps.InputHandle()
        with worker.dataflow("writes") as scope:
            handle.to_stream(scope).capture_into(ps.EventWriter(path))
        with worker.dataflow("follows") as scope:
            stream = checked(scope.replay([reader(path, follow=True)]))
            probe, out = stream.probe(), stream.capture()
        for time in range(4):
            handle.send(10 * time)
            handle.advance_to(time + 1)
            worker.step_while(lambda: probe.less_than(time + 1))
            assert list(probe.frontier) == [time + 1]
        handle.close()
        worker.run()
        return out

    (out,) = ps.execute(main)
    assert out.extract() == [(t, [10 * t]) for t in range(4)]


@settings(max_examples=examples(20))
@given(steps=any_steps, data=inputs, readers=st.sampled_from([1, 3, 4]))
@pytest.mark.parametrize("writers", [1, 2, 5])
def test_a_replay_is_the_stream(
    writers: int, readers: int, steps: Steps, data: list[tuple[int, int]]
) -> None:
    kept = [io.BytesIO() for _ in range(writers)]

    def build(scope: ps.Scope) -> ps.Capture[int]:
        stream = share(scope, data).delay(lambda item, _: item[0]).map(lambda item: item[1])
        result = dataflow(steps, stream)
        result.capture_into(ps.EventWriter(kept[scope.index]))
        return result.capture()

    original = run(writers, build)
    again = [io.BytesIO(file.getvalue()) for file in kept]

    def from_files(scope: ps.Scope) -> ps.Capture[int]:
        return checked(scope.replay([reader(file) for file in mine(scope, again)])).capture()

    def from_memory(scope: ps.Scope) -> ps.Capture[int]:
        return checked(scope.replay(mine(scope, original))).capture()

    assert merged(run(readers, from_files)) == merged(original)
    assert merged(run(readers, from_memory)) == merged(original)


def test_inside_of_a_loop_and_back(tmp_path: Path) -> None:
    path = tmp_path / "loop.events"

    def build(scope: ps.Scope) -> Any:
        with scope.iterative() as loop:
            handle, again = loop.loop_variable(1)
            going = scope.to_stream([5]).enter(loop).concat(again)
            going.capture_into(ps.EventWriter(path))
            captured = going.capture()
            going.map(lambda x: x - 1).filter(lambda x: x > 0).connect_loop(handle)
        return captured

    captured = ps.example(build)

    def play(scope: ps.Scope) -> Any:
        with scope.scoped(dims=1) as inner:
            return checked(inner.replay([reader(path), captured])).capture()

    expected = [((0, t), [5 - t]) for t in range(5)]
    assert captured.extract() == expected
    assert ps.example(play).extract() == [(time, 2 * data) for time, data in expected]
    with pytest.raises(ps.TimeError, match="2 coordinates, and this scope of 1"):
        ps.example(lambda scope: scope.replay([reader(path)]))
    with pytest.raises(ps.TimeError, match="this capture has times of 2"):
        ps.example(lambda scope: scope.replay([captured]))


# ------------------------------------------------------------ columns


def rows(scope: ps.Scope) -> ps.ArrowStream:
    return share(scope, ROWS).to_arrow(SCHEMA)


def test_columns_come_back_as_they_were_and_need_no_trust(tmp_path: Path) -> None:
    paths = [tmp_path / "0", tmp_path / "1"]
    run(2, lambda scope: rows(scope).capture_into(ps.EventWriter(paths[scope.index])))

    def build(scope: ps.Scope) -> Any:
        stream = scope.replay([ps.EventReader(path) for path in mine(scope, paths)], schema=SCHEMA)
        assert isinstance(stream, ps.ArrowStream)
        return stream.exchange("word").capture()

    got = [batch for c in run(3, build) for _, batches in c.extract() for batch in batches]
    assert all(batch.schema == SCHEMA for batch in got)
    assert Counter(map(str, pa.Table.from_batches(got).to_pylist())) == Counter(map(str, ROWS))


def test_columns_in_memory() -> None:
    captured = ps.example(lambda scope: rows(scope).capture())
    again = ps.example(
        lambda scope: (
            scope.replay([captured]).aggregate("word", n_count=ps.col("n").count()).to_records().capture()
        )
    )
    assert [row["word"] for row in again.extract()[0][1]] in (["one", "two"], ["two", "one"])


def test_kinds_are_not_mixed(tmp_path: Path) -> None:
    columns = ps.example(lambda scope: rows(scope).capture())
    records = ps.example(lambda scope: numbers(scope).capture())
    other = ps.example(
        lambda scope: scope.to_stream([{"word": 1}]).to_arrow(pa.schema([("word", pa.int64())])).capture()
    )
    for pair in ([columns, records], [records, columns]):
        with pytest.raises(ps.GraphError, match="records and captures of columns"):
            ps.example(lambda scope: scope.replay(pair))
    with pytest.raises(ps.GraphError, match="schema"):
        ps.example(lambda scope: scope.replay([columns, other]))
    with pytest.raises(ps.GraphError, match="schema"):
        ps.example(lambda scope: scope.replay([other], schema=SCHEMA))
    collection = ps.example(lambda scope: scope.collection([1]).capture())
    with pytest.raises(TypeError, match="updates"):
        ps.example(lambda scope: scope.replay([collection]))
    with pytest.raises(TypeError, match="not 3"):
        ps.example(lambda scope: scope.replay([3]))  # type: ignore[arg-type]


# ------------------------------------------------------------ misuse and failures


def test_pickled_records_need_trust(tmp_path: Path) -> None:
    path = tmp_path / "records"
    ps.example(lambda scope: numbers(scope).capture_into(ps.EventWriter(path)))
    with pytest.raises(ps.CodecError, match="allow_pickle"):
        ps.EventReader(path)
    with pytest.raises(ps.CodecError, match="allow_pickle"):
        ps.example(lambda scope: scope.replay([ps.EventReader(io.BytesIO(path.read_bytes()))]))
    with pytest.raises(ps.CodecError, match="allow_pickle"):
        list(ps.EventReader(path, follow=True))


def test_a_file_is_not_written_twice_by_mistake(tmp_path: Path) -> None:
    path = tmp_path / "records"
    writer = ps.EventWriter(path)
    with pytest.raises(FileExistsError, match="records"):
        ps.EventWriter(path)

    def twice(scope: ps.Scope) -> None:
        numbers(scope).capture_into(writer)
        numbers(scope).capture_into(writer)

    with pytest.raises(ps.GraphError, match="one for each stream"):
        ps.example(twice)
    ps.EventWriter(path, overwrite=True)
    assert path.read_bytes() == b""
    with pytest.raises(ps.CodecError, match="byte 0: it ends before"):
        reader(path)


def test_a_reader_is_read_once(tmp_path: Path) -> None:
    path = tmp_path / "records"
    ps.example(lambda scope: numbers(scope).capture_into(ps.EventWriter(path)))
    one = reader(path)
    assert merged([ps.example(lambda scope: scope.replay([one]).capture())]) == EXPECTED
    with pytest.raises(ps.GraphError, match="read once"):
        ps.example(lambda scope: scope.replay([one]))


@pytest.mark.parametrize("target", [3, None, object()])
def test_what_cannot_be_written_or_read_is_refused(target: Any) -> None:
    with pytest.raises(TypeError, match="path, a binary file or a connected socket"):
        ps.EventWriter(target)
    with pytest.raises(TypeError, match="path, a binary file or a connected socket"):
        ps.EventReader(target)


def test_missing_files_and_text_are_said(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match="nothing"):
        reader(tmp_path / "nothing")
    with pytest.raises(ps.CodecError, match="byte 0: this is not a capture"):
        reader(__file__)
    with pytest.raises(TypeError, match="binary mode"):
        ps.example(lambda scope: scope.replay([reader(io.StringIO("text"))]))


def test_an_error_of_the_target_ends_the_dataflow(tmp_path: Path) -> None:
    with pytest.raises(OSError, match="No space left"):
        ps.example(lambda scope: numbers(scope).capture_into(ps.EventWriter("/dev/full", overwrite=True)))

    class Broken(io.BytesIO):
        def write(self, data: Any) -> int:
            raise KeyError("the disk")

    with pytest.raises(KeyError, match="the disk"):
        ps.example(lambda scope: numbers(scope).capture_into(ps.EventWriter(Broken())))


def test_an_error_of_the_source_ends_the_dataflow() -> None:
    kept = io.BytesIO()
    ps.example(lambda scope: numbers(scope).capture_into(ps.EventWriter(kept)))

    class Broken(io.BytesIO):
        def read1(self, size: int | None = -1) -> bytes:
            if self.tell() > 200:
                raise KeyError("the cable")
            return super().read1(100)

    with pytest.raises(KeyError, match="the cable"):
        ps.example(lambda scope: scope.replay([reader(Broken(kept.getvalue()))]))


def test_a_capture_sends_each_time_at_once() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        ours = socket.create_connection(server.getsockname())
        theirs, _ = server.accept()
    assert not ours.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY)
    writer = ps.EventWriter(ours)
    assert ours.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY), "the second of two small writes waits"
    ps.example(lambda scope: scope.empty().capture_into(writer))
    theirs.close()


def test_a_replay_that_fails_lets_go_of_its_socket() -> None:
    a, b = socket.socketpair()
    a.sendall(b"nothing that was captured, and more of it")
    with pytest.raises(ps.CodecError, match="byte 0"):
        ps.example(lambda scope: scope.replay([reader(b)]))
    a.close()

    a, b = socket.socketpair()
    ps.example(lambda scope: scope.empty().capture_into(ps.EventWriter(a)))

    def fails(scope: ps.Scope) -> None:
        scope.replay([reader(b)])
        scope.to_stream([0]).map(lambda x: 1 // x).inspect(print)

    with pytest.raises(ZeroDivisionError):
        ps.example(fails)


def test_a_captured_dataflow_that_fails_is_cut(tmp_path: Path) -> None:
    path = tmp_path / "cut"
    captures: list[Any] = []

    def build(scope: ps.Scope) -> None:
        stream = scope.iterator_source("numbers", ((t, [t]) for t in range(10)), in_flight=1)
        stream.capture_into(ps.EventWriter(path))
        captures.append(stream.capture())
        stream.map(lambda x: 1 // (5 - x)).inspect(lambda _: None)

    with pytest.raises(ZeroDivisionError):
        ps.example(build)
    with pytest.warns(ps.TruncatedWarning, match="cut ends at byte"):
        out = ps.example(lambda scope: scope.replay([reader(path)]).capture()).extract()
    assert out[:5] == [(t, [t]) for t in range(5)]
    with pytest.warns(ps.TruncatedWarning, match="its dataflow failed"):
        ps.example(lambda scope: scope.replay(captures).capture())


def test_large_batches_cross_in_pieces(tmp_path: Path) -> None:
    big = [bytes([n]) * 3_000_000 for n in range(8)]
    a, b = socket.socketpair()

    def send() -> None:
        ps.example(lambda scope: scope.to_stream(big).capture_into(ps.EventWriter(a)))

    thread = threading.Thread(target=send)
    thread.start()
    out = ps.example(lambda scope: scope.replay([reader(b)]).map(lambda x: (x[0], len(x))).capture())
    thread.join()
    assert out.extract() == [(0, [(n, 3_000_000) for n in range(8)])]


def test_a_pipe_is_followed_and_let_go_of() -> None:
    kept = io.BytesIO()
    ps.example(lambda scope: numbers(scope).capture_into(ps.EventWriter(kept)))
    inward, outward = os.pipe()
    os.write(outward, kept.getvalue())
    with open(inward, "rb", buffering=0) as file:
        out = ps.example(lambda scope: scope.replay([reader(file)]).capture())
    os.close(outward)
    assert merged([out]) == EXPECTED


def test_events_one_by_one() -> None:
    kept = io.BytesIO()
    ps.example(lambda scope: scope.to_stream(list("ab")).capture_into(ps.EventWriter(kept)))
    kept.seek(0)
    one = reader(kept)
    events = list(one)
    assert events == [Progress([(0, 1)]), Messages(0, ["a", "b"]), Progress([(0, -1)])]
    assert one.offset == len(kept.getvalue())
    assert one.frontier == []
