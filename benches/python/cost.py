"""The COST test: how many workers it takes to beat one plain loop. `python benches/python/cost.py`.

On an R-MAT graph, components and PageRank: a loop in Rust and one in NumPy, each on one core, beside the
dataflows of `examples/` on 1, 2, 4, ... worker threads, as many as the machine has cores. All start from the
edges in memory, and must agree. The answer is the least number of workers that is faster than the loop.

After McSherry, Isard, Murray, "Scalability! But at what COST?" (HotOS 2015).
"""

from __future__ import annotations

import argparse
import importlib
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from figures import leave

import pointstamp as ps

TOP = Path(__file__).resolve().parents[2]
DAMPING = 0.85


def loop_components(nodes: int, edges: np.ndarray) -> int:
    """The components, by NumPy: every node takes the least label around it, and that label's label."""
    label = np.arange(nodes)
    source, target = edges[:, 0], edges[:, 1]
    while True:
        before = label.copy()
        np.minimum.at(label, source, before[target])
        np.minimum.at(label, target, before[source])
        label = label[label]
        if np.array_equal(label, before):
            return len(np.unique(label))


def loop_pagerank(nodes: int, edges: np.ndarray, rounds: int) -> np.ndarray:
    """The ranks, by NumPy."""
    source, target = edges[:, 0], edges[:, 1]
    degree = np.maximum(np.bincount(source, minlength=nodes), 1)
    rank = np.full(nodes, 1 / nodes)
    for _ in range(rounds):
        given = np.bincount(target, (rank / degree)[source], minlength=nodes)
        rank = (1 - DAMPING) / nodes + DAMPING * given
    return rank


def timed(run: Callable[[], Any], turns: int) -> tuple[float, Any]:
    """The least seconds of some turns, and what came out."""
    best, found = float("inf"), None
    for _ in range(turns):
        start = time.perf_counter()
        found = run()
        best = min(best, time.perf_counter() - start)
    return best, found


def ours(job: str, workers: int, nodes: int, rounds: int, edges: np.ndarray) -> Any:
    """A dataflow of `examples/`: the number of components, or the ranks of the first nodes."""
    if job == "components":
        find = importlib.import_module("connected_components_arrow").connected_components
        labels = ps.execute(
            lambda worker: find(worker, nodes, edges[worker.index :: workers]), workers=workers
        )
        return len(np.unique(np.concatenate(labels)))
    rank = importlib.import_module("pagerank_arrow").pagerank
    parts = ps.execute(
        lambda worker: rank(worker, nodes, rounds, edges[worker.index :: workers]), workers=workers
    )
    return np.array([parts[node % workers][node // workers] for node in range(8)])


def main() -> None:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0] if __doc__ else None)
    parser.add_argument("--scale", type=int, default=20, help="2^SCALE nodes (20)")
    parser.add_argument("--edges", type=int, default=16_000_000)
    parser.add_argument("--rounds", type=int, default=20, help="of PageRank (20)")
    parser.add_argument("--turns", type=int, default=3)
    given = parser.parse_args()
    sys.path.append(str(TOP / "examples"))
    nodes, rounds = 1 << given.scale, given.rounds
    with tempfile.NamedTemporaryFile(suffix=".rmat") as file:
        command = [
            "cargo",
            "run",
            "--release",
            "--quiet",
            "--locked",
            "-p",
            "pointstamp-bench",
            "--bin",
            "cost",
            "--",
        ]
        command += [file.name, str(given.scale), str(given.edges), str(rounds)]
        said = subprocess.run(command, cwd=TOP, stdout=subprocess.PIPE, text=True, check=True).stdout
        rust = json.loads(said)
        edges = np.fromfile(file.name, dtype="<u4").reshape(-1, 2).astype(np.int64)
    cores = os.cpu_count() or 1
    counts = [count for count in (1, 2, 4, 8, 16, 32, 64) if count <= cores]
    print(f"R-MAT, {nodes:,} nodes, {given.edges:,} edges, best of {given.turns}")
    jobs: list[tuple[str, Callable[[], Any], Any, float]] = [
        ("components", lambda: loop_components(nodes, edges), rust["components"], rust["components_seconds"]),
        (
            "pagerank",
            lambda: loop_pagerank(nodes, edges, rounds)[:8],
            np.array(rust["ranks"]),
            rust["pagerank_seconds"],
        ),
    ]
    for job, loop, expected, rust_seconds in jobs:
        numpy_seconds, found = timed(loop, given.turns)
        check(f"NumPy's {job}", found, expected)
        peers = {"a loop in Rust": rust_seconds, "a loop in NumPy": numpy_seconds}
        for name, seconds in peers.items():
            print(f"{job}: {name} {seconds:.2f} s")
        beaten: dict[str, int] = {}
        for workers in counts:
            seconds, found = timed(lambda: ours(job, workers, nodes, rounds, edges), given.turns)  # noqa: B023
            check(f"{job} on {workers} workers", found, expected)
            print(f"{job}: {workers} workers {seconds:.2f} s", flush=True)
            for name, theirs in peers.items():
                program = f"{job} of {given.edges:,} edges, {workers} workers"
                leave("COST", program, seconds, name, theirs)
                if seconds < theirs:
                    beaten.setdefault(name, workers)
        for name in peers:
            answer = f"{beaten[name]} workers" if name in beaten else f"more than {counts[-1]} workers"
            print(f"{job}: COST beside {name}: {answer}")


def check(what: str, found: Any, expected: Any) -> None:
    """Ends the bench where a side's result is wrong: a ratio of it means nothing."""
    if not np.allclose(found, expected, rtol=1e-6):
        raise SystemExit(f"{what}: {found}, and should be {expected}")


if __name__ == "__main__":
    main()
