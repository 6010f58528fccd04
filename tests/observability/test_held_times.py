"""Explanations of times that operators of the library hold, with the remedy of a program."""

import asyncio
import gc
import threading
import time
from collections.abc import Callable
from typing import Any
from weakref import ref

import pytest

import pointstamp as ps
from pointstamp.connectors import QueueSource

LONG = 120.0
"""Seconds for what comes in any case."""


async def hang(_record: Any) -> None:
    await asyncio.Event().wait()


def calls(stream: ps.Stream[int], scope: ps.Scope) -> ps.Stream[Any]:
    return stream.async_map(hang, capacity=2)[0]


def bounded(stream: ps.Stream[int], scope: ps.Scope) -> ps.Stream[Any]:
    return stream.async_map(hang, timeout=60, retry=2)[0]


def queue(stream: ps.Stream[int], scope: ps.Scope) -> ps.Stream[Any]:
    return stream.concat(scope.read(QueueSource()))


def lateness(stream: ps.Stream[int], scope: ps.Scope) -> ps.Stream[Any]:
    return stream.event_time(lambda record: record, lateness=1000)[0].map_batches(list)


def stalled(worker: ps.Worker, probe: ps.ProbeHandle, what: str) -> str:
    """Returns the explanation of time 1, which does not come, once the operators have their records."""
    end = time.monotonic() + LONG
    while what not in str(worker.explain(probe, 1)) and time.monotonic() < end:
        worker.step_or_park(0.02)
    with pytest.raises(ps.StallError) as caught:
        worker.step_while(lambda: probe.less_than(1), timeout=0.01)
    return str(caught.value)


@pytest.mark.parametrize(
    ("build", "what", "cure"),
    [
        (
            calls,
            "2 calls are out; records that wait for one, or for their turn: 1.",
            "Nothing bounds a call but async_map(timeout=)",
        ),
        (
            bounded,
            "3 calls are out; records that wait for one, or for their turn: 0.",
            "A call has 60 s, and is made 3 times at most",
        ),
        (queue, "It reads a QueueSource, which has not ended", "Call close() on the QueueSource"),
        (lateness, "The latest time of a record is 12, less the lateness 1000", "move on with later records"),
    ],
)
def test_operators_of_the_library_say_what_the_program_can_do(
    build: Callable[..., Any], what: str, cure: str
) -> None:
    def main(worker: ps.Worker) -> str:
        with worker.dataflow() as scope:
            numbers, stream = scope.new_input()
            probe = build(stream, scope).probe()
        numbers.send_batch([10, 11, 12])
        numbers.advance_to(1)
        said = stalled(worker, probe, what)
        for dataflow in worker.installed_dataflows():
            worker.drop_dataflow(dataflow)
        return said

    [said] = ps.execute(main)
    assert what in said
    assert cure in said
    assert "drop()" not in said
    assert said.count(what) == 1, said


def test_two_computations_of_a_program_speak_for_themselves() -> None:
    """Operators at the same place of the same worker, of two computations that run at once."""
    said: dict[str, str] = {}
    met = threading.Barrier(2)

    def compute(name: str, build: Callable[..., Any]) -> None:
        def main(worker: ps.Worker) -> None:
            with worker.dataflow() as scope:
                numbers, stream = scope.new_input()
                probe = build(stream, scope).probe()
            met.wait(LONG)  # both are there
            numbers.send_batch([10, 11, 12])
            numbers.advance_to(1)
            said[name] = stalled(worker, probe, " calls are out")
            met.wait(LONG)
            for dataflow in worker.installed_dataflows():
                worker.drop_dataflow(dataflow)

        ps.execute(main)

    threads = [
        threading.Thread(target=compute, args=one) for one in (("unbounded", calls), ("bounded", bounded))
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert "Nothing bounds a call" in said["unbounded"]
    assert "A call has 60 s" not in said["unbounded"]
    assert "A call has 60 s" in said["bounded"]
    assert "Nothing bounds a call" not in said["bounded"]


def test_to_be_asked_keeps_nothing_of_other_threads_alive() -> None:
    """Values that a function of another thread holds go when it returns: no collector is waited for."""

    class Thing:
        pass

    things: list[ref[Thing]] = []
    holds, over = threading.Event(), threading.Event()

    def hold() -> None:
        thing = Thing()
        things.append(ref(thing))
        holds.set()
        over.wait(LONG)

    def main(worker: ps.Worker) -> None:
        with worker.dataflow() as scope:
            numbers, stream = scope.new_input()
            probe = stream.probe()
        assert "input" in str(worker.explain(probe, 1))
        numbers.close()

    thread = threading.Thread(target=hold)
    gc.disable()
    try:
        thread.start()
        assert holds.wait(LONG)
        ps.execute(main)
        over.set()
        thread.join()
        assert things[0]() is None
    finally:
        over.set()
        gc.enable()
