"""What holds a time in operators of the library, in words for those who use them."""

import asyncio
import threading
from collections.abc import Callable
from typing import Any

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
    return stream.event_time(lambda record: record, lateness=1000)[0].map_batch(list)


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
        with pytest.raises(ps.StallError) as caught:
            worker.step_while(lambda: probe.less_than(1), timeout=0.3)
        for dataflow in worker.installed_dataflows():
            worker.drop_dataflow(dataflow)
        return str(caught.value)

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
            with pytest.raises(ps.StallError) as caught:
                worker.step_while(lambda: probe.less_than(1), timeout=0.3)
            said[name] = str(caught.value)
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
