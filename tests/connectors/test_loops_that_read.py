"""Dataflows with a source and a loop end, whatever operators on the loop need of the records."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import pytest

import pointstamp as ps
from counting_reader import CountingReader
from pointstamp.connectors import PartitionReader, QueueSource, Source
from pointstamp.logic.planned import PlannedOperator

ROWS = [(at, at % 3) for at in range(20)]


class Log(Source[Any]):
    """The rows, one by one; it notes what is acknowledged."""

    def __init__(self) -> None:
        self.kept: list[int] = []

    def partitions(self) -> list[str]:
        return ["0"]

    def open(self, partition: str) -> PartitionReader[Any]:
        return Part(self.kept)


class Part(CountingReader):
    def __init__(self, kept: list[int]) -> None:
        self.kept, self.at = kept, 0

    def read(self) -> Any:
        if self.at == len(ROWS):
            return None
        self.at += 1
        return ROWS[self.at - 1 : self.at]

    def durable(self, offset: int) -> None:
        self.kept.append(offset)


def own(stream: Any) -> Any:
    builder = stream.scope.operator("own")
    builder.new_input(stream, ps.Pipeline())
    _, made = builder.new_output()
    retention = builder.retention(made)

    def constructor(capabilities: Any, info: Any) -> Any:
        capabilities[0].drop()

        def logic(inputs: Any, outputs: Any) -> None:
            for message, records in inputs[0]:
                with outputs[0].session(message) as session:
                    session.give_all(records)
            retention.settle(0, min(inputs[0].frontier, default=None))

        return logic

    builder.build(constructor)
    return made


def by_key(stream: Any) -> Any:
    return stream.key_by(lambda row: row[1])


def iterated(stream: Any) -> Any:
    """A loop in a scope inside."""
    with stream.scope.iterative() as inner:
        handle, again = inner.loop_variable(1)
        both = stream.enter(inner).concat(again)
        both.map(lambda row: (row[0] + 7, row[1])).filter(lambda row: row[0] < 20).connect_loop(handle)
        return both.leave()


LOOPS: dict[str, Callable[[Any], Any]] = {
    "map": lambda s: s.map(lambda row: row),
    "delay": lambda s: s.delay(lambda row, time: time + 1),
    "delay_batch": lambda s: s.delay_batch(lambda time: time + 1),
    "two delays": lambda s: s.delay_batch(lambda time: time + 1).delay(lambda _, time: time + 2),
    "an operator of one's own": own,
    "state with ttl": lambda s: (
        by_key(s).scan(lambda _key, row, _: row, default=lambda: (0, 0), ttl=4).map(lambda pair: pair[1])
    ),
    "windows": lambda s: (
        by_key(s)
        .window(ps.Tumbling(4))
        .aggregate(lambda _, row, best: max(row, best), default=lambda: (0, 0))
        .map(lambda found: found[2])
    ),
    "sessions": lambda s: (
        by_key(s)
        .window(ps.Session(gap=4))
        .aggregate(lambda _, row, best: max(row, best), default=lambda: (0, 0))
        .map(lambda found: found[2])
    ),
    "interval_join": lambda s: (
        by_key(s).interval_join(by_key(s), lower=0, upper=1).map(lambda found: found[1][0])
    ),
}


def ends(build: Callable[[Any, Any], Any], workers: int) -> list[int]:
    """Runs a dataflow to its end; returns what was acknowledged."""
    log = Log()

    def main(worker: ps.Worker) -> bool:
        with worker.dataflow() as scope:
            build(scope, log)
        worker.step_while(lambda: bool(worker.installed_dataflows()), timeout=60)
        left = worker.installed_dataflows()
        for dataflow in left:
            worker.drop_dataflow(dataflow)
        return not left

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ps.NotAcknowledged)
        assert all(ps.execute(main, workers=workers))
    return log.kept


def looped(stream: Any, work: Callable[[Any], Any]) -> Any:
    handle, again = stream.scope.feedback(3)
    made = work(stream.concat(again))
    made.filter(lambda row: row[0] < 5).map(lambda row: (row[0] + 5, row[1])).connect_loop(handle)
    return made


@pytest.mark.parametrize("workers", [1, 2])
@pytest.mark.parametrize("past_state", [False, True])
@pytest.mark.parametrize("name", LOOPS)
def test_a_loop_at_the_root_ends(name: str, past_state: bool, workers: int) -> None:
    def build(scope: Any, log: Log) -> Any:
        rows, _ = scope.read(log, event_time=lambda row: row[0], acknowledge_past_state=past_state)
        # Before and behind the loop, operators wait for nothing of it.
        return looped(rows.delay(lambda _, time: time + 1), LOOPS[name]).delay(lambda _, time: time + 2)

    kept = ends(build, workers)
    assert kept[-1:] == ([len(ROWS)] if past_state else []), "what goes round may be needed"


@pytest.mark.parametrize("workers", [1, 2])
@pytest.mark.parametrize("kind", [Log, QueueSource])
def test_a_loop_of_plain_times_ends(kind: Any, workers: int) -> None:
    def build(scope: Any, log: Log) -> Any:
        source: Any = log
        if kind is QueueSource:
            source = QueueSource()
            source.put_many(ROWS)
            source.close()
        return looped(scope.read(source), LOOPS["delay"])

    assert not ends(build, workers)


@pytest.mark.parametrize("workers", [1, 2])
@pytest.mark.parametrize("name", ["delay", "an operator of one's own", "windows"])
def test_a_loop_in_a_scope_ends(name: str, workers: int) -> None:
    def build(scope: Any, log: Log) -> Any:
        rows, _ = scope.read(log, event_time=lambda row: row[0])
        return LOOPS[name](iterated(LOOPS[name](rows)))

    kept = ends(build, workers)
    assert kept[-1] == len(ROWS)


@pytest.mark.parametrize("workers", [1, 2])
def test_a_loop_through_a_scope_ends(workers: int) -> None:
    """Operators at the root whose results come back to them by way of a scope inside."""

    def through(stream: Any) -> Any:
        return iterated(stream.delay(lambda _, time: time + 1)).delay(lambda _, time: time + 1)

    def build(scope: Any, log: Log) -> Any:
        return looped(scope.read(log, time=lambda row: row[0]), through)

    assert not ends(build, workers)


@pytest.mark.parametrize("workers", [1, 2])
def test_what_is_beside_a_loop_is_acknowledged(workers: int) -> None:
    """Loops beside a source whose records do not come to them."""

    def build(scope: Any, log: Log) -> Any:
        looped(scope.to_stream(ROWS), LOOPS["delay"])
        return scope.read(log, time=lambda row: row[0]).delay(lambda _, time: time + 1)

    assert ends(build, workers)[-1] == len(ROWS)


def test_where_no_source_acknowledges_operators_keep_no_account() -> None:
    def main(worker: ps.Worker) -> bool:
        with worker.dataflow() as scope:
            source: QueueSource[int] = QueueSource()
            source.close()
            stream = scope.read(source)
            found = PlannedOperator(scope, "own").retention([stream._output]) is None
        worker.run()
        return found

    assert ps.execute(main) == [True]
