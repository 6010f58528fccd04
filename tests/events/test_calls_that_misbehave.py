"""Calls that end their loop, stop it, or do not end: the worker gets an error, and the computation ends."""

from __future__ import annotations

import asyncio
import gc
import logging
import os
import signal
import threading
import time
from typing import Any

import pytest

import pointstamp as ps
from pointstamp.logic import eventloop

THREAD = "pointstamp calls"


def loops() -> list[str]:
    return [thread.name for thread in threading.enumerate() if thread.name == THREAD]


async def leaves(record: int) -> int:
    await asyncio.sleep(0.001)
    if record == 3:
        raise SystemExit("bad record")
    return record


async def leaves_inside(record: int) -> Any:
    return (await asyncio.gather(leaves(record)))[0]


async def leaves_aside(record: int) -> int:
    aside = asyncio.ensure_future(leaves(record))
    while not aside.done() or record == 3:
        await asyncio.sleep(0.001)
    return record


@pytest.mark.parametrize(
    ("call", "terms"),
    [(leaves, {}), (leaves, {"timeout": 30.0}), (leaves_inside, {}), (leaves_aside, {})],
    ids=["call", "timeout", "gather", "task"],
)
def test_what_ends_a_program_ends_it_also_out_of_a_task(call: Any, terms: dict[str, Any]) -> None:
    def main(worker: ps.Worker) -> None:
        with worker.dataflow() as scope:
            probe = scope.to_stream(range(6)).async_map(call, **terms)[0].probe()
        worker.step_while(lambda: not probe.done(), timeout=120)

    with pytest.raises(SystemExit, match="bad record"):
        ps.execute(main)
    gc.collect()
    assert not loops()


def test_a_loop_that_a_call_stops_goes_on() -> None:
    async def stop(record: int) -> int:
        if record == 3:
            asyncio.get_running_loop().stop()
        await asyncio.sleep(0.001)
        return record

    def build(scope: ps.Scope) -> ps.Capture[int]:
        return scope.to_stream(range(6)).async_map(stop)[0].capture()

    assert ps.example(build).extract() == [(0, [0, 1, 2, 3, 4, 5])]
    assert not loops()


def test_the_end_gives_up_calls_that_go_on(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """A call that ignores its cancellation, and one that blocks the loop's thread: both are named."""
    monkeypatch.setattr(eventloop, "GRACE", 0.1)
    monkeypatch.setattr(eventloop, "LEEWAY", 0.1)
    started = threading.Event()
    block = threading.Event()

    async def stubborn(record: str) -> None:
        started.set()
        while True:
            try:
                await asyncio.sleep(3600)
            except asyncio.CancelledError:
                pass

    async def blocking(record: str) -> None:
        started.set()
        block.wait(60)

    def ends(call: Any) -> str:
        def main(worker: ps.Worker) -> None:
            with worker.dataflow() as scope:
                source, stream = scope.new_input()
                stream.async_map(call)
            source.send("the record")
            while not started.is_set():
                worker.step_or_park(0.01)
            raise LookupError("main's own")

        started.clear()
        caplog.clear()
        with caplog.at_level(logging.WARNING), pytest.raises(LookupError, match="main's own"):
            ps.execute(main)
        [said] = [record.getMessage() for record in caplog.records]
        return said

    said = ends(stubborn)
    assert "stubborn, 1 call(s), with 'the record'" in said
    assert "given up" in said
    gc.collect()
    assert not loops()
    said = ends(blocking)
    assert "blocking, 1 call(s), with 'the record'" in said
    assert "left behind" in said
    block.set()
    deadline = time.monotonic() + 120
    while loops() and time.monotonic() < deadline:
        time.sleep(0.01)
    assert not loops()


def test_dataflows_come_and_go_beside_a_busy_loop() -> None:
    """Each new operator has a seat of its own, whatever one that left before it had."""

    async def busy(record: int) -> None:
        while True:
            time.sleep(0.02)
            await asyncio.sleep(0)

    async def quick(record: int) -> int:
        await asyncio.sleep(0.001)
        return record

    def main(worker: ps.Worker) -> None:
        with worker.dataflow() as scope:
            source, stream = scope.new_input()
            stream.async_map(busy)
        source.send(0)
        worker.step()
        worker.step()
        for n in range(10):
            with worker.dataflow("short") as scope:
                numbers, stream = scope.new_input()
                probe = stream.async_map(quick)[0].probe()
            numbers.send(n)
            numbers.close()
            if n % 2:
                deadline = time.monotonic() + 120
                while not probe.done():
                    worker.step_or_park(0.1)
                    assert time.monotonic() < deadline
            else:
                worker.step()
                worker.step()
                worker.drop_dataflow(worker.installed_dataflows()[-1])
            del numbers, stream, probe, scope
        for dataflow in worker.installed_dataflows():
            worker.drop_dataflow(dataflow)

    ps.execute(main)
    assert not loops()


def test_calls_of_a_dataflow_that_is_dropped_are_cancelled() -> None:
    """Another operator's call keeps the event loop busy meanwhile."""
    out = {"dropped": threading.Event(), "other": threading.Event()}
    cancelled = threading.Event()

    async def wait(record: str) -> None:
        out[record].set()
        try:
            while record == "other":
                time.sleep(0.005)
                await asyncio.sleep(0)
            await asyncio.sleep(3600)
        finally:
            if record == "dropped":
                cancelled.set()

    def main(worker: ps.Worker) -> bool:
        inputs = []
        for record in out:
            with worker.dataflow(record) as scope:
                source, stream = scope.new_input()
                stream.async_map(wait)
            source.send(record)
            inputs.append(source)
        while not all(started.is_set() for started in out.values()):
            worker.step_or_park(0.01)
        first, second = worker.installed_dataflows()
        worker.drop_dataflow(first)
        over = cancelled.wait(120)
        worker.drop_dataflow(second)
        return over

    assert ps.execute(main) == [True]
    assert not loops()


@pytest.mark.parametrize("dropped", [True, False], ids=["dropped", "at the end"])
def test_an_interruption_of_the_end_is_raised(dropped: bool) -> None:
    """Ctrl-C arrives while an operator waits for its calls, where Python would lose the exception."""
    started = threading.Event()
    over: list[str] = []

    async def slow_to_end(record: int) -> None:
        started.set()
        try:
            await asyncio.sleep(3600)
        finally:
            os.kill(os.getpid(), signal.SIGINT)
            time.sleep(0.3)
            over.append("cancelled")

    def main(worker: ps.Worker) -> None:
        with worker.dataflow() as scope:
            source, stream = scope.new_input()
            stream.async_map(slow_to_end)
        source.send(1)
        while not started.is_set():
            worker.step_or_park(0.01)
        if dropped:
            worker.drop_dataflow(0)
            over.append("went on")
        raise LookupError("main's own")

    with pytest.raises(KeyboardInterrupt):
        ps.execute(main)
    assert over == ["cancelled"]
    assert not loops()
