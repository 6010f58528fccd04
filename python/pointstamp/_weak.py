"""Callbacks that do not keep the object alive that they are bound to."""

from __future__ import annotations

import weakref
from typing import TYPE_CHECKING, ParamSpec, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["weakly"]

P = ParamSpec("P")
R = TypeVar("R")


def weakly(method: Callable[P, R]) -> Callable[P, R | None]:
    """A bound method that does nothing, and returns None, once its object was freed.

    For callbacks that an object of the extension keeps, and that refer to it: the collector cannot see such
    cycles.
    """
    held = weakref.WeakMethod(method)

    def call(*args: P.args, **kwargs: P.kwargs) -> R | None:
        bound = held()
        return None if bound is None else bound(*args, **kwargs)

    return call
