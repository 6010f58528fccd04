"""Queries as collections of columns.

Owns `lower`, which makes a relation of each kind of query, and `Block`, one SELECT: its FROM and WHERE,
groups, columns, and order with a limit.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple, cast

from pointstamp.errors import GraphError
from pointstamp.expr.expressions import col, lit
from pointstamp.logic.ordered_rows import Ordered
from pointstamp.queries.aggregation import aggregates_in, grouped
from pointstamp.queries.conditions import (
    aliases_of,
    conjuncts,
    free_columns,
    has_subquery,
    implied,
    sources_of,
    tables_of,
)
from pointstamp.queries.decorrelation import Subqueries
from pointstamp.queries.join_order import Unit, equalities, filtered, together
from pointstamp.queries.parsing import DIALECT, check_parts, key_of, parsed, refuse
from pointstamp.queries.partial_groups import dividing, part_of
from pointstamp.queries.places import placed
from pointstamp.queries.recursion import groups_of, reads, recursive
from pointstamp.queries.relations import Relation, Table, alike, fresh, numbered
from pointstamp.queries.scalars import Scalars
from pointstamp.queries.windows import first_rows, push_row_numbers, windowed, windows_in, write_out

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    import pyarrow as pa
    from sqlglot import exp

    from pointstamp.api.column_collection import ColumnCollection

__all__ = ["Query", "lowered"]


class Query(NamedTuple):
    """A lowered query.

    Attributes:
        rows: The result.
        order: The columns that the result is ordered by when it is read.
        hidden: Columns that are there for the order alone.
    """

    rows: ColumnCollection
    order: list[Ordered]
    hidden: list[str]

    def visible(self) -> ColumnCollection:
        """The result without columns that are there for the order alone."""
        if not self.hidden:
            return self.rows
        return self.rows.select(*(name for name in self.rows.schema.names if name not in self.hidden))


class _Made(NamedTuple):
    """The result of a query inside of another one.

    Attributes:
        relation: The rows.
        names: The query's own columns.
        correlation: Columns of the query around, by the names of those that hold their values.
        order: The order of the query.
        hidden: Columns that are there for the order alone.
        has_nulls: Whether columns that hold values of the query around may be null.
    """

    relation: Relation
    names: list[str]
    correlation: dict[str, exp.Column]
    order: list[Ordered]
    hidden: list[str]
    has_nulls: bool = False


def lowered(query: str, tables: Mapping[str, ColumnCollection]) -> Query:
    """Returns the collection that a query is.

    Args:
        query: The text.
        tables: The collections of one scope that it reads, by name.

    Raises:
        GraphError: If the query is not covered, or does not fit the tables; with the place in its text.
    """
    schemas = {name: rows.schema for name, rows in tables.items()}
    tree, written = parsed(query, schemas)
    numbered(query, *(column for schema in schemas.values() for column in schema.names))
    given = {name.lower(): Table.of(Relation(rows)) for name, rows in tables.items()}
    with placed():
        made = lower(tree, given)
    names = _as_written(made.names, written, schemas)
    rows = made.relation.rows
    changed = {name: new for name, new in names.items() if name != new}
    if changed:
        rows = rows.rename(changed)
    order = [one._replace(column=names.get(one.column, one.column)) for one in made.order]
    return Query(rows, order, made.hidden)


def _as_written(names: list[str], written: list[str], schemas: Mapping[str, pa.Schema]) -> dict[str, str]:
    """The columns of a result, in lower case, with the case of the query's text or else of the tables."""
    given: dict[str, set[str]] = {}
    for schema in schemas.values():
        for name in schema.names:
            given.setdefault(name.lower(), set()).add(name)
    found = {}
    for index, name in enumerate(names):
        new = written[index] if index < len(written) else ""
        if new.lower() != name:
            there = given.get(name, set())
            new = next(iter(there)) if len(there) == 1 else name
        found[name] = new
    return found


def lower(node: exp.Expr, tables: Mapping[str, Table], around: _Around | None = None) -> _Made:
    """Lowers a query that may read tables, and columns of the query around it."""
    from sqlglot import exp

    node = node.unnest()
    tables = _with_tables(node, tables)
    if isinstance(node, exp.SetOperation):
        if around is not None and free_columns(node):
            refuse(node, "a subquery that reads the query around it is one SELECT: write one for each part")
        return _combined(node, tables)
    if isinstance(node, exp.Select):
        return Block(node, tables, around).made()
    return refuse(node, f"{type(node).__name__} is no query that is covered: write SELECT")


def _with_tables(node: exp.Expr, tables: Mapping[str, Table]) -> Mapping[str, Table]:
    """The tables, and those that a query's WITH makes."""
    clause = node.args.get("with_")
    if clause is None:
        return tables
    check_parts(clause, "expressions", "recursive")
    there = dict(tables)
    ctes = list(clause.expressions)
    for cte in ctes:
        check_parts(cte, "this", "alias", "materialized")
    for group in groups_of(ctes) if clause.recursive else [[cte] for cte in ctes]:
        if clause.recursive and any(reads(group[0].this, cte.alias) for cte in group):
            made = recursive(group, there, lambda node, cte, inside: named(lower(node, inside), cte))
        else:
            made = {group[0].alias: named(lower(group[0].this, there), group[0])}
        there |= {name.lower(): Table.of(relation) for name, relation in made.items()}
    return there


def named(made: _Made, source: exp.Expr) -> Relation:
    """The rows of a query in FROM or WITH, with the names that its alias gives the columns."""
    relation = made.relation.only(made.names)
    columns = [column.name for column in source.args["alias"].columns] if source.args.get("alias") else []
    if columns and columns != made.names:
        new = dict(zip(made.names, columns, strict=False))
        relation = Relation(relation.rows.rename(new), single=relation.single)
    return relation


class _Around(NamedTuple):
    """The query around a subquery: its rows, and the translation of expressions over them."""

    relation: Relation
    scalars: Scalars


class Block:
    """One SELECT.

    Args:
        node: The SELECT.
        tables: The tables that it may read.
        around: The query around it.
    """

    __slots__ = ("_aliases", "_around", "_correlation", "_has_nulls", "_is_grouped", "_node", "_tables")

    def __init__(self, node: exp.Select, tables: Mapping[str, Table], around: _Around | None) -> None:
        self._node, self._tables, self._around = node, tables, around
        self._aliases = aliases_of(node)
        self._correlation: dict[str, exp.Column] = {}
        self._is_grouped = False
        self._has_nulls = False

    def column(self, node: exp.Column) -> str:
        """The name of the column of the rows that a column of the query is."""
        if node.table in self._aliases:
            if self._is_grouped:
                refuse(node, f"{node.sql(DIALECT)} is not in GROUP BY: group by it, or aggregate it")
            return f"{node.table}.{node.name}"
        return f"outer:{node.table}.{node.name}"

    def lower_inside(self, node: exp.Expr, relation: Relation, scalars: Scalars) -> _Made:
        """Lowers a subquery of this block, whose rows are those of a relation."""
        return lower(node, self._tables, _Around(relation, scalars))

    def made(self) -> _Made:
        """The rows of the SELECT."""
        from sqlglot import exp

        node = self._node
        check_parts(
            node,
            *("expressions", "from_", "joins", "where", "group", "having", "order", "limit", "offset"),
            *("distinct", "with_", "qualify", "windows"),
        )
        clauses = (node.args.get("order"), node.args.get("qualify"))
        found = [*node.expressions, *(clause for clause in clauses if clause is not None)]
        write_out(
            (window for part in found for window in part.find_all(exp.Window)), node.args.get("windows") or []
        )
        relation = self._read()
        known: dict[str, str] = {}
        outputs = list(node.expressions)
        order = node.args.get("order")
        ordering = [] if order is None else list(order.expressions)
        having = node.args.get("having")
        qualify = node.args.get("qualify")
        parts = [*outputs, *(clause.this for clause in (having, qualify) if clause is not None)]
        aliases = {one.alias_or_name: one.unalias() for one in outputs}
        ordering_by = [
            aliases.get(one.this.name, one.this) if not _table(one.this) else one.this for one in ordering
        ]
        aggregates = aggregates_in([*parts, *ordering_by])
        if node.args.get("group") or aggregates:
            relation, known = self._grouped(relation, aggregates)
            self._is_grouped = True
        subqueries = Subqueries(self, relation, known)
        for condition in conjuncts(None if having is None else having.this):
            subqueries.where(condition)
        for part in outputs:
            subqueries.attach(part.unalias())
        wanted = conjuncts(None if qualify is None else qualify.this)
        windows = windows_in([*outputs, *ordering_by, *wanted])
        if qualify is not None and not windows_in(wanted):
            refuse(qualify, "QUALIFY is a condition on window functions: write others in WHERE or HAVING")
        if windows:
            self._windowed(subqueries, windows, wanted)
        return self._selected(subqueries, outputs, ordering, ordering_by)

    # ------------------------------------------------------------ FROM and WHERE

    def _read(self) -> Relation:
        from sqlglot import exp

        node = self._node
        where = node.args.get("where")
        conditions = conjuncts(None if where is None else where.this)
        with_subqueries = [one for one in conditions if has_subquery(one)]
        conditions = [one for one in conditions if not has_subquery(one)]
        conditions += [part for one in conditions for part in implied(one)]
        scalars = Scalars(self.column, {})
        bound, outer = self._correlated(conditions)
        sources = sources_of(node)
        if not sources:
            refuse(node, "a query reads tables: write FROM, or make the row by column_collection")
        if not any(isinstance(source, exp.Join) and source.side for source in sources):
            for source in sources:
                push_row_numbers(source.this if isinstance(source, exp.Join) else source, conditions)
        first = [one for one in with_subqueries if self._is_of_one_table(one, sources)]
        with_subqueries = [one for one in with_subqueries if one not in first]
        later = [*with_subqueries, *(value for _, value in bound.values())]
        relation = self._from(sources, conditions, outer, scalars, first, self._read_by(later, outer))
        for condition in conditions:
            relation = relation.where(scalars.of(condition))
        for name, (free, value) in bound.items():
            self._correlation[name] = free
            relation = relation.having(**{name: scalars.of(value)}).where(~col(name).is_null())
        for free in () if outer is None else free_columns(node):
            self._correlation[self.column(free)] = free
        subqueries = Subqueries(self, relation, {})
        for condition in with_subqueries:
            subqueries.where(condition)
        return subqueries.relation

    def _columns_of(self, parts: Iterable[exp.Expr]) -> set[str]:
        """The columns of the rows that parts of the query read, also in queries inside of them."""
        from sqlglot import exp

        return {self.column(column) for part in parts for column in part.find_all(exp.Column) if column.table}

    def _read_by(self, conditions: list[exp.Expr], outer: Unit | None) -> set[str]:
        """The columns that the parts behind FROM read, and some conditions.

        Columns with values of the query around are read, too.
        """
        node = self._node
        names = ("group", "having", "order", "qualify", "distinct")
        parts = [*node.expressions, *(node.args[name] for name in names if node.args.get(name)), *conditions]
        parts += node.args.get("windows") or []
        return self._columns_of(parts) | set([] if outer is None else outer.relation.names)

    def _is_of_one_table(self, condition: exp.Expr, sources: list[exp.Expr]) -> bool:
        """Whether a condition keeps the rows of one table that are in a set, which depends on no row.

        It is applied to the table before joins, of which it makes less.
        """
        from sqlglot import exp

        if any(isinstance(source, exp.Join) and source.side for source in sources):
            return False
        inner = condition.unnest()
        query = inner.args.get("query") if isinstance(inner, exp.In) else None
        if query is None or has_subquery(inner.this) or free_columns(query):
            return False
        return len(tables_of(inner.this) & self._aliases) == len(tables_of(inner.this)) == 1

    def _correlated(
        self, conditions: list[exp.Expr]
    ) -> tuple[dict[str, tuple[exp.Column, exp.Expr]], Unit | None]:
        """Finds out how the block reads the query around it.

        Returns:
            The columns that equalities give a value inside, whose conditions are taken out; or the unit of
            the distinct values of the columns.
        """
        from sqlglot import exp

        free = free_columns(self._node)
        if not free:
            return {}, None
        around = self._around
        if around is None:
            refuse(free[0], f"{free[0].sql(DIALECT)} is of no table in FROM")
        bound: dict[str, tuple[exp.Column, exp.Expr]] = {}
        taken = []
        for condition in conditions:
            if not isinstance(condition, exp.EQ):
                continue
            for outside, inside in (
                (condition.this, condition.expression),
                (condition.expression, condition.this),
            ):
                if (
                    isinstance(outside, exp.Column)
                    and outside.table not in self._aliases
                    and tables_of(inside) <= self._aliases
                    and tables_of(inside)
                    and self.column(outside) not in bound
                ):
                    bound[self.column(outside)] = outside, inside
                    taken.append(condition)
                    break
        if len(free) == len(taken):
            for condition in taken:
                conditions.remove(condition)
            return bound, None
        self._has_nulls = True
        names = {self.column(one): around.scalars.of(one) for one in free}
        values = Relation(around.relation.rows.select(**names).distinct())
        return {}, Unit(values, {one.table for one in free}, self._node)

    def _from(
        self,
        sources: list[exp.Expr],
        conditions: list[exp.Expr],
        outer: Unit | None,
        scalars: Scalars,
        first_of_all: list[exp.Expr],
        read: set[str],
    ) -> Relation:
        """Joins what is in FROM, and applies the conditions that it can, which it removes from the list.

        Conditions that come first of all are of one table each, and stay in their list. Of the columns, those
        that later parts of the query read are kept.
        """
        from sqlglot import exp

        first, joins = sources[0], cast("list[exp.Join]", sources[1:])
        missing = self._nullable(first, joins)
        late = [one for one in conditions if missing and (tables_of(one) & missing or not tables_of(one))]
        early = [one for one in conditions if one not in late]
        of_joins = [join.args["on"] for join in joins if join.args.get("on") is not None] if missing else []
        kept = read | self._columns_of([*late, *of_joins])

        def needed(conditions: list[exp.Expr]) -> set[str]:
            return kept | self._columns_of(conditions)

        pending = [self._reduced(self._unit(first), first_of_all, early, scalars)]
        if any(self._node.find_all(exp.Min, exp.Max, exp.AnyValue, exp.LogicalAnd, exp.LogicalOr)):
            kept |= dividing(pending[0].relation, kept)
        # JOIN binds stronger than a comma. `begin` is the first table behind the last comma; `lateral` is
        # whether an ON of a join behind it reads other tables.
        begin, lateral = 0, False
        for join in joins:
            check_parts(join, "this", "on", "side", "kind", "using", "method")
            unit = self._reduced(self._unit(join.this), first_of_all, early, scalars)
            if _is_comma(join):
                begin, lateral = len(pending), False
            on = conjuncts(join.args.get("on"))
            own = unit.tables.union(*(one.tables for one in pending[begin:]))
            lateral |= any(tables_of(one) - own for one in on)
            for condition in on:
                if has_subquery(condition):
                    refuse(
                        condition,
                        "a subquery in ON is not covered: join with the subquery, or write it in WHERE",
                    )
            if join.args.get("using") or join.method:
                refuse(join, "join by ON, as in ON a.key = b.key")
            if join.kind in {"SEMI", "ANTI"}:
                refuse(join, "write EXISTS or NOT EXISTS")
            if join.side in {"RIGHT", "FULL"} and lateral:
                refuse(
                    join,
                    "ON of this join, or of one before it, reads tables that it does not join, such as those "
                    "before a comma: write the condition in WHERE",
                )
            if join.side in {"LEFT", "RIGHT", "FULL"}:
                if lateral:
                    begin = 0  # a left join keeps all rows before it, so more of them may be joined first
                left = together(pending[begin:], early, scalars, needed)
                pending[begin:] = [self._outer(left, unit, on, join, scalars)]
            else:
                # A condition of no table is applied to a table of this join, and not to any table of FROM.
                constant = [one for one in on if not tables_of(one)]
                early += [one for one in on if one not in constant]
                pending.append(unit)
                pending[begin] = filtered(pending[begin], constant, scalars)
        if outer is not None:
            pending.append(outer)
        made = together(pending, early, scalars, needed)
        made = filtered(made, late, scalars)
        conditions[:] = [*early, *late]
        return made.relation

    def _reduced(
        self, unit: Unit, conditions: list[exp.Expr], early: list[exp.Expr], scalars: Scalars
    ) -> Unit:
        """Applies the conditions with subqueries of a unit's table, after its other conditions."""
        own = [one for one in conditions if tables_of(one) <= unit.tables]
        if not own:
            return unit
        unit = filtered(unit, early, scalars)
        subqueries = Subqueries(self, unit.relation, {})
        for condition in own:
            subqueries.where(condition)
        return Unit(subqueries.relation, unit.tables, unit.place)

    def _nullable(self, first: exp.Expr, joins: list[exp.Join]) -> set[str]:
        """The tables whose columns an outer join may fill with nulls."""
        missing: set[str] = set()
        before = {first.alias_or_name}
        for join in joins:
            name = join.this.alias_or_name
            if _is_comma(join):
                before = set()
            if join.side in {"RIGHT", "FULL"}:
                missing |= before
            if join.side in {"LEFT", "FULL"}:
                missing.add(name)
            before.add(name)
        return missing

    def _unit(self, source: exp.Expr) -> Unit:
        """A table or a subquery in FROM, with the columns that the block reads."""
        from sqlglot import exp

        alias = source.alias_or_name
        if isinstance(source, exp.Table):
            check_parts(source, "this", "alias")
            if not isinstance(source.this, exp.Identifier):
                refuse(source, "FROM takes tables and subqueries")
            table = self._tables[source.name.lower()]
            given = source.args.get("alias")
            if given is not None and given.columns:
                names = [column.name for column in given.columns]
                table = Table(table.relation, dict(zip(names, table.columns.values(), strict=False)))
        elif isinstance(source, exp.Subquery):
            check_parts(source, "this", "alias")
            if self._around is None and free_columns(source):
                refuse(source, "a subquery in FROM reads its own tables: LATERAL is not covered")
            table = Table.of(named(lower(source.this, self._tables), source))
        else:
            refuse(source, f"{source.sql(DIALECT)} is not covered in FROM: it takes tables and subqueries")
        read = {column.name for column in self._node.find_all(exp.Column) if column.table == alias}
        used = [name for name in table.columns if name in read] or list(table.columns)[:1]
        columns = {f"{alias}.{name}": col(table.columns[name]) for name in used}
        relation = Relation(table.relation.rows.select(**columns), single=table.relation.single)
        return Unit(relation, {alias}, source)

    def _outer(self, left: Unit, right: Unit, on: list[exp.Expr], join: exp.Join, scalars: Scalars) -> Unit:
        """An outer join. Conditions on the side that may be missing filter it; others filter the pairs."""
        side = join.side.lower()
        conditions = [*on]
        if side == "left":
            right = filtered(right, conditions, scalars)
        elif side == "right":
            left = filtered(left, conditions, scalars)
        pairs = equalities(conditions, left.tables, right.tables, scalars)
        tables = left.tables | right.tables
        for condition in on:
            if tables_of(condition) - tables:
                refuse(condition, "ON of an outer join reads the tables that are joined, and no others")
        here, there = left.relation, right.relation
        if pairs and not conditions:
            return Unit(here.join(there, pairs, how=side), tables, left.place)
        if pairs:
            matched = here.join(there, pairs)
        elif here.single or there.single:
            matched = here.times(there)
        else:
            refuse(join, "an outer join needs an equality in ON, such as a.key = b.key, or a side of one row")
        for condition in conditions:
            matched = matched.where(scalars.of(condition))
        parts = [matched.rows]
        if side in {"left", "full"}:
            parts.append(_unmatched(here, matched))
        if side in {"right", "full"}:
            parts.append(_unmatched(there, matched))
        first, *others = parts
        return Unit(Relation(first.concat(*others)), tables, left.place)

    # ------------------------------------------------------------ groups, columns and order

    def _is_ordered_in_vain(self) -> bool:
        """Whether the order of the rows decides nothing: they are those of a subquery, all of them."""
        return self._around is not None and not any(self._node.args.get(one) for one in ("limit", "offset"))

    def _windowed(
        self, subqueries: Subqueries, windows: list[exp.Window], conditions: list[exp.Expr]
    ) -> None:
        """Adds columns of window functions, and keeps the rows of which conditions on them are true."""
        correlation, scalars = list(self._correlation), subqueries.scalars()
        for condition in conditions:
            subqueries.attach(condition)
        rows = first_rows(subqueries.relation, conditions, windows, correlation, scalars)
        rows, columns = windowed(rows, windows, correlation, scalars)
        subqueries.known |= columns
        for condition in conditions:
            rows = rows.where(subqueries.scalars().of(condition))
        subqueries.relation = rows

    def _grouped(self, relation: Relation, aggregates: list[exp.Expr]) -> tuple[Relation, dict[str, str]]:
        group = self._node.args.get("group")
        if group is not None:
            check_parts(group, "expressions")
        groups = [] if group is None else list(group.expressions)
        known: dict[str, str] = {}
        subqueries = Subqueries(self, relation, known)
        for part in [*groups, *aggregates]:
            subqueries.attach(part)
        return grouped(subqueries.relation, groups, list(self._correlation), aggregates, subqueries.scalars())

    def _selected(
        self,
        subqueries: Subqueries,
        outputs: list[exp.Expr],
        ordering: list[exp.Expr],
        ordering_by: list[exp.Expr],
    ) -> _Made:
        node, correlation = self._node, list(self._correlation)
        scalars = subqueries.scalars()
        names: list[str] = []
        columns: dict[str, Any] = {name: col(name) for name in correlation}
        for output in outputs:
            name = output.alias_or_name
            if name in names:
                refuse(output, f"two columns are called {name!r}: give one another name by AS")
            names.append(name)
            columns[name] = scalars.of(output.unalias())
        distinct = node.args.get("distinct")
        if distinct is not None and distinct.args.get("on"):
            refuse(
                distinct, "DISTINCT ON is not covered: top_k of the collection gives the first rows of a key"
            )
        by_text = {key_of(output.unalias()): output.alias_or_name for output in outputs}
        order, hidden = [], []
        for ordered, value in zip(ordering, ordering_by, strict=True):
            check_parts(ordered, "this", "desc", "nulls_first")
            column = by_text.get(key_of(value))
            if column is None and value.name in names and not _table(value):
                column = value.name
            if column is None:
                if distinct is not None and not self._is_ordered_in_vain():
                    refuse(
                        ordered, "SELECT DISTINCT is ordered by columns that it selects: select this one, too"
                    )
                if distinct is not None:
                    continue
                subqueries.attach(value)
                column = fresh("order")
                columns[column] = subqueries.scalars().of(value)
                hidden.append(column)
            order.append(_ordered(ordered, column))
        relation = Relation(subqueries.relation.rows.select(**columns), single=subqueries.relation.single)
        if distinct is not None:
            relation = Relation(relation.rows.distinct(), single=relation.single)
        relation = _limited(node, relation, order, correlation)
        if self._correlation or self._around is not None:
            relation = relation.only([*correlation, *names])
            hidden, order = [], []
        return _Made(relation, names, dict(self._correlation), order, hidden, self._has_nulls)


def _is_comma(join: exp.Join) -> bool:
    """Whether a table follows a comma in FROM, which binds weaker than JOIN."""
    return not any(join.args.get(part) for part in ("on", "side", "kind", "using", "method"))


def _ordered(node: exp.Expr, column: str) -> Ordered:
    """A part of ORDER BY, as the order by a column."""
    return Ordered(column, bool(node.args.get("desc")), bool(node.args.get("nulls_first")))


def _table(node: exp.Expr) -> bool:
    """Whether an expression is no plain name: a name without a table is that of a selected column."""
    from sqlglot import exp

    return not isinstance(node, exp.Column) or bool(node.table)


def _limited(node: exp.Expr, relation: Relation, order: list[Ordered], by: list[str]) -> Relation:
    """The rows at some places in an order."""
    limit, offset = node.args.get("limit"), node.args.get("offset")
    for clause in (limit, offset):
        if clause is not None:
            check_parts(clause, "this", "expression")
    if limit is None and offset is None:
        return relation
    if not order:
        refuse(
            node,
            "LIMIT without ORDER BY takes any rows, which would change with every change: write ORDER BY, "
            "with enough columns to decide",
        )
    numbers = []
    for clause in (limit, offset):
        number = None if clause is None else clause.expression
        if number is not None and not (number.key == "literal" and number.name.isdigit()):
            refuse(number, "LIMIT and OFFSET are whole numbers")
        numbers.append(None if number is None else int(number.name))
    kept, skipped = numbers
    if kept == 0:
        return relation.where(lit(1) == 0)
    ordered = list(dict.fromkeys(one.column for one in order))
    places = {one.column: one for one in reversed(order)}
    how: dict[str, Any] = {
        "descending": [places[name].descending for name in ordered],
        "nulls_first": [places[name].nulls_first for name in ordered],
        "others": [name for name in relation.names if name not in {*by, *ordered}],
    }
    rows, number = relation.rows, fresh("part")
    first = None if kept is None or by else kept + (skipped or 0)
    part = None if first is None else part_of(relation, first)
    if part is not None:
        # The first rows of all are among the first rows of the parts.
        divided = rows.with_columns(**{number: part})
        rows = divided.top_k(first, ordered, by=number, name="top_k: parts", **how)
    ranked = rows.top_k(kept, ordered, by=by, offset=skipped or 0, **how)
    return Relation(ranked).only(relation.names)


def _unmatched(side: Relation, matched: Relation) -> ColumnCollection:
    """The rows of a side that no pair has, with nulls in the other side's columns."""
    once = side.rows.distinct()
    there = matched.only(side.names).rows.distinct()
    alone = Relation(once.concat(there.negate()))
    rows = side.join(alone, [(col(name), col(name)) for name in side.names], how="semi", nulls_equal=True)
    schema = matched.rows.schema
    nulls = {
        name: col(name) if name in side.names else lit(None).cast(schema.field(name).type)
        for name in schema.names
    }
    return rows.rows.select(**nulls)


def _combined(node: exp.SetOperation, tables: Mapping[str, Table]) -> _Made:
    """UNION, INTERSECT and EXCEPT of two queries, with the names of the first."""
    from sqlglot import exp

    check_parts(node, "this", "expression", "distinct", "order", "limit", "offset", "with_")
    left, right = (lower(part, tables) for part in (node.this, node.expression))
    if len(left.names) != len(right.names):
        refuse(node, f"one side has {len(left.names)} columns, and the other {len(right.names)}")
    a, b = left.relation.only(left.names), right.relation.only(right.names)
    try:
        here, there = alike(a, b)
    except GraphError as error:
        refuse(node, str(error))
    verbs = {exp.Union: here.union, exp.Except: here.except_, exp.Intersect: here.intersect}
    rows = verbs[type(node)](there, distinct=bool(node.args.get("distinct")))
    order = node.args.get("order")
    ordered = []
    for one in [] if order is None else order.expressions:
        check_parts(one, "this", "desc", "nulls_first")
        if one.this.name not in left.names:
            refuse(one, "the order of a combination is by its columns")
        ordered.append(_ordered(one, one.this.name))
    relation = _limited(node, Relation(rows), ordered, [])
    return _Made(relation, left.names, {}, ordered, [])
