"""Groups of a query and their aggregates."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pyarrow as pa

from pointstamp.expr.expressions import col, lit
from pointstamp.expr.functions import case
from pointstamp.queries.parsing import DIALECT, check_parts, key_of, refuse
from pointstamp.queries.partial_groups import combined, part_of, worth_parts
from pointstamp.queries.relations import Relation, fresh, titled
from pointstamp.queries.windows import parts_of_window

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from sqlglot import exp

    from pointstamp._core import Aggregate, Expr
    from pointstamp.api.column_collection import ColumnCollection
    from pointstamp.queries.scalars import Scalars

__all__ = ["aggregates_in", "empty_value", "grouped"]


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
    parts = [_part(node, relation, values, scalars) for node in aggregates]
    plain: dict[str, Any] = {name: made for part in parts for name, made in part.made.items()}
    if not plain:
        rows = relation.rows.select(**keys).distinct()
        return Relation(rows), known
    by = ", ".join(map(repr, keys.values()))
    title = titled(f"group by {by}" if keys else "group all rows")
    made = _aggregated(relation, keys, values, plain, title)
    results = {}
    for part in parts:
        name = fresh("aggregate")
        results[name] = part.result
        known[key_of(part.node)] = name
    single = not keys
    return Relation(made.select(*keys, **results), single=single), known


def _aggregated(
    relation: Relation, keys: dict[str, Expr], values: dict[str, Expr], plain: dict[str, Any], title: str
) -> ColumnCollection:
    """The aggregates of groups, by parts where groups are likely to be large."""
    parts = combined(plain)
    part = part_of(relation) if parts is not None and worth_parts(relation, [*keys.values()]) else None
    if parts is None or part is None:
        return relation.rows.select(**keys, **values).aggregate(list(keys), name=title, **plain)
    number = fresh("part")
    divided = relation.rows.select(**keys, **values, **{number: part})
    of_parts = divided.aggregate([*keys, number], name=f"{title}: parts", **plain)
    together, computed = parts
    made = of_parts.aggregate(list(keys), name=title, **together)
    return made.with_columns(**computed) if computed else made


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

    if isinstance(node, (exp.Count, exp.CountIf)):
        if isinstance(node, exp.CountIf):
            part.result = add(value(case((scalars.of(of), 1))).count())
        else:
            everything = of is None or isinstance(of, (exp.Star, exp.Literal))
            counted = value(lit(1) if everything else scalars.of(of))
            part.result = add(counted.distinct_count() if distinct else counted.count())
        return part
    kinds: dict[type[exp.Expr], str] = {
        exp.Sum: "sum",
        exp.Avg: "mean",
        exp.Min: "min",
        exp.Max: "max",
        exp.AnyValue: "min",
        exp.LogicalAnd: "min",
        exp.LogicalOr: "max",
        exp.Variance: "var",
        exp.VariancePop: "var",
        exp.Stddev: "std",
        exp.StddevSamp: "std",
        exp.StddevPop: "std",
    }
    kind = kinds.get(type(node))
    if kind is None:
        refuse(
            node,
            f"aggregate {node.sql(DIALECT)} is not covered: there are sum, count, avg, min, max, var_samp, "
            "var_pop, stddev_samp, stddev_pop, any_value, bool_and and bool_or, and map_groups of the "
            "collection takes any function",
        )
    if distinct and kind in {"sum", "mean", "var", "std"}:
        refuse(node, f"{kind} of distinct values is not covered: select the distinct rows in a subquery")
    expr = scalars.of(of)
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
        if isinstance(of, (exp.Count, exp.CountIf)):
            return exp.Literal.number(0)
        if isinstance(part, (exp.AggFunc, exp.Filter)):
            return exp.Null()
        return part

    return node.copy().transform(replaced)
