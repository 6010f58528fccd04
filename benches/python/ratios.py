"""Ours against a peer, by turns in one process, as a ratio of medians.

Owns how a comparison is timed. The programs run by turns, so that whatever slows the machine down for a while
strikes all of them, and medians leave out a turn that was struck. Beside the time that passed stands the time
that the processors worked, which says more where the machine has other work. A program returns something that
can be compared: two programs that do not agree are not compared.
"""

from __future__ import annotations

import gc
import statistics
import time
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import figures


class Program(NamedTuple):
    """Something to time: its name, the program, and the ratio to the first that is aimed at, if one is."""

    name: str
    run: Callable[[], Any]
    aim: float | None = None


class Row(NamedTuple):
    """The medians of one program: seconds passed and worked, and their ratios to the first of its job."""

    name: str
    seconds: float
    ratio: float
    cpu_seconds: float
    cpu_ratio: float
    aim: float | None

    def __str__(self) -> str:
        aim = "" if self.aim is None else f"   aim {self.aim:g}{'' if self.ratio <= self.aim else ' MISSED'}"
        passed = f"{self.seconds:8.3f}{self.ratio:8.2f}"
        return f"  {self.name:<40}{passed}{self.cpu_seconds:12.3f}{self.cpu_ratio:8.2f}{aim}"


def compare(title: str, programs: Sequence[Program], turns: int) -> list[Row]:
    """Times the programs by turns and prints a row for each; the first is what the others are divided by.

    Raises:
        AssertionError: If two programs do not agree.
    """
    print(f"\n{title}\n  {'':<40}{'seconds':>8}{'ratio':>8}{'CPU seconds':>12}{'ratio':>8}", flush=True)
    passed: list[list[float]] = [[] for _ in programs]
    worked: list[list[float]] = [[] for _ in programs]
    expected: Any = None
    for turn in range(turns):
        for index, program in enumerate(programs):
            gc.collect()  # what the one before left behind is not this one's to collect
            start, cpu_start = time.perf_counter(), time.process_time()
            result = program.run()
            worked[index].append(time.process_time() - cpu_start)
            passed[index].append(time.perf_counter() - start)
            if turn == 0 and index == 0:
                expected = result
            if result != expected:
                raise AssertionError(f"{program.name} does not compute what {programs[0].name} does")
            del result
    seconds = [statistics.median(times) for times in passed]
    cpu_seconds = [statistics.median(times) for times in worked]
    rows = [
        Row(program.name, wall, wall / seconds[0], cpu, cpu / cpu_seconds[0], program.aim)
        for program, wall, cpu in zip(programs, seconds, cpu_seconds, strict=True)
    ]
    for row in rows:
        print(row, flush=True)
    for row in rows[1:]:
        figures.leave(title, row.name, row.seconds, rows[0].name, rows[0].seconds, aim=row.aim)
    return rows
