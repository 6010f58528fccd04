"""Subqueries of a query: each becomes a join of the rows around it.

A subquery reads columns of the query around it (its correlation). Where each of them is in one equality with
a value of the subquery alone, the subquery is computed for all values at once, with that value as a column.
Otherwise the distinct values of the columns are one more table of the subquery. The rows around are then
joined with the result by these columns: EXISTS and IN are semi joins, NOT EXISTS and NOT IN anti joins, and a
value is a left join. Elsewhere than among the conditions of WHERE and HAVING, EXISTS and IN are columns of
truth values.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from pointstamp import _core
from pointstamp.expr.expressions import col, count, lit
from pointstamp.expr.functions import case, coalesce
from pointstamp.queries.aggregation import aggregates_in, empty_value
from pointstamp.queries.conditions import has_subquery
from pointstamp.queries.parsing import key_of, refuse
from pointstamp.queries.relations import Relation, fresh
from pointstamp.queries.scalars import Scalars

if TYPE_CHECKING:
    from sqlglot import exp

    from pointstamp._core import Aggregate, Expr
    from pointstamp.queries.lowering import Block

__all__ = ["Subqueries"]


class _Result(NamedTuple):
    """A lowered subquery.

    Attributes:
        relation: Its rows.
        pairs: The columns that are joined with those around.
        names: Its own columns.
        has_nulls: Whether the columns that are joined may be null.
    """

    relation: Relation
    pairs: list[tuple[Expr, Expr]]
    names: list[str]
    has_nulls: bool


class Subqueries:
    """The subqueries of a block, joined with its rows.

    Attributes:
        relation: The rows, which gain columns.
        known: The columns that hold the values of subqueries, by their texts.
    """

    __slots__ = ("_block", "known", "relation")

    def __init__(self, block: Block, relation: Relation, known: dict[str, str]) -> None:
        self._block, self.relation, self.known = block, relation, known

    def scalars(self) -> Scalars:
        """The translation of expressions over the rows."""
        return Scalars(self._block.column, self.known)

    def where(self, condition: exp.Expr) -> None:
        """Keeps the rows of which a condition with subqueries is true."""
        from sqlglot import exp

        inner, negated = condition.unnest(), False
        while isinstance(inner, exp.Not):
            inner, negated = inner.this.unnest(), not negated
        how = "anti" if negated else "semi"
        if isinstance(inner, exp.Exists):
            result = self._rows_of(inner.this)
            self._joined(result, result.pairs, how)
        elif isinstance(inner, exp.In) and inner.args.get("query") is not None:
            self._where_in(inner, how)
        else:
            self.attach(condition)
            self.relation = self.relation.where(self.scalars().of(condition))

    def attach(self, node: exp.Expr) -> None:
        """Adds a column with the value of each subquery in an expression."""
        from sqlglot import exp

        if not has_subquery(node) or key_of(node) in self.known:
            return
        if isinstance(node, exp.Exists):
            self.known[key_of(node)] = self._flag_of(self._rows_of(node.this))
        elif isinstance(node, exp.In) and node.args.get("query") is not None:
            self._attach_in(node)
        elif isinstance(node, (exp.Subquery, exp.Select)):
            self._attach_value(node)
        elif isinstance(node, (exp.Any, exp.All)):
            refuse(node, "ANY and ALL are not covered: compare with the min or the max of the subquery")
        else:
            for child in node.iter_expressions():
                self.attach(child)

    # ------------------------------------------------------------ parts

    def _lowered(self, query: exp.Expr) -> _Result:
        query = query.unnest()
        scalars = self.scalars()
        made = self._block.lower_inside(query, self.relation, scalars)
        pairs = [(scalars.of(free), col(name)) for name, free in made.correlation.items()]
        return _Result(made.relation, pairs, made.names, made.has_nulls)

    def _rows_of(self, query: exp.Expr) -> _Result:
        """The rows of a subquery of EXISTS or IN."""
        result = self._lowered(query)
        if result.pairs and _is_one_row(query.unnest()):
            # It has a row also for those rows around it of which it reads none.
            refuse(
                query,
                "an aggregate of all rows that reads the query around it is no set: compare with its value",
            )
        return result

    def _joined(self, result: _Result, pairs: list[tuple[Expr, Expr]], how: str) -> None:
        """Keeps the rows that have a match, or those that have none."""
        if not pairs:
            # No row reads the others: all are kept, or none is.
            rows = Relation(result.relation.rows.aggregate([], **_named("#rows", count())), single=True)
            names = self.relation.names
            there = col("#rows") > 0 if how == "semi" else col("#rows") == 0
            self.relation = self.relation.times(rows).where(there).only(names)
            return
        self.relation = self.relation.join(result.relation, pairs, how=how, nulls_equal=result.has_nulls)

    def _flag_of(self, result: _Result) -> str:
        """Adds a column that says whether a row has a match in a result."""
        name = fresh("exists")
        if not result.pairs:
            rows = Relation(result.relation.rows.aggregate([], **_named(name, count())), single=True)
            self.relation = self.relation.times(rows)
            self.relation = self.relation.having(**{name: col(name) > 0})
            return name
        keys = {fresh("outer"): theirs for _, theirs in result.pairs}
        there = result.relation.rows.select(**keys).distinct().with_columns(**{name: lit(1)})
        pairs = [(mine, col(key)) for (mine, _), key in zip(result.pairs, keys, strict=True)]
        names = self.relation.names
        joined = self.relation.join(Relation(there), pairs, how="left", nulls_equal=True)
        self.relation = joined.having(**{name: ~col(name).is_null()}).only([*names, name])
        return name

    def _value_in(self, node: exp.In) -> tuple[_Result, list[Expr], list[Expr]]:
        """The subquery of IN, the values that are looked for, and its own values."""
        from sqlglot import exp

        of = node.this.unnest()
        wanted = of.expressions if isinstance(of, exp.Tuple) else [of]
        for part in wanted:
            self.attach(part)
        result = self._rows_of(node.args["query"])
        if len(result.names) != len(wanted):
            refuse(
                node, f"the subquery of IN has {len(result.names)} columns, and {len(wanted)} are looked for"
            )
        scalars = self.scalars()
        return result, [scalars.of(part) for part in wanted], [col(name) for name in result.names]

    def _where_in(self, node: exp.In, how: str) -> None:
        result, wanted, found = self._value_in(node)
        # An unknown value has no match, and a null of the subquery is none.
        known = Relation(_without_nulls(result.relation, found).rows)
        pairs = [*result.pairs, *zip(wanted, found, strict=True)]
        if how == "semi":
            rows = self.relation.where(~_any_null(wanted)) if result.has_nulls else self.relation
            self.relation = rows.join(known, pairs, how="semi", nulls_equal=result.has_nulls)
            return
        if len(wanted) > 1:
            refuse(node, "NOT IN of several columns is not covered: write NOT EXISTS")
        counts = self._counts(result, found[0])
        rows = self.relation.join(known, pairs, how="anti", nulls_equal=True)
        # Of an unknown value, or beside a null, NOT IN is true only where the subquery has no row.
        self.relation, (everything, values) = self._with_counts(rows, result, counts)
        (value,) = wanted
        certain = ~value.is_null() & (col(everything) == col(values))
        kept = col(everything).is_null() | coalesce(col(everything) == 0, False) | coalesce(certain, False)
        self.relation = self.relation.where(kept).only(rows.names)

    def _counts(self, result: _Result, value: Expr) -> tuple[Relation, list[str], str, str]:
        """The number of rows, and of values, of a result for each of its correlations."""
        keys = {fresh("outer"): theirs for _, theirs in result.pairs}
        everything, values, of = fresh("rows"), fresh("values"), fresh("of")
        rows = result.relation.rows.select(**keys, **{of: value})
        counts = rows.aggregate(list(keys), **_named(everything, count()), **_named(values, col(of).count()))
        return Relation(counts, single=not keys), list(keys), everything, values

    def _with_counts(
        self, rows: Relation, result: _Result, counts: tuple[Relation, list[str], str, str]
    ) -> tuple[Relation, tuple[str, str]]:
        relation, keys, everything, values = counts
        if not keys:
            return rows.times(relation), (everything, values)
        pairs = [(mine, col(key)) for (mine, _), key in zip(result.pairs, keys, strict=True)]
        return rows.join(relation, pairs, how="left", nulls_equal=True), (everything, values)

    def _attach_in(self, node: exp.In) -> None:
        result, wanted, found = self._value_in(node)
        if len(wanted) > 1:
            refuse(node, "IN of several columns is covered as a condition of WHERE alone: write EXISTS")
        (value,) = wanted
        counts = self._counts(result, found[0])
        pairs = [*result.pairs, (value, found[0])]
        known = _without_nulls(result.relation, found)
        names = self.relation.names
        flag = self._flag_of(_Result(known, pairs, [], result.has_nulls))
        # A null that is looked for equals no value, but the join takes nulls as equal.
        matched = col(flag) & ~value.is_null()
        rows, (everything, values) = self._with_counts(self.relation, result, counts)
        some = coalesce(col(everything), 0)
        unknown = (value.is_null() & (some > 0)) | (some > coalesce(col(values), 0))
        name = fresh("in")
        truth = case((matched, True), (unknown, lit(None)), default=False)
        self.relation = rows.having(**{name: truth}).only([*names, name])
        self.known[key_of(node)] = name

    def _attach_value(self, node: exp.Expr) -> None:
        """Adds a column with the one value of a subquery; null where it has no row."""
        query = node.unnest()
        result = self._lowered(query)
        if len(result.names) != 1:
            refuse(node, f"a subquery that is used as a value has one column, not {len(result.names)}")
        name, (own,) = fresh("subquery"), result.names
        names = self.relation.names
        keys = {fresh("outer"): theirs for _, theirs in result.pairs}
        rows = result.relation.rows.select(**keys, **{name: col(own)})
        relation = Relation(rows, single=result.relation.single)
        aggregate = _aggregate_alone(query)
        if _is_one_row(query) and any(query.args.get(part) for part in ("having", "limit", "offset")):
            if keys:
                refuse(
                    node, "HAVING, LIMIT and OFFSET of a value that reads the query around it are not covered"
                )
            aggregate = None  # there may be no row
        if not keys and relation.single:
            self.relation = self.relation.times(relation)
        elif aggregate is None:
            # At most one row for each correlation: two are an error.
            number = fresh("rows")
            one = rows.aggregate(list(keys), **_named(name, col(name).min()), **_named(number, count()))
            checked = _core.call_expr("single", "", [col(name), col(number)])
            made = one.select(*keys, **{name: checked})
            relation = Relation(made, single=not keys)
        pairs = [(mine, col(key)) for (mine, _), key in zip(result.pairs, keys, strict=True)]
        if keys:
            flag = fresh("there")
            relation = relation.having(**{flag: lit(1)})
            joined = self.relation.join(relation, pairs, how="left", nulls_equal=True)
            default = None if aggregate is None else empty_value(aggregate)
            if default is not None and not _is_null(default):
                value = Scalars(self._block.column, self.known).of(default)
                joined = joined.having(**{name: case((~col(flag).is_null(), col(name)), default=value)})
            self.relation = joined
        elif not result.relation.single:
            self.relation = self.relation.times(relation)
        self.relation = self.relation.only([*names, name])
        self.known[key_of(node)] = name
        self.known[key_of(query)] = name


def _named(name: str, aggregate: Aggregate) -> dict[str, Any]:
    """An aggregate under a name that is made up."""
    return {name: aggregate}


def _aggregate_alone(query: exp.Expr) -> exp.Expr | None:
    """The column of a select that is computed of aggregates without groups; None for another query."""
    from sqlglot import exp

    if not isinstance(query, exp.Select) or query.args.get("group") or len(query.expressions) != 1:
        return None
    column = query.expressions[0].unalias()
    return column if aggregates_in([column]) else None


def _is_one_row(query: exp.Expr) -> bool:
    """Whether a query is of aggregates without groups."""
    from sqlglot import exp

    return (
        isinstance(query, exp.Select)
        and not query.args.get("group")
        and bool(query.args.get("having") or aggregates_in(query.expressions))
    )


def _is_null(node: exp.Expr) -> bool:
    """Whether an expression is null whatever the rows are: it is calculated of a null."""
    from sqlglot import exp

    node = node.unnest()
    if isinstance(node, exp.Null):
        return True
    if isinstance(node, (exp.Add, exp.Sub, exp.Mul, exp.Div)):
        return _is_null(node.this) or _is_null(node.expression)
    return isinstance(node, (exp.Neg, exp.Cast)) and _is_null(node.this)


def _any_null(values: list[Expr]) -> Expr:
    made = values[0].is_null()
    for value in values[1:]:
        made = made | value.is_null()
    return made


def _without_nulls(relation: Relation, values: list[Expr]) -> Relation:
    return relation.where(~_any_null(values))
