"""Records as rows of Arrow record batches: how `Stream.to_arrow` reads a record, and what it refuses."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pointstamp import _core

if TYPE_CHECKING:
    import pyarrow as pa

    from pointstamp.streams.arrow import ArrowStream
    from pointstamp.streams.records import Stream


def to_arrow(stream: Stream[Any], schema: pa.Schema) -> ArrowStream:
    """The records of a stream as rows: see `Stream.to_arrow`."""
    columns = _core.Schema(schema)
    fields = columns.to_pyarrow()

    def rows(records: list[Any]) -> pa.RecordBatch:
        import pyarrow as pa  # an optional dependency

        made = [row_of(record, fields.names, "to_arrow") for record in records]
        if not fields.names:  # `from_pylist` counts the values of columns
            none = pa.RecordBatch.from_struct_array(pa.array(made, pa.struct([])))
            return none.replace_schema_metadata(fields.metadata)
        return pa.RecordBatch.from_pylist(made, schema=fields)

    return stream.scope.stream_of(_core.map_batches(stream.core, rows, columns, "to_arrow"), columns)


def row_of(record: Any, columns: list[str], who: str) -> dict[str, Any]:
    """A record by the names of its columns, all of which it must have.

    Raises:
        TypeError: If it has not; `who` makes rows of it.
    """
    if isinstance(record, dict):
        if record.keys() != set(columns):
            missing = [name for name in columns if name not in record]
            extra = [name for name in record if name not in columns]
            problem = " and ".join(
                f"{what} {', '.join(map(repr, which))}"
                for what, which in (("lacks", missing), ("has no column for", extra))
                if which
            )
            raise TypeError(f"{who} makes rows of {columns}, and a record {problem}: {record!r}")
        return record
    if isinstance(record, tuple | list) and len(record) == len(columns):
        return dict(zip(columns, record, strict=True))
    raise TypeError(
        f"{who} makes rows of dicts by the schema's names, or of tuples of {len(columns)} values, "
        f"not {record!r}"
    )
