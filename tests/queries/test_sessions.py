"""Queries of sessions, and one answer."""

from __future__ import annotations

import threading
from typing import Any

import polars as pl
import pyarrow as pa
import pytest

import pointstamp as ps
from pointstamp.runtime.interactive import queries

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


@pytest.mark.parametrize("kind", [pa.string_view(), pa.binary_view(), pa.list_(pa.string_view())])
def test_columns_of_views_are_followed(kind: pa.DataType) -> None:
    values = [["x"], ["y"]] if pa.types.is_list(kind) else ["x", "y"]
    table = pa.table({"s": pa.array(values, kind), "n": [1, 2]})
    with ps.Interactive() as session:
        query = session.sql("select s, n from t order by n", t=table)
        first = query.table()
        query.inputs["t"].remove(table.slice(0, 1))
        assert first["s"].to_pylist() == table["s"].to_pylist()
        assert query.table()["s"].to_pylist() == table["s"].to_pylist()[1:]


def test_an_error_where_changes_are_added_up_loses_none(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(_: pa.Table) -> pa.Table:
        raise MemoryError

    with ps.Interactive() as session:
        query = session.sql("select city, mm from rain where mm > 3", rain=RAIN)
        with monkeypatch.context() as patched:
            patched.setattr(queries, "_added_up", fail)
            with pytest.raises(MemoryError):
                query.table()
        assert query.table().to_pylist() == [{"city": "Bonn", "mm": 5}]


def test_threads_that_read_a_query_together_lose_no_row() -> None:
    errors: list[BaseException] = []
    done = threading.Event()

    def read() -> None:
        try:
            while not done.is_set():
                query.table()
        except BaseException as error:
            errors.append(error)

    with ps.Interactive() as session:
        query = session.sql("select k from t", t=pa.schema({"k": pa.int64()}))
        readers = [threading.Thread(target=read) for _ in range(2)]
        for reader in readers:
            reader.start()
        for number in range(100):
            query.inputs["t"].insert(pa.table({"k": [number]}))
        done.set()
        for reader in readers:
            reader.join()
        assert not errors
        assert sorted(query.table()["k"].to_pylist()) == list(range(100))


def test_a_query_that_another_thread_reads_is_waited_for_until_the_timeout(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    begun, go_on = threading.Event(), threading.Event()
    added_up = queries._added_up

    def slow(changes: pa.Table) -> pa.Table:
        begun.set()
        go_on.wait(60)
        return added_up(changes)

    with ps.Interactive() as session:
        query = session.sql("select city from rain", rain=RAIN)
        monkeypatch.setattr(queries, "_added_up", slow)
        found: list[Any] = []
        reader = threading.Thread(target=lambda: found.append(query.table()))
        reader.start()
        assert begun.wait(60)
        with pytest.raises(ps.StallError, match=r"is read by another thread, for longer than 0\.05 s"):
            query.table(timeout=0.05)
        go_on.set()
        reader.join()
        assert found[0].num_rows == query.table(timeout=60).num_rows == 3
