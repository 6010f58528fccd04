"""The graph of a dataflow as data, and the could-result-in relation of its pointstamps.

Owns `Graph`. It is flat: the operators of all scopes, and between their ports the steps that a timestamp
takes. A step keeps some coordinates of a time, adds to them, and appends others; an edge changes nothing,
entering a scope appends zeros, leaving it removes them. Searches visit each port once for each time that no
earlier one dominates: people ask for them now and then.
"""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

__all__ = ["Edge", "Graph", "Operator", "Place", "ScopeOf", "less_equal"]

Coordinates = tuple[int, ...]


class Place(NamedTuple):
    """A port of an operator, by the operator's address.

    Examples:
        >>> import pointstamp as ps
        >>> def build(scope):
        ...     scope.to_stream([1]).map(abs).probe()
        ...     return scope
        >>> graph = ps.example(build).graph
        >>> [operator] = [one for one in graph.operators.values() if one.name == "map"]
        >>> from pointstamp.observability.graph import Place
        >>> place = Place(operator.address, output=False, port=0)
        >>> place in graph.reached(place, (0,)).times
        True
    """

    address: tuple[int, ...]
    output: bool
    port: int


class Operator(NamedTuple):
    """An operator, as its graph describes it.

    Attributes:
        address: The path to it: dataflow, scopes, its number in the scope.
        name: Its name.
        inputs: The number of inputs.
        outputs: The number of outputs.
        made: Where the program made it, as ``"file.py:12"``; empty where that is not known.
        steps: From input to output, the effect on a time: ``(input, output, keep, increments)``.

    Examples:
        >>> import pointstamp as ps
        >>> def build(scope):
        ...     scope.to_stream([1]).map(abs).probe()
        ...     return scope
        >>> graph = ps.example(build).graph
        >>> [(operator.name, operator.inputs, operator.outputs) for operator in graph.operators.values()]
        [('to_stream', 0, 1), ('map', 1, 1), ('probe', 1, 1)]
    """

    address: tuple[int, ...]
    name: str
    inputs: int
    outputs: int
    made: str
    steps: tuple[tuple[int, int, int, Coordinates], ...]


class Edge(NamedTuple):
    """An edge within a scope, between the numbers of operators there; 0 is the scope's boundary.

    `pact` is the way in which records move: ``"pipeline"``, ``"exchange"``, ``"broadcast"``, across a
    boundary (``"enter"``, ``"leave"``), or not at all (``"watch"``: the frontier alone).

    Examples:
        >>> import pointstamp as ps
        >>> def build(scope):
        ...     scope.to_stream([1]).exchange(abs).probe()
        ...     return scope
        >>> [edge.pact for edge in ps.example(build).graph.edges]
        ['exchange', 'pipeline']
    """

    scope: tuple[int, ...]
    source: int
    output: int
    target: int
    input: int
    pact: str


class ScopeOf(NamedTuple):
    """A scope: a dataflow, or a part of one that is an operator in the scope around it.

    Examples:
        >>> import pointstamp as ps
        >>> def build(scope):
        ...     with scope.iterative("loop") as inner:
        ...         scope.to_stream([1]).enter(inner).leave().probe()
        ...     return scope
        >>> [(one.name, one.dims) for one in ps.example(build).graph.scopes.values()]
        [('Dataflow', 1), ('loop', 2)]
    """

    address: tuple[int, ...]
    name: str
    dims: int
    inputs: int
    outputs: int
    made: str


class Graph:
    """The operators, scopes and edges of a dataflow.

    Examples:
        >>> import pointstamp as ps
        >>> def build(scope):
        ...     scope.to_stream([1]).map(abs).probe()
        ...     return scope
        >>> graph = ps.example(build).graph
        >>> len(graph.operators), len(graph.edges)
        (3, 2)
    """

    def __init__(
        self, scopes: Iterable[ScopeOf], operators: Iterable[Operator], edges: Iterable[Edge]
    ) -> None:
        self.scopes = {scope.address: scope for scope in scopes}
        self.operators = {operator.address: operator for operator in operators}
        self.edges = tuple(edges)
        self._steps: dict[Place, list[tuple[Place, int, Coordinates]]] = {}
        zeros = {scope.dims: (0,) * scope.dims for scope in self.scopes.values()}
        # By scope, the ports at its boundary that have an edge: others lead nowhere, and a log may say any
        # number of them.
        entries: dict[tuple[int, ...], set[int]] = {}
        exits: dict[tuple[int, ...], set[int]] = {}
        for edge in self.edges:
            dims = self.scopes[edge.scope].dims
            source, target = (*edge.scope, edge.source), (*edge.scope, edge.target)
            self._add(Place(source, True, edge.output), Place(target, False, edge.input), dims, zeros[dims])
            entries.setdefault(target if edge.target else (), set()).add(edge.input)
            exits.setdefault(source if edge.source else (), set()).add(edge.output)
            if edge.source == 0:
                entries.setdefault(edge.scope, set()).add(edge.output)
            if edge.target == 0:
                exits.setdefault(edge.scope, set()).add(edge.input)
        for operator in self.operators.values():
            for entry, exit, keep, increments in operator.steps:
                begin = Place(operator.address, False, entry)
                self._add(begin, Place(operator.address, True, exit), keep, increments)
        for scope in self.scopes.values():
            outer = self.scopes.get(scope.address[:-1])
            if outer is None:
                continue
            boundary = (*scope.address, 0)
            for port in sorted(entries.get(scope.address, ())):
                begin = Place(scope.address, False, port)
                self._add(begin, Place(boundary, True, port), outer.dims, zeros[scope.dims])
            for port in sorted(exits.get(scope.address, ())):
                end = Place(scope.address, True, port)
                self._add(Place(boundary, False, port), end, outer.dims, zeros[outer.dims])

    @classmethod
    def from_data(cls, data: Mapping[str, Any]) -> Graph:
        """The graph that `to_data` described.

        Examples:
            >>> import pointstamp as ps
            >>> from pointstamp.observability.graph import Graph
            >>> def build(scope):
            ...     scope.to_stream([1]).map(abs).probe()
            ...     return scope
            >>> graph = ps.example(build).graph
            >>> Graph.from_data(graph.to_data()).operators == graph.operators
            True
        """
        return cls(
            [ScopeOf(tuple(address), *rest) for address, *rest in data["scopes"]],
            [
                Operator(
                    tuple(address),
                    name,
                    inputs,
                    outputs,
                    made,
                    tuple((i, o, keep, tuple(more)) for i, o, keep, more in steps),
                )
                for address, name, inputs, outputs, made, steps in data["operators"]
            ],
            [Edge(tuple(scope), *rest) for scope, *rest in data["edges"]],
        )

    def to_data(self) -> dict[str, Any]:
        """The graph as lists, numbers and texts, for JSON.

        Examples:
            >>> import pointstamp as ps
            >>> def build(scope):
            ...     scope.to_stream([1]).map(abs).probe()
            ...     return scope
            >>> sorted(ps.example(build).graph.to_data())
            ['edges', 'operators', 'scopes']
        """
        return {
            "scopes": [list(scope) for scope in self.scopes.values()],
            "operators": [list(operator) for operator in self.operators.values()],
            "edges": [list(edge) for edge in self.edges],
        }

    def name(self, address: tuple[int, ...]) -> str:
        """The name of an operator or scope; a boundary's is its scope's.

        Examples:
            >>> import pointstamp as ps
            >>> def build(scope):
            ...     scope.to_stream([1]).map(abs, name="sizes").probe()
            ...     return scope
            >>> graph = ps.example(build).graph
            >>> "sizes" in [graph.name(address) for address in graph.operators]
            True
        """
        found = self.operators.get(address) or self.scopes.get(address)
        if found is None and address[-1:] == (0,):
            return self.name(address[:-1])
        return found.name if found is not None else f"operator {list(address)}"

    def loops(self, address: tuple[int, ...]) -> list[ScopeOf]:
        """The scopes around an operator that append coordinates, from the outermost.

        Examples:
            >>> import pointstamp as ps
            >>> def build(scope):
            ...     with scope.iterative("loop") as inner:
            ...         scope.to_stream([1]).enter(inner).map(abs, name="inside").leave().probe()
            ...     return scope
            >>> graph = ps.example(build).graph
            >>> [address] = [address for address, one in graph.operators.items() if one.name == "inside"]
            >>> [scope.name for scope in graph.loops(address)]
            ['loop']
        """
        around = [self.scopes.get(address[:depth]) for depth in range(2, len(address))]
        return [scope for scope in around if scope is not None and scope.dims > self._outer_dims(scope)]

    def _outer_dims(self, scope: ScopeOf) -> int:
        outer = self.scopes.get(scope.address[:-1])
        return scope.dims if outer is None else outer.dims

    def _add(self, source: Place, target: Place, keep: int, increments: Coordinates) -> None:
        self._steps.setdefault(source, []).append((target, keep, increments))

    def reached(self, start: Place, time: Coordinates) -> Reached:
        """All that could result from a pointstamp: the least times at each port, and the ways there.

        Examples:
            >>> import pointstamp as ps
            >>> from pointstamp.observability.graph import Place
            >>> def build(scope):
            ...     scope.to_stream([1]).map(abs).probe()
            ...     return scope
            >>> graph = ps.example(build).graph
            >>> [address] = [address for address, one in graph.operators.items() if one.name == "to_stream"]
            >>> len(graph.reached(Place(address, True, 0), (5,)).times) > 1
            True
        """
        found = Reached({start: [time]}, {})
        waiting = deque([(start, time)])
        while waiting:
            place, held = waiting.popleft()
            if held not in found.times[place]:
                continue  # a lesser time has come since
            for target, keep, increments in self._steps.get(place, ()):
                result = (
                    *(a + b for a, b in zip(held[:keep], increments, strict=False)),
                    *increments[keep:],
                )
                known = found.times.setdefault(target, [])
                if not any(less_equal(other, result) for other in known):
                    known[:] = [other for other in known if not less_equal(result, other)]
                    known.append(result)
                    found.before[target, result] = (place, held)
                    waiting.append((target, result))
        return found

    def way(self, reached: Reached, place: Place, time: Coordinates) -> list[str]:
        """The names of the operators on a way to a place, from where the search began.

        Examples:
            >>> import pointstamp as ps
            >>> from pointstamp.observability.graph import Place
            >>> def build(scope):
            ...     scope.to_stream([1]).map(abs).probe()
            ...     return scope
            >>> graph = ps.example(build).graph
            >>> at = {one.name: address for address, one in graph.operators.items()}
            >>> reached = graph.reached(Place(at["to_stream"], True, 0), (5,))
            >>> graph.way(reached, Place(at["probe"], False, 0), (5,))
            ['probe']
        """
        at: tuple[Place, Coordinates] | None = (place, time)
        names: list[tuple[tuple[int, ...], str]] = []
        while at is not None:
            address = at[0].address
            if address[-1] != 0 and (not names or names[-1][0] != address):
                names.append((address, self.name(address)))
            at = reached.before.get(at)
        return [name for _, name in reversed(names)]


class Reached(NamedTuple):
    """The times and places that could result from a pointstamp.

    Attributes:
        times: By port, the least times that could appear there.
        before: For each of them, where it comes from.

    Examples:
        >>> from pointstamp.observability.graph import Place, Reached
        >>> port = Place((0, 1), True, 0)
        >>> Reached({port: [(2,)]}, {}).by(port, (3,))
        (2,)
    """

    times: dict[Place, list[Coordinates]]
    before: dict[tuple[Place, Coordinates], tuple[Place, Coordinates]]

    def by(self, place: Place, time: Coordinates) -> Coordinates | None:
        """A time at a place that is not after this one.

        Examples:
            >>> from pointstamp.observability.graph import Place, Reached
            >>> port = Place((0, 1), True, 0)
            >>> reached = Reached({port: [(2,)]}, {})
            >>> reached.by(port, (3,)), reached.by(port, (1,))
            ((2,), None)
        """
        return next((found for found in self.times.get(place, ()) if less_equal(found, time)), None)


def less_equal(left: Coordinates, right: Coordinates) -> bool:
    """The product order.

    >>> less_equal((1, 2), (1, 3)), less_equal((1, 2), (2, 1))
    (True, False)
    """
    return len(left) == len(right) and all(a <= b for a, b in zip(left, right, strict=True))
