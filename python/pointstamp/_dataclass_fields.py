"""Dataclasses as their fields, for the rows of collections.

Their classes are not called to make objects anew: a call may do more than set fields.
"""

from __future__ import annotations

import dataclasses
import functools
import inspect
import types
from typing import Any

__all__ = ["Fields", "fields_of"]


@dataclasses.dataclass(frozen=True)
class Fields:
    """Returns the fields of a dataclass by which its objects are compared."""

    names: tuple[str, ...]
    ordered: bool
    """Whether its objects are ordered by these fields, or not at all."""
    others: tuple[str, ...]
    """The slots of its objects that are not among the names."""
    plain: bool
    """Whether setting fields makes an object: not where the class's base makes it."""
    known: frozenset[str]
    """The attributes that need not be kept beside the names: these, and cached properties."""

    def take(self, value: Any) -> tuple[Any, ...]:
        """The fields of an object."""
        return tuple(getattr(value, name) for name in self.names)

    def has_more(self, value: Any) -> bool:
        """Whether an object has attributes that its fields do not say: then it is to be kept whole."""
        attributes = getattr(value, "__dict__", ())
        return (
            not self.plain
            or any(name not in self.known for name in attributes)
            or any(hasattr(value, name) for name in self.others)
        )

    def put(self, kind: type, parts: tuple[Any, ...]) -> Any:
        """An object with these fields, made as `copy` makes one; `None` where it is to be kept whole."""
        if not self.plain:
            return None
        made: Any = object.__new__(kind)
        for name, part in zip(self.names, parts, strict=True):
            object.__setattr__(made, name, part)
        return made


@functools.lru_cache(maxsize=1024)
def fields_of(kind: Any) -> Fields | None:
    """The fields of a class.

    `None` where its objects are not equal exactly when their fields are.
    """
    parameters: Any = getattr(kind, "__dataclass_params__", None)
    if parameters is None or not parameters.eq or "<locals>" in kind.__qualname__:
        return None
    fields = dataclasses.fields(kind)
    # The class with only the methods that dataclasses make.
    like: Any = dataclasses.make_dataclass(
        "Like",
        [(field.name, Any, dataclasses.field(default=None, compare=field.compare)) for field in fields],
        order=True,
    )
    if not _same_code(kind.__eq__, like.__eq__):
        return None
    names = tuple(field.name for field in fields if field.compare)
    static = {name: inspect.getattr_static(kind, name, None) for name in names}
    if any(hasattr(type(found), "__set__") and not _is_slot(found) for found in static.values()):
        return None
    attributes = [item for base in kind.__mro__ for item in vars(base).items()]
    slots = {name for name, found in attributes if _is_slot(found)}
    cached = {name for name, found in attributes if isinstance(found, functools.cached_property)}
    return Fields(
        names,
        all(_has_order_of(kind, like, name) for name in ("__lt__", "__gt__")),
        tuple(slots.difference(names)),
        kind.__new__ is object.__new__,
        frozenset(names) | cached,
    )


def _is_slot(found: Any) -> bool:
    return isinstance(found, types.MemberDescriptorType)


def _has_order_of(kind: Any, like: Any, name: str) -> bool:
    method = getattr(kind, name)
    return method is getattr(object, name) or _same_code(method, getattr(like, name))


def _same_code(method: Any, other: Any) -> bool:
    code, of_other = getattr(method, "__code__", None), other.__code__
    if code is None:
        return False
    return all(
        getattr(code, part) == getattr(of_other, part) for part in ("co_code", "co_names", "co_consts")
    )
