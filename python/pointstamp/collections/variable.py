"""Collections that are defined by themselves: the variables of a loop."""

from __future__ import annotations

from typing import TYPE_CHECKING, Generic, TypeVar

from pointstamp import _core
from pointstamp._errors import GraphError
from pointstamp._mistakes import suggesting
from pointstamp.collections.collection import Collection

if TYPE_CHECKING:
    from typing import Any

    from pointstamp.scope import Scope

__all__ = ["Variable"]

T = TypeVar("T")


@suggesting
class Variable(Generic[T]):
    """A collection of a loop: first what it starts from, then in each turn what the turn before set it to.

    Make one with `Scope.variable` in a scope of `iterative()`; several in one scope define each other. The
    loop ends when a turn changes none of them.

    Attributes:
        collection: What the variable is in a turn of the loop.

    Examples:
        What can be reached from 1, one step further in each turn:

        >>> import pointstamp as ps
        >>> def build(scope):
        ...     edges = scope.collection([(1, 2), (2, 3), (3, 1), (4, 5)])
        ...     with scope.iterative() as inner:
        ...         reached = inner.variable(scope.collection([1]).enter(inner))
        ...         steps = reached.collection.map(lambda node: (node, None)).join(edges.enter(inner))
        ...         nodes = steps.map(lambda step: step[1][1])
        ...         result = nodes.concat(reached.collection).distinct()
        ...         reached.set(result)
        ...         return result.leave().capture()
        >>> ps.example(build).extract()
        [(0, [(1, 1), (2, 1), (3, 1)])]
    """

    __slots__ = ("_initial", "_loop", "collection")

    def __init__(self, scope: Scope, initial: Collection[T] | None) -> None:
        if not scope.in_loop:
            raise GraphError(
                f"scope '{scope.name}' has no coordinate that could count the turns of a loop: make the "
                "variable in a scope of iterative()"
            )
        if initial is not None and not isinstance(initial, Collection):
            raise TypeError(f"a variable starts from a collection, not {initial!r}")
        if initial is not None and initial.scope is not scope:
            raise GraphError(
                f"a variable of scope '{scope.name}' cannot start from a collection of scope "
                f"'{initial.scope.name}': "
                f"bring it in with enter(scope) first"
            )
        missing = (
            f"a variable of scope '{scope.name}' {scope.address} is never set: call set() with the "
            "collection that it is in "
            f"the next turn of the loop"
        )
        self._loop, stream = _core.follow(scope.core, 1, missing)
        self._initial = initial
        around: Collection[Any] = Collection(scope, stream)
        self.collection: Collection[T] = around if initial is None else initial.concat(around)

    def set(self, result: Collection[T]) -> None:
        """Says what the variable is in the next turn. Call it once.

        Raises:
            GraphError: If the variable is set already, or `result` is of another scope.
            TypeError: If it is not a collection.
        """
        if not isinstance(result, Collection):
            raise TypeError(f"a variable is set to a collection, not {result!r}")
        if result.scope is not self.collection.scope:
            raise GraphError(
                f"a variable of scope '{self.collection.scope.name}' cannot be set to a collection of scope "
                f"'{result.scope.name}': it comes round in its own scope only"
            )
        # What it starts from is there in every turn; the turns after the first take it away again.
        change = result if self._initial is None else result.concat(self._initial.negate())
        self._loop.set(change.core)
