"""`Scope.iterator_source`: all times are sent, and never more than `in_flight` are in the dataflow."""

from collections import Counter, defaultdict
from collections.abc import Callable, Iterator
from typing import Any

import pytest

import pointstamp as ps
from harness import WORKERS, merged, run

TIMES = 30


class Flight:
    """Counts the times of a worker that have been asked for, and have come to an end where they are held."""

    def __init__(self) -> None:
        self.begun = self.ended = self.most = 0

    def items(self, times: list[Any]) -> Iterator[tuple[Any, list[int]]]:
        for time in times:
            self.begun += 1
            self.most = max(self.most, self.begun - self.ended)
            yield time, [self.begun - 1, self.begun + 1]

    def hold(self, stream: ps.Stream[Any]) -> ps.Stream[Any]:
        """Holds records until their time is closed."""

        def build(capability: ps.Capability, info: ps.OperatorInfo) -> Callable[..., None]:
            capability.drop()
            waiting: defaultdict[ps.Time, list[Any]] = defaultdict(list)
            ready = ps.FrontierNotificator()

            def logic(port: Any, output: Any) -> None:
                for message, records in port:
                    waiting[message.time].extend(records)
                    ready.notify_at(message.retain())
                for cap in ready.ready(port.frontier):
                    with output.session(cap) as session:
                        session.give_all(waiting.pop(cap.time))
                    self.ended += 1

            return logic

        return stream.unary_frontier(ps.Pipeline(), "hold", build)


def straight(stream: ps.Stream[int], flight: Flight) -> None:
    flight.hold(stream.map(lambda x: x)).capture()


def dangling(stream: ps.Stream[int], flight: Flight) -> None:
    flight.hold(stream)


def one_of_two_ends(stream: ps.Stream[int], flight: Flight) -> None:
    stream.filter(lambda x: False).capture()
    flight.hold(stream.map(lambda x: x).filter(lambda x: True))


def in_a_scope_without_outputs(stream: ps.Stream[int], flight: Flight) -> None:
    with stream.scope.iterative() as outer, outer.region() as inner:
        flight.hold(stream.enter(outer).enter(inner)).inspect(lambda x: None)


def through_scopes(stream: ps.Stream[int], flight: Flight) -> None:
    with stream.scope.iterative() as outer, outer.region() as inner:
        left = stream.enter(outer).enter(inner).map(lambda x: x).leave()
    flight.hold(left.leave())


def before_a_loop_in_the_root(stream: ps.Stream[int], flight: Flight) -> None:
    handle, again = stream.scope.feedback(1)
    flight.hold(stream).concat(again).filter(lambda x: False).connect_loop(handle)


def among_two_inputs(stream: ps.Stream[int], flight: Flight) -> None:
    other = stream.scope.to_stream(range(3))
    flight.hold(stream.concat(other.filter(lambda x: False)))


@pytest.mark.parametrize("workers", WORKERS)
@pytest.mark.parametrize("in_flight", [1, 3])
@pytest.mark.parametrize(
    "shape",
    [
        straight,
        dangling,
        one_of_two_ends,
        in_a_scope_without_outputs,
        through_scopes,
        before_a_loop_in_the_root,
        among_two_inputs,
    ],
)
def test_no_more_times_than_asked_for(workers: int, in_flight: int, shape: Any) -> None:
    def build(scope: ps.Scope) -> Flight:
        flight = Flight()
        items = flight.items(list(range(TIMES)))
        shape(scope.iterator_source("numbers", items, in_flight=in_flight), flight)
        return flight

    for flight in run(workers, build):
        assert flight.begun == flight.ended == TIMES
        assert flight.most <= in_flight


@pytest.mark.parametrize("workers", WORKERS)
def test_as_many_times_as_asked_for(workers: int) -> None:
    """A bound that is too low would not be noticed otherwise."""

    def main(worker: ps.Worker) -> int:
        flight = Flight()
        blocked: ps.InputHandle[int] = ps.InputHandle()
        with worker.dataflow() as scope:
            items = flight.items(list(range(TIMES)))
            source = scope.iterator_source("numbers", items, in_flight=5)
            flight.hold(source.concat(blocked.to_stream(scope)))
        for _ in range(100):
            worker.step()
        begun = flight.begun  # nothing can end: the input is at time 0
        blocked.close()
        worker.run()
        assert flight.ended == TIMES
        return begun

    assert ps.execute(main, workers=workers) == [5] * workers


@pytest.mark.parametrize("workers", WORKERS)
def test_two_sources_in_one_dataflow(workers: int) -> None:
    def build(scope: ps.Scope) -> tuple[Flight, Flight]:
        fast, slow = Flight(), Flight()
        first = scope.iterator_source("first", fast.items(list(range(TIMES))), in_flight=2)
        second = scope.iterator_source("second", slow.items(list(range(0, 2 * TIMES, 2))), in_flight=1)
        fast.hold(first)
        slow.hold(second)
        return fast, slow

    for fast, slow in run(workers, build):
        assert fast.ended == slow.ended == TIMES
        assert fast.most <= 2
        assert slow.most <= 1


@pytest.mark.parametrize("workers", WORKERS)
def test_times_of_two_coordinates(workers: int) -> None:
    times = [(0, 0), (0, 3), (2, 3), (2, 4)]

    def main(worker: ps.Worker) -> Any:
        flight = Flight()
        with worker.dataflow(dims=2) as scope:
            captured = flight.hold(scope.iterator_source("pairs", flight.items(times))).capture()
        worker.run()
        assert flight.most <= 2
        return captured

    found = merged(ps.execute(main, workers=workers))
    assert found == {time: Counter({i: workers, i + 2: workers}) for i, time in enumerate(times)}


@pytest.mark.parametrize("workers", WORKERS)
def test_inside_a_scope(workers: int) -> None:
    def build(scope: ps.Scope) -> Any:
        with scope.iterative() as inner:
            flight = Flight()
            items = flight.items([(0, 1), (0, 2), (1, 2)])
            return flight.hold(inner.iterator_source("inside", items, in_flight=1)).leave().capture(), flight

    captures, flights = zip(*run(workers, build), strict=True)
    assert set(merged(captures)) == {0, 1}
    assert all(flight.most == 1 for flight in flights)


def test_records_are_taken_lazily() -> None:
    def build(scope: ps.Scope) -> list[str]:
        log: list[str] = []

        def items() -> Iterator[tuple[int, list[int]]]:
            for time in range(3):
                log.append(f"asked for {time}")
                yield time, [time]

        counted = scope.iterator_source("numbers", items(), in_flight=1).count()
        counted.inspect_time(lambda _, time: log.append(f"done with {time}"))
        return log

    assert run(1, build) == [[f"{what} {time}" for time in range(3) for what in ("asked for", "done with")]]


def test_no_times_at_all() -> None:
    assert ps.example(lambda scope: scope.iterator_source("none", []).capture()).extract() == []


@pytest.mark.parametrize(
    ("items", "error", "message"),
    [
        ([(3, ["a"]), (3, ["b"])], ps.TimeError, "'words' got time 3 after 3: times must increase"),
        ([(3, ["a"]), (1, ["b"])], ps.TimeError, "got time 1 after 3"),
        ([(-1, ["a"])], ps.TimeError, "negative"),
        ([((0, 0), ["a"])], ps.TimeError, "coordinate"),
        ([(2**64 - 1, ["a"]), (2**64, "b")], ps.TimeError, "the last there is"),
        ([3], TypeError, r"'words' needs pairs \(time, records\), and got 3"),
        ([(0, ["a"]), None, (1, ["b"])], TypeError, r"'words' needs pairs \(time, records\), and got None"),
        ([(1, 2)], TypeError, "iterable"),
    ],
)
def test_what_cannot_be_sent(items: list[Any], error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        ps.example(lambda scope: scope.iterator_source("words", items).capture())


@pytest.mark.parametrize("in_flight", [0, -1])
def test_a_source_needs_room(in_flight: int) -> None:
    with pytest.raises(ps.GraphError, match=f"times in flight, at least 1, not {in_flight}"):
        ps.example(lambda scope: scope.iterator_source("words", [], in_flight=in_flight))
