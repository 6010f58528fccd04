"""What the graph examples over columns share: a worker's part of a graph, and rounds over it.

A worker owns the nodes whose number it gets by ``node % workers``, with the edges that lead out of them.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from typing import Any

import numpy as np
import pyarrow as pa

import pointstamp as ps

EDGES = pa.schema([("node", pa.int64()), ("to", pa.int64())])


class Part:
    """The edges that lead out of one worker's nodes."""

    def __init__(self, nodes: int, worker: ps.Worker) -> None:
        self.peers = worker.peers
        self.nodes = np.arange(worker.index, nodes, worker.peers)
        self.targets = np.zeros(0, np.int64)
        self.degrees = np.zeros(len(self.nodes), np.int64)
        self._starts = np.zeros(len(self.nodes) + 1, np.int64)
        self._batches: list[tuple[np.ndarray, np.ndarray]] = []

    def places(self, nodes: pa.Array) -> np.ndarray:
        """Where in `nodes` nodes of this worker stand."""
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
        """The nodes that edges from these lead to, and how many edges each of these has."""
        first, degrees = self._starts[places], self.degrees[places]
        skipped = np.cumsum(degrees) - degrees
        return self.targets[np.arange(degrees.sum()) + np.repeat(first - skipped, degrees)], degrees


def rounds(
    part: Part, step: Callable[[Any, list[pa.RecordBatch]], pa.RecordBatch | None]
) -> Callable[[ps.Capability, ps.OperatorInfo], Callable[..., None]]:
    """The constructor of an operator with edges and messages to nodes as its inputs.

    Once the graph is complete, `step` is called with each time for which there are messages, when no more of
    them can come, and with the messages; it returns those to send.
    """

    def build(capability: ps.Capability, info: ps.OperatorInfo) -> Callable[..., None]:
        capability.drop()
        waiting: dict[ps.Time, tuple[ps.Capability, list[pa.RecordBatch]]] = {}

        def logic(edges: Any, messages: Any, output: Any) -> None:
            for _, batch in edges:
                part.add(batch)
            for message, batch in messages:
                if message.time not in waiting:
                    waiting[message.time] = message.retain(), []
                waiting[message.time][1].append(batch)
            if edges.frontier:
                return  # the graph is not complete yet
            part.complete()
            for now in sorted(t for t in waiting if not messages.frontier.less_equal(t)):
                held, batches = waiting.pop(now)
                with held, output.session(held) as session:
                    answer = step(now, batches)
                    if answer is not None and answer.num_rows:
                        session.give(answer)

        return logic

    return build


def loop(
    edges: ps.ArrowStream, schema: pa.Schema, name: str, build: Any, first: ps.ArrowStream | None = None
) -> None:
    """A loop in which an operator answers messages to nodes, and the answers are the next messages."""
    by_node = ps.Exchange("node")
    with edges.scope.iterative() as inner:
        handle, messages = inner.loop_variable(schema=schema)
        if first is not None:
            messages = first.enter(inner).concat(messages)
        answers = edges.enter(inner).binary_frontier(messages, by_node, by_node, name, build, schema=schema)
        answers.connect_loop(handle)


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
    """What each worker knows of its nodes, as one array in the order of the nodes."""
    whole = np.empty(sum(map(len, parts)), parts[0].dtype)
    for index, part in enumerate(parts):
        whole[index :: len(parts)] = part
    return whole


def verdict(right: bool) -> int:
    """Says whether NetworkX agrees; the exit status."""
    print("as NetworkX says" if right else "NOT as NetworkX says")
    return 0 if right else 1
