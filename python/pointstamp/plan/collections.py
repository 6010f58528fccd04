"""Kinds of nodes over collections."""

from __future__ import annotations

from pointstamp._core import CollectionStageKind, Reduction
from pointstamp.plan.node import Form, Kind, State

__all__ = [
    "ACCUMULATE",
    "AGGREGATE",
    "ARRANGE",
    "ARRANGED_UPDATES",
    "BY_MAGNITUDE",
    "CHECK_PAIRS",
    "COLLECT",
    "COLUMN_UPDATES",
    "CONSOLIDATE",
    "COUNT",
    "COUNT_BY_KEY",
    "DISTINCT",
    "FILTER",
    "FILTER_COLUMNS",
    "FILTER_FIELDS",
    "FLAT_MAP",
    "HASHED",
    "IMPORT",
    "INSPECT",
    "JOIN",
    "MAP",
    "MAX",
    "MEAN",
    "MIN",
    "NEGATE",
    "OVER",
    "PROJECT",
    "REDUCE",
    "REDUCTIONS",
    "RENAME",
    "SELECT",
    "SET",
    "SUM",
    "THRESHOLD",
    "TOP_K",
    "TO_RECORDS",
    "UPDATES",
    "VARIABLE",
    "keyed_by",
]

_FAMILY = "collections"


def _stage(kind: CollectionStageKind) -> Kind:
    return Kind(kind.label, _FAMILY, stage=kind)


MAP = _stage(CollectionStageKind.MAP)
FLAT_MAP = _stage(CollectionStageKind.FLAT_MAP)
FILTER = _stage(CollectionStageKind.FILTER)
INSPECT = _stage(CollectionStageKind.INSPECT)

PROJECT = Kind("map", _FAMILY)
FILTER_FIELDS = Kind("filter", _FAMILY)
CHECK_PAIRS = Kind("edges", _FAMILY)
NEGATE = Kind("negate", _FAMILY)
ACCUMULATE = Kind("accumulate", _FAMILY)
HASHED = Kind("hash", _FAMILY)
BY_MAGNITUDE = Kind("by_magnitude", _FAMILY)
CONSOLIDATE = Kind("consolidate", _FAMILY, State.BY_TIME)
UPDATES = Kind("updates", _FAMILY)

SELECT = Kind("select", _FAMILY)
RENAME = Kind("rename", _FAMILY)
TO_RECORDS = Kind("to_records", _FAMILY)
FILTER_COLUMNS = Kind("filter", _FAMILY)
COLUMN_UPDATES = Kind("updates", _FAMILY)

ARRANGE = Kind("arrange", _FAMILY, State.ARRANGED)
ARRANGED_UPDATES = Kind("to_collection", _FAMILY, State.ARRANGED)
IMPORT = Kind("import", _FAMILY, State.ARRANGED)
JOIN = Kind("join", _FAMILY, State.ARRANGED)

VARIABLE = Kind("variable", _FAMILY, State.QUEUE)
SET = Kind("set", _FAMILY)


def _reduction(kind: Reduction) -> Kind:
    return Kind(kind.label, _FAMILY, State.ARRANGED)


DISTINCT = _reduction(Reduction.DISTINCT)
THRESHOLD = _reduction(Reduction.THRESHOLD)
COUNT = _reduction(Reduction.COUNT)
COUNT_BY_KEY = _reduction(Reduction.COUNT_BY_KEY)
REDUCE = _reduction(Reduction.REDUCE)
MIN = _reduction(Reduction.MIN)
MAX = _reduction(Reduction.MAX)
SUM = _reduction(Reduction.SUM)
MEAN = _reduction(Reduction.MEAN)
TOP_K = _reduction(Reduction.TOP_K)
OVER = _reduction(Reduction.OVER)
COLLECT = _reduction(Reduction.COLLECTED)
AGGREGATE = _reduction(Reduction.AGGREGATE)

REDUCTIONS = (
    DISTINCT,
    THRESHOLD,
    COUNT,
    COUNT_BY_KEY,
    REDUCE,
    MIN,
    MAX,
    SUM,
    MEAN,
    TOP_K,
    OVER,
    COLLECT,
    AGGREGATE,
)
"""Kinds that make an arrangement of an arrangement."""


def keyed_by(kind: Kind) -> tuple[Form, Form]:
    """The form in which a reduction reads its input, and the form in which it makes its result."""
    reads = Form.BY_RECORD if kind in (DISTINCT, THRESHOLD, COUNT) else Form.BY_KEY
    return reads, Form.BY_RECORD if kind in (DISTINCT, THRESHOLD) else Form.BY_KEY
