"""Names by which nodes are known in another run of the same program, on any number of workers.

The identity of a node is the path of its scopes' names, its own name or that of its kind, and a number where
several nodes of a scope have one name: ``Dataflow/Iterate/distinct``, ``Dataflow/map#2``. The digest of a plan
covers the identities of all nodes, their kinds, the forms and schemas of their outputs, and what they read.
"""

from __future__ import annotations

from hashlib import blake2b
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pointstamp.plan.node import Node
    from pointstamp.plan.plan import PlanScope

__all__ = ["digest", "identities"]


def identities(nodes: Sequence[Node]) -> dict[Node, str]:
    """Returns the identity of each node of a plan."""
    paths: dict[PlanScope, str] = {}
    counts: dict[str, int] = {}

    def counted(path: str) -> str:
        counts[path] = counts.get(path, 0) + 1
        return path if counts[path] == 1 else f"{path}#{counts[path]}"

    def path_of(scope: PlanScope) -> str:
        unknown = []
        at: PlanScope | None = scope
        while at is not None and at not in paths:
            unknown.append(at)
            at = at.parent
        for one in reversed(unknown):
            paths[one] = counted(one.name if one.parent is None else f"{paths[one.parent]}/{one.name}")
        return paths[scope]

    return {node: counted(f"{path_of(node.scope)}/{node.title}") for node in nodes}


def digest(nodes: Sequence[Node]) -> str:
    """Returns a text that differs where two plans differ: in names, kinds, schemas or edges."""
    known = identities(nodes)
    total = blake2b(digest_size=16)
    for node in nodes:
        parts = [
            known[node],
            node.kind.name,
            node.kind.family,
            "" if node.closes is None else known[node.closes],
        ]
        for read in node.inputs:
            parts += [known[read.output.node], str(read.output.port), read.form.name]
        for output in node.outputs:
            parts.append(output.form.name)
            if output.schema is not None:
                parts.append(str(output.schema.to_pyarrow()))
        total.update(repr(parts).encode())
    return total.hexdigest()
