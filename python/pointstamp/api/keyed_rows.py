"""Pairs of a key and of other columns, which the joins of a dataflow share.

Owns `keyed`, which finds the collection that the columns of a side come from, through renamed and chosen
columns and into scopes, and the one node that pairs its rows by a key, `KeyedRows`. Each join adds the
columns that it reads: the joins by one key of one collection read one arrangement, which has the columns that
any of them reads.
"""

from __future__ import annotations

from functools import reduce as fold
from operator import or_
from typing import TYPE_CHECKING, Any, NamedTuple

from pointstamp import _core
from pointstamp.api.collection_nodes import brought_in, distinct_keys, named_part, one
from pointstamp.expr.expressions import record
from pointstamp.lowering.sharing import Alike
from pointstamp.plan import collections, shape

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pointstamp._core import Expr
    from pointstamp.lowering.scope import BuildingScope
    from pointstamp.plan.node import Form, Node, Output

__all__ = ["KeyedRows", "Side", "is_keyed", "keyed"]


class _Source(NamedTuple):
    """The collection that columns come from.

    Attributes:
        scope: The scope that it is in.
        output: The collection.
        places: The index of each column.
        entered: The scopes that the columns have entered from there on, outermost first.
        passed: The nodes between, which choose columns and enter scopes.
    """

    scope: BuildingScope
    output: Output
    places: list[int]
    entered: list[BuildingScope]
    passed: list[Node]


def _source_of(scope: BuildingScope, output: Output) -> _Source:
    schema = output.schema
    assert schema is not None
    places = list(range(len(schema.to_pyarrow())))
    entered: list[BuildingScope] = []
    passed: list[Node] = []
    while True:
        node = output.node
        if node.kind is shape.ENTER:
            assert scope.parent is not None
            entered.insert(0, scope)
            scope = scope.parent
        elif node.kind is collections.SELECT:
            chosen = _chosen(node)
            if chosen is None:
                break
            places = [chosen[place] for place in places]
        elif node.kind is not collections.RENAME:
            break
        passed.append(node)
        output = node.inputs[0].output
    return _Source(scope, output, places, entered, passed)


class _Whole(NamedTuple):
    """The collection of which filters keep some rows.

    Attributes:
        at: Its place in `Plan.keyed`, for pairs by the same key.
        filters: The nodes of the filters, in their order.
        places: The index in it of each column of the filtered rows.
    """

    at: Any
    filters: list[Node]
    places: list[int]


def _whole_of(alike: Alike, source: _Source, key: tuple[int, ...], *, nulls_equal: bool) -> _Whole | None:
    """The collection of which a filter keeps some rows; None where it is no filter."""
    filters: list[Node] = []
    output = source.output
    while output.node.kind is collections.FILTER_COLUMNS:
        filters.insert(0, output.node)
        output = output.node.inputs[0].output
    whole = _source_of(source.scope, output)
    if not filters or whole.entered:
        return None
    at = alike.of(whole.output), tuple(whole.places[place] for place in key), nulls_equal
    return _Whole(at, filters, whole.places)


def _chosen(node: Node) -> list[int] | None:
    """The index of each column that a node chooses; None where it computes one."""
    before = node.inputs[0].output.schema
    assert before is not None
    names = before.to_pyarrow().names
    found = []
    for field in node["fields"].values():
        if not isinstance(field, _core.Expr) or field._column is None:
            return None
        found.append(names.index(field._column))
    return found


class KeyedRows:
    """The rows of a collection as pairs of a key and of the columns that readers ask for.

    Rows with a null in the key are left out, unless nulls are equal.

    Attributes:
        node: The node of the pairs; None before the first reader.
        values: The indices of the columns in the values.
        whole: The collection that the rows are filtered from.
        passed: Nodes between the filters and the pairs.
    """

    __slots__ = ("_entered", "_key", "_keys", "_name", "_rows", "_scope", "node", "passed", "values", "whole")

    def __init__(
        self,
        source: _Source,
        key: tuple[int, ...],
        name: str | None,
        whole: _Whole | None,
        *,
        nulls_equal: bool,
    ) -> None:
        self._scope, self._name, self._rows = source.scope, name, source.output
        self.whole = whole
        self.passed: list[Node] = []
        schema = source.output.schema
        assert schema is not None
        nulls = [record[place].is_null() for place in key if schema.to_pyarrow().field(place).nullable]
        if nulls and not nulls_equal:
            condition = ~fold(or_, nulls)
            part = f"{name}: null keys" if name else "null keys"
            self._rows = one(
                self._scope,
                collections.FILTER_FIELDS,
                self._rows,
                schema=schema,
                name=part,
                condition=condition,
            )
            self.passed.append(self._rows.node)
        parts = tuple(record[place] for place in key)
        self._key: Any = parts[0] if len(parts) == 1 else parts or None
        self.values: list[int] = []
        self.node: Node | None = None
        self._keys: tuple[Output, Form] | None = None
        self._entered: dict[tuple[Output, tuple[BuildingScope, ...]], Output] = {}

    def pairs(self, columns: Sequence[int], entered: Sequence[BuildingScope]) -> tuple[Output, list[int]]:
        """The pairs, where they have entered scopes, and the index of each of some columns in the values."""
        self.values += [column for column in dict.fromkeys(columns) if column not in self.values]
        fields = self._key, tuple(record[column] for column in self.values)
        if self.node is None:
            name = named_part(self._name, "map")
            self.node = one(self._scope, collections.PROJECT, self._rows, name=name, fields=fields).node
            self._scope._building.plan.alike.alone(self.node.output)
        assert self.node.arguments is not None
        self.node.arguments["fields"] = fields
        return self._brought_in(self.node.output, entered), [self.values.index(one) for one in columns]

    def keys(self, entered: Sequence[BuildingScope]) -> tuple[Output, Form]:
        """Each key, once, where the rows have entered some scopes."""
        if self._keys is None:
            part = named_part(self._name, "map")
            keys = one(self._scope, collections.PROJECT, self._rows, name=part, fields=self._key)
            self._keys = distinct_keys(self._scope, keys, named_part(self._name, "keys"))
        output, form = self._keys
        return self._brought_in(output, entered), form

    def _brought_in(self, output: Output, entered: Sequence[BuildingScope]) -> Output:
        at = output, tuple(entered)
        if at not in self._entered:
            self._entered[at] = brought_in(output, entered)
        return self._entered[at]


class Side(NamedTuple):
    """The columns of a collection by a key.

    Attributes:
        rows: The pairs that other joins share.
        columns: The places of the columns without the key, in the collection that they come from.
        entered: The scopes that they have entered.
    """

    rows: KeyedRows
    columns: list[int]
    entered: list[BuildingScope]

    def pairs(self, of: Expr) -> tuple[Output, tuple[Expr, ...]]:
        """The pairs, and the columns without the key as parts of a value."""
        output, places = self.rows.pairs(self.columns, self.entered)
        return output, tuple(of[place] for place in places)

    def keys(self) -> tuple[Output, Form]:
        """Each key, once."""
        return self.rows.keys(self.entered)


def keyed(
    scope: BuildingScope,
    output: Output,
    key: Sequence[int],
    rest: Sequence[int],
    name: str | None,
    *,
    nulls_equal: bool,
) -> Side:
    """Finds or makes the pairs of a collection's rows by a key.

    Args:
        scope: The scope of the collection.
        output: The collection, of columns.
        key: The indices of the key's columns.
        rest: The indices of the other columns.
        name: The name of the operator that reads them.
        nulls_equal: Whether a null in a key equals a null.
    """
    source = _source_of(scope, output)
    places = tuple(source.places[index] for index in key)
    plan = scope._building.plan
    if plan.alike is None:
        plan.alike = Alike()
    at = (plan.alike.of(source.output), places, nulls_equal)
    found = plan.keyed.get(at)
    if found is None:
        source = source._replace(output=at[0])
        whole = _whole_of(plan.alike, source, places, nulls_equal=nulls_equal)
        found = plan.keyed[at] = KeyedRows(source, places, name, whole, nulls_equal=nulls_equal)
    plan.passed_over.update(source.passed)
    return Side(found, [source.places[index] for index in rest], source.entered)


def is_keyed(scope: BuildingScope, output: Output, key: Sequence[int]) -> bool:
    """Whether a join reads the rows of a collection, or all that they are filtered from, by a key already.

    Args:
        scope: The scope of the collection.
        output: The collection, of columns.
        key: The indices of the key's columns.
    """
    plan = scope._building.plan
    if plan.alike is None:
        return False
    source = _source_of(scope, output)
    places = tuple(source.places[index] for index in key)
    if (plan.alike.of(source.output), places, False) in plan.keyed:
        return True
    whole = _whole_of(plan.alike, source, places, nulls_equal=False)
    return whole is not None and whole.at in plan.keyed
