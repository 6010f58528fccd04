"""Kinds of nodes over records."""

from __future__ import annotations

from pointstamp._core import StageKind
from pointstamp.plan.node import Kind, State


def _stage(kind: StageKind) -> Kind:
    return Kind(kind.label, "records", stage=kind)


MAP = _stage(StageKind.MAP)
FLAT_MAP = _stage(StageKind.FLAT_MAP)
FILTER = _stage(StageKind.FILTER)
INSPECT = _stage(StageKind.INSPECT)
INSPECT_TIME = _stage(StageKind.INSPECT_TIME)
INSPECT_BATCH = _stage(StageKind.INSPECT_BATCH)
MAP_IN_PLACE = _stage(StageKind.MAP_IN_PLACE)
MAP_BATCHES = _stage(StageKind.MAP_BATCHES)
MAP_TIMED = _stage(StageKind.MAP_TIMED)
TRY_MAP = _stage(StageKind.TRY_MAP)
OK_ERR = _stage(StageKind.OK_ERR)
PARTITION = _stage(StageKind.PARTITION)
BRANCH = _stage(StageKind.BRANCH)
BRANCH_WHEN = _stage(StageKind.BRANCH_WHEN)

TO_COLLECTION = Kind("to_collection", "records")
COUNT = Kind("count", "records", State.BY_TIME)
DELAY = Kind("delay", "records")
DELAY_BATCH = Kind("delay_batch", "records")
ENTER_AT = Kind("enter_at", "records")
