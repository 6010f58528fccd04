"""The time of one build of the extension beside another, such as of the profiles `local` and `dist`.

python benches/python/profiles.py FIRST.whl SECOND.whl [--turns N] [--only TEXT]

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
from pointstamp import col

rows = pa.record_batch({"k": np.arange(2_000_000) * 7919 % 10_000, "v": np.arange(2_000_000)})
batches = [rows.slice(at, 65_536) for at in range(0, len(rows), 65_536)] * 30

def sums(worker):
    columns = ps.ArrowInput(rows.schema)
    with worker.dataflow() as scope:
        v = ps.col("v")
        scope.input_from(columns).exchange("k").aggregate("k", sum=v.sum(), max=v.max()).probe()
    for batch in batches:
        columns.send(batch)
    columns.close()
    worker.run()

size = 1_000_000
numbers = np.arange(size)
orders = pa.table({"id": numbers, "customer": numbers * 7919 % 100_000, "cents": numbers % 1_000})
priced = orders.set_column(2, "cents", pa.array(numbers % 1_000 / 4))
named = orders.append_column("name", pa.array([f"name {n % 1_000}" for n in range(size)]))
customers = pa.table({"customer": np.arange(100_000), "city": np.arange(100_000) % 100})
wanted = (col("cents") > 250) & (col("customer") < 90_000)

def columns(build, *tables):
    def main(worker):
        with worker.dataflow() as scope:
            made = [scope.new_collection(schema=table.schema) for table in tables]
            build(*(collection for _, collection in made)).updates().probe()
        for (handle, _), table in zip(made, tables):
            handle.insert(table)
            handle.close()
        worker.run()
    ps.execute(main)

def select_join(orders, customers):
    taken = orders.filter(wanted).select("customer", total=col("cents") * 2 + col("id"))
    return taken.join(customers, on="customer")

def small(worker, times):
    with worker.dataflow() as scope:
        handle, collection = scope.new_collection(schema=orders.schema)
        collection.filter(wanted).select("id", total=col("cents") * 2).sum("total", by="id").updates().probe()
    for at in range(times):
        handle.insert(orders[at * 10 : at * 10 + 10])
        handle.advance_to(at + 1)
        worker.step()
    handle.close()
    worker.run()

def chain(worker, operators):
    with worker.dataflow() as scope:
        handle, stream = scope.new_input()
        pairs, collection = scope.new_collection()
        for _ in range(operators // 5):
            stream = stream.map(abs).exchange(abs).filter(bool)
            collection = collection.map(lambda pair: pair).value_counts()
        stream.probe(), collection.probe()
    handle.close(), pairs.close()
    worker.run()

def dataflows(worker, times, operators):
    for _ in range(times):
        chain(worker, operators)

def functions(size):
    def build(scope):
        numbers = scope.collection(range(size))
        pairs = numbers.map(lambda x: (x % 1_000, x)).filter(lambda pair: pair[1] % 3)
        pairs.flat_map(lambda pair: [pair[0]]).filter(lambda key: key == 7).capture()
    ps.example(build)

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
    "collections: functions of records": "functions(2_000_000)",
    "collections: degrees, loaded": "bench_collections.run_graph('degrees', 1, 100_000, 2_000_000, 0, 0)",
    "collections: degrees, 5,000 changes": (
        "bench_collections.run_graph('degrees', 1, 10_000, 20_000, 1, 5_000)"
    ),
    "columns of a collection: filter, select, join": "columns(select_join, orders, customers)",
    "columns of a collection: filter and select": (
        "columns(lambda orders: orders.filter(wanted).select('id', total=col('cents') * 2), orders)"
    ),
    "columns of a collection: the same of floats": (
        "columns(lambda orders: orders.filter(wanted).select('id', total=col('cents') / 3), priced)"
    ),
    "columns of a collection: the same with text": (
        "columns(lambda orders: orders.filter(wanted & (col('name') > 'name 5')).select('id', 'name'), named)"
    ),
    "columns of a collection: distinct of text": (
        "columns(lambda orders: orders.select('customer', 'name').distinct(), named)"
    ),
    "columns of a collection: sum per key": (
        "columns(lambda orders: orders.sum('cents', by='customer'), orders)"
    ),
    "columns of a collection: 10 rows a time": "ps.execute(lambda worker: small(worker, 5_000))",
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
    parser.add_argument("--only", default="", metavar="TEXT", help="programs whose names hold this")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as first, tempfile.TemporaryDirectory() as second:
        for wheel, folder in zip(options.wheels, (first, second), strict=True):
            zipfile.ZipFile(wheel).extractall(folder)
        for name, program in PROGRAMS.items():
            if options.only not in name:
                continue
            runs = [(seconds(first, program), seconds(second, program)) for _ in range(options.turns)]
            one, other = (statistics.median(side) for side in zip(*runs, strict=True))
            print(f"{name:<48}{one:8.2f} s {one / other:6.2f}", flush=True)


if __name__ == "__main__":
    main()
