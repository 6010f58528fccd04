"""`ArrowStream.sort` and `limit`: the rows of each time, together on one worker."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pointstamp.logic.per_time import at_closing
from pointstamp.logic.picked import rows_in_order

if TYPE_CHECKING:
    from collections.abc import Callable

    from pointstamp._core import Capability, FrontieredInput, OutputPort

__all__ = ["limited", "sorted_per_time"]


def sorted_per_time(keys: list[int], descending: bool) -> Callable[..., Any]:
    """The constructor of an operator that keeps a time's rows until it closes, and sends them in order."""

    def in_order(batches: list[Any]) -> Any:
        import pyarrow as pa

        return pa.Table.from_batches(rows_in_order(batches, keys, descending), batches[0].schema)

    return at_closing(in_order)


def limited(rows: int) -> Callable[..., Any]:
    """The constructor of an operator that passes a time's first rows on, and drops the others."""

    def build(capability: Capability, _info: Any) -> Callable[..., None]:
        capability.drop()
        passed: dict[Any, int] = {}

        def logic(port: FrontieredInput[Any], output: OutputPort[Any]) -> None:
            for message, batch in port:
                room = rows - passed.get(message.time, 0)
                if room > 0:
                    rows_of: Any = batch
                    part = rows_of.slice(0, min(room, rows_of.num_rows))
                    passed[message.time] = rows - room + part.num_rows
                    with output.session(message) as session:
                        session.give(part)
            frontier = port.frontier
            for time in [time for time in passed if not frontier.less_equal(time)]:
                del passed[time]

        return logic

    return build
