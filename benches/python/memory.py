"""State larger than its budget of memory: an arrangement under a small budget, beside the same in memory.

    python benches/python/memory.py [--pairs N] [--memory BUDGET] [--rounds N] [--turns N]

Each turn runs in a process of its own, so that its peak of memory is known. The pairs are 16 bytes each: a
key of half as many values as there are pairs, and a random value.
"""

from __future__ import annotations

import argparse
import json
import random
import resource
import subprocess
import sys
import time
from statistics import median
from typing import Any

from figures import leave

import pointstamp as ps
from pointstamp.config import Config
from pointstamp.runtime import memory as runtime_memory
from pointstamp.runtime.bootstrap import workers

SUBJECT = "memory"
CHUNK = 100_000
CHANGES = 1000


def measure(pairs: int, rounds: int, memory: str, counts: bool) -> dict[str, Any]:
    """Loads pairs into an arrangement, or counts them by key, and changes some of them, in this process."""
    import numpy as np

    budgets: list[Any] = []

    def noting(config: Config) -> Any:
        budget = runtime_memory.budget_of(config)
        budgets.extend([budget] if budget else [])
        return budget

    workers.budget_of = noting
    result: dict[str, Any] = {}

    def main(worker: ps.Worker) -> None:
        with worker.dataflow() as scope:
            handle, collection = scope.new_collection()
            if counts:
                collection = collection.count()
            arranged = collection.arrange()
            trace, probe = arranged.trace(), arranged.to_collection().probe()
        drawn = np.random.default_rng(1)
        before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        begin = time.perf_counter()
        for start in range(0, pairs, CHUNK):
            count = min(CHUNK, pairs - start)
            keys = drawn.integers(0, pairs // 2, count).tolist()
            handle.update_many(
                (pair, 1) for pair in zip(keys, drawn.integers(0, 1 << 40, count).tolist(), strict=True)
            )
            worker.step()
        handle.advance_to(1)
        worker.step_while(lambda: probe.less_than(1))
        result["load"] = time.perf_counter() - begin
        result["written"] = budgets[0].written if budgets else 0
        times = []
        for number in range(rounds):
            changes = [((random.randrange(pairs // 2), random.randrange(1 << 40)), 1) for _ in range(CHANGES)]
            handle.update_many(changes)
            handle.advance_to(number + 2)
            begin = time.perf_counter()
            worker.step_while(lambda now=number + 2: probe.less_than(now))
            times.append(time.perf_counter() - begin)
        times.sort()
        result["median"], result["p99"] = times[len(times) // 2], times[len(times) * 99 // 100]
        result["grown"] = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) << 10
        assert trace.get(1) is not None
        handle.close()

    ps.execute(main, config=Config(memory=memory or None))
    return result


def main() -> None:
    """The command line."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--pairs", type=int, default=4_000_000)
    parser.add_argument(
        "--memory", default="32 MiB", help="the budget (default: a quarter of the pairs' bytes or so)"
    )
    parser.add_argument("--rounds", type=int, default=200, help="rounds of 1,000 changes")
    parser.add_argument("--turns", type=int, default=3)
    parser.add_argument("--once", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.once:
        memory, counts = json.loads(options.once)
        print(json.dumps(measure(options.pairs, options.rounds, memory, counts)))
        return
    for counts in (False, True):
        what = "counted by key" if counts else "arranged"
        found: dict[str, list[dict[str, Any]]] = {"": [], options.memory: []}
        for _ in range(options.turns):
            for memory, results in found.items():
                command = [
                    sys.executable,
                    __file__,
                    "--pairs",
                    str(options.pairs),
                    "--rounds",
                    str(options.rounds),
                ]
                done = subprocess.run(
                    [*command, "--once", json.dumps([memory, counts])],
                    check=True,
                    capture_output=True,
                    text=True,
                )
                results.append(json.loads(done.stdout))

        def of(memory: str, name: str, found: Any = found) -> float:
            return float(median(result[name] for result in found[memory]))

        bound = options.memory
        print(f"{options.pairs:,} pairs {what}, {bound}, medians of {options.turns}")
        for name, label, unit, scale in (
            ("load", "load", "s", 1.0),
            ("median", "1,000 changes, median", "ms", 1e3),
            ("p99", "1,000 changes, p99", "ms", 1e3),
            ("grown", "memory grown by", "MB", 1e-6),
        ):
            ours, theirs = of(bound, name) * scale, of("", name) * scale
            print(f"  {label:24} {ours:10.1f} {unit:3} in memory {theirs:10.1f}   ratio {ours / theirs:.2f}")
            leave(SUBJECT, f"{options.pairs:,} pairs {what}: {label}", ours, "in memory", theirs, unit=unit)
        written = of(bound, "written") / (16 * options.pairs)
        print(f"  {'written for loaded':24} {written:10.2f} bytes for a byte")


if __name__ == "__main__":
    main()
