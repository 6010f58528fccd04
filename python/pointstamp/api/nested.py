"""The block in which a scope inside another is built: ``with scope.scoped() as inner:``.

Owns when the inner scope is made, at the block's beginning, and closed, at its end. A block that raises
leaves it open: the dataflow around it is discarded.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NoReturn

from pointstamp._validation import without_with
from pointstamp.errors import GraphError

if TYPE_CHECKING:
    from collections.abc import Callable
    from types import TracebackType

    from pointstamp import _core
    from pointstamp.api.scope import Scope

__all__ = ["Nested"]


class Nested:
    """The block in which a nested scope is built."""

    __slots__ = ("_dims", "_make", "_name", "_parent", "_scope")

    def __init__(
        self, parent: Scope, name: str, dims: int, make: Callable[[_core.Scope, Scope], Scope]
    ) -> None:
        if dims < 0:
            raise GraphError(f"a scope cannot append {dims} coordinates: dims is 0 or more")
        self._parent = parent
        self._name = name
        self._dims = dims
        self._make = make
        self._scope: Scope | None = None

    if not TYPE_CHECKING:  # type checkers find out by themselves

        def __getattr__(self, name: str) -> NoReturn:
            call = {0: "scoped()", 1: "iterative()"}.get(self._dims, f"scoped(dims={self._dims})")
            without_with(f"scope.{call}", name)

    def __enter__(self) -> Scope:
        if self._scope is not None:
            raise GraphError(f"the scope '{self._name}' was built already: make another")
        self._parent._plan_scope.check_building()
        self._scope = self._make(self._parent.core.nested(self._name, self._dims), self._parent)
        return self._scope

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        assert self._scope is not None
        if kind is None:
            self._scope._plan_scope.complete = "its block has ended"
