"""Collections, their loops and their records go on after a kill."""

import json
import random
from collections import Counter
from pathlib import Path

import pytest

from budgets import SMALL
from killing import check_folder, kills, rows, run_killed

NODES = 24
TIMES = 120
CHANGES = 5
"""Edges that come or go at each time."""

Sizes = Counter[tuple[int, int]]


def components(edges: Counter[tuple[int, int]]) -> Sizes:
    """Returns the size of each component, by its least node."""
    there = [edge for edge, count in edges.items() if count > 0]
    label = {node: node for edge in there for node in edge}
    changed = True
    while changed:
        changed = False
        for a, b in there:
            least = min(label[a], label[b])
            changed = changed or label[a] != label[b]
            label[a] = label[b] = least
    return Counter(dict.fromkeys(Counter(label.values()).items(), 1))


def write_edges(folder: Path, seed: int) -> list[Sizes]:
    """Writes three files of changes of edges; returns the sizes of components at each time."""
    drawn = random.Random(seed)
    files = [(folder / f"edges{number}.jsonl").open("w") for number in range(3)]
    edges: Counter[tuple[int, int]] = Counter()
    expected = []
    for time in range(TIMES):
        for change in range(CHANGES):
            there = [edge for edge, count in edges.items() if count > 0]
            if there and drawn.random() < 0.45:
                edge, diff = drawn.choice(there), -1
            else:
                edge, diff = (drawn.randrange(NODES), drawn.randrange(NODES)), 1
            edges[edge] += diff
            line = {"time": time, "a": edge[0], "b": edge[1], "diff": diff}
            files[change % 3].write(json.dumps(line) + "\n")
        expected.append(components(edges))
    for file in files:
        file.close()
    return expected


@kills
@pytest.mark.parametrize(
    "shapes",
    [[(1, 1)], [(2, 1)], [(1, 2)], [(1, 1), (3, 1), (2, 1), (1, 2)]],
    ids=["one worker", "two workers", "two processes", "other numbers of workers"],
)
def test_components_of_a_graph_are_right_at_every_time(tmp_path: Path, shapes: list[tuple[int, int]]) -> None:
    check_components(tmp_path, shapes)


@kills
@pytest.mark.parametrize(
    "shapes", [[(1, 1)], [(1, 1), (3, 1), (2, 1)]], ids=["one worker", "other numbers of workers"]
)
@pytest.mark.parametrize("memory", [None, SMALL], ids=["in memory", "on disk"])
def test_components_by_the_function_of_graphs(
    tmp_path: Path, shapes: list[tuple[int, int]], memory: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    if memory is not None:
        monkeypatch.setenv("POINTSTAMP_MEMORY", memory)
    monkeypatch.setenv("COMPONENTS", "graphs")
    check_components(tmp_path, shapes)


@kills
@pytest.mark.parametrize(
    "shapes", [[(1, 1)], [(1, 1), (3, 1), (2, 1)]], ids=["one worker", "other numbers of workers"]
)
def test_state_on_disk_is_in_checkpoints(
    tmp_path: Path, shapes: list[tuple[int, int]], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("POINTSTAMP_MEMORY", SMALL)
    check_components(tmp_path, shapes)


def check_components(tmp_path: Path, shapes: list[tuple[int, int]]) -> None:
    """Kills the program again and again, and compares what it has shown."""
    expected = write_edges(tmp_path, len(shapes))
    run_killed("graph.py", tmp_path, shapes=shapes, seed=len(shapes))
    changes: list[Sizes] = [Counter() for _ in range(TIMES)]
    for label, size, time, diff in rows(tmp_path / "sizes.db", "select label, size, time, diff from sizes"):
        changes[time][label, size] += diff
    sizes: Sizes = Counter()
    for time in range(TIMES):
        sizes.update(changes[time])
        assert {row: count for row, count in sizes.items() if count} == expected[time], f"at {time}"
    check_folder(tmp_path / "state")
