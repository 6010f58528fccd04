"""Collections as outputs: their rows at the end, or their changes, as streams of columns.

A collection's updates are moved to the last time there is, where they are consolidated: what is left is the
rows that are there at the end. No operator of this module keeps rows.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pyarrow as pa

from pointstamp.api.collection import Collection
from pointstamp.api.column_collection import ColumnCollection
from pointstamp.errors import GraphError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from pointstamp.api.arrow_stream import ArrowStream

__all__ = ["LAST", "as_streams", "is_collection"]

LAST = 2**63 - 1
"""The time of the end."""

_TIME_AND_DIFF = [("time", pa.uint64()), ("diff", pa.int64())]


def is_collection(thing: object) -> bool:
    """Whether something is a collection, of columns or of records."""
    return isinstance(thing, (Collection, ColumnCollection))


def as_streams(built: Any, changes: str | None, schemas: Mapping[str, pa.Schema] | None) -> Any:
    """The result of `build`, with streams in place of collections.

    Args:
        built: The result: a stream or a collection, or a dict of them.
        changes: The column for the diffs of changes; None for the rows at the end.
        schemas: The declared schemas by name, or None. Collections of records need one.

    Raises:
        GraphError: If a collection of records has no declared schema, or a column has the name `changes`.
    """
    if isinstance(built, dict):
        return {
            name: _as_stream(one, changes, None if schemas is None else schemas.get(name), f"output '{name}'")
            for name, one in built.items()
        }
    declared = None if schemas is None or len(schemas) != 1 else next(iter(schemas.values()))
    return _as_stream(built, changes, declared, "the output")


def _as_stream(built: Any, changes: str | None, schema: pa.Schema | None, what: str) -> Any:
    if isinstance(built, Collection):
        built = _of_columns(built, changes, schema, what)
    if not isinstance(built, ColumnCollection):
        return built
    columns = built.schema
    if changes is None:
        return _final(built, columns, what)
    if changes in columns.names:
        raise GraphError(
            f"changes= adds the column '{changes}' to {what}, a collection that has a column of that name"
        )
    rows = pa.schema([*columns, pa.field(changes, pa.int64())])

    def changed(batch: pa.RecordBatch) -> pa.RecordBatch:
        return pa.RecordBatch.from_arrays([*batch.columns[:-2], batch.columns[-1]], schema=rows)

    return built.consolidate().updates().map_batches(changed, rows, name="changes")


def _final(collection: ColumnCollection, columns: pa.Schema, what: str) -> ArrowStream:
    updates = collection.updates()

    def at_the_end(batch: pa.RecordBatch) -> pa.RecordBatch:
        times = pa.repeat(pa.scalar(LAST, pa.uint64()), batch.num_rows)
        return pa.RecordBatch.from_arrays(
            [*batch.columns[:-2], times, batch.columns[-1]], schema=batch.schema
        )

    last = updates.map_batches(at_the_end, name="at the end").to_collection(diffs=True)
    return last.consolidate().updates().map_batches(_repeated(columns, what), columns, name="rows")


def _repeated(columns: pa.Schema, what: str) -> Callable[[pa.RecordBatch], pa.RecordBatch]:
    def rows(batch: pa.RecordBatch) -> pa.RecordBatch:
        diffs = batch.columns[-1].to_numpy()
        kept = pa.RecordBatch.from_arrays(batch.columns[:-2], schema=columns)
        if (diffs == 1).all():
            return kept
        if (diffs < 0).any():
            place = int((diffs < 0).argmax())
            row = kept.slice(place, 1).to_pylist()[0]
            raise ValueError(
                f"{what} is a collection that has a row {diffs[place]} times at the end, because more of it "
                f"was taken away than was there: {row}. changes= gives its changes instead"
            )
        import numpy as np

        return kept.take(pa.array(np.repeat(np.arange(len(diffs)), diffs)))

    return rows


def _of_columns(
    collection: Collection[Any], changes: str | None, schema: pa.Schema | None, what: str
) -> ColumnCollection:
    """A collection of records as one of columns, by the declared schema."""
    if schema is None:
        raise GraphError(
            f"{what} is a collection of records, which have no schema: give the schema of its rows, such as "
            'schema="node bigint, component bigint"'
        )
    fields = [field for field in schema if field.name != changes]
    single = len(fields) == 1
    updates = pa.schema([*fields, *(pa.field(name, kind) for name, kind in _TIME_AND_DIFF)])

    def row(update: tuple[Any, Any, int]) -> tuple[Any, ...]:
        record, time, diff = update
        if single and not (isinstance(record, tuple) and len(record) == 1):
            return (record, time, diff)
        if isinstance(record, dict):
            record = tuple(record.get(field.name) for field in fields)
        if not isinstance(record, tuple) or len(record) != len(fields):
            raise ValueError(
                f"{what} has the record {record!r}, and the schema has {len(fields)} columns: "
                f"{', '.join(field.name for field in fields)}"
            )
        return (*record, time, diff)

    rows: ArrowStream = collection.updates().map(row).to_arrow(updates)
    return rows.to_collection(diffs=True)
