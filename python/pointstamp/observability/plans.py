"""Views of a dataflow's plan: as text, and as pictures.

A plan is shown as it was written, a node for each call of a method, or as it was lowered: consecutive
functions are one step, exchanges that move nothing are left out, and arrangements and other conversions are
shown where they are made.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from pointstamp.lowering.steps import Step
from pointstamp.observability.drawing import to_dot, to_mermaid, to_svg
from pointstamp.observability.graph import Edge, Graph, Operator, ScopeOf
from pointstamp.plan import shape
from pointstamp.plan.identity import digest, identities
from pointstamp.plan.node import Read

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from pointstamp.plan.node import Node
    from pointstamp.plan.plan import PlanScope

__all__ = ["PlanView", "PlannedNode"]


class PlannedNode(NamedTuple):
    """A node of a plan.

    Attributes:
        identity: Its name in every run of the program, on any number of workers: the scopes' names, and its
            own or its kind's, with a number where there are several.
        kind: The kind of operation.
        state: The kind of its operator's state: ``"none"``, ``"by key"``, ...
        line: Where the program made it, as ``"file.py:12"``; empty where that is not known.
        reads: The identities of the nodes that it reads.

    Examples:
        >>> import pointstamp as ps
        >>> def build(scope):
        ...     scope.to_stream(["a"]).map(len).probe()
        ...     return scope.plan()
        >>> for node in ps.example(build).nodes:
        ...     print(node.identity, node.kind, node.reads)
        Dataflow/to_stream to_stream ()
        Dataflow/map map ('Dataflow/to_stream',)
        Dataflow/probe probe ('Dataflow/map',)
    """

    identity: str
    kind: str
    state: str
    line: str
    reads: tuple[str, ...]


class PlanView:
    """A plan, to be printed or drawn: `Scope.plan` makes it.

    Attributes:
        nodes: The nodes, each after its inputs, except the ends of loops.
        digest: A text that is equal for equal plans, and differs where a name, a kind, a schema or an edge
            does. Functions are not compared.

    Examples:
        >>> import pointstamp as ps
        >>> def main(worker):
        ...     with worker.dataflow() as scope:
        ...         words = scope.collection(["a", "bb"]).map(lambda word: (len(word), word))
        ...         words.join(words.count())
        ...         written = scope.plan()
        ...     return written, scope.plan(lowered=True)
        >>> written, lowered = ps.execute(main)[0]
        >>> [node.kind for node in written.nodes]
        ['to_stream', 'to_collection', 'map', 'count', 'join']
        >>> written.nodes[3].reads
        ('Dataflow/map',)
        >>> for step in str(lowered).splitlines():
        ...     print(step.partition("<doctest")[0].rstrip())
        1   to_stream
        2   to_collection    reads 1
        3   map              reads 2
        4   arranged by key  reads 3
        5   count            reads 4
        6   join             reads 4, 5
    """

    def __init__(self, nodes: Sequence[Node], steps: Sequence[Step] | None) -> None:
        known = identities(nodes)
        self._known = known
        if steps is None:
            steps = [
                Step(
                    node.title,
                    [node],
                    node.scope,
                    [Read(read.output, read.output.form) for read in node.inputs],
                    [Read(output, output.form) for output in node.outputs],
                )
                for node in nodes
            ]
        self._steps = steps
        self.nodes = tuple(
            PlannedNode(
                known[node],
                node.kind.name,
                node.kind.state.value,
                node.line.text if node.line is not None else "",
                tuple(known[read.output.node] for read in node.inputs),
            )
            for node in nodes
        )
        self.digest = digest(nodes)

    def __str__(self) -> str:
        rows = []
        numbers: dict[Read, int] = {}
        begun: dict[Node, int] = {}
        for number, step in enumerate(self._steps, 1):  # an operator may be built after its readers
            numbers.update(dict.fromkeys(step.makes, number))
            begun.update(dict.fromkeys(step.nodes, number))
        for number, step in enumerate(self._steps, 1):
            reads = [str(numbers[read]) for read in step.reads if read in numbers]
            closes = step.nodes[0].closes
            said = f"reads {', '.join(reads)}" if reads else ""
            if closes is not None:
                said = f"{said}, closes {begun[closes]}"
            depth = "  " * (len(step.scope.address) - 1)
            where = "" if len(step.scope.address) == 1 else f"in {step.scope.name}"
            line = step.nodes[0].line
            rows.append(
                (f"{number} ", f"{depth}{step.title}", said, where, line.text if line is not None else "")
            )
        widths = [max((len(row[at]) for row in rows), default=0) for at in range(4)]
        texts = []
        for place, title, *others in rows:
            cells = [place.rjust(widths[0]), title.ljust(widths[1])]
            cells += [cell.ljust(width) for cell, width in zip(others, [*widths[2:], 0], strict=True)]
            texts.append("  ".join(cells).rstrip())
        return "\n".join(texts)

    def __repr__(self) -> str:
        return f"<PlanView of {len(self.nodes)} nodes>"

    def to_mermaid(self) -> str:
        """The plan as a flowchart of Mermaid.

        Examples:
            >>> import pointstamp as ps
            >>> def build(scope):
            ...     scope.to_stream(["a"]).map(len).probe()
            ...     return scope.plan()
            >>> print(ps.example(build).to_mermaid().splitlines()[0])
            flowchart LR
        """
        return to_mermaid(self._graph(), (0,))

    def to_dot(self) -> str:
        """The plan in the language of Graphviz.

        Examples:
            >>> import pointstamp as ps
            >>> def build(scope):
            ...     scope.to_stream(["a"]).map(len).probe()
            ...     return scope.plan()
            >>> print(ps.example(build).to_dot().split()[0])
            digraph
        """
        return to_dot(self._graph(), (0,))

    def _repr_html_(self) -> str:
        return to_svg(self._graph(), (0,))

    def _graph(self) -> Graph:
        return _Drawing(self._steps).graph()


class _Drawing:
    """Makes a graph of steps: each is an operator, and edges across a boundary are ports of the scope."""

    def __init__(self, steps: Sequence[Step]) -> None:
        self._steps = steps
        self._scopes: dict[PlanScope, ScopeOf] = {}
        self._children: dict[tuple[int, ...], int] = {}
        self._ports: dict[tuple[tuple[int, ...], str], int] = {}
        self._operators: list[Operator] = []
        # The readers of an output, from which edges are made when all operators exist: a custom operator may
        # be built after its readers.
        self._reading: list[tuple[Read, Callable[[int, int], Edge]]] = []
        # Where an output is made, in the scope that it is of: the number of an operator there, and its port.
        self._made: dict[Read, tuple[int, int]] = {}
        self._begun: dict[Node, tuple[tuple[int, ...], int]] = {}

    def graph(self) -> Graph:
        """The graph of all steps."""
        for step in self._steps:
            if step.nodes[0].kind is shape.ENTER:
                self._enter(step)
            elif step.nodes[0].kind is shape.LEAVE:
                self._leave(step)
            else:
                self._add(step)
        edges = [edge(*self._made[read]) for read, edge in self._reading if read in self._made]
        return Graph(self._scopes.values(), self._operators, edges)

    def _scope(self, scope: PlanScope) -> tuple[int, ...]:
        unknown = []
        at: PlanScope | None = scope
        while at is not None and at not in self._scopes:
            unknown.append(at)
            at = at.parent
        for one in reversed(unknown):
            if one.parent is None:
                address: tuple[int, ...] = (0,)
            else:
                around = self._scopes[one.parent].address
                address = (*around, self._next(around))
            self._scopes[one] = ScopeOf(address, one.name, one.dims, 0, 0, "")
        return self._scopes[scope].address

    def _next(self, scope: tuple[int, ...]) -> int:
        self._children[scope] = self._children.get(scope, 0) + 1
        return self._children[scope]

    def _port(self, scope: tuple[int, ...], side: str) -> int:
        port = self._ports.get((scope, side), 0)
        self._ports[scope, side] = port + 1
        return port

    def _reads(self, read: Read, scope: tuple[int, ...], target: int, port: int, pact: str) -> None:
        """Notes an edge in a scope, from the operator of an output to its reader."""
        self._reading.append((read, lambda source, made: Edge(scope, source, made, target, port, pact)))

    def _enter(self, step: Step) -> None:
        inner = self._scope(step.scope)
        port = self._port(inner, "in")
        for read in step.reads:
            self._reads(read, inner[:-1], inner[-1], port, "enter")
        self._made.update((made, (0, port)) for made in step.makes)

    def _leave(self, step: Step) -> None:
        [read] = step.reads
        inner = self._scope(read.output.node.scope)
        port = self._port(inner, "out")
        self._reads(read, inner, 0, port, "leave")
        self._made.update((made, (inner[-1], port)) for made in step.makes)

    def _add(self, step: Step) -> None:
        scope = self._scope(step.scope)
        closes = step.nodes[0].closes
        if closes is not None and closes in self._begun:
            _, number = self._begun[closes]
        else:
            number = self._next(scope)
            line = step.nodes[0].line
            made = "" if line is None else line.text
            # Without inputs it is drawn as a source.
            self._operators.append(
                Operator((*scope, number), step.title, len(step.reads), len(step.makes), made, ())
            )
            self._begun.update((node, (scope, number)) for node in step.nodes)
        for port, read in enumerate(step.reads):
            self._reads(read, scope, number, port, "pipeline")
        self._made.update((made, (number, port)) for port, made in enumerate(step.makes))
