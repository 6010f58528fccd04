"""The layout of a graph's operators and scopes in a picture.

A scope is a box that contains its operators, laid out in columns from left to right by the longest path from
its sources; an edge that closes a loop goes back and counts for no column. Within a column, operators are
beside the ones that feed them. The live page (`page/layout.js`) lays out in the same way, and wraps long
chains into rows.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pointstamp.observability.graph import Graph

__all__ = ["Box", "boxes", "links", "shown"]

HEIGHT = 28.0
GAP = 18.0
BETWEEN = 44.0
PADDING = 16.0
TITLE = 20.0
LETTER = 7.2

Address = tuple[int, ...]


class Box(NamedTuple):
    """The place of an operator or a scope, from the upper left."""

    x: float
    y: float
    width: float
    height: float


def boxes(graph: Graph, root: Address) -> dict[Address, Box]:
    """The places of a scope and all in it; the scope's own upper left is 0, 0."""
    placed: dict[Address, Box] = {}
    _place(graph, root, placed)
    return placed


def links(graph: Graph, root: Address) -> list[tuple[Address, Address, str]]:
    """Returns pairs of operators that feed each other, through scopes, and the pact between them."""
    onward: dict[tuple[Address, int], list[tuple[Address, int, str]]] = {}
    ports: dict[Address, set[int]] = {}
    for edge in graph.edges:
        source = (*edge.scope, edge.source)
        target = (*edge.scope, edge.target)
        onward.setdefault((source, edge.output), []).append((target, edge.input, edge.pact))
        ports.setdefault(source, set()).add(edge.output)

    def ends(starts: list[tuple[Address, int, str]]) -> Iterator[tuple[Address, str]]:
        """The operators at the ends of edges, through any number of boundaries."""
        left = starts[::-1]
        seen = set(left)
        while left:
            address, port, pact = left.pop()
            if address in graph.scopes:  # into it
                following = onward.get(((*address, 0), port), [])
            elif address[-1] == 0:  # out of it
                following = [] if address[:-1] == root else onward.get((address[:-1], port), [])
            else:
                yield address, pact
                continue
            for target, at, kind in reversed(following):
                step = (target, at, _stronger(pact, kind))
                if step not in seen:
                    seen.add(step)
                    left.append(step)

    found = []
    for address in graph.operators:
        for port in sorted(ports.get(address, ())):
            for end, kind in ends(onward[address, port]):
                if address[: len(root)] == root == end[: len(root)]:
                    found.append((address, end, kind))
    return list(dict.fromkeys(found))


def _stronger(first: str, second: str) -> str:
    """Returns the pact of two on one way that moves records between workers, or else the plain one."""
    moving = [pact for pact in (first, second) if pact in ("exchange", "broadcast")]
    return moving[0] if moving else "watch" if "watch" in (first, second) else "pipeline"


def _place(graph: Graph, scope: Address, placed: dict[Address, Box]) -> None:
    """Places the contents of a scope, relative to the scope, and the scope itself at 0, 0."""
    depth = len(scope)
    children = [
        address
        for address in sorted({*graph.operators, *graph.scopes})
        if len(address) == depth + 1 and address[:depth] == scope
    ]
    sizes: dict[Address, tuple[float, float]] = {}
    for child in children:
        if child in graph.scopes:
            _place(graph, child, placed)
            sizes[child] = (placed[child].width, placed[child].height)
        else:
            sizes[child] = (max(56.0, LETTER * len(shown(graph.name(child))) + 20), HEIGHT)
    before: dict[Address, list[Address]] = {child: [] for child in children}
    for edge in graph.edges:
        if edge.scope == scope and edge.source and edge.target:
            target = (*scope, edge.target)
            before[target].append((*scope, edge.source))
    columns = _columns(children, before)
    x = PADDING
    height = 0.0
    centre: dict[Address, float] = {}
    for column in columns:
        column.sort(key=lambda child: (_mean([centre[one] for one in before[child] if one in centre]), child))
        y = PADDING + TITLE
        for child in column:
            width, tall = sizes[child]
            _move(placed, child, Box(x, y, width, tall), inner=child in graph.scopes)
            centre[child] = y + tall / 2
            y += tall + GAP
        height = max(height, y - GAP)
        x += max(sizes[child][0] for child in column) + BETWEEN
    width = max(x - BETWEEN + PADDING, LETTER * len(shown(graph.name(scope))) + 2 * PADDING)
    placed[scope] = Box(0, 0, width, max(height, TITLE + PADDING) + PADDING)


def _columns(children: list[Address], before: dict[Address, list[Address]]) -> list[list[Address]]:
    """Returns the children by the longest path to them, without edges that close a loop."""
    column: dict[Address, int] = {}
    open_now: set[Address] = set()

    for start in children:
        stack = [(start, iter(before[start]))]
        if start in column or start in open_now:
            continue
        open_now.add(start)
        while stack:
            child, rest = stack[-1]
            one = next(rest, None)
            if one is None:
                stack.pop()
                open_now.discard(child)
                column[child] = max(
                    (column[other] + 1 for other in before[child] if other in column), default=0
                )
            elif one not in column and one not in open_now:
                open_now.add(one)
                stack.append((one, iter(before[one])))
    columns: list[list[Address]] = [[] for _ in range(max(column.values(), default=-1) + 1)]
    for child in children:
        columns[column[child]].append(child)
    return columns


def _move(placed: dict[Address, Box], child: Address, box: Box, *, inner: bool) -> None:
    placed[child] = box
    if inner:
        for address, other in list(placed.items()):
            if len(address) > len(child) and address[: len(child)] == child:
                placed[address] = other._replace(x=other.x + box.x, y=other.y + box.y)


def _mean(values: list[float]) -> float:
    return sum(values) / len(values) if values else 0.0


def shown(name: str) -> str:
    """A name as a picture shows it."""
    return name if len(name) <= 28 else f"{name[:27]}…"
