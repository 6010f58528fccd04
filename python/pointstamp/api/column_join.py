"""Joins of collections of columns.

Owns `ColumnJoin`, the nodes that a join of two collections appends. Both sides are arranged by key, without
the rows that have a null in it: inner, outer and semi joins read the same two arrangements, which they share
with other joins by the same key (see `keyed_rows`). An outer join is
the inner join, with the rows whose key the other side does not have and the rows with a null in the key.
These keys are kept by key, not by row: the keys of one side, minus the keys of the other. So rows without a
match come and go with the keys of the other side, and the cost of a change follows the change of the result.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pointstamp import _core
from pointstamp._core import JoinKind
from pointstamp.api.classes import collection_of
from pointstamp.api.collection_nodes import (
    concatenated,
    joined,
    named_part,
    one,
    unmatched_keys,
)
from pointstamp.api.column_types import columns_of, schema_of
from pointstamp.api.keyed_rows import keyed
from pointstamp.expr.expressions import key, left, record, right
from pointstamp.plan import collections
from pointstamp.plan.node import Form

if TYPE_CHECKING:
    from pointstamp.api.column_collection import ColumnCollection
    from pointstamp.plan.node import Output

__all__ = ["ColumnJoin"]


class _Side:
    """One side: its rows, and its pairs of the key and the other columns."""

    __slots__ = ("nulls_equal", "pairs", "rest", "rows")

    def __init__(self, rows: ColumnCollection, by: list[str], name: str | None, nulls_equal: bool) -> None:
        self.rows, self.nulls_equal = rows, nulls_equal
        self.rest = rows._rest(by)
        keys, rest = ([rows._index(column) for column in columns] for columns in (by, self.rest))
        self.pairs = keyed(rows.scope, rows._output, keys, rest, name, nulls_equal=nulls_equal)


class ColumnJoin:
    """A join of two collections by the columns of a key.

    Args:
        here: The left side.
        other: The right side.
        by: The key's columns, which both have.
        name: The operator's name.
        nulls_equal: Whether a null in a key equals a null.
    """

    __slots__ = ("_by", "_here", "_name", "_scope", "_there")

    def __init__(
        self,
        here: ColumnCollection,
        other: ColumnCollection,
        by: list[str],
        name: str | None,
        *,
        nulls_equal: bool = False,
    ) -> None:
        self._scope = here.scope
        self._by, self._name = by, name
        self._here, self._there = (_Side(rows, by, name, nulls_equal) for rows in (here, other))

    def semi(self, name: str | None) -> ColumnCollection:
        """The rows of the left side whose key the right side has."""
        here, schema = self._here, self._here.rows._columns
        mine, values = here.pairs.pairs(left)
        parts = (*columns_of(key, self._by), *values)
        at = dict(zip((*self._by, *here.rest), parts, strict=True))
        flat = tuple(at[column] for column in self._here.rows.schema.names)
        theirs = self._there.pairs.keys()
        made = joined(self._scope, mine, theirs, JoinKind.FIELDS, flat, schema=schema, name=name)
        return self._made(made)

    def pairs(self, suffix: str, *, left: bool, right: bool) -> ColumnCollection:
        """The rows with a match, and those without one of the left side, of the right side, or of both."""
        schema = self._schema(suffix)
        parts = [self._matched(schema, None if not (left or right) else named_part(self._name, "matched"))]
        if left:
            parts += self._unmatched(self._here, self._there, schema)
        if right:
            parts += self._unmatched(self._there, self._here, schema)
        if len(parts) == 1:
            return self._made(parts[0])
        return self._made(concatenated(self._scope, parts, name=self._name))

    def _schema(self, suffix: str) -> _core.Schema:
        """The columns of pairs: the key's, the others of the left side, and the right side's."""
        mine, theirs = self._here.rows.schema, self._there.rows.schema
        taken = mine.names
        own = [(column, mine.field(column).type) for column in (*self._by, *self._here.rest)]
        others = [
            (column + suffix if column in taken else column, theirs.field(column).type)
            for column in self._there.rest
        ]
        return _core.Schema(schema_of(mine, [*own, *others]))

    def _matched(self, schema: _core.Schema, name: str | None) -> Output:
        (mine, here), (theirs, there) = self._here.pairs.pairs(left), self._there.pairs.pairs(right)
        parts = (*columns_of(key, self._by), *here, *there)
        read, name = (theirs, Form.BY_KEY), name or self._name
        return joined(self._scope, mine, read, JoinKind.FIELDS, parts, schema=schema, name=name)

    def _unmatched(self, side: _Side, other: _Side, schema: _core.Schema) -> list[Output]:
        """The rows of a side whose key the other does not have, and rows with a null in the key."""

        def flat(keys: Any, values: Any) -> tuple[Any, ...]:
            missing = [None] * len(other.rest)
            parts = (missing, values) if side is self._there else (values, missing)
            return (*keys, *parts[0], *parts[1])

        scope, name = self._scope, named_part(self._name, "unmatched")
        keys = unmatched_keys(scope, side.pairs.keys(), other.pairs.keys(), self._name)
        pairs, values = side.pairs.pairs(left)
        parts = flat(columns_of(key, self._by), values)
        rows = [joined(scope, pairs, keys, JoinKind.FIELDS, parts, schema=schema, name=name)]
        nulls = None if side.nulls_equal else side.rows._null_in(self._by)
        if nulls is not None:
            found = side.rows._one(
                collections.FILTER_FIELDS, named_part(self._name, "null keys"), condition=nulls
            )
            at = side.rows._index
            parts = flat(
                [record[at(column)] for column in self._by], [record[at(column)] for column in side.rest]
            )
            rows.append(
                one(scope, collections.PROJECT, found._output, schema=schema, name=name, fields=parts)
            )
        return rows

    def _made(self, output: Output) -> ColumnCollection:
        rows: ColumnCollection = collection_of(self._scope, output)
        return rows
