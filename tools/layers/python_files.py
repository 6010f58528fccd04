"""The dependencies between the modules of a Python package: the imports of each when it runs.

Imports in functions count: they are a way to hide a circle. Imports for type checkers alone (`if
TYPE_CHECKING:`) do not: two classes may name each other. A name that a package's `__init__` imports from
another module is a dependency on that module; also where it imports the name for type checkers alone, and
loads it with its first use.
"""

import ast
from pathlib import Path


def arrows(root: Path) -> dict[str, set[str]]:
    """Returns the imports of each module of the package in a folder; both as paths below the folder."""
    # A module that is an extension has only its stub, which imports nothing when it runs.
    files = {_module(path, root): path for path in sorted([*root.rglob("*.pyi"), *root.rglob("*.py")])}
    trees = {
        name: ast.parse(path.read_text() if path.suffix == ".py" else "", str(path))
        for name, path in files.items()
    }
    names = {name: path.relative_to(root).as_posix() for name, path in files.items()}
    graph = {}
    for module, tree in trees.items():
        found: set[str] = set()
        for node in _statements(tree):
            if isinstance(node, ast.Import):
                found |= {alias.name for alias in node.names}
            elif isinstance(node, ast.ImportFrom):
                source = _absolute(node, module, files[module].name == "__init__.py")
                for alias in node.names:
                    found.add(_defined_in(source, alias.name, trees, files))
        graph[names[module]] = {names[name] for name in found if name in names and name != module}
    return graph


def _module(path: Path, root: Path) -> str:
    parts = (root.name, *path.relative_to(root).with_suffix("").parts)
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def _absolute(node: ast.ImportFrom, module: str, is_package: bool) -> str:
    if node.level == 0:
        return node.module or ""
    parts = module.split(".")
    parts = parts[: len(parts) - node.level + is_package]
    return ".".join([*parts, *([node.module] if node.module else [])])


def _defined_in(source: str, name: str, trees: dict[str, ast.Module], files: dict[str, Path]) -> str:
    """The module that `from source import name` names: a submodule, or where `source` has it from."""
    if f"{source}.{name}" in trees:
        return f"{source}.{name}"
    if source in trees and files[source].name == "__init__.py":
        for node in ast.walk(trees[source]):
            if isinstance(node, ast.ImportFrom) and any((a.asname or a.name) == name for a in node.names):
                inner = _absolute(node, source, True)
                return inner if inner == source else _defined_in(inner, name, trees, files)
    return source


def _statements(tree: ast.AST) -> list[ast.stmt]:
    """Yields every statement that can run, including those in functions."""
    found = []
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test):
            for other in node.orelse:
                found += [other, *_statements(other)]
            continue
        if isinstance(node, ast.stmt):
            found.append(node)
        found += _statements(node)
    return found
