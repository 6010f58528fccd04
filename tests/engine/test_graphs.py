"""Workers that build different dataflows, and graphs that cannot run."""

from collections.abc import Callable
from typing import Any

import pytest

import pointstamp as ps


def one(worker: ps.Worker, name: str = "flow", build: Callable[[ps.Scope], Any] = lambda scope: None) -> None:
    with worker.dataflow(name) as scope:
        build(scope)


def by_name(worker: ps.Worker) -> None:
    one(worker, "even" if worker.index % 2 == 0 else "odd")


def by_operator(worker: ps.Worker) -> None:
    one(worker, build=lambda scope: scope.to_stream([1]).map(str, name=f"map {worker.index % 2}"))


def by_number_of_operators(worker: ps.Worker) -> None:
    def build(scope: ps.Scope) -> None:
        stream = scope.to_stream([1])
        if worker.index % 2:
            stream.exchange(lambda x: x)

    one(worker, build=build)


def by_edges(worker: ps.Worker) -> None:
    def build(scope: ps.Scope) -> None:
        streams = [scope.to_stream([1]), scope.to_stream([2])]
        streams[worker.index % 2].broadcast()

    one(worker, build=build)


def by_pact(worker: ps.Worker) -> None:
    def build(scope: ps.Scope) -> None:
        pact = ps.Exchange(lambda x: x) if worker.index % 2 else ps.Pipeline()
        scope.to_stream([1]).sink(pact, "sink", lambda info: lambda port: None)

    one(worker, build=build)


def by_dims(worker: ps.Worker) -> None:
    with worker.dataflow("flow", dims=1 + worker.index % 2):
        pass


def by_number_of_dataflows(worker: ps.Worker) -> None:
    one(worker)
    if worker.index % 2:
        one(worker, "second")


def by_a_discarded_one(worker: ps.Worker) -> None:
    try:
        with worker.dataflow("flow"):
            if worker.index % 2:
                raise KeyError
    except KeyError:
        pass
    handle: ps.InputHandle[int] = ps.InputHandle()
    one(worker, "other", handle.to_stream)


@pytest.mark.parametrize(
    ("build", "says"),
    [
        (by_name, r"it is '(even|odd)' on worker \d and '(even|odd)' on worker \d"),
        (by_operator, r"operator 2 'map [01]' in scope \[\] .*operator 2 'map [01]'"),
        (by_number_of_operators, r"(operator 2 'exchange'|an? .* edge)"),
        (by_edges, r"a broadcast edge in scope \[\] from output 0 of operator [12] to input 0 of operator 3"),
        (by_pact, r"an? (exchange|pipeline) edge .* where worker \d has an? (exchange|pipeline) edge"),
        (by_dims, r"scope 'flow' \[\] with [12] coordinates, where"),
        (by_number_of_dataflows, r"built dataflow 1 'second', and worker [02] ended without building it"),
        (by_a_discarded_one, r"built dataflow 0 'flow', and worker [13] ended without building it"),
    ],
)
@pytest.mark.parametrize("workers", [2, 4])
@pytest.mark.parametrize("then", ["run", "return"])
def test_workers_that_differ_are_found_out(
    build: Callable[[ps.Worker], None], says: str, workers: int, then: str
) -> None:
    told: list[str] = []

    def main(worker: ps.Worker) -> None:
        try:
            build(worker)
            if then == "run":
                worker.run()
        except ps.GraphError as error:
            told.append(str(error))
            raise

    with pytest.raises(ps.GraphError, match=says) as raised:
        ps.execute(main, workers=workers)
    assert "build the same" in str(raised.value)
    assert set(told) <= {str(raised.value)}, "every worker is told the same"


def test_every_worker_hears_of_it() -> None:
    told: dict[int, str] = {}

    def main(worker: ps.Worker) -> None:
        handle: ps.InputHandle[int] = ps.InputHandle()
        try:
            with worker.dataflow("before") as scope:
                probe = handle.to_stream(scope).probe()
            by_name(worker)
            worker.step_while(lambda: not probe.done())
        except ps.GraphError as error:
            told[worker.index] = str(error)
            raise

    with pytest.raises(ps.GraphError):
        ps.execute(main, workers=4)
    assert sorted(told) == [0, 1, 2, 3]
    assert len(set(told.values())) == 1


def test_a_dataflow_dropped_on_one_worker_only() -> None:
    def main(worker: ps.Worker) -> None:
        handle: ps.InputHandle[int] = ps.InputHandle()
        one(worker, "lonely", handle.to_stream)
        if worker.index == 0:
            worker.drop_dataflow(0)

    with pytest.raises(ps.GraphError, match="0 'lonely' was dropped on worker 0 but not on worker 1"):
        ps.execute(main, workers=2)


def test_one_worker_alone_may_build_what_it_likes() -> None:
    ps.execute(by_number_of_dataflows)


@pytest.mark.parametrize("workers", [1, 2])
def test_a_cycle_that_does_not_advance_time_is_refused_with_its_names(workers: int) -> None:
    def build(scope: ps.Scope) -> None:
        handle, cycle = scope.feedback(0)
        cycle.map(lambda x: x, name="my map").connect_loop(handle)

    def main(worker: ps.Worker) -> None:
        one(worker, build=build)

    with pytest.raises(ps.GraphError, match=r"(my map.*feedback|feedback.*my map)"):
        ps.execute(main, workers=workers)


def test_a_loop_that_is_never_connected_is_refused() -> None:
    with pytest.raises(ps.GraphError, match="never connected"):
        ps.example(lambda scope: scope.feedback()[1].map(str))


def test_a_loop_is_connected_once() -> None:
    def build(scope: ps.Scope) -> None:
        handle, cycle = scope.loop_variable()
        cycle.connect_loop(handle)
        with pytest.raises(ps.GraphError, match="connected already"):
            cycle.connect_loop(handle)

    ps.example(build)


def test_a_scope_of_another_dataflow_is_another_scope() -> None:
    def main(worker: ps.Worker) -> None:
        with worker.dataflow("outer") as scope:
            with pytest.raises(ps.GraphError, match="root scope"):
                scope.to_stream([1]).leave()
            with (
                worker.dataflow("other") as other,
                pytest.raises(ps.GraphError, match="'other' is a root scope"),
            ):
                scope.to_stream([1]).enter(other)

    ps.execute(main)
