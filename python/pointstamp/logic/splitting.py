"""Readers of batches of records for the operators on event time: columns, see `pointstamp.logic.timed_rows`.

Owns `split_records`, which separates late records, and `with_keys`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pointstamp.event_time.clock import refuse_negative

if TYPE_CHECKING:
    from collections.abc import Callable

    from pointstamp.event_time.clock import Clock
    from pointstamp.event_time.units import Late
    from pointstamp.logic.timed_rows import Keyed, Times

__all__ = ["keyed_pair", "split_records", "with_keys"]


def split_records(
    timestamp: Callable[[Any], Any], clock: Clock, limit: Callable[[], int] | None = None
) -> Callable[..., Any]:
    """Returns the function that reads a batch of records for `event_time`.

    Records on time become columns ``(times, records)``. Records after the limit, if there is one, are late,
    and move nothing.
    """

    def split(records: list[Any], latest: int, floor: int, lateness: int) -> tuple[Any, Late, int]:
        times = clock.units([timestamp(record) for record in records])
        low, high = min(times), max(times)
        refuse_negative(low, clock)
        ahead = None if limit is None or high <= (most := limit()) else most
        if (
            ahead is None
            and low >= floor
            and (
                low >= max(latest, high) - lateness
                # In order, none is behind another, however far apart they are.
                or (low >= latest - lateness and times == sorted(times))
            )
        ):
            return (low if low == high else times, records), [], max(latest, high)
        kept: list[int] = []
        on_time: list[Any] = []
        late: dict[int, list[Any]] = {}
        for time, record in zip(times, records, strict=True):
            watermark = max(latest - lateness, floor, 0)
            if time < watermark or (ahead is not None and time > ahead):
                late.setdefault(watermark, []).append(record)
            else:
                kept.append(time)
                on_time.append(record)
                latest = max(latest, time)
        return (kept, on_time) if kept else None, list(late.items()), latest

    return split


def with_keys(key: Callable[[Any], Any], value: Callable[[Any], Any] | None) -> Callable[..., Keyed]:
    """Returns the function that makes columns ``(times, keys, values)`` of ``(times, records)``."""

    def keyed(times: Times, records: list[Any]) -> Keyed:
        keys = [key(record) for record in records]
        return times, keys, records if value is None else [value(record) for record in records]

    return keyed


def keyed_pair(key: Callable[[Any], Any], value: Callable[[Any], Any] | None) -> Callable[[Any], Any]:
    """Returns the function that makes pairs ``(key, value)`` of records, for scopes such as loops."""
    if value is None:
        return lambda record: (key(record), record)
    return lambda record: (key(record), value(record))
