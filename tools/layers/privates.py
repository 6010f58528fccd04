"""Private names of one file of the package that another file reaches for.

A name with one underscore belongs to the file that defines it, as a private name of Rust belongs to its
module: two classes of a file may know each other's. What is private in another library (PySpark's ``_jvm``)
is one file's business, which `layers.known` names. ``namedtuple``'s methods have underscores and are public.
"""

import ast
from collections.abc import Iterable, Mapping
from pathlib import Path

_NAMED_TUPLE = frozenset({"_asdict", "_field_defaults", "_fields", "_make", "_replace"})


def reached(root: Path) -> dict[str, list[str]]:
    """For each file of a package, where it reaches for a private name that it does not define."""
    trees = {
        path.relative_to(root).as_posix(): ast.parse(path.read_text(), str(path))
        for path in sorted(root.rglob("*.py"))
    }
    modules = {Path(name).stem for name in trees} | {"_core"}
    return {name: list(_reached(tree, modules)) for name, tree in trees.items()}


def violations(found: Mapping[str, Iterable[str]], allowed: Iterable[str]) -> list[str]:
    """What `reached` found outside of the files that may, and files that may and do not."""
    said = [
        f"{name}:{place} is private to another file: give what it stands for a public name there"
        for name, places in found.items()
        if name not in allowed
        for place in places
    ]
    said.extend(
        f"{name} reaches for nothing private any more: take it off the list in tools/layers/known.py"
        for name in allowed
        if not found.get(name)
    )
    return said


def _reached(tree: ast.Module, modules: set[str]) -> Iterable[str]:
    free = _defined(tree) | _NAMED_TUPLE | modules
    for node in ast.walk(tree):
        for name in _named(node):
            if _is_private(name) and name not in free:
                assert isinstance(node, ast.expr | ast.stmt)
                yield f"{node.lineno}: {ast.unparse(node)}"


def _named(node: ast.AST) -> list[str]:
    """The names by which a node reaches into something, or imports from it."""
    match node:
        case ast.Attribute(value=ast.Name(id="os" | "sys")):
            return []  # what their documentation names with an underscore: `os._exit`, `sys._xoptions`
        case ast.Attribute():
            return [node.attr]
        case ast.ImportFrom():
            return [alias.name for alias in node.names]
        case ast.Call(
            func=ast.Name(id="getattr" | "setattr" | "hasattr" | "delattr"),
            args=[_, ast.Constant(value=str(name)), *_],
        ):
            return [name]
    return []


def _is_private(name: str) -> bool:
    return name.startswith("_") and not name.endswith("__") and name != "_"


def _defined(tree: ast.Module) -> set[str]:
    """The names that a file gives to things."""
    found = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            found.add(node.name)
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            found.add(node.id)
        elif (
            isinstance(node, ast.Attribute)
            and isinstance(node.ctx, ast.Store)
            and isinstance(node.value, ast.Name)
            and node.value.id in ("self", "cls")
        ):
            found.add(node.attr)
    return found
