"""Stages of Spark's, named for their dataflow, with the totals of its operators as their accumulators.

Spark names a stage for the line of Java that happened to submit it. The name is given while the stage runs: a
thread looks for it from the moment that the input is packed, which is before the stage begins, until it is
there. When its last task has ended, the operators' counts become accumulators of the
stage: they are on its page, in the REST interface and in the event log.
"""

from __future__ import annotations

import threading
import time
from typing import TYPE_CHECKING

from pointstamp.spark import compat
from pointstamp.spark.monitoring.accumulator import Packed, Ran

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from pointstamp.spark.packing.naming import Named

__all__ = ["packed_rows", "take_note"]

_LOOK = 0.05
"""Seconds from one look for a stage to the next."""

_PATIENCE = 10.0
"""Seconds after the last note of packed input in which its stage must begin to be found."""

_BETWEEN = 2.0
"""Seconds that may pass between the job that packs the input and the one with the stage."""

_SHOWN = 64
"""Operators whose counts become accumulators."""

_COUNTS = (("records in", 2, 1), ("records out", 3, 1), ("milliseconds", 1, 1_000_000))
"""Figures of an operator: a name, its position in the totals, and its divisor."""

_lock = threading.Lock()
_sought: dict[str, float] = {}
"""Dataflows whose stage is searched for, by number, with the end of the search."""

_packed: dict[str, int] = {}
"""Rows that were packed for dataflows that have not ended, by number."""

_ran: dict[tuple[int, int], list[Ran]] = {}
"""Notes of stages and attempts of which some tasks have ended."""


def take_note(session: SparkSession, note: object) -> None:
    """Takes a note; Spark's scheduler waits until this returns."""
    if isinstance(note, Packed):
        with _lock:
            _packed[note.named.number] = _packed.get(note.named.number, 0) + note.rows
        _seek(session, note.named)
    elif isinstance(note, Ran):
        _show(session, note)


def packed_rows(number: str) -> int:
    """Counts the rows that were packed for a dataflow that runs."""
    with _lock:
        return _packed.get(number, 0)


def _seek(session: SparkSession, named: Named) -> None:
    with _lock:
        known = named.number in _sought
        _sought[named.number] = time.monotonic() + _PATIENCE
    if not known:
        threading.Thread(target=_name, args=(session, named), name="pointstamp-names", daemon=True).start()


def _name(session: SparkSession, named: Named) -> None:
    """Looks for the stage of a dataflow, and names it."""
    context = session.sparkContext
    active = time.monotonic()
    try:
        while True:
            with _lock:
                if time.monotonic() > _sought[named.number]:
                    return
            for stage in compat.barrier_stages(session):
                if named.dataflow in stage.plan:
                    compat.describe_stage(context, stage.number, named.stage)
                    return
            if context.statusTracker().getActiveJobsIds():
                active = time.monotonic()
            elif time.monotonic() - active > _BETWEEN:
                return  # the packing job has failed, or was stopped
            time.sleep(_LOOK)
    except Exception:
        return  # Spark is about to stop, or has changed within: a name is for show
    finally:
        with _lock:
            _sought.pop(named.number, None)


def _show(session: SparkSession, ran: Ran) -> None:
    if not ran.tasks:
        compat.describe_stage(session.sparkContext, ran.stage, ran.named.stage)
        return
    with _lock:
        notes = _ran.setdefault((ran.stage, ran.attempt), [])
        notes.append(ran)
        if len(notes) < ran.tasks:
            return
        del _ran[ran.stage, ran.attempt]
        for key in [key for key in _ran if key[0] == ran.stage]:
            del _ran[key]  # attempts that failed
        _packed.pop(ran.named.number, None)
    compat.describe_stage(session.sparkContext, ran.stage, ran.named.stage, _counts(notes))


def _counts(notes: list[Ran]) -> dict[str, int]:
    """Returns the counts of each operator on all processes, by the names that accumulators get."""
    sums: dict[tuple[tuple[int, ...], str], list[int]] = {}
    for ran in notes:
        for place, name, totals in ran.totals:
            if len(place) > 1:  # not the dataflow as a whole
                done = sums.setdefault((tuple(place), name), [0] * len(totals))
                for index, value in enumerate(totals):
                    done[index] += value
    counts = {}
    names = [name for _, name in sums]
    for (address, name), done in sorted(sums.items())[:_SHOWN]:
        which = name if names.count(name) == 1 else f"{name} {'.'.join(map(str, address[1:]))}"
        for what, index, divisor in _COUNTS:
            if done[index]:
                counts[f"{which}: {what}"] = done[index] // divisor
    return counts
