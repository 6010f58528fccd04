"""Notificators: capabilities handed back when their time is closed, least first, once per time."""

from collections.abc import Callable
from typing import Any

import pytest

import pointstamp as ps
from harness import Logic
from pointstamp.order import Antichain


def capabilities(times: list[ps.Time], use: Any, dims: int = 1) -> None:
    """Calls `use` with capabilities for some times."""

    def main(worker: ps.Worker) -> None:
        with worker.dataflow(dims=dims) as scope:
            _input, cap, _stream = scope.new_unordered_input()
        use(*(cap.delayed(time) for time in times))

    ps.execute(main)


def test_least_first_and_once_per_time() -> None:
    def use(*caps: ps.Capability) -> None:
        notificator = ps.FrontierNotificator()
        for cap in caps:
            notificator.notify_at(cap)
        assert list(notificator.ready(Antichain([0]))) == []
        ready = list(notificator.ready(Antichain([4])))
        assert [cap.time for cap in ready] == [1, 2, 3]
        assert list(notificator.ready(Antichain([4]))) == []
        assert [cap.time for cap in notificator.ready()] == [5, 7]
        assert list(notificator.ready()) == []

    capabilities([5, 2, 3, 2, 7, 1, 2], use)


def test_every_frontier_must_have_passed() -> None:
    def use(*caps: ps.Capability) -> None:
        notificator = ps.FrontierNotificator()
        for cap in caps:
            notificator.notify_at(cap)
        assert list(notificator.ready(Antichain([9]), Antichain([1]))) == []
        assert [cap.time for cap in notificator.ready(Antichain([9]), Antichain([2]))] == [1]
        assert [cap.time for cap in notificator.ready(Antichain(), Antichain([6]))] == [5]

    capabilities([5, 1], use)


def test_a_request_made_while_reading_is_seen() -> None:
    def use(first: ps.Capability) -> None:
        notificator = ps.FrontierNotificator()
        notificator.notify_at(first)
        times = []
        for cap in notificator.ready(Antichain([6])):
            times.append(cap.time)
            notificator.notify_at(cap.delayed(cap.time + 2))  # type: ignore[operator]
        assert times == [0, 2, 4]

    capabilities([0], use)


def test_partially_ordered_times_come_as_they_close() -> None:
    def use(*caps: ps.Capability) -> None:
        notificator = ps.FrontierNotificator()
        for cap in caps:
            notificator.notify_at(cap)
        frontier = Antichain([(0, 3), (3, 0)])
        assert [cap.time for cap in notificator.ready(frontier)] == [(1, 1), (1, 2), (2, 1), (2, 2)]
        assert [cap.time for cap in notificator.ready(Antichain([(1, 0)]))] == [(0, 9)]
        assert [cap.time for cap in notificator.ready(Antichain([(4, 0)]))] == [(3, 0)]

    capabilities([(2, 2), (0, 9), (3, 0), (1, 2), (2, 1), (1, 1)], use, dims=2)


def test_spare_capabilities_are_dropped() -> None:
    def use(one: ps.Capability, two: ps.Capability) -> None:
        notificator = ps.FrontierNotificator()
        notificator.notify_at(one)
        notificator.notify_at(two)
        (ready,) = notificator.ready()
        dropped = two if ready is one else one
        assert ready.time == 3
        with pytest.raises(ps.CapabilityError):
            _ = dropped.time

    capabilities([3, 3], use)


def test_counts_and_init_times() -> None:
    def main(worker: ps.Worker) -> Any:
        handle: ps.InputHandle[int] = ps.InputHandle()
        told: list[tuple[ps.Time, int]] = []

        def logic(port: Any, output: Any, notificator: ps.Notificator) -> None:
            for message, records in port:
                for x in records:
                    notificator.notify_at(message.delayed(x))
            told.extend((cap.time, count) for cap, count in notificator)

        with worker.dataflow() as scope:
            probe = handle.to_stream(scope).unary_notify(ps.Pipeline(), "told", [1, 4, 4], logic).probe()
        handle.send_batch([2, 6, 2])
        handle.advance_to(3)
        handle.send(4)
        worker.step_while(lambda: probe.less_than(3))
        assert told == [(1, 1), (2, 2)]
        handle.close()
        worker.run()
        return told

    assert ps.execute(main) == [[(1, 1), (2, 2), (4, 3), (6, 1)]]


class Log(ps.Vertex):
    def __init__(self) -> None:
        self.log: list[Any] = []

    def on_recv(self, edge: int, messages: list[int], time: ps.Time) -> None:
        self.log.append(("recv", edge, sorted(messages), time))
        for x in messages:
            self.notify_at(x)
            self.notify_at(x)
            self.send_by(0, [x], time + x)  # type: ignore[operator]

    def on_notify(self, time: ps.Time) -> None:
        self.log.append(("notify", time))
        if time < 6:  # type: ignore[operator]
            self.notify_at(6)
            self.send_by(0, ["over"], time)


def test_a_vertex_is_called_back() -> None:
    vertices: list[Log] = []

    def make() -> Log:
        vertices.append(Log())
        return vertices[-1]

    capture = ps.example(lambda scope: scope.to_stream([3, 1]).vertex(make, name="log").capture())
    (vertex,) = vertices
    assert vertex.log == [("recv", 0, [1, 3], 0), ("notify", 1), ("notify", 3), ("notify", 6)]
    assert [(time, sorted(map(str, records))) for time, records in capture.extract()] == [
        (1, ["1", "over"]),
        (3, ["3", "over"]),
    ]


def test_what_a_vertex_refuses() -> None:
    class Bad(ps.Vertex):
        def on_recv(self, edge: int, messages: list[Any], time: ps.Time) -> None:
            refused: list[tuple[Callable[[], None], type[Exception]]] = [
                (lambda: self.notify_at(-1), ps.TimeError),
                (lambda: self.send_by(0, [1], (0, 0)), ps.TimeError),
                (lambda: self.send_by(1, [1], time), ps.CapabilityError),
            ]
            for act, error in refused:
                with pytest.raises(error):
                    act()
            tried.append(time)

    tried: list[ps.Time] = []
    ps.example(lambda scope: scope.to_stream([1]).vertex(Bad))
    assert tried == [0]
    with pytest.raises(ps.CapabilityError, match="only in on_recv and on_notify"):
        Bad().notify_at(0)


def test_an_operator_may_let_a_notificator_go() -> None:
    """The capabilities go with it, so that the dataflow ends."""

    def build(scope: ps.Scope) -> ps.ProbeHandle:
        def constructor(cap: ps.Capability, info: ps.OperatorInfo) -> Logic:
            notificators = [ps.FrontierNotificator()]
            notificators[0].notify_at(cap)

            def logic(port: ps.FrontieredInput[int], output: Any) -> None:
                for _ in port:
                    notificators.clear()

            return logic

        return scope.to_stream([1]).unary_frontier(ps.Pipeline(), "keeps", constructor).probe()

    assert ps.example(build).done()
