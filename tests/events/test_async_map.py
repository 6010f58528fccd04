"""Calls to the outside: results and dead letters, order, capacity, batches, retries, and the end."""

from __future__ import annotations

import asyncio
import os
import signal
import threading
import time
from collections import Counter
from collections.abc import Callable
from contextvars import ContextVar
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import pointstamp as ps
import processes_in_threads
from effort import examples
from harness import WORKERS, run

TASKS = st.lists(
    st.tuples(st.integers(0, 3), st.sampled_from([0.0, 0.0, 0.001, 0.003]), st.booleans()), max_size=30
)


@pytest.mark.parametrize("workers", WORKERS)
@pytest.mark.parametrize("ordered", [True, False])
@settings(max_examples=examples(8))
@given(tasks=TASKS, capacity=st.integers(1, 5), batch=st.none() | st.integers(1, 4))
def test_each_record_has_a_result_or_is_a_dead_letter(
    workers: int, ordered: bool, tasks: list[Any], capacity: int, batch: int | None
) -> None:
    out = most = 0
    lock = threading.Lock()

    async def call(item: Any) -> Any:
        nonlocal out, most
        with lock:
            out += 1
            most = max(most, out)
        try:
            one = item[0] if batch else item
            await asyncio.sleep(one[1][1])
            if one[1][2]:
                raise LookupError(one[0])
            return [number for number, _ in item] if batch else item[0]
        finally:
            with lock:
                out -= 1

    numbered = list(enumerate(tasks))

    def build(scope: ps.Scope) -> Any:
        mine = scope.to_stream(numbered[scope.index :: scope.peers]).delay(lambda item, _: item[1][0])
        results, letters = mine.async_map(call, ordered=ordered, capacity=capacity, batch=batch, linger=0.001)
        seen: list[tuple[int, int]] = []
        results.inspect_time(lambda number, when: seen.append((int(when), number)))  # type: ignore[arg-type]
        return seen, letters.capture()

    found, failed = [], []
    for seen, letters in run(workers, build):
        found += seen
        for when, records in letters.extract():
            for record, error in records:
                assert isinstance(error, LookupError)
                failed.append((when, record[0]))
        if ordered and batch is None:
            by_time: dict[int, list[int]] = {}
            for when, number in seen:
                by_time.setdefault(when, []).append(number)
            assert all(numbers == sorted(numbers) for numbers in by_time.values())
    assert most <= capacity * workers
    assert Counter(found + failed) == Counter((task[0], number) for number, task in numbered)
    if batch is None:
        assert Counter(failed) == Counter((task[0], number) for number, task in numbered if task[2])


def results_of(call: Callable[[Any], Any], records: list[Any], **terms: Any) -> tuple[list[Any], list[Any]]:
    def build(scope: ps.Scope) -> Any:
        results, letters = scope.to_stream(records).async_map(call, **terms)
        return results.capture(), letters.capture()

    results, letters = ps.example(build)
    flat = [
        [record for _, records in captured.extract() for record in records] for captured in (results, letters)
    ]
    return flat[0], flat[1]


def test_retries_with_a_pause_and_then_gives_up() -> None:
    attempts: Counter[str] = Counter()

    async def flaky(name: str) -> str:
        attempts[name] += 1
        if attempts[name] < 3 or name == "never":
            raise ConnectionError(name)
        return name

    results, letters = results_of(flaky, ["soon", "never"], retry=2, backoff=0.001)
    assert results == ["soon"]
    assert [(record, str(error)) for record, error in letters] == [("never", "never")]
    assert attempts == {"soon": 3, "never": 3}


def test_what_takes_too_long_is_a_dead_letter() -> None:
    async def slow(seconds: float) -> float:
        await asyncio.sleep(seconds)
        return seconds

    results, letters = results_of(slow, [0.0, 50.0], timeout=0.05)
    assert results == [0.0]
    [(record, error)] = letters
    assert record == 50.0
    assert isinstance(error, TimeoutError)
    assert "no answer in 0.05 seconds" in str(error)


def test_batches_are_full_or_have_lingered() -> None:
    sizes = []

    async def call(records: list[int]) -> list[int]:
        sizes.append(len(records))
        return [-record for record in records]

    def main(worker: ps.Worker) -> Any:
        with worker.dataflow() as scope:
            source, stream = scope.new_input()
            results, _ = stream.async_map(call, batch=10, linger=0.01)
            seen: list[int] = []
            results.inspect(seen.append)
        source.send_batch(range(25))
        source.flush()
        deadline = time.monotonic() + 120
        while len(seen) < 25 and time.monotonic() < deadline:
            worker.step_or_park(0.01)  # the input is not closed: the last five have lingered
        before = list(seen)
        source.close()
        worker.run()
        return before

    assert ps.execute(main) == [[-n for n in range(25)]]
    assert sizes == [10, 10, 5]


def test_a_time_is_open_while_its_call_is_out() -> None:
    release = threading.Event()

    async def wait(record: int) -> int:
        while not release.is_set():
            await asyncio.sleep(0.001)
        return record

    def main(worker: ps.Worker) -> Any:
        with worker.dataflow() as scope:
            source, stream = scope.new_input()
            results, _ = stream.async_map(wait)
            probe, captured = results.probe(), results.capture()
        source.send(7)
        source.advance_to(1)
        for _ in range(50):
            worker.step_or_park(0.001)
        held = probe.less_than(1)
        release.set()
        while probe.less_than(1):
            worker.step_or_park(0.1)
        source.close()
        worker.run()
        return held, captured.extract()

    assert ps.execute(main) == [(True, [(0, [7])])]


def test_a_source_waits_for_calls() -> None:
    """A source that bounds its times is not read while calls are in flight."""
    asked = []

    def numbers() -> Any:
        for time_ in range(50):
            asked.append(time_)
            yield time_, [time_] * 3

    behind = 0

    async def call(record: int) -> int:
        nonlocal behind
        await asyncio.sleep(0.001)
        behind = max(behind, asked[-1] - record)
        return record

    def build(scope: ps.Scope) -> Any:
        results, _ = scope.iterator_source("numbers", numbers(), in_flight=4).async_map(call, capacity=2)
        return results.capture()

    assert len(ps.example(build).extract()) == 50
    assert behind <= 4


def test_calls_that_are_out_are_cancelled_when_the_dataflow_fails() -> None:
    cancelled = threading.Event()
    started = threading.Event()

    async def forever(record: int) -> int:
        started.set()
        try:
            await asyncio.sleep(3600)
        except asyncio.CancelledError:
            cancelled.set()
            raise
        return record

    def main(worker: ps.Worker) -> None:
        with worker.dataflow() as scope:
            scope.to_stream([1]).async_map(forever)
        while not started.is_set():
            worker.step_or_park(0.01)
        raise LookupError("enough")

    with pytest.raises(LookupError, match="enough"):
        ps.execute(main)
    assert cancelled.wait(120)
    deadline = time.monotonic() + 120
    while any(thread.name == "pointstamp calls" for thread in threading.enumerate()):
        assert time.monotonic() < deadline
        time.sleep(0.01)


def test_operators_of_a_worker_share_a_loop() -> None:
    loops = set()

    async def note(record: int) -> int:
        loops.add(id(asyncio.get_running_loop()))
        await asyncio.sleep(0.05)
        return record

    def build(scope: ps.Scope) -> Any:
        numbers = scope.to_stream(range(10))
        first, _ = numbers.async_map(note)
        second, _ = numbers.async_map(note)
        return first.concat(second).capture()

    assert ps.example(build).extract() == [(0, sorted([*range(10)] * 2))]
    assert len(loops) == 1
    assert not any(thread.name == "pointstamp calls" for thread in threading.enumerate())


@pytest.mark.parametrize(
    ("function", "terms", "message"),
    [
        (lambda record: record, {}, "awaits what its function returns"),
        (None, {}, "needs a coroutine function"),
        (print, {"capacity": 0}, "capacity is a number of calls, at least 1, not 0"),
        (print, {"retry": -1}, "retry is a number of calls, at least 0, not -1"),
        (print, {"timeout": 0}, "timeout is a number of seconds"),
        (print, {"linger": -1}, "linger is a number of seconds"),
        (print, {"linger": float("inf")}, "linger is a number of seconds"),
        (print, {"capacity": 1.5}, "capacity is a number of calls, an int"),
        (print, {"retry": 1.5}, "retry is a number of calls, an int"),
        (print, {"batch": 2.5}, "batch is a number of records, an int"),
    ],
)
def test_mistakes_are_told(function: Any, terms: dict[str, Any], message: str) -> None:
    with pytest.raises((TypeError, ValueError), match=message):
        results_of(function, [1], **terms)


def test_a_batch_has_as_many_results_as_records() -> None:
    async def short(records: list[int]) -> list[int]:
        return records[1:]

    with pytest.raises(TypeError, match="called with 3 records"):
        results_of(short, [1, 2, 3], batch=3)


def test_a_call_may_change_the_list_of_its_batch() -> None:
    async def changes(records: list[int]) -> list[int]:
        made = [record * 10 for record in records]
        records.clear()
        return made

    assert results_of(changes, [3, 1, 2], batch=3) == ([10, 20, 30], [])


@pytest.mark.parametrize("terms", [{}, {"timeout": 20.0}, {"retry": 1}])
def test_what_a_call_sets_in_its_context_is_not_there_for_the_next(terms: dict[str, Any]) -> None:
    told: ContextVar[int] = ContextVar("told")

    async def tell(record: int) -> int | None:
        before = told.get(None)
        told.set(record)
        await asyncio.sleep(0)
        assert told.get() == record
        return before

    assert results_of(tell, list(range(20)), capacity=2, **terms) == ([None] * 20, [])


def test_what_is_set_in_a_context_need_not_be_comparable() -> None:
    told: ContextVar[Any] = ContextVar("told")

    async def tell(record: int) -> bool:
        fresh = len(told.get()) == 2
        told.set(np.array([record, record, record]))
        await asyncio.sleep(0)
        return fresh

    token = told.set(np.array([1, 2]))  # its comparison has no single truth
    try:
        assert results_of(tell, list(range(20)), capacity=2) == ([True] * 20, [])
    finally:
        told.reset(token)


# ------------------------------------------------------------ whom it holds back, and what does not hang


@pytest.mark.parametrize("ordered", [True, False])
def test_who_sends_with_an_input_waits_for_calls(ordered: bool) -> None:
    """Twenty thousand records are sent while ten calls are out at a time: few are ahead of the calls.

    Once there is as much as the mark, the worker steps, and the operator has its input wait.
    """
    done = ahead = 0

    async def call(record: int) -> int:
        nonlocal done
        await asyncio.sleep(0)
        done += 1
        return record

    def main(worker: ps.Worker) -> Any:
        nonlocal ahead
        source = ps.InputHandle[int]()
        with worker.dataflow() as scope:
            results, _ = source.to_stream(scope).async_map(call, capacity=10, ordered=ordered)
            counted = results.count().capture()
        for number in range(20_000):
            source.send(number)
            ahead = max(ahead, number - done)
        source.close()
        worker.run()
        return counted.extract()

    assert ps.execute(main, config=ps.Config(high_water=100_000)) == [[(0, [20_000])]]
    assert ahead < 10_000


def test_a_source_in_another_process_waits_for_calls() -> None:
    done = ahead = 0

    async def call(record: int) -> int:
        nonlocal done
        await asyncio.sleep(0.001)
        done += 1
        return record

    def main(worker: ps.Worker) -> Any:
        nonlocal ahead

        def numbers() -> Any:
            nonlocal ahead
            for number in range(3_000 if worker.index == 0 else 0):
                ahead = max(ahead, number - done)
                yield number, [number]

        with worker.dataflow() as scope:
            moved = scope.iterator_source("numbers", numbers(), in_flight=10**6).exchange(lambda _: 1)
            results, _ = moved.async_map(call, capacity=50)
            return_ = results.capture()
        worker.run()
        return len(return_.extract())

    assert processes_in_threads.execute(main, 2) == [0, 3_000]
    assert ahead < 2_000


def test_a_call_that_ignores_its_limit_is_a_dead_letter() -> None:
    async def deaf(record: int) -> int:
        for _ in range(10):
            try:
                await asyncio.sleep(0.02)
            except asyncio.CancelledError:
                continue
        return record

    results, letters = results_of(deaf, [1], timeout=0.01)
    assert results == []
    assert isinstance(letters[0][1], TimeoutError)


def test_an_interruption_cancels_what_is_out() -> None:
    cancelled = threading.Event()

    async def forever(record: int) -> int:
        os.kill(os.getpid(), signal.SIGINT)
        try:
            await asyncio.sleep(3600)
        except asyncio.CancelledError:
            cancelled.set()
            raise
        return record

    with pytest.raises(KeyboardInterrupt):
        results_of(forever, [1])
    assert cancelled.wait(120)


def test_a_sender_that_waits_for_calls_can_be_interrupted() -> None:
    async def forever(record: int) -> int:
        if record == 0:
            threading.Timer(0.1, os.kill, (os.getpid(), signal.SIGINT)).start()
        await asyncio.sleep(3600)
        return record

    def main(worker: ps.Worker) -> None:
        source = ps.InputHandle[int]()
        with worker.dataflow() as scope:
            source.to_stream(scope).async_map(forever, capacity=5)
        for number in range(10**9):
            source.send(number)

    with pytest.raises(KeyboardInterrupt):
        ps.execute(main, config=ps.Config(high_water=100_000))
