"""PageRank, by turns in a loop: in each, every node shares its rank among the nodes that it links to.

Every worker sends all others, in each turn, the numbers that all need: its number of nodes, the ranks of its
nodes without links, and the change of its ranks. So all workers end in the same turn.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from pointstamp.pacts import Broadcast, Exchange, Pipeline
from pointstamp.spark.programs.adjacency import Adjacency
from pointstamp.spark.programs.gathering import column, pieces

if TYPE_CHECKING:
    from collections.abc import Callable

    import pointstamp as ps
    from pointstamp.spark.programs.gathering import Batches
    from pointstamp.spark.programs.numbering import Numbered

__all__ = ["ranks"]

_SHARES = pa.schema([("node", pa.int64()), ("worker", pa.int64()), ("share", pa.float64())])
_PARTS = pa.schema(
    [("worker", pa.int64()), ("nodes", pa.int64()), ("loose", pa.float64()), ("change", pa.float64())]
)


def ranks(
    graph: Numbered, result: pa.Schema, *, iterations: int, damping: float, tolerance: float
) -> ps.ArrowStream:
    """Returns the rank of each node.

    Args:
        graph: The links.
        result: The schema of the result: the name of a node and its rank.
        iterations: The greatest number of turns.
        damping: The share of a rank that is passed on along links.
        tolerance: The loop ends after a turn that changes all ranks together by this or less; 0: never.
    """

    def constructor(capabilities: list[Any], info: ps.OperatorInfo) -> Callable[..., None]:
        held = list(capabilities)
        links: Batches = []
        names: Batches = []
        arrived: dict[int, tuple[Batches, Batches]] = {}
        state: list[Ranks] = []

        def logic(inputs: list[Any], outputs: list[Any]) -> None:
            for batches, port in ((links, inputs[0]), (names, inputs[1])):
                batches += (batch for _, batch in port)
            for which, port in enumerate(inputs[2:]):
                for message, batch in port:
                    arrived.setdefault(message.time[-1], ([], []))[which].append(batch)
            if len(inputs[0].frontier) or len(inputs[1].frontier):
                return
            if not state:
                state.append(Ranks(links, names, info, damping))
                links.clear()
                names.clear()
            while held:
                sharing, totals, last = held
                if any(port.frontier.less_equal(sharing.time) for port in inputs[2:]):
                    return
                turn = sharing.time[-1]
                shares, parts = arrived.pop(turn, ([], []))
                if turn and state[0].turned(turn, shares, parts, iterations, tolerance):
                    with outputs[2].session(last) as session:
                        for batch in pieces(result, state[0].names, state[0].rank):
                            session.give(batch)
                    while held:
                        held.pop().drop()
                    return
                if turn:
                    with outputs[0].session(sharing) as session:
                        for batch in state[0].shares():
                            session.give(batch)
                with outputs[1].session(totals) as session:
                    session.give(state[0].part())
                for capability in (sharing, totals):
                    capability.downgrade((*sharing.time[:-1], turn + 1))

        return logic

    scope = graph.edges.scope
    with scope.iterative("ranks") as inner:
        handle, shares = inner.loop_variable(schema=_SHARES)
        parts_handle, parts = inner.loop_variable(schema=_PARTS)
        builder = inner.operator("ranks")
        builder.new_input(graph.edges.enter(inner), Exchange("src"))
        builder.new_input(graph.names.enter(inner), Pipeline())
        builder.new_input(shares, Exchange("node"))
        builder.new_input(parts, Broadcast())
        _, share = builder.new_output(_SHARES)
        _, part = builder.new_output(_PARTS)
        number, found = builder.new_output(result)
        for input in (2, 3):
            builder.set_summary(input, number, None)  # the ranks are sent once, when the loop has ended
        builder.build(constructor)
        share.connect_loop(handle)
        part.connect_loop(parts_handle)
        left: ps.ArrowStream = found.leave()
    return left


class Ranks:
    """The ranks of one worker's nodes.

    Turn 0 sends the numbers of nodes of the workers; from turn 1 on nodes share their ranks.
    """

    def __init__(self, links: Batches, names: Batches, info: ps.OperatorInfo, damping: float) -> None:
        self.index, self.peers, self.damping = info.index, info.peers, damping
        kind = names[0].schema.field("name").type if names else pa.int64()
        self.names = pa.chunked_array([batch["name"] for batch in names], kind).combine_chunks()
        out = Adjacency(column(links, "src") // info.peers, column(links, "dst"), len(self.names))
        self.degrees = out.degrees()
        self.loose = self.degrees == 0
        self.targets, self.to = np.unique(out.target, return_inverse=True)
        self.rank = np.zeros(len(self.names))
        self.change = 0.0

    def turned(self, turn: int, shares: Batches, parts: Batches, iterations: int, tolerance: float) -> bool:
        """Takes the messages of a turn; returns whether the ranks are final."""
        order = np.argsort(column(parts, "worker"))
        count = int(column(parts, "nodes").sum())
        if turn == 1:
            self.rank[:] = 1.0 / max(count, 1)
            return iterations == 0
        change = column(parts, "change", np.float64)[order].sum()
        if tolerance and turn > 2 and change <= tolerance:
            return True  # by the ranks of the turn before, which this one would change less
        node, share = column(shares, "node"), column(shares, "share", np.float64)
        by_worker = np.argsort(column(shares, "worker"), kind="stable")  # the same sum in each run
        given = np.bincount(node[by_worker] // self.peers, share[by_worker], minlength=len(self.rank))
        loose = column(parts, "loose", np.float64)[order].sum()
        before = self.rank
        self.rank = (1 - self.damping + self.damping * loose) / max(count, 1) + self.damping * given
        self.change = float(np.abs(self.rank - before).sum())
        return turn > iterations

    def shares(self) -> Any:
        """The ranks that this worker's nodes pass on, added up by the node that gets them."""
        each = np.repeat(self.rank / np.maximum(self.degrees, 1), self.degrees)
        passed = np.bincount(self.to, each, minlength=len(self.targets))
        return pieces(_SHARES, self.targets, np.full(len(self.targets), self.index), passed)

    def part(self) -> pa.RecordBatch:
        """Returns the numbers that the other workers need."""
        loose = float(self.rank[self.loose].sum())
        return pa.record_batch([[self.index], [len(self.rank)], [loose], [self.change]], schema=_PARTS)
