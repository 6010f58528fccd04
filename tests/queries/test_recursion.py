"""WITH RECURSIVE of tables that read each other, and loops with a number of turns, against recomputation."""

from __future__ import annotations

import random
from collections import Counter
from typing import Any

import pyarrow as pa
import pytest

import pointstamp as ps
from changing_tables import random_changes, states
from effort import EFFORT

SCHEMAS = {
    "edges": pa.schema({"a": pa.int64(), "b": pa.int64()}),
    "starts": pa.schema({"a": pa.int64()}),
}


def rows(draw: random.Random) -> Any:
    def make(table: str, number: int) -> list[tuple[int, ...]]:
        width = len(SCHEMAS[table])
        return [tuple(draw.randint(0, 6) for _ in range(width)) for _ in range(number)]

    return make


def contents(script: list[Any]) -> Any:
    """The tables after each change."""
    there: dict[str, Counter[Any]] = {name: Counter() for name in SCHEMAS}
    for changes in script:
        for name, given, diff in changes:
            for row in given:
                there[name][row] += diff
        yield {name: list(counts.elements()) for name, counts in there.items()}


def walks(edges: list[Any], starts: list[Any]) -> tuple[set[int], set[int]]:
    """The nodes at the end of walks with an even and with an odd number of edges."""
    even: set[int] = {row[0] for row in starts}
    odd: set[int] = set()
    while True:
        after = {b for a, b in edges if a in odd}, {b for a, b in edges if a in even}
        if after[0] <= even and after[1] <= odd:
            return even, odd
        even, odd = even | after[0], odd | after[1]


EVEN = "select a from starts union select edges.b from edges join odd on edges.a = odd.n"
BY_VIEW = "select edges.b from edges join even on edges.a = even.n"
BY_UNION = f"select a + 100 from starts where a > 100 union {BY_VIEW}"


@pytest.mark.parametrize("odd", [BY_VIEW, BY_UNION])
def test_tables_that_read_each_other_are_right_after_every_change(odd: str) -> None:
    query = (
        f"with recursive even(n) as ({EVEN}), odd(n) as ({odd}) "
        "select n, 0 as parity from even union select n, 1 from odd"
    )
    for seed in range(3 * EFFORT):
        make = rows(random.Random(seed))
        script = random_changes({"edges": make("edges", 8), "starts": make("starts", 1)}, make, seed, 6, 3)

        def build(scope: ps.Scope, tables: dict[str, ps.ColumnCollection]) -> ps.ColumnCollection:
            return scope.sql(query, **tables)

        found = states(build, SCHEMAS, script, workers=1 + seed % 2)
        for tables, result in zip(contents(script), found, strict=True):
            even, odds = walks(tables["edges"], tables["starts"])
            assert result == Counter({(n, 0) for n in even} | {(n, 1) for n in odds})


@pytest.mark.parametrize("turns", [1, 3])
def test_a_loop_of_so_many_turns_is_so_many_calls(turns: int) -> None:
    for seed in range(3 * EFFORT):
        make = rows(random.Random(seed))
        script = random_changes({"edges": make("edges", 8), "starts": make("starts", 2)}, make, seed, 6, 3)

        def build(scope: ps.Scope, tables: dict[str, ps.ColumnCollection]) -> ps.ColumnCollection:
            def step(inner: ps.Scope, at: ps.ColumnCollection) -> ps.ColumnCollection:
                return at.join(tables["edges"].enter(inner), "a").select(a=ps.col("b"))

            return tables["starts"].iterate(step, iterations=turns)

        found = states(build, SCHEMAS, script, workers=1 + seed % 2)
        for tables, result in zip(contents(script), found, strict=True):
            at = Counter(a for (a,) in tables["starts"])
            for _ in range(turns):
                after: Counter[int] = Counter()
                for a, b in tables["edges"]:
                    after[b] += at[a]
                at = after
            assert result == Counter({(n,): count for n, count in at.items() if count})


def test_a_number_of_turns_is_at_least_one() -> None:
    def build(scope: ps.Scope) -> None:
        scope.collection([1]).iterate(lambda _, numbers: numbers, iterations=0)

    with pytest.raises(ValueError, match="iterate takes a number of iterations, at least 1, not 0"):
        ps.example(build)
