"""Collections beside what a Python program would use instead: part of `make bench-collections`.

    python benches/python/collection_peers.py [--scale 0.01] [--pathway PYTHON] [--only closures ...]
        [--out target/bench/collection-peers.md]

A table of ratios. *Closures*: the same programs with Python functions on Python values, and with expressions
on columns. *Pathway*: its `iterate` and its reductions, run by PYTHON, any Python that has Pathway (`make
bench-collections` makes one in target/pathway); skipped with a reason where there is none. *Memory*: the
bytes that an arrangement of short strings keeps, and those of a dict of sets. Programs run in processes of
their own, one after the other; times are of the processor, all threads together.
"""

from __future__ import annotations

import argparse
import gc
import json
import subprocess
import sys
import time
import tracemalloc
from pathlib import Path
from typing import Any

import numpy as np
from bench_collections import BUILD, edges_of, numbers, run_graph
from figures import leave

import pointstamp as ps
from pointstamp import graphs

# Nodes and edges at scale 1, and the aims: closures over columns, and over Pathway.
PROGRAMS = {
    "degrees": (1_000_000, 5_000_000, 8.0, 1 / 5),
    "bfs": (50_000, 100_000, 8.0, 1 / 5),
    "components": (50_000, 100_000, 8.0, 1 / 5),
}
# A node from which most nodes are reached, at scale 1.
ROOT = 1
# Of the loops over columns, beside Pathway's `iterate`.
ITERATE = 1 / 30


def degrees(edges: ps.Collection[Any]) -> ps.Collection[Any]:
    """The number of nodes with each number of edges."""
    return edges.map(lambda edge: edge[0]).value_counts().map(lambda counted: counted[1]).value_counts()


def least(pairs: ps.Collection[Any]) -> ps.Collection[Any]:
    """The least value of each key, by a Python function."""
    return pairs.map_groups(lambda _, values: [values[0][0]])


def bfs(edges: ps.Collection[Any]) -> ps.Collection[Any]:
    """The distance of each node from one of them."""
    start = edges.scope.collection([(ROOT, 0)] if edges.scope.index == 0 else [])

    def turn(inner: ps.Scope, reached: ps.Collection[Any]) -> ps.Collection[Any]:
        steps = reached.join(edges.enter(inner), lambda _, hops, target: (target, hops + 1))
        return least(steps.concat(start.enter(inner)))

    return start.iterate(turn)


def components(edges: ps.Collection[Any]) -> ps.Collection[Any]:
    """The least node of each component."""
    both = edges.concat(edges.map(lambda edge: (edge[1], edge[0])))
    own = both.map(lambda edge: edge[0]).distinct().map(lambda node: (node, node))

    def turn(inner: ps.Scope, labels: ps.Collection[Any]) -> ps.Collection[Any]:
        passed = labels.join(both.enter(inner), lambda _, label, target: (target, label))
        return least(passed.concat(own.enter(inner)))

    return own.iterate(turn)


def bfs_of_columns(edges: ps.Collection[Any]) -> ps.Collection[Any]:
    """The same without a Python function."""
    return graphs.bfs(edges, edges.scope.collection([ROOT] if edges.scope.index == 0 else []))


CLOSURES = {"degrees": degrees, "bfs": bfs, "components": components}


def run_closures(program: str, nodes: int, edges: int) -> dict[str, Any]:
    """A program on Python values: the processor seconds of loading, and what came out."""
    columns = edges_of(0, edges, 1, nodes)
    records = list(zip(*(column.to_pylist() for column in columns.columns), strict=True))

    def main(worker: ps.Worker) -> tuple[float, Any]:
        with worker.dataflow() as scope:
            handle, collection = scope.new_collection()
            result = CLOSURES[program](collection)
            captured, probe = result.capture(), result.probe()
        began = time.process_time()
        handle.insert_many(records)
        handle.advance_to(1)
        worker.step_while(lambda: probe.less_than(1))
        return time.process_time() - began, captured

    [(load, captured)] = ps.execute(main)
    rows = [(*record, diff) for _, updates in captured.extract() for record, diff in updates]
    found = np.array(rows, dtype=np.int64).reshape(-1, 3)
    word = found[:, 0].astype(np.uint64) << np.uint64(32) | found[:, 1].astype(np.uint64)
    with np.errstate(over="ignore"):
        total = int((numbers(word) * found[:, 2].astype(np.uint64)).sum())
    return {"load": load, "check": [int(found[:, 2].sum()), total % 2**64]}


def words(count: int) -> list[tuple[str, str]]:
    """Pairs of short words: each first one has about four second ones."""
    index = np.arange(count, dtype=np.uint64)
    first = numbers(np.uint64(2) * index) % np.uint64(max(1, count // 4))
    second = numbers(np.uint64(2) * index + np.uint64(1)) % np.uint64(1 << 20)
    return [(f"{a:05x}", f"{b:05x}") for a, b in zip(first.tolist(), second.tolist(), strict=True)]


def run_memory(kind: str, count: int) -> dict[str, Any]:
    """The bytes kept for each of so many pairs of short words."""
    if kind == "dict":
        tracemalloc.start()
        kept: dict[str, set[str]] = {}
        # Each string is made anew, as reading a file does; of equal keys one is kept.
        for key, value in words(count):
            kept.setdefault(key, set()).add(value)
        gc.collect()
        return {"bytes": tracemalloc.get_traced_memory()[0] / count}

    def main(worker: ps.Worker) -> float:
        with worker.dataflow() as scope:
            handle, collection = scope.new_collection()
            arranged = collection.distinct().arrange()
            trace, probe = arranged.trace(), arranged.to_collection().probe()
        handle.insert_many(words(count))
        handle.advance_to(1)
        worker.step_while(lambda: probe.less_than(1))
        trace.allow_merging_before(1)
        return trace._reads.bytes / count

    return {"bytes": ps.execute(main)[0]}


def ours(*arguments: object) -> dict[str, Any]:
    """One measurement in a process of its own."""
    command = [sys.executable, __file__, "--one", json.dumps(arguments)]
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    return json.loads(done.stdout.splitlines()[-1])


def pathway(python: str | None, *arguments: object) -> dict[str, Any] | str:
    """The time of Pathway, or the reason why it did not run."""
    if python is None:
        return "no --pathway names a Python that has it"
    program = str(Path(__file__).with_name("pathway_programs.py"))
    command = [python, program, *map(str, arguments)]
    try:
        done = subprocess.run(command, capture_output=True, text=True)
    except OSError as cause:
        return f"{python}: {cause.strerror}"
    if done.returncode != 0:
        said = done.stderr.strip().splitlines()
        return said[-1] if said else f"exit status {done.returncode}"
    return json.loads(done.stdout.splitlines()[-1])


def compare(chosen: argparse.Namespace) -> list[str]:
    """The lines of the tables, printed as they come."""
    lines = []

    def say(text: str) -> None:
        print(text, flush=True)
        lines.append(text)

    def row(name: str, mine: float, theirs: float, unit: str, aim: float) -> None:
        ratio = mine / theirs
        verdict = "met" if ratio <= aim else "missed"
        say(f"| {name} | {mine:.4g} {unit} | {theirs:.4g} {unit} | {ratio:.3f} | {aim:.3g} {verdict} |")
        program, _, peer = name.rpartition(", ")
        leave("Collections of Python values", program, mine, peer, theirs, unit=unit, aim=aim)

    def agree(name: str, mine: dict[str, Any], theirs: dict[str, Any]) -> None:
        if mine["check"] != theirs["check"]:
            raise SystemExit(f"{name}: {mine['check']} here and {theirs['check']} there")

    def wanted(part: str) -> bool:
        return not chosen.only or part in chosen.only

    say(f"Scale {chosen.scale}. Processor seconds of loading, one worker.\n")
    say("| | ours | beside | ratio | aim |\n|---|---|---|---|---|")
    for program, (nodes, edges, of_columns, of_pathway) in PROGRAMS.items():
        sizes = [max(10, int(size * chosen.scale)) for size in (nodes, edges)]
        name = f"{program} {sizes[0]:,} / {sizes[1]:,}"
        if not (wanted("closures") or wanted("pathway")):
            break
        columns = ours("columns", program, *sizes)
        closures = ours("closures", program, *sizes)
        agree(name, closures, columns)
        if wanted("closures"):
            row(f"{name}: closures, columns", closures["load"], columns["load"], "s", of_columns)
        if wanted("pathway"):
            theirs = pathway(chosen.pathway, program, *sizes)
            if isinstance(theirs, str):
                say(f"| {name}: Pathway | | | | skipped: {theirs} |")
                continue
            agree(f"{name}, Pathway", columns, theirs)
            if program != "degrees":
                row(f"{name}: columns, Pathway's iterate", columns["load"], theirs["load"], "s", ITERATE)
            row(f"{name}: closures, Pathway", closures["load"], theirs["load"], "s", of_pathway)
    if wanted("memory"):
        count = max(1_000, int(1_000_000 * chosen.scale))
        mine, theirs = ours("memory", "arrangement", count), ours("memory", "dict", count)
        row(f"{count:,} pairs of short words, dict of sets", mine["bytes"], theirs["bytes"], "bytes", 0.2)
    return lines


def one(what: str, *rest: Any) -> dict[str, Any]:
    """One measurement."""
    if what == "columns":
        program, nodes, edges = rest
        BUILD["bfs"] = bfs_of_columns
        return run_graph(program, 1, nodes, edges, 1, 0)
    if what == "closures":
        return run_closures(*rest)
    return run_memory(*rest)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--scale", type=float, default=1.0)
    parser.add_argument("--pathway", help="a Python that has Pathway")
    parser.add_argument("--only", nargs="+", choices=["closures", "pathway", "memory"])
    parser.add_argument("--out", type=Path, default=Path("target/bench/collection-peers.md"))
    parser.add_argument("--one", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.one:
        print(json.dumps(one(*json.loads(options.one))))
    else:
        table = compare(options)
        options.out.parent.mkdir(parents=True, exist_ok=True)
        options.out.write_text("\n".join(table) + "\n")
        print(f"\nwritten to {options.out}")
