"""A plan that was lowered or given up holds nothing of the program, whatever is kept of it."""

import gc
import io
import weakref
from collections.abc import Callable
from typing import Any

import pyarrow as pa
import pytest

import pointstamp as ps
from harness import WORKERS, Logic

SCHEMA = pa.schema([("n", pa.int64())])


class Function:
    """A function that can be watched, for any number of arguments."""

    def __init__(self, does: Callable[..., Any]) -> None:
        self.does = does

    def __call__(self, *given: Any) -> Any:
        return self.does(*given)


class Items(list[Any]):
    """An iterable that can be watched."""


class File(io.BytesIO):
    """A file that can be watched."""


class State:
    """A state that can be watched."""


class Given:
    """Weak references to what a program has given to its dataflow."""

    def __init__(self) -> None:
        self.refs: list[weakref.ref[Any]] = []

    def __call__(self, thing: Any) -> Any:
        self.refs.append(weakref.ref(thing))
        return thing

    def left(self) -> list[Any]:
        gc.collect()
        return [ref() for ref in self.refs if ref() is not None]


def built(scope: ps.Scope, given: Given) -> list[Any]:
    """A dataflow with functions and data of every family of nodes: what a program may keep of it."""

    def function(does: Callable[..., Any]) -> Any:
        return given(Function(does))

    numbers = scope.to_stream(given(Items([1, 2, 3])))
    timed, late = numbers.event_time(function(lambda x: x))
    keyed = timed.key_by(function(lambda x: x))
    state = given(State())
    scanned = keyed.aggregate(function(lambda key, x, total: total + x), default=function(lambda: 0))
    mapped = (
        numbers.map(function(lambda x: x)).exchange(function(lambda x: x)).delay(function(lambda x, t: t))
    )
    totals = mapped.accumulate(function(lambda: state and 0), function(lambda total, batch: total))

    def build(capability: ps.Capability, info: ps.OperatorInfo) -> Logic:
        capability.drop()
        return function(lambda input, output: [None for _ in input])  # type: ignore[no-any-return]

    own = totals.unary(ps.Exchange(function(lambda x: x)), "own", given(Function(build)))
    builder = scope.operator("built")
    builder.new_input(totals, ps.Exchange(function(lambda x: x)))
    builder.build(given(Function(lambda capabilities, info: lambda ports, _: [*map(list, ports)])))
    rows = numbers.map(function(lambda x: {"n": x})).to_arrow(SCHEMA)
    batches = rows.map_batches(function(lambda batch: batch)).inspect_batch(function(lambda t, b: None))
    pairs = scope.collection(given(Items([(1, 2)]))).map(function(lambda pair: pair))
    reduced = pairs.map_groups(function(lambda key, values: [1])).join(pairs, function(lambda k, a, b: k))
    looped = pairs.iterate(function(lambda inner, loop: loop.filter(function(lambda pair: True)).distinct()))
    with scope.iterative() as inner:
        handle, back = inner.loop_variable()
        around = mapped.enter_at(inner, function(lambda x: 0)).concat(back)
        around.filter(function(lambda x: False)).connect_loop(handle)
        left = around.leave()
    left.capture_into(ps.EventWriter(given(File())))
    probes = [one.probe() for one in (own, batches, reduced, looped, left, late, scanned)]
    return [
        *(scope, inner, handle, numbers, timed, keyed, scanned, mapped, totals, own, rows, batches),
        *(pairs, reduced, looped, around, left, *probes, builder),
    ]


@pytest.fixture(autouse=True)
def quiet() -> None:
    """Collects before each test what others have left."""
    gc.collect()


@pytest.mark.parametrize("workers", WORKERS)
@pytest.mark.parametrize("end", ["completes", "is dropped"])
def test_after_lowering(end: str, workers: int) -> None:
    def main(worker: ps.Worker) -> list[Any]:
        given = Given()
        with worker.dataflow() as scope:
            kept = built(scope, given)
        if end == "is dropped":
            worker.drop_dataflow(scope.address[0])
        worker.run()
        worker.barrier()
        assert len(kept) > 20
        return given.left()

    assert ps.execute(main, workers=workers) == [[]] * workers


@pytest.mark.parametrize("workers", WORKERS)
def test_while_a_dataflow_runs_its_plan_has_no_arguments(workers: int) -> None:
    """An iterable that was read to its end is freed while the dataflow continues."""

    def main(worker: ps.Worker) -> Any:
        given = Given()
        with worker.dataflow() as scope:
            handle, stream = scope.new_input(of=int)
            numbers = scope.to_stream(given(Items([1, 2])))
            probe = numbers.concat(stream).probe()
            handle.advance_to(1)
        worker.step_while(lambda: probe.less_than(1))
        left = given.left()
        handle.close()
        worker.run()
        return left

    assert ps.execute(main, workers=workers) == [[]] * workers


@pytest.mark.parametrize("workers", WORKERS)
@pytest.mark.parametrize("end", ["its block raises", "its plan is not complete", "it cannot run"])
def test_after_it_was_given_up(end: str, workers: int) -> None:
    def main(worker: ps.Worker) -> list[Any]:
        given = Given()
        kept: list[Any] = []
        try:
            with worker.dataflow() as scope:
                kept += built(scope, given)
                if end == "its block raises":
                    kept.append(scope.operator("not built"))
                    kept[-1].new_input(scope.empty(), ps.Exchange(given(Function(abs))))
                    raise KeyError
                handle, back = scope.feedback(0)
                if end == "it cannot run":
                    back.map(abs).connect_loop(handle)
        except (KeyError, ps.GraphError) as error:
            del error
        worker.barrier()
        assert len(kept) > 20
        return given.left()

    assert ps.execute(main, workers=workers) == [[]] * workers


def test_a_file_is_free_again_when_the_dataflow_that_writes_it_is_given_up(tmp_path: Any) -> None:
    writer = ps.EventWriter(tmp_path / "records")

    def twice(scope: ps.Scope) -> None:
        for _ in range(2):
            scope.to_stream([1]).capture_into(writer)

    with pytest.raises(ps.GraphError, match="writes the events of a stream already"):
        ps.example(twice)
    again = ps.EventWriter(tmp_path / "records", overwrite=True)
    ps.example(lambda scope: scope.to_stream([1]).capture_into(again))
    read = ps.EventReader(tmp_path / "records", allow_pickle=True)
    assert ps.example(lambda scope: scope.replay([read]).capture()).extract() == [(0, [1])]


def test_a_writer_is_not_taken_by_a_scope_that_has_ended() -> None:
    kept = io.BytesIO()
    writer = ps.EventWriter(kept)

    def build(scope: ps.Scope) -> None:
        with scope.region() as inner:
            stream = inner.to_stream([1])
        with pytest.raises(ps.GraphError, match="nothing can be added"):
            stream.capture_into(writer)
        stream.leave().capture_into(writer)

    ps.example(build)
    kept.seek(0)
    again = ps.example(lambda scope: scope.replay([ps.EventReader(kept, allow_pickle=True)]).capture())
    assert again.extract() == [(0, [1])]


def test_what_is_kept_says_what_it_was() -> None:
    """Kinds, names, lines, schemas and edges stay."""

    def main(worker: ps.Worker) -> Any:
        with worker.dataflow() as scope:
            rows = scope.to_stream([{"n": 1}]).map(dict, name="copied").to_arrow(SCHEMA)
            before = scope.plan()
        worker.run()
        after = scope.plan()
        assert rows.schema == SCHEMA
        assert (after.nodes, after.digest) == (before.nodes, before.digest)
        return [node.identity for node in after.nodes]

    assert ps.execute(main) == [["Dataflow/to_stream", "Dataflow/copied", "Dataflow/to_arrow"]]
