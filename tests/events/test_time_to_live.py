"""`ttl=` has one boundary, of every operator: at exactly so long after its time a key or a row is gone."""

from __future__ import annotations

from typing import Any

import pytest

import pointstamp as ps
from keyed_operators import SCHEMA

TTL = 5


def remembered(name: str, columns: bool, at: int) -> bool:
    """Whether a record at `at` finds what there was of its key at 0."""
    rows = [(0, "a", 1), (at, "a", 1)]

    def build(scope: ps.Scope) -> Any:
        def stream(those: list[tuple[int, str, int]]) -> Any:
            made: Any = scope.to_stream(those)
            if columns:
                made = made.map_batches(list).to_arrow(SCHEMA)
                return made.event_time("at")[0]
            return made.event_time(lambda row: row[0])[0].key_by(lambda row: row[1], lambda row: row[2])

        by = ("key",) if columns else ()
        if name == "table_join":
            results = stream(rows[1:]).table_join(stream(rows[:1]), *by, ttl=TTL)
        elif name == "scan":
            keyed = stream(rows)
            results = (
                keyed.running("key", v_sum=ps.col("v").sum(), ttl=TTL)
                if columns
                else keyed.scan(lambda _, n, total: total + n, default=int, ttl=TTL)
            )
        else:
            results = stream(rows).dedup(*by, ttl=TTL)
        return (results.to_records() if columns else results).capture()

    found = [record for time, records in ps.example(build).extract() if time == at for record in records]
    if name == "table_join":
        return bool(found)
    if name == "dedup":
        return not found
    [last] = found
    return bool((list(last.values()) if columns else last)[-1] == 2)


@pytest.mark.parametrize("columns", [False, True])
@pytest.mark.parametrize("name", ["scan", "dedup", "table_join"])
def test_at_exactly_ttl_it_is_gone(name: str, columns: bool) -> None:
    assert [remembered(name, columns, at) for at in (TTL - 1, TTL, TTL + 1)] == [True, False, False]
