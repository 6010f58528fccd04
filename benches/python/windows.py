"""Keyed state, windows and calls: ours beside a loop, Polars and asyncio, in one run.

    python benches/python/windows.py [--records N] [--rows N] [--calls N] [--sessions N]

Each figure is a ratio of times, the best of three runs of each side in turn, or the median of CPU times; 1.0
is as
fast as the other. Of sessions, one for each of so many keys, and of joins in time it is the memory of the
process along the way.
"""

from __future__ import annotations

import argparse
import asyncio
import random
import time
from collections.abc import Callable
from operator import itemgetter
from statistics import median
from typing import Any

from figures import leave

import pointstamp as ps


def best(run: Callable[[], Any], times: int = 3) -> float:
    """The least of the seconds that a call takes."""
    found = []
    for _ in range(times):
        start = time.perf_counter()
        run()
        found.append(time.perf_counter() - start)
    return min(found)


def alternated(*runs: Callable[[], Any], times: int = 5) -> list[float]:
    """The median of the CPU seconds of each of several calls, which take turns."""
    found: list[list[float]] = [[] for _ in runs]
    for _ in range(times):
        for run, seconds in zip(runs, found, strict=True):
            start = time.process_time()
            run()
            seconds.append(time.process_time() - start)
    return [median(seconds) for seconds in found]


def running_maximum(count: int) -> list[float]:
    """A running maximum of 1,000 keys: `scan` by a closure, `running` by name, and a loop with a dict."""
    source = random.Random(1)
    records = [(source.randrange(1000), source.random()) for _ in range(count)]

    def larger(_key: int, value: float, best: float) -> float:
        return value if value > best else best

    def loop() -> int:
        states: dict[int, float] = {}
        results = []
        for key, value in records:
            states[key] = state = larger(key, value, states.get(key, 0.0))
            results.append((key, state))
        return len(results)

    def ours(*, named: bool) -> int:
        seen = [0]

        def build(scope: ps.Scope) -> None:
            by_key = scope.to_stream(records).key_by(itemgetter(0), itemgetter(1))
            if not named:
                by_key = scope.to_stream(records).key_by(lambda record: record[0], lambda record: record[1])
            results = by_key.running("max") if named else by_key.scan(larger, default=float)
            results.inspect_batch(lambda _, batch: seen.__setitem__(0, seen[0] + len(batch)))

        ps.example(build)
        assert seen == [count]
        return seen[0]

    return alternated(lambda: ours(named=False), lambda: ours(named=True), loop)


def tumbling_count(count: int) -> tuple[float, float, float]:
    """Rows counted by key and window, on columns: `window`, Polars' `group_by_dynamic`, and its `group_by`.

    The last is of the quotient of time and length, which is as good where rows are all there.
    """
    import numpy as np
    import polars as pl
    import pyarrow as pa

    source = np.random.default_rng(1)
    table = pa.table(
        {
            "at": np.arange(count, dtype=np.int64),
            "key": source.integers(0, 1000, count),
            "value": np.ones(count),
        }
    )
    length = count // 20
    frame: Any = pl.from_arrow(table)

    def polars() -> int:
        found = frame.group_by_dynamic("at", every=f"{length}i", group_by="key").agg(pl.len())
        return int(found["len"].sum())

    def plain() -> int:
        found = frame.group_by("key", pl.col("at") // length).agg(pl.len())
        return int(found["len"].sum())

    def ours() -> int:
        def main(worker: ps.Worker) -> int:
            total = 0

            def add(_time: ps.Time, batch: pa.RecordBatch) -> None:
                nonlocal total
                total += batch["value_count"].to_numpy().sum()

            rows = ps.ArrowInput(table.schema)
            with worker.dataflow() as scope:
                on_time, _ = rows.to_stream(scope).event_time("at")
                on_time.window(ps.Tumbling(length), "key", value_count=ps.col("value").count()).inspect_batch(
                    add
                )
            rows.send(table)
            rows.close()
            worker.run()
            return total

        return int(ps.execute(main)[0])

    assert ours() == polars() == plain() == count
    return best(ours), best(polars), best(plain)


def memory() -> float:
    """The resident memory of the process, in MB."""
    with open("/proc/self/statm") as statm:
        return int(statm.read().split()[1]) * 4096 / 1e6


def sessions(count: int, *, columns: bool) -> list[float]:
    """The memory of the process, in MB, as sessions of ever new keys come and go: at each tenth of them."""
    import pyarrow as pa

    schema = pa.schema([("at", pa.int64()), ("key", pa.int64())])
    seen = 0

    def main(worker: ps.Worker) -> list[float]:
        def add(_time: ps.Time, batch: Any) -> None:
            nonlocal seen
            seen += len(batch)

        rows, records = ps.ArrowInput(schema), ps.InputHandle[tuple[int, int]]()
        with worker.dataflow() as scope:
            if columns:
                on_time, _ = rows.to_stream(scope).event_time("at", lateness=100)
                results: Any = on_time.window(ps.Session(gap=50), "key", at_count=ps.col("at").count())
            else:
                events, _ = records.to_stream(scope).event_time(lambda event: event[0], lateness=100)
                results = events.key_by(lambda event: event[1]).window(ps.Session(gap=50)).count()
            results.inspect_batch(add)
        found = []
        for first in range(0, count, 1000):
            keys = range(first, min(first + 1000, count))
            times = [key // 10 for key in keys]
            if columns:
                rows.send(pa.table({"at": times, "key": list(keys)}, schema=schema))
            else:
                records.send_batch(list(zip(times, keys, strict=True)))
            for _ in range(8):
                worker.step()
            if first % (count // 10) == 0:
                found.append(memory())
        rows.close()
        records.close()
        worker.run()
        return [*found, memory()]

    [found] = ps.execute(main)
    assert seen == count
    return found


def joins(count: int) -> list[float]:
    """The memory of the process, in MB, as pairs of new keys are joined in time on columns: at each tenth."""
    import pyarrow as pa

    left = pa.schema([("at", pa.int64()), ("key", pa.int64())])
    right = pa.schema([("when", pa.int64()), ("key", pa.int64())])
    seen = 0

    def main(worker: ps.Worker) -> list[float]:
        def add(_time: ps.Time, batch: Any) -> None:
            nonlocal seen
            seen += len(batch)

        inputs = [ps.ArrowInput(left), ps.ArrowInput(right)]
        with worker.dataflow() as scope:
            sides = [
                rows.to_stream(scope).event_time(column, lateness=100)[0]
                for rows, column in zip(inputs, ("at", "when"), strict=True)
            ]
            sides[0].interval_join(sides[1], "key", lower=-50, upper=50, how="full").inspect_batch(add)
            sides[0].asof_join(sides[1], "key", within=50).inspect_batch(add)
        found = []
        for first in range(0, count, 1000):
            keys = list(range(first, min(first + 1000, count)))
            times = [key // 10 for key in keys]
            inputs[0].send(pa.table({"at": times, "key": keys}, schema=left))
            inputs[1].send(pa.table({"when": times, "key": keys}, schema=right))
            for _ in range(8):
                worker.step()
            if first % (count // 10) == 0:
                found.append(memory())
        for rows in inputs:
            rows.close()
        worker.run()
        return [*found, memory()]

    [found] = ps.execute(main)
    assert seen == 2 * count
    return found


def calls(count: int, capacity: int = 1000, seconds: float = 0.01) -> tuple[float, float, float]:
    """Calls that wait: `async_map`, the ideal, and as many asyncio tasks over one iterator."""

    async def call(record: int) -> int:
        await asyncio.sleep(seconds)
        return record

    def ours() -> None:
        def build(scope: ps.Scope) -> Any:
            results, _ = scope.to_stream(range(count)).async_map(call, capacity=capacity)
            return results.count().capture()

        assert ps.example(build).extract() == [(0, [count])]

    async def tasks() -> None:
        records = iter(range(count))

        async def worker() -> None:
            for record in records:
                await call(record)

        await asyncio.gather(*[worker() for _ in range(capacity)])

    return best(ours), count / capacity * seconds, best(lambda: asyncio.run(tasks()))


def main() -> None:
    """Prints a line for each figure."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0] if __doc__ else None)
    parser.add_argument("--records", type=int, default=1_000_000)
    parser.add_argument("--rows", type=int, default=10_000_000)
    parser.add_argument("--calls", type=int, default=10_000)
    parser.add_argument("--sessions", type=int, default=1_000_000)
    given = parser.parse_args()
    closure, named, loop = running_maximum(given.records)
    for how, ours in (("by a closure", closure), ("by name", named)):
        print(
            f"keyed running maximum {how}: {ours:.3f} s of CPU, a dict loop {loop:.3f} s: "
            f"{loop / ours:.2f} of its speed"
        )
        what = f"keyed running maximum {how} of {given.records:,} records"
        leave("Events", what, ours, "a dict loop", loop, aim=1.0)
    ours, polars, plain = tumbling_count(given.rows)
    print(
        f"tumbling count of columns: {ours:.3f} s, Polars' group_by_dynamic {polars:.3f} s: "
        f"{polars / ours:.2f} of its speed; its group_by of the quotient {plain:.3f} s: {plain / ours:.2f}"
    )
    leave("Events", f"tumbling count of {given.rows:,} rows", ours, "Polars group_by of at // n", plain)
    leave(
        "Events", f"tumbling count of {given.rows:,} rows", ours, "Polars group_by_dynamic", polars, aim=1.5
    )
    for columns in (False, True):
        along = sessions(given.sessions, columns=columns)
        what = f"{given.sessions:,} sessions of as many keys, {'columns' if columns else 'records'}"
        print(f"{what}: {', '.join(f'{megabytes:.0f}' for megabytes in along)} MB")
        leave("Events", what, along[-1], "after a tenth", along[1], unit="MB")
    along = joins(given.sessions)
    what = f"{given.sessions:,} pairs of as many keys, joined in time on columns"
    print(f"{what}: {', '.join(f'{megabytes:.0f}' for megabytes in along)} MB")
    leave("Events", what, along[-1], "after a tenth", along[1], unit="MB")
    ours, ideal, tasks = calls(given.calls)
    print(
        f"async_map: {ours:.3f} s, {ours / ideal:.2f} times the ideal {ideal:.3f} s; asyncio alone "
        f"{tasks:.3f} s, {tasks / ideal:.2f} times"
    )
    leave("Events", f"async_map of {given.calls:,} calls of 10 ms", ours, "the ideal", ideal, aim=1.3)
    leave("Events", f"asyncio alone, {given.calls:,} calls of 10 ms", tasks, "the ideal", ideal)


if __name__ == "__main__":
    main()
