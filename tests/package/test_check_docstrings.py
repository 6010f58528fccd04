"""The check of docstrings' first lines finds fragments, and nothing else; this repository has none."""

import importlib.util
from pathlib import Path
from types import ModuleType

import pytest

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def check() -> ModuleType:
    path = ROOT / "tools" / "check_docstrings.py"
    spec = importlib.util.spec_from_file_location("check_docstrings", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


WRONG = [
    ('"""What a module is."""', 1, "What"),
    ('class A:\n    """Those of it."""', 2, "Those"),
    ('def f():\n    """How it is done."""', 2, "How"),
    ('async def f():\n    """Where it is."""', 2, "Where"),
    ('def f():\n    """\n    Of which kind.\n    """', 2, "Of"),
    ('class A:\n    def f(self):\n        """As `g`."""', 3, "As"),
    ('class A:\n    x = 1\n    """Which it is."""', 3, "Which"),
    ('X: int = 1\n"""That of x."""', 2, "That"),
    ('def f() -> str:\n    """Who: it is."""', 2, "Who"),
    ('def f() -> list[str]:\n    """Whether it is."""', 2, "Whether"),
    ('class A:\n    """Whether it is."""', 2, "Whether"),
]

RIGHT = [
    '"""Finds what is wrong."""',
    'def f() -> bool:\n    """Whether it is."""',
    'def f() -> "bool | None":\n    """Whether it is."""',
    'def f():\n    """Whether it is."""',
    'X = True\n"""Whether it is."""',
    'def f():\n    """Asks. What comes is returned."""',
    'def f():\n    return "What is no docstring"',
    "def f():\n    pass",
]


@pytest.mark.parametrize(("source", "line", "word"), WRONG)
def test_a_fragment_is_found(check: ModuleType, tmp_path: Path, source: str, line: int, word: str) -> None:
    path = tmp_path / "module.py"
    path.write_text(source)
    [found] = check.violations(path)
    assert found.startswith(f"{path}:{line}: ")
    assert repr(word) in found
    assert check.main([str(path)]) == check.main([str(tmp_path)]) == 1


@pytest.mark.parametrize("source", RIGHT)
def test_a_sentence_is_not(check: ModuleType, tmp_path: Path, source: str) -> None:
    path = tmp_path / "module.py"
    path.write_text(source)
    assert check.violations(path) == []
    assert check.main([str(tmp_path)]) == 0


WRONG_RUST = [
    ("//! What a module is.", 1, "What"),
    ("//! A module.\n\n/// What is held.\nstruct Item;", 3, "What"),
    ("struct Item {\n    /// How many.\n    count: u64,\n}", 2, "How"),
    ("/// Whether it is.\n#[inline]\nfn f() -> u64 {\n    let bool = 1;\n    bool\n}", 1, "Whether"),
    ("enum E {\n    /// Whether it is.\n    A,\n    B(bool),\n}", 2, "Whether"),
]

RIGHT_RUST = [
    "//! A module.\n//! What follows is text.\n",
    "/// Finds it.\n///\n/// What is found is returned.\nfn f() {}",
    "/// Whether it is.\n#[inline]\nfn f(of: u64) -> bool {\n    true\n}",
    "struct Item {\n    /// Whether it is.\n    is: AtomicBool,\n}",
    "//// What is no doc comment.\n// What is none, too.\nfn f() {}",
]


@pytest.mark.parametrize(("source", "line", "word"), WRONG_RUST)
def test_a_fragment_in_rust_is_found(
    check: ModuleType, tmp_path: Path, source: str, line: int, word: str
) -> None:
    path = tmp_path / "module.rs"
    path.write_text(source)
    [found] = check.violations(path)
    assert found.startswith(f"{path}:{line}: ")
    assert repr(word) in found


@pytest.mark.parametrize("source", RIGHT_RUST)
def test_a_sentence_in_rust_is_not(check: ModuleType, tmp_path: Path, source: str) -> None:
    path = tmp_path / "module.rs"
    path.write_text(source)
    assert check.violations(path) == []


def test_this_repository_has_none(check: ModuleType) -> None:
    places = check.files([ROOT / folder for folder in check.FOLDERS])
    assert len(places) > 100
    assert [line for path in places for line in check.violations(path)] == []
