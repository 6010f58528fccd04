"""Weakly connected components, as a dataflow: a component is the smallest id that reaches a node.

    components(edges)    edges: an ArrowStream of (source, target); gives (node, component)

The edges of each time are a graph of their own.

A node's label is the smallest id that it has received, first its own. In each round of the loop the nodes
whose label got smaller send it to their neighbours, on any worker. A worker sends a node only ids smaller
than all that it sent it before, and only the smallest of a round. When no node has anything to send, the
loop's frontier has passed the time: the labels are final, and are sent out.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pyarrow as pa

import pointstamp as ps
from support.nodes import Array, Edges, Graphs, Nodes, Waiting, column, once

EDGES = pa.schema([("source", pa.int64()), ("target", pa.int64())])
COMPONENTS = pa.schema([("node", pa.int64()), ("component", pa.int64())])


def both_ways(edges: pa.RecordBatch) -> list[pa.RecordBatch]:
    """The edges, and the same from their ends to their starts."""
    source, target = edges["source"], edges["target"]
    return [pa.record_batch(pair, schema=EDGES) for pair in ([source, target], [target, source])]


def components(edges: ps.ArrowStream) -> ps.ArrowStream:
    """The components of each time's graph, which consists of the edges at the time."""
    neighbours = edges.map_batches(both_ways, EDGES, name="both ways")
    with edges.scope.iterative("components") as inner:
        handle, told = inner.loop_variable(schema=COMPONENTS)
        builder = inner.operator("smallest label")
        builder.new_input(neighbours.enter(inner), ps.Exchange("source"))
        builder.new_input(told, ps.Exchange("node"))
        _, tell = builder.new_output(COMPONENTS)
        found, labels = builder.new_output(COMPONENTS)
        builder.set_summary(1, found, None)  # the labels come out once, when the loop has ended
        builder.build(smallest_label)
        tell.connect_loop(handle)
        result: ps.ArrowStream = labels.leave()
    return result


def smallest_label(capabilities: list[ps.Capability], info: ps.OperatorInfo) -> Callable[..., None]:
    """The operator's constructor."""
    for capability in capabilities:
        capability.drop()
    graphs = Graphs(lambda edges: Labels(column(edges, "source"), column(edges, "target")), outputs=2)
    waiting: Waiting[pa.RecordBatch] = Waiting()

    def logic(inputs: list[Any], outputs: list[Any]) -> None:
        edges, told = inputs
        tell, found = outputs
        for message, batch in edges:
            graphs.announce(message, batch)
        for message, batch in told:
            waiting.add(message, batch)
        for (first, _), labels in graphs.complete(edges.frontier):
            with first, tell.session(first) as session:
                session.give(labels.told_by(np.arange(len(labels.nodes))))
        for capability, batches in waiting.over(told.frontier):
            labels = graphs.of(capability)
            smaller = labels.take(column(batches, "node"), column(batches, "component"))
            with capability, tell.session(capability) as session:
                session.give(labels.told_by(smaller))
        for (_, last), labels in graphs.over(told.frontier):
            with last, found.session(last) as session:
                session.give(pa.record_batch([labels.nodes.ids, labels.label], schema=COMPONENTS))

    return logic


class Labels:
    """The labels of one worker's nodes, and the labels that it has sent to their neighbours."""

    def __init__(self, source: Array, target: Array) -> None:
        self.nodes = Nodes(source)
        self.neighbours = Nodes(target)
        self.edges = Edges(self.nodes.at(source), self.neighbours.at(target), len(self.nodes))
        self.label = self.nodes.ids.copy()
        self.told = self.neighbours.ids.copy()  # no neighbour needs a label larger than its own id

    def take(self, ids: Array, labels: Array) -> Array:
        """Takes labels for nodes; returns the positions of nodes for which they are smaller."""
        at = self.nodes.at(ids)
        smaller = labels < self.label[at]
        at = at[smaller]
        np.minimum.at(self.label, at, labels[smaller])
        return once(at, len(self.nodes))

    def told_by(self, nodes: Array) -> pa.RecordBatch:
        """Returns the rows that these nodes send their neighbours, and that are news to them."""
        to, label = self.edges.of(nodes), np.repeat(self.label[nodes], self.edges.degrees(nodes))
        news = label < self.told[to]
        to = to[news]
        np.minimum.at(self.told, to, label[news])
        to = once(to, len(self.neighbours))
        return pa.record_batch([self.neighbours.ids[to], self.told[to]], schema=COMPONENTS)
