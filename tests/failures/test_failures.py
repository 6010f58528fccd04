"""A failure anywhere ends everything: the same exception, with its traceback and a note."""

import threading
import traceback
import weakref
from collections.abc import Callable
from typing import Any

import pytest

import pointstamp as ps
from harness import WORKERS, Logic, notes, run


class Mine(Exception):
    """The exception of a user's function."""


class Fault:
    """Raises one exception, always the same, on one worker."""

    def __init__(self, worker: int, kind: type[BaseException] = Mine) -> None:
        self.worker = worker
        self.error = kind("what the user raised")

    def strike(self, index: int) -> None:
        if index == self.worker:
            raise self.error  # the user's own line


def in_main(fault: Fault, worker: ps.Worker, scope: ps.Scope) -> None:
    fault.strike(worker.index)


def in_map(fault: Fault, worker: ps.Worker, scope: ps.Scope) -> None:
    scope.to_stream([1]).map(lambda x: x, name="first").map(
        lambda x: fault.strike(scope.index), name="mine"
    ).capture()


def in_exchange(fault: Fault, worker: ps.Worker, scope: ps.Scope) -> None:
    scope.to_stream([1]).map(lambda x: x).exchange(lambda x: fault.strike(scope.index)).map(lambda x: x)


def in_unary(fault: Fault, worker: ps.Worker, scope: ps.Scope) -> None:
    def constructor(cap: ps.Capability, info: ps.OperatorInfo) -> Logic:
        cap.drop()

        def logic(port: Any, output: Any) -> None:
            for _ in port:
                fault.strike(info.index)

        return logic

    scope.to_stream([1]).unary(ps.Pipeline(), "mine", constructor)


def in_constructor(fault: Fault, worker: ps.Worker, scope: ps.Scope) -> None:
    def constructor(cap: ps.Capability, info: ps.OperatorInfo) -> Logic:
        fault.strike(info.index)
        return lambda port, output: None

    scope.empty().unary(ps.Pipeline(), "mine", constructor)


def in_pact_of_unary(fault: Fault, worker: ps.Worker, scope: ps.Scope) -> None:
    def constructor(cap: ps.Capability, info: ps.OperatorInfo) -> Logic:
        cap.drop()
        return lambda port, output: None

    pact = ps.Exchange(lambda x: fault.strike(scope.index))
    scope.to_stream([1]).unary(pact, "mine", constructor)


def in_session(fault: Fault, worker: ps.Worker, scope: ps.Scope) -> None:
    def constructor(cap: ps.Capability, info: ps.OperatorInfo) -> Logic:
        def logic(output: Any) -> None:
            with output.session(cap) as session:
                session.give(1)
                fault.strike(info.index)
            cap.drop()

        return logic

    scope.source("mine", constructor)


def in_notificator(fault: Fault, worker: ps.Worker, scope: ps.Scope) -> None:
    def logic(port: Any, output: Any, notificator: ps.Notificator) -> None:
        for message, _ in port:
            notificator.notify_at(message.retain())
        for _ in notificator:
            fault.strike(scope.index)

    scope.to_stream([1]).unary_notify(ps.Pipeline(), "mine", [], logic)


def in_vertex(fault: Fault, worker: ps.Worker, scope: ps.Scope) -> None:
    class Bad(ps.Vertex):
        def on_recv(self, edge: int, messages: list[Any], time: ps.Time) -> None:
            fault.strike(scope.index)

    scope.to_stream([1]).vertex(Bad, name="mine")


def in_iterable(fault: Fault, worker: ps.Worker, scope: ps.Scope) -> None:
    def records() -> Any:
        yield 1
        fault.strike(scope.index)

    scope.to_stream(records())


def in_sink(fault: Fault, worker: ps.Worker, scope: ps.Scope) -> None:
    scope.to_stream([1]).sink(ps.Broadcast(), "mine", lambda info: lambda port: fault.strike(info.index))


PLACES: list[tuple[Callable[[Fault, ps.Worker, ps.Scope], None], str]] = [
    (in_main, "in main"),
    (in_map, "in operator 'mine'"),
    (in_exchange, "in operator 'exchange'"),
    (in_unary, "in operator 'mine'"),
    (in_constructor, "in main"),
    (in_pact_of_unary, "in operator 'mine'"),
    (in_session, "in operator 'mine'"),
    (in_notificator, "in operator 'mine'"),
    (in_vertex, "in operator 'mine'"),
    (in_iterable, "in operator 'to_stream'"),
    (in_sink, "in operator 'mine'"),
]


@pytest.mark.parametrize(("place", "says"), PLACES, ids=[place.__name__ for place, _ in PLACES])
@pytest.mark.parametrize(("workers", "worker"), [(1, 0), (2, 0), (2, 1), (4, 2)])
def test_the_exception_is_raised_unchanged(
    place: Callable[[Fault, ps.Worker, ps.Scope], None],
    says: str,
    workers: int,
    worker: int,
    capfd: pytest.CaptureFixture[str],
) -> None:
    fault = Fault(worker)

    def main(worker: ps.Worker) -> None:
        handle: ps.InputHandle[int] = ps.InputHandle()
        with worker.dataflow("waits for ever") as scope:
            probe = handle.to_stream(scope).exchange(lambda x: x).probe()
        with worker.dataflow("fails") as scope:
            place(fault, worker, scope)
        worker.step_while(lambda: not probe.done())

    before = threading.enumerate()
    with pytest.raises(Mine) as raised:
        ps.execute(main, workers=workers)
    assert raised.value is fault.error
    assert notes(fault.error) == [f"raised {says} on worker {worker}"]
    assert fault.error.__cause__ is None
    assert fault.error.__context__ is None
    lines = "".join(traceback.format_exception(raised.value))
    assert "raise self.error  # the user's own line" in lines
    assert "panic" not in lines
    assert threading.enumerate() == before
    assert capfd.readouterr() == ("", "")
    assert ps.example(lambda scope: scope.to_stream([1]).capture()).extract() == [(0, [1])]


class Rare(BaseException):
    pass


@pytest.mark.parametrize("kind", [Rare, SystemExit, GeneratorExit, StopIteration, MemoryError, OSError])
@pytest.mark.parametrize("workers", WORKERS)
@pytest.mark.parametrize("place", [in_main, in_map, in_exchange, in_unary, in_vertex])
def test_any_kind_of_exception(kind: type[BaseException], workers: int, place: Any) -> None:
    fault = Fault(workers - 1, kind)

    def main(worker: ps.Worker) -> None:
        with worker.dataflow() as scope:
            place(fault, worker, scope)

    if kind is StopIteration and place in (in_map, in_exchange):
        with pytest.raises(RuntimeError, match="raised StopIteration") as stopped:
            ps.execute(main, workers=workers)
        assert "raised in operator" in notes(stopped.value)[0]
        return
    with pytest.raises(kind) as raised:
        ps.execute(main, workers=workers)
    assert raised.value is fault.error


@pytest.mark.parametrize("workers", WORKERS)
def test_an_exception_that_main_catches_is_raised_all_the_same(workers: int) -> None:
    fault = Fault(0)

    def main(worker: ps.Worker) -> str:
        with worker.dataflow() as scope:
            in_map(fault, worker, scope)
        try:
            worker.run()
        except Mine:
            pass
        return "as if nothing had happened"

    with pytest.raises(Mine) as raised:
        ps.execute(main, workers=workers)
    assert raised.value is fault.error


@pytest.mark.parametrize("workers", WORKERS)
def test_a_worker_that_catches_everything_ends(workers: int) -> None:
    fault = Fault(0)

    def main(worker: ps.Worker) -> None:
        handle: ps.InputHandle[int] = ps.InputHandle()
        with worker.dataflow() as scope:
            handle.to_stream(scope)
            in_map(fault, worker, scope)
        for _ in range(3):
            try:
                worker.run()
            except Exception:
                pass

    with pytest.raises(Mine):
        ps.execute(main, workers=workers)


@pytest.mark.parametrize("workers", WORKERS)
def test_one_of_several_failures_is_raised(workers: int) -> None:
    errors = [Mine(f"worker {index}") for index in range(workers)]

    def main(worker: ps.Worker) -> None:
        raise errors[worker.index]

    with pytest.raises(Mine) as raised:
        ps.execute(main, workers=workers)
    assert raised.value in errors
    assert len(notes(raised.value)) == 1


def test_the_same_object_raised_again_keeps_one_note_a_run() -> None:
    fault = Fault(0)
    for _ in range(3):
        with pytest.raises(Mine):
            run(1, lambda scope: in_map(fault, None, scope))  # type: ignore[arg-type]
    assert len(notes(fault.error)) == 1


def end_at_two(x: int) -> Any:
    if x == 2:
        raise StopIteration
    return [x]


class Untold:
    """Raises in `__bool__`, and in `__hash__` if it stands for 2."""

    def __init__(self, number: int) -> None:
        self.number = number

    def __bool__(self) -> bool:
        return bool(end_at_two(self.number))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Untold) and self.number == other.number

    def __hash__(self) -> int:
        if self.number == 2:
            raise StopIteration(2)
        return self.number


@pytest.mark.parametrize("workers", [1, 2])
@pytest.mark.parametrize(
    "apply",
    [
        lambda stream: stream.map(end_at_two),
        lambda stream: stream.filter(end_at_two),
        lambda stream: stream.flat_map(end_at_two),
        lambda stream: stream.inspect(end_at_two),
        lambda stream: stream.inspect_time(lambda x, _: end_at_two(x)),
        lambda stream: stream.branch(lambda _, x: end_at_two(x)),
        lambda stream: stream.partition(2, end_at_two),
        lambda stream: stream.delay(lambda x, _: end_at_two(x)),
        lambda stream: stream.exchange(lambda x: len(end_at_two(x))),
        lambda stream: stream.branch(lambda _, x: Untold(x)),
        lambda stream: stream.filter(Untold),
        lambda stream: stream.map(Untold).distinct(),
    ],
)
@pytest.mark.parametrize("records", [[1, 2, 3], [1, 2], [2]])
def test_stop_iteration_loses_no_record_in_silence(workers: int, records: list[int], apply: Any) -> None:
    with pytest.raises((RuntimeError, StopIteration), match=r"StopIteration|^2"):
        run(workers, lambda scope: apply(scope.to_stream(records)))


def test_an_exception_without_room_for_a_note() -> None:
    class Bare(Exception):
        __slots__ = ()

        def __setattr__(self, name: str, value: object) -> None:
            raise AttributeError(name)

    error = Bare("mine")

    def main(worker: ps.Worker) -> None:
        raise error

    with pytest.raises(Bare) as raised:
        ps.execute(main)
    assert raised.value is error


def test_the_users_notes_stay() -> None:
    error = Mine()
    error.__notes__ = ["mine"]  # type: ignore[attr-defined]

    def main(worker: ps.Worker) -> None:
        raise error

    with pytest.raises(Mine):
        ps.execute(main)
    assert notes(error) == ["mine", "raised in main on worker 0"]


@pytest.mark.parametrize("workers", [2, 4])
def test_records_in_flight_are_destroyed_safely(workers: int) -> None:
    # No Python code runs where a record dies: the interruption of a stopped worker may strike in it.
    seen: list[weakref.ref[Any]] = []
    died: list[weakref.ref[Any]] = []

    class Record:
        def __init__(self, key: int) -> None:
            self.key = key
            seen.append(weakref.ref(self, died.append))

    def main(worker: ps.Worker) -> None:
        handle: ps.InputHandle[Record] = ps.InputHandle()

        def check(record: Record) -> Record:
            if record.key == limit and worker.index == turn % worker.peers:
                raise Mine
            return record

        with worker.dataflow() as scope:
            stream = handle.to_stream(scope)
            for _ in range(4):
                stream = (
                    stream.exchange(lambda r: r.key).broadcast().filter(lambda r: r.key % worker.peers != 1)
                )
            stream.map(check).exchange(lambda r: 0).capture()
        for key in range(1000):
            handle.send(Record(2 * key))
            if key % 50 == 0:
                handle.advance_to(key)
                worker.step()
        while True:
            worker.step_or_park()

    for turn in range(12):
        limit = 160 * turn
        with pytest.raises(Mine):
            ps.execute(main, workers=workers)
        assert seen
        assert len(died) == len(seen), turn
        seen.clear()
        died.clear()


def test_a_destructor_that_raises_or_runs_a_dataflow_does_no_harm() -> None:
    extracted: list[Any] = []

    class Record:
        def __del__(self) -> None:
            extracted.append(ps.example(lambda scope: scope.to_stream([1]).capture()).extract())

    def main(worker: ps.Worker) -> None:
        with worker.dataflow() as scope:
            scope.to_stream([Record() for _ in range(3)]).exchange(lambda r: 0).map(lambda r: 1 / 0)
        worker.run()

    with pytest.raises(ZeroDivisionError):
        ps.execute(main, workers=2)
    assert extracted == [[(0, [1])]] * 6


@pytest.mark.parametrize("where", ["in main", "in an operator"])
def test_a_worker_that_never_steps_again_is_interrupted(where: str) -> None:
    busy = threading.Event()
    fault = Fault(0)

    def forever(_record: object = None) -> None:
        busy.set()
        while True:
            pass

    def main(worker: ps.Worker) -> None:
        with worker.dataflow() as scope:
            stream = scope.to_stream([1])
            if where == "in an operator" and worker.index == 1:
                stream.map(forever)
            else:
                stream.map(lambda x: x)
        if worker.index == 0:
            assert busy.wait(120)
            fault.strike(0)
        elif where == "in main":
            forever()
        worker.run()

    with pytest.raises(Mine) as raised:
        ps.execute(main, workers=2)
    assert raised.value is fault.error
