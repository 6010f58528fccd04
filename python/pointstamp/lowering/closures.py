"""Warns of functions that keep something in a variable around them, which checkpoints do not have.

Functions of `map`, `filter` and similar methods should depend on their records alone. A function that changes
a variable of the function around it, or a list or a dict in such a variable, has a state that is lost when
the program ends.
"""

from __future__ import annotations

import functools
import types
from collections import deque
from typing import TYPE_CHECKING, Any

from pointstamp._validation import Line, warn_usage

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from pointstamp.plan.node import Node

__all__ = ["kept_variable", "warn_of_kept"]

_CONTAINERS = (list, dict, set, bytearray, deque)

_CHANGES = frozenset(
    {
        "add",
        "append",
        "appendleft",
        "clear",
        "difference_update",
        "discard",
        "extend",
        "extendleft",
        "insert",
        "intersection_update",
        "pop",
        "popitem",
        "popleft",
        "remove",
        "reverse",
        "setdefault",
        "sort",
        "symmetric_difference_update",
        "update",
        "__setitem__",
        "__delitem__",
    }
)
"""The methods by which a container is changed."""


def warn_of_kept(nodes: Sequence[Node]) -> None:
    """Warns of each node whose function changes a variable around it."""
    for node in nodes:
        if node.kind.stage is None or node.arguments is None:
            continue
        function = node.arguments.get("function")
        variable = kept_variable(function)
        if variable is None:
            continue
        at = None if node.line is None else Line(node.line.file, node.line.number, "")
        warn_usage(
            f"the function of {node.kind.name} changes {variable}, which no checkpoint has: when the program "
            "is run again, it begins as it does now. Keep it by key with scan or state_machine, or in "
            "an operator that has state=",
            at,
        )


def kept_variable(function: Any) -> str | None:
    """Describes the variable around a function that the function changes; None where it changes none."""
    while isinstance(function, functools.partial):
        function = function.func
    if isinstance(function, types.BuiltinMethodType):
        owner = function.__self__
        if isinstance(owner, _CONTAINERS) and function.__name__ in _CHANGES:
            return f"a {type(owner).__name__}, by its method {function.__name__}()"
        return None
    if isinstance(function, types.MethodType):
        function = function.__func__
    if not isinstance(function, types.FunctionType):
        return None
    if f"{function.__module__}.".startswith("pointstamp."):
        return None
    around = dict(zip(function.__code__.co_freevars, function.__closure__ or (), strict=True))
    for name, changes in _touched(function.__code__):
        cell = around.get(name)
        if cell is None:
            continue
        if changes == "assigned":
            return f"the variable '{name}'"
        try:
            contents = cell.cell_contents
        except ValueError:
            continue  # not assigned yet
        if isinstance(contents, _CONTAINERS):
            return f"the {type(contents).__name__} in the variable '{name}'"
    return None


def _touched(code: types.CodeType) -> Iterator[tuple[str, str]]:
    """Yields the variables around some code that it assigns, and those whose value it seems to change."""
    import dis  # only where checkpoints are made

    loaded: list[str] = []
    for step in dis.get_instructions(code):
        if step.opname in ("STORE_DEREF", "DELETE_DEREF") and step.argval in code.co_freevars:
            yield step.argval, "assigned"
        elif step.opname in ("LOAD_DEREF", "LOAD_CLASSDEREF"):
            loaded.append(step.argval)
        elif step.opname in ("STORE_SUBSCR", "DELETE_SUBSCR") or (
            step.opname in ("LOAD_METHOD", "LOAD_ATTR") and step.argval in _CHANGES
        ):
            for name in loaded[-1:]:
                yield name, "changed"
    for constant in code.co_consts:
        if isinstance(constant, types.CodeType):
            for name, changes in _touched(constant):
                if name in code.co_freevars:
                    yield name, changes
