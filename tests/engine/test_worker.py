"""A worker as `main` drives it: stepping, parking, timers, several dataflows, barriers, the sequencer."""

import threading
import time
from collections import Counter
from collections.abc import Callable
from typing import Any

import pytest

import pointstamp as ps
from harness import WORKERS, Logic, merged, notes


def test_a_step_says_whether_a_dataflow_is_left() -> None:
    def main(worker: ps.Worker) -> None:
        assert worker.step() is False
        assert worker.step_or_park() is False, "nothing to wait for"
        worker.run()
        worker.step_while(lambda: True)
        handle: ps.InputHandle[int] = ps.InputHandle()
        with worker.dataflow() as scope:
            handle.to_stream(scope)
        assert worker.step() is True
        assert worker.installed_dataflows() == [0]
        handle.close()
        worker.run()
        assert worker.step() is False
        assert worker.installed_dataflows() == []
        assert repr(worker) == "<Worker 0 of 1>"

    ps.execute(main)


@pytest.mark.parametrize("workers", WORKERS)
def test_parking_ends_with_its_timeout(workers: int) -> None:
    def main(worker: ps.Worker) -> float:
        handle: ps.InputHandle[int] = ps.InputHandle()
        with worker.dataflow() as scope:
            handle.to_stream(scope)
        worker.barrier()
        for _ in range(3):
            worker.step_or_park(0.01)
        before = time.monotonic()
        used = time.thread_time()
        while time.monotonic() - before < 0.25:
            assert worker.step_or_park(0.25) is True
        return time.thread_time() - used

    assert max(ps.execute(main, workers=workers)) < 0.2, "it spins"


@pytest.mark.parametrize("timeout", [-1, float("nan"), "soon"])
def test_a_timeout_is_a_number_of_seconds(timeout: Any) -> None:
    def main(worker: ps.Worker) -> None:
        with pytest.raises((ValueError, TypeError)):
            worker.step_or_park(timeout)

    ps.execute(main)


def test_a_long_timeout_is_no_error() -> None:
    def main(worker: ps.Worker) -> None:
        for timeout in (1e9, 1e18, float("inf")):
            try:
                worker.step_or_park(timeout)  # no dataflow: it returns
            except ValueError:
                assert timeout == float("inf")

    ps.execute(main)


@pytest.mark.parametrize("workers", WORKERS)
def test_step_while_sleeps_while_idle_and_wakes_for_others(workers: int) -> None:
    def main(worker: ps.Worker) -> float:
        handle: ps.InputHandle[int] = ps.InputHandle()
        with worker.dataflow() as scope:
            probe = handle.to_stream(scope).exchange(lambda x: x).probe()
        if worker.index == 0:
            time.sleep(0.3)
        handle.send(1)
        handle.advance_to(1)
        used = time.thread_time()
        worker.step_while(lambda: probe.less_than(1))
        return time.thread_time() - used

    assert max(ps.execute(main, workers=workers)) < 0.2, "it spins"


@pytest.mark.parametrize("workers", WORKERS)
def test_dataflows_come_and_go(workers: int) -> None:
    def main(worker: ps.Worker) -> list[Any]:
        captures = []
        for k in range(20):
            with worker.dataflow(f"flow {k}") as scope:
                numbers = scope.to_stream(range(k)).exchange(lambda x: x)
                captures.append(numbers.map(lambda x, k=k: (k, x)).capture())  # type: ignore[misc]
            worker.step()
        worker.run()
        assert worker.installed_dataflows() == []
        return captures

    for k, captures in enumerate(zip(*ps.execute(main, workers=workers), strict=True)):
        assert merged(captures) == ({0: Counter({(k, x): workers for x in range(k)})} if k else {})


@pytest.mark.parametrize("workers", WORKERS)
def test_dropping_a_dataflow(workers: int) -> None:
    def main(worker: ps.Worker) -> Any:
        one: ps.InputHandle[int] = ps.InputHandle()
        two: ps.InputHandle[int] = ps.InputHandle()
        seen: list[int] = []
        with worker.dataflow("one") as scope:
            one.to_stream(scope).exchange(lambda x: x).inspect(seen.append)
        with worker.dataflow("two") as scope:
            capture = two.to_stream(scope).exchange(lambda x: x).capture()
        one.send_batch(range(10))
        worker.step()
        worker.drop_dataflow(0)
        worker.drop_dataflow(0)
        worker.drop_dataflow(17)
        assert worker.installed_dataflows() == [1]
        one.send(1)  # goes nowhere
        one.advance_to(4)
        two.send(worker.index)
        two.close()
        worker.run()
        return capture

    assert merged(ps.execute(main, workers=workers)) == {0: Counter(range(workers))}


@pytest.mark.parametrize("workers", WORKERS)
def test_dropping_a_dataflow_from_inside_of_it(workers: int) -> None:
    def main(worker: ps.Worker) -> list[int]:
        seen: list[int] = []

        def note(x: int) -> None:
            seen.append(x)
            worker.drop_dataflow(0)

        handle: ps.InputHandle[int] = ps.InputHandle()
        with worker.dataflow() as scope:
            handle.to_stream(scope).inspect(note)
        handle.send(1)
        worker.step()
        handle.send(2)
        assert worker.step() is False
        return seen

    assert ps.execute(main, workers=workers) == [[1]] * workers


@pytest.mark.parametrize("workers", WORKERS)
def test_a_dataflow_whose_block_raises_is_discarded(workers: int) -> None:
    def main(worker: ps.Worker) -> Any:
        handle: ps.InputHandle[int] = ps.InputHandle()
        with pytest.raises(KeyError, match="mine"), worker.dataflow("bad") as scope:
            handle.to_stream(scope).exchange(lambda x: x).inspect(print)
            raise KeyError("mine")
        assert worker.installed_dataflows() == []
        assert worker.step() is False
        with worker.dataflow("good") as scope:
            capture = scope.to_stream([worker.index]).exchange(lambda x: 0).capture()
        worker.run()
        return capture

    assert merged(ps.execute(main, workers=workers)) == {0: Counter(range(workers))}


@pytest.mark.parametrize("workers", WORKERS)
def test_nobody_passes_a_barrier_before_all_have_come(workers: int) -> None:
    entered: Counter[int] = Counter()

    def main(worker: ps.Worker) -> None:
        for turn in range(50):
            entered[turn] += 1
            worker.barrier()
            assert entered[turn] == workers
            worker.barrier()
        assert worker.installed_dataflows() == []
        worker.run()

    ps.execute(main, workers=workers)


@pytest.mark.parametrize("workers", WORKERS)
def test_the_sequencer_gives_every_worker_the_same_order(workers: int) -> None:
    def main(worker: ps.Worker) -> list[tuple[int, int]]:
        sequencer = worker.sequencer()
        assert sequencer.next() is None
        seen: list[tuple[int, int]] = []
        for i in range(50):
            sequencer.push((worker.index, i))
            if i % 7 == worker.index:
                worker.step()
        while len(seen) < 50 * worker.peers:
            worker.step_or_park()
            while (item := sequencer.next()) is not None:
                seen.append(item)
        return seen

    first, *others = ps.execute(main, workers=workers)
    assert all(other == first for other in others)
    for index in range(workers):
        assert [i for who, i in first if who == index] == list(range(50))


def test_the_sequencer_refuses_what_would_mean_that_nothing_has_arrived() -> None:
    def main(worker: ps.Worker) -> None:
        with pytest.raises(TypeError, match="cannot be None"):
            worker.sequencer().push(None)

    ps.execute(main)


@pytest.mark.parametrize("workers", WORKERS)
def test_main_may_leave_the_rest_to_the_worker(workers: int) -> None:
    def main(worker: ps.Worker) -> Any:
        handle: ps.InputHandle[int] = ps.InputHandle()
        with worker.dataflow() as scope:
            capture = handle.to_stream(scope).exchange(lambda x: x).capture()
        handle.send_batch(range(100))
        return handle, capture

    results = ps.execute(main, workers=workers)
    assert merged(capture for _, capture in results) == {0: Counter({x: workers for x in range(100)})}
    assert all(handle.closed for handle, _ in results)


def test_stepping_inside_of_an_operator_is_refused() -> None:
    def main(worker: ps.Worker) -> None:
        def step(_record: int) -> None:
            for again in (
                worker.step,
                worker.step_or_park,
                worker.run,
                lambda: worker.step_while(lambda: True),
            ):
                with pytest.raises(ps.PointstampError, match="inside"):
                    again()
            tried.append(True)

        tried: list[bool] = []
        with worker.dataflow() as scope:
            scope.to_stream([1]).inspect(step)
        worker.run()
        assert tried == [True]

    ps.execute(main)


def test_a_refused_step_that_is_not_caught_is_an_error_of_the_operator() -> None:
    def main(worker: ps.Worker) -> None:
        with worker.dataflow() as scope:
            scope.to_stream([1]).inspect(lambda _: worker.step())

    with pytest.raises(ps.PointstampError) as raised:
        ps.execute(main)
    assert notes(raised.value) == ["raised in operator 'inspect' on worker 0"]


def test_stepping_while_building_loses_nothing() -> None:
    def main(worker: ps.Worker) -> Any:
        handle: ps.InputHandle[int] = ps.InputHandle()
        with worker.dataflow() as scope:
            stream = handle.to_stream(scope)
            capture = stream.map(lambda x: x + 1).capture()
            handle.send(1)
            worker.step()
        worker.step()
        return capture

    assert ps.execute(main)[0].extract() == [(0, [2])]


# ---------------------------------------------------------------- activators


def napping(runs: list[float], delays: list[float]) -> Any:
    """The constructor of a source that asks to run again after each delay."""

    def constructor(cap: ps.Capability, info: ps.OperatorInfo) -> Logic:
        def logic(output: ps.OutputPort[int]) -> None:
            runs.append(time.monotonic())
            if delays:
                info.activator.activate_after(delays.pop(0))
            else:
                cap.drop()

        return logic

    return constructor


@pytest.mark.parametrize("workers", WORKERS)
def test_activate_after_waits(workers: int) -> None:
    def main(worker: ps.Worker) -> tuple[list[float], float]:
        runs: list[float] = []
        with worker.dataflow() as scope:
            scope.source("naps", napping(runs, [0.05, 0.0, 0.1]))
        used = time.thread_time()
        worker.run()
        return runs, time.thread_time() - used

    for runs, used in ps.execute(main, workers=workers):
        assert len(runs) == 4
        assert runs[1] - runs[0] >= 0.05
        assert runs[3] - runs[2] >= 0.1
        assert used < 0.1, "it spins"


@pytest.mark.parametrize("seconds", [-1, float("nan"), "soon"])
def test_a_delay_is_a_number_of_seconds(seconds: Any) -> None:
    with pytest.raises((ValueError, TypeError)):
        ps.example(lambda scope: scope.source("naps", napping([], [seconds])))


@pytest.mark.parametrize("workers", WORKERS)
def test_an_activator_wakes_a_parked_worker_from_any_thread(workers: int) -> None:
    def main(worker: ps.Worker) -> list[str]:
        asked: list[str] = []
        woken: list[str] = []

        def constructor(cap: ps.Capability, info: ps.OperatorInfo) -> Logic:
            def ring() -> None:
                time.sleep(0.1)
                asked.append("asked")
                info.activator.activate()

            thread = threading.Thread(target=ring)
            thread.start()

            def logic(output: ps.OutputPort[int]) -> None:
                if asked:
                    thread.join()
                    woken.append(threading.current_thread().name)
                    cap.drop()

            return logic

        with worker.dataflow() as scope:
            scope.source("rung", constructor)
        worker.run()
        return woken

    for woken in ps.execute(main, workers=workers):
        assert len(woken) == 1


def test_an_activator_by_address() -> None:
    def main(worker: ps.Worker) -> int:
        runs = 0

        def constructor(cap: ps.Capability, info: ps.OperatorInfo) -> Logic:
            def logic(output: ps.OutputPort[int]) -> None:
                nonlocal runs
                runs += 1
                if runs == 3:
                    cap.drop()

            addresses.append(info.address)
            return logic

        addresses: list[tuple[int, ...]] = []
        with worker.dataflow() as scope:
            probe = scope.source("idle", constructor).probe()
            activator = scope.activator_for(addresses[0])
            with pytest.raises(ps.GraphError, match=r"no operator has the address \[0, 77\]"):
                scope.activator_for((0, 77))
            with pytest.raises(ps.GraphError):
                scope.activator_for(())
        for expected in (1, 2, 3):
            worker.step()
            worker.step()
            assert runs == expected, "it runs when it is asked to, and only then"
            assert probe.done() == (expected == 3)
            activator.activate()
        worker.run()
        activator.activate()  # the operator is gone: nothing happens
        return runs

    assert ps.execute(main) == [3]


def test_what_is_built_is_of_its_workers_thread() -> None:
    """Plans have no locks: a method that only appends to one refuses other threads, as the engine does."""
    refused = []

    def main(worker: ps.Worker) -> None:
        with worker.dataflow() as scope:
            numbers, stream = scope.new_input(of=int)
            changes, collection = scope.new_collection()
            calls: list[Callable[[], Any]] = [
                lambda: stream.map(str),
                lambda: stream.exchange(hash),
                lambda: stream.capture(),
                lambda: collection.distinct(),
                lambda: scope.empty(),
                lambda: scope.new_input(),
            ]

            def other() -> None:
                for call in calls:
                    with pytest.raises(ps.PointstampError, match=f"belongs to worker {worker.index}, which"):
                        call()
                    refused.append(call)

            thread = threading.Thread(target=other)
            thread.start()
            thread.join()
        assert len(scope.plan().nodes) == 2
        numbers.close()
        changes.close()
        worker.run()

    ps.execute(main, workers=2)
    assert len(refused) == 12
