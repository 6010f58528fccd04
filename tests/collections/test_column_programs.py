"""Collections of columns: several aggregations in one, functions of Python, and variables of loops."""

from __future__ import annotations

import random
from collections import Counter
from typing import Any

import pyarrow as pa
import pytest

import pointstamp as ps
from aggregates import named
from harness import WORKERS

SCHEMA = pa.schema([("city", pa.string()), ("day", pa.int32()), ("rain", pa.int64()), ("wind", pa.float64())])
WANTED = [
    ("rain", "sum"),
    ("rain", "count"),
    ("wind", "min"),
    ("wind", "max"),
    ("rain", "mean"),
    ("day", "max"),
]

Row = tuple[Any, ...]


def table(rows: list[Row], schema: pa.Schema = SCHEMA) -> pa.Table:
    columns: list[Any] = list(zip(*rows, strict=True)) or [[] for _ in schema.names]
    return pa.table(
        [pa.array(column, field.type) for column, field in zip(columns, schema, strict=True)], schema
    )


def at(results: list[Any], time: int) -> Counter[Row]:
    """Adds up a collection of columns at a time, from what each worker captured."""
    total: Counter[Row] = Counter()
    for changes in results:
        for when, batch in changes:
            if when <= time:
                for *row, diff in zip(*batch.to_pydict().values(), strict=True):
                    total[tuple(row)] += diff
    return Counter({row: count for row, count in total.items() if count})


@pytest.mark.parametrize("workers", WORKERS)
def test_aggregations_are_those_of_pyarrow_while_rows_come_and_go(workers: int) -> None:
    chance = random.Random(workers)

    def row() -> Row:
        rain = chance.choice([None, *range(-3, 4)])
        return (
            chance.choice(["Ulm", "Bonn", None]),
            chance.randrange(9),
            rain,
            chance.choice([None, 0.5, 2.0]),
        )

    there: list[Row] = []
    rounds: list[tuple[list[Row], list[Row]]] = []
    states = []
    for _ in range(8):
        gone = [there.pop(chance.randrange(len(there))) for _ in range(min(len(there), 5))]
        new = [row() for _ in range(7)]
        there.extend(new)
        rounds.append((gone, new))
        states.append(list(there))

    def main(worker: ps.Worker) -> Any:
        with worker.dataflow() as scope:
            days, collection = scope.new_collection(schema=SCHEMA)
            captured = [
                collection.aggregate("city", **named(WANTED)).capture(),
                collection.aggregate(
                    ["city", "day"], rain_sum=ps.col("rain").sum(), rain_min=ps.col("rain").min()
                ).capture(),
            ]
        for time, (gone, new) in enumerate(rounds):
            days.remove(table(gone[worker.index :: worker.peers]))
            days.insert(table(new[worker.index :: worker.peers]))
            days.advance_to(time + 1)
        days.close()
        worker.run()
        return [each.extract() for each in captured]

    results = ps.execute(main, workers=workers)
    for time, rows in enumerate(states):
        expected = table(rows).group_by("city").aggregate(WANTED)
        names = ["city", *(f"{column}_{function}" for column, function in WANTED)]
        wanted = Counter(zip(*(expected[name].to_pylist() for name in names), strict=True))
        assert at([each[0] for each in results], time) == wanted
        by_two = table(rows).group_by(["city", "day"]).aggregate([("rain", "sum"), ("rain", "min")])
        names = ["city", "day", "rain_sum", "rain_min"]
        wanted = Counter(zip(*(by_two[name].to_pylist() for name in names), strict=True))
        assert at([each[1] for each in results], time) == wanted


def test_a_function_makes_columns_of_a_keys_values() -> None:
    schema = pa.schema([("first", pa.int64()), ("name", pa.string())])

    def ranked(city: str, days: list[tuple[tuple[int, int], int]]) -> list[tuple[int, str]]:
        return [(day + rain * count, city.lower()) for (day, rain), count in days]

    def build(scope: ps.Scope) -> Any:
        rows = [("Ulm", 1, 10, None), ("Ulm", 1, 10, None), ("Bonn", 2, 5, None)]
        weather = scope.column_collection(table(rows))
        both = weather.map_groups(ranked, by="city", of=["day", "rain"], schema=schema)
        one = weather.map_groups(
            lambda _, days: [len(days)],
            by=["city", "day"],
            of="rain",
            schema=pa.schema([("kinds", pa.int64())]),
        )
        return both.capture(), one.capture()

    both, one = ps.example(build)
    assert at([both.extract()], 0) == Counter([("Ulm", 21, "ulm"), ("Bonn", 7, "bonn")])
    assert at([one.extract()], 0) == Counter([("Ulm", 1, 1), ("Bonn", 2, 1)])


@pytest.mark.parametrize("begins", ["with edges", "with nothing"])
@pytest.mark.parametrize("workers", WORKERS)
def test_variables_of_columns_define_each_other(workers: int, begins: str) -> None:
    """Nodes that an even, and an odd, number of edges leads to."""
    edges = [(0, 1), (1, 2), (2, 3), (3, 1), (5, 6)]
    schema = pa.schema([("node", pa.int64())])

    def main(worker: ps.Worker) -> Any:
        with worker.dataflow() as scope:
            mine = edges[worker.index :: worker.peers]
            graph = scope.column_collection(
                table(mine, pa.schema([("node", pa.int64()), ("to", pa.int64())]))
            )
            start = scope.column_collection(table([(0,)] if worker.index == 0 else [], schema))
            with scope.iterative() as inner:
                known = start.enter(inner)
                even: Any
                even = inner.variable(known) if begins == "with edges" else inner.variable(schema=schema)
                odd = inner.variable(schema=schema)
                along = graph.enter(inner)

                def step(nodes: ps.ColumnCollection) -> ps.ColumnCollection:
                    return nodes.join(along, on="node").select("to").rename({"to": "node"})

                even_next = step(odd.collection).concat(known).distinct()
                odd_next = step(even.collection).distinct()
                even.set(even_next)
                odd.set(odd_next)
                captured = even_next.leave().capture(), odd_next.leave().capture()
        worker.run()
        return [each.extract() for each in captured]

    results = ps.execute(main, workers=workers)
    assert at([each[0] for each in results], 0) == Counter([(0,), (2,), (1,), (3,)])
    assert at([each[1] for each in results], 0) == Counter([(1,), (3,), (2,)])


@pytest.mark.parametrize(
    ("build", "error", "said"),
    [
        (
            lambda c, _: c.aggregate("city", rain_first=ps.col("rain").first()),
            ps.GraphError,
            "not by 'first'",
        ),
        (lambda c, _: c.aggregate("city", snow_sum=ps.col("snow").sum()), ps.GraphError, "snow"),
        (
            lambda c, _: c.aggregate("city", city_sum=ps.col("city").sum()),
            ps.GraphError,
            "sum is not defined",
        ),
        (lambda c, _: c.aggregate("city"), ps.GraphError, "needs an aggregate or more"),
        (lambda c, _: c.to_records(), ps.GraphError, "column 'wind' is double"),
        (
            lambda c, _: c.map_groups(len, by="city", of="wind", schema=pa.schema([("n", pa.int64())])),
            ps.GraphError,
            "reduce takes integers and strings, and column 'wind' is double",
        ),
        (
            lambda c, inner: inner.variable(c.enter(inner)).set([1]),
            TypeError,
            "set to a collection of",
        ),
        (
            lambda c, inner: inner.variable(c.enter(inner)).set(c.enter(inner).select("day")),
            ps.GraphError,
            "variable",
        ),
    ],
)
def test_what_is_refused(build: Any, error: type[Exception], said: str) -> None:
    def program(scope: ps.Scope) -> None:
        collection = scope.column_collection(table([("Ulm", 1, 2, 3.0)]))
        with scope.iterative() as inner, pytest.raises(error, match=said):
            build(collection, inner)
        raise ArithmeticError("as far as that")

    with pytest.raises(ArithmeticError):
        ps.example(program)
