"""One arrangement for several scopes, and counts outside of loops, which need no arrangement of their own."""

from __future__ import annotations

import random
from collections import Counter
from typing import Any

import pytest

import pointstamp as ps
from harness import WORKERS
from pointstamp import _core, left, record, right

LAST = 2**64 - 1


def summed(changes: list[list[tuple[ps.Time, list[tuple[Any, int]]]]], at: int) -> Counter[Any]:
    """Adds up a collection at a time, from what each worker captured."""
    total: Counter[Any] = Counter()
    for worker in changes:
        for time, updates in worker:
            if isinstance(time, int) and time <= at:
                for record, diff in updates:
                    total[record] += diff
    return Counter({record: count for record, count in total.items() if count})


def hops(edges: Counter[tuple[int, int]], start: int) -> Counter[tuple[int, int]]:
    """Returns the distances of nodes from one, by search."""
    found, front = {start: 0}, [start]
    while front:
        node = front.pop(0)
        for source, target in edges:
            if source == node and target not in found:
                found[target] = found[node] + 1
                front.append(target)
    return Counter(found.items())


def arrangements(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The names of the arrangements that are built from here on."""
    made: list[str] = []
    arrange = _core.arrange

    def noted(stream: Any, by_key: bool, name: str) -> Any:
        made.append(name)
        return arrange(stream, by_key, name)

    monkeypatch.setattr(_core, "arrange", noted)
    return made


@pytest.mark.parametrize("workers", WORKERS)
@pytest.mark.parametrize("how", ["arranged", "collection", "region", "nested"])
def test_an_arrangement_is_used_in_a_loop(workers: int, how: str, monkeypatch: pytest.MonkeyPatch) -> None:
    chance = random.Random(workers)
    rounds = [[((chance.randrange(12), chance.randrange(12)), 1) for _ in range(9)] for _ in range(8)]
    for index, updates in enumerate(rounds[:-1]):
        gone = [(edge, -1) for edge, _ in updates[:4]]
        rounds[index + 1].extend(gone)

    def reach(scope: ps.Scope, edges: ps.Collection[Any]) -> ps.Collection[Any]:
        roots = scope.collection([(0, 0)] if scope.index == 0 else [])
        arranged = edges.arrange() if how == "arranged" else None

        def turn(inner: ps.Scope, reached: ps.Collection[Any]) -> ps.Collection[Any]:
            along: Any = edges.enter(inner) if arranged is None else arranged.enter(inner)
            further = reached.join(along, (right, left + 1))
            # The same index once more, and a semi join against a collection from outside.
            known = reached.join(edges.enter(inner), how="semi")
            return further.concat(known, roots.enter(inner)).min()

        return roots.iterate(turn)

    def main(worker: ps.Worker) -> Any:
        with worker.dataflow() as scope:
            handle, edges = scope.new_collection()
            if how == "region":
                with scope.region() as region:
                    result = reach(region, edges.enter(region)).leave()
            elif how == "nested":
                with scope.scoped(dims=2) as inner:
                    result = reach(inner, edges.enter(inner)).leave()
            else:
                result = reach(scope, edges)
            captured = result.capture()
        for time, updates in enumerate(rounds):
            handle.update_many(updates[worker.index :: worker.peers])
            handle.advance_to(time + 1)
            if time % 3 == 2:  # several times are open together
                for _ in range(5):
                    worker.step()
        handle.close()
        worker.run()
        return captured.extract()

    made = arrangements(monkeypatch)
    changes = ps.execute(main, workers=workers)
    # Edges by their source once, and their sources once; what is reached and what is proposed, in the loop.
    assert len(made) <= 4 * workers
    edges: Counter[tuple[int, int]] = Counter()
    for time, updates in enumerate(rounds):
        for edge, diff in updates:
            edges[edge] += diff
        assert summed(changes, time) == hops(+edges, 0), time


def test_what_an_entered_arrangement_refuses() -> None:
    def build(scope: ps.Scope) -> None:
        arranged = scope.collection([(1, 2)]).arrange()
        with scope.iterative() as inner:
            entered = arranged.enter(inner)
            with pytest.raises(ps.GraphError, match="take the trace of the arrangement there"):
                _ = entered.trace()
            with inner.iterative() as second, pytest.raises(ps.GraphError):
                arranged.enter(second)
            with pytest.raises(ps.GraphError):
                scope.collection([1]).enter(scope)

    ps.example(build)


@pytest.mark.parametrize("workers", WORKERS)
def test_a_collection_is_arranged_once_for_all_who_join_it(
    workers: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = arrangements(monkeypatch)

    def main(worker: ps.Worker) -> Any:
        with worker.dataflow() as scope:
            pairs = scope.collection([(n % 3, n) for n in range(9)][worker.index :: worker.peers])
            twice = pairs.join(pairs, lambda key, a, b: (key, a + b))
            captured = twice.concat(pairs.min()).capture()
        worker.run()
        return captured.extract()

    changes = ps.execute(main, workers=workers)
    expected = Counter((n % 3, n + m) for n in range(9) for m in range(9) if n % 3 == m % 3)
    expected.update((n, n) for n in range(3))
    assert summed(changes, 0) == expected
    assert len(made) == workers


@pytest.mark.parametrize("workers", WORKERS)
@pytest.mark.parametrize("how", ["here", "outside", "inside"])
def test_keys_that_are_distinct_are_not_arranged_again(
    workers: int, how: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The distinct records are read as updates, too, before and after the join, and from an inner scope."""
    chance = random.Random(11 + workers)
    pairs_of = [[((chance.randrange(9), chance.randrange(3)), 1) for _ in range(9)] for _ in range(8)]
    keys_of = [[(chance.randrange(9), chance.choice([1, 1, -1])) for _ in range(5)] for _ in range(8)]

    def main(worker: ps.Worker) -> Any:
        with worker.dataflow() as scope, scope.scoped(dims=2) as inner:
            (pair_handle, pairs), (key_handle, keys) = scope.new_collection(), scope.new_collection()
            if how == "inside":
                once = keys.enter(inner).distinct()
            elif how == "outside":
                once = keys.distinct().enter(inner)
            else:
                once = keys.distinct()
            pairs = pairs if how == "here" else pairs.enter(inner)
            known = once.map((record, None))
            results = [once, pairs.join(known, how="semi"), pairs.join(known, how="anti"), once.map(record)]
            found = [(each if how == "here" else each.leave()).capture() for each in results]
        for time, (some_pairs, some_keys) in enumerate(zip(pairs_of, keys_of, strict=True)):
            pair_handle.update_many(some_pairs[worker.index :: worker.peers])
            key_handle.update_many(some_keys[worker.index :: worker.peers])
            pair_handle.advance_to(time + 1)
            key_handle.advance_to(time + 1)
        pair_handle.close()
        key_handle.close()
        worker.run()
        return [captured.extract() for captured in found]

    made = arrangements(monkeypatch)
    changes = ps.execute(main, workers=workers)
    assert len(made) == 2 * workers  # the pairs by their keys, and the keys
    pairs: Counter[Any] = Counter()
    keys: Counter[int] = Counter()
    for time, (some_pairs, some_keys) in enumerate(zip(pairs_of, keys_of, strict=True)):
        for pair, diff in some_pairs:
            pairs[pair] += diff
        for key, diff in some_keys:
            keys[key] += diff
        once, met, rest, again = (summed(list(each), time) for each in zip(*changes, strict=True))
        assert once == again == Counter(list(+keys)), time
        assert met == Counter({pair: count for pair, count in pairs.items() if pair[0] in +keys}), time
        assert rest == pairs - met, time


@pytest.mark.parametrize("workers", WORKERS)
def test_counts_follow_what_comes_and_goes(workers: int) -> None:
    chance = random.Random(7 + workers)
    rounds = [
        [((chance.randrange(6), chance.randrange(3)), chance.choice([1, 1, 1, -1])) for _ in range(20)]
        for _ in range(10)
    ]

    def main(worker: ps.Worker) -> Any:
        with worker.dataflow() as scope:
            handle, pairs = scope.new_collection()
            distinct, counts, by_key = pairs.distinct(), pairs.value_counts(), pairs.arrange().count()
            both = counts.map(lambda pair: (pair[0][0], pair[1])).join(by_key).capture()
            # Read as updates, and as an arrangement.
            found = [each.capture() for each in (distinct, counts, by_key)]
        for time, updates in enumerate(rounds):
            handle.update_many(updates[worker.index :: worker.peers])
            handle.advance_to(2 * time + 2)
            if time % 4 == 3:
                for _ in range(6):
                    worker.step()
        handle.close()
        worker.run()
        return [captured.extract() for captured in [*found, both]]

    results = ps.execute(main, workers=workers)
    there: Counter[Any] = Counter()
    for time, updates in enumerate(rounds):
        for pair, diff in updates:
            there[pair] += diff
        keys: Counter[int] = Counter()
        for (key, _), count in there.items():
            keys[key] += count
        distinct, counts, by_key, both = (summed(list(each), 2 * time) for each in zip(*results, strict=True))
        assert distinct == Counter(pair for pair, count in there.items() if count > 0)
        assert counts == Counter(item for item in there.items() if item[1])
        assert by_key == Counter(item for item in keys.items() if item[1])
        expected = Counter(
            (pair[0], (count, keys[pair[0]])) for pair, count in there.items() if count and keys[pair[0]]
        )
        assert both == expected


@pytest.mark.parametrize("message", [LAST, 0])
def test_a_loop_that_passes_the_last_time_is_an_error(message: int) -> None:
    """The time of the message, and that of an update in it."""

    def build(scope: ps.Scope) -> Any:
        with scope.iterative() as inner:
            late: ps.Collection[Any] = (
                inner.to_stream([LAST]).delay(lambda turn, _: (0, turn)).to_collection()
            )
            if message == 0:
                # One message for both: a reduction sends what it owes at several times with one capability.
                late = late.concat(inner.collection([LAST])).map(lambda turn: (turn, None)).count()
            variable: ps.Variable[Any] = inner.variable()
            variable.set(late.concat(variable.collection.filter(lambda _: False)))
            return variable.collection.leave().capture()

    with pytest.raises(ps.TimeError, match=rf"{LAST}.* loop that advances times by \[0, 1\]"):
        ps.example(build)


def test_collections_of_two_dataflows_are_told_of_import_trace() -> None:
    def main(worker: ps.Worker) -> None:
        with worker.dataflow() as scope:
            ours = scope.collection([(1, 2)])
            with worker.dataflow() as other:
                theirs = other.collection([(1, 3)])
                with pytest.raises(
                    ps.GraphError, match=r"of one dataflow, .*import_trace\(arranged.trace\(\)\)"
                ):
                    theirs.join(ours, lambda key, a, b: (key, a, b))

    ps.execute(main)


def test_a_trace_is_read_at_the_latest_time_that_is_complete() -> None:
    """Times have two coordinates: what is open at (0, 3) and at (2, 0) leaves (1, 2) complete."""

    def main(worker: ps.Worker) -> list[Any]:
        with worker.dataflow(dims=2) as scope:
            ours, collection = scope.new_collection()
            theirs, others = scope.new_collection()
            arranged = collection.concat(others).arrange()
            trace, probe = arranged.trace(), arranged.to_collection().probe()
        ours.insert(("k", "at (0, 0)"))
        ours.advance_to((1, 0))
        ours.insert(("k", "at (1, 0)"))
        ours.advance_to((2, 0))
        theirs.advance_to((0, 3))
        worker.step_while(lambda: probe.less_than((1, 3)) and probe.less_equal((1, 2)))
        found = [sorted(value for value, _ in trace.get("k"))]
        theirs.close()
        worker.step_while(lambda: probe.less_equal((1, 9)))
        found.append(sorted(value for value, _ in trace.get("k")))
        return found

    assert ps.execute(main) == [[["at (0, 0)", "at (1, 0)"]] * 2]
