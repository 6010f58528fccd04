"""Groups of a query and their aggregates."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pyarrow as pa

from pointstamp.api.column_types import is_number
from pointstamp.expr.expressions import col, count, lit
from pointstamp.expr.functions import case
from pointstamp.queries.parsing import DIALECT, check_parts, key_of, refuse
from pointstamp.queries.partial_groups import add_up, combined, part_of, worth_parts
from pointstamp.queries.relations import Relation, fresh, titled, type_of
from pointstamp.queries.windows import parts_of_window

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from sqlglot import exp

    from pointstamp._core import Aggregate, Expr
    from pointstamp.api.column_collection import ColumnCollection
    from pointstamp.queries.scalars import Scalars

__all__ = ["aggregates_in", "empty_value", "grouped", "names"]


def aggregates_in(nodes: Iterable[exp.Expr]) -> list[exp.Expr]:
    """The aggregates in expressions, without those in queries inside of them; each once."""
    found: dict[str, exp.Expr] = {}
    for node in nodes:
        for part in _outermost(node):
            found.setdefault(key_of(part), part)
    return list(found.values())


def _outermost(node: exp.Expr) -> Iterable[exp.Expr]:
    from sqlglot import exp

    if isinstance(node, exp.Query):
        return
    if isinstance(node, exp.Window):
        for part in parts_of_window(node):
            yield from _outermost(part)
        return
    if isinstance(node, (exp.AggFunc, exp.Filter)):
        yield node
        return
    for child in node.iter_expressions():
        yield from _outermost(child)


class _Part:
    """An aggregate, as aggregates of columns and an expression of their results."""

    __slots__ = ("made", "node", "result")

    def __init__(self, node: exp.Expr) -> None:
        self.node = node
        self.made: dict[str, Aggregate] = {}
        self.result: Expr = lit(None)


def grouped(
    relation: Relation,
    groups: Sequence[exp.Expr],
    correlation: Sequence[str],
    aggregates: Sequence[exp.Expr],
    scalars: Scalars,
) -> tuple[Relation, dict[str, str]]:
    """Groups a relation.

    Args:
        relation: The rows.
        groups: The expressions that they are grouped by.
        correlation: Columns that they are grouped by, too, and that stay.
        aggregates: The aggregates.
        scalars: The translation of expressions over the rows.

    Returns:
        The groups, and the columns that hold the values of expressions and aggregates, by their texts.
    """
    keys = {fresh("group"): scalars.of(group) for group in groups}
    known = {key_of(group): key for group, key in zip(groups, keys, strict=True)}
    keys |= {name: col(name) for name in correlation}
    values: dict[str, Expr] = {}
    ordered = [node for node in aggregates if _ordered(node)]
    parts = [_part(node, relation, values, scalars) for node in aggregates if node not in ordered]
    plain: dict[str, Any] = {name: made for part in parts for name, made in part.made.items()}
    if not plain and (keys or not ordered):
        distinct = Relation(relation.rows.select(**keys).distinct())
        return _with_ordered(distinct, ordered, relation, keys, known, scalars), known
    if not plain:
        plain = {fresh("part"): count()}  # the one group
    by = ", ".join(map(repr, keys.values()))
    title = titled(f"group by {by}" if keys else "group all rows")
    made = _aggregated(relation, keys, values, plain, title)
    results = {}
    for part in parts:
        name = fresh("aggregate")
        results[name] = part.result
        known[key_of(part.node)] = name
    groups_made = Relation(made.select(*keys, **results), single=not keys)
    return _with_ordered(groups_made, ordered, relation, keys, known, scalars), known


def _ordered(node: exp.Expr) -> bool:
    """Whether an aggregate depends on the order of its rows."""
    from sqlglot import exp

    of = node.this if isinstance(node, exp.Filter) else node
    return type(of).__name__ in _ORDERED


def _with_ordered(
    groups: Relation,
    nodes: Sequence[exp.Expr],
    relation: Relation,
    keys: dict[str, Expr],
    known: dict[str, str],
    scalars: Scalars,
) -> Relation:
    """The groups with columns of aggregates that depend on the order of rows."""
    for node in nodes:
        name = fresh("aggregate")
        found = _in_order(node, name, relation, keys, scalars)
        names = groups.names
        theirs = {key: fresh("group") for key in keys}
        there = Relation(found.rename(theirs) if theirs else found)
        pairs = [(col(key), col(theirs[key])) for key in keys] or [(lit(0), lit(0))]
        joined = groups.join(there, pairs, how="left", nulls_equal=True)
        groups = Relation(joined.only([*names, name]).rows, single=groups.single)
        known[key_of(node)] = name
    return groups


def _in_order(
    node: exp.Expr, name: str, relation: Relation, keys: dict[str, Expr], scalars: Scalars
) -> ColumnCollection:
    """The lists of groups, or their first or last values, in a column of a name."""
    from sqlglot import exp

    aggregate = node
    if isinstance(node, exp.Filter):
        relation = relation.where(scalars.of(node.expression.this))
        aggregate = node.this
    check_parts(aggregate, "this", "nulls_excluded")
    of = aggregate.this
    terms = []
    if isinstance(of, exp.Order):
        of, terms = of.this, of.expressions
    distinct = isinstance(of, exp.Distinct)
    if distinct:
        if len(of.expressions) != 1:
            refuse(node, "an aggregate takes one distinct value: select the distinct rows in a subquery")
        [of] = of.expressions
    columns: dict[str, Any] = {**keys, name: scalars.of(of)}
    order = []
    for term in terms:
        check_parts(term, "this", "desc", "nulls_first")
        column = name if key_of(term.this) == key_of(of) else fresh("order")
        if column != name:
            columns[column] = scalars.of(term.this)
        order.append(column)
    if distinct and any(column != name for column in order):
        refuse(node, "of distinct values the order is by themselves")
    how: dict[str, Any] = {
        "by": list(keys),
        "descending": [bool(term.args.get("desc")) for term in terms],
        "nulls_first": [bool(term.args.get("nulls_first")) for term in terms],
        "name": titled(node.sql(DIALECT)),
    }
    rows = relation.rows.select(**columns)
    if distinct:
        rows = rows.distinct()
    if isinstance(aggregate, exp.ArrayAgg):
        if not order:
            how |= {"descending": False, "nulls_first": False}
        return rows.collect(name, order=order, **how)
    if not order:
        refuse(
            node,
            f"{node.sql(DIALECT)} takes any row, which would change with every change: write ORDER BY, as in "
            "first(price ORDER BY day)",
        )
    if isinstance(aggregate, exp.Last):
        for flag in ("descending", "nulls_first"):
            how[flag] = [not one for one in how[flag]]
    ranked = rows.top_k(1, order, others=[] if name in order else [name], **how)
    return ranked.select(*keys, name)


def _aggregated(
    relation: Relation, keys: dict[str, Expr], values: dict[str, Expr], plain: dict[str, Any], title: str
) -> ColumnCollection:
    """The aggregates of groups, by parts where groups are likely to be large and aggregates read all rows."""
    rows = relation.rows.select(**keys, **values)
    counted = _counted_once(plain)
    if counted is not None:
        rows, plain = rows.distinct(name=f"{title}: distinct"), counted
    parts = None if add_up(rows.schema, plain) else combined(plain)
    part = part_of(relation) if parts is not None and worth_parts(relation, [*keys.values()]) else None
    if parts is None or part is None:
        return rows.aggregate(list(keys), name=title, **plain)
    number = fresh("part")
    divided = relation.rows.select(**keys, **values, **{number: part})
    of_parts = divided.aggregate([*keys, number], name=f"{title}: parts", **plain)
    together, computed = parts
    made = of_parts.aggregate(list(keys), name=title, **together)
    return made.with_columns(**computed) if computed else made


def _counted_once(plain: dict[str, Any]) -> dict[str, Any] | None:
    """Counts that distinct rows have in place of counts of distinct values; None of other aggregates."""
    if any(one.function != "distinct_count" for one in plain.values()):
        return None
    if len({one.of._column for one in plain.values()}) > 1:
        return None
    return {name: one.of.count() for name, one in plain.items()}


_COUNTS = ("Count", "CountIf")
_ORDERED = ("ArrayAgg", "First", "Last")

_KINDS = {
    "Sum": "sum",
    "Avg": "mean",
    "Min": "min",
    "Max": "max",
    "AnyValue": "min",
    "LogicalAnd": "min",
    "LogicalOr": "max",
    "Variance": "var",
    "VariancePop": "var",
    "Stddev": "std",
    "StddevSamp": "std",
    "StddevPop": "std",
}
"""The aggregates of collections that aggregates are, by the names of sqlglot's classes."""


def names() -> set[str]:
    """The names of the classes of aggregates that are covered."""
    return {*_COUNTS, *_KINDS, *_ORDERED}


def _part(node: exp.Expr, relation: Relation, values: dict[str, Expr], scalars: Scalars) -> _Part:
    from sqlglot import exp

    part = _Part(node)
    condition = None
    if isinstance(node, exp.Filter):
        condition = scalars.of(node.expression.this)
        node = node.this
    check_parts(node, "this", "expressions", "big_int")
    of = node.this
    distinct = isinstance(of, exp.Distinct)
    if distinct:
        if len(of.expressions) != 1:
            refuse(node, "an aggregate takes one distinct value: select the distinct rows in a subquery")
        of = of.expressions[0]

    def value(expr: Expr) -> Expr:
        name = fresh("value")
        values[name] = expr if condition is None else case((condition, expr))
        return col(name)

    def add(aggregate: Aggregate) -> Expr:
        name = fresh("part")
        part.made[name] = aggregate
        return col(name)

    if isinstance(node, exp.Count):
        everything = of is None or isinstance(of, (exp.Star, exp.Literal))
        counted = value(lit(1) if everything else scalars.of(of))
        part.result = add(counted.distinct_count() if distinct else counted.count())
        return part
    if isinstance(node, exp.CountIf):
        holds = scalars.of(of)
        part.result = add(value(case((holds, 1), (~holds, 0))).sum())  # null of no row, and of nulls alone
        return part
    kind = _KINDS.get(type(node).__name__)
    if kind is None:
        refuse(
            node,
            f"aggregate {node.sql(DIALECT)} is not covered: there are sum, count, avg, min, max, var_samp, "
            "var_pop, stddev_samp, stddev_pop, any_value, bool_and, bool_or, array_agg, first and last, and "
            "map_groups of the collection takes any function",
        )
    if distinct and kind in {"sum", "mean", "var", "std"}:
        refuse(node, f"{kind} of distinct values is not covered: select the distinct rows in a subquery")
    expr = scalars.of(of)
    found = type_of(relation, expr)
    if kind in {"mean", "sum"} and not is_number(found):
        refuse(node, f"{node.sql(DIALECT)} adds up numbers, and this is of type {found}: cast it")
    if kind == "mean":
        of_value = value(expr)
        total = add(of_value.sum())
        part.result = total.cast(pa.float64()) / add(of_value.count())
    elif kind == "sum":
        part.result = add(value(expr).sum())
    elif kind in {"var", "std"}:
        of_all = isinstance(node, (exp.VariancePop, exp.StddevPop))
        spread = getattr(value(expr.cast(pa.float64())), kind)
        part.result = add(spread(ddof=0 if of_all else 1))
    else:
        part.result = add(getattr(value(expr), kind)())
    return part


def empty_value(node: exp.Expr) -> exp.Expr:
    """The expression with the values that aggregates have of no row: 0 for counts, and null for others."""
    from sqlglot import exp

    def replaced(part: exp.Expr) -> exp.Expr:
        of = part.this if isinstance(part, exp.Filter) else part
        if isinstance(of, exp.Count):
            return exp.Literal.number(0)
        if isinstance(part, (exp.AggFunc, exp.Filter)):
            return exp.Null()
        return part

    return node.copy().transform(replaced)
