"""The measurements of a bench, as rows that are kept for the table of `make bench`.

Owns `Figure` and where figures are left: the file that the variable POINTSTAMP_BENCH_FIGURES names, a line of
JSON each; nowhere, where it is not set. The benches in Rust leave the same lines (`benches/src/figures.rs`).
"""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import NamedTuple

VARIABLE = "POINTSTAMP_BENCH_FIGURES"


class Figure(NamedTuple):
    """One comparison, or one figure by itself.

    Attributes:
        subject: What the bench is about: the table has a section for each.
        what: The program, and how much work it had.
        ours: Our figure, in `unit`.
        peer: What it is compared with; empty where the figure stands by itself.
        theirs: The peer's figure, in `unit`.
        unit: Of both.
        ratio: Ours to theirs as a cost: below 1 is faster, or smaller. Of rates it is theirs to ours.
        aim: The ratio that is aimed at, at most; None where none is stated.
    """

    subject: str
    what: str
    ours: float
    peer: str
    theirs: float | None
    unit: str
    ratio: float | None
    aim: float | None = None

    @property
    def met(self) -> bool | None:
        """Whether the aim is met; None where there is none."""
        return None if self.aim is None or self.ratio is None else self.ratio <= self.aim


def leave(
    subject: str,
    what: str,
    ours: float,
    peer: str = "",
    theirs: float | None = None,
    *,
    unit: str = "s",
    aim: float | None = None,
    rate: bool = False,
) -> Figure:
    """Leaves a figure for the table, and returns it.

    Args:
        subject: As in `Figure`, as are `what`, `ours`, `peer`, `theirs`, `unit` and `aim`.
        what: See `Figure`.
        ours: See `Figure`.
        peer: See `Figure`.
        theirs: See `Figure`.
        unit: See `Figure`.
        aim: See `Figure`.
        rate: Whether more is better, as of records per second.
    """
    ratio = None
    if theirs is not None:
        ratio = theirs / ours if rate else ours / theirs
    figure = Figure(subject, what, ours, peer, theirs, unit, ratio, aim)
    path = os.environ.get(VARIABLE)
    if path:
        with Path(path).open("a") as file:
            file.write(json.dumps(figure._asdict()) + "\n")
    return figure


def read(path: Path) -> list[Figure]:
    """The figures that were left in a file, in the order of their subjects' first appearance."""
    if not path.exists():
        return []
    found = [Figure(**json.loads(line)) for line in path.read_text().splitlines()]
    order = list(dict.fromkeys(figure.subject for figure in found))
    return sorted(found, key=lambda figure: order.index(figure.subject))
