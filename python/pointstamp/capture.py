"""Capture: a stream as a sequence of events that can be kept, read and played again.

Owns `Capture`, the in-memory queue that `Stream.capture` returns, and the two kinds of event. The
sequence keeps the stream's promises: no messages come at a time that the progress before them has
excluded. After timely dataflow's capture and replay.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Generic, NamedTuple, TypeVar

from pointstamp._core import EventQueue

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pointstamp._types import Time

__all__ = ["Capture", "Messages", "Progress"]

T = TypeVar("T")


class Progress(NamedTuple):
    """Changes to the frontier of times that may still come.

    Attributes:
        changes: Each time that enters the frontier, with 1, or leaves it, with -1.
    """

    changes: list[tuple[Time, int]]


class Messages(NamedTuple):
    """A batch of records at a time.

    Attributes:
        time: The time of every record in the batch.
        data: A list of records, or a `pyarrow.RecordBatch` of an `ArrowStream`.
    """

    time: Time
    data: Any


class Capture(Generic[T]):
    """A queue of the events of a stream on one worker. It may be read from any thread, and after the run.

    Reading does not remove events: every iteration begins with the first.

    Examples:
        >>> import pointstamp as ps
        >>> captured = ps.example(lambda scope: scope.to_stream("abc").capture())
        >>> for event in captured:
        ...     print(event)
        Progress(changes=[(0, 1)])
        Messages(time=0, data=['a', 'b', 'c'])
        Progress(changes=[(0, -1)])
        >>> captured.extract()
        [(0, ['a', 'b', 'c'])]
    """

    __slots__ = ("core",)

    def __init__(self) -> None:
        self.core = EventQueue()

    def __iter__(self) -> Iterator[Progress | Messages]:
        """Yields the events that are there, in order."""
        index = 0
        while (event := self.core.event(index)) is not None:
            time, data = event
            yield Progress(data) if time is None else Messages(time, data)
            index += 1

    def extract(self) -> list[tuple[Time, list[T]]]:
        """The records per time, in the order of times; records are sorted where they can be.

        Of an `ArrowStream`: per time, its record batches, in the order of their arrival. Times that are not
        ordered come in the order of their coordinates, first coordinate first.
        """
        by_time: dict[Time, list[T]] = {}
        columns = False
        for event in self:
            if isinstance(event, Messages):
                at_time = by_time.setdefault(event.time, [])
                if isinstance(event.data, list):
                    at_time.extend(event.data)
                else:
                    at_time.append(event.data)
                    columns = True
        result = []
        for time in sorted(by_time):
            records = by_time[time]
            if not columns:
                try:
                    records.sort()
                except TypeError:
                    pass  # records without an order stay in that of their arrival
            result.append((time, records))
        return result
