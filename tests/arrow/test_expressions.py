"""Expressions mean the same in streams and collections of columns, by every library."""

from collections import Counter
from typing import Any

import hypothesis.strategies as st
import polars as pl
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from hypothesis import given

import pointstamp as ps

SCHEMA = pa.schema(
    {"a": pa.int64(), "b": pa.int64(), "x": pa.float64(), "s": pa.string(), "l": pa.list_(pa.int8())}
)
KEPT = ["a", "b", "x", "s"]

numbers = st.none() | st.integers(-5, 5)
rows = st.lists(
    st.fixed_dictionaries(
        {
            "a": numbers,
            "b": numbers,
            "x": st.none() | st.floats(-2, 2, width=16) | st.just(float("nan")),
            "s": st.none() | st.sampled_from(["", "p", "q"]),
            "l": st.just([1]),
        }
    ),
    max_size=8,
)

CONDITIONS: list[Any] = [
    ps.col("a") > 1,
    ps.col("a") + ps.col("b") * 2 <= ps.lit(3),
    (ps.col("x") >= 0.5) & ~(ps.col("s") == "p"),
    ps.col("a").is_null() | (ps.col("b") != ps.col("a")),
    ps.lit(0) < ps.col("x") - ps.col("a"),
]

COLUMNS: list[Any] = [
    ps.col("a") - ps.col("b"),
    -ps.col("x") * 2,
    ps.col("s"),
    ps.col("a") / 2,
    ps.lit(7),
]


def table_of(given: list[dict[str, Any]]) -> pa.Table:
    return pa.Table.from_pylist(given, schema=SCHEMA)


def plain(batch: pa.RecordBatch, names: list[str]) -> list[str]:
    return [repr([_one_zero(row[name]) for name in names]) for row in batch.to_pylist()]


def _one_zero(value: Any) -> Any:
    """Collections have one zero of floats."""
    return value + 0.0 if isinstance(value, float) else value


def of_stream(table: pa.Table, build: Any, names: list[str]) -> Counter[str]:
    """The rows that a stream has after some methods."""
    captured = ps.example(lambda scope: build(scope.to_stream(table)).capture()).extract()
    return Counter(row for _, batches in captured for batch in batches for row in plain(batch, names))


def of_collection(table: pa.Table, build: Any, names: list[str]) -> Counter[str]:
    """The rows that a collection has after some methods."""
    found: Counter[str] = Counter()
    given = table.select(KEPT)
    for _, batch in ps.example(lambda scope: build(scope.column_collection(given)).capture()).extract():
        for row, diff in zip(plain(batch, names), batch.column("diff").to_pylist(), strict=True):
            found[row] += diff
    return found


@pytest.mark.parametrize("condition", CONDITIONS, ids=repr)
@given(given=rows)
def test_conditions_keep_the_same_rows(condition: Any, given: list[dict[str, Any]]) -> None:
    table = table_of(given)
    expected = of_collection(table, lambda rows: rows.filter(condition), KEPT)
    assert of_stream(table, lambda rows: rows.filter(condition), KEPT) == expected


@pytest.mark.parametrize("column", COLUMNS, ids=repr)
@given(given=rows)
def test_columns_are_the_same(column: Any, given: list[dict[str, Any]]) -> None:
    table = table_of(given)
    expected = of_collection(table, lambda rows: rows.select("a", made=column), ["a", "made"])
    assert of_stream(table, lambda rows: rows.select("a", made=column), ["a", "made"]) == expected
    assert of_stream(table, lambda rows: rows.with_columns(made=column), ["a", "made"]) == expected


@given(given=rows)
def test_a_large_batch_is_as_a_small_one(given: list[dict[str, Any]]) -> None:
    """Large batches go by kernels, and rows that a kernel does not take by themselves."""
    table = table_of(given * 300)
    for condition in CONDITIONS:
        few = of_stream(table_of(given), lambda rows, c=condition: rows.filter(c), KEPT)
        many = of_stream(table, lambda rows, c=condition: rows.filter(c), KEPT)
        assert many == Counter({row: 300 * count for row, count in few.items()})


FOREIGN = [
    (ps.col("a") > 1, pc.field("a") > 1, pl.col("a") > 1),
    (ps.col("s") == "p", pc.field("s") == "p", pl.col("s") == "p"),
    (ps.col("a") + ps.col("b") < 2, pc.field("a") + pc.field("b") < 2, pl.col("a") + pl.col("b") < 2),
]


@pytest.mark.parametrize("of", [of_stream, of_collection])
@pytest.mark.parametrize(("own", "arrow", "polars"), FOREIGN, ids=lambda given: repr(given)[:20])
@given(given=rows)
def test_conditions_of_arrow_and_polars_are_taken(
    own: Any, arrow: Any, polars: Any, of: Any, given: list[dict[str, Any]]
) -> None:
    table = table_of(given)
    expected = of(table, lambda rows: rows.filter(own), KEPT)
    for foreign in (arrow, polars):
        assert of(table, lambda rows, f=foreign: rows.filter(f), KEPT) == expected


@given(given=rows)
def test_columns_of_arrow_and_polars_are_taken(given: list[dict[str, Any]]) -> None:
    table = table_of(given)
    for of in (of_stream, of_collection):
        expected = of(table, lambda rows: rows.select("s", m=ps.col("a") * 2), ["s", "m"])
        for foreign in (pc.field("a") * 2, pl.col("a") * 2):
            assert of(table, lambda rows, f=foreign: rows.select("s", m=f), ["s", "m"]) == expected


@pytest.mark.parametrize(
    ("build", "error", "message"),
    [
        (lambda rows: rows.filter(ps.col("z") > 1), ps.GraphError, 'no column "z": there are a, b, x, s, l'),
        (lambda rows: rows.filter(ps.col("a")), ps.GraphError, "is of type Int64: compare it with something"),
        (lambda rows: rows.filter(ps.record[0] > 1), ps.GraphError, "record"),
        (lambda rows: rows.select(m=ps.col("s") + 1), ps.GraphError, "has no meaning for types"),
        (lambda rows: rows.select("a", a=ps.col("b")), ps.GraphError, "'a'"),
    ],
)
def test_a_mistake_is_raised_where_it_is_written(build: Any, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        ps.example(lambda scope: build(scope.to_stream(table_of([]))).capture())


def test_a_sum_that_does_not_fit_ends_the_dataflow() -> None:
    table = pa.table({"n": [2**63 - 1]})
    with pytest.raises(OverflowError, match=r"no int of 64 bits"):
        ps.example(lambda scope: scope.to_stream(table).with_columns(m=ps.col("n") + 1).capture())


def test_a_literal_goes_to_other_processes_as_it_is() -> None:
    import pickle

    for expr in (ps.lit("a"), ps.lit(1.5) - ps.col("x"), ps.lit(None), ps.record[1]):
        assert repr(pickle.loads(pickle.dumps(expr))) == repr(expr)
