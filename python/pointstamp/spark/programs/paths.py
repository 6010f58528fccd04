"""Distances from the nearest root, by rounds in a loop.

In each round the nodes whose distance got smaller send it to the targets of their edges. A worker sends a
node only distances less than all that it sent it before. The loop ends when no node has anything to send.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from pointstamp.pacts import Exchange, Pipeline
from pointstamp.spark.programs.adjacency import Adjacency
from pointstamp.spark.programs.gathering import column, pieces

if TYPE_CHECKING:
    from collections.abc import Callable

    import pointstamp as ps
    from pointstamp.spark.programs.gathering import Array, Batches
    from pointstamp.spark.programs.numbering import Numbered

__all__ = ["distances"]

_DISTANCES = pa.schema([("node", pa.int64()), ("distance", pa.float64())])

_FURTHEST = np.finfo(np.float64).max
"""The distance of a node that is only reached along an edge of infinite weight."""


def distances(graph: Numbered, roots: pa.Array, result: pa.Schema) -> ps.ArrowStream:
    """Returns the nodes that can be reached from a root, with their distances.

    Args:
        graph: The graph; edges without a weight have the length 1.
        roots: The names of the roots.
        result: The schema of the result: the name of a node and its distance.
    """

    def constructor(capabilities: list[Any], info: ps.OperatorInfo) -> Callable[..., None]:
        sender, found = capabilities
        edges: Batches = []
        names: Batches = []
        waiting: dict[Any, tuple[Any, Batches]] = {}
        state: list[Distances] = []

        def logic(inputs: list[Any], outputs: list[Any]) -> None:
            for batches, port in ((edges, inputs[0]), (names, inputs[1])):
                batches += (batch for _, batch in port)
            for message, batch in inputs[2]:
                if message.time not in waiting:
                    waiting[message.time] = message.retain(0), []
                waiting[message.time][1].append(batch)
            if len(inputs[0].frontier) or len(inputs[1].frontier):
                return
            if not state:
                state.append(Distances(edges, names, roots, info.peers))
                edges.clear()
                names.clear()
                send(outputs[0], sender, state[0].begun())
            frontier = inputs[2].frontier
            for time in sorted(time for time in waiting if not frontier.less_equal(time)):
                capability, batches = waiting.pop(time)
                send(outputs[0], capability, state[0].take(batches))
            if not len(frontier) and not waiting and state[0].open:
                state[0].open = False
                send(outputs[1], found, state[0].result(result))

        def send(output: Any, capability: Any, batches: Any) -> None:
            with capability, output.session(capability) as session:
                for batch in batches:
                    session.give(batch)

        return logic

    scope = graph.edges.scope
    with scope.iterative("paths") as inner:
        handle, again = inner.loop_variable(schema=_DISTANCES)
        builder = inner.operator("distances")
        builder.new_input(graph.edges.enter(inner), Exchange("src"))
        builder.new_input(graph.names.enter(inner), Pipeline())
        builder.new_input(again, Exchange("node"))
        _, tell = builder.new_output(_DISTANCES)
        number, found = builder.new_output(result)
        builder.set_summary(2, number, None)  # the distances are sent once, when the loop has ended
        builder.build(constructor)
        tell.connect_loop(handle)
        left: ps.ArrowStream = found.leave()
    return left


class Distances:
    """The distances of one worker's nodes, and the distances that it has sent to other nodes."""

    def __init__(self, edges: Batches, names: Batches, roots: pa.Array, peers: int) -> None:
        self.open = True
        self.peers = peers
        self.names = pa.chunked_array([batch["name"] for batch in names], roots.type).combine_chunks()
        count = len(self.names)
        weight = column(edges, "weight", np.float64) if edges and "weight" in edges[0].schema.names else None
        if weight is not None:
            weight = np.minimum(weight, _FURTHEST)
        out = Adjacency(column(edges, "src") // peers, column(edges, "dst"), count, weight)
        self.edges = out
        self.targets, self.to = np.unique(out.target, return_inverse=True)
        self.sent = np.full(len(self.targets), np.inf)
        self.distance = np.full(count, np.inf)
        self.distance[pc.is_in(self.names, roots).to_numpy(zero_copy_only=False)] = 0.0

    def begun(self) -> Any:
        """Returns the messages of the roots."""
        return self._messages_of(np.flatnonzero(self.distance == 0.0))

    def take(self, batches: Batches) -> Any:
        """Takes messages for nodes; returns the nodes' messages to others."""
        place = column(batches, "node") // self.peers
        distance = column(batches, "distance", np.float64)
        less = distance < self.distance[place]
        place = place[less]
        np.minimum.at(self.distance, place, distance[less])
        return self._messages_of(np.unique(place))

    def _messages_of(self, places: Array) -> Any:
        leaving, degrees = self.edges.leaving(places)
        far = np.repeat(self.distance[places], degrees)
        with np.errstate(over="ignore"):  # beyond the greatest number is as far as there is
            far = far + (1.0 if self.edges.weight is None else self.edges.weight[leaving])
        far = np.minimum(far, _FURTHEST)
        to = self.to[leaving]
        news = far < self.sent[to]
        to = to[news]
        np.minimum.at(self.sent, to, far[news])
        to = np.unique(to)
        return pieces(_DISTANCES, self.targets[to], self.sent[to])

    def result(self, schema: pa.Schema) -> Any:
        """The nodes that were reached, with their distances."""
        reached = np.flatnonzero(self.distance < np.inf)
        far = self.distance[reached]
        far = np.where(far == _FURTHEST, np.inf, far)
        if pa.types.is_integer(schema.field(1).type):
            far = far.astype(np.int64)
        return pieces(schema, self.names.take(pa.array(reached)), far)
