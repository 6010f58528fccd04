"""A program that is killed: sizes of the components of a graph that changes, in a table of SQLite.

Run as ``python graph.py FOLDER WORKERS PROCESSES``; with COMPONENTS=graphs in the environment, the library
finds the components. It goes on where the last checkpoint in the folder stands.
"""

import os
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import pointstamp as ps
from pointstamp import graphs
from pointstamp.connectors import JSONLinesSource, SQLiteSink


@dataclass(frozen=True, order=True)
class Label:
    """The name of a component, which only Python can compare."""

    node: int


def least(key: object, labels: list[tuple[Label, int]]) -> Iterator[Label]:
    """Returns the least label of a group."""
    yield min(label for label, count in labels if count > 0)


def size(label: object, nodes: list[tuple[int, int]]) -> Iterator[int]:
    """Returns the number of nodes of a component."""
    yield len(nodes)


def spread(edges: ps.Collection[Any]) -> ps.Collection[Any]:
    """Returns the label of each node, by a loop whose labels only Python can compare."""
    both = edges.concat(edges.map(lambda edge: (edge[1], edge[0]))).distinct()
    nodes = both.map(lambda edge: (edge[0], Label(edge[0]))).distinct()

    def turn(inner: ps.Scope, labels: ps.Collection[Any]) -> ps.Collection[Any]:
        near = both.enter(inner).join(labels, lambda node, other, label: (other, label))
        known: ps.Collection[Any] = near.concat(nodes.enter(inner))
        return known.map_groups(least)

    return nodes.iterate(turn)


def main(worker: ps.Worker) -> None:
    """Writes the changes of the sizes of all components, with their times."""
    folder = sys.argv[1]
    with worker.dataflow() as scope:
        lines = scope.read(JSONLinesSource(f"{folder}/edges*.jsonl"), time=lambda line: line["time"])
        edges = lines.map(lambda line: ((line["a"], line["b"]), line["diff"])).to_collection(diffs=True)
        if os.environ.get("COMPONENTS") == "graphs":
            labels = graphs.connected_components(edges).map(lambda pair: (pair[0], Label(pair[1])))
        else:
            labels = spread(edges)
        sizes = labels.map(lambda pair: (pair[1], pair[0])).map_groups(size)
        changes = sizes.updates().map(lambda change: (change[0][0].node, change[0][1], change[1], change[2]))
        changes.write(SQLiteSink(f"{folder}/sizes.db", "sizes", columns=["label", "size", "time", "diff"]))


if __name__ == "__main__":
    number_of_workers, processes = int(sys.argv[2]), int(sys.argv[3])
    checkpoint = ps.Checkpoint(os.path.join(sys.argv[1], "state"), every=0.05)
    config = ps.Config(workers=number_of_workers, checkpoint=checkpoint)
    ps.execute(main, config=config, processes=processes if processes > 1 else None)
