"""The `name=` that every operator takes.

Owns `named`, which has the methods of a class keep to the `name` that they take: while such a method runs,
the operators that it makes are called by the name. The one that has the method's own title gets the name
itself, others get it in front: ``join(name="pairs")`` makes ``pairs: arrange`` and ``pairs``.
"""

from __future__ import annotations

from contextlib import contextmanager
from functools import wraps
from typing import TYPE_CHECKING, Any, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

__all__ = ["named", "named_later", "naming"]

C = TypeVar("C", bound=type)

_TITLES = {
    "capture_into": "capture",
    "collection": "to_stream",
    "column_collection": "input",
    "concat": "concatenate",
    "import_trace": "import",
    "input_from": "input",
    "loop_variable": "feedback",
    "new_collection": "input",
    "new_input": "input",
    "new_unordered_input": "unordered input",
    "probe_with": "probe",
}
"""Names of operators whose methods are named otherwise."""


@contextmanager
def naming(scope: Any, title: str, name: str | None) -> Iterator[None]:
    """Names the operators that are made in the block.

    Args:
        scope: Where they are made, a scope of the package.
        title: What the one is called that gets the name itself.
        name: The name.
    """
    scope.core.begin_naming(title, name)
    try:
        yield
    finally:
        scope.core.end_naming()


@contextmanager
def named_later(scope: Any, title: str = "", name: str | None = None) -> Iterator[None]:
    """Names an operator that is made when it is first read, whatever the name of its reader."""
    with naming(scope, title, None), naming(scope, title, name):
        yield


def named(kind: C, title: str = "{}") -> C:
    """Has the methods of a class keep to the `name` that they take by keyword.

    Args:
        kind: The class: a scope, or something with a `scope`.
        title: What the operator of a method is called, made of the method's name.
    """
    for method, function in list(vars(kind).items()):
        defaults = getattr(function, "__kwdefaults__", None) or {}
        if not method.startswith("_") and defaults.get("name", title) is None:
            own = title.format(_TITLES.get(method, method))
            setattr(kind, method, _keeping(function, own))
    return kind


def _keeping(method: Callable[..., Any], title: str) -> Callable[..., Any]:
    @wraps(method)
    def keeps(self: Any, *args: Any, name: str | None = None, **given: Any) -> Any:
        if name is None:
            return method(self, *args, **given)
        with naming(getattr(self, "scope", self), title, name):
            return method(self, *args, name=name, **given)

    return keeps
