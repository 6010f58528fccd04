"""One answer to a query, as a table in the query's order."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import pyarrow as pa

    from pointstamp.api.column_collection import ColumnCapture
    from pointstamp.api.scope import Scope

__all__ = ["sql"]


def sql(query: str, /, **tables: Any) -> pa.Table:
    """Computes a query of tables once.

    Args:
        query: One SELECT, or a combination of such, in DuckDB's dialect.
        tables: The tables that it reads, by name: tables or record batches of pyarrow, data frames of
            pandas or Polars.

    Returns:
        A table of pyarrow, in the order that ORDER BY says.

    Raises:
        GraphError: If the query is not covered, or names what is not there; with the place in its text.
        ImportError: Without sqlglot, which the extra ``pointstamp[sql]`` installs.

    Examples:
        >>> import pyarrow as pa
        >>> import pointstamp as ps
        >>> rain = pa.table({"city": ["Ulm", "Bonn", "Ulm"], "mm": [3, 5, 4]})
        >>> wettest = "SELECT city, sum(mm) AS mm FROM rain GROUP BY city ORDER BY mm DESC"
        >>> ps.sql(wettest, rain=rain).to_pylist()
        [{'city': 'Ulm', 'mm': 7}, {'city': 'Bonn', 'mm': 5}]
    """
    from pointstamp.logic.ordered_rows import in_order
    from pointstamp.queries.lowering import Query, lowered
    from pointstamp.queries.tables import collections_of
    from pointstamp.runtime.execution import example

    def build(scope: Scope) -> tuple[Query, ColumnCapture]:
        made = lowered(query, collections_of(scope, tables))
        return made, made.rows.capture()

    made, captured = example(build)
    batches = [batch for _, batch in captured.extract()]
    return in_order(made.rows.schema, batches, made.order, made.hidden)
