"""Memory stays flat: cells of a session, dataflows of a worker, times, keys and inputs leave nothing.

Counted are objects of ours, of which not one may be left for what has gone, and bytes of Python's heap, which
may grow by less than a kilobyte a round. `make test` runs a hundred rounds, `make soak` a thousand.
"""

import gc
import threading
import tracemalloc
from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any

import pytest

import pointstamp as ps
from effort import examples

ROUNDS = examples(100)
WARM = 50
"""Rounds after which there is what one round leaves until the next."""

PATIENCE = 120.0
"""Seconds for what comes in any case."""

SPARE = 96 << 10
"""Bytes by which the heap may grow in all rounds: tables that are swept once in a while, and tuples that
Python keeps to use them again."""


@pytest.fixture(autouse=True)
def nothing_is_traced_on() -> Iterator[None]:
    yield
    tracemalloc.stop()


class Heap:
    """Counts our objects in this process, and the bytes in Python's heap."""

    before: "tuple[Counter[str], int] | None" = None

    @staticmethod
    def now() -> tuple[Counter[str], int]:
        gc.collect()
        types = (type(thing) for thing in gc.get_objects())
        ours = Counter(one.__qualname__ for one in types if str(one.__module__).startswith("pointstamp"))
        return ours, tracemalloc.get_traced_memory()[0]

    @classmethod
    def begin(cls) -> None:
        """Looks at what there is now."""
        cls.before = cls.now()

    @classmethod
    def growth(cls) -> tuple[dict[str, int], int]:
        """Returns the growth of objects by type since `before`, and of memory in bytes."""
        assert cls.before is not None
        (ours, size), (were, was) = cls.now(), cls.before
        tracemalloc.stop()
        cls.before = None
        return dict(ours - were), size - was


def trace(_worker: ps.Worker) -> None:
    tracemalloc.start()


def begin(_worker: ps.Worker) -> None:
    Heap.begin()


def growth(_worker: ps.Worker) -> tuple[dict[str, int], int]:
    return Heap.growth()


def check(grown: tuple[dict[str, int], int], spare: int = 0) -> None:
    objects, size = grown
    assert not {name: count for name, count in objects.items() if count > spare}
    assert size < SPARE


CELL = """
def cell(scope):
    numbers, stream = scope.new_input()
    pairs, collection = scope.new_collection()
    probe = collection.arrange().to_collection().probe()
    counts = stream.exchange(lambda x: x).map(lambda x: x + 1).value_counts()
    return {"numbers": numbers, "pairs": pairs, "probe": probe, "counts": counts,
            "out": collection.value_counts()}
"""


@pytest.mark.parametrize("place", [{}, {"workers": 2}, {"processes": 2}], ids=str)
def test_cells_of_a_session_leave_nothing(place: Any) -> None:
    names: dict[str, Any] = {"__name__": "__main__"}

    def cell(session: ps.Interactive, number: int) -> None:
        exec(CELL, names)  # as a cell that is run again defines its functions again
        flow = session.dataflow(names["cell"])
        flow.numbers.send_batch(range(3))
        flow.pairs.insert((number, 1))
        for one in flow.inputs.values():
            one.advance_to(1)
        assert flow.counts.read(120) == [(0, [(1, 1), (2, 1), (3, 1)])]
        assert len(flow.out.read(120)) == 1
        if number % 3 == 0:
            flow.close()
        elif number % 3 == 1:
            for one in flow.inputs.values():
                one.close()
        session.run(len_of, [number])

    with ps.Interactive(**place) as session:
        tracemalloc.start()
        if "processes" in place:
            session.run(trace)
        for number in range(WARM):
            cell(session, number)
        Heap.begin()
        if "processes" in place:
            session.run(begin)
        for number in range(WARM, WARM + ROUNDS):
            cell(session, number)
        cell(session, 0)
        if "processes" in place:
            for grown in session.run(growth):
                check(grown)
        check(Heap.growth())


def len_of(_worker: ps.Worker, things: list[int]) -> int:
    return len(things)


def small(worker: ps.Worker, scope: ps.Scope) -> tuple[list[Any], list[ps.ProbeHandle]]:
    """A dataflow with a loop, a trace, records and a collection: its inputs and probes."""
    numbers, stream = scope.new_input()
    pairs, collection = scope.new_collection()
    arranged = collection.arrange()
    with scope.iterative() as inner:
        loop, back = inner.loop_variable()
        turned = stream.enter(inner).concat(back)
        turned.filter(lambda x: x < 0).connect_loop(loop)
        out = turned.leave().exchange(lambda x: x).value_counts()
    numbers.send_batch(range(3))
    assert not arranged.trace().closed  # which makes it
    pairs.insert((worker.index, 0))
    return [numbers, pairs], [
        out.probe(),
        arranged.to_collection().probe(),
        collection.value_counts().probe(),
    ]


def completes(worker: ps.Worker) -> None:
    with worker.dataflow() as scope:
        inputs, probes = small(worker, scope)
    for one in inputs:
        one.close()
    worker.step_while(lambda: not all(probe.done() for probe in probes))


def is_dropped(worker: ps.Worker) -> None:
    with worker.dataflow() as scope:
        inputs, probes = small(worker, scope)
    for one in inputs:
        one.advance_to(1)
    worker.step_while(lambda: any(probe.less_than(1) for probe in probes))
    worker.barrier()
    worker.drop_dataflow(scope.address[0])
    worker.barrier()


def is_discarded(worker: ps.Worker) -> None:
    try:
        with worker.dataflow() as scope:
            small(worker, scope)
            raise KeyError
    except KeyError:
        worker.barrier()


@pytest.mark.parametrize("place", [{}, {"workers": 2}, {"processes": 2}], ids=str)
@pytest.mark.parametrize("life", [completes, is_dropped, is_discarded])
def test_dataflows_of_a_worker_leave_nothing(place: Any, life: Callable[[ps.Worker], None]) -> None:
    threads = None if "processes" in place else threading.Barrier(place.get("workers", 1))

    def wait() -> None:
        """Waits for the other workers of the process: a barrier is a dataflow, and would be counted."""
        if threads is not None:
            threads.wait(PATIENCE)

    def main(worker: ps.Worker) -> Any:
        looks = worker.index == 0 or "processes" in place
        if looks:
            tracemalloc.start()
        for _ in range(WARM):
            life(worker)
        worker.barrier()
        wait()
        if looks:
            Heap.begin()
        wait()
        for _ in range(ROUNDS):
            life(worker)
        worker.barrier()
        wait()
        grown = Heap.growth() if looks else None
        wait()
        worker.barrier()
        return grown

    for grown in ps.execute(main, **place):
        if grown is not None:
            check(grown)


Round = Callable[[int], None]


def changes(scope: ps.Scope) -> tuple[Round, list[Any], list[Any]]:
    """A collection of keys, each of which is there at one time."""
    pairs, collection = scope.new_collection()
    arranged = collection.arrange()
    trace = arranged.trace()

    def round_of(number: int) -> None:
        pairs.insert((number, number))
        pairs.advance_to(2 * number + 1)
        pairs.remove((number, number))
        pairs.advance_to(2 * number + 2)
        trace.allow_merging_before(2 * number)

    results = [collection.join(arranged), collection.distinct(), collection.min(), collection.value_counts()]
    return round_of, [pairs], results


def rows(scope: ps.Scope) -> tuple[Round, list[Any], list[Any]]:
    """The same as `changes`, in columns."""
    import pyarrow as pa

    schema = pa.schema([("key", pa.int64()), ("text", pa.string())])
    table, collection = scope.new_collection(schema=schema)

    def round_of(number: int) -> None:
        row = pa.table({"key": [number], "text": [str(number)]}, schema=schema)
        table.insert(row)
        table.advance_to(2 * number + 1)
        table.remove(row)
        table.advance_to(2 * number + 2)

    return round_of, [table], [collection.distinct(), collection.join(collection, "key")]


def records(scope: ps.Scope) -> tuple[Round, list[Any], list[Any]]:
    """New records at each time, in operators that keep what a time needs."""
    numbers, stream = scope.new_input()

    def round_of(number: int) -> None:
        numbers.send_batch([number, number, -number])
        numbers.advance_to(2 * number + 2)

    def half(time: Any) -> Any:
        return time // 2 * 2 + 1

    results = [
        stream.value_counts(),
        stream.distinct(),
        stream.accumulate(list, lambda kept, batch: [*kept, *batch]),
    ]
    return round_of, [numbers], [*results, stream.delay_batch(half), stream.exchange(abs).value_counts()]


def windows(scope: ps.Scope) -> tuple[Round, list[Any], list[Any]]:
    """Events of new keys, in windows and sessions that close."""
    events, stream = scope.new_input()
    on_time, late = stream.event_time(lambda event: event[1], lateness=0)
    keyed = on_time.key_by(lambda event: event[0])

    def round_of(number: int) -> None:
        events.send((f"key {number}", 2 * number))
        events.advance_to(2 * number + 2)

    results = [keyed.window(ps.Tumbling(4)).count(), keyed.window(ps.Session(gap=2)).count()]
    return round_of, [events], [*results, keyed.window(ps.Sliding(4, every=2)).count(), late]


@pytest.mark.parametrize("workers", [1, 2])
@pytest.mark.parametrize("build", [changes, rows, records, windows])
def test_what_comes_and_goes_leaves_nothing(
    workers: int, build: Callable[[ps.Scope], tuple[Round, list[Any], list[Any]]]
) -> None:
    def main(worker: ps.Worker) -> Any:
        if worker.index == 0:
            tracemalloc.start()
        with worker.dataflow() as scope:
            round_of, inputs, results = build(scope)
            probes = [getattr(result, "stream", result).probe() for result in results]

        def passed(time: int) -> None:
            worker.step_while(lambda: any(probe.less_than(time) for probe in probes))

        def rounds(first: int, last: int) -> int:
            for number in range(first, last):
                if worker.index == 0:
                    round_of(number)
                for one in inputs:
                    one.advance_to(2 * number + 2)
                passed(max(0, 2 * number - 20))
            for _ in range(100):  # what is merged and swept between steps
                worker.step()
            worker.barrier()
            if worker.index != 0:
                return 0
            return sum(kept for _, kept, _, _ in worker._collector.here(worker._engine, 120)[0]["kept"])

        rows = rounds(0, 200)
        if worker.index == 0:
            Heap.begin()
        more = rounds(200, 200 + ROUNDS)
        grown = Heap.growth() if worker.index == 0 else None
        for one in inputs:
            one.close()
        worker.run()
        return rows, more, grown

    rows, more, grown = ps.execute(main, workers=workers)[0]
    assert more < rows + ROUNDS, "rows of keys and times that have passed"
    check(grown, ROUNDS // 5)  # the last times are on their way, or in windows that are open
