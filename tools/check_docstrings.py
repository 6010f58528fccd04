"""Checks the first lines of docstrings: `python tools/check_docstrings.py` prints those that are fragments.

A first line stands alone: it begins with a verb in the third person or with a noun phrase. What, Which, How,
Those, Of, As, Where, That and Who begin a clause without its sentence. "Whether" begins the first line of a
boolean only: of a function that may return one, or of a value. In Rust files, the first line of each block of
`///` and `//!` is checked. Arguments are files and folders; the default is the whole repository.
"""

import ast
import re
import sys
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path

ROOT = Path(__file__).parents[1]

FOLDERS = ("python", "tools", "examples", "tests", "crates", "benches", "fuzz")

FRAGMENTS = frozenset(["What", "Which", "How", "Those", "Of", "As", "Where", "That", "Who"])
"""Words that begin a clause, and not a sentence."""

DOC = re.compile(r"\s*(///|//!)(?!/)(.*)")
"""A line of a doc comment of Rust, with its mark and its text."""

ITEM = 25
"""Lines of an item of Rust that are searched for its type."""

BOOLEANS = frozenset(["bool", "TypeGuard", "TypeIs", "object", "Any"])
"""Annotations of values that are true or false, or may be."""

Documented = ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef


def violations(path: Path) -> list[str]:
    """Returns the first lines of a file that are fragments, as ``"file:line: what is wrong"``."""
    source = path.read_text(encoding="utf-8")
    documented = (
        rust_docs(source) if path.suffix == ".rs" else docstrings(ast.parse(source, filename=str(path)))
    )
    found = []
    for line, text, truth in documented:
        first = text.strip().partition("\n")[0]
        word = first.partition(" ")[0].rstrip(",:;.")
        if word in FRAGMENTS:
            found.append(
                f"{path}:{line}: begins with {word!r}, and not with a verb or a noun phrase: {first}"
            )
        elif word == "Whether" and not truth:
            found.append(f"{path}:{line}: 'Whether' begins the first line of a boolean only: {first}")
    return found


def rust_docs(source: str) -> Iterator[tuple[int, str, bool]]:
    """Yields the first line of each doc comment of a Rust file, and whether it may document a boolean."""
    lines = source.splitlines()
    before = None
    for index, line in enumerate(lines):
        mark, text = found.groups() if (found := DOC.match(line)) else (None, "")
        if mark is not None and mark != before:
            truth = mark == "///" and "bool" in declaration(lines, index).lower()
            yield index + 1, text, truth
        before = mark


def declaration(lines: list[str], start: int) -> str:
    """Returns the declaration of the item after a doc comment: up to its block, value or end."""
    depth, text = 0, ""
    for line in lines[start : start + ITEM]:
        stripped = line.strip().replace("->", "").replace("=>", "")
        if stripped.startswith(("//", "#[")):
            continue
        for character in stripped:
            depth += (character in "([<") - (character in ")]>")
            if depth < 0 or (depth == 0 and character in "{;,}"):
                return text
            text += character
        text += " "
    return text


def docstrings(tree: ast.Module) -> Iterator[tuple[int, str, bool]]:
    """Yields the line of each docstring, its text, and whether it may be of a boolean."""
    for node in ast.walk(tree):
        if isinstance(node, Documented) and (text := ast.get_docstring(node, clean=False)) is not None:
            yield node.body[0].lineno, text, is_boolean(node)
        body = getattr(node, "body", None)
        if not isinstance(node, ast.Module | ast.ClassDef) or not isinstance(body, list):
            continue
        for before, after in pairwise(body):
            if isinstance(before, ast.Assign | ast.AnnAssign) and (text := text_of(after)) is not None:
                yield after.lineno, text, True


def text_of(statement: ast.stmt) -> str | None:
    """The text of a statement that is a text and nothing else."""
    value = statement.value if isinstance(statement, ast.Expr) else None
    return value.value if isinstance(value, ast.Constant) and isinstance(value.value, str) else None


def is_boolean(node: Documented) -> bool:
    """Whether a docstring may be of something that is true or false."""
    if not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
        return False
    if node.returns is None:
        return True
    names = {part.id for part in ast.walk(node.returns) if isinstance(part, ast.Name)}
    text = text_in(node.returns)
    return bool(BOOLEANS & names) or "bool" in text


def text_in(annotation: ast.expr) -> str:
    """The text of an annotation that is one."""
    value = annotation.value if isinstance(annotation, ast.Constant) else ""
    return value if isinstance(value, str) else ""


def files(places: list[Path]) -> list[Path]:
    """Returns the files of Python and Rust in folders, and those that are named."""
    found = [
        path
        for place in places
        for path in (
            [place]
            if place.is_file()
            else sorted([*place.rglob("*.py"), *place.rglob("*.pyi"), *place.rglob("*.rs")])
        )
    ]
    return [path for path in found if not {"__pycache__", "target"} & set(path.parts)]


def main(arguments: list[str]) -> int:
    """Prints the errors; exits 1 if there are any."""
    places = [Path(argument) for argument in arguments] or [ROOT / folder for folder in FOLDERS]
    found = [line for file in files(places) for line in violations(file)]
    for line in found:
        print(line, file=sys.stderr)
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
