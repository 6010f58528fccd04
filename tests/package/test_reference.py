"""The reference has everything that the package exports, and every public method has an example that runs.

Public are the modules of `MODULES`, the names in their ``__all__``, and the other classes of the reference,
which methods return. A method that a class inherits, or that overrides another, has that one's example.
Examples of Python modules are run by `pytest --doctest-modules`, those of the extension by `test_docstrings`,
and those that need Spark by `tests/spark`.
"""

import importlib
import importlib.util
import inspect
import itertools
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest

ROOT = Path(__file__).parents[2]

MODULES = (
    "pointstamp",
    "pointstamp.capture",
    "pointstamp.cluster",
    "pointstamp.connectors",
    "pointstamp.connectors.kafka",
    "pointstamp.connectors.network",
    "pointstamp.connectors.postgres",
    "pointstamp.graphs",
    "pointstamp.observability.log",
    "pointstamp.order",
    "pointstamp.progress",
    "pointstamp.spark",
    "pointstamp.spark.graphs",
    "pointstamp.testing",
)
"""Public modules."""

DIRECTIVE = re.compile(
    r"^\.\. (currentmodule|autoclass|autofunction|autodata|autoexception|py:type):: (\S+)$"
)

UNSHOWN = {"pointstamp.__version__"}
"""Exported names that need no entry."""

FILES = {"pointstamp.connectors.kafka.KafkaLog"}
"""Classes with the methods of a file, which the package calls and programs do not."""


class Entry(NamedTuple):
    """An entry of the reference."""

    directive: str
    name: str
    """Its name, with that of the module which the page imports it from."""
    option: str = ""
    """The line after it, with the members that are shown or left out."""

    @property
    def value(self) -> Any:
        module, _, name = self.name.rpartition(".")
        return getattr(importlib.import_module(module), name)

    def shows(self, method: str) -> bool:
        """Whether the page has a method of the class."""
        option, _, names = self.option[1:].partition(":")
        if option == "members":
            return method in names.replace(",", " ").split()
        return option != "no-members" and not (option == "exclude-members" and method in names.split())


def entries() -> Iterator[Entry]:
    module = "pointstamp"
    lines = (ROOT / "docs" / "reference.md").read_text(encoding="utf-8").splitlines()
    for line, after in itertools.pairwise([*lines, ""]):
        if found := DIRECTIVE.match(line):
            directive, name = found.groups()
            if directive == "currentmodule":
                module = name
                continue
            full = name if name.startswith("pointstamp.") else f"{module}.{name}"
            yield Entry(directive, full, after.strip())


ENTRIES = list(entries())


def exported(module: str) -> list[str]:
    names: list[str] = importlib.import_module(module).__all__
    return [f"{module}.{name}" for name in names]


def test_the_modules_are_those_that_programs_import() -> None:
    programs = [*(ROOT / "docs").glob("*.md"), *(ROOT / "examples").glob("*.py"), ROOT / "README.md"]
    text = "\n".join(path.read_text(encoding="utf-8") for path in programs)
    imported = set(re.findall(r"^ *(?:>>> )?(?:from|import) (pointstamp[\w.]*)", text, re.MULTILINE))
    for module in re.findall(r"^ *(?:>>> )?from pointstamp import (.*)$", text, re.MULTILINE):
        names = [f"pointstamp.{name.split()[0]}" for name in module.strip("()").split(",") if name.strip()]
        imported |= {name for name in names if is_module(name)}
    assert "pointstamp.connectors" in imported
    assert sorted(imported - set(MODULES)) == []


def is_module(name: str) -> bool:
    return importlib.util.find_spec(name) is not None


@pytest.mark.parametrize("module", MODULES)
def test_the_reference_has_what_a_module_exports(module: str) -> None:
    documented = {entry.name for entry in ENTRIES}
    values = [
        entry.value for entry in ENTRIES if entry.directive in ("autoclass", "autofunction", "autoexception")
    ]
    missing = [
        name
        for name in exported(module)
        if name not in documented | UNSHOWN and not any(Entry("", name).value is value for value in values)
    ]
    assert not missing


def methods(entry: Entry) -> Iterator[str]:
    """The names of a class's methods in the reference, those of the package's bases included."""
    return (name for name in public_methods(entry.value) if entry.shows(name))


def public_methods(kind: type) -> Iterator[str]:
    """The names of a class's methods, those of the package's bases included."""
    bases = [base for base in kind.__mro__ if base.__module__.startswith("pointstamp")]
    for name in {name: None for base in bases for name in vars(base)}:
        member = inspect.getattr_static(kind, name)
        data = isinstance(member, property) or inspect.isdatadescriptor(member)
        if not name.startswith("_") and not data and callable(getattr(kind, name)):
            yield name


def test_the_reference_leaves_out_no_method() -> None:
    missing = [
        f"{entry.name}.{name}"
        for entry in ENTRIES
        if entry.directive == "autoclass" and entry.name not in FILES
        for name in public_methods(entry.value)
        if not entry.shows(name)
    ]
    assert missing == []


def has_example(kind: type, name: str) -> bool:
    """Whether a method, or one of the package's that it overrides, has an example."""
    return any(
        ">>>" in (inspect.getdoc(vars(base)[name]) or "") for base in kind.__mro__ if name in vars(base)
    )


def test_every_public_method_has_an_example() -> None:
    missing = [
        f"{entry.name}.{name}"
        for entry in ENTRIES
        if entry.directive == "autoclass"
        for name in methods(entry)
        if not has_example(entry.value, name)
    ]
    assert not missing


def test_every_public_function_has_an_example() -> None:
    functions = [entry for entry in ENTRIES if entry.directive == "autofunction"]
    assert [entry.name for entry in functions if ">>>" not in (inspect.getdoc(entry.value) or "")] == []


def test_every_public_class_has_an_example() -> None:
    """Its own example, or that of one of its methods."""
    missing = [
        entry.name
        for entry in ENTRIES
        if entry.directive == "autoclass"
        and ">>>" not in (inspect.getdoc(entry.value) or "")
        and not any(has_example(entry.value, name) for name in methods(entry))
    ]
    assert not missing
