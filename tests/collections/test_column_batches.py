"""Collections of columns in large batches, which carry columns, against small ones, which carry rows."""

from __future__ import annotations

import math
from collections import Counter
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

import pointstamp as ps
from harness import WORKERS
from pointstamp import col

if TYPE_CHECKING:
    from collections.abc import Callable

# From 256 rows on a batch of updates carries columns; one of ten carries rows.
MANY, FEW = 1_000, 10

NUMBERS = pa.schema([("n", pa.int64()), ("x", pa.float64()), ("word", pa.string()), ("flag", pa.bool_())])


def numbers(rows: int) -> pa.Table:
    floats = [None, -0.0, 0.5, math.nan, -3.0, 1e19]
    return pa.table(
        [
            [index % 13 - 6 if index % 11 else None for index in range(rows)],
            [floats[index % 6] for index in range(rows)],
            [f"word {index % 5}" for index in range(rows)],
            [[True, False, None][index % 3] for index in range(rows)],
        ],
        schema=NUMBERS,
    )


def updates(build: Callable[[Any], Any], table: pa.Table, rows: int, workers: int = 1) -> Counter[Any]:
    """Counts the updates of a collection into which a table comes so many rows at a time, at two times."""

    def main(worker: ps.Worker) -> Any:
        with worker.dataflow() as scope:
            handle, collection = scope.new_collection(schema=table.schema)
            caught = build(collection).updates().capture()
        mine = table.slice(worker.index * len(table) // worker.peers, len(table) // worker.peers)
        for start in range(0, len(mine), rows):
            handle.insert(mine.slice(start, rows))
        handle.advance_to(1)
        handle.remove(mine.slice(0, len(mine) // 2))
        handle.close()
        worker.run()
        return [batch for _, batches in caught.extract() for batch in batches]

    found: Counter[Any] = Counter()
    for batches in ps.execute(main, workers=workers):
        for batch in batches:
            for *row, time, diff in zip(*batch.to_pydict().values(), strict=True):
                found[repr(row), time] += diff
    return Counter({change: diff for change, diff in found.items() if diff})


PROGRAMS: dict[str, Callable[[Any], Any]] = {
    "as they are": lambda c: c,
    "filter": lambda c: c.filter((col("n") > 0) & (col("x") < 1) | col("flag")),
    "select": lambda c: c.select(
        "word", twice=col("n") * 2, x=col("x") * -1, third=col("n") / 3, one=1, none=None
    ),
    "conditions": lambda c: c.select(
        a=col("n") > col("x"), b=col("word") == "word 3", c=~col("flag"), d=True
    ),
    "nulls": lambda c: c.filter(~col("n").is_null()).select(no=(col("x") > 0).is_null()),
    "guarded": lambda c: c.filter((col("n") != 0) & (col("n") / col("n") == 1)).select("n"),
    "concat": lambda c: c.concat(c.filter(col("n") > 0).negate(), c.rename({"n": "m"}).rename({"m": "n"})),
    "arranged": lambda c: c.select("word", "n").distinct(),
    "join": lambda c: c.join(c.select("n", other=col("word")).distinct(), on="n"),
    "aggregate": lambda c: c.aggregate(
        "word", n_sum=ps.col("n").sum(), x_count=ps.col("x").count(), n_max=ps.col("n").max()
    ),
}


@pytest.mark.parametrize("name", PROGRAMS)
@pytest.mark.parametrize("workers", WORKERS)
def test_many_rows_at_a_time_are_what_few_are(name: str, workers: int) -> None:
    table = numbers(MANY * workers)
    many = updates(PROGRAMS[name], table, MANY, workers)
    assert many
    assert many == updates(PROGRAMS[name], table, FEW, workers)


@pytest.mark.parametrize(
    ("build", "error", "said"),
    [
        (
            lambda c: c.select(y=col("n") + 1),
            OverflowError,
            r"\(col\(\"n\"\) \+ 1\) has no result for the row \(\d+,\): .* \+ is no int of 64 bits",
        ),
        (lambda c: c.filter(col("n") * 2 > 0), OverflowError, r"the result of \* is no int of 64 bits"),
    ],
)
@pytest.mark.parametrize("rows", [1, MANY])
def test_an_expression_without_a_result_is_the_same_error(
    build: Any, error: Any, said: str, rows: int
) -> None:
    table = pa.table({"n": [2**63 - 1] * rows})
    with pytest.raises(error, match=said):
        ps.example(lambda scope: build(scope.column_collection(table)).capture())


def test_a_strict_input_counts_the_rows_of_columns() -> None:
    table = pa.table({"n": list(range(MANY))})

    def main(worker: ps.Worker) -> Any:
        with worker.dataflow() as scope:
            handle, collection = scope.new_collection(schema=table.schema, strict=True)
            caught = collection.capture()
        handle.insert(table)
        with pytest.raises(ValueError, match="cannot be removed"):
            handle.remove(pa.concat_tables([table, table.slice(0, 1)]))
        handle.advance_to(1)
        handle.remove(table.slice(1))
        handle.close()
        worker.run()
        return caught.extract()

    [[(_, first), (_, second)]] = ps.execute(main)
    assert sorted(first.column("n").to_pylist()) == list(range(MANY))
    assert second.to_pydict() == {"n": list(range(1, MANY)), "diff": [-1] * (MANY - 1)}


@pytest.mark.parametrize("rows", [FEW, MANY])
def test_an_array_that_changes_after_it_was_given_changes_nothing(rows: int) -> None:
    def main(worker: ps.Worker) -> Any:
        with worker.dataflow() as scope:
            handle, collection = scope.new_collection(schema=pa.schema({"n": pa.int64(), "x": pa.float64()}))
            caught = collection.capture()
        frame = pd.DataFrame({"n": np.arange(rows), "x": np.full(rows, 0.5)})
        handle.insert(frame)
        frame["n"].to_numpy()[:] = 7
        frame["x"].to_numpy()[:] = 8.5
        handle.close()
        worker.run()
        return caught.extract()

    [[(_, batch)]] = ps.execute(main)
    assert batch.column("n").to_pylist() == list(range(rows))
    assert set(batch.column("x").to_pylist()) == {0.5}


@pytest.mark.parametrize("rows", [FEW, MANY])
def test_streams_with_times_are_collected_again(rows: int) -> None:
    table = numbers(rows)

    def main(worker: ps.Worker) -> Any:
        with worker.dataflow() as scope:
            handle, collection = scope.new_collection(schema=NUMBERS)
            with scope.iterative() as inner:
                stream = collection.enter(inner).select("n", "word").updates()
                again = stream.to_collection(diffs=True).filter(col("n") > 0).leave()
            kept = collection.select("n", "word").filter(col("n") > 0)
            caught = again.concat(kept.negate()).capture()
        handle.insert(table)
        handle.advance_to(2)
        handle.remove(table.slice(0, rows // 2))
        handle.close()
        worker.run()
        return caught.extract()

    assert ps.execute(main) == [[]]


@pytest.mark.parametrize("diffs", [False, True])
@pytest.mark.parametrize("rows", [FEW, MANY])
def test_an_array_that_is_filled_anew_changes_nothing_before(rows: int, diffs: bool) -> None:
    values, times = np.zeros(rows), np.zeros(rows, np.uint64)
    columns = {"x": pa.array(values)}
    if diffs:
        columns |= {"time": pa.array(times), "diff": pa.array(np.ones(rows, np.int64))}
    batch = pa.record_batch(columns)

    def main(worker: ps.Worker) -> Any:
        handle = ps.ArrowInput(batch.schema)
        with worker.dataflow() as scope:
            collection = scope.input_from(handle).to_collection(diffs=diffs)
            captured, probe = collection.capture(), collection.probe()
        for at in range(3):
            values[:], times[:] = at, at
            handle.send(batch)
            handle.advance_to(at + 1)
            worker.step_while(partial(probe.less_than, at + 1), timeout=60)
        handle.close()
        worker.run()
        return [(at, found.column("x").unique().to_pylist()) for at, found in captured.extract()]

    [found] = ps.execute(main)
    assert found == [(0, [0.0]), (1, [1.0]), (2, [2.0])]
