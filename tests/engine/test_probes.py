"""Probes: what may still appear, seen from outside of the dataflow."""

import threading

import pytest

import pointstamp as ps
from harness import WORKERS
from pointstamp.order import Antichain


@pytest.mark.parametrize("workers", WORKERS)
def test_a_probe_sees_every_worker(workers: int) -> None:
    def main(worker: ps.Worker) -> list[Antichain]:
        handle: ps.InputHandle[int] = ps.InputHandle()
        with worker.dataflow() as scope:
            probe = handle.to_stream(scope).exchange(lambda x: x).probe()
        seen = []
        for time in range(5):
            assert probe.less_equal(time)
            assert not probe.less_than(time)
            handle.send(time)
            worker.barrier()
            seen.append(probe.frontier)
            worker.barrier()
            handle.advance_to(time + 1)
            worker.step_while(lambda: probe.less_than(handle.time))
        handle.close()
        worker.run()
        assert probe.done()
        assert not probe.less_equal(1000)
        assert repr(probe) == "<ProbeHandle frontier=[]>"
        return seen

    expected = [Antichain([time]) for time in range(5)]
    assert ps.execute(main, workers=workers) == [expected] * workers


@pytest.mark.parametrize("workers", WORKERS)
def test_no_record_arrives_at_a_time_the_probe_has_passed(workers: int) -> None:
    def main(worker: ps.Worker) -> int:
        handle: ps.InputHandle[int] = ps.InputHandle()
        probe = ps.ProbeHandle()
        checked = 0

        def check(_record: int, time: ps.Time) -> None:
            nonlocal checked
            checked += 1
            assert probe.less_equal(time)

        with worker.dataflow() as scope:
            stream = handle.to_stream(scope)
            for shift in (1, 2, 3):
                stream = stream.exchange(lambda x, shift=shift: x + shift).map(lambda x: x * 7)  # type: ignore[misc]
            stream.inspect_time(check).probe_with(probe)
        for time in range(30):
            handle.send_batch(range(20))
            handle.advance_to(time + 1)
            worker.step_while(lambda: probe.less_than(time - 2) if time > 2 else False)
        worker.step_while(lambda: probe.less_than(30))
        return checked

    assert sum(ps.execute(main, workers=workers)) == workers * 600


def test_attached_at_several_places_all_count() -> None:
    def main(worker: ps.Worker) -> None:
        one: ps.InputHandle[int] = ps.InputHandle()
        two: ps.InputHandle[int] = ps.InputHandle()
        probe = ps.ProbeHandle()
        with worker.dataflow("one") as scope:
            out = one.to_stream(scope).probe_with(probe).map(lambda x: x + 1).capture()
        with worker.dataflow("two") as scope:
            two.to_stream(scope).probe_with(probe)
        one.advance_to(7)
        one.send(1)
        two.advance_to(3)
        worker.step_while(lambda: probe.less_than(3))
        assert probe.frontier == Antichain([3])
        assert (probe.less_than(3), probe.less_equal(3), probe.done()) == (False, True, False)
        two.advance_to(9)
        worker.step_while(lambda: probe.less_than(7))
        assert probe.frontier == Antichain([7])
        one.close()
        worker.step_while(lambda: probe.less_than(9))
        assert probe.frontier == Antichain([9])
        assert repr(probe) == "<ProbeHandle frontier=[9]>"
        two.close()
        worker.run()
        assert probe.done()
        assert out.extract() == [(7, [2])]

    ps.execute(main)


@pytest.mark.parametrize("workers", WORKERS)
@pytest.mark.parametrize("end", ["dropped", "discarded"])
def test_nobody_waits_for_a_dataflow_that_is_gone(workers: int, end: str) -> None:
    def main(worker: ps.Worker) -> None:
        handle: ps.InputHandle[int] = ps.InputHandle()
        other: ps.InputHandle[int] = ps.InputHandle()
        probe = ps.ProbeHandle()
        with worker.dataflow("other") as scope:
            other.to_stream(scope)
        try:
            with worker.dataflow("gone") as scope:
                handle.to_stream(scope).probe_with(probe)
                if end == "discarded":
                    raise KeyError
        except KeyError:
            pass
        else:
            worker.step()
            assert probe.less_equal(0)
            worker.drop_dataflow(1)
        worker.step_while(lambda: probe.less_equal(0))
        assert probe.done()

    ps.execute(main, workers=workers)


def test_attached_nowhere_nothing_is_possible() -> None:
    probe = ps.ProbeHandle()
    assert probe.done()
    assert not probe.less_equal(5)
    assert not probe.less_than((5, 5))
    assert probe.frontier == Antichain()


def test_the_frontier_is_a_copy() -> None:
    def build(scope: ps.Scope) -> None:
        probe = scope.to_stream([1]).probe()
        probe.frontier.insert(7)
        copy = probe.frontier
        assert copy == Antichain([0])
        assert copy is not probe.frontier

    ps.example(build)


@pytest.mark.parametrize("dims", [0, 1, 2, 3])
def test_times_have_the_streams_coordinates(dims: int) -> None:
    def main(worker: ps.Worker) -> None:
        handle: ps.InputHandle[int] = ps.InputHandle()
        with worker.dataflow(dims=dims) as scope:
            probe = handle.to_stream(scope).probe()
        zero: ps.Time = 0 if dims == 1 else (0,) * dims
        assert probe.less_equal(zero)
        assert not probe.less_than(zero)
        assert probe.frontier == Antichain([zero])
        wrong: tuple[ps.Time, ...] = (0, (0, 0)) if dims not in (1, 2) else ((0, 0, 0), ())
        for time in wrong:
            with pytest.raises(ps.TimeError, match="coordinate"):
                probe.less_than(time)
            with pytest.raises(ps.TimeError, match="coordinate"):
                probe.less_equal(time)

    ps.execute(main)


def test_a_partial_order_has_frontiers_of_several_times() -> None:
    def main(worker: ps.Worker) -> None:
        one: ps.InputHandle[int] = ps.InputHandle()
        two: ps.InputHandle[int] = ps.InputHandle()
        with worker.dataflow(dims=2) as scope:
            probe = one.to_stream(scope).concat(two.to_stream(scope)).probe()
        one.advance_to((0, 5))
        two.advance_to((5, 0))
        worker.step_while(lambda: probe.less_equal((0, 0)))
        assert probe.frontier == Antichain([(0, 5), (5, 0)])
        assert not probe.less_equal((4, 4))
        assert probe.less_than((5, 5))

    ps.execute(main)


def test_a_probe_may_be_read_from_another_thread() -> None:
    def main(worker: ps.Worker) -> bool:
        handle: ps.InputHandle[int] = ps.InputHandle()
        with worker.dataflow() as scope:
            probe = handle.to_stream(scope).probe()
        went_back = []
        ended = threading.Event()

        def watch() -> None:
            last = 0
            while not probe.done():
                for time in probe.frontier:
                    if time < last:  # type: ignore[operator]
                        went_back.append(time)
                    last = time  # type: ignore[assignment]
            ended.set()

        thread = threading.Thread(target=watch)
        thread.start()
        for time in range(200):
            handle.advance_to(time)
            worker.step()
        handle.close()
        worker.run()
        thread.join()
        return ended.is_set() and not went_back

    assert ps.execute(main) == [True]
