"""Nothing that a program gave to a dataflow outlives it, cycles through our objects included."""

import gc
import subprocess
import sys
import time
import weakref
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import suppress
from typing import Any

import pytest

import pointstamp as ps
import processes_in_threads
from harness import WORKERS, Logic
from pointstamp.testing import simulate


class Thing:
    """Something that can be watched."""


class Watch:
    """Weak references to objects that should be freed."""

    def __init__(self) -> None:
        self._refs: list[weakref.ref[Any]] = []

    def __call__(self, thing: Any) -> Any:
        self._refs.append(weakref.ref(thing))
        return thing

    def alive(self) -> list[Any]:
        """Returns the objects that are left after collections; one beside another thread's does nothing."""
        for _ in range(100):
            gc.collect()
            if not self.count():
                break
            time.sleep(0.01)
        return [ref() for ref in self._refs if ref() is not None]

    def count(self) -> int:
        return sum(ref() is not None for ref in self._refs)

    def __len__(self) -> int:
        return len(self._refs)


@pytest.fixture
def watch() -> Iterator[Watch]:
    yield Watch()
    gc.collect()


def functions(watch: Watch, scope: ps.Scope, handle: ps.InputHandle[Any]) -> None:
    """Functions of every kind of operator, each of which holds the streams, the scope and the handle."""
    streams: list[Any] = []

    def fn(returned: Any) -> Any:
        return watch(lambda *_args: returned if streams else None)

    def drain(*ports: Any) -> None:
        for port in ports:
            if isinstance(port, ps.InputPort | ps.Notificator):
                for _ in port:
                    assert streams

    watch(drain)

    def constructor(cap: ps.Capability, info: ps.OperatorInfo) -> Logic:
        kept = [cap]

        def logic(*ports: Any) -> None:
            for port in ports[:-1]:
                for message, _ in port:
                    kept.append(message.retain())
            if ports[:-1] and not any(port.frontier for port in ports[:-1] if hasattr(port, "frontier")):
                kept.clear()
            assert (streams, info, ports) is not None

        watch(logic)
        return logic

    things = scope.to_stream([watch(Thing()) for _ in range(3)])
    streams.extend([things, handle.to_stream(scope)])
    streams.append(things.map(fn(1)).filter(fn(True)).flat_map(fn([1, 2])).inspect(fn(None)))
    streams.append(streams[-1].exchange(fn(0)).broadcast())
    streams.extend(streams[-1].partition(2, fn((1, 1))))
    streams.append(streams[0].concat(streams[1]).branch(fn(False))[0].map_batches(fn([1])))
    streams.append(streams[-1].unary_frontier(ps.Exchange(fn(0)), "unary", constructor))
    streams.append(
        streams[-1].binary_frontier(streams[3], ps.Pipeline(), ps.Exchange(fn(1)), "binary", constructor)
    )
    streams.append(streams[-1].unary_notify(ps.Pipeline(), "notify", [1], drain).capture())
    streams.append(streams[4].try_map(fn(1))[0].delay(fn(3)).probe())
    streams[2].sink(ps.Pipeline(), "sink", lambda info: drain)
    with scope.iterative() as inner:
        loop, cycle = inner.loop_variable()
        entered = things.enter(inner).concat(cycle)
        entered.filter(fn(False)).connect_loop(loop)
        streams.append(entered.map(fn(2)).leave())
    streams.append(watch(Thing()))


@pytest.mark.parametrize("workers", WORKERS)
@pytest.mark.parametrize(
    "end", ["complete", "fails in main", "fails in an operator", "caught", "dropped", "discarded"]
)
def test_everything_dies(workers: int, end: str, watch: Watch) -> None:
    def main(worker: ps.Worker) -> None:
        handle: ps.InputHandle[Any] = ps.InputHandle()
        try:
            with worker.dataflow() as scope:
                functions(watch, scope, handle)
                if end == "fails in an operator":
                    scope.to_stream([0]).map(lambda x: 1 / x)
                if end == "discarded":
                    raise KeyError
        except KeyError:
            return
        handle.send(watch(Thing()))
        worker.step()
        handle.send_batch([watch(Thing()), handle, worker])
        if end == "dropped":
            worker.drop_dataflow(0)
        elif end == "fails in main":
            raise ZeroDivisionError
        elif end == "fails in an operator":
            worker.run()
        elif end == "caught":
            try:
                worker.step_while(lambda: 1 / 0)  # type: ignore[arg-type,return-value]
            except ZeroDivisionError:
                pass

    if end.startswith("fails"):
        with pytest.raises(ZeroDivisionError):
            ps.execute(main, workers=workers)
    else:
        ps.execute(main, workers=workers)
    assert len(watch) > 10
    assert watch.alive() == []


@pytest.mark.parametrize("workers", WORKERS)
def test_a_dropped_dataflow_is_freed_at_once(workers: int, watch: Watch) -> None:
    def main(worker: ps.Worker) -> None:
        handle: ps.InputHandle[Any] = ps.InputHandle()
        mine = Watch()

        def build() -> None:
            with worker.dataflow() as scope:
                functions(mine, scope, handle)

        build()
        handle.send(mine(Thing()))
        worker.step()
        worker.barrier()
        assert mine.count()
        (number,) = worker.installed_dataflows()
        worker.drop_dataflow(number)
        worker.barrier()
        assert mine.alive() == []
        assert handle.time == 0, "the handle outlives the dataflow"

    ps.execute(main, workers=workers)


def test_a_completed_dataflow_is_freed_while_the_worker_goes_on(watch: Watch) -> None:
    def main(worker: ps.Worker) -> None:
        def build() -> None:
            with worker.dataflow() as scope:
                stream: ps.Stream[Any] = scope.to_stream([watch(Thing())])
                mapped: ps.Stream[Any] = stream.map(watch(lambda x: (x, stream, mapped))).exchange(
                    watch(lambda x: len([mapped]))
                )

        build()
        worker.run()
        assert watch.alive() == []

    ps.execute(main)


def test_a_graph_that_is_refused_is_freed(watch: Watch) -> None:
    def build(scope: ps.Scope) -> None:
        handle, cycle = scope.feedback(0)
        stream: ps.Stream[Any] = cycle.map(watch(lambda x: (scope, stream)))
        stream.connect_loop(handle)
        scope.to_stream([watch(Thing())]).exchange(watch(lambda x: stream))

    with pytest.raises(ps.GraphError):
        ps.example(build)
    assert len(watch) == 3
    assert watch.alive() == []


def test_workers_that_differ_are_freed(watch: Watch) -> None:
    def main(worker: ps.Worker) -> None:
        with worker.dataflow(f"flow {worker.index}") as scope:
            stream: ps.Stream[Any] = scope.to_stream([watch(Thing())]).map(watch(lambda x: (scope, stream)))
        worker.run()

    with pytest.raises(ps.GraphError):
        ps.execute(main, workers=2)
    assert watch.alive() == []


@pytest.mark.parametrize(
    "keep", ["stream", "scope", "builder", "port", "probe", "capture", "worker", "handle"]
)
def test_an_object_that_is_kept_keeps_nothing_else(keep: str, watch: Watch) -> None:
    kept: dict[str, Any] = {}

    def main(worker: ps.Worker) -> None:
        handle: ps.InputHandle[Any] = ps.InputHandle()
        with worker.dataflow() as scope:
            builder = scope.operator("mine")

            def constructor(cap: ps.Capability, info: ps.OperatorInfo) -> Logic:
                def logic(port: Any, output: Any) -> None:
                    kept["port"] = (port, output, info)
                    for _ in port:
                        pass

                return watch(logic)  # type: ignore[no-any-return]

            stream = handle.to_stream(scope).map(watch(lambda x: x)).exchange(watch(lambda x: 0))
            stream.unary(ps.Pipeline(), "unary", constructor)
            kept.update(stream=stream, scope=scope, builder=builder, worker=worker, handle=handle)
            kept.update(probe=stream.probe(), capture=stream.map(watch(lambda x: 1)).capture())
        handle.send(watch(Thing()))

    ps.execute(main, workers=2)
    mine = kept.pop(keep)
    kept.clear()
    assert mine is not None
    assert watch.alive() == []


def test_results_of_operators_are_released(watch: Watch) -> None:
    """Records are gone once they have passed through, while the dataflow runs."""

    def main(worker: ps.Worker) -> None:
        handle: ps.InputHandle[Any] = ps.InputHandle()
        with worker.dataflow() as scope:
            handle.to_stream(scope).map(lambda x: (x, watch(Thing()))).exchange(lambda x: 0).inspect(
                lambda x: None
            )
        for _ in range(3):
            handle.send(watch(Thing()))
            worker.step()
            worker.step()
        assert len(watch) == 6
        assert watch.alive() == []

    ps.execute(main)


def adds(worker: ps.Worker) -> list[tuple[ps.Time, list[int]]]:
    with worker.dataflow() as scope:
        added = scope.to_stream([1, 2]).exchange(lambda x: x).map(lambda x: x + 1).capture()
    worker.run()
    return added.extract()


def fails(worker: ps.Worker) -> None:
    with worker.dataflow() as scope:
        scope.to_stream([worker.index]).map(lambda x: 1 // (x - x)).probe()
    worker.run()


def waits(worker: ps.Worker) -> None:
    with worker.dataflow() as scope:
        _, numbers = scope.new_input()
        probe = numbers.probe()
    worker.step_while(lambda: not probe.done())


def builds_in_a_session(**where: Any) -> None:
    def build(scope: ps.Scope) -> Any:
        numbers, stream = scope.new_input()
        return {"numbers": numbers, "more": stream.map(lambda x: x + 1)}

    with ps.Interactive(**where) as session:
        session.dataflow(build)


def kept() -> Counter[str]:
    """Counts the objects of each of our types."""
    gc.collect()
    types = (type(thing) for thing in gc.get_objects())
    return Counter(one.__qualname__ for one in types if str(one.__module__).startswith("pointstamp"))


@pytest.mark.parametrize(
    "run",
    [
        pytest.param(lambda: ps.execute(adds), id="one worker"),
        pytest.param(lambda: ps.execute(adds, workers=2), id="threads"),
        pytest.param(lambda: ps.execute(adds, processes=2), id="processes"),
        pytest.param(lambda: processes_in_threads.execute(adds, processes=2), id="a process that is called"),
        pytest.param(lambda: ps.execute(adds, stall_report=60.0), id="a report"),
        pytest.param(lambda: ps.execute(fails), id="a failure"),
        pytest.param(lambda: ps.execute(fails, workers=2), id="a failure of threads"),
        pytest.param(lambda: simulate(adds, workers=2, processes=1, seed=3), id="simulated threads"),
        pytest.param(lambda: simulate(adds, workers=2, processes=2, seed=3), id="simulated processes"),
        pytest.param(lambda: simulate(adds, workers=2, lose_process=True, seed=3), id="a simulated death"),
        pytest.param(lambda: simulate(waits, workers=2, processes=2, seed=3), id="a simulated stall"),
        pytest.param(lambda: builds_in_a_session(), id="a session"),
        pytest.param(lambda: builds_in_a_session(processes=2), id="a session of processes"),
    ],
)
def test_a_computation_leaves_nothing_of_ours(run: Callable[[], Any], soon_still: None) -> None:
    def once() -> None:
        with suppress(ZeroDivisionError, ps.ClusterError, ps.StallError):
            run()

    once()  # what is made once for all computations
    before = kept()
    for _ in range(3):
        once()
    assert not kept() - before


@pytest.mark.parametrize("collect", [gc.collect, lambda: None])
def test_collecting_inside_of_operators_is_safe(collect: Callable[[], Any]) -> None:
    def main(worker: ps.Worker) -> None:
        def build(turn: int) -> None:
            handle: ps.InputHandle[Any] = ps.InputHandle()
            loop: list[Any] = [handle]
            loop.append(loop)
            with worker.dataflow(f"{turn}") as scope:
                stream = handle.to_stream(scope).exchange(lambda x: x).map(lambda x: collect() and x)
                loop.extend([scope, stream, stream.probe()])
            handle.send_batch(range(3))
            worker.step()

        for turn in range(5):
            build(turn)
        worker.barrier()
        if worker.index == 0:  # a collection while another thread collects does nothing
            gc.collect()
        worker.run()

    ps.execute(main, workers=4)


# Cycles with capabilities die wherever the interpreter collects: while a line is noted, too. A lock of ours
# that is held there would stop the whole process, threads that keep time included: hence a process.
COLLECTS = """
import gc
import pointstamp as ps

class Ring:
    pass

def take(cap):  # in a function, so that there is a frame to be made when the line is asked for
    return cap.delayed(0)

def build(cap, info):
    for n in range(300):
        ring = Ring()
        ring.me, ring.cap = ring, take(cap)
        del ring
        gc.set_threshold(1 + n % 7, 1, 1)
        lists = [[] for _ in range(n % 5)]
    cap.drop()
    return lambda output: None

def main(worker):
    for _ in range(4):
        with worker.dataflow() as scope:
            scope.source("holds", build)
            with scope.iterative() as inner:
                scope.to_stream([1]).enter(inner).map(lambda x: x + 1).leave().probe()
            scope.collection([(1, 2)]).value_counts()
        gc.collect()
    worker.run()

ps.execute(main, workers=2)
print("over")
"""


def test_capabilities_that_die_in_a_collection_stop_nothing() -> None:
    done = subprocess.run(
        [sys.executable, "-c", COLLECTS], capture_output=True, text=True, timeout=380, check=False
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout == "over\n"
