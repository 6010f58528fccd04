"""Capabilities: the times that they allow, their ends, and refused uses."""

import gc
import threading
from collections import Counter
from collections.abc import Callable
from typing import Any

import pytest

import pointstamp as ps
from harness import WORKERS, Logic, merged, notes, run
from pointstamp.order import Antichain


def held(scope: ps.Scope, name: str = "held") -> tuple[ps.Capability, ps.ProbeHandle]:
    """A source that gives its capability away, and a probe behind it."""
    kept: list[ps.Capability] = []

    def constructor(cap: ps.Capability, info: ps.OperatorInfo) -> Logic:
        kept.append(cap)
        return lambda output: None

    probe = scope.source(name, constructor).probe()
    return kept.pop(), probe


def settle(worker: ps.Worker) -> None:
    """Steps until nothing changes any more, on every worker."""
    for _ in range(3):
        worker.barrier()
        for _ in range(5):
            worker.step()


def frontier_after(workers: int, act: Callable[[ps.Capability], Any]) -> list[Antichain]:
    """The frontier behind a capability that every worker did something with."""

    def main(worker: ps.Worker) -> Antichain:
        with worker.dataflow() as scope:
            cap, probe = held(scope)
        kept = act(cap)
        del cap
        worker.barrier()
        if worker.index == 0:  # a collection while another thread collects does nothing
            gc.collect()
        settle(worker)
        found = probe.frontier
        worker.barrier()
        assert kept is not NotImplemented  # alive until here
        return found

    return ps.execute(main, workers=workers)


def with_block(cap: ps.Capability) -> None:
    with cap as same:
        assert same is cap


def cycle(cap: ps.Capability) -> None:
    loop: list[Any] = [cap]
    loop.append(loop)


@pytest.mark.parametrize("workers", WORKERS)
@pytest.mark.parametrize(
    ("act", "expected"),
    [
        (lambda cap: cap, [0]),
        (lambda cap: cap.downgrade(3) or cap, [3]),
        (lambda cap: cap.delayed(4), [4]),
        (lambda cap: (cap, cap.delayed(4)), [0]),
        (lambda cap: cap.clone(), [0]),
        (lambda cap: (cap.clone(), cap.drop()), [0]),
        (lambda cap: cap.drop(), []),
        (lambda cap: (cap.drop(), cap.drop()), []),
        (with_block, []),
        (lambda cap: None, []),
    ],
    ids=[
        "kept",
        "downgrade",
        "delayed",
        "both",
        "clone",
        "clone of dropped",
        "drop",
        "drop twice",
        "with",
        "lost",
    ],
)
def test_the_frontier_follows(workers: int, act: Callable[[ps.Capability], Any], expected: list[int]) -> None:
    assert frontier_after(workers, act) == [Antichain(expected)] * workers


@pytest.mark.parametrize("workers", WORKERS)
def test_garbage_collection_releases_a_capability_in_a_cycle(workers: int) -> None:
    assert frontier_after(workers, cycle) == [Antichain()] * workers


@pytest.mark.parametrize("parked", [True, False])
def test_a_cycle_collected_on_another_workers_thread_releases_its_capability(parked: bool) -> None:
    loops: list[Any] = []
    ready = threading.Event()
    collected = threading.Event()

    def main(worker: ps.Worker) -> bool:
        with worker.dataflow() as scope:
            cap, probe = held(scope)
        if worker.index == 0:
            loop: list[Any] = [cap]
            loop.append(loop)
            loops.append(loop)
            del loop, cap
            ready.set()
            assert parked or collected.wait(120)
        else:
            cap.drop()
            assert ready.wait(120)
            for _ in range(20 if parked else 0):
                worker.step_or_park(0.01)  # tells worker 0 all there is to tell: it sleeps after that
            loops.clear()
            gc.collect()
            collected.set()
        worker.step_while(lambda: not probe.done())
        return probe.done()

    gc.disable()
    try:
        assert ps.execute(main, workers=2) == [True, True]
    finally:
        gc.enable()


def test_a_capability_of_one_worker_is_not_anothers() -> None:
    caps: dict[int, ps.Capability] = {}
    met = threading.Barrier(2)

    def main(worker: ps.Worker) -> None:
        with worker.dataflow() as scope:
            caps[worker.index], _ = held(scope)
        met.wait(120)
        other = caps[1 - worker.index]
        for use in (
            lambda: other.time,
            other.drop,
            other.clone,
            lambda: other.delayed(3),
            lambda: hash(other),
        ):
            with pytest.raises(
                ps.PointstampError, match=f"belongs to worker {1 - worker.index}, which runs on"
            ):
                use()
        assert repr(other) == "<Capability of another thread>"
        met.wait(120)
        caps[worker.index].drop()

    ps.execute(main, workers=2)


def test_a_thread_of_ones_own_may_not_use_it_either() -> None:
    def main(worker: ps.Worker) -> list[str]:
        with worker.dataflow() as scope:
            cap, _ = held(scope)
        said: list[str] = []

        def use() -> None:
            try:
                cap.drop()
            except ps.PointstampError as error:
                said.append(str(error))

        thread = threading.Thread(target=use)
        thread.start()
        thread.join()
        assert cap.time == 0
        cap.drop()
        return said

    assert (
        "only an Activator, a ProbeHandle and a Capture may be used from any thread" in ps.execute(main)[0][0]
    )


def test_equal_and_hashed_by_output_and_time() -> None:
    def build(scope: ps.Scope) -> None:
        one, _ = held(scope, "one")
        two, _ = held(scope, "two")
        same = one.clone()
        assert one == same
        assert hash(one) == hash(same)
        assert one != two
        assert one != one.delayed(1)
        assert one != 0
        assert {one: "one", two: "two"}[same] == "one"
        assert repr(one.delayed(7)) == "<Capability time=7 output=0>"
        one.drop()
        assert repr(one) == "<Capability dropped>"
        assert one != same
        assert one == one

    ps.example(build)


def test_what_a_capability_refuses() -> None:
    def build(scope: ps.Scope) -> None:
        cap, _ = held(scope)
        cap.downgrade(5)
        for back in (cap.delayed, cap.downgrade):
            with pytest.raises(ps.TimeError, match="4"):
                back(4)
            with pytest.raises(ps.TimeError):
                back((5, 5))
            with pytest.raises(ps.TimeError):
                back(-1)
            with pytest.raises(ps.TimeError):
                back(2**64)
            with pytest.raises(TypeError):
                back("6")  # type: ignore[arg-type]
        assert cap.time == 5, "a refused downgrade changes nothing"
        cap.downgrade(5)
        with pytest.raises(ps.CapabilityError, match="for output 0, not output 1"):
            cap.delayed(6, 1)
        assert cap.delayed(6, 0).time == 6
        cap.drop()
        for use in (
            lambda: cap.time,
            cap.clone,
            lambda: cap.delayed(9),
            lambda: cap.downgrade(9),
            lambda: hash(cap),
        ):
            with pytest.raises(ps.CapabilityError, match="was dropped"):
                use()

    ps.example(build)


def in_operator(act: Callable[[Any, Any, Any], None], *, times: int = 1) -> None:
    """Calls `act(port, outputs, capabilities)` once in an operator with two inputs' worth of messages."""

    def build(scope: ps.Scope) -> None:
        builder = scope.operator("tested")
        builder.new_input(scope.to_stream(range(20_000)), ps.Pipeline())
        for _ in range(2):
            builder.new_output()
        builder.set_summary(0, 1, None)

        def constructor(capabilities: list[ps.Capability], info: ps.OperatorInfo) -> Logic:
            called = 0

            def logic(inputs: list[Any], outputs: list[Any]) -> None:
                nonlocal called
                if called < times and capabilities:
                    called += 1
                    act(inputs[0], outputs, capabilities)
                if called == times:
                    capabilities.clear()
                for _ in inputs[0]:
                    pass

            return logic

        builder.build(constructor)

    ps.example(build)


def test_a_messages_capability_ends_with_the_next_message() -> None:
    tried = 0

    def act(port: Any, outputs: Any, capabilities: Any) -> None:
        nonlocal tried
        message = port.next()
        if message is None:
            return
        ref, _ = message
        assert ref.retain().time == ref.time == 0
        assert ref.delayed(7).time == 7
        port.next()
        assert ref.time == 0
        assert repr(ref) == "<CapabilityRef time=0 expired>"
        for use in (ref.retain, lambda: ref.delayed(3), lambda: outputs[0].session(ref)):
            with pytest.raises(ps.CapabilityError, match=r"the message at 0 has expired.*retain\(\)"):
                use()
        tried += 1

    in_operator(act, times=3)
    assert tried > 0


def test_a_messages_capability_ends_with_the_run_of_its_operator() -> None:
    def build(scope: ps.Scope) -> None:
        refs: list[ps.CapabilityRef] = []

        def constructor(cap: ps.Capability, info: ps.OperatorInfo) -> Logic:
            cap.drop()

            def logic(port: ps.InputPort[int], output: ps.OutputPort[int]) -> None:
                message = port.next()
                if message is not None:
                    refs.append(message[0])
                    with output.session(message[0]) as session:
                        session.give_all(message[1])

            return logic

        def use(_record: int) -> None:
            refs[0].retain()

        scope.to_stream([1]).unary(ps.Pipeline(), "keeps", constructor).inspect(use)

    with pytest.raises(ps.CapabilityError, match="has expired") as raised:
        ps.example(build)
    assert notes(raised.value) == ["raised in operator 'inspect' on worker 0"]


def test_what_a_messages_capability_refuses() -> None:
    tried = 0

    def act(port: Any, outputs: Any, capabilities: Any) -> None:
        nonlocal tried
        message = port.next()
        if message is None:
            return
        tried += 1
        ref, _ = message
        with pytest.raises(ps.CapabilityError, match="no output 2: it has 2"):
            ref.retain(2)
        with pytest.raises(ps.CapabilityError, match="no path leads from this input to output 1"):
            ref.retain(1)
        with pytest.raises(ps.CapabilityError, match="no path leads"):
            outputs[1].session(ref)
        with pytest.raises(ps.TimeError):
            ref.delayed((1, 2))

    in_operator(act, times=3)
    assert tried > 0


def test_a_session_needs_a_capability_for_its_output() -> None:
    tried = 0

    def act(port: Any, outputs: Any, capabilities: Any) -> None:
        nonlocal tried
        tried += 1
        with pytest.raises(ps.CapabilityError, match="for another output than output 1"):
            outputs[1].session(capabilities[0])
        with pytest.raises(TypeError, match="needs a Capability or a message's CapabilityRef, not int"):
            outputs[0].session(0)
        dropped = capabilities[0].clone()
        dropped.drop()
        with pytest.raises(ps.CapabilityError, match="was dropped"):
            outputs[0].session(dropped)

    in_operator(act)
    assert tried == 1


def test_another_operators_capability_is_refused() -> None:
    def build(scope: ps.Scope) -> None:
        cap, _ = held(scope, "theirs")

        def constructor(mine: ps.Capability, info: ps.OperatorInfo) -> Logic:
            mine.drop()

            def logic(port: ps.InputPort[int], output: ps.OutputPort[int]) -> None:
                for _ in port:
                    with output.session(cap) as session:
                        session.give(1)

            return logic

        scope.to_stream([1]).unary(ps.Pipeline(), "mine", constructor)

    with pytest.raises(ps.CapabilityError, match="another output") as raised:
        ps.example(build)
    assert notes(raised.value) == ["raised in operator 'mine' on worker 0"]


@pytest.mark.parametrize("workers", WORKERS)
def test_a_capability_kept_from_a_message_sends_later(workers: int) -> None:
    def build(scope: ps.Scope) -> Any:
        def constructor(cap: ps.Capability, info: ps.OperatorInfo) -> Logic:
            cap.drop()
            kept: list[ps.Capability] = []

            def logic(port: ps.FrontieredInput[int], output: ps.OutputPort[int]) -> None:
                for message, records in port:
                    kept.extend(message.delayed(x) for x in records)
                if not port.frontier:
                    while kept:
                        with kept.pop() as cap, output.session(cap) as session:
                            session.give(cap.time)  # type: ignore[arg-type]

            return logic

        return (
            scope.to_stream(range(100))
            .unary_frontier(ps.Exchange(lambda x: x), "later", constructor)
            .capture()
        )

    assert merged(run(workers, build)) == {x: Counter({x: workers}) for x in range(100)}
