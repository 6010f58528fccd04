"""State larger than its budget of memory, beside the same in memory.

    python benches/python/memory.py [CASE ...] [--pairs N] [--memory BUDGET] [--rounds N] [--keys N] ...

Each turn runs in a process of its own, so that its peak of memory is known; `--limit` ends a process that
takes more. Pairs are 16 bytes each: a key of half as many values as there are pairs, and a random value. They
are in a Parquet file (`--folder`), of which every program, ours or a peer's, reads row groups. The cases:

- arranged, counted: a collection of pairs is loaded, arranged or counted by key, and 1,000 changes are made
  at a time
- joined: pairs with as many of another collection, by keys that each have two of both on average; the pairs
  of the result are counted
- components: the components of a random graph with two edges for each node
- states: a state of 100 bytes for each key in a Python function, one record for each; then many records of
  few keys
- columns: the pairs as a stream of columns, counted by key at one time
- running: a stream of columns, with the count of each key so far beside each row; a time for each row group
- peers: counts by key of the same file, by `counted` and `columns`, by DuckDB with the budget as its limit,
  and by Polars' streaming engine, which has no limit; all must find the same

A merge of batches on disk alone is `cargo run --release -p pointstamp-spill --example merge`.
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
from collections.abc import Callable, Iterator
from pathlib import Path
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
GROUP = 1 << 18
CHANGES = 1000
HOT = 5000

Result = dict[str, Any]


def peak() -> int:
    """The most memory that this process has had, in bytes."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss << 10


def run(memory: str | None, main: Callable[[ps.Worker, Result], None], folder: str | None = None) -> Result:
    """Runs a program under a budget; returns what it measured, the growth of memory, and what was written."""
    budgets: list[Any] = []

    def noting(config: Config) -> Any:
        budget = runtime_memory.budget_of(config)
        budgets.extend([budget] if budget else [])
        return budget

    workers.budget_of = noting
    result: Result = {}
    before = peak()
    ps.execute(lambda worker: main(worker, result), config=Config(memory=memory, spill=folder))
    result["grown"] = peak() - before
    result["written"] = budgets[0].written if budgets else 0
    return result


def schema() -> Any:
    """The columns of pairs."""
    import pyarrow as pa

    return pa.schema({"key": pa.int64(), "value": pa.int64()})


def pairs_in(options: argparse.Namespace, seed: int) -> Path:
    """The file of random pairs of a seed, written where there is none yet."""
    import numpy as np
    import pyarrow as pa
    from pyarrow import parquet

    path = Path(options.folder) / f"pairs-{options.pairs}-{seed}.parquet"
    if path.exists():
        return path
    drawn = np.random.default_rng(seed)
    made = path.with_suffix(".part")
    with parquet.ParquetWriter(made, schema(), use_dictionary=False) as writer:
        for start in range(0, options.pairs, GROUP):
            count = min(GROUP, options.pairs - start)
            keys = drawn.integers(0, max(1, options.pairs // 2), count)
            columns = {"key": keys, "value": drawn.integers(0, 1 << 40, count)}
            writer.write_table(pa.table(columns, schema()), row_group_size=GROUP)
    made.rename(path)
    return path


def row_groups(path: Path) -> Iterator[Any]:
    """Reads a file of pairs, a row group at a time."""
    from pyarrow import parquet

    with parquet.ParquetFile(path) as file:
        for number in range(file.num_row_groups):
            yield file.read_row_group(number)


def load(worker: ps.Worker, path: Path, give: Callable[[Any], object], moves: Any, probe: Any) -> float:
    """Gives a file's pairs at the first time, and waits for it; returns the seconds."""
    begin = time.perf_counter()
    for group in row_groups(path):
        give(group)
        worker.step()
    moves.advance_to(1)
    worker.step_while(lambda: probe.less_than(1))
    return time.perf_counter() - begin


def arranged(options: argparse.Namespace, memory: str | None, *, counts: bool = False) -> Result:
    """Loads pairs into an arrangement, or counts them by key, and changes some of them."""
    path = pairs_in(options, 1)

    def main(worker: ps.Worker, result: Result) -> None:
        import numpy as np
        import pyarrow as pa

        with worker.dataflow() as scope:
            handle, rows = scope.new_collection(schema=schema())
            if counts:
                rows = rows.count("key")
                found = rows.consolidate().capture() if options.show else None
                probe = rows.updates().probe()
            else:
                kept = rows.to_records().arrange()
                trace, probe = kept.trace(), kept.to_collection().probe()
        result["load"] = load(worker, path, handle.insert, handle, probe)
        if counts and found is not None:
            changes = [changes for _, changes in found.extract()]
            result["found"] = [sum(map(len, changes)), sum(sum(it["count"].to_pylist()) for it in changes)]
        times = []
        drawn = np.random.default_rng(3)
        for number in range(options.rounds):
            keys = drawn.integers(0, max(1, options.pairs // 2), CHANGES)
            handle.insert(pa.table({"key": keys, "value": drawn.integers(0, 1 << 40, CHANGES)}, schema()))
            handle.advance_to(number + 2)
            begin = time.perf_counter()
            worker.step_while(lambda now=number + 2: probe.less_than(now))
            times.append(time.perf_counter() - begin)
        times.sort()
        if times:
            result["median"], result["p99"] = times[len(times) // 2], times[len(times) * 99 // 100]
        if not counts:
            assert trace is not None
        handle.close()

    return run(memory, main, options.folder)


def counted(options: argparse.Namespace, memory: str | None) -> Result:
    """Counts pairs by key."""
    return arranged(options, memory, counts=True)


def joined(options: argparse.Namespace, memory: str | None) -> Result:
    """Joins two collections of pairs."""
    paths = [pairs_in(options, seed) for seed in (1, 2)]

    def main(worker: ps.Worker, result: Result) -> None:
        with worker.dataflow() as scope:
            inputs = [scope.new_collection(schema=schema()) for _ in paths]
            ours, theirs = (rows.to_records() for _, rows in inputs)
            both = ours.join(theirs, lambda key, one, other: 0)
            probe = both.consolidate().probe()
        begin = time.perf_counter()
        for path, (handle, _) in zip(paths, inputs, strict=True):
            for group in row_groups(path):
                handle.insert(group)
                worker.step()
            handle.advance_to(1)
        worker.step_while(lambda: probe.less_than(1))
        result["load"] = time.perf_counter() - begin
        for handle, _ in inputs:
            handle.close()

    return run(memory, main, options.folder)


def components(options: argparse.Namespace, memory: str | None) -> Result:
    """Finds the components of a random graph."""
    nodes = options.nodes

    def main(worker: ps.Worker, result: Result) -> None:
        import numpy as np
        import pyarrow as pa

        with worker.dataflow() as scope:
            handle, edges = scope.new_collection(schema=schema())
            probe = graphs.connected_components(edges.to_records()).probe()
        begin = time.perf_counter()
        drawn = np.random.default_rng(1)
        for start in range(0, 2 * nodes, CHUNK):
            count = min(CHUNK, 2 * nodes - start)
            ends = {name: drawn.integers(0, nodes, count) for name in ("key", "value")}
            handle.insert(pa.table(ends, schema()))
            worker.step()
        handle.advance_to(1)
        worker.step_while(lambda: probe.less_than(1))
        result["load"] = time.perf_counter() - begin
        handle.close()

    return run(memory, main, options.folder)


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

    return run(memory, main, options.folder)


def columns(options: argparse.Namespace, memory: str | None) -> Result:
    """Counts the pairs of a stream of columns by key, at one time."""
    path = pairs_in(options, 1)

    def main(worker: ps.Worker, result: Result) -> None:
        source = ps.ArrowInput(schema())
        found = [0, 0]

        def note(_time: Any, rows: Any) -> None:
            import pyarrow.compute as pc

            found[0] += rows.num_rows
            found[1] += pc.sum(rows["n"]).as_py() or 0

        with worker.dataflow() as scope:
            counts = source.to_stream(scope).aggregate("key", n=ps.count())
            probe = counts.inspect_batch(note).probe()
        result["load"] = load(worker, path, source.send, source, probe)
        result["found"] = found
        source.close()

    return run(memory, main, options.folder)


def running(options: argparse.Namespace, memory: str | None) -> Result:
    """Counts the rows of each key so far, of a stream of columns with a time for each row group."""
    path = pairs_in(options, 1)

    def main(worker: ps.Worker, result: Result) -> None:
        import pyarrow as pa

        timed = pa.schema([*schema(), pa.field("at", pa.int64())])
        source = ps.ArrowInput(timed)
        with worker.dataflow() as scope:
            probe = source.to_stream(scope).running("key", n=ps.count(), column="at").probe()
        begin = time.perf_counter()
        for number, group in enumerate(row_groups(path)):
            at = pa.array([number]).take(pa.array([0] * group.num_rows))
            source.send(group.append_column("at", at).cast(timed))
            source.advance_to(number + 1)
            worker.step_while(lambda now=number + 1: probe.less_than(now))
        result["load"] = time.perf_counter() - begin
        source.close()

    return run(memory, main, options.folder)


def peer(options: argparse.Namespace, name: str, memory: str) -> Result:
    """Counts the pairs of the same file by key in another engine."""
    path = pairs_in(options, 1)
    if name == "DuckDB":
        import duckdb

        before = peak()
        with tempfile.TemporaryDirectory(dir=options.folder) as folder:
            connection = duckdb.connect(config={"threads": 1, "temp_directory": folder})
            connection.execute(f"SET memory_limit = '{memory.replace(' ', '')}'")
            begin = time.perf_counter()
            counts = f"SELECT key, count(*) AS n FROM '{path}' GROUP BY key"
            try:
                found = connection.execute(f"SELECT count(*), sum(n) FROM ({counts})").fetchall()
            except duckdb.OutOfMemoryException:
                return {}
            return {
                "load": time.perf_counter() - begin,
                "grown": peak() - before,
                "found": [int(number) for number in found[0]],
            }
    import polars as pl

    before = peak()
    begin = time.perf_counter()
    counts = pl.scan_parquet(path).group_by("key").len().select(pl.len(), n=pl.col("len").sum())
    found = counts.collect(engine="streaming").row(0)
    return {"load": time.perf_counter() - begin, "grown": peak() - before, "found": list(found)}


CASES: dict[str, Callable[[argparse.Namespace, str | None], Result]] = {
    "arranged": arranged,
    "counted": counted,
    "joined": joined,
    "components": components,
    "states": states,
    "columns": columns,
    "running": running,
}

ROWS = (
    ("load", "load", "s", 1.0),
    ("median", "1,000 changes, median", "ms", 1e3),
    ("p99", "1,000 changes, p99", "ms", 1e3),
    ("hot", "a record of a hot key", "µs", 1e6),
    ("cold", "a record of a cold key", "µs", 1e6),
    ("grown", "memory grown by", "MB", 1e-6),
)


def once(options: argparse.Namespace, case: str, memory: str | None, *more: str) -> Result | None:
    """Runs a case in a process of its own. None if it was ended, since it took more memory than the limit."""
    names = ("pairs", "rounds", "keys", "nodes", "limit", "folder")
    given = [f"--{name}={getattr(options, name)}" for name in names]
    command = [sys.executable, __file__, *given, *more, "--once", json.dumps([case, memory])]
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
        if not theirs:
            continue  # all of it was in memory that the process had before
        print(f"  {label:24} {ours:10.1f} {unit:3} in memory {theirs:10.1f}   ratio {ours / theirs:.2f}")
        leave(SUBJECT, f"{what}: {label}", ours, "in memory", theirs, unit=unit)
    loaded = 100 * options.keys if case == "states" else 16 * options.pairs
    if case != "components":
        written = median(result["written"] for result in found[bound]) / loaded
        print(f"  {'written for loaded':24} {written:10.2f} bytes for a byte")


def show_peers(options: argparse.Namespace) -> None:
    """Counts the pairs of one file here and by other engines, one after the other in each turn."""
    found: dict[str, list[Result]] = {"counted": [], "columns": [], "DuckDB": [], "Polars": []}
    for _ in range(options.turns):
        for name, results in found.items():
            result = once(options, name, options.memory, "--rounds=0", "--show")
            assert result is not None
            results.append(result)
    same = {json.dumps(result["found"]) for results in found.values() for result in results if result}
    assert len(same) == 1, f"they find the same: {same}"
    print(f"{options.pairs:,} pairs counted by key, {options.memory}, medians of {options.turns}")
    for name, results in found.items():
        if not all(results):
            print(f"  {name:24} ends: the limit has no room for it")
            continue
        seconds, grown = (median(result[what] for result in results) for what in ("load", "grown"))
        print(f"  {name:24} {seconds:10.2f} s   memory grown by {grown * 1e-6:8.1f} MB")
        if name in ("DuckDB", "Polars"):
            for ours in ("counted", "columns"):
                load = median(result["load"] for result in found[ours])
                leave(SUBJECT, f"{options.pairs:,} pairs {ours} by key: load", load, name, seconds, unit="s")


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
    parser.add_argument("--folder", help="of the pairs, and of state on disk (default: a temporary one)")
    parser.add_argument("--show", action="store_true", help=argparse.SUPPRESS)
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
    with tempfile.TemporaryDirectory() as temporary:
        options.folder = options.folder or temporary
        for case in wanted:
            for seed in (1, 2) if case == "joined" else (1,):
                if case not in ("components", "states"):
                    pairs_in(options, seed)  # before a peak is measured
            if case == "peers":
                show_peers(options)
            else:
                show(options, case)


if __name__ == "__main__":
    main()
