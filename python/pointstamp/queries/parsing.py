"""The text of a query as a tree, in which each column names its table; places in the text, for errors."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NoReturn

from pointstamp.errors import GraphError

if TYPE_CHECKING:
    from collections.abc import Mapping

    import pyarrow as pa
    from sqlglot import exp

__all__ = ["DIALECT", "check_parts", "key_of", "parsed", "place_of", "refuse", "sqlglot_module"]

DIALECT = "duckdb"
"""The dialect of queries, as sqlglot calls it."""


def sqlglot_module() -> Any:
    """Imports sqlglot.

    Raises:
        ImportError: If it is not installed.
    """
    try:
        import sqlglot
    except ImportError as error:
        raise ImportError(
            "queries in SQL are parsed by sqlglot, which is not installed: pip install 'pointstamp[sql]'"
        ) from error
    return sqlglot


def parsed(query: str, tables: Mapping[str, pa.Schema]) -> tuple[exp.Expr, list[str]]:
    """Parses a query and finds its columns.

    Returns:
        The tree, in which names are in lower case, and the names of the result's columns as they are written,
        as far as they are.

    Args:
        query: One statement, SELECT or a combination of such, in DuckDB's dialect.
        tables: The columns of each table.

    Raises:
        GraphError: If it is no such statement, or a table or column is missing or ambiguous; with the place.
    """
    sqlglot = sqlglot_module()
    from sqlglot import exp
    from sqlglot.errors import OptimizeError, ParseError, TokenError
    from sqlglot.optimizer.qualify import qualify

    try:
        statements = sqlglot.parse(query, read=DIALECT)
    except (ParseError, TokenError) as error:
        raise GraphError(f"the query cannot be parsed: {_plain(str(error))}") from None
    if len(statements) != 1 or not isinstance(statements[0], exp.Query):
        raise GraphError(
            "a query is one statement, SELECT or WITH: write statements that change tables as inserts and "
            "removals of the collections' inputs"
        )
    tree = statements[0]
    _check_tables(tree, tables)
    written = [column.alias_or_name for column in tree.selects]
    written = [] if "*" in written else written
    _move_clauses_inside(tree)
    _name_values(tree)
    schema: dict[str, object] = {
        name.lower(): {column.name.lower(): _sql_type(column.type) for column in columns}
        for name, columns in tables.items()
    }
    schema |= _named_later(tree)
    try:
        qualified = qualify(tree, schema=schema, dialect=DIALECT)
    except OptimizeError as error:
        raise GraphError(f"the query cannot be read: {_plain(str(error))}") from None
    _write_out_order(qualified, schema)
    return qualified, written


_CLAUSES = ("with_", "order", "limit", "offset")
"""The clauses that a query in parentheses may have outside of them."""


def _move_clauses_inside(tree: exp.Expr) -> None:
    """Moves clauses behind a query in parentheses into the query, as in ``(SELECT ...) ORDER BY k``.

    The clauses become those of the query itself, so that ORDER BY may also read columns that it does not
    select. A query that has LIMIT or OFFSET, or a WITH beside another one, becomes a subquery in FROM.
    Afterwards parentheses mean nothing.

    Raises:
        GraphError: If parentheses have another part, such as joins or a sample.
    """
    from sqlglot import exp

    for node in reversed(list(tree.walk())):  # inner parentheses first
        if not isinstance(node, exp.Subquery):
            continue
        query = node.unnest()
        clauses = {name: node.args[name] for name in _CLAUSES if node.args.get(name)}
        check_parts(node, "this", "alias", *(_CLAUSES if isinstance(query, exp.Query) else ()))
        if not clauses:
            continue
        cut = query.args.get("limit") or query.args.get("offset")
        limit = clauses.get("limit") or clauses.get("offset")
        if cut and limit and "order" not in clauses:
            refuse(
                limit,
                "ORDER BY inside of the parentheses is not the order outside of them: write it behind the "
                "parentheses, too",
            )
        if cut or ("with_" in clauses and query.args.get("with_")):
            source = exp.From(this=exp.Subquery(this=query))
            query = exp.Select(expressions=[exp.Star()], from_=source)
        for name, clause in clauses.items():
            node.set(name, None)
            query.set(name, clause)
        node.set("this", query)


def _name_values(tree: exp.Expr) -> None:
    """Makes selected subqueries expressions like others, which ORDER BY and GROUP BY may name by number."""
    from sqlglot import exp

    for select in tree.find_all(exp.Select):
        for value in [*select.expressions]:
            if isinstance(value, exp.Subquery):
                alias = value.alias
                value.set("alias", None)
                made = exp.Paren(this=value.copy())
                value.replace(exp.alias_(made, alias, quoted=True) if alias else made)


def _write_out_order(tree: exp.Expr, schema: Mapping[str, object]) -> None:
    """Gives each name in a term of ORDER BY its table, or else replaces it by the selected column.

    A term that is a name alone is the selected column, and stays. Inside of an expression, a column of the
    tables comes before a selected column of the same name.

    Raises:
        GraphError: If several tables have a column of the name.
    """
    from sqlglot import exp
    from sqlglot.optimizer.resolver import Resolver
    from sqlglot.optimizer.scope import traverse_scope
    from sqlglot.schema import ensure_schema

    for term in tree.find_all(exp.Ordered):
        name = term.this.unnest()
        if isinstance(name, exp.Column):
            term.set("this", name)  # (k) is k
    selects = [node for node in tree.find_all(exp.Select) if _names_in_order(node)]
    if not selects:
        return
    scopes = {id(scope.expression): scope for scope in traverse_scope(tree)}
    for select in selects:
        outputs = {one.alias_or_name: one.unalias() for one in select.expressions}
        scope = scopes[id(select)]
        resolver = Resolver(scope, ensure_schema(dict(schema), dialect=DIALECT))
        for column in _names_in_order(select):
            sources = scope.selected_sources
            owners = sorted(one for one in sources if column.name in resolver.get_source_columns(one))
            if len(owners) > 1:
                refuse(
                    column,
                    f"{column.name!r} is a column of {' and of '.join(owners)}: write "
                    f"{owners[0]}.{column.name}, or order by the selected column alone",
                )
            if owners:
                column.set("table", exp.to_identifier(owners[0], quoted=True))
            elif column.name in outputs:
                column.replace(exp.paren(outputs[column.name].copy()))


def _names_in_order(select: exp.Select) -> list[exp.Column]:
    """The columns without a table inside of the terms of ORDER BY, except those of subqueries."""
    from sqlglot import exp

    found: list[exp.Column] = []
    for term in getattr(select.args.get("order"), "expressions", []):
        for part in term.this.walk(prune=lambda part: isinstance(part, exp.Query)):
            if isinstance(part, exp.Column) and not part.table and part is not term.this:
                found.append(part)
    return found


def _named_later(tree: exp.Expr) -> dict[str, object]:
    """The columns of recursive tables that a query reads before the text defines them.

    Raises:
        GraphError: If the text does not say which columns such a table has.
    """
    from sqlglot import exp

    found: dict[str, object] = {}
    for clause in tree.find_all(exp.With):
        if not clause.recursive:
            continue
        seen: set[str] = set()
        later = {cte.alias.lower(): cte for cte in clause.expressions}
        for cte in clause.expressions:
            seen.add(cte.alias.lower())
            for table in cte.this.find_all(exp.Table):
                name = table.name.lower()
                if name in seen or name not in later:
                    continue
                columns = later[name].args["alias"].columns
                if not columns:
                    refuse(
                        table,
                        f"table {name!r} is read before its query: name its columns, as in {name}(a, b)",
                    )
                found[name] = {column.name.lower(): "BIGINT" for column in columns}
    return found


def _plain(message: str) -> str:
    """A message without the codes of terminals' colours, on one line."""
    import re

    return " ".join(re.sub(r"\x1b\[[0-9;]*m", "", message).split()).rstrip(".")


def _check_tables(tree: exp.Expr, tables: Mapping[str, pa.Schema]) -> None:
    """Refuses tables that were not given, and columns that differ in the case of letters only."""
    from sqlglot import exp

    given = {name.lower() for name in tables}
    named = {cte.alias.lower() for cte in tree.find_all(exp.CTE)}
    for table in tree.find_all(exp.Table):
        if isinstance(table.this, exp.Identifier) and table.name.lower() not in given | named:
            refuse(
                table,
                f"there is no table {table.name!r}: give it by its name, as in "
                f"sql(query, {table.name}=collection)",
            )
        if table.args.get("db"):
            refuse(table, f"table {table.sql(DIALECT)} is in a schema: tables have plain names")
    for name, schema in tables.items():
        seen: dict[str, str] = {}
        for column in schema.names:
            other = seen.setdefault(column.lower(), column)
            if other != column:
                raise GraphError(
                    f"table {name!r} has the columns {other!r} and {column!r}, which SQL does not "
                    "distinguish: rename one of them"
                )


def _sql_type(kind: pa.DataType) -> str:
    """The name of a type in SQL."""
    import pyarrow as pa

    if pa.types.is_decimal(kind):
        return f"DECIMAL({kind.precision}, {kind.scale})"
    for check, name in (
        (pa.types.is_boolean, "BOOLEAN"),
        (pa.types.is_integer, "BIGINT"),
        (pa.types.is_floating, "DOUBLE"),
        (pa.types.is_date, "DATE"),
        (pa.types.is_timestamp, "TIMESTAMP"),
        (pa.types.is_time, "TIME"),
    ):
        if check(kind):
            return name
    return "TEXT" if pa.types.is_string(kind) or pa.types.is_large_string(kind) else "BLOB"


def place_of(node: exp.Expr) -> str:
    """The place of a part of a query in its text, such as ``line 2, column 7``, or of the nearest part."""
    nodes = list(node.walk())
    at = node.parent
    while at is not None:
        nodes.append(at)
        at = at.parent
    for part in nodes:
        if "line" in part.meta:
            column = part.meta["col"] - (part.meta["end"] - part.meta["start"])
            return f"line {part.meta['line']}, column {column}"
    return "line 1"


def refuse(node: exp.Expr, reason: str) -> NoReturn:
    """Refuses a part of a query.

    Args:
        node: The part.
        reason: The fault, and the expression to write instead.

    Raises:
        GraphError: Always; with the place.
    """
    raise GraphError(f"SQL, {place_of(node)}: {reason}")


def check_parts(node: exp.Expr, *covered: str) -> None:
    """Refuses a node with a part that the lowering does not read, so that no part of a query is ignored.

    Args:
        node: The node.
        covered: The parts that are read, as sqlglot calls them.
    """
    for name, part in node.args.items():
        if part and name not in covered:
            refuse(node, f"{name.strip('_').upper().replace('_', ' ')} is not covered in {node.sql(DIALECT)}")


def key_of(node: exp.Expr) -> str:
    """The text of a part of a query: equal parts have equal texts."""
    text: str = node.sql(dialect=DIALECT, comments=False)
    return text
