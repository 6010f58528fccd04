"""Simulated executions: they repeat, differ by seed, are right, and name the seed of a failure."""

import threading
from collections import Counter
from functools import partial
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import pointstamp as ps
from effort import examples
from harness import notes
from pointstamp import testing
from pointstamp.testing import simulate

LAYOUTS = [(1, 1), (3, 1), (3, 3), (4, 4)]


def traced(trace: list[Any]) -> Any:
    """A `main` with a loop and an exchange that writes down what each worker sees, in the order of all."""

    def main(worker: ps.Worker) -> list[tuple[Any, list[int]]]:
        with worker.dataflow() as scope:
            handle, numbers = scope.new_input()
            with scope.iterative() as inner:
                loop, again = inner.loop_variable()
                turned = numbers.enter(inner).concat(again).exchange(lambda x: x).map(lambda x: x - 1)
                turned.filter(lambda x: x > 0).connect_loop(loop)
                turned = turned.inspect(lambda x: trace.append((worker.index, x))).leave()
            captured = turned.capture()
        for epoch in range(3):
            handle.send(5 + worker.index + epoch)
            handle.advance_to(epoch + 1)
            worker.step()
        handle.close()
        worker.run()
        return captured.extract()

    return main


@pytest.mark.parametrize("mode", ["demand", "tree:2"])
@pytest.mark.parametrize(("workers", "processes"), LAYOUTS)
def test_a_seed_repeats_and_others_differ(workers: int, processes: int, mode: str) -> None:
    orders = set()
    for seed in range(6):
        first: list[Any] = []
        again: list[Any] = []
        run = partial(simulate, workers=workers, seed=seed, processes=processes, progress_mode=mode)
        result = run(traced(first))
        assert run(traced(again)) == result
        assert again == first
        orders.add(tuple(first))
    assert workers == 1 or len(orders) > 3


def test_the_seed_draws_how_many_processes_there_are() -> None:
    def main(worker: ps.Worker) -> bool:
        with worker.dataflow() as scope:
            scope.to_stream([worker.index]).broadcast().capture()
        worker.run()
        return worker.traffic().data_messages > 0

    seen = {tuple(simulate(main, workers=2, seed=seed)) for seed in range(12)}
    assert seen == {(True, True), (False, False)}


@settings(max_examples=examples(25), deadline=None)
@given(
    seed=st.integers(0, 2**64),
    workers=st.integers(1, 5),
    feed=st.lists(st.tuples(st.integers(0, 3), st.integers(0, 20)), max_size=12),
)
def test_the_results_are_those_of_a_plain_program(
    seed: int, workers: int, feed: list[tuple[int, int]]
) -> None:
    def main(worker: ps.Worker) -> list[tuple[Any, list[int]]]:
        with worker.dataflow() as scope:
            handle, numbers = scope.new_input()
            sent = numbers.exchange(lambda x: x).capture()
        for time, number in sorted(feed[worker.index :: worker.peers]):
            handle.advance_to(time)
            handle.send(number)
            if number % 3 == 0:
                worker.step()
        handle.close()
        worker.run()
        return sent.extract()

    got: dict[int, Counter[int]] = {}
    for per_worker in simulate(main, workers=workers, seed=seed):
        for time, batch in per_worker:
            got.setdefault(time, Counter()).update(batch)
    want: dict[int, Counter[int]] = {}
    for time, number in feed:
        want.setdefault(time, Counter())[number] += 1
    assert got == want


def racy(worker: ps.Worker) -> list[int]:
    """Takes what arrives for what was sent first."""
    seen: list[int] = []
    with worker.dataflow() as scope:
        scope.to_stream([worker.index]).exchange(lambda _: 0).inspect(seen.append)
    worker.run()
    assert seen == sorted(seen), "worker 2 overtook worker 1"
    return seen


def test_a_race_is_found_and_says_how_to_repeat_it() -> None:
    failed = {}
    for seed in range(30):
        try:
            simulate(racy, workers=3, seed=seed)
        except AssertionError as error:
            failed[seed] = notes(error)
    assert 0 < len(failed) < 30
    for seed, said in list(failed.items())[:3]:
        assert any(f"simulate(main, workers=3, seed={seed}, processes=" in note for note in said)
        with pytest.raises(AssertionError, match="overtook"):
            simulate(racy, workers=3, seed=seed)


def test_a_computation_that_cannot_go_on_is_an_error(soon_still: None) -> None:
    def main(worker: ps.Worker) -> None:
        with worker.dataflow() as scope:
            handle, numbers = scope.new_input()
            probe = numbers.probe()
        worker.step_while(lambda: probe.less_than(1))  # the input is not advanced
        handle.close()

    for processes in (1, 2):
        with pytest.raises(ps.StallError, match="every worker waits"):
            simulate(main, workers=2, seed=3, processes=processes)


def test_what_a_thread_or_a_timer_has_to_say_is_waited_for() -> None:
    timers = []

    def main(worker: ps.Worker) -> list[int]:
        got: list[int] = []

        def source(capability: Any, info: ps.OperatorInfo) -> Any:
            held = [capability]
            timers.append(threading.Timer(0.2, info.activator.activate))
            timers[-1].start()

            def run(output: Any) -> None:
                if held:
                    if got:
                        held.clear()
                        return
                    with output.session(held[0]) as session:
                        session.give(worker.index)
                    got.append(worker.index)
                    info.activator.activate_after(0.1)

            return run

        with worker.dataflow() as scope:
            seen = scope.source("late", source).capture()
        worker.run()
        return [record for _, batch in seen.extract() for record in batch]

    assert simulate(main, workers=2, seed=5) == [[0], [1]]
    for timer in timers:
        timer.join()


@pytest.mark.parametrize("processes", [1, 2])
def test_a_timer_is_something_that_is_on_its_way(processes: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(testing, "_STILL", 0.1)  # what comes later than that would be too late

    def main(worker: ps.Worker) -> list[int]:
        def source(capability: Any, info: ps.OperatorInfo) -> Any:
            held = [capability]
            info.activator.activate_after(0.5)
            runs = 0

            def run(output: Any) -> None:
                nonlocal runs
                runs += 1
                if runs > 1 and held:
                    with output.session(held.pop()) as session:
                        session.give(worker.index)

            return run

        with worker.dataflow() as scope:
            seen = scope.source("late", source).capture()
        worker.run()
        return [record for _, batch in seen.extract() for record in batch]

    assert simulate(main, workers=2, seed=5, processes=processes) == [[0], [1]]


def test_a_time_that_main_gave_is_on_its_way_and_what_comes_to_nothing_is_not(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(testing, "_STILL", 0.1)

    def main(worker: ps.Worker) -> None:
        with worker.dataflow() as scope:
            handle, numbers = scope.new_input()
            probe = numbers.probe()
        with pytest.raises(ps.StallError, match=r"still holds after 0\.5 s"):
            worker.step_while(lambda: probe.less_than(1), timeout=0.5)
        worker.step_while(lambda: probe.less_than(1))
        handle.close()

    with pytest.raises(ps.StallError, match="every worker waits"):
        simulate(main, workers=2, seed=3)


def sends_for_long(worker: ps.Worker) -> None:
    with worker.dataflow() as scope:
        handle, numbers = scope.new_input()
        probe = numbers.exchange(lambda x: x).probe()
    for epoch in range(1000):
        handle.send(epoch)
        handle.advance_to(epoch + 1)
        worker.step_while(partial(probe.less_than, epoch + 1))
    handle.close()


def test_a_lost_process_ends_the_others() -> None:
    for seed in range(5):
        with pytest.raises(ps.ClusterError, match=r"simulated:\d\) was lost") as raised:
            simulate(sends_for_long, workers=3, seed=seed, lose_process=True)
        assert any("lose_process=True" in note for note in notes(raised.value))


@pytest.mark.parametrize("workers", [2, 3])
def test_the_process_that_is_lost_is_named_and_is_any_of_them(workers: int) -> None:
    named: Counter[int | None] = Counter()
    for seed in range(60):
        with pytest.raises(ps.ClusterError) as lost:
            simulate(sends_for_long, workers=workers, seed=seed, lose_process=True)
        named[lost.value.process] += 1
    assert set(named) == set(range(workers))
    assert min(named.values()) > 5


class _Outcome(BaseException):
    """An outcome as those of pytest, which no `except Exception` catches."""


@pytest.mark.parametrize("mistake", [_Outcome("given up"), KeyboardInterrupt(), SystemExit(3)])
def test_every_exception_says_how_to_repeat_it(mistake: BaseException) -> None:
    def main(worker: ps.Worker) -> None:
        if worker.index == 1:
            raise mistake

    with pytest.raises(type(mistake)) as raised:
        simulate(main, workers=2, seed=4)
    assert raised.value is mistake
    assert any("simulate(main, workers=2, seed=4" in note for note in notes(raised.value))


class _Sealed(Exception):
    """Takes no attributes, as no exception of Python 3.10 shows notes."""

    def __setattr__(self, name: str, value: object) -> None:
        raise AttributeError(name)


def test_where_there_are_no_notes_the_seed_is_said(capfd: pytest.CaptureFixture[str]) -> None:
    def main(worker: ps.Worker) -> None:
        raise _Sealed

    with pytest.raises(_Sealed):
        simulate(main, workers=2, seed=6)
    assert "simulate(main, workers=2, seed=6" in capfd.readouterr().err


def test_a_cluster_error_of_main_is_its_own() -> None:
    mistake = ps.ClusterError("the store is not there")

    def main(worker: ps.Worker) -> None:
        if worker.index == 1:
            raise mistake

    with pytest.raises(ps.ClusterError) as raised:
        simulate(main, workers=3, seed=5, processes=3)
    assert raised.value is mistake


@pytest.mark.parametrize("seed", range(4))
def test_a_thread_that_cannot_be_started_is_an_error(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    starts = threading.Thread.start
    begun: list[threading.Thread] = []

    def start(thread: threading.Thread) -> None:
        if thread.name == "pointstamp-simulated-1":
            raise RuntimeError("can't start new thread")
        begun.append(thread)
        starts(thread)

    monkeypatch.setattr(threading.Thread, "start", start)
    with pytest.raises(RuntimeError, match="start new thread"):
        simulate(racy, workers=3, seed=seed)
    assert not any(thread.is_alive() for thread in begun)


def test_a_thread_that_an_interruption_keeps_from_being_known_is_waited_for(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    starts = threading.Thread.start
    begun: list[threading.Thread] = []

    def start(thread: threading.Thread) -> None:
        begun.append(thread)
        starts(thread)
        if thread.name == "pointstamp-simulated-1":
            raise KeyboardInterrupt

    def main(worker: ps.Worker) -> None:
        while True:
            pass

    monkeypatch.setattr(threading.Thread, "start", start)
    with pytest.raises(KeyboardInterrupt):
        simulate(main, workers=3, seed=1)
    assert [thread.name for thread in begun] == ["pointstamp-simulated-0", "pointstamp-simulated-1"]
    assert not any(thread.is_alive() for thread in begun)


def test_an_exception_is_the_users_own() -> None:
    mistake = LookupError("no such word")

    def fails(_record: int) -> None:
        raise mistake

    def main(worker: ps.Worker) -> None:
        with worker.dataflow() as scope:
            stream = scope.to_stream(range(3)).exchange(lambda x: x)
            if worker.index == 1:
                stream.inspect(fails)
            else:
                stream.inspect(lambda x: None)
        worker.run()

    for processes in (1, 2):
        for seed in range(4):
            with pytest.raises(LookupError) as raised:
                simulate(main, workers=2, seed=seed, processes=processes)
            assert raised.value is mistake


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        ({"workers": 0, "seed": 1}, "workers"),
        ({"workers": 2, "seed": -1}, "seed is an integer"),
        ({"workers": 2, "seed": True}, "seed is an integer"),
        ({"workers": 4, "seed": 1, "processes": 2}, "1 or the number of workers"),
        (
            {"workers": 1, "seed": 1, "lose_process": True},
            "and more: give two workers or more$",
        ),
        ({"workers": 2, "seed": 1, "processes": 1, "lose_process": True}, "and more: leave out processes=1$"),
        (
            {"workers": 1, "seed": 1, "processes": 1, "lose_process": True},
            "give two workers or more, and leave out processes=1$",
        ),
    ],
)
def test_arguments_that_cannot_work(arguments: dict[str, Any], says: str) -> None:
    with pytest.raises(ps.ConfigError, match=says):
        simulate(lambda worker: None, **arguments)
