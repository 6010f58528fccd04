"""What people get wrong when they write a dataflow, refused where it is written, with the cure.

Owns the checks of functions and names; that of pacts is `pacts.pact_of`. They run while a dataflow is built.
What can only be seen in a function's result is checked by the operator that calls it.
"""

from __future__ import annotations

import functools
import types
from typing import Any, NoReturn

__all__ = ["function_of", "refuse_async", "unknown_attribute", "without_with"]

_COROUTINE = 0x80 | 0x200
"""The flags of code that is `async def`, also of one that yields."""

_OTHER_WORDS = {
    "apply": ("map", "map_batches"),
    "collect": ("capture",),
    "drop_duplicates": ("distinct",),
    "each": ("inspect",),
    "foreach": ("inspect",),
    "group_by": ("aggregate", "counts"),
    "groupby": ("aggregate", "counts"),
    "key_by": ("exchange", "aggregate"),
    "merge": ("join", "concat"),
    "reduce": ("aggregate", "accumulate"),
    "repartition": ("exchange",),
    "select": ("map", "map_batches"),
    "shuffle": ("exchange",),
    "to_pandas": ("capture", "map_batches"),
    "union": ("concat",),
    "unique": ("distinct",),
    "where": ("filter", "map_batches"),
    "with_columns": ("map_batches",),
}
"""What other libraries call what there is here."""


def function_of(operator: str, function: Any) -> Any:
    """The function that an operator was given, which must be one whose result can be used at once.

    Raises:
        TypeError: If it is not a function, or is `async def`.
    """
    if not callable(function):
        raise TypeError(f"{operator} needs a function, not {function!r}")
    refuse_async(operator, function)
    return function


def refuse_async(operator: str, function: Any) -> None:
    """Refuses a function whose result is a coroutine.

    Raises:
        TypeError: It says what to do instead.
    """
    inner = function
    while True:
        if isinstance(inner, functools.partial):
            inner = inner.func
        elif isinstance(inner, types.MethodType):
            inner = inner.__func__
        else:
            break
    code = getattr(inner, "__code__", None) or getattr(type(inner).__call__, "__code__", None)
    if isinstance(code, types.CodeType) and code.co_flags & _COROUTINE:
        name = getattr(inner, "__qualname__", repr(inner))
        raise TypeError(
            f"{operator} was given {name}, which is async: it would return a coroutine that nobody awaits. "
            "Give it a plain function: one that has to wait can call asyncio.run"
        )


def unknown_attribute(thing: object, what: str, name: str) -> NoReturn:
    """Says that there is no such attribute, and which there is.

    Raises:
        AttributeError: Always.
    """
    message = f"{what} has no attribute '{name}'"
    if not name.startswith("_"):
        import difflib

        known = [other for other in dir(type(thing)) if not other.startswith("_")]
        close = [other for other in _OTHER_WORDS.get(name.lower(), ()) if other in known]
        close = close or difflib.get_close_matches(name, known, n=2)
        if close:
            message += f": there is {' and '.join(close)}"
    raise AttributeError(message, name=name, obj=thing)


def without_with(call: str, name: str) -> NoReturn:
    """Says that a scope is used before its block was entered.

    Raises:
        AttributeError: Always.
    """
    raise AttributeError(
        f"{call} is a block that has not been entered, and has no attribute '{name}': write "
        f"`with {call} as scope:` and build inside it"
    )
