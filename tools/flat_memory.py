"""Memory under change: a collection of one size that changes a million times, `python tools/flat_memory.py`.

A window over an endless list of edges moves on by one edge a round. Counts, a join and a distinct are kept up
to date, with `--loop` the components of the graph, too (a hundred times the work). At the end, the process
may hold an eighth more memory than after the first tenth of the rounds; otherwise the exit status is 1.
"""

from __future__ import annotations

import argparse
import random
import sys
from pathlib import Path

import pointstamp as ps
from pointstamp import graphs, left, record, right

ALLOWED = 1.125
"""The most memory at the end, of that after a tenth."""


def resident() -> int:
    """The bytes of memory that this process has."""
    status = Path("/proc/self/status").read_text()
    return int(status.partition("VmRSS:")[2].split()[0]) * 1024


def settle(worker: ps.Worker, probes: list[ps.ProbeHandle], now: int) -> None:
    """Steps until a time has passed all probes."""
    worker.step_while(lambda: any(probe.less_than(now) for probe in probes))


def main(worker: ps.Worker, rounds: int, edges: int, nodes: int, loop: bool) -> list[tuple[int, int, int]]:
    """Memory, and the updates that the arrangement holds, at ten points of the run."""
    with worker.dataflow() as scope:
        handle, graph = scope.new_collection()
        arranged = graph.arrange()
        trace = arranged.trace()
        counts = graph.map(record[0]).value_counts()
        paths = graph.map((record[1], record[0])).join(arranged, (left, right)).distinct()
        kept = [counts, paths, *([graphs.connected_components(graph)] if loop else [])]
        probes = [result.probe() for result in kept]
    chance = random.Random(1)
    window = [(chance.randrange(nodes), chance.randrange(nodes)) for _ in range(edges)]
    handle.insert_many(window)
    seen = []
    for number in range(1, rounds + 1):
        edge = (chance.randrange(nodes), chance.randrange(nodes))
        handle.update_many([(edge, 1), (window[number % edges], -1)])
        window[number % edges] = edge
        handle.advance_to(number)
        if number % 16 == 0:  # several rounds are in flight together
            settle(worker, probes, number)
            trace.allow_merging_before(number - 1)
        if number % max(1, rounds // 10) == 0:
            seen.append((number, resident(), trace._reads.updates))
    trace.close()
    handle.close()
    return seen


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--rounds", type=int, default=1_000_000)
    parser.add_argument("--edges", type=int, default=2_000)
    parser.add_argument("--nodes", type=int, default=2_500)
    parser.add_argument("--loop", action="store_true")
    chosen = parser.parse_args()
    [points] = ps.execute(lambda worker: main(worker, chosen.rounds, chosen.edges, chosen.nodes, chosen.loop))
    for at, memory, updates in points:
        print(f"{at:>10,} rounds: {memory / 2**20:7.1f} MiB, {updates:,} updates in the arrangement")
    if points[-1][1] > ALLOWED * points[0][1]:
        print("memory grew with the number of rounds")
        sys.exit(1)
