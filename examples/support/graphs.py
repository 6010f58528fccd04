"""The graphs of the graph examples: random ones, or graphs from a file of edges."""

import argparse
import random
from pathlib import Path

Edge = tuple[int, int]


def arguments(description: str) -> argparse.ArgumentParser:
    """The command line that the graph examples have in common."""
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("file", nargs="?", type=Path, help="a file of edges: two node numbers in each line")
    parser.add_argument("--nodes", type=int, default=1000, help="nodes of a random graph (default: 1000)")
    parser.add_argument("--edges", type=int, default=2000, help="edges of a random graph (default: 2000)")
    parser.add_argument("--seed", type=int, default=1, help="of the random graph (default: 1)")
    parser.add_argument("--workers", type=int, default=2, help="worker threads (default: 2)")
    parser.add_argument("--check", action="store_true", help="compare the result with NetworkX's")
    return parser


def edges_of(options: argparse.Namespace) -> list[Edge]:
    """The edges that the command line asks for."""
    if options.file is not None:
        return [(int(a), int(b)) for a, b, *_ in map(str.split, options.file.read_text().splitlines())]
    chosen = random.Random(options.seed)
    return [(chosen.randrange(options.nodes), chosen.randrange(options.nodes)) for _ in range(options.edges)]


def nodes_of(edges: list[Edge]) -> set[int]:
    """Every node that has an edge."""
    return {node for edge in edges for node in edge}
