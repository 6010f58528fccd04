"""The Star Schema Benchmark: all queries are right after every change of their tables."""

from __future__ import annotations

import pytest

from changing_tables import check, random_changes
from effort import EFFORT
from star_schema import QUERIES, SCHEMAS, Star


@pytest.mark.parametrize("number", QUERIES)
def test_queries_are_right_after_every_change(number: str) -> None:
    some = 0
    for seed in range(EFFORT):
        star = Star(seed)
        script = random_changes(star.initial(), star.rows, seed, 6 * EFFORT, 8)
        some += sum(map(len, check(QUERIES[number], SCHEMAS, script)))
    assert some > 0, "no change gave a result"
