"""Stages of dataflows that have not started, and the slots or stages that they wait for."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pointstamp.spark import compat
from pointstamp.spark.job import slots
from pointstamp.spark.packing.naming import BARRIER

if TYPE_CHECKING:
    from collections.abc import Container

    from pyspark.sql import SparkSession

__all__ = ["computing", "waiting"]


def waiting(session: SparkSession, reporting: Container[int]) -> list[str]:
    """Describes the stages of a dataflow that have no slots yet, or whose tasks are about to begin.

    Args:
        session: The session with the stages.
        reporting: The stages whose dataflows report their reasons themselves.
    """
    context = session.sparkContext
    tracker = context.statusTracker()
    infos = [tracker.getStageInfo(number) for number in tracker.getActiveStageIds()]
    busy = sum(info.numActiveTasks for info in infos if info is not None)
    texts = []
    for stage in compat.barrier_stages(session):
        found = BARRIER.search(stage.plan)
        if found is None or stage.number in reporting:
            continue
        there = compat.slots(context)
        name = found[0].removeprefix("pointstamp ").partition(" [")[0]
        if not stage.waits:
            texts.append(
                f"dataflow {name}: its barrier stage, {stage.number} of Spark, runs, and its tasks "
                "have not said anything yet: they find each other, or end"
            )
            continue
        held = slots.held(context)
        whose = f", {held} of them by the resident cluster until shutdown_cluster()" if held else ""
        free = max(0, there - busy)
        texts.append(
            f"dataflow {name}: its barrier stage, {stage.number} of Spark, waits for slots. It needs "
            f"{stage.tasks} at once, and {free} of Spark's {there} are free: {busy} are taken{whose}. It "
            f"begins when other jobs let go of them; num_workers= of run asks for fewer"
        )
    return texts


def computing(session: SparkSession) -> list[str]:
    """Returns the running stages of other work: inputs of a dataflow may still be computed there."""
    tracker = session.sparkContext.statusTracker()
    barriers = {stage.number for stage in compat.barrier_stages(session)}
    texts = []
    for number in sorted(set(tracker.getActiveStageIds()) - barriers):
        info = tracker.getStageInfo(number)
        if info is not None:
            texts.append(
                f"stage {number} of Spark ({info.name}) runs: {info.numCompletedTasks} of {info.numTasks} "
                f"tasks have ended, {info.numActiveTasks} run"
            )
    return texts
