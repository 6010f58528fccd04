"""The ends of loops, which are connected after the body of the loop."""

from __future__ import annotations

from typing import TYPE_CHECKING, Generic, TypeVar

from pointstamp._validation import suggesting

if TYPE_CHECKING:
    from pointstamp.lowering.scope import BuildingScope
    from pointstamp.plan.node import Node, Output

__all__ = ["LoopHandle"]

T = TypeVar("T")


@suggesting
class LoopHandle(Generic[T]):
    """The end of a loop that is still open: pass it to `Stream.connect_loop`.

    Examples:
        >>> import pointstamp as ps
        >>> def build(scope):
        ...     handle, again = scope.feedback()
        ...     print(handle)
        ...     scope.to_stream([1]).concat(again).filter(lambda n: n < 0).connect_loop(handle)
        ...     print(handle)
        >>> ps.example(build)
        <LoopHandle not connected>
        <LoopHandle connected>
    """

    __slots__ = ("_node", "_plan")

    def __init__(self, scope: BuildingScope, node: Node) -> None:
        self._plan = scope._building.plan
        self._node = node

    def __repr__(self) -> str:
        of = " of record batches" if self._node.output.schema is not None else ""
        connected = self._node not in self._plan.missing
        return f"<LoopHandle{of} {'connected' if connected else 'not connected'}>"

    def _connect(self, scope: BuildingScope, output: Output) -> None:
        """Closes the loop with the stream that defines it: see `BuildingScope._connect`."""
        scope._connect(self._node, output)
