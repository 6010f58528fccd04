"""The table of `make bench`: what the benches leave, and how it is shown."""

import importlib.util
import json
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import pytest

BENCHES = Path(__file__).parents[2] / "benches" / "python"


@pytest.fixture
def modules(monkeypatch: pytest.MonkeyPatch) -> tuple[ModuleType, ModuleType, ModuleType]:
    found = []
    for name in ("figures", "book", "guard", "report"):
        spec = importlib.util.spec_from_file_location(name, BENCHES / f"{name}.py")
        assert spec is not None
        assert spec.loader is not None
        module = importlib.util.module_from_spec(spec)
        monkeypatch.setitem(sys.modules, name, module)
        spec.loader.exec_module(module)
        found.append(module)
    return found[0], found[1], found[3]


def test_what_is_left_is_shown(
    modules: tuple[ModuleType, ModuleType, ModuleType], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    figures, book, _ = modules
    monkeypatch.setenv(figures.VARIABLE, str(tmp_path / "left"))
    figures.leave("Loops", "turns | rounds", 2.0, "a plain loop", 4.0, aim=0.4)
    figures.leave("Package", "the wheel", 7.6, unit="MB")
    figures.leave("Loops", "rows", 3000.0, "another", 1500.0, unit="rows/s", rate=True, aim=0.5)
    found = figures.read(tmp_path / "left")
    assert [figure.met for figure in found] == [False, True, None]
    ran = book.Book({}, {}).with_run("loops", {"processor": "one"}, found)
    text = book.table(ran, {"core": "failed with exit code 3"})
    assert "| bench | processor |" in text
    assert "| loops | one |" in text
    assert "| turns \\| rounds | 2 | s | a plain loop | 4 | 0.50 | 0.4, **missed** |" in text
    assert "| rows | 3,000 | rows/s | another | 1,500 | 0.50 | 0.5, met |" in text
    assert "| the wheel | 7.6 | MB |  |  |  |  |" in text
    assert "`core` failed with exit code 3" in text
    assert text.index("## Loops") < text.index("## Package")


def test_what_the_chapter_says_is_of_benches_that_there_are(
    modules: tuple[ModuleType, ModuleType, ModuleType],
) -> None:
    _, book, report = modules
    assert {bench for bench, _ in book.SECTIONS.values()} <= {bench.name for bench in report.benches(None)}


def test_a_page_has_a_plot_for_what_is_compared(modules: tuple[ModuleType, ModuleType, ModuleType]) -> None:
    figures, _, report = modules
    compared = figures.leave("Loops & turns", "rounds", 2.0, "timely", 4.0)
    page = report.page([compared, figures.leave("Package", "wheel", 1.0)], {"processor": "<b>"})
    assert page.count("<svg") == 1
    assert "Loops &amp; turns" in page
    assert "&lt;b&gt;" in page


def test_a_bench_that_fails_is_said_to(
    modules: tuple[ModuleType, ModuleType, ModuleType], tmp_path: Path
) -> None:
    report = modules[2]
    failing = report.Bench("core", [sys.executable, "-c", "raise SystemExit(3)"])
    slow = report.Bench("slow", [sys.executable, "-c", "import time; time.sleep(60)"])
    assert report.run(failing, False, 30.0, tmp_path / "left") == "failed with exit code 3"
    assert report.run(slow, False, 0.2, tmp_path / "left") == "was ended after 0 seconds"


@pytest.mark.parametrize(
    ("given", "says"),
    [(["--docs"], "PROFILE=dist"), (["--docs", "--profile", "dist", "--quick"], "whole runs")],
)
def test_the_book_takes_figures_of_whole_runs_of_what_is_published(given: list[str], says: str) -> None:
    command = [sys.executable, str(BENCHES / "report.py"), *given, "backpressure"]
    result = subprocess.run(command, capture_output=True, text=True, timeout=380, check=False)
    assert result.returncode == 2
    assert says in result.stderr


def test_a_bench_leaves_its_figures_for_the_table(tmp_path: Path) -> None:
    command = [sys.executable, "-W", "error", str(BENCHES / "report.py"), "--quick", "backpressure"]
    result = subprocess.run(
        [*command, "--out", str(tmp_path)], capture_output=True, text=True, timeout=380, check=False
    )
    assert result.returncode == 0, result.stdout + result.stderr
    rows = [json.loads(line) for line in (tmp_path / "figures.jsonl").read_text().splitlines()]
    assert [row["subject"] for row in rows] == ["Back-pressure"] * 2
    assert "Back-pressure" in (tmp_path / "table.md").read_text()
    assert "<svg" in (tmp_path / "index.html").read_text()
