"""Relations: collections of columns whose columns are those of a query's tables, and their joins.

A relation's columns have names of its own, ``table.column``, so that columns of several tables do not meet.
Names that begin with ``#`` are of the lowering alone: keys, aggregates and the values of subqueries.
"""

from __future__ import annotations

import re
from contextvars import ContextVar
from itertools import count, repeat
from typing import TYPE_CHECKING, Any, NamedTuple

import pyarrow as pa

from pointstamp import _core
from pointstamp.api.keyed_rows import is_keyed
from pointstamp.errors import GraphError
from pointstamp.expr.expressions import col, lit
from pointstamp.expr.functions import coalesce

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from pointstamp._core import Expr
    from pointstamp.api.column_collection import ColumnCollection

__all__ = ["Relation", "Table", "alike", "fresh", "in_common", "numbered", "titled", "type_of"]

LONGEST = 80
"""The number of characters of the name of an operation."""

_names: ContextVar[Iterator[tuple[str, int]]] = ContextVar("names of made columns")


def numbered(*texts: str) -> None:
    """Begins with the names of a query's made columns: each worker gives the same ones.

    Args:
        texts: The query, and the names of columns of its tables. Names have more signs than any of these.
    """
    signs = max((len(run) for text in texts for run in re.findall("#+", text)), default=0)
    _names.set(zip(repeat("#" * (signs + 1)), count()))


def fresh(kind: str) -> str:
    """Returns a name that no column of the query has."""
    signs, number = next(_names.get())
    return f"{signs}{kind}{number}"


def titled(text: str) -> str:
    """Returns the name of an operation in plans and on the page, which says what it does."""
    plain = re.sub(r'col\("([^"]*)"\)', r"\1", text)
    return plain if len(plain) <= LONGEST else plain[: LONGEST - 3] + "..."


class Relation:
    """Rows of a query.

    Attributes:
        rows: The collection.
        single: Whether there is exactly one row at every time.
    """

    __slots__ = ("rows", "single")

    def __init__(self, rows: ColumnCollection, *, single: bool = False) -> None:
        self.rows, self.single = rows, single

    @property
    def names(self) -> list[str]:
        """The names of the columns."""
        return list(self.rows.schema.names)

    def where(self, condition: Expr) -> Relation:
        """The rows of which a condition is true."""
        return Relation(self.rows.filter(condition, name=titled(f"where {condition!r}")))

    def having(self, **columns: Any) -> Relation:
        """The rows with further columns."""
        return Relation(self.rows.with_columns(**columns), single=self.single)

    def is_keyed(self, key: Iterable[Expr]) -> bool:
        """Whether a join reads these rows, or all that they are filtered from, by some columns already."""
        columns = [expr._column for expr in key]
        if any(column is None for column in columns):
            return False
        at = [self.names.index(column) for column in columns if column is not None]
        return is_keyed(self.rows.scope, self.rows._output, at)

    def only(self, names: Iterable[str]) -> Relation:
        """The rows with some of the columns."""
        wanted = list(names)
        if wanted == self.names:
            return self
        return Relation(self.rows.select(*wanted), single=self.single)

    def times(self, other: Relation) -> Relation:
        """Each row with each row of another relation."""
        key = fresh("all")
        here, there = self.having(**{key: lit(0)}), other.having(**{key: lit(0)})
        joined = Relation(here.rows.join(there.rows, on=key), single=self.single and other.single)
        return joined.only([*self.names, *other.names])

    def join(
        self,
        other: Relation,
        pairs: Sequence[tuple[Expr, Expr]],
        *,
        how: Any = "inner",
        nulls_equal: bool = False,
    ) -> Relation:
        """Joins by equal values of pairs of expressions, of which the first is over this side.

        The result has the columns of both sides; of this side alone for ``"semi"`` and ``"anti"``.
        """
        keys = [fresh("key") for _ in pairs]
        here: dict[str, Any] = {}
        there: dict[str, Any] = {}
        for key, (mine, theirs) in zip(keys, pairs, strict=True):
            here[key], there[key] = in_common(self, mine, other, theirs)
        left = self.rows.with_columns(**here)
        on = " and ".join(f"{mine!r} = {theirs!r}" for mine, theirs in pairs)
        title = titled(f"{how} join on {on}")
        if how in {"semi", "anti"}:
            right = other.rows.select(**there)
            met = left.join(right, on=keys, how=how, nulls_equal=nulls_equal, name=title)
            return Relation(met).only(self.names)
        right = other.rows.with_columns(**there)
        joined = left.join(right, on=keys, how=how, nulls_equal=nulls_equal, name=title)
        return Relation(joined).only([*self.names, *other.names])


def type_of(relation: Relation, expr: Expr) -> pa.DataType:
    """The type of an expression over a relation's columns."""
    schema = _core.select_schema(relation.rows._columns, ["value"], [expr]).to_pyarrow()
    return schema.field(0).type


def in_common(a: Relation, here: Expr, b: Relation, there: Expr) -> tuple[Expr, Expr]:
    """Two expressions over two relations, in the type that their values have in common.

    Raises:
        GraphError: If there is none.
    """
    first, second = type_of(a, here), type_of(b, there)
    if first == second:
        return here, there
    both = _core.Schema(pa.schema({"a": first, "b": second}))
    try:
        made = _core.select_schema(both, ["value"], [coalesce(col("a"), col("b"))])
    except GraphError:
        raise GraphError(
            f"{here!r} is of type {first}, and {there!r} of type {second}: cast one of them, as in "
            "CAST(x AS BIGINT)"
        ) from None
    kind = made.to_pyarrow().field(0).type
    return here if first == kind else here.cast(kind), there if second == kind else there.cast(kind)


class Table(NamedTuple):
    """A table that a query may read: its rows, and its columns by their names in SQL."""

    relation: Relation
    columns: dict[str, str]

    @classmethod
    def of(cls, relation: Relation) -> Table:
        """A table of rows, whose columns have their names in lower case."""
        return cls(relation, {name.lower(): name for name in relation.names})


def alike(a: Relation, b: Relation) -> tuple[ColumnCollection, ColumnCollection]:
    """Two relations with the names of the first and with the types that their columns have in common."""
    here: dict[str, Any] = {}
    there: dict[str, Any] = {}
    for mine, theirs in zip(a.names, b.names, strict=True):
        here[mine], there[mine] = in_common(a, col(mine), b, col(theirs))
    return a.rows.select(**here), b.rows.select(**there)
