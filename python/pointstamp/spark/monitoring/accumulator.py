"""An accumulator of PySpark's, which brings the notes of tasks to the driver when each task ends.

Spark's scheduler delivers the notes before it counts the task, and waits meanwhile. When the last task of a
stage has ended, its notes are read before the stage is, and all listeners of the end see the changes. Over
Spark Connect there are no accumulators, and no notes.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Any, NamedTuple

from pointstamp.spark import compat

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from pyspark import Accumulator
    from pyspark.sql import SparkSession

    from pointstamp.spark.packing.naming import Named

__all__ = ["Notes", "Packed", "Ran", "notes_of"]

_log = logging.getLogger("pointstamp.spark")


class Packed(NamedTuple):
    """A task has packed its part of an input: the dataflow comes next.

    Attributes:
        named: The dataflow.
        rows: The number of rows.
    """

    named: Named
    rows: int


class Ran(NamedTuple):
    """A process of a dataflow has ended.

    Attributes:
        named: The dataflow.
        stage: Spark's number for the stage.
        attempt: The identity of this attempt.
        tasks: The number of processes; 0 where each task runs a dataflow of its own.
        totals: For each operator: its address, its name, and its totals, from `Recorder.take_totals`.
    """

    named: Named
    stage: int
    attempt: int
    tasks: int
    totals: Sequence[tuple[Sequence[int], str, Sequence[int]]]


class Notes:
    """The accumulator's parameter: notes are collected in a task, and delivered in the driver."""

    def __init__(self, take: Callable[[Any], None] | None = None) -> None:
        self._take = take

    def __reduce__(self) -> Any:
        return Notes, ()  # a task's copy has no listener

    def zero(self, value: list[Any]) -> list[Any]:
        """No notes."""
        return []

    def addInPlace(self, some: list[Any], more: list[Any]) -> list[Any]:  # noqa: N802  # PySpark's name
        """In a task, all notes; in the driver, which delivers them, none is kept."""
        if self._take is None:
            return [*some, *more]
        for note in more:
            try:
                self._take(note)
            except Exception:  # Spark's scheduler waits for this: a failure of the display ends no job
                _log.debug("a note of a task could not be shown", exc_info=True)
        return []


_made: dict[str, Accumulator[Any]] = {}
"""By Spark's identity of the application."""


def notes_of(session: SparkSession, take: Callable[[SparkSession, Any], None]) -> Accumulator[Any] | None:
    """The accumulator for the notes of a session's tasks; None over Spark Connect.

    Args:
        session: The session.
        take: Called with the session and each note, on a thread of PySpark's, while the scheduler waits.
    """
    if compat.is_connect(session):
        return None
    context = session.sparkContext
    application = str(context.applicationId)
    if application not in _made:
        _made.clear()  # a process has one context at a time
        param: Any = Notes(lambda note: take(session, note))
        _made[application] = context.accumulator([], param)
    return _made[application]
