"""TPC-H: all queries are right after every change of their tables."""

from __future__ import annotations

import pytest

from changing_tables import check, random_changes
from effort import EFFORT
from tpch import QUERIES, SCHEMAS, Tables


@pytest.mark.parametrize("number", QUERIES)
def test_queries_are_right_after_every_change(number: int) -> None:
    some = 0
    for seed in range(EFFORT):
        tables = Tables(seed, 60 if seed % 2 == 0 else 400)
        script = random_changes(tables.initial(), tables.rows, seed, 6 * EFFORT, 8)
        some += sum(map(len, check(QUERIES[number], SCHEMAS, script)))
    assert some > 0, "no change gave a result"
