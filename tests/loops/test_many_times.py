"""The loops of the book and the examples are right for every time, whether or not main waits in between."""

from __future__ import annotations

import random
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import networkx as nx
import numpy as np
import pyarrow as pa
import pytest

import pointstamp as ps
from bfs import search_from
from bfs_arrow import FOUND, search
from connected_components import components_of
from connected_components_arrow import LABELS
from connected_components_arrow import components as label
from pagerank import ranks_of
from pagerank_arrow import ranks as rank
from support import arrays
from support.components import EDGES, components
from support.pagerank import pagerank
from support.reachability import reachability

ROOT = Path(__file__).parents[2]
Links = list[tuple[int, int]]
NODES = 40

# The first epoch takes many rounds, and the others few: they overtake it where no operator waits.
EPOCHS: list[Links] = [
    [(node, node + 1) for node in range(NODES - 1)],
    [(0, NODES - 1), (1, 2), (5, 0)],
    [],
    [(random.Random(3).randrange(NODES), random.Random(n).randrange(NODES)) for n in range(60)],
    [(0, 0)],
]

Answers = dict[int, dict[int, Any]]


def run(
    build: Callable[[Any, Any], Any],
    edges: Any,
    roots: Any,
    wait: bool,
    workers: int,
    of: Callable[[Any], tuple[int, Any]],
) -> Answers:
    """Returns the results of streams of the edges and roots of each epoch: value by node, per epoch."""

    def main(worker: ps.Worker) -> Any:
        links, starts = edges(), roots()
        with worker.dataflow() as scope:
            stream = build(links.to_stream(scope), starts.to_stream(scope))
            captured = (stream.to_records() if hasattr(stream, "to_records") else stream).capture()
            probe = stream.probe()
        for epoch, every in enumerate(EPOCHS):
            for handle in (links, starts):
                handle.advance_to(epoch)
            send(links, every[worker.index :: worker.peers], EDGES)
            if worker.index == 0:
                send(starts, [(0,)], pa.schema([("node", pa.int64())]))
            if wait:
                for handle in (links, starts):
                    handle.advance_to(epoch + 1)
                while probe.less_equal(epoch):
                    worker.step_or_park()
        links.close()
        starts.close()
        worker.run()
        return captured.extract()

    found: Answers = {}
    for result in ps.execute(main, workers=workers):
        for time, records in result:
            for record in records:
                node, value = of(record)
                assert found.setdefault(time, {}).setdefault(node, value) == value, "once, or the same"
    return found


def send(handle: Any, rows: list[Any], schema: pa.Schema) -> None:
    if isinstance(handle, ps.ArrowInput):
        given: list[list[int]] = [[row[at] for row in rows] for at in range(len(schema))]
        handle.send(pa.record_batch(given, schema=handle.schema))
    else:
        for row in rows:
            handle.send(row if len(schema) > 1 else row[0])


def columns(*names: str) -> Callable[[], ps.ArrowInput]:
    return lambda: ps.ArrowInput(pa.schema([(name, pa.int64()) for name in names]))


def expected(of: Callable[[Links], dict[int, Any]], epochs: list[Links] = EPOCHS) -> Answers:
    answers = {epoch: of(links) for epoch, links in enumerate(epochs)}
    return {epoch: answer for epoch, answer in answers.items() if answer}


def least(parts: Any) -> dict[int, int]:
    return {node: min(part) for part in parts for node in part}


def knots(links: Links) -> dict[int, tuple[int, int, int]]:
    graph = nx.DiGraph(links)
    knot = least(nx.strongly_connected_components(graph))
    return {n: (len(nx.descendants(graph, n)), len(nx.ancestors(graph, n)), knot[n]) for n in graph}


def distances(links: Links) -> dict[int, int]:
    graph = nx.DiGraph(links)
    graph.add_node(0)
    return dict(nx.single_source_shortest_path_length(graph, 0))


BOTH = pytest.mark.parametrize("wait", [True, False], ids=["waiting", "not waiting"])
WORKERS = pytest.mark.parametrize("workers", [1, 2])


@BOTH
@WORKERS
def test_breadth_first_search(wait: bool, workers: int) -> None:
    found = run(search_from, ps.InputHandle, ps.InputHandle, wait, workers, lambda pair: pair)
    assert found == expected(distances)


@BOTH
@WORKERS
def test_connected_components(wait: bool, workers: int) -> None:
    found = run(
        lambda edges, _: components_of(edges),
        ps.InputHandle,
        ps.InputHandle,
        wait,
        workers,
        lambda pair: pair,
    )
    assert found == expected(lambda links: least(nx.connected_components(nx.Graph(links))))


@BOTH
@WORKERS
def test_components_of_columns(wait: bool, workers: int) -> None:
    edges = columns("source", "target")
    found = run(
        lambda edges, _: components(edges),
        edges,
        columns("node"),
        wait,
        workers,
        lambda row: tuple(row.values()),
    )
    assert found == expected(lambda links: least(nx.connected_components(nx.Graph(links))))


@BOTH
@WORKERS
def test_pagerank(wait: bool, workers: int) -> None:
    edges = columns("source", "target")
    found = run(
        lambda edges, _: pagerank(edges.distinct()),
        edges,
        columns("node"),
        wait,
        workers,
        lambda row: tuple(row.values()),
    )
    answers = expected(lambda links: nx.pagerank(nx.DiGraph(links)) if links else {})
    assert found.keys() == answers.keys()
    for epoch, ranks in answers.items():
        assert found[epoch] == pytest.approx(ranks, rel=1e-9), epoch


@BOTH
@WORKERS
def test_pagerank_of_records(wait: bool, workers: int) -> None:
    nodes = set(range(NODES))
    found = run(
        lambda edges, _: ranks_of(edges, nodes, 60),
        ps.InputHandle,
        ps.InputHandle,
        wait,
        workers,
        lambda item: item[1:],
    )
    for epoch, links in enumerate(EPOCHS):
        graph = nx.MultiDiGraph(links)
        graph.add_nodes_from(nodes)
        if links:
            assert found[epoch] == pytest.approx(nx.pagerank(graph, tol=1e-9), rel=1e-3), epoch
    assert found.keys() == {epoch for epoch, links in enumerate(EPOCHS) if links}


@BOTH
@WORKERS
@pytest.mark.parametrize("words", [None, 1])
def test_reachability(wait: bool, workers: int, words: int | None) -> None:
    edges = columns("source", "target")
    found = run(
        lambda edges, _: reachability(edges, NODES, words),
        edges,
        columns("node"),
        wait,
        workers,
        lambda row: (row["node"], (row["needs"], row["needed_by"], row["knot"])),
    )
    assert found == expected(knots)


def program(chapter: str, having: str) -> dict[str, Any]:
    """Returns the names that the program of a chapter with this text defines."""
    text = (ROOT / "docs" / chapter).read_text(encoding="utf-8")
    [source] = [block for block in re.findall(r"```python\n(.*?)```", text, re.S) if having in block]
    defined: dict[str, Any] = {}
    exec(compile(source, chapter, "exec"), defined)
    return defined


@BOTH
@WORKERS
def test_the_search_of_the_book(wait: bool, workers: int) -> None:
    search = program("iteration.md", "def search(")["search"]

    def build(edges: Any, roots: Any) -> Any:
        with edges.scope.iterative("search") as loop:
            handle, cycle = loop.loop_variable()
            reached = edges.enter(loop).binary_frontier(
                roots.enter(loop).concat(cycle),
                ps.Exchange(lambda edge: edge[0]),
                ps.Exchange(lambda node: node),
                "search",
                search,
            )
            reached.flat_map(lambda found: found[2]).connect_loop(handle)
            return reached.map(lambda found: found[:2]).leave()

    assert run(build, ps.InputHandle, ps.InputHandle, wait, workers, lambda pair: pair) == expected(distances)


@BOTH
@WORKERS
def test_what_can_be_reached_so_far(wait: bool, workers: int) -> None:
    """The loop of the book over columns: from all roots, by all edges, up to each time."""
    reach = program("columns.md", "def reach(")["reach"]
    found = run(
        lambda edges, roots: reach(roots, edges).distinct_so_far(),
        columns("node", "next"),
        columns("node"),
        wait,
        workers,
        lambda row: (row["node"], True),
    )
    reached: dict[int, int] = {}
    for epoch in range(len(EPOCHS)):
        so_far = [link for links in EPOCHS[: epoch + 1] for link in links]
        for node in distances(so_far):
            reached.setdefault(node, epoch)
    answers: Answers = {}
    for node, epoch in reached.items():
        answers.setdefault(epoch, {})[node] = True
    assert found == answers


@BOTH
@WORKERS
@pytest.mark.parametrize("what", ["bfs", "components", "ranks"])
def test_the_graphs_over_arrays(what: str, wait: bool, workers: int) -> None:
    """The examples that keep arrays: each epoch is a graph of its own."""
    ring = [(node, (node + 1) % NODES) for node in range(NODES)]  # every node links to another
    epochs = [sorted({*links, *(ring if what == "ranks" else [])}) for links in EPOCHS]

    def main(worker: ps.Worker) -> Any:
        found: dict[Any, Any] = {}
        nodes = list(range(worker.index, NODES, worker.peers))
        links, first = ps.ArrowInput(arrays.EDGES), ps.ArrowInput(LABELS if what == "components" else FOUND)
        with worker.dataflow() as scope:
            edges, first_nodes = links.to_stream(scope), first.to_stream(scope)
            if what == "bfs":
                answers = search(edges, first_nodes, NODES, found.__setitem__)
            elif what == "components":
                answers = label(edges, first_nodes, NODES, found.__setitem__)
            else:
                answers = rank(edges, NODES, 100, found.__setitem__)
            probe = answers.probe()
        for epoch, every in enumerate(epochs):
            mine = every[worker.index :: worker.peers]
            if what == "components":
                mine = mine + [(b, a) for a, b in mine]
                first.send(pa.record_batch([nodes, nodes], schema=LABELS))
            elif worker.index == 0:
                first.send(pa.record_batch([[0]], schema=FOUND))
            if mine:
                links.send(arrays.batch_of(np.array(mine)))
            for handle in (links, first):
                handle.advance_to(epoch + 1)
            while wait and probe.less_equal(epoch):
                worker.step_or_park()
        links.close()
        first.close()
        worker.run()
        return {epoch[0]: dict(zip(nodes, values.tolist(), strict=True)) for epoch, values in found.items()}

    results = ps.execute(main, workers=workers)
    for epoch, edges in enumerate(epochs):
        values = {node: value for result in results for node, value in result.get(epoch, {}).items()}
        graph = nx.DiGraph(edges)
        graph.add_nodes_from(range(NODES))
        if what == "bfs":
            assert {node: hops for node, hops in values.items() if hops >= 0} == distances(edges), epoch
        elif what == "components":
            assert values == least(nx.connected_components(graph.to_undirected())), epoch
        else:
            assert values == pytest.approx(nx.pagerank(graph, tol=1e-12, max_iter=1000), rel=1e-4), epoch
