"""Windows and as-of joins give what Polars gives for the same rows, as records and as columns."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable
from typing import Any

import polars as pl
import pyarrow as pa
import pytest

import pointstamp as ps
from harness import WORKERS, run

Row = tuple[int, str, int]


def rows_of(seed: int, count: int = 300) -> list[Row]:
    """Rows whose times differ from one another in a key, and come out of order."""
    source = random.Random(seed)
    rows = {(source.randrange(400), source.choice("abc")): source.randrange(100) for _ in range(count)}
    shuffled = [(at, key, value) for (at, key), value in rows.items()]
    source.shuffle(shuffled)
    return shuffled


def frame(rows: list[Row]) -> pl.DataFrame:
    return pl.DataFrame(rows, schema=["at", "key", "value"], orient="row").sort("at")


def results(
    workers: int, rows: list[Row], program: Callable[[ps.KeyedStream[str, Row]], ps.Stream[Any]]
) -> Counter[Any]:
    def build(scope: ps.Scope) -> Any:
        mine = scope.to_stream(rows[scope.index :: scope.peers])
        on_time, _ = mine.event_time(lambda row: row[0], lateness=400)
        return program(on_time.key_by(lambda row: row[1])).capture()

    captures = run(workers, build)
    return Counter(record for capture in captures for _, records in capture.extract() for record in records)


def sums(window: ps.KeyedStream[str, Row], kind: Any) -> ps.Stream[Any]:
    added = window.window(kind).sum(lambda row: row[2])
    return added.map(lambda result: (result[0], result[1].start, result[2]))


@pytest.mark.parametrize("workers", WORKERS)
@pytest.mark.parametrize(("length", "every"), [(25, 25), (30, 10), (30, 7)])
def test_group_by_dynamic(workers: int, length: int, every: int) -> None:
    rows = rows_of(length + every)
    kind: Any = ps.Tumbling(length) if length == every else ps.Sliding(length, every=every)
    dynamic = frame(rows).group_by_dynamic("at", every=f"{every}i", period=f"{length}i", group_by="key")
    expected = Counter(dynamic.agg(pl.col("value").sum()).select("key", "at", "value").iter_rows())
    found = results(workers, rows, lambda keyed: sums(keyed, kind))
    # Polars' first window of a key begins with the step that its first row is in; ours are all with a row.
    first = {key: min(at for at, other, _ in rows if other == key) // every * every for key in "abc"}
    assert Counter({row: count for row, count in found.items() if row[1] >= first[row[0]]}) == expected

    def build(scope: ps.Scope) -> Any:
        mine = rows[scope.index :: scope.peers]
        schema = pa.schema([("at", pa.int64()), ("key", pa.string()), ("value", pa.int64())])
        on_time, _ = scope.to_stream(mine).to_arrow(schema).event_time("at", lateness=400)
        return on_time.window(kind, "key", value_sum=ps.col("value").sum()).to_records().capture()

    columns = Counter(
        (row["key"], row["window_start"], row["value_sum"])
        for capture in run(workers, build)
        for _, records in capture.extract()
        for row in records
    )
    assert columns == found


@pytest.mark.parametrize("workers", WORKERS)
@pytest.mark.parametrize("period", [1, 12])
def test_rolling(workers: int, period: int) -> None:
    """The sum over the last few instants, at each row: the window that ends with it."""
    rows = rows_of(period)
    rolling = frame(rows).rolling("at", period=f"{period}i", group_by="key").agg(pl.col("value").sum())
    expected = Counter(rolling.select("key", "at", "value").iter_rows())
    kind: Any = ps.Sliding(period, every=1) if period > 1 else ps.Tumbling(1)
    found = results(workers, rows, lambda keyed: sums(keyed, kind))
    at = {(row[1], row[0]) for row in rows}
    ended = Counter((key, start + period - 1, total) for key, start, total in found)
    assert Counter({row: count for row, count in ended.items() if row[:2] in at}) == expected
    assert len(expected) == len(rows)


@pytest.mark.parametrize("workers", WORKERS)
@pytest.mark.parametrize("within", [None, 9])
def test_join_asof(workers: int, within: int | None) -> None:
    left, right = rows_of(1), rows_of(2, 60)
    joined = frame(left).join_asof(frame(right), on="at", by="key", tolerance=within, check_sortedness=False)
    expected = Counter(joined.select("at", "key", "value", "value_right").iter_rows())

    def build(scope: ps.Scope) -> Any:
        sides = []
        for rows in (left, right):
            on_time, _ = scope.to_stream(rows[scope.index :: scope.peers]).event_time(
                lambda row: row[0], lateness=400
            )
            sides.append(on_time.key_by(lambda row: row[1]))
        pairs = sides[0].asof_join(sides[1], within=within)
        return pairs.map(lambda pair: (*pair[1][0], pair[1][1] and pair[1][1][2])).capture()

    found = Counter(
        record for capture in run(workers, build) for _, records in capture.extract() for record in records
    )
    assert found == expected
    assert any(row[3] is None for row in expected)
    assert any(row[3] is not None for row in expected)
