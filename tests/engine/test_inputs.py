"""Inputs that `main` drives."""

import gc
from collections import Counter
from typing import Any

import pytest

import pointstamp as ps
from harness import WORKERS, every, merged


@pytest.mark.parametrize("workers", WORKERS)
def test_records_come_out_at_the_time_they_were_sent(workers: int) -> None:
    def main(worker: ps.Worker) -> Any:
        handle: ps.InputHandle[int] = ps.InputHandle()
        with worker.dataflow() as scope:
            capture = handle.to_stream(scope).exchange(lambda x: x).capture()
        for time in (0, 3, 4):
            handle.advance_to(time)
            assert handle.time == time
            handle.send(worker.index)
            handle.send_batch(range(20_000))
        return capture

    expected = Counter(range(workers)) + Counter({x: workers for x in range(20_000)})
    assert merged(ps.execute(main, workers=workers)) == {time: expected for time in (0, 3, 4)}


def arrived(send: Any) -> list[int]:
    """Returns the records that have arrived when `send(handle, worker)` returns."""

    def main(worker: ps.Worker) -> list[int]:
        handle: ps.InputHandle[int] = ps.InputHandle()
        seen: list[int] = []
        with worker.dataflow() as scope:
            handle.to_stream(scope).inspect(seen.append)
        send(handle, worker)
        return list(seen)

    return ps.execute(main)[0]


def test_a_step_sends_what_waits() -> None:
    assert arrived(lambda handle, worker: handle.send(1)) == []
    assert arrived(lambda handle, worker: (handle.send(1), worker.step())) == [1]
    assert arrived(lambda handle, worker: (handle.send_batch([1, 2]), worker.step())) == [1, 2]
    assert arrived(
        lambda handle, worker: (handle.send(1), handle.flush(), handle.flush(), worker.step())
    ) == [1]
    assert arrived(lambda handle, worker: (handle.send(1), handle.advance_to(1), worker.step())) == [1]
    assert arrived(lambda handle, worker: (handle.send(1), handle.close(), worker.run())) == [1]
    assert arrived(lambda handle, worker: (handle.send(1), worker.step_or_park(0))) == [1]


def test_one_by_one_or_in_batches_the_order_stays() -> None:
    def send(handle: ps.InputHandle[int], worker: ps.Worker) -> None:
        for x in range(0, 30_000, 3):
            handle.send(x)
            handle.send_batch(iter([x + 1, x + 2]))
        worker.step()

    assert arrived(send) == list(range(30_000))


def test_an_exception_in_the_iterable_keeps_what_came_before() -> None:
    def broken() -> Any:
        yield 1
        raise KeyError("mine")

    def send(handle: ps.InputHandle[int], worker: ps.Worker) -> None:
        handle.send(0)
        with pytest.raises(KeyError, match="mine"):
            handle.send_batch(broken())
        handle.send(2)
        worker.step()

    assert arrived(send)[-1] == 2
    assert arrived(send)[0] == 0


@pytest.mark.parametrize("workers", WORKERS)
@pytest.mark.parametrize("end", ["close", "with", "lost", "cycle", "main"])
def test_how_an_input_ends(workers: int, end: str) -> None:
    def main(worker: ps.Worker) -> Any:
        handle: ps.InputHandle[str] = ps.InputHandle()
        with worker.dataflow() as scope:
            stream = handle.to_stream(scope)
            capture, probe = stream.capture(), stream.probe()
        del stream
        handle.send("last")
        if end == "close":
            handle.close()
            handle.close()
            assert handle.closed
        elif end == "with":
            with handle as same:
                assert same is handle
                same.send("in the block")
            assert handle.closed
        elif end == "lost":
            del handle
        elif end == "cycle":
            loop: list[Any] = [handle]
            loop.append(loop)
            del handle, loop
            worker.barrier()
            if worker.index == 0:  # a collection while another thread collects does nothing
                gc.collect()
        if end != "main":
            worker.run()
            assert probe.done()
        return capture, probe

    captures, probes = zip(*ps.execute(main, workers=workers), strict=True)
    assert merged(captures)[0]["last"] == workers
    assert merged(captures)[0]["in the block"] == (workers if end == "with" else 0)
    assert all(probe.done() for probe in probes)


def test_a_time_that_goes_back_is_refused() -> None:
    def main(worker: ps.Worker) -> Any:
        handle: ps.InputHandle[int] = ps.InputHandle()
        with worker.dataflow() as scope:
            capture = handle.to_stream(scope).capture()
        handle.advance_to(5)
        handle.send(1)
        for time in (4, 0, -1, (5, 0), (), 2**64):
            with pytest.raises(ps.TimeError):
                handle.advance_to(time)
        with pytest.raises(TypeError):
            handle.advance_to("soon")  # type: ignore[arg-type]
        assert handle.time == 5
        handle.advance_to(5)
        handle.send(2)
        return capture

    assert ps.execute(main)[0].extract() == [(5, [1, 2])]


def test_times_of_two_coordinates_advance_in_the_product_order() -> None:
    def main(worker: ps.Worker) -> Any:
        handle: ps.InputHandle[str] = ps.InputHandle()
        with worker.dataflow(dims=2) as scope:
            capture = handle.to_stream(scope).capture()
        assert handle.time == (0, 0)
        handle.advance_to((1, 1))
        handle.send("here")
        for back in ((2, 0), (0, 9)):
            with pytest.raises(ps.TimeError):
                handle.advance_to(back)
        handle.advance_to((1, 2))
        handle.send("there")
        return capture

    assert ps.execute(main)[0].extract() == [((1, 1), ["here"]), ((1, 2), ["there"])]


def test_without_coordinates_there_is_one_time() -> None:
    def main(worker: ps.Worker) -> Any:
        handle: ps.InputHandle[str] = ps.InputHandle()
        with worker.dataflow(dims=0) as scope:
            capture = handle.to_stream(scope).capture()
        assert handle.time == ()
        handle.advance_to(())
        handle.send("now")
        with pytest.raises(ps.TimeError):
            handle.advance_to(1)
        return capture

    assert ps.execute(main)[0].extract() == [((), ["now"])]


@pytest.mark.parametrize("workers", WORKERS)
def test_one_handle_feeds_several_dataflows(workers: int) -> None:
    def main(worker: ps.Worker) -> Any:
        handle: ps.InputHandle[int] = ps.InputHandle()
        captures = []
        for name in ("one", "two"):
            with worker.dataflow(name) as scope:
                captures.append(scope.input_from(handle).exchange(lambda x: x).capture())
        handle.send(1)
        handle.advance_to(3)
        with worker.dataflow("late") as scope:
            captures.append(handle.to_stream(scope).capture())
        handle.send(2)
        with pytest.raises(ps.TimeError), worker.dataflow("other times", dims=2) as scope:
            handle.to_stream(scope)
        return captures

    one, two, late = map(merged, zip(*ps.execute(main, workers=workers), strict=True))
    assert one == two == {0: Counter({1: workers}), 3: Counter({2: workers})}
    assert late == {3: Counter({2: workers})}


def test_what_needs_a_dataflow_says_so() -> None:
    handle: ps.InputHandle[int] = ps.InputHandle()
    assert handle.time == 0
    assert not handle.closed
    for use in every(lambda: handle.send(1), lambda: handle.send_batch([1]), lambda: handle.advance_to(1)):
        with pytest.raises(ps.PointstampError, match=r"connected to no dataflow: call to_stream\(scope\)"):
            use()
    handle.flush()
    handle.close()
    assert [handle.closed] == [True]

    def build(scope: ps.Scope) -> None:
        handle.to_stream(scope)

    with pytest.raises(ps.CapabilityError, match="closed"):
        ps.example(build)


def test_a_closed_handle_takes_nothing() -> None:
    def main(worker: ps.Worker) -> None:
        handle: ps.InputHandle[int] = ps.InputHandle()
        with worker.dataflow() as scope:
            handle.to_stream(scope)
        handle.close()
        for use in every(
            lambda: handle.send(1), lambda: handle.send_batch([1]), lambda: handle.advance_to(1)
        ):
            with pytest.raises(ps.PointstampError, match="closed"):
                use()

    ps.execute(main)


def test_a_handle_belongs_to_its_worker() -> None:
    handle: ps.InputHandle[int] = ps.InputHandle()

    def main(worker: ps.Worker) -> None:
        with worker.dataflow() as scope:
            handle.to_stream(scope)

    with pytest.raises(ps.PointstampError, match="belongs to worker"):
        ps.execute(main, workers=2)


def test_new_input_makes_handle_and_stream() -> None:
    def main(worker: ps.Worker) -> Any:
        with worker.dataflow() as scope:
            handle, stream = scope.new_input()
            capture = stream.capture()
        handle.send(7)
        return capture

    assert ps.execute(main)[0].extract() == [(0, [7])]


@pytest.mark.parametrize("workers", WORKERS)
def test_an_unordered_input_sends_at_any_time_it_has_a_capability_for(workers: int) -> None:
    def main(worker: ps.Worker) -> Any:
        with worker.dataflow() as scope:
            unordered, cap, stream = scope.new_unordered_input()
            capture, probe = stream.exchange(lambda x: x).capture(), stream.probe()
        late, early = cap.delayed(9), cap.delayed(2)
        cap.drop()
        with unordered.session(late) as session:
            session.give(1)
        worker.step_while(lambda: probe.less_than(2))
        assert probe.less_equal(2)
        with unordered.session(early) as session:
            session.give_all([2, 3])
        early.drop()
        worker.step_while(lambda: probe.less_than(9))
        with pytest.raises(ps.CapabilityError, match="dropped"):
            unordered.session(early)
        return capture  # the worker takes `late` back

    expected = {2: Counter({2: workers, 3: workers}), 9: Counter({1: workers})}
    assert merged(ps.execute(main, workers=workers)) == expected


@pytest.mark.parametrize("workers", WORKERS)
def test_capabilities_of_an_unordered_input_end_with_main(workers: int) -> None:
    kept: list[Any] = []

    def main(worker: ps.Worker) -> ps.ProbeHandle:
        with worker.dataflow() as scope:
            unordered, cap, stream = scope.new_unordered_input()
            kept.append((unordered, cap, cap.delayed(3)))
            return stream.probe()

    assert all(probe.done() for probe in ps.execute(main, workers=workers))
    for unordered, cap, _ in kept:
        with pytest.raises(ps.PointstampError):
            unordered.session(cap)


@pytest.mark.parametrize("kind", ["records", "collection"])
def test_an_input_of_a_dataflow_that_was_never_built_is_refused(kind: str) -> None:
    def main(worker: ps.Worker) -> Any:
        made: list[Any] = []
        with pytest.raises(LookupError), worker.dataflow() as scope:
            made.append(scope.new_collection()[0] if kind == "collection" else scope.new_input()[0])
            raise LookupError
        [changed] = made
        give = changed.insert if kind == "collection" else changed.send
        with pytest.raises(ps.GraphError, match="the dataflow of this input was never built"):
            give(1)
        with pytest.raises(ps.GraphError, match="never built"):
            changed.advance_to(1)
        changed.flush()
        changed.close()

    ps.execute(main)


def test_an_input_of_a_dataflow_that_was_never_built_feeds_another() -> None:
    def main(worker: ps.Worker) -> Any:
        handle: ps.InputHandle[int] = ps.InputHandle()
        with pytest.raises(LookupError), worker.dataflow() as scope:
            handle.to_stream(scope)
            handle.send(1)  # lost with the block
            raise LookupError
        with worker.dataflow() as scope:
            got = handle.to_stream(scope).capture()
        handle.send(2)
        handle.close()
        worker.run()
        return got.extract()

    assert ps.execute(main) == [[(0, [2])]]


def test_collections_are_no_streams_to_concatenate() -> None:
    def build(scope: ps.Scope) -> None:
        numbers: Any = scope.collection([1])
        with pytest.raises(TypeError, match=r"not <Collection .*: call Collection\.concat"):
            scope.concatenate([numbers, numbers])
        with pytest.raises(TypeError, match=r"Collection\.concat"):
            scope.concatenate([scope.to_stream([1]), numbers])

    ps.example(build)
