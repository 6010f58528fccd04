"""Parquet in, aggregate, Parquet out, beside Polars' streaming engine, on the same files.

    python benches/python/bench_parquet.py [--rows 4000000] [--workers 2]

Each figure is seconds of wall time, the best of several rounds in one run, and the ratio of the two.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq

import pointstamp as ps
from pointstamp.connectors import ParquetSink, ParquetSource

if TYPE_CHECKING:
    from collections.abc import Callable

FILES = 8
ROUNDS = 3


def best(run: Callable[[int], object]) -> float:
    """The least time of several rounds, in seconds."""
    times = []
    for turn in range(ROUNDS):
        start = time.perf_counter()
        run(turn)
        times.append(time.perf_counter() - start)
    return min(times)


def main() -> None:
    """Prints the figures."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int, default=4_000_000, help="of all files (4,000,000)")
    parser.add_argument("--workers", type=int, default=2, help="threads of the dataflow (2)")
    options = parser.parse_args()
    rng = np.random.default_rng(7)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        given = folder / "given"
        given.mkdir()
        for n in range(FILES):
            count = options.rows // FILES
            columns = {"key": rng.integers(0, 10_000, count), "value": rng.random(count)}
            pq.write_table(pa.table(columns), given / f"{n}.parquet")

        def ours(turn: int) -> None:
            def program(worker: ps.Worker) -> None:
                with worker.dataflow() as scope:
                    rows = scope.read(ParquetSource(given))
                    totals = rows.aggregate("key", value_sum=ps.col("value").sum())
                    totals.write(ParquetSink(folder / f"ours{turn}"))
                worker.run()

            ps.execute(program, workers=options.workers)

        def theirs(turn: int) -> None:
            rows = pl.scan_parquet(given / "*.parquet").group_by("key").agg(pl.col("value").sum())
            rows.sink_parquet(folder / f"theirs{turn}.parquet")

        us, them = best(ours), best(theirs)
        left = pq.read_table(folder / "ours0").sort_by("key").column("value_sum").to_numpy()
        right = pq.read_table(folder / "theirs0.parquet").sort_by("key").column("value").to_numpy()
        assert np.allclose(left, right), "both have the same sums"
        print(f"{options.rows:,} rows: ours {us:.3f} s, Polars {them:.3f} s, ratio {us / them:.2f}")


if __name__ == "__main__":
    main()
