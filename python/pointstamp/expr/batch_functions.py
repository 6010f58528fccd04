"""Expressions over the columns of a batch: this package's, pyarrow's, Polars', or functions.

Owns the evaluation of each, a batch at a time, and the schema of the result, which is found with an empty
batch when the dataflow is built. A Polars expression runs as one lazy query over the columns that it reads;
its result has Polars' types for strings, which are converted back where the stream's schema has others. An
expression of pyarrow sees plain columns in place of views and runs, which its kernels do not support. Rows
are then picked in Rust, so that columns of every type can be filtered.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NoReturn

from pointstamp._core import Expr, filter_batch, select_batch
from pointstamp.errors import GraphError
from pointstamp.logic.selection import rows_where, without_views

if TYPE_CHECKING:
    from collections.abc import Callable

    import pyarrow as pa

__all__ = ["checked_columns", "checked_condition", "filtering", "is_foreign", "with_columns"]


def filtering(condition: Any) -> Callable[[pa.RecordBatch], Any]:
    """The function of a batch that keeps the rows for which a condition is true; where it is null, they go.

    Raises:
        TypeError: If it is no expression and no function.
    """
    kind = _kind(condition)

    def filtered(batch: pa.RecordBatch) -> Any:
        if kind == "own":
            return filter_batch(batch, condition)
        if kind == "polars":
            found = _selected(batch, {"condition": condition}).column(0)
        elif kind == "pyarrow":
            found = _projected(batch, condition)
        else:
            found = _called("filter", condition, batch)
            if _is_expression(found):
                found = _projected(batch, found)
            elif isinstance(found, bool | str):
                raise _takes_a_row("filter", f"returned {found!r}", batch)
        return rows_where(batch, found)

    return filtered


def checked_condition(function: Callable[[pa.RecordBatch], Any], condition: Any, schema: pa.Schema) -> None:
    """Evaluates a condition on a batch without rows, so that a mistake in it is raised where it is written.

    A function that fails on such a batch for another reason may still do its work on rows, and is let be.

    Raises:
        GraphError: If an expression cannot be evaluated, for example for want of a column.
        TypeError: If a function takes the batch for a row.
    """
    import pyarrow as pa

    try:
        pa.RecordBatch.from_pylist([], schema=schema)
    except pa.ArrowException:  # there are types of which pyarrow makes no empty column
        return
    try:
        checked_columns(function, "filter", schema)
    except Exception as error:
        if _kind(condition) != "function" or hasattr(error, "takes_a_row"):
            raise


def _called(call: str, function: Any, batch: Any) -> Any:
    """Calls a function with a batch.

    Raises:
        TypeError: If it compares, or calculates with, a whole column as with a value.
        BaseException: Other exceptions of the function.
    """
    try:
        return function(batch)
    except (TypeError, AttributeError) as error:
        if "pyarrow.lib." not in str(error):
            raise
        raise _takes_a_row(call, f"raised: {error}", batch) from error


def _takes_a_row(call: str, what: str, batch: Any) -> TypeError:
    """The error for a function of a batch that takes it for a row."""
    import pyarrow as pa

    numbers = (field.name for field in batch.schema if pa.types.is_integer(field.type))
    name = next(numbers, next(iter(batch.schema.names), "n"))
    sign = "> 1" if call == "filter" else "* 2"
    error = TypeError(
        f"the function given to {call} {what}. It is given a batch, a pyarrow.RecordBatch, and not a row: "
        f"write an expression, as in ps.col({name!r}) {sign}; "
        f"to_records().{'filter' if call == 'filter' else 'map'} takes a function of a row, a dict"
    )
    error.takes_a_row = True  # type: ignore[attr-defined]
    return error


def checked_columns(function: Callable[[pa.RecordBatch], Any], call: str, schema: pa.Schema) -> Any:
    """Calls a function with a batch without rows, to find the schema of its results.

    Raises:
        GraphError: If an expression cannot be evaluated, for example for want of a column.
        BaseException: An exception of the program's function.
    """
    import pyarrow as pa

    try:
        return function(pa.RecordBatch.from_pylist([], schema=schema))
    except Exception as error:
        if type(error).__module__.startswith(("pyarrow", "polars")):
            _raise_in(call, schema, error)
        raise


def _raise_in(call: str, schema: Any, error: Exception) -> NoReturn:
    """Raises the error of an expression, with the names of the columns.

    Raises:
        GraphError: Always.
    """
    first = str(error).strip().splitlines()[0] if str(error).strip() else type(error).__name__
    raise GraphError(
        f"the expression given to {call} cannot be evaluated: {first}. The columns are "
        f"{', '.join(f'{field.name}: {field.type}' for field in schema)}"
    ) from error


def with_columns(columns: dict[str, Any]) -> Callable[[pa.RecordBatch], Any]:
    """Returns the function of a batch that adds columns, or replaces columns of the same names.

    Raises:
        TypeError: If one is no expression and no function.
    """
    kinds = {name: _kind(column) for name, column in columns.items()}

    def added(batch: pa.RecordBatch) -> Any:
        import pyarrow as pa

        table = pa.Table.from_batches([batch])
        made: dict[str, Any] = {}
        for kind, select in (("own", _computed), ("polars", _selected)):
            together = {name: column for name, column in columns.items() if kinds[name] == kind}
            if together:
                found = select(batch, together)
                made.update(zip(found.column_names, found.columns, strict=True))
        for name, column in columns.items():
            if kinds[name] == "pyarrow":
                made[name] = _projected(batch, column)
            elif kinds[name] == "function":
                made[name] = _column(name, _called("with_columns", column, batch))
        for name in columns:
            at = table.schema.get_field_index(name)
            values = made[name]
            if len(values) != batch.num_rows:
                raise ValueError(
                    f"column '{name}' of with_columns has {len(values)} values in a batch of "
                    f"{batch.num_rows} rows: it needs one for each row"
                )
            table = table.append_column(name, values) if at < 0 else table.set_column(at, name, values)
        return table

    return added


def _computed(batch: Any, expressions: dict[str, Any]) -> Any:
    """The columns that expressions of this package make, by name."""
    return select_batch(batch, list(expressions), list(expressions.values()))


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

    # Polars does not support all types of Arrow: it gets only the columns that it reads, as far as it names
    # them.
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
    """Checks the result of a function of a column."""
    import pyarrow as pa

    if isinstance(values, list) and not all(isinstance(chunk, pa.Array) for chunk in values or [None]):
        raise TypeError(
            f"the function of column '{name}' returns a list, which has no type: it is to return "
            "pa.array(values, type)"
        )
    if not hasattr(values, "__len__"):
        raise TypeError(
            f"the function of column '{name}' returns a column, such as pa.array(values, type), and returned "
            f"{values!r}: it is given a whole batch, and not a row"
        )
    return values


def _is_expression(value: Any) -> bool:
    return type(value).__module__.startswith("pyarrow") and type(value).__name__ == "Expression"


def is_foreign(expression: Any) -> bool:
    """Whether something is an expression of pyarrow or Polars."""
    return _is_of_polars(expression) or _is_expression(expression)


def _is_of_polars(value: Any) -> bool:
    return type(value).__module__.startswith("polars") and hasattr(value, "meta")


def _kind(expression: Any) -> str:
    if isinstance(expression, Expr):
        return "own"
    if _is_of_polars(expression):
        return "polars"
    if _is_expression(expression):
        return "pyarrow"
    if callable(expression):
        return "function"
    cure = ""
    if not isinstance(expression, str):
        cure = f": ps.lit({expression!r}) is a constant for every row"
    raise TypeError(
        "an expression over columns is ps.col('n') > 1, one of pyarrow (pc.field('n') > 1) or Polars "
        f"(pl.col('n') > 1), or a function of a batch that returns a column, not {expression!r}{cure}"
    )
