"""Figures of speed in the book are those of benches/figures.json, from `make bench`."""

import importlib.util
import re
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

TOP = Path(__file__).parents[2]
DOCS = TOP / "docs"
BENCHES = TOP / "benches/python"
CHAPTERS = sorted([*DOCS.glob("*.md"), TOP / "README.md"])
CODE = re.compile(r"^(`{3,})[^\n]*\n.*?^\1[ ]*$", re.MULTILINE | re.DOTALL)
DURATION = r"\d[\d.,]* ?(ns|us|µs|ms|microseconds|nanoseconds|milliseconds|seconds)\b"
# A time by itself may be a limit, or a pause; what something takes is a speed.
SPEED = re.compile(
    r"\d[\d.,]*[ -]*times (as (fast|slow|much|long)|faster|slower|longer)"
    rf"|\d[\d.,]* ?[kMG]i?B/s|{DURATION} (a|an|per|for each) [a-z]"
    rf"|(takes?|took|costs?) (about |only )?{DURATION}"
    r"|\d[\d.,]*( million)? (rows|records|rounds|lines|messages|changes)(/s| per second| a second)"
    r"|\d[\d.,]* of (timely|Polars|pyarrow|Bytewax|Pathway|differential)",
    re.IGNORECASE,
)
WRITE = 'python benches/python/book.py writes it again; make bench PROFILE=dist ARGS="--docs NAME" measures'


@pytest.fixture
def modules(monkeypatch: pytest.MonkeyPatch) -> tuple[ModuleType, ModuleType]:
    found = []
    for name in ("figures", "book"):
        spec = importlib.util.spec_from_file_location(name, BENCHES / f"{name}.py")
        assert spec is not None
        assert spec.loader is not None
        module = importlib.util.module_from_spec(spec)
        monkeypatch.setitem(sys.modules, name, module)
        spec.loader.exec_module(module)
        found.append(module)
    return found[0], found[1]


def said_by_hand(chapter: str, marked: re.Pattern[str]) -> list[str]:
    """Returns the sentences of a chapter about speed outside of marks and of programs."""
    text = CODE.sub("", marked.sub("", chapter))
    return [match[0] for match in SPEED.finditer(text)]


@pytest.mark.parametrize("path", CHAPTERS, ids=lambda path: path.stem)
def test_a_chapter_states_no_speed_of_its_own(path: Path, modules: tuple[ModuleType, ModuleType]) -> None:
    if path.name != "figures.md":
        assert said_by_hand(path.read_text(encoding="utf-8"), modules[1].MARKED) == []


def test_a_speed_of_ones_own_is_found(modules: tuple[ModuleType, ModuleType]) -> None:
    chapter = (
        "It is 1.9 times as fast, 3 times slower and 0.7 of timely's; 20 ns a record, took 3 ms, 1.2 GB/s.\n"
        "It sleeps for 10 us.\n"
        "<!-- figures: cost -->\n5 times faster\n<!-- end of figures -->\n```python\n# 4 ms\n```\n"
    )
    found = said_by_hand(chapter, modules[1].MARKED)
    assert found == [
        "1.9 times as fast",
        "3 times slower",
        "0.7 of timely",
        "20 ns a r",
        "took 3 ms",
        "1.2 GB/s",
    ]


def test_the_book_says_what_the_figures_say(modules: tuple[ModuleType, ModuleType]) -> None:
    book = modules[1].read()
    chapters = [path.read_text(encoding="utf-8") for path in modules[1].CHAPTERS]
    for chapter in chapters:
        assert modules[1].filled(chapter, book) == chapter, WRITE
    assert modules[1].table(book, {}) == (DOCS / "figures.md").read_text(encoding="utf-8"), WRITE
    marked = [match[2] for chapter in chapters for match in modules[1].MARKED.finditer(chapter)]
    assert sorted(marked) == sorted(modules[1].SECTIONS)


def test_figures_of_a_bench_replace_its_own_alone(
    modules: tuple[ModuleType, ModuleType], tmp_path: Path
) -> None:
    figures, book = modules
    old = figures.leave("Loops", "turns", 2.0, "a loop", 4.0, aim=0.4)
    kept = figures.leave("Package", "the wheel", 7.654321, unit="MB")
    before = book.Book({}, {}).with_run("loops", {"date": "then"}, [old])
    book.write(before.with_run("package", {"date": "then"}, [kept]), tmp_path / "data.json")
    new = figures.leave("Loops", "turns", 1.0, "a loop", 4.0, aim=0.4)
    after = book.read(tmp_path / "data.json").with_run("loops", {"date": "now"}, [new])
    book.write(after.in_order(["package", "loops", "another"]), tmp_path / "data.json")
    again = book.read(tmp_path / "data.json")
    assert again.runs == {"package": {"date": "then"}, "loops": {"date": "now"}}
    assert again.of("loops") == [new]
    assert again.of("package") == [kept._replace(ours=7.654)]
    assert again.of("another") == []


def sample(figures: ModuleType) -> dict[str, list[Any]]:
    """A few figures of each bench that the chapter uses, as the benches leave them."""
    leave = figures.leave
    scale = [
        leave(
            "Progress",
            f"{program}, 1000 workers in 250 processes: {unit} for each round and process",
            ours,
            "without combining",
            4 * ours,
            unit=unit,
        )
        for program, ours in (("barrier", 249.0), ("loop", 5234.3))
        for unit in ("frames", "bytes")
    ]
    scale += [
        leave("Progress by relays", f"barrier, 4096 processes: {what}", ours)
        for what, ours in (
            ("frames for each round and process", 2.9),
            ("frames for each round of a relay", 126.0),
            ("bytes for each round and process", 32.0),
            ("hops", 3.0),
        )
    ]
    cost = [
        leave("COST", f"components of 16,000,000 edges, {workers} workers", seconds, peer, theirs)
        for workers, seconds in ((1, 6.0), (2, 1.5))
        for peer, theirs in (("a loop in Rust", 0.1), ("a loop in NumPy", 2.0))
    ]
    return {
        "core": [
            leave("Trackers", "churn", 1.0, "timely", 2.0),
            leave("Trackers", "window", 1.0, "timely", 4.0),
        ],
        "records": [leave("words", "pointstamp, 2 workers", 2.0, "a loop", 1.0)],
        "arrow": [leave("Columns", "exchange", 2.0, "take", 1.0)],
        "collections": [
            leave("Collections", "degrees: load", 1.2, "differential-dataflow", 1.0, aim=1.3),
            leave("Collections", "degrees: 2 workers", 1.0, "1 worker", 1.5, aim=0.6),
        ],
        "share": [leave("Sharing", "aggregate", 1.0, "one thread", 1.9)],
        "scale": scale,
        "cost": cost,
        "predict": [
            leave("Prediction", "cost of a message between two processes", 4.0, unit="us"),
            leave("Prediction", "words, 4 processes", 1.5, "measured", 1.4),
            leave("Prediction", "words, 4096 workers with a core each", 0.25, "straight", 1.0),
            leave("Prediction", "words, fastest", 1024.0, "straight", 128.0, unit="workers"),
        ],
        "scaling": [
            leave("Scaling", "barrier, 2 workers", 2.0, "1 worker", 1.0),
            leave("Scaling", "barrier, 2 processes", 1.0, "1 worker", 1.5),
        ],
    }


def test_what_each_section_says(modules: tuple[ModuleType, ModuleType]) -> None:
    figures, book = modules
    samples = sample(figures)
    full = book.Book({}, {})
    for bench, found in samples.items():
        full = full.with_run(bench, {"date": "2020-02-02", "processor": "one core"}, found)
    said = {name: say(full) for name, (_, say) in book.SECTIONS.items()}
    assert "| Trackers | 2 | 0.25 | 0.38 | 0.50 |" in said["engine"]
    assert "| words | pointstamp, 2 workers, beside a loop | 2.00 |" in said["records"]
    assert "| exchange | take | 2.00 |" in said["columns"]
    assert "| degrees: load | differential-dataflow | 1.20 | 1.3, met |" in said["collections"]
    assert "| degrees: 2 workers | 1 worker | 0.67 | 0.6, **missed** |" in said["collections"]
    assert "1.9 to 1.9 times as fast" in said["sharing"]
    assert "| 250 | 1,000 | 249 | 996 | 5,234 | 20,937 |" in said["progress"]
    assert "| components of 16,000,000 edges | 0.1 | 2 | 6 | 1.5 |" in said["cost"]
    assert "| a barrier | 4,096 | 2.9 |  | 126 | 32 | 3 |" in said["relays"]
    assert "a message 4 us" in said["predicted"]
    assert "| words | 4 | 1.5 | 1.4 |" in said["predicted"]
    assert "| words | 4,096 | 0.25 | 1 |" in said["predicted"]
    assert "| words | 1,024 workers | 128 workers |" in said["predicted"]
    assert "a loop in Rust: more than 2 workers" in said["cost"]
    assert "a loop in NumPy: 2 workers" in said["cost"]
    assert "| barrier | threads | 0.50 |" in said["scaling"]
    assert "| barrier | processes | 1.50 |" in said["scaling"]
    for name, (bench, _) in book.SECTIONS.items():
        assert f'`make bench PROFILE=dist ARGS="--docs {bench}"`' in said[name]
    scaled = {"date": "2020-02-02", "processor": "one core", "arguments": "--scale 0.1"}
    less = full.with_run("arrow", scaled, samples["arrow"])
    assert "ARGS=\"--docs arrow --more='--scale 0.1'\"`" in book.SECTIONS["columns"][1](less)
    counted = ["progress", "relays"]
    assert all("2020-02-02: one core" in text for name, text in said.items() if name not in counted)
    chapter = "<!-- figures: cost -->\n<!-- end of figures -->"
    empty = book.filled(chapter, book.Book({}, {}))
    assert 'Not measured yet: `make bench PROFILE=dist ARGS="--docs cost"`.' in empty
    assert book.filled(book.filled(chapter, full), book.Book({}, {})) == empty
