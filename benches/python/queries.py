"""The queries of TPC-H over tables that change, beside DuckDB's and Polars' answers to the whole queries.

    python benches/python/queries.py [--scale S] [--rounds N] [--queries 1 6 ...] [--no-together]

Each query runs in a process of its own: it loads the tables, and follows changes that each replace a share
of lineitem's rows. Then all queries run in one dataflow, where they share what they keep, beside the sum of
what they took alone. DuckDB and Polars compute the query anew, as they would after each change; their
tables are in memory already. The tables are of our own generator (`tpch_data`).
"""

from __future__ import annotations

import argparse
import json
import resource
import subprocess
import sys
import time
from pathlib import Path
from statistics import median
from typing import Any

from figures import leave

TOP = Path(__file__).resolve().parents[2]
sys.path.append(str(TOP / "tests" / "support"))

SUBJECT = "queries"
SHARES = {"0.001 %": 0.00001, "0.1 %": 0.001}
REPEATS = 3
FASTER = {"0.001 %": 1 / 50, "0.1 %": 1 / 5}
"""The aims: a change's time over the time of DuckDB's whole query."""

LOAD = 3.0
"""The aim: the time of loading over the time of DuckDB's import and query."""

SHARED = 0.5
"""The aim: all queries together over the sum of what they take alone."""


def tables_of(scale: float) -> tuple[dict[str, Any], Any]:
    """The tables, and the generator that made them."""
    from tpch_data import Generator

    import tpch

    generator = Generator(scale, tpch.SCHEMAS)
    return generator.tables(), generator


def resident() -> int:
    """The size of this process in memory, in bytes: now, or at its greatest where the system does not say."""
    try:
        pages = int(Path("/proc/self/statm").read_text().split()[1])
    except OSError:
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss << 10
    return pages * resource.getpagesize()


def kept(worker: Any) -> int:
    """The bytes of the arrangements of this worker, as `LiveQuery.explain(sizes=True)` adds them up."""
    said = worker._collector.data(worker._engine)
    return sum(memory for one in said for _, _, memory, _ in one.get("kept", ()))


def measure(numbers: list[int], scale: float, rounds: int) -> dict[str, Any]:
    """Runs queries over changing tables, in this process.

    Returns:
        The seconds of loading, the median and the 99th percentile of a change of each share, the bytes that
        the process grew by, and the bytes of the arrangements.
    """
    import numpy as np

    import pointstamp as ps
    import tpch

    given, generator = tables_of(scale)
    drawn = np.random.default_rng(2)
    result: dict[str, Any] = {}

    def main(worker: ps.Worker) -> None:
        before = resident()
        with worker.dataflow() as scope:
            inputs, rows = {}, {}
            for name, schema in tpch.SCHEMAS.items():
                inputs[name], rows[name] = scope.new_collection(schema=schema, name=name)
            probes = [scope.sql(tpch.QUERIES[number], **rows).probe() for number in numbers]

        def settle(time_: int) -> None:
            for handle in inputs.values():
                handle.advance_to(time_)
            for probe in probes:
                worker.step_while(lambda probe=probe: probe.less_than(time_))

        begin = time.perf_counter()
        for name, table in given.items():
            inputs[name].insert(table)
        settle(1)
        result["load"] = time.perf_counter() - begin
        result["grown"], result["kept"] = resident() - before, kept(worker)
        lines, at = given["lineitem"], 1
        # Each change replaces rows of the beginning, so no table of the rows by now is needed.
        left = drawn.permutation(lines.num_rows)
        for label, share in SHARES.items():
            count = max(int(lines.num_rows * share), 1)
            times = []
            for _ in range(min(rounds, len(left) // count)):
                gone, left = left[:count], left[count:]
                old = lines.take(gone)
                new = generator.lineitem(old["l_orderkey"].to_numpy() - 1)
                begin = time.perf_counter()
                inputs["lineitem"].remove(old)
                inputs["lineitem"].insert(new)
                at += 1
                settle(at)
                times.append(time.perf_counter() - begin)
            times.sort()
            result[label] = median(times), times[min(len(times) * 99 // 100, len(times) - 1)]
        for handle in inputs.values():
            handle.close()

    ps.execute(main)
    return result


def peers(numbers: list[int], scale: float) -> dict[str, dict[str, float]]:
    """The seconds of DuckDB and Polars for each query, and of DuckDB's import."""
    import duckdb
    import polars

    import tpch

    given, _ = tables_of(scale)
    connection = duckdb.connect()
    begin = time.perf_counter()
    for name, table in given.items():
        connection.register("given", table)
        connection.execute(f"create table {name} as select * from given")
        connection.unregister("given")
    found: dict[str, dict[str, float]] = {"import": {"duckdb": time.perf_counter() - begin}}
    frames = polars.SQLContext({name: polars.from_arrow(table) for name, table in given.items()})
    runs = {
        "duckdb": lambda query: connection.sql(query).to_arrow_table(),
        "polars": lambda query: frames.execute(query, eager=True),
    }
    for number in numbers:
        times = found[str(number)] = {}
        for peer, run in runs.items():
            try:
                times[peer] = min(_timed(run, tpch.QUERIES[number]) for _ in range(REPEATS))
            except Exception as error:  # Polars covers a part of the queries
                print(
                    f"  {peer} does not answer query {number}: {str(error).splitlines()[0][:80]}",
                    file=sys.stderr,
                )
    return found


def _timed(run: Any, query: str) -> float:
    begin = time.perf_counter()
    run(query)
    return time.perf_counter() - begin


def apart(command: str, numbers: list[int], options: argparse.Namespace) -> Any:
    """The result of a function in a process of its own."""
    given = json.dumps([command, numbers])
    arguments = ["--scale", str(options.scale), "--rounds", str(options.rounds), "--once", given]
    done = subprocess.run(
        [sys.executable, __file__, *arguments], check=True, stdout=subprocess.PIPE, text=True
    )
    return json.loads(done.stdout.splitlines()[-1])


def main() -> None:
    """The command line."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--scale", type=float, default=0.1, help="1 is six million rows of lineitem")
    parser.add_argument("--rounds", type=int, default=20, help="changes of each share")
    parser.add_argument("--queries", type=int, nargs="*", default=list(range(1, 23)))
    parser.add_argument("--no-together", action="store_true", help="not all queries in one dataflow")
    parser.add_argument("--once", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.once:
        command, numbers = json.loads(options.once)
        made = (
            peers(numbers, options.scale)
            if command == "peers"
            else measure(numbers, options.scale, options.rounds)
        )
        print(json.dumps(made))
        return
    theirs = apart("peers", options.queries, options)
    imported = theirs["import"]["duckdb"]
    alone: dict[int, dict[str, Any]] = {}
    print(f"TPC-H at scale {options.scale:g}, medians of {options.rounds} changes")
    titles = [("query", 5), ("load", 8), ("memory", 9), ("kept", 8), ("0.001 %", 10), ("0.1 %", 10)]
    titles += [("DuckDB", 9), ("Polars", 9)]
    print(" ".join(f"{title:>{width}}" for title, width in titles))
    for number in options.queries:
        ours = alone[number] = apart("ours", [number], options)
        peer = theirs[str(number)]
        shown = [
            f"{peer[name] * 1e3:7.1f}ms" if name in peer else f"{'-':>9}" for name in ("duckdb", "polars")
        ]
        print(
            f"{number:5} {ours['load']:7.2f}s {ours['grown'] / 1e6:7.0f}MB {ours['kept'] / 1e6:6.1f}MB "
            f"{ours['0.001 %'][0] * 1e3:8.2f}ms {ours['0.1 %'][0] * 1e3:8.2f}ms {' '.join(shown)}",
            flush=True,
        )
        _leave(f"Q{number}", ours, peer, imported)
    if len(options.queries) > 1 and not options.no_together:
        together = apart("ours", options.queries, options)
        print(f"all in one dataflow, beside the sum of {len(alone)} alone")
        for label, of in (
            ("load", lambda made: made["load"]),
            ("a change of 0.001 %", lambda made: made["0.001 %"][0]),
            ("a change of 0.1 %", lambda made: made["0.1 %"][0]),
        ):
            mine, total = of(together), sum(map(of, alone.values()))
            print(f"  {label:20} {mine:9.3f}s {total:9.3f}s   {mine / total:.2f}")
            leave(SUBJECT, f"all queries at once: {label}", mine, "sum of each alone", total, aim=SHARED)
        for label, name in (("memory", "grown"), ("arrangements", "kept")):
            mine, total = together[name] / 1e6, sum(made[name] for made in alone.values()) / 1e6
            print(f"  {label:20} {mine:7.0f}MB {total:8.0f}MB   {mine / total:.2f}")
            what = f"all queries at once: {label}"
            leave(SUBJECT, what, mine, "sum of each alone", total, unit="MB", aim=SHARED)


def _leave(query: str, ours: dict[str, Any], peer: dict[str, float], imported: float) -> None:
    leave(
        SUBJECT,
        f"{query}: load",
        ours["load"],
        "DuckDB's import and query",
        imported + peer["duckdb"],
        aim=LOAD,
    )
    leave(SUBJECT, f"{query}: memory", ours["grown"] / 1e6, unit="MB")
    leave(SUBJECT, f"{query}: arrangements", ours["kept"] / 1e6, unit="MB")
    for label, aim in FASTER.items():
        for name, title in (("duckdb", "DuckDB's query"), ("polars", "Polars' query")):
            if name in peer:
                leave(SUBJECT, f"{query}: {label} changes", ours[label][0], title, peer[name], aim=aim)


if __name__ == "__main__":
    main()
