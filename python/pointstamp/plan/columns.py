"""Kinds of nodes over columns."""

from __future__ import annotations

from pointstamp.plan.node import Kind, State

__all__ = [
    "AGGREGATE",
    "ASOF_JOIN",
    "BRANCH_WHEN",
    "DEDUP",
    "DELAY",
    "DISTINCT",
    "DISTINCT_SO_FAR",
    "EXCHANGE",
    "FILTER",
    "INSPECT_BATCH",
    "INTERVAL_JOIN",
    "JOIN",
    "JOIN_SO_FAR",
    "MAP_BATCHES",
    "OWN_TIMES",
    "PARTITION",
    "RENAME",
    "SCAN",
    "SELECT",
    "TABLE_JOIN",
    "TO_ARROW",
    "TO_COLLECTION",
    "TO_RECORDS",
    "WINDOW",
    "WINDOW_IN_ORDER",
    "WINDOW_JOIN",
    "WITH_COLUMNS",
    "WITH_ONE_KEY",
]


def _kind(name: str, state: State = State.NONE) -> Kind:
    return Kind(name, "columns", state)


# A function of each batch.
MAP_BATCHES = _kind("map_batches")
FILTER = _kind("filter")
SELECT = _kind("select")
RENAME = _kind("rename")
WITH_COLUMNS = _kind("with_columns")
WITH_ONE_KEY = _kind("with_one_key")
TO_ARROW = _kind("to_arrow")

INSPECT_BATCH = _kind("inspect_batch")
TO_RECORDS = _kind("to_records")
BRANCH_WHEN = _kind("branch_when")
TO_COLLECTION = _kind("to_collection")
DELAY = _kind("delay")
OWN_TIMES = _kind("own times")

# By key.
EXCHANGE = _kind("exchange")
PARTITION = _kind("partition")
AGGREGATE = _kind("aggregate", State.BY_TIME)
DISTINCT = _kind("distinct", State.BY_TIME)
DISTINCT_SO_FAR = _kind("distinct_so_far", State.BY_KEY)
JOIN = _kind("join", State.BY_TIME)
JOIN_SO_FAR = _kind("join_so_far", State.BY_KEY)
WINDOW = _kind("window", State.BY_KEY)

# A kernel that is fed in the order of event time.
WINDOW_IN_ORDER = _kind("window", State.BY_KEY)
SCAN = _kind("scan", State.BY_KEY)
DEDUP = _kind("dedup", State.BY_KEY)
INTERVAL_JOIN = _kind("interval_join", State.BY_KEY)
WINDOW_JOIN = _kind("window_join", State.BY_KEY)
ASOF_JOIN = _kind("asof_join", State.BY_KEY)
TABLE_JOIN = _kind("table_join", State.BY_KEY)
