"""How the operators on event time read batches of records: as pairs and triples with their times.

Owns `split_records`, which tells what is late, and `tagged`.
"""

from __future__ import annotations

from itertools import repeat
from typing import TYPE_CHECKING, Any

from pointstamp.event_times.clock import refuse_negative

if TYPE_CHECKING:
    from collections.abc import Callable

    from pointstamp.event_times.clock import Clock

__all__ = ["split_records", "tagged"]


def split_records(timestamp: Callable[[Any], Any], clock: Clock) -> Callable[..., Any]:
    """How the operator of `event_time` reads a batch of records: what is on time becomes pairs."""

    def split(records: list[Any], latest: int, floor: int, lateness: int) -> tuple[Any, Any, int]:
        times = clock.units(list(map(timestamp, records)))
        low, high = min(times), max(times)
        refuse_negative(low, clock)
        if low >= max(latest, high) - lateness and low >= floor:
            return list(zip(times, records, strict=True)), None, max(latest, high)
        on_time, late = [], []
        for time, record in zip(times, records, strict=True):
            if time < latest - lateness or time < floor:
                late.append(record)
            else:
                on_time.append((time, record))
                latest = max(latest, time)
        return on_time or None, late or None, latest

    return split


def tagged(
    records: list[Any], time: int, key: Callable[[Any], Any], value: Callable[[Any], Any] | None
) -> list[Any]:
    """Records of a message as ``(time, key, value)``."""
    values = records if value is None else map(value, records)
    return list(zip(repeat(time, len(records)), map(key, records), values, strict=True))
