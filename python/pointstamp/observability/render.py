"""The pictures that a scope renders of its graph and its plan.

The modules that draw are imported with the first picture.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pointstamp.errors import GraphError
from pointstamp.lowering.scope import BuildingScope

if TYPE_CHECKING:
    from pointstamp import _core
    from pointstamp.observability.graph import Graph
    from pointstamp.observability.plans import PlanView

__all__ = ["Drawable"]


class Drawable(BuildingScope):
    """The part of a `Scope` that draws it."""

    __slots__ = ("_graph", "_installed")

    def __init__(self, engine: _core.Scope, parent: BuildingScope | None) -> None:
        super().__init__(engine, parent)
        self._installed: _core.Installed | None = None
        self._graph: Graph | None = None

    @property
    def _outer(self) -> Drawable | None:
        return getattr(self, "parent", None)

    @property
    def graph(self) -> Graph:
        """The dataflow's operators, scopes and edges, once its block has ended.

        Raises:
            GraphError: While the dataflow is being built.
        """
        root: Drawable = self
        while root._outer is not None:
            root = root._outer
        if root._graph is None:
            if root._installed is None:
                ended = root._plan_scope.complete
                why = f"cannot be drawn: {ended}" if ended else "is drawn once its `with` block has ended"
                raise GraphError(f"the dataflow '{root.name}' {why}")
            from pointstamp.observability.graph import Graph  # few programs look at it

            root._graph = Graph.from_data(root._installed.data())
        return root._graph

    def plan(self, *, lowered: bool = False) -> PlanView:
        """The plan of the dataflow so far: the nodes of its method calls, which can be printed and drawn.

        Args:
            lowered: Shows the steps that became operators, once the dataflow's block has ended: functions
                that follow one another are one step, and arrangements stand where they are made.

        Raises:
            GraphError: If the lowered plan is requested, and the dataflow has not been lowered yet.

        Examples:
            >>> import pointstamp as ps
            >>> def main(worker):
            ...     with worker.dataflow() as scope:
            ...         scope.to_stream([1, 2]).map(str).filter(str.isdigit).probe()
            ...     return scope.plan(lowered=True)
            >>> for step in str(ps.execute(main)[0]).splitlines():
            ...     print(step.partition("<doctest")[0].rstrip())
            1  to_stream
            2  map > filter  reads 1
            3  probe         reads 2
        """
        from pointstamp.observability.plans import PlanView

        building = self._building
        if lowered and not building.lowered:
            ended = self._plan_scope.root.complete
            why = f"was not lowered: {ended}" if ended else "is lowered when its `with` block ends"
            raise GraphError(f"the dataflow '{self._plan_scope.root.name}' {why}: plan() shows what it has")
        return PlanView(building.plan.with_unbuilt(), building.steps() if lowered else None)

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
        from pointstamp.observability.drawing import to_mermaid

        return to_mermaid(self.graph, self.address)

    def to_dot(self) -> str:
        """The scope in the language of Graphviz.

        Raises:
            GraphError: While the dataflow is being built.

        Examples:
            >>> import pointstamp as ps
            >>> def build(scope):
            ...     scope.to_stream(["a"]).map(len).probe()
            ...     return scope
            >>> print(ps.example(build).to_dot().split()[0])
            digraph
        """
        from pointstamp.observability.drawing import to_dot

        return to_dot(self.graph, self.address)

    def _repr_html_(self) -> str | None:
        """Returns the picture that notebooks show; while the scope is being built, its `repr`."""
        from pointstamp.observability.drawing import to_svg

        try:
            return to_svg(self.graph, self.address)
        except GraphError:
            return None
