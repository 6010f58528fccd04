"""Offsets are not past what operators keep: stopped anywhere, and run again from the offsets that were
acknowledged, a program gives what it gives in one run."""

from __future__ import annotations

import random
import threading
import warnings
from collections import Counter
from collections.abc import Callable
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest

import pointstamp as ps
from aggregates import named
from counting_reader import CountingReader
from keyed_operators import COLUMNS, RECORDS, SCHEMA, SUM, TIMES
from pointstamp.connectors import PartitionReader, Sink, SinkWriter, Source

LATENESS = 6
MOST = 64

Build = Callable[[Any], Any]


def rows(seed: int, used: set[int]) -> list[tuple[int, str, int]]:
    """Rows whose times go up and down a little, with pauses; no time comes twice, so that what is made of
    them does not depend on which partition is read first."""
    draw, at = random.Random(seed), 0
    found: list[tuple[int, str, int]] = []
    while len(found) < 60:
        at += draw.choice([1, 1, 2, 3, 4, 30])
        time = max(at - draw.randrange(LATENESS), 0)
        if time not in used:
            used.add(time)
            found.append((time, draw.choice("abc"), draw.randrange(9)))
    return found


USED: set[int] = set()
PARTITIONS = {"0": rows(1, USED), "1": rows(2, USED)}


class Log(Source[Any]):
    """The rows of `PARTITIONS`, a few at a time, up to so many of each; it notes what is acknowledged."""

    def __init__(self, kept: dict[str, Any], stop: int | None, *, columns: bool) -> None:
        self.kept = kept
        self.stop = stop
        self.columns = columns
        self.schema = SCHEMA if columns else None
        self.turns = {name: threading.Semaphore(0) for name in PARTITIONS}
        self.waiting = {name: threading.Event() for name in PARTITIONS}

    def turn(self) -> None:
        """Lets each reader give one batch more."""
        for turns in self.turns.values():
            turns.release()

    def partitions(self) -> list[str]:
        return list(PARTITIONS)

    def open(self, partition: str) -> PartitionReader[Any]:
        return Part(self, partition)


class Part(CountingReader):
    def __init__(self, log: Log, name: str) -> None:
        self.log, self.name, self.at = log, name, 0
        self.closed = threading.Event()

    def read(self) -> Any:
        whole = PARTITIONS[self.name]
        end = len(whole) if self.log.stop is None else min(self.log.stop, len(whole))
        if self.log.stop is not None:
            self.log.turns[self.name].acquire(timeout=60)
        if self.closed.is_set():
            return None
        if self.at >= end:
            if self.log.stop is None:
                return None
            self.log.waiting[self.name].set()
            self.closed.wait()
            return None
        batch = whole[self.at : min(self.at + 3, end)]
        self.at += len(batch)
        return (
            pa.RecordBatch.from_pylist([dict(zip(SCHEMA.names, row, strict=True)) for row in batch], SCHEMA)
            if self.log.columns
            else batch
        )

    def durable(self, offset: int) -> None:
        self.log.kept[self.name] = offset

    def close(self) -> None:
        self.closed.set()
        self.log.turns[self.name].release()


class Shown(Sink):
    """The records that were committed, by time."""

    single = True

    def __init__(self, times: dict[int, Counter[str]]) -> None:
        self.times = times

    def open(self, worker: int, workers: int) -> SinkWriter:
        return Writer(self.times)


class Writer(SinkWriter):
    def __init__(self, times: dict[int, Counter[str]]) -> None:
        self.times = times
        self.open: dict[int, Counter[str]] = {}

    def write(self, time: Any, batch: Any) -> None:
        shown = batch.to_pylist() if isinstance(batch, pa.RecordBatch) else batch
        self.open.setdefault(time, Counter()).update(map(str, shown))

    def commit(self, time: Any) -> None:
        self.times.setdefault(time, Counter()).update(self.open.pop(time, Counter()))


def run(
    build: Build,
    *,
    columns: bool,
    workers: int,
    kept: dict[str, Any],
    stop: int | None = None,
    steps: int | None = None,
    read: Any = None,
) -> tuple[dict[int, Counter[str]], int | None]:
    """Runs a dataflow until a stop; returns what is shown, and the time before which that is all.

    The stop is `steps` after the source has given what it gives until then, or when nothing is left to do.
    """
    times: dict[int, Counter[str]] = {}
    log = Log(kept, stop, columns=columns)
    meet = threading.Barrier(workers)

    def main(worker: ps.Worker) -> int | None:
        with worker.dataflow() as scope:
            reading = read or (
                lambda scope, log, **given: scope.read(
                    log, event_time="at" if columns else (lambda row: row[0]), lateness=LATENESS, **given
                )[0]
            )
            stream = reading(scope, log, offsets=dict(kept) or None)
            probe = build(stream).write(Shown(times)).probe()
        if stop is None:
            worker.run()
            return None
        if steps is None:
            while not all(waiting.is_set() for waiting in log.waiting.values()):
                log.turn()
                for _ in range(8):
                    worker.step_or_park(0.001)
            for _ in range(MOST):  # until nobody has anything to tell another
                meet.wait(60)
                for _ in range(8):
                    worker.step()
        else:
            for _ in range(steps):
                log.turn()
                worker.step_or_park(0.001)
        frontier = list(probe.frontier)
        meet.wait(60)
        worker.drop_dataflow(worker.installed_dataflows()[0])
        return frontier[0] if frontier else None

    ends = ps.execute(main, workers=workers)
    return times, ends[0]


def stopped(build: Build, *, columns: bool, workers: int, stops: list[int], **given: Any) -> dict[str, Any]:
    """Runs, stops and goes on, again and again; the offsets of the last stop."""
    want, _ = run(build, columns=columns, workers=workers, kept={}, read=given.get("read"))
    kept: dict[str, Any] = {}
    last: dict[str, Any] = {}
    got: dict[int, Counter[str]] = {}
    final = 0
    for stop in [*stops, None]:
        last = dict(kept)
        shown, ends = run(build, columns=columns, workers=workers, kept=kept, stop=stop, **given)
        # What was final before a stop was shown then, and a sink that knows its times leaves it out now.
        got.update({time: found for time, found in shown.items() if time >= final})
        if ends is not None:
            final = max(final, ends)
    assert dict(sorted(got.items())) == dict(sorted(want.items()))
    return last


def both(stream: Any) -> tuple[Any, Any]:
    """A stream of records as two, by key."""
    keyed = [stream.filter(lambda row, side=side: row[2] % 2 == side) for side in (0, 1)]
    return keyed[0].key_by(lambda row: row[1]), keyed[1].key_by(lambda row: row[1])


def both_of_columns(stream: Any) -> tuple[Any, Any]:
    return tuple(
        stream.filter(lambda batch, side=side: pc.equal(pc.bit_wise_and(batch["v"], 1), side))
        for side in (0, 1)
    )


def by_key(name: str) -> Build:
    return lambda stream: RECORDS[name](*both(stream), None)


def of_columns(name: str) -> Build:
    return lambda stream: COLUMNS[name](*both_of_columns(stream), None)


TTL: dict[str, Build] = {
    "scan": lambda a: both(a)[0].scan(lambda _key, _, n: n + 1, default=int, ttl=9),
    "running": lambda a: both(a)[0].running("sum", lambda row: row[2], ttl=9),
    "state_machine by key": lambda a: both(a)[0].state_machine(
        lambda k, _, n: (n + 1, [(k, n)]), default=int, ttl=9
    ),
    "dedup": lambda a: both(a)[0].dedup(ttl=9),
    "top_k": lambda a: both(a)[0].top_k_so_far(2, lambda row: row[2], ttl=9),
    "process": lambda a: both(a)[0].process(counted, ttl=9),
}


def counted(context: Any, row: Any) -> None:
    context.state = (context.state or 0) + 1
    context.emit((context.key, context.state))


def moved(time: int) -> int:
    return (time // 20 + 1) * 20


def own(stream: Any) -> Any:
    """An operator of a program's own: the records of each stretch of 20 as one, at its end."""
    builder = stream.scope.operator("own")
    builder.new_input(stream, ps.Exchange(lambda row: row[1]))
    _, made = builder.new_output()
    retention = builder.retention(made)

    def constructor(capabilities: Any, info: Any) -> Any:
        capabilities[0].drop()
        kept: dict[int, tuple[Any, int, list[Any]]] = {}
        sent = 0

        def logic(inputs: Any, outputs: Any) -> None:
            nonlocal sent
            for message, records in inputs[0]:
                end = moved(message.time)
                cap, first, known = kept.get(end) or (message.delayed(end), message.time, [])
                kept[end] = (cap, min(first, message.time), known + records)
            for end in sorted(kept):
                if not inputs[0].frontier.less_equal(end):
                    cap, _, records = kept.pop(end)
                    with cap, outputs[0].session(cap) as session:
                        session.give(sorted(records))
                    sent = end
            needed = [*inputs[0].frontier, *(first for _, first, _ in kept.values())]
            retention.settle(sent, min(needed, default=None))

        return logic

    builder.build(constructor)
    return made


async def called(row: Any) -> Any:
    return row


MOVED: dict[str, Build] = {
    "an operator of one's own": lambda a: own(a),
    "async_map": lambda a: a.async_map(called)[0],
    "reduce per time": lambda a: both(a)[0].reduce(max),
    "aggregate by key": lambda a: both(a)[0].aggregate(lambda _, __, n: n + 1, default=int),
    "delay": lambda a: a.delay(lambda row, time: moved(time)),
    "delay_batch": lambda a: a.delay_batch(moved),
    "delays one after another": lambda a: a.delay_batch(lambda time: time + 7).delay(
        lambda _, time: moved(time)
    ),
    "windows of windows": lambda a: (
        both(a)[0]
        .window(ps.Tumbling(10))
        .count()
        .key_by(lambda x: x[0], lambda x: x[2])
        .window(ps.Tumbling(40))
        .sum()
    ),
    "sessions of windows": lambda a: (
        both(a)[0].window(ps.Tumbling(10)).count().key_by(lambda x: x[0]).window(ps.Session(gap=25)).count()
    ),
    "window over all": lambda a: a.window(ps.Tumbling(10)).count(),
    "session join": lambda a: (
        both(a)[0].window(ps.Session(gap=10)).join(both(a)[1].window(ps.Session(gap=10)), how="full")
    ),
    "outer interval join": lambda a: both(a)[0].interval_join(both(a)[1], lower=-4, upper=7, how="full"),
    "distinct": lambda a: a.map(lambda row: row[1]).distinct(),
    "counts": lambda a: a.map(lambda row: row[1]).value_counts(),
    "top_k per time": lambda a: a.top_k(1),
    "join per time": lambda a: a.map(lambda row: (row[1], 1)).join(a.map(lambda row: (row[1], row))),
}

BOUNDED = {
    f"by key: {name}": by_key(name)
    for name in [
        *("tumbling", "early", "sliding", "session", "window sum", "window aggregate", "window join"),
        *("interval join", "another lower", "within", "table ttl"),
    ]
}
BOUNDED |= {f"ttl: {name}": build for name, build in TTL.items()} | MOVED

BOUNDED_COLUMNS = {
    name: of_columns(name)
    for name in [
        *("tumbling", "early", "sliding", "session", "quantile"),
        *("interval join", "within", "window join", "session join"),
    ]
}
BOUNDED_COLUMNS |= {
    "delay": lambda a: a.delay("at"),
    "delay_batch": lambda a: a.delay_batch(moved),
    "table ttl": lambda a: both_of_columns(a)[0].table_join(both_of_columns(a)[1], "key", ttl=9, **TIMES),
    "windows of windows": lambda a: a.window(ps.Tumbling(10), "key", **named(SUM), **TIMES).window(
        ps.Tumbling(40), "key", v_sum_sum=ps.col("v_sum").sum(), column="window_end"
    ),
    "aggregate": lambda a: a.aggregate("key", **named(SUM)),
    "distinct": lambda a: a.distinct("key"),
}


@pytest.mark.parametrize("workers", [1, 2])
@pytest.mark.parametrize("name", BOUNDED)
def test_of_what_an_operator_keeps_no_offset_is_past(name: str, workers: int) -> None:
    kept = stopped(BOUNDED[name], columns=False, workers=workers, stops=[20, 33, 50])
    assert kept, "something is acknowledged"


@pytest.mark.parametrize("workers", [1, 2])
@pytest.mark.parametrize("name", BOUNDED_COLUMNS)
def test_of_what_an_operator_of_columns_keeps_no_offset_is_past(name: str, workers: int) -> None:
    kept = stopped(BOUNDED_COLUMNS[name], columns=True, workers=workers, stops=[20, 33, 50])
    assert kept, "something is acknowledged"


@pytest.mark.parametrize("seed", range(8))
def test_a_stop_may_be_at_any_step(seed: int) -> None:
    draw = random.Random(seed)
    name = draw.choice(list(BOUNDED))
    stopped(BOUNDED[name], columns=False, workers=1, stops=[30, 40, 60], steps=draw.randrange(3, 60))


FOREVER = {
    f"by key: {name}": by_key(name)
    for name in [
        *("counted", "as-of join", "table join", "scan", "running", "state_machine"),
        *("dedup", "top_k_so_far", "process"),
    ]
}
FOREVER |= {
    "state_machine": lambda a: a.map(lambda row: (row[1], 1)).state_machine(
        lambda key, value, n: (n + 1, [(key, n)]), default=int
    ),
    "to_collection": lambda a: a.map(str).to_collection().value_counts().inspect(lambda *_: None).updates(),
    "reclock": lambda a: a.reclock(a.filter(lambda row: row[2] > 5)),
    "loop": lambda a: looped(a),
}
FOREVER_COLUMNS = {
    name: of_columns(name) for name in ["counted", "scan", "dedup", "as-of join", "table join"]
}
FOREVER_COLUMNS |= {
    "reclock": lambda a: a.reclock(a),
    "distinct_so_far": lambda a: a.distinct_so_far("key"),
    "join_so_far": lambda a: both_of_columns(a)[0].join_so_far(both_of_columns(a)[1], "key"),
    "to_collection": lambda a: a.to_collection().value_counts().updates(),
}


def looped(stream: Any) -> Any:
    handle, again = stream.scope.feedback(5)
    both = stream.concat(again)
    both.filter(lambda row: row[2] > 100).connect_loop(handle)
    return both


@pytest.mark.parametrize("columns", [False, True])
def test_where_an_operator_keeps_all_nothing_is_acknowledged_and_a_warning_names_it(columns: bool) -> None:
    operators = FOREVER_COLUMNS if columns else FOREVER
    for name, build in operators.items():
        for workers in (1, 2):
            kept: dict[str, Any] = {}
            with warnings.catch_warnings(record=True) as caught:
                warnings.simplefilter("always")
                run(build, columns=columns, workers=workers, kept=kept)
            assert not kept, name
            said = [str(w.message) for w in caught if w.category is ps.NotAcknowledged]
            assert said, name
            assert "source 'read' acknowledges no offset: operator '" in said[0]
            assert "acknowledge_past_state=True" in said[0]
            assert __file__ in said[0] or "keyed_operators.py" in said[0], said[0]
            assert len(said) <= workers


def test_a_program_that_takes_care_of_the_state_says_so() -> None:
    for workers in (1, 2):
        kept: dict[str, Any] = {}

        def read(scope: Any, log: Log, **given: Any) -> Any:
            times = scope.read(
                log, event_time=lambda row: row[0], lateness=LATENESS, acknowledge_past_state=True, **given
            )
            return times[0]

        with warnings.catch_warnings():
            warnings.simplefilter("error", ps.NotAcknowledged)
            run(FOREVER["by key: scan"], columns=False, workers=workers, kept=kept, read=read)
        assert kept == {"0": 60, "1": 60}


def test_offsets_follow_the_snapshots_of_a_state_that_was_given() -> None:
    """The last snapshot and the offsets are enough: nothing is counted twice, and nothing is missed."""
    kept: dict[str, Any] = {}
    snapshots: list[bytes] = []
    shown: dict[str, int] = {}

    def part(stop: int | None, snap: bool) -> ps.KeyedState[Any, Any]:
        state: ps.KeyedState[Any, Any] = ps.KeyedState.restore(snapshots[-1:])
        log = Log(kept, stop, columns=False)

        def main(worker: ps.Worker) -> None:
            with worker.dataflow() as scope:
                on_time, _ = scope.read(
                    log, event_time=lambda row: row[0], lateness=LATENESS, offsets=dict(kept) or None
                )
                totals = on_time.key_by(lambda row: row[1]).scan(
                    lambda _, row, n: n + row[2], default=int, state=state
                )
                probe = totals.inspect(lambda total: shown.update([total])).probe()
            if stop is None:
                worker.run()
                return
            while not all(waiting.is_set() for waiting in log.waiting.values()):
                log.turn()
                worker.step_or_park(0.001)
            for _ in range(MOST):
                worker.step()
            if snap:
                assert state.frontier is not None
                assert not probe.less_than(state.frontier)
                snapshots.append(state.snapshot())
                for _ in range(MOST):
                    worker.step()
            worker.drop_dataflow(worker.installed_dataflows()[0])

        ps.execute(main)
        return state

    part(20, snap=False)
    assert not kept, "nothing is in a snapshot yet"
    part(30, snap=True)
    assert kept, "what the snapshot has is not needed again"
    first = dict(kept)
    part(45, snap=False)
    assert kept == first
    part(None, snap=False)
    want = Counter[str]()
    for partition in PARTITIONS.values():
        for _, key, amount in partition:
            want[key] += amount
    assert shown == dict(want)


TIMED: dict[str, Build] = {
    "records": lambda stream: stream.event_time(lambda row: row[0] * 1000, lateness=LATENESS * 1000, idle=0)[
        0
    ].map(str),
    "windows": lambda stream: (
        stream.event_time(lambda row: row[0] * 1000, lateness=LATENESS * 1000, idle=0)[0]
        .key_by(lambda row: row[1])
        .window(ps.Tumbling(10_000))
        .count()
    ),
    "late": lambda stream: stream.event_time(lambda row: row[0] * 1000, idle=0)[1],
}


@pytest.mark.parametrize("workers", [1, 2])
@pytest.mark.parametrize("name", TIMED)
def test_where_event_times_are_of_another_kind_than_the_times_of_the_source(
    name: str, workers: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Frontiers behind `event_time` say nothing of the source's times."""
    monkeypatch.delitem(PARTITIONS, "1")  # workers tell their watermarks by all that they read

    def read(scope: Any, log: Log, **given: Any) -> Any:
        return scope.read(log, time=lambda row: row[0], lateness=LATENESS, **given)

    kept = stopped(TIMED[name], columns=False, workers=workers, stops=[20, 33, 50], read=read)
    assert kept, "something is acknowledged"


def test_results_and_frontiers_are_not_held_up() -> None:
    """A window's results come when they are final, whatever the operator says that it needs."""
    kept: dict[str, Any] = {}
    shown, frontier = run(BOUNDED["by key: sliding"], columns=False, workers=1, kept=kept, stop=40)
    latest = min(max(row[0] for row in rows[:40]) for rows in PARTITIONS.values()) - LATENESS
    assert frontier == latest
    assert shown


def test_a_source_of_times_in_flight_does_not_wait_for_what_windows_need() -> None:
    def main(worker: ps.Worker) -> list[Any]:
        days = [(day, [(day, "a", 1)]) for day in range(12)]
        with worker.dataflow() as scope:
            log = scope.read(Log({}, None, columns=False), time=lambda row: row[0], lateness=LATENESS)
            made = scope.iterator_source("days", days, in_flight=1)
            both = made.concat(log.filter(lambda _: False))
            weeks = (
                both.delay(lambda row, _: row[0]).key_by(lambda row: row[1]).window(ps.Tumbling(7)).count()
            )
            out = weeks.capture()
        worker.run()
        return out.extract()

    [found] = ps.execute(main)
    assert [time for time, _ in found] == [6, 13]


def test_offsets_that_wait_are_not_collected_without_end(monkeypatch: pytest.MonkeyPatch) -> None:
    from pointstamp.connectors import reading

    monkeypatch.setattr(reading, "OFFSETS", 4)
    most = 0
    real = reading._thinned

    def thinned(pending: Any) -> Any:
        nonlocal most
        most = max(most, len(pending))
        return real(pending)

    monkeypatch.setattr(reading, "_thinned", thinned)
    kept: dict[str, Any] = {}
    stopped(
        lambda a: a.delay_batch(lambda time: moved(moved(time)) + 60), columns=False, workers=1, stops=[50]
    )
    assert most == 5
    run(lambda a: a, columns=False, workers=1, kept=kept)
    assert kept == {"0": 60, "1": 60}


@pytest.mark.parametrize("workers", [1, 2])
def test_operators_without_anything_to_read_do_not_keep_a_dataflow_from_its_end(workers: int) -> None:
    def main(worker: ps.Worker) -> bool:
        with worker.dataflow() as scope:
            scope.read(Log({}, None, columns=False))
            empty: Any = scope.empty()
            empty.delay(lambda _, time: time + 1)
            by_key = empty.event_time(lambda row: row)[0].key_by(lambda row: row)
            by_key.window(ps.Session(gap=1)).count()
            by_key.interval_join(by_key, lower=0, upper=1)
            rows = empty.to_arrow(SCHEMA).event_time("at")[0]
            rows.window(ps.Tumbling(10), "key", **named(SUM))
            rows.window(ps.Session(gap=10), "key", **named(SUM))
            rows.window_join(rows, "key", ps.Session(gap=10))
            rows.delay("at")
        worker.step_while(lambda: bool(worker.installed_dataflows()), timeout=60)
        return not worker.installed_dataflows()

    assert all(ps.execute(main, workers=workers))


class Busy(Source[Any]):
    """A record of one key every 15 units, which is never silent for 20; it notes what is acknowledged."""

    waits = False

    def __init__(self, kept: dict[str, Any]) -> None:
        self.kept = kept

    def partitions(self) -> list[str]:
        return ["p"]

    def open(self, partition: str) -> PartitionReader[Any]:
        return BusyReader(self.kept)


class BusyReader(PartitionReader[Any]):
    def __init__(self, kept: dict[str, Any]) -> None:
        self.kept = kept
        self._read = 0

    def read(self) -> Any:
        if self._read == 20:
            return None
        self._read += 1
        return [(15 * (self._read - 1), "k")]

    @property
    def offset(self) -> Any:
        return self._read

    def seek(self, offset: Any) -> None:
        self._read = offset

    def durable(self, offset: Any) -> None:
        self.kept["p"] = offset


@pytest.mark.parametrize("stop", range(20, 280, 40))
def test_a_key_that_is_never_silent_is_one_record_of_dedup(stop: int) -> None:
    kept: dict[str, Any] = {}
    found: list[Any] = []

    def main(worker: ps.Worker) -> None:
        offsets = dict(kept) or None
        with worker.dataflow() as scope:
            keyed = scope.read(Busy(kept), time=lambda r: r[0], offsets=offsets).key_by(lambda r: r[1])
            probe = keyed.dedup(ttl=20).inspect(found.append).probe()
        if offsets is None and not found:
            while probe.less_than(stop) and worker.step_or_park(0.1):
                pass
            for number in worker.installed_dataflows():
                worker.drop_dataflow(number)

    ps.execute(main)
    ps.execute(main)
    assert set(found) == {(0, "k")}
