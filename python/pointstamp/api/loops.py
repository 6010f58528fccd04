"""The ends of loops, which are connected after what is in the loop."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Generic, TypeVar

from pointstamp import _core
from pointstamp._validation import suggesting
from pointstamp.errors import GraphError
from pointstamp.plan import shape

if TYPE_CHECKING:
    from pointstamp.api.scope import Scope
    from pointstamp.plan.node import Node, Output
    from pointstamp.plan.plan import Plan

__all__ = ["LoopHandle"]

T = TypeVar("T")


@suggesting
class LoopHandle(Generic[T]):
    """The end of a loop that is still open: pass it to `Stream.connect_loop`."""

    __slots__ = ("_node", "_plan")

    def __init__(self, plan: Plan, node: Node) -> None:
        self._plan = plan
        self._node = node
        plan.require(
            node,
            f"a loop variable of scope {node.scope} is never connected: call connect_loop(handle) on the "
            "stream that defines it, in the same scope",
        )

    def __repr__(self) -> str:
        of = " of record batches" if self._node.output.schema is not None else ""
        return f"<LoopHandle{of} {'connected' if self._connected else 'not connected'}>"

    @property
    def _connected(self) -> bool:
        return self._node not in self._plan.missing

    def _connect(self, scope: Scope, output: Output) -> None:
        """Closes the loop with what defines it.

        Raises:
            GraphError: If it is closed already, or the stream has another scope or other columns.
        """
        schema: Any = self._node.output.schema
        if problem := _core.loop_difference(schema, output.schema):
            raise GraphError(f"this stream cannot define the loop variable: {problem}")
        if self._connected:
            raise GraphError(
                "this loop variable is connected already: a loop has one definition; concat the streams first"
            )
        self._node.scope.check_reads(output, self._node.title)
        scope._append(shape.CONNECT, [output], closes=self._node)
        self._plan.fulfil(self._node)
