"""Circles in a graph of files, and the list of known ones.

A circle is a strongly connected part of two files and more: each of them can only be understood, tested or
moved with all the others.
"""

from collections.abc import Iterable, Mapping

Graph = Mapping[str, Iterable[str]]


def inside(graph: Graph, folder: str) -> dict[str, set[str]]:
    """Returns the part of a graph of paths that is in a folder, with paths from there."""
    start = f"{folder}/"
    return {
        source.removeprefix(start): {t.removeprefix(start) for t in targets if t.startswith(start)}
        for source, targets in graph.items()
        if source.startswith(start)
    }


def circles(graph: Graph) -> list[frozenset[str]]:
    """The strongly connected parts with more than one node, largest first (by Tarjan's algorithm)."""
    number: dict[str, int] = {}
    low: dict[str, int] = {}
    stack: list[str] = []
    open_: set[str] = set()
    found = []
    for root in sorted(graph):
        if root in number:
            continue
        number[root] = low[root] = len(number)
        stack.append(root)
        open_.add(root)
        work = [(root, iter(sorted(graph[root])))]
        while work:
            node, rest = work[-1]
            target = next(rest, None)
            if target is None:
                work.pop()
                if work:
                    low[work[-1][0]] = min(low[work[-1][0]], low[node])
                if low[node] == number[node]:
                    part = set()
                    while node not in part:
                        part.add(stack.pop())
                    open_ -= part
                    if len(part) > 1:
                        found.append(frozenset(part))
            elif target in graph and target not in number:
                number[target] = low[target] = len(number)
                stack.append(target)
                open_.add(target)
                work.append((target, iter(sorted(graph[target]))))
            elif target in open_:
                low[node] = min(low[node], number[target])
    return sorted(found, key=lambda part: (-len(part), sorted(part)))


def a_way_round(graph: Graph, part: frozenset[str]) -> list[str]:
    """A shortest closed walk through the first file of a circle, to show where to cut."""
    start = min(part)
    came: dict[str, str] = {}
    frontier = [start]
    while frontier:
        following = []
        for node in frontier:
            for target in sorted(set(graph[node]) & part):
                if target == start:
                    walk = [node]
                    while walk[-1] != start:
                        walk.append(came[walk[-1]])
                    return [*reversed(walk), start]
                if target not in came:
                    came[target] = node
                    following.append(target)
        frontier = following
    raise ValueError(f"{sorted(part)} is no circle")


def violations(graph: Graph, known: Iterable[Iterable[str]]) -> list[str]:
    """Circles that are not in the list of known ones, and files that are listed and in no circle any more.

    A circle that is known may lose files, not gain any.
    """
    listed = [frozenset(part) for part in known]
    found = circles(graph)
    said = []
    for part in found:
        if not any(part <= circle for circle in listed):
            walk = " -> ".join(a_way_round(graph, part))
            said.append(f"a circle of {len(part)} files ({', '.join(sorted(part))}), for one {walk}")
    in_circles = frozenset().union(*found)
    said.extend(
        f"{name} is in no circle any more: take it off the list in tools/layers/rules.py"
        for name in sorted(frozenset().union(*listed) - in_circles)
    )
    return said
