"""What one build of the extension takes beside another, such as of the profiles `local` and `dist`.

python benches/python/profiles.py FIRST.whl SECOND.whl [--turns N]

Each program runs in an interpreter of its own, with one worker, with either wheel in turns. A row is the
median of the processor time with the first wheel, and its ratio to that with the second: above 1 the first is
slower.
"""

from __future__ import annotations

import argparse
import os
import statistics
import subprocess
import sys
import tempfile
import zipfile
from pathlib import Path

SETUP = """
import time
import numpy as np, pyarrow as pa
import bench_collections, records
import pointstamp as ps

rows = pa.record_batch({"k": np.arange(2_000_000) * 7919 % 10_000, "v": np.arange(2_000_000)})
batches = [rows.slice(at, 65_536) for at in range(0, len(rows), 65_536)] * 30

def sums(worker):
    columns = ps.ArrowInput(rows.schema)
    with worker.dataflow() as scope:
        scope.input_from(columns).exchange("k").aggregate("k", [("v", "sum"), ("v", "max")]).probe()
    for batch in batches:
        columns.send(batch)
    columns.close()
    worker.run()

def chain(worker, operators):
    with worker.dataflow() as scope:
        handle, stream = scope.new_input()
        pairs, collection = scope.new_collection()
        for _ in range(operators // 5):
            stream = stream.map(abs).exchange(abs).filter(bool)
            collection = collection.map(lambda pair: pair).count()
        stream.probe(), collection.probe()
    handle.close(), pairs.close()
    worker.run()

def dataflows(worker, times, operators):
    for _ in range(times):
        chain(worker, operators)

start = time.process_time()
"""

PROGRAMS = {
    "building: 100 operators, 500 times": "ps.execute(lambda worker: dataflows(worker, 500, 100))",
    "building: 5 operators, 5,000 times": "ps.execute(lambda worker: dataflows(worker, 5_000, 5))",
    "records: map and filter": (
        "records.our_map_filter(1, 3_000_000, lambda x: x * 3 + 1, lambda x: x % 2 == 0)"
    ),
    "records: pairs joined per time": (
        "ps.example(lambda scope: scope.to_stream([(n, n) for n in range(300_000)]).join("
        "scope.to_stream([(n, n) for n in range(300_000)])).probe())"
    ),
    "columns: sum and max per key": "ps.execute(sums)",
    "collections: degrees, loaded": "bench_collections.run_graph('degrees', 1, 100_000, 2_000_000, 0, 0)",
    "collections: degrees, 5,000 changes": (
        "bench_collections.run_graph('degrees', 1, 10_000, 20_000, 1, 5_000)"
    ),
    "collections: strong components": "bench_collections.run_graph('scc', 1, 1_000, 2_000, 1, 100)",
}


def seconds(folder: str, program: str) -> float:
    """The processor time of a program with the package in a folder."""
    text = f"{SETUP}{program}\nprint(time.process_time() - start)"
    here = Path(__file__).parent
    path = os.pathsep.join([folder, str(here), str(here.parents[1] / "examples")])
    done = subprocess.run(
        [sys.executable, "-c", text],
        env={**os.environ, "PYTHONPATH": path},
        check=True,
        capture_output=True,
        text=True,
    )
    return float(done.stdout.split()[-1])


def main() -> None:
    """Prints the table."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("wheels", nargs=2, type=Path, metavar="WHEEL")
    parser.add_argument("--turns", type=int, default=5)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as first, tempfile.TemporaryDirectory() as second:
        for wheel, folder in zip(options.wheels, (first, second), strict=True):
            zipfile.ZipFile(wheel).extractall(folder)
        for name, program in PROGRAMS.items():
            runs = [(seconds(first, program), seconds(second, program)) for _ in range(options.turns)]
            one, other = (statistics.median(side) for side in zip(*runs, strict=True))
            print(f"{name:<40}{one:8.2f} s {one / other:6.2f}", flush=True)


if __name__ == "__main__":
    main()
