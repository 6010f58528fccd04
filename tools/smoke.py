"""Checks an installed wheel: `python tools/smoke.py [VERSION]`; it needs nothing beside the wheel.

It imports the package, which must have this version, runs a dataflow with a loop on two threads, the same on
two processes over loopback, and one over Arrow batches where pyarrow is installed.
"""

from __future__ import annotations

import importlib.util
import secrets
import sys
import threading
from typing import Any

import pointstamp as ps
from pointstamp.cluster import bind


def reach(worker: ps.Worker) -> list[int]:
    """Doubles numbers in a loop until they are 100 or more; returns the results on this worker."""
    with worker.dataflow() as scope:
        numbers = scope.to_stream(range(1 + worker.index, 20, worker.peers))
        with scope.iterative() as inner:
            handle, again = inner.loop_variable(1)
            doubled = numbers.enter(inner).concat(again).exchange(lambda x: x).map(lambda x: 2 * x)
            doubled.filter(lambda x: x < 100).connect_loop(handle)
            capture = doubled.filter(lambda x: x >= 100).leave().capture()
    worker.run()
    return [x for _, records in capture.extract() for x in records]


def on_processes() -> list[int]:
    """The same on two processes, which are threads here, with connections between them."""
    bound = [bind(), bind()]
    addresses = [address for _, address in bound]
    secret = secrets.token_hex()
    found: list[int] = []

    def process(number: int) -> None:
        config = ps.Config(processes=2, process=number, addresses=addresses, secret=secret)
        for result in ps.execute(reach, config=config, listener=bound[number][0]):
            found.extend(result)

    threads = [threading.Thread(target=process, args=(number,)) for number in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return sorted(found)


def columns() -> None:
    """Sums by key over Arrow batches."""
    import pyarrow as pa

    schema = pa.schema([("k", pa.string()), ("n", pa.int64())])

    def build(scope: ps.Scope) -> ps.Capture[Any]:
        rows = scope.to_stream([("a", 1), ("b", 2), ("a", 3)]).to_arrow(schema)
        return rows.aggregate("k", n_sum=ps.col("n").sum()).to_records().capture()

    [(_, found)] = ps.example(build).extract()
    assert sorted(row["n_sum"] for row in found) == [2, 4], found


def main() -> None:
    """Raises if something does not work; returns a list of the checks."""
    if len(sys.argv) > 1 and ps.__version__ != sys.argv[1]:
        raise SystemExit(f"this is pointstamp {ps.__version__}, not {sys.argv[1]}")
    expected = sorted(x for result in ps.execute(reach, workers=2) for x in result)
    assert len(expected) == 19, expected
    assert on_processes() == expected
    tried = "two threads, two processes"
    if importlib.util.find_spec("pyarrow") is not None:
        columns()
        tried += ", Arrow"
    print(f"pointstamp {ps.__version__} on Python {sys.version.split()[0]}: {tried}")


if __name__ == "__main__":
    main()
