"""Digests of a program's functions, by which a function that has changed since a checkpoint is noticed.

A digest covers the code of the program's own functions, their defaults, and the variables around them:
functions, numbers, texts and truth values, alone or in tuples. Other objects are not in it: a path or a date
may differ from run to run. The package's own functions and operators are looked through, because they hold
the functions of the program.
"""

from __future__ import annotations

import functools
import sys
import types
from hashlib import blake2b
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["MAKER", "digest_of"]

MAKER = f"python-{sys.version_info[0]}.{sys.version_info[1]}"
"""The maker of the digests: another version of Python compiles a function to other code."""

_THROUGH = ("pointstamp.logic.", "pointstamp.expr.")
"""Objects of these modules are looked through."""

_DEEP = 8
"""The depth to which functions and objects of the package are followed."""


def digest_of(*values: Any, made: Any = None) -> str:
    """Returns the digest of the program's functions that values have; nothing where they have none.

    Args:
        values: Functions, and objects that hold some.
        made: A function that was made for this run. Of one that the program has made, the variables around it
            may hold state of the run, and only the code counts.
    """
    seen: set[int] = set()
    parts = [part for value in values for part in _parts(value, seen, 0, True)]
    parts += _parts(made, seen, 0, f"{getattr(made, '__module__', '')}.".startswith("pointstamp."))
    return blake2b("\0".join(parts).encode(), digest_size=16).hexdigest() if parts else ""


def _parts(value: Any, seen: set[int], depth: int, with_values: bool) -> Iterator[str]:
    if id(value) in seen or depth > _DEEP:
        return
    seen.add(id(value))
    inner: list[Any] = []
    if isinstance(value, types.FunctionType):
        inner += [cell.cell_contents for cell in value.__closure__ or () if _is_set(cell)]
        inner += value.__defaults__ or ()
        inner += (value.__kwdefaults__ or {}).values()
        if not f"{value.__module__}.".startswith("pointstamp."):
            yield _code(value.__code__)
            yield from (_constant(one) for one in inner if with_values and _is_plain(one))
    elif isinstance(value, types.MethodType):
        inner += [value.__func__, value.__self__]
    elif isinstance(value, functools.partial):
        inner += [value.func, *value.args, *value.keywords.values()]
    elif isinstance(value, (tuple, list)) and len(value) <= _DEEP:
        inner += value
    elif f"{type(value).__module__}.".startswith(_THROUGH):
        inner += _attributes(value)
    for one in inner:
        yield from _parts(one, seen, depth + 1, with_values)


def _attributes(value: Any) -> Iterator[Any]:
    yield from getattr(value, "__dict__", {}).values()
    for kind in type(value).__mro__:
        for name in kind.__dict__.get("__slots__", ()):
            if not name.startswith("__") and hasattr(value, name):
                yield getattr(value, name)


def _is_plain(value: Any) -> bool:
    if isinstance(value, (tuple, frozenset)):
        return all(map(_is_plain, value))
    return value is None or type(value) in (bool, int, float, complex, str, bytes)


def _is_set(cell: types.CellType) -> bool:
    try:
        _ = cell.cell_contents
    except ValueError:
        return False
    return True


def _code(code: types.CodeType) -> str:
    return repr((code.co_code, code.co_names, [_constant(one) for one in code.co_consts]))


def _constant(value: Any) -> str:
    if isinstance(value, types.CodeType):
        return _code(value)
    # The order of a set depends on the process.
    return repr(sorted(map(repr, value))) if isinstance(value, frozenset) else repr(value)
