"""Methods of a session's inputs and outputs: those of a dataflow in `main`."""

import asyncio
import threading
from collections.abc import Awaitable, Callable, Iterator
from typing import Any, cast

import pytest

import pointstamp as ps
from harness import wait_until
from pointstamp.observability.collector import Collector
from pointstamp.runtime.interactive import flow as waiting
from pointstamp.runtime.interactive import serving
from pointstamp.runtime.interactive.inputs import PORTION
from pointstamp.runtime.interactive.outputs import LiveOutput

PATIENCE = 120.0
"""Seconds for what comes in any case."""


@pytest.fixture(params=[{}, {"workers": 2}, {"processes": 2}], ids=str)
def session(request: pytest.FixtureRequest) -> Iterator[ps.Interactive]:
    with ps.Interactive(**request.param) as session:
        yield session


def collected(scope: ps.Scope) -> Any:
    words, collection = scope.new_collection()
    return {"words": words, "out": collection, "probe": collection.probe()}


def numbers(scope: ps.Scope) -> Any:
    handle, stream = scope.new_input()
    return {"numbers": handle, "out": stream.map(lambda x: x), "probe": stream.probe()}


def test_changes_go_in_by_many_and_bring_their_times_along(session: ps.Interactive) -> None:
    flow = session.dataflow(collected)
    with flow.words as words:
        words.insert_many(list("abcd"))
        words.remove_many(["a", "b"])
        words.update_many([("c", 2), ("d", -1)])
        words.flush()
        words.advance_to(2)
        words.play(("e", time, 1) for time in (2, 2, 3, 7))
        assert words.time == 7
        words.remove("c")
    assert words.closed
    assert flow.out.read(PATIENCE) == [
        (0, [("c", 3)]),
        (2, [("e", 2)]),
        (3, [("e", 1)]),
        (7, [("c", -1), ("e", 1)]),
    ]


def test_what_is_played_is_what_is_fed_by_hand(session: ps.Interactive) -> None:
    """More than one portion, so that each worker plays some, and follows the others."""
    changes = [(key % 7, key // 100, 1 + key % 3) for key in range(2 * PORTION + 10)]
    flow = session.dataflow(collected)
    flow.words.play(changes)
    flow.words.close()
    by_hand = session.dataflow(collected)
    for record, time, diff in changes:
        if time != by_hand.words.time:
            by_hand.words.advance_to(time)
        by_hand.words.update(record, diff)
    by_hand.words.close()
    assert flow.out.read(PATIENCE) == by_hand.out.read(PATIENCE)


WRONG: list[Any] = [
    (("c", 0, 1), ps.TimeError, "comes after one at 1"),
    (("c", 1), TypeError, "is not a change with its time"),
    (("c", 2, 0), ValueError, "changes nothing"),
    (([], 2, 1), TypeError, "cannot be hashed"),
    (("c", 2**64, 1), ps.TimeError, "18446744073709551616"),
]


def test_a_change_that_cannot_be_is_refused_at_once(session: ps.Interactive) -> None:
    for wrong, error, match in WRONG:
        flow = session.dataflow(collected)
        with pytest.raises(error, match=match):
            flow.words.play([("a", 0, 1), ("b", 1, 1), wrong, ("d", 5, 1)])
        assert flow.words.time == 1
        flow.words.advance_to(3)
        assert flow.out.read(PATIENCE) == [(0, [("a", 1)]), (1, [("b", 1)])]


def test_an_iterable_that_fails_is_played_as_far_as_it_went(session: ps.Interactive) -> None:
    def changes() -> Iterator[Any]:
        for _ in range(PORTION + 5):
            yield "a", 1, 1
        raise LookupError("no more")

    flow = session.dataflow(collected)
    with pytest.raises(LookupError, match="no more"):
        flow.words.play(changes())
    flow.words.close()
    assert flow.out.read(PATIENCE) == [(1, [("a", PORTION + 5)])]


def test_a_probe_is_passed_before_the_next_time_is_fed(
    session: ps.Interactive, monkeypatch: pytest.MonkeyPatch
) -> None:
    flow = session.dataflow(collected)
    asked: list[int] = []

    def changes() -> Iterator[Any]:
        for time in range(5):
            yield "a", time, 1
            yield "b", time, 1

    ask = flow._flow.ask

    def noted(what: str, *more: Any, worker: int | None = None) -> Any:
        if what == "pass":
            asked.append(more[1])
        return ask(what, *more, worker=worker)

    monkeypatch.setattr(flow._flow, "ask", noted)
    flow.words.play(changes(), probe=flow.probe)
    assert asked == [1, 2, 3, 4]
    assert not flow.probe.less_than(4)
    assert flow.probe.less_equal(4)
    with pytest.raises(TypeError, match="the probe is an output of dataflow"):
        flow.words.play([], probe=ps.ProbeHandle())
    other = session.dataflow(collected)
    with pytest.raises(ValueError, match="is of another dataflow"):
        flow.words.play([], probe=other.probe)


def test_columns_are_played(session: ps.Interactive) -> None:
    import pyarrow as pa

    schema = pa.schema([("item", pa.string())])

    def build(scope: ps.Scope) -> Any:
        stock, collection = scope.new_collection(schema=schema)
        return {"stock": stock, "out": collection.to_records(), "probe": collection.probe()}

    flow = session.dataflow(build)
    batches = [
        pa.record_batch({"item": ["tea", "rye"], "time": [0, 0]}),
        pa.record_batch({"item": ["tea", "oat", "rye"], "time": [1, 4, 4]}),
    ]
    flow.stock.play(pa.Table.from_batches(batches), diff=None)
    assert flow.stock.time == 4
    more = pa.table({"item": ["tea", "rye"], "time": [6, 6], "diff": [-1, 1]})
    flow.stock.play(more, probe=flow.probe)
    with pytest.raises(TypeError, match="'at'"):
        flow.stock.play(more, time="at")
    with pytest.raises(TypeError, match="a collection of columns takes"):
        flow.stock.play([("tea", 9, 1)])
    with pytest.raises(TypeError, match="use insert"):
        flow.stock.update_many([("tea", 1)])
    flow.stock.close()
    found = [
        (time, sorted((record[0], diff) for record, diff in rows)) for time, rows in flow.out.read(PATIENCE)
    ]
    assert found == [
        (0, [("rye", 1), ("tea", 1)]),
        (1, [("tea", 1)]),
        (4, [("oat", 1), ("rye", 1)]),
        (6, [("rye", 1), ("tea", -1)]),
    ]


def test_methods_of_another_kind_are_refused(session: ps.Interactive) -> None:
    flow = session.dataflow(collected)
    with pytest.raises(TypeError, match="has no columns"):
        flow.words.play([], time="at")
    with pytest.raises(TypeError, match=r"use insert\(\), not send\(\)"):
        flow.words.send("a")
    with pytest.raises(TypeError, match="gives the names of its columns"):
        import pyarrow as pa

        flow.words.play(pa.table({"a": [1]}))
    flow.words.close()
    flow.words.close()
    for use in (lambda: flow.words.play([]), flow.words.flush, lambda: flow.words.advance_to(3)):
        with pytest.raises(ps.PointstampError, match="is closed"):
            use()
    fed = session.dataflow(numbers)
    with pytest.raises(TypeError, match=r"use send\(\), not play\(\)"):
        fed.numbers.play([])


def test_a_probe_and_every_output_answers(session: ps.Interactive) -> None:
    flow = session.dataflow(numbers)
    for output in (flow.probe, flow.out):
        assert output.less_equal(0)
        assert not output.less_than(0)
        assert not output.done()
        assert output.frontier == ps.order.Antichain([0])
    flow.numbers.send(1)
    flow.numbers.advance_to(3)
    for output in (flow.probe, flow.out):
        while output.less_than(3):
            pass
        assert output.less_equal(3)
        assert output.frontier == ps.order.Antichain([3])
        with pytest.raises(ps.TimeError):
            output.less_than((0, 0))
        with pytest.raises(ps.TimeError):
            output.less_equal(-1)
    flow.numbers.close()
    flow.settle(PATIENCE)
    while not (flow.probe.done() and flow.out.done()):
        pass
    assert flow.probe.frontier == ps.order.Antichain()
    flow.close()
    with pytest.raises(ps.PointstampError, match="was closed: build it again"):
        flow.probe.done()


def keeps(scope: ps.Scope) -> Any:
    handle, stream = scope.new_input()

    def keeper(capability: Any, info: Any) -> Any:
        kept.append(capability)
        return lambda output: None

    return {"numbers": handle, "out": stream.concat(scope.source("keeper", keeper)), "other": stream}


kept: list[Any] = []


def test_a_read_that_takes_too_long_names_what_it_waits_for(session: ps.Interactive) -> None:
    other = session.dataflow(collected, name="other")
    other.words.insert("a")
    flow = session.dataflow(keeps)
    flow.numbers.send(1)
    flow.numbers.advance_to(1)
    for wait in (flow.out.read, flow.settle):
        with pytest.raises(ps.StallError, match="not over after 1 s") as caught:
            wait(timeout=1)
        said = str(caught.value)
        assert "'keeper'" in said
        assert "input" not in said, "an input that is open and not waited for"
    assert flow.other.read(PATIENCE) == [(0, [1])]
    assert "The input 'input'" in session.explain()


def held(scope: ps.Scope) -> Any:
    words, collection = scope.new_collection()

    def keeper(capability: Any, info: Any) -> Any:
        kept.append(capability)
        return lambda output: None

    return {"words": words, "out": scope.source("keeper", keeper).concat(collection.updates())}


@pytest.fixture
def servings(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """Returns the objects that run the commands of each worker of this process."""
    made: list[Any] = []

    class Noted(serving._Serving):
        def __init__(self, *arguments: Any) -> None:
            super().__init__(*arguments)
            made.append(self)

    monkeypatch.setattr(serving, "_Serving", Noted)
    return made


def test_a_wait_that_is_given_up_leaves_no_question_behind(servings: list[Any], pair: ps.Interactive) -> None:
    flow = pair.dataflow(held)
    flow.words.advance_to(1)
    cluster = pair._running[-1]

    def play() -> None:
        flow.words.play([("a", 2, 1)], probe=flow.out)

    async def cancelled(wait: Callable[[], Awaitable[Any]]) -> None:
        asking = asyncio.ensure_future(wait())
        while not any(each._waiting for each in servings):
            await asyncio.sleep(0.01)
        asking.cancel()
        with pytest.raises(asyncio.CancelledError):
            await asking

    async def settled() -> None:
        await flow

    for wait in (lambda: flow.out.read(0.1), lambda: flow.settle(0.1), play):
        cluster.timeout = 0.1
        with pytest.raises(ps.StallError):
            wait()
        cluster.timeout = None
        pair.run(id, timeout=PATIENCE)  # behind the messages about it
        assert [each._waiting for each in servings] == [[], []]
        wait_until(lambda: not cluster._replies._open)
    for waits in (flow.out.next, settled):
        asyncio.run(cancelled(waits))
        pair.run(id, timeout=PATIENCE)
        assert [each._waiting for each in servings] == [[], []]
        wait_until(lambda: not cluster._replies._open)


@pytest.mark.parametrize("what", ["settle", "read", "play"])
def test_a_wait_for_a_dataflow_that_is_closed_meanwhile_is_an_error(
    what: str, servings: list[Any], pair: ps.Interactive
) -> None:
    flow = pair.dataflow(held)
    flow.words.advance_to(1)
    raised: list[BaseException] = []

    def wait() -> None:
        try:
            if what == "play":
                flow.words.play([("a", 2, 1)], probe=flow.out)
            else:
                (flow.settle if what == "settle" else flow.out.read)(PATIENCE)
        except ps.PointstampError as error:
            raised.append(error)

    waiting = threading.Thread(target=wait)
    waiting.start()
    wait_until(lambda: any(each._waiting for each in servings))
    flow.close()
    waiting.join(PATIENCE)
    assert [type(error) for error in raised] == [ps.PointstampError]
    assert "was closed" in str(raised[0])


def test_what_is_waited_for_is_asked_within_the_time_that_there_is(
    pair: ps.Interactive, monkeypatch: pytest.MonkeyPatch
) -> None:
    begun, gate = threading.Event(), threading.Event()

    def hold(worker: ps.Worker) -> None:
        begun.set()
        assert gate.wait(PATIENCE)

    asked: list[float] = []
    everyone = Collector.everyone

    def noted(asking: Collector, worker: Any = None, seconds: float = 1.0, *more: Any) -> Any:
        asked.append(seconds)
        return everyone(asking, worker, seconds, *more)

    flow = pair.dataflow(numbers)
    blocking = threading.Thread(target=lambda: pair.run(hold, timeout=PATIENCE))
    blocking.start()
    monkeypatch.setattr(Collector, "everyone", noted)
    try:
        assert begun.wait(PATIENCE)
        for wait in (flow.out.read, flow.settle, lambda timeout: pair.run(id, timeout=timeout)):
            with pytest.raises(ps.StallError, match=r"not over after 0\.3 s"):
                wait(timeout=0.3)
    finally:
        gate.set()
        blocking.join(PATIENCE)
    assert len(asked) == 3
    assert all(seconds <= 0.15 for seconds in asked)


def test_an_answer_that_comes_while_the_workers_are_asked_is_returned(
    pair: ps.Interactive, monkeypatch: pytest.MonkeyPatch
) -> None:
    gate = threading.Event()
    clock = [0.0]

    def hold(worker: ps.Worker) -> int:
        clock[0] = 600.0
        assert gate.wait(PATIENCE)
        return worker.index

    def explain(*_: Any) -> str:
        gate.set()
        return "never said"

    cluster = pair.dataflow(numbers)._flow.cluster
    monkeypatch.setattr(type(cluster), "explain", explain)
    monkeypatch.setattr(waiting, "SAYING", 500.0)
    monkeypatch.setattr(waiting, "monotonic", lambda: clock[0])
    assert pair.run(hold, timeout=1000.0) == [0, 1]


def test_changes_of_records_with_nan_add_up() -> None:
    """Changes of several workers add up: each has a nan of its own."""
    output = LiveOutput(cast("Any", None), "numbers", "Collection")
    ones = [float("nan"), (float("nan"), "a"), 3.0]
    others = [float("nan"), (float("nan"), "a")]
    parts: Any = [[(0, (one, 1)) for one in ones], [(0, (other, -1)) for other in others]]
    assert output._joined(parts) == [(0, [(3.0, 1)])]


def test_names_that_a_dataflow_has_of_its_own_are_refused() -> None:
    with ps.Interactive() as session:
        flow = session.dataflow(numbers)
        own = {name for name in dir(flow) if not name.startswith("_")} | vars(flow).keys()
        own = {name for name in own if not name.startswith("_")} - {"numbers", "out", "probe"}
        assert {"close", "name", "outputs", "settle"} <= own
        for name in sorted(own):
            with pytest.raises(ps.GraphError, match=rf"named '{name}'.*another name, such as '{name}_'"):
                session.dataflow(lambda scope, name=name: {name: scope.to_stream([1])})
        explained = session.dataflow(lambda scope: {"close_": scope.to_stream([1]), "read": scope.empty()})
        assert explained.close_.read(PATIENCE) == [(0, [1])]
        assert explained.read.read(PATIENCE) == []


def strict_ones(scope: ps.Scope) -> Any:
    import pyarrow as pa

    words, collection = scope.new_collection(strict=True)
    others, second = scope.new_collection(strict=True)
    table, columns = scope.new_collection(schema=pa.schema({"n": pa.int64()}), strict=True)
    return {
        "words": words,
        "out": collection,
        "others": others,
        "second": second,
        "table": table,
        "rows": columns,
    }


def test_a_strict_input_of_a_session_is_one_input(session: ps.Interactive) -> None:
    """However its records are given, what was inserted may be removed."""
    import pyarrow as pa

    flow = session.dataflow(strict_ones)
    for _ in range(3):  # not a multiple of the number of workers
        flow.words.insert("a")
        flow.words.remove("a")
        flow.table.insert(pa.table({"n": [1, 2]}))
    flow.words.insert_many(list("abcde"))
    flow.words.remove_many(list("edcb"))
    flow.words.update("x", 3)
    flow.words.update_many([("x", -1), ("x", -1)])
    flow.words.play((word, 1, diff) for word, diff in (("y", 2), ("y", -1), ("a", -1)))
    flow.table.update(pa.table({"n": [1]}), -2)
    flow.table.remove(pa.table({"n": [2]}))
    flow.table.play(pa.table({"n": [1, 2], "time": [1, 1], "diff": [-1, -1]}))
    for one in flow.inputs.values():
        one.close()
    assert flow.out.read(PATIENCE) == [(0, [("a", 1), ("x", 1)]), (1, [("a", -1), ("y", 1)])]
    rows = [row for _, batches in flow.rows.read(PATIENCE) for batch in batches for row in batch.to_pylist()]
    left: dict[int, int] = {}
    for row in rows:
        left[row["n"]] = left.get(row["n"], 0) + row["diff"]
    assert left == {1: 0, 2: 1}


def test_a_strict_input_of_a_session_refuses_what_it_has_not_added(session: ps.Interactive) -> None:
    flow = session.dataflow(strict_ones)
    flow.words.insert_many(["a", "b", "c"])
    flow.words.remove_many(["a", "b", "zz"])
    flow.words.advance_to(1)
    with pytest.raises(ValueError, match="1 of 'zz' cannot be removed at time 0: this input has added 0"):
        flow.words.play([])
        flow.out.read(PATIENCE)
    for one in flow.inputs.values():
        one.close()
    assert flow.out.read(PATIENCE) == [(0, [("a", 1), ("b", 1), ("c", 1)])]


def test_all_refusals_are_told_at_once_or_one_after_the_other(session: ps.Interactive) -> None:
    flow = session.dataflow(strict_ones)
    refusals, removed = [], 0
    for number in range(5):
        for one in (flow.words, flow.others):
            try:
                one.remove(f"w{number}")
                removed += 1
            except ValueError as error:  # of those before: this one is not sent
                refusals.append([str(error), *getattr(error, "__notes__", ())])
    for _ in range(2):
        try:
            flow.settle(PATIENCE)
        except ValueError as error:
            refusals.append([str(error), *getattr(error, "__notes__", ())])
    more = [note for lines in refusals for note in lines if "refused: " in note]
    assert len(refusals) + sum(int(note.split()[1]) for note in more) == removed, refusals


def test_several_refusals_are_one_error_with_a_note() -> None:
    """The worker is held until all have been sent, so that all fail before the first error is raised."""
    begun, goes = threading.Event(), threading.Event()

    def held(worker: ps.Worker) -> None:
        begun.set()
        assert goes.wait(PATIENCE)

    with ps.Interactive() as session:
        flow = session.dataflow(strict_ones)
        holding = threading.Thread(target=session.run, args=(held,))
        holding.start()
        assert begun.wait(PATIENCE)
        for number in range(5):
            flow.words.remove(f"w{number}")
        reading = session._running[-1].ask("explain", None, 1.0, worker=0)  # behind them
        goes.set()
        holding.join()
        reading.result(PATIENCE)
        with pytest.raises(ValueError, match="1 of 'w0'") as caught:
            flow.out.read(PATIENCE)
        [note] = list(getattr(caught.value, "__notes__", ()))
        assert note.startswith("and 4 more commands were refused: ValueError: 1 of 'w1'")
        assert note.endswith("; 1 more")


@pytest.mark.parametrize("end", ["close", "restart"])
def test_what_was_refused_and_not_told_is_told_at_the_end(session: ps.Interactive, end: str) -> None:
    flow = session.dataflow(strict_ones)
    flow.words.remove("not there")
    with pytest.warns(ps.UsageWarning, match="no call has raised: ValueError: 1 of 'not there'") as caught:
        getattr(session, end)()
    assert [one.filename for one in caught] == [__file__]
    session.close()  # which has nothing more to tell


@pytest.mark.parametrize("call", ["insert_many", "remove_many", "update_many"])
def test_a_call_that_is_refused_changes_nothing_on_any_worker(session: ps.Interactive, call: str) -> None:
    flow = session.dataflow(collected)
    given: Any = ["p", "q", "r", ["s"]]
    if call == "update_many":
        given = [(record, 1) for record in given]
    with pytest.raises(TypeError, match="list"):  # at once, or by what is asked next
        getattr(flow.words, call)(given)
        flow.words.advance_to(1)
        flow.out.read(PATIENCE)
    flow.words.close()
    assert flow.out.read(PATIENCE) == []


def test_an_input_is_named_with_its_article(session: ps.Interactive) -> None:
    flow = session.dataflow(numbers)
    with pytest.raises(TypeError, match=r"input 'numbers' is an InputHandle: use send\(\), not insert\(\)"):
        flow.numbers.insert(1)
    flow = session.dataflow(collected)
    with pytest.raises(TypeError, match=r"input 'words' is a CollectionInput: use insert\(\), not send\(\)"):
        flow.words.send(1)
