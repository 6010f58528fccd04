"""Names by which nodes are known in another run of the same program, on any number of workers.

The identity of a node is the path of its scopes' names, its own name or its kind's, and a number where
several nodes of a scope have one name: ``Dataflow/Iterate/distinct``, ``Dataflow/map#2``. The digest of a
plan covers the identities of all nodes, their kinds, the schemas and keys of their outputs, and their inputs.
"""

from __future__ import annotations

from hashlib import blake2b
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Container, Iterable, Sequence

    from pointstamp._core import Schema
    from pointstamp.plan.node import Node, Output
    from pointstamp.plan.plan import PlanScope

__all__ = ["columns_of", "digest", "form_of", "functions_of", "identities"]


def _text(schema: Schema) -> str:
    """The columns in words, without metadata, which is the data's: pandas writes the number of rows there."""
    return ", ".join(
        f"{field.name}: {field.type}{'' if field.nullable else ' not null'}" for field in schema.to_pyarrow()
    )


def identities(nodes: Sequence[Node]) -> dict[Node, str]:
    """Returns the identity of each node of a plan."""
    paths: dict[PlanScope, str] = {}
    counts: dict[str, int] = {}

    def counted(path: str) -> str:
        found = path
        while found in counts:  # a node may be named as another is numbered
            counts[path] += 1
            found = f"{path}#{counts[path]}"
        counts[found] = 1
        return found

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


def form_of(node: Node) -> str:
    """Describes a node: its kind, the columns and keys of its outputs, and the digest of its functions.

    A checkpoint has it, so that a program that has changed is not given the state of another operator.
    """
    parts = [node.kind.name]
    for output in node.outputs:
        if output.schema is not None:
            text = f"columns {_text(output.schema)}"
            if output.placed is not None:
                names = output.schema.to_pyarrow().names
                text += f", placed by {', '.join(names[place] for place in output.placed)}"
            parts.append(text)
    return "; ".join(parts) + functions_of([node])


def functions_of(nodes: Iterable[Node]) -> str:
    """Describes the functions of nodes, as the end of a form; nothing where they have none.

    Functions that see records and change none are left out.
    """
    from pointstamp.plan.functions import MAKER, digest_of  # only where checkpoints are made

    changing = [node for node in nodes if not node.kind.name.startswith("inspect")]
    given = [pair for node in changing for pair in (node.arguments or {}).items()]
    functions = digest_of(*(value for name, value in given if callable(value) or name == "pact"))
    return f"\n{MAKER} {functions}" if functions else ""


def digest(nodes: Sequence[Node]) -> str:
    """Returns a text that differs where two plans differ: in names, kinds, schemas, keys or edges.

    Functions, terms and data are not in it.
    """
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
            columns = "" if output.schema is None else _text(output.schema)
            parts += [output.form.name, repr(output.placed), columns]
        total.update(repr(parts).encode())
    return total.hexdigest()


def columns_of(nodes: Sequence[Node], left_out: Container[Output]) -> list[str]:
    """Describes the columns of all outputs, and the columns by which their rows are distributed to workers.

    The workers compare these texts: the engine's graph has no columns.

    Args:
        nodes: The nodes of a plan.
        left_out: Outputs of which no operator is made.
    """
    outputs = [
        output
        for node in nodes
        for output in node.outputs
        if output.schema is not None and output not in left_out
    ]
    if not outputs:
        return []
    known = identities(nodes)
    texts: dict[Schema, tuple[str, list[str]]] = {}  # by object: many outputs have the schema of their input
    described = []
    for output in outputs:
        schema = output.schema
        assert schema is not None
        if schema not in texts:
            texts[schema] = _text(schema), schema.to_pyarrow().names
        columns, names = texts[schema]
        text = f"columns {columns} of '{known[output.node]}'"
        if output.placed is not None:
            text += f", placed by {', '.join(names[place] for place in output.placed)}"
        described.append(text)
    return described
