"""Passes over a plan. Each is linear in its nodes, and none recurses."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeAlias

from pointstamp.plan import shape

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pointstamp.plan.node import Form, Node, Output

__all__ = ["Wanted", "chains", "wanted"]

Wanted: TypeAlias = "dict[Output, dict[Form, Node]]"
"""For each output the forms in which it is read, each with its first reader."""


def chains(nodes: Sequence[Node]) -> dict[Node, list[Node]]:
    """Fuses functions over records that follow one another, with branches, to one operator each.

    Returns:
        For each node that is such a function, the nodes of its chain: a list that they share, in which each
        is after the one that it reads.
    """
    found: dict[Node, list[Node]] = {}
    for node in nodes:
        if node.kind.stage is None:
            continue
        chain = found.get(node.inputs[0].output.node)
        if chain is None:
            chain = []
        chain.append(node)
        found[node] = chain
    return found


def wanted(nodes: Sequence[Node], chains: dict[Node, list[Node]]) -> Wanted:
    """Finds the forms in which the outputs of a plan are read.

    What enters a scope is read outside in the forms in which it is read inside. Backwards, so that a node's
    readers are known before the node.
    """
    found: Wanted = {}
    for node in reversed(nodes):
        if node.kind is shape.ENTER:
            inside = found.get(node.output, {})
            outside = found.setdefault(node.inputs[0].output, {})
            outside.update(inside)
            continue
        chain = chains.get(node)
        for read in node.inputs:
            if chain is not None and chains.get(read.output.node) is chain:
                continue
            found.setdefault(read.output, {})[read.form] = node
    return found
