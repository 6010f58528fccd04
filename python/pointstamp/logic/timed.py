"""Functions over records at times of their own: the form TIMED of streams of records.

Records at their event times travel as columns ``(times, records)`` (see `pointstamp.logic.timed_rows`), in
batches of mixed times, because a message for each time would cost more than the work on its records.
Operators by event time (`key_by`, `window`) read these columns, and so do `map`, `filter`, `flat_map` and
`inspect` before them. Any other operator reads each record at its time; lowering converts once.
"""

from __future__ import annotations

from itertools import compress
from typing import TYPE_CHECKING, Any

from pointstamp._core import StageKind
from pointstamp.event_time.clock import clock_of
from pointstamp.plan import records
from pointstamp.plan.node import Form, Output

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from pointstamp.logic.timed_rows import Columns, Times
    from pointstamp.lowering.scope import BuildingScope

__all__ = ["OVER_COLUMNS", "form_of", "map_timed"]


def map_timed(scope: BuildingScope, read: Output, function: Callable[..., Any], name: str) -> Output:
    """Appends a function over columns, whose first one is the times.

    Args:
        scope: Where.
        read: Records; at times of their own, or at times of the dataflow.
        function: Called with the columns of a batch; returns columns.
        name: The operator's name.
    """
    node = scope._append(
        records.MAP_TIMED, [read.read_as(read.form)], Output(Form.TIMED), name=name, function=function
    )
    return node.output


def form_of(together: Sequence[Output]) -> Form:
    """Returns the form in which streams of records are put together: TIMED where all are.

    Raises:
        TypeError: If all are, and their times are of different kinds.
    """
    if not together or any(output.form is not Form.TIMED for output in together):
        return Form.RECORDS
    first, *others = map(clock_of, together)
    for other in others:
        first.join(other)
    return Form.TIMED


def _mapped(fn: Callable[[Any], Any]) -> Callable[..., Columns]:
    def mapped(times: Times, records: list[Any]) -> Columns:
        return times, [fn(record) for record in records]

    return mapped


def _filtered(predicate: Callable[[Any], bool]) -> Callable[..., Columns]:
    def kept(times: Times, records: list[Any]) -> Columns:
        if isinstance(times, int):
            return times, [record for record in records if predicate(record)]
        passes = [predicate(record) for record in records]
        return list(compress(times, passes)), list(compress(records, passes))

    return kept


def _flat_mapped(fn: Callable[[Any], Any]) -> Callable[..., Columns]:
    def flat(times: Times, records: list[Any]) -> Columns:
        if isinstance(times, int):
            return times, [made for record in records for made in fn(record)]
        made: list[Any] = []
        when: list[int] = []
        for time, record in zip(times, records, strict=True):
            made += fn(record)
            when += [time] * (len(made) - len(when))
        return when, made

    return flat


def _inspected(fn: Callable[[Any], Any]) -> Callable[..., Columns]:
    def seen(times: Times, records: list[Any]) -> Columns:
        for record in records:
            fn(record)
        return times, records

    return seen


OVER_COLUMNS: dict[StageKind, Callable[[Callable[..., Any]], Callable[..., Columns]]] = {
    StageKind.MAP: _mapped,
    StageKind.FILTER: _filtered,
    StageKind.FLAT_MAP: _flat_mapped,
    StageKind.INSPECT: _inspected,
}
"""Functions of one record, by stage, as functions over columns: records keep their times."""
