"""Nodes of collections that compute the same of the same, of which one is made.

Two nodes are the same where kinds, names, inputs and arguments are equal, and the arguments are data.
Columns are compared by their places, since rows have no names. Nodes with functions of the program are
never the same: they may have effects.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

from pointstamp import _core
from pointstamp.plan import collections, shape
from pointstamp.plan.node import Form

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pointstamp.plan.node import Node, Output

__all__ = ["shared"]

_PURE = frozenset(
    {
        collections.PROJECT,
        collections.FILTER_FIELDS,
        collections.FILTER_COLUMNS,
        collections.SELECT,
        collections.NEGATE,
        collections.CONSOLIDATE,
        collections.JOIN,
        collections.SEMIJOIN,
        *collections.REDUCTIONS,
    }
)
"""Kinds whose results follow from their inputs and arguments."""

_CHOICES = (_core.Reduction, _core.JoinKind, _core.Frame, _core.WindowFunction)


class _NoData(Exception):
    """An argument is no data, so that its node is like no other."""


def shared(nodes: Sequence[Node]) -> dict[Output, Output]:
    """Finds the nodes of collections that compute what an earlier node does.

    Args:
        nodes: The nodes, each after its inputs.

    Returns:
        For the output of each such node, the output that is read instead.
    """
    found: dict[Output, Output] = {}
    alike: dict[Output, Output] = {}  # with outputs that rename columns, which are no operators
    known: dict[Any, Output] = {}
    for node in nodes:
        if node.kind is collections.RENAME:
            source = node.inputs[0].output
            alike[node.output] = alike.get(source, source)
            continue
        updates = node.kind is shape.CONCATENATE and node.output.form is Form.UPDATES
        if not updates and node.kind not in _PURE:
            continue
        reads = [(alike.get(read.output, read.output), read.form) for read in node.inputs]
        try:
            arguments = _data(node.arguments or {}, node)
        except _NoData:
            continue
        key = (node.scope, node.kind, node.name, tuple(reads), node.output.form, arguments)
        same = known.setdefault(key, node.output)
        if same is not node.output:
            found[node.output] = alike[node.output] = same
    return found


def _data(value: Any, node: Node) -> Any:
    """A value that equals that of another node where their arguments do; it can be a key."""
    if isinstance(value, _core.Expr):
        make, arguments = cast("tuple[Any, Any]", value.__reduce__())
        if make is _core.column_expr:
            schema = node.inputs[0].output.schema
            assert schema is not None
            return "column", schema.to_pyarrow().names.index(arguments[0])
        return "expression", getattr(make, "__name__", repr(make)), _data(arguments, node)
    if isinstance(value, dict):
        names = node.kind is not collections.SELECT  # whose names are those of the columns that it makes
        parts = [
            (name if names or node.arguments is value else "", _data(part, node))
            for name, part in value.items()
        ]
        return "mapping", tuple(parts)
    if isinstance(value, (tuple, list)):
        return "parts", tuple(_data(part, node) for part in value)
    if isinstance(value, _CHOICES):
        return type(value).__name__, int(value)
    if value is None or isinstance(value, (bool, int, float, str, bytes)):
        return type(value).__name__, repr(value)
    raise _NoData
