"""Window functions of collections: the verb against plain Python, at every time."""

from __future__ import annotations

import random
from collections import Counter
from typing import Any

import pyarrow as pa
import pytest

import pointstamp as ps
from changing_tables import plain, random_changes, states
from effort import EFFORT

SCHEMA = {"t": pa.schema({"k": pa.int64(), "o": pa.int64(), "x": pa.float64(), "s": pa.string()})}


def make(draw: random.Random) -> Any:
    def rows(_: str, number: int) -> list[tuple[Any, ...]]:
        return [
            (
                draw.choice([None, 1, 2]),
                draw.choice([None, 1, 2, 3]),
                draw.choice([None, -1.5, 0.0, 2.0]),
                draw.choice(["a", "b"]),
            )
            for _ in range(number)
        ]

    return rows


def ordered(rows: list[Any], descending: bool) -> list[Any]:
    """Rows by the second column, nulls least, and then by all columns."""

    def least(value: Any) -> tuple[bool, Any]:
        return value is not None, 0 if value is None else value

    rows = sorted(rows, key=lambda row: tuple(map(least, row)))
    return sorted(rows, key=lambda row: least(row[1]), reverse=descending)  # which keeps the order of equals


def windows(rows: list[Any], frame: str, descending: bool) -> Counter[Any]:
    """The results of all functions, from the definition of each."""
    made: Counter[Any] = Counter()
    for key in {row[0] for row in rows}:
        own = ordered([row for row in rows if row[0] == key], descending)
        for index, row in enumerate(own):
            first = next(i for i, other in enumerate(own) if other[1] == row[1])
            last = max(i for i, other in enumerate(own) if other[1] == row[1])
            end = {"rows": index + 1, "range": last + 1, "all": len(own)}[frame]
            seen = [other[2] for other in own[:end] if other[2] is not None]
            dense = len({other[1] for other in own[: first + 1]})
            lag = own[index - 1][3] if index > 0 else "none"
            lead = own[index + 2][2] if index + 2 < len(own) else None
            results = (
                (index + 1, first + 1, dense, lag, lead, len(seen), end),
                (sum(seen) if seen else None, min(seen, default=None), max(seen, default=None)),
                (sum(seen) / len(seen) if seen else None, own[0][3], own[end - 1][3]),
            )
            made[plain((*row, *results[0], *results[1], *results[2]))] += 1
    return made


@pytest.mark.parametrize("frame", ["range", "rows", "all"])
@pytest.mark.parametrize("descending", [False, True])
def test_windows_follow_changes(frame: Any, descending: bool) -> None:
    for seed in range(2 * EFFORT):
        rows = make(random.Random(seed))
        script = random_changes({"t": rows("t", 12)}, rows, seed, 6, 4)

        def build(scope: ps.Scope, tables: dict[str, ps.ColumnCollection]) -> ps.ColumnCollection:
            x, s = ps.col("x"), ps.col("s")
            return tables["t"].over(
                "k",
                "o",
                descending=descending,
                nulls_first=not descending,
                frame=frame,
                number=ps.row_number(),
                rank=ps.rank(),
                dense=ps.dense_rank(),
                before=s.lag(default="none"),
                after=x.lead(2),
                some=x.count(),
                every=ps.count(),
                total=x.sum(),
                least=x.min(),
                most=x.max(),
                mean=x.mean(),
                first=s.first(),
                last=s.last(),
            )

        found = states(build, SCHEMA, script, workers=1 + seed % 2)
        there: Counter[Any] = Counter()
        for changes, result in zip(script, found, strict=True):
            for _, given, diff in changes:
                for row in given:
                    there[row] += diff
            assert result == windows(list(there.elements()), frame, descending)


def test_a_sum_of_decimals_and_of_integers_has_its_type() -> None:
    from decimal import Decimal

    table = pa.table({"n": pa.array([1, 2], pa.int32()), "d": pa.array([Decimal("1.50"), Decimal("2.25")])})

    def build(scope: ps.Scope) -> Any:
        rows = scope.column_collection(table)
        return rows.over([], "n", a=ps.col("n").sum(), b=ps.col("d").sum(), c=ps.col("n").lag()).capture()

    [(_, changes)] = ps.example(build).extract()
    assert changes.schema.field("a").type == pa.int64()
    assert changes.schema.field("b").type == pa.decimal128(38, 2)
    assert changes.schema.field("c").type == pa.int32()
    assert changes["b"].to_pylist() == [Decimal("1.50"), Decimal("3.75")]


def test_a_sum_that_fits_no_column_is_an_error_with_its_row() -> None:
    table = pa.table({"n": [2**62, 2**62, 5]})

    def build(scope: ps.Scope) -> Any:
        return scope.column_collection(table).over([], total=ps.col("n").sum()).capture()

    with pytest.raises(OverflowError, match="column 'total' is Int64, which has no 9223372036854775813"):
        ps.example(build).extract()


def test_a_key_may_be_read_and_there_may_be_no_other_column() -> None:
    def build(scope: ps.Scope) -> Any:
        rows = scope.column_collection(pa.table({"k": [1, 1, 2]}))
        once = rows.over("k", n=ps.row_number()).capture()
        return once, rows.over("k", "k", a=ps.col("k").sum(), b=(ps.col("k") + 1).lag()).capture()

    once, read = (captured.extract()[0][1].to_pylist() for captured in ps.example(build))
    assert [(row["k"], row["n"]) for row in once] == [(1, 1), (1, 2), (2, 1)]
    assert {(row["k"], row["a"], row["b"], row["diff"]) for row in read} == {
        (1, 2, None, 1),
        (1, 2, 2, 1),
        (2, 2, None, 1),
    }


@pytest.mark.parametrize(
    ("how", "error", "message"),
    [
        ({"a": ps.col("n").median()}, ps.GraphError, "over has count, .*row_number.* and not median"),
        ({"a": ps.col("n") + 1}, TypeError, "over takes"),
        ({"n": ps.rank()}, ps.GraphError, "two columns the name 'n'"),
        ({"a": ps.rank(), "frame": "groups"}, ValueError, "frame is one of 'range', 'rows', 'all'"),
        ({}, ps.GraphError, "over needs a function"),
        ({"a": ps.col("s").sum()}, ps.GraphError, "sum is not defined for column 's'"),
        ({"a": ps.col("missing").lag()}, ps.GraphError, "missing"),
    ],
)
def test_mistakes_are_refused(how: dict[str, Any], error: type[Exception], message: str) -> None:
    def build(scope: ps.Scope) -> None:
        rows = scope.column_collection(pa.table({"k": [1], "n": [2], "s": ["a"]}))
        rows.over("k", "n", **how)

    with pytest.raises(error, match=message):
        ps.example(build)


def test_functions_of_rows_are_none_of_groups() -> None:
    def build(scope: ps.Scope) -> None:
        scope.column_collection(pa.table({"k": [1]})).aggregate("k", a=ps.rank())

    with pytest.raises(ps.GraphError, match=r"rank\(\) has a value for each row, .* write over\(\)"):
        ps.example(build)

    def of_stream(scope: ps.Scope) -> None:
        scope.to_stream(pa.table({"k": [1], "n": [1]})).aggregate("k", a=ps.col("n").var())

    with pytest.raises(ps.GraphError, match="aggregate of a stream has no var"):
        ps.example(of_stream)
