"""Inner, outer, semi and anti joins under random changes, against joins that are computed anew."""

from __future__ import annotations

from collections import Counter
from itertools import product
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import pointstamp as ps
from effort import examples
from pointstamp import key, left, right

HOW = ["inner", "left", "right", "full"]
SCHEMAS = [
    pa.schema({"k": pa.int64(), "n": pa.string(), "a": pa.int64()}),
    pa.schema({"b": pa.string(), "n": pa.string(), "k": pa.int64()}),
]
NULLS = st.sampled_from([None, 0, 1, 2])
TEXTS = st.sampled_from([None, "x", "y"])


def changes(records: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    """Sets of records for some times: a record of one set that the next lacks is removed there."""
    return st.lists(st.tuples(st.lists(records, max_size=6), st.lists(records, max_size=6)), max_size=5)


def run(build: Any, steps: list[tuple[Any, Any]], inputs: Any, give: Any, workers: int) -> list[Counter[Any]]:
    """Runs a join while its two sides change, and returns what it was after each step.

    Worker `index` gives the records at its places; so a record that moves in the list moves between workers.
    """

    def main(worker: ps.Worker) -> Any:
        with worker.dataflow() as scope:
            first, one = inputs(scope, 0)
            second, two = inputs(scope, 1)
            captured = build(one, two).capture()
        before: list[list[Any]] = [[], []]
        for time, step in enumerate(steps):
            for side, (handle, whole) in enumerate(zip((first, second), step, strict=True)):
                mine = whole[worker.index :: worker.peers]
                difference = Counter(mine)
                difference.subtract(before[side])
                before[side] = mine
                give(handle, side, {record: n for record, n in difference.items() if n})
                handle.advance_to(time + 1)
        for handle in (first, second):
            handle.close()
        worker.run()
        return captured.extract()

    found: Counter[Any] = Counter()
    after = []
    results = ps.execute(main, workers=workers)
    for time in range(len(steps)):
        for result in results:
            for at, updates in result:
                if at == time:
                    for record, diff in rows_of(updates):
                        found[record] += diff
        after.append(Counter({record: n for record, n in found.items() if n}))
    return after


def rows_of(updates: Any) -> Any:
    """Updates as pairs of a record and a diff."""
    if isinstance(updates, list):
        return updates
    return [(tuple(row.values())[:-1], row["diff"]) for row in updates.to_pylist()]


def one_sided(rows: list[Any], keys: list[Any], others: list[Any], how: str) -> Counter[Any]:
    """The rows whose key, at its place in `keys`, the others have, or do not have."""
    return Counter(row for row, k in zip(rows, keys, strict=True) if (k in others) == (how == "semi"))


def joined(one: list[Any], two: list[Any], how: str, is_known: Any) -> Counter[Any]:
    """The join of pairs ``(key, value)``, with None for what has no match."""
    made = [(a[0], a[1], b[1]) for a, b in product(one, two) if a[0] == b[0] and is_known(a[0])]
    keys = [{k for k, _ in side if is_known(k)} for side in (one, two)]
    if how in {"left", "full"}:
        made += [(k, value, None) for k, value in one if k not in keys[1]]
    if how in {"right", "full"}:
        made += [(k, None, value) for k, value in two if k not in keys[0]]
    return Counter(made)


@pytest.mark.parametrize("workers", [1, 2])
@pytest.mark.parametrize("arranged", [False, True])
@settings(max_examples=examples(15), deadline=None)
@given(
    steps=changes(st.tuples(NULLS, st.integers(0, 2))),
    how=st.sampled_from([*HOW, "semi", "anti"]),
    form=st.integers(0, 2),
)
def test_joins_of_records(workers: int, arranged: bool, steps: Any, how: Any, form: int) -> None:
    """None is a key like any other."""
    alone = how in {"semi", "anti"}
    fn: Any = None if alone else [None, lambda k, a, b: (k, (a, b)), (key, (left, right))][form]

    def build(one: Any, two: Any) -> Any:
        if arranged:
            return one.arrange().join(two.arrange() if form else two, fn, how=how)
        return one.join(two.arrange() if form == 1 else two, fn, how=how)

    def give(handle: Any, _side: int, difference: dict[Any, int]) -> None:
        handle.update_many(list(difference.items()))

    found = run(build, steps, lambda scope, _: scope.new_collection(), give, workers)
    for (one, two), result in zip(steps, found, strict=True):
        if alone:
            assert result == one_sided(one, [k for k, _ in one], [k for k, _ in two], how)
            continue
        expected = joined(one, two, how, lambda _: True)
        assert result == Counter({(k, (a, b)): n for (k, a, b), n in expected.items()})


def sides(on: str | list[str], step: Any) -> list[list[Any]]:
    """The rows of both sides as pairs of their key and the other columns, in the order of the result."""
    names = [on] if isinstance(on, str) else on
    made = []
    for schema, rows in zip(SCHEMAS, step, strict=True):
        rest = [name for name in schema.names if name not in names]
        dicts = [dict(zip(schema.names, row, strict=True)) for row in rows]
        made.append([(tuple(row[n] for n in names), tuple(row[n] for n in rest)) for row in dicts])
    return made


@pytest.mark.parametrize("workers", [1, 2])
@settings(max_examples=examples(40), deadline=None)
@given(
    steps=st.lists(
        st.tuples(
            st.lists(st.tuples(NULLS, TEXTS, st.integers(0, 1)), max_size=6),
            st.lists(st.tuples(TEXTS, TEXTS, NULLS), max_size=6),
        ),
        max_size=5,
    ),
    how=st.sampled_from([*HOW, "semi", "anti"]),
    on=st.sampled_from(["k", "n", ["k", "n"], ["n", "k"]]),
)
def test_joins_of_columns(workers: int, steps: Any, how: Any, on: Any) -> None:
    """A null in a key matches nothing."""

    def give(handle: Any, side: int, difference: dict[Any, int]) -> None:
        for sign, call in ((1, handle.insert), (-1, handle.remove)):
            rows = [row for row, n in difference.items() if n * sign > 0 for _ in range(abs(n))]
            names = SCHEMAS[side].names
            table = [dict(zip(names, row, strict=True)) for row in rows]
            call(pa.Table.from_pylist(table, schema=SCHEMAS[side]))

    def inputs(scope: ps.Scope, side: int) -> Any:
        return scope.new_collection(schema=SCHEMAS[side])

    found = run(lambda one, two: one.join(two, on, how=how), steps, inputs, give, workers)
    for step, result in zip(steps, found, strict=True):
        one, two = sides(on, step)

        def is_known(k: Any) -> bool:
            return None not in k

        if how in {"semi", "anti"}:
            expected = one_sided(step[0], [k for k, _ in one], [k for k, _ in two if is_known(k)], how)
        else:
            widths = [3 - len(on) if isinstance(on, list) else 2] * 2
            expected = Counter()
            for (k, a, b), n in joined(one, two, how, is_known).items():
                row = (*k, *(a or [None] * widths[0]), *(b or [None] * widths[1]))
                expected[row] += n
        assert result == expected


def test_an_outer_join_in_a_loop_is_that_of_every_turn() -> None:
    """Nodes that cannot be reached from 1 have None."""

    def build(scope: ps.Scope) -> Any:
        edges = scope.collection([(1, 2), (2, 3), (4, 5)])
        nodes = scope.collection([(n, "node") for n in range(1, 6)])

        def turn(inner: ps.Scope, reached: Any) -> Any:
            steps = reached.join(edges.enter(inner), lambda _, __, to: (to, "reached"))
            return steps.concat(reached).distinct()

        reached = scope.collection([(1, "reached")]).iterate(turn)
        with scope.iterative() as inner:
            inside = nodes.enter(inner).join(reached.enter(inner), how="left").leave()
        return nodes.join(reached, how="left").capture(), inside.capture()

    expected = [(0, [((n, ("node", "reached" if n < 4 else None)), 1) for n in range(1, 6)])]
    assert [capture.extract() for capture in ps.example(build)] == [expected, expected]


def test_what_is_no_way_to_join() -> None:
    def build(scope: ps.Scope) -> Any:
        one = scope.column_collection(pa.table({"k": [1]}))
        return one.join(one, "k", how="outer")  # type: ignore[arg-type]

    with pytest.raises(ValueError, match="how is one of 'inner', 'left', 'right', 'full', 'semi', 'anti'"):
        ps.example(build)
    with pytest.raises(ValueError, match="'semi', 'anti', not 'outer'"):
        ps.example(lambda scope: scope.collection([]).join(scope.collection([]), how="outer"))  # type: ignore[call-overload]


def test_a_one_sided_join_has_no_pairs_for_a_function() -> None:
    def build(scope: ps.Scope) -> Any:
        pairs = scope.collection([(1, 2)])
        return pairs.join(pairs, lambda *pair: pair, how="anti")  # type: ignore[call-overload]

    with pytest.raises(
        TypeError, match="a join with how='anti' makes no pairs for fn: leave fn out, and map the result"
    ):
        ps.example(build)


def test_a_one_sided_join_follows_positive_counts_of_keys() -> None:
    """A key of the right side is there if its count is positive; counts of the left side are carried."""

    def main(worker: ps.Worker) -> Any:
        with worker.dataflow() as scope:
            ours, left_side = scope.new_collection()
            theirs, right_side = scope.new_collection()
            met = left_side.join(right_side, how="semi").capture()
            alone = left_side.arrange().join(right_side, how="anti").capture()
        ours.update_many([(("a", 1), 2), (("b", 1), -1), (("c", 1), 1)])
        theirs.update_many([(("a", "x"), 3), (("b", "x"), 1), (("c", "x"), -1)])
        ours.close()
        theirs.close()
        worker.run()
        return met.extract(), alone.extract()

    [(met, alone)] = ps.execute(main)
    assert met == [(0, [(("a", 1), 2), (("b", 1), -1)])]
    assert alone == [(0, [(("c", 1), 1)])]


def test_an_aggregate_of_all_rows_is_there_without_any() -> None:
    """One row, also before the first and after the last, on any number of workers and in a scope."""
    schema = pa.schema({"x": pa.int64()})

    def main(worker: ps.Worker) -> Any:
        with worker.dataflow() as scope:
            handle, rows = scope.new_collection(schema=schema)
            wanted: dict[str, Any] = {
                "n": ps.count(),
                "values": ps.col("x").count(),
                "twice": (ps.col("x") * 2).sum(),
            }
            whole = rows.aggregate([], **wanted).capture()
            with scope.region("inner") as inner:
                inside = rows.enter(inner).aggregate([], **wanted).leave().capture()
        if worker.index == 1:
            handle.advance_to(1)
            handle.insert(pa.table({"x": [3, None, 4]}, schema=schema))
            handle.advance_to(2)
            handle.remove(pa.table({"x": [3, None, 4]}, schema=schema))
        handle.close()
        worker.run()
        return whole.extract(), inside.extract()

    for place in (0, 1):
        found = [update for result in ps.execute(main, workers=2) for update in result[place]]
        rows = [(time, *row.values()) for time, batch in found for row in batch.to_pylist()]
        empty = (0, 0, None)
        assert sorted(rows, key=str) == sorted(
            [(0, *empty, 1), (1, *empty, -1), (1, 3, 2, 14, 1), (2, 3, 2, 14, -1), (2, *empty, 1)], key=str
        )
