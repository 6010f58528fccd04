"""Traces that are taken while the dataflow runs, and what they hold."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from typing import Any

import pytest

import pointstamp as ps
from small_fuel import fuel_of

Pairs = ps.Collection[tuple[int, int]]
Feed = Callable[[int], None]


def settle(worker: ps.Worker, time: int, *probes: ps.ProbeHandle) -> None:
    """Steps until a time has passed some probes."""
    worker.step_while(lambda: any(probe.less_than(time) for probe in probes))


def dataflow(
    worker: ps.Worker, read: bool = False
) -> tuple[ps.Arranged[int, int], Feed, ps.CollectionInput[Any]]:
    """An arrangement, read by another operator or by none, and what feeds a pair and completes its time."""
    with worker.dataflow() as scope:
        handle, pairs = scope.new_collection()
        arranged = pairs.arrange()
        probe = arranged.to_collection().probe()
        if read:
            probe = arranged.min().probe()

    def feed(time: int) -> None:
        handle.advance_to(time)
        handle.insert((time % 2, time))
        handle.advance_to(time + 1)
        worker.step_while(lambda: probe.less_than(time + 1))

    return arranged, feed, handle


def test_a_trace_that_is_taken_late_from_what_nobody_read_is_refused() -> None:
    def main(worker: ps.Worker) -> None:
        arranged, feed, _ = dataflow(worker)
        feed(0)
        # It kept nothing; an empty trace would be wrong at every time.
        with pytest.raises(
            ps.GraphError, match=r"kept nothing of what came before.*while the dataflow is being built"
        ):
            _trace = arranged.trace()
        feed(1)
        with pytest.raises(ps.GraphError, match="kept nothing"):
            _trace = arranged.trace()

    ps.execute(main)


def test_a_trace_that_is_taken_late_before_anything_came_is_whole() -> None:
    def main(worker: ps.Worker) -> None:
        arranged, feed, handle = dataflow(worker)
        handle.advance_to(3)
        for _ in range(10):
            worker.step()
        trace = arranged.trace()
        feed(3)
        feed(5)
        assert list(trace.items(at=4)) == [(1, 3, 1)]
        assert list(trace.items()) == [(1, 3, 1), (1, 5, 1)]

    ps.execute(main)


def test_a_trace_that_is_taken_late_reads_what_others_kept() -> None:
    def main(worker: ps.Worker) -> None:
        arranged, feed, handle = dataflow(worker, read=True)
        feed(0)
        feed(1)
        trace = arranged.trace()
        assert (trace.since, trace.upper) == ([2], [2])
        with pytest.raises(ps.TimeError, match="does not reach back to 1"):
            trace.get(0)
        feed(2)
        assert trace.get(0) == [(0, 1), (2, 1)]
        handle.close()
        worker.run()
        assert trace.upper == []
        assert trace.get(1) == [(1, 1)]

    ps.execute(main)


def test_a_trace_is_taken_anew_where_the_one_before_was_closed() -> None:
    def main(worker: ps.Worker) -> None:
        arranged, feed, _ = dataflow(worker, read=True)
        first = arranged.trace()
        assert arranged.trace() is first
        feed(0)
        first.close()
        assert first.closed
        assert repr(first) == "<Trace closed>"
        with pytest.raises(ps.PointstampError, match="closed: take another from the arrangement"):
            first.get(0)
        second = arranged.trace()
        assert not second.closed
        feed(1)
        assert list(second.items()) == [(0, 0, 1), (1, 1, 1)]

    ps.execute(main)


def test_a_trace_that_is_closed_where_nothing_else_reads_leaves_nothing() -> None:
    def main(worker: ps.Worker) -> None:
        arranged, feed, _ = dataflow(worker)
        trace = arranged.trace()
        feed(0)
        trace.close()
        with pytest.raises(ps.GraphError, match="kept nothing"):
            _again = arranged.trace()

    ps.execute(main)


def test_a_trace_that_is_taken_late_does_not_claim_times_that_were_merged_away() -> None:
    """Times that others have merged beyond the arrangement's upper cannot be distinguished before it."""

    def main(worker: ps.Worker) -> None:
        with worker.dataflow() as scope:
            handle, pairs = scope.new_collection()
            arranged = pairs.arrange()
            probe = arranged.to_collection().probe()
        first = arranged.trace()
        with worker.dataflow() as scope:
            imported = scope.import_trace(first)
            imported_probe = imported.to_collection().probe()
        first.allow_merging_before(50)
        for time in range(10):
            handle.insert((1, time))
            handle.advance_to(time + 1)
            settle(worker, time + 1, probe, imported_probe)
        late = imported.trace()
        assert late.since == [50]
        with pytest.raises(ps.TimeError, match="does not reach back to 9"):
            late.get(1)
        handle.advance_to(51)
        worker.step_while(lambda: probe.less_than(51))
        assert late.get(1) == [(time, 1) for time in range(10)]

    ps.execute(main)


def most_kept(
    worker: ps.Worker,
    handle: ps.CollectionInput[tuple[int, int]],
    trace: ps.Trace[int, int],
    probe: ps.ProbeHandle,
) -> int:
    """Changes three keys at 600 times; the most updates that the trace kept at the later half of them."""
    kept = []
    for time in range(600):
        handle.insert((time % 3, 0))
        handle.advance_to(time + 1)
        trace.allow_merging_before(time)
        settle(worker, time + 1, probe)
        kept.append(trace._reads.updates)
    return max(kept[300:])


def test_an_imported_arrangement_that_is_kept_holds_no_history_back() -> None:
    def main(worker: ps.Worker) -> None:
        with worker.dataflow() as scope:
            handle, pairs = scope.new_collection()
            trace = pairs.arrange().trace()
        with worker.dataflow() as scope:
            imported = scope.import_trace(trace)
            probe = imported.min().probe()
        assert most_kept(worker, handle, trace, probe) < 100, imported
        handle.close()

    ps.execute(main)


@pytest.mark.parametrize("end", ["is given up", "is dropped before its first step"])
def test_an_imported_arrangement_that_is_kept_holds_no_history_back_where_its_dataflow(end: str) -> None:
    def main(worker: ps.Worker) -> None:
        with worker.dataflow() as scope:
            handle, pairs = scope.new_collection()
            arranged = pairs.arrange()
            trace, probe = arranged.trace(), arranged.min().probe()
        with suppress(KeyError), worker.dataflow() as other:
            imported = other.import_trace(trace)
            derived = imported.min().arrange()
            if end == "is given up":
                raise KeyError
        if end != "is given up":
            worker.drop_dataflow(other.address[0])
        assert most_kept(worker, handle, trace, probe) < 100, (imported, derived)
        handle.close()

    ps.execute(main)


def test_a_time_that_reads_a_trace_while_it_is_converted_is_a_time() -> None:
    def main(worker: ps.Worker) -> None:
        with worker.dataflow() as scope:
            pairs, collection = scope.new_collection()
            arranged = collection.arrange()
            trace, probe = arranged.trace(), arranged.to_collection().probe()
        pairs.insert((1, 2))
        pairs.close()
        settle(worker, 1, probe)

        class Now:
            def __index__(self) -> int:
                return len(trace.get(1)) - 1

        now: Any = Now()
        assert trace.get(1, at=now) == [(2, 1)]
        assert list(trace.items(at=now)) == [(1, 2, 1)]
        trace.allow_merging_before(now)

    ps.execute(main)


def test_an_imported_arrangement_is_read_by_operators_that_are_made_after_more_has_come() -> None:
    def main(worker: ps.Worker) -> Any:
        with worker.dataflow() as scope:
            handle, pairs = scope.new_collection()
            arranged = pairs.arrange()
            trace, probe = arranged.trace(), arranged.to_collection().probe()
        for time, many in enumerate((10, 3)):
            handle.insert_many((key, time) for key in range(many))
            handle.advance_to(time + 1)
            settle(worker, time + 1, probe)
        with worker.dataflow() as scope:
            imported = scope.import_trace(trace)
            handle.insert_many((key, 2) for key in range(20))
            handle.advance_to(3)
            settle(worker, 3, probe)  # it is merged with what was there
            captured = imported.count().capture(), imported.max().capture()
        handle.close()
        worker.run()
        return [each.extract() for each in captured]

    [[counts, greatest]] = ps.execute(main)
    sums: list[dict[Any, int]] = [{}, {}]
    for found, changes in zip(sums, (counts, greatest), strict=True):
        for _, records in changes:
            for record, diff in records:
                found[record] = found.get(record, 0) + diff
    expected = [(key, 1 + (key < 10) + (key < 3)) for key in range(20)], [(key, 2) for key in range(20)]
    assert [sorted(record for record, n in found.items() if n) for found in sums] == list(expected)


def test_an_imported_arrangement_is_imported_while_it_lags_behind() -> None:
    """The trace has batches that the operator of the first import has not read yet."""

    def main(worker: ps.Worker) -> Any:
        with worker.dataflow() as scope:
            handle, pairs = scope.new_collection()
            trace = pairs.arrange().trace()
        with worker.dataflow() as scope:
            first = scope.import_trace(trace)
            one = first.to_collection().capture()
        seconds = []
        for time in range(6):
            handle.insert((time, 0))
            handle.advance_to(time + 1)
            with worker.dataflow() as scope:
                seconds.append(scope.import_trace(first.trace()).to_collection().capture())
            worker.step()
        handle.close()
        worker.run()
        return one.extract(), [second.extract() for second in seconds]

    with fuel_of(1):
        [(one, seconds)] = ps.execute(main)
    assert one == [(time, [((time, 0), 1)]) for time in range(6)]
    assert all(second == one for second in seconds)


def test_a_trace_of_a_dataflow_that_was_never_built_says_so() -> None:
    def main(worker: ps.Worker) -> None:
        with pytest.raises(KeyError), worker.dataflow() as scope:
            arranged = scope.new_collection()[1].arrange()
            trace = arranged.trace()
            assert repr(trace) == "<Trace of a dataflow that is being built>"
            with pytest.raises(ps.GraphError, match="block has not ended"):
                trace.get(1)
            raise KeyError
        assert arranged.trace() is trace
        assert repr(trace) == "<Trace of a dataflow that was never built>"
        with pytest.raises(ps.GraphError, match="never built, since its block has failed"):
            trace.get(1)
        with pytest.raises(ps.GraphError, match="never built"), worker.dataflow() as scope:
            scope.import_trace(trace)
        trace.close()
        with pytest.raises(ps.PointstampError, match="closed"):
            trace.get(1)

    ps.execute(main)
