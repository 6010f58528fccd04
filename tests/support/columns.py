"""Random tables of columns, the rows of a dataflow on them, and the values that tests compare with."""

from __future__ import annotations

import decimal
import math
from collections import Counter
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from hypothesis import strategies as st

import pointstamp as ps

Rows = list[tuple[Any, ...]]

ANY_WORKERS = [1, 2, 3, 4, 6]
"""With `on_processes`, up to three workers in each of two processes, and two in each of three."""


def canonical(value: Any) -> Any:
    """A value that compares as the oracles mean it: NaN equals NaN, doubles to twelve digits."""
    if isinstance(value, float):
        return "nan" if math.isnan(value) else float(f"{value:.12g}")
    if isinstance(value, list | tuple):
        return tuple(map(canonical, value))
    return tuple(sorted(value.items())) if isinstance(value, dict) else value


def bag(rows: Any) -> Counter[Any]:
    return Counter(canonical(tuple(row.values()) if isinstance(row, dict) else tuple(row)) for row in rows)


def grouped(table: pa.Table, keys: list[str], wanted: list[tuple[str, str]]) -> pa.Table:
    """Groups by pyarrow's `group_by`, with NaN as the greatest number, which pyarrow skips.

    Its last release for Python 3.10 has no keys of `string_view`.
    """
    plain = [f.with_type(pa.string()) if f.type == pa.string_view() else f for f in table.schema]
    table_of_plain = table.cast(pa.schema(plain))
    greatest = [c for c, f in wanted if f == "max" and pa.types.is_floating(table.schema.field(c).type)]
    for column in greatest:
        table_of_plain = table_of_plain.append_column(f"{column} nan", pc.is_nan(table[column]))
    has_nan = [(f"{column} nan", "any") for column in greatest]
    found = table_of_plain.group_by(keys).aggregate([*wanted, *has_nan])
    for column in greatest:
        name, field = f"{column}_max", found.schema.field(f"{column}_max")
        nan = pa.scalar(math.nan, field.type)
        made = pc.if_else(found[f"{column} nan_any"].fill_null(False), nan, found[name])
        found = found.set_column(found.schema.get_field_index(name), field, made)
    found = found.drop_columns([f"{column} nan_any" for column in greatest])
    return found.cast(pa.schema([table.schema.field(f.name) if f.name in keys else f for f in found.schema]))


def run(build: Any, *feeds: list[tuple[int, pa.Table]], workers: int = 1) -> dict[int, list[dict[str, Any]]]:
    """The rows per time, of all workers; a feed is `(time, table)` pairs, taken by the workers in turns."""

    def main(worker: ps.Worker) -> Any:
        inputs = [ps.ArrowInput(feed[0][1].schema) for feed in feeds]
        with worker.dataflow() as scope:
            captured = build(*[rows.to_stream(scope) for rows in inputs]).capture()
        for rows, feed in zip(inputs, feeds, strict=True):
            for turn, (time, table) in enumerate(feed):
                rows.advance_to(time)
                if turn % worker.peers == worker.index:
                    rows.send(table)
                worker.step()
            rows.close()
        worker.run()
        return captured.extract()

    merged: dict[int, list[dict[str, Any]]] = {}
    for result in ps.execute(main, workers=workers):
        for time, batches in result:
            for batch in batches:
                batch.validate(full=True)
                merged.setdefault(time, []).extend(batch.to_pylist())
    return merged


# -------------------------------------------------------------------- strategies

KEYS: list[tuple[pa.DataType, Any]] = [
    (pa.int64(), st.integers(-3, 3) | st.just(2**63 - 1)),
    (pa.int8(), st.integers(-2, 2)),
    (pa.string(), st.sampled_from(["", "a", "b", "ab", "x" * 40])),
    (pa.large_string(), st.sampled_from(["", "a", "b"])),
    (pa.string_view(), st.sampled_from(["", "a", "b" * 30])),
    (pa.binary(), st.sampled_from([b"", b"\0", b"\0\0"])),
    (pa.binary(2), st.sampled_from([b"ab", b"ba"])),
    (pa.bool_(), st.booleans()),
    (pa.float64(), st.sampled_from([0.5, 1.0, math.nan, math.inf])),
    (pa.float16(), st.sampled_from([0.5, math.nan]).map(np.float16)),
    (pa.decimal128(9, 2), st.sampled_from([decimal.Decimal("1.50"), decimal.Decimal("-2.00")])),
    (pa.date32(), st.dates().map(lambda day: day.replace(year=2024, day=1))),
    (pa.timestamp("us", "UTC"), st.just(None)),
    (pa.dictionary(pa.int32(), pa.string()), st.sampled_from(["a", "b", "c"])),
    (pa.null(), st.none()),
]

VALUES: list[tuple[pa.DataType, Any, list[str]]] = [
    (pa.int64(), st.integers(-(2**47), 2**47), ["sum", "count", "min", "max", "mean"]),
    (pa.int8(), st.integers(-128, 127), ["sum", "count", "min", "max", "mean"]),
    (pa.uint64(), st.integers(0, 2**47), ["sum", "count", "min", "max", "mean"]),
    (pa.float64(), st.floats(-1e6, 1e6) | st.just(math.nan), ["sum", "count", "min", "max", "mean"]),
    (pa.float32(), st.floats(-1e3, 1e3, width=32), ["sum", "count", "min", "max", "mean"]),
    (pa.bool_(), st.booleans(), ["sum", "count", "min", "max", "mean"]),
    (pa.string(), st.text("ab", max_size=3), ["count", "min", "max"]),
    (pa.binary(1), st.sampled_from([b"a", b"b"]), ["count", "min", "max"]),
    (pa.decimal128(9, 2), st.decimals(-999, 999, places=2), ["sum", "count", "min", "max", "mean"]),
    (pa.decimal256(50, 1), st.decimals(-999, 999, places=1), ["sum", "count", "min", "max", "mean"]),
    (pa.date32(), st.dates(), ["count", "min", "max"]),
    (pa.timestamp("ms"), st.integers(0, 10**12), ["count", "min", "max"]),
    (pa.null(), st.none(), ["sum", "count", "min", "max", "mean"]),
]


@st.composite
def tables(draw: Any) -> tuple[pa.Table, list[str], list[tuple[str, str]]]:
    """A table, key columns, and aggregations."""
    size = draw(st.integers(0, 30))
    columns: dict[str, pa.Array] = {}
    for index, (data_type, values) in enumerate(
        draw(st.lists(st.sampled_from(KEYS), min_size=1, max_size=3))
    ):
        drawn = draw(st.lists(st.none() | values, min_size=size, max_size=size))
        plain = pa.types.is_dictionary(data_type)
        array = pa.array(drawn, pa.string() if plain else data_type)
        columns[f"k{index}"] = array.dictionary_encode() if plain else array
    keys = list(columns)
    wanted = []
    for index, (data_type, values, functions) in enumerate(
        draw(st.lists(st.sampled_from(VALUES), max_size=3))
    ):
        drawn = draw(st.lists(st.none() | values, min_size=size, max_size=size))
        columns[f"x{index}"] = pa.array(drawn, data_type)
        wanted += [(f"x{index}", function) for function in functions]
    return pa.table(columns), keys, wanted


def pieces(table: pa.Table, size: int) -> list[pa.Table]:
    return [table.slice(start, size) for start in range(0, max(len(table), 1), size)]
