"""Collections in the plan: shared nodes, lowered operators, and objects usable before the block ends."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pyarrow as pa
import pytest

import pointstamp as ps
from pointstamp import col, graphs, left, record


def operators(build: Callable[[ps.Scope], Any]) -> list[str]:
    """The names of the operators that are made of what a function appends, without those of its inputs."""

    def main(worker: ps.Worker) -> list[str]:
        with worker.dataflow() as scope:
            build(scope)
        worker.drop_dataflow(scope.address[0])
        names = [operator.name for operator in scope.graph.operators.values()]
        return [name for name in names if name not in {"to_stream", "to_collection", "input"}]

    [names] = ps.execute(main)
    return names


def pairs_of(scope: ps.Scope) -> ps.Collection[tuple[int, int]]:
    """Some pairs."""
    return scope.collection([(1, 2), (1, 3), (2, 2)])


# ------------------------------------------------------------ traces


def test_a_trace_is_not_read_before_the_block_has_ended() -> None:
    def main(worker: ps.Worker) -> Any:
        with worker.dataflow() as scope:
            trace = pairs_of(scope).arrange().trace()
            reads: list[Callable[[], Any]] = [
                lambda: trace.get(1),
                lambda: trace.items(),
                lambda: trace.since,
                lambda: trace.upper,
                lambda: trace.allow_merging_before(1),
                lambda: scope.import_trace(trace),
            ]
            for read in reads:
                with pytest.raises(
                    ps.GraphError, match=r"whose `with` block has not ended: read it.*after that"
                ):
                    read()
            assert (repr(trace), trace.closed) == ("<Trace of a dataflow that is being built>", False)
        worker.run()
        return trace.get(1), list(trace.items())

    assert ps.execute(main) == [([(2, 1), (3, 1)], [(1, 2, 1), (1, 3, 1), (2, 2, 1)])]


def test_a_trace_that_is_closed_inside_the_block_stays_closed() -> None:
    def main(worker: ps.Worker) -> None:
        with worker.dataflow() as scope:
            arranged = pairs_of(scope).arrange()
            first = arranged.trace()
            first.close()
            second = arranged.trace()
            assert (first.closed, second.closed) == (True, False)
            with pytest.raises(ps.PointstampError, match="this trace is closed"):
                first.get(1)
        assert (first.closed, second.closed) == (True, False)
        worker.run()
        assert second.get(2) == [(2, 1)]
        with pytest.raises(ps.PointstampError, match="this trace is closed"):
            first.get(1)

    ps.execute(main)


def test_a_trace_is_taken_between_the_ends_of_two_blocks() -> None:
    def main(worker: ps.Worker) -> Any:
        with worker.dataflow() as scope:
            with scope.region() as inner:
                arranged = inner.collection([("a", 1)]).arrange()
            trace = arranged.trace()
        worker.run()
        return trace.get("a")

    assert ps.execute(main) == [[(1, 1)]]


@pytest.mark.parametrize("bring", ["arranged", "collection"])
def test_the_trace_of_what_has_entered_is_refused_at_its_line(bring: str) -> None:
    def main(worker: ps.Worker) -> None:
        with worker.dataflow() as scope:
            arranged = pairs_of(scope).arrange()
            with scope.iterative() as inner:
                entered = (
                    arranged.enter(inner) if bring == "arranged" else pairs_of(scope).enter(inner).arrange()
                )
                with pytest.raises(
                    ps.GraphError, match="only entered this one: take the trace of the arrang"
                ):
                    _trace = entered.trace()
        with pytest.raises(ps.GraphError, match="only entered this one"):
            _trace = entered.trace()

    ps.execute(main)


def test_an_imported_arrangement_keeps_what_there_is_at_its_line() -> None:
    """The importing dataflow still reads what the trace gives up inside the block, after the import."""

    def main(worker: ps.Worker) -> Any:
        with worker.dataflow() as scope:
            changes, pairs = scope.new_collection()
            trace, probe = pairs.arrange().trace(), pairs.probe()
        for time in range(3):
            changes.insert((1, time))
            changes.advance_to(time + 1)
        worker.step_while(lambda: probe.less_than(3))
        with worker.dataflow() as scope:
            imported = scope.import_trace(trace)
            trace.allow_merging_before(3)
            trace.close()
            captured = imported.to_collection().capture()
        changes.close()
        worker.run()
        return captured.extract()

    assert ps.execute(main) == [[(time, [((1, time), 1)]) for time in range(3)]]


# ------------------------------------------------------------ what is made


def made_by(build: Callable[[ps.Collection[Any]], Any]) -> list[str]:
    """The operators that a function makes of pairs."""
    return operators(lambda scope: build(pairs_of(scope)))


def test_an_arrangement_is_shared_by_all_that_read_it() -> None:
    def build(pairs: ps.Collection[Any]) -> None:
        pairs.arrange()
        pairs.arrange()
        pairs.join(pairs.min()).probe()
        pairs.join(pairs, how="semi").probe()
        pairs.distinct().probe()
        pairs.threshold(lambda _, n: n).probe()
        pairs.value_counts().probe()

    names = made_by(build)
    assert sorted(name for name in names if "arrange" in name) == [
        "arrange",
        "distinct: arrange",
        "distinct: arrange",  # of the keys of the semi join
    ]


@pytest.mark.parametrize(
    ("build", "expected"),
    [
        # Only its updates are read.
        (lambda pairs: pairs.distinct().probe(), ["distinct: arrange", "distinct", "probe"]),
        (lambda pairs: pairs.value_counts().probe(), ["value_counts: arrange", "value_counts", "probe"]),
        (lambda pairs: pairs.count().probe(), ["count: arrange", "count", "probe"]),
        # Nothing is read of them.
        (lambda pairs: pairs.min(), ["min: arrange", "min"]),
        (lambda pairs: pairs.distinct(), ["distinct: arrange", "distinct"]),
        # Their arrangement is.
        (lambda pairs: pairs.min().max(), ["min: arrange", "min", "max"]),
        (
            lambda pairs: pairs.value_counts().join(pairs.value_counts()),
            ["value_counts: arrange", "value_counts", "join"],  # the two are one
        ),
        (
            lambda pairs: pairs.join(pairs.map(record[0]).distinct().map((record, None)), how="semi"),
            ["join: arrange", "map", "distinct: arrange", "distinct", "map", "join"],
        ),
        # It is arranged otherwise than it is read.
        (
            lambda pairs: pairs.distinct().min(),
            ["distinct: arrange", "distinct", "min: arrange", "min"],
        ),
        (
            lambda pairs: pairs.value_counts().distinct(),
            ["value_counts: arrange", "value_counts", "distinct: arrange", "distinct"],
        ),
    ],
)
def test_a_reduction_is_made_in_the_forms_that_are_read(
    build: Callable[[ps.Collection[Any]], Any], expected: list[str]
) -> None:
    assert made_by(build) == expected


def test_a_reduction_gives_the_same_in_all_forms_at_once() -> None:
    def build(scope: ps.Scope) -> Any:
        updates, pairs = scope.new_collection()
        once = pairs.distinct()
        met = pairs.map((record, 0)).join(once.map((record, None)), how="semi")
        captured = once.capture(), once.value_counts().capture(), once.min().capture(), met.capture()
        updates.update_many([((1, 2), 2), ((1, 3), 1)])
        updates.advance_to(1)
        updates.update_many([((1, 2), -2), ((1, 3), 4)])
        updates.close()
        return captured

    once, counts, least, met = ps.example(build)
    assert once.extract() == [(0, [((1, 2), 1), ((1, 3), 1)]), (1, [((1, 2), -1)])]
    assert counts.extract() == [
        (0, [(((1, 2), 1), 1), (((1, 3), 1), 1)]),
        (1, [(((1, 2), 1), -1)]),
    ]
    assert least.extract() == [(0, [((1, 2), 1)]), (1, [((1, 2), -1), ((1, 3), 1)])]
    assert met.extract() == [
        (0, [(((1, 2), 0), 2), (((1, 3), 0), 1)]),
        (1, [(((1, 2), 0), -2), (((1, 3), 0), 4)]),
    ]


@pytest.mark.parametrize("times", [1, 2])
def test_keys_from_outside_are_made_distinct_outside(times: int) -> None:
    """However many scopes they enter."""

    def build(scope: ps.Scope) -> Any:
        pairs, numbers = pairs_of(scope), scope.collection([1, 1])
        with scope.region() as inner:
            pairs, keys = pairs.enter(inner), numbers.map((record, None)).enter(inner)
            if times == 1:
                return pairs.join(keys, how="semi").leave().capture()
            with inner.iterative() as loop:
                return pairs.enter(loop).join(keys.enter(loop), how="semi").leave().leave().capture()

    assert ps.example(build).extract() == [(0, [((1, 2), 1), ((1, 3), 1)])]

    def main(worker: ps.Worker) -> list[tuple[str, int]]:
        with worker.dataflow() as scope:
            build(scope)
        found = scope.graph.operators.values()
        return [(one.name, len(one.address)) for one in found if "arrange" in one.name]

    assert ps.execute(main) == [[("join: arrange", 2), ("distinct: arrange", 2)]]


def test_plans_of_any_length_are_lowered() -> None:
    def build(scope: ps.Scope) -> Any:
        numbers = scope.collection(range(3))
        for _ in range(600):
            numbers = numbers.consolidate().distinct().map(lambda n: n)
        with scope.iterative() as inner:
            return numbers.enter(inner).leave().capture()

    assert ps.example(build).extract() == [(0, [(0, 1), (1, 1), (2, 1)])]


# ------------------------------------------------------------ names


@pytest.mark.parametrize(
    "build",
    [
        lambda c: c.map(abs, name="X"),
        lambda c: c.map((record[1], record[0]), name="X"),
        lambda c: c.flat_map(list, name="X"),
        lambda c: c.filter(bool, name="X"),
        lambda c: c.filter(record[0] > 1, name="X"),
        lambda c: c.inspect(print, name="X"),
        lambda c: c.concat(c, name="X"),
        lambda c: c.negate(name="X"),
        lambda c: c.consolidate(name="X"),
        lambda c: c.distinct(name="X").probe(name="X"),
        lambda c: c.threshold(max, name="X"),
        lambda c: c.threshold(max, name="X").probe(name="X"),
        lambda c: c.value_counts(name="X").probe(name="X"),
        lambda c: c.join(c, name="X"),
        lambda c: c.join(c, (left,), name="X"),
        lambda c: c.join(c, how="semi", name="X"),
        lambda c: c.join(c, how="anti", name="X"),
        lambda c: c.map_groups(max, name="X"),
        lambda c: c.min(name="X"),
        lambda c: c.max(name="X"),
        lambda c: c.sum(name="X"),
        lambda c: c.mean(name="X"),
        lambda c: c.top_k(2, name="X"),
        lambda c: c.count(name="X"),
        lambda c: c.arrange(name="X"),
        lambda c: c.arrange(name="X").to_collection(name="X"),
        lambda c: c.arrange(name="X").join(c, name="X"),
        lambda c: c.arrange(name="X").count(name="X").probe(name="X"),
        lambda c: c.updates(name="X"),
        lambda c: c.capture(name="X"),
        lambda c: c.probe(name="X"),
        lambda c: c.scope.collection([1], name="X"),
        lambda c: c.scope.new_collection(name="X"),
    ],
)
def test_every_operator_of_a_method_has_its_name(build: Callable[[ps.Collection[Any]], Any]) -> None:
    names = made_by(build)
    assert names
    assert all(name == "X" or name.startswith("X: ") for name in names), names


@pytest.mark.parametrize(
    "build",
    [
        lambda c: c.filter(col("a") > 1, name="X"),
        lambda c: c.concat(c, name="X"),
        lambda c: c.negate(name="X"),
        lambda c: c.consolidate(name="X"),
        lambda c: c.distinct(name="X").probe(name="X"),
        lambda c: c.value_counts(name="X"),
        lambda c: c.join(c, "a", name="X"),
        lambda c: c.join(c, "a", how="semi", name="X"),
        lambda c: c.join(c, "a", how="anti", name="X"),
        lambda c: c.join(c, "a", how="full", name="X"),
        lambda c: c.min("b", by="a", name="X"),
        lambda c: c.max("b", by="a", name="X"),
        lambda c: c.top_k(2, "b", by="a", name="X"),
        lambda c: c.over("a", "b", place=ps.row_number(), name="X"),
        lambda c: c.union(c, name="X"),
        lambda c: c.intersect(c, name="X"),
        lambda c: c.intersect(c, distinct=False, name="X"),
        lambda c: c.except_(c, name="X"),
        lambda c: c.except_(c, distinct=False, name="X"),
        lambda c: c.sum("b", by="a", name="X"),
        lambda c: c.mean("b", by="a", name="X"),
        lambda c: c.count("a", name="X"),
        lambda c: c.aggregate("a", b_sum=ps.col("b").sum(), name="X"),
        lambda c: c.map_groups(max, by="a", of="b", schema=pa.schema([("n", pa.int64())]), name="X"),
        lambda c: c.updates(name="X"),
        lambda c: c.capture(name="X"),
        lambda c: c.probe(name="X"),
    ],
)
def test_every_operator_of_a_method_of_columns_has_its_name(build: Callable[[Any], Any]) -> None:
    rows = pa.table({"a": [1, 2], "b": [3, None]})
    names = operators(lambda scope: build(scope.column_collection(rows)))
    assert names
    assert all(name == "X" or name.startswith("X: ") for name in names), names


def test_an_imported_arrangement_has_its_name() -> None:
    def main(worker: ps.Worker) -> list[str]:
        with worker.dataflow() as scope:
            trace = pairs_of(scope).arrange().trace()
        with worker.dataflow() as scope:
            scope.import_trace(trace, name="X")
        return [operator.name for operator in scope.graph.operators.values()]

    assert ps.execute(main) == [["X"]]


def test_operators_of_graphs_have_the_function_in_front() -> None:
    names = operators(lambda scope: graphs.bfs(pairs_of(scope), scope.collection([1])))
    assert names
    assert all(name.startswith("graphs.bfs: ") for name in names), names


# ------------------------------------------------------------ loops and inputs


def test_a_variable_that_is_never_set_is_told_with_its_line() -> None:
    def main(worker: ps.Worker) -> None:
        with worker.dataflow() as scope, scope.iterative() as inner:
            inner.variable(scope.collection([1]).enter(inner))

    with pytest.raises(
        ps.GraphError, match=r"is never set: call set.*\(made at .*test_plan_of_coll.*\.py:\d+\)"
    ):
        ps.execute(main)


def test_a_variable_has_its_name() -> None:
    def build(scope: ps.Scope) -> None:
        with scope.iterative() as inner:
            variable = inner.variable(pairs_of(scope).enter(inner), name="X")
            variable.set(variable.collection.distinct(name="X"))

    names = operators(build)
    assert all(name == "X" or name.startswith("X: ") for name in names), names


def test_a_collection_takes_updates_inside_the_block_and_before_it_is_read() -> None:
    def main(worker: ps.Worker) -> Any:
        with worker.dataflow() as scope:
            changes, pairs = scope.new_collection()
            rows, table = scope.new_collection(schema=pa.schema([("a", pa.int64())]))
            changes.insert((1, 2))
            changes.advance_to(5)
            rows.insert(pa.table({"a": [7]}))
            rows.close()
            captured, columns, probe = pairs.min().capture(), table.capture(), pairs.probe()
            assert probe.less_than(1)
            worker.step()
            changes.insert((1, 1))
            changes.close()
        worker.run()
        [(_, batch)] = columns.extract()
        return captured.extract(), batch.to_pylist()

    expected = [(0, [((1, 2), 1)]), (5, [((1, 1), 1), ((1, 2), -1)])]
    assert ps.execute(main) == [(expected, [{"a": 7, "diff": 1}])]
