"""A collection as a captured stream: its updates, each at its time."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pointstamp.capture.events import EventWriter
    from pointstamp.streams.records import Stream

__all__ = ["capture_updates"]


def capture_updates(updates: Stream[tuple[Any, Any, int]], writer: EventWriter) -> None:
    """Writes updates ``(record, time, diff)`` as pairs ``(record, diff)`` at their times."""
    updates.map(lambda update: (update[0], update[2])).capture_into(writer)
