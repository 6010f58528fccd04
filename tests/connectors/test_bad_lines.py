"""Lines that cannot be read: `on_error` of every source of text."""

from __future__ import annotations

import json
import random
import socket
import sqlite3
import threading
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import pointstamp as ps
from harness import notes
from pointstamp.connectors import (
    CSVSource,
    JSONLinesSource,
    PartitionReader,
    Rejected,
    Sink,
    SinkWriter,
    Source,
    SQLiteSink,
)
from pointstamp.connectors.network import (
    HTTPEventSource,
    HTTPLineSource,
    TCPLineSource,
    TCPListenSource,
    WebSocketSource,
)
from pointstamp.observability.dashboard_state import state_of
from pointstamp.observability.metrics import prometheus

SCHEMA = pa.schema([("n", pa.int64()), ("s", pa.string())])


class Kept(Sink):
    """The records that were committed, on all workers."""

    def __init__(self) -> None:
        self.rows: list[Any] = []

    def open(self, worker: int, workers: int) -> SinkWriter:
        return _Writer(self.rows)


class _Writer(SinkWriter):
    def __init__(self, rows: list[Any]) -> None:
        self.rows = rows
        self.open: dict[Any, list[Any]] = {}

    def write(self, time: Any, batch: Any) -> None:
        rows = batch.to_pylist() if isinstance(batch, pa.RecordBatch) else batch
        self.open.setdefault(time, []).extend(rows)

    def commit(self, time: Any) -> None:
        self.rows.extend(self.open.pop(time, []))


def read(source: Any, **given: Any) -> list[Any]:
    """Returns the records that are written of a source, as one worker reads it."""
    written = Kept()

    def main(worker: ps.Worker) -> None:
        with worker.dataflow() as scope:
            scope.read(source, **given).write(written)
        worker.run()

    ps.execute(main)
    return written.rows


Make = Callable[..., Any]

JSON = b'{"n": 1, "s": "a"}\nnonsense\n{"n": 2, "s": "b"}\n\n{"n": 3, "s": "\xff"}\n{"n": 4, "s": "d"}'
CSV = b'n,s\n1,a\nx,b\n2,"b\nb"\n3,c,d\n4,d\n5,"\xff"\n6,f\n'
FILES: dict[str, tuple[str, bytes, Make, list[Any], list[tuple[int, int, str]]]] = {
    "JSON lines": (
        "a.jsonl",
        JSON,
        JSONLinesSource,
        [{"n": 1, "s": "a"}, {"n": 2, "s": "b"}, {"n": 4, "s": "d"}],
        [(19, 2, "nonsense"), (48, 5, '{"n": 3, "s": "\\xff"}')],
    ),
    "JSON lines as columns": (
        "a.jsonl",
        JSON.replace(b'{"n": 3, "s": "\xff"}', b'{"n": "3", "s": "e"}'),
        lambda path, **given: JSONLinesSource(path, schema=SCHEMA, **given),
        [{"n": 1, "s": "a"}, {"n": 2, "s": "b"}, {"n": 4, "s": "d"}],
        [(19, 2, "nonsense"), (48, 5, '{"n": "3", "s": "e"}')],
    ),
    "CSV": (
        "a.csv",
        CSV,
        lambda path, **given: CSVSource(path, schema=SCHEMA, **given),
        [{"n": 1, "s": "a"}, {"n": 2, "s": "b\nb"}, {"n": 4, "s": "d"}, {"n": 6, "s": "f"}],
        [(8, 3, "x,b"), (20, 6, "3,c,d"), (30, 8, '5,"\\xff"')],
    ),
}


@pytest.fixture(params=FILES)
def case(request: pytest.FixtureRequest, tmp_path: Path) -> Any:
    name, data, make, good, bad = FILES[request.param]
    path = tmp_path / name
    path.write_bytes(data)
    return path, make, good, bad


def test_bad_lines_of_a_file_are_left_out_and_counted(case: Any) -> None:
    path, make, good, bad = case
    counted: list[Any] = []

    def main(worker: ps.Worker) -> None:
        with worker.dataflow() as scope:
            rows = scope.read(make(path, on_error="skip"))
            (rows if hasattr(rows, "key_by") else rows.to_records()).inspect(seen.append)
        asking = worker._collector
        while len(seen) < len(good):
            worker.step()
        counted.extend(asking.data(worker._engine))
        worker.run()

    seen: list[Any] = []
    ps.execute(main)
    assert seen == good
    state = state_of(counted)
    [found] = [one for flow in state["dataflows"] for one in flow["operators"] if one["name"] == "read"]
    assert found["rejected"] == len(bad)
    assert (
        f'operator="read",address="0.1"}} {len(bad)}' in prometheus(state).split("rejected_lines_total")[-1]
    )


def test_bad_lines_of_a_file_are_written_with_their_places(case: Any) -> None:
    path, make, good, bad = case
    rejected = Kept()
    assert read(make(path, on_error=rejected)) == good
    assert [(row["offset"], row["line"], row["text"]) for row in rejected.rows] == bad
    assert all(row["partition"] == str(path) and row["reason"] for row in rejected.rows)
    assert list(rejected.rows[0]) == ["partition", "offset", "line", "text", "reason"]
    for offset, _, text in bad:
        assert path.read_bytes()[offset:].startswith(text.encode().split(b"\\")[0])


def test_what_is_before_a_bad_line_is_written_before_the_error(case: Any) -> None:
    """Its times are complete; and the run begins again where the line is."""
    path, make, good, bad = case
    written, kept = Kept(), {}

    def main(worker: ps.Worker) -> None:
        source = make(path)
        opened = source.open

        def noted(partition: str) -> Any:
            reader = opened(partition)
            reader.durable = lambda offset: kept.update({partition: json.loads(json.dumps(offset))})
            return reader

        source.open = noted
        source.acknowledges = True
        with worker.dataflow() as scope:
            scope.read(source, every=0.01, offsets=dict(kept) or None).write(written)
        worker.run()

    offset, line, text = bad[0]
    for _ in range(2):  # the second run begins at the line
        with pytest.raises(ValueError, match=rf"^line {line} of .*{path.name}: ") as raised:
            ps.execute(main)
        assert written.rows == good[:1]
        said = "\n".join(notes(raised.value))
        assert f"It begins at byte {offset}: {text!r}. Mend it and run again, or pass on_error=" in said
        assert kept[str(path)]["position"] == offset
    for at, _, _ in reversed(bad):
        data = path.read_bytes()
        path.write_bytes(data[:at] + data[at:].split(b"\n", 1)[1])
    ps.execute(main)
    assert written.rows == good


def test_times_that_may_not_be_complete_are_not_written(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    path.write_text("".join(f"{n // 2}\n" for n in range(9)) + "nonsense\n9\n")
    written = Kept()

    def main(worker: ps.Worker) -> None:
        with worker.dataflow() as scope:
            scope.read(JSONLinesSource(path), time=lambda n: n).write(written)
        worker.run()

    with pytest.raises(ValueError, match="line 10"):
        ps.execute(main)
    assert written.rows == [0, 0, 1, 1, 2, 2, 3, 3]


def test_a_quote_without_an_end_is_one_bad_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("pointstamp.connectors.text.MOST_QUOTED", 1 << 10)
    monkeypatch.setattr("pointstamp.connectors.text.BLOCK", 1 << 8)
    path = tmp_path / "a.csv"
    rows = "".join(f"{n},row\n" for n in range(1000))
    path.write_text(f'n,s\n0,"open\n{rows}')
    rejected = Kept()
    found = read(CSVSource(path, schema=SCHEMA, on_error=rejected))
    assert [row["n"] for row in found] == list(range(1000))
    assert [(row["line"], row["text"]) for row in rejected.rows] == [(2, '0,"open')]
    with pytest.raises(ValueError, match=r"line 2 of .*a value in quotes has no end"):
        read(CSVSource(path, schema=SCHEMA))


def test_many_bad_lines_in_many_blocks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("pointstamp.connectors.text.BLOCK", 1 << 9)
    path = tmp_path / "a.csv"
    path.write_text("n,s\n" + "".join(f"{'x' if n % 7 == 0 else n},s\n" for n in range(2000)))
    rejected = Kept()
    found = read(CSVSource(path, schema=SCHEMA, on_error=rejected))
    assert [row["n"] for row in found] == [n for n in range(2000) if n % 7]
    assert [row["line"] for row in rejected.rows] == [n + 2 for n in range(2000) if n % 7 == 0]


def test_lines_are_counted_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """However many blocks have a bad line; and from the file's beginning after a jump."""
    monkeypatch.setattr("pointstamp.connectors.text.BLOCK", 1 << 12)
    path = tmp_path / "a.jsonl"
    lines = ["bad" if n % 100 == 0 else f'"{n:036}"' for n in range(20_000)]
    path.write_text("".join(f"{line}\n" for line in lines))
    reader: Any = JSONLinesSource(path, on_error="skip").open(str(path))
    file, taken = reader._file, []

    class Counting:
        def __getattr__(self, name: str) -> Any:
            return getattr(file, name)

        def read(self, size: int) -> bytes:
            data: bytes = file.read(size)
            taken.append(len(data))
            return data

    reader._file = Counting()
    rejected = []
    middle = None
    while reader.read() is not None:
        rejected += reader.take_rejected()
        middle = middle or reader.offset
    reader.close()
    assert [each.line for each in rejected] == [n + 1 for n in range(20_000) if n % 100 == 0]
    assert sum(taken) < 10 * path.stat().st_size
    reader = JSONLinesSource(path, on_error="skip").open(str(path))
    reader.seek(middle)
    again = []
    while reader.read() is not None:
        again += reader.take_rejected()
    reader.close()
    assert again == [each for each in rejected if each in again]
    assert again[-1] == rejected[-1]


@pytest.mark.parametrize("wrong", ["ignore", None, 3, print])
def test_what_on_error_may_be(wrong: Any, tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    path.write_text("1\n")
    makes: list[Callable[[], Any]] = [
        lambda: JSONLinesSource(path, on_error=wrong),
        lambda: CSVSource(path, schema=SCHEMA, on_error=wrong),
        lambda: TCPLineSource("h:1", on_error=wrong),
        lambda: HTTPLineSource("http://h", on_error=wrong),
        lambda: HTTPEventSource("http://h", on_error=wrong),
        lambda: WebSocketSource("ws://h", on_error=wrong),
    ]
    if wrong is not None:  # of those who connect, the connection is closed
        makes.append(lambda: TCPListenSource("h:1", on_error=wrong))
    for make in makes:
        with pytest.raises((TypeError, ValueError), match="on_error is 'raise', 'skip', or a sink"):
            make()


# ------------------------------------------------------------ times and restarts


class Timed(Sink):
    """The texts of lines that were committed, with their times."""

    def __init__(self) -> None:
        self.rows: list[tuple[int, str]] = []

    def open(self, worker: int, workers: int) -> SinkWriter:
        return _TimedWriter(self.rows)


class _TimedWriter(_Writer):
    def commit(self, time: Any) -> None:
        self.rows += [(time, row["text"]) for row in self.open.pop(time, [])]


TIMES: dict[str, dict[str, Any]] = {
    "time": {"time": lambda row: row["t"]},
    "event_time": {"event_time": lambda row: row["t"]},
    "time of columns": {"time": "t", "schema": pa.schema([("t", pa.int64())])},
    "event_time of columns": {"event_time": "t", "schema": pa.schema([("t", pa.int64())])},
}


@pytest.mark.parametrize("block", [1 << 20, 40, 1])
@pytest.mark.parametrize("times", TIMES)
def test_a_bad_line_has_the_time_of_the_record_behind_it(
    times: str, block: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """However the file is cut into batches. Behind the last record lines have the latest time."""
    monkeypatch.setattr("pointstamp.connectors.text.BLOCK", block)
    path = tmp_path / "a.jsonl"
    lines = ["bad 0"]
    for t in (1, 2, 4, 3, 5, 9, 2, 7):  # with a lateness of 3 the last 2 is late, and the 7 is not
        lines += [json.dumps({"t": t}), f"bad {t}"]
    path.write_text("".join(f"{line}\n" for line in lines))
    given = dict(TIMES[times])
    source = {"schema": given.pop("schema", None)}
    rejected = Timed()

    def build(scope: ps.Scope) -> None:
        scope.read(JSONLinesSource(path, on_error=rejected, **source), lateness=3, **given)

    ps.example(build)
    assert rejected.rows == [
        (1, "bad 0"),
        (2, "bad 1"),
        (3, "bad 4"),
        (4, "bad 2"),
        (5, "bad 3"),
        (6, "bad 9"),  # as the late record behind it: at the watermark of the partition
        (7, "bad 2"),
        (9, "bad 5"),
        (9, "bad 7"),
    ]


def test_a_bad_line_has_the_time_of_its_arrival(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    path.write_text("1\nbad\n")
    rejected, written = Timed(), []

    def build(scope: ps.Scope) -> None:
        numbers = scope.read(JSONLinesSource(path, on_error=rejected), every=1000.0)
        numbers.inspect_time(lambda _, time: written.append(time))

    ps.example(build)
    assert written[0] <= rejected.rows[0][0] <= written[0] + 1


@pytest.mark.parametrize("files", [1, 2])
@pytest.mark.parametrize("seed", range(10))
def test_runs_that_go_on_lose_no_line_and_double_none(
    seed: int, files: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Files are followed by run after run, each from the offsets that the one before was given."""
    monkeypatch.setattr("pointstamp.connectors.text.BLOCK", 64)
    rng = random.Random(seed)
    paths = [tmp_path / f"{n}.jsonl" for n in range(files)]
    database, kept_at = tmp_path / "a.db", tmp_path / "offsets.json"
    good: list[tuple[int, int]] = []
    bad: list[tuple[str]] = []
    kept: dict[str, Any] = {}
    lateness = rng.choice([0, 3])
    latest = [0] * files

    def durable(partition: str, offset: Any) -> None:
        kept[partition] = offset
        kept_at.write_text(json.dumps(kept))

    def count(table: str) -> int:
        with sqlite3.connect(database) as connection:
            found: int = connection.execute(f"select count(*) from {table}").fetchone()[0]
        connection.close()
        return found

    for run in range(6):
        pieces: list[list[str]] = [[] for _ in paths]
        for _ in range(rng.randrange(1, 30)):
            to = rng.randrange(files)
            if rng.random() < 0.5:
                bad.append((f"bad {len(bad)}",))
                pieces[to].append(bad[-1][0])
            else:
                time = max(latest[to] - rng.randrange(lateness + 1), 0) + rng.choice([0, 0, 1, 5])
                latest[to] = max(latest[to], time)
                good.append((len(good), time))
                pieces[to].append(json.dumps({"n": good[-1][0], "t": time}))
        for path, some in zip(paths, pieces, strict=True):
            with path.open("a") as file:
                file.write("".join(f"{piece}\n" for piece in some))
        complete = sum(time < min(latest) - lateness for _, time in good)
        last, at_once = run == 5, rng.random() < 0.3

        def main(worker: ps.Worker, last: bool = last, at_once: bool = at_once, n: int = complete) -> None:
            lines = SQLiteSink(database, "bad", columns=["text"])
            source = JSONLinesSource(paths, follow=not last, on_error=lines)
            offsets = json.loads(kept_at.read_text()) if kept_at.exists() else None
            with worker.dataflow() as scope:
                rows = scope.read(
                    source,
                    time=lambda row: row["t"],
                    lateness=lateness,
                    idle=None,
                    offsets=offsets,
                    durable=durable,
                )
                rows.write(SQLiteSink(database, "good", columns=["n", "t"]))
            if last:
                worker.run()
                return
            if at_once:
                for _ in range(rng.randrange(20)):
                    worker.step()
            else:
                worker.step_while(lambda: count("good") < n, timeout=120)
            worker.drop_dataflow(worker.installed_dataflows()[0])

        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ps.WrittenBefore)  # of what comes again
            ps.execute(main)
    connection = sqlite3.connect(database)
    assert connection.execute("select n, t from good order by n").fetchall() == good
    found = connection.execute("select text from bad").fetchall()
    connection.close()
    assert sorted(found) == sorted(bad)
    for path in paths:
        assert kept[str(path)]["position"] == path.stat().st_size


class Batches(Source[int]):
    """Numbers in three batches, a bad line behind the first; the rest waits for an event."""

    def __init__(self, on_error: Sink) -> None:
        self.on_error = on_error
        self.event = threading.Event()

    def partitions(self) -> list[str]:
        return ["a"]

    def open(self, partition: str) -> PartitionReader[int]:
        return _BatchesReader(self.event)


class _BatchesReader(PartitionReader[int]):
    def __init__(self, event: threading.Event) -> None:
        self.event = event
        self.read_so_far = 0

    def read(self) -> list[int] | None:
        if self.read_so_far == 3:
            self.event.wait(60)
            return None
        self.read_so_far += 1
        return [[10], [7], [13]][self.read_so_far - 1]

    @property
    def offset(self) -> int:
        return self.read_so_far

    def seek(self, offset: Any) -> None:
        self.read_so_far = offset

    def take_rejected(self) -> list[Rejected]:
        return [Rejected("a", None, None, "bad", "it is", 1)] if self.read_so_far == 1 else []


def test_an_offset_behind_a_line_that_waited_is_not_past_the_records_before_it() -> None:
    rejected = Timed()
    source, told = Batches(rejected), list[Any]()

    def main(worker: ps.Worker) -> None:
        with worker.dataflow() as scope:
            probe = scope.read(
                source, time=lambda n: n, lateness=3, durable=lambda _, offset: told.append(offset)
            ).probe()
        worker.step_while(lambda: probe.less_than(10), timeout=60)
        for _ in range(20):
            worker.step()
        assert rejected.rows == [(7, "bad")]
        assert told == []  # the record at 10 may still be on its way
        source.event.set()
        worker.run()

    ps.execute(main)
    assert told[-1] == 3


def test_a_record_without_a_time_is_named(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    path.write_text('{"t": 1}\n{"u": 2}\n' + json.dumps({"u": "x" * 500}) + "\n")
    for given in ("time", "event_time"):

        def build(scope: ps.Scope, given: str = given) -> None:
            times: dict[str, Any] = {given: lambda row: row["t"]}
            scope.read(JSONLinesSource(path, on_error="skip"), **times)

        with pytest.raises(KeyError, match="'t'") as raised:
            ps.example(build)
        said = "\n".join(notes(raised.value))
        assert f"while the {given.replace('_', ' ')} was taken of the record {{'u': 2}}. on_error=" in said
        assert "in the batch that ends at offset" in said
    path.write_text(json.dumps({"u": "x" * 5000}) + "\n")
    with pytest.raises(KeyError) as raised:
        read(JSONLinesSource(path), time=lambda row: row["t"])
    assert max(map(len, notes(raised.value))) < 1000


# ------------------------------------------------------------ connections

LINES = b"one\n\xfftwo\nthree\n" + b"x" * 50 + b"\nfour\n"
GOOD = ["one", "three", "four"]
REJECTED = [(2, "\\xfftwo"), (4, "x" * 50)]


@contextmanager
def serving(data: bytes, *, asked: bool = False) -> Iterator[int]:
    """A server that sends the same response to each client, in two pieces, after its request."""
    listener = socket.create_server(("127.0.0.1", 0))

    def serve() -> None:
        while True:
            try:
                connection, _ = listener.accept()
            except OSError:
                return
            with connection:
                if asked:
                    connection.recv(1 << 16)
                connection.sendall(data[:30])
                connection.sendall(data[30:])

    thread = threading.Thread(target=serve)
    thread.start()
    try:
        yield listener.getsockname()[1]
    finally:
        listener.shutdown(socket.SHUT_RDWR)
        listener.close()
        thread.join(60)


def response(body: bytes, kind: str = "text/plain") -> bytes:
    head = (
        f"HTTP/1.1 200 OK\r\nContent-Type: {kind}\r\nContent-Length: {len(body)}\r\nConnection: close\r\n\r\n"
    )
    return head.encode() + body


def test_bad_lines_of_a_connection() -> None:
    with serving(LINES) as port:
        address = f"127.0.0.1:{port}"
        assert read(TCPLineSource(address, max_line=20, on_error="skip")) == GOOD
        rejected = Kept()
        assert read(TCPLineSource(address, max_line=20, on_error=rejected)) == GOOD
        assert [(row["line"], row["text"]) for row in rejected.rows] == REJECTED
        assert {row["partition"] for row in rejected.rows} == {address}
        written = Kept()

        def main(worker: ps.Worker) -> None:
            with worker.dataflow() as scope:
                scope.read(TCPLineSource(address), every=0.01).write(written)
            worker.run()

        with pytest.raises(ps.CodecError, match="line 2 is not utf-8") as raised:
            ps.execute(main)
        assert written.rows == ["one"]
        assert any("on_error='skip'" in note for note in notes(raised.value))


def test_bad_lines_of_a_document() -> None:
    pytest.importorskip("httpx")
    with serving(response(LINES), asked=True) as port:
        url = f"http://127.0.0.1:{port}/"
        rejected = Kept()
        assert read(HTTPLineSource(url, max_line=20, on_error=rejected)) == GOOD
        assert [(row["line"], row["text"]) for row in rejected.rows] == REJECTED
        assert [row["offset"] for row in rejected.rows] == [4, 15]
        timed = Timed()
        source = HTTPLineSource(url, max_line=20, on_error=timed)
        assert read(source, time=len, lateness=9) == ["one", "four", "three"]
        assert timed.rows == [(4, "x" * 50), (5, "\\xfftwo")], "as 'four' and as 'three'"
        with pytest.raises(ps.CodecError, match="line 2 is not utf-8"):
            read(HTTPLineSource(url, max_line=20))


def test_bad_events() -> None:
    pytest.importorskip("httpx")
    long = "\n".join(["data: " + "y" * 15] * 9)
    body = f"id: 1\ndata: one\n\n{long}\n\ndata: \xff\n\ndata: two\n\n".encode("latin-1")
    with serving(response(body, "text/event-stream"), asked=True) as port:
        url = f"http://127.0.0.1:{port}/"
        rejected = Kept()
        seen: list[str] = []

        def main(worker: ps.Worker) -> None:
            source = HTTPEventSource(url, max_event=40, on_error=rejected)
            with worker.dataflow() as scope:
                scope.read(source, every=0.01).inspect(lambda event: seen.append(event.data))
            worker.step_while(lambda: len(rejected.rows) < 2 or len(seen) < 2, timeout=60)
            worker.drop_dataflow(worker.installed_dataflows()[0])

        ps.execute(main)
        assert seen[:2] == ["one", "two"]
        reasons = sorted(row["reason"] for row in rejected.rows[:2])
        assert reasons[0].startswith("it is not utf-8")
        assert reasons[1] == "the event is longer than 40 bytes"


def test_bad_lines_of_those_who_connect() -> None:
    for on_error in ("skip", "raise", None):
        written = Kept()
        source = TCPListenSource("127.0.0.1:0", limit=2, max_line=20, on_error=on_error)

        def main(worker: ps.Worker, source: Any = source, written: Kept = written) -> None:
            with worker.dataflow() as scope:
                scope.read(source, every=0.01).write(written)
            worker.run()

        def send(source: Any = source) -> None:
            for _ in range(2):
                with socket.create_connection(source.bound("127.0.0.1:0"), 60) as connection:
                    connection.sendall(LINES)

        thread = threading.Thread(target=send)
        thread.start()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ps.TruncatedWarning)
            if on_error == "raise":
                with pytest.raises(ps.CodecError, match="line 2 is not utf-8"):
                    ps.execute(main)
            else:
                ps.execute(main)
                assert sorted(written.rows) == sorted(2 * (GOOD if on_error else ["one"]))
        thread.join(60)


def test_bad_messages_of_a_websocket() -> None:
    server = pytest.importorskip("websockets.sync.server")
    served = []

    def handle(connection: Any) -> None:
        served.append(connection)
        if len(served) == 1:
            connection.send("one")
            connection.send("x" * 100)
            connection.recv(timeout=60)
        else:
            connection.send("two")

    with server.serve(handle, "127.0.0.1", 0) as serving:
        thread = threading.Thread(target=serving.serve_forever)
        thread.start()
        url = f"ws://127.0.0.1:{serving.socket.getsockname()[1]}"
        rejected = Kept()
        assert read(WebSocketSource(url, max_message=50, on_error=rejected)) == ["one", "two"]
        assert [row["reason"] for row in rejected.rows] == [
            f"{url} sends a message that is too long: more than 50 bytes (max_message)"
        ]
        served.clear()
        with pytest.raises(ps.CodecError, match="too long"):
            read(WebSocketSource(url, max_message=50))
        serving.shutdown()
        thread.join(60)
