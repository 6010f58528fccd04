"""Expressions over the columns of a batch: pyarrow's, Polars', or functions.

Owns how each is evaluated, a batch at a time, and the schema of the result, which an empty batch tells when
the dataflow is built. A Polars expression runs as one lazy query over the columns that it reads; what it
returns has Polars' types for strings, which are turned back where the stream's schema has others. One of
pyarrow sees plain columns in the place of views and runs, which its kernels do not know. Rows are then picked
in Rust, so that columns of every type can be filtered.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pointstamp.operators.picked import rows_where, without_views

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

    def filtered(batch: pa.RecordBatch) -> Any:
        if kind == "polars":
            found = _selected(batch, {"condition": condition}).column(0)
        elif kind == "pyarrow":
            found = _projected(batch, condition)
        else:
            found = condition(batch)
            if _is_expression(found):
                found = _projected(batch, found)
        return rows_where(batch, found)

    return filtered


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
        polars = {name: column for name, column in columns.items() if kinds[name] == "polars"}
        if polars:
            found = _selected(batch, polars)
            made.update(zip(found.column_names, found.columns, strict=True))
        for name, column in columns.items():
            if kinds[name] == "pyarrow":
                made[name] = _projected(batch, column)
            elif kinds[name] == "function":
                made[name] = _column(name, column(batch))
        for name in columns:
            at = table.schema.get_field_index(name)
            values = made[name]
            table = table.append_column(name, values) if at < 0 else table.set_column(at, name, values)
        return table

    return added


def _projected(batch: Any, expression: Any) -> Any:
    """The column that an expression of pyarrow makes."""
    import pyarrow as pa
    from pyarrow import acero

    table = pa.Table.from_batches([without_views(batch)])
    source = acero.Declaration("table_source", acero.TableSourceNodeOptions(table))
    project = acero.Declaration("project", acero.ProjectNodeOptions([expression], ["made"]))
    return acero.Declaration.from_sequence([source, project]).to_table(use_threads=False)["made"]


def _selected(batch: Any, expressions: dict[str, Any]) -> Any:
    """The columns that expressions of Polars make. One value for all rows, such as a literal, is repeated.

    Args:
        batch: The rows.
        expressions: By the names of the columns.

    Raises:
        ValueError: For another number of values.
    """
    import polars

    # Polars knows not all types of Arrow: it is given no more than it reads, as far as it says what that is.
    read: set[str] = set()
    for expression in expressions.values():
        roots = set(expression.meta.root_names())
        known = roots <= set(batch.schema.names) and not expression.meta.has_multiple_outputs()
        read |= roots if roots and known else set(batch.schema.names)
    wanted = [name for name in batch.schema.names if name in read]
    # A frame without columns has no rows.
    frame: Any = (
        polars.from_arrow(batch.select(wanted))
        if wanted
        else polars.select(polars.repeat(None, batch.num_rows).alias("rows"))
    )
    made = [expression.alias(name) for name, expression in expressions.items()]
    needed = f"an expression makes a value for each of the {batch.num_rows} rows, or one for all of them"
    try:
        found = frame.lazy().with_columns(made).collect()
    except polars.exceptions.ShapeError as error:
        raise ValueError(f"{needed}: {error}") from error
    if found.height != batch.num_rows:  # Polars makes as many rows of one row as there are values
        raise ValueError(f"{needed}, not {found.height}")
    return found.select(list(expressions)).to_arrow()


def _column(name: str, values: Any) -> Any:
    """What a function has returned for a column."""
    import pyarrow as pa

    if isinstance(values, list) and not all(isinstance(chunk, pa.Array) for chunk in values or [None]):
        raise TypeError(
            f"the function of column '{name}' returns a list, which tells no type: it is to return "
            "pa.array(values, type)"
        )
    return values


def _is_expression(value: Any) -> bool:
    return type(value).__module__.startswith("pyarrow") and type(value).__name__ == "Expression"


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
