"""Holders of a time, and whether the explanation finds them: outside and inside loops, everywhere."""

import asyncio
import threading
import time
from collections.abc import Callable
from contextlib import contextmanager
from typing import Any

import pytest

import pointstamp as ps
from harness import passing
from pointstamp.testing import simulate

PLACES: list[Any] = [{}, {"workers": 2}, {"processes": 2}]

Answer = tuple[str, str, Any, Any, str, str, tuple[str, ...]]


def holding(worker: ps.Worker, condition: Callable[[], bool]) -> tuple[str, list[Answer]]:
    """Waits for what does not come; the explanation, as a text and as plain data. Gives the dataflows up."""
    with pytest.raises(ps.StallError) as caught:
        worker.step_while(condition, timeout=0.2)
    assert caught.value.explanation is not None
    found = [
        (one.kind, one.operator, one.time, one.worker, one.made, one.cure, one.way)
        for one in caught.value.explanation.causes
    ]
    text = str(caught.value)
    worker.barrier()  # no worker drops what another is asked about
    for dataflow in worker.installed_dataflows():
        worker.drop_dataflow(dataflow)
    return text, found


@contextmanager
def around(scope: ps.Scope, inside: bool) -> Any:
    """A loop's scope, or the scope itself."""
    if not inside:
        yield scope
    else:
        with scope.iterative("Turns") as inner:
            yield inner


def moved(stream: ps.Stream[Any], scope: ps.Scope) -> ps.Stream[Any]:
    return stream if stream.scope is scope else stream.enter(scope)


def out(stream: ps.Stream[Any], scope: ps.Scope) -> ps.Stream[Any]:
    return stream if stream.scope is scope else stream.leave()


def at(time: int, inside: bool) -> ps.Time:
    return (time, 0) if inside else time


def not_advanced(inside: bool) -> Callable[[ps.Worker], Any]:
    def main(worker: ps.Worker) -> Any:
        with worker.dataflow() as scope:
            numbers, stream = scope.new_input()
            with around(scope, inside) as inner:
                mapped = moved(stream, inner).exchange(lambda x: x).map(lambda x: x + 1, name="one more")
            probe = out(mapped, scope).probe()
        numbers.send(1)
        if worker.index == 0:
            numbers.advance_to(2)
        return holding(worker, lambda: probe.less_than(2 if worker.peers > 1 else 3))

    return main


def kept(inside: bool) -> Callable[[ps.Worker], Any]:
    def main(worker: ps.Worker) -> Any:
        keep = []

        def build(capability: ps.Capability, info: ps.OperatorInfo) -> Any:
            capability.drop()

            def logic(port: Any, output: Any) -> None:
                for message, _ in port:
                    keep.append(message.retain())  # the line that is to be named

            return logic

        with worker.dataflow() as scope:
            numbers, stream = scope.new_input()
            with around(scope, inside) as inner:
                held = moved(stream, inner).unary(ps.Pipeline(), "hold it", build)
            probe = out(held, scope).probe()
        numbers.advance_to(4)
        if worker.index == worker.peers - 1:
            numbers.send(1)
        numbers.close()
        return holding(worker, lambda: not probe.done())

    return main


def unread(inside: bool) -> Callable[[ps.Worker], Any]:
    def main(worker: ps.Worker) -> Any:
        def build(capability: ps.Capability, info: ps.OperatorInfo) -> Any:
            capability.drop()

            def logic(first: Any, second: Any, output: Any) -> None:
                for _ in first:
                    pass

            return logic

        with worker.dataflow() as scope:
            (numbers, left), (words, right) = scope.new_input(), scope.new_input()
            with around(scope, inside) as inner:
                both = moved(left, inner).binary(
                    moved(right, inner), ps.Pipeline(), ps.Exchange(len), "match", build
                )
            probe = out(both, scope).probe()
        numbers.close()
        if worker.index == 0:
            words.send("x" * (worker.peers - 1))
        words.close()
        return holding(worker, lambda: not probe.done())

    return main


def fed(inside: bool) -> Callable[[ps.Worker], Any]:
    def main(worker: ps.Worker) -> Any:
        def build(capability: ps.Capability, info: ps.OperatorInfo) -> Any:
            feeder = threading.Thread(target=info.activator.activate, name="the feeder")
            feeder.start()
            feeder.join()  # it is over before anything was fed

            keep = [capability]  # for what the thread should bring
            if info.index:
                keep.pop().drop()
            return lambda output: keep.count(output)

        with worker.dataflow() as scope:
            with around(scope, inside) as inner:
                source = inner.source("live feed", build)
            probe = out(source, scope).probe()
        return holding(worker, lambda: not probe.done())

    return main


def unordered(inside: bool) -> Callable[[ps.Worker], Any]:
    def main(worker: ps.Worker) -> Any:
        with worker.dataflow() as scope:
            handle, capability, stream = scope.new_unordered_input()
            with around(scope, inside) as inner:
                passed = moved(stream, inner).unary(ps.Pipeline(), "pass", passing)
            probe = out(passed, scope).probe()
        if worker.index:
            capability.drop()
        else:
            capability.downgrade(6)
        result = holding(worker, lambda: not probe.done())
        del handle
        return result

    return main


LINE = kept.__code__.co_firstlineno + 9

# Each way: its program, what is found, given the last worker's number, and what the text says.
WAYS: dict[str, tuple[Callable[[bool], Any], Callable[[bool, int], tuple[Any, ...]], tuple[str, ...]]] = {
    "an input that was not advanced": (
        not_advanced,
        lambda inside, last: ("input", "input", 0 if last else 2, last),
        ("advance_to()", "close()", "test_explain.py:", "exchange -> one more ->", "-> probe"),
    ),
    "a capability that was kept": (
        kept,
        lambda inside, last: ("capability", "hold it", at(4, inside), last),
        (f"test_explain.py:{LINE}", "drop()", "hold it -> "),
    ),
    "an input that is not read": (
        unread,
        lambda inside, last: ("unread", "match", at(0, inside), last),
        ("input 1", "does not read", "for capability, records in"),
    ),
    "a thread that has died": (
        fed,
        lambda inside, last: ("source", "live feed", at(0, inside), 0),
        ("'the feeder'", "has ended", "exception"),
    ),
    "a capability of an unordered input": (
        unordered,
        lambda inside, last: ("source", "unordered input", 6, 0),
        ("drop()", "pass"),
    ),
}


@pytest.mark.parametrize("place", PLACES, ids=str)
def test_each_way_is_found_with_its_operator_its_time_and_its_cure(place: Any) -> None:
    def main(worker: ps.Worker) -> Any:
        return {(way, inside): WAYS[way][0](inside)(worker) for way in WAYS for inside in (False, True)}

    last = 1 if place else 0
    results = ps.execute(main, **place)
    assert len(results) == last + 1
    for worker, result in enumerate(results):
        for (way, inside), (text, found) in result.items():
            _, expected, words = WAYS[way]
            case = (worker, way, inside, text)
            assert [one[:4] for one in found] == [expected(inside, last)], case
            assert all(word in text for word in words), case
            assert found[0][5], case


@pytest.mark.parametrize("place", PLACES[1:], ids=str)
def test_a_worker_that_does_not_step_is_named_with_its_line(place: Any) -> None:
    def main(worker: ps.Worker) -> Any:
        with worker.dataflow() as scope:
            numbers, stream = scope.new_input()
            probe = stream.exchange(lambda x: x).probe()
        numbers.advance_to(1)
        worker.step_while(lambda: probe.less_than(1))
        if worker.index == 1:
            time.sleep(1.8)
            return None
        numbers.close()
        with pytest.raises(ps.StallError) as caught:
            worker.step_while(lambda: not probe.done(), timeout=0.2)
        return str(caught.value), caught.value.explanation.causes  # type: ignore[union-attr]

    (text, [found]), _ = ps.execute(main, **place)
    assert (found.kind, found.operator, found.time, found.worker) == ("worker", "input", 1, 1), text
    assert "does not step" in text
    assert f"test_explain.py:{main.__code__.co_firstlineno + 7} in main" in text
    assert "step_or_park" in text


@pytest.mark.parametrize("place", PLACES[1:], ids=str)
def test_a_dataflow_that_a_worker_has_not_built_is_named(place: Any) -> None:
    def main(worker: ps.Worker) -> Any:
        until = time.monotonic() + 120
        with worker.dataflow("first") as scope:
            waiting, stream = scope.new_input()
            first = stream.exchange(lambda x: x).probe()
        if worker.index == 1:
            waiting.close()
            worker.step_while(lambda: not first.done())  # until the other has asked
        with worker.dataflow("words") as scope:
            numbers, stream = scope.new_input()
            probe = stream.exchange(lambda x: x).probe()
        numbers.close()
        if worker.index == 0:
            found = worker.explain(probe, 1)
            while "Worker 1 has not built" not in str(found):  # it has yet to begin, or to step
                assert time.monotonic() < until, found
                found = worker.explain(probe, 1)
            waiting.close()
            worker.step_while(lambda: not probe.done())
            return [(one.kind, one.worker) for one in found.causes], str(found)
        return None

    [(kinds, text), _] = ps.execute(main, **place)
    assert kinds == [("worker", 1)], text
    assert "Worker 1 has not built the dataflow 'words'" in text, text
    assert "in main" in text, text


@pytest.mark.parametrize("place", PLACES, ids=str)
def test_a_loop_that_still_turns_says_at_which_turn(place: Any) -> None:
    def main(worker: ps.Worker) -> Any:
        with worker.dataflow() as scope:
            with scope.iterative("for ever") as inner:
                handle, back = inner.loop_variable()
                begin = scope.to_stream([worker.index]).enter(inner)
                numbers = begin.concat(back).exchange(lambda x: x).map(lambda x: x + 1, name="more")
                numbers.connect_loop(handle)
                probe = numbers.leave().probe()
        return holding(worker, lambda: not probe.done())

    for text, found in ps.execute(main, **place):
        # Between two workers it may be on its way at that moment.
        assert {one[0] for one in found} <= ({"loop", "messages"} if place else {"loop"}), text
        assert found
        assert "turn " in text
        assert "'for ever'" in text
        assert place or "'for ever' still turns" in text


@pytest.mark.parametrize("inside", [False, True])
@pytest.mark.parametrize("place", PLACES[1:], ids=str)
def test_a_source_that_pauses_names_what_is_on_its_way(place: Any, inside: bool) -> None:
    def main(worker: ps.Worker) -> Any:
        def build(capability: ps.Capability, info: ps.OperatorInfo) -> Any:
            def logic(output: Any) -> None:
                with output.session(capability) as session:
                    session.give_all([f"{number:01000}" for number in range(1000)])
                info.activator.activate()

            return logic

        def unread(capability: ps.Capability, info: ps.OperatorInfo) -> Any:
            return lambda port, output: None

        with worker.dataflow() as scope:
            with around(scope, inside) as inner:
                away = ps.Exchange(lambda text: worker.index + 1)
                slow = inner.source("fountain", build).unary(away, "slow", unread)
            probe = out(slow, scope).probe()
        return holding(worker, lambda: not probe.done())

    place = {name: number for name, number in place.items() if name != "workers"}
    config = ps.Config(workers=1 if place else 2, high_water=1 << 20)
    for text, found in ps.execute(main, config=config, **place):
        assert "pressure" in {one[0] for one in found}, text
        assert "fountain" in text
        assert "high_water" in text


def test_what_is_held_alike_is_said_once() -> None:
    async def waits(record: Any) -> Any:
        await asyncio.sleep(60)

    def main(worker: ps.Worker) -> Any:
        with worker.dataflow() as scope:
            numbers, stream = scope.new_input()
            answers, failed = stream.async_map(waits, name="ask")
            probe = answers.map(str).probe()
            failed.probe_with(probe)
        numbers.send(worker.index)
        numbers.close()
        return holding(worker, lambda: not probe.done())

    for text, found in ps.execute(main, workers=2):
        assert len(found) > 2, text  # of two outputs, on two workers
        assert {one[:2] for one in found} == {("capability", "ask")}, text
        assert text.count("'ask'") == 1, text
        assert "\n1. " in text
        assert "\n2. " not in text
        assert "It is the same on worker" in text


def test_what_the_only_worker_has_let_go_of_is_not_on_its_way() -> None:
    def main(worker: ps.Worker) -> str:
        with worker.dataflow() as scope:
            numbers, stream = scope.new_input()
            probe = stream.map(lambda n: n, name="slow").probe()
        numbers.send(1)
        numbers.advance_to(1)
        said = str(worker.explain(probe, 1))
        worker.step_while(lambda: probe.less_than(1))
        return said

    [text] = ps.execute(main)
    assert "between workers" not in text, text
    assert "has been let go of since" in text, text
    assert "next step" in text


def test_a_simulated_run_knows_the_lines_too() -> None:
    def main(worker: ps.Worker) -> str:
        with worker.dataflow() as scope:
            numbers, stream = scope.new_input(name="bids")
            probe = stream.probe()
        said = str(worker.explain(probe, 1))
        numbers.close()
        return said

    [text] = simulate(main, workers=1, seed=3)
    assert f"The input 'bids' ({__name__.rpartition('.')[2]}.py:" in text.replace(
        "tests/observability/", ""
    ), text


def test_what_is_passed_holds_nothing_and_an_unattached_probe_says_so() -> None:
    def main(worker: ps.Worker) -> None:
        with worker.dataflow() as scope:
            numbers, stream = scope.new_input()
            probe = stream.probe()
        numbers.advance_to(3)
        worker.step_while(lambda: probe.less_than(3))
        passed = worker.explain(probe, 3)
        assert not passed
        assert "No time before 3 is possible any more" in str(passed)
        held = worker.explain(probe, 4)
        assert held
        assert [one.time for one in held.causes] == [3]
        loose = worker.explain(ps.ProbeHandle(), 1)
        assert "attached to no dataflow" in str(loose)

    ps.execute(main)


@pytest.mark.parametrize("workers", [1, 2])
def test_an_operator_cannot_ask_its_own_worker(workers: int) -> None:
    refused: list[int] = []

    def main(worker: ps.Worker) -> None:
        def ask(_: int) -> None:
            with pytest.raises(ps.PointstampError, match="cannot be asked from inside one of its operators"):
                worker.explain(probe)
            refused.append(worker.index)

        with worker.dataflow() as scope:
            probe = scope.to_stream([1]).inspect(ask).probe()
        worker.run()

    ps.execute(main, workers=workers)
    assert sorted(refused) == list(range(workers))


def test_the_condition_is_not_waited_for_longer_than_it_holds() -> None:
    def main(worker: ps.Worker) -> int:
        with worker.dataflow() as scope:
            numbers, stream = scope.new_input()
            probe = stream.probe()
        numbers.advance_to(3)
        worker.step_while(lambda: probe.less_than(3), timeout=120)
        worker.step_while(lambda: False, timeout=0)
        with pytest.raises(ps.StallError):
            worker.step_while(lambda: True, timeout=0)
        with pytest.raises(ValueError, match="timeout in seconds"):
            worker.step_while(lambda: True, timeout=-1)
        return 1

    assert ps.execute(main) == [1]
