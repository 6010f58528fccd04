"""The code and tests that docs/design/safety.md and checkpoints.md name are there."""

import re
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
TEXT = (ROOT / "docs/design/safety.md").read_text(encoding="utf-8")
# The cut of a checkpoint, which is a section of its own.
CUT = re.search(
    r"^## The cut\n.*?(?=^## |\Z)",
    (ROOT / "docs/design/checkpoints.md").read_text(encoding="utf-8"),
    re.MULTILINE | re.DOTALL,
)[0]  # type: ignore[index]

FILE = re.compile(r"[\w/.-]+\.(?:rs|py)|crates/[\w/-]+")
NOT_NAMES = {"t", "l", "(l, t)", "[lower, upper)", "make check-deep", "main"}
RUST_TEST = re.compile(r"#\[test\]\s+(?:#\[.*\]\s+)*fn (\w+)")
PYTHON_TEST = re.compile(r"^def (test_\w+)", re.MULTILINE)
ITEM = re.compile(r"\b(?:fn|struct|enum|trait|type|mod|const|class|def) (\w+)")
MEMBER = re.compile(r"^ +(?:pub(?:\(\w+\))? )?(\w+)(?:[:,({]| \{)", re.MULTILINE)


@cache
def sources() -> dict[str, str]:
    """The Rust and Python of the project, tests included, by path."""
    paths = [
        *(ROOT / "crates").rglob("*.rs"),
        *(ROOT / "python").rglob("*.py"),
        *(ROOT / "tests").rglob("*.py"),
    ]
    return {path.relative_to(ROOT).as_posix(): path.read_text(encoding="utf-8") for path in paths}


@cache
def all_tests() -> frozenset[str]:
    """The names of all tests."""
    patterns = {".rs": RUST_TEST, ".py": PYTHON_TEST}
    found = (patterns[Path(path).suffix].findall(text) for path, text in sources().items())
    return frozenset(name for names in found for name in names)


def named(text: str) -> list[str]:
    """Returns the names that a text has in code."""
    return [name for name in dict.fromkeys(re.findall(r"`([^`\n]+)`", text)) if name not in NOT_NAMES]


def checks() -> list[str]:
    """Returns the checks of the argument's steps, and of the tables."""
    steps = re.findall(r"^\*The checks\.\*(.*?)(?:\n\n|\Z)", TEXT, re.MULTILINE | re.DOTALL)
    tables = re.findall(r"^\|[^\n]*checked by \|\n\|[-|]*\n((?:\|.*\n)*)", TEXT, re.MULTILINE)
    cells = [row.rsplit("|", 2)[1] for rows in tables for row in rows.splitlines()]
    assert (len(steps), len(tables)) == (8, 2)
    assert all(named(step) or "explorer" in step for step in steps)
    assert all(named(cell) or "explorer" in cell or "the same tests" in cell for cell in cells)
    cut = re.findall(r"^\*The checks\.\*(.*?)(?:\n\n|\Z)", CUT, re.MULTILINE | re.DOTALL)
    assert len(cut) == 11
    return named("\n".join(steps + cells + cut))


@cache
def definitions() -> dict[str, frozenset[str]]:
    """The names of functions, types, fields and variants that each file defines."""
    return {path: frozenset(ITEM.findall(text) + MEMBER.findall(text)) for path, text in sources().items()}


def is_there(name: str) -> bool:
    """Whether a file or a definition has this name; of a member, where its type is."""
    if FILE.fullmatch(name):
        return (ROOT / name).exists() or any(path.endswith(f"/{name}") for path in sources())
    owner, _, last = name.rpartition("::")
    if owner.startswith("pointstamp_"):
        return last in definitions()[f"crates/{owner.removeprefix('pointstamp_')}/src/lib.rs"]
    owned = re.compile(rf"\b(?:impl\b[^{{;]*|enum |trait ){owner}\b")
    return any(
        last in names and (not owner or owned.search(sources()[path]) or path.endswith(f"/{owner}.rs"))
        for path, names in definitions().items()
    )


@pytest.mark.parametrize("name", named(TEXT + CUT))
def test_what_the_argument_names_is_there(name: str) -> None:
    assert is_there(name)


@pytest.mark.parametrize("name", checks())
def test_what_checks_a_step_is_a_test(name: str) -> None:
    """The named check is a test, a file of tests, or a scenario of the explorer."""
    if FILE.fullmatch(name):
        paths = [path for path in sources() if f"/{path}".endswith(f"/{name}")]
        assert any(RUST_TEST.search(sources()[path]) or PYTHON_TEST.search(sources()[path]) for path in paths)
    else:
        assert name in all_tests() or f"Shape::{name}" in sources()["crates/progress/tests/explore.rs"]


def test_each_flaw_is_in_the_table_and_caught() -> None:
    scenario = sources()["crates/testkit/src/explore/scenario.rs"]
    members = re.search(r"pub enum Flaw \{(.*?)\n\}", scenario, re.DOTALL)
    assert members is not None
    flaws = set(re.findall(r"^    (\w+),", members[1], re.MULTILINE)) - {"None"}
    found = re.findall(r"^\| \*(\w+)\* \|", TEXT + CUT, re.MULTILINE)
    assert flaws == set(found)
    argued = TEXT.split("## The explorer")[0] + CUT.split("### The explorer")[0]
    assert flaws <= set(re.findall(r"\*([A-Z]\w+)\*", argued))
    tried = sources()["crates/progress/tests/explore.rs"]
    assert [flaw for flaw in sorted(flaws) if f"Flaw::{flaw}" not in tried] == []
