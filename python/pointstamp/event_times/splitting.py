"""How the operators on event time read batches of records: as stretches, see `pointstamp.keyed.rows`.

Owns `split_records`, which tells what is late, and `with_keys`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pointstamp.event_times.clock import refuse_negative

if TYPE_CHECKING:
    from collections.abc import Callable

    from pointstamp.event_times.clock import Clock

__all__ = ["split_records", "with_keys"]


def split_records(timestamp: Callable[[Any], Any], clock: Clock) -> Callable[..., Any]:
    """How the operator of `event_time` reads a batch of records: what is on time becomes a stretch."""

    def split(records: list[Any], latest: int, floor: int, lateness: int) -> tuple[Any, Any, int]:
        times = clock.units([timestamp(record) for record in records])
        low, high = min(times), max(times)
        refuse_negative(low, clock)
        if low >= max(latest, high) - lateness and low >= floor:
            return [(low if low == high else times, records)], None, max(latest, high)
        kept: list[int] = []
        on_time, late = [], []
        for time, record in zip(times, records, strict=True):
            if time < latest - lateness or time < floor:
                late.append(record)
            else:
                kept.append(time)
                on_time.append(record)
                latest = max(latest, time)
        return [(kept, on_time)] if kept else None, late or None, latest

    return split


def with_keys(
    stretches: list[Any], key: Callable[[Any], Any], value: Callable[[Any], Any] | None
) -> list[Any]:
    """Stretches ``(times, records)`` as ``(times, keys, values)``."""
    return [
        (
            times,
            [key(record) for record in records],
            records if value is None else [value(record) for record in records],
        )
        for times, records in stretches
    ]
