"""Records that a session returns, whatever its workers do: whole times, in time, to the right call."""

import asyncio
import os
import socket
import threading
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import pointstamp as ps
from gathering import gathering
from pointstamp.runtime.interactive import flow as waiting
from pointstamp.runtime.interactive.commands import Command, Commands
from pointstamp.runtime.interactive.served import by_own_time

PATIENCE = 120.0
"""Seconds for what comes in any case."""


@pytest.fixture(params=[{"workers": 2}, {"processes": 2}], ids=str)
def session(request: pytest.FixtureRequest) -> Iterator[ps.Interactive]:
    with ps.Interactive(**request.param) as session:
        yield session


def moved(scope: ps.Scope) -> Any:
    numbers, stream = scope.new_input()
    return {"numbers": numbers, "out": stream.exchange(lambda x: x).map(lambda x: x)}


def test_a_time_is_handed_out_once_and_whole(session: ps.Interactive) -> None:
    flow = session.dataflow(moved)
    times, records = 300, list(range(8))
    found: Counter[Any] = Counter()
    got = []
    for time in range(times):
        flow.numbers.send_batch(records)
        flow.numbers.advance_to(time + 1)
        got += flow.out.take()  # which may be between what one worker and another know
    got += flow.out.read(PATIENCE)
    found.update(time for time, _ in got)
    assert set(found.values()) == {1}, "a time has come in parts"
    assert got == [(time, records) for time in range(times)]


@pytest.mark.skipif(not Path("/proc/self/fd").exists(), reason="how descriptors are listed is Linux's")
def test_no_message_of_a_session_waits_for_another_to_be_acknowledged() -> None:
    def here(scope: ps.Scope) -> Any:
        numbers, stream = scope.new_input()
        return {"numbers": numbers, "out": stream.flat_map(lambda _: gathering())}

    before = set(gathering())
    with ps.Interactive(processes=2) as session:
        flow = session.dataflow(here)
        flow.numbers.send(None)
        flow.numbers.advance_to(1)
        assert flow.out.read(PATIENCE) == []
        assert set(gathering()) == before


def test_what_a_worker_knows_later_than_another_waits_for_it(pair: ps.Interactive) -> None:
    """The records of the last worker to complete a time are returned with the others'."""
    begun, gate = threading.Event(), threading.Event()

    def slow(scope: ps.Scope) -> Any:
        numbers, stream = scope.new_input()
        index = scope.index

        def passed(x: int) -> int:
            if x == 1 and index == 1:
                begun.set()
                assert gate.wait(PATIENCE)
            return x

        return {"numbers": numbers, "out": stream.exchange(lambda x: x).map(passed)}

    flow = pair.dataflow(slow)
    flow.numbers.send_batch([0, 1])
    flow.numbers.advance_to(1)
    assert begun.wait(PATIENCE)
    with pytest.raises(ps.StallError):
        flow.out.read(timeout=0.1)
    gate.set()
    assert flow.out.read(PATIENCE) == [(0, [0, 1])]


def test_changes_of_columns_come_at_their_own_times() -> None:
    import pyarrow as pa

    schema = pa.schema([("k", pa.int64())])

    def build(scope: ps.Scope) -> Any:
        rows, collection = scope.new_collection(schema=schema)
        return {"rows": rows, "out": collection}

    with ps.Interactive() as session:
        flow = session.dataflow(build)
        for time in range(4):
            flow.rows.insert(pa.table({"k": [time, time]}, schema=schema))
            flow.rows.advance_to(time + 1)
        for time, batches in flow.out.read(PATIENCE):
            for batch in batches:
                assert set(batch.column("time").to_pylist()) == {time}
                assert set(batch.column("k").to_pylist()) == {time}


def test_a_batch_of_several_times_is_taken_apart() -> None:
    import pyarrow as pa

    for own in ("k", "time"):  # a column of the collection's own may have the name
        columns = [pa.array(values) for values in ([1, 2, 3], [5, 7, 5], [1, 1, -1])]
        batch = pa.record_batch(columns, names=[own, "time", "diff"])
        assert {at: part.column(0).to_pylist() for at, part in by_own_time(batch)} == {5: [1, 3], 7: [2]}


def test_a_read_ends_in_time_although_data_waits(pair: ps.Interactive) -> None:
    begun, gate = threading.Event(), threading.Event()

    def build(scope: ps.Scope) -> Any:
        numbers, stream = scope.new_input()

        def wait(x: int) -> int:
            begun.set()
            assert gate.wait(PATIENCE)
            return x

        return {"numbers": numbers, "out": stream.map(wait)}

    flow = pair.dataflow(build)
    flow.numbers.send_batch([0, 0])
    flow.numbers.advance_to(1)
    assert begun.wait(PATIENCE)
    feeding = threading.Thread(target=lambda: [flow.numbers.send(1) for _ in range(4000)])
    feeding.start()
    try:
        with pytest.raises(ps.StallError, match=r"not over after 0\.2 s"):
            flow.out.read(timeout=0.2)
    finally:
        gate.set()
        feeding.join(PATIENCE)
    assert not feeding.is_alive()
    flow.numbers.advance_to(2)
    assert flow.out.read(PATIENCE) == [(0, [0, 0]), (1, [1] * 4000)]


def test_calls_without_a_timeout_have_that_of_the_session() -> None:
    gate = threading.Event()

    def stuck(scope: ps.Scope) -> Any:
        numbers, stream = scope.new_input()
        return {"numbers": numbers, "out": stream.inspect(lambda _: gate.wait(PATIENCE))}

    with ps.Interactive(timeout=1.0) as session:
        flow = session.dataflow(stuck)
        flow.numbers.send(1)
        flow.numbers.advance_to(1)
        try:
            with pytest.raises(ps.StallError, match=r"is not over after 1 s"):
                flow.out.read()
            with pytest.raises(ps.StallError, match=r"is not over after 1 s"):
                session.run(lambda worker: worker.index)
            with pytest.raises(ps.StallError, match=r"have not read 1024 commands within 1 s .timeout="):
                for _ in range(2000):
                    flow.numbers.send(2)
        finally:
            gate.set()
        assert flow.out.read(PATIENCE) == [(0, [1])]
    with pytest.raises(ps.ConfigError, match="timeout is a number of seconds"):
        ps.Interactive(timeout=0)


def listening_sockets(process: int) -> list[str]:
    """The addresses, as the kernel writes them, at which a process listens."""
    opened = {os.readlink(entry.path) for entry in os.scandir(f"/proc/{process}/fd")}
    tables = [Path("/proc/net/tcp"), Path("/proc/net/tcp6")]
    rows = [row.split() for table in tables if table.exists() for row in table.read_text().splitlines()[1:]]
    return [row[1] for row in rows if row[3] == "0A" and f"socket:[{row[9]}]" in opened]


@pytest.mark.skipif(not Path("/proc/self/fd").exists(), reason="how descriptors are listed is Linux's")
def test_a_session_with_processes_listens_nowhere() -> None:
    """No stranger can connect, and so none can take the program's descriptors and threads."""
    before = listening_sockets(os.getpid())
    with socket.create_server(("127.0.0.1", 0)):
        assert len(listening_sockets(os.getpid())) == len(before) + 1
    with ps.Interactive(processes=2) as session:
        processes = session.run(lambda worker: os.getpid(), timeout=PATIENCE)
        assert len(set(processes)) == 2
        assert listening_sockets(os.getpid()) == before
        assert [listening_sockets(process) for process in processes] == [[], []]


@pytest.mark.skipif(not Path("/proc/self/fd").exists(), reason="how descriptors are listed is Linux's")
def test_a_session_with_processes_leaves_no_descriptor_open() -> None:
    before = len(os.listdir("/proc/self/fd"))
    for _ in range(3):
        with ps.Interactive(processes=2) as session:
            assert session.run(lambda worker: worker.index, timeout=PATIENCE) == [0, 1]
    assert len(os.listdir("/proc/self/fd")) == before


@pytest.mark.parametrize("way", ["run", "dataflow", "read"])
def test_a_worker_that_would_wait_for_itself_is_told_so(pair: ps.Interactive, way: str) -> None:
    flow = pair.dataflow(moved)
    ways: dict[str, Any] = {
        "run": lambda: pair.run(lambda worker: worker.index),
        "dataflow": lambda: pair.dataflow(moved),
        "read": flow.out.read,
    }
    with pytest.raises(ps.PointstampError, match="cannot wait for its session"):
        pair.run(lambda worker: ways[way](), timeout=PATIENCE)
    flow.numbers.send(1)
    flow.numbers.close()
    assert flow.out.read(PATIENCE) == [(0, [1])]


def test_a_computation_inside_another_is_one_of_its_own(session: ps.Interactive) -> None:
    def inner(worker: ps.Worker) -> Any:
        with worker.dataflow() as scope:
            captured = scope.to_stream([1, 2]).capture()
        worker.run()
        return captured.extract()

    assert session.run(lambda worker: ps.execute(inner), timeout=PATIENCE) == [[[(0, [1, 2])]]] * 2


def test_a_data_frame_is_no_list_of_records(pair: ps.Interactive) -> None:
    import pyarrow as pa

    flow = pair.dataflow(moved)
    with pytest.raises(TypeError, match="gives the names of its columns"):
        flow.numbers.send_batch(pa.table({"k": [1]}))


def unsendable(scope: ps.Scope) -> Any:
    numbers, stream = scope.new_input()
    return {
        "numbers": numbers,
        "out": stream.exchange(lambda x: x).map(lambda x: (lambda: x) if x == 1 else x),
    }


def test_a_record_that_cannot_be_sent_takes_no_other_with_it() -> None:
    with ps.Interactive(processes=2) as session:
        flow = session.dataflow(unsendable)
        for time in range(3):
            flow.numbers.send_batch([0, 2, 3] + [1] * (time == 1))
            flow.numbers.advance_to(time + 1)
        with pytest.raises(TypeError, match="a record of type function cannot be sent from its process"):
            flow.out.read(PATIENCE)
        assert flow.out.read(PATIENCE) == [(time, [0, 2, 3]) for time in range(3)]
        assert flow.out.read(PATIENCE) == []


def unreadable(scope: ps.Scope) -> Any:
    class Odd:
        def __reduce__(self) -> Any:
            return int, ("no number",)

    numbers, stream = scope.new_input()
    return {"numbers": numbers, "out": stream.map(lambda x: Odd() if x == 1 else x)}


def test_an_answer_that_cannot_be_unpickled_is_an_error_of_its_read() -> None:
    with ps.Interactive(processes=2) as session:
        flow = session.dataflow(unreadable)
        flow.numbers.send(1)
        flow.numbers.advance_to(1)
        with pytest.raises(
            TypeError, match="cannot be unpickled in this process: ValueError: invalid literal"
        ):
            flow.out.read(PATIENCE)
        flow.numbers.send(2)
        flow.numbers.advance_to(2)
        assert flow.out.read(PATIENCE) == [(1, [2])]


class Unfit:
    def __reduce__(self) -> Any:
        return int, ("no number",)


def test_a_command_that_cannot_be_unpickled_is_an_error_of_the_next_call() -> None:
    with ps.Interactive(processes=2) as session:
        flow = session.dataflow(moved)
        flow.numbers.send(Unfit())
        flow.numbers.send(1)
        flow.numbers.advance_to(1)
        with pytest.raises(
            TypeError, match="cannot be unpickled in the worker's process: ValueError: invalid"
        ):
            while flow.out.read(PATIENCE) != []:
                pass
        flow.numbers.send(2)
        flow.numbers.advance_to(2)
        found = []
        while (1, [2]) not in found:
            found += flow.out.read(PATIENCE)


def test_what_a_call_has_left_outlasts_a_mistake_in_an_input(pair: ps.Interactive) -> None:
    flow = pair.dataflow(lambda scope: dict(zip(("numbers", "out"), scope.new_collection(), strict=True)))
    records = list(range(10))
    flow.numbers.insert_many(records)
    flow.numbers.advance_to(1)
    flow.settle(PATIENCE)
    begun, gate = threading.Event(), threading.Event()

    def block(worker: ps.Worker) -> None:
        if worker.index == 1:
            begun.set()
            assert gate.wait(PATIENCE)

    blocking = threading.Thread(target=lambda: pair.run(block, timeout=PATIENCE))
    blocking.start()
    try:
        assert begun.wait(PATIENCE)
        while not flow.out._left:  # worker 0 has to answer in time for what is asked of both
            with pytest.raises(ps.StallError):
                flow.out._read(False, 0.5)
    finally:
        gate.set()
        blocking.join(PATIENCE)
    flow.numbers.insert([])  # is refused on worker 0, before that answers
    with pytest.raises(TypeError, match="cannot be hashed"):
        flow.out.take()
    assert flow.out.take() == [(0, [(record, 1) for record in records])]


def test_a_thread_that_is_called_like_a_worker_that_has_ended_is_none() -> None:
    """The system gives the number of a thread that has ended to the next."""
    with ps.Interactive(workers=2) as session:
        flow = session.dataflow(failing)
        flow.numbers.send(0)
        with pytest.raises(ZeroDivisionError):
            flow.settle(PATIENCE)
        assert flow._flow.cluster._thread.ends(PATIENCE)
        said: list[type] = []

        def look() -> None:
            try:
                flow.out.read(PATIENCE)
            except Exception as error:
                said.append(type(error))

        for _ in range(8):
            thread = threading.Thread(target=look)
            thread.start()
            thread.join(PATIENCE)
    assert said == [ZeroDivisionError] * 8


def failing(scope: ps.Scope) -> Any:
    numbers, stream = scope.new_input()
    return {"numbers": numbers, "out": stream.map(lambda x: 1 // x)}


class Stubborn:
    """A record whose first comparison raises an error."""

    error: BaseException | None = None

    def __init__(self, value: int) -> None:
        self.value = value

    def __lt__(self, other: "Stubborn") -> bool:
        error, Stubborn.error = Stubborn.error, None
        if error is not None:
            raise error
        return self.value < other.value


def kept(scope: ps.Scope) -> Any:
    numbers, stream = scope.new_input()
    return {"numbers": numbers, "out": stream}


@pytest.mark.parametrize("call", ["read", "take", "next"])
def test_what_was_taken_when_a_call_is_interrupted_comes_with_the_next(
    pair: ps.Interactive, call: str
) -> None:
    flow = pair.dataflow(kept)
    flow.numbers.send_batch([Stubborn(value) for value in (3, 1, 2)])
    flow.numbers.advance_to(1)
    flow.settle(PATIENCE)
    Stubborn.error = KeyboardInterrupt()
    with pytest.raises(KeyboardInterrupt):
        asyncio.run(flow.out.next()) if call == "next" else getattr(flow.out, call)()
    assert [(time, [record.value for record in records]) for time, records in flow.out.take()] == [
        (0, [1, 2, 3])
    ]
    assert flow.out.take() == []


def test_records_that_cannot_be_compared_stay_in_their_order(pair: ps.Interactive) -> None:
    flow = pair.dataflow(kept)
    records = [Stubborn(value) for value in (3, 1, 2)]
    flow.numbers.send_batch(records)
    flow.numbers.advance_to(1)
    Stubborn.error = ValueError("as of arrays")
    ((time, found),) = flow.out.read(PATIENCE)
    assert time == 0
    assert set(found) == set(records)


@pytest.mark.parametrize("when", ["told to build", "built", "told to install", "installed"])
def test_a_dataflow_whose_building_is_interrupted_is_gone(
    pair: ps.Interactive, monkeypatch: pytest.MonkeyPatch, when: str
) -> None:
    what = "build" if "buil" in when else "install"
    put, result_of = Commands.put, waiting.result_of
    asked = []

    def interrupts_put(self: Commands, command: Command, **options: Any) -> bool:
        added = put(self, command, **options)
        asked.append(command.what)
        if when.startswith("told") and command.what == what:
            raise KeyboardInterrupt
        return added

    def interrupts_waiting(*arguments: Any) -> Any:
        answers = result_of(*arguments)
        if asked[-1] == what:
            raise KeyboardInterrupt
        return answers

    monkeypatch.setattr(Commands, "put", interrupts_put)
    monkeypatch.setattr(waiting, "result_of", interrupts_waiting)
    with pytest.raises(KeyboardInterrupt):
        pair.dataflow(moved)
    monkeypatch.undo()
    assert pair.run(lambda worker: worker.installed_dataflows()) == [[], []]
    flow = pair.dataflow(moved)
    flow.numbers.send(1)
    flow.numbers.close()
    assert flow.out.read(PATIENCE) == [(0, [1])]


def never_connected(scope: ps.Scope) -> Any:
    stream = moved(scope)["out"]
    if scope.index == 1:
        scope.feedback()
    return {"out": stream}


def left_open(scope: ps.Scope) -> Any:
    stream = moved(scope)["out"]
    if scope.index == 1:
        scope.iterative().__enter__()
    return {"out": stream}


def without_a_step(scope: ps.Scope) -> Any:
    loop, stream = scope.feedback(0)
    stream.map(lambda x: x).connect_loop(loop)
    return {"out": stream}


class Uneven:
    """An iterable that cannot be iterated over on one of the workers."""

    def __init__(self, index: int) -> None:
        self.index = index

    def __iter__(self) -> Iterator[int]:
        if self.index == 1:
            raise KeyboardInterrupt
        return iter([])


def interrupted(scope: ps.Scope) -> Any:
    stream = moved(scope)["out"]
    return {"out": scope.to_stream(Uneven(scope.index)).concat(stream)}


def unknown(scope: ps.Scope) -> Any:
    stream = moved(scope)["out"]
    return {"out": 5 if scope.index == 1 else stream}


def constructed(scope: ps.Scope) -> Any:
    stream = moved(scope)["out"]

    def constructor(capability: ps.Capability, info: ps.OperatorInfo) -> Any:
        capability.drop()
        if scope.index == 1:
            raise KeyError("constructed")
        return lambda _inputs, _outputs: None

    return {"out": stream.unary(ps.Pipeline(), "unary", constructor)}


@pytest.mark.parametrize(
    ("build", "error"),
    [
        (never_connected, ps.GraphError),
        (left_open, ps.GraphError),
        (without_a_step, ps.GraphError),
        (interrupted, KeyboardInterrupt),
        (unknown, TypeError),
        (constructed, KeyError),
    ],
    ids=lambda one: one.__name__,
)
def test_a_dataflow_that_one_worker_cannot_build_is_on_none(
    session: ps.Interactive, build: Any, error: type[BaseException], tmp_path: Path
) -> None:
    """Each worker lowers before any installs; numbers of dataflows go on alike on all of them."""
    ran = tmp_path / "ran"

    def runs(scope: ps.Scope) -> Any:
        scope.to_stream([1]).inspect(lambda _: ran.touch())
        return build(scope)

    first = session.dataflow(moved)
    for _ in range(2):
        with pytest.raises(error):
            session.dataflow(runs)
        assert session.run(lambda worker: len(worker.installed_dataflows())) == [1, 1]
    assert not ran.exists()
    second = session.dataflow(moved)
    for flow in (first, second):
        flow.numbers.send_batch([0, 1])
        flow.numbers.close()
        assert flow.out.read(PATIENCE) == [(0, [0, 1])]
