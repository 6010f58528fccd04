"""Collections beside differential dataflow, in one run: the table of `make bench-collections`.

    python benches/python/bench_collections.py --peer PEER [--scale 0.01] [--workers 1 2] [--galen GALEN.ZIP]
        [--dbsp PROGRAM] [--only degrees bfs ...] [--driven] [--kernel PAIRS]
        [--out target/bench/collections.md]

Each program is written twice: with this package, over columns, and in Rust with differential dataflow (PEER,
of `benches/collections`, which `make bench-collections` builds). Both make the same random graph (a window
over an endless list of edges), load it, and change it in rounds. Both count what comes out and add it up, so
that a result that differs is an error. Sizes are those of the table times the scale. Each program runs in a
process of its own, one after the other; times with one worker are of the processor, which other programs on
the machine disturb less.

With `--build` in place of `--peer` it is built first. `--kernel 1000000` also runs the kernels alone, with so
many pairs.

With `--dbsp`, the program of `benches/dbsp`, lines beside DBSP follow those of differential dataflow.

The rounds are played: `play` feeds them, and each has passed a probe before the next is fed, as in the peer.
With `--driven` they are driven from Python besides, by `remove`, `insert`, `advance_to` and `step_while`.
"""

from __future__ import annotations

import argparse
import json
import resource
import subprocess
import sys
import tempfile
import threading
import time
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import figures
import numpy as np
import pyarrow as pa

import pointstamp as ps
from pointstamp import graphs, record

# Nodes, edges, changes in a round, rounds, and the aim for loading and for the rounds: ours / theirs.
PROGRAMS: dict[str, tuple[str, int, int, int, int, float]] = {
    "degrees, a change at a time": ("degrees", 1_000_000, 5_000_000, 1, 1_000, 1.2),
    "degrees, 1,000 at a time": ("degrees", 1_000_000, 5_000_000, 1_000, 100, 1.2),
    "breadth-first search": ("bfs", 1_000_000, 5_000_000, 1, 1_000, 1.5),
    "components": ("components", 1_000_000, 5_000_000, 1, 1_000, 1.5),
    "strong components": ("scc", 100_000, 200_000, 10, 100, 1.5),
}

# What is written with DBSP, too.
OF_DBSP = ("degrees", "bfs", "components", "galen")

# How much faster two workers are to be than one, in the time that passes.
GAIN = 1.7

SUBJECT = "Collections"
PEER = "differential-dataflow"
MANIFEST = Path(__file__).parents[1] / "collections/Cargo.toml"

EDGES = pa.schema([("source", pa.int64()), ("target", pa.int64())])


def numbers(index: Any) -> Any:
    """Numbers of an endless list (splitmix64), as the peer makes them."""
    with np.errstate(over="ignore"):
        z = (index.astype(np.uint64) + np.uint64(1)) * np.uint64(0x9E37_79B9_7F4A_7C15)
        z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58_476D_1CE4_E5B9)
        z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D0_49BB_1331_11EB)
        return z ^ (z >> np.uint64(31))


def edges_of(first: int, end: int, step: int, nodes: int) -> pa.RecordBatch:
    """Every so many-th edge of the list from one index to another."""
    index = np.arange(first, end, step, dtype=np.uint64)
    source = numbers(np.uint64(2) * index) % np.uint64(nodes)
    target = numbers(np.uint64(2) * index + np.uint64(1)) % np.uint64(nodes)
    return pa.record_batch([source.astype(np.int64), target.astype(np.int64)], schema=EDGES)


def degrees(edges: ps.Collection[Any]) -> ps.Collection[Any]:
    """The number of nodes with each number of edges."""
    return edges.map(record[0]).value_counts().map(record[1]).value_counts()


def bfs(edges: ps.Collection[Any]) -> ps.Collection[Any]:
    """The distance of each node from node 0."""
    roots = [0] if edges.scope.index == 0 else []
    return graphs.bfs(edges, edges.scope.collection(roots))


BUILD = {
    "degrees": degrees,
    "bfs": bfs,
    "components": graphs.connected_components,
    "scc": graphs.strongly_connected_components,
}


def run_graph(
    program: str, workers: int, nodes: int, edges: int, changes: int, rounds: int, driven: bool = False
) -> dict[str, Any]:
    """One program of ours: the seconds of loading and of the rounds, and what came out.

    The rounds are played where they are not driven from Python. `passed` is the time that passes in both.
    What makes the edges is NumPy's work, not the program's: no clock starts before all workers have theirs.
    """
    made = threading.Barrier(workers, timeout=600)

    def clock() -> Any:
        passed = time.perf_counter()
        return np.array([time.process_time() if workers == 1 else passed, passed])

    def main(worker: ps.Worker) -> tuple[Any, list[Any], Any]:
        with worker.dataflow() as scope:
            handle, columns = scope.new_collection(schema=EDGES)
            pairs = columns.to_records()
            result = BUILD[program](pairs)
            captured, probe = result.capture(), result.probe()

        def mine(part: range) -> pa.RecordBatch:
            first = part.start + (worker.index - part.start) % worker.peers
            return edges_of(first, part.stop, worker.peers, nodes)

        def round_of(at: int, out: range, new: range) -> Any:
            batches = [mine(part) for part in (out, new)]
            made.wait()
            began = clock()
            if len(out):
                handle.remove(batches[0])
            handle.insert(batches[1])
            handle.advance_to(at + 1)
            worker.step_while(lambda: probe.less_than(at + 1))
            return clock() - began

        def parts_of(at: int) -> tuple[range, range]:
            first = (at - 1) * changes
            return range(first, first + changes), range(edges + first, edges + first + changes)

        def play() -> Any:
            rows = []
            for at in range(1, rounds + 1):
                for part, diff in zip(parts_of(at), (-1, 1), strict=True):
                    batch = mine(part)
                    for name, value in (("time", at), ("diff", diff)):
                        batch = batch.append_column(name, pa.array(np.full(len(batch), value)))
                    rows.append(batch)
            table = pa.Table.from_batches(rows).combine_chunks()
            made.wait()
            began = clock()
            handle.play(table, probe=probe)
            handle.advance_to(rounds + 1)
            worker.step_while(lambda: probe.less_than(rounds + 1))
            return clock() - began

        load = round_of(0, range(0), range(edges))
        took = [round_of(at, *parts_of(at)) for at in range(1, rounds + 1)] if driven else []
        if rounds and not driven:
            took = [play()]
        return load, took, captured

    results = ps.execute(main, workers=workers)
    count, total = 0, 0
    for *_, captured in results:
        for _, updates in captured.extract():
            rows = np.array([(a, b, diff) for (a, b), diff in updates], dtype=np.int64).reshape(-1, 3)
            word = rows[:, 0].astype(np.uint64) << np.uint64(32) | rows[:, 1].astype(np.uint64)
            with np.errstate(over="ignore"):
                total += int((numbers(word) * rows[:, 2].astype(np.uint64)).sum())
            count += int(rows[:, 2].sum())
    load, took, _ = results[0]
    times = np.array([load * 0, *took])
    return {
        "load": float(load[0]),
        "rounds": float(times[:, 0].sum()),
        "median": float(np.median(times[1:, 0])) if took else 0.0,
        "passed": float(load[1] + times[:, 1].sum()),
        "check": [count, total % 2**64],
    }


def run_galen(archive: str, workers: int, share: float) -> dict[str, Any]:
    """GALEN of ours."""
    import galen

    found = galen.relations(archive, share)
    began = time.process_time() if workers == 1 else time.perf_counter()
    results = ps.execute(lambda worker: galen.main(worker, found), workers=workers)
    end = (time.process_time() if workers == 1 else time.perf_counter()) - began
    return {"end": end, "check": [sum(sizes) for sizes in zip(*results, strict=True)]}


def peer(binary: str, program: str, workers: int, *arguments: object) -> dict[str, Any]:
    """The output of the peer."""
    command = [binary, program, str(workers), *map(str, arguments)]
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    found: dict[str, Any] = {}
    for line in done.stdout.splitlines():
        name, *values = line.split()
        found[name] = [int(value) for value in values] if name == "check" else float(values[0])
    return found


def ours(*arguments: object) -> dict[str, Any]:
    """A program of ours in a process of its own."""
    command = [sys.executable, __file__, "--one", json.dumps(arguments)]
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    return json.loads(done.stdout)


def line(
    name: str, mine: dict[str, Any], theirs: dict[str, Any], part: str, aim: float, of: str = PEER
) -> str:
    """A line of the table, which is left as a figure, too."""
    figures.leave(SUBJECT, name, mine[part], of, theirs[part], aim=aim)
    ratio = mine[part] / theirs[part]
    verdict = "met" if ratio <= aim else "missed"
    return f"| {name} | {mine[part]:.4g} s | {theirs[part]:.4g} s | {ratio:.2f} | {aim} {verdict} |"


def build() -> str:
    """Builds the peer and the program of the kernels; where the peer is."""
    cargo = ["cargo", "build", "--release", "--locked", "--manifest-path", str(MANIFEST)]
    subprocess.run(cargo, check=True)
    return str(MANIFEST.parent / "target/release/peer")


def dbsp(
    say: Callable[[str], None],
    chosen: argparse.Namespace,
    name: str,
    mine: dict[str, Any],
    aim: float,
    program: str,
    workers: int,
    *sizes: object,
) -> None:
    """The lines of a program beside DBSP, where it is there."""
    if not chosen.dbsp or program not in OF_DBSP:
        return
    if not Path(chosen.dbsp).exists():
        say(f"| {name}, beside DBSP | | | | left out: there is no {chosen.dbsp} |")
        return
    theirs = peer(chosen.dbsp, program, workers, *sizes)
    if mine["check"] != theirs["check"]:
        raise SystemExit(f"{name}: {mine['check']} here and {theirs['check']} with DBSP")
    for part in ("load", "rounds", "end"):
        if part in theirs:
            say(line(f"{name}, beside DBSP: {part}", mine, theirs, part, aim, "DBSP"))


def compare(chosen: argparse.Namespace) -> list[str]:
    """The lines of the table, printed as they come."""
    lines = []

    def say(text: str) -> None:
        print(text, flush=True)
        lines.append(text)

    say(f"Scale {chosen.scale}. Processor seconds with 1 worker, seconds that passed with more.\n")
    say("| | pointstamp | differential dataflow, or DBSP | ratio | aim |\n|---|---|---|---|---|")
    for name, (program, nodes, edges, changes, rounds, aim) in PROGRAMS.items():
        if chosen.only and program not in chosen.only:
            continue
        sizes = [max(10, int(size * chosen.scale)) for size in (nodes, edges)]
        passed = {}
        for workers in chosen.workers:
            theirs = peer(chosen.peer, program, workers, *sizes, changes, rounds)
            of = f"{name}, {workers} workers" if workers > 1 else name
            for driven in (False, True) if chosen.driven else (False,):
                mine = ours(program, workers, *sizes, changes, rounds, driven)
                if mine["check"] != theirs["check"]:
                    raise SystemExit(f"{name}: {mine['check']} here and {theirs['check']} there")
                if driven:
                    say(line(f"{of}: median of {rounds:,} rounds, driven", mine, theirs, "median", aim))
                    say(line(f"{of}: {rounds:,} rounds of {changes:,}, driven", mine, theirs, "rounds", aim))
                else:
                    say(line(f"{of}: load {sizes[0]:,} / {sizes[1]:,}", mine, theirs, "load", aim))
                    say(line(f"{of}: {rounds:,} rounds of {changes:,}, played", mine, theirs, "rounds", aim))
                    dbsp(say, chosen, of, mine, aim, program, workers, *sizes, changes, rounds)
            passed[workers] = mine["passed"]
            if workers > 1 and 1 in passed:
                gain = passed[1] / passed[workers]
                verdict = "met" if gain >= GAIN * workers / 2 else "missed"
                what = f"{name}: {workers} workers beside 1, all of it"
                times = (passed[workers], "1 worker", passed[1])
                figures.leave(SUBJECT, what, *times, aim=2 / (GAIN * workers))
                say(
                    f"| {name}: {workers} workers beside 1, all of it | {passed[workers]:.4g} s "
                    f"| {passed[1]:.4g} s | {gain:.2f} times as fast | {GAIN * workers / 2} {verdict} |"
                )
    if chosen.galen and not (chosen.only and "galen" not in chosen.only):
        with tempfile.TemporaryDirectory() as folder:
            zipfile.ZipFile(chosen.galen).extractall(folder)
            for workers in chosen.workers:
                theirs = peer(chosen.peer, "galen", workers, folder, chosen.share)
                mine = ours("galen", workers, chosen.galen, chosen.share)
                if mine["check"] != theirs["check"]:
                    raise SystemExit(f"GALEN: {mine['check']} here and {theirs['check']} there")
                p, q = mine["check"]
                of = f"GALEN, p = {p:,}, q = {q:,}, {workers} workers"
                say(line(of, mine, theirs, "end", 1.2))
                dbsp(say, chosen, of, mine, 1.2, "galen", workers, folder, chosen.share)
    return lines


def one(program: str, workers: int, *rest: Any) -> dict[str, Any]:
    """A program of ours, and how much memory it took at most."""
    found = run_galen(rest[0], workers, rest[1]) if program == "galen" else run_graph(program, workers, *rest)
    return found | {"bytes": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024}


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--peer", help="the program that benches/collections builds")
    parser.add_argument("--build", action="store_true", help="build it, and take that")
    parser.add_argument("--kernel", type=int, metavar="PAIRS", help="the kernels alone, too")
    parser.add_argument("--dbsp", help="the program that benches/dbsp builds, if it is to be compared, too")
    parser.add_argument("--scale", type=float, default=1.0)
    parser.add_argument("--share", type=float, default=1.0, help="of GALEN's relations")
    parser.add_argument("--workers", type=int, nargs="+", default=[1])
    parser.add_argument("--galen", help="the archive of GALEN")
    parser.add_argument("--only", nargs="+")
    parser.add_argument("--driven", action="store_true", help="also drives the rounds from Python")
    parser.add_argument("--out", type=Path, default=Path("target/bench/collections.md"))
    parser.add_argument("--one", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.one:
        print(json.dumps(one(*json.loads(options.one))))
    else:
        if options.build:
            options.peer = build()
        if not options.peer:
            parser.error("--peer names the program to compare with: make bench-collections builds it")
        table = compare(options)
        options.out.parent.mkdir(parents=True, exist_ok=True)
        options.out.write_text("\n".join(table) + "\n")
        print(f"\nwritten to {options.out}")
        if options.kernel:
            kernels = Path(options.peer).with_name("pointstamp-bench-collections")
            subprocess.run([kernels, "all", str(options.kernel)], check=True)
