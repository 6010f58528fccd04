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
    from collections.abc import Collection, Mapping, Sequence

    from pointstamp.plan.node import Node, Output

__all__ = ["Alike", "shared", "unread"]

_PURE = frozenset(
    {
        collections.ACCUMULATE,
        collections.PROJECT,
        collections.FILTER_FIELDS,
        collections.FILTER_COLUMNS,
        collections.SELECT,
        collections.NEGATE,
        collections.CONSOLIDATE,
        collections.JOIN,
        *collections.REDUCTIONS,
    }
)
"""Kinds whose results follow from their inputs and arguments."""

_NOTED = _PURE | {collections.RENAME, shape.CONCATENATE}

_CHOICES = (_core.Reduction, _core.JoinKind, _core.Frame, _core.WindowFunction)


class _NoData(Exception):
    """An argument is no data, so that its node is like no other."""


def shared(nodes: Sequence[Node], instead: Mapping[Output, Output]) -> dict[Output, Output]:
    """Finds the nodes of collections that compute what an earlier node does.

    Args:
        nodes: The nodes, each after its inputs.
        instead: The outputs that are read instead of others, whose nodes are left out already.

    Returns:
        For the output of each node that is left out, the output that is read instead.
    """
    alike = Alike()
    replaced = {output: other for other, output in instead.items()}
    for node in nodes:
        if node.outputs and node.output in instead:
            continue
        alike.note(node)
        if replaced and node.outputs and node.output in replaced:
            alike.first[replaced[node.output]] = alike.first.get(node.output, node.output)
    return {
        output: same
        for output, same in alike.first.items()
        if same is not output and output.node.kind is not collections.RENAME
    }


class Alike:
    """The first of the nodes that compute the same.

    Attributes:
        first: For outputs of nodes that were noted, the output of the first node like theirs. For one that
            renames columns, which is no operator, that of its input.
    """

    __slots__ = ("_known", "first")

    def __init__(self) -> None:
        self.first: dict[Output, Output] = {}
        self._known: dict[Any, Output] = {}

    def note(self, node: Node) -> None:
        """Notes a node, whose inputs have been noted."""
        if node.kind is collections.RENAME:
            source = node.inputs[0].output
            self.first[node.output] = self.first.get(source, source)
            return
        updates = node.kind is shape.CONCATENATE and node.output.form is Form.UPDATES
        if not updates and node.kind not in _PURE:
            return
        reads = [(self.first.get(read.output, read.output), read.form) for read in node.inputs]
        try:
            arguments = _data(node.arguments or {}, node)
        except _NoData:
            return
        key = (node.scope, node.kind, node.name, tuple(reads), node.output.form, arguments)
        self.first[node.output] = self._known.setdefault(key, node.output)

    def alone(self, output: Output) -> None:
        """Notes an output that is like no other, whatever its node's arguments become."""
        self.first[output] = output

    def of(self, output: Output) -> Output:
        """The output of the first node like that of an output, which is noted with all before it."""
        unseen = [output]
        while unseen:
            at = unseen[-1]
            later = [
                read.output
                for read in at.node.inputs
                if read.output not in self.first and read.output.node.kind in _NOTED
            ]
            if later and at not in self.first:
                unseen += later
                continue
            unseen.pop()
            if at not in self.first:
                self.note(at.node)
                self.first.setdefault(at, at)
        return self.first[output]


def unread(
    nodes: Sequence[Node], candidates: Collection[Node], instead: Mapping[Output, Output]
) -> dict[Output, Output]:
    """Finds nodes that make no rows of their own, of which no other node reads the result.

    Args:
        nodes: The nodes, each after its inputs.
        candidates: Those that may be left out.
        instead: The outputs that are read instead of others, whose nodes are left out already.

    Returns:
        For the output of each such node, its input.
    """
    found: dict[Output, Output] = {}
    read: set[Output] = set()
    for node in reversed(nodes):
        left_out = bool(node.outputs) and node.output in instead
        if node in candidates and not left_out and node.output not in read:
            source = node.inputs[0].output
            found[node.output] = instead.get(source, source)
        elif not left_out:
            read.update(instead.get(one.output, one.output) for one in node.inputs)
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
    if isinstance(value, _core.Schema):
        return "schema", str(value.to_pyarrow())
    if value is None or isinstance(value, (bool, int, float, str, bytes)):
        return type(value).__name__, repr(value)
    raise _NoData
