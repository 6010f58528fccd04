"""Updates that cancel are gone without further input, as soon as no reader can tell them apart any more."""

from __future__ import annotations

from typing import Any

import pytest

import pointstamp as ps
from small_fuel import fuel_of

MANY = 2_000
# More than it takes with little fuel; a worker that has nothing to do is through with them in no time.
STEPS = 20_000


def kept(*traces: ps.Trace[Any, Any]) -> int:
    """Counts the updates that traces hold."""
    return sum(trace._reads.updates for trace in traces)


def steps_until_empty(worker: ps.Worker, *traces: ps.Trace[Any, Any]) -> None:
    """Steps until traces hold nothing."""
    for _ in range(STEPS):
        if not kept(*traces):
            break
        worker.step()


@pytest.mark.parametrize("fuel", [50, 1 << 17])
def test_what_cancels_is_gone_once_main_lets_go_of_it(fuel: int) -> None:
    def main(worker: ps.Worker) -> tuple[int, int]:
        with worker.dataflow() as scope:
            handle, pairs = scope.new_collection()
            arranged, counts = pairs.arrange(), pairs.count().arrange()
            trace, counted = arranged.trace(), counts.trace()
            probes = [arranged.to_collection().probe(), counts.to_collection().probe()]
        for time, diff in enumerate([1, -1]):
            handle.update_many(((key, key), diff) for key in range(MANY))
            handle.advance_to(time + 1)
            for probe in probes:
                while probe.less_than(time + 1):
                    worker.step()
        assert trace.get(7, at=0) == [(7, 1)], "history is there while a reader may ask"
        before = kept(trace, counted)
        for one in (trace, counted):
            one.allow_merging_before(1)
        steps_until_empty(worker, trace, counted)
        assert trace.get(7) == counted.get(7) == []
        return before, kept(trace, counted)

    with fuel_of(fuel):
        ((before, after),) = ps.execute(main)
    assert before >= 2 * MANY
    assert after == 0


def test_what_operators_let_go_of_is_compacted_when_nothing_but_a_frontier_moves() -> None:
    """A join reads the arrangement, and releases it as its other side's frontier moves."""

    def main(worker: ps.Worker) -> tuple[int, int, list[Any]]:
        with worker.dataflow() as scope:
            left, pairs = scope.new_collection()
            right, others = scope.new_collection()
            arranged = pairs.arrange()
            trace = arranged.trace()
            joined = arranged.join(others.arrange())
            captured, probe = joined.capture(), joined.probe()
        for time, diff in enumerate([1, -1]):
            left.update_many(((key, key), diff) for key in range(MANY))
            left.advance_to(time + 1)
        right.insert((7, 7))
        trace.allow_merging_before(1)  # what main may ask for does not hold it back
        for _ in range(100):
            worker.step()
        before = kept(trace)
        right.advance_to(2)
        while probe.less_than(2):
            worker.step()
        steps_until_empty(worker, trace)
        after = kept(trace)
        left.close()
        right.close()
        worker.run()
        return before, after, captured.extract()

    ((before, after, found),) = ps.execute(main)
    assert before >= MANY
    assert after == 0
    assert found == [(0, [((7, (7, 7)), 1)]), (1, [((7, (7, 7)), -1)])]
