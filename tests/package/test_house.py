"""CONTRIBUTING.md and SECURITY.md say what the tree is."""

import itertools
import re
from pathlib import Path

import pytest

from layers import crates

ROOT = Path(__file__).parents[2]
CONTRIBUTING = (ROOT / "CONTRIBUTING.md").read_text()
SECURITY = (ROOT / "SECURITY.md").read_text()
PACKAGE = ROOT / "python/pointstamp"

LISTENS = re.compile(r"create_server\(|\.listen\(\)|HTTPServer\b|start_server\(")
UNPICKLES = re.compile(r"pickle\.loads?\b|Unpickler\(")


def named(text: str) -> set[str]:
    """Returns the names that a text has in code, outside of its blocks."""
    return set(re.findall(r"`([^`\n]+)`", re.sub(r"^```.*?^```", "", text, flags=re.MULTILINE | re.DOTALL)))


def doing(pattern: re.Pattern[str]) -> set[str]:
    """The files of the package whose code does something."""
    paths = sorted(PACKAGE.rglob("*.py"))
    return {path.relative_to(ROOT).as_posix() for path in paths if pattern.search(path.read_text())}


@pytest.mark.parametrize("text", [CONTRIBUTING, SECURITY], ids=["CONTRIBUTING", "SECURITY"])
def test_the_paths_that_are_named_are_there(text: str) -> None:
    places = [ROOT, PACKAGE, ROOT / "crates"]
    paths = {name for name in named(text) if re.fullmatch(r"[\w.]+(/[\w.-]*)+|[\w-]+\.(md|py|toml|rs)", name)}
    assert len(paths) >= 10
    assert [path for path in sorted(paths) if not any((place / path).exists() for place in places)] == []


@pytest.mark.parametrize("text", [CONTRIBUTING, SECURITY], ids=["CONTRIBUTING", "SECURITY"])
def test_the_targets_that_are_named_are_there(text: str) -> None:
    targets = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))
    asked = {name.split()[1] for name in named(text) if name.startswith("make ")}
    asked |= set(re.findall(r"^make ([a-z-]+)", text, re.MULTILINE))
    assert sorted(asked - targets) == []


def test_the_crates_are_those_that_there_are() -> None:
    listed = re.findall(r"^\| `(\w+)` \|", CONTRIBUTING, re.MULTILINE)
    assert sorted(listed) == sorted(path.name for path in (ROOT / "crates").iterdir() if path.is_dir())


def test_the_arrows_are_those_that_are_checked() -> None:
    block = re.search(r"```text\n(order <- .*?)```", CONTRIBUTING, re.DOTALL)
    assert block is not None
    chains = [chain.split(" <- ") for chain in re.split(r"\n|  +", block[1]) if chain]
    arrows = {(high, low) for chain in chains for low, high in itertools.pairwise(chain)}
    checked = {(high, low) for high, low in crates.MUST_REACH if low != "pyo3"}
    assert arrows <= {(high, low) for high, lows in crates.MAY_REACH.items() for low in lows}
    assert checked - arrows == set()


def test_what_listens_is_said() -> None:
    rows = re.findall(r"^\|.*\|$", SECURITY.split("what listens")[1].split("\n\n")[0], re.MULTILINE)
    assert {path for row in rows for path in re.findall(r"`(python/[^`]*)`", row)} == doing(LISTENS)


def test_where_pickles_are_read_is_said() -> None:
    pickles = SECURITY.split("## Pickles")[1].split("\n## ")[0]
    assert set(re.findall(r"`(python/[^`]*)`", pickles)) == doing(UNPICKLES)
