"""Operators that yield after a few updates, while frontiers move, give what recomputation gives.

Inputs move on between updates, each by itself, and updates are at times that are open for long: a
frontier comes while what an earlier one completed is still on its way.
"""

from __future__ import annotations

import itertools
from collections import Counter
from dataclasses import dataclass
from typing import Any

import pytest
from hypothesis import HealthCheck, given, note, settings
from hypothesis import strategies as st

import pointstamp as ps
from collection_terms import INPUTS, RECORDS, NoEndError, Term, build, evaluate, terms
from effort import examples
from small_fuel import fuel_of

LAST = 3
"""The last time that is looked at, in each coordinate."""

Point = tuple[int, int]


@dataclass(frozen=True)
class Move:
    """An update by a worker, at a time that is so much later than where the input stands; what follows it."""

    worker: int
    which: int
    ahead: Point
    record: tuple[int, int]
    diff: int
    forward: Point
    steps: int


POINTS = st.sampled_from([(0, 0), (0, 0), (1, 0), (0, 1), (2, 0), (1, 1)])
MOVES = st.builds(
    Move,
    worker=st.integers(0, 1),
    which=st.integers(0, INPUTS - 1),
    ahead=POINTS,
    record=RECORDS,
    diff=st.sampled_from([1, 1, 1, 1, 2, -1]),
    forward=POINTS,
    steps=st.integers(0, 3),
)


def later(point: Point, by: Point) -> Point:
    """The point so much later, and not after the last."""
    return min(LAST, point[0] + by[0]), min(LAST, point[1] + by[1])


def at_times(moves: list[Move], dims: int) -> list[tuple[Any, int, tuple[int, int], int]]:
    """The time, the input, the record and the diff of each update."""
    stands: dict[tuple[int, int], Point] = {}
    updates = []
    for move in moves:
        now = stands.get((move.worker, move.which), (0, 0))
        time = later(now, move.ahead)
        updates.append((time if dims == 2 else time[0], move.which, move.record, move.diff))
        stands[move.worker, move.which] = later(now, move.forward)
    return updates


def before(time: Any, other: Any) -> bool:
    """Whether a time is at or before another."""
    return all(a <= b for a, b in zip(time, other, strict=True)) if isinstance(time, tuple) else time <= other


def run(term: Term, moves: list[Move], workers: int, dims: int) -> Counter[Any]:
    """Counts the changes of each record at each time, of all workers."""

    def main(worker: ps.Worker) -> Any:
        with worker.dataflow(dims=dims) as scope:
            handles, collections = [], []
            for _ in range(INPUTS):
                handle, stream = scope.new_input()
                timed = stream.delay(lambda update, _: update[0])
                collections.append(timed.map(lambda update: update[1]).to_collection(diffs=True))
                handles.append(handle)
            captured = build(term, collections, []).capture()
        # One worker does what two were to do: its inputs stay at the least of where theirs would stand.
        stands: dict[tuple[int, int], Point] = {}
        for move in moves:
            if move.worker % worker.peers != worker.index:
                continue
            now = stands.get((move.worker, move.which), (0, 0))
            time = later(now, move.ahead)
            handle = handles[move.which]
            handle.send((time if dims == 2 else time[0], (move.record, move.diff)))
            stands[move.worker, move.which] = later(now, move.forward)
            mine = [w for w in range(2) if w % worker.peers == worker.index]
            points = [stands.get((w, move.which), (0, 0)) for w in mine]
            least = min(a for a, _ in points), min(b for _, b in points)
            handle.advance_to(least if dims == 2 else least[0])
            for _ in range(move.steps):
                worker.step()
        for handle in handles:
            handle.close()
        return captured

    changed: Counter[Any] = Counter()
    for captured in ps.execute(main, workers=workers):
        for time, records in captured.extract():
            for record, diff in records:
                changed[time, record] += diff
    return changed


SLOW = [HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.filter_too_much]


@pytest.mark.parametrize("workers", [1, 2])
@pytest.mark.parametrize("dims", [1, 2])
def test_work_that_is_cut_short_gives_what_recomputation_gives(workers: int, dims: int) -> None:
    @settings(max_examples=examples(40), deadline=None, suppress_health_check=SLOW)
    @given(terms(), st.lists(MOVES, min_size=4, max_size=20), st.sampled_from([1, 1, 2, 3, 7]))
    def property_(term: Term, moves: list[Move], fuel: int) -> None:
        updates = at_times(moves, dims)
        span = range(LAST + 1)
        times: list[Any] = list(itertools.product(span, span)) if dims == 2 else list(span)
        expected = {}
        for time in times:
            inputs: list[Counter[Any]] = [Counter() for _ in range(INPUTS)]
            for at, which, record, diff in updates:
                if before(at, time):
                    inputs[which][record] += diff
            inputs = [Counter({r: n for r, n in collection.items() if n}) for collection in inputs]
            try:
                expected[time] = evaluate(term, inputs, [])
            except NoEndError:
                return
        with fuel_of(fuel):
            changed = run(term, moves, workers, dims)
        for time in times:
            found: Counter[Any] = Counter()
            for (at, record), diff in changed.items():
                if before(at, time):
                    found[record] += diff
            found = Counter({record: count for record, count in found.items() if count})
            note(f"{term} at {time}: {found} should be {expected[time]}")
            assert found == expected[time]

    property_()
