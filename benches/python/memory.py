"""State larger than its budget of memory, beside the same in memory.

    python benches/python/memory.py [CASE ...] [--pairs N] [--memory BUDGET] [--rounds N] [--keys N] ...

Each turn runs in a process of its own, so that its peak of memory is known; `--limit` ends a process that
takes more. Pairs are 16 bytes each: a key of half as many values as there are pairs, and a random value. The
cases:

- arranged, counted: pairs are loaded, and 1,000 changes are made at a time
- joined: pairs with as many of another collection, by keys that each have two of both on average; the pairs
  of the result are counted
- components: the components of a random graph with two edges for each node
- states: a state of 100 bytes for each key in a Python function, one record for each; then many records of
  few keys
- peers: counts by key of the same pairs, by DuckDB with the budget as its limit, and by Polars' streaming
  engine, which has no limit
"""

from __future__ import annotations

import argparse
import json
import random
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from statistics import median
from typing import Any

from figures import leave

import pointstamp as ps
from pointstamp import graphs
from pointstamp.config import Config
from pointstamp.runtime import memory as runtime_memory
from pointstamp.runtime.bootstrap import workers

SUBJECT = "memory"
CHUNK = 100_000
CHANGES = 1000
HOT = 5000

Result = dict[str, Any]


def peak() -> int:
    """The most memory that this process has had, in bytes."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss << 10


def run(memory: str | None, main: Callable[[ps.Worker, Result], None]) -> Result:
    """Runs a program under a budget; returns what it measured, the growth of memory, and what was written."""
    budgets: list[Any] = []

    def noting(config: Config) -> Any:
        budget = runtime_memory.budget_of(config)
        budgets.extend([budget] if budget else [])
        return budget

    workers.budget_of = noting
    result: Result = {}
    before = peak()
    ps.execute(lambda worker: main(worker, result), config=Config(memory=memory))
    result["grown"] = peak() - before
    result["written"] = budgets[0].written if budgets else 0
    return result


def load(handle: Any, worker: ps.Worker, pairs: int, seed: int, keys: int) -> None:
    """Sends random pairs on an input of a collection."""
    import numpy as np

    drawn = np.random.default_rng(seed)
    for start in range(0, pairs, CHUNK):
        count = min(CHUNK, pairs - start)
        some = drawn.integers(0, keys, count).tolist()
        values = drawn.integers(0, 1 << 40, count).tolist()
        handle.update_many((pair, 1) for pair in zip(some, values, strict=True))
        worker.step()


def arranged(options: argparse.Namespace, memory: str | None, *, counts: bool = False) -> Result:
    """Loads pairs into an arrangement, or counts them by key, and changes some of them."""
    pairs = options.pairs

    def main(worker: ps.Worker, result: Result) -> None:
        with worker.dataflow() as scope:
            handle, collection = scope.new_collection()
            if counts:
                collection = collection.count()
            kept = collection.arrange()
            trace, probe = kept.trace(), kept.to_collection().probe()
        begin = time.perf_counter()
        load(handle, worker, pairs, 1, pairs // 2)
        handle.advance_to(1)
        worker.step_while(lambda: probe.less_than(1))
        result["load"] = time.perf_counter() - begin
        times = []
        for number in range(options.rounds):
            changes = [((random.randrange(pairs // 2), random.randrange(1 << 40)), 1) for _ in range(CHANGES)]
            handle.update_many(changes)
            handle.advance_to(number + 2)
            begin = time.perf_counter()
            worker.step_while(lambda now=number + 2: probe.less_than(now))
            times.append(time.perf_counter() - begin)
        times.sort()
        result["median"], result["p99"] = times[len(times) // 2], times[len(times) * 99 // 100]
        assert trace.get(1) is not None
        handle.close()

    return run(memory, main)


def counted(options: argparse.Namespace, memory: str | None) -> Result:
    """Counts pairs by key."""
    return arranged(options, memory, counts=True)


def joined(options: argparse.Namespace, memory: str | None) -> Result:
    """Joins two collections of pairs."""
    pairs = options.pairs

    def main(worker: ps.Worker, result: Result) -> None:
        with worker.dataflow() as scope:
            left, ours = scope.new_collection()
            right, theirs = scope.new_collection()
            both = ours.join(theirs, lambda key, one, other: 0)
            probe = both.consolidate().probe()
        begin = time.perf_counter()
        for seed, handle in enumerate((left, right)):
            load(handle, worker, pairs, seed, pairs // 2)
            handle.advance_to(1)
        worker.step_while(lambda: probe.less_than(1))
        result["load"] = time.perf_counter() - begin
        left.close()
        right.close()

    return run(memory, main)


def components(options: argparse.Namespace, memory: str | None) -> Result:
    """Finds the components of a random graph."""
    nodes = options.nodes

    def main(worker: ps.Worker, result: Result) -> None:
        with worker.dataflow() as scope:
            handle, edges = scope.new_collection()
            probe = graphs.connected_components(edges).probe()
        begin = time.perf_counter()
        drawn = random.Random(1)
        for start in range(0, 2 * nodes, CHUNK):
            some = [
                ((drawn.randrange(nodes), drawn.randrange(nodes)), 1)
                for _ in range(start, min(start + CHUNK, 2 * nodes))
            ]
            handle.update_many(some)
            worker.step()
        handle.advance_to(1)
        worker.step_while(lambda: probe.less_than(1))
        result["load"] = time.perf_counter() - begin
        handle.close()

    return run(memory, main)


def states(options: argparse.Namespace, memory: str | None) -> Result:
    """Gives each key a state of 100 bytes, and then many records to few keys."""
    keys = options.keys

    def put(key: int, number: int, state: bytes) -> tuple[bytes, list[Any]]:
        return number.to_bytes(8, "little") * 12 + state[:4], []

    def main(worker: ps.Worker, result: Result) -> None:
        with worker.dataflow() as scope:
            handle, numbers = scope.new_input()
            probe = numbers.key_by(lambda number: number % keys).state_machine(put, default=bytes).probe()

        def send(batches: list[list[int]]) -> float:
            begin = time.perf_counter()
            for batch in batches:
                handle.send_batch(batch)
                handle.advance_to(handle.time + 1)
                worker.step_while(lambda: probe.less_than(handle.time))
            return time.perf_counter() - begin

        result["load"] = sum(
            send([list(range(first, min(first + CHUNK // 10, keys)))])
            for first in range(0, keys, CHUNK // 10)
        )
        hot = random.Random(1).sample(range(keys), min(HOT, keys))
        send([hot, hot])
        result["hot"] = send([hot] * options.rounds) / (options.rounds * len(hot))
        cold = random.Random(2).sample(range(keys), min(10 * HOT, keys))
        result["cold"] = send([cold]) / len(cold)
        handle.close()

    return run(memory, main)


def peer(options: argparse.Namespace, name: str, memory: str) -> Result:
    """Counts pairs by key in another engine; the pairs are made before the clock starts."""
    import numpy as np

    pairs = options.pairs
    drawn = np.random.default_rng(1)
    keys = drawn.integers(0, pairs // 2, pairs)
    before = peak()
    if name == "DuckDB":
        import duckdb
        import pyarrow as pa

        table = pa.table({"key": keys})
        with tempfile.TemporaryDirectory() as folder:
            connection = duckdb.connect(config={"threads": 1, "temp_directory": folder})
            connection.execute(f"SET memory_limit = '{memory.replace(' ', '')}'")
            begin = time.perf_counter()
            query = "CREATE TEMP TABLE counts AS SELECT key, count(*) AS n FROM pairs GROUP BY key"
            connection.register("pairs", table)
            try:
                connection.execute(query)
            except duckdb.OutOfMemoryException:
                return {}
            return {"load": time.perf_counter() - begin, "grown": peak() - before}
    import polars as pl

    begin = time.perf_counter()
    frame = pl.LazyFrame({"key": keys}).group_by("key").len()
    frame.collect(engine="streaming")
    return {"load": time.perf_counter() - begin, "grown": peak() - before}


CASES: dict[str, Callable[[argparse.Namespace, str | None], Result]] = {
    "arranged": arranged,
    "counted": counted,
    "joined": joined,
    "components": components,
    "states": states,
}

ROWS = (
    ("load", "load", "s", 1.0),
    ("median", "1,000 changes, median", "ms", 1e3),
    ("p99", "1,000 changes, p99", "ms", 1e3),
    ("hot", "a record of a hot key", "µs", 1e6),
    ("cold", "a record of a cold key", "µs", 1e6),
    ("grown", "memory grown by", "MB", 1e-6),
)


def once(options: argparse.Namespace, case: str, memory: str | None) -> Result | None:
    """Runs a case in a process of its own. None if it was ended, since it took more memory than the limit."""
    given = [f"--{name}={getattr(options, name)}" for name in ("pairs", "rounds", "keys", "nodes", "limit")]
    command = [sys.executable, __file__, *given, "--once", json.dumps([case, memory])]
    done = subprocess.run(command, check=False, capture_output=True, text=True)
    if done.returncode:
        if options.limit and memory is None:
            return None
        raise SystemExit(f"{case}, {memory}: {done.stderr[-2000:]}")
    result: Result = json.loads(done.stdout)
    return result


def show(options: argparse.Namespace, case: str) -> None:
    """Runs the turns of a case, and prints their medians."""
    bound = options.memory
    found: dict[str | None, list[Result]] = {bound: [], None: []}
    for _ in range(options.turns):
        for memory, results in found.items():
            if (result := once(options, case, memory)) is not None:
                results.append(result)
    size = {"components": f"{options.nodes:,} nodes", "states": f"{options.keys:,} keys"}
    what = f"{size.get(case, f'{options.pairs:,} pairs')} {case}"
    print(f"{what}, {bound}, medians of {options.turns}")
    for name, label, unit, scale in ROWS:
        if name not in found[bound][0]:
            continue
        ours = median(result[name] for result in found[bound]) * scale
        if not found[None]:
            print(f"  {label:24} {ours:10.1f} {unit:3} in memory: over the limit")
            continue
        theirs = median(result[name] for result in found[None]) * scale
        print(f"  {label:24} {ours:10.1f} {unit:3} in memory {theirs:10.1f}   ratio {ours / theirs:.2f}")
        leave(SUBJECT, f"{what}: {label}", ours, "in memory", theirs, unit=unit)
    loaded = 100 * options.keys if case == "states" else 16 * options.pairs
    if case != "components":
        written = median(result["written"] for result in found[bound]) / loaded
        print(f"  {'written for loaded':24} {written:10.2f} bytes for a byte")


def show_peers(options: argparse.Namespace) -> None:
    """Counts the same pairs here and by other engines, one after the other in each turn."""
    found: dict[str, list[Result]] = {"counted": [], "DuckDB": [], "Polars": []}
    for _ in range(options.turns):
        for name, results in found.items():
            result = once(options, name, options.memory)
            assert result is not None
            results.append(result)
    ours = median(result["load"] for result in found["counted"])
    print(f"{options.pairs:,} pairs counted by key, {options.memory}, medians of {options.turns}")
    for name, results in found.items():
        if not all(results):
            print(f"  {name:24} ends: the limit has no room for it")
            continue
        seconds, grown = (median(result[what] for result in results) for what in ("load", "grown"))
        print(f"  {name:24} {seconds:10.2f} s   memory grown by {grown * 1e-6:8.1f} MB")
        if name != "counted":
            leave(SUBJECT, f"{options.pairs:,} pairs counted by key: load", ours, name, seconds, unit="s")


def main() -> None:
    """The command line."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "cases", nargs="*", metavar="CASE", help=f"of {', '.join(CASES)}, peers; default: all"
    )
    parser.add_argument("--pairs", type=int, default=4_000_000)
    parser.add_argument("--keys", type=int, default=500_000, help="keys with a state")
    parser.add_argument("--nodes", type=int, default=200_000, help="nodes of the graph")
    parser.add_argument(
        "--memory", default="32 MiB", help="the budget (default: a quarter of the pairs' bytes or so)"
    )
    parser.add_argument("--rounds", type=int, default=200, help="rounds of changes")
    parser.add_argument("--turns", type=int, default=3)
    parser.add_argument("--limit", type=int, default=0, help="the most MiB of data that a process may have")
    parser.add_argument("--once", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.once:
        case, memory = json.loads(options.once)
        if options.limit:
            resource.setrlimit(resource.RLIMIT_DATA, (options.limit << 20, options.limit << 20))
        made = CASES[case](options, memory) if case in CASES else peer(options, case, memory)
        print(json.dumps(made))
        return
    wanted = options.cases or [*CASES, "peers"]
    if unknown := set(wanted) - {*CASES, "peers"}:
        parser.error(f"no case: {', '.join(sorted(unknown))}")
    for case in wanted:
        if case == "peers":
            show_peers(options)
        else:
            show(options, case)


if __name__ == "__main__":
    main()
