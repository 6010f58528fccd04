"""The common part of the graph examples over columns: a worker's part of each epoch, and rounds over it.

A worker owns the nodes whose number is its own by ``node % workers``, with the edges that lead out of them.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from typing import Any, Generic, TypeVar

import numpy as np
import pyarrow as pa

import pointstamp as ps
from support.epochs import PerEpoch

EDGES = pa.schema([("node", pa.int64()), ("to", pa.int64())])


class Part:
    """The edges that lead out of one worker's nodes, in one epoch."""

    def __init__(self, nodes: int, index: int, peers: int) -> None:
        self.peers = peers
        self.nodes = np.arange(index, nodes, peers)
        self.targets = np.zeros(0, np.int64)
        self.degrees = np.zeros(len(self.nodes), np.int64)
        self._starts = np.zeros(len(self.nodes) + 1, np.int64)
        self._batches: list[tuple[np.ndarray, np.ndarray]] = []

    def places(self, nodes: pa.Array) -> np.ndarray:
        """Returns the places of nodes of this worker in `nodes`."""
        places: np.ndarray = nodes.to_numpy() // self.peers
        return places

    def add(self, batch: pa.RecordBatch) -> None:
        """Takes edges."""
        self._batches.append((self.places(batch["node"]), batch["to"].to_numpy()))

    def complete(self) -> None:
        """Brings the edges into the order of their nodes, so that a node's are one slice."""
        if not self._batches:
            return
        place = np.concatenate([place for place, _ in self._batches])
        target = np.concatenate([target for _, target in self._batches])
        self._batches.clear()
        self.targets = target[np.argsort(place, kind="stable")]
        self.degrees = np.bincount(place, minlength=len(self.nodes))
        np.cumsum(self.degrees, out=self._starts[1:])

    def after(self, places: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """The targets of edges from these nodes, and the number of edges of each node."""
        first, degrees = self._starts[places], self.degrees[places]
        skipped = np.cumsum(degrees) - degrees
        return self.targets[np.arange(degrees.sum()) + np.repeat(first - skipped, degrees)], degrees


S = TypeVar("S")
Step = Callable[[S, Part, Any, list[pa.RecordBatch]], "pa.RecordBatch | None"]


class Rounds(Generic[S]):
    """An operator with edges and messages to nodes as its inputs; each epoch is a graph of its own.

    Once an epoch's graph is complete, `step` is called with each time for which there are messages, when no
    more of them can come: with the state of the epoch, this worker's part of the graph, the time and the
    messages. It returns those to send. `over` is given the epoch and its state when its loop has ended.
    """

    def __init__(
        self, nodes: int, state: Callable[[Part], S], step: Step[S], over: Callable[[Any, S], None]
    ) -> None:
        self._nodes, self._state, self._step, self._over = nodes, state, step, over

    def build(self, capability: ps.Capability, info: ps.OperatorInfo) -> Callable[..., None]:
        """The operator's constructor."""
        capability.drop()
        waiting: dict[ps.Time, tuple[ps.Capability, list[pa.RecordBatch]]] = {}

        def part_and_state() -> tuple[Part, S]:
            part = Part(self._nodes, info.index, info.peers)
            return part, self._state(part)

        epochs = PerEpoch(part_and_state)

        def logic(edges: Any, messages: Any, output: Any) -> None:
            for message, batch in edges:
                epochs.at(message.time)[0].add(batch)
            for message, batch in messages:
                if message.time not in waiting:
                    waiting[message.time] = message.retain(), []
                waiting[message.time][1].append(batch)
            over = [edges.frontier, messages.frontier]
            for now in sorted(t for t in waiting if not any(f.less_equal(t) for f in over)):
                part, state = epochs.at(now)
                part.complete()
                held, batches = waiting.pop(now)
                with held, output.session(held) as session:
                    answer = self._step(state, part, now, batches)
                    if answer is not None and answer.num_rows:
                        session.give(answer)
            for epoch, (_, state) in epochs.forget(*over):
                self._over(epoch, state)

        return logic


def loop(
    edges: ps.ArrowStream, schema: pa.Schema, name: str, build: Any, first: ps.ArrowStream | None = None
) -> ps.ArrowStream:
    """A loop in which an operator answers messages to nodes, and the answers are the next messages.

    Returns its output: a probe of it shows which epochs are over.
    """
    by_node = ps.Exchange("node")
    with edges.scope.iterative() as inner:
        handle, messages = inner.loop_variable(schema=schema)
        if first is not None:
            messages = first.enter(inner).concat(messages)
        answers = edges.enter(inner).binary_frontier(messages, by_node, by_node, name, build, schema=schema)
        answers.connect_loop(handle)
        left: ps.ArrowStream = answers.leave()
    return left


def arguments(description: str, *, edges: int) -> argparse.ArgumentParser:
    """The command line that the examples have in common."""
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("--nodes", type=int, default=200_000)
    parser.add_argument("--edges", type=int, default=edges)
    parser.add_argument("--workers", type=int, default=2)
    return parser


def random_edges(options: argparse.Namespace, seed: int) -> np.ndarray:
    """The edges of a random graph, as two columns."""
    return np.random.default_rng(seed).integers(0, options.nodes, (options.edges, 2))


def batch_of(edges: np.ndarray) -> pa.RecordBatch:
    """Edges in two columns as a batch."""
    return pa.record_batch([edges[:, 0].copy(), edges[:, 1].copy()], schema=EDGES)


def in_order(parts: list[np.ndarray]) -> np.ndarray:
    """Returns the knowledge of each worker of its nodes, as one array in the order of the nodes."""
    whole = np.empty(sum(map(len, parts)), parts[0].dtype)
    for index, part in enumerate(parts):
        whole[index :: len(parts)] = part
    return whole


def verdict(right: bool) -> int:
    """Says whether NetworkX agrees; the exit status."""
    print("as NetworkX says" if right else "NOT as NetworkX says")
    return 0 if right else 1
