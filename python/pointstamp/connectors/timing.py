"""The times of a source's records, and its frontier.

There are three ways. `Timing` gives everything the minimum time: for sources that end. `Arrival` counts
intervals of the clock. `EventTime` calls a function, with a watermark for each partition: the latest time of
the partition minus the permitted lateness. The frontier is the least watermark of the partitions that have
not ended and are not idle. Records that arrive behind the frontier are sent at the frontier, so that nothing
is lost and no time before the frontier is sent.

A line that cannot be read has no time. It gets the time of the record after it in its partition, so that a
run that begins at an offset before the line gives it the same time as the run before.
"""

from __future__ import annotations

import time as clock
from itertools import accumulate
from typing import TYPE_CHECKING, Any

from pointstamp.errors import add_note
from pointstamp.event_time.clock import LengthUnitError
from pointstamp.event_time.units import split_rows

if TYPE_CHECKING:
    from collections.abc import Callable, Container, Iterator, Sequence

    from pointstamp.event_time.units import Late

__all__ = ["Arrival", "EventTime", "Timing"]

OTHERS = "For datetimes give event_time= in place of time=: lateness= is a timedelta then"

SHOWN = 200
"""Characters of a record that an error shows."""


def _checked(time: Any) -> int:
    if not isinstance(time, int) or time < 0:
        raise TypeError(f"the times that time= gives are ints from 0 on, not {time!r}. {OTHERS}")
    return time


def _short(record: Any) -> str:
    """Returns a record as an error shows it."""
    shown = repr(record)
    return shown if len(shown) <= SHOWN else f"{shown[:SHOWN]}..."


class Timing:
    """Everything at the minimum time."""

    def begin(self, partitions: Sequence[str]) -> None:
        """Takes the partitions that the worker reads, at first and when some are added."""

    def times(self, partition: str, batch: Any) -> Iterator[tuple[int, Any]]:
        """The parts of a batch with their times, each at or after the frontier."""
        if len(batch):
            yield 0, batch

    def times_before(self, partition: str, batch: Any, places: Sequence[int]) -> list[int | None]:
        """Returns the times of lines that could not be read; called before `times` of the same batch.

        Args:
            partition: The partition.
            batch: The records that were read with the lines.
            places: For each line, the number of records of the batch before it.

        Returns:
            A time for each line, at or after the frontier; None where a later record decides it.
        """
        return [self.frontier()] * len(places)

    def last_time(self, partition: str) -> int:
        """Returns the time of lines that could not be read, and that no record follows in the partition."""
        return self.frontier()

    def set_watermark(self, partition: str, watermark: int) -> None:
        """Notes a reader's report that nothing before an event time comes any more."""

    def ended(self, partition: str) -> None:
        """Notes the end of a partition."""

    def follow(self, frontier: int) -> None:
        """Notes the frontier of the other workers, while this one has no partition."""

    def frontier(self, waiting: Container[str] = ()) -> int:
        """The least time at which something may come, of all partitions and of those whose records wait."""
        return 0

    def complete(self) -> int:
        """The frontier that is reached without another batch: all that was sent before it is complete."""
        return self.frontier()

    def looks_again(self) -> float | None:
        """Returns the seconds after which the frontier may move without a batch."""
        return None

    def kept(self) -> Any:
        """Returns the state, for a checkpoint."""
        return None

    def restore(self, kept: Any) -> None:
        """Takes back a state of `kept`; of another number of workers, several, one after the other.

        Called after `begin`.
        """


class Arrival(Timing):
    """The number of intervals since 1970 when a batch arrived, so that workers agree."""

    def __init__(self, every: float, now: Callable[[], float] = clock.time) -> None:
        if not isinstance(every, (int, float)):
            raise TypeError(f"every is a number of seconds, such as 0.5, not {every!r}")
        if not every > 0:
            raise ValueError(f"every is a number of seconds, more than 0, not {every}")
        self._every = every
        self._now = now
        self._latest = 0

    def times(self, partition: str, batch: Any) -> Iterator[tuple[int, Any]]:
        """The whole batch, now."""
        if len(batch):
            yield self.frontier(), batch

    def kept(self) -> int:
        """Returns the latest interval: a clock that is set back between two runs does not take it back."""
        return self._latest

    def restore(self, kept: int) -> None:
        """Takes back the latest interval."""
        self._latest = max(self._latest, kept)

    def frontier(self, waiting: Container[str] = ()) -> int:
        """The interval that it is; a clock that is set back does not take it back."""
        self._latest = max(self._latest, int(self._now() // self._every))
        return self._latest

    def complete(self) -> int:
        """The next interval."""
        return self._latest + 1

    def looks_again(self) -> float | None:
        """When the next interval begins."""
        return max((self._latest + 1) * self._every - self._now(), 0.001)


class EventTime(Timing):
    """Event times of records."""

    def __init__(
        self,
        time: Callable[[Any], Any] | str,
        lateness: int,
        idle: float | None,
        *,
        own: bool = False,
        apart: bool = False,
    ) -> None:
        """Times and a lateness.

        Args:
            time: Gives the times.
            lateness: The distance of the frontier behind the latest time of a partition.
            idle: The seconds after which a silent partition no longer holds the others up.
            own: Whether the function is the source's, so that its readers' times are in the same unit.
            apart: Whether late records are sent at a time after their own, and nothing else is. A record is
                late that is behind the watermark of its partition, set by earlier records; so lateness does
                not depend on the order in which partitions are read, or on the division into batches. Rows of
                columns that are on time are sent together, at the frontier.
        """
        if not isinstance(lateness, int):
            raise TypeError(
                f"with time=, lateness is an int in the unit of the times, not {lateness!r}. {OTHERS}"
            )
        if lateness < 0:
            raise ValueError(f"lateness is at least 0, not {lateness}")
        self._time = time
        self._lateness = lateness
        self._idle = idle
        self._own = own
        self._apart = apart
        self._frontier = 0
        self._restored: int | None = None
        self._latest: dict[str, tuple[int, float]] = {}

    def begin(self, partitions: Sequence[str]) -> None:
        """Takes the partitions that the worker reads, at first and when some are added."""
        now = clock.monotonic()
        self._latest.update({partition: (self._frontier, now) for partition in partitions})

    def times(self, partition: str, batch: Any) -> Iterator[tuple[int, Any]]:
        """Returns the records of each time, in the order of times, followed by late ones, if they are apart.

        A late record gets the watermark of its partition as its time: however the partition is divided into
        batches, its time is the same.
        """
        latest, _ = self._latest.get(partition, (0, 0.0))
        late: Late = []
        if not self._apart:
            parts = self._records(batch) if isinstance(batch, list) else self._columns(batch)
        elif isinstance(batch, list):
            parts, late, latest = self._records_apart(batch, latest)
        else:
            parts, late, latest = self._rows_apart(batch, latest)
        for time, part in parts:
            latest = max(latest, time)
            yield max(time, self._frontier), part
        for watermark, part in late:
            yield max(watermark, self._frontier), part
        self._latest[partition] = (latest, clock.monotonic())

    def times_before(self, partition: str, batch: Any, places: Sequence[int]) -> list[int | None]:
        """The times of the records behind the lines, and of late ones the watermark of the partition."""
        if min(places) >= len(batch):
            return [None] * len(places)
        if isinstance(batch, list):
            stated = [self._time_of(record) for record in batch]
        else:
            stated = [_checked(time) for time in self._column(batch).to_pylist()]
        latest, _ = self._latest.get(partition, (0, 0.0))
        before = list(accumulate(stated, max, initial=latest))
        return [
            max(stated[place], before[place] - self._lateness, self._frontier)
            if place < len(stated)
            else None
            for place in places
        ]

    def last_time(self, partition: str) -> int:
        """The latest time of the partition."""
        latest, _ = self._latest.get(partition, (0, 0.0))
        return max(latest, self._frontier)

    def _time_of(self, record: Any) -> int:
        """Returns the time of a record; an error names the record, unless a length is the mistake."""
        assert callable(self._time)
        try:
            return _checked(self._time(record))
        except LengthUnitError:
            raise
        except Exception as error:
            add_note(
                error,
                f"while the {'event time' if self._apart else 'time'} was taken of the record "
                f"{_short(record)}. on_error= does not cover this: let the function return a time for such a "
                "record, too, such as 0, with which it is late",
            )
            raise

    def _column(self, batch: Any) -> Any:
        return batch.column(self._time) if isinstance(self._time, str) else self._time(batch)

    def _records_apart(self, batch: list[Any], latest: int) -> tuple[Any, Late, int]:
        """Returns the parts of a batch that are on time, the late ones, and the partition's latest time."""
        parts: dict[int, list[Any]] = {}
        late: dict[int, list[Any]] = {}
        for record in batch:
            time = self._time_of(record)
            watermark = latest - self._lateness
            if time < watermark:
                late.setdefault(watermark, []).append(record)
            else:
                parts.setdefault(time, []).append(record)
                latest = max(latest, time)
        return sorted(parts.items(), key=lambda part: part[0]), list(late.items()), latest

    def _rows_apart(self, batch: Any, latest: int) -> tuple[Any, Late, int]:
        """Splits rows as `_records_apart` does records; rows on time are one part, at the frontier."""
        assert callable(self._time)
        on_time, late, latest = split_rows(batch, self._time(batch), latest, 0, self._lateness)
        return [] if on_time is None else [(0, on_time)], late, latest

    def _records(self, batch: list[Any]) -> Iterator[tuple[int, list[Any]]]:
        parts: dict[int, list[Any]] = {}
        for record in batch:
            parts.setdefault(self._time_of(record), []).append(record)
        yield from sorted(parts.items(), key=lambda part: part[0])

    def _columns(self, batch: Any) -> Iterator[tuple[int, Any]]:
        import pyarrow.compute as pc

        times = self._column(batch)
        counted = pc.value_counts(times).to_pylist()
        if len(counted) > 1:
            batch = batch.take(pc.sort_indices(times))
        start = 0
        for time, rows in sorted((_checked(row["values"]), row["counts"]) for row in counted):
            yield time, batch.slice(start, rows)
            start += rows

    def set_watermark(self, partition: str, watermark: int) -> None:
        """Returns the watermark of a partition, from its reader where it has one."""
        if self._own:
            latest, _ = self._latest.get(partition, (0, 0.0))
            self._latest[partition] = (max(latest, watermark + self._lateness), clock.monotonic())

    def kept(self) -> tuple[int, dict[str, int]]:
        """Returns the frontier, and the latest time of each partition."""
        return self._frontier, {partition: latest for partition, (latest, _) in self._latest.items()}

    def restore(self, kept: tuple[int, dict[str, int]]) -> None:
        """Takes back the times of this worker's partitions, and the least frontier."""
        frontier, times = kept
        now = clock.monotonic()
        self._frontier = frontier if self._restored is None else min(self._restored, frontier)
        self._restored = self._frontier
        self._latest.update({name: (times[name], now) for name in self._latest.keys() & times.keys()})

    def ended(self, partition: str) -> None:
        """A partition that is over holds nothing."""
        self._latest.pop(partition, None)

    def follow(self, frontier: int) -> None:
        """Notes the frontier of the other workers: a partition found later sends earlier records at it."""
        self._frontier = max(self._frontier, frontier)

    def frontier(self, waiting: Container[str] = ()) -> int:
        """The least watermark; of idle partitions it is asked only if there are no others.

        Args:
            waiting: Partitions whose records have been read and are not placed yet: they are not idle.
        """
        if self._latest:
            limit = None if self._idle is None else clock.monotonic() - self._idle
            awake = [
                latest
                for partition, (latest, since) in self._latest.items()
                if limit is None or since >= limit or partition in waiting
            ]
            if awake:
                self._frontier = max(self._frontier, min(awake) - self._lateness)
            else:
                furthest = max(latest for latest, _ in self._latest.values())
                self._frontier = max(self._frontier, furthest - self._lateness)
        return self._frontier

    def looks_again(self) -> float | None:
        """When the next partition will have been idle for long enough."""
        if self._idle is None or not self._latest:
            return None
        now = clock.monotonic()
        waits = [since + self._idle - now for _, since in self._latest.values()]
        due = [wait for wait in waits if wait > 0]
        return min(due) + 0.001 if due else None
