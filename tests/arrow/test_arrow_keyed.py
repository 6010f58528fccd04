"""Aggregates and joins against pyarrow and DuckDB, on random tables and several workers."""

from __future__ import annotations

import decimal
import math
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

import duck
import pointstamp as ps
from aggregates import named
from columns import ANY_WORKERS, bag, canonical, grouped, pieces, run, tables
from effort import examples

# -------------------------------------------------------------------- aggregate


@given(tables(), st.sampled_from(ANY_WORKERS), st.sampled_from([1, 7, 100]))
def test_aggregate_is_what_group_by_says(
    case: tuple[pa.Table, list[str], list[tuple[str, str]]], workers: int, size: int
) -> None:
    table, keys, wanted = case
    schemas = []

    def build(rows: ps.ArrowStream) -> ps.ArrowStream:
        result = rows.aggregate(keys, **named(wanted))
        schemas.append(result.schema)
        return result

    found = run(build, [(0, piece) for piece in pieces(table, size)], workers=workers)
    expected = grouped(table, keys, wanted)
    assert bag(found.get(0, [])) == bag(expected.to_pylist())
    assert [field.name for field in schemas[0]] == expected.schema.names
    assert schemas[0].types == expected.schema.types


@settings(max_examples=examples(30))
@given(tables(), st.sampled_from([2, 3]))
def test_many_rows_are_added_up_where_they_are_and_come_to_the_same(
    case: tuple[pa.Table, list[str], list[tuple[str, str]]], workers: int
) -> None:
    """Tables with many rows of few keys: partial results move between workers in place of rows."""
    table, keys, wanted = case
    assume(len(table) > 0)
    size = 20_000
    whole = pa.concat_tables([table] * (workers * 4 * size // len(table) + 1)).combine_chunks()
    found = run(
        lambda rows: rows.aggregate(keys, **named(wanted)),
        [(0, piece) for piece in pieces(whole, size)],
        workers=workers,
    )
    expected = grouped(whole, keys, wanted).to_pylist()

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
    found = run(
        lambda rows: rows.aggregate("k", x_sum=ps.col("x").sum(), x_count=ps.col("x").count()),
        feed * 2,
        workers=2,
    )
    assert len(found[0]) == rows // 5
    assert all(row["x_sum"] == 2 * (25 * row["k"] + 10) and row["x_count"] == 10 for row in found[0])


@pytest.mark.parametrize("workers", [1, 2, 4])
def test_each_time_has_its_own_result(workers: int) -> None:
    table = pa.table({"k": ["a", "b", "a", None], "x": [1, 2, 3, 4]})
    feed = [(time, table) for time in (0, 0, 3)]
    found = run(lambda rows: rows.aggregate("k", x_sum=ps.col("x").sum()), feed, workers=workers)
    assert bag(found[0]) == bag([("a", 8), ("b", 4), (None, 8)])
    assert bag(found[3]) == bag([("a", 4), ("b", 2), (None, 4)])


def test_decimals_are_rounded_half_away_from_zero() -> None:
    values = [decimal.Decimal(text) for text in ("1.25", "1.30", "-1.25", "-1.30")]
    table = pa.table({"k": [0, 0, 1, 1], "x": pa.array(values, pa.decimal128(5, 2))})
    found = run(lambda rows: rows.aggregate("k", x_mean=ps.col("x").mean()), [(0, table)])
    assert {row["k"]: str(row["x_mean"]) for row in found[0]} == {0: "1.28", 1: "-1.28"}


def test_nested_keys() -> None:
    table = pa.table(
        {"k": [[1, 2], [1], [1, 2], None], "s": [{"a": 1}, {"a": 1}, {"a": 1}, None], "x": [1, 2, 3, 4]}
    )
    found = run(lambda rows: rows.aggregate(["k", "s"], x_sum=ps.col("x").sum()), [(0, table)], workers=2)
    expected = [
        {"k": k, "s": s, "x_sum": x}
        for k, s, x in [([1, 2], {"a": 1}, 4), ([1], {"a": 1}, 2), (None, None, 4)]
    ]
    assert sorted(map(repr, found[0])) == sorted(map(repr, expected))


def test_a_dictionary_stays_one_and_its_layout_does_not_matter() -> None:
    first = pa.DictionaryArray.from_arrays(pa.array([0, 1, 0]), ["a", "b"])
    second = pa.DictionaryArray.from_arrays(pa.array([0, 1, 2]), ["c", "b", "a"])
    feed = [(0, pa.table({"k": keys, "x": [1, 10, 100]})) for keys in (first, second)]
    found = run(lambda rows: rows.aggregate("k", x_sum=ps.col("x").sum()), feed, workers=2)
    assert bag(found[0]) == bag([("a", 201), ("b", 20), ("c", 1)])


@pytest.mark.parametrize("workers", [1, 2])
def test_dictionaries_that_together_have_more_values_than_one_can_number(workers: int) -> None:
    """Each batch has a dictionary of its own with indices of eight bits, as pandas makes of categories."""
    names = [f"name {number}" for number in range(1000)]
    narrow = pa.dictionary(pa.int8(), pa.string())
    keys = [pa.array(names[at : at + 100]).cast(narrow) for at in range(0, 1000, 100)]
    feed = [(0, pa.table({"k": some, "x": range(100)})) for some in keys]
    expected = [(name, number % 100) for number, name in enumerate(names)]
    found = run(lambda rows: rows.aggregate("k", x_sum=ps.col("x").sum()), feed, workers=workers)
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
    found = run(lambda rows: rows.aggregate("k", x_sum=ps.col("x").sum()), feed, workers=2)
    assert sorted((repr(row["k"]), row["x_sum"]) for row in found[0]) == [
        ("None", 10_010),
        ("[1, 2]", 101),
        ("[3]", 1000),
    ]


def test_many_keys() -> None:
    """More keys than one message carries, of a table that DuckDB aggregates, too."""
    connection = duck.connection()
    table = connection.sql(
        "select i * 7919 % 300007 as k, case when i % 11 = 0 then null else i % 1000 end as x"
        " from range(600000) t(i)"
    ).to_arrow_table()
    wanted = [("x", "sum"), ("x", "count"), ("x", "min"), ("x", "max"), ("x", "mean")]
    found = run(lambda rows: rows.aggregate("k", **named(wanted)), [(0, table)], workers=2)
    expected = connection.sql(
        'select k, sum(x)::bigint, count(x), min(x), max(x), avg(x) from "table" group by k'
    ).fetchall()
    assert len(expected) > 200_000
    assert bag(found[0]) == bag(expected)


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


@settings(max_examples=examples(60))
@given(joins(), st.sampled_from(ANY_WORKERS))
def test_join_so_far_is_duckdbs_and_pairs_are_at_the_later_time(
    case: tuple[list[str], list[tuple[int, pa.Table]], list[tuple[int, pa.Table]]], workers: int
) -> None:
    on, left_feed, right_feed = case
    found = run(lambda left, right: left.join_so_far(right, on), left_feed, right_feed, workers=workers)
    assert all(time == max(row["lt"], row["rt"]) for time, rows in found.items() for row in rows)
    left = pa.concat_tables([table for _, table in left_feed])
    right = pa.concat_tables([table for _, table in right_feed])
    keys = ", ".join(f"l.{key}" for key in on)
    condition = " and ".join(f"l.{key} = r.{key}" for key in on)
    expected = (
        duck.connection()
        .register("l_", left)
        .register("r_", right)
        .sql(f"select {keys}, l.v, l.lt, r.v, r.rt from l_ l join r_ r on {condition}")
        .fetchall()
    )
    assert bag(without_zero_sign(row) for rows in found.values() for row in rows) == bag(
        without_zero_sign(dict(enumerate(row))) for row in expected
    )


HOWS = ["inner", "left", "right", "full", "semi", "anti"]


@settings(max_examples=examples(100))
@given(joins(), st.sampled_from(HOWS), st.sampled_from(ANY_WORKERS))
def test_joins_of_rows_of_one_time_are_duckdbs(
    case: tuple[list[str], list[tuple[int, pa.Table]], list[tuple[int, pa.Table]]], how: Any, workers: int
) -> None:
    on, left_feed, right_feed = case
    found = run(lambda left, right: left.join(right, on, how=how), left_feed, right_feed, workers=workers)
    alone = how in ("semi", "anti")
    assert all(
        {row["lt"], None if alone else row["rt"]} <= {time, None}
        for time, rows in found.items()
        for row in rows
    )
    keys = ", ".join(f"l.{key}" if alone else f"coalesce(l.{key}, r.{key})" for key in on)
    condition = " and ".join(["l.lt = r.rt", *(f"l.{key} = r.{key}" for key in on)])
    columns = f"{keys}, l.v, l.lt" + ("" if alone else ", r.v, r.rt")
    expected = (
        duck.connection()
        .register("l_", pa.concat_tables([table for _, table in left_feed]))
        .register("r_", pa.concat_tables([table for _, table in right_feed]))
        .sql(f"select {columns} from l_ l {how} join r_ r on {condition}")
        .fetchall()
    )
    assert bag(without_zero_sign(row) for rows in found.values() for row in rows) == bag(
        without_zero_sign(dict(enumerate(row))) for row in expected
    )


def test_a_row_without_a_match_has_its_own_key_and_dictionaries_stay_ones() -> None:
    left = pa.table({"k": pa.array(["a", "b"]).dictionary_encode(), "x": [1, 2]})
    right = pa.table({"y": pa.array(["u", "v", "w"]).dictionary_encode(), "k": ["b", "c", None]})

    def joined(a: ps.ArrowStream, b: ps.ArrowStream) -> ps.ArrowStream:
        both = a.join(b, "k", how="full")
        assert both.schema.names == ["k", "x", "y"]
        assert [pa.types.is_dictionary(each) for each in both.schema.types] == [True, False, True]
        return both

    for workers in (1, 2):
        found = run(joined, [(0, left)], [(0, right)], workers=workers)
        rows = sorted((tuple(row.values()) for row in found[0]), key=repr)
        assert rows == [("a", 1, None), ("b", 2, "u"), ("c", None, "v"), (None, None, "w")]


def test_rows_of_a_time_in_a_loop_are_joined_turn_by_turn() -> None:
    """The rows that go round meet only rows of their own turn."""
    numbers = pa.table({"n": [3, 1]})
    many = pa.table({"n": [1, 2, 3], "name": ["one", "two", "three"]})

    def build(numbers: ps.ArrowStream, names: ps.ArrowStream) -> ps.ArrowStream:
        with numbers.scope.iterative() as inner:
            handle, again = inner.loop_variable(schema=numbers.schema)
            each = numbers.enter(inner).concat(again)
            each.select(n=ps.col("n") - 1).filter(ps.col("n") > 0).connect_loop(handle)
            return each.join(names.enter(inner), "n", how="left").leave()

    for workers in (1, 2):
        found = run(build, [(0, numbers)], [(0, many)], workers=workers)
        rows = sorted((row["n"], row["name"] or "") for row in found[0])
        assert rows == [(1, ""), (1, "one"), (2, ""), (3, "three")]


def test_an_unknown_join_is_refused() -> None:
    rows = pa.table({"k": [1]})
    with pytest.raises(ValueError, match=r"how is one of 'inner', .*'anti', not 'outer'"):
        run(lambda a, b: a.join(b, "k", how="outer"), [(0, rows)], [(0, rows)])


def without_zero_sign(row: dict[Any, Any]) -> dict[Any, Any]:
    return {key: value + 0.0 if isinstance(value, float) else value for key, value in row.items()}


def test_join_names_its_columns() -> None:
    left = pa.table({"k": [1], "x": [2], "only": [3]})
    right = pa.table({"x": ["r"], "k": [1]})
    found = run(lambda a, b: a.join(b, "k"), [(0, left)], [(0, right)])
    assert found == {0: [{"k": 1, "x": 2, "only": 3, "x_right": "r"}]}
    found = run(lambda a, b: a.join_so_far(b, ["k"], suffix="2"), [(0, left)], [(5, right)])
    assert found == {5: [{"k": 1, "x": 2, "only": 3, "x2": "r"}]}


def test_strings_join_however_they_are_laid_out() -> None:
    left = pa.table({"k": pa.array(["a", "b", None]).dictionary_encode(), "x": [1, 2, 3]})
    right = pa.table({"k": pa.array(["b", "c", None], pa.large_string()), "y": [4, 5, 6]})
    found = run(lambda a, b: a.join(b, "k"), [(0, left)], [(0, right)], workers=2)
    assert found == {0: [{"k": "b", "x": 2, "y": 4}]}


@pytest.mark.parametrize("workers", [1, 2])
def test_a_large_join(workers: int) -> None:
    connection = duck.connection()
    left = connection.sql("select i % 5000 as k, i as x from range(60000) t(i)").to_arrow_table()
    right = connection.sql("select i * 3 % 7000 as k, i as y from range(30000) t(i)").to_arrow_table()
    found = run(
        lambda a, b: a.join(b, "k").aggregate(
            "k", x_sum=ps.col("x").sum(), y_sum=ps.col("y").sum(), y_count=ps.col("y").count()
        ),
        [(0, piece) for piece in pieces(left, 1000)],
        [(0, piece) for piece in pieces(right, 700)],
        workers=workers,
    )
    expected = connection.sql(
        'select k, sum(x)::bigint, sum(y)::bigint, count(y) from "left" join "right" using (k) group by k'
    ).fetchall()
    assert bag(found[0]) == bag(expected)


def test_join_so_far_in_a_loop_pairs_at_the_least_upper_bound() -> None:
    """Reachability by joining the frontier with the edges, at (epoch, round)."""
    edges = pa.table({"a": [0, 1, 2, 3, 7], "b": [1, 2, 3, 0, 8]})
    roots = pa.table({"a": [0]})

    def build(edges: ps.ArrowStream, roots: ps.ArrowStream) -> ps.ArrowStream:
        with edges.scope.iterative() as inner:
            handle, again = inner.loop_variable(schema=roots.schema)
            known = roots.enter(inner).concat(again).distinct_so_far()
            found = known.join_so_far(edges.enter(inner), "a")

            def step(batch: pa.RecordBatch) -> pa.RecordBatch:
                return pa.record_batch([batch["b"]], names=["a"])

            found.map_batches(step, roots.schema).connect_loop(handle)
            return known.leave()

    found = run(build, [(0, edges)], [(0, roots)], workers=2)
    assert sorted(row["a"] for row in found[0]) == [0, 1, 2, 3]


# -------------------------------------------------------------------- count


@settings(max_examples=examples(30))
@given(tables(), st.sampled_from(ANY_WORKERS))
def test_all_rows_are_counted_wherever_they_are(
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
    assert [counts for counts, _ in found] == [[len(table)] if len(table) else [], *[[]] * (workers - 1)]
    assert bag(row for _, rows in found for row in rows) == bag(table.to_pylist())
    groups = [set(bag([row[key] for key in keys] for row in rows)) for _, rows in found]
    assert sum(map(len, groups)) == len(set().union(*groups))  # each has a worker of its own
