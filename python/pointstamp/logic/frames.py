"""Streams of the rows of data frames, tables and record batches that a program has in memory."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from pointstamp import _core
from pointstamp.errors import type_name
from pointstamp.logic.planned import single_output

if TYPE_CHECKING:
    from collections.abc import Callable

    import pyarrow as pa

    from pointstamp._core import Capability, OutputPort
    from pointstamp.info import OperatorInfo
    from pointstamp.logic.declared_state import Division, Restored
    from pointstamp.lowering.scope import BuildingScope
    from pointstamp.plan.node import Output

__all__ = ["frame_to_stream", "schema_and_rows", "with_columns"]

ROWS = 65_536
"""Rows that are sent at once, at most."""


def with_columns(data: Any) -> Any:
    """The data, which has columns.

    Raises:
        TypeError: If it has none.
    """
    if hasattr(data, "__arrow_c_array__") or hasattr(data, "__arrow_c_stream__"):
        return data
    cure = ": pyarrow.Table.from_pylist makes a table of a list of dicts" if isinstance(data, list) else ""
    raise TypeError(
        "a collection of columns takes pyarrow's RecordBatch or Table, a data frame, or another object with "
        f"__arrow_c_array__ or __arrow_c_stream__, not {type_name(data)}{cure}"
    )


def schema_and_rows(data: Any) -> tuple[pa.Schema, Any]:
    """The schema of data with columns, and its rows; without the columns that pandas makes of an index.

    Raises:
        TypeError: If it has no columns.
    """
    schema = getattr(with_columns(data), "schema", None)
    if hasattr(schema, "__arrow_c_schema__"):
        return schema, data
    import pyarrow as pa

    table = pa.table(data)
    index = [name for name in table.column_names if re.fullmatch("__index_level_[0-9]+__", name)]
    table = table.drop_columns(index) if index else table
    return table.schema, table


def frame_to_stream(scope: BuildingScope, frame: Any, name: str | None) -> Output:
    """The rows of a frame at the minimum time, some for each activation."""
    import pyarrow as pa

    schema, rows = schema_and_rows(frame)
    table = (
        pa.table(rows)
        if hasattr(rows, "__arrow_c_stream__")
        else pa.Table.from_batches([pa.record_batch(rows)])
    )
    batches = table.to_batches(max_chunksize=ROWS)
    sent = Sent()

    def build(capability: Capability, info: OperatorInfo) -> Callable[[OutputPort[Any]], None]:
        def logic(output: OutputPort[Any]) -> None:
            if sent.batches >= len(batches):
                capability.drop()
                return
            with output.session(capability) as session:
                session.give(batches[sent.batches])
            sent.batches += 1
            info.activator.activate()

        return logic

    made = single_output(
        scope,
        name or "to_stream",
        (),
        build,
        notify=False,
        start=True,
        schema=_core.Schema(schema),
        state=sent,
    )
    made.at_least_time = True
    return made


class Sent:
    """The number of batches of a frame that were sent."""

    division: Division = "workers"

    def __init__(self) -> None:
        self.batches = 0

    def taken(self) -> int:
        """See `Waiting`."""
        return self.batches

    def give_back(self, taken: int, _restored: Restored) -> None:
        """See `Waiting`."""
        self.batches = taken
