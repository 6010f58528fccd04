"""Clauses and where they belong: behind parentheses, behind a comma in FROM, and in ORDER BY."""

from __future__ import annotations

import duckdb
import pyarrow as pa
import pytest

import pointstamp as ps

TABLES = {
    "t": pa.table({"k": [3, 1, 2, 5, 4], "n": [1, 2, 3, 4, 5]}),
    "u": pa.table({"m": [9, 1, 7], "k": [1, 2, 9]}),
    "v": pa.table({"a": [1, 2, 5], "z": [9, 8, 1]}),
}

PARENTHESES = [
    "(select k from t union select m from u) order by k limit 2",
    "(select k from t) order by k limit 2",
    "(select k from t) order by n desc limit 1",
    "(select k from t) order by k offset 4",
    "(select k from t order by k) limit 2",
    "(select k from t order by k) order by k desc",
    "(select k from t order by k limit 4) order by k desc limit 1",
    "((select k from t order by k) limit 3) order by k desc",
    "select k from (select k from t) as x order by k limit 2",
    "select count(*) as n from ((select k from t) order by k limit 2) as x",
    "select count(*) as n from ((select k from t union all select m from u) order by k limit 2) as x",
    "select k from t where k in ((select m from u) order by m limit 1)",
    "select k from t where k in ((select m from u union select 5 from t) order by m limit 1)",
    "select k, ((select m from u where u.k = t.k) order by m limit 1) as x from t order by k",
    "select (((select k from t) order by k desc limit 1)) as v from u",
    "((select k from t) order by k limit 1) union all ((select m from u) order by m desc limit 1)",
    "with w as ((select k from t) order by k limit 2) select count(*) as n from w",
    "with w as (select k from t) (select k from w) order by k limit 1",
    "(with w as (select k from t) (select k from w) order by k limit 1) order by k",
    """with recursive r(a) as (
        (select k from t union select k from u order by 1 limit 2) union select a + 1 from r where a < 3
    ) select a from r""",
]

JOINS = [
    "select c, u.k, a from (select count(*) as c from t) as q, u right join v on u.k = a",
    "select c, u.k, a from (select count(*) as c from t) as q, u full join v on u.k = a",
    "select c, u.k, a from u full join v on u.k = a, (select count(*) as c from t) as q",
    "select t.k, m, z from t, u right join v on u.k = a where n = a",
    "select t.k, m, z from t, u right join v on u.k = a where n = a and t.k = 1",
    "select t.k, m, z from t, u left join v on t.k = a where n = u.k",
    "select t.k, m, z from t, u join v on t.k = a where n = u.k",
    "select t.k, u.m, z, b.m as x from t, u left join v on u.k = a, u as b where n = u.k and b.k = t.k",
    "select t.k, u.m, z from t left join u as b on t.k = b.k, u right join v on u.k = a where n = a",
    "select t.k, u.m, z from t join u as b on t.k = b.k and 1 = 0, u right join v on u.k = a where n = a",
    """select t.k, c, z from t join (select count(*) as c from u) as q on 1 = 0, u
    right join v on u.k = a where n = a""",
]

ORDERS = [
    "select -k as k from t order by k + 0 limit 2",
    "select -k as k from t order by k limit 2",
    "select -k as k from t order by (k) limit 2",
    "select -k as z from t order by z + 0 limit 2",
    "select k as n from t order by n + 0 limit 2",
    "select k as z, n as k from t order by z + k, k limit 3",
    "select -k as k, count(*) as c from t group by t.k order by c + k",
    "select t.k as y from t join u on t.k = u.k order by m + y",
    "with w(y) as (select k + 1 as z from t) select -y as y from w order by y + 0",
    "(select -k as k from t) order by k + 0 limit 2",
    "select (select -k as k from t order by k + 0 limit 1) as x from u order by x",
]


@pytest.mark.parametrize("query", [*PARENTHESES, *JOINS, *ORDERS])
def test_clauses_belong_to_the_query_that_they_belong_to_in_duckdb(query: str) -> None:
    with duckdb.connect() as connection:
        for name, table in TABLES.items():
            connection.register(name, table)
        theirs = [str(row) for row in connection.sql(query).to_arrow_table().to_pylist()]
    ours = [str(row) for row in ps.sql(query, **TABLES).to_pylist()]
    if query in ORDERS:
        assert ours == theirs
    assert sorted(ours) == sorted(theirs)
