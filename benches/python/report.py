"""Runs the benches, and makes one table and a page of plots of what they measured: `make bench`.

Owns the list of benches and the plots of their figures. Every bench runs by itself, as its own command says,
prints what it finds, and leaves its figures (`figures`). They are gathered in target/bench: `figures.jsonl`,
`table.md`, and `index.html` with a plot for each subject. A bench that fails is said to have failed in the
table, and the others go on. `--docs` puts the figures of the benches that have run into the book (`book`).

`--check` guards against lost speed (`guard`): a short form of each bench, up to three times. It fails where
the least ratio of a row is more than 1.25 times the kept one, where a kept row was not measured, and where a
bench has nothing kept. `--quick --keep` keeps the ratios.
"""

from __future__ import annotations

import argparse
import datetime
import html
import io
import json
import os
import platform
import re
import shlex
import subprocess
import sys
import time
from collections.abc import Sequence
from importlib import metadata
from pathlib import Path
from typing import NamedTuple

import book
import figures
import guard
from figures import Figure

TOP = Path(__file__).resolve().parents[2]
HERE = Path("benches/python")
STYLE = """
body { font: 14px system-ui; max-width: 72rem; margin: 2rem auto; padding: 0 1rem }
th { text-align: left; padding-right: 1rem }
svg { max-width: 100% }
"""
# An environment of its own: `make bench` makes it, where Pathway has a wheel.
PATHWAY = "target/pathway/bin/python"
PEERS = ["bytewax", "duckdb", "pathway", "polars", "pyarrow", "pyspark"]


class Bench(NamedTuple):
    """A bench: the name to choose it by, its command, what makes it short, and whether it runs unnamed."""

    name: str
    command: Sequence[str]
    quick: Sequence[str] = ()
    unnamed: bool = True


def _python(script: str, *arguments: str) -> list[str]:
    return [sys.executable, str(HERE / script), *arguments]


def _cargo(*names: str) -> list[str]:
    chosen = [word for name in names for word in ("--bench", name)]
    return ["cargo", "bench", "-p", "pointstamp-bench", "--locked", *chosen]


def benches(wheel: Path | None) -> list[Bench]:
    """Every bench, in the order of the table."""
    return [
        Bench("core", _cargo("change_batch", "mutable_antichain", "tracker", "programs", "build")),
        Bench("scale", _cargo("scale")),
        Bench("share", _cargo("share")),
        Bench("arrow", _python("bench_arrow.py"), ["--scale", "0.02"]),
        Bench("capture", _python("bench_capture.py"), ["--megabytes", "16"]),
        Bench("processes", _python("bench_processes.py"), ["--scale", "0.05", "--turns", "1"]),
        Bench("backpressure", _python("backpressure.py"), ["--seconds", "2"]),
        Bench(
            "events",
            _python("windows.py"),
            ["--records", "50000", "--rows", "200000", "--calls", "1000", "--sessions", "20000"],
        ),
        Bench("operators", _python("operators.py"), ["--records", "20000", "--turns", "3"]),
        Bench(
            "graphs",
            _python("graphs.py"),
            ["--nodes", "2000", "--edges", "10000", "--changes", "10", "--workers", "1"],
        ),
        Bench("nexmark", _python("nexmark.py", "--check"), ["--events", "10000"]),
        Bench(
            "cost",
            _python("cost.py"),
            ["--scale", "12", "--edges", "60000", "--turns", "1"],
        ),
        Bench("scaling", _python("scaling.py"), ["--scale", "0.02", "--turns", "1", "--most", "2"]),
        Bench("predict", _python("predict.py"), ["--scale", "0.02", "--turns", "1", "words"]),
        Bench(
            "collections",
            _python(
                "bench_collections.py",
                "--build",
                *("--scale", "0.1", "--workers", "1", "2", "--kernel", "1000000"),
            ),
            ["--scale", "0.001", "--workers", "1", "--kernel", "10000"],
        ),
        Bench(
            "pathway",
            _python("collection_peers.py", "--pathway", PATHWAY, "--scale", "0.02"),
            ["--scale", "0.001"],
        ),
        Bench(
            "records", _python("run.py", *(["--wheel", str(wheel)] if wheel is not None else [])), ["--quick"]
        ),
        Bench(
            "recovery",
            _python("recovery.py"),
            [
                *("--states", "20000", "--records", "200000", "--megabytes", "5", "--state", "5"),
                *("--pairs", "100000", "--changes", "50000", "--every", "0.5", "--rounds", "20"),
                *("--turns", "1"),
            ],
        ),
        Bench(
            "memory",
            _python("memory.py"),
            [
                *("--pairs", "200000", "--memory", "1 MiB", "--rounds", "5", "--turns", "1"),
                *("--keys", "20000", "--nodes", "3000"),
            ],
        ),
        Bench(
            "queries",
            _python("queries.py", "--scale", "1", "--rounds", "1000"),
            ["--scale", "0.002", "--rounds", "3"],
        ),
        # It needs Java: `make bench-spark` names it.
        Bench("spark", _python("bench_spark.py"), ["--scale", "0.001", "--turns", "1"], unnamed=False),
    ]


# -------------------------------------------------------------------- running


def run(bench: Bench, quick: bool, limit: float, left: Path, more: Sequence[str] = ()) -> str:
    """Runs one bench; returns what is wrong with it, or nothing."""
    command = [*bench.command, *(bench.quick if quick else ()), *more]
    print(f"\n=== {bench.name}: {shlex.join(command)}", flush=True)
    try:
        done = subprocess.run(
            command, cwd=TOP, env=os.environ | {figures.VARIABLE: str(left)}, timeout=limit, check=False
        )
    except subprocess.TimeoutExpired:
        return f"was ended after {limit:,.0f} seconds"
    return "" if done.returncode == 0 else f"failed with exit code {done.returncode}"


# -------------------------------------------------------------------- the machine


def _said(*command: str) -> str:
    try:
        found = subprocess.run(command, capture_output=True, text=True, check=True, cwd=TOP, timeout=60)
    except (OSError, subprocess.SubprocessError):
        return "unknown"
    return found.stdout.strip()


def _processor() -> str:
    path = Path("/proc/cpuinfo")
    lines = path.read_text().splitlines() if path.exists() else []
    name = next((line for line in lines if line.startswith("model name")), "")
    return name.partition(":")[2].strip() or platform.processor() or platform.machine()


def _memory() -> str:
    try:
        return f"{os.sysconf('SC_PAGE_SIZE') * os.sysconf('SC_PHYS_PAGES') / 2**30:.0f} GiB"
    except (ValueError, OSError):
        return "unknown"


def machine() -> dict[str, str]:
    """The machine and the versions of the measurements."""
    versions = {}
    for name in PEERS:
        try:
            versions[name] = metadata.version(name)
        except metadata.PackageNotFoundError:
            continue
    if (TOP / PATHWAY).exists():
        asked = "import importlib.metadata; print(importlib.metadata.version('pathway'))"
        versions["pathway"] = _said(str(TOP / PATHWAY), "-c", asked)
    if found := re.search(r'^timely = "(.*)"', (TOP / "benches/Cargo.toml").read_text(), re.MULTILINE):
        versions["timely"] = found[1]
    return {
        "date": datetime.date.today().isoformat(),
        "commit": _said("git", "rev-parse", "--short", "HEAD"),
        "processor": f"{_processor()}, {os.cpu_count()} cores",
        "memory": _memory(),
        "system": f"{platform.system()} {platform.release()}",
        "load before": f"{os.getloadavg()[0]:.1f}",
        "rust": _said("rustc", "--version"),
        "python": f"{platform.python_implementation()} {platform.python_version()}",
        "peers": ", ".join(f"{name} {version}" for name, version in versions.items()),
    }


# -------------------------------------------------------------------- plots


def plot(subject: str, found: Sequence[Figure]) -> str:
    """The ratios of a subject as a picture, in SVG: bars from 1, to the left where ours is less."""
    import matplotlib as mpl

    mpl.use("Agg")
    from matplotlib import pyplot

    mpl.rcParams["svg.fonttype"] = "none"
    labels = [f"{figure.what}  beside {figure.peer}" for figure in found]
    ratios = [figure.ratio or 1.0 for figure in found]
    figure, axes = pyplot.subplots(figsize=(11, 0.8 + 0.34 * len(found)))
    colours = ["#2a7f62" if ratio <= 1 else "#b5542d" for ratio in ratios]
    axes.barh(range(len(found)), [ratio - 1 for ratio in ratios], left=1, color=colours, height=0.62)
    for place, one in enumerate(found):
        if one.aim is not None:
            axes.plot([one.aim] * 2, [place - 0.42, place + 0.42], color="#222222", linewidth=1.4)
        axes.annotate(
            f"{ratios[place]:.2f}",
            (max(ratios[place], 1), place),
            xytext=(5, 0),
            textcoords="offset points",
            va="center",
            fontsize=8,
        )
    axes.set_xscale("log", base=2)
    axes.set_xlim(min(0.5, *ratios) / 1.1, max(2.0, *ratios) * 1.1)
    axes.set_yticks(range(len(found)), labels, fontsize=8)
    axes.invert_yaxis()
    axes.axvline(1, color="#888888", linewidth=0.8)
    axes.xaxis.set_major_formatter(lambda value, _: f"{value:g}")
    axes.set_xlabel("ours / theirs; the mark is the aim", fontsize=8)
    axes.set_title(subject, fontsize=10, loc="left")
    for side in ("top", "right", "left"):
        axes.spines[side].set_visible(False)
    figure.tight_layout()
    picture = io.StringIO()
    figure.savefig(picture, format="svg")
    pyplot.close(figure)
    return picture.getvalue().partition("?>")[2]


def page(found: Sequence[Figure], about: dict[str, str]) -> str:
    """A page with a plot for each subject."""
    parts = []
    for subject in dict.fromkeys(figure.subject for figure in found):
        compared = [one for one in found if one.subject == subject and one.ratio is not None]
        if compared:
            parts.append(plot(subject, compared))
    said = "".join(f"<tr><th>{html.escape(k)}</th><td>{html.escape(v)}</td></tr>" for k, v in about.items())
    return (
        f"<!doctype html><meta charset=utf-8><title>Figures</title><style>{STYLE}</style>"
        f"<h1>Figures</h1><table>{said}</table>" + "".join(parts)
    )


# -------------------------------------------------------------------- the guard


def guarded(known: Sequence[Bench], given: argparse.Namespace, out: Path) -> int:
    """Compares the least ratios of three short runs with the kept ones, or keeps them."""
    kept = guard.read()
    names = given.names or [bench.name for bench in known if bench.unnamed]
    status = 0
    for bench in known:
        if bench.name not in names:
            continue
        if not given.keep and bench.name not in kept:
            keeping = f'make bench ARGS="--quick --keep {bench.name}"'
            print(f"{bench.name} has no kept ratios: {keeping} keeps them", file=sys.stderr)
            status = 1
            continue
        least: dict[str, float] = {}
        tries = []
        for _ in range(guard.TRIES):
            left = out / f"{bench.name}.short.jsonl"
            left.unlink(missing_ok=True)
            if reason := run(bench, True, given.limit, left, given.more):
                print(f"{bench.name} {reason}", file=sys.stderr)
                status = 1
                break
            tries.append(guard.ratios(figures.read(left)))
            least = guard.lesser(least, tries[-1])
            if not given.keep and not guard.lost(kept[bench.name], least):
                break  # further tries only make ratios less
        else:
            if given.keep:
                guard.keep(bench.name, machine() | {"profile": given.profile}, guard.medians(tries))
        if not given.keep:
            for line in guard.report(bench.name, kept[bench.name], least):
                print(line, file=sys.stderr)
            if guard.lost(kept[bench.name], least) or kept[bench.name].keys() - least.keys():
                status = 1
    if not given.keep and not status:
        print(f"\nno row is slower than {guard.MOST:g} times its kept ratio")
    return status


def main() -> int:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0] if __doc__ else None)
    parser.add_argument(
        "names", nargs="*", metavar="NAME", help="benches to run; where none is named, all but spark"
    )
    parser.add_argument("--quick", action="store_true", help="a little of the work, to see that all runs")
    parser.add_argument("--more", type=shlex.split, default=[], metavar="ARGUMENTS", help="for the benches")
    parser.add_argument("--wheel", type=Path, help="the wheel whose size is told")
    parser.add_argument("--profile", default="local", help="what the extension was built with (local)")
    parser.add_argument("--limit", type=float, default=1800.0, help="seconds for one bench (1800)")
    parser.add_argument("--out", type=Path, default=TOP / "target/bench", help="where the table goes")
    parser.add_argument("--docs", action="store_true", help="put the figures into the book, too")
    parser.add_argument("--check", action="store_true", help="compare a short form with the kept ratios")
    parser.add_argument("--keep", action="store_true", help="with --quick: keep the ratios for --check")
    given = parser.parse_args()
    known = benches(given.wheel)
    unknown = sorted(set(given.names) - {bench.name for bench in known})
    if unknown:
        parser.error(f"no bench {', '.join(unknown)}: there are {', '.join(bench.name for bench in known)}")
    if given.docs and given.quick:
        parser.error("the book has figures of whole runs: --docs or --quick")
    if given.docs and given.profile != "dist":
        parser.error("the book has figures of the wheel as it is published: make bench PROFILE=dist")
    if given.keep and not given.quick:
        parser.error("kept are the ratios of the short form: --quick --keep")
    out = given.out.resolve()
    out.mkdir(parents=True, exist_ok=True)
    if given.check or given.keep:
        return guarded(known, given, out)
    ran, failed = book.Book({}, {}), {}
    for bench in known:
        if bench.name in given.names or (bench.unnamed and not given.names):
            left = out / f"{bench.name}.jsonl"
            left.unlink(missing_ok=True)
            about, start = machine() | {"profile": given.profile}, time.monotonic()
            if given.more:
                about["arguments"] = shlex.join(given.more)
            reason = run(bench, given.quick, given.limit, left, given.more)
            if reason:
                failed[bench.name] = reason
            about["minutes"] = f"{(time.monotonic() - start) / 60:.1f}"
            ran = ran.with_run(bench.name, about, figures.read(left))
    found = [figure for rows in ran.figures.values() for figure in rows]
    (out / "figures.jsonl").write_text("".join(json.dumps(one._asdict()) + "\n" for one in found))
    (out / "table.md").write_text(book.table(ran, failed))
    (out / "index.html").write_text(page(found, machine()))
    if given.docs:
        published = book.read()
        for name, rows in ran.figures.items():
            if name not in failed:
                published = published.with_run(name, ran.runs[name], rows)
        book.publish(published.in_order([bench.name for bench in known]))
    missed = [figure for figure in found if figure.met is False]
    print(
        f"\n{len(found)} figures, {len(missed)} of them short of their aim: "
        f"{out / 'table.md'} and {out / 'index.html'}"
    )
    for name, reason in failed.items():
        print(f"{name} {reason}", file=sys.stderr)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
