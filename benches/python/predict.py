"""Prediction of how programs do on more workers, from measured costs; checked on 1, 2 and 4 processes.

    python benches/python/predict.py [--scale 0.05]

The programs are those of `scaling.py`. Their costs are measured on one process and on two: the seconds of
the work on one worker, the messages, bytes and rounds of progress that two processes exchange, and the cost
of a message, a byte and a hop between two processes. `docs/scaling.md` has the formula. With it the seconds
on four processes are predicted and measured; then those on 16, 256 and 4,096 workers with a core each, and
the number of workers at which more of them make the program slower.
"""

from __future__ import annotations

import argparse
import math
import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bench_processes import cluster, seconds
from figures import leave
from scaling import PROGRAMS, check

COUNTS = (16, 256, 4096)
STRAIGHT = 16
"""Up to so many processes, frames go straight with ``progress_mode="tree"``."""
MESSAGES = 20_000
CHECKED = (1, 2, 4)


@dataclass
class Costs:
    """The costs of one machine, in seconds."""

    message: float
    """The processor time of a message, for its sender and its receiver together."""
    byte: float
    """The same of a byte of columns."""
    hop: float
    """The time from a process that has said something to another one that has heard it."""


@dataclass
class Program:
    """The work of a program, whatever the number of workers."""

    work: float
    """Seconds on one worker."""
    messages: float
    """Messages with records that a worker of two sends to the other."""
    bytes: float
    """Bytes that all workers of two send."""
    rounds: float
    """Frames of progress that a process of two sends: a round has one."""
    turns: bool
    """Whether the messages are those of turns of a loop, with one to every other worker in each."""


def frames(workers: int, tree: bool) -> tuple[float, int]:
    """The frames that the busiest process sends in a round, and the hops of a round."""
    if workers == 1:
        return 0, 0
    if not tree or workers <= STRAIGHT:
        return workers - 1, 1
    group = math.isqrt(workers - 1) + 1
    return -(-workers // group) - 1 + group - 1, 3


def predicted(program: Program, costs: Costs, workers: int, cores: int, tree: bool = True) -> float:
    """The seconds of a program on processes of one worker each."""
    if workers == 1:
        return program.work
    others = workers - 1
    part = program.bytes * 2 * others / workers / workers  # of two workers, half of the bytes leave
    # Without turns, the same batches are cut into more parts. A message has a record at least.
    messages = program.messages * (others if program.turns else 2 * others / workers)
    messages = min(messages, part / 16)
    sent, hops = frames(workers, tree)
    busy = program.work / workers
    busy += messages * costs.message + part * costs.byte
    busy += program.rounds * sent * costs.message
    return busy * max(1.0, workers / cores) + program.rounds * hops * costs.hop


def fastest(program: Program, costs: Costs, tree: bool) -> int:
    """The power of two of workers beyond which twice as many are not a tenth faster."""
    workers = 1
    while workers < 1 << 16:
        now, then = (predicted(program, costs, n, n, tree) for n in (workers, 2 * workers))
        if then > 0.9 * now:
            break
        workers *= 2
    return workers


def _total(reports: list[dict[str, Any]], name: str) -> float:
    return float(sum(found[name] for found in reports))


def costs_of(turns: int) -> Costs:
    """Measures what a message, a byte and a round cost between two processes."""
    programs = Path(__file__).with_name("scaling.py")
    least = {"hop": math.inf, "message": math.inf, "byte": math.inf}
    for _ in range(turns):
        count = 5_000
        round_ = seconds(cluster("barriers", count, processes=2)) / count
        message = seconds(cluster(f"{programs}:send_messages", MESSAGES, processes=2)) / MESSAGES
        rows = 1 << 23
        byte = seconds(cluster("send_rows", rows, processes=2)) / (8 * rows)
        for name, value in {"hop": round_, "message": message, "byte": byte}.items():
            least[name] = min(least[name], value)
    message = least["message"]
    # A round of two processes is a frame each way at the same time, and a hop.
    return Costs(message, least["byte"], max(least["hop"] - message, 0.0))


def measured(name: str, scale: float, turns: int) -> tuple[Program, dict[int, float]]:
    """Measures a program on 1, 2 and 4 processes: what it does, and the least seconds of each."""
    program, arguments, expected = PROGRAMS[name][1](scale)
    took = dict.fromkeys(CHECKED, math.inf)
    of_two: list[dict[str, Any]] = []
    seen: set[int] = set()
    for _ in range(turns):
        for processes in CHECKED:
            reports = cluster(program, *arguments, processes=processes)
            check(name, reports, expected, seen)
            took[processes] = min(took[processes], seconds(reports))
            if processes == 2:
                of_two = reports
    return (
        Program(
            work=took[1],
            messages=_total(of_two, "data_messages") / 2,
            bytes=_total(of_two, "data_bytes"),
            rounds=_total(of_two, "progress_messages") / 2,
            turns=name == "components",
        ),
        took,
    )


def main() -> None:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0] if __doc__ else None)
    parser.add_argument("names", nargs="*", metavar="NAME", help="programs; all, where none is named")
    parser.add_argument("--scale", type=float, default=0.25, help="part of the work (0.25)")
    parser.add_argument("--turns", type=int, default=3, help="runs of each side (3)")
    parser.add_argument("--hop", type=float, help="microseconds of a hop between machines (as measured)")
    given = parser.parse_args()
    cores = os.cpu_count() or 1
    costs = costs_of(given.turns)
    for what, value, unit in [
        ("a message", costs.message * 1e6, "us"),
        ("a byte of columns", costs.byte * 1e9, "ns"),
        ("a hop", costs.hop * 1e6, "us"),
    ]:
        print(f"{what}: {value:.3g} {unit}", flush=True)
        leave("Prediction", f"cost of {what} between two processes", value, unit=unit)
    far = costs if given.hop is None else Costs(costs.message, costs.byte, given.hop / 1e6)
    for name in given.names or PROGRAMS:
        title = PROGRAMS[name][0]
        program, took = measured(name, given.scale, given.turns)
        print(
            f"{title}: {program.work:.3f} s on one worker; of two, each sends {program.messages:,.0f} "
            f"messages and {program.rounds:,.0f} frames of progress, {program.bytes / 1e6:,.1f} MB in all"
        )
        for workers in CHECKED[1:]:
            guess = predicted(program, costs, workers, cores)
            print(
                f"  {workers} processes: {guess:.3f} s predicted, {took[workers]:.3f} s measured", flush=True
            )
            leave("Prediction", f"{title}, {workers} processes", guess, "measured", took[workers])
        for workers in COUNTS:
            tree, straight = (predicted(program, far, workers, workers, way) for way in (True, False))
            print(
                f"  {workers} workers with a core each: {program.work / tree:,.1f} times one worker "
                f"by relays, {program.work / straight:,.1f} straight",
                flush=True,
            )
            leave("Prediction", f"{title}, {workers} workers with a core each", tree, "straight", straight)
        stops = [fastest(program, far, tree) for tree in (True, False)]
        print(f"  fastest on {stops[0]:,} workers by relays, {stops[1]:,} straight", flush=True)
        leave("Prediction", f"{title}, fastest", stops[0], "straight", stops[1], unit="workers")


if __name__ == "__main__":
    main()
