"""The cost of observation: a barrier and an exchange with nothing recorded, with metrics, with a log.

    python benches/python/observability.py [--pairs 7] [barrier exchange words compiled]

Each figure is the median, over alternating runs in one process, of a run's time divided by that of the run
without anything recorded before it: so a machine that is busy with something else disturbs both alike. The
load of the machine is stated. `words` counts words with Python closures, on processes that
`execute(processes=)` starts: their start is in the time, and stated beside it. `compiled` compares two
release builds of the engine alone, without an observer: as it is, and without the code that asks whether
there is one; where there is valgrind, by their instructions, too, which no other load disturbs.
"""

from __future__ import annotations

import argparse
import os
import re
import shutil
import subprocess
import tempfile
import time
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING, Any

import pointstamp as ps

if TYPE_CHECKING:
    from collections.abc import Callable

ROUNDS = 3_000
"""Barriers in a run: a time that is advanced, and waited for on every worker."""

BATCHES, RECORDS = 200, 1_000
"""The records of an exchange."""

LINES = 60_000
"""Lines whose words are counted."""


def barrier(worker: ps.Worker) -> float:
    """A dataflow that only moves its frontier."""
    with worker.dataflow() as scope:
        numbers, stream = scope.new_input()
        probe = stream.exchange(lambda x: x).probe()
    begin = time.perf_counter()
    for n in range(1, ROUNDS + 1):
        numbers.advance_to(n)
        worker.step_while(lambda n=n: probe.less_than(n))  # type: ignore[misc]
    return time.perf_counter() - begin


def exchange(worker: ps.Worker) -> float:
    """Records that change their worker."""
    with worker.dataflow() as scope:
        numbers, stream = scope.new_input()
        probe = stream.exchange(lambda x: x).map(lambda x: x + 1).probe()
    records = list(range(RECORDS))
    begin = time.perf_counter()
    for n in range(1, BATCHES + 1):
        numbers.send_batch(records)
        numbers.advance_to(n)
        worker.step_while(lambda n=n: probe.less_than(n))  # type: ignore[misc]
    return time.perf_counter() - begin


def timed(main: Callable[[ps.Worker], float], workers: int, **config: Any) -> float:
    """The time of the slowest worker."""
    return max(ps.execute(main, config=ps.Config(workers=workers, **config)))


def looked_at(main: Callable[[ps.Worker], float], pairs: int, workers: int) -> None:
    """Prints how much slower a run is under each way of looking."""
    off: list[float] = []
    ratios: dict[str, list[float]] = {"off, again": [], "metrics": [], "log": []}
    timed(main, workers)
    for _ in range(pairs):
        for name, found in ratios.items():
            plain = timed(main, workers)
            off.append(plain)
            with tempfile.TemporaryDirectory() as folder:
                options: dict[str, Any] = {"metrics": {"dashboard": 0}, "log": {"log": folder}}.get(name, {})
                found.append(timed(main, workers, **options) / plain)
    shown = ", ".join(f"{name} {median(found):.2f}" for name, found in ratios.items())
    print(
        f"{main.__name__}, {workers} worker{'s' if workers > 1 else ''}: {median(off) * 1e3:.0f} ms; {shown}"
    )


def words(pairs: int) -> None:
    """Prints the times of a count with closures, on 1, 2 and 4 processes."""

    def main(worker: ps.Worker) -> tuple[float, int]:
        begin = time.perf_counter()
        with worker.dataflow() as scope:
            lines = (
                f"the {n % 997} quick {n % 89} brown fox {n % 7}"
                for n in range(worker.index, LINES, worker.peers)
            )
            split = scope.to_stream(lines).flat_map(lambda line: [word.upper() for word in line.split()])
            counts = split.map(lambda word: word.strip().lower()).value_counts().capture()
        worker.run()
        return time.perf_counter() - begin, sum(n for _, found in counts.extract() for _, n in found)

    taken: dict[int, list[tuple[float, float]]] = {1: [], 2: [], 4: []}
    for _ in range(pairs):
        for processes, found in taken.items():
            begin = time.perf_counter()
            results = ps.execute(main, processes=processes)
            found.append((max(seconds for seconds, _ in results), time.perf_counter() - begin))
            assert sum(count for _, count in results) == LINES * 7
    alone = median(seconds for seconds, _ in taken[1])
    for processes, found in taken.items():
        inside, whole = (median(one[part] for one in found) for part in (0, 1))
        print(
            f"words with closures, processes={processes}: {inside:.2f} s ({alone / inside:.2f} times as fast "
            f"as one), {whole:.2f} s with their start"
        )


def compiled(pairs: int) -> None:
    """Prints how much slower a round of the engine is than in a build that cannot be observed."""
    root = Path(__file__).parents[2]
    built = {}
    for name, flags in (("as it is", ""), ("unobserved", "--cfg unobserved")):
        folder = root / "target" / name.replace(" ", "-")
        command = ["cargo", "build", "--release", "--locked", "--quiet", "-p", "pointstamp-engine"]
        command += ["--example", "rounds", "--target-dir", str(folder)]
        environment = {**os.environ, "RUSTFLAGS": f"{os.environ.get('RUSTFLAGS', '')} {flags}".strip()}
        subprocess.run(command, cwd=root, env=environment, check=True)
        built[name] = folder / "release" / "examples" / "rounds"

    def rounds(name: str, workers: int) -> list[int]:
        command = [str(built[name]), str(workers), str(ROUNDS * (30 if workers == 1 else 1))]
        said = subprocess.run(command, check=True, capture_output=True, text=True).stdout
        return [int(line) for line in said.split()]

    for workers in (1, 2):
        pairs_of = []
        for turn in range(pairs):  # who goes first alternates
            names = ["as it is", "unobserved"][:: 1 if turn % 2 else -1]
            took = {name: rounds(name, workers) for name in names}
            pairs_of.append((took["as it is"], took["unobserved"]))
        for at, what in enumerate(("barrier", "exchange")):
            found = sorted(one[at] / other[at] for one, other in pairs_of)
            least = [min(times[side][at] for times in pairs_of) for side in (0, 1)]
            quarters = f"{found[len(found) // 4]:.3f} to {found[-1 - len(found) // 4]:.3f}"
            on = f"{workers} worker{'s' if workers > 1 else ''}"
            print(
                f"{what} on the engine, {on}: {median(found):.3f} of a "
                f"build without observers ({quarters}), least {least[0]} ns a round against {least[1]}"
            )

    if shutil.which("valgrind") is not None:
        for what in ("barrier", "exchange"):
            here, there = (instructions(built[name], what) for name in ("as it is", "unobserved"))
            share = f"{here / there:.4f} of the {there:.0f} without observers"
            print(f"{what} on the engine, 1 worker: {here:.0f} instructions a round, {share}")


def instructions(program: Path, what: str) -> float:
    """The number of instructions of a round on one worker."""

    def count(rounds: int) -> int:
        command = ["valgrind", "--tool=lackey", "--basic-counts=yes", str(program), "1", str(rounds), what]
        said = subprocess.run(command, check=True, capture_output=True, text=True).stderr
        [found] = re.findall(r"guest instrs:\s+([0-9,]+)", said)
        return int(found.replace(",", ""))

    few, many = 200, 1_200  # what is done once is in both
    return (count(many) - count(few)) / (many - few)


def run() -> None:
    """Runs what the command line names."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("what", nargs="*", default=["barrier", "exchange", "words"])
    parser.add_argument("--pairs", type=int, default=7, help="alternating pairs of runs")
    options = parser.parse_args()
    print(f"{os.cpu_count()} cores, load {os.getloadavg()[0]:.1f} at the start")
    for what in options.what:
        if what == "words":
            words(max(1, options.pairs // 2))
        elif what == "compiled":
            compiled(options.pairs)
        else:
            for workers in (1, 2):
                looked_at({"barrier": barrier, "exchange": exchange}[what], options.pairs, workers)
    print(f"load {os.getloadavg()[0]:.1f} at the end")


if __name__ == "__main__":
    run()
