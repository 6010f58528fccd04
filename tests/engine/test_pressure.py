"""Back-pressure on `main`: unread messages stay bounded, and nothing waits for ever."""

import time
from collections.abc import Callable, Iterator
from typing import Any

import pyarrow as pa
import pytest

import pointstamp as ps
import processes_in_threads

MARK = 1 << 20
BATCHES = 32
ROWS = 1024
ROW = 1 << 10
"""Bytes of a record: a full batch of the records that are sent one by one is as large as the mark."""

SHAPES = {"one worker": (1, 1), "threads": (1, 2), "processes": (2, 1)}


def execute(shape: str, main: Callable[[ps.Worker], Any], high_water: int) -> list[Any]:
    number, workers = SHAPES[shape]
    if number == 1:
        return ps.execute(main, config=ps.Config(workers=workers, high_water=high_water))
    return processes_in_threads.execute(main, number, workers, high_water=high_water)


def batches() -> Iterator[list[bytes]]:
    for _ in range(BATCHES):
        yield [row.to_bytes(8, "little") * (ROW // 8) for row in range(ROWS)]


# Each builds a stream of inputs and returns what feeds it, which yields the bytes that it has sent since.


def one_by_one(scope: ps.Scope) -> tuple[Any, Iterator[int]]:
    handle: ps.InputHandle[bytes] = ps.InputHandle()

    def feed() -> Iterator[int]:
        for batch in batches():
            for record in batch:
                handle.send(record)
            yield len(batch) * ROW

    return handle.to_stream(scope).exchange(lambda _: 1), feed()


def in_batches(scope: ps.Scope) -> tuple[Any, Iterator[int]]:
    handle: ps.InputHandle[bytes] = ps.InputHandle()

    def feed() -> Iterator[int]:
        for number, batch in enumerate(batches()):
            handle.send_batch(batch)
            handle.advance_to(number + 1)
            yield len(batch) * ROW

    return handle.to_stream(scope).map(lambda record: record).exchange(lambda _: 1), feed()


def by_capability(scope: ps.Scope) -> tuple[Any, Iterator[int]]:
    unordered, cap, stream = scope.new_unordered_input()

    def feed() -> Iterator[int]:
        with cap, unordered.session(cap) as session:
            for batch in batches():
                session.give_all(iter(batch))
                yield len(batch) * ROW

    return stream.exchange(lambda _: 1), feed()


def in_columns(scope: ps.Scope) -> tuple[Any, Iterator[int]]:
    batch = pa.record_batch({"k": pa.array([7] * (ROWS * ROW // 8), pa.int64())})
    source = ps.ArrowInput(batch.schema)

    def feed() -> Iterator[int]:
        for _ in range(BATCHES):
            source.send(batch)
            yield batch.nbytes

    return source.to_stream(scope).exchange("k"), feed()


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("build", [one_by_one, in_batches, by_capability, in_columns])
def test_what_main_sends_to_a_slow_worker_stays_bounded(
    build: Callable[[ps.Scope], tuple[Any, Iterator[int]]], shape: str
) -> None:
    sent: dict[int, int] = {}
    consumed: dict[int, int] = {}
    most = 0

    def main(worker: ps.Worker) -> None:
        nonlocal most

        def consume(_time: ps.Time, batch: Any) -> None:
            took = batch.nbytes if isinstance(batch, pa.RecordBatch) else len(batch) * ROW
            consumed[worker.index] = consumed.get(worker.index, 0) + took
            time.sleep(0.02 * took / MARK)

        with worker.dataflow() as scope:
            stream, feed = build(scope)
            stream.inspect_batch(consume)
        for size in feed:
            sent[worker.index] = sent.get(worker.index, 0) + size
            most = max(most, sum(sent.values()) - sum(consumed.values()))
        worker.run()

    execute(shape, main, MARK)
    everything = SHAPES[shape][0] * SHAPES[shape][1] * BATCHES * ROWS * ROW
    assert sum(sent.values()) == sum(consumed.values()) == everything
    # The mark, what each has sent while the word of it went round, and what sockets hold.
    assert most < 14 * MARK


@pytest.mark.parametrize("shape", ["threads", "processes"])
def test_who_must_send_more_before_anything_is_read_may(shape: str) -> None:
    """An operator leaves one input alone until the other is complete."""

    def main(worker: ps.Worker) -> int:
        awaited: ps.InputHandle[int] = ps.InputHandle()
        early: ps.InputHandle[bytes] = ps.InputHandle()
        seen = 0

        def logic(first: Any, second: Any, _output: Any) -> None:
            nonlocal seen
            for _ in first:
                pass
            if not first.frontier:
                for _, records in second:
                    seen += len(records)

        with worker.dataflow() as scope:
            pact = ps.Exchange(lambda _: 1)
            awaited.to_stream(scope).binary_frontier(
                early.to_stream(scope), pact, pact, "Patient", lambda _cap, _info: logic
            )
        for number in range(4 * 1024):
            early.send(number.to_bytes(1000, "little"))
        awaited.close()
        early.close()
        worker.run()
        return seen

    assert sum(execute(shape, main, 1_500_000)) == 2 * 4 * 1024


@pytest.mark.parametrize("shape", ["threads", "processes"])
def test_sending_inside_an_operator_does_not_wait(shape: str) -> None:
    def main(worker: ps.Worker) -> int:
        relayed: ps.InputHandle[int] = ps.InputHandle()
        seen = 0

        def relay(number: int) -> None:
            relayed.send_batch(range(5_000))
            if number == 19:
                relayed.close()

        def count(_time: ps.Time, records: list[int]) -> None:
            nonlocal seen
            seen += len(records)

        with worker.dataflow() as scope:
            relayed.to_stream(scope).exchange(lambda x: x).inspect_batch(count)
        with worker.dataflow() as scope:
            scope.to_stream(range(20)).inspect(relay)
        worker.run()
        return seen

    assert sum(execute(shape, main, 1)) == 2 * 20 * 5_000


@pytest.mark.parametrize("shape", ["threads", "processes"])
def test_who_waits_to_send_hears_of_a_failure(shape: str) -> None:
    def main(worker: ps.Worker) -> None:
        handle: ps.InputHandle[bytes] = ps.InputHandle()
        count = 0

        def consume(_record: bytes) -> None:
            nonlocal count
            count += 1
            time.sleep(0.001)
            if count == 300:
                raise ValueError("enough")

        with worker.dataflow() as scope:
            handle.to_stream(scope).exchange(lambda _: 1).inspect(consume)
        while worker.index == 0:
            handle.send(bytes(ROW))
        worker.run()

    with pytest.raises(ValueError, match="enough"):
        execute(shape, main, MARK)
