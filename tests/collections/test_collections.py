"""Traces, imports, captures, processes and mistakes of collections."""

from __future__ import annotations

import random
from collections import Counter
from typing import TYPE_CHECKING, Any

import pytest

import pointstamp as ps
from harness import run

if TYPE_CHECKING:
    from collections.abc import Callable


def arranged_numbers(
    worker: ps.Worker,
) -> tuple[ps.CollectionInput[Any], ps.Trace[Any, Any], ps.ProbeHandle, int]:
    """A dataflow that arranges a collection: its input, the trace, a probe behind it, and its number."""
    with worker.dataflow() as scope:
        numbers, collection = scope.new_collection()
        arranged = collection.arrange()
        return numbers, arranged.trace(), arranged.to_collection().probe(), scope.address[0]


def test_the_greatest_values_by_an_order() -> None:
    """Values of equal rank are compared themselves, and NaN is the greatest rank."""
    pairs = [("a", "ox"), ("a", "camel"), ("a", "bee"), ("a", "ant"), ("b", ""), ("b", "cat")]

    def build(scope: ps.Scope) -> Any:
        words = scope.collection(pairs if scope.index == 0 else [])
        by_length = words.top_k(2, len)
        nan = words.top_k(1, lambda word: len(word) or float("nan"))
        return by_length.capture(), nan.capture()

    found = run(2, build)
    lengths, nans = (
        [pair for both in found for _, some in both[which].extract() for pair in some] for which in (0, 1)
    )
    assert sorted(lengths) == [(("a", "bee"), 1), (("a", "camel"), 1), (("b", ""), 1), (("b", "cat"), 1)]
    assert sorted(nans) == [(("a", "camel"), 1), (("b", ""), 1)]


def test_a_trace_is_read_at_any_time_that_it_reaches() -> None:
    def main(worker: ps.Worker) -> None:
        with worker.dataflow() as scope:
            ages, collection = scope.new_collection()
            arranged = collection.arrange()
            trace, probe = arranged.trace(), arranged.to_collection().probe()
        with pytest.raises(ps.TimeError, match="complete at no time yet"):
            trace.get("ann")
        ages.insert(("ann", 1))
        ages.advance_to(1)
        ages.update_many([(("ann", 1), -1), (("ann", 2), 1), (("bob", 7), 3)])
        ages.advance_to(2)
        worker.step_while(lambda: probe.less_than(2))
        assert trace.upper == [2]
        assert trace.get("ann") == [(2, 1)]
        assert trace.get("ann", at=0) == [(1, 1)]
        assert list(trace.items()) == [("ann", 2, 1), ("bob", 7, 3)]
        with pytest.raises(ps.TimeError, match="not complete at 2 yet, only before 2"):
            trace.get("ann", at=2)
        trace.allow_merging_before(1)
        assert trace.since == [1]
        with pytest.raises(ps.TimeError, match="does not reach back to 0, only to 1"):
            trace.get("ann", at=0)
        trace.close()
        with pytest.raises(ps.PointstampError, match="this trace is closed"):
            trace.get("ann")
        ages.close()

    ps.execute(main)


@pytest.mark.parametrize("workers", [1, 2])
def test_a_trace_is_used_by_later_dataflows(workers: int) -> None:
    def main(worker: ps.Worker) -> Any:
        with worker.dataflow() as scope:
            edges, collection = scope.new_collection()
            arranged = collection.arrange()
            trace, probe = arranged.trace(), arranged.to_collection().probe()
        if worker.index == 0:
            edges.insert_many([(n, n + 1) for n in range(10)])
        edges.advance_to(1)
        worker.step_while(lambda: probe.less_than(1))
        with worker.dataflow() as scope:
            asked, queries = scope.new_collection()
            known = scope.import_trace(trace)
            trace.close()
            answers = queries.map(lambda n: (n, None)).join(known, lambda n, _, m: (n, m)).capture()
            twice = known.join(known, lambda _, a, b: (a, b)).capture()
        if worker.index == 0:
            asked.insert_many([3, 4])
            edges.remove((3, 4))
        asked.advance_to(1)
        edges.advance_to(2)
        if worker.index == 0:
            asked.insert(5)
        asked.close()
        edges.close()
        worker.run()
        return answers.extract(), twice.extract()

    answers: Counter[Any] = Counter()
    twice: Counter[Any] = Counter()
    for given, doubled in ps.execute(main, workers=workers):
        for time, changes in given:
            for record, diff in changes:
                answers[time, record] += diff
        for _, changes in doubled:
            for record, diff in changes:
                twice[record] += diff
    assert +answers == Counter({(0, (3, 4)): 1, (0, (4, 5)): 1, (1, (5, 6)): 1})
    assert answers[1, (3, 4)] == -1
    assert +twice == Counter({(n + 1, n + 1): 1 for n in range(10) if n != 3})


def test_an_import_of_other_coordinates_is_refused() -> None:
    def main(worker: ps.Worker) -> None:
        with worker.dataflow() as scope:
            edges, collection = scope.new_collection()
            trace = collection.arrange().trace()
        with (
            pytest.raises(ps.GraphError, match="have 1 coordinates, and those of scope"),
            worker.dataflow(dims=2) as scope,
        ):
            scope.import_trace(trace)
        edges.close()

    ps.execute(main)


@pytest.mark.parametrize("complete", [True, False])
def test_the_dataflow_of_an_imported_trace_goes_when_it_is_complete(complete: bool) -> None:
    """Its unsent records would be missing in the importing dataflow: an error, and no wait."""

    def main(worker: ps.Worker) -> Any:
        numbers, trace, probe, exporting = arranged_numbers(worker)
        with worker.dataflow() as scope:
            imported = scope.import_trace(trace).to_collection()
            captured, seen = imported.capture(), imported.probe()
        trace.close()
        numbers.insert((1, 2))
        numbers.advance_to(1)
        worker.step_while(lambda: probe.less_than(1) or seen.less_than(1))
        if complete:
            numbers.close()
            worker.step_while(lambda: not probe.done())
        worker.drop_dataflow(exporting)
        worker.run()
        return captured.extract()

    if complete:
        assert ps.execute(main) == [[(0, [((1, 2), 1)])]]
        return
    with pytest.raises(ps.GraphError, match="was dropped before it was complete: drop the dataflow that"):
        ps.execute(main)


@pytest.mark.parametrize("complete", [True, False])
def test_a_trace_is_imported_after_its_dataflow_only_if_it_is_complete(complete: bool) -> None:
    def main(worker: ps.Worker) -> Any:
        numbers, trace, probe, exporting = arranged_numbers(worker)
        numbers.insert((1, 2))
        numbers.advance_to(1)
        worker.step_while(lambda: probe.less_than(1))
        if complete:
            numbers.close()
            worker.step_while(lambda: not probe.done())
        worker.drop_dataflow(exporting)
        # It is read as before, and of what would complete it nothing is left.
        assert trace.get(1) == [(2, 1)]
        with worker.dataflow() as scope:
            captured = scope.import_trace(trace).to_collection().capture()
        worker.run()
        return captured.extract()

    if complete:
        assert ps.execute(main) == [[(0, [((1, 2), 1)])]]
        return
    with pytest.raises(ps.GraphError, match=r"dropped before it was complete, .*: import the trace before"):
        ps.execute(main)


def test_memory_follows_the_size_and_not_the_history() -> None:
    """Forty thousand changes to ten records leave a trace of a few updates: its reading stays exact."""

    def main(worker: ps.Worker) -> list[Any]:
        numbers, trace, probe, _ = arranged_numbers(worker)
        for time in range(2000):
            numbers.update_many([((key, time), 1) for key in range(10)])
            if time:
                numbers.update_many([((key, time - 1), -1) for key in range(10)])
            numbers.advance_to(time + 1)
            trace.allow_merging_before(time)
            if time % 100 == 99:
                worker.step_while(lambda now=time + 1: probe.less_than(now))  # type: ignore[misc]
        numbers.close()
        worker.run()
        assert trace._reads.updates < 2000
        return list(trace.items())

    assert ps.execute(main) == [[(key, 1999, 1) for key in range(10)]]


def test_records_come_as_they_went_in() -> None:
    records: list[Any] = [True, 2.0, "x", None, (1, False), b"y", frozenset([1.0])]
    [(_, found)] = ps.example(lambda scope: scope.collection(records).distinct().capture()).extract()
    assert sorted(repr(record) for record, _ in found) == sorted(map(repr, records))


def test_equal_records_of_unlike_types_are_one() -> None:
    def build(scope: ps.Scope) -> Any:
        mixed = scope.collection([(1, "int"), (1.0, "float"), (True, "bool")])
        return mixed.count().capture(), mixed.map(lambda pair: pair[0]).value_counts().capture()

    by_key, counts = ps.example(build)
    assert by_key.extract() == counts.extract() == [(0, [((1, 3), 1)])]


# ------------------------------------------------------------ mistakes


def refused(build: Any, error: type[Exception], match: str) -> None:
    with pytest.raises(error, match=match):
        ps.example(build)


def test_records_without_a_key_are_refused() -> None:
    refused(
        lambda s: s.collection([1]).min().capture(),
        TypeError,
        r"records of the form \(key, value\), and got 1",
    )
    refused(lambda s: s.collection([(1, 2, 3)]).arrange(), TypeError, r"got \(1, 2, 3\)")


def test_values_that_are_not_numbers_have_no_sum() -> None:
    refused(lambda s: s.collection([(1, "x")]).sum().capture(), TypeError, "sum adds up numbers, and got 'x'")


def test_what_a_function_returns_is_looked_at() -> None:
    pairs = [(1, 2)]
    refused(
        lambda s: s.collection(pairs).map_groups(lambda k, v: 7).capture(),
        TypeError,
        r"map_groups returns an iterable of records, not 7: return \[7\] for one",
    )
    refused(
        lambda s: s.collection(pairs).threshold(lambda r, n: "x").capture(), TypeError, "'x' is not the diff"
    )
    refused(lambda s: s.collection(pairs).map(lambda r: [r]).capture(), TypeError, "it cannot be hashed")


def test_an_exception_is_raised_unchanged_and_says_where() -> None:
    def build(scope: ps.Scope) -> Any:
        pairs = scope.collection([(1, 0)])
        return pairs.join(pairs, lambda k, a, b: a / b, ).capture()  # fmt: skip

    with pytest.raises(ZeroDivisionError) as caught:
        ps.example(build)
    assert "join" in "".join(getattr(caught.value, "__notes__", ["join"]))


def test_updates_are_looked_at_where_they_are_given() -> None:
    def main(worker: ps.Worker) -> None:
        with worker.dataflow() as scope:
            numbers, _ = scope.new_collection()
        with pytest.raises(ValueError, match="an update of diff 0 changes nothing"):
            numbers.update(1, 0)
        with pytest.raises(TypeError, match="'x' is not the diff of an update"):
            numbers.update(1, "x")  # type: ignore[arg-type]
        with pytest.raises(TypeError, match=r"an update is a pair \(record, diff\)"):
            numbers.update_many([1])  # type: ignore[list-item]
        with pytest.raises(TypeError, match="it cannot be hashed"):
            numbers.insert([1])
        numbers.close()
        with pytest.raises(ps.PointstampError):
            numbers.insert(1)

    ps.execute(main)


def test_variables_are_set_once() -> None:
    def never(scope: ps.Scope) -> None:
        with scope.iterative() as inner:
            inner.variable(scope.collection([1]).enter(inner))

    refused(never, ps.GraphError, "is never set: call set")

    def twice(scope: ps.Scope) -> None:
        with scope.iterative() as inner:
            variable: ps.Variable[ps.Collection[int]] = inner.variable()
            variable.set(variable.collection)
            variable.set(variable.collection)

    refused(twice, ps.GraphError, "this variable is set already")

    def outside(scope: ps.Scope) -> None:
        numbers = scope.collection([1])
        with scope.iterative() as inner:
            inner.variable(numbers)

    refused(outside, ps.GraphError, r"bring it in with enter\(scope\) first")

    def elsewhere(scope: ps.Scope) -> None:
        numbers = scope.collection([1])
        with scope.iterative() as inner:
            variable = inner.variable(numbers.enter(inner))
            variable.set(numbers)

    refused(elsewhere, ps.GraphError, "it comes round in its own scope only")


def test_variables_are_of_loops() -> None:
    """In a scope that counts no turns, updates of the loop would be spread over the dataflow's own times."""

    def root(scope: ps.Scope) -> None:
        scope.variable(scope.collection([1]))

    refused(root, ps.GraphError, r"make the variable in a scope of iterative\(\)")

    def region(scope: ps.Scope) -> None:
        with scope.region() as inner:
            inner.variable()

    refused(region, ps.GraphError, r"make the variable in a scope of iterative\(\)")

    def within(scope: ps.Scope) -> Any:
        with scope.iterative() as loop, loop.region() as inner:
            numbers = scope.collection([1]).enter(loop).enter(inner)
            variable = inner.variable(numbers)
            variable.set(variable.collection.map(lambda n: min(n + 1, 4)).concat(numbers).distinct())
            return variable.collection.leave().leave().distinct().capture()

    assert ps.example(within).extract() == [(0, [(1, 1), (2, 1), (3, 1), (4, 1)])]


def test_collections_of_other_scopes_are_refused() -> None:
    def build(scope: ps.Scope) -> None:
        pairs = scope.collection([(1, 2)])
        with scope.iterative() as inner:
            pairs.enter(inner).join(pairs)

    refused(build, ps.GraphError, r"bring it in with enter\(scope\), or out with leave\(\)")
    refused(lambda s: s.collection([1]).concat([2]), TypeError, "concat needs a collection")
    refused(lambda s: s.collection([1]).map(3), TypeError, "map needs a function")
    refused(lambda s: s.collection([1]).top_k(0), ValueError, "at least 1, not 0")
    refused(
        lambda s: s.collection([1]).iterate(lambda i, c: 3),
        TypeError,
        "returns the collection of the next turn",
    )


def test_counts_that_grow_out_of_bounds_are_an_error() -> None:
    def build(scope: ps.Scope) -> Any:
        many = scope.collection([((0, 0), 1 << 62), ((0, 0), 1 << 62)]).scope.to_stream([((0, 0), 1 << 40)])
        pairs = many.to_collection(diffs=True)
        return pairs.join(pairs).capture()

    refused(build, OverflowError, "a record's count left the range of 64 bits")


@pytest.mark.parametrize("count", [-(2**63), 1 - 2**63, 2**63 - 1])
def test_a_count_is_negated_as_it_is_or_refused(count: int) -> None:
    def build(scope: ps.Scope) -> Any:
        return scope.to_stream([("x", count)]).to_collection(diffs=True).negate().capture()

    if count == -(2**63):
        refused(build, OverflowError, "a record's count left the range of 64 bits")
    else:
        assert ps.example(build).extract() == [(0, [("x", -count)])]


@pytest.mark.parametrize("of", [lambda a, b: a, lambda a, b: (b, a), lambda a, b: (b, (None, a), b, -a)])
def test_keys_of_any_number_of_integers_are_found_among_many(of: Callable[[int, int], Any]) -> None:
    """In later rounds keys are looked up in an index, which is searched by the integers of that many."""
    made = random.Random(1)
    rounds = [[of(made.randrange(-40, 40), made.randrange(-3, 3)) for _ in range(200)] for _ in range(6)]
    # One that has another form than those that are there, last.
    rounds.append([("text", None), *rounds[0][:20]])

    def main(worker: ps.Worker) -> Any:
        with worker.dataflow() as scope:
            handle, keys = scope.new_collection()
            counts = keys.value_counts().capture()
        for at, records in enumerate(rounds):
            handle.advance_to(at)
            handle.insert_many(records)
        handle.close()
        return counts

    [counts] = ps.execute(main)
    there: Counter[Any] = Counter()
    for _, changes in counts.extract():
        for counted, diff in changes:
            there[counted] += diff
    expected = Counter(key for records in rounds for key in records)
    assert {counted: count for counted, count in there.items() if count} == dict.fromkeys(expected.items(), 1)
