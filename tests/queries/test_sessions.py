"""Queries of sessions, and one answer."""

from __future__ import annotations

import polars as pl
import pyarrow as pa
import pytest

import pointstamp as ps

RAIN = pa.table({"city": ["Ulm", "Bonn", "Ulm"], "mm": [3, 5, None]})


@pytest.mark.parametrize("processes", [None, 2])
def test_results_follow_the_tables(processes: int | None) -> None:
    with ps.Interactive(processes=processes) as session:
        wettest = session.sql(
            "select city, sum(mm) as mm from rain group by city order by mm desc", rain=RAIN
        )
        assert wettest.table().to_pylist() == [{"city": "Bonn", "mm": 5}, {"city": "Ulm", "mm": 3}]
        assert wettest.table().num_rows == 2
        wettest.inputs["rain"].insert(pa.table({"city": ["Ulm"], "mm": [9]}))
        wettest.inputs["rain"].remove(pa.table({"city": ["Bonn"], "mm": [5]}))
        assert wettest.table().to_pylist() == [{"city": "Ulm", "mm": 12}]
        wettest.close()
        assert wettest.closed
        assert repr(wettest).endswith("(closed)>")


def test_a_table_may_be_a_schema_and_is_read_without_changes() -> None:
    with ps.Interactive() as session:
        none = session.sql("select count(*) as n from rain", rain=RAIN.schema)
        assert none.table().to_pylist() == [{"n": 0}]
        few = session.sql("select * from rain", rain=RAIN.schema)
        assert few.table().num_rows == 0
        assert few.table().schema.names == ["city", "mm"]


def test_queries_are_explained_and_shown() -> None:
    table = pa.table({"n": range(30), "s": ["<b>"] * 30})
    with ps.Interactive() as session:
        query = session.sql("select n, s from t where n >= 5 order by n", t=table)
        assert "where (t.n >= 5)" in query.explain()
        shown = query._repr_html_()
        assert "25 rows, of which the first 20 are shown" in shown
        assert "&lt;b&gt;" in shown
        assert "<b>" not in shown
        assert repr(query) == "<query of t: select n, s from t where n >= 5 order by n>"


@pytest.mark.parametrize("processes", [None, 2])
def test_a_plan_has_the_sizes_of_arrangements(processes: int | None) -> None:
    with ps.Interactive(processes=processes) as session:
        query = session.sql("select city, count(*) as n from rain group by city", rain=RAIN)
        assert "kept:" not in query.explain()
        query.table()
        before, _, kept = query.explain(sizes=True).partition("\nkept:\n")
        assert before.rstrip() == query.explain()
        assert " rows, " in kept
        assert all(
            int(line.split()[-2].replace(",", "")) > 0 for line in kept.splitlines() if " 0 rows" not in line
        )


def test_refusals_come_before_the_workers_are_reached() -> None:
    with ps.Interactive() as session:
        with pytest.raises(ps.GraphError, match="could not be resolved"):
            session.sql("select x from rain", rain=RAIN)
        assert session.sql("select city from rain", rain=RAIN).table().num_rows == 3


def test_answers_are_in_order() -> None:
    table = pa.table({"n": [2, None, 1, 2], "s": ["b", "x", "c", "a"]})
    first = ps.sql("select n, s from t order by n desc nulls first, s", t=table)
    assert first["s"].to_pylist() == ["x", "a", "b", "c"]
    assert ps.sql("select s from t order by n nulls last, s desc", t=table)["s"].to_pylist() == [
        "c",
        "b",
        "a",
        "x",
    ]
    assert ps.sql("select n from t where n > 5", t=table).schema.field("n").type == pa.int64()


def test_names_have_the_case_of_the_text_or_of_the_table() -> None:
    table = pa.table({"Foo": [1], "bar": [2]})
    assert ps.sql("select FOO as Baz, bar, bar + 1 from T", t=table).schema.names == ["Baz", "bar", "_col_2"]
    assert ps.sql("select * from t order by Foo", t=table).schema.names == ["Foo", "bar"]
    assert ps.sql("select sum(Foo) as Foo from t order by foo", t=table).schema.names == ["Foo"]


def test_frames_of_polars_are_tables() -> None:
    frame = pl.DataFrame({"n": [1, 2, 3]})
    assert ps.sql("select sum(n) as n from frame", frame=frame).to_pylist() == [{"n": 6}]
