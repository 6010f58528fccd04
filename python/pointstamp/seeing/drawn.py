"""Drawings of a scope: its graph, and pictures of it.

What draws them is imported with the first picture.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pointstamp._errors import GraphError
from pointstamp.seeing.graph import Graph

if TYPE_CHECKING:
    from pointstamp import _core

__all__ = ["Drawn"]


class Drawn:
    """The part of a `Scope` that draws it."""

    __slots__ = ("_graph",)

    address: tuple[int, ...]
    core: _core.Scope
    name: str

    def __init__(self) -> None:
        self._graph: Graph | None = None

    @property
    def _outer(self) -> Drawn | None:
        return getattr(self, "parent", None)

    @property
    def graph(self) -> Graph:
        """The dataflow's operators, scopes and edges, once its block has ended.

        Raises:
            GraphError: While the dataflow is being built.
        """
        root: Drawn = self
        while root._outer is not None:
            root = root._outer
        if root._graph is None:
            raise GraphError(f"the dataflow '{root.name}' is drawn once its `with` block has ended")
        return root._graph

    def to_mermaid(self) -> str:
        """The scope as a flowchart of Mermaid, which Markdown on many sites shows as a picture.

        Raises:
            GraphError: While the dataflow is being built.

        Examples:
            >>> import pointstamp as ps
            >>> def main(worker):
            ...     with worker.dataflow() as scope:
            ...         scope.to_stream(list("ab")).exchange(ord).inspect(str)
            ...     return scope.to_mermaid()
            >>> print(ps.execute(main)[0])
            flowchart LR
              n0_1(["to_stream"])
              n0_2["exchange"]
              n0_3["inspect"]
              n0_1 == exchange ==> n0_2
              n0_2 --> n0_3
        """
        from pointstamp.seeing.drawing import to_mermaid

        return to_mermaid(self.graph, self.address)

    def to_dot(self) -> str:
        """The scope in the language of Graphviz.

        Raises:
            GraphError: While the dataflow is being built.
        """
        from pointstamp.seeing.drawing import to_dot

        return to_dot(self.graph, self.address)

    def _repr_html_(self) -> str | None:
        """Returns the picture that notebooks show; while the scope is being built, its `repr`."""
        from pointstamp.seeing.drawing import to_svg

        try:
            return to_svg(self.graph, self.address)
        except GraphError:
            return None
