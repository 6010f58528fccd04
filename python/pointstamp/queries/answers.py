"""One answer to a query, as a table in the query's order."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import pyarrow as pa

    from pointstamp.api.column_collection import ColumnCapture
    from pointstamp.api.scope import Scope
    from pointstamp.queries.lowering import Ordered

__all__ = ["in_order", "sql"]


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
    from pointstamp.queries.lowering import Query, lowered
    from pointstamp.queries.tables import collections_of
    from pointstamp.runtime.execution import example

    def build(scope: Scope) -> tuple[Query, ColumnCapture]:
        made = lowered(query, collections_of(scope, tables))
        return made, made.rows.capture()

    made, captured = example(build)
    batches = [batch for _, batch in captured.extract()]
    return in_order(made.rows.schema, batches, made.order, made.hidden)


def in_order(schema: pa.Schema, batches: list[Any], order: list[Ordered], hidden: list[str]) -> pa.Table:
    """Returns rows as often as their counts say, in an order, as a table.

    Args:
        schema: The columns.
        batches: Batches of rows with their counts in the last column, as captures give them.
        order: The columns that decide, one after another.
        hidden: Columns that are there for the order alone.
    """
    import numpy as np
    import pyarrow as pa
    import pyarrow.compute as pc

    every = (
        pa.Table.from_batches(batches) if batches else schema.append(pa.field("#", pa.int64())).empty_table()
    )
    counts = every.column(every.num_columns - 1).to_numpy()
    rows = every.select(range(every.num_columns - 1))
    rows = rows.take(pa.array(np.repeat(np.arange(len(counts)), counts)))
    keys: list[tuple[str, Any]] = []
    for number, one in enumerate(order):
        # Where nulls are is an order of its own, before that of the values.
        null = f"#{number}"
        rows = rows.append_column(null, pc.is_null(rows.column(one.column)))
        keys += [
            (null, "descending" if one.nulls_first else "ascending"),
            (one.column, "descending" if one.descending else "ascending"),
        ]
    if keys:
        rows = rows.take(pc.sort_indices(rows, sort_keys=keys))
        rows = rows.drop_columns([name for name, _ in keys[::2]])
    return rows.drop_columns(hidden) if hidden else rows
