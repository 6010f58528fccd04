"""Workloads of the clusters of a soak: each has its expected results, by a few lines of plain Python.

A workload's `main` returns a counter per worker; the sum of all workers' results is compared with `expected`.
"""

from __future__ import annotations

import hashlib
import os
from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

os.environ.setdefault("ARROW_DEFAULT_MEMORY_POOL", "system")  # the others start a thread
import pyarrow as pa

import pointstamp as ps

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["WORKLOADS", "Workload"]


@dataclass(frozen=True)
class Workload:
    """A computation and its answer.

    Args:
        main: Is given a worker and a size; returns this worker's share of the answer.
        expected: The whole answer, for a size and a number of workers.
        sizes: From the smallest that takes a moment to the largest.
    """

    main: Callable[[ps.Worker, int], Counter[Any]]
    expected: Callable[[int, int], Counter[Any]]
    sizes: tuple[int, int]


def _captured(capture: ps.Capture[Any]) -> Counter[Any]:
    return Counter((time, record) for time, records in capture.extract() for record in records)


def _rounds(worker: ps.Worker, size: int) -> Counter[Any]:
    """Rounds of records that are counted by key; each waits for the one before."""
    numbers = ps.InputHandle[int]()
    with worker.dataflow() as scope:
        pairs = numbers.to_stream(scope).exchange(lambda x: x * 7).map(lambda x: (x % 5, x))
        counts = pairs.aggregate(lambda _, x, total: total + x, lambda key, total: (key, total), default=int)
        probe, capture = counts.probe(), counts.capture()
    for number in range(size):
        numbers.send_batch(range(number + worker.index, number + 60, worker.peers))
        numbers.advance_to(number + 1)
        worker.step_while(lambda: probe.less_than(numbers.time))
    numbers.close()
    worker.run()
    return _captured(capture)


def _rounds_expected(size: int, peers: int) -> Counter[Any]:
    answer: Counter[Any] = Counter()
    for number in range(size):
        sent = [x for index in range(peers) for x in range(number + index, number + 60, peers)]
        for key in range(5):
            answer[number, (key, sum(x for x in sent if x % 5 == key))] += 1
    return answer


def _columns(worker: ps.Worker, size: int) -> Counter[Any]:
    """Batches of columns, exchanged and aggregated; no worker waits in between."""
    schema = pa.schema([("k", pa.int64()), ("s", pa.string())])
    rows = ps.ArrowInput(schema)
    with worker.dataflow() as scope:
        stream = rows.to_stream(scope)
        counts = stream.exchange("s").aggregate("k", s_count=ps.col("s").count()).capture()
    for number in range(size):
        keys = [*range(worker.index, 50, worker.peers)]
        rows.send(
            pa.record_batch(
                [pa.array(keys, pa.int64()), pa.array([f"t{k % 3}" for k in keys])], schema=schema
            )
        )
        rows.advance_to(number + 1)
    rows.close()
    worker.run()
    return Counter(
        (time, tuple(row.values()))
        for time, batches in counts.extract()
        for batch in batches
        for row in batch.to_pylist()
    )


def _columns_expected(size: int, _peers: int) -> Counter[Any]:
    return Counter((number, (key, 1)) for number in range(size) for key in range(50))


def _loop(worker: ps.Worker, size: int) -> Counter[Any]:
    """A walk around a ring of records, by a loop; several times are in it at once."""
    starts = ps.InputHandle[int]()
    with worker.dataflow() as scope:
        stream = starts.to_stream(scope)
        with scope.iterative() as loop:
            handle, again = loop.loop_variable(1)
            walked = stream.enter(loop).concat(again).exchange(lambda x: x).map(lambda x: x - 1)
            walked.filter(lambda x: x > 0).connect_loop(handle)
            capture = walked.filter(lambda x: x == 0).leave().capture()
    for number in range(3):
        if worker.index == 0:
            starts.send_batch([size, size + 1])
        starts.advance_to(number + 1)
    starts.close()
    worker.run()
    return _captured(capture)


def _loop_expected(_size: int, _peers: int) -> Counter[Any]:
    return Counter({(number, 0): 2 for number in range(3)})


def _large(worker: ps.Worker, size: int) -> Counter[Any]:
    """Large records, so that connections are full most of the time."""
    with worker.dataflow() as scope:
        mine = range(worker.index, size, worker.peers)
        made = scope.to_stream(mine).map(lambda x: (x, bytes([x % 251]) * 300_000))
        capture = made.exchange(lambda pair: pair[0] + 1).map(_digest).capture()
    worker.run()
    return _captured(capture)


def _digest(pair: tuple[int, bytes]) -> tuple[int, str]:
    return pair[0], hashlib.sha256(pair[1]).hexdigest()[:12]


def _large_expected(size: int, _peers: int) -> Counter[Any]:
    return Counter((0, _digest((x, bytes([x % 251]) * 300_000))) for x in range(size))


WORKLOADS = {
    "rounds": Workload(_rounds, _rounds_expected, (5, 60)),
    "columns": Workload(_columns, _columns_expected, (5, 60)),
    "loop": Workload(_loop, _loop_expected, (50, 600)),
    "large": Workload(_large, _large_expected, (10, 150)),
}
