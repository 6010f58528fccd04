"""Rows that are where their key belongs are not moved again, and all others are."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest

import pointstamp as ps

SCHEMA = pa.schema([("a", pa.int64()), ("b", pa.int64())])
WORKERS = 2

Build = Callable[[ps.ArrowStream], ps.ArrowStream]


def swap(batch: pa.RecordBatch) -> pa.RecordBatch:
    return pa.record_batch([batch["b"], batch["a"]], schema=SCHEMA)


def add_up(rows: ps.ArrowStream, by: str = "a") -> ps.ArrowStream:
    other = "b" if by == "a" else "a"
    total: dict[str, Any] = {f"{other}_sum": ps.col(other).sum()}
    return rows.aggregate(by, **total)


def in_a_loop(rows: ps.ArrowStream) -> ps.ArrowStream:
    with rows.scope.iterative() as inner:
        return add_up(rows.exchange("a").enter(inner)).leave()


def exchanged_inside_and_read_outside(rows: ps.ArrowStream) -> ps.ArrowStream:
    with rows.scope.iterative() as inner:
        moved = rows.enter(inner).exchange("a")
        add_up(moved)
    return add_up(moved.leave())


def inside(build: Build) -> Build:
    """The same in a scope."""

    def built(rows: ps.ArrowStream) -> ps.ArrowStream:
        with rows.scope.region() as inner:
            return build(rows.enter(inner)).leave()

    return built


def twice_added_up(rows: ps.ArrowStream) -> ps.ArrowStream:
    return add_up(rows).join(rows.aggregate("a", b_max=ps.col("b").max()), "a")


def read_twice(rows: ps.ArrowStream) -> ps.ArrowStream:
    moved = rows.exchange("a")
    totals = add_up(moved)
    return moved.join(totals, "a").aggregate(
        "a", b_sum_max=ps.col("b_sum").max(), b_count=ps.col("b").count()
    )


def run(build: Build, workers: int) -> tuple[Counter[Any], list[str]]:
    """The rows of all workers, and the names of the operators."""
    numbers = range(100)

    def main(worker: ps.Worker) -> tuple[list[dict[str, Any]], list[str]]:
        source = ps.ArrowInput(SCHEMA)
        found: list[dict[str, Any]] = []

        def keep(info: ps.OperatorInfo) -> Any:
            def logic(input: Any) -> None:
                for _, batch in input:
                    found.extend(batch.to_pylist())

            return logic

        with worker.dataflow() as scope:
            build(source.to_stream(scope)).sink(ps.Pipeline(), "keep", keep)
        mine = numbers[worker.index :: worker.peers]
        source.send(pa.record_batch([[n % 7 for n in mine], [n % 5 for n in mine]], schema=SCHEMA))
        source.close()
        worker.run()
        return found, sorted(operator.name for operator in scope.graph.operators.values())

    results = ps.execute(main, workers=workers)
    assert all(names == results[0][1] for _, names in results)
    return Counter(tuple(row.values()) for rows, _ in results for row in rows), results[0][1]


@pytest.mark.parametrize(
    "build",
    [
        lambda rows: add_up(rows.exchange("a")),
        lambda rows: add_up(rows.exchange("b")),
        lambda rows: add_up(rows.exchange("a").inspect_batch(lambda time, batch: None)),
        lambda rows: add_up(rows.exchange("a").map_batches(swap)),
        lambda rows: add_up(rows.exchange("a").exchange("b")),
        lambda rows: add_up(rows.exchange("b").exchange("a")),
        lambda rows: add_up(rows.exchange("a").concat(rows.exchange("b"))),
        lambda rows: add_up(rows.exchange("a").concat(rows.exchange("a"))),
        lambda rows: add_up(rows.exchange("a").concat(rows)),
        lambda rows: add_up(rows.exchange(["a", "b"])),
        lambda rows: rows.exchange(["b", "a"]).aggregate(["b", "a"]),
        # which row of a key `distinct` keeps depends on what comes first
        lambda rows: add_up(rows.distinct("a")).aggregate("a", b_sum_count=ps.col("b_sum").count()),
        lambda rows: add_up(rows).aggregate("b_sum", a_count=ps.col("a").count()),
        lambda rows: (
            rows.exchange("a").join(add_up(rows, "a"), "a").aggregate("a", b_sum_sum=ps.col("b_sum").sum())
        ),
        lambda rows: (
            rows.exchange("b").join(add_up(rows, "a"), "a").aggregate("b", b_sum_sum=ps.col("b_sum").sum())
        ),
        lambda rows: rows.join(rows.exchange("b"), "b").aggregate("b", a_sum=ps.col("a").sum()),
        lambda rows: (
            rows.exchange("a").unary(ps.Exchange("a"), "own", passing).aggregate("a", b_sum=ps.col("b").sum())
        ),
        lambda rows: add_up(rows.exchange("a").partition(2, "b")[1]),
        lambda rows: add_up(rows.exchange("a").delay_batch(lambda time: time + 1)),
        lambda rows: add_up(rows.exchange("a").branch_when(lambda time: True)[1]),
        in_a_loop,
        exchanged_inside_and_read_outside,
        read_twice,
    ],
)
def test_every_key_comes_out_once_and_right(build: Build) -> None:
    assert run(build, WORKERS)[0] == run(build, 1)[0]


def passing(capability: ps.Capability, info: ps.OperatorInfo) -> Any:
    capability.drop()

    def logic(input: Any, output: Any) -> None:
        for cap, batch in input:
            assert all(key % info.peers == info.index for key in batch["a"].to_pylist())
            with output.session(cap) as session:
                session.give(batch)

    return logic


def test_broadcast_rows_are_not_in_place() -> None:
    rows, _ = run(lambda rows: add_up(rows.exchange("a").broadcast()), WORKERS)
    expected, _ = run(lambda rows: add_up(rows.concat(rows)), 1)
    assert rows == expected


def test_the_rows_are_on_the_worker_of_their_key() -> None:
    def check(rows: ps.ArrowStream) -> ps.ArrowStream:
        checked: ps.ArrowStream = rows.unary(ps.Pipeline(), "check", passing)
        return checked

    def build(rows: ps.ArrowStream) -> ps.ArrowStream:
        for made in (rows.exchange("a"), rows.distinct("a"), rows.join(add_up(rows), "a")):
            check(made)
        return check(rows.aggregate("a", b_max=ps.col("b").max()))

    assert len(run(build, WORKERS)[0]) == 7


@pytest.mark.parametrize(
    ("build", "exchanges"),
    [
        (lambda rows: add_up(rows.exchange("a")), 0),
        (lambda rows: add_up(rows.exchange("b")), 1),
        (lambda rows: add_up(rows.exchange("b").exchange("a")), 1),
        (lambda rows: twice_added_up(rows.exchange("a")), 0),
        (lambda rows: add_up(rows.exchange("a").exchange("a").distinct("a")), 1),
        (lambda rows: rows.distinct("a").exchange("a").inspect_batch(lambda time, batch: None), 0),
        (inside(lambda rows: add_up(rows.exchange("a"))), 0),
        (in_a_loop, 1),
        (exchanged_inside_and_read_outside, 1),
        (read_twice, 1),
    ],
)
def test_an_exchange_is_made_where_it_moves_rows_that_would_not_move_otherwise(
    build: Build, exchanges: int
) -> None:
    _, names = run(build, WORKERS)
    assert names.count("exchange") == exchanges


def test_an_exchange_for_an_aggregate_alone_adds_no_operator() -> None:
    assert run(lambda rows: add_up(rows.exchange("a")), WORKERS)[1] == run(add_up, WORKERS)[1]


def test_null_keys_and_several_columns_stay_in_place() -> None:
    schema = pa.schema([("k", pa.string()), ("n", pa.int64())])

    def main(worker: ps.Worker) -> list[Any]:
        source = ps.ArrowInput(schema)
        with worker.dataflow() as scope:
            firsts = source.to_stream(scope).distinct(["k", "n"])
            counted = firsts.aggregate(["k", "n"], n_count=ps.col("n").count()).aggregate(
                ["k", "n"], n_count_sum=ps.col("n_count").sum()
            )
            captured = counted.capture()
        keys = pa.array([None, "x", "y", None, "x"] * 10)
        source.send(
            pa.record_batch([keys, pc.fill_null(pc.binary_length(keys), 0).cast(pa.int64())], schema=schema)
        )
        source.close()
        worker.run()
        return [
            tuple(row.values()) for _, found in captured.extract() for b in found for row in b.to_pylist()
        ]

    rows = [row for found in ps.execute(main, workers=3) for row in found]
    assert Counter(rows) == Counter([(None, 0, 1), ("x", 1, 1), ("y", 1, 1)])
