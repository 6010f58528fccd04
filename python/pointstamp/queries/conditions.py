"""Conditions of a query: parts that are all true, equalities, and the tables that they read."""

from __future__ import annotations

from functools import reduce
from typing import TYPE_CHECKING

from pointstamp.queries.parsing import key_of

if TYPE_CHECKING:
    from collections.abc import Iterator

    from sqlglot import exp

__all__ = ["conjuncts", "free_columns", "has_subquery", "implied", "is_of_few", "sources_of", "tables_of"]


def conjuncts(condition: exp.Expr | None) -> list[exp.Expr]:
    """The parts of a condition that are all true where it is.

    A part that each alternative of an OR has is a part of its own, so that
    ``(a = b and c) or (a = b and d)`` is ``a = b and (c or d)``.
    """
    from sqlglot import exp

    if condition is None:
        return []
    condition = condition.unnest()
    if isinstance(condition, exp.And):
        return [*conjuncts(condition.left), *conjuncts(condition.right)]
    if isinstance(condition, exp.Or):
        return _factored(condition)
    if isinstance(condition, exp.Null):
        return [exp.false()]
    return [condition]


def implied(condition: exp.Expr) -> list[exp.Expr]:
    """The conditions on one table each that hold wherever an OR of several tables does.

    Where each alternative has parts on a table, one of these parts is true: ``(a.k = 1 and b.k = 2) or
    (a.k = 3 and b.n > c.n)`` implies ``a.k = 1 or a.k = 3``. Parts that may have no result, such as a sum
    that is too large, are left out: the row may be in no pair.
    """
    from sqlglot import exp

    is_or = isinstance(condition.unnest(), exp.Or)
    if not is_or or has_subquery(condition) or len(tables_of(condition)) < 2:
        return []
    by_table: list[dict[str, list[exp.Expr]]] = []
    for alternative in _alternatives(condition):
        parts: dict[str, list[exp.Expr]] = {}
        for part in conjuncts(alternative):
            read = tables_of(part)
            if len(read) == 1 and not _may_fail(part):
                parts.setdefault(read.pop(), []).append(part)
        by_table.append(parts)
    tables = [table for table in by_table[0] if all(table in parts for parts in by_table)]
    return [_any_of([parts[table] for parts in by_table], condition) for table in tables]


def _may_fail(condition: exp.Expr) -> bool:
    """Whether a condition may have no result for a row: it does more than compare columns with constants."""
    from sqlglot import exp

    compared = (exp.Predicate, exp.Connector, exp.Not, exp.Paren, exp.Column, exp.Identifier)
    return any(tables_of(part) and not isinstance(part, compared) for part in condition.walk())


def is_of_few(condition: exp.Expr) -> bool:
    """Whether a condition on one table is likely to hold for few rows: a value equals constants."""
    from sqlglot import exp

    condition = condition.unnest()
    if isinstance(condition, exp.Or):
        return all(is_of_few(one) for one in _alternatives(condition))
    if isinstance(condition, exp.And):
        return any(is_of_few(one) for one in conjuncts(condition))
    if isinstance(condition, exp.EQ):
        return not (tables_of(condition.this) and tables_of(condition.expression))
    return isinstance(condition, exp.In) and not any(tables_of(one) for one in condition.expressions)


def _alternatives(condition: exp.Expr) -> list[exp.Expr]:
    from sqlglot import exp

    condition = condition.unnest()
    if isinstance(condition, exp.Or):
        return [*_alternatives(condition.left), *_alternatives(condition.right)]
    return [condition]


def _factored(condition: exp.Expr) -> list[exp.Expr]:

    parts = [{key_of(part): part for part in conjuncts(one)} for one in _alternatives(condition)]
    common = [key for key in parts[0] if all(key in other for other in parts[1:])]
    if not common:
        return [condition]
    shared = [parts[0][key] for key in common]
    rest = [[part for key, part in one.items() if key not in common] for one in parts]
    if not all(rest):
        return shared
    return [*shared, _any_of(rest, condition)]


def _any_of(alternatives: list[list[exp.Expr]], at: exp.Expr) -> exp.Expr:
    """The OR of alternatives whose parts are all true, at the place of a condition in the text."""
    from sqlglot import exp

    made = [exp.and_(*(part.copy() for part in one)) for one in alternatives]
    joined = reduce(lambda a, b: exp.Or(this=exp.paren(a), expression=exp.paren(b)), made)
    joined.parent = at.parent
    return joined


def sources_of(select: exp.Expr) -> list[exp.Expr]:
    """The tables, subqueries and joins in a select's FROM, in order: the first, and the joins."""
    first = select.args.get("from_")
    return [] if first is None else [first.this, *(select.args.get("joins") or [])]


def aliases_of(select: exp.Expr) -> set[str]:
    """The names of what is in a select's FROM."""
    from sqlglot import exp

    sources = sources_of(select)
    return {(one.this if isinstance(one, exp.Join) else one).alias_or_name for one in sources}


def has_subquery(node: exp.Expr) -> bool:
    """Whether there is a query in an expression."""
    from sqlglot import exp

    return any(True for _ in node.find_all(exp.Query))


def free_columns(node: exp.Expr) -> list[exp.Column]:
    """The columns of a query or an expression that are of none of the tables in it."""
    return list(_free(node, frozenset()))


def _free(node: exp.Expr, bound: frozenset[str]) -> Iterator[exp.Column]:
    from sqlglot import exp

    if isinstance(node, exp.Column):
        if node.table and node.table not in bound:  # a name without a table is that of a selected column
            yield node
        return
    if isinstance(node, exp.Select):
        bound |= aliases_of(node)
    for child in node.iter_expressions():
        yield from _free(child, bound)


def tables_of(node: exp.Expr) -> set[str]:
    """The names of the tables outside of an expression that it reads."""
    return {column.table for column in free_columns(node)}
