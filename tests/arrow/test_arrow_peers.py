"""Other libraries with Arrow's PyCapsule interface: Polars, pandas and DuckDB."""

from __future__ import annotations

from typing import Any

import duckdb
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa

import pointstamp as ps


def passed(data: Any, schema: pa.Schema, fn: Any = lambda batch: batch) -> pa.Table:
    def main(worker: ps.Worker) -> Any:
        rows = ps.ArrowInput(schema)
        with worker.dataflow() as scope:
            captured = rows.to_stream(scope).map_batches(fn).capture()
        rows.send(data)
        rows.close()
        worker.run()
        return captured.extract()

    [[(_, batches)]] = ps.execute(main)
    return pa.Table.from_batches(batches)


def test_polars_there_and_back() -> None:
    frame = pl.DataFrame({"n": [1, 2, None], "s": ["a", None, "ü"], "x": [0.5, 1.0, None]})
    schema = pa.schema([("n", pa.int64()), ("s", pa.string()), ("x", pa.float64())])

    def double(batch: pa.RecordBatch) -> pl.DataFrame:
        return pl.DataFrame(batch).with_columns(pl.col("n") * 2)

    back = passed(frame, schema, double)
    assert back.schema == schema
    assert pl.DataFrame(back).equals(frame.with_columns(pl.col("n") * 2))


def test_polars_own_schema_and_memory() -> None:
    frame = pl.DataFrame({"n": np.arange(100_000), "s": ["a long string that is no inline view"] * 100_000})
    given = pa.table(frame)
    back = passed(frame, given.schema)
    assert back.schema.types == given.schema.types
    ours = back.column("n").chunk(0).buffers()[1].address
    assert ours == frame["n"].to_arrow().buffers()[1].address
    assert pl.DataFrame(back).equals(frame)


def test_pandas_and_duckdb() -> None:
    schema = pa.schema([("n", pa.int64()), ("x", pa.float64())])
    frame = pd.DataFrame({"n": [1, 2], "x": [0.5, 1.5]})
    expected = pa.table({"n": [1, 2], "x": [0.5, 1.5]}, schema=schema)
    assert passed(frame, schema).equals(expected)
    relation = duckdb.connect().sql(
        "select n::bigint as n, x::double as x from (values (1, 0.5), (2, 1.5)) t(n, x)"
    )
    assert passed(relation, schema).equals(expected)


def test_a_schema_from_another_library() -> None:
    rows = ps.ArrowInput(pl.DataFrame({"n": [1]}).to_arrow().schema)
    assert rows.schema.names == ["n"]
    assert ps.ArrowInput(pa.table({"n": [1]}).schema).schema == pa.schema([("n", pa.int64())])
