"""Operators of one's own: unary, binary, sinks, sources, with and without frontiers and notifications."""

from collections import Counter, defaultdict
from typing import Any

import pytest

import pointstamp as ps
from harness import WORKERS, Logic, Seen, merged, passing, run, share


def rounds(
    workers: int,
    build: Any,
    send: Any = lambda index, time: range(10 * time, 10 * time + 10),
    count: int = 4,
    inputs: int = 1,
) -> list[Any]:
    """Runs a dataflow of one or several inputs, each of which gets records at times 0, 1, ..."""

    def main(worker: ps.Worker) -> Any:
        handles: list[ps.InputHandle[Any]] = [ps.InputHandle() for _ in range(inputs)]
        with worker.dataflow() as scope:
            result = build(*(handle.to_stream(scope) for handle in handles))
        for time in range(count):
            for handle in handles:
                handle.advance_to(time)
                handle.send_batch(send(worker.index, time))
            worker.step()
        return result

    return ps.execute(main, workers=workers)


@pytest.mark.parametrize("workers", WORKERS)
def test_unary_with_state(workers: int) -> None:
    def running(cap: ps.Capability, info: ps.OperatorInfo) -> Logic:
        cap.drop()
        total = 0

        def logic(port: ps.InputPort[int], output: ps.OutputPort[int]) -> None:
            nonlocal total
            while (message := port.next()) is not None:
                ref, records = message
                total += sum(records)
                with output.session(ref) as session:
                    session.give(total)

        return logic

    captures = rounds(workers, lambda stream: stream.unary(ps.Pipeline(), "total", running).capture())
    for capture in captures:
        totals = dict(capture.extract())
        assert [max(totals[time]) for time in range(4)] == [45, 190, 435, 780]


@pytest.mark.parametrize("workers", WORKERS)
def test_unary_frontier_is_told_of_every_time(workers: int) -> None:
    frontiers: Seen[tuple[int, tuple[ps.Time, ...]]] = Seen()

    def watching(cap: ps.Capability, info: ps.OperatorInfo) -> Logic:
        cap.drop()

        def logic(port: ps.FrontieredInput[int], output: ps.OutputPort[int]) -> None:
            for _message, records in port:
                assert all(port.frontier.less_equal(x // 10) for x in records), "a message at a closed time"
            frontiers.note((info.index, tuple(port.frontier)))

        return logic

    rounds(workers, lambda stream: stream.unary_frontier(ps.Exchange(lambda x: x), "watch", watching))
    for index in range(workers):
        mine = [frontier for who, frontier in frontiers if who == index]
        assert mine[-1] == ()
        times = [times[0] for times in mine if times]
        assert times == sorted(times)


@pytest.mark.parametrize("workers", WORKERS)
def test_an_operator_without_frontier_runs_only_for_messages(workers: int) -> None:
    runs: Seen[int] = Seen()

    def counting(cap: ps.Capability, info: ps.OperatorInfo) -> Logic:
        cap.drop()

        def logic(port: ps.InputPort[int], output: ps.OutputPort[int]) -> None:
            runs.note(sum(len(records) for _, records in port))

        return logic

    rounds(workers, lambda stream: stream.unary(ps.Pipeline(), "count", counting), count=20)
    assert sum(runs) == workers * 200
    assert 0 not in runs
    runs.clear()
    rounds(workers, lambda stream: stream.unary(ps.Pipeline(), "count", counting), lambda *_: [], count=20)
    assert runs == []


@pytest.mark.parametrize("workers", WORKERS)
def test_logic_that_takes_one_message_at_a_time_gets_them_all(workers: int) -> None:
    def one(cap: ps.Capability, info: ps.OperatorInfo) -> Logic:
        cap.drop()

        def logic(port: ps.InputPort[int], output: ps.OutputPort[int]) -> None:
            if (message := port.next()) is not None:
                with output.session(message[0]) as session:
                    session.give_all(message[1])

        return logic

    def build(scope: ps.Scope) -> Any:
        return scope.to_stream(range(50_000)).unary(ps.Exchange(lambda x: x), "one", one).capture()

    assert merged(run(workers, build)) == {0: Counter({x: workers for x in range(50_000)})}


@pytest.mark.parametrize("workers", WORKERS)
def test_unary_notify_hands_each_time_back_once_and_in_order(workers: int) -> None:
    def build(stream: ps.Stream[int]) -> Any:
        notified: list[tuple[ps.Time, int]] = []
        seen: set[ps.Time] = set()

        def logic(port: ps.InputPort[int], output: ps.OutputPort[str], notificator: ps.Notificator) -> None:
            for message, records in port:
                assert not any(message.time <= time for time, _ in notified), "after its notification"  # type: ignore[operator]
                seen.add(message.time)
                for _ in records:
                    notificator.notify_at(message.retain())
            for cap, count in notificator:
                notified.append((cap.time, count))
                with output.session(cap) as session:
                    session.give(f"time {cap.time} is over")
                cap.drop()

        return stream.unary_notify(ps.Exchange(lambda x: x), "notify", [2, 7], logic).capture(), notified

    for capture, notified in rounds(workers, build):
        assert [time for time, _ in notified] == [0, 1, 2, 3, 7]
        times = {time for time, _ in capture.extract()}
        assert times == {0, 1, 2, 3, 7}
        assert dict(notified)[7] == 1
    total = [sum(dict(notified)[time] for _, notified in rounds(workers, build)) for time in range(4)]
    assert total == [10 * workers, 10 * workers, 10 * workers + workers, 10 * workers]


@pytest.mark.parametrize("workers", WORKERS)
def test_binary_operators(workers: int) -> None:
    def pairs(cap: ps.Capability, info: ps.OperatorInfo) -> Logic:
        cap.drop()
        left: dict[ps.Time, list[int]] = defaultdict(list)
        right: dict[ps.Time, list[int]] = defaultdict(list)

        def logic(one: ps.InputPort[int], two: ps.InputPort[int], output: ps.OutputPort[Any]) -> None:
            for port, mine, others, key in ((one, left, right, 0), (two, right, left, 1)):
                for message, records in port:
                    mine[message.time].extend(records)
                    with output.session(message) as session:
                        for record in records:
                            for other in others[message.time]:
                                if record == other:
                                    session.give((record, key >= 0))

        return logic

    def last(one: Any, two: Any, output: ps.OutputPort[Any], notificator: ps.Notificator) -> None:
        for port in (one, two):
            for message, _ in port:
                notificator.notify_at(message.retain())
        for cap, count in notificator:
            with cap, output.session(cap) as session:
                session.give(count > 0)

    def build(one: ps.Stream[int], two: ps.Stream[int]) -> Any:
        by = ps.Exchange(lambda x: x)
        return (
            one.binary(two, by, by, "pairs", pairs).capture(),
            one.binary_frontier(two, by, by, "pairs with frontier", pairs).capture(),
            one.binary_notify(two, by, by, "ends", [], last).capture(),
        )

    plain, frontier, ends = map(merged, zip(*rounds(workers, build, inputs=2), strict=True))
    expected = {
        t: Counter({(x, True): workers * workers for x in range(10 * t, 10 * t + 10)}) for t in range(4)
    }
    assert plain == frontier == expected
    assert ends == {t: Counter({True: workers}) for t in range(4)}


@pytest.mark.parametrize("workers", WORKERS)
def test_binary_notify_waits_for_both_inputs(workers: int) -> None:
    def main(worker: ps.Worker) -> list[ps.Time]:
        first: ps.InputHandle[int] = ps.InputHandle()
        second: ps.InputHandle[int] = ps.InputHandle()
        notified: list[ps.Time] = []

        def logic(one: Any, two: Any, output: Any, notificator: ps.Notificator) -> None:
            for message, _ in one:
                notificator.notify_at(message.retain())
            for _ in two:
                pass
            notified.extend(cap.time for cap, _ in notificator)

        with worker.dataflow() as scope:
            stream = first.to_stream(scope).binary_notify(
                second.to_stream(scope), ps.Pipeline(), ps.Pipeline(), "both", [], logic
            )
            probe = stream.probe()
        first.send(1)
        first.close()
        worker.barrier()
        for _ in range(5):
            worker.step()
        assert notified == []
        assert probe.less_equal(0)
        second.close()
        worker.run()
        return notified

    assert ps.execute(main, workers=workers) == [[0]] * workers


@pytest.mark.parametrize("workers", WORKERS)
def test_a_sink_reads_to_the_end(workers: int) -> None:
    def build(scope: ps.Scope) -> Any:
        read: list[Any] = []

        def sinking(info: ps.OperatorInfo) -> Logic:
            assert (info.name, info.index, info.peers) == ("sink", scope.index, workers)

            def logic(port: ps.FrontieredInput[int]) -> None:
                for message, records in port:
                    read.append((message.time, records))
                if not port.frontier:
                    read.append("end")

            return logic

        share(scope, range(100)).sink(ps.Broadcast(), "sink", sinking)
        return read

    for read in run(workers, build):
        assert read.pop() == "end"
        assert Counter(x for time, records in read for x in records) == Counter(range(100))
        assert {time for time, _ in read} == {0}


@pytest.mark.parametrize("workers", WORKERS)
def test_a_source_runs_while_it_asks_to(workers: int) -> None:
    def build(scope: ps.Scope) -> Any:
        def counting(cap: ps.Capability, info: ps.OperatorInfo) -> Logic:
            assert cap.time == 0
            left = 50

            def logic(output: ps.OutputPort[int]) -> None:
                nonlocal left
                if left == 0:
                    cap.drop()
                    return
                with output.session(cap) as session:
                    session.give(left)
                left -= 1
                cap.downgrade(cap.time + 1)  # type: ignore[operator]
                info.activator.activate()

            return logic

        return scope.source("count", counting).capture()

    for capture in run(workers, build):
        assert capture.extract() == [(t, [50 - t]) for t in range(50)]


def test_an_operator_is_told_of_itself() -> None:
    def build(scope: ps.Scope) -> None:
        def constructor(cap: ps.Capability, info: ps.OperatorInfo) -> Logic:
            assert info.name == "mine"
            assert info.address == (*scope.address, 1)
            assert (info.index, info.peers) == (scope.index, 2)
            assert isinstance(info.activator, ps.Activator)
            return passing(cap, info)

        scope.to_stream([1]).unary(ps.Pipeline(), "mine", constructor)

    run(2, build)


def test_operators_run_in_the_order_of_the_program() -> None:
    """Operators of one's own are reserved before others are made: a record passes all of them in one step."""
    seen: list[str] = []

    def through(stream: Any, name: str) -> Any:
        def noting(cap: ps.Capability, info: ps.OperatorInfo) -> Logic:
            run = passing(cap, info)

            def logic(port: Any, output: Any) -> None:
                seen.append(info.name)
                run(port, output)

            return logic

        return stream.map(int).unary(ps.Pipeline(), name, noting)

    def main(worker: ps.Worker) -> list[str]:
        with worker.dataflow() as scope:
            handle, stream = scope.new_input()
            stream = through(through(stream, "first"), "second")
            with scope.iterative() as inner:
                inside = through(through(stream.enter(inner), "third"), "fourth")
            probe = through(inside.leave(), "fifth").probe()
        worker.step()
        seen.clear()
        handle.send(1)
        handle.flush()
        worker.step()
        found = [*seen]
        handle.close()
        worker.step_while(lambda: not probe.done)
        return found

    assert ps.execute(main) == [["first", "second", "third", "fourth", "fifth"]]


@pytest.mark.parametrize("method", ["unary", "unary_frontier"])
def test_a_constructor_must_return_a_function(method: str) -> None:
    def build(scope: ps.Scope) -> None:
        getattr(scope.to_stream([1]), method)(ps.Pipeline(), "mine", lambda cap, info: None)

    with pytest.raises(ps.GraphError, match=r"constructor of operator 'mine' must return its logic.*None"):
        ps.example(build)


def test_so_must_those_of_sinks_and_built_operators() -> None:
    with pytest.raises(ps.GraphError, match="'mine' must return its logic"):
        ps.example(lambda scope: scope.empty().sink(ps.Pipeline(), "mine", lambda info: None))  # type: ignore[arg-type,return-value]
    with pytest.raises(ps.GraphError, match="'mine' must return its logic"):
        ps.example(lambda scope: scope.operator("mine").build(lambda caps, info: None))  # type: ignore[arg-type,return-value]
    with pytest.raises(TypeError, match="logic of operator 'mine' is a function"):
        ps.example(lambda scope: scope.empty().unary_notify(ps.Pipeline(), "mine", [], 3))  # type: ignore[call-overload]


def test_an_input_is_read_only_while_its_operator_runs() -> None:
    def build(scope: ps.Scope) -> None:
        ports: list[ps.InputPort[int]] = []

        def constructor(cap: ps.Capability, info: ps.OperatorInfo) -> Logic:
            cap.drop()

            def logic(port: ps.InputPort[int], output: ps.OutputPort[int]) -> None:
                ports.append(port)
                for _ in port:
                    pass

            return logic

        def read_later(_: int) -> None:
            ports[0].next()

        stream = scope.to_stream([1])
        stream.unary(ps.Pipeline(), "mine", constructor)
        stream.inspect(read_later)

    with pytest.raises(ps.CapabilityError, match="while its operator runs"):
        ps.example(build)


@pytest.mark.parametrize(
    ("dims", "times"),
    [(0, [()]), (1, [0, 3]), (2, [(0, 0), (0, 3), (3, 0)]), (3, [(0, 0, 0), (1, 2, 3), (3, 2, 1)])],
)
@pytest.mark.parametrize("workers", WORKERS)
def test_times_of_any_number_of_coordinates(workers: int, dims: int, times: list[ps.Time]) -> None:
    def main(worker: ps.Worker) -> Any:
        ready: list[ps.Time] = []

        def logic(port: Any, output: ps.OutputPort[str], notificator: ps.Notificator) -> None:
            for message, _ in port:
                notificator.notify_at(message.retain())
            for cap, _ in notificator:
                ready.append(cap.time)
                with output.session(cap) as session:
                    session.give("end")

        with worker.dataflow(dims=dims) as scope:
            assert scope.dims == dims
            unordered, cap, stream = scope.new_unordered_input()
            ends = stream.unary_notify(ps.Exchange(lambda x: 0), "ends", [], logic).capture()
            capture, probe = stream.capture(), stream.probe()
        for time in times:
            with cap.delayed(time) as later, unordered.session(later) as session:
                session.give(worker.index)
        assert probe.less_equal(cap.time)
        cap.drop()
        worker.run()
        assert probe.done()
        return capture, ends, ready

    captures, ends, ready = zip(*ps.execute(main, workers=workers), strict=True)
    assert merged(captures) == {time: Counter(range(workers)) for time in times}
    assert merged(ends) == {time: Counter({"end": 1}) for time in times}
    assert sorted(ready[0]) == sorted(times)
