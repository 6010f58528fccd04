"""Programs that use what they hold while the dataflow's block has not ended."""

from collections import Counter
from collections.abc import Callable
from typing import Any

import pyarrow as pa
import pytest

import pointstamp as ps
from harness import WORKERS, merged


@pytest.mark.parametrize("workers", WORKERS)
def test_inputs_are_driven_inside_the_block(workers: int) -> None:
    def main(worker: ps.Worker) -> ps.Capture[int]:
        with worker.dataflow() as scope:
            numbers, stream = scope.new_input(of=int)
            numbers.send(worker.index)
            moved = stream.exchange(lambda x: x).map(lambda x: x * 10)
            numbers.advance_to(2)
            numbers.send_batch([1, 2])
            captured = moved.capture()
            assert numbers.time == 2
            numbers.advance_to(3)
            numbers.send(5)
            numbers.close()
        worker.run()
        return captured

    assert merged(ps.execute(main, workers=workers)) == {
        0: Counter(range(0, 10 * workers, 10)),
        2: Counter({10: workers, 20: workers}),
        3: Counter({50: workers}),
    }


@pytest.mark.parametrize("workers", WORKERS)
def test_an_unordered_input_is_driven_inside_the_block(workers: int) -> None:
    def main(worker: ps.Worker) -> ps.Capture[int]:
        with worker.dataflow() as scope:
            numbers, capability, stream = scope.new_unordered_input(of=int)
            with numbers.session(capability.delayed(4)) as session:
                session.give(4)
            with numbers.session(capability) as session:
                session.give(0)
            capability.drop()
            captured = stream.capture()
        worker.run()
        return captured

    found = merged(ps.execute(main, workers=workers))
    assert found == {0: Counter({0: workers}), 4: Counter({4: workers})}


@pytest.mark.parametrize("workers", WORKERS)
def test_columns_and_updates_are_sent_inside_the_block(workers: int) -> None:
    rows = pa.table({"n": [1, 2]})

    def main(worker: ps.Worker) -> Any:
        arrived = ps.ArrowInput(rows.schema)
        with worker.dataflow() as scope:
            batches = scope.input_from(arrived)
            arrived.send(rows)
            pairs, collection = scope.new_collection()
            pairs.insert((worker.index, "a"))
            pairs.advance_to(1)
            pairs.remove((worker.index, "a"))
            captured = batches.to_records().capture()
            counted = collection.map(lambda pair: pair[1]).value_counts().capture()
            arrived.close()
            pairs.close()
        worker.run()
        return captured.extract(), counted.extract()

    found = ps.execute(main, workers=workers)
    assert all(records == [(0, [{"n": 1}, {"n": 2}])] for records, _ in found)
    updates = [update for _, times in found for time, batch in times for update in [(time, *batch[0])]]
    assert sorted(updates) == [(0, ("a", workers), 1), (1, ("a", workers), -1)]


@pytest.mark.parametrize("workers", WORKERS)
def test_a_worker_steps_inside_the_block(workers: int) -> None:
    """Running dataflows continue, and a dataflow that is being built waits for the end of its block."""

    def main(worker: ps.Worker) -> Any:
        seen: list[int] = []
        with worker.dataflow() as before:
            numbers, stream = before.new_input(of=int)
            probe = stream.exchange(lambda x: x).probe()
        with worker.dataflow() as scope:
            later, unread = scope.new_input(of=int)
            unread.inspect(seen.append)
            later.send(7)
            numbers.advance_to(1)
            worker.step_while(lambda: probe.less_than(1))
            assert seen == []
            later.close()
        numbers.close()
        worker.run()
        return seen

    assert ps.execute(main, workers=workers) == [[7]] * workers


@pytest.mark.parametrize("workers", WORKERS)
def test_a_probe_is_read_inside_the_block(workers: int) -> None:
    def main(worker: ps.Worker) -> None:
        with worker.dataflow() as scope:
            numbers, stream = scope.new_input(of=int)
            probe = stream.probe()
            with scope.iterative() as inner:
                turns = stream.enter(inner).probe()
                assert turns.less_equal((0, 0))
                assert not turns.less_than((0, 0))
            kept = scope.collection([1]).probe()
            numbers.advance_to(3)
            for one in (probe, kept):
                assert one.less_than(1)
                assert not one.less_than(0)
                assert not one.done()
                assert list(one.frontier) == [0]
        worker.step_while(lambda: probe.less_than(3))
        assert not kept.less_than(3)
        numbers.close()
        worker.run()
        assert probe.done()
        assert turns.done()
        assert kept.done()

    ps.execute(main, workers=workers)


def test_a_probe_at_several_places_waits_for_all() -> None:
    def main(worker: ps.Worker) -> None:
        probe = ps.ProbeHandle()
        with worker.dataflow() as first:
            fast, stream = first.new_input(of=int)
            stream.probe_with(probe)
        fast.close()
        with worker.dataflow() as second:
            slow, stream = second.new_input(of=int)
            stream.probe_with(probe).probe_with(probe)
            worker.step()
            assert probe.less_equal(0), "the second dataflow is still to come"
        worker.step()
        assert not probe.done()
        slow.close()
        worker.run()
        assert probe.done()

    ps.execute(main)


def fails(scope: ps.Scope) -> None:
    raise KeyError


def is_not_complete(scope: ps.Scope) -> None:
    scope.loop_variable()


def turns_on_the_spot(scope: ps.Scope) -> None:
    handle, back = scope.feedback(0)
    back.map(abs).connect_loop(handle)


@pytest.mark.parametrize("end", [fails, is_not_complete, turns_on_the_spot])
def test_a_probe_of_a_dataflow_that_is_given_up_reports_nothing(end: Callable[[ps.Scope], None]) -> None:
    def main(worker: ps.Worker) -> None:
        shared = ps.ProbeHandle()
        with pytest.raises((KeyError, ps.GraphError)), worker.dataflow() as scope:
            numbers, stream = scope.new_input(of=int)
            probe = stream.probe_with(shared).probe()
            kept = scope.collection([1]).probe()
            with scope.iterative() as inner:
                turns = stream.enter(inner).probe()
            numbers.send(1)
            end(scope)
        assert [one.done() for one in (shared, probe, kept, turns)] == [True] * 4
        with worker.dataflow() as scope:
            numbers, stream = scope.new_input(of=int)
            stream.probe_with(shared)
        assert shared.less_than(1)
        numbers.close()
        worker.run()
        assert shared.done()

    ps.execute(main)


def test_a_trace_is_read_after_the_block() -> None:
    def main(worker: ps.Worker) -> Any:
        with worker.dataflow() as scope:
            arranged = scope.collection([("a", 1)]).arrange()
            trace = arranged.trace()
            for read in (lambda: trace.since, lambda: trace.upper, lambda: trace.get("a"), trace.items):
                with pytest.raises(ps.GraphError, match="`with` block has not ended"):
                    read()
            with (
                pytest.raises(ps.GraphError, match="`with` block has not ended"),
                worker.dataflow("importer") as other,
            ):
                other.import_trace(trace)
        worker.run()
        return trace.get("a")

    assert ps.execute(main) == [[(1, 1)]]


def test_an_import_reads_from_the_line_where_it_is() -> None:
    """The trace may be closed right after it: its history is kept for the dataflow that imports it."""

    def main(worker: ps.Worker) -> Any:
        with worker.dataflow() as scope:
            arranged = scope.collection([("a", 1)]).arrange()
            trace = arranged.trace()
        with worker.dataflow() as other:
            imported = other.import_trace(trace)
            trace.close()
            captured = imported.to_collection().capture()
        worker.run()
        return captured.extract()

    assert ps.execute(main) == [[(0, [(("a", 1), 1)])]]


def test_numbers_of_dataflows_are_those_of_their_blocks() -> None:
    def main(worker: ps.Worker) -> Any:
        with worker.dataflow("outer") as outer:
            with worker.dataflow("inner") as inner:
                inner.to_stream([1]).probe()
            second = outer.to_stream([2]).capture()
        assert (outer.address, inner.address) == ((0,), (1,))
        worker.run()
        return second.extract()

    assert ps.execute(main) == [[(0, [2])]]


def test_nothing_is_appended_while_the_plan_is_lowered() -> None:
    """Records that were sent inside the block are routed while the dataflow is installed."""
    refused: list[str] = []

    def main(worker: ps.Worker) -> None:
        with worker.dataflow() as scope:
            numbers, stream = scope.new_input(of=int)

            def key(x: int) -> int:
                with pytest.raises(ps.GraphError) as caught:
                    stream.map(abs)
                refused.append(str(caught.value))
                return x

            stream.exchange(key).probe()
            numbers.send_batch([1])
            numbers.close()
        worker.run()

    ps.execute(main)
    [message] = refused
    assert message.startswith("nothing can be added to scope 'Dataflow' any more")
