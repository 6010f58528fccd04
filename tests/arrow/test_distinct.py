"""One row of each key: of each time, or of all times so far."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import pointstamp as ps
from columns import ANY_WORKERS, bag, grouped, pieces, run, tables


@given(tables(), st.sampled_from(ANY_WORKERS))
def test_distinct_keeps_one_row_of_each_key(
    case: tuple[pa.Table, list[str], list[tuple[str, str]]], workers: int
) -> None:
    table, keys, _ = case
    found = run(lambda rows: rows.distinct(keys), [(0, piece) for piece in pieces(table, 5)], workers=workers)
    rows = found.get(0, [])
    expected = grouped(table, keys, [])
    assert bag({key: row[key] for key in keys} for row in rows) == bag(expected.to_pylist())
    every = bag(table.to_pylist())
    assert all(every[row] >= count for row, count in bag(rows).items())


def test_distinct_is_per_time_and_distinct_so_far_for_good() -> None:
    feed = [
        (0, pa.table({"k": [1, 1, 2], "x": ["first", "second", "first"]})),
        (1, pa.table({"k": [2, 3, 3], "x": ["second", "first", "second"]})),
    ]
    found = run(lambda rows: rows.distinct("k"), feed)
    first = [{"k": 1, "x": "first"}, {"k": 2, "x": "first"}]
    assert found == {0: first, 1: [{"k": 2, "x": "second"}, {"k": 3, "x": "first"}]}
    found = run(lambda rows: rows.distinct_so_far("k"), feed)
    assert found == {0: first, 1: [{"k": 3, "x": "first"}]}
    whole = run(lambda rows: rows.distinct_so_far(), feed)
    assert sum(map(len, whole.values())) == 6


@given(tables(), st.sampled_from(ANY_WORKERS))
def test_distinct_so_far_keeps_a_row_of_each_key_at_its_first_time(
    case: tuple[pa.Table, list[str], list[tuple[str, str]]], workers: int
) -> None:
    table, keys, _ = case
    feed = list(enumerate(pieces(table, 5)))
    found = run(lambda rows: rows.distinct_so_far(keys), feed, workers=workers)
    first: dict[Any, int] = {}
    for time, piece in feed:
        for key in bag([row[name] for name in keys] for row in piece.to_pylist()):
            first.setdefault(key, time)
    expected = {time: Counter(key for key, at in first.items() if at == time) for time in first.values()}
    assert {
        time: bag([row[name] for name in keys] for row in rows) for time, rows in found.items()
    } == expected
    every = {time: bag(piece.to_pylist()) for time, piece in feed}
    assert all(not bag(rows) - every[time] for time, rows in found.items())


@pytest.mark.parametrize("waited", [True, False])
@pytest.mark.parametrize("operator", ["distinct", "distinct_so_far"])
def test_what_a_time_has_does_not_depend_on_what_came_first(operator: str, waited: bool) -> None:
    """Worker 1 brings a key at time 1 before worker 0 brings it at time 0."""
    table = pa.table({"k": ["x"]})

    def main(worker: ps.Worker) -> Any:
        rows = ps.ArrowInput(table.schema)
        with worker.dataflow() as scope:
            found = getattr(rows.to_stream(scope), operator)("k").count().capture()
        if worker.index == 1:
            rows.advance_to(1)
            rows.send(table)
            rows.flush()
        if waited:
            worker.barrier()
            for _ in range(20):
                worker.step()
        if worker.index == 0:
            rows.send(table)
        rows.close()
        worker.run()
        return found.extract()

    results = ps.execute(main, workers=2)
    expected = [(0, [1]), (1, [1])] if operator == "distinct" else [(0, [1])]
    assert sorted(event for found in results for event in found) == expected
