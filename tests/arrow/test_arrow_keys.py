"""Routes of keys in columns are those of the same Python values, however the column is laid out."""

from __future__ import annotations

import datetime
import decimal
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import pointstamp as ps

PARTS = 997


def parts_of(*columns: pa.Array, parts: int = PARTS) -> list[int]:
    """The part of each row, by the columns, in the order of the rows."""
    rows = len(columns[0])
    names = [f"c{index}" for index in range(len(columns))]
    table = pa.table([pa.array(range(rows), pa.int64()), *columns], names=["row", *names])

    def main(worker: ps.Worker) -> Any:
        source = ps.ArrowInput(table.schema)
        with worker.dataflow() as scope:
            streams = source.to_stream(scope).partition(parts, names)
            captured = [stream.to_records().capture() for stream in streams]
        source.send(table)
        source.close()
        worker.run()
        return [[row["row"] for _, rows in part.extract() for row in rows] for part in captured]

    [found] = ps.execute(main)
    where = {row: part for part, rows in enumerate(found) for row in rows}
    return [where[row] for row in range(rows)]


def routes(values: list[Any], parts: int = PARTS) -> list[int]:
    return [ps.stable_hash(value) % parts for value in values]


INTS = st.integers(-(2**63), 2**63 - 1)
FLOATS = st.floats()
TEXTS = st.text(st.characters(exclude_categories=["Cs"]))


@given(st.lists(st.none() | INTS, max_size=20), st.lists(st.none() | FLOATS, max_size=20))
def test_numbers(ints: list[int | None], floats: list[float | None]) -> None:
    small = 7
    assert parts_of(pa.array(ints, pa.int64()), parts=small) == routes(ints, small)
    assert parts_of(pa.array(floats, pa.float64()), parts=small) == routes(floats, small)


@given(st.lists(st.none() | TEXTS, max_size=20))
def test_strings_in_every_layout(values: list[str | None]) -> None:
    expected = routes(values, 7)
    plain = pa.array(values, pa.string())
    for array in (
        plain,
        plain.cast(pa.large_string()),
        plain.cast(pa.string_view()),
        plain.dictionary_encode(),
        pa.array([*values, "x"], pa.string()).slice(0, len(values)),
        pa.array(["x", *values], pa.string()).slice(1),
    ):
        assert parts_of(array, parts=7) == expected
    data = [None if value is None else value.encode() for value in values]
    binary = pa.array(data, pa.binary())
    for array in (binary, binary.cast(pa.large_binary()), binary.cast(pa.binary_view())):
        assert parts_of(array, parts=7) == routes(data, 7)


@given(st.lists(st.tuples(st.none() | INTS, st.none() | TEXTS), max_size=20))
def test_several_columns_are_a_tuple(rows: list[tuple[int | None, str | None]]) -> None:
    columns = pa.array([row[0] for row in rows], pa.int64()), pa.array([row[1] for row in rows], pa.string())
    assert parts_of(*columns, parts=7) == routes(list(rows), 7)
    struct = pa.StructArray.from_arrays(columns, names=["a", "b"])
    assert parts_of(struct, parts=7) == routes(list(rows), 7)


@pytest.mark.parametrize(
    ("array", "values"),
    [
        (pa.array([1, -1, None], pa.int8()), [1, -1, None]),
        (pa.array([1, 2**64 - 1], pa.uint64()), [1, 2**64 - 1]),
        (pa.array([True, False, None]), [True, False, None]),
        (pa.array([1.5, -0.0, None], pa.float32()), [1.5, 0, None]),
        (pa.array([1.5, 3.0, None], pa.float16()), [1.5, 3, None]),
        (pa.array([None, None], pa.null()), [None, None]),
        (pa.array([b"abc", None], pa.binary(3)), [b"abc", None]),
        (pa.array([7, None, 7], pa.int64()).dictionary_encode(), [7, None, 7]),
        (pa.DictionaryArray.from_arrays(pa.array([0, 1, None], pa.int8()), ["a", None]), ["a", None, None]),
        (pa.RunEndEncodedArray.from_arrays([2, 3], pa.array(["a", "b"])), ["a", "a", "b"]),
        (pa.array([decimal.Decimal("7.00"), decimal.Decimal("-3.00")], pa.decimal128(9, 2)), [7, -3]),
        (pa.array([decimal.Decimal("7.00"), None], pa.decimal256(50, 2)), [7, None]),
        (pa.array([[1, 2], [], None, [1, None]], pa.list_(pa.int64())), [(1, 2), (), None, (1, None)]),
        (pa.array([[1, 2], None, [3, 4]], pa.list_(pa.int64(), 2)), [(1, 2), None, (3, 4)]),
        (pa.array([["a", "b"], ["a"]], pa.large_list(pa.string())), [("a", "b"), ("a",)]),
        (pa.array([{"a": [1]}, None], pa.struct([("a", pa.list_(pa.int32()))])), [((1,),), None]),
    ],
    ids=lambda value: str(value.type) if isinstance(value, pa.Array) else "",
)
def test_values_of_every_type(array: pa.Array, values: list[Any]) -> None:
    assert parts_of(array) == routes(values)
    # a slice of a larger array has the same values
    twice = pa.concat_arrays([array, array]) if not pa.types.is_run_end_encoded(array.type) else None
    if twice is not None:
        assert parts_of(twice.slice(1)) == routes([*values, *values][1:])


def test_decimals_and_times_hash_by_value() -> None:
    half = [decimal.Decimal("0.5")] * 2
    assert parts_of(pa.array(half, pa.decimal128(9, 1))) == parts_of(pa.array(half, pa.decimal256(40, 9)))
    days = [datetime.date(2024, 1, 1), datetime.date(2024, 1, 2), datetime.date(2024, 1, 1)]
    found = parts_of(pa.array(days, pa.date32()))
    assert found[0] == found[2] != found[1]
    hours = pa.array([datetime.datetime(2024, 1, 1, hour) for hour in range(24)], pa.timestamp("ns"))
    assert len(set(parts_of(hours, parts=4))) > 1, "whole hours in nanoseconds spread over the workers"


@pytest.mark.parametrize("workers", [2, 4])
def test_records_and_rows_of_a_key_meet(workers: int) -> None:
    keys = ["", "a", "pointstamp", "ü", "x" * 300]

    def main(worker: ps.Worker) -> Any:
        with worker.dataflow() as scope:
            records = scope.to_stream(keys if worker.index == 0 else [])
            rows = records.map(lambda key: {"k": key}).to_arrow(pa.schema([("k", pa.string())]))
            by_column = rows.exchange("k").to_records().map(lambda row: row["k"]).capture()
            by_value = records.exchange(lambda key: key).capture()
        worker.run()
        return by_column.extract(), by_value.extract()

    for by_column, by_value in ps.execute(main, workers=workers):
        assert by_column == by_value
