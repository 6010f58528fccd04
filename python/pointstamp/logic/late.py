"""`scope.read(..., event_time=)`: a watermark for each partition, in any unit, with the late records apart.

A source's `EventTime` sends late records at a time after their own, so that a record is late where its own
time is before the time of its message. Owns the function that extracts the times of records or batches, and
the operator after it that puts late ones on a stream of their own.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pointstamp import _core
from pointstamp._validation import function_of
from pointstamp.errors import GraphError, TimeError
from pointstamp.event_time.clock import Clock, refuse_negative
from pointstamp.event_time.units import null_time, unit_of
from pointstamp.logic.planned import PlannedOperator
from pointstamp.logic.selection import rows_where
from pointstamp.plan.node import Form

if TYPE_CHECKING:
    from collections.abc import Callable

    from pointstamp.lowering.scope import BuildingScope
    from pointstamp.plan.node import Output

__all__ = ["late_apart", "times_of"]

Times = tuple["Callable[[Any], Any]", int, Clock]


def times_of(event_time: Any, lateness: Any, schema: Any) -> Times:
    """A function of a record, or of a batch, that gives times in units; the lateness; and their clock.

    Raises:
        GraphError: If it is no function of records, or no column of the source's.
    """
    if schema is None:
        clock = Clock()
        function = function_of("event_time", event_time)

        def of_record(record: Any) -> int:
            time = clock.unit(function(record))
            refuse_negative(time, clock)
            return time

        return of_record, _least(clock.span("lateness", lateness), lateness), clock
    if not isinstance(event_time, str):
        raise GraphError(
            f"event_time of a source of columns is the name of a column, not {event_time!r}: the columns are "
            f"{', '.join(schema.names)}"
        )
    at = _core.time_column_of(_core.Schema(schema), event_time)
    data_type = schema.field(at).type
    unit = unit_of(data_type)
    import pyarrow.compute as pc

    def of_batch(batch: Any) -> Any:
        whole = _whole(batch.column(at), event_time)
        if not unit.lengths.is_known and len(whole):
            unit.lengths.saw(pc.max(whole).as_py())
        return whole

    return of_batch, _least(unit.span("lateness", lateness), lateness), unit.clock()


def _least(units: int, lateness: Any) -> int:
    if units < 0:
        raise ValueError(f"lateness is at least 0, not {lateness}")
    return units


def _whole(times: Any, column: str) -> Any:
    """A column of times as integers of 64 bits."""
    import pyarrow as pa
    import pyarrow.compute as pc

    if times.null_count:
        raise null_time(column)
    if pa.types.is_date32(times.type):
        times = times.cast(pa.int32())
    whole = times.cast(pa.int64())
    low = pc.min(whole).as_py()
    if low is not None and low < 0:
        raise TimeError(f"the event time {low} is below 0, where there are no timestamps")
    return whole


def late_apart(
    scope: BuildingScope, read: Output, times: Callable[[Any], Any], clock: Clock, time_column: str | None
) -> tuple[Output, Output]:
    """Splits a stream into records at their own time, and records that were sent later than that.

    Args:
        scope: Where.
        read: The records, or columns.
        times: Returns the time of a record, or the times of a batch, in units.
        clock: Their unit.
        time_column: For columns, the column with the times.
    """
    schema = read.schema
    operator = PlannedOperator(scope, "late")
    operator.new_input(read, (_core.PactKind.PIPELINE, None), frontier=False)
    form = Form.RECORDS if schema is None else Form.MIXED
    on_time, on_time_made, capability = operator.new_output(schema, form=form, clock=clock)
    on_time_made.time_column = time_column
    late, late_made, late_capability = operator.new_output(schema, clock=clock)
    for unused in (capability, late_capability):
        unused.drop()
    operator.stateless()
    split = _records if schema is None else _rows

    def logic(port: Any, *outputs: Any) -> None:
        for message, batch in port:
            for output, part in zip(outputs, split(batch, times, message.time), strict=True):
                if part is not None:
                    with output.session(message) as session:
                        (session.give_all if isinstance(part, list) else session.give)(part)

    operator.build(logic, lambda ports: (*ports, on_time, late), notify=False)
    return on_time_made, late_made


def _records(records: list[Any], times: Callable[[Any], int], now: int) -> tuple[Any, Any]:
    late = [times(record) < now for record in records]
    if not any(late):
        return records, None
    kept = [record for record, is_late in zip(records, late, strict=True) if not is_late]
    return kept or None, [record for record, is_late in zip(records, late, strict=True) if is_late]


def _rows(batch: Any, times: Callable[[Any], Any], now: int) -> tuple[Any, Any]:
    import pyarrow.compute as pc

    late = pc.less(times(batch), now)
    if not pc.any(late).as_py():
        return batch, None
    kept = rows_where(batch, pc.invert(late))
    return kept if kept.num_rows else None, rows_where(batch, late)
