"""The plan of a dataflow: its nodes in the order in which methods appended them, and its scopes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pointstamp.errors import GraphError
from pointstamp.plan.node import Node, Output, Read

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pointstamp.plan.node import Kind

__all__ = ["Plan", "PlanScope", "placed_at"]


class PlanScope:
    """A scope of a plan.

    Attributes:
        name: Its name.
        address: The path to it from the worker's root.
        dims: The number of coordinates of timestamps in the scope.
        parent: The scope around it; None for the dataflow's.
        line: The line of the program that made it.
        complete: Why nothing can be added any more; None while something can.
        failed: Whether the block raised an error in which a nested scope was built.
    """

    __slots__ = ("address", "complete", "dims", "failed", "line", "name", "parent")

    def __init__(
        self, name: str, address: tuple[int, ...], dims: int, parent: PlanScope | None, line: Any = None
    ) -> None:
        self.name = name
        self.address = address
        self.dims = dims
        self.parent = parent
        self.line = line
        self.complete: str | None = None
        self.failed = False

    @property
    def root(self) -> PlanScope:
        """The dataflow's scope."""
        scope: PlanScope = self
        while scope.parent is not None:
            scope = scope.parent
        return scope

    def check_building(self) -> None:
        """Checks that nodes may still be added.

        Raises:
            GraphError: If they may not.
        """
        scope: PlanScope = self
        while scope.complete is None:
            if scope.parent is None:
                return
            scope = scope.parent
        raise GraphError(
            f"nothing can be added to scope '{self.name}' any more: {scope.complete}; build inside the "
            "`with` block"
        )

    def check_reads(self, output: Output, reader: str) -> None:
        """Checks that a node here may read an output.

        Raises:
            GraphError: If it is an output of another scope. The message says how the stream gets here.
        """
        there = output.node.scope
        if there is self:
            return
        if self.parent is there:
            cure = "call .enter(scope) on it first"
        elif there.parent is self:
            cure = "call .leave() on it first"
        elif there.root is not self.root:
            cure = (
                "that is another dataflow: capture the stream there, and replay it here with scope.replay; "
                "of a collection, arrange it there and import its trace"
            )
        else:
            cure = "streams cross one scope boundary at a time, with .enter(scope) and .leave()"
        raise GraphError(
            f"'{reader}' in scope {self} cannot read the stream of '{output.node.title}', which is in scope "
            f"{there}: {cure}"
        )

    def __str__(self) -> str:
        return f"'{self.name}' {list(self.address)}"


def placed_at(made: Node | PlanScope) -> str:
    """Returns the line that made a node or a scope as a part of a sentence; empty where it is not known."""
    return f" (made at {made.line.text})" if made.line is not None and made.line.text else ""


class Plan:
    """The nodes that the methods of a dataflow's streams and scopes have appended so far.

    Attributes:
        nodes: In the order in which they were appended: a node is after its inputs.
        missing: Nodes that need another call before the dataflow is complete, with the error where it is
            missing.
        keyed: Pairs of collections by key that joins share, by collection and key; see
            `pointstamp.api.keyed_rows`.
        alike: The first of equal nodes, of which joins share the pairs; None before the first join.
        passed_over: Nodes that some readers read past: without another reader, no operator is made of them.
    """

    __slots__ = ("alike", "keyed", "missing", "nodes", "passed_over")

    def __init__(self) -> None:
        self.nodes: list[Node] = []
        self.missing: dict[Node, str] = {}
        self.keyed: dict[Any, Any] = {}
        self.alike: Any = None
        self.passed_over: set[Node] = set()

    def require(self, node: Node, problem: str) -> None:
        """Notes that the dataflow is not complete until `fulfil` is called for the node."""
        self.missing[node] = problem

    def fulfil(self, node: Node) -> None:
        """Notes that the requirement of a node is met."""
        del self.missing[node]

    def check_complete(self) -> None:
        """Checks that the requirements are met.

        Raises:
            GraphError: If it is not. It names the line of the node.
        """
        for node, problem in self.missing.items():
            raise GraphError(f"{problem}{placed_at(node)}")

    def append(
        self,
        scope: PlanScope,
        kind: Kind,
        reads: Sequence[Output | Read],
        outputs: Sequence[Output],
        arguments: dict[str, Any],
        name: str | None = None,
        line: Any = None,
        crosses: bool = False,
        closes: Node | None = None,
    ) -> Node:
        """Appends a node.

        Args:
            scope: The scope that it is in.
            kind: Its kind.
            reads: Its inputs: outputs in their plain forms, or in a form that it names.
            outputs: The outputs that it makes.
            arguments: Further arguments of lowering.
            name: Its name in the program.
            line: The line of the program.
            crosses: Whether it reads an output of another scope, which the caller has checked.
            closes: The node that begins the loop which this one closes.

        Raises:
            GraphError: If the scope is complete, or an input is of another scope.
        """
        scope.check_building()
        inputs = []
        for one in reads:
            read = one if isinstance(one, Read) else Read(one, one.form.plain)
            inputs.append(read)
            if read.output.node.scope is not scope and not crosses:
                scope.check_reads(read.output, name or kind.name)
        node = Node(kind, inputs, outputs, arguments, name, line, scope, closes)
        node.number = len(self.nodes)
        self.nodes.append(node)
        return node

    def with_unbuilt(self) -> list[Node]:
        """Returns the nodes, followed by the inputs of theirs that are made, but not appended yet."""
        found = dict.fromkeys(self.nodes)
        unseen = list(self.nodes)
        while unseen:
            for read in unseen.pop().inputs:
                if read.output.node not in found:
                    found[read.output.node] = None
                    unseen.append(read.output.node)
        return list(found)

    def add(self, node: Node) -> None:
        """Appends a node that was made before, with outputs that others may read already."""
        node.number = len(self.nodes)
        self.nodes.append(node)
