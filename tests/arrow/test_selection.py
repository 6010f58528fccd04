"""Rows are picked, sorted, split by time and kept in windows whatever the types of their columns.

pyarrow's own kernels know no views and no columns of runs, which Polars and Parquet hand over.
"""

from __future__ import annotations

import datetime
import decimal
import random
from collections.abc import Callable
from typing import Any

import polars as pl
import pyarrow as pa
import pyarrow.compute as pc
import pytest

import pointstamp as ps
from aggregates import named
from pointstamp.logic.selection import rows_at, rows_in_order, rows_where, without_views

DAY = datetime.date(2024, 5, 1)
MOMENT = datetime.datetime(2024, 5, 1, 12, 30)

VALUES: dict[str, list[Any]] = {
    "int": [3, None, -1, 7],
    "float": [0.5, None, -2.0, 8.0],
    "text": ["b", None, "", "a text that is too long to lie in a view"],
    "bytes": [b"b", None, b"", b"bytes that are too long to lie in a view"],
    "truth": [True, None, False, True],
    "date": [DAY, None, DAY + datetime.timedelta(9), DAY],
    "moment": [MOMENT, None, MOMENT + datetime.timedelta(9), MOMENT],
    "time": [datetime.time(3), None, datetime.time(0), datetime.time(23)],
    "span": [datetime.timedelta(3), None, datetime.timedelta(0), datetime.timedelta(-2)],
    "decimal": [decimal.Decimal("1.50"), None, decimal.Decimal("-2.25"), decimal.Decimal("0.00")],
    "list": [[1, 2], None, [], [None, 3]],
    "pair": [[1, 2], None, [None, 3], [4, 5]],
    "texts": [["a", None], None, [], ["a text that is too long to lie in a view"]],
    "struct": [{"a": 1, "b": "x"}, None, {"a": None, "b": "y"}, {"a": 3, "b": None}],
    "map": [[("a", 1)], None, [], [("b", 2), ("c", None)]],
    "null": [None, None, None, None],
    "raw": [b"abcd", None, b"efgh", b"ijkl"],
}

TYPES: list[tuple[pa.DataType, str]] = [
    *[(made, "int") for made in (pa.int8(), pa.int16(), pa.int32(), pa.int64())],
    *[(made, "float") for made in (pa.float16(), pa.float32(), pa.float64())],
    *[(made, "text") for made in (pa.string(), pa.large_string(), pa.string_view())],
    *[(made, "bytes") for made in (pa.binary(), pa.large_binary(), pa.binary_view())],
    (pa.bool_(), "truth"),
    *[(made, "date") for made in (pa.date32(), pa.date64())],
    *[(made, "moment") for made in map(pa.timestamp, ("s", "ms", "us", "ns"))],
    *[(made, "time") for made in (pa.time32("s"), pa.time32("ms"), pa.time64("us"), pa.time64("ns"))],
    *[(made, "span") for made in map(pa.duration, ("s", "ms", "us", "ns"))],
    *[(made, "decimal") for made in (pa.decimal32(5, 2), pa.decimal64(9, 2))],
    *[(made, "decimal") for made in (pa.decimal128(20, 2), pa.decimal256(50, 2))],
    *[(made(pa.int64()), "list") for made in (pa.list_, pa.large_list)],
    *[(made(pa.int64()), "list") for made in (pa.list_view, pa.large_list_view)],
    (pa.list_(pa.int64(), 2), "pair"),
    *[(made(pa.string_view()), "texts") for made in (pa.list_, pa.list_view)],
    (pa.struct([("a", pa.int64()), ("b", pa.string_view())]), "struct"),
    (pa.map_(pa.string(), pa.int64()), "map"),
    (pa.null(), "null"),
    (pa.binary(4), "raw"),
    *[(pa.dictionary(pa.int8(), made), "text") for made in (pa.string(), pa.large_string())],
    (pa.run_end_encoded(pa.int32(), pa.string()), "text"),
]


def arrays() -> dict[str, pa.Array]:
    """A column of each type, of 24 rows."""
    made: dict[str, pa.Array] = {}
    for data_type, name in TYPES:
        values = VALUES[name] * 6
        if pa.types.is_run_end_encoded(data_type):
            made[str(data_type)] = pc.run_end_encode(pa.array(values, data_type.value_type))
        elif pa.types.is_float16(data_type):
            made[str(data_type)] = pa.array(values, pa.float32()).cast(data_type)
        elif pa.types.is_dictionary(data_type):
            made[str(data_type)] = pa.array(values, pa.string()).dictionary_encode().cast(data_type)
        else:
            made[str(data_type)] = pa.array(values, data_type)
    numbers, texts = pa.array(range(24)), pa.array([str(n) for n in range(24)])
    kinds = pa.array([n % 2 for n in range(24)], pa.int8())
    made["sparse union"] = pa.UnionArray.from_sparse(kinds, [numbers, texts])
    made["dense union"] = pa.UnionArray.from_dense(kinds, pa.array(range(24), pa.int32()), [numbers, texts])
    return made


ARRAYS = arrays()
every_type = pytest.mark.parametrize("name", ARRAYS)


def batch_of(name: str) -> pa.RecordBatch:
    """Rows with a number, a time that is out of order, and a column of this type."""
    times = list(range(24))
    random.Random(5).shuffle(times)
    columns = [pa.array(range(24)), pa.array(times), pa.array([n % 3 for n in range(24)]), ARRAYS[name]]
    return pa.record_batch(columns, ["n", "at", "key", "x"])


def run(name: str, program: Callable[[ps.ArrowStream], ps.ArrowStream]) -> list[dict[str, Any]]:
    """The rows that a program makes, in the order in which it sends them; they keep their type."""
    batch = batch_of(name)

    def main(worker: ps.Worker) -> list[pa.RecordBatch]:
        source = ps.ArrowInput(batch.schema)
        found: list[pa.RecordBatch] = []
        with worker.dataflow() as scope:
            made = program(source.to_stream(scope))
            if "x" in made.schema.names:
                assert made.schema.field("x").type == batch.schema.field("x").type
            made.inspect_batch(lambda _, rows: found.append(rows))
        source.send(batch.slice(0, 10))
        source.flush()
        source.send(batch.slice(10))
        source.close()
        worker.run()
        return found

    [found] = ps.execute(main)
    return [row for rows in found for row in rows.to_pylist()]


@every_type
def test_rows_are_picked(name: str) -> None:
    batch = batch_of(name).slice(3, 15)
    rows = batch.to_pylist()
    wanted = [None if n % 5 == 0 else n % 2 == 0 for n in range(15)]
    found = rows_where(batch, wanted)
    assert found.schema == batch.schema
    assert found.to_pylist() == [row for row, is_wanted in zip(rows, wanted, strict=True) if is_wanted]
    places = [14, 0, 0, 7]
    found = rows_at(batch, places)
    assert found.schema == batch.schema
    assert found.to_pylist() == [rows[place] for place in places]


@every_type
@pytest.mark.parametrize("descending", [False, True])
def test_rows_are_brought_into_order(name: str, descending: bool) -> None:
    batch = batch_of(name)
    rows = batch.to_pylist()
    parts = [batch.slice(0, 9), batch.slice(9)]
    found = rows_in_order(parts, [2, 1], descending)
    assert all(part.schema == batch.schema for part in found)
    expected = sorted(rows, key=lambda row: (row["key"], row["at"]), reverse=descending)
    assert [row for part in found for row in part.to_pylist()] == expected


def test_rows_in_the_order_of_no_columns_stay_as_they_are() -> None:
    batch = batch_of("int64")
    for parts in ([batch], [batch.slice(0, 9), batch.slice(9)]):
        for descending in (False, True):
            found = rows_in_order(parts, [], descending)
            assert pa.Table.from_batches(found).to_pylist() == batch.to_pylist()
    assert run("int64", lambda rows: rows.sort([])) == batch.to_pylist()
    assert run("int64", lambda rows: rows.select().sort([])) == [{}] * 24


@every_type
def test_kernels_of_pyarrow_know_what_has_no_views(name: str) -> None:
    batch = batch_of(name)
    plain = without_views(batch)
    assert plain.to_pylist() == batch.to_pylist()
    assert plain.filter(pa.array([True] * 24)).num_rows == 24


CONDITIONS: dict[str, Any] = {
    "pyarrow": pc.field("n") > 11,
    "polars": pl.col("n") > 11,
    "function": lambda batch: pc.greater(batch["n"], 11),
    "an expression of a function": lambda batch: pc.field("n") > 11,
    "numpy": lambda batch: batch["n"].to_numpy() > 11,
    "a list": lambda batch: [n > 11 for n in batch["n"].to_pylist()],
}


@every_type
@pytest.mark.parametrize("condition", CONDITIONS)
def test_filter(name: str, condition: str) -> None:
    expected = [row for row in batch_of(name).to_pylist() if row["n"] > 11]
    assert run(name, lambda rows: rows.filter(CONDITIONS[condition])) == expected


@every_type
def test_sort_and_limit(name: str) -> None:
    expected = sorted(batch_of(name).to_pylist(), key=lambda row: row["at"])
    assert run(name, lambda rows: rows.sort("at").limit(7)) == expected[:7]


@every_type
@pytest.mark.parametrize("late", [False, True])
def test_rows_that_are_late(name: str, late: bool) -> None:
    latest, expected = -1, []
    for row in batch_of(name).to_pylist():
        if (row["at"] < latest - 3) == late:
            expected.append(row)
        latest = max(latest, row["at"])
    found = run(name, lambda rows: rows.event_time("at", lateness=3)[late])
    assert sorted(found, key=lambda row: row["n"]) == expected


@every_type
@pytest.mark.parametrize("window", [ps.Tumbling(10), ps.Session(gap=30), ps.Count(8)])
def test_windows_keep_values(name: str, window: Any) -> None:
    rows = batch_of(name).to_pylist()
    wanted = [("x", "list"), ("x", "first"), ("x", "last"), ("x", "count")]
    if pa.types.is_union(batch_of(name).schema.field("x").type):
        wanted = wanted[:1]  # their nulls are of their parts, and none of their own
    found = run(
        name,
        lambda given: given.event_time("at", lateness=30)[0].window(
            window, "key", **named(wanted), early=None
        ),
    )
    for result in found:
        of = [row for row in rows if row["key"] == result["key"]]
        inside = [row for row in of if result["window_start"] <= row["at"] < result["window_end"]]
        if not isinstance(window, ps.Tumbling):  # these are added up in the order of time
            inside.sort(key=lambda row: row["at"])
        values = [row["x"] for row in inside]
        assert result["x_list"] == values
        if len(wanted) > 1:
            there = [value for value in values if value is not None]
            assert result["x_count"] == len(there)
            assert (result["x_first"], result["x_last"]) == ((there[0], there[-1]) if there else (None, None))
    assert sum(len(result["x_list"]) for result in found) == 24


@pytest.mark.parametrize("descending", [False, True])
def test_nulls_come_last_and_nan_is_the_greatest_number(descending: bool) -> None:
    nan = float("nan")
    batch = pa.record_batch({"x": pa.array([nan, 1.0, None, -nan, -1.0, float("inf"), 0.0, -0.0])})
    [found] = rows_in_order([batch], [0], descending)
    up, down = (
        ["-1.0", "0.0", "-0.0", "1.0", "inf", "nan", "nan"],
        ["nan", "nan", "inf", "1.0", "0.0", "-0.0", "-1.0"],
    )
    assert [str(x) for x in found["x"].to_pylist()] == [*(down if descending else up), "None"]


def test_dictionaries_of_their_own_are_put_together() -> None:
    words = pa.dictionary(pa.int8(), pa.string())
    batches = [
        pa.record_batch({"x": pa.array([f"{part} {n}" for n in range(100)]).dictionary_encode().cast(words)})
        for part in "ba"
    ]
    found = rows_in_order(batches, [0], False)
    assert all(part.schema.field("x").type == words for part in found)
    texts = sorted(f"{part} {n}" for part in "ab" for n in range(100))
    assert [row["x"] for part in found for row in part.to_pylist()] == texts


@pytest.mark.parametrize(
    ("condition", "error", "message"),
    [
        (lambda batch: batch["n"], TypeError, "a condition is a column of booleans, not of int64"),
        (
            lambda batch: True,
            TypeError,
            "filter returned True. It is given a batch",
        ),
        (lambda batch: batch["n"] == 3, TypeError, r"filter returned False. It is given a batch.*ps\.col"),
        (lambda batch: None, TypeError, "one for each row, and not None"),
        (lambda batch: [True], ValueError, "a condition made 1 values of 10 rows"),
    ],
)
def test_a_condition_is_a_boolean_a_row(
    condition: Callable[[Any], Any], error: type[Exception], message: str
) -> None:
    with pytest.raises(error, match=message):
        run("int64", lambda rows: rows.filter(condition))


def test_what_has_no_order_is_named() -> None:
    with pytest.raises(ps.GraphError, match=r"column 'x' of type .* has no order"):
        run("sparse union", lambda rows: rows.sort("x"))


@pytest.mark.parametrize("name", ["string_view", "binary_view", "list_view<item: int64>"])
def test_columns_are_made_of_views(name: str) -> None:
    expected = [{**row, "n": row["n"] + 1} for row in batch_of(name).to_pylist()]
    for number in (pc.field("n") + 1, pl.col("n") + 1):
        assert run(name, lambda rows, number=number: rows.with_columns(n=number)) == expected  # type: ignore[misc]


def test_expressions_read_views() -> None:
    rows = [row for row in batch_of("string_view").to_pylist() if row["x"] == "b"]
    for condition in (pc.field("x") == "b", pl.col("x") == "b"):
        assert run("string_view", lambda given, condition=condition: given.filter(condition)) == rows  # type: ignore[misc]


LITERALS = {"polars": pl.lit(5, pl.Int64), "pyarrow": pc.scalar(5)}


@pytest.mark.parametrize("kind", LITERALS)
def test_a_literal_is_for_all_rows(kind: str) -> None:
    expected = [{**row, "five": 5} for row in batch_of("string_view").to_pylist()]
    assert run("string_view", lambda rows: rows.with_columns(five=LITERALS[kind])) == expected
    without = run("string_view", lambda rows: rows.select().with_columns(five=LITERALS[kind]))
    assert without == [{"five": 5}] * 24


def test_an_aggregate_is_for_all_rows_of_a_batch() -> None:
    given = batch_of("int64").to_pylist()
    expected = [{**row, "most": 9 if row["n"] < 10 else 23} for row in given]
    assert run("int64", lambda rows: rows.with_columns(most=pl.col("n").max())) == expected
    less = [{**row, "less": row["n"] - 1} for row in expected]
    assert run("int64", lambda rows: rows.with_columns(most=pl.col("n").max(), less=pl.col("n") - 1)) == less
    assert run("int64", lambda rows: rows.filter(pl.col("n").max() > 9)) == given[10:]


@pytest.mark.parametrize("kind", ["filter", "with_columns"])
@pytest.mark.parametrize(
    ("number", "made"), [(pl.col("n").filter(pl.col("n") == 0), 0), (pl.col("n").filter(pl.col("n") > 6), 3)]
)
def test_other_numbers_of_values_are_refused(kind: str, number: pl.Expr, made: int) -> None:
    def program(rows: ps.ArrowStream) -> ps.ArrowStream:
        if made == 0:  # of one row Polars would make none
            rows = rows.filter(pl.col("n") == 3)
        return rows.filter(number > 0) if kind == "filter" else rows.with_columns(y=number)

    with pytest.raises(ValueError, match=r"a value for each of the \d+ rows, or one for all of them"):
        run("int64", program)


@pytest.mark.parametrize("returned", [lambda batch: [1] * batch.num_rows, lambda batch: [1]])
def test_a_function_that_returns_a_list_is_named(returned: Callable[[Any], Any]) -> None:
    with pytest.raises(TypeError, match="the function of column 'y' returns a list, which has no type"):
        run("int64", lambda rows: rows.with_columns(y=returned))


def test_no_two_columns_get_one_name() -> None:
    refused: list[tuple[str, Callable[[ps.ArrowStream], ps.ArrowStream]]] = [
        ("key", lambda rows: rows.rename({"n": "key"})),
        ("m", lambda rows: rows.rename({"n": "m", "at": "m"})),
        ("n", lambda rows: rows.select("n", "key", "n")),
    ]
    for name, program in refused:
        with pytest.raises(ps.GraphError, match=f"there would be 2 columns named '{name}'"):
            run("int64", program)
    swapped = run("int64", lambda rows: rows.select("n", "at").rename({"n": "at", "at": "n"}))
    assert swapped == [{"at": row["n"], "n": row["at"]} for row in batch_of("int64").to_pylist()]


def test_records_without_fields_are_rows_without_columns() -> None:
    def build(scope: ps.Scope) -> Any:
        return scope.to_stream([(), {}, ()]).to_arrow(pa.schema([])).to_records().capture()

    assert ps.example(build).extract() == [(0, [{}, {}, {}])]
