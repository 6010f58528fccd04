"""A session of a notebook or the prompt: workers in the background, dataflows that stay, cells that ask."""

import asyncio
import code
import gc
import random
import signal
import subprocess
import sys
import textwrap
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest

import pointstamp as ps

PLACES: list[Any] = [{}, {"workers": 2}, {"processes": 2}]


@pytest.fixture(params=PLACES, ids=str)
def session(request: pytest.FixtureRequest) -> Iterator[ps.Interactive]:
    with ps.Interactive(**request.param) as session:
        yield session


def words(scope: ps.Scope) -> Any:
    lines, stream = scope.new_input()
    return {"lines": lines, "counts": stream.flat_map(str.split).value_counts()}


def quotients(scope: ps.Scope) -> Any:
    numbers, stream = scope.new_input()
    return {"numbers": numbers, "out": stream.map(lambda x: 10 // x)}


def threads() -> list[str]:
    return [thread.name for thread in threading.enumerate() if thread.name.startswith("pointstamp")]


def interrupt_when(condition: Callable[[], bool]) -> threading.Thread:
    """Strikes Ctrl-C in the main thread once something holds, and the thread was started."""

    def strike() -> None:
        while not condition():
            time.sleep(0.01)
        signal.pthread_kill(threading.main_thread().ident or 0, signal.SIGINT)

    return threading.Thread(target=strike)


def test_what_a_cancelled_call_leaves_is_returned_by_the_next(session: ps.Interactive) -> None:
    flow = session.dataflow(words)
    patience = random.Random(7)

    async def cell() -> tuple[int, int]:
        got = cancelled = 0

        async def read(timeout: float | None) -> int:
            read = await asyncio.wait_for(flow.counts.next(), timeout)
            return sum(count for _, counts in read for _, count in counts)

        for number in range(200):
            flow.lines.send("a")
            flow.lines.advance_to(number + 1)
            try:
                got += await read(patience.uniform(0.0001, 0.004))
            except asyncio.TimeoutError:
                cancelled += 1
        return got + await read(None), cancelled

    got, cancelled = asyncio.run(cell())
    assert (got, cancelled > 0) == (200, True)


@pytest.mark.parametrize("time", [2**64, -1, 1.5, "x", (0, 0)])
def test_times_that_no_input_has_are_refused_at_once(session: ps.Interactive, time: Any) -> None:
    flow = session.dataflow(words)
    with pytest.raises(ps.TimeError):
        flow.lines.advance_to(time)
    flow.lines.send("a")
    flow.lines.advance_to(1)
    assert flow.counts.read() == [(0, [("a", 1)])]


def test_a_dataflow_is_fed_read_and_awaited_in_cells_and_outlives_what_goes_wrong(
    session: ps.Interactive,
) -> None:
    flow = session.dataflow(words)
    flow.lines.send("to be or not")
    flow.lines.send("to be")
    flow.lines.advance_to(1)
    assert flow.counts.read() == [(0, [("be", 2), ("not", 1), ("or", 1), ("to", 2)])]
    assert flow.counts.read() == []

    async def cell() -> Any:
        flow.lines.send_batch(["a", "a", "b"])
        assert flow.counts.take() == []
        flow.lines.advance_to(2)
        await flow
        return flow.counts.take()

    assert asyncio.run(cell()) == [(1, [("a", 2), ("b", 1)])]
    assert repr(flow) == "<dataflow 'words': <input 'lines' at 2>, <output 'counts': Stream>>"
    assert "counts" in flow._repr_html_()

    @session.dataflow
    def letters(scope: ps.Scope) -> Any:
        letters, collection = scope.new_collection()
        return letters, collection.value_counts()

    letters[0].insert_many(list("abca"))
    letters[0].advance_to(1)
    letters[0].remove("a")
    letters[0].close()
    changes = [(("a", 1), 1), (("a", 2), -1)]
    assert letters["1"].read() == [(0, [(("a", 2), 1), (("b", 1), 1), (("c", 1), 1)]), (1, changes)]

    def refuses(scope: ps.Scope) -> Any:
        if scope.index == scope.peers - 1:
            raise LookupError("not here")
        return scope.new_input()[1]

    with pytest.raises(LookupError, match="not here"):
        session.dataflow(refuses)
    with pytest.raises(TypeError, match=r"'result': .* needs no capture"):
        session.dataflow(lambda scope: scope.empty().capture(), name="captured")
    flow.lines.send("still here")
    flow.lines.advance_to(3)
    assert flow.counts.read() == [(2, [("here", 1), ("still", 1)])]

    failing = session.dataflow(quotients)
    failing.numbers.send(0)
    failing.numbers.advance_to(1)
    for cell_of in (failing.out.read, flow.settle, lambda: flow.lines.send("x")):
        with pytest.raises(ZeroDivisionError) as caught:
            cell_of()
        notes = getattr(caught.value, "__notes__", ["starts new workers"])  # from Python 3.11 on
        assert any("starts new workers" in note for note in notes)
    assert flow.closed
    again = session.dataflow(quotients)
    again.numbers.send(5)
    again.numbers.advance_to(1)
    assert again.out.read() == [(0, [2])]
    assert session.run(lambda worker, more: worker.index + more, 10) == list(
        range(10, 10 + len(session.run(id)))
    )


def test_columns_and_probes_are_reached() -> None:
    import pyarrow as pa

    def build(scope: ps.Scope) -> Any:
        rows, stream = scope.new_input(), None
        table = ps.ArrowInput(pa.schema([("n", pa.int64())]))
        stream = scope.input_from(table)
        return {"rows": rows[0], "table": table, "out": stream.exchange("n"), "probe": rows[1].probe()}

    with ps.Interactive(workers=2) as session:
        flow = session.dataflow(build)
        for first in (0, 3):
            flow.table.send(pa.table({"n": [first, first + 1, first + 2]}))
        for one in flow.inputs.values():
            one.advance_to(1)
        [(time, batches)] = flow.out.read()
        assert time == 0
        assert sorted(n for batch in batches for n in batch.column("n").to_pylist()) == list(range(6))
        with pytest.raises(TypeError, match="is a probe"):
            flow.probe.read()
        with pytest.raises(TypeError, match="is an InputHandle: use send"):
            flow.rows.insert(1)
        with pytest.raises(ps.TimeError, match="stands at 1 and cannot move to 0"):
            flow.rows.advance_to(0)
        with pytest.raises(KeyError, match="it has 'rows', 'table', 'out', 'probe'"):
            flow["none"]


def test_times_of_several_coordinates_settle(pair: ps.Interactive) -> None:
    flow = pair.dataflow(words, dims=2)
    flow.lines.send("a")
    flow.lines.advance_to((0, 1))
    assert flow.counts.read() == [((0, 0), [("a", 1)])]


def test_a_record_that_is_refused_is_said_to_who_asks_next_and_ends_nothing(pair: ps.Interactive) -> None:
    def build(scope: ps.Scope) -> Any:
        return scope.new_collection()

    flow = pair.dataflow(build)
    flow["0"].insert([1])
    flow["0"].insert(2)
    with pytest.raises(TypeError, match="cannot be hashed"):
        flow.settle()
    flow["0"].advance_to(1)
    assert flow["1"].read() == [(0, [(2, 1)])]


def test_a_wait_that_takes_too_long_says_what_holds_it(pair: ps.Interactive) -> None:
    kept = []

    def build(scope: ps.Scope) -> Any:
        numbers, stream = scope.new_input()

        def keeper(capability: Any, info: Any) -> Any:
            kept.append(capability)
            return lambda output: None

        return {"numbers": numbers, "out": stream.concat(scope.source("keeper", keeper))}

    flow = pair.dataflow(build)
    flow.numbers.send(1)
    flow.numbers.advance_to(1)
    with pytest.raises(
        ps.StallError, match=r"output 'out' of dataflow 'build' is not over after 0.2 s(.|\n)*'keeper'"
    ):
        flow.out.read(timeout=0.2)
    assert "'keeper'" in pair.explain()
    flow.close()
    with pytest.raises(ps.PointstampError, match="was closed: build it again"):
        flow.settle()


def test_an_interrupted_cell_interrupts_nothing_else(pair: ps.Interactive, tmp_path: Any) -> None:
    begun, gate = tmp_path / "begun", tmp_path / "gate"

    def build(scope: ps.Scope) -> Any:
        numbers, stream = scope.new_input()

        def slow(x: int) -> int:
            begun.touch()
            while not gate.exists():
                time.sleep(0.01)
            return x

        return {"numbers": numbers, "out": stream.map(slow)}

    flow = pair.dataflow(build)
    flow.numbers.send(7)
    flow.numbers.advance_to(1)
    striking = interrupt_when(begun.exists)
    with pytest.raises(KeyboardInterrupt):
        striking.start()
        flow.out.read()
    striking.join()
    gate.touch()
    assert flow.out.read() == [(0, [7])]


def test_an_interruption_that_wakes_nobody_is_noticed(pair: ps.Interactive) -> None:
    """Strikes just before the main thread waits: the system delivers it to another thread."""
    waiting, gate = threading.Event(), threading.Event()

    def strike() -> None:
        waiting.wait()
        main = threading.main_thread().ident or 0
        while sys._current_frames()[main].f_code.co_name != "wait":  # for the worker's answer
            time.sleep(0.01)
        time.sleep(0.05)  # it is in the lock by then; if not, the test shows nothing
        signal.pthread_kill(threading.get_ident(), signal.SIGINT)

    def hold(worker: ps.Worker) -> None:
        waiting.set()
        gate.wait()

    flow = pair.dataflow(words)
    blocking = threading.Thread(target=lambda: pair.run(hold))
    blocking.start()
    striking = threading.Thread(target=strike)
    try:
        waiting.wait()
        with pytest.raises(KeyboardInterrupt):
            striking.start()
            flow.counts.read()
    finally:
        gate.set()
        striking.join()
        blocking.join()


@pytest.mark.parametrize(("place", "way"), [({"workers": 2}, "dataflow"), ({"processes": 2}, "run")])
def test_a_function_that_never_returns_is_ended_with_its_cell(place: Any, way: str, tmp_path: Any) -> None:
    begun = tmp_path / "begun"

    def build(scope: ps.Scope) -> Any:
        begun.touch()
        while True:
            time.sleep(0.01)

    with ps.Interactive(**place) as session:
        striking = interrupt_when(begun.exists)
        with pytest.raises(KeyboardInterrupt):
            striking.start()
            getattr(session, way)(build)
        striking.join()
        deadline = time.monotonic() + 120
        flow = None
        while flow is None:  # the workers end in the background
            try:
                flow = session.dataflow(words)
            except ps.PointstampError:
                assert time.monotonic() < deadline
        flow.lines.close()
        assert flow.counts.read() == []


def test_it_ends_with_what_refers_to_it() -> None:
    session = ps.Interactive(workers=2)
    flow = session.dataflow(words)
    kept = flow.counts
    installed = lambda worker: worker.installed_dataflows()  # noqa: E731
    assert all(session.run(installed))
    del flow
    assert all(session.run(installed))
    del kept
    gc.collect()
    assert not any(session.run(installed))
    assert "pointstamp-interactive" in threads()
    del session
    gc.collect()
    assert threads() == []


def test_it_is_closed_although_an_operator_goes_on(tmp_path: Any) -> None:
    begun = tmp_path / "begun"

    def build(scope: ps.Scope) -> Any:
        def stuck(x: int) -> int:
            begun.touch()
            while True:
                time.sleep(0.01)

        return scope.to_stream([1]).map(stuck)

    session = ps.Interactive(workers=2)
    flow = session.dataflow(build)
    while not begun.exists():
        time.sleep(0.01)
    with pytest.raises(ps.StallError, match=r"test_interactive\.py"):
        flow.settle(timeout=0.1)
    session.close()
    session.close()
    assert threads() == []
    assert repr(session) == "<Interactive session (closed)>"
    for use in (lambda: session.dataflow(words), flow.settle):
        with pytest.raises(ps.PointstampError, match="closed"):
            use()


def test_a_real_console_feeds_and_reads_what_is_typed_there() -> None:
    said: list[Any] = []
    console = code.InteractiveConsole({"__name__": "__console__", "said": said})
    typed = """
    import pointstamp as ps
    session = ps.Interactive(processes=2)
    factor = 3
    def scaled(scope):
        numbers, stream = scope.new_input()
        return numbers, stream.map(lambda x: x * factor)

    numbers, out = (flow := session.dataflow(scaled))[0], flow[1]
    numbers.send_batch(range(4))
    numbers.advance_to(1)
    said.append(out.read())
    session.dataflow(lambda scope: 1 / 0)
    numbers.send(10)
    numbers.advance_to(2)
    said.append(out.read())
    session.close()
    """
    errors: list[str] = []
    console.write = errors.append  # type: ignore[method-assign, assignment]
    more = False
    for line in textwrap.dedent(typed).strip().splitlines():
        more = console.push(line)
    assert not more
    assert said == [[(0, [0, 3, 6, 9])], [(1, [30])]]
    assert "ZeroDivisionError" in errors[0]
    assert len(errors) == 1


@pytest.mark.parametrize("place", ["workers=2", "processes=2"])
def test_the_prompt_ends_with_a_session_that_was_left_open(place: str) -> None:
    typed = f"""
    import pointstamp as ps
    session = ps.Interactive({place})
    flow = session.dataflow(lambda scope: scope.new_input())
    flow[0].send(1)
    flow[0].advance_to(1)
    print("got", flow[1].read())
    """
    ended = subprocess.run(
        [sys.executable, "-i"],
        input=textwrap.dedent(typed),
        capture_output=True,
        text=True,
        timeout=380,
    )
    assert ended.returncode == 0
    assert "got [(0, [1])]" in ended.stdout
    assert "Traceback" not in ended.stderr


def test_what_cannot_be_is_refused() -> None:
    with pytest.raises(ps.ConfigError, match="workers must be at least 1"):
        ps.Interactive(workers=0)
    with pytest.raises(ps.ConfigError, match="workers=2 and config= were given"):
        ps.Interactive(workers=2, config=ps.Config(workers=2))
    with pytest.raises(ps.ConfigError, match="give processes= beside the config"):
        ps.Interactive(config=ps.Config(processes=2))
    with ps.Interactive() as session, pytest.raises(TypeError, match="async"):

        async def build(scope: ps.Scope) -> None: ...

        session.dataflow(build)


def test_a_read_before_its_input_has_left_the_time_is_told(session: ps.Interactive) -> None:
    flow = session.dataflow(words)
    flow.lines.send("tick tock")
    with pytest.warns(ps.UsageWarning, match=r"input 'lines' was given something at time 0.*advance_to\(\)"):
        assert flow.counts.read() == []
    flow.lines.advance_to(1)
    assert flow.counts.read() == [(0, [("tick", 1), ("tock", 1)])]
    assert flow.counts.read() == []  # nothing was sent since
    flow.lines.send("tick")
    flow.lines.close()
    assert flow.counts.read() == [(1, [("tick", 1)])]


@pytest.mark.parametrize(
    ("call", "words_of_it"),
    [
        (lambda lines: lines.send(x for x in "ab"), "send_batch takes every record"),
        (lambda lines: lines.send_batch("abc"), r"write \['abc'\]"),
        (lambda lines: lines.send_batch({"a": 1}), "keys"),
    ],
)
def test_one_record_for_many_is_refused_at_once(
    session: ps.Interactive, call: Callable[[Any], None], words_of_it: str
) -> None:
    flow = session.dataflow(words)
    with pytest.raises(TypeError, match=words_of_it):
        call(flow.lines)
