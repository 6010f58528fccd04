"""Aggregates, distinct and join against pyarrow and DuckDB, on random tables and several workers."""

from __future__ import annotations

import decimal
import math
from collections import Counter
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

import pointstamp as ps

Rows = list[tuple[Any, ...]]

ANY_WORKERS = [1, 2, 3, 4, 6]
"""With `on_processes`, up to three workers in each of two processes, and two in each of three."""


def canonical(value: Any) -> Any:
    """A value that compares as the oracles mean it: NaN equals NaN, doubles to twelve digits."""
    if isinstance(value, float):
        return "nan" if math.isnan(value) else float(f"{value:.12g}")
    if isinstance(value, list | tuple):
        return tuple(map(canonical, value))
    return tuple(sorted(value.items())) if isinstance(value, dict) else value


def bag(rows: Any) -> Counter[Any]:
    return Counter(canonical(tuple(row.values()) if isinstance(row, dict) else tuple(row)) for row in rows)


def run(build: Any, *feeds: list[tuple[int, pa.Table]], workers: int = 1) -> dict[int, list[dict[str, Any]]]:
    """The rows per time, of all workers; a feed is `(time, table)` pairs, taken by the workers in turns."""

    def main(worker: ps.Worker) -> Any:
        inputs = [ps.ArrowInput(feed[0][1].schema) for feed in feeds]
        with worker.dataflow() as scope:
            captured = build(*[rows.to_stream(scope) for rows in inputs]).capture()
        for rows, feed in zip(inputs, feeds, strict=True):
            for turn, (time, table) in enumerate(feed):
                rows.advance_to(time)
                if turn % worker.peers == worker.index:
                    rows.send(table)
                worker.step()
            rows.close()
        worker.run()
        return captured.extract()

    merged: dict[int, list[dict[str, Any]]] = {}
    for result in ps.execute(main, workers=workers):
        for time, batches in result:
            for batch in batches:
                batch.validate(full=True)
                merged.setdefault(time, []).extend(batch.to_pylist())
    return merged


# -------------------------------------------------------------------- strategies

KEYS: list[tuple[pa.DataType, Any]] = [
    (pa.int64(), st.integers(-3, 3) | st.just(2**63 - 1)),
    (pa.int8(), st.integers(-2, 2)),
    (pa.string(), st.sampled_from(["", "a", "b", "ab", "x" * 40])),
    (pa.large_string(), st.sampled_from(["", "a", "b"])),
    (pa.string_view(), st.sampled_from(["", "a", "b" * 30])),
    (pa.binary(), st.sampled_from([b"", b"\0", b"\0\0"])),
    (pa.binary(2), st.sampled_from([b"ab", b"ba"])),
    (pa.bool_(), st.booleans()),
    (pa.float64(), st.sampled_from([0.5, 1.0, math.nan, math.inf])),
    (pa.float16(), st.sampled_from([0.5, math.nan]).map(np.float16)),
    (pa.decimal128(9, 2), st.sampled_from([decimal.Decimal("1.50"), decimal.Decimal("-2.00")])),
    (pa.date32(), st.dates().map(lambda day: day.replace(year=2024, day=1))),
    (pa.timestamp("us", "UTC"), st.just(None)),
    (pa.dictionary(pa.int32(), pa.string()), st.sampled_from(["a", "b", "c"])),
    (pa.null(), st.none()),
]

VALUES: list[tuple[pa.DataType, Any, list[str]]] = [
    (pa.int64(), st.integers(-(2**63), 2**63 - 1), ["sum", "count", "min", "max", "mean"]),
    (pa.int8(), st.integers(-128, 127), ["sum", "count", "min", "max", "mean"]),
    (pa.uint64(), st.integers(0, 2**64 - 1), ["sum", "count", "min", "max", "mean"]),
    (pa.float64(), st.floats(-1e6, 1e6) | st.just(math.nan), ["sum", "count", "min", "max", "mean"]),
    (pa.float32(), st.floats(-1e3, 1e3, width=32), ["sum", "count", "min", "max", "mean"]),
    (pa.bool_(), st.booleans(), ["sum", "count", "min", "max", "mean"]),
    (pa.string(), st.text("ab", max_size=3), ["count", "min", "max"]),
    (pa.binary(1), st.sampled_from([b"a", b"b"]), ["count", "min", "max"]),
    (pa.decimal128(9, 2), st.decimals(-999, 999, places=2), ["sum", "count", "min", "max", "mean"]),
    (pa.decimal256(50, 1), st.decimals(-999, 999, places=1), ["sum", "count", "min", "max", "mean"]),
    (pa.date32(), st.dates(), ["count", "min", "max"]),
    (pa.timestamp("ms"), st.integers(0, 10**12), ["count", "min", "max"]),
    (pa.null(), st.none(), ["sum", "count", "min", "max", "mean"]),
]


@st.composite
def tables(draw: Any) -> tuple[pa.Table, list[str], list[tuple[str, str]]]:
    """A table, key columns, and aggregations."""
    size = draw(st.integers(0, 30))
    columns: dict[str, pa.Array] = {}
    for index, (data_type, values) in enumerate(
        draw(st.lists(st.sampled_from(KEYS), min_size=1, max_size=3))
    ):
        drawn = draw(st.lists(st.none() | values, min_size=size, max_size=size))
        plain = pa.types.is_dictionary(data_type)
        array = pa.array(drawn, pa.string() if plain else data_type)
        columns[f"k{index}"] = array.dictionary_encode() if plain else array
    keys = list(columns)
    wanted = []
    for index, (data_type, values, functions) in enumerate(
        draw(st.lists(st.sampled_from(VALUES), max_size=3))
    ):
        drawn = draw(st.lists(st.none() | values, min_size=size, max_size=size))
        columns[f"x{index}"] = pa.array(drawn, data_type)
        wanted += [(f"x{index}", function) for function in functions]
    return pa.table(columns), keys, wanted


def pieces(table: pa.Table, size: int) -> list[pa.Table]:
    return [table.slice(start, size) for start in range(0, max(len(table), 1), size)]


# -------------------------------------------------------------------- aggregate


@given(tables(), st.sampled_from(ANY_WORKERS), st.sampled_from([1, 7, 100]))
def test_aggregate_is_what_group_by_says(
    case: tuple[pa.Table, list[str], list[tuple[str, str]]], workers: int, size: int
) -> None:
    table, keys, wanted = case
    schemas = []

    def build(rows: ps.ArrowStream) -> ps.ArrowStream:
        result = rows.aggregate(keys, wanted)
        schemas.append(result.schema)
        return result

    found = run(build, [(0, piece) for piece in pieces(table, size)], workers=workers)
    expected = table.group_by(keys).aggregate(wanted)
    assert bag(found.get(0, [])) == bag(expected.to_pylist())
    assert [field.name for field in schemas[0]] == expected.schema.names
    assert schemas[0].types == expected.schema.types


@settings(max_examples=30)
@given(tables(), st.sampled_from([2, 3]))
def test_many_rows_are_added_up_where_they_are_and_come_to_the_same(
    case: tuple[pa.Table, list[str], list[tuple[str, str]]], workers: int
) -> None:
    """So many rows of few keys that partial results travel in their place."""
    table, keys, wanted = case
    assume(len(table) > 0)
    size = 20_000
    whole = pa.concat_tables([table] * (workers * 4 * size // len(table) + 1)).combine_chunks()
    found = run(
        lambda rows: rows.aggregate(keys, wanted),
        [(0, piece) for piece in pieces(whole, size)],
        workers=workers,
    )
    expected = whole.group_by(keys).aggregate(wanted).to_pylist()

    def by_key(rows: list[dict[str, Any]]) -> dict[Any, list[Any]]:
        return {
            canonical([row[key] for key in keys]): [v for k, v in row.items() if k not in keys]
            for row in rows
        }

    results = by_key(found[0])
    assert len(results) == len(found[0]) == len(expected)
    for key, values in by_key(expected).items():
        for value, other in zip(values, results[key], strict=True):
            if isinstance(value, float) and not math.isnan(value):
                # the order of additions differs: sums of large numbers may cancel
                assert other == pytest.approx(value, rel=1e-9, abs=1e6 if abs(value) > 1e9 else 1e-3)
            else:
                assert canonical(other) == canonical(value)


def test_full_tables_are_sent_before_the_time_closes() -> None:
    """More keys than a sender keeps, with some rows each, from both workers."""
    rows = 1_500_000
    table = pa.table({"k": pa.array(range(rows), pa.int64()), "x": pa.array(range(rows), pa.int64())})
    table = table.set_column(0, "k", pc.divide(table["k"], 5))
    feed = [(0, piece) for piece in pieces(table, 100_000)]
    found = run(lambda rows: rows.aggregate("k", [("x", "sum"), ("x", "count")]), feed * 2, workers=2)
    assert len(found[0]) == rows // 5
    assert all(row["x_sum"] == 2 * (25 * row["k"] + 10) and row["x_count"] == 10 for row in found[0])


@pytest.mark.parametrize("workers", [1, 2, 4])
def test_each_time_has_its_own_result(workers: int) -> None:
    table = pa.table({"k": ["a", "b", "a", None], "x": [1, 2, 3, 4]})
    feed = [(time, table) for time in (0, 0, 3)]
    found = run(lambda rows: rows.aggregate("k", [("x", "sum")]), feed, workers=workers)
    assert bag(found[0]) == bag([("a", 8), ("b", 4), (None, 8)])
    assert bag(found[3]) == bag([("a", 4), ("b", 2), (None, 4)])


def test_decimals_are_rounded_half_away_from_zero() -> None:
    values = [decimal.Decimal(text) for text in ("1.25", "1.30", "-1.25", "-1.30")]
    table = pa.table({"k": [0, 0, 1, 1], "x": pa.array(values, pa.decimal128(5, 2))})
    found = run(lambda rows: rows.aggregate("k", [("x", "mean")]), [(0, table)])
    assert {row["k"]: str(row["x_mean"]) for row in found[0]} == {0: "1.28", 1: "-1.28"}


def test_nested_keys() -> None:
    table = pa.table(
        {"k": [[1, 2], [1], [1, 2], None], "s": [{"a": 1}, {"a": 1}, {"a": 1}, None], "x": [1, 2, 3, 4]}
    )
    found = run(lambda rows: rows.aggregate(["k", "s"], [("x", "sum")]), [(0, table)], workers=2)
    expected = [
        {"k": k, "s": s, "x_sum": x}
        for k, s, x in [([1, 2], {"a": 1}, 4), ([1], {"a": 1}, 2), (None, None, 4)]
    ]
    assert sorted(map(repr, found[0])) == sorted(map(repr, expected))


def test_a_dictionary_stays_one_and_its_layout_does_not_matter() -> None:
    first = pa.DictionaryArray.from_arrays(pa.array([0, 1, 0]), ["a", "b"])
    second = pa.DictionaryArray.from_arrays(pa.array([0, 1, 2]), ["c", "b", "a"])
    feed = [(0, pa.table({"k": keys, "x": [1, 10, 100]})) for keys in (first, second)]
    found = run(lambda rows: rows.aggregate("k", [("x", "sum")]), feed, workers=2)
    assert bag(found[0]) == bag([("a", 201), ("b", 20), ("c", 1)])


@pytest.mark.parametrize("workers", [1, 2])
def test_dictionaries_that_together_have_more_values_than_one_can_number(workers: int) -> None:
    """pandas makes such ones of categories: each batch has its own, and eight bits suffice for each."""
    names = [f"name {number}" for number in range(1000)]
    narrow = pa.dictionary(pa.int8(), pa.string())
    keys = [pa.array(names[at : at + 100]).cast(narrow) for at in range(0, 1000, 100)]
    feed = [(0, pa.table({"k": some, "x": range(100)})) for some in keys]
    expected = [(name, number % 100) for number, name in enumerate(names)]
    found = run(lambda rows: rows.aggregate("k", [("x", "sum")]), feed, workers=workers)
    assert bag(found[0]) == bag(expected)
    for build in (lambda rows: rows.exchange("k"), lambda rows: rows.distinct("k")):
        assert bag(run(build, feed, workers=workers)[0]) == bag(expected)
    found = run(lambda rows: rows.join(rows, on="k"), feed, workers=workers)
    assert bag(found[0]) == bag((name, x, x) for name, x in expected)


@pytest.mark.parametrize("index", [pa.int8(), pa.uint16(), pa.int64()])
def test_a_dictionary_of_lists_is_a_key(index: pa.DataType) -> None:
    values = pa.array([[1, 2], None, [3]], pa.list_(pa.int64()))
    keys = pa.DictionaryArray.from_arrays(pa.array([0, 1, 0, 2, None], index), values)
    feed = [(0, pa.table({"k": keys, "x": [1, 10, 100, 1000, 10_000]}))]
    found = run(lambda rows: rows.aggregate("k", [("x", "sum")]), feed, workers=2)
    assert sorted((repr(row["k"]), row["x_sum"]) for row in found[0]) == [
        ("None", 10_010),
        ("[1, 2]", 101),
        ("[3]", 1000),
    ]


def test_many_keys() -> None:
    """More keys than one message carries, of a table that DuckDB aggregates, too."""
    connection = duckdb.connect()
    table = connection.sql(
        "select i * 7919 % 300007 as k, case when i % 11 = 0 then null else i % 1000 end as x"
        " from range(600000) t(i)"
    ).to_arrow_table()
    wanted = [("x", "sum"), ("x", "count"), ("x", "min"), ("x", "max"), ("x", "mean")]
    found = run(lambda rows: rows.aggregate("k", wanted), [(0, table)], workers=2)
    expected = connection.sql(
        'select k, sum(x)::bigint, count(x), min(x), max(x), avg(x) from "table" group by k'
    ).fetchall()
    assert len(expected) > 200_000
    assert bag(found[0]) == bag(expected)


# -------------------------------------------------------------------- distinct


@given(tables(), st.sampled_from(ANY_WORKERS))
def test_distinct_keeps_one_row_of_each_key(
    case: tuple[pa.Table, list[str], list[tuple[str, str]]], workers: int
) -> None:
    table, keys, _ = case
    found = run(lambda rows: rows.distinct(keys), [(0, piece) for piece in pieces(table, 5)], workers=workers)
    rows = found.get(0, [])
    expected = table.group_by(keys).aggregate([])
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


# -------------------------------------------------------------------- join

JOINABLE = [
    (pa.int64(), st.integers(0, 4)),
    (pa.string(), st.sampled_from(["", "a", "b"])),
    (pa.float64(), st.sampled_from([0.0, -0.0, 0.5, math.nan])),
    (pa.decimal128(9, 2), st.sampled_from([decimal.Decimal("1.50"), decimal.Decimal("-2.00")])),
    (pa.date32(), st.sampled_from([0, 1])),
]


@st.composite
def joins(draw: Any) -> tuple[list[str], list[tuple[int, pa.Table]], list[tuple[int, pa.Table]]]:
    """Key names and two feeds of tables at times."""
    types = draw(st.lists(st.sampled_from(JOINABLE), min_size=1, max_size=2))

    def feed(other: str) -> list[tuple[int, pa.Table]]:
        found = []
        time = 0
        for _ in range(draw(st.integers(1, 4))):
            time += draw(st.integers(0, 2))
            size = draw(st.integers(0, 6))
            columns = {
                f"k{index}": pa.array(
                    draw(st.lists(st.none() | values, min_size=size, max_size=size)), data_type
                )
                for index, (data_type, values) in enumerate(types)
            }
            columns["v"] = pa.array(
                draw(st.lists(st.integers(0, 9), min_size=size, max_size=size)), pa.int64()
            )
            columns[other] = pa.array([time] * size, pa.int64())
            found.append((time, pa.table(columns)))
        return found

    return [f"k{index}" for index in range(len(types))], feed("lt"), feed("rt")


@settings(max_examples=60)
@given(joins(), st.sampled_from(ANY_WORKERS))
def test_join_is_duckdbs_and_pairs_are_at_the_later_time(
    case: tuple[list[str], list[tuple[int, pa.Table]], list[tuple[int, pa.Table]]], workers: int
) -> None:
    on, left_feed, right_feed = case
    found = run(lambda left, right: left.join(right, on), left_feed, right_feed, workers=workers)
    assert all(time == max(row["lt"], row["rt"]) for time, rows in found.items() for row in rows)
    left = pa.concat_tables([table for _, table in left_feed])
    right = pa.concat_tables([table for _, table in right_feed])
    keys = ", ".join(f"l.{key}" for key in on)
    condition = " and ".join(f"l.{key} = r.{key}" for key in on)
    expected = (
        duckdb.connect()
        .register("l_", left)
        .register("r_", right)
        .sql(f"select {keys}, l.v, l.lt, r.v, r.rt from l_ l join r_ r on {condition}")
        .fetchall()
    )
    assert bag(without_zero_sign(row) for rows in found.values() for row in rows) == bag(
        without_zero_sign(dict(enumerate(row))) for row in expected
    )


def without_zero_sign(row: dict[Any, Any]) -> dict[Any, Any]:
    return {key: value + 0.0 if isinstance(value, float) else value for key, value in row.items()}


def test_join_names_its_columns() -> None:
    left = pa.table({"k": [1], "x": [2], "only": [3]})
    right = pa.table({"x": ["r"], "k": [1]})
    found = run(lambda a, b: a.join(b, "k"), [(0, left)], [(0, right)])
    assert found == {0: [{"k": 1, "x": 2, "only": 3, "x_right": "r"}]}
    found = run(lambda a, b: a.join(b, ["k"], suffix="2"), [(0, left)], [(5, right)])
    assert found == {5: [{"k": 1, "x": 2, "only": 3, "x2": "r"}]}


def test_strings_join_however_they_are_laid_out() -> None:
    left = pa.table({"k": pa.array(["a", "b", None]).dictionary_encode(), "x": [1, 2, 3]})
    right = pa.table({"k": pa.array(["b", "c", None], pa.large_string()), "y": [4, 5, 6]})
    found = run(lambda a, b: a.join(b, "k"), [(0, left)], [(0, right)], workers=2)
    assert found == {0: [{"k": "b", "x": 2, "y": 4}]}


@pytest.mark.parametrize("workers", [1, 2])
def test_a_large_join(workers: int) -> None:
    connection = duckdb.connect()
    left = connection.sql("select i % 5000 as k, i as x from range(60000) t(i)").to_arrow_table()
    right = connection.sql("select i * 3 % 7000 as k, i as y from range(30000) t(i)").to_arrow_table()
    found = run(
        lambda a, b: a.join(b, "k").aggregate("k", [("x", "sum"), ("y", "sum"), ("y", "count")]),
        [(0, piece) for piece in pieces(left, 1000)],
        [(0, piece) for piece in pieces(right, 700)],
        workers=workers,
    )
    expected = connection.sql(
        'select k, sum(x)::bigint, sum(y)::bigint, count(y) from "left" join "right" using (k) group by k'
    ).fetchall()
    assert bag(found[0]) == bag(expected)


def test_join_in_a_loop_pairs_at_the_least_upper_bound() -> None:
    """Reachability by joining the frontier with the edges, at (epoch, round)."""
    edges = pa.table({"a": [0, 1, 2, 3, 7], "b": [1, 2, 3, 0, 8]})
    roots = pa.table({"a": [0]})

    def build(edges: ps.ArrowStream, roots: ps.ArrowStream) -> ps.ArrowStream:
        with edges.scope.iterative() as inner:
            handle, again = inner.loop_variable(schema=roots.schema)
            known = roots.enter(inner).concat(again).distinct_so_far()
            found = known.join(edges.enter(inner), "a")

            def step(batch: pa.RecordBatch) -> pa.RecordBatch:
                return pa.record_batch([batch["b"]], names=["a"])

            found.map_batches(step, roots.schema).connect_loop(handle)
            return known.leave()

    found = run(build, [(0, edges)], [(0, roots)], workers=2)
    assert sorted(row["a"] for row in found[0]) == [0, 1, 2, 3]


# -------------------------------------------------------------------- count


@settings(max_examples=30)
@given(tables(), st.sampled_from(ANY_WORKERS))
def test_each_worker_counts_the_rows_that_it_gets(
    case: tuple[pa.Table, list[str], list[tuple[str, str]]], workers: int
) -> None:
    table, keys, _ = case

    def main(worker: ps.Worker) -> Any:
        rows = ps.ArrowInput(table.schema)
        with worker.dataflow() as scope:
            placed = rows.to_stream(scope).exchange(keys)
            counts, here = placed.count().capture(), placed.to_records().capture()
        for turn, piece in enumerate(pieces(table, 3)):
            if turn % worker.peers == worker.index:
                rows.send(piece)
        rows.close()
        worker.run()
        return [n for _, found in counts.extract() for n in found], [r for _, f in here.extract() for r in f]

    found = ps.execute(main, workers=workers)
    assert all(sum(counts) == len(rows) for counts, rows in found)
    assert all(len(counts) == (1 if rows else 0) for counts, rows in found)
    assert bag(row for _, rows in found for row in rows) == bag(table.to_pylist())
    groups = [set(bag([row[key] for key in keys] for row in rows)) for _, rows in found]
    assert sum(map(len, groups)) == len(set().union(*groups))  # each has a worker of its own


# -------------------------------------------------------------------- floats


def other_nan(width: int) -> Any:
    """A NaN of other bits."""
    bits = {16: 0xFE01, 32: 0xFFC00001, 64: 0xFFF8000000000001}[width]
    return np.array([bits], f"uint{width}").view(f"float{width}")[0]


FLOATS = [(pa.float16(), 16), (pa.float32(), 32), (pa.float64(), 64)]
NESTED: list[Any] = [
    lambda floats: floats,
    lambda floats: floats.dictionary_encode() if floats.type != pa.float16() else floats,
    lambda floats: pa.StructArray.from_arrays([floats], names=["x"]),
    lambda floats: pa.ListArray.from_arrays(pa.array(range(len(floats) + 1), pa.int32()), floats),
    lambda floats: pa.LargeListArray.from_arrays(pa.array(range(len(floats) + 1)), floats),
    lambda floats: pa.FixedSizeListArray.from_arrays(floats, 1),
    lambda floats: pa.StructArray.from_arrays([NESTED[2](floats), NESTED[3](floats)], names=["a", "b"]),
]


@pytest.mark.parametrize("workers", [1, 2])
@pytest.mark.parametrize("form", range(len(NESTED)))
@pytest.mark.parametrize(("data_type", "width"), FLOATS)
def test_one_rule_for_all_floats(data_type: pa.DataType, width: int, form: int, workers: int) -> None:
    """-0.0 is 0.0, and a NaN is a NaN: in a join, an aggregate, distinct, and where rows go."""

    def table(values: list[Any], **others: Any) -> pa.Table:
        floats = pa.array(np.array(values, f"float{width}"), data_type)
        return pa.table({"k": NESTED[form](floats), **others})

    left = table([0.0, math.nan, 1.5], left=[0, 1, 2])
    right = table([-0.0, other_nan(width), 1.5, -1.5], right=[0, 1, 2, 3])
    for one, other in ((left, right), (right, left)):
        found = run(lambda a, b: a.join(b, "k"), [(0, one)], [(0, other)], workers=workers)
        assert sorted((row["left"], row["right"]) for row in found[0]) == [(0, 0), (1, 1), (2, 2)]
    both = pa.concat_tables([left.select(["k"]), right.select(["k"])])
    both = both.append_column("n", pa.array([1] * len(both)))
    for sizes in (1, 4):
        feed = [(0, piece) for piece in pieces(both, sizes)]
        found = run(lambda rows: rows.aggregate("k", [("n", "sum")]), feed, workers=workers)
        assert sorted(row["n_sum"] for row in found[0]) == [1, 2, 2, 2]
        assert len(run(lambda rows: rows.distinct("k"), feed, workers=workers)[0]) == 4
        assert len(run(lambda rows: rows.distinct_so_far("k"), feed, workers=workers)[0]) == 4


def test_a_null_inside_a_key_matches_another_and_a_null_key_none() -> None:
    """As in DuckDB."""
    struct = pa.struct([("x", pa.float64()), ("y", pa.string())])
    keys = [{"x": None, "y": "a"}, {"x": 0.0, "y": None}, {"x": None, "y": None}, None]
    left = pa.table({"k": pa.array(keys, struct), "l": range(4)})
    right = pa.table({"k": pa.array(keys[::-1], struct), "r": range(4)})
    pairs = duckdb.connect().register("a", left).register("b", right)
    expected = pairs.sql("select a.l, b.r from a join b on a.k = b.k").fetchall()
    for workers in (1, 2):
        found = run(lambda a, b: a.join(b, "k"), [(0, left)], [(0, right)], workers=workers)
        assert (
            sorted((row["l"], row["r"]) for row in found[0]) == sorted(expected) == [(0, 3), (1, 2), (2, 1)]
        )
