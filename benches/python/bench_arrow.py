"""Columns: ours beside pyarrow and Polars, as ratios of one run.

python benches/python/bench_arrow.py [NAME...]

Names are words, exchange, components, components-large, speedup and memory; all of them when none is given.
Each figure is the best of three runs, of both sides in turns, so that what else the machine does hits both.
"""

from __future__ import annotations

import argparse
import importlib
import resource
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from figures import leave

import pointstamp as ps

ROUNDS = 3


def best(**sides: Callable[[], float | None]) -> dict[str, float]:
    """The least seconds of each side; a side that times itself returns its seconds."""
    found: dict[str, float] = {}
    for _ in range(ROUNDS):
        for name, side in sides.items():
            start = time.perf_counter()
            own = side()
            seconds = time.perf_counter() - start if own is None else own
            found[name] = min(seconds, found.get(name, seconds))
    return found


# -------------------------------------------------------------------- words


def words(lines: int) -> None:
    """Counts words: lines split by `pyarrow.compute` in a closure, exchanged and counted natively."""
    import polars as pl

    random = np.random.default_rng(0)
    vocabulary = np.array([f"word{n}" for n in range(50_000)], object)
    ranks = np.minimum(random.zipf(1.3, lines * 10), len(vocabulary)) - 1
    text = pa.array([" ".join(line) for line in vocabulary[ranks].reshape(lines, 10)])
    table = pa.table({"line": text})
    frame = pl.DataFrame(table)
    word = pa.schema([("word", pa.string())])

    def split(batch: pa.RecordBatch) -> pa.RecordBatch:
        return pa.record_batch([pc.list_flatten(pc.split_pattern(batch["line"], " "))], schema=word)

    def ours(workers: int) -> Callable[[], None]:
        def main(worker: ps.Worker) -> int:
            rows = ps.ArrowInput(table.schema)
            with worker.dataflow() as scope:
                counts = (
                    rows.to_stream(scope)
                    .map_batches(split, word)
                    .aggregate("word", word_count=ps.col("word").count())
                )
                captured = counts.capture()
            share = lines // worker.peers
            for batch in table.slice(worker.index * share, share).to_batches(max_chunksize=16_384):
                rows.send(batch)
                worker.step()
            rows.close()
            worker.run()
            return sum(batch.num_rows for _, batches in captured.extract() for batch in batches)

        return lambda: check(sum(ps.execute(main, workers=workers)), expected)

    def pyarrow() -> None:
        flat = pa.table({"word": pc.list_flatten(pc.split_pattern(table["line"], " "))})
        check(flat.group_by("word").aggregate([("word", "count")]).num_rows, expected)

    def polars() -> None:
        found = frame.select(pl.col("line").str.split(" ").explode()).group_by("line").len()
        check(len(found), expected)

    expected = len(np.unique(ranks))
    found = best(ours_1=ours(1), ours_2=ours(2), pyarrow=pyarrow, polars=polars)
    print(f"words: {lines} lines of 10, {expected} distinct")
    for name in ("ours_1", "ours_2"):
        print(
            f"  {name}: {found[name]:.2f} s, {found[name] / found['pyarrow']:.2f} times pyarrow's group_by "
            f"({found['pyarrow']:.2f} s), {found[name] / found['polars']:.2f} times Polars "
            f"({found['polars']:.2f} s)"
        )
        program = f"count the words of {lines:,} lines, {name[-1]} worker{'s' * (name != 'ours_1')}"
        leave("Columns", program, found[name], "pyarrow's group_by", found["pyarrow"], aim=1.5)
        leave("Columns", program, found[name], "Polars", found["polars"])


def check(found: int, expected: int) -> None:
    """Ends the bench where a side's result is wrong: a ratio of it means nothing."""
    if found != expected:
        raise SystemExit(f"wrong: {found}, and should be {expected}")


# -------------------------------------------------------------------- exchange


def exchange(rows: int) -> None:
    """Moves rows of two int64 columns between two workers, beside taking them on one core."""
    size = 1 << 17
    random = np.random.default_rng(0)
    batch = pa.record_batch([random.integers(0, 1 << 62, size), np.arange(size)], names=["k", "x"])
    order = pa.array(random.permutation(size))
    batches = rows // size

    def main(worker: ps.Worker) -> float:
        source = ps.ArrowInput(batch.schema)
        with worker.dataflow() as scope:
            probe = source.to_stream(scope).exchange("k").probe()
        worker.barrier()
        start = time.perf_counter()
        for turn in range(batches // worker.peers):
            source.send(batch)
            source.advance_to(turn + 1)
            worker.step_while(lambda least=turn - 3: least > 0 and probe.less_than(least))
        source.close()
        worker.run()
        return time.perf_counter() - start

    def take() -> None:
        for _ in range(batches):
            batch.take(order)

    found = best(exchange=lambda: max(ps.execute(main, workers=2)), take=take)
    print(
        f"exchange: {rows / found['exchange'] / 1e6:.0f} million rows/s between 2 workers; take on one core "
        f"{rows / found['take'] / 1e6:.0f} million rows/s: {found['take'] / found['exchange']:.2f} of it"
    )
    leave(
        "Columns",
        f"exchange {rows:,} rows between 2 workers",
        found["exchange"],
        "take, one core",
        found["take"],
    )


# -------------------------------------------------------------------- components


def components(nodes: int, edges: int) -> None:
    """Connected components, as `examples/connected_components_arrow.py` finds them."""
    examples = str(Path(__file__).parents[2] / "examples")
    if examples not in sys.path:
        sys.path.append(examples)
    example = importlib.import_module("connected_components_arrow")
    ends = np.random.default_rng(1).integers(0, nodes, (edges, 2))

    def ours(workers: int) -> Callable[[], None]:
        def main(worker: ps.Worker) -> Any:
            return example.connected_components(worker, nodes, ends[worker.index :: workers])

        return lambda: ps.execute(main, workers=workers) and None

    def python() -> None:
        """Union-find in a plain loop."""
        parent = list(range(nodes))
        for a, b in ends.tolist():
            while parent[a] != a:
                parent[a] = a = parent[parent[a]]
            while parent[b] != b:
                parent[b] = b = parent[parent[b]]
            if a != b:
                parent[max(a, b)] = min(a, b)

    found = best(ours_1=ours(1), ours_2=ours(2), python=python)
    print(
        f"components: {nodes} nodes, {edges} edges: {found['ours_1']:.2f} s on 1 worker, "
        f"{found['ours_2']:.2f} s on 2; union-find in plain Python {found['python']:.2f} s"
    )
    for name in ("ours_1", "ours_2"):
        program = (
            f"components of {nodes:,} nodes, {edges:,} edges, {name[-1]} worker{'s' * (name != 'ours_1')}"
        )
        leave("Columns", program, found[name], "union-find in plain Python", found["python"])


# -------------------------------------------------------------------- speedup


def speedup(rows: int) -> None:
    """Two workers beside one, on exchanging and aggregating the same rows.

    With few keys and many: rows of few keys are added up before they move. And with rows that are made to
    move first, because another operator reads them where they arrive.
    """
    for keys in (1_000, 50_000, 200_000, 1_000_000):
        speedup_by_keys(rows, keys, moved=False)
    speedup_by_keys(rows, 200_000, moved=True)


def speedup_by_keys(rows: int, keys: int, *, moved: bool) -> None:
    """Runs `speedup` with so many different keys."""
    size = 1 << 16
    random = np.random.default_rng(0)
    columns = [[random.integers(0, keys, size), random.random(size)] for _ in range(8)]
    pool = [pa.record_batch(pair, names=["k", "x"]) for pair in columns]
    batches = rows // size
    x = ps.col("x")
    wanted = {"sum": x.sum(), "min": x.min(), "max": x.max(), "mean": x.mean()}

    def side(workers: int) -> Callable[[], tuple[float, float]]:
        def main(worker: ps.Worker) -> float:
            source = ps.ArrowInput(pool[0].schema)
            with worker.dataflow() as scope:
                exchanged = source.to_stream(scope).exchange("k")
                if moved:
                    exchanged = exchanged.concat()
                probe = exchanged.aggregate("k", **wanted).probe()
            worker.barrier()
            start = time.perf_counter()
            for turn in range(batches // worker.peers):
                source.send(pool[turn % len(pool)])
                worker.step()
            source.close()
            worker.run()
            assert probe.done()
            return time.perf_counter() - start

        def run() -> tuple[float, float]:
            start = time.process_time()
            wall = max(ps.execute(main, workers=workers))
            return wall, time.process_time() - start

        return run

    one, two = side(1), side(2)
    pairs = [(one(), two()) for _ in range(2 * ROUNDS + 1)]
    walls = [[side[0] for side in pair] for pair in pairs]
    times = [[side[1] for side in pair] for pair in pairs]
    ratio = float(np.median([a / b for a, b in walls]))
    by_time = float(np.median([2 * a / b for a, b in times]))
    alone, both = (rows / float(np.median(side)) / 1e6 for side in zip(*walls, strict=True))
    name = f"speedup, {keys} keys{', rows moved' if moved else ''}"
    print(
        f"{name}: {alone:.0f} million rows/s aggregated on 1 worker, {both:.0f} on 2: {ratio:.2f} times "
        f"(median of {len(pairs)} pairs; {by_time:.2f} by processor time)"
    )
    leave("Columns", f"{name}, 2 workers", 1 / both, "1 worker", 1 / alone, unit="us a row", aim=1 / 1.7)


# -------------------------------------------------------------------- memory


def memory(rows: int) -> None:
    """The most memory that a stream of rows takes, through `map_batches` and `aggregate` on two workers."""
    size = 1 << 16
    schema = pa.schema([("k", pa.int64()), ("x", pa.float64())])

    def main(worker: ps.Worker) -> int:
        random = np.random.default_rng(worker.index)
        source = ps.ArrowInput(schema)
        with worker.dataflow() as scope:
            double = source.to_stream(scope).map_batches(
                lambda batch: batch.set_column(1, "x", pc.multiply(batch["x"], 2.0))
            )
            result = double.aggregate("k", x_sum=ps.col("x").sum(), x_count=ps.col("x").count())
            probe = result.probe()
            captured = result.capture()
        batches = rows // size // worker.peers
        for turn in range(batches):
            keys = random.integers(0, 10_000, size)
            source.send(pa.record_batch([keys, random.random(size)], schema=schema))
            if turn % 16 == 15:  # the workers stay within a few batches of each other
                source.advance_to(turn // 16 + 1)
                worker.step_while(lambda least=turn // 16: probe.less_than(least))
            else:
                worker.step()
        source.close()
        worker.run()
        return sum(sum(b["x_count"].to_pylist()) for _, found in captured.extract() for b in found)

    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    start = time.perf_counter()
    counted = sum(ps.execute(main, workers=2))
    seconds = time.perf_counter() - start
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    print(
        f"memory: {counted} rows in {seconds:.1f} s; {peak >> 10} MiB at most, "
        f"{before >> 10} MiB of it before"
    )
    leave("Columns", f"memory while {counted:,} rows pass", (peak - before) / 1024, unit="MiB more")


BENCHES: dict[str, Callable[[float], None]] = {
    "memory": lambda scale: memory(int(100_000_000 * scale)),  # first: it reads the process's peak
    "words": lambda scale: words(int(1_000_000 * scale)),
    "exchange": lambda scale: exchange(int(100_000_000 * scale)),
    "components": lambda scale: components(int(200_000 * scale), int(400_000 * scale)),
    "components-large": lambda scale: components(int(1_000_000 * scale), int(10_000_000 * scale)),
    "speedup": lambda scale: speedup(int(50_000_000 * scale)),
}


def main() -> None:
    """Runs the benches that are named, or all."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("names", nargs="*", metavar="NAME")
    parser.add_argument("--scale", type=float, default=1.0, help="a part of the size, for a quick look")
    arguments = parser.parse_args()
    for name, bench in BENCHES.items():
        if not arguments.names or name in arguments.names:
            bench(arguments.scale)
            sys.stdout.flush()


if __name__ == "__main__":
    main()
