"""Answers of a session's handles after something has ended it: the table in docs/observability.md."""

import asyncio
import os
import signal
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FunctionType
from typing import Any

import pytest

import pointstamp as ps
from pointstamp.runtime.interactive.session import Interactive

PATIENCE = 120.0
"""Seconds for what comes in any case."""

PLACES: list[Any] = [{}, {"workers": 2}, {"processes": 2}]


def everything(scope: ps.Scope) -> Any:
    """A dataflow with inputs and outputs of every kind."""
    import pyarrow as pa

    schema = pa.schema([("n", pa.int64())])
    records, stream = scope.new_input()
    table = ps.ArrowInput(schema)
    batches = scope.input_from(table)
    pairs, collection = scope.new_collection()
    rows, columns = scope.new_collection(schema=schema)
    inputs = {"records": records, "table": table, "pairs": pairs, "rows": rows}
    outputs = {
        "stream": stream.map(lambda x: 10 // x),
        "batches": batches,
        "counts": collection.value_counts(),
    }
    return {**inputs, **outputs, "columns": columns, "probe": stream.probe()}


def uses(flow: Any) -> dict[str, Callable[[], Any]]:
    """Every way to use a dataflow, its inputs and its outputs."""
    import pyarrow as pa

    table = pa.table({"n": [1]})

    async def awaited() -> None:
        await flow

    return {
        "send": lambda: flow.records.send(1),
        "send_batch": lambda: flow.records.send_batch([1, 2]),
        "send nothing": lambda: flow.records.send_batch([]),
        "send columns": lambda: flow.table.send(table),
        "flush": flow.table.flush,
        "insert": lambda: flow.pairs.insert(1),
        "insert_many": lambda: flow.pairs.insert_many([1, 2]),
        "remove": lambda: flow.pairs.remove(1),
        "remove_many": lambda: flow.pairs.remove_many([1]),
        "update": lambda: flow.pairs.update(1, 2),
        "update_many": lambda: flow.pairs.update_many([(1, 2)]),
        "play": lambda: flow.pairs.play([(1, 5, 1)]),
        "insert rows": lambda: flow.rows.insert(table),
        "play rows": lambda: flow.rows.play(pa.table({"n": [1], "time": [5], "diff": [1]})),
        **{f"advance {name}": lambda name=name: flow[name].advance_to(9) for name in flow.inputs},
        **{f"read {name}": lambda name=name: flow[name].read(PATIENCE) for name in ("stream", "columns")},
        "take": flow.counts.take,
        "next": lambda: asyncio.run(flow.batches.next()),
        "frontier": lambda: flow.counts.frontier,
        "less_than": lambda: flow.probe.less_than(1),
        "less_equal": lambda: flow.probe.less_equal(1),
        "done": flow.probe.done,
        "settle": lambda: flow.settle(PATIENCE),
        "await": lambda: asyncio.run(awaited()),
    }


def all_work(flow: Any) -> None:
    for use in uses(flow).values():
        use()
        assert not any(one.closed for one in (flow, *flow.inputs.values(), *flow.outputs.values()))
        assert "(closed)" not in repr(flow)


class Parts:
    """The parts of a dataflow that is let go of itself."""

    def __init__(self, flow: Any) -> None:
        self.inputs = dict(flow.inputs)
        self.parts = {**flow.inputs, **flow.outputs}

    def __getitem__(self, name: str) -> Any:
        return self.parts[name]

    def __getattr__(self, name: str) -> Any:
        return self.parts[name]


def until(holds: Callable[[], Any]) -> None:
    """Waits for something that comes in any case."""
    end = time.monotonic() + PATIENCE
    while not holds():
        assert time.monotonic() < end
        time.sleep(0.01)


@contextmanager
def in_native_code(session: Interactive, place: Any, folder: Path) -> Iterator[None]:
    """The cell of a function that is in native code is interrupted; threads come back at the end."""
    begun = folder / "begun"
    read, write = os.pipe()
    threads = "processes" not in place

    def function(worker: ps.Worker) -> None:
        begun.touch()
        if threads:
            os.read(read, 1)
        else:
            time.sleep(1000)  # it is killed

    def strike() -> None:
        until(begun.exists)
        signal.pthread_kill(threading.main_thread().ident or 0, signal.SIGINT)

    striking = threading.Thread(target=strike)
    try:
        with pytest.raises(KeyboardInterrupt) as caught:
            striking.start()
            session.run(function)
        striking.join()
        assert any("was waited for" in note for note in getattr(caught.value, "__notes__", []))
        yield
    finally:
        os.write(write, b"xx")
        session.close()
        until(lambda: not [one for one in threading.enumerate() if one.name.startswith("pointstamp")])
        os.close(read)
        os.close(write)


RESTART, INTERRUPTED = "the session was restarted", r"was interrupted, and had not come back after 1 s"

CLOSED = "the session was closed, and its dataflows ended with it: make another one"


@pytest.mark.parametrize("place", PLACES, ids=str)
@pytest.mark.parametrize(
    ("event", "kind", "match"),
    [
        ("close the dataflow", ps.PointstampError, r"dataflow 'everything' was closed: build it again"),
        ("run the cell again", ps.PointstampError, r"dataflow 'everything' was replaced: .*newer dataflow"),
        ("restart", ps.PointstampError, RESTART),
        ("restart in native code", ps.PointstampError, INTERRUPTED),
        ("close the session", ps.PointstampError, CLOSED),
        ("leave the block", ps.PointstampError, CLOSED),
        ("close in native code", ps.PointstampError, INTERRUPTED),
        ("interrupt", ps.PointstampError, INTERRUPTED),
        ("an operator raises", ZeroDivisionError, "division"),
        ("lose a worker", ps.ClusterError, "process"),
    ],
)
def test_a_handle_says_what_has_happened(
    place: Any, event: str, kind: Any, match: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if event == "lose a worker" and "processes" not in place:
        pytest.skip("a thread is lost with the program")
    with ps.Interactive(**place) as session:
        flow: Any = session.dataflow(everything)
        flow.records.send(5)
        for one in flow.inputs.values():
            one.advance_to(1)
        assert flow.stream.read(PATIENCE) == [(0, [2])]
        all_work(flow)
        handles = {**flow.inputs, **flow.outputs}
        parts = Parts(flow)

        def says_so(of: Any = None) -> None:
            whole = of is None
            of = of or flow
            for name, handle in handles.items():
                assert handle.closed, name
                assert "closed" in repr(handle)
            for name, use in uses(of).items():
                for _ in range(2):
                    if whole or name not in ("settle", "await"):
                        with pytest.raises(kind, match=match):
                            use()
            for one in of.inputs.values():
                one.close()  # which does nothing, as at the end of a block
            if whole:
                assert flow.closed
                assert "(closed)" in repr(flow)
                flow.close()

        if event == "close the dataflow":
            flow.close()
            says_so()
        elif event == "run the cell again":
            again = FunctionType(everything.__code__, globals(), everything.__name__)
            newer = session.dataflow(again)
            flow.records.send(2)  # both are held
            for one in flow.inputs.values():  # a read waits for what all inputs have told
                one.advance_to(10)
            assert flow.stream.read(PATIENCE)
            flow = None
            says_so(parts)
            assert not newer.closed
        elif event == "restart":
            session.restart()
            says_so()
        elif event == "close the session":
            session.close()
            says_so()
        elif event == "leave the block":
            session.__exit__(None, None, None)
            says_so()
        elif event == "an operator raises":
            flow.records.send(0)
            with pytest.raises(ZeroDivisionError):
                flow.stream.read(PATIENCE)
            until(lambda: flow.closed)
            says_so()
        elif event == "lose a worker":
            os.kill(session.run(lambda worker: os.getpid())[1], signal.SIGKILL)
            until(lambda: flow.closed)
            says_so()
        else:
            with in_native_code(session, place, tmp_path):
                monkeypatch.setattr(
                    "pointstamp.runtime.interactive.cluster.FORCE", 0.2
                )  # it comes back at the end
                says_so()
                if event == "restart in native code":
                    session.restart()
                elif event == "close in native code":
                    session.close()
                says_so()
                monkeypatch.undo()
                if event != "close in native code":
                    works(session)
            says_so()
        if session.closed:
            for ask in (lambda: session.dataflow(everything), lambda: session.run(id), session.restart):
                with pytest.raises(ps.ConfigError, match="this session is closed: make another one"):
                    ask()
        else:
            works(session)


def works(session: Interactive) -> None:
    """Builds and uses a dataflow."""
    flow = session.dataflow(counting)
    flow.words.insert("a")
    flow.words.advance_to(1)
    assert flow.out.read(PATIENCE) == [(0, [(("a", 1), 1)])]
    assert len(session.run(id)) >= 1


def test_what_native_code_holds_up_is_said_in_time(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Two computations cannot have one page or log: new workers wait a while for the end of the old."""
    monkeypatch.setattr("pointstamp.runtime.interactive.cluster.FORCE", 0.2)
    session = ps.Interactive(config=ps.Config(log=tmp_path / "log"))
    with (
        in_native_code(session, {}, tmp_path),
        pytest.raises(ps.PointstampError, match="hold the page's port"),
    ):
        session.dataflow(counting)


@pytest.mark.parametrize("place", PLACES, ids=str)
def test_an_input_that_is_closed_says_so_and_the_rest_goes_on(place: Any) -> None:
    with ps.Interactive(**place) as session:
        flow = session.dataflow(everything)
        flow.records.send(5)
        for one in flow.inputs.values():
            one.close()
            assert one.closed
            with pytest.raises(ps.PointstampError, match="is closed: nothing can be sent any more"):
                one.advance_to(1)
        assert not flow.closed
        assert not flow.stream.closed
        assert flow.stream.read(PATIENCE) == [(0, [2])]
        assert flow.stream.done()


SHARED: dict[int, Any] = {}
"""Traces, by worker: in this process, or in that of a worker."""


def indexed(scope: ps.Scope) -> Any:
    pairs, collection = scope.new_collection()
    arranged = collection.arrange()
    SHARED[scope.index] = arranged.trace()
    return {"pairs": pairs, "out": arranged.to_collection()}


def asking(scope: ps.Scope) -> Any:
    keys, collection = scope.new_collection()
    with scope.region() as region:  # a scope inside counts, too
        there = region.import_trace(SHARED[scope.index])
        found = collection.map(lambda key: (key, None)).enter(region).join(there, lambda key, _, value: value)
        out = found.leave()
    return {"keys": keys, "out": out, "trace": scope.import_trace(SHARED[scope.index]).to_collection()}


def count(worker: ps.Worker) -> int:
    return len(worker.installed_dataflows())


def counting(scope: ps.Scope) -> Any:
    words, collection = scope.new_collection()
    return {"words": words, "out": collection.value_counts()}


@pytest.mark.parametrize("place", PLACES, ids=str)
@pytest.mark.parametrize("way", ["again", "close", "del"])
def test_a_dataflow_whose_trace_is_imported_ends_with_its_importers(place: Any, way: str) -> None:
    with ps.Interactive(**place) as session:
        other = session.dataflow(counting)
        base = session.dataflow(indexed)
        asks = session.dataflow(asking)
        base.pairs.insert_many([(key, key * 10) for key in range(10)])
        base.pairs.advance_to(1)
        asks.keys.insert(1)
        asks.keys.advance_to(1)
        assert asks.out.read(PATIENCE) == [(0, [(10, 1)])]
        kept = base.pairs if way == "close" else None
        if way == "close":
            base.close()
        elif way == "del":
            del base
        else:
            base = session.dataflow(indexed)  # as its cell does when it is run again
            base.pairs.insert((1, 11))
            base.pairs.advance_to(1)
            assert base.out.read(PATIENCE) == [(0, [((1, 11), 1)])]
        if kept is not None:
            with pytest.raises(ps.PointstampError, match="was closed"):
                kept.insert((1, 12))
        asks.keys.insert_many(range(2, 5))
        asks.keys.advance_to(2)
        assert asks.out.read(PATIENCE) == [(1, [(20, 1), (30, 1), (40, 1)])]
        assert len(asks.trace.read(PATIENCE)) == 1
        other.words.insert("a")
        other.words.advance_to(1)
        assert other.out.read(PATIENCE) == [(0, [(("a", 1), 1)])]
        asks.close()
        left = 2 if way == "again" else 1
        assert set(session.run(count)) == {left}


def endless(scope: ps.Scope) -> Any:
    def build(capability: ps.Capability, info: ps.OperatorInfo) -> Any:
        held = [capability]
        return lambda output: held.count(output)

    return {**indexed(scope), "source": scope.source("endless", build)}


@pytest.mark.parametrize("place", PLACES, ids=str)
def test_an_imported_dataflow_that_goes_on_by_itself_ends_with_its_importers(place: Any) -> None:
    with ps.Interactive(**place) as session:
        base = session.dataflow(endless)
        one, two = session.dataflow(asking), session.dataflow(asking)
        base.pairs.insert((1, 10))
        base.close()
        one.close()
        assert set(session.run(count)) == {2}
        two.keys.insert(1)
        two.keys.advance_to(1)
        assert two.out.read(PATIENCE) == [(0, [(10, 1)])]
        two.close()
        assert set(session.run(count)) == {0}


def test_a_restart_does_not_wait_for_native_code(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An operator holds the workers, and workers that were interrupted before still run."""
    monkeypatch.setattr(
        "pointstamp.runtime.interactive.cluster.FORCE", float(10**6)
    )  # nothing may wait for that
    session = ps.Interactive()
    read, write = os.pipe()
    begun = threading.Event()

    def blocked(scope: ps.Scope) -> Any:
        handle, stream = scope.new_input()

        def wait(record: Any) -> Any:
            begun.set()
            os.read(read, 1)
            return record

        return {"records": handle, "out": stream.map(wait)}

    try:
        with in_native_code(session, {}, tmp_path):
            flow = session.dataflow(blocked)
            flow.records.send(1)
            assert begun.wait(PATIENCE)
            session.restart()
            works(session)
            with pytest.raises(ps.PointstampError, match=RESTART):
                flow.out.read(PATIENCE)
            os.write(write, b"x")
    finally:
        os.close(read)
        os.close(write)


@pytest.mark.parametrize("place", PLACES, ids=str)
@pytest.mark.parametrize(("event", "match"), [("close", CLOSED), ("restart", RESTART)])
def test_a_failure_that_was_before_the_end_is_what_is_raised_and_notes_the_end(
    place: Any, event: str, match: str
) -> None:
    with ps.Interactive(**place) as session:
        flow = session.dataflow(everything)
        flow.records.send(0)
        flow.records.advance_to(1)
        with pytest.raises(ZeroDivisionError):
            flow.stream.read(PATIENCE)
        getattr(session, event)()
        with pytest.raises(ZeroDivisionError) as caught:
            flow.stream.read(PATIENCE)
        assert any(f"since then, {match}" in note for note in getattr(caught.value, "__notes__", ()))


def test_a_failure_that_no_call_has_raised_is_told_at_the_end() -> None:
    session = ps.Interactive()
    flow = session.dataflow(everything)
    flow.records.send(0)
    until(lambda: flow.closed)
    with pytest.warns(ps.UsageWarning, match="no call has raised: ZeroDivisionError"):
        session.close()
