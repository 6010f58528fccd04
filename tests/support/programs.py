"""Programs for several processes: module-level functions, so that real processes can import them.

Each is the `main` of a worker and returns its observations; together, the workers' results do not depend on
the number of workers, or on their processes.
"""

from __future__ import annotations

import os
import threading
from collections import Counter
from dataclasses import dataclass
from typing import Any

import pointstamp as ps

WORDS = [f"word{i % 17} word{i % 5} end" for i in range(200)]


def dealt(worker: ps.Worker, items: Any) -> list[Any]:
    return list(items)[worker.index :: worker.peers]


def word_count(worker: ps.Worker) -> list[Any]:
    """Counts words in three rounds, each of which is complete before the next begins."""
    handle: ps.InputHandle[str] = ps.InputHandle()
    with worker.dataflow() as scope:
        words = handle.to_stream(scope).flat_map(str.split)
        counts = words.map(lambda word: (word, 1)).aggregate(
            lambda _key, one, total: total + one, lambda key, total: (key, total), default=int
        )
        probe, capture = counts.probe(), counts.capture()
    for round_ in range(3):
        handle.send_batch(dealt(worker, WORDS[round_:]))
        handle.advance_to(round_ + 1)
        worker.step_while(lambda: probe.less_than(handle.time))
    handle.close()
    worker.run()
    return capture.extract()


def reach(worker: ps.Worker) -> list[Any]:
    """Returns the nodes that can be reached from node 0, by a loop that forgets nothing."""
    edges = [(i, (7 * i + 3) % 101) for i in range(101)] + [(i, (i * i) % 101) for i in range(101)]
    neighbours: dict[int, list[int]] = {}
    for source, target in edges:
        if source % worker.peers == worker.index:
            neighbours.setdefault(source, []).append(target)
    with worker.dataflow() as scope:
        roots = scope.to_stream([0] if worker.index == 0 else [])
        with scope.iterative() as loop:
            handle, again = loop.loop_variable(1)
            known: set[int] = set()

            def new(node: int) -> bool:
                fresh = node not in known
                known.add(node)
                return fresh

            found = roots.enter(loop).concat(again).exchange(lambda node: node).filter(new)
            found.flat_map(lambda node: neighbours.get(node, [])).connect_loop(handle)
            reached = found.leave().capture()
    worker.run()
    return reached.extract()


def sequence(worker: ps.Worker) -> list[Any]:
    """Returns the order of all workers' values, as each worker sees it, with barriers before and after."""
    for _ in range(3):
        worker.barrier()
    sequencer = worker.sequencer()
    for item in range(20):
        if item % worker.peers == worker.index:
            sequencer.push(item)
    seen: list[Any] = []
    while len(seen) < 20:
        worker.step_or_park()
        while (next_one := sequencer.next()) is not None:
            seen.append(next_one)
    worker.barrier()
    return seen


@dataclass(frozen=True)
class Reading:
    """A class of the program's own."""

    sensor: int
    value: float


class Sealed:
    """Cannot be pickled; an encoder is registered for it."""

    def __init__(self, number: int) -> None:
        self.number = number
        self.lock = threading.Lock()


ps.register_encoder(
    Sealed, lambda sealed: sealed.number.to_bytes(4, "big"), lambda form: Sealed(int.from_bytes(form, "big"))
)


def own_classes(worker: ps.Worker) -> list[Any]:
    """Objects of classes, exchanged; with the pid of the process that they are in at the end."""
    with worker.dataflow() as scope:
        readings = scope.to_stream(dealt(worker, [Reading(i, i / 2) for i in range(30)]))
        moved = readings.exchange(lambda reading: reading.sensor + 1).capture()
        sealed = scope.to_stream(dealt(worker, range(30))).map(Sealed).exchange(lambda s: s.number + 1)
        numbers = sealed.map(lambda s: (s.number, s.lock.locked())).capture()
    worker.run()
    return [moved.extract(), numbers.extract()]


def arrays(worker: ps.Worker) -> list[Any]:
    """Large arrays, exchanged and written to where they come."""
    import numpy as np

    def double(array: Any) -> Any:
        array *= 2
        return int(array[0]), int(array.sum())

    with worker.dataflow() as scope:
        made = scope.to_stream(dealt(worker, range(12))).map(lambda i: np.full(20_000, i))
        sums = made.exchange(lambda array: int(array[0]) + 1).map(double).capture()
    worker.run()
    return sums.extract()


def columns(worker: ps.Worker) -> list[Any]:
    """Rows, exchanged by a key, aggregated, and joined with others."""
    import pyarrow as pa

    orders = pa.table({"customer": [i * i % 23 for i in range(500)], "amount": [i % 11 for i in range(500)]})
    kinds = pa.array([f"kind {i % 3}" for i in range(23)]).dictionary_encode()
    names = pa.table({"customer": range(23), "kind": kinds, "name": [f"n{i}" * (i % 4) for i in range(23)]})
    handles = [ps.ArrowInput(table.schema) for table in (orders, names)]
    with worker.dataflow() as scope:
        left, right = (handle.to_stream(scope) for handle in handles)
        joined = (
            left.aggregate("customer", amount_sum=ps.col("amount").sum()).join(right, "customer").capture()
        )
        amounts = left.exchange("amount").capture()
    for handle, table in zip(handles, (orders, names), strict=True):
        size = -(-table.num_rows // worker.peers)
        handle.send(table.slice(worker.index * size, size))
        handle.close()
    worker.run()
    return [rows_of(joined), rows_of(amounts)]


def rows_of(capture: ps.Capture[Any]) -> list[tuple[Any, ...]]:
    batches = [batch for _, batches in capture.extract() for batch in batches]
    return [tuple(row.values()) for batch in batches for row in batch.to_pylist()]


def broadcasts(worker: ps.Worker) -> list[Any]:
    """Sends everything to every worker; each returns the number of times that it saw each record."""
    with worker.dataflow() as scope:
        seen = scope.to_stream(dealt(worker, range(3000))).broadcast().capture()
    worker.run()
    return [sorted(Counter(x for _, records in seen.extract() for x in records).items())]


# ------------------------------------------------------------ programs that fail


def divides(worker: ps.Worker, where: int) -> None:
    """Fails in an operator of the worker that gets record `where`; the others would never end."""
    kept = ps.InputHandle[int]()
    with worker.dataflow() as scope:
        scope.to_stream(range(8) if worker.index == 0 else []).exchange(lambda x: x).map(
            lambda x: 1 // (x - where)
        )
        probe = kept.to_stream(scope).probe()
    worker.step_while(lambda: not probe.done())


def resources() -> tuple[int, int]:
    """Counts the files and threads of this process."""
    return len(os.listdir("/proc/self/fd")), len(os.listdir("/proc/self/task"))


def place(worker: ps.Worker) -> tuple[int, int]:
    return worker.index, worker.peers
