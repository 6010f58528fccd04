"""Streams of the rows of data frames, tables and record batches that a program has in memory."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pointstamp import _core
from pointstamp.api.column_input import schema_and_rows
from pointstamp.logic.planned import single_output

if TYPE_CHECKING:
    from collections.abc import Callable

    from pointstamp._core import Capability, OutputPort
    from pointstamp.api.scope import Scope
    from pointstamp.info import OperatorInfo
    from pointstamp.plan.node import Output

__all__ = ["frame_to_stream"]

ROWS = 65_536
"""Rows that are sent at once, at most."""


def frame_to_stream(scope: Scope, frame: Any, name: str | None) -> Output:
    """The rows of a frame at the minimum time, some for each activation."""
    import pyarrow as pa

    schema, rows = schema_and_rows(frame)
    table = (
        pa.table(rows)
        if hasattr(rows, "__arrow_c_stream__")
        else pa.Table.from_batches([pa.record_batch(rows)])
    )
    batches = iter(table.to_batches(max_chunksize=ROWS))

    def build(capability: Capability, info: OperatorInfo) -> Callable[[OutputPort[Any]], None]:
        def logic(output: OutputPort[Any]) -> None:
            batch = next(batches, None)
            if batch is None:
                capability.drop()
                return
            with output.session(capability) as session:
                session.give(batch)
            info.activator.activate()

        return logic

    return single_output(
        scope, name or "to_stream", (), build, notify=False, start=True, schema=_core.Schema(schema)
    )
