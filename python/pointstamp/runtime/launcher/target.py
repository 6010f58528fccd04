"""Finds the function to be run: ``module:function``, or ``path/to/file.py:function``.

A target is searched for before anything is started, and without running it: a module may take long to import,
and doing so in the launcher would repeat its effects. So its names are read from its source; where the source
does not show them (there is none, or it makes names as it runs), the processes find out as they load it.
"""

from __future__ import annotations

import ast
import importlib
import inspect
import os
import symtable
import sys
import warnings
from difflib import get_close_matches
from importlib.util import decode_source, module_from_spec, spec_from_file_location
from pathlib import Path
from traceback import format_exception_only
from typing import TYPE_CHECKING, Any, NamedTuple

from pointstamp.errors import ConfigError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from importlib.machinery import ModuleSpec

HIDES_NAMES = frozenset({"__getattr__", "exec", "globals", "locals", "setattr", "vars"})
"""A module that mentions one of these may have names that its source does not show."""


class TargetError(ConfigError):
    """Raised where the function to be run is not there."""


class Target(NamedTuple):
    """The function to be run: its module's name, its file where that was given, and its own name."""

    module: str
    path: Path | None
    function: str


def parse(text: str) -> Target:
    """Parses the argument.

    Raises:
        TargetError: If it does not name a module or file, and a function.
    """
    place, colon, function = text.rpartition(":")
    if not colon:
        place, function = text, ""
    if not (function and all(part.isidentifier() for part in function.split("."))):
        raise TargetError(f'{text!r} names no function: write "{place or "program"}:main"')
    if place.endswith(".py") or os.sep in place:
        path = Path(place)
        return Target(path.stem, path, function)
    if not (place and all(part.isidentifier() for part in place.split("."))):
        raise TargetError(
            f'{place!r} is neither a module nor a file: write "module:main" or "path/file.py:main"'
        )
    return Target(place, None, function)


def check(target: Target) -> None:
    """Looks for the target without running any of it.

    Raises:
        TargetError: If it is certain that it is not there.
    """
    if target.path is not None:
        source = _read(target.path)
        if target.module in sys.stdlib_module_names or target.module.partition(".")[0] == "pointstamp":
            raise TargetError(
                f"{target.path} has the name of the module {target.module!r}, which others import: rename it"
            )
    else:
        spec = _find(target.module)
        if spec is None or not spec.has_location or spec.origin is None or not spec.origin.endswith(".py"):
            return
        source = _read(Path(spec.origin))
    names = _names(source, str(target.path or target.module))
    wanted = target.function.partition(".")[0]
    if names is None or wanted in names:
        return
    close = get_close_matches(wanted, names, 1)
    hint = f"; did you mean {close[0]!r}?" if close else ""
    raise TargetError(f"{target.path or target.module} has no function {target.function!r}{hint}")


def load(target: Target) -> Callable[..., Any]:
    """Imports the module, and returns the function.

    A file is imported under its name, with its directory first on the path: so a class that is made in it has
    the same name in every process, and travels between them.

    Raises:
        TargetError: If the module has no such function, or it does not take a worker.
    """
    if target.path is None:
        found: Any = importlib.import_module(target.module)
    else:
        path = target.path.resolve()
        sys.path.insert(0, str(path.parent))
        spec = spec_from_file_location(target.module, path)
        if spec is None or spec.loader is None:
            raise TargetError(f"{target.path} is not a file of Python")
        found = module_from_spec(spec)
        sys.modules[target.module] = found
        spec.loader.exec_module(found)
    sys.argv[0] = getattr(found, "__file__", None) or target.module
    for part in target.function.split("."):
        if not hasattr(found, part):
            raise TargetError(f"{target.path or target.module} has no function {target.function!r}")
        found = getattr(found, part)
    if not callable(found):
        kind = type(found).__name__
        raise TargetError(
            f"{target.path or target.module}:{target.function} is of type {kind}, not a function"
        )
    refused = _refused(found)
    if refused is not None:
        raise TargetError(
            f"{target.path or target.module}:{target.function} cannot be run, which is to call it with a "
            f"worker alone: {refused}. A program has a function such as `def main(worker)`"
        )
    return found  # type: ignore[no-any-return]  # an object of the user's module


def _refused(function: Callable[..., Any]) -> str | None:
    """Why a function cannot be called with a worker, where its parameters say so."""
    try:
        parameters = inspect.signature(function, follow_wrapped=False)
    except (TypeError, ValueError):
        return None  # the module does not list them
    try:
        parameters.bind(None)
    except TypeError as error:
        return str(error)
    return None


def _read(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except FileNotFoundError:
        raise TargetError(f"there is no file {str(path)!r}") from None
    except OSError as error:
        raise TargetError(f"{path} cannot be read: {error.strerror}") from error


def _find(name: str) -> ModuleSpec | None:
    """Returns the module's spec, without importing its package; None where only an import can find it."""
    path: list[str] | None = None
    package = ""
    for part in name.split("."):
        full = f"{package}.{part}" if package else part
        spec = next(_specs(full, path), None)
        if spec is None:
            where = f"the package {package!r} has no such module" if package else "it is not on Python's path"
            raise TargetError(f"there is no module {name!r}: {where}")
        if full == name:
            return spec
        if spec.submodule_search_locations is None:
            if name in sys.modules:
                return None  # a module that another one has put there, such as `os.path`
            raise TargetError(f"there is no module {name!r}: {full!r} is not a package")
        try:
            path = list(spec.submodule_search_locations)
        except KeyError:  # a namespace package's path is known once its parent is imported
            return None
        package = full
    return None


def _specs(name: str, path: list[str] | None) -> Iterator[ModuleSpec]:
    for finder in sys.meta_path:
        spec = finder.find_spec(name, path)
        if spec is not None:
            yield spec


def _names(source: bytes, path: str) -> set[str] | None:
    """The names of a module; None where its source does not show them all.

    Raises:
        TargetError: If it is not Python.
    """
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the running process gets the warning
        try:
            tree = ast.parse(source, path)
            table = symtable.symtable(decode_source(source), path, "exec")
        except (SyntaxError, ValueError) as error:
            raise TargetError("".join(format_exception_only(error)).strip()) from None
    for node in ast.walk(tree):
        name = getattr(node, "id", None) or getattr(node, "name", None)
        if name in HIDES_NAMES or (isinstance(node, ast.ImportFrom) and node.names[0].name == "*"):
            return None
    return set(_bound(table, top=True))


def _bound(table: symtable.SymbolTable, top: bool = False) -> Iterator[str]:
    for symbol in table.get_symbols():
        bound = symbol.is_assigned() or symbol.is_imported() or symbol.is_namespace()
        if bound and (top or symbol.is_declared_global()):
            yield symbol.get_name()
    for child in table.get_children():
        yield from _bound(child)
