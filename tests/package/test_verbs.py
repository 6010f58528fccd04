"""The book's table of verbs is what the package has."""

import ast
import runpy
from pathlib import Path
from typing import Any

DOCS = Path(__file__).parents[2] / "docs"


def test_the_table_of_verbs_is_that_of_the_package() -> None:
    verbs: dict[str, Any] = runpy.run_path(str(DOCS / "verbs.py"), run_name="verbs")
    written = (DOCS / "verbs.md").read_text(encoding="utf-8")
    assert verbs["page"]() == written, "write it again: python docs/verbs.py"


def test_the_types_of_each_verb_are_checked() -> None:
    """Each is called in `typed.py`, which type checkers read."""
    verbs: dict[str, Any] = runpy.run_path(str(DOCS / "verbs.py"), run_name="verbs")
    tree = ast.parse((Path(__file__).with_name("typed.py")).read_text(encoding="utf-8"))
    calls = [node.func for node in ast.walk(tree) if isinstance(node, ast.Call)]
    called = {function.attr for function in calls if isinstance(function, ast.Attribute)}
    assert sorted({verb for needs in verbs["NEEDS"].values() for verb in needs} - called) == []
