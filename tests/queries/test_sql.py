"""Queries in SQL: what is covered is right after every change, and what is not is refused with its place."""

from __future__ import annotations

import random
from datetime import date, timedelta
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest

from changing_tables import check, random_changes
from effort import EFFORT

SCHEMAS = {
    "t": pa.schema(
        {
            "k": pa.int64(),
            "n": pa.int32(),
            "s": pa.string(),
            "d": pa.date32(),
            "p": pa.decimal128(10, 2),
            "f": pa.float64(),
            "b": pa.bool_(),
        }
    ),
    "u": pa.schema({"k": pa.int64(), "m": pa.int64(), "name": pa.string()}),
    "v": pa.schema({"a": pa.int64(), "z": pa.int64()}),
}


def rows(draw: random.Random) -> Any:
    """Makes random rows of the tables, with nulls."""

    def perhaps(value: Any) -> Any:
        return None if draw.random() < 0.1 else value

    def make(table: str, number: int) -> list[tuple[Any, ...]]:
        if table == "t":
            return [
                (
                    perhaps(draw.randint(0, 4)),
                    perhaps(draw.randint(-3, 3)),
                    perhaps(draw.choice(["Ann", "bob", "Cy%", "d_e", ""])),
                    perhaps(date(2024, 1, 30) + timedelta(days=draw.randint(0, 90))),
                    perhaps(Decimal(draw.randint(-300, 300)) / 100),
                    perhaps(draw.choice([-1.5, 0.0, 0.25, 2.0])),
                    perhaps(draw.random() < 0.5),
                )
                for _ in range(number)
            ]
        if table == "u":
            names = ["Ann", "bob", "eve"]
            return [
                (perhaps(draw.randint(0, 4)), perhaps(draw.randint(0, 3)), perhaps(draw.choice(names)))
                for _ in range(number)
            ]
        return [(draw.randint(0, 6), draw.randint(0, 6)) for _ in range(number)]

    return make


QUERIES = [
    # expressions
    "select k + n, k - n, k * n, k / n, k % n, -k from t",
    "select p + 1, p - k, p * p, p / n, p * f, p % 2, p > 0.5, p = 1 from t",
    "select d + interval '1' month, d - interval '2' day, d + 3, d - date '2024-02-01' from t",
    (
        "select extract(year from d), extract(month from d), year(d), date_trunc('month', d), "
        "extract(quarter from d), extract(dow from d), date_trunc('week', d), date_trunc('quarter', d) "
        "from t"
    ),
    "select * from t where d between date '2024-02-10' and '2024-03-10' and d <> date '2024-02-29'",
    (
        "select case when n > 0 then 'up' when n < 0 then 'down' end, case k when 1 then 1.5 else 0 end, "
        "coalesce(s, 'none'), nullif(k, 1), if(b, 1, 2) from t"
    ),
    (
        "select cast(p as int), cast(f as int), cast(n as varchar), cast(k as double), cast(p as "
        "decimal(12, 1)) as p1, try_cast(s as int), cast(d as timestamp) from t"
    ),
    (
        "select s like 'A%', s not like '%b', s like '_o_', lower(s), upper(s), length(s), substring(s, "
        "2, 1), substr(s, 2), s || '!', concat(s, '-', name) from t, (select max(name) as name from u) w"
    ),
    "select s ilike 'a%', starts_with(s, 'A'), contains(s, 'o'), regexp_matches(s, 'n+'), trim(s) from t",
    (
        "select abs(n), round(p, 1), round(f), floor(f), ceil(f), floor(p), ceil(p), greatest(k, n), "
        "least(k, n) from t"
    ),
    (
        "select n in (1, 2), n not in (1, null), k is null, b is true, b is not true, s is distinct from "
        "'Ann' from t"
    ),
    "select b and k > 1, b or n > 0, not b, (k > n) = b from t",
    "select * from t where not (n > 0 or k = 2)",
    "select * from t where b",
    # joins
    "select t.k, n, m, name from t join u on t.k = u.k",
    "select t.k, n, m from t, u where t.k = u.k and n < m",
    "select t.k, m from t join u on t.k = u.k and t.n = u.m",
    "select x.k, y.m, z from t x, u y, v where x.k = y.k and y.m = v.a",
    "select k, n, m from t join u using (k)",
    "select t.s, u.name from t left join u on t.k = u.k",
    "select t.s, u.name from t right join u on t.k = u.k",
    "select t.s, u.name from t full join u on t.k = u.k",
    "select t.s, u.name from t left join u on t.k = u.k and u.m > 1",
    "select t.s, u.name from t left join u on t.k = u.k and t.n > 0",
    "select t.s, u.name, m from t left join u on t.k = u.k and t.n < u.m",
    "select t.s, u.name, m from t full join u on t.k = u.k and t.n < u.m",
    "select t.s, u.name from t left join u on t.k = u.k where u.name is null or t.n > 0",
    "select t.s, u.name, z from t left join u on t.k = u.k join v on v.a = t.n",
    "select t.s, u.name, z from t join v on v.a = t.n left join u on u.m = v.z",
    "select count(*) from t a join t b on a.n = b.n",
    "select s, total from t, (select sum(m) as total from u) w where n < total",
    "select a.k, b.k as other from t a join t b on a.k + 1 = b.k",
    "select count(*) as c from t full join u on t.k = u.k where 1 = 0",
    "select count(*) as c from t right join u on t.k = u.k where null",
    # groups
    (
        "select k, count(*), count(n), sum(n), avg(n), min(n), max(n), sum(p), avg(p), min(s), max(d) "
        "from t group by k"
    ),
    "select count(*), sum(n), avg(f), min(p), max(s), count(distinct s) from t",
    "select count(*), sum(m) from u where m > 100",
    "select s, b, count(distinct k), count(distinct n) from t group by s, b",
    "select k % 2 as parity, sum(n + 1) from t group by k % 2",
    "select k, sum(n) from t group by k having sum(n) > 0 and count(*) > 1",
    "select k, sum(case when b then p else 0 end) / sum(p) from t group by k",
    (
        "select k, count(*) filter (where n > 0), sum(n) filter (where b), max(f) filter (where k > 2) "
        "from t group by k"
    ),
    "select sum(n) + 1, 2 * max(k) from t having count(*) > 3",
    "select distinct s, b from t",
    "select distinct k from t where n > 0",
    "select extract(month from d) as month, count(*) from t group by 1",
    "select k, any_value(k), bool_or(b), bool_and(b) from t group by k",
    "select t.k, count(u.m), sum(u.m) from t left join u on t.k = u.k group by t.k",
    # combinations
    "select k from t union select k from u",
    "select k from t union all select m from u",
    "select k, n from t intersect select k, m from u",
    "select k from t intersect all select k from u",
    "select k from t except select k from u",
    "select k from t except all select k from u",
    "select n from t union all select p from t",
    # subqueries
    "select * from t where n > (select avg(m) from u)",
    "select s, (select max(m) from u) as most from t",
    "select s, (select sum(m) from u where u.k = t.k) as total from t",
    "select s, (select sum(m) from u having count(*) > 2) as total from t",
    "select s, (select count(*) from u where u.k = t.k) as total from t",
    "select s, (select count(*) filter (where m > 1) from u where u.k = t.k) as total from t",
    "select s from t where n < (select max(m) from u where u.k = t.k)",
    "select s from t where 1 < (select count(*) from u where u.k = t.k and u.m > t.n)",
    "select s from t where exists (select * from u where u.k = t.k)",
    "select s from t where not exists (select * from u where u.k = t.k and u.m > 1)",
    "select s from t where exists (select 1 from u where u.k = t.k and u.m <> t.n)",
    "select s from t where not exists (select 1 from u where u.m > t.n and u.k = t.k)",
    "select s from t where exists (select 1 from u where m > 2)",
    "select s from t where exists (select 1 from u where u.k = t.k and (u.m <> t.n or t.n is null))",
    "select s from t where not exists (select 1 from u where u.k = t.k and (u.m <> t.n or t.n is null))",
    "select s from t where exists (select distinct u.k from u where u.k = t.k order by u.m)",
    "select s from t where k not in (select k from u where k is not null) or k is null",
    "select s from t where (k, n) in (select k, m from u)",
    "select s from t where n in (select m from u where u.k = t.k and u.m <> t.n + 1)",
    "select s from t where n in (select m from u where u.k = t.k)",
    "select count_if(n > 1) from t where n > 90",
    "select m, (select count(*) from t where t.k = u.k and t.n > 1) from u order by 2, 1",
    "select (select max(n) from t where t.k = u.k) as Most, m from u order by 1 desc nulls last, m limit 3",
    "select distinct (select max(n) from t where t.k = u.k) from u order by 1",
    "select count_if(n > 1), count_if(k > 9) filter (where b) from t",
    "select k, count_if(n > 1) from t group by k",
    "select k, n, count_if(b) from t group by k, n",
    "select count_if(b) from t where b is null",
    "select m, (select count_if(n > 1) from t where t.k = u.k) from u",
    "select count_if(m > 1), k from u group by k having count_if(m > 1) > 0",
    "select s from t where k in (select k from u)",
    "select s from t where k not in (select k from u)",
    "select s from t where k not in (select k from u where k is not null)",
    "select s from t where k not in (select m from u where m > 100)",
    "select s from t where k in (select m from u where u.k = t.n)",
    "select s from t where k not in (select m from u where u.k = t.n)",
    "select s from t where (k, n) in (select k, m from u)",
    "select s from t where k in (select k from u) or n > 1",
    "select s from t where exists (select 1 from u where u.k = t.k) or n > 1",
    "select s, k in (select m from u) as within, k not in (select m from u) as without from t",
    "select s, exists (select 1 from u where u.k = t.k) as there from t",
    "select k, sum(n) from t group by k having sum(n) > (select avg(m) from u)",
    (
        "select k from t where n = (select min(m) from u where u.k = t.k and u.name = (select max(name) "
        "from u))"
    ),
    (
        "select s from t where exists (select 1 from u where u.k = t.k and exists (select 1 from v where "
        "a = u.m))"
    ),
    (
        "select s from t where exists (select 1 from u where u.k = t.k and exists (select 1 from v where "
        "a = u.m and z > t.n))"
    ),
    "select w.k, w.total from (select k, sum(n) as total from t group by k) w where w.total > 1",
    (
        "with w as (select k, count(*) as c from t group by k) select w.k, x.c from w join w x on w.k = "
        "x.k + 1"
    ),
    "with w(a, c) as (select k, n from t), x as (select a from w where c > 0) select * from x",
    "select k, (select sum(m) from u where u.k = t.k) as total, count(*) from t group by k",
    "select k, sum(n) from t group by k having exists (select 1 from u where u.k = t.k and u.m > t.k)",
    "select k, sum(n) from t group by k having sum(n) in (select m from u where u.k < 3)",
    # order
    "select k, n, s, p from t order by n desc, p, s, k limit 3",
    "select k, n from t order by k * 10 + n desc, n limit 3",
    "select k + 1 as j, count(*) as c from t group by k order by j % 2, c + j desc, j limit 2",
    "select k, n, s, p from t order by n desc nulls last, p nulls first, s, k limit 3 offset 2",
    "select n from t order by n nulls first offset 2",
    "select s, sum(n) as total from t group by s order by total desc, s limit 2",
    "select s from t order by n desc, k, s, p, f limit 3",
    "select k from t union all select m from u order by k limit 4",
    "select k, w.n from (select k, n from t order by k, n limit 4) w where w.n > 0",
    # recursion
    (
        "with recursive r(a, z) as (select a, z from v union select r.a, v.z from r join v on r.z = v.a) "
        "select * from r"
    ),
    "with recursive r(x) as (select min(k) from t union select x + 1 from r where x < 6) select * from r",
    (
        "with recursive r(x) as (select a from v where z = 0 union select v.a from v, r where v.z = r.x "
        "and v.a > 0) select count(*) from r"
    ),
    # together
    "select k from t group by k order by sum(n) desc, k limit 2",
    "select k + 1 as j, sum(n) from t group by k",
    "select k, (select m from u where u.k = t.k order by m limit 1) as x from t",
    "select k, (select distinct name from u where u.k = t.k and u.name = t.s) as x from t",
    "select s from t where k in (1, (select max(m) from u))",
    "select * from (select k from t) union select m from u union all select a from v",
    (
        "select t.k, count(*) from t join u on t.k = u.k and u.m between 1 and 2 group by t.k having "
        "count(*) > (select count(*) from v) - 5"
    ),
    (
        "with w as (select k from t where n > 0), x as (select k from w union select m from u) select "
        "w.k, x.k as z from w join x on w.k = x.k"
    ),
    (
        "select case when exists (select 1 from u where u.k = t.k) then (select max(m) from u where u.k "
        "= t.k) else n end as c from t"
    ),
    "select sum((select max(m) from u where u.k = t.k)) from t",
    "select k from t where n between (select min(m) from u) and (select max(m) from u)",
    "select max(d) - min(d), count(distinct d), min(s) from t where s is not null",
    (
        "select t.k from t left join (select k, max(m) as m from u group by k) w on t.k = w.k where w.m "
        "> 1 or w.m is null"
    ),
    "select u1.name, u2.name as other from u u1 join u u2 on u1.k = u2.m and u1.m <> u2.k",
    "select a.s, b.k, c.m from t a left join t b on a.n = b.k left join u c on b.k = c.k",
    "select a.k, c.z from t a full join v c on a.k = c.a and c.z > 3",
    "select not (k > 1 and n < 2) as p, (k > 1) is null as q from t",
    "select k, sum(n) from t where k is not null group by k union all select null, sum(n) from t",
    "select avg(p), avg(f), sum(f), sum(p * n) from t",
    "select -p, p - 0.005, p * 1.5, cast(p as varchar), round(p * 1.111, 2) from t",
    "select cast(d as varchar), d = '2024-02-01', d in (date '2024-02-01', date '2024-02-02') from t",
    "select n from t except all (select m from u union all select a from v)",
    "select name from u group by name having name like '%n%' or count(*) > 2",
    "select k from t order by k desc nulls last, n, p, s, d, f limit 5 offset 1",
    (
        "with recursive r(a, n) as (select a, 0 from v union select v.z, n + 1 from r join v on r.a = "
        "v.a where n < 4) select a, min(n) from r group by a"
    ),
    (
        "with recursive r(a) as (select a from v where a < 2 union select z from v where a in (select a "
        "from r)) select * from r"
    ),
    (
        "select exists (select 1 from v where v.a = t.k and v.z > t.n) as e, count(*) as c from t group "
        "by k, n"
    ),
    # windows
    (
        "select k, n, rank() over (partition by k order by n), dense_rank() over (partition by k order "
        "by n) from t"
    ),
    "select k, n, s, row_number() over (partition by k order by n desc, s, d, p, f, b) as r from t",
    "select k, row_number() over (order by k nulls first, n, s, d, p, f, b) as r from t",
    (
        "select k, n, sum(n) over (partition by k order by n), count(*) over (partition by k order by n), "
        "avg(p) over (partition by k), min(s) over (partition by k order by d), max(f) over (order "
        "by n) from t"
    ),
    (
        "select k, sum(n) over (partition by k order by n, s, d, p, f, b rows between unbounded "
        "preceding and "
        "current row) as running, lag(s) over (partition by k order by n, s, d, p, f, b) as before, "
        "lead(n, 2, -1) over (partition by k order by n, s, d, p, f, b) as after from t"
    ),
    (
        "select k, m, first_value(m) over (partition by k order by m, name) as a, last_value(m) over "
        "(partition "
        "by k order by m) as b, sum(m) filter (where name = 'Ann') over (partition by k) as c, "
        "sum(m) over (partition by k order by m rows between unbounded preceding and unbounded "
        "following) as d "
        "from u"
    ),
    "select k, sum(n) as total, rank() over (order by sum(n) desc) as place from t group by k",
    "select k, sum(sum(n)) over (order by k) as running from t group by k",
    "select k, n, sum(p) over (partition by k) - p as others from t",
    "select k, n from t qualify rank() over (partition by k order by n desc) = 1",
    ("select k, n from t where b qualify row_number() over (partition by k order by n, s, d, p, f, b) <= 2"),
    (
        "select k, s from (select k, s, row_number() over (partition by k order by n desc, s, d, p, "
        "f, b) as r "
        "from t) w where r < 3"
    ),
    "select k, n, count(*) over () as c from t where n > 0 order by c desc, k, n, s limit 3",
    "select t.k, u.m, rank() over (partition by t.k order by u.m) as r from t join u on t.k = u.k",
    (
        "select k, (select count(*) over (partition by name) as c from u where u.k = t.k order by c desc, m, "
        "name limit 1) as x from t"
    ),
    "select distinct k, max(n) over (partition by k) as most from t",
    "select k, n + 1 - lag(n, 1, 0) over (partition by k order by n, s, d, p, f, b) as step from t",
    (
        "select k, rank() over w as a, sum(n) over (w rows unbounded preceding) as b from t window w as "
        "(partition by k order by n, s, d, p, f, b)"
    ),
    # spreads
    "select k, var_samp(n), var_pop(p), stddev(f), stddev_pop(n), variance(n) from t group by k",
    "select stddev_samp(n), var_pop(f) from t",
    # recursion that counts
    (
        "with recursive r(a, n) as (select a, 0 from v union all select v.z, n + 1 from r join v on "
        "r.a = v.a "
        "where n < 3) select a, n from r"
    ),
    (
        "with recursive r(x) as (select k from t union all select x + 1 from r where x < 6) select "
        "x, count(*) as c "
        "from r group by x"
    ),
    (
        "with recursive r(x) as (select k from t union select m from u union select x + 1 from r "
        "where x < 4) "
        "select * from r"
    ),
]


@pytest.mark.parametrize("query", QUERIES)
def test_results_are_right_after_every_change(query: str) -> None:
    some = 0
    for seed in range(20):
        if seed >= EFFORT and some > 0:
            break
        make = rows(random.Random(seed))
        initial = {"t": make("t", 20), "u": make("u", 8), "v": make("v", 6)}
        script = random_changes(initial, make, seed, 5 * EFFORT, 5)
        some += sum(map(len, check(query, SCHEMAS, script, workers=1 + seed % 2)))
    assert some > 0, "no change gave a result"
