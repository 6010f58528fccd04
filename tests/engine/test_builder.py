"""Operators with any number of inputs and outputs, and the path summaries between them."""

from collections import Counter
from typing import Any

import pytest

import pointstamp as ps
from harness import WORKERS, Logic, every, merged, run, share


@pytest.mark.parametrize("workers", WORKERS)
def test_three_inputs_and_two_outputs(workers: int) -> None:
    def build(scope: ps.Scope) -> Any:
        builder = scope.operator("deal")
        for i in range(3):
            assert (
                builder.new_input(share(scope, range(100 * i, 100 * i + 100)), ps.Exchange(lambda x: x)) == i
            )
        outputs = [builder.new_output() for _ in range(2)]
        assert [number for number, _ in outputs] == [0, 1]

        def constructor(capabilities: list[ps.Capability], info: ps.OperatorInfo) -> Logic:
            assert [cap.time for cap in capabilities] == [0, 0]
            assert info.name == "deal"
            for cap in capabilities:
                cap.drop()

            def logic(inputs: list[Any], ports: list[Any]) -> None:
                for port in inputs:
                    for message, records in port:
                        for parity, output in enumerate(ports):
                            with output.session(message) as session:
                                session.give_all(x for x in records if x % 2 == parity)

            return logic

        builder.build(constructor)
        return [stream.capture() for _, stream in outputs]

    even, odd = map(merged, zip(*run(workers, build), strict=True))
    assert even == {0: Counter(range(0, 300, 2))}
    assert odd == {0: Counter(range(1, 300, 2))}


def copier(capabilities: list[ps.Capability], info: ps.OperatorInfo) -> Logic:
    for cap in capabilities:
        cap.drop()

    def logic(inputs: list[Any], outputs: list[Any]) -> None:
        for message, records in inputs[0]:
            with outputs[0].session(message) as session:
                session.give_all(records)
        for _ in inputs[1]:
            pass

    return logic


@pytest.mark.parametrize("workers", WORKERS)
@pytest.mark.parametrize("connected", [True, False])
def test_data_never_waits_for_an_input_without_a_path(workers: int, connected: bool) -> None:
    def main(worker: ps.Worker) -> bool:
        data: ps.InputHandle[int] = ps.InputHandle()
        diagnostics: ps.InputHandle[str] = ps.InputHandle()
        with worker.dataflow() as scope:
            builder = scope.operator("data and diagnostics")
            builder.new_input(data.to_stream(scope), ps.Pipeline())
            builder.new_input(diagnostics.to_stream(scope), ps.Pipeline())
            output, stream = builder.new_output()
            if not connected:
                builder.set_summary(1, output, None)
            builder.build(copier)
            probe = stream.probe()
        data.send(1)
        data.advance_to(5)
        worker.barrier()
        for _ in range(20):
            worker.step_or_park(0.005)
        past = not probe.less_than(5)
        diagnostics.close()
        worker.step_while(lambda: probe.less_than(5))
        return past

    assert ps.execute(main, workers=workers) == [not connected] * workers


@pytest.mark.parametrize("workers", WORKERS)
def test_a_summary_lets_the_frontier_run_ahead(workers: int) -> None:
    def main(worker: ps.Worker) -> Any:
        handle: ps.InputHandle[int] = ps.InputHandle()
        with worker.dataflow(dims=2) as scope:
            builder = scope.operator("later")
            builder.new_input(handle.to_stream(scope), ps.Pipeline())
            output, stream = builder.new_output()
            builder.set_summary(0, output, [(2, 0), (0, 3)])

            def constructor(capabilities: list[ps.Capability], info: ps.OperatorInfo) -> Logic:
                capabilities.pop().drop()

                def logic(inputs: list[Any], outputs: list[Any]) -> None:
                    for message, records in inputs[0]:
                        with pytest.raises(ps.TimeError):
                            message.retain()
                        with pytest.raises(ps.TimeError):
                            message.delayed((1, 2))
                        i, j = message.time
                        for time in [(i + 2, j), (i, j + 3), (i + 5, j + 5)]:
                            with message.delayed(time) as cap, outputs[0].session(cap) as session:
                                session.give_all(records)

                return logic

            builder.build(constructor)
            probe, capture = stream.probe(), stream.capture()
        handle.send(7)
        worker.step_while(lambda: probe.less_equal((0, 0)))
        frontier = set(probe.frontier)
        handle.close()
        return frontier, capture

    for frontier, capture in ps.execute(main, workers=workers):
        assert frontier == {(2, 0), (0, 3)}
        assert capture.extract() == [((0, 3), [7]), ((2, 0), [7]), ((5, 5), [7])]


def test_what_does_not_exist_is_refused() -> None:
    def build(scope: ps.Scope) -> None:
        builder = scope.operator("mine")
        builder.new_input(scope.empty(), ps.Pipeline())
        builder.new_output()
        for i, o in [(1, 0), (0, 1)]:
            with pytest.raises(ps.GraphError, match="'mine' has 1 inputs and 1 outputs"):
                builder.set_summary(i, o, 1)
        with pytest.raises(ps.TimeError):
            builder.set_summary(0, 0, [(1, 2)])
        builder.build(lambda caps, info: lambda inputs, outputs: None)
        with pytest.raises(ps.GraphError, match="'mine' was built already"):
            builder.build(lambda caps, info: lambda inputs, outputs: None)

    ps.example(build)


def test_nothing_is_added_once_the_block_has_ended() -> None:
    def main(worker: ps.Worker) -> None:
        with worker.dataflow("first") as scope:
            stream = scope.to_stream([1])
            chained = stream.map(str)
        for add in every(
            lambda: stream.map(str),
            lambda: chained.map(str),
            lambda: chained.capture(),
            lambda: scope.to_stream([1]),
            lambda: stream.exchange(str),
        ):
            with pytest.raises(ps.GraphError, match="'first' any more: its dataflow is installed already"):
                add()
        with pytest.raises(
            ps.GraphError, match=r"scope 'second' \[1\] cannot read the stream of 'to_stream'"
        ):
            with worker.dataflow("second") as scope2:
                scope2.to_stream([1]).concat(stream)

    ps.execute(main)


def test_an_operator_that_is_never_built_is_refused() -> None:
    def main(worker: ps.Worker) -> None:
        with (
            pytest.raises(ps.GraphError, match="operator 'mine' was never built"),
            worker.dataflow() as scope,
        ):
            scope.operator("mine").new_input(scope.to_stream([1]), ps.Pipeline())
        with worker.dataflow() as scope, worker.dataflow() as other:
            with pytest.raises(ps.GraphError, match="cannot read"):
                scope.to_stream([1]).concat(other.empty())  # a method that refuses adds nothing

    ps.execute(main)


def test_a_method_that_is_refused_leaves_nothing_behind() -> None:
    def main(worker: ps.Worker) -> list[Any]:
        with worker.dataflow() as scope:
            ones = scope.to_stream([1])
            with worker.dataflow() as other, pytest.raises(ps.GraphError, match="cannot read"):
                ones.concat(other.empty())
            with worker.dataflow() as other, pytest.raises(ps.GraphError, match="cannot read"):
                ones.reclock(other.empty())
            with pytest.raises(TypeError, match="takes a probe"):
                ones.probe_with("handle")  # type: ignore[arg-type]
            capture = ones.capture()
        assert [node.kind for node in scope.plan().nodes] == ["to_stream", "capture"]
        worker.run()
        return capture.extract()

    assert ps.execute(main) == [[(0, [1])]]


def test_dims_are_checked() -> None:
    def main(worker: ps.Worker) -> None:
        with pytest.raises(ps.GraphError, match="-1 coordinates"):
            worker.dataflow(dims=-1)
        block = worker.dataflow()
        with block:
            pass
        with pytest.raises(ps.GraphError, match="built already"), block:
            pass

    ps.execute(main)


@pytest.mark.parametrize("workers", WORKERS)
def test_a_built_operator_runs_when_a_frontier_changes(workers: int) -> None:
    def main(worker: ps.Worker) -> list[Any]:
        one: ps.InputHandle[int] = ps.InputHandle()
        two: ps.InputHandle[int] = ps.InputHandle()
        seen: list[Any] = []

        def constructor(capabilities: list[ps.Capability], info: ps.OperatorInfo) -> Logic:
            capabilities.clear()

            def logic(inputs: list[Any], outputs: list[Any]) -> None:
                seen.append(tuple(tuple(port.frontier) for port in inputs))

            return logic

        with worker.dataflow() as scope:
            builder = scope.operator("watches")
            for handle in (one, two):
                builder.new_input(handle.to_stream(scope), ps.Pipeline())
            number, stream = builder.new_output()
            builder.build(constructor)
            probe = stream.probe()
        one.advance_to(2)
        two.advance_to(5)
        worker.step_while(lambda: probe.less_than(2))
        one.close()
        worker.step_while(lambda: probe.less_than(5))
        assert number == 0
        two.close()
        worker.run()
        return seen

    for seen in ps.execute(main, workers=workers):
        assert seen[-1] == ((), ())
        assert ((), (5,)) in seen


def ignoring(capabilities: list[ps.Capability], info: ps.OperatorInfo) -> Logic:
    capabilities.clear()

    def logic(inputs: list[Any], outputs: list[Any]) -> None:
        for port in inputs:
            list(port)

    return logic


def test_nothing_is_added_once_the_constructor_was_called() -> None:
    def build(scope: ps.Scope) -> Any:
        builder = scope.operator("mine")
        numbers = scope.to_stream([1])
        builder.new_input(numbers, ps.Pipeline())
        _, stream = builder.new_output()
        calls = every(
            lambda: builder.new_input(numbers, ps.Pipeline()),
            builder.new_output,
            lambda: builder.set_summary(0, 0, 1),
            lambda: builder.retention(stream),
            lambda: builder.build(ignoring),
        )

        def refused() -> None:
            for call in calls:
                with pytest.raises(ps.GraphError, match="'mine' was built already"):
                    call()

        def constructor(capabilities: list[ps.Capability], info: ps.OperatorInfo) -> Logic:
            refused()
            return ignoring(capabilities, info)

        builder.build(constructor)
        refused()
        return stream.capture()

    assert ps.example(build).extract() == []


def test_a_constructor_that_raised_is_not_followed_by_another() -> None:
    """It was given the capabilities. Without logic the operator holds the dataflow up, which is refused."""

    def build(scope: ps.Scope) -> None:
        builder = scope.operator("mine")
        builder.new_output()
        with pytest.raises(ZeroDivisionError):
            builder.build(lambda capabilities, info: 1 / 0)  # type: ignore[arg-type,return-value]
        with pytest.raises(ps.GraphError, match="'mine' was built already"):
            builder.build(ignoring)

    with pytest.raises(ps.GraphError, match="'mine' was never built"):
        ps.example(build)


def test_retention_is_of_streams_of_the_operator() -> None:
    def build(scope: ps.Scope) -> None:
        builder = scope.operator("mine")
        _, results = builder.new_output()
        with pytest.raises(ps.GraphError, match="'mine' sends on, and that of 'map' is none of them"):
            builder.retention(results.map(str))
        builder.retention(results)
        builder.build(ignoring)

    ps.example(build)


def test_nothing_is_added_in_a_scope_that_has_ended() -> None:
    def build(scope: ps.Scope) -> None:
        with scope.region("inner") as inner:
            builder = inner.operator("mine")
            stream = inner.to_stream([1])
        for call in every(lambda: builder.new_input(stream, ps.Pipeline()), builder.new_output):
            with pytest.raises(ps.GraphError, match="nothing can be added to scope 'inner' any more"):
                call()

    ps.example(build)
