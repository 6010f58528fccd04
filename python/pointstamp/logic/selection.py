"""Some of the rows of batches: filtered by a condition, at positions, all of them in order.

pyarrow's kernels support no views, which Polars and Parquet return, and not all nested types: this module is
for columns of every type. The work is done in Rust, without the interpreter.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pointstamp import _core

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["rows_at", "rows_in_order", "rows_where", "without_views"]


def rows_where(batch: pa.RecordBatch, condition: Any) -> pa.RecordBatch:
    """The rows for which a condition is true; where it is null, they go.

    Args:
        batch: The rows.
        condition: For each row a boolean: pyarrow's array or a chunked one, a list, an object with
            ``__arrow_array__``, or NumPy's array.

    Raises:
        TypeError: If it is no column of booleans.
        ValueError: If it is not as long as the batch.
    """
    import pyarrow as pa

    try:
        column = _column(condition)
    except TypeError as error:
        raise TypeError(
            f"a condition makes a column of booleans, one for each row, and not {condition!r}: columns are "
            "compared by functions such as pc.equal(batch['n'], 1); == says whether two are the same"
        ) from error
    if not pa.types.is_boolean(column.type):
        raise TypeError(f"a condition is a column of booleans, not of {column.type}")
    if len(column) != batch.num_rows:
        raise ValueError(f"a condition made {len(column)} values of {batch.num_rows} rows: it needs as many")
    found: pa.RecordBatch = _core.rows_where(batch, pa.record_batch([column], ["condition"]))
    return found


def rows_at(batch: pa.RecordBatch, places: Any) -> pa.RecordBatch:
    """The rows at places, in the order of these.

    Args:
        batch: The rows.
        places: Integers from 0 on, below the number of rows.
    """
    import pyarrow as pa

    column = _column(places).cast(pa.uint32())
    found: pa.RecordBatch = _core.rows_at(batch, pa.record_batch([column], ["place"]))
    return found


def rows_in_order(batches: list[pa.RecordBatch], by: list[int], descending: bool) -> list[pa.RecordBatch]:
    """The rows of batches of one schema in the order of the columns of these numbers.

    NaNs come after numbers and nulls last, in both directions; rows that are equal stay in their order.
    """
    return _core.rows_in_order(batches, by, descending)


def without_views(batch: pa.RecordBatch) -> pa.RecordBatch:
    """Returns the rows with plain columns in place of views and runs, at any depth, for pyarrow's kernels."""
    found: pa.RecordBatch = _core.without_views(batch)
    return found


def _column(values: Any) -> Any:
    """A column of values as one array."""
    import pyarrow as pa

    if isinstance(values, pa.ChunkedArray):
        return values.combine_chunks()
    if isinstance(values, pa.Array):
        return values
    if hasattr(values, "to_arrow"):  # a Polars Series
        return values.to_arrow()
    return pa.array(values)
