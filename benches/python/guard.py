"""The guard against lost speed: the ratios of short runs, which are kept in the repository, and compared.

Owns benches/short.json: of each bench the machine that it ran on, and of each row the ratio of ours to the
peer's in one run. Ratios are compared, never times, so that another machine gives about the same. The median
of three tries is kept, and the least of three is compared with it: other work on a machine makes a ratio
greater far more often than less.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from statistics import median

from figures import Figure

KEPT = Path(__file__).resolve().parents[1] / "short.json"
TRIES = 3
MOST = 1.25
"""The maximum of a row, as a multiple of its kept ratio."""

Ratios = dict[str, float]


def ratios(found: Sequence[Figure]) -> Ratios:
    """The ratio of each row that has one, by its subject, program and peer."""
    return {
        f"{figure.subject}: {figure.what}, beside {figure.peer}": round(figure.ratio, 3)
        for figure in found
        if figure.ratio is not None
    }


def lesser(one: Ratios, other: Ratios) -> Ratios:
    """The lesser ratio of each row."""
    return {row: min(of[row] for of in (one, other) if row in of) for row in {**one, **other}}


def medians(tries: Sequence[Ratios]) -> Ratios:
    """The median ratio of each row."""
    return {row: median(one[row] for one in tries if row in one) for row in {**tries[0], **tries[-1]}}


def lost(kept: Ratios, found: Ratios) -> list[str]:
    """The rows that are slower than they may be."""
    return [row for row, ratio in found.items() if row in kept and ratio > MOST * kept[row]]


def report(bench: str, kept: Ratios, found: Ratios) -> Iterator[str]:
    """A line for each row that is slower, and one for the rows that could not be compared."""
    for row in lost(kept, found):
        was = f"{found[row]:.2f}, and it was {kept[row]:.2f}"
        yield f"{bench}: {row}: {was}: profile it, or keep the new ratio"
    for what, rows in (
        ("were not measured", kept.keys() - found.keys()),
        ("have no kept ratio", found.keys() - kept.keys()),
    ):
        if rows:
            yield f"{bench}: {len(rows)} rows {what}, such as {min(rows)}"


def read(path: Path = KEPT) -> dict[str, Ratios]:
    """The kept ratios of each bench."""
    if not path.exists():
        return {}
    return {name: bench["ratios"] for name, bench in json.loads(path.read_text()).items()}


def keep(bench: str, about: dict[str, str], found: Ratios, path: Path = KEPT) -> None:
    """Keeps the ratios of a bench in place of those before."""
    benches = json.loads(path.read_text()) if path.exists() else {}
    benches[bench] = {"about": about, "ratios": dict(sorted(found.items()))}
    path.write_text(json.dumps(benches, indent=1) + "\n")
