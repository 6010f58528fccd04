"""Sources and sinks by the protocol: workers of partitions, durable offsets, and the effects of a failure
leaves."""

import asyncio
import threading
from collections import Counter
from collections.abc import Callable
from typing import Any

import pytest

import pointstamp as ps
from counting_reader import CountingReader
from harness import Seen, notes, run
from pointstamp.connectors import PartitionReader, QueueSource, Sink, SinkWriter, Source
from pointstamp.connectors.timing import Arrival, EventTime


class Lists(Source[Any]):
    """Partitions that are lists of batches; offsets count batches. It notes what is done with it."""

    def __init__(self, lists: dict[str, list[Any]], waits: bool = True) -> None:
        self.lists = lists
        self.waits = waits
        self.opened: Seen[tuple[str, str]] = Seen()
        self.durable: Seen[tuple[str, int]] = Seen()
        self.closed: Seen[str] = Seen()

    def partitions(self) -> list[str]:
        return list(self.lists)

    def open(self, partition: str) -> PartitionReader[Any]:
        self.opened.note((partition, threading.current_thread().name))
        return ListReader(self, partition)


class ListReader(CountingReader):
    def __init__(self, source: Lists, partition: str) -> None:
        self.source = source
        self.partition = partition
        self.at = 0

    def read(self) -> Any:
        batches = self.source.lists[self.partition]
        if self.at == len(batches):
            return None
        batch = batches[self.at]
        if isinstance(batch, BaseException):
            raise batch
        self.at += 1
        return batch

    def durable(self, offset: int) -> None:
        self.source.durable.note((self.partition, offset))

    def close(self) -> None:
        self.source.closed.note(self.partition)


def some(partitions: int, batches: int) -> dict[str, list[Any]]:
    return {f"p{p}": [[(p, b, n) for n in range(3)] for b in range(batches)] for p in range(partitions)}


def collected(captures: list[Any]) -> Counter[Any]:
    return Counter(record for capture in captures for _, records in capture.extract() for record in records)


# ------------------------------------------------------------ reading


@pytest.mark.parametrize("waits", [True, False])
@pytest.mark.parametrize("workers", [1, 2, 4])
@pytest.mark.parametrize("partitions", [0, 1, 3])
def test_partitions_are_shared_out(partitions: int, workers: int, waits: bool) -> None:
    source = Lists(some(partitions, 5), waits)
    captures = run(workers, lambda scope: scope.read(source).capture())
    assert collected(captures) == Counter(r for b in source.lists.values() for batch in b for r in batch)
    assert sorted(name for name, _ in source.opened) == sorted(source.lists)
    assert sorted(source.closed) == sorted(source.lists)


def test_offsets_are_durable_when_nothing_of_them_is_left_and_reading_goes_on_there() -> None:
    source = Lists({"a": [[(t, n) for n in range(2)] for t in range(6)]})
    durable: list[Any] = []
    seen: list[Any] = []

    def build(scope: ps.Scope) -> None:
        def slowly(time: int, records: list[Any]) -> None:
            durable.append(list(source.durable))
            seen.append(time)

        scope.read(source, time=lambda r: r[0]).inspect_batch(slowly)

    ps.example(build)
    assert seen == list(range(6))
    assert source.durable[-1] == ("a", 6)
    offsets = [offset for _, offset in source.durable]
    assert offsets == sorted(set(offsets))
    for time, before in zip(seen, durable, strict=True):
        assert all(offset <= time for _, offset in before), "no offset is durable while its records are there"

    rest = Lists(source.lists)
    out = ps.example(lambda scope: scope.read(rest, time=lambda r: r[0], offsets={"a": 4}).capture())
    assert [time for time, _ in out.extract()] == [4, 5]
    with pytest.raises(ps.GraphError, match="no partition 'b'"):
        ps.example(lambda scope: scope.read(Lists({"a": []}), offsets={"b": 1}))


def test_a_thread_that_fails_ends_the_dataflow_with_its_exception() -> None:
    error = KeyError("gone")
    source = Lists({"a": [[1], [2], error], "b": [[3]]})
    with pytest.raises(KeyError) as raised:
        run(2, lambda scope: scope.read(source).capture())
    assert raised.value is error
    assert "while reading partition 'a' from offset 2" in notes(error)
    assert sorted(source.closed) == sorted(name for name, _ in source.opened)


def test_who_waits_is_let_go_of_when_another_operator_fails() -> None:
    queue: QueueSource[int] = QueueSource()
    queue.put(1)

    def build(scope: ps.Scope) -> None:
        scope.read(queue).map(lambda x: 1 // (x - 1)).inspect(print)

    with pytest.raises(ZeroDivisionError):
        ps.example(build)


def test_an_operator_that_waits_costs_nothing() -> None:
    queue: QueueSource[int] = QueueSource()
    runs = 0

    def main(worker: ps.Worker) -> Any:
        nonlocal runs
        with worker.dataflow() as scope:
            out = scope.read(queue).capture()
        timer = threading.Timer(0.5, queue.close)
        timer.start()
        while worker.step_or_park(5):
            runs += 1
        timer.join()
        return out

    (out,) = ps.execute(main)
    assert out.extract() == []
    assert runs < 20


def test_a_worker_without_partitions_holds_nothing_up_and_reads_those_that_are_added() -> None:
    """Times go on while a source that looks for partitions has none for some workers."""
    queues: dict[str, QueueSource[int]] = {"0": QueueSource()}

    class Growing(Source[int]):
        discover = 0.02

        def partitions(self) -> list[str]:
            return list(queues)

        def worker_of(self, partition: str, workers: int) -> int:
            return int(partition) % workers

        def open(self, partition: str) -> PartitionReader[int]:
            return queues[partition].open("queue")

        def taken(self, partition: str) -> None:
            told.note((partition, threading.current_thread().name))

    def main(worker: ps.Worker) -> Any:
        with worker.dataflow() as scope:
            numbers = scope.read(Growing(), time=lambda n: n, idle=None)
            numbers.inspect_time(lambda n, time: found.note((time, n)))
            probe = numbers.probe()
        if worker.index == 0:
            queues["0"].put_many([3, 5])
        worker.step_while(lambda: probe.less_than(5))
        if worker.index == 0:
            queues["1"] = QueueSource()
            queues["1"].put_many([4, 8])  # the first is late
        worker.step_while(lambda: len(found) < 4)
        raise EndOfTest

    class EndOfTest(Exception):
        pass

    found: Seen[Any] = Seen()
    told: Seen[Any] = Seen()
    with pytest.raises(EndOfTest):
        ps.execute(main, workers=2)
    assert sorted(found) == [(3, 3), (5, 4), (5, 5), (8, 8)]
    assert sorted(told) == [(name, f"pointstamp-worker-{name}") for name in "01"]


def test_names_and_scopes_are_checked() -> None:
    twice = Lists({"a": []})
    twice.partitions = lambda: ["a", "a"]  # type: ignore[method-assign]
    with pytest.raises(ps.GraphError, match="names a partition twice"):
        ps.example(lambda scope: scope.read(twice))

    def inside(scope: ps.Scope) -> None:
        with scope.iterative() as loop:
            loop.read(Lists({}))

    with pytest.raises(ps.GraphError, match="one coordinate"):
        ps.example(inside)
    with pytest.raises(ps.GraphError, match="not both"):
        ps.example(lambda scope: scope.read(Lists({}), every=1, time=int))


# ------------------------------------------------------------ times


def test_event_times_have_a_watermark_for_each_partition() -> None:
    timing = EventTime(lambda r: r, lateness=2, idle=None)
    timing.begin(["a", "b"])
    assert list(timing.times("a", [10, 7, 10])) == [(7, [7]), (10, [10, 10])]
    assert timing.frontier() == 0, "b may still have anything"
    assert list(timing.times("b", [5])) == [(5, [5])]
    assert timing.frontier() == 3
    timing.ended("b")
    assert timing.frontier() == 8
    assert list(timing.times("a", [1, 9])) == [(8, [1]), (9, [9])], "what is late comes at the frontier"
    timing.ended("a")
    assert timing.frontier() == 8
    assert timing.looks_again() is None


def test_idle_partitions_hold_nothing_up(monkeypatch: pytest.MonkeyPatch) -> None:
    now = 100.0
    monkeypatch.setattr("pointstamp.connectors.timing.clock.monotonic", lambda: now)
    timing = EventTime(lambda r: r, lateness=0, idle=5)
    timing.begin(["a", "b"])
    list(timing.times("a", [10]))
    assert timing.frontier() == 0
    assert timing.looks_again() == pytest.approx(5.001)
    now = 104.0
    list(timing.times("a", [20]))
    now = 105.5
    assert timing.frontier() == 20
    assert timing.looks_again() == pytest.approx(3.501)
    assert list(timing.times("b", [3])) == [(20, [3])]
    list(timing.times("b", [30]))
    assert timing.frontier() == 20
    now = 200.0
    assert timing.frontier() == 30, "no record comes"
    assert timing.looks_again() is None


def test_arrival_counts_intervals_and_never_goes_back() -> None:
    now = 10.05
    timing = Arrival(0.1, lambda: now)
    assert list(timing.times("a", [1])) == [(100, [1])]
    now = 9.0
    assert timing.frontier() == 100
    now = 10.31
    assert timing.frontier() == 103
    assert timing.looks_again() == pytest.approx(0.09)
    with pytest.raises(ValueError, match="more than 0"):
        Arrival(0)


def test_arrival_moves_the_frontier_of_a_source_that_is_silent() -> None:
    queue: QueueSource[int] = QueueSource()
    queue.put(7)

    def main(worker: ps.Worker) -> Any:
        with worker.dataflow() as scope:
            numbers = scope.read(queue, every=0.01)
            counted = numbers.count()
            probe, out = counted.probe(), counted.capture()
        worker.step_while(lambda: not out.extract())
        first = out.extract()
        assert probe.less_than(2**62)
        queue.close()
        worker.run()
        return first

    ((_, counts),) = ps.execute(main)[0]
    assert counts == [1]


# ------------------------------------------------------------ queues


def test_a_queue_takes_records_from_threads_and_coroutines() -> None:
    queue: QueueSource[int] = QueueSource(size=4)

    async def produce(numbers: range) -> None:
        for n in numbers:
            await queue.aput(n)

    async def producers() -> None:
        await asyncio.gather(produce(range(50)), produce(range(50, 100)))

    def both() -> None:
        thread = threading.Thread(target=lambda: queue.put_many(range(100, 150)))
        thread.start()
        asyncio.run(producers())
        thread.join()
        queue.close()

    producer = threading.Thread(target=both)
    producer.start()
    captures = run(2, lambda scope: scope.read(queue).exchange(lambda x: x).capture())
    producer.join()
    assert collected(captures) == Counter(range(150))
    with pytest.raises(ValueError, match="closed"):
        queue.put(1)
    with pytest.raises(ValueError, match="read once"):
        ps.example(lambda scope: scope.read(queue))


def test_a_full_queue_says_so() -> None:
    queue: QueueSource[int] = QueueSource(size=1)
    queue.put(1)
    with pytest.raises(TimeoutError, match="full"):
        queue.put(2, timeout=0.01)
    with pytest.raises(ValueError, match="at least 1"):
        QueueSource(size=0)


@pytest.mark.parametrize("where", ["main", "operator"])
def test_a_worker_does_not_wait_for_itself_to_read_a_queue(where: str) -> None:
    queue: QueueSource[int] = QueueSource(size=2)

    def again(record: int) -> int:
        queue.put_many(range(10_000))
        return record

    def main(worker: ps.Worker) -> None:
        with worker.dataflow() as scope:
            scope.read(queue).map(again if where == "operator" else lambda x: x)
        if where == "main":
            queue.put_many(range(100))
        queue.put(1)
        worker.step_while(lambda: True)

    with pytest.raises(ValueError, match="the thread of the worker that reads it"):
        ps.execute(main)


# ------------------------------------------------------------ writing


class Notes(Sink):
    """Records the calls that it gets."""

    def __init__(
        self, fail: Callable[[str, int, Any], bool] = lambda *_: False, single: bool = False
    ) -> None:
        self.said: Seen[tuple[Any, ...]] = Seen()
        self.fail = fail
        self.single = single

    def open(self, worker: int, workers: int) -> SinkWriter:
        return NotesWriter(self, worker)

    def of(self, what: str) -> list[Any]:
        return [item[2] for item in self.said if item[0] == what]


class NotesWriter(SinkWriter):
    def __init__(self, sink: Notes, worker: int) -> None:
        self.sink = sink
        self.worker = worker

    def note(self, what: str, more: Any = None) -> None:
        self.sink.said.note((what, self.worker, more))
        if self.sink.fail(what, self.worker, more):
            raise OSError("the disk is full")

    def write(self, time: ps.Time, batch: Any) -> None:
        self.note("write", (time, list(batch)))

    def prepare(self, time: ps.Time) -> None:
        self.note("prepare", time)

    def commit(self, time: ps.Time) -> None:
        self.note("commit", time)

    def abort(self) -> None:
        self.note("abort")

    def close(self) -> None:
        self.note("close")


def dealt(scope: ps.Scope) -> ps.Stream[int]:
    numbers = [x for x in range(24) if x % scope.peers == scope.index]
    return scope.iterator_source(
        "n", ((t, [x for x in numbers if x // 6 == t]) for t in range(4)), in_flight=1
    )


@pytest.mark.parametrize("workers", [1, 2, 4])
def test_a_time_is_committed_when_all_workers_have_prepared_it(workers: int) -> None:
    sink = Notes()
    committed = run(workers, lambda scope: dealt(scope).write(sink).capture())
    for time in range(4):
        said = list(sink.said)
        prepares = [n for n, item in enumerate(said) if item[0] == "prepare" and item[2] == time]
        commits = [n for n, item in enumerate(said) if item[0] == "commit" and item[2] == time]
        writes = [n for n, item in enumerate(said) if item[0] == "write" and item[2][0] == time]
        assert len(prepares) == len(commits) == workers
        assert max(writes) < min(prepares), "a time is whole"
        assert max(prepares) < min(commits), "all or none"
    assert Counter(x for _, batch in sink.of("write") for x in batch) == Counter(range(24))
    for worker in range(workers):
        mine = [item[2] for item in sink.said if item[:2] == ("commit", worker)]
        assert mine == sorted(mine)
    assert Counter(item[0] for item in sink.said)["close"] == workers
    assert sink.of("abort") == []
    assert all([t for t, _ in c.extract()] == [0, 1, 2, 3] for c in committed)


def test_a_sink_for_one_writer_gets_all_on_the_first_worker() -> None:
    sink = Notes(single=True)
    run(3, lambda scope: dealt(scope).write(sink))
    assert {item[1] for item in sink.said if item[0] in ("write", "prepare", "commit")} == {0}
    assert Counter(x for _, batch in sink.of("write") for x in batch) == Counter(range(24))


@pytest.mark.parametrize("where", ["write", "prepare", "commit"])
def test_a_sink_that_fails_aborts_on_every_worker(where: str) -> None:
    def fails(what: str, worker: int, more: Any) -> bool:
        time = more[0] if what == "write" else more
        return what == where and worker == 1 and time == 2

    sink = Notes(fails)
    with pytest.raises(OSError, match="the disk is full"):
        run(2, lambda scope: dealt(scope).write(sink))
    assert sorted(item[1] for item in sink.said if item[0] == "abort") == [0, 1]
    assert sorted(item[1] for item in sink.said if item[0] == "close") == [0, 1]
    if where != "commit":
        assert 2 not in sink.of("commit"), "no worker shows a time that not all have prepared"
    assert 3 not in sink.of("commit")


def test_a_dataflow_that_fails_elsewhere_aborts() -> None:
    sink = Notes()

    def build(scope: ps.Scope) -> None:
        numbers = dealt(scope)
        numbers.write(sink)
        numbers.map(lambda x: 1 // (20 - x)).inspect(lambda _: None)

    with pytest.raises(ZeroDivisionError):
        run(2, build)
    assert sorted(item[1] for item in sink.said if item[0] == "abort") == [0, 1]


def test_offsets_are_durable_after_the_commit() -> None:
    source = Lists({"a": [[(t, 0)] for t in range(5)]})
    order: list[Any] = []

    class Ordered(Notes):
        def open(self, worker: int, workers: int) -> SinkWriter:
            writer = NotesWriter(self, worker)
            writer.commit = lambda time: order.append(("commit", time))  # type: ignore[method-assign]
            return writer

    source.durable.note = lambda item: order.append(item)  # type: ignore[method-assign]
    ps.example(lambda scope: scope.read(source, time=lambda r: r[0]).write(Ordered()))
    assert order[-1] == ("a", 5)
    committed = -1
    for what, number in order:
        if what == "commit":
            committed = number
        else:
            assert number - 1 <= committed, order
