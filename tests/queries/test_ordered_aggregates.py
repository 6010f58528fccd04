"""Aggregates that depend on the order of rows: lists, and first and last values, beside DuckDB."""

from __future__ import annotations

import random
from typing import Any

import pyarrow as pa
import pytest

import duck
import pointstamp as ps
from pointstamp import col

SCHEMA = pa.schema({"k": pa.int64(), "n": pa.int64(), "s": pa.string(), "d": pa.date32()})

QUERIES = [
    "select k, array_agg(s order by n, s) as c from t group by k",
    "select k, array_agg(n order by n desc nulls last) as c, max(n) as most from t group by k",
    "select array_agg(n order by n) as c from t",
    "select array_agg(n order by n) as c, count(*) as rows from t where n > 100",
    "select k, list(distinct s order by s nulls first) as c from t group by k",
    "select k, array_agg(n order by n) filter (where n > 2) as c from t group by k",
    "select k, first(s order by n, s) as c, last(s order by n, s) as l from t group by k",
    "select k, first(n order by n desc nulls first) as c, max(d) as m from t group by k having count(*) > 1",
    "select c, count(*) as many from (select k, array_agg(n order by n) as c from t group by k) group by c",
    "select k, array_agg(d order by d) as c from t where d is not null group by k order by c desc, k limit 2",
]


def rows(draw: random.Random, count: int) -> list[dict[str, Any]]:
    def some(value: Any) -> Any:
        return None if draw.random() < 0.2 else value

    days = pa.array(range(5), pa.int32()).cast(pa.date32()).to_pylist()
    return [
        {
            "k": some(draw.randrange(3)),
            "n": some(draw.randrange(5)),
            "s": some(draw.choice("abc")),
            "d": some(draw.choice(days)),
        }
        for _ in range(count)
    ]


def answers(table: pa.Table, query: str) -> list[str]:
    with duck.connection() as connection:
        connection.register("t", table)
        return sorted(map(repr, connection.sql(query).to_arrow_table().to_pylist()))


@pytest.mark.parametrize("query", QUERIES)
@pytest.mark.parametrize("seed", range(2))
def test_lists_and_first_values_are_duckdbs_after_every_change(query: str, seed: int) -> None:
    draw = random.Random(seed)
    with ps.Interactive() as session:
        live = session.sql(query, t=SCHEMA)
        there: list[dict[str, Any]] = []
        for _ in range(4):
            gone = [one for one in there if draw.random() < 0.4]
            new = rows(draw, draw.randrange(12))
            there = [one for one in there if not any(one is other for other in gone)] + new
            live.inputs["t"].remove(pa.Table.from_pylist(gone, schema=SCHEMA))
            live.inputs["t"].insert(pa.Table.from_pylist(new, schema=SCHEMA))
            expected = answers(pa.Table.from_pylist(there, schema=SCHEMA), query)
            assert sorted(map(repr, live.table().to_pylist())) == expected


def test_lists_are_kept_and_compared_as_values() -> None:
    lists = pa.table({"l": pa.array([[1, 2], [1], None, [], [1, None]], pa.list_(pa.int64())), "n": range(5)})

    def build(scope: ps.Scope) -> Any:
        held = scope.column_collection(lists)
        return [
            held.capture(),
            held.join(held.rename({"n": "m"}), "l").capture(),
            held.aggregate([], m=col("l").max()).capture(),
        ]

    every, joined, most = (one.extract()[0][1] for one in ps.example(build))
    assert sorted(map(str, every["l"].to_pylist())) == sorted(map(str, lists["l"].to_pylist()))
    assert every.schema.field("l").type == pa.list_(pa.int64())
    assert len(joined) == 4
    assert most["m"].to_pylist() == [[1, 2]]


def test_a_first_row_without_an_order_is_refused() -> None:
    with pytest.raises(
        ps.GraphError, match=r"line 1, column \d+: FIRST\(.*\) takes any row, .* write ORDER BY"
    ):
        ps.sql("select first(n) from t", t=SCHEMA.empty_table())
