"""Delays of flights by airline and origin, a day at a time, of a generated table with nulls.

python examples/flights_arrow.py --days 30 --flights 20000 --workers 2

A day is a timestamp: when a day is over on every worker, its figures come out. Aggregating, and moving the
rows to the worker that has their key, needs no Python. The figures are checked against DuckDB.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections import Counter
from functools import partial
from typing import Any

import numpy as np
import pyarrow as pa

import pointstamp as ps
from pointstamp import col

AIRLINES = ["AA", "B6", "DL", "UA", "WN"]
ORIGINS = ["ATL", "BOS", "DEN", "JFK", "LAX", "ORD", "SEA"]
SCHEMA = pa.schema(
    [
        ("day", pa.int64()),
        ("airline", pa.dictionary(pa.int32(), pa.string())),
        ("origin", pa.string()),
        ("delay", pa.float64()),
        ("distance", pa.int32()),
    ]
)
KEY = ["airline", "origin"]
FIGURES: dict[str, Any] = {
    "delay_mean": col("delay").mean(),
    "delay_max": col("delay").max(),
    "delay_count": col("delay").count(),
    "distance_sum": col("distance").sum(),
    "distance_min": col("distance").min(),
}


def flights(day: int, count: int) -> pa.Table:
    """A day's flights; some have no delay, because they did not fly, and some no origin."""
    random = np.random.default_rng(day)
    airline = random.integers(0, len(AIRLINES), count, dtype=np.int32)
    origin = np.array(ORIGINS, object)[random.integers(0, len(ORIGINS), count)]
    origin[random.random(count) < 0.01] = None
    delay = pa.array(random.integers(-20, 300, count) / 4, mask=random.random(count) < 0.03)
    columns = [
        np.full(count, day),
        pa.DictionaryArray.from_arrays(airline, AIRLINES),
        pa.array(origin, pa.string()),
        delay,
        random.integers(100, 3000, count, dtype=np.int32),
    ]
    return pa.table(columns, schema=SCHEMA)


def by_day(worker: ps.Worker, days: list[pa.Table]) -> list[tuple[ps.Time, list[pa.RecordBatch]]]:
    """The figures of each day that this worker has keys of; it sends every `peers`-th piece of a day."""
    rows = ps.ArrowInput(SCHEMA)
    with worker.dataflow("flights") as scope:
        figures = rows.to_stream(scope).aggregate(KEY, **FIGURES)
        probe = figures.probe()
        captured = figures.capture()
    for day, table in enumerate(days):
        rows.advance_to(day)
        for piece in table.to_batches(max_chunksize=4096)[worker.index :: worker.peers]:
            rows.send(piece)
        worker.step_while(partial(probe.less_than, day))
    rows.close()
    worker.run()
    return captured.extract()


def main() -> int:
    """Makes the table, aggregates it, and checks the figures."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--days", type=int, default=30)
    parser.add_argument("--flights", type=int, default=20_000)
    parser.add_argument("--workers", type=int, default=2)
    arguments = parser.parse_args()
    days = [flights(day, arguments.flights) for day in range(arguments.days)]

    start = time.perf_counter()
    parts = ps.execute(lambda worker: by_day(worker, days), workers=arguments.workers)
    seconds = time.perf_counter() - start
    ours: Counter[Any] = Counter()
    for part in parts:
        for day, batches in part:
            ours.update((day, *row.values()) for batch in batches for row in batch.to_pylist())
    rows = len(days) * arguments.flights
    print(f"{rows} flights on {len(days)} days: {len(ours)} rows of figures in {seconds:.2f} s")

    import duckdb

    whole = pa.concat_tables(days, promote_options="permissive")
    query = """select day, airline::varchar, origin, avg(delay), max(delay), count(delay),
        sum(distance)::bigint, min(distance) from whole_table group by all"""
    with duckdb.connect() as connection:
        theirs = Counter(connection.register("whole_table", whole).sql(query).fetchall())
    # Delays are quarters of a minute: their sums are exact, whatever their order.
    right = ours == theirs
    print("as DuckDB says" if right else "NOT as DuckDB says")
    return 0 if right else 1


if __name__ == "__main__":
    sys.exit(main())
