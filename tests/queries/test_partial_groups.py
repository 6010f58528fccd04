"""Groups that are likely to be large are aggregated by parts."""

from __future__ import annotations

import pyarrow as pa
import pytest

import pointstamp as ps

T = pa.schema({"k": pa.int64(), "d": pa.date32(), "s": pa.string(), "f": pa.float64()})


@pytest.mark.parametrize(
    ("query", "divided"),
    [
        ("select sum(f), count(*), min(s), avg(k) from t", True),
        ("select s, sum(f) from t group by s", True),
        ("select year(d), max(k) from t group by 1", True),
        ("select k, sum(f) from t group by k", False),
        ("select d, s, sum(f) from t group by d, s", False),
        ("select s, count(distinct k) from t group by s", False),
        ("select count(*) from (select s from t) w", False),
        ("select min(s), max(s) from t where k > 0", True),
        ("select max(t.s) from t join t as u on t.d = u.d", True),
        ("select k from t order by f limit 2", True),
        ("select k from t order by f offset 2", False),
    ],
)
def test_large_groups_have_parts(query: str, divided: bool) -> None:
    with ps.Interactive() as session:
        assert (": parts" in session.sql(query, t=T).explain()) == divided


@pytest.mark.parametrize("workers", [1, 3])
def test_results_of_many_rows_are_right(workers: int) -> None:
    count = 5000
    table = pa.table(
        {"k": [n % 7 - 3 for n in range(count)], "f": [n / 4 for n in range(count)], "s": ["a"] * count}
    )
    with ps.Interactive(workers=workers) as session:
        totals = session.sql("select s, sum(k) as k, count(*) as n, avg(f) as f from t group by s", t=table)
        least = session.sql("select f, k from t order by f desc, k limit 2 offset 1", t=table)
        assert totals.table().to_pylist() == [
            {"s": "a", "k": sum(table["k"].to_pylist()), "n": count, "f": (count - 1) / 8}
        ]
        assert least.table()["f"].to_pylist() == [(count - 2) / 4, (count - 3) / 4]
        for query in (totals, least):
            query.inputs["t"].remove(table.slice(1))
        assert totals.table().to_pylist() == [{"s": "a", "k": -3, "n": 1, "f": 0.0}]
        assert least.table().num_rows == 0
