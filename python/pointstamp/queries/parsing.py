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
    schema: dict[str, object] = {
        name.lower(): {column.name.lower(): _sql_type(column.type) for column in columns}
        for name, columns in tables.items()
    }
    schema |= _named_later(tree)
    try:
        qualified = qualify(tree, schema=schema, dialect=DIALECT)
    except OptimizeError as error:
        raise GraphError(f"the query cannot be read: {_plain(str(error))}") from None
    _write_out_order(qualified)
    return qualified, written


def _write_out_order(tree: exp.Expr) -> None:
    """Replaces names of a query's columns in the terms of its ORDER BY by what the columns are."""
    from sqlglot import exp

    for select in tree.find_all(exp.Select):
        outputs = {one.alias_or_name: one.unalias() for one in select.expressions}
        for term in getattr(select.args.get("order"), "expressions", []):
            for column in list(term.this.find_all(exp.Column)):
                if column is not term.this and not column.table and column.name in outputs:
                    column.replace(exp.paren(outputs[column.name].copy()))


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
