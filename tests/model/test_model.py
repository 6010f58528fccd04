"""Random dataflows on 1, 2 and 4 workers against a plain Python model.

A program is a list of operators, each of which reads streams that are there and adds one or more. The model
keeps, for each stream, how often each record comes at each time, all workers together; batches do not
exist in it. Behind every stream an operator with a frontier checks that nothing comes at a closed time.
"""

from collections import Counter
from typing import Any

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import pointstamp as ps
from effort import examples
from harness import WORKERS, Logic

Operator = tuple[str, tuple[int, ...], int]  # what, which streams it reads, a constant
Records = Counter[tuple[int, int]]  # (time, record)

WHAT = st.sampled_from(
    [
        "map",
        "filter",
        "flat_map",
        "partition",
        "branch",
        "concat",
        "exchange",
        "broadcast",
        "delay",
        "unary",
        "scope",
        "loop",
    ]
)
OPERATORS = st.lists(
    st.tuples(WHAT, st.tuples(st.integers(0, 50), st.integers(0, 50)), st.integers(0, 6)), max_size=8
)
ROUNDS = st.lists(st.tuples(st.integers(0, 3), st.lists(st.integers(-20, 20), max_size=12)), max_size=6)


def model(operators: list[Operator], rounds: list[tuple[int, list[int]]], peers: int) -> list[Records]:
    """Returns the records of each stream, all workers together."""
    first: Records = Counter()
    time = 0
    for step, records in rounds:
        time += step
        first.update((time, x) for x in records)
    streams = [first]

    def each(records: Records, fn: Any) -> Records:
        result: Records = Counter()
        for (t, x), count in records.items():
            for item in fn(t, x):
                result[item] += count
        return result

    for what, (i, j), k in operators:
        one, two = streams[i % len(streams)], streams[j % len(streams)]
        if what == "map":
            streams.append(each(one, lambda t, x: [(t, x * k - 1)]))
        elif what == "filter":
            streams.append(each(one, lambda t, x: [(t, x)] * (x % 3 == k % 3)))
        elif what == "flat_map":
            streams.append(each(one, lambda t, x: [(t, x + i) for i in range(x % 3)]))
        elif what == "partition":
            streams.extend(each(one, lambda t, x, p=p: [(t, x + k)] * (x % 2 == p)) for p in range(2))
        elif what == "branch":
            streams.extend(each(one, lambda t, x, p=p: [(t, x)] * ((x > t) == p)) for p in (False, True))
        elif what == "concat":
            streams.append(one + two)
        elif what in ("broadcast", "scope"):
            streams.append(each(one, lambda t, x: [(t, x)] * peers))
        elif what == "delay":
            streams.append(each(one, lambda t, x: [(t + x % (k + 1), x)]))
        elif what == "loop":
            streams.append(each(one, lambda t, x: [(t + i, x - i) for i in range(k + 1)]))
        else:  # exchange, unary
            streams.append(one)
    return streams


def checking(cap: ps.Capability, info: ps.OperatorInfo) -> Logic:
    """The constructor of an operator that passes records on, some of them later, and checks their times."""
    cap.drop()
    passed: list[ps.Time] = []
    held: list[tuple[ps.Capability, list[Any]]] = []

    def logic(port: ps.FrontieredInput[Any], output: ps.OutputPort[Any]) -> None:
        while held:
            kept, records = held.pop()
            with kept, output.session(kept) as session:
                session.give_all(records)
        for message, records in port:
            assert message.time not in passed, f"a record at {message.time}, which was closed"
            assert port.frontier.less_equal(message.time), f"{message.time} comes after {port.frontier}"
            if len(records) % 2:
                held.append((message.retain(), records))
                info.activator.activate()
            else:
                with output.session(message) as session:
                    session.give_all(records)
        passed.extend(t for t in range(40) if t not in passed and not port.frontier.less_equal(t))

    return logic


def looped(stream: ps.Stream[Any], turns: int) -> ps.Stream[Any]:
    """Each record goes round some times; a turn takes 1 from the record and adds 1 to its time."""
    handle, cycle = stream.scope.feedback(1)
    both = stream.map(lambda x: (x, 0)).concat(cycle).exchange(lambda x: x[0])
    both.filter(lambda x: x[1] < turns).map(lambda x: (x[0] - 1, x[1] + 1)).connect_loop(handle)
    return both.map(lambda x: x[0])


def build(stream: ps.Stream[Any], operators: list[Operator]) -> list[ps.Capture[Any]]:
    streams = [stream]
    for what, (i, j), k in operators:
        one, two = streams[i % len(streams)], streams[j % len(streams)]
        if what == "map":
            streams.append(one.map(lambda x, k=k: x * k - 1))  # type: ignore[misc]
        elif what == "filter":
            streams.append(one.filter(lambda x, k=k: x % 3 == k % 3))  # type: ignore[misc]
        elif what == "flat_map":
            streams.append(one.flat_map(lambda x: [x + i for i in range(x % 3)]))
        elif what == "partition":
            streams.extend(one.partition(2, lambda x, k=k: (x % 2, x + k)))  # type: ignore[misc]
        elif what == "branch":
            streams.extend(one.branch(lambda t, x: x > t))
        elif what == "concat":
            streams.append(one.concat(two))
        elif what == "exchange":
            streams.append(one.exchange(lambda x, k=k: x + k))  # type: ignore[misc]
        elif what == "broadcast":
            streams.append(one.broadcast())
        elif what == "scope":
            with one.scope.scoped("scope", dims=k % 2) as inner:
                streams.append(one.enter(inner).broadcast().leave())
        elif what == "delay":
            streams.append(one.delay(lambda x, t, k=k: t + x % (k + 1)))  # type: ignore[misc]
        elif what == "loop":
            streams.append(looped(one, k))
        else:
            streams.append(one.unary_frontier(ps.Exchange(lambda x, k=k: x * k), "checking", checking))  # type: ignore[misc]
    return [s.unary_frontier(ps.Pipeline(), "checking", checking).capture() for s in streams]


def observed(
    workers: int, operators: list[Operator], rounds: list[tuple[int, list[int]]], mode: str
) -> list[Records]:
    def main(worker: ps.Worker) -> list[ps.Capture[Any]]:
        handle: ps.InputHandle[int] = ps.InputHandle()
        with worker.dataflow() as scope:
            captures = build(handle.to_stream(scope), operators)
        time = 0
        for turn, (step, records) in enumerate(rounds):
            time += step
            handle.advance_to(time)
            handle.send_batch(records[worker.index :: worker.peers])
            if turn % 2:
                worker.step()
        return captures

    streams: list[Records] = [Counter() for _ in range(len(operators) * 2 + 1)]
    results = ps.execute(main, config=ps.Config(workers=workers, progress_mode=mode))
    for captures in results:
        for stream, capture in zip(streams, captures, strict=False):
            for t, records in capture.extract():
                stream.update((t, x) for x in records)  # type: ignore[misc]
    return streams[: len(results[0])]


@settings(max_examples=examples(100), suppress_health_check=[HealthCheck.too_slow])
@given(OPERATORS, ROUNDS, st.sampled_from(WORKERS), st.sampled_from(["eager", "demand"]))
def test_random_dataflows_agree_with_the_model(
    operators: list[Operator], rounds: list[tuple[int, list[int]]], workers: int, mode: str
) -> None:
    expected = model(operators, rounds, workers)
    while sum(records.total() for records in expected) > 20_000:  # broadcasts multiply
        operators = operators[:-1]
        expected = model(operators, rounds, workers)
    assert observed(workers, operators, rounds, mode) == [+records for records in expected]


def test_every_operator_is_there() -> None:
    """One program with all of them, so that no name is skipped by chance."""
    names = [
        "map",
        "filter",
        "flat_map",
        "partition",
        "branch",
        "concat",
        "exchange",
        "broadcast",
        "delay",
        "unary",
        "scope",
        "loop",
    ]
    operators: list[Operator] = [(name, (0, 1), 2) for name in names]
    rounds = [(1, list(range(20))), (0, [3]), (2, list(range(-20, 0)))]
    for workers in WORKERS:
        assert observed(workers, operators, rounds, "demand") == [
            +r for r in model(operators, rounds, workers)
        ]
