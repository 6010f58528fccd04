"""Expressions of columns: types, constants, and rows without a result."""

from __future__ import annotations

import pickle
from datetime import date, datetime, timedelta
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest

import pointstamp as ps
from harness import notes
from pointstamp import case, coalesce, col, lit

ROWS = pa.table(
    {
        "n": pa.array([3, None, -2], pa.int64()),
        "small": pa.array([1, 2, 3], pa.int8()),
        "s": ["Ann", None, "b_b"],
        "d": [date(2024, 1, 31), None, date(2023, 12, 1)],
        "t": [datetime(2024, 1, 31, 12, 30), None, datetime(2023, 12, 1)],
        "p": pa.array([Decimal("1.25"), None, Decimal("-0.50")], pa.decimal128(10, 2)),
        "f": [0.5, None, -2.5],
        "b": [True, None, False],
    }
)
EXPRESSIONS: list[tuple[Any, list[Any], pa.DataType]] = [
    (col("p") * col("p"), [Decimal("1.5625"), None, Decimal("0.2500")], pa.decimal128(20, 4)),
    (col("p") + 1, [Decimal("2.25"), None, Decimal("0.50")], pa.decimal128(11, 2)),
    (1 - col("p"), [Decimal("-0.25"), None, Decimal("1.50")], pa.decimal128(11, 2)),
    (col("p") + Decimal("0.125"), [Decimal("1.375"), None, Decimal("-0.375")], pa.decimal128(12, 3)),
    (col("p") / 2, [0.625, None, -0.25], pa.float64()),
    (col("p") > Decimal("1"), [True, None, False], pa.bool_()),
    (col("p") == col("f"), [False, None, False], pa.bool_()),
    (col("n") / 0, [None, None, None], pa.float64()),
    (col("f") / (col("n") - 3), [None, None, 0.5], pa.float64()),
    (col("n") % 2, [1, None, 0], pa.int64()),
    (col("n") % 0, [None, None, None], pa.int64()),
    (col("d") < date(2024, 1, 1), [False, None, True], pa.bool_()),
    (col("d") < "2024-01-01", [False, None, True], pa.bool_()),
    (col("d") == datetime(2024, 1, 31), [True, None, False], pa.bool_()),
    (col("t") - col("d"), [timedelta(hours=12, minutes=30), None, timedelta(0)], pa.duration("us")),
    (
        col("t") + timedelta(hours=1),
        [datetime(2024, 1, 31, 13, 30), None, datetime(2023, 12, 1, 1)],
        pa.timestamp("us"),
    ),
    (col("d") - date(2024, 1, 1), [30, None, -31], pa.int64()),
    (col("d") + 1, [date(2024, 2, 1), None, date(2023, 12, 2)], pa.date32()),
    (
        col("d").add_interval(months=1),
        [datetime(2024, 2, 29), None, datetime(2024, 1, 1)],
        pa.timestamp("us"),
    ),
    (col("d").extract("year"), [2024, None, 2023], pa.int64()),
    (col("t").extract("hour"), [12, None, 0], pa.int64()),
    (col("t").truncate("hour"), [datetime(2024, 1, 31, 12), None, datetime(2023, 12, 1)], pa.timestamp("us")),
    (col("d").truncate("quarter"), [date(2024, 1, 1), None, date(2023, 10, 1)], pa.date32()),
    (col("s").like("%_b"), [False, None, True], pa.bool_()),
    (col("s").substr(-1), ["n", None, "b"], pa.large_string()),
    (col("s").length(), [3, None, 3], pa.int64()),
    (col("s").is_in(["Ann", "x"]), [True, None, False], pa.bool_()),
    (col("n").is_in([3, None]), [True, None, None], pa.bool_()),
    (case((col("n") > 0, "up"), (col("n") < 0, "down")), ["up", None, "down"], pa.large_string()),
    (case((col("b"), 1), default=2.5), [1.0, 2.5, 2.5], pa.float64()),
    (coalesce(col("n"), 7), [3, 7, -2], pa.int64()),
    (coalesce(col("p"), 0), [Decimal("1.25"), Decimal(0), Decimal("-0.50")], pa.decimal128(10, 2)),
    (col("f").cast(pa.int64()), [0, None, -2], pa.int64()),
    (col("p").cast("int64"), [1, None, -1], pa.int64()),
    (col("p").round(1), [Decimal("1.3"), None, Decimal("-0.5")], pa.decimal128(10, 1)),
    (col("p").floor(), [Decimal(1), None, Decimal(-1)], pa.decimal128(10, 0)),
    (col("s").try_cast(pa.int32()), [None, None, None], pa.int32()),
    (col("small") + col("n"), [4, None, 1], pa.int64()),
    (lit(date(2024, 1, 31)) == col("d"), [True, None, False], pa.bool_()),
    ((col("n") > 0) & (col("d") > date(2024, 1, 1)), [True, None, False], pa.bool_()),
    (~(col("d") > date(2024, 1, 1)), [False, None, True], pa.bool_()),
]


@pytest.mark.parametrize(("expr", "values", "kind"), EXPRESSIONS)
def test_values_and_types(expr: Any, values: list[Any], kind: pa.DataType) -> None:
    def build(scope: ps.Scope) -> Any:
        numbered = ROWS.append_column("row", pa.array([0, 1, 2]))
        rows = scope.column_collection(numbered).select("row", made=expr)
        stream = scope.to_stream(numbered).select("row", made=expr)
        assert rows.schema.field("made").type == kind
        return rows.capture(), stream.to_records().capture()

    collection, stream = ps.example(build)
    [(_, batch)] = collection.extract()
    assert batch["made"].to_pylist() == values
    assert batch.schema.field("made").type == kind
    [(_, records)] = stream.extract()
    assert [record["made"] for record in records] == values


@pytest.mark.parametrize("count", [3, 1000])
def test_few_rows_and_many_have_the_same_results(count: int) -> None:
    table = pa.table(
        {"n": range(count), "p": pa.array([Decimal(n) / 4 for n in range(count)], pa.decimal128(12, 2))}
    )

    def build(scope: ps.Scope) -> Any:
        rows = scope.column_collection(table)
        kept = rows.filter(col("p") > Decimal("0.25")).with_columns(x=col("p") * col("n"))
        return kept.aggregate([], n=ps.count(), x=col("x").sum()).capture()

    [(_, batch)] = ps.example(build).extract()
    wanted = [Decimal(n) / 4 * n for n in range(2, count)]
    assert batch.to_pylist() == [{"n": len(wanted), "x": sum(wanted), "diff": 1}]


@pytest.mark.parametrize("count", [3, 1000])
def test_a_division_by_0_is_null(count: int) -> None:
    table = pa.table({"n": range(count)})

    def build(scope: ps.Scope) -> Any:
        return scope.column_collection(table).select("n", y=1 / (col("n") - 1)).capture()

    [(_, batch)] = ps.example(build).extract()
    assert batch["y"].to_pylist() == [None if n == 1 else 1 / (n - 1) for n in range(count)]


@pytest.mark.parametrize(("expr", "_values", "_kind"), EXPRESSIONS)
def test_expressions_are_pickled(expr: Any, _values: Any, _kind: Any) -> None:
    assert repr(pickle.loads(pickle.dumps(expr))) == repr(expr)


BIG = pa.table({"k": [1, 2], "p": pa.array([Decimal(10) ** 30, Decimal(1)], pa.decimal128(38, 0))})


def test_a_row_without_a_result_is_an_error_that_names_it() -> None:
    def build(scope: ps.Scope) -> Any:
        return scope.column_collection(BIG).select("k", square=col("p") * col("p")).capture()

    with pytest.raises(
        OverflowError, match=r"\(col\(\"p\"\) \* col\(\"p\"\)\) has no result for the row \(1, 10+\)"
    ):
        ps.example(build)
    with pytest.raises(ValueError, match="has no result for the row"):
        ps.example(lambda scope: scope.column_collection(ROWS).select(x=col("s").cast(pa.int64())).capture())


def test_rows_that_cancel_are_no_error() -> None:
    def build(scope: ps.Scope) -> Any:
        rows = scope.column_collection(BIG)
        changes = pa.table(
            {
                **{name: pa.concat_arrays([BIG[name].combine_chunks()] * 2) for name in BIG.column_names},
                "time": pa.array([0] * 4, pa.uint64()),
                "diff": [1, 1, -1, 1],
            },
            schema=rows.updates().schema,
        )
        twice = scope.to_stream(changes).to_collection(diffs=True)
        return twice.filter(col("p") * col("p") > 0).select("k", square=col("p") * col("p")).capture()

    [(_, batch)] = ps.example(build).extract()
    assert batch.to_pylist() == [{"k": 2, "square": Decimal(1), "diff": 2}]


@pytest.mark.parametrize(
    ("expr", "error"),
    [
        (
            col("p") * col("p"),
            r"\(col\(\"p\"\) \* col\(\"p\"\)\)( > 0\))? has no result for the row \(1, 10+\)",
        ),
        (
            col("k") + (2**63 - 2),
            r"\(col\(\"k\"\) \+ 9223372036854775806\)( > 0\))? has no result for the row \(2, 1\)",
        ),
    ],
)
@pytest.mark.parametrize("keep", [False, True])
def test_rows_of_several_messages_cancel_until_their_time_is_complete(
    expr: Any, error: str, keep: bool
) -> None:
    def main(worker: ps.Worker) -> Any:
        with worker.dataflow() as scope:
            handle, rows = scope.new_collection(schema=BIG.schema)
            made = rows.filter(expr > 0) if keep else rows.select("k", n=expr)
            captured = made.select("k").capture()
        handle.insert(BIG)
        worker.step()
        handle.remove(BIG)
        handle.insert(BIG.slice(0, 1) if "k" in repr(expr) else BIG.slice(1, 1))
        handle.advance_to(1)
        worker.step()
        handle.insert(BIG)  # and they are there at this time
        handle.close()
        found = []
        try:
            worker.run()
        finally:
            found += captured.extract()
        return found

    with pytest.raises(OverflowError, match=error) as raised:
        ps.execute(main)
    said = " ".join(notes(raised.value))
    assert "filter" in said or "select" in said


def test_values_of_a_case_are_computed_for_their_rows_alone() -> None:
    def build(scope: ps.Scope) -> Any:
        safe = case((col("k") == 2, col("p") * col("p")), default=0)
        return scope.column_collection(BIG).select("k", square=safe).capture()

    [(_, batch)] = ps.example(build).extract()
    assert batch["square"].to_pylist() == [0, 1]


@pytest.mark.parametrize(
    ("make", "error", "message"),
    [
        (lambda: col("s").lower() + 1, ps.GraphError, "has no meaning for types"),
        (lambda: col("n").lower(), ps.GraphError, "lower.* has no meaning for type Int64: cast the value"),
        (lambda: col("d") > 3, ps.GraphError, "has no meaning for types Date32 and Int64"),
        (lambda: col("x").lower(), ps.GraphError, 'no column "x"'),
        (lambda: col("d").extract("eon"), ValueError, "is no part of a date"),
        (lambda: col("n").cast("number"), ValueError, "number"),
        (lambda: col("n").cast(3), TypeError, "a type is one of pyarrow's"),
        (lambda: case(), TypeError, "case takes pairs"),
        (lambda: coalesce(), TypeError, "coalesce takes values"),
        (lambda: col("n") + Decimal("NaN"), ValueError, "NaN is no number"),
    ],
)
def test_expressions_without_a_meaning_are_refused(make: Any, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        ps.example(lambda scope: scope.column_collection(ROWS).select(made=make()).capture())


def test_records_have_no_functions_of_columns() -> None:
    with pytest.raises(TypeError, match=r"lower\(\) is a function of columns, and these are records"):
        ps.example(lambda scope: scope.collection([("a",)]).map(ps.record[0].lower()).capture())


def test_top_k_has_orders_offsets_and_other_columns() -> None:
    table = pa.table({"k": [1, 1, 1, 2], "a": [1, 1, None, 4], "b": ["x", "y", "z", "w"]})

    def build(scope: ps.Scope) -> Any:
        rows = scope.column_collection(table)
        by_key = rows.top_k(1, ["a", "b"], by="k", descending=[False, True], nulls_first=False)
        rest = rows.top_k(None, "a", by=[], offset=2, others=["k", "b"])
        return by_key.capture(), rest.capture()

    by_key, rest = (
        captured.extract()[0][1].drop_columns(["diff"]).to_pylist() for captured in ps.example(build)
    )
    assert by_key == [{"k": 1, "a": 1, "b": "y"}, {"k": 2, "a": 4, "b": "w"}]
    assert rest == [{"a": None, "k": 1, "b": "z"}, {"a": 1, "k": 1, "b": "y"}]


def test_nulls_are_equal_in_joins_that_say_so() -> None:
    here, there = pa.table({"k": [1, None], "a": [1, 2]}), pa.table({"k": [None, 3], "b": [5, 6]})

    def build(scope: ps.Scope) -> Any:
        left, right = scope.column_collection(here), scope.column_collection(there)
        ways: list[Any] = ["inner", "left", "full", "semi", "anti"]
        return [left.join(right, on="k", how=how, nulls_equal=True).capture() for how in ways]

    counts = [batch.num_rows for captured in ps.example(build) for _, batch in captured.extract()]
    assert counts == [1, 2, 3, 1, 1]
