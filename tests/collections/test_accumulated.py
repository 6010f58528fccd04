"""Sums, counts and means of integers and decimals, which are kept as totals and not as values."""

from __future__ import annotations

import random
from decimal import Context, Decimal, localcontext
from typing import Any

import pyarrow as pa
import pytest

import pointstamp as ps
from pointstamp import col
from small_fuel import fuel_of

SCHEMA = pa.schema(
    {
        "k": pa.string(),
        "n": pa.int64(),
        "d": pa.decimal128(38, 2),
        "u": pa.uint64(),
        "b": pa.bool_(),
        "s": pa.string(),
    }
)


def row(draw: random.Random) -> dict[str, Any]:
    def some(value: Any) -> Any:
        return None if draw.random() < 0.2 else value

    return {
        "k": some(draw.choice(["a", "b"])),
        "n": some(draw.choice([draw.randint(-5, 5), draw.randint(-(2**61), 2**61)])),
        "d": some(
            Decimal(draw.choice([draw.randint(-500, 500), draw.randint(-(10**36), 10**36)])).scaleb(-2)
        ),
        "u": some(draw.choice([draw.randint(0, 5), 2**50])),
        "b": some(draw.random() < 0.5),
        "s": some("text"),
    }


AGGREGATES: dict[str, Any] = {
    "rows": ps.count(),
    "texts": col("s").count(),
    "n_sum": col("n").sum(),
    "n_mean": col("n").mean(),
    "d_sum": col("d").sum(),
    "d_count": col("d").count(),
    "u_sum": col("u").sum(),
    "b_sum": col("b").sum(),
    "b_mean": col("b").mean(),
}


def expected(rows: list[dict[str, Any]]) -> dict[str, Any]:
    def of(name: str) -> list[Any]:
        return [one[name] for one in rows if one[name] is not None]

    def total(name: str, zero: Any = 0) -> Any:
        return sum(of(name), zero) if of(name) else None

    return {
        "rows": len(rows),
        "texts": len(of("s")),
        "n_sum": total("n"),
        "n_mean": sum(of("n")) / len(of("n")) if of("n") else None,
        "d_sum": total("d", Decimal(0)),
        "d_count": len(of("d")),
        "u_sum": total("u"),
        "b_sum": total("b"),
        "b_mean": sum(of("b")) / len(of("b")) if of("b") else None,
    }


@pytest.mark.parametrize("workers", [1, 2])
@pytest.mark.parametrize("by", [["k"], []])
@pytest.mark.parametrize("many", [1, 300])
@pytest.mark.parametrize("seed", range(4))
def test_totals_follow_random_changes(seed: int, many: int, by: list[str], workers: int) -> None:
    draw = random.Random(seed)
    there: list[dict[str, Any]] = []
    steps = []
    for _ in range(6):
        gone = [one for one in there if draw.random() < 0.3]
        new = [row(draw) for _ in range(draw.choice([0, 1, many]))]
        there = [one for one in there if not any(one is old for old in gone)] + new
        groups: dict[Any, list[dict[str, Any]]] = {} if by else {(): []}
        for one in there:
            groups.setdefault(tuple(one[name] for name in by), []).append(one)
        with localcontext(Context(prec=50)):
            wanted = {key: expected(rows) for key, rows in groups.items()}
        if all(abs(one["n_sum"] or 0) < 2**63 for one in wanted.values()):
            steps.append((gone, new, wanted))
        else:
            there = [one for one in there if not any(one is other for other in new)] + gone

    def main(worker: ps.Worker) -> Any:
        with worker.dataflow() as scope:
            handle, rows = scope.new_collection(schema=SCHEMA)
            captured = rows.aggregate(by, **AGGREGATES).capture()
        for time, (gone, new, _) in enumerate(steps):
            if worker.index == time % worker.peers:
                handle.remove(pa.Table.from_pylist(gone, schema=SCHEMA))
                handle.insert(pa.Table.from_pylist(new, schema=SCHEMA))
            handle.advance_to(time + 1)
            worker.step_while(lambda: False)
        handle.close()
        worker.run()
        return captured.extract()

    with fuel_of(3 if many == 1 else 4096):
        found = [change for one in ps.execute(main, workers=workers) for change in one]
    state: dict[Any, Any] = {}
    for time, (_, _, wanted) in enumerate(steps):
        for at, changes in found:
            if at == time:
                for one in sorted(changes.to_pylist(), key=lambda one: one["diff"]):
                    key = tuple(one[name] for name in by)
                    values = {name: one[name] for name in AGGREGATES}
                    if one["diff"] < 0:
                        assert state.pop(key) == values
                    else:
                        state[key] = values
        assert state == wanted


def test_a_sum_of_more_than_its_column_holds_is_an_error_when_it_is_there() -> None:
    schema = pa.schema({"n": pa.int64(), "d": pa.decimal128(38, 0)})
    most = pa.table({"n": [2**63 - 1], "d": pa.array([Decimal(9 * 10**37)], pa.decimal128(38, 0))})

    def totals(column: str, cancel: bool) -> list[Any]:
        def main(worker: ps.Worker) -> Any:
            with worker.dataflow() as scope:
                handle, rows = scope.new_collection(schema=schema)
                captured = rows.aggregate([], total=col(column).sum()).capture()
            handle.insert(pa.concat_tables([most] * 3))
            if cancel:
                handle.remove(pa.concat_tables([most] * 2))
            handle.close()
            worker.run()
            return [one["total"] for _, changes in captured.extract() for one in changes.to_pylist()]

        found: list[Any] = ps.execute(main)[0]
        return found

    for column, value in (("n", 2**63 - 1), ("d", Decimal(9 * 10**37))):
        assert totals(column, cancel=True) == [value]
        with pytest.raises(OverflowError, match=r"column 'total' is .*, which has no"):
            totals(column, cancel=False)


def test_groups_keep_totals_and_not_values() -> None:
    table = pa.table({"k": [1, 2] * 5000, "n": range(10_000)})

    def build(scope: ps.Scope) -> Any:
        handle, rows = scope.new_collection(schema=table.schema, name="rows")
        return {"rows": handle, "sums": rows.aggregate("k", n=col("n").sum(), c=ps.count())}

    with ps.Interactive() as session:
        flow = session.dataflow(build)
        flow.rows.insert(table)
        flow.rows.advance_to(1)
        assert len(flow.sums.read()) == 1
        sizes = flow._sizes()
    assert sizes
    assert sum(rows for rows, _, _ in sizes.values()) < 20
