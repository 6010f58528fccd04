"""WITH RECURSIVE: queries over their own results, as a loop to a fixed point.

Tables that read each other are computed in one loop. A table of UNION is a variable of the loop whose rows
are distinct at each turn; a table of another query, which has no rows of its own to begin with, follows
from the variables of the turn. A table of UNION ALL is the sum of its turns: its query reads the table
once, so the sum of all turns and one more turn of it differ by the first rows alone, and the loop is over
the sum.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from pointstamp.expr.expressions import col
from pointstamp.queries.parsing import check_parts, refuse
from pointstamp.queries.places import at
from pointstamp.queries.relations import Relation, Table, alike

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from sqlglot import exp

    from pointstamp.api.column_collection import ColumnCollection

__all__ = ["groups_of", "reads", "recursive"]


def groups_of(ctes: Sequence[exp.CTE]) -> list[list[exp.CTE]]:
    """The tables of a WITH RECURSIVE in groups that read each other, each after the groups that it reads."""
    names = [cte.alias for cte in ctes]
    read = {cte.alias: {name for name in names if reads(cte.this, name)} for cte in ctes}
    reach = {name: set(direct) for name, direct in read.items()}
    for middle in names:
        for name in names:
            if middle in reach[name]:
                reach[name] |= reach[middle]
    groups: list[list[exp.CTE]] = []
    done: set[str] = set()
    while len(done) < len(names):
        for cte in ctes:
            name = cte.alias
            group = {name} | {other for other in reach[name] if name in reach[other]}
            if name not in done and set().union(*(read[one] for one in group)) <= done | group:
                groups.append([one for one in ctes if one.alias in group])
                done |= group
                break
    return groups


class _Parts(NamedTuple):
    """The parts of a recursive table: those of its first rows, and those that read tables of the loop."""

    cte: exp.CTE
    first: list[exp.Expr]
    again: list[exp.Expr]
    distinct: bool


def recursive(
    ctes: Sequence[exp.CTE],
    tables: Mapping[str, Table],
    lower: Callable[[exp.Expr, exp.CTE, Mapping[str, Table]], Relation],
) -> dict[str, Relation]:
    """Returns the rows of recursive tables that read each other, until a turn makes no new ones of them.

    Args:
        ctes: The tables.
        tables: The tables that they may read.
        lower: Makes the rows of a query over tables, with the names of one of the recursive tables.

    Raises:
        GraphError: If none has first rows, or a query is not monotone: it then has no fixed point that
            follows from the tables alone.
    """
    names = {cte.alias for cte in ctes}
    parts = [_parts(cte, names) for cte in ctes]
    for one in parts:
        for part in one.again:
            _check_monotone(part, names)
            if not one.distinct:
                _check_linear(part, one.cte, names)
    variables = [one for one in parts if one.first]
    if not variables:
        refuse(
            ctes[0],
            f"recursive table {ctes[0].alias!r} is a UNION of its first rows and a query that reads it",
        )
    views = _in_order([one for one in parts if not one.first])
    read = {
        table.name.lower()
        for one in parts
        for part in one.again
        for table in _tables(part)
        if table.name.lower() in tables and table.name not in names
    }
    first = {
        one.cte.alias: _sum(one.first, [lower(part, one.cte, tables) for part in one.first])
        for one in variables
    }
    scope = next(iter(first.values())).scope
    results: dict[str, ColumnCollection] = {}
    with scope.iterative(" and ".join(first)) as inner:
        inside = {name: _entered(tables[name], inner) for name in read}
        entered = {name: rows.enter(inner) for name, rows in first.items()}
        of_turn = {name: inner.variable(rows) for name, rows in entered.items()}
        for name, variable in of_turn.items():
            inside[name.lower()] = Table.of(Relation(variable.collection))
        for one in views:
            name = one.cte.alias
            results[name] = _sum(one.again, [lower(part, one.cte, inside) for part in one.again])
            if one.distinct:
                results[name] = results[name].distinct()
            inside[name.lower()] = Table.of(Relation(results[name]))
        for one in variables:
            name = one.cte.alias
            made = entered[name]
            for part in one.again:
                with at(part):
                    made = made.concat(_like(made, lower(part, one.cte, inside)))
            results[name] = made.distinct() if one.distinct else made.consolidate()
            of_turn[name].set(results[name])
        return {name: Relation(rows.leave()) for name, rows in results.items()}


def _parts(cte: exp.CTE, names: set[str]) -> _Parts:
    """The parts of a recursive table."""
    from sqlglot import exp

    query = cte.this.unnest()
    if not isinstance(query, exp.Union):
        if len(names) == 1:
            refuse(
                cte, f"recursive table {cte.alias!r} is a UNION of its first rows and a query that reads it"
            )
        return _Parts(cte, [], [query], distinct=False)
    names_of = {"order": "ORDER BY", "limit": "LIMIT", "offset": "OFFSET"}
    for clause in names_of:
        if query.args.get(clause) is not None:
            refuse(
                query,
                f"{names_of[clause]} of a recursive table is written in the query that reads it, after the "
                "WITH",
            )
    check_parts(query, *_PLAIN)
    distinct = bool(query.args.get("distinct"))
    if not distinct and len(names) > 1:
        refuse(query, "UNION ALL of tables that read each other is not covered: write UNION")
    parts = _members(query, distinct)
    again = [part for part in parts if any(reads(part, name) for name in names)]
    first = [part for part in parts if part not in again]
    if not first and len(names) == 1:
        refuse(query, f"the first part of recursive table {cte.alias!r} does not read it")
    return _Parts(cte, first, again, distinct)


_PLAIN = ("this", "expression", "distinct")
"""The parts of a UNION without clauses."""


def _members(node: exp.Expr, distinct: bool) -> list[exp.Expr]:
    """The queries of a UNION of UNIONs."""
    from sqlglot import exp

    plain = node.unnest()
    clauses = any(part for name, part in plain.args.items() if name not in _PLAIN)
    if isinstance(plain, exp.Union) and bool(plain.args.get("distinct")) == distinct and not clauses:
        return [*_members(plain.this, distinct), *_members(plain.expression, distinct)]
    return [plain]


def _in_order(views: list[_Parts]) -> list[_Parts]:
    """Tables without first rows, each after those that it reads."""
    left, done = list(views), []
    while left:
        names = {one.cte.alias for one in left}
        ready = [one for one in left if not any(reads(part, name) for part in one.again for name in names)]
        if not ready:
            refuse(
                left[0].cte,
                f"recursive table {left[0].cte.alias!r} has no first rows: write a UNION of them and of a "
                "query that reads other tables of the recursion",
            )
        done += ready
        left = [one for one in left if one not in ready]
    return done


def _sum(parts: list[exp.Expr], relations: list[Relation]) -> ColumnCollection:
    """The rows of some queries, with the names of the first."""
    made = relations[0].rows
    for part, relation in zip(parts[1:], relations[1:], strict=True):
        with at(part):
            here, there = alike(Relation(made), relation)
        made = here.concat(there)
    return made


def _like(rows: ColumnCollection, made: Relation) -> ColumnCollection:
    """The rows of a turn with the columns of the first rows."""
    here, there = alike(Relation(rows), made)
    if here.schema != rows.schema:
        there = there.select(**{one.name: col(one.name).cast(one.type) for one in rows.schema})
    return there


def _entered(table: Table, inner: Any) -> Table:
    relation = Relation(table.relation.rows.enter(inner), single=table.relation.single)
    return table._replace(relation=relation)


def _tables(node: exp.Expr) -> Iterable[exp.Table]:
    from sqlglot import exp

    return node.find_all(exp.Table)


def reads(node: exp.Expr, name: str) -> bool:
    """Whether a query reads a table of this name."""
    return any(table.name == name for table in _tables(node))


def _reads_any(node: exp.Expr, names: set[str]) -> bool:
    return any(table.name in names for table in _tables(node))


def _check_monotone(node: exp.Expr, names: set[str]) -> None:
    """Refuses a recursive part in which more rows of a table may make fewer rows of the result."""
    from sqlglot import exp

    # Queries that stand for rows, or for whether there are any; others stand for a value.
    of_rows = (exp.From, exp.Join, exp.In, exp.Exists, exp.SetOperation)
    for part in node.walk():
        negative = (
            isinstance(part, (exp.AggFunc, exp.Window, exp.Except, exp.Intersect, exp.Limit))
            or (isinstance(part, exp.Not) and _reads_any(part, names))
            or (
                isinstance(part, (exp.In, exp.Exists)) and not _only_lets_in(part) and _reads_any(part, names)
            )
            or (isinstance(part, exp.Join) and part.side in {"LEFT", "RIGHT", "FULL"})
            or (isinstance(part, exp.Subquery) and not isinstance(part.parent, of_rows))
        )
        if negative and _reads_any(part.parent_select or node, names):
            read = next(table.name for table in _tables(part.parent_select or node) if table.name in names)
            refuse(
                part,
                f"recursive table {read!r} may only gain rows from turn to turn: aggregates, windows, outer "
                "joins, EXCEPT, LIMIT, NOT, and IN and EXISTS as values, of it are computed of its result, "
                "after the WITH",
            )


def _only_lets_in(condition: exp.Expr) -> bool:
    """Whether WHERE has at least the rows that it had, once a condition is true of more of them."""
    from sqlglot import exp

    while isinstance(condition.parent, (exp.And, exp.Or, exp.Paren)):
        condition = condition.parent
    return isinstance(condition.parent, exp.Where)


def _check_linear(node: exp.Expr, cte: exp.CTE, names: set[str]) -> None:
    """Refuses a part of UNION ALL that is not the sum of what it is of each row of the table."""
    from sqlglot import exp

    read = [table for table in _tables(node) if table.name in names]
    if len(read) > 1:
        refuse(read[1], f"a query of UNION ALL reads recursive table {cte.alias!r} once: write UNION")
    at: Any = read[0]
    while at is not node:
        if isinstance(at, (exp.In, exp.Exists)):
            refuse(at, "a query of UNION ALL joins the recursive table in FROM: write a join, or UNION")
        if isinstance(at, exp.Select) and at.args.get("distinct"):
            refuse(at, "DISTINCT of the recursive table counts each row once: write UNION")
        at = at.parent
    if isinstance(node, exp.Select) and node.args.get("distinct"):
        refuse(node, "DISTINCT of the recursive table counts each row once: write UNION")
