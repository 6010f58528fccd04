"""The book's table of verbs is what the package has."""

import ast
import inspect
import re
import runpy
from collections.abc import Iterator
from pathlib import Path
from typing import Any

DOCS = Path(__file__).parents[2] / "docs"


def test_the_table_of_verbs_is_that_of_the_package() -> None:
    verbs: dict[str, Any] = runpy.run_path(str(DOCS / "verbs.py"), run_name="verbs")
    written = (DOCS / "verbs.md").read_text(encoding="utf-8")
    assert verbs["page"]() == written, "write it again: python docs/verbs.py"


def test_the_calls_in_the_table_of_folds_are_those_of_the_package() -> None:
    """Each names parameters of its verb, in their order, on at least one class."""
    verbs: dict[str, Any] = runpy.run_path(str(DOCS / "verbs.py"), run_name="verbs")
    page = (DOCS / "verbs.md").read_text(encoding="utf-8")
    table = page.partition("## Folding\n")[2].partition("\n## ")[0]
    shown = re.findall(r"\| `(\w+)\(([^\"]+?)\)`", table)
    assert len(shown) >= 7
    for verb, given in shown:
        names = [name.strip().removesuffix("=") for name in given.split(",")]
        signatures = [
            list(inspect.signature(getattr(kind, verb)).parameters)
            for kind in verbs["CLASSES"].values()
            if hasattr(kind, verb)
        ]
        assert any([one for one in known if one in names] == names for known in signatures), verb


def class_named(annotation: ast.expr) -> str | None:
    """The name of a class of the package in an annotation, such as `Stream` in ``ps.Stream[str]``."""
    kind = annotation.value if isinstance(annotation, ast.Subscript) else annotation
    return kind.attr if isinstance(kind, ast.Attribute) else None


def calls(tree: ast.AST) -> Iterator[tuple[str | None, str]]:
    """Calls of methods in functions, each with the class that the function states for the variable."""
    for function in ast.walk(tree):
        if not isinstance(function, ast.FunctionDef):
            continue
        found = [node for node in ast.walk(function) if isinstance(node, ast.Call)]
        classes = {arg.arg: class_named(arg.annotation) for arg in function.args.args if arg.annotation}
        for call in found:
            if isinstance(call.func, ast.Name) and call.func.id == "assert_type":
                value, stated = call.args
                if isinstance(value, ast.Name):
                    classes[value.id] = class_named(stated)
        for call in found:
            if isinstance(call.func, ast.Attribute) and isinstance(call.func.value, ast.Name):
                yield classes.get(call.func.value.id), call.func.attr


def test_the_types_of_each_verb_of_each_class_are_checked() -> None:
    """`typed.py`, which type checkers read, calls each on a variable whose class it states."""
    verbs: dict[str, Any] = runpy.run_path(str(DOCS / "verbs.py"), run_name="verbs")
    typed = (Path(__file__).with_name("typed.py")).read_text(encoding="utf-8")
    wanted = {(name, verb) for name, kind in verbs["CLASSES"].items() for verb in verbs["methods"](kind)}
    assert sorted(wanted - set(calls(ast.parse(typed)))) == []
