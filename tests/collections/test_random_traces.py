"""Traces that are read, imported, closed and taken anew while their batches are sealed and merged.

What a trace gives at a time is what the updates at that time and before add up to, wherever work was
stopped; and an arrangement that was imported in the middle is exact from the trace's `since` on, by whatever
it is read.
"""

from __future__ import annotations

import itertools
from collections import Counter
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import pointstamp as ps
from effort import examples
from small_fuel import fuel_of

LAST = 4
"""The last time in each coordinate."""

Point = tuple[int, ...]
Action = tuple[Any, ...]

RECORDS = st.tuples(st.integers(0, 3), st.integers(0, 2))
POINTS = st.tuples(st.integers(0, 2), st.integers(0, 2))
CHANGES = st.tuples(RECORDS, st.sampled_from([1, 1, 2, -1]))
ACTIONS = st.one_of(
    # A batch, of more than another, so that not all are merged at once.
    st.tuples(st.just("round"), st.lists(CHANGES, min_size=1, max_size=6)),
    st.tuples(st.just("update"), st.integers(0, 1), POINTS, RECORDS, st.sampled_from([1, 1, 2, -1])),
    st.tuples(st.just("advance"), st.sampled_from([(0,), (1,), (0, 1), (0, 1)]), POINTS),
    st.tuples(st.just("step"), st.sampled_from([1, 2, 8])),
    st.tuples(st.just("read"), st.integers(0, 2)),
    st.tuples(st.just("allow"), st.integers(0, 2), POINTS),
    # With so many steps before the import is read.
    st.tuples(st.just("import"), st.integers(0, 2), st.sampled_from([0, 0, 8])),
    st.tuples(st.just("close"), st.integers(0, 2)),
)


def before(time: Point, other: Point) -> bool:
    """Whether a time is at or before another."""
    return all(a <= b for a, b in zip(time, other, strict=True))


def outer(point: Point) -> Any:
    """A time as Python has it."""
    return point[0] if len(point) == 1 else point


def points(times: list[Any]) -> list[Point]:
    """Times with coordinates."""
    return [time if isinstance(time, tuple) else (time,) for time in times]


def there(updates: list[tuple[Point, Any, int]], at: Point) -> Counter[Any]:
    """Adds up updates at a time and before."""
    total: Counter[Any] = Counter()
    for time, record, diff in updates:
        if before(time, at):
            total[record] += diff
    return Counter({record: count for record, count in total.items() if count})


def readers(arranged: Any) -> dict[str, Any]:
    """Returns readers of an arrangement that was imported, each of its own kind."""
    keys = arranged.to_collection().map(lambda pair: pair[0])
    return {
        "pairs": arranged.to_collection(),
        "count": arranged.count(),
        "least": arranged.min(),
        "two greatest": arranged.top_k(2),
        "sum": arranged.sum(),
        "list": arranged.map_groups(lambda _, values: [tuple(values)]),
        "distinct": arranged.to_collection().distinct(),
        "least of distinct": keys.distinct().map(lambda key: (key % 2, key)).min(),
        "join": arranged.join(arranged.count()),
    }


def expected_of(there: Counter[Any]) -> dict[str, Counter[Any]]:
    """Returns the results that the readers have of a collection."""
    lists: dict[int, list[tuple[int, int]]] = {}
    for (key, value), count in sorted(there.items()):
        lists.setdefault(key, []).append((value, count))
    counts = {key: sum(count for _, count in values) for key, values in lists.items()}
    positive = {key: [v for v, n in values for _ in range(n)] for key, values in lists.items()}
    distinct: dict[int, int] = {}
    for key, count in sorted(counts.items(), reverse=True):
        if count > 0:
            distinct[key % 2] = key
    return {
        "pairs": there,
        "count": Counter((key, count) for key, count in counts.items() if count),
        "least": Counter((key, values[0]) for key, values in positive.items() if values),
        "two greatest": Counter((key, value) for key, values in positive.items() for value in values[-2:]),
        "sum": Counter((key, sum(v * n for v, n in values)) for key, values in lists.items()),
        "list": Counter(
            (key, tuple(values))
            for key, counted in lists.items()
            if (values := [(value, count) for value, count in counted if count > 0])
        ),
        "distinct": Counter(record for record, count in there.items() if count > 0),
        "least of distinct": Counter(distinct.items()),
        "join": Counter(
            {(k, (v, counts[k])): n for k, values in lists.items() if counts[k] for v, n in values}
        ),
    }


class Program:
    """The steps of one worker, and what it read."""

    def __init__(self, worker: ps.Worker, dims: int, read: bool) -> None:
        self.worker, self.dims = worker, dims
        self.handles: list[Any] = []
        with worker.dataflow(dims=dims) as scope:
            streams = []
            for _ in range(2):
                handle, stream = scope.new_input()
                timed = stream.delay(lambda update, _: update[0]).map(lambda update: update[1])
                self.handles.append(handle)
                streams.append(timed.to_collection(diffs=True))
            first = streams[0].concat(streams[1]).arrange()
            if read:
                first.count().probe()
        self.arranged = [first]
        assert first.trace().since == [outer((0,) * dims)]
        self.stands = [(0,) * dims, (0,) * dims]
        self.reads: list[tuple[Point, Counter[Any]]] = []
        self.imports: list[tuple[list[Point], dict[str, Any]]] = []

    def later(self, which: int, by: Point) -> Point:
        return tuple(min(LAST, now + more) for now, more in zip(self.stands[which], by, strict=False))

    def trace(self, index: int) -> Any:
        """The trace of one of the arrangements, if it may be had."""
        try:
            return self.arranged[index % len(self.arranged)].trace()
        except ps.GraphError as error:
            if "kept nothing" in str(error):
                return None
            raise

    def act(self, action: Action, updates: list[tuple[Point, Any, int]]) -> None:
        kind, *given = action
        if kind == "update":
            which, ahead, record, diff = given
            time = self.later(which, ahead)
            updates.append((time, record, diff))
            if which % self.worker.peers == self.worker.index:
                self.handles[which].send((outer(time), (record, diff)))
        elif kind == "advance":
            inputs, by = given
            for which in inputs:
                self.stands[which] = self.later(which, by)
                if which % self.worker.peers == self.worker.index:
                    self.handles[which].advance_to(outer(self.stands[which]))
                else:
                    self.handles[which].close()
        elif kind == "round":
            by = tuple(1 for _ in self.stands[0])
            for record, diff in given[0]:
                self.act(("update", 0, (0, 0), record, diff), updates)
            self.act(("advance", (0, 1), by), updates)
            self.act(("step", 8), updates)
        elif kind == "step":
            for _ in range(given[0]):
                self.worker.step()
        elif (trace := self.trace(given[0])) is None:
            pass
        elif kind == "read":
            self.read(trace)
        elif kind == "allow":
            trace.allow_merging_before(outer(tuple(given[1][: self.dims])))
        elif kind == "import":
            since = points(trace.since)
            with self.worker.dataflow(dims=self.dims) as scope:
                arranged = scope.import_trace(trace)
                for _ in range(given[1]):
                    self.worker.step()
                captured = {name: made.capture() for name, made in readers(arranged).items()}
            self.arranged.append(arranged)
            self.imports.append((since, captured))
        elif self.worker.peers == 1:
            # Of several workers one may be left with nothing to import where another is not.
            trace.close()

    def read(self, trace: Any) -> None:
        """Reads at all times: complete times that are not merged give their contents, other times raise."""
        since, upper = points(trace.since), points(trace.upper)
        for at in itertools.product(range(LAST + 1), repeat=self.dims):
            if any(before(time, at) for time in upper):
                with pytest.raises(ps.TimeError, match="not complete"):
                    trace.get(0, at=outer(at))
            elif not any(before(time, at) for time in since):
                with pytest.raises(ps.TimeError, match="does not reach back"):
                    trace.get(0, at=outer(at))
            else:
                items = Counter({(key, value): count for key, value, count in trace.items(at=outer(at))})
                for key in range(4):
                    values = [((key, value), count) for value, count in trace.get(key, at=outer(at))]
                    assert values == sorted((r, n) for r, n in items.items() if r[0] == key)
                self.reads.append((at, items))


SLOW = [HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.filter_too_much]


@pytest.mark.parametrize("workers", [1, 2])
@pytest.mark.parametrize("dims", [1, 2])
def test_traces_give_what_updates_add_up_to(workers: int, dims: int) -> None:
    @settings(max_examples=examples(40), deadline=None, suppress_health_check=SLOW)
    @given(st.lists(ACTIONS, min_size=4, max_size=24), st.sampled_from([1, 2, 5, 1 << 17]), st.booleans())
    def property_(actions: list[Action], fuel: int, read: bool) -> None:
        def main(worker: ps.Worker) -> Any:
            updates: list[tuple[Point, Any, int]] = []
            program = Program(worker, dims, read)
            for action in actions:
                program.act(action, updates)
            for handle in program.handles:
                handle.close()
            worker.run()
            for index in range(len(program.arranged)):
                if (trace := program.trace(index)) is not None:
                    program.read(trace)
            imports = [
                (since, {name: captured.extract() for name, captured in captures.items()})
                for since, captures in program.imports
            ]
            return updates, program.reads, imports

        with fuel_of(fuel):
            results = ps.execute(main, workers=workers)
        updates = results[0][0]
        owners: dict[int, int] = {}
        for worker, (_, reads, imports) in enumerate(results):
            seen = [record for _, items in reads for record in items]
            seen += [record for _, read in imports for _, changes in read["pairs"] for record, _ in changes]
            for key, _ in seen:
                assert owners.setdefault(key, worker) == worker
        for worker, (_, reads, _) in enumerate(results):
            for at, items in reads:
                for record, count in there(updates, at).items():
                    if workers == 1 or owners.get(record[0]) == worker:
                        assert items[record] == count, at
                for record, count in items.items():
                    assert there(updates, at)[record] == count, at
        for shares in zip(*(imports for _, _, imports in results), strict=True):
            found = {
                name: [
                    (points([time])[0], record, diff)
                    for _, read in shares
                    for time, changes in read[name]
                    for record, diff in changes
                ]
                for name in shares[0][1]
            }
            for at in itertools.product(range(LAST + 1), repeat=dims):
                if all(any(before(time, at) for time in since) for since, _ in shares):
                    expected = expected_of(there(updates, at))
                    for name, changes in found.items():
                        assert there(changes, at) == expected[name], (name, at)

    property_()
