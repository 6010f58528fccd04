"""Filters before joins that are moved behind them, so that a join reads the arrangement of all rows.

A join of the rows that a filter keeps arranges these rows. Where another join arranges all rows of the same
collection by the same key, that arrangement is there anyway, and the second one is saved: the join reads the
first, with the columns that the filter reads, and the filter follows the join. A filter that is likely to
keep few rows stays where it is, because its arrangement is small: where a column equals a constant, and where
it is between two constants, unless the arrangement of all rows has the columns that the filter reads. So does
a filter that may have no result for a row, such as a sum that is too large: errors name the row, and do not
depend on other queries.
"""

from __future__ import annotations

import operator
from enum import Enum
from typing import TYPE_CHECKING, Any, NamedTuple, cast

from pointstamp import _core
from pointstamp.plan import collections
from pointstamp.plan.node import Form, Node, Output

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from pointstamp._core import Expr
    from pointstamp.plan.plan import Plan

__all__ = ["Moved", "late_filters"]


class Moved(NamedTuple):
    """The plan with filters behind joins.

    Attributes:
        nodes: The nodes, each after its inputs.
        instead: For the outputs of joins of filtered rows, the output that is read instead.
        passed_over: Nodes of which no operator is made without another reader.
    """

    nodes: list[Node]
    instead: dict[Output, Output]
    passed_over: set[Node]


def late_filters(plan: Plan) -> Moved:
    """Moves filters behind the joins that may read an arrangement of all rows."""
    sides = [
        (rows, whole, _kept(rows.whole.filters))
        for rows in plan.keyed.values()
        if rows.node is not None
        and rows.whole is not None
        and (whole := plan.keyed.get(rows.whole.at)) is not None
        and whole.node is not None
    ]
    filtered = {rows.node: rows for rows, _, kept in sides if kept is _Kept.MANY}
    for rows, whole, kept in sides:
        if kept is _Kept.RANGE and _needed(rows) <= {*whole.values, *_added(rows.whole.at, filtered)}:
            filtered[rows.node] = rows
    if not filtered:
        return Moved(plan.nodes, {}, set())
    # All rows by key come right behind the rows: before each join that reads them now.
    brought: dict[Node, list[Node]] = {}
    for at in dict.fromkeys(rows.whole.at for rows in filtered.values()):
        brought.setdefault(at[0].node, []).extend([*plan.keyed[at].passed, plan.keyed[at].node])
    others = {node for group in brought.values() for node in group}
    nodes: list[Node] = []
    moved = Moved(nodes, {}, set())
    for node in plan.nodes:
        if node in others:
            continue
        nodes += [node, *brought.get(node, ())]
        if node.kind is not collections.JOIN:
            continue
        if node["result"] != _core.JoinKind.FIELDS or node.output.schema is None:
            continue
        of_node = [filtered.get(read.output.node) for read in node.inputs]
        if any(rows is not None for rows in of_node):
            _move(node, of_node, plan, moved)
    return moved


def _move(node: Node, sides: Sequence[Any], plan: Plan, moved: Moved) -> None:
    """Adds a join of all rows, the filters behind it, and the choice of the columns of a join's result."""
    import pyarrow as pa

    assert node.output.schema is not None
    names = [f"_{index}" for index in range(len(node.output.schema.to_pyarrow()))]
    fields = [
        pa.field(name, field.type) for name, field in zip(names, node.output.schema.to_pyarrow(), strict=True)
    ]
    function, reads, conditions = list(node["function"]), list(node.inputs), []
    for index, (side, source) in enumerate(zip(sides, ("left", "right"), strict=True)):
        if side is None:
            continue
        before = side.whole.filters[0].inputs[0].output.schema.to_pyarrow()
        read = _read_by(side.whole.filters)
        if any(name in read for name in (field.name for field in fields)):
            continue  # the filters of both sides name a column alike
        at = [side.whole.places[before.get_field_index(name)] for name in read]
        values = [side.whole.places[column] for column in side.values]
        output, places = plan.keyed[side.whole.at].pairs([*values, *at], [])
        reads[index] = output.read_as(Form.BY_KEY)
        of = _core.source_expr(source)
        function = [_placed(part, source, places) for part in function]
        function += [of[place] for place in places[len(values) :]]
        fields += [before.field(name).with_nullable(True) for name in read]
        conditions += side.whole.filters
        moved.passed_over.update([side.node, *side.passed, *side.whole.filters])
    if not conditions:
        return
    wide = _core.Schema(pa.schema(fields))

    def added(kind: Any, inputs: Any, schema: _core.Schema, like: Node, **arguments: Any) -> Output:
        made = Node(kind, inputs, [Output(Form.UPDATES, schema)], arguments, like.name, node.line, node.scope)
        moved.nodes.append(made)
        return made.output

    result = node["result"]
    made = added(node.kind, reads, wide, node, result=result, function=tuple(function))
    for filter_ in conditions:
        read_here = [made.read_as(made.form.plain)]
        made = added(filter_.kind, read_here, wide, filter_, condition=filter_["condition"])
    named = dict(zip(node.output.schema.to_pyarrow().names, map(_core.column_expr, names), strict=True))
    read_here = [made.read_as(made.form.plain)]
    moved.instead[node.output] = added(collections.SELECT, read_here, node.output.schema, node, fields=named)


def _placed(part: Any, source: str, places: Sequence[int]) -> Any:
    """A part of a join's result, of which those of a side are at other places of its values."""
    if not isinstance(part, _core.Expr):
        return part
    make, arguments = _apart(part)
    if make is not operator.getitem or _apart(arguments[0])[1] != (source,):
        return part
    return arguments[0][places[arguments[1]]]


def _apart(expr: Expr) -> tuple[Any, tuple[Any, ...]]:
    """The function of an expression, and its arguments."""
    return cast("tuple[Any, tuple[Any, ...]]", expr.__reduce__())


def _parts(expr: Any) -> Iterator[tuple[Any, list[Any]]]:
    """The functions of an expression and of its parts, with their arguments."""
    unseen = [expr]
    while unseen:
        at = unseen.pop()
        if isinstance(at, (list, tuple)):
            unseen += at
        elif isinstance(at, _core.Expr):
            make, arguments = _apart(at)
            yield make, list(arguments)
            unseen += arguments


def _columns_of(expr: Any) -> list[str]:
    """The columns that an expression reads, or several do."""
    return [arguments[0] for make, arguments in _parts(expr) if make is _core.column_expr]


def _read_by(filters: Sequence[Node]) -> list[str]:
    """The columns that filters read, each once."""
    return list(dict.fromkeys(name for filter_ in filters for name in _columns_of(filter_["condition"])))


def _needed(rows: Any) -> set[int]:
    """The columns of all rows that a join of filtered rows needs, with those that the filters read."""
    whole = rows.whole
    names = whole.filters[0].inputs[0].output.schema.to_pyarrow().names
    read = [names.index(name) for name in _read_by(whole.filters)]
    return {whole.places[column] for column in (*rows.values, *read)}


def _added(at: Any, filtered: dict[Node, Any]) -> set[int]:
    """The columns that joins of filtered rows add to the arrangement of all rows at a place."""
    return {column for rows in filtered.values() if rows.whole.at == at for column in _needed(rows)}


_COMPARED = (operator.eq, operator.ne, operator.lt, operator.le, operator.gt, operator.ge)
_CONNECTED = (operator.and_, operator.or_, operator.invert)
_OF_TEXT = {"is_in", "like", "ilike", "starts_with", "ends_with", "contains"}


def _may_fail(condition: Any) -> bool:
    """Whether a condition may have no result for a row: it does more than compare columns with constants."""
    for make, arguments in _parts(condition):
        is_compared = (
            make in (_core.column_expr, *_COMPARED, *_CONNECTED)
            or isinstance(make, operator.methodcaller)  # is_null
            or (make is _core.call_expr and arguments[0] in _OF_TEXT)
        )
        if not is_compared and _columns_of(arguments):
            return True
    return False


_BELOW = (operator.lt, operator.le)
_ABOVE = (operator.gt, operator.ge)


class _Kept(Enum):
    """The share of rows that filters are likely to keep: those of a value, those of a range, or many."""

    VALUE = 0
    RANGE = 1
    MANY = 2


def _kept(filters: Sequence[Node]) -> _Kept:
    """The share of rows that filters are likely to keep; one value where they are to stay."""
    if any(_may_fail(filter_["condition"]) for filter_ in filters):
        return _Kept.VALUE
    bounds: set[tuple[str, bool]] = set()
    found = _Kept.MANY
    unseen = [filter_["condition"] for filter_ in filters]
    while unseen:
        condition = unseen.pop()
        make, arguments = _apart(condition)
        if make is operator.and_:
            unseen += [part for part in arguments if isinstance(part, _core.Expr)]
            continue
        read = _columns_of(condition)
        if make is operator.or_ or len(read) != 1:
            continue
        if make is operator.eq or (make is _core.call_expr and arguments[0] == "is_in"):
            return _Kept.VALUE
        if make in (*_BELOW, *_ABOVE):
            below = (make in _BELOW) == isinstance(arguments[0], _core.Expr)
            if (read[0], not below) in bounds:
                found = _Kept.RANGE
            bounds.add((read[0], below))
    return found
