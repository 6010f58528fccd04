"""Expressions over the columns of a batch: pyarrow's, Polars', or functions.

Owns how each is evaluated, a batch at a time, and the schema of the result, which an empty batch tells when
the dataflow is built. A Polars expression runs as one lazy query over the batch; what it returns has
Polars' types for strings, which are turned back where the stream's schema has others.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable

    import pyarrow as pa

__all__ = ["filtering", "with_columns"]


def filtering(condition: Any) -> Callable[[pa.RecordBatch], Any]:
    """The function of a batch that keeps the rows for which a condition is true; where it is null, they go.

    Raises:
        TypeError: If it is no expression and no function.
    """
    kind = _kind(condition)
    if kind == "polars":
        return lambda batch: _lazy(batch).filter(condition).collect().to_arrow()
    if kind == "pyarrow":

        def by_expression(batch: pa.RecordBatch) -> Any:
            import pyarrow as pa

            return pa.Table.from_batches([batch]).filter(condition)

        return by_expression
    return lambda batch: batch.filter(condition(batch))


def with_columns(columns: dict[str, Any]) -> Callable[[pa.RecordBatch], Any]:
    """The function of a batch that adds columns, or replaces those of the same names.

    Raises:
        TypeError: If one is no expression and no function.
    """
    kinds = {name: _kind(column) for name, column in columns.items()}

    def added(batch: pa.RecordBatch) -> Any:
        import pyarrow as pa

        table = pa.Table.from_batches([batch])
        made: dict[str, Any] = {}
        polars = [column.alias(name) for name, column in columns.items() if kinds[name] == "polars"]
        if polars:
            found = _lazy(batch).select(polars).collect().to_arrow()
            if found.num_rows != batch.num_rows:
                raise ValueError(
                    f"an expression made {found.num_rows} values of {batch.num_rows} rows: it needs as many"
                )
            made.update(zip(found.column_names, found.columns, strict=True))
        for name, column in columns.items():
            if kinds[name] == "pyarrow":
                made[name] = _projected(table, column)
            elif kinds[name] == "function":
                made[name] = column(batch)
        for name in columns:
            at = table.schema.get_field_index(name)
            values = made[name]
            table = table.append_column(name, values) if at < 0 else table.set_column(at, name, values)
        return table

    return added


def _projected(table: Any, expression: Any) -> Any:
    from pyarrow import acero

    source = acero.Declaration("table_source", acero.TableSourceNodeOptions(table))
    project = acero.Declaration("project", acero.ProjectNodeOptions([expression], ["made"]))
    return acero.Declaration.from_sequence([source, project]).to_table(use_threads=False)["made"]


def _lazy(batch: Any) -> Any:
    import polars

    frame: Any = polars.from_arrow(batch)
    return frame.lazy()


def _kind(expression: Any) -> str:
    module = type(expression).__module__
    if module.startswith("polars"):
        return "polars"
    if module.startswith("pyarrow"):
        return "pyarrow"
    if callable(expression):
        return "function"
    raise TypeError(
        "an expression is pyarrow's, such as pc.field('n') > 1, or Polars', such as pl.col('n') > 1, or a "
        f"function of a batch that returns a column, not {expression!r}"
    )
