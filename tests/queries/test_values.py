"""Values of the types that queries have: rounding, NaN, zones, units and texts, as DuckDB has them."""

from __future__ import annotations

import datetime as dt
import random

import duckdb
import pyarrow as pa
import pytest

import pointstamp as ps

NAN = float("nan")
INF = float("inf")

NUMBERS = pa.table(
    {
        "i": list(range(8)),
        "f": [INF, 1.0, NAN, 0.0, 0.5, 2.5, -2.5, None],
        "g": pa.array([2.7, 0.1, 1.5, 2.5, -0.5, None, 3.0, 1e9], pa.float32()),
        "d": pa.array([1, 250, -250, 150, None, 51, 49, 0])
        .cast(pa.decimal128(19, 0))
        .cast(pa.decimal128(21, 2)),
    }
)

QUERIES = [
    "select i, f - f = cast('NaN' as double) as x, f - f > 1 as y, greatest(f - f, 1e0) as z from n",
    "select i, (f * 0) in (cast('NaN' as double), 7) as x, nullif(f - f, cast('NaN' as double)) as y from n",
    "select i, ceil(-0.5e0 * f) >= 0 as x, round(f * -0.1e0) = 0 as y from n",
    "select i, cast(f as varchar) as x from n where f <> 1e0",
    "select cast(2.5 as integer) as a, cast(0.5 as bigint) as b, cast(-2.5 as integer) as c, i from n",
    "select i, cast(d / 100 as bigint) as x, cast(g as bigint) as y from n where i < 7",
    "select i, cast(d as bigint) as x, try_cast(d as bigint) as y from n",
    "select i, try_cast(g as integer) as x from n",
    "select i, g = 2.7 as x, g in (2.7, 3) as y, g > 0.1 as z from n",
    "select i, f from n order by f desc, i",
    "select i, f from n order by f nulls first, i desc",
    "select f, i from n order by f desc, i limit 3",
    "select i, i is true as a, (i - 2) is not true as b, f is false as c, null is not false as d from n",
    "select i from n where (i - 3) is true",
    "select substring('abc', -5, 3) as x, substring('abc', 0, 2) as y, substring('abc', -2) as z, i from n",
]


def answers(query: str, zone: str = "UTC", **tables: pa.Table) -> tuple[list[str], list[str]]:
    """The rows that a query has, and those that DuckDB has for it."""
    with duckdb.connect() as connection:
        connection.execute(f"set timezone = '{zone}'")
        for name, table in tables.items():
            connection.register(name, table)
        theirs = [str(row) for row in connection.sql(query).to_arrow_table().to_pylist()]
    ours = [str(row) for row in ps.sql(query, **tables).to_pylist()]
    return (ours, theirs) if "order by" in query else (sorted(ours), sorted(theirs))


@pytest.mark.parametrize("query", QUERIES)
def test_numbers_are_those_of_duckdb(query: str) -> None:
    ours, theirs = answers(query, n=NUMBERS)
    assert ours == theirs


@pytest.mark.parametrize("condition", ["s ~* 'A'", "s !~* 'b$'", "s ~ 'A'", "s ~* '^ab|C'"])
def test_regular_expressions_ignore_case_where_they_say_so(condition: str) -> None:
    table = pa.table({"s": ["ab", "AB", "Ba", "b", "c", None]})
    ours, theirs = answers(f"select s from t where {condition}", t=table)
    assert ours == theirs


@pytest.mark.parametrize("zone", ["UTC", "Europe/Berlin", "America/New_York"])
@pytest.mark.parametrize(
    "query",
    [
        "select i, cast(z as date) as a, cast(z as timestamp) as b, cast(z as varchar) as c from t",
        "select i, extract(hour from z) as a, extract(dow from z) as b, year(z) as c from t",
        (
            "select i, date_trunc('hour', z) as a, date_trunc('day', z) as b, date_trunc('week', z) as c, "
            "date_trunc('month', z) as d, date_trunc('quarter', z) as e from t"
        ),
        "select i, z + interval '1' day as a, z + interval '1' month as b, z - interval '3' hour as c from t",
        "select i, z > '2025-01-01' as a, z > timestamptz '2025-01-01 00:00:00+00' as b from t",
        "select i, cast(cast(z as timestamp) as varchar) as a from t",
    ],
)
def test_a_timestamp_with_a_zone_is_read_by_the_clocks_of_its_zone(query: str, zone: str) -> None:
    drawn = random.Random(5)
    begin = dt.datetime(2024, 1, 1, tzinfo=dt.timezone.utc)
    stamps = [
        begin
        + dt.timedelta(seconds=drawn.randrange(63_072_000), microseconds=drawn.choice([0, 500_000, 123_456]))
        for _ in range(200)
    ]
    table = pa.table({"i": range(200), "z": pa.array(stamps, pa.timestamp("us", zone))})
    ours, theirs = answers(query, zone, t=table)
    assert ours == theirs


def test_nanoseconds_are_not_cut_beside_other_units() -> None:
    fine = pa.table({"x": pa.array([1_000_000_001, 1_000_000_000], pa.timestamp("ns"))})
    coarse = pa.table({"y": pa.array([1_000_000], pa.timestamp("us"))})
    assert ps.sql("select count(*) as n from a join b on a.x = b.y", a=fine, b=coarse).to_pylist() == [
        {"n": 1}
    ]
    late = ps.sql("select count(*) as n from a where x > timestamp '1970-01-01 00:00:01'", a=fine)
    assert late.to_pylist() == [{"n": 1}]


def test_timestamps_may_have_no_seconds() -> None:
    text = (
        "select timestamp '2024-01-31 10:20' as a, cast('2024-01-31T10:20' as timestamp) as b, "
        "timestamp '2024-01-31 10:20:30' as c, timestamp '2024-01-31' as d, "
        "try_cast('2024-01-31 10:2' as timestamp) as e from t"
    )
    table = pa.table({"k": [1]})
    connection = duckdb.connect()
    connection.register("t", table)
    first, second, *others = ps.sql(text, t=table).to_pylist()[0].values()
    assert first == second == dt.datetime(2024, 1, 31, 10, 20)
    assert others == [dt.datetime(2024, 1, 31, 10, 20, 30), dt.datetime(2024, 1, 31), None]
    assert connection.sql(text).fetchall()[0][:4] == (first, second, *others[:2])


def test_names_that_begin_with_the_sign_of_made_columns_are_kept() -> None:
    table = pa.table({"a": [1, 5], "b": [2, 3]})
    query = 'select a as "#order0", b as "##order1" from t order by a + b desc, b limit 1'
    assert ps.sql(query, t=table).to_pylist() == [{"#order0": 5, "##order1": 3}]
    assert ps.sql('select b as "#0" from t order by b desc', t=table).to_pylist() == [{"#0": 3}, {"#0": 2}]


@pytest.mark.parametrize("view", [pa.string_view(), pa.binary_view()])
def test_columns_of_views_are_sorted_and_repeated(view: pa.DataType) -> None:
    table = pa.table(
        {"s": pa.array(["b", "a", "b"], pa.string()).cast(pa.binary()).cast(view), "n": [1, 2, 1]}
    )
    found = ps.sql("select s, n from t order by n, s", t=table)
    assert found["n"].to_pylist() == [1, 1, 2]
    assert len(set(found["s"].to_pylist())) == 2
