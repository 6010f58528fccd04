"""Functions of `pointstamp.graphs` beside NetworkX and SciPy: `make bench ARGS=graphs`.

    python benches/python/graphs.py [--nodes 200000] [--edges 1000000] [--changes 40] [--workers 1 2]
        [--only NAME ...]

Rows for each program and kind of node: seconds to load a random graph, and until the result of one changed
edge is there, and the memory that both take, beside the peers, which compute the result anew. All start from
the same list of edges in memory, and must agree. Every measurement is in a process of its own. Times are of
the clock, so the machine has to be quiet.
"""

from __future__ import annotations

import argparse
import json
import resource
import subprocess
import sys
import time
from collections.abc import Callable
from statistics import median
from typing import Any, NamedTuple

import networkx as nx
import numpy as np
from figures import leave
from scipy import sparse
from scipy.sparse import csgraph

import pointstamp as ps
from pointstamp import graphs
from pointstamp.expr.expressions import record

Edges = list[Any]
CORE = 8
SUBJECT = "Graphs"


class Program(NamedTuple):
    """A function of graphs, what of its result is compared, and the peers' functions."""

    ours: Callable[[Any, Any], Any]
    checked: Callable[[Any], Any]
    networkx: Callable[[Edges, Any], float]
    scipy: Callable[[Edges, int], float] | None


def _own_labels(labels: Any) -> Any:
    """The number of components: of nodes that are the least of theirs."""
    return labels.filter(record[0] == record[1]).map((None, 1)).sum()


def _values(pairs: Any) -> Any:
    """The sum of the values of nodes."""
    return pairs.map((None, record[1])).sum()


def _matrix(edges: Edges, nodes: int, weights: np.ndarray | None = None) -> Any:
    ends = np.array([edge[:2] for edge in edges], dtype=np.int32)
    weights = np.ones(len(ends)) if weights is None else weights
    return sparse.csr_array((weights, (ends[:, 0], ends[:, 1])), shape=(nodes, nodes))


def _scipy_components(connection: str) -> Callable[[Edges, int], float]:
    def count(edges: Edges, nodes: int) -> float:
        matrix = _matrix(edges, nodes)
        _, labels = csgraph.connected_components(matrix, directed=True, connection=connection)
        there = np.unique(np.array(edges).ravel())
        return float(len(np.unique(labels[there])))

    return count


def _scipy_search(edges: Edges, nodes: int) -> float:
    hops = csgraph.shortest_path(_matrix(edges, nodes), unweighted=True, indices=edges[0][0])
    return float(hops[np.isfinite(hops)].sum())


def _scipy_core(edges: Edges, nodes: int) -> float:
    """The number of nodes of the core, by removing nodes in arrays."""
    both = _matrix(edges, nodes)
    both = ((both + both.T) > 0).tolil()
    both.setdiag(0)
    both = both.tocsr()
    left = np.arange(nodes)
    while True:
        strong = np.asarray(both.sum(axis=1)).ravel() >= CORE
        if strong.all():
            return float(len(left))
        both, left = both[strong][:, strong], left[strong]


def _core(edges: Edges, _: Any) -> float:
    graph = nx.Graph(edges)
    graph.remove_edges_from(nx.selfloop_edges(graph))
    return float(len(nx.k_core(graph, CORE)))


PROGRAMS = {
    "components": Program(
        lambda edges, _: graphs.connected_components(edges),
        _own_labels,
        lambda edges, _: nx.number_connected_components(nx.Graph(edges)),
        _scipy_components("weak"),
    ),
    "strong components": Program(
        lambda edges, _: graphs.strongly_connected_components(edges),
        _own_labels,
        lambda edges, _: nx.number_strongly_connected_components(nx.DiGraph(edges)),
        _scipy_components("strong"),
    ),
    "breadth-first search": Program(
        lambda edges, root: graphs.bfs(edges, root),
        _values,
        lambda edges, root: sum(nx.single_source_shortest_path_length(nx.DiGraph(edges), root).values()),
        _scipy_search,
    ),
    "core": Program(
        lambda edges, _: graphs.k_core(edges, CORE),
        lambda core: core.map(record[0]).distinct().map((None, 1)).sum(),
        _core,
        _scipy_core,
    ),
}


def edges_of(nodes: int, count: int, kind: str) -> Edges:
    """A random graph; the same for every side."""
    ends = np.random.default_rng(1).integers(0, nodes, (count, 2)).tolist()
    if kind == "strings":
        return [(f"node{source}", f"node{target}") for source, target in ends]
    return [(source, target) for source, target in ends]


def memory() -> float:
    """The most memory that the process has had, in MB."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def run_ours(name: str, kind: str, nodes: int, count: int, workers: int, changes: int) -> dict[str, Any]:
    """Loads the graph, and changes an edge so many times."""
    program, edges = PROGRAMS[name], edges_of(nodes, count, kind)
    before = memory()

    def main(worker: ps.Worker) -> Any:
        with worker.dataflow() as scope:
            handle, given = scope.new_collection()
            root = scope.collection([edges[0][0]] if worker.index == 0 else [])
            result = program.ours(given, root)
            probe, checked = result.probe(), program.checked(result).capture()
        start = time.perf_counter()
        handle.insert_many(edges[worker.index :: worker.peers])
        handle.advance_to(1)
        worker.step_while(lambda: probe.less_than(1))
        load, most = time.perf_counter() - start, memory()
        took = []
        for turn in range(changes):
            start = time.perf_counter()
            if worker.index == 0:
                edge = edges[turn // 2 * 37 % count]
                (handle.insert if turn % 2 else handle.remove)(edge)
            handle.advance_to(2 + turn)
            worker.step_while(lambda: probe.less_than(2 + turn))  # noqa: B023
            took.append(time.perf_counter() - start)
        handle.close()
        worker.run()
        at_first = [value for at, rows in checked.extract() if at == 0 for (_, value), _ in rows]
        return load, took, most - before, sum(at_first)

    found = ps.execute(main, workers=workers)
    return {
        "load": max(load for load, *_ in found),
        "change": median(found[0][1]) if changes else None,
        "memory": max(most for _, _, most, _ in found),
        "check": float(sum(check for *_, check in found)),
    }


def run_peer(peer: str, name: str, kind: str, nodes: int, count: int) -> dict[str, Any]:
    """Computes the result once."""
    program, edges = PROGRAMS[name], edges_of(nodes, count, kind)
    before, start = memory(), time.perf_counter()
    if peer == "NetworkX":
        check = program.networkx(edges, edges[0][0])
    else:
        assert program.scipy is not None
        check = program.scipy(edges, nodes)
    return {"load": time.perf_counter() - start, "memory": memory() - before, "check": float(check)}


def measured(*arguments: object) -> dict[str, Any]:
    """One measurement in a process of its own."""
    command = [sys.executable, __file__, "--one", json.dumps(arguments)]
    done = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True)
    return json.loads(done.stdout.splitlines()[-1])


def compare(name: str, kind: str, given: argparse.Namespace) -> None:
    """The rows of a program on nodes of a kind."""
    size = (given.nodes, given.edges)
    title = f"{name} of {given.edges:,} edges, {given.nodes:,} nodes, {kind}"
    peers = {"NetworkX": measured("NetworkX", name, kind, *size)}
    if PROGRAMS[name].scipy is not None and kind == "ints":
        peers["SciPy"] = measured("SciPy", name, kind, *size)
    alone: dict[str, Any] = {}
    for workers in given.workers:
        mine = measured("ours", name, kind, *size, workers, given.changes)
        on = f"{title}, {workers} worker{'s' if workers > 1 else ''}"
        print(
            f"{on}: load {mine['load']:.2f} s, a change {1000 * (mine['change'] or 0):.2f} ms, "
            f"{mine['memory']:.0f} MB",
            flush=True,
        )
        for peer, theirs in peers.items():
            if abs(mine["check"] - theirs["check"]) > 1e-6 * abs(theirs["check"]):
                raise SystemExit(f"{on}: {mine['check']} here and {theirs['check']} of {peer}")
            print(f"  {peer}: {theirs['load']:.2f} s, {theirs['memory']:.0f} MB", flush=True)
            leave(SUBJECT, f"{on}: load", mine["load"], peer, theirs["load"])
        leave(SUBJECT, f"{on}: memory", mine["memory"], "NetworkX", peers["NetworkX"]["memory"], unit="MB")
        if mine["change"] is not None:
            leave(SUBJECT, f"{on}: a change of an edge", mine["change"], "its load", mine["load"])
        if alone:
            leave(SUBJECT, f"{on}: load", mine["load"], "1 worker", alone["load"], aim=0.59)
        elif workers == 1:
            alone = mine


def main() -> None:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0] if __doc__ else None)
    parser.add_argument("--nodes", type=int, default=200_000)
    parser.add_argument("--edges", type=int, default=1_000_000)
    parser.add_argument("--changes", type=int, default=40)
    parser.add_argument("--workers", type=int, nargs="+", default=[1, 2])
    parser.add_argument("--only", nargs="+", choices=PROGRAMS, default=list(PROGRAMS))
    parser.add_argument("--one", help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.one:
        what, *rest = json.loads(given.one)
        print(json.dumps(run_ours(*rest) if what == "ours" else run_peer(what, *rest)))
        return
    print("Seconds of the clock; the memory is what loading and changes add to the list of edges.")
    for name in given.only:
        for kind in ("ints", "strings"):
            compare(name, kind, given)


if __name__ == "__main__":
    main()
