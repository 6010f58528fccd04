"""PageRank, as a dataflow: in each round of a loop every node shares its rank with its targets.

    pagerank(edges)      edges: an ArrowStream of (source, target); gives (node, rank)

The ranks are NetworkX's: what nodes without links have is shared among all, the ranks add up to 1, and the
loop ends when a round changes them by less than `tolerance` for each node. How much a round has changed is
not known to one worker: each broadcasts its part, and in the next round all of them add up the same parts
in the same order, and come to the same decision.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pyarrow as pa

import pointstamp as ps
from support.nodes import NONE, Array, Graphs, Nodes, column

SHARES = pa.schema([("node", pa.int64()), ("share", pa.float64())])
PARTS = pa.schema(
    [("worker", pa.int64()), ("nodes", pa.int64()), ("loose", pa.float64()), ("change", pa.float64())]
)
RANKS = pa.schema([("node", pa.int64()), ("rank", pa.float64())])


def pagerank(
    edges: ps.ArrowStream, *, damping: float = 0.85, tolerance: float = 1e-6, rounds: int = 100
) -> ps.ArrowStream:
    """The ranks of the nodes of each time's graph, which consists of the edges at the time.

    Args:
        edges: The links; a link that is there twice counts twice.
        damping: The share of a rank that is passed on along links.
        tolerance: The change of a rank, on average, at which the loop ends.
        rounds: The loop ends after as many rounds in any case.
    """

    def rank_nodes(capabilities: list[ps.Capability], info: ps.OperatorInfo) -> Callable[..., None]:
        """The operator's constructor: one capability for each output passes from round to round."""
        for capability in capabilities:
            capability.drop()
        shares: dict[Any, list[pa.RecordBatch]] = {}
        parts: dict[Any, list[pa.RecordBatch]] = {}

        def make(graph: list[pa.RecordBatch]) -> Ranks:
            return Ranks(damping, info.index, column(graph, "source"), column(graph, "target"))

        graphs = Graphs(make, outputs=3)

        def goes_on(capabilities: list[ps.Capability], ranks: Ranks, outputs: list[Any]) -> bool:
            """Runs the round of the capabilities; returns whether there is another."""
            sharing, telling, last = capabilities
            now: Any = sharing.time
            number = now[-1]
            given = ranks.round(number, shares.pop(now, []), parts.pop(now, [])) if number else ranks.links()
            if number > 2 and (ranks.change <= tolerance * ranks.count or number > rounds + 2):
                with outputs[2].session(last) as session:
                    session.give(ranks.final())
                for capability in capabilities:
                    capability.drop()
                return False
            with outputs[0].session(sharing) as session:
                session.give(given)
            with outputs[1].session(telling) as session:
                session.give(ranks.part())
            for capability in (sharing, telling):
                capability.downgrade((*now[:-1], number + 1))
            return True

        def logic(inputs: list[Any], outputs: list[Any]) -> None:
            edges, incoming, told, begun = inputs
            for message, batch in edges:
                graphs.announce(message, batch)
            for message, _ in begun:
                graphs.announce(message)
            for arrived, input in ((shares, incoming), (parts, told)):
                for message, batch in input:
                    arrived.setdefault(message.time, []).append(batch)
            graphs.complete(edges.frontier, begun.frontier)
            for epoch, (capabilities, ranks) in sorted(graphs.open.items()):
                going = True
                while going and not any(
                    input.frontier.less_equal(capabilities[0].time) for input in (incoming, told)
                ):
                    going = goes_on(capabilities, ranks, outputs)
                if not going:
                    del graphs.open[epoch]

        return logic

    # Every worker takes part in the rounds of an epoch, whether or not it has edges of it.
    begun = edges.map_batches(lambda batch: batch.slice(0, 1), name="begun")
    with edges.scope.iterative("pagerank") as inner:
        handle, shares = inner.loop_variable(schema=SHARES)
        parts_handle, parts = inner.loop_variable(schema=PARTS)
        builder = inner.operator("ranks")
        builder.new_input(edges.enter(inner), ps.Exchange("source"))
        builder.new_input(shares, ps.Exchange("node"))
        builder.new_input(parts, ps.Broadcast())
        builder.new_input(begun.enter(inner), ps.Broadcast())
        _, share = builder.new_output(SHARES)
        _, part = builder.new_output(PARTS)
        found, ranks = builder.new_output(RANKS)
        for input in (1, 2):
            builder.set_summary(input, found, None)  # the ranks come out once, when the loop has ended
        builder.build(rank_nodes)
        share.connect_loop(handle)
        part.connect_loop(parts_handle)
        result: ps.ArrowStream = ranks.leave()
    return result


class Ranks:
    """The ranks of one worker's nodes.

    Round 0 announces the nodes that are linked to; in round 1 every worker knows its nodes, in round 2 all
    know how many there are, and from round 3 on shares arrive.
    """

    def __init__(self, damping: float, index: int, source: Array, target: Array) -> None:
        self.damping, self.index = damping, index
        self.source, self.targets = source, Nodes(target)
        self.to = self.targets.at(target)
        self.count = 0  # the nodes of all workers
        self.change = np.inf  # the ranks' in the round before, everywhere
        self.own_change = self.own_loose = 0.0
        self.rank = self.before = np.zeros(0)
        self.nodes = Nodes(NONE)

    def links(self) -> pa.RecordBatch:
        """Informs the targets of this worker's links that they are nodes."""
        return pa.record_batch([self.targets.ids, np.zeros(len(self.targets))], schema=SHARES)

    def round(self, number: int, shares: list[pa.RecordBatch], parts: list[pa.RecordBatch]) -> pa.RecordBatch:
        """Processes the messages of a round; returns the shares for the next."""
        if number == 1:
            self.nodes = Nodes(np.concatenate([self.source, column(shares, "node")]))
            self.source = self.nodes.at(self.source)
            degree = np.bincount(self.source, minlength=len(self.nodes))
            self.loose = np.flatnonzero(degree == 0)
            self.degree = np.maximum(degree, 1)
            return pa.record_batch([[], []], schema=SHARES)
        order = np.argsort(column(parts, "worker"))
        self.count = int(column(parts, "nodes").sum())
        loose = column(parts, "loose")[order].sum()
        self.before = self.rank
        if number == 2:
            self.rank = np.full(len(self.nodes), 1 / max(self.count, 1))
        else:
            self.change = column(parts, "change")[order].sum() if number > 3 else np.inf
            given = np.bincount(
                self.nodes.at(column(shares, "node")), column(shares, "share"), minlength=len(self.nodes)
            )
            self.rank = (1 - self.damping + self.damping * loose) / max(self.count, 1) + self.damping * given
            self.own_change = float(np.abs(self.rank - self.before).sum())
        self.own_loose = float(self.rank[self.loose].sum())
        each = (self.rank / self.degree)[self.source]
        return pa.record_batch(
            [self.targets.ids, np.bincount(self.to, each, minlength=len(self.targets))], schema=SHARES
        )

    def part(self) -> pa.RecordBatch:
        """Returns the part of this worker's ranks that the other workers have to know."""
        return pa.record_batch(
            [[self.index], [len(self.nodes)], [self.own_loose], [self.own_change]], schema=PARTS
        )

    def final(self) -> pa.RecordBatch:
        """The ranks after the round whose change was small enough."""
        return pa.record_batch([self.nodes.ids, self.before], schema=RANKS)
