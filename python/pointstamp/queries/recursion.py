"""WITH RECURSIVE: a query over its own result, as a loop to a fixed point."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pointstamp.expr.expressions import col
from pointstamp.queries.parsing import refuse
from pointstamp.queries.relations import Relation, Table, alike

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from sqlglot import exp

__all__ = ["reads", "recursive"]


def recursive(
    cte: exp.CTE,
    tables: Mapping[str, Table],
    lower: Callable[[exp.Expr, Mapping[str, Table]], Relation],
) -> Relation:
    """Returns the rows of a recursive table, until its second part makes no new ones of them.

    Rows are distinct at each turn, so the loop ends where there are finitely many.

    Args:
        cte: The table.
        tables: The tables that it may read.
        lower: Makes the rows of a query over tables, with the table's names.

    Raises:
        GraphError: If it is no UNION of a first part and one that reads the table, or the second part is not
            monotone: it then has no fixed point that follows from the tables alone.
    """
    from sqlglot import exp

    union, name = cte.this.unnest(), cte.alias
    if not isinstance(union, exp.Union):
        refuse(cte, f"recursive table {name!r} is a UNION of its first rows and a query that reads it")
    if not union.args.get("distinct"):
        refuse(union, "UNION ALL in a recursion counts each way to a row, which may not end: write UNION")
    if reads(union.this, name):
        refuse(union.this, f"the first part of recursive table {name!r} does not read it")
    _check_monotone(union.expression, name)
    first = lower(union.this, tables)
    read = {
        table.name.lower() for table in union.expression.find_all(exp.Table) if table.name.lower() in tables
    }

    def turn(inner: Any, rows: Any) -> Any:
        inside = {one: _entered(tables[one], inner) for one in read}
        inside[name.lower()] = Table.of(Relation(rows))
        made = lower(union.expression, inside)
        here, there = alike(Relation(first.rows.enter(inner)), made)
        if here.schema != first.rows.schema:
            there = there.select(**{one.name: col(one.name).cast(one.type) for one in first.rows.schema})
            here = first.rows.enter(inner)
        return here.concat(there).distinct()

    return Relation(first.rows.iterate(turn, name=name))


def _entered(table: Table, inner: Any) -> Table:
    relation = Relation(table.relation.rows.enter(inner), single=table.relation.single)
    return table._replace(relation=relation)


def reads(node: exp.Expr, name: str) -> bool:
    """Whether a query reads a table of this name."""
    from sqlglot import exp

    return any(table.name == name for table in node.find_all(exp.Table))


def _check_monotone(node: exp.Expr, name: str) -> None:
    """Refuses a recursive part in which more rows of the table may make fewer rows of the result."""
    from sqlglot import exp

    # Queries that stand for rows, or for whether there are any; others stand for a value.
    of_rows = (exp.From, exp.Join, exp.In, exp.Exists, exp.SetOperation)
    for part in node.walk():
        negative = (
            isinstance(part, (exp.AggFunc, exp.Except, exp.Intersect, exp.Limit))
            or (isinstance(part, exp.Not) and reads(part, name))
            or (isinstance(part, exp.Join) and part.side in {"LEFT", "RIGHT", "FULL"})
            or (isinstance(part, exp.Subquery) and not isinstance(part.parent, of_rows))
        )
        if negative and reads(part.parent_select or node, name):
            refuse(
                part,
                f"recursive table {name!r} may only gain rows from turn to turn: aggregates, outer joins, "
                "EXCEPT, LIMIT and NOT of it are computed of its result, after the WITH",
            )
