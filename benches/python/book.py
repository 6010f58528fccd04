"""Puts the results of `make bench PROFILE=dist ARGS=--docs` into the book.

Owns `Book`, the figures of whole runs with what they were measured on: the data in `benches/figures.json`.
Everything that the book says of speed is made of them: `docs/figures.md`, the figures between marks in
`docs/performance.md`, and `docs/pictures/scaling.svg`. `tests/package/test_figures.py` fails where one of
these says anything else. A bench that is run again replaces its own figures, and leaves those of the others.

    python benches/python/book.py      writes the chapters again, of the data as they are
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from statistics import median
from typing import NamedTuple

from figures import Figure

TOP = Path(__file__).resolve().parents[2]
DATA = TOP / "benches/figures.json"
TABLE = TOP / "docs/figures.md"
CHAPTERS = [TOP / "docs/performance.md", TOP / "docs/scaling.md"]
PICTURE = TOP / "docs/pictures/scaling.py"
NOTES = TOP / "benches/notes"
"""By subject, a file of text that follows its figures: reasons for what was missed, and what was tried."""

MARKED = re.compile(r"(<!-- figures: ([a-z-]+) -->\n).*?(<!-- end of figures -->)", re.DOTALL)


class Book(NamedTuple):
    """Figures, by the bench that they are of.

    Attributes:
        runs: For each bench what it was measured on, and with: words for people.
        figures: For each bench its figures.
    """

    runs: dict[str, dict[str, str]]
    figures: dict[str, list[Figure]]

    def of(self, bench: str) -> list[Figure]:
        """The figures of a bench; none where it has not been run."""
        return self.figures.get(bench, [])

    def with_run(self, bench: str, about: dict[str, str], found: Sequence[Figure]) -> Book:
        """The book in which a bench's figures are these."""
        return Book(self.runs | {bench: about}, self.figures | {bench: list(found)})

    def in_order(self, benches: Sequence[str]) -> Book:
        """The book with benches in this order, and without those that are not in it."""
        known = [bench for bench in benches if bench in self.runs]
        return Book({one: self.runs[one] for one in known}, {one: self.of(one) for one in known})


def read(path: Path = DATA) -> Book:
    """The figures of a file; none where there is no file."""
    if not path.exists():
        return Book({}, {})
    data = json.loads(path.read_text())
    figures = {bench: [Figure(**row) for row in rows] for bench, rows in data["figures"].items()}
    return Book(data["runs"], figures)


def write(book: Book, path: Path = DATA) -> None:
    """Writes the figures, a line each, so that a change is readable."""
    runs = ",\n".join(
        f"  {json.dumps(bench)}: {json.dumps(about, ensure_ascii=False)}"
        for bench, about in book.runs.items()
    )
    benches = []
    for bench, found in book.figures.items():
        rows = ",\n".join(f"   {json.dumps(_rounded(one)._asdict(), ensure_ascii=False)}" for one in found)
        benches.append(f"  {json.dumps(bench)}: [\n{rows}\n  ]")
    figures = ",\n".join(benches)
    path.write_text(f'{{\n "runs": {{\n{runs}\n }},\n "figures": {{\n{figures}\n }}\n}}\n')


def _rounded(figure: Figure) -> Figure:
    """The figure as far as it means anything: four digits."""

    def four(value: float | None) -> float | None:
        return None if value is None else float(f"{value:.4g}")

    return figure._replace(
        ours=float(f"{figure.ours:.4g}"),
        theirs=four(figure.theirs),
        ratio=four(figure.ratio),
        aim=four(figure.aim),
    )


# -------------------------------------------------------------------- the table of all


def number(value: float | None) -> str:
    """A figure as the tables write it."""
    if value is None:
        return ""
    if value >= 1000:
        return f"{value:,.0f}"
    return f"{value:.3g}"


def _aim(figure: Figure) -> str:
    if figure.aim is None:
        return ""
    return f"{figure.aim:.2g}, {'met' if figure.met else '**missed**'}"


def table(book: Book, failed: dict[str, str]) -> str:
    """All figures as Markdown: what they were measured on, and a section for each subject."""
    lines = ["# Figures", ""]
    lines += [
        "On this page you can look up every figure of the last full run of each bench. `make bench` writes",
        "it. Both sides of a row were measured in one run. A ratio is the cost of pointstamp divided by that",
        "of the other side: below 1 is faster or smaller. The aim is the ratio to be reached.",
    ]
    names = list(dict.fromkeys(name for about in book.runs.values() for name in about))
    if names:
        lines += ["", "| bench | " + " | ".join(names) + " |", "|---|" + "---|" * len(names)]
    for bench, about in book.runs.items():
        lines.append(f"| {bench} | " + " | ".join(about.get(name, "") for name in names) + " |")
    for bench, reason in failed.items():
        lines += ["", f"The bench `{bench}` {reason}: its figures are missing, or not all here."]
    found = [figure for rows in book.figures.values() for figure in rows]
    for subject in dict.fromkeys(figure.subject for figure in found):
        lines += ["", f"## {subject}", ""]
        lines += ["| | ours | unit | beside | theirs | ratio | aim |", "|---|--:|---|---|--:|--:|---|"]
        for figure in found:
            if figure.subject == subject:
                ratio = "" if figure.ratio is None else f"{figure.ratio:.2f}"
                ours, theirs = number(figure.ours), number(figure.theirs)
                cells = [figure.what, ours, figure.unit, figure.peer, theirs, ratio, _aim(figure)]
                lines.append("| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |")
        note = NOTES / f"{subject}.md"
        if note.exists():
            lines += ["", note.read_text(encoding="utf-8").strip()]
    return "\n".join(lines) + "\n"


# -------------------------------------------------------------------- what the chapter says


def _command(bench: str, about: dict[str, str]) -> str:
    """The command that measures it as in the book: with the published wheel and the same arguments."""
    more = f" --more='{about['arguments']}'" if about.get("arguments") else ""
    return f'`make bench PROFILE=dist ARGS="--docs {bench}{more}"`'


def _measured(book: Book, bench: str) -> str:
    """On what, when, and how to do it again."""
    about = book.runs[bench]
    return f"{_command(bench, about)}, {about.get('date', '')}: {about.get('processor', '')}."


def _engine(book: Book) -> str:
    found = [one for one in book.of("core") if one.ratio is not None]
    lines = ["| | comparisons | least ratio | median | greatest |", "|---|--:|--:|--:|--:|"]
    for subject in dict.fromkeys(one.subject for one in found):
        ratios = sorted(one.ratio for one in found if one.subject == subject and one.ratio is not None)
        middle = median(ratios)
        lines.append(f"| {subject} | {len(ratios)} | {ratios[0]:.2f} | {middle:.2f} | {ratios[-1]:.2f} |")
    return "\n".join([*lines, "", _measured(book, "core")])


def _ratios(book: Book, bench: str, heads: str, row: Callable[[Figure], str]) -> str:
    """A table of the ratios of a bench, each behind what says of what it is."""
    found = [(one, one.ratio) for one in book.of(bench)]
    rows = [f"| {row(one)} | {ratio:.2f} |" for one, ratio in found if ratio is not None]
    return "\n".join([f"| {heads} | ratio |", "|---|---|--:|", *rows, "", _measured(book, bench)])


def _records(book: Book) -> str:
    return _ratios(book, "records", "| program", lambda one: f"{one.subject} | {one.what}, beside {one.peer}")


def _columns(book: Book) -> str:
    return _ratios(book, "arrow", "program | beside", lambda one: f"{one.what} | {one.peer}")


def _collections(book: Book) -> str:
    """Every ratio beside its aim: programs, and then the kernels alone."""
    rows = [
        f"| {one.what} | {one.peer} | {ratio:.2f} | {_aim(one)} |"
        for one, ratio in ((one, one.ratio) for one in book.of("collections"))
        if ratio is not None
    ]
    heads = ["| program | beside | ratio | aim |", "|---|---|--:|---|"]
    return "\n".join([*heads, *rows, "", _measured(book, "collections")])


def _sharing(book: Book) -> str:
    times = sorted(1 / one.ratio for one in book.of("share") if one.ratio)
    return (
        "On an idle core, sharing would make the aggregation of large batches "
        f"{times[0]:.1f} to {times[-1]:.1f} times as fast.\n\n" + _measured(book, "share")
    )


def _progress(book: Book) -> str:
    """A row for each cluster: frames and bytes of a round of each program, combined and not."""
    named = re.compile(r"(barrier|loop), (\d+) workers in (\d+) processes: (frames|bytes)")
    cells: dict[tuple[int, int], dict[tuple[str, str], Figure]] = {}
    for one in book.of("scale"):
        match = named.match(one.what)
        if match is not None:
            program, workers, processes, unit = match.groups()
            cells.setdefault((int(processes), int(workers)), {})[program, unit] = one
    lines = []
    for unit in ("frames", "bytes"):
        lines += [
            "",
            f"| processes | workers | {unit}, barrier | not combined | {unit}, loop of 20 | not combined |",
            "|--:|--:|--:|--:|--:|--:|",
        ]
        for (processes, workers), row in cells.items():
            barrier, loop = row["barrier", unit], row["loop", unit]
            both = [barrier.ours, barrier.theirs, loop.ours, loop.theirs]
            lines.append(f"| {processes} | {workers:,} | " + " | ".join(map(_count, both)) + " |")
    return (
        "\n".join(lines[1:])
        + f"\n\n{_command('scale', book.runs['scale'])}. The counts are the same on every machine."
    )


def _relays(book: Book) -> str:
    """A row for each cluster: frames for a round of a process and of a relay, and hops."""
    named = re.compile(r"(barrier|loop), (\d+) processes: (.*)")
    cells: dict[tuple[str, int], dict[str, Figure]] = {}
    for one in book.of("scale"):
        match = named.match(one.what)
        if match is not None:
            program, processes, what = match.groups()
            cells.setdefault((program, int(processes)), {})[what] = one
    lines = [
        "| round of | processes | frames of each | straight | frames of a relay | bytes of each | hops |",
        "|---|--:|--:|--:|--:|--:|--:|",
    ]
    for (program, processes), row in cells.items():
        frames = row["frames for each round and process"]
        values = [
            frames.ours,
            frames.theirs,
            row["frames for each round of a relay"].ours,
            row["bytes for each round and process"].ours,
            row["hops"].ours,
        ]
        name = "a barrier" if program == "barrier" else "a loop of 20"
        lines.append(f"| {name} | {processes:,} | " + " | ".join(map(_count, values)) + " |")
    command = _command("scale", book.runs["scale"])
    return "\n".join(lines) + f"\n\n{command}. The counts are the same on every machine."


def _predicted(book: Book) -> str:
    """The costs, the programs on a few processes, predicted and measured, and on many."""
    costs = re.compile(r"cost of (.*) between two processes")
    few = re.compile(r"(.*), (\d+) processes")
    many = re.compile(r"(.*), (\d+) workers with a core each")
    said: list[str] = []
    checked = ["| | processes | seconds predicted | measured |", "|---|--:|--:|--:|"]
    larger = ["| | workers | seconds by relays | straight |", "|---|--:|--:|--:|"]
    stops = ["| | fastest by relays | straight |", "|---|--:|--:|"]
    for one in book.of("predict"):
        ours, theirs = number(one.ours), number(one.theirs)
        if match := costs.fullmatch(one.what):
            said.append(f"{match[1]} {ours} {one.unit}")
        elif match := few.fullmatch(one.what):
            checked.append(f"| {match[1]} | {match[2]} | {ours} | {theirs} |")
        elif match := many.fullmatch(one.what):
            larger.append(f"| {match[1]} | {int(match[2]):,} | {ours} | {theirs} |")
        else:
            program = one.what.removesuffix(", fastest")
            stops.append(f"| {program} | {ours} workers | {theirs} workers |")
    found = [
        "Measured between two processes: " + ", ".join(said) + ".",
        *map("\n".join, [checked, larger, stops]),
    ]
    return "\n\n".join([*found, _measured(book, "predict")])


def _count(value: float | None) -> str:
    if value is None:
        return ""
    return f"{value:,.0f}" if value >= 100 or value == int(value) else f"{value:.1f}"


def _cost(book: Book) -> str:
    """Seconds of each side, and how many workers it takes."""
    named = re.compile(r"(\w+) of ([\d,]+) edges, (\d+) workers")
    jobs: dict[str, dict[int, dict[str, Figure]]] = {}
    for one in book.of("cost"):
        match = named.match(one.what)
        if match is not None:
            job = f"{match[1]} of {match[2]} edges"
            jobs.setdefault(job, {}).setdefault(int(match[3]), {})[one.peer] = one
    counts = sorted({count for job in jobs.values() for count in job})
    heads = " | ".join(f"{count} worker{'s' * (count > 1)}" for count in counts)
    lines = [
        f"| seconds | a loop in Rust | a loop in NumPy | {heads} |",
        "|---|--:|--:|" + "--:|" * len(counts),
    ]
    answers = []
    for job, sides in jobs.items():
        first = sides[counts[0]]
        theirs = [number(first[peer].theirs) for peer in ("a loop in Rust", "a loop in NumPy")]
        ours = [number(next(iter(sides[count].values())).ours) for count in counts]
        lines.append(f"| {job} | " + " | ".join(theirs + ours) + " |")
        for peer in ("a loop in Rust", "a loop in NumPy"):
            faster = [count for count in counts if (sides[count][peer].ratio or 1.0) < 1]
            takes = (
                f"{faster[0]} worker{'s' * (faster[0] > 1)}" if faster else f"more than {counts[-1]} workers"
            )
            answers.append(f"{job}, {peer}: {takes}")
    return "\n".join(
        [
            *lines,
            "",
            "Workers that are needed to be faster:",
            "",
            *(f"- {answer}" for answer in answers),
            "",
            _measured(book, "cost"),
        ]
    )


SCALED = re.compile(r"(.+), (\d+) (workers|processes)$")


def scaled(book: Book) -> dict[str, dict[str, dict[int, float]]]:
    """By program, and by threads or processes: how many times one worker's speed a number of them has."""
    found: dict[str, dict[str, dict[int, float]]] = {}
    for one in book.of("scaling"):
        match = SCALED.match(one.what)
        if match is not None and one.ratio:
            kind = "threads" if match[3] == "workers" else "processes"
            found.setdefault(match[1], {}).setdefault(kind, {1: 1.0})[int(match[2])] = 1 / one.ratio
    return found


def _scaling(book: Book) -> str:
    found = scaled(book)
    counts = sorted({count for kinds in found.values() for times in kinds.values() for count in times} - {1})
    heads = " | ".join(f"{count}" for count in counts)
    lines = [f"| times one worker's speed, on | | {heads} |", "|---|---|" + "--:|" * len(counts)]
    for program, kinds in found.items():
        for kind, times in kinds.items():
            cells = [f"{times[count]:.2f}" if count in times else "" for count in counts]
            lines.append(f"| {program} | {kind} | " + " | ".join(cells) + " |")
    return "\n".join([*lines, "", _measured(book, "scaling")])


SECTIONS: dict[str, tuple[str, Callable[[Book], str]]] = {
    "engine": ("core", _engine),
    "records": ("records", _records),
    "columns": ("arrow", _columns),
    "collections": ("collections", _collections),
    "sharing": ("share", _sharing),
    "progress": ("scale", _progress),
    "relays": ("scale", _relays),
    "predicted": ("predict", _predicted),
    "cost": ("cost", _cost),
    "scaling": ("scaling", _scaling),
}
"""The figures between marks: the bench whose figures it needs, and their text."""


def filled(chapter: str, book: Book) -> str:
    """The chapter with what the figures say between its marks.

    Raises:
        KeyError: If a mark names no section.
    """

    def fill(match: re.Match[str]) -> str:
        bench, say = SECTIONS[match[2]]
        text = say(book) if book.of(bench) else f"Not measured yet: {_command(bench, {})}."
        return f"{match[1]}{text}\n{match[3]}"

    return MARKED.sub(fill, chapter)


def publish(book: Book) -> None:
    """Writes the data, and everything in the book that is made of them."""
    write(book)
    TABLE.write_text(table(read(), {}))
    for chapter in CHAPTERS:
        chapter.write_text(filled(chapter.read_text(), read()))
    subprocess.run([sys.executable, str(PICTURE)], check=True)


if __name__ == "__main__":
    publish(read())
