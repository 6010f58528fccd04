"""Passes over a plan. Each is linear in its nodes, and none recurses."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeAlias

from pointstamp.errors import GraphError
from pointstamp.plan import columns, shape
from pointstamp.plan.plan import placed_at

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pointstamp.plan.node import Form, Node, Output

__all__ = ["Wanted", "chains", "check_loops", "check_recorded", "left_out", "wanted"]

Wanted: TypeAlias = "dict[Output, dict[Form, Node]]"
"""Returns for each output the forms in which it is read, each with its first reader."""


def chains(nodes: Sequence[Node]) -> dict[Node, list[Node]]:
    """Fuses functions over records that follow one another, with branches, to one operator each.

    A function that reads another's results in another form does not follow it.

    Returns:
        For each node that is such a function, the nodes of its chain: a shared list in which each node
        follows its input.
    """
    found: dict[Node, list[Node]] = {}
    for node in nodes:
        if node.kind.stage is None:
            continue
        read = node.inputs[0]
        chain = found.get(read.output.node) if read.form is read.output.form else None
        if chain is None:
            chain = []
        chain.append(node)
        found[node] = chain
    return found


def left_out(nodes: Sequence[Node]) -> dict[Output, Output]:
    """Finds the exchanges of columns that need not be made.

    These are exchanges of rows that are on their keys' workers already, and exchanges that only aggregations
    by the same key read, which exchange their states instead of the rows.

    Args:
        nodes: The nodes, each after its inputs.

    Returns:
        For the output of each such exchange, the output that is read instead.
    """
    needed: set[Output] = set()
    for node in nodes:
        for read in node.inputs:
            if read.output.node.kind is not columns.EXCHANGE:
                continue
            if node.kind is not columns.AGGREGATE or node["key"] != read.output.placed:
                needed.add(read.output)
    found: dict[Output, Output] = {}
    for node in nodes:
        if node.kind is columns.EXCHANGE:
            read_by_it = node.inputs[0].output
            source = found.get(read_by_it, read_by_it)
            if source.placed == node.output.placed or node.output not in needed:
                found[node.output] = source
    return found


def wanted(
    nodes: Sequence[Node], chains: dict[Node, list[Node]], instead: dict[Output, Output] | None = None
) -> Wanted:
    """Finds the forms in which the outputs of a plan are read.

    A stream that enters a scope is read outside in the forms in which it is read inside. Backwards, so that a
    node's readers are known before the node.

    Args:
        nodes: The nodes, each after its inputs.
        chains: The chains of functions that are fused, by node.
        instead: The outputs that are read instead of others, whose nodes are left out.
    """
    instead = instead or {}
    found: Wanted = {}
    for node in reversed(nodes):
        if node.kind is shape.ENTER:
            inside = found.get(node.output, {})
            source = node.inputs[0].output
            found.setdefault(instead.get(source, source), {}).update(inside)
            continue
        if instead and node.outputs and node.output in instead:
            continue
        chain = None if node.kind.stage is None else chains[node]
        for output, form in node.inputs:
            if chain is not None and chains.get(output.node) is chain:
                continue
            read = instead.get(output, output) if instead else output
            readers = found.get(read)
            if readers is None:
                found[read] = {form: node}
            else:
                readers[form] = node
    return found


def check_loops(nodes: Sequence[Node]) -> None:
    """Refuses operators in a loop that send results when their input ends: in the loop it never does.

    Raises:
        GraphError: The message names the windows to use instead.
    """
    if not any(node.closes for node in nodes):
        return
    waiting = [node for node in nodes if node.arguments and node.arguments.get("sends_at_end")]
    if not waiting:
        return
    readers: dict[Node, list[Node]] = {node: [] for node in nodes}
    for node in nodes:
        for read in node.inputs:
            readers[read.output.node].append(node)
        if node.closes is not None:
            readers[node].append(node.closes)
    for node in waiting:
        found, reached = set(readers[node]), list(readers[node])
        while reached:
            for reader in readers[reached.pop()]:
                if reader not in found:
                    found.add(reader)
                    reached.append(reader)
        if node in found:
            raise GraphError(
                f"operator '{node.title}'{placed_at(node)} is in a loop, which would never end: windows of a "
                "number of records send the last ones when their input ends, and this input waits for them. "
                "Use Tumbling, Sliding or Session windows, or make the loop in scope.iterative(), where each "
                "turn of the loop is by itself"
            )


_UNRECORDED = {
    shape.CAPTURE_INTO: "a checkpoint does not have the written events: write(sink) shows each result once",
}


def check_recorded(nodes: Sequence[Node]) -> None:
    """Refuses operators that have no part in checkpoints, where they are made.

    Raises:
        GraphError: The message names the method to use instead.
    """
    for node in nodes:
        if node.kind in _UNRECORDED:
            raise GraphError(
                f"operator '{node.title}'{placed_at(node)} has no part in checkpoints: "
                f"{_UNRECORDED[node.kind]}, or run without Config(checkpoint=)"
            )
