"""Rows with counts as a table, in an order."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from pointstamp.logic.selection import without_views

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["Ordered", "in_order"]


class Ordered(NamedTuple):
    """A column that a result is ordered by."""

    column: str
    descending: bool
    nulls_first: bool


def in_order(schema: pa.Schema, batches: list[Any], order: list[Ordered], hidden: list[str]) -> pa.Table:
    """Returns rows as often as their counts say, in an order, as a table.

    Raises:
        ValueError: If a row has a negative count.

    Args:
        schema: The columns.
        batches: Batches of rows with their counts in the last column, as captures give them.
        order: The columns that decide, one after another.
        hidden: Columns that are there for the order alone.
    """
    import numpy as np
    import pyarrow as pa
    import pyarrow.compute as pc

    if not batches:
        with_count = schema.append(pa.field("#", pa.int64()))
        batches = [pa.record_batch([pa.array([], kind) for kind in with_count.types], schema=with_count)]
    every = pa.Table.from_batches([without_views(batch) for batch in batches])
    counts = every.column(every.num_columns - 1).to_numpy()
    rows = every.select(range(every.num_columns - 1))
    if len(counts) and counts.min() < 0:
        row = rows.slice(int(counts.argmin()), 1).to_pylist()[0]
        raise ValueError(
            f"the row {row} was removed more often than it was inserted: it has no place in a table"
        )
    rows = rows.take(pa.array(np.repeat(np.arange(len(counts)), counts)))
    keys: list[tuple[Any, str]] = []
    for one in order:
        values = rows.column(one.column)
        if pa.types.is_nested(values.type):
            values = _places(values)
        direction = "descending" if one.descending else "ascending"
        # Where nulls are is an order of its own, before that of the values; NaN is the greatest of these.
        keys.append((pc.is_null(values), "descending" if one.nulls_first else "ascending"))
        if pa.types.is_floating(values.type):
            keys.append((pc.is_nan(values), direction))
        keys.append((values, direction))
    if keys:
        names = [str(number) for number in range(len(keys))]
        table = pa.table([values for values, _ in keys], names=names)
        by = [(name, direction) for name, (_, direction) in zip(names, keys, strict=True)]
        rows = rows.take(pc.sort_indices(table, sort_keys=by))
    return rows.drop_columns(hidden) if hidden else rows


def _places(lists: pa.ChunkedArray) -> pa.Array:
    """The place of each list in their order; pyarrow does not sort lists."""
    import pyarrow as pa

    def key(values: list[Any]) -> list[Any]:
        return [(value is not None, value) for value in values]

    found = lists.to_pylist()
    distinct = sorted((one for one in found if one is not None), key=key)
    places = {repr(one): place for place, one in enumerate(distinct)}
    return pa.array([None if one is None else places[repr(one)] for one in found], pa.int64())
