"""Names the variable that keeps a function from being sent to another process.

A pickler says which type it cannot pickle, and not where it found it: a lock, a file or a connection may be a
variable around the function, a global that it reads, an attribute or an item of one, or a default.
"""

from __future__ import annotations

import functools
import types
from typing import TYPE_CHECKING, Any

from pointstamp.errors import type_name

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

__all__ = ["unpicklable"]

_DEPTH = 8
"""Steps from a function, through variables, attributes and items, that are looked at."""


def unpicklable(function: Any, dumps: Callable[[Any], bytes]) -> str:
    """Describes why a function cannot be pickled: ``"variable 'lock' of build, a _thread.lock"``.

    Args:
        function: A function that cannot be pickled, or a value that refers to one.
        dumps: Pickles a value, or raises.

    Returns:
        The description; empty where it is not found.
    """
    place, value, seen = "", function, {id(function)}
    for _ in range(_DEPTH):
        for found, part in _parts(value):
            if id(part) not in seen and not _can_be_pickled(part, dumps):
                seen.add(id(part))
                place = f"{found} of {place}" if place and found.startswith(("attribute", "item")) else found
                value = part
                break
        else:
            break
    return f"{place}, a {type_name(value)}" if place else ""


def _can_be_pickled(value: Any, dumps: Callable[[Any], bytes]) -> bool:
    try:
        dumps(value)
    except Exception:
        return False
    return True


def _parts(value: Any) -> Iterator[tuple[str, Any]]:
    """Yields the values that a value refers to, each with the name that a program gives it."""
    if isinstance(value, functools.partial):
        yield "the function of a partial", value.func
        for argument in (*value.args, *value.keywords.values()):
            yield "an argument of a partial", argument
    elif isinstance(value, types.MethodType):
        yield f"the object of method {value.__name__}", value.__self__
        yield f"method {value.__name__}", value.__func__
    elif isinstance(value, types.FunctionType):
        yield from _variables(value)
    elif isinstance(value, dict):
        for key, item in value.items():
            yield f"item {key!r}", item
    elif isinstance(value, list | tuple | set | frozenset):
        for number, item in enumerate(value):
            yield f"item {number}", item
    else:
        for name, item in list(getattr(value, "__dict__", {}).items()):
            yield f"attribute '{name}'", item


def _variables(function: types.FunctionType) -> Iterator[tuple[str, Any]]:
    name = function.__qualname__
    for variable, cell in zip(function.__code__.co_freevars, function.__closure__ or (), strict=True):
        try:
            yield f"variable '{variable}' of {name}", cell.cell_contents
        except ValueError:  # it is not bound yet
            continue
    for code in _codes(function.__code__):
        for variable in code.co_names:
            if variable in function.__globals__:
                yield f"global variable '{variable}' of {name}", function.__globals__[variable]
    for default in (*(function.__defaults__ or ()), *(function.__kwdefaults__ or {}).values()):
        yield f"a default of {name}", default


def _codes(code: types.CodeType) -> Iterator[types.CodeType]:
    """Yields the code of a function, and of the functions that it defines."""
    yield code
    for constant in code.co_consts:
        if isinstance(constant, types.CodeType):
            yield from _codes(constant)
