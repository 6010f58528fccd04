"""Scaling of programs: 1, 2, 4, 8 and 16 workers, as threads of one process and as processes of one worker.

    python benches/python/scaling.py [NAME...]

Names are exchange, barrier, words, components and collections; all of them when none is given. The work is
the same for every number of workers; of the barrier, every worker takes part in each round. There are as
many workers as the machine has cores, at most. A figure is the least seconds of some runs, from when all
workers are connected to the end of the last. Each run is a cluster of its own, by `python -m pointstamp
run`, and all sides of a program take turns.
"""

from __future__ import annotations

import argparse
import importlib
import os
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from bench_processes import cluster, report, seconds, since
from figures import leave

import pointstamp as ps

COUNTS = (1, 2, 4, 8, 16)
BATCH = 1 << 16
PAIRS = pa.schema([("source", pa.int64()), ("target", pa.int64())])


def pairs(nodes: int, count: int, seed: int) -> np.ndarray:
    """Random pairs of nodes, in two columns."""
    return np.random.default_rng(seed).integers(0, nodes, (count, 2))


def batch_of(columns: np.ndarray) -> pa.RecordBatch:
    """Two columns as a record batch."""
    return pa.record_batch([pa.array(columns[:, column]) for column in (0, 1)], schema=PAIRS)


def timed(worker: ps.Worker, run: Callable[[], int]) -> None:
    """Runs this worker's share when all are there, and reports when all are done: `run` says the result."""
    worker.barrier()
    before, start = worker.traffic(), time.perf_counter()
    total = run()
    sent = worker.traffic()
    worker.barrier()
    report(seconds=time.perf_counter() - start, total=total, **since(before, sent))


# -------------------------------------------------------------------- the programs, on one worker of some


def exchange_rows(worker: ps.Worker) -> None:
    """Rows of two integers go to the worker of their key."""
    batches = int(sys.argv[1]) // BATCH
    pool = [batch_of(pairs(1 << 40, BATCH, seed)) for seed in range(4)]
    received = 0

    def add(_time: ps.Time, batch: pa.RecordBatch) -> None:
        nonlocal received
        received += batch.num_rows

    def run() -> int:
        source = ps.ArrowInput(PAIRS)
        with worker.dataflow() as scope:
            probe = source.to_stream(scope).exchange("source").inspect_batch(add).probe()
        for turn, number in enumerate(range(worker.index, batches, worker.peers)):
            source.send(pool[number % len(pool)])
            source.advance_to(turn + 1)
            worker.step_while(lambda least=turn - 3: least > 0 and probe.less_than(least))
        source.close()
        worker.run()
        return received

    timed(worker, run)


def send_messages(worker: ps.Worker) -> None:
    """Worker 0 sends records to worker 1, each in a message of its own."""
    count = int(sys.argv[1])
    numbers: ps.InputHandle[int] = ps.InputHandle()
    with worker.dataflow() as scope:
        probe = (
            scope.input_from(numbers).exchange(lambda _: 1).inspect_batch(lambda _time, _batch: None).probe()
        )
    worker.barrier()
    start = time.perf_counter()
    for turn in range(count if worker.index == 0 else 0):
        numbers.send(turn)
        numbers.flush()
        if turn % 1000 == 999:
            numbers.advance_to(turn + 1)
            worker.step_while(lambda least=turn - 2000: least > 0 and probe.less_than(least))
    numbers.close()
    worker.run()
    worker.barrier()
    report(seconds=time.perf_counter() - start)


def find_components(worker: ps.Worker) -> None:
    """Connected components of a random graph, as an example finds them, with NumPy in a loop."""
    nodes, edges = int(sys.argv[1]), int(sys.argv[2])
    sys.path.append(str(Path(__file__).resolve().parents[2] / "examples"))
    find = importlib.import_module("connected_components_arrow").connected_components
    share = pairs(nodes, edges, 1)[worker.index :: worker.peers]

    def run() -> int:
        labels = find(worker, nodes, share)
        return int((labels == np.arange(worker.index, nodes, worker.peers)).sum())

    timed(worker, run)


def count_degrees(worker: ps.Worker) -> None:
    """The number of nodes with each number of edges: a collection of columns, loaded at once."""
    nodes, edges = int(sys.argv[1]), int(sys.argv[2])
    share = batch_of(pairs(nodes, edges, 1)[worker.index :: worker.peers])

    def run() -> int:
        with worker.dataflow() as scope:
            handle, graph = scope.new_collection(schema=PAIRS)
            degrees = graph.count("source", "degree").count("degree", "nodes").capture()
        handle.insert(share)
        handle.close()
        worker.run()
        return sum(
            int(nodes) * int(degree) * diff
            for _, batch in degrees.extract()
            for degree, nodes, diff in zip(*(column.to_pylist() for column in batch.columns), strict=True)
        )

    timed(worker, run)


# -------------------------------------------------------------------- comparing


def exchange(scale: float) -> tuple[str, list[Any], int | None]:
    """The program, its arguments, and what all workers' totals come to."""
    rows = max(1, int((1 << 26) * scale) // BATCH) * BATCH
    return f"{__file__}:exchange_rows", [rows], rows


def barrier(scale: float) -> tuple[str, list[Any], int | None]:
    """The program of barriers, in the form of `exchange`."""
    return "barriers", [int(20_000 * scale)], None


def words(scale: float) -> tuple[str, list[Any], int | None]:
    """The count of words, in the form of `exchange`."""
    lines = int(200_000 * scale)
    return "count_words", [lines, "counts"], 10 * lines


def components(scale: float) -> tuple[str, list[Any], int | None]:
    """The components of a graph, in the form of `exchange`; their number does not depend on the workers."""
    return f"{__file__}:find_components", [int(500_000 * scale), int(4_000_000 * scale)], None


def collections(scale: float) -> tuple[str, list[Any], int | None]:
    """The degrees of a graph, in the form of `exchange`; the degrees of all nodes add up to the edges."""
    edges = int(4_000_000 * scale)
    return f"{__file__}:count_degrees", [int(800_000 * scale), edges], edges


PROGRAMS: dict[str, tuple[str, Callable[[float], tuple[str, list[Any], int | None]]]] = {
    "exchange": ("exchange of columns", exchange),
    "barrier": ("barrier", barrier),
    "words": ("word count by closures", words),
    "components": ("connected components", components),
    "collections": ("degrees of a collection", collections),
}


def check(name: str, reports: list[dict[str, Any]], expected: int | None, seen: set[int]) -> None:
    """Ends the bench where a side's result is wrong: a ratio of it means nothing."""
    total = sum(found.get("total", 0) for found in reports)
    seen.add(total)
    if len(seen) > 1 or expected not in (None, total):
        raise SystemExit(f"{name}: {sorted(seen)}, and should be {expected or 'one number'}")


def compare(name: str, scale: float, counts: list[int], turns: int) -> None:
    """Runs a program on each number of workers, both ways, and prints how fast it is beside one worker."""
    title, given = PROGRAMS[name]
    program, arguments, expected = given(scale)
    sides = [
        (1, 1),
        *((1, count) for count in counts if count > 1),
        *((count, 1) for count in counts if count > 1),
    ]
    least: dict[tuple[int, int], float] = {}
    seen: set[int] = set()
    for _ in range(turns):
        for processes, workers in sides:
            reports = cluster(program, *arguments, processes=processes, workers=workers)
            check(name, reports, expected, seen)
            took = seconds(reports)
            least[processes, workers] = min(took, least.get((processes, workers), took))
    one = least[1, 1]
    for (processes, workers), took in least.items():
        what = f"{processes} processes" if processes > 1 else f"{workers} worker{'s' * (workers > 1)}"
        print(f"{title}, {what}: {took:.3f} s, {one / took:.2f} times as fast as 1 worker", flush=True)
        if processes * workers > 1:
            leave("Scaling", f"{title}, {what}", took, "1 worker", one)


def main() -> None:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0] if __doc__ else None)
    parser.add_argument("names", nargs="*", metavar="NAME", help="programs to run; all, where none is named")
    parser.add_argument("--scale", type=float, default=1.0, help="part of the work (1)")
    parser.add_argument("--turns", type=int, default=3, help="runs of each side (3)")
    parser.add_argument("--most", type=int, default=os.cpu_count() or 1, help="workers at most (the cores)")
    given = parser.parse_args()
    if unknown := sorted(set(given.names) - set(PROGRAMS)):
        parser.error(f"no program {', '.join(unknown)}: there are {', '.join(PROGRAMS)}")
    for name in given.names or PROGRAMS:
        compare(name, given.scale, [count for count in COUNTS if count <= given.most], given.turns)


if __name__ == "__main__":
    main()
