"""Nodes that the methods of collections append, of records and of columns alike."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pointstamp import _core
from pointstamp.plan import collections, shape
from pointstamp.plan.node import Form, Output

if TYPE_CHECKING:
    from collections.abc import Iterable

    from pointstamp._core import JoinKind, Reduction
    from pointstamp.lowering.scope import BuildingScope
    from pointstamp.plan.node import Kind

__all__ = [
    "brought_in",
    "concatenated",
    "distinct_keys",
    "joined",
    "named_part",
    "one",
    "outside",
    "reduced",
    "unmatched_keys",
]


def named_part(name: str | None, part: str) -> str | None:
    """Returns the name of a part of a named node; None where it has no name."""
    return None if name is None else f"{name}: {part}"


def one(
    scope: BuildingScope,
    kind: Kind,
    output: Output,
    *,
    schema: _core.Schema | None = None,
    name: str | None = None,
    **arguments: Any,
) -> Output:
    """Appends a node that makes updates of updates."""
    return scope._append(kind, [output], Output(Form.UPDATES, schema), name=name, **arguments).output


def concatenated(scope: BuildingScope, outputs: Iterable[Output], *, name: str | None = None) -> Output:
    """Appends a node that puts collections of one schema together."""
    outputs = list(outputs)
    together = Output(Form.UPDATES, outputs[0].schema)
    return scope._append(shape.CONCATENATE, outputs, together, name=name).output


def joined(
    scope: BuildingScope,
    left: Output,
    right: tuple[Output, Form],
    result: JoinKind,
    function: Any = None,
    *,
    schema: _core.Schema | None = None,
    name: str | None = None,
) -> Output:
    """Appends a join of two collections.

    Args:
        scope: Where they are.
        left: The left side, which is read by key.
        right: The right side, and in which form it is read.
        result: The function of two values of a key.
        function: By which that is made, if it needs one.
        schema: Of columns that are made; None for records.
        name: The operator's name.
    """
    reads = [left.read_as(Form.BY_KEY), right[0].read_as(right[1])]
    made = Output(Form.UPDATES, schema)
    return scope._append(collections.JOIN, reads, made, name=name, result=result, function=function).output


def reduced(
    scope: BuildingScope,
    kind: Kind,
    output: Output,
    reduction: Reduction,
    argument: Any = None,
    *,
    schema: _core.Schema | None = None,
    name: str | None = None,
) -> Output:
    """Appends a reduction of a collection.

    Args:
        scope: Where it is.
        kind: The kind of the node.
        output: The input of the reduction: pairs, or for some kinds records.
        reduction: The extension's name of it.
        argument: The argument of the extension's reduction.
        schema: Of columns that are made; None for records.
        name: The operator's name.
    """
    reads, makes = collections.keyed_by(kind)
    read, made = output.read_as(reads), Output(makes, schema)
    return scope._append(kind, [read], made, name=name, reduction=reduction, argument=argument).output


def outside(scope: BuildingScope, output: Output) -> tuple[BuildingScope, Output, list[BuildingScope]]:
    """Finds the output that entered a scope, where the given one is derived from it.

    Returns:
        The scope, the output, and the scopes that it has entered from there on, outermost first.
    """
    entered: list[BuildingScope] = []
    while output.node.kind is shape.ENTER:
        assert scope.parent is not None
        entered.insert(0, scope)
        scope, output = scope.parent, output.node.inputs[0].output
    return scope, output, entered


def brought_in(output: Output, scopes: Iterable[BuildingScope]) -> Output:
    """Has an output enter scopes, outermost first."""
    for scope in scopes:
        output = scope._entered(output)
    return output


def distinct_keys(scope: BuildingScope, keys: Output, name: str | None) -> tuple[Output, Form]:
    """Each of some records once, as a key without a value.

    The result of `distinct` is that already. Of keys that have entered the scope, it is computed outside.

    Returns:
        The input of a join, and its form.
    """
    there, found, entered = outside(scope, keys)
    if found.node.kind is not collections.DISTINCT:
        once = reduced(there, collections.DISTINCT, found, _core.Reduction.DISTINCT, name=name)
        keys = brought_in(once, entered)
    return keys, Form.BY_RECORD


def unmatched_keys(
    scope: BuildingScope, keys: tuple[Output, Form], others: tuple[Output, Form], name: str | None
) -> tuple[Output, Form]:
    """Returns the keys of one side that the other does not have, as the input of a join.

    Args:
        scope: The scope of both.
        keys: Distinct keys.
        others: Distinct keys, too.
        name: The operator's name.
    """
    part = named_part(name, "unmatched keys")
    away = one(scope, collections.NEGATE, others[0], name=part)
    less = concatenated(scope, [keys[0], away], name=part)
    # A key counts 1 where only the first side has it, 0 where both do, and -1 where only the other does.
    only = reduced(scope, collections.DISTINCT, less, _core.Reduction.DISTINCT, name=part)
    return only, Form.BY_RECORD
