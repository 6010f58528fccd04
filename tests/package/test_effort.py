"""`make test` tries the same examples in each run, and `make check-deep` others, by a seed that it prints."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import check_deep

TESTS = Path(__file__).parents[1]

DRAWS = """
from hypothesis import given, strategies as st

@given(st.lists(st.integers()))
def test_draws(values):
    print("drew", values)
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder with the settings of these tests, and one that prints its examples."""
    shutil.copy(TESTS / "conftest.py", tmp_path)
    (tmp_path / "test_draws.py").write_text(DRAWS)
    return tmp_path


def drawn(folder: Path, *options: str) -> list[str]:
    """Returns the examples of one run."""
    ran = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-s", "-p", "no:cacheprovider", *options, str(folder)],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": str(TESTS / "support"), "POINTSTAMP_EFFORT": "1"},
        capture_output=True,
        text=True,
        timeout=380,
        check=True,
    )
    found = [line for line in ran.stdout.splitlines() if line.startswith("drew")]
    assert len(found) >= 100
    return found


def test_every_run_tries_the_same_examples(folder: Path) -> None:
    assert drawn(folder) == drawn(folder)


def test_a_seed_draws_others_and_the_same_seed_the_same(folder: Path) -> None:
    seven = drawn(folder, check_deep.Search(1, 7).option)
    assert seven == drawn(folder, check_deep.Search(1, 7).option)
    assert seven != drawn(folder, check_deep.Search(1, 8).option)
    assert seven != drawn(folder)


def test_every_random_part_is_told_the_seed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(check_deep, "works", lambda *_: True)
    search = check_deep.Search(20, 4711)
    for command in check_deep.properties(search):
        assert command.env["PROPTEST_RNG_SEED"] == "4711"
    [_, python] = check_deep.properties(search)
    simulated = list(check_deep.simulated(search))
    assert all("--hypothesis-seed=4711" in command.words for command in [python, *simulated])
    executions = list(check_deep.executions(search))
    assert len(executions) == 100
    for number, command in enumerate(executions):
        assert f"--hypothesis-seed={4711 + number}" in command.words
    resumptions = list(check_deep.resumptions(search))
    assert len(resumptions) == 100
    for number, command in enumerate(resumptions):
        assert f"--hypothesis-seed={4711 + number}" in command.words
    [kills] = check_deep.kills(search)
    assert "--hypothesis-seed=4711" in kills.words
    firsts = [command.words[command.words.index("--seed") + 1] for command in simulated]
    assert firsts == ["4711000000", "4712000000"]


def test_the_seed_is_printed(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(check_deep, "run", lambda _: True)
    monkeypatch.setattr(sys, "argv", ["check_deep.py", "--seed", "4711", "properties"])
    assert check_deep.main() == 0
    assert "seed 4711" in capsys.readouterr().out
    monkeypatch.setattr(sys, "argv", ["check_deep.py", "properties"])
    said = set()
    for _ in range(3):
        assert check_deep.main() == 0
        said.add(capsys.readouterr().out)
    assert len(said) > 1  # three times the same of 2**31: never
