"""Random dataflows of collections give, at every time, what evaluating them from scratch gives."""

from __future__ import annotations

import itertools
from collections import Counter
from typing import Any

import pytest
from hypothesis import HealthCheck, given, note, settings
from hypothesis import strategies as st

import pointstamp as ps
import processes_in_threads
from budgets import budgets, written
from collection_terms import INPUTS, RECORDS, NoEndError, Term, build, evaluate, terms
from effort import examples

Update = tuple[int, Any, tuple[int, int], Any, int]
"""Worker, input, time, record, diff."""


def updates(last: int) -> st.SearchStrategy[list[Update]]:
    times = st.tuples(st.integers(0, last), st.integers(0, last))
    diffs = st.sampled_from([1, 1, 1, 1, 2, -1])
    return st.lists(
        st.tuples(st.integers(0, 3), st.integers(0, INPUTS - 1), times, RECORDS, diffs),
        min_size=4,
        max_size=20,
    )


def run(
    term: Term, changes: list[Update], pauses: list[int], workers: int, processes: int, dims: int
) -> Counter[Any]:
    """Returns the output of the dataflow: how often each record changes at each time, of all workers."""

    def main(worker: ps.Worker) -> Any:
        with worker.dataflow(dims=dims) as scope:
            handles, collections = [], []
            for _ in range(INPUTS):
                handle, stream = scope.new_input()
                timed = stream.delay(lambda update, _: update[0])
                collections.append(timed.map(lambda update: update[1]).to_collection(diffs=True))
                handles.append(handle)
            captured = build(term, collections, []).capture()
        mine = [change for change in changes if change[0] % worker.peers == worker.index]
        for index, (_, which, time, record, diff) in enumerate(mine):
            handles[which].send((time if dims == 2 else time[0], (record, diff)))
            for _ in range(pauses[index % len(pauses)]):
                worker.step()
        # Whatever is before (1, 0) is complete from here on.
        for handle in handles:
            handle.close()
        return captured

    changed: Counter[Any] = Counter()
    if processes == 1:
        results = ps.execute(main, workers=workers)
    else:
        results = processes_in_threads.execute(main, processes, workers)
    for captured in results:
        for time, records in captured.extract():
            for record, diff in records:
                changed[time, record] += diff
    return changed


def check(
    term: Term, changes: list[Update], pauses: list[int], workers: int, processes: int, dims: int
) -> None:
    last = range(3)
    times: list[Any] = list(itertools.product(last, last)) if dims == 2 else list(last)

    def before(time: Any, other: Any) -> bool:
        return all(a <= b for a, b in zip(time, other, strict=True)) if dims == 2 else time <= other

    expected = {}
    for time in times:
        inputs: list[Counter[Any]] = [Counter() for _ in range(INPUTS)]
        for _, which, at, record, diff in changes:
            if before(at if dims == 2 else at[0], time):
                inputs[which][record] += diff
        inputs = [Counter({r: n for r, n in collection.items() if n}) for collection in inputs]
        try:
            expected[time] = evaluate(term, inputs, [])
        except NoEndError:
            return
    changed = run(term, changes, pauses, workers, processes, dims)
    for time in times:
        found: Counter[Any] = Counter()
        for (at, record), diff in changed.items():
            if before(at, time):
                found[record] += diff
        found = Counter({record: count for record, count in found.items() if count})
        note(f"{term} at {time}: {found} should be {expected[time]}")
        assert found == expected[time]


SLOW = [HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.filter_too_much]


@pytest.mark.parametrize("dims", [1, 2])
@pytest.mark.parametrize("workers", [1, 2])
def test_random_dataflows_whose_state_is_on_disk_are_what_recomputation_gives(
    workers: int, dims: int
) -> None:
    @settings(max_examples=examples(40), deadline=None, suppress_health_check=SLOW)
    @given(terms(), updates(2), st.lists(st.integers(0, 3), min_size=1, max_size=4))
    def property_(term: Term, changes: list[Update], pauses: list[int]) -> None:
        check(term, changes, pauses, workers, 1, dims)

    with budgets() as made:
        property_()
    assert written(made) > 0, "some state was on disk"


@pytest.mark.parametrize(("processes", "workers"), [(1, 1), (1, 2), (1, 4), (2, 1), (2, 2)])
@pytest.mark.parametrize("dims", [1, 2])
def test_random_dataflows_are_what_recomputation_gives(processes: int, workers: int, dims: int) -> None:
    examples = 150 if workers == processes == 1 else 40 if processes == 1 else 12

    @settings(max_examples=examples, deadline=None, suppress_health_check=SLOW)
    @given(terms(), updates(2), st.lists(st.integers(0, 3), min_size=1, max_size=4))
    def property_(term: Term, changes: list[Update], pauses: list[int]) -> None:
        check(term, changes, pauses, workers, processes, dims)

    property_()
