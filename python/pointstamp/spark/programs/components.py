"""Weakly connected components of a graph whose edges all exist from the start.

Every worker reduces its own edges, where they are, to a forest: for each of its nodes the least node that its
own edges lead to. Forests are then merged in pairs, in as many steps as the logarithm of the number of
workers; the last merge gives the components. Edges do not move between workers. The worker that merges last
holds every node once.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from pointstamp.pacts import Exchange, Pipeline
from pointstamp.spark.programs.encoding import encoded
from pointstamp.spark.programs.gathering import gathered, pieces

if TYPE_CHECKING:
    from collections.abc import Iterator

    import pointstamp as ps
    from pointstamp.pacts import Pact
    from pointstamp.spark.programs.gathering import Array, Batches

__all__ = ["components"]


def components(edges: ps.ArrowStream, node: pa.DataType) -> ps.ArrowStream:
    """Returns ``(node, component)`` for each node of edges ``(src, dst)``; a component is its least node.

    Rows without a ``dst`` are nodes that are there also without an edge.
    """
    scope = edges.scope
    forest = pa.schema([("to", pa.int64()), ("src", node), ("dst", node)])
    found = pa.schema([("node", node), ("component", node)])

    def reduce(step: int) -> Any:
        """Makes forests of the workers whose number is a multiple of `step`, for twice as large a step."""

        def compute(info: ps.OperatorInfo, batches: Batches) -> list[Iterator[pa.RecordBatch]]:
            values, roots = _forest(batches, node)
            to = np.full(len(roots), info.index // (2 * step) * (2 * step))
            return [pieces(forest, to, values, values.take(pa.array(roots)))]

        return compute

    def last(_: ps.OperatorInfo, batches: Batches) -> list[Iterator[pa.RecordBatch]]:
        values, roots = _forest(batches, node)
        return [pieces(found, values, values.take(pa.array(roots)))]

    step = 1
    pact: Pact = Pipeline()
    while step < scope.peers:
        [edges] = gathered(scope, "merge forests", [(edges, pact)], [forest], reduce(step))
        step, pact = 2 * step, Exchange("to")
    return gathered(scope, "components", [(edges, pact)], [found], last)[0]


def _forest(batches: Batches, node: pa.DataType) -> tuple[pa.Array, Array]:
    """The nodes of some edges in order, and for each the position of the least that it is connected with."""
    sources = [batch["src"].cast(node) for batch in batches]
    targets = [pc.coalesce(batch["dst"].cast(node), own) for batch, own in zip(batches, sources, strict=True)]
    columns = [sources, targets]
    values, (source, target) = encoded(columns, node)
    return values, least_connected(source, target, len(values))


def least_connected(source: Array, target: Array, count: int) -> Array:
    """For each of the nodes 0 to `count`, the least that edges, in either direction, connect it with.

    Each node with a lesser neighbour takes the least of them as its parent. The trees of these parents become
    the nodes of the next round, in which edges within a tree are left out.
    """
    label = np.arange(count)
    while len(source):
        parent = np.arange(count)
        np.minimum.at(parent, np.maximum(source, target), np.minimum(source, target))
        while True:
            further = parent[parent]
            if np.array_equal(further, parent):
                break
            parent = further
        label = parent[label]
        source, target = parent[source], parent[target]
        between = source != target
        source, target = source[between], target[between]
    return label
