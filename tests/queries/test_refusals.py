"""Queries that are not covered are refused, with the place in the text and what to write instead."""

from __future__ import annotations

import subprocess
import sys
from typing import Any

import pyarrow as pa
import pytest

import pointstamp as ps

T = pa.table({"k": [1], "n": [2], "s": ["a"]})
U = pa.table({"k": [1], "m": [2]})


@pytest.mark.parametrize(
    ("query", "message"),
    [
        ("select k from", "cannot be parsed: .*"),
        ("insert into t values (1)", "a query is one statement, SELECT or WITH"),
        ("select 1; select 2", "a query is one statement"),
        (
            "select n from t where exists (select max(m) from u where u.k = t.k)",
            "line 1, column .*: an aggregate of all rows that reads the query around it is no set",
        ),
        (
            "select n from t where n in (select count(*) from u where u.k = t.k)",
            "an aggregate of all rows that reads the query around it is no set: compare with its value",
        ),
        (
            "select n from t where exists (select 1 from u where u.k = t.k having count(*) = 0)",
            "an aggregate of all rows that reads the query around it is no set",
        ),
        (
            "select (select 5 from u where u.k = t.k having count(*) = 0) from t",
            "HAVING, LIMIT and OFFSET of a value that reads the query around it are not covered",
        ),
        ("select substring('abc', 2, -1) from t", "the length of a substring is not negative"),
        (
            "select (select count(*) from u where u.k = t.k having count(*) > 1) from t",
            "HAVING, LIMIT and OFFSET of a value that reads the query around it are not covered",
        ),
        ("select k from missing", r"line 1, column 15: there is no table 'missing': .*missing=collection"),
        ("select missing from t", "Column 'missing' could not be resolved. Line: 1"),
        ("select k from t, u", "Column 'k' could not be resolved"),
        ("select 1 as one", "a query reads tables"),
        ("select k from t limit 2", "line 1, column 23: LIMIT without ORDER BY .* write ORDER BY"),
        (
            "select t.k from t, u where t.n < u.m",
            "line 1, column 20: no equality connects u with t: a join needs",
        ),
        ("select t.n from t left join u on t.n < u.m", "an outer join needs an equality in ON"),
        ("select s from t\nwhere exists (select 1 from u where u.m > t.n)", "line 2, .*no equality connects"),
        (
            "select sum(n) over (order by k rows between 1 preceding and current row) from t",
            "line 1, column .*: frame .* is not covered: frames are ROWS or RANGE from UNBOUNDED PRECEDING",
        ),
        (
            "select ntile(2) over (order by k) from t",
            "window function .* is not covered: there are row_number",
        ),
        ("select k from t where rank() over (order by n) = 1", "computed after WHERE, .* or in QUALIFY"),
        ("select rank() over w from t", "window 'w' is not defined by PARTITION BY and ORDER BY in WINDOW"),
        ("select count(distinct n) over (order by k) from t", "DISTINCT in a window is not covered"),
        ("select k from t qualify k > 1", "QUALIFY is a condition on window functions"),
        ("select sum(distinct n) from t", "sum of distinct values is not covered"),
        ("select median(n) from t", "aggregate .* is not covered: there are sum, count"),
        ("select k, sum(n) from t group by rollup (k)", "ROLLUP .* is not covered"),
        ("select distinct on (k) k, n from t", "DISTINCT ON is not covered"),
        ("select n from t where n > any (select m from u)", "ANY and ALL are not covered"),
        (
            "select reverse(s) from t",
            r"line 1, column 8: REVERSE\(.*\) is not covered \(REVERSE\): .* by with_columns of a stream",
        ),
        ("select s like 'a' escape 'b' from t", "is not covered"),
        ("select n + s from t", "has no meaning for types"),
        ("select k as a, n as a from t", "two columns are called 'a'"),
        ("select (select k, m from u) from t", "has one column, not 2"),
        (
            "select n from t group by k",
            "line 1, column 8: .* is not in GROUP BY: group by it, or aggregate it",
        ),
        ("select k, n from t where (k, n) not in (select k, m from u)", "write NOT EXISTS"),
        ("select cast(n as interval) from t", "type INTERVAL is not covered"),
        ("select k from t using sample 10", "SAMPLE is not covered"),
        (
            (
                "with recursive r(x) as (select k from t union all select a.x from r a, r b where a.x = "
                "b.x) select * from r"
            ),
            "reads recursive table 'r' once: write UNION",
        ),
        (
            (
                "with recursive r(x) as (select k from t union all select distinct x + 1 from r where x < 3) "
                "select * from r"
            ),
            "DISTINCT of the recursive table counts each row once: write UNION",
        ),
        (
            """with recursive r(x) as (select k from t union all select n from t where n in (select x from r))
            select * from r""",
            "joins the recursive table in FROM",
        ),
        (
            "with recursive a(x) as (select x from b), b(x) as (select x from a) select * from a",
            "recursive table 'a' is a UNION of its first rows",
        ),
        (
            (
                "with recursive a(x) as (select k from t union all select x from b), "
                "b(x) as (select x from a) select * from a"
            ),
            "UNION ALL of tables that read each other is not covered: write UNION",
        ),
        (
            (
                "with recursive a(x) as (select k from t union select x from b), b as (select x from a) "
                "select * from a"
            ),
            "table 'b' is read before its query: name its columns",
        ),
        (
            (
                "with recursive r(x) as (select k from t union select rank() over (order by x) from r) "
                "select * from r"
            ),
            "may only gain rows",
        ),
        (
            "with recursive r(x) as (select k from t union select count(*) from r) select * from r",
            "may only gain rows",
        ),
        (
            """with recursive r(x) as (select k from t union select n from t where n not in (select x from r))
            select * from r""",
            "may only gain rows",
        ),
        (
            """with recursive r(x) as (select k from t union
            select n from r join t on r.x = t.k where (n in (select x from r)) is false) select * from r""",
            "IN and EXISTS as values, of it are computed of its result",
        ),
        (
            """with recursive r(a, b) using key (a) as (select k, 0 from t union select a, b + 1 from r
            where b < 3) select a, b from r""",
            "SQL, line 1, column 35: KEY EXPRESSIONS is not covered in",
        ),
        (
            """with recursive r(a) as (with w as (select k from t) select k from w union select a from r)
            select a from r""",
            "WITH is not covered in WITH",
        ),
        ("select t.n from t semi join u on t.k = u.k", "write EXISTS or NOT EXISTS"),
        ("select t.n from t left semi join u on t.k = u.k", "line 1, column .*: write EXISTS or NOT EXISTS"),
        ("select t.n from t left anti join u on t.k = u.k", "line 1, column .*: write EXISTS or NOT EXISTS"),
        (
            "select n from t, u as a right join u as b on t.k = b.m",
            "ON of this join, or of one before it, reads tables that it does not join",
        ),
        (
            "select n from t, u as a join u as c on t.k = c.m right join u as b on a.k = b.m",
            "ON of this join, or of one before it, reads tables that it does not join",
        ),
        (
            "select n from ((select k from u) as x join t on t.k = x.k) left join u on u.m = x.k",
            "JOINS is not covered in",
        ),
        (
            "(select k from t order by k limit 4) limit 2",
            "column .*: ORDER BY inside of the parentheses is not the order outside of them: write it",
        ),
        (
            (
                "with recursive r(x) as (select k from t union select x + 1 from r where x < 3 order by 1) "
                "select * from r"
            ),
            "column .*: ORDER BY of a recursive table is written in the query that reads it, after the WITH",
        ),
        (
            "select distinct k from t order by n",
            "line 1, column 35: SELECT DISTINCT is ordered by columns that it selects: select this one, too",
        ),
        ("select trim(both 'x' from s) from t", "trim takes spaces from both ends: take others away before"),
        ("(select k from t) limit 2", "LIMIT without ORDER BY"),
        (
            "select t.k from t join u on t.k = u.k order by k + 1",
            "line 1, column 48: 'k' is a column of t and of u: write t.k, or order by the selected column",
        ),
    ],
)
def test_what_is_not_covered_is_refused(query: str, message: str) -> None:
    with pytest.raises(ps.GraphError, match=message):
        ps.sql(query, t=T, u=U)


MISTYPED = [
    "select 1 as one, n + s from t",
    "select k, sum(s) from t group by k",
    "select k from t where n = s",
    "select k from t where s",
    "select k from t group by k having sum(n) > 'a'",
    "select case when n > 1 then s else n end from t",
    "select coalesce(n, s) from t",
    "select greatest(n, s) from t",
    "select n in ('a') from t",
    "select k from t where n between 'a' and 3",
    "select upper(n) from t",
    "select not n from t",
    "select - s from t",
    "select extract(year from s) from t",
    "select date_trunc('month', n) from t",
    "select min(n) filter (where s) from t",
    "select lag(n, 1, 'a') over (order by k) from t",
    "select sum(s) over (partition by k) from t",
    "select (select max(s) from t) + 1 from t",
    "select k from t where n in (select s from t)",
    "select t.k from t join u on u.m = t.s",
    "select k from t union select s from t",
    "select k from t except select s from t",
    "select k from t order by n + s limit 1",
    "with recursive r as (select n from t union select s from t join r on t.n = r.n) select * from r",
    "with recursive r as (select n from t union all select s from t join r on t.n = r.n) select * from r",
    "with recursive r as (select n from t union select s from t union select n from r) select * from r",
]
"""Queries that compute with a value of another type."""


@pytest.mark.parametrize("query", MISTYPED)
def test_a_value_of_another_type_is_refused_at_its_place(query: str) -> None:
    with pytest.raises(ps.GraphError, match=r"^SQL, line 1, column \d+: "):
        ps.sql(query, t=T, u=U)


def test_a_value_of_two_rows_is_an_error() -> None:
    two = pa.table({"k": [1, 2], "m": [1, 1]})
    with pytest.raises(ValueError, match="used as a value has more than one row"):
        ps.sql("select (select k from u where u.m = t.k) as x from t", t=T, u=two)
    assert ps.sql("select (select k from u where u.k = t.n) as x from t", t=T, u=two).to_pylist() == [
        {"x": 2}
    ]


def test_tables_are_collections_of_the_scope_or_data() -> None:
    def build(scope: ps.Scope, **tables: Any) -> Any:
        return scope.sql("select k from t", **tables).capture()

    with pytest.raises(ps.GraphError, match="a query reads tables"):
        ps.example(lambda scope: build(scope))
    with pytest.raises(TypeError, match=r"is a stream: make a collection of its rows by to_collection\(\)"):
        ps.example(lambda scope: build(scope, t=scope.to_stream(T)))

    def inner(scope: ps.Scope) -> Any:
        rows = scope.column_collection(T)
        with scope.iterative() as loop:
            return loop.sql("select k from t", t=rows)

    with pytest.raises(ps.GraphError, match=r"of another scope: use enter\(\) or leave\(\)"):
        ps.example(inner)


def test_without_sqlglot_the_error_names_the_extra() -> None:
    program = (
        "import sys; sys.modules['sqlglot'] = None\n"
        "import pyarrow as pa, pointstamp as ps\n"
        "try:\n    ps.sql('select a from t', t=pa.table({'a': [1]}))\n"
        "except ImportError as error:\n    print(error)\n"
    )
    result = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert "pip install 'pointstamp[sql]'" in result.stdout


def test_importing_the_package_does_not_import_sqlglot() -> None:
    program = "import sys, pointstamp as ps; ps.col, ps.sql, ps.Scope.sql; print('sqlglot' in sys.modules)"
    result = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert result.stdout == "False\n"
