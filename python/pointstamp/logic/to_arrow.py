"""Records as rows of Arrow record batches: the reading and the checks of `Stream.to_arrow`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pointstamp import _core
from pointstamp.plan.columns import TO_ARROW
from pointstamp.plan.node import Form, Output

if TYPE_CHECKING:
    import pyarrow as pa

    from pointstamp.lowering.scope import BuildingScope


def to_arrow(scope: BuildingScope, read: Output, schema: pa.Schema, name: str | None) -> Output:
    """The records of an output as rows: see `Stream.to_arrow`."""
    columns = _core.Schema(schema)
    fields = columns.to_pyarrow()
    names = list(fields.names)

    def rows(records: list[Any]) -> pa.RecordBatch:
        import pyarrow as pa  # an optional dependency

        made = rows_by_name(records, names, "to_arrow")
        if not names:  # `from_pylist` counts the values of columns
            none = pa.RecordBatch.from_struct_array(pa.array(made, pa.struct([])))
            return none.replace_schema_metadata(fields.metadata)
        return pa.RecordBatch.from_pylist(made, schema=fields)

    made = Output(Form.COLUMNS, columns)
    return scope._append(TO_ARROW, [read], made, name=name, function=rows).output


def rows_by_name(records: list[Any], columns: list[str], who: str) -> list[dict[str, Any]]:
    """Records by the names of their columns, all of which each of them must have.

    Raises:
        TypeError: For a record with other fields; `who` is the method that makes rows of it.
    """
    names, count = set(columns), len(columns)
    rows: list[dict[str, Any]] = []
    for record in records:
        if isinstance(record, dict):
            if record.keys() != names:
                raise TypeError(_other_columns(record, columns, who))
            rows.append(record)
        elif isinstance(record, (tuple, list)) and len(record) == count:
            rows.append(dict(zip(columns, record, strict=True)))
        else:
            raise TypeError(
                f"{who} makes rows of dicts by the schema's names, or of tuples of {count} values, "
                f"not {record!r}"
            )
    return rows


def _other_columns(record: dict[Any, Any], columns: list[str], who: str) -> str:
    missing = [name for name in columns if name not in record]
    extra = [name for name in record if name not in columns]
    problem = " and ".join(
        f"{what} {', '.join(map(repr, which))}"
        for what, which in (("lacks", missing), ("has no column for", extra))
        if which
    )
    return f"{who} makes rows of {columns}, and a record {problem}: {record!r}"
