"""Operators with `ttl=` or timers against plain loops: what they send follows from event times alone.

Of one key and one time the state expires first, then the timer runs, then the records come. Random inputs
run on several simulated workers, with random stops of the frontier, and with a snapshot that other workers
go on from. All of these have to send what the loop over sorted events sends.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from heapq import heappop, heappush
from typing import Any, NamedTuple

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import keyed_operators
import pointstamp as ps
from effort import examples
from pointstamp.testing import simulate

KEYS = "abc"
LAST = 120
"""No timer sets a timer after this time, so that each chain of timers ends."""

Action = tuple[str, int]
Sent = list[tuple[int, Any]]


class Said(NamedTuple):
    """A record: its time, its key, something to tell it from others, and what it does."""

    at: int
    key: str
    value: int
    actions: tuple[Action, ...] = ()


class Rules(NamedTuple):
    """A time to live, and what a timer does by its time."""

    ttl: int | None
    on_timer: tuple[tuple[Action, ...], ...]

    def of(self, time: int) -> tuple[Action, ...]:
        return self.on_timer[time % len(self.on_timer)] if self.on_timer else ()


def perform(context: Any, actions: tuple[Action, ...]) -> None:
    """Applies the action of a record or a timer to a context of the operator or of the model."""
    for what, number in actions:
        if what == "set" and (number > 0 and context.time <= LAST):
            context.set_timer(context.time + number)
        elif what == "cancel":
            context.cancel_timer(context.time + number)
        elif what == "state":
            context.state = [*(context.state or []), (context.time, number)]
        elif what == "drop":
            context.state = None
        elif what == "in place" and context.state is not None:
            context.state.append(number)
        elif what == "again" and context.state is not None:
            context.state = context.state


def copied(state: Any) -> Any:
    """The state as it is now: it may be changed in place later."""
    return None if state is None else list(state)


# ---------------------------------------------------------------- the model


class Modelled:
    """A key of the model: its state, when it was last touched, and its timers."""

    def __init__(self, ttl: int | None) -> None:
        self.ttl = ttl
        self.time = 0
        self.kept: Any = None
        self.touched = 0
        self.timers: list[int] = []
        self.sent: Sent = []

    @property
    def state(self) -> Any:
        return self.kept

    @state.setter
    def state(self, state: Any) -> None:
        self.kept = state
        self.touched = self.time

    def set_timer(self, time: int) -> None:
        if time not in self.timers:
            heappush(self.timers, time)

    def cancel_timer(self, time: int) -> None:
        if time in self.timers:
            self.timers = sorted(set(self.timers) - {time})

    def move_to(self, time: int) -> None:
        self.time = time
        if self.ttl is not None and self.kept is not None and time >= self.touched + self.ttl:
            self.kept = None


def process_model(said: list[Said], rules: Rules) -> Sent:
    sent: Sent = []
    for key in KEYS:
        context = Modelled(rules.ttl)
        mine = [record for record in said if record.key == key]
        while mine or context.timers:
            if context.timers and (not mine or context.timers[0] <= mine[0].at):
                context.move_to(heappop(context.timers))
                sent.append((context.time, repr((key, "timer", context.state))))
                perform(context, rules.of(context.time))
            else:
                record = mine.pop(0)
                context.move_to(record.at)
                context.touched = record.at
                sent.append((record.at, repr((key, record.value, context.state))))
                perform(context, record.actions)
    return sent


def per_key(step: Callable[[Any, Said], tuple[Any, list[Any]]]) -> Callable[[list[Said], Rules], Sent]:
    """The model of an operator without timers: a function of the state and a record."""

    def model(said: list[Said], rules: Rules) -> Sent:
        states: dict[str, Any] = {}
        seen: dict[str, int] = {}
        sent: Sent = []
        for record in said:
            key = record.key
            if rules.ttl is not None and record.at - seen.get(key, record.at) >= rules.ttl:
                states.pop(key, None)
            seen[key] = record.at
            states[key], results = step(states.get(key), record)
            sent += [(record.at, repr(result)) for result in results]
        return sent

    return model


def counted(state: Any, record: Said) -> tuple[Any, list[Any]]:
    return (state or 0) + 1, [(record.key, (state or 0) + 1)]


def summed(state: Any, record: Said) -> tuple[Any, list[Any]]:
    return (state or 0) + record.value, [(record.key, (state or 0) + record.value)]


def up_to_two(state: Any, value: int) -> tuple[Any, Any]:
    """A state that is dropped by every third record."""
    return (None if state == 2 else (state or 0) + 1), (state, value)


def mapped(state: Any, record: Said) -> tuple[Any, list[Any]]:
    after, result = up_to_two(state, record.value)
    return after, [(record.key, result)]


def largest_model(said: list[Said], rules: Rules) -> Sent:
    states: dict[str, list[int]] = {}
    seen: dict[str, int] = {}
    sent: Sent = []
    for at, key in sorted({(record.at, record.key) for record in said}):
        if rules.ttl is not None and at - seen.get(key, at) >= rules.ttl:
            states.pop(key, None)
        seen[key] = at
        before = states.get(key, [])
        values = [record.value for record in said if (record.at, record.key) == (at, key)]
        after = sorted([*before, *values], reverse=True)[:2]
        if after != before:
            states[key] = after
            sent.append((at, repr((key, after))))
    return sent


def table_model(said: list[Said], rules: Rules) -> Sent:
    """Records of odd value are the table's; a value divisible by 5 ends the row."""
    sent: Sent = []
    rows: dict[str, tuple[int, int]] = {}
    for record in sorted(said, key=lambda record: (record.at, 1 - record.value % 2)):
        row = rows.get(record.key)
        if record.value % 2:
            rows[record.key] = (record.at, record.value)
            if record.value % 5 == 0:
                del rows[record.key]
        elif row is not None and (rules.ttl is None or record.at - row[0] < rules.ttl):
            sent.append((record.at, repr((record.key, (record.value, row[1])))))
    return sent


# ---------------------------------------------------------------- the programs


def processed(stream: Any, rules: Rules, state: Any) -> Any:
    def on_record(context: Any, record: Said) -> None:
        context.emit((context.key, record.value, copied(context.state)))
        perform(context, record.actions)

    def on_timer(context: Any) -> None:
        context.emit((context.key, "timer", copied(context.state)))
        perform(context, rules.of(context.time))

    return stream.key_by(lambda r: r.key).process(on_record, on_timer, ttl=rules.ttl, state=state)


def values_of(stream: Any) -> Any:
    return stream.key_by(lambda record: record.key, lambda record: record.value)


def table_joined(stream: Any, rules: Rules, state: Any) -> Any:
    rows = values_of(stream.filter(lambda record: record.value % 2))
    changes = rows.map_values(lambda value: None if value % 5 == 0 else value)
    mine = values_of(stream.filter(lambda record: record.value % 2 == 0))
    return mine.table_join(changes, ttl=rules.ttl, state=state)


SCHEMA = pa.schema([("at", pa.int64()), ("key", pa.string()), ("value", pa.int64())])
CHANGES = SCHEMA.append(pa.field("gone", pa.bool_()))


def columns_of(stream: Any) -> Any:
    return stream.map(lambda record: record[:3]).to_arrow(SCHEMA)


def columns_joined(stream: Any, rules: Rules, state: Any) -> Any:
    rows = stream.filter(lambda record: record.value % 2)
    rows = rows.map(lambda record: (*record[:3], record.value % 5 == 0)).to_arrow(CHANGES)
    mine = columns_of(stream.filter(lambda record: record.value % 2 == 0))
    joined = mine.table_join(rows, "key", ends="gone", ttl=rules.ttl, column="at", state=state)
    return joined.to_records().map(lambda row: (row["key"], (row["value"], row["value_right"])))


Program = Callable[[Any, Rules, Any], Any]
Model = Callable[[list[Said], Rules], Sent]

PROGRAMS: dict[str, tuple[Program, Model]] = {
    "process": (processed, process_model),
    "scan": (
        lambda stream, rules, state: values_of(stream).scan(
            lambda _, value, n: n + value, default=int, ttl=rules.ttl, state=state
        ),
        per_key(summed),
    ),
    "running": (
        lambda stream, rules, state: values_of(stream).running("count", ttl=rules.ttl, state=state),
        per_key(counted),
    ),
    "state_machine": (
        lambda stream, rules, state: values_of(stream).state_machine(
            lambda key, value, n: (up_to_two(n, value)[0], [(key, up_to_two(n, value)[1])]),
            default=lambda: None,
            ttl=rules.ttl,
            state=state,
        ),
        per_key(mapped),
    ),
    "dedup": (
        lambda stream, rules, state: values_of(stream).dedup(ttl=rules.ttl, state=state),
        per_key(lambda state, record: (True, [] if state else [record.value])),
    ),
    "top_k": (
        lambda stream, rules, state: values_of(stream).top_k_so_far(2, ttl=rules.ttl, state=state),
        largest_model,
    ),
    "table_join": (table_joined, table_model),
    "scan of columns": (
        lambda stream, rules, state: (
            columns_of(stream)
            .running("key", value_sum=ps.col("value").sum(), ttl=rules.ttl, column="at", state=state)
            .to_records()
            .map(lambda row: (row["key"], row["value_sum"]))
        ),
        per_key(summed),
    ),
    "dedup of columns": (
        lambda stream, rules, state: (
            columns_of(stream)
            .dedup("key", ttl=rules.ttl, column="at", state=state)
            .to_records()
            .map(lambda row: row["value"])
        ),
        per_key(lambda state, record: (True, [] if state else [record.value])),
    ),
    "table_join of columns": (columns_joined, table_model),
}


# ---------------------------------------------------------------- random inputs and stops


GAPS = st.sampled_from([0, 0, 1, 1, 2, 3, 5, 9, 30])
ACTIONS = st.lists(
    st.tuples(st.sampled_from(["set", "set", "cancel", "state", "drop", "in place", "again"]), GAPS),
    max_size=4,
).map(tuple)


@st.composite
def inputs(draw: st.DrawFn) -> list[Said]:
    """Records in the order of time; of one key and time at most one row of a table."""
    now, made, rows = 0, [], set()
    for value in range(draw(st.integers(0, 14))):
        now += draw(GAPS)
        record = Said(now, draw(st.sampled_from(KEYS)), value, draw(ACTIONS))
        if value % 2 == 0 or (record.at, record.key) not in rows:
            made.append(record)
            rows.add((record.at, record.key))
    return made


RULES = st.builds(Rules, st.none() | st.integers(1, 12), st.lists(ACTIONS, max_size=4).map(tuple))


class Stops(NamedTuple):
    """Stops of a run's input: ahead of which records, how far ahead, and for how many steps."""

    before: tuple[int, ...]
    steps: tuple[int, ...]
    seed: int


STOPS = st.builds(
    Stops,
    st.lists(st.integers(0, 30), max_size=5).map(tuple),
    st.lists(st.integers(0, 3), min_size=1, max_size=5).map(tuple),
    st.integers(0, 2**20),
)


def ran(
    program: Program,
    said: list[Said],
    rules: Rules,
    stops: Stops,
    workers: int,
    snapshots: list[bytes] | tuple[()] = (),
    begin: int = 0,
    end: int | None = None,
) -> tuple[Sent, list[bytes]]:
    """Returns the results of the records before `end`, and the state then; of all records where it is None.

    A key's records come from one worker, so that those of one time keep their order.
    """

    def main(worker: ps.Worker) -> Any:
        state: ps.KeyedState[str, Any] = ps.KeyedState.restore(
            snapshots, index=worker.index, peers=worker.peers
        )
        sent: Sent = []
        source = ps.InputHandle[Said]()
        with worker.dataflow() as scope:
            results = program(source.to_stream(scope), rules, state)
            results.inspect_time(lambda record, time: sent.append((time, repr(record))))
        source.advance_to(begin)
        now, pauses = begin, 0
        for place, record in enumerate(said):
            bound = record.at if end is None else min(record.at, end)
            # The frontier goes to some times between two records, or at once to the next.
            for ahead in stops.before[place % 3 :: 3]:
                if now + ahead < bound:
                    now += ahead
                    source.advance_to(now)
                    for _ in range(stops.steps[pauses % len(stops.steps)]):
                        worker.step()
                    pauses += 1
            now = record.at
            source.advance_to(now)
            if KEYS.index(record.key) % worker.peers == worker.index:
                source.send(record)
        if end is None:
            for ahead in stops.before:
                now += ahead
                source.advance_to(now)
                for _ in range(stops.steps[pauses % len(stops.steps)]):
                    worker.step()
                pauses += 1
            source.close()
            worker.run()
            return sent, b""
        source.advance_to(end)
        worker.step_while(lambda: state.frontier != end)
        for _ in range(5):
            worker.step()
        return list(sent), state.snapshot()

    results = simulate(main, workers=workers, seed=stops.seed)
    return [item for sent, _ in results for item in sent], [snapshot for _, snapshot in results]


@pytest.mark.parametrize("name", PROGRAMS)
@settings(max_examples=examples(60))
@given(said=inputs(), rules=RULES, stops=STOPS, workers=st.integers(1, 3))
def test_results_follow_from_event_times(
    name: str, said: list[Said], rules: Rules, stops: Stops, workers: int
) -> None:
    program, model = PROGRAMS[name]
    found, _ = ran(program, said, rules, stops, workers)
    assert Counter(found) == Counter(model(said, rules))


@pytest.mark.parametrize("name", PROGRAMS)
@settings(max_examples=examples(40))
@given(
    said=inputs(),
    rules=RULES,
    stops=STOPS,
    workers=st.tuples(st.integers(1, 3), st.integers(1, 3)),
    cut=st.integers(1, 60),
)
def test_a_snapshot_in_between_changes_nothing(
    name: str, said: list[Said], rules: Rules, stops: Stops, workers: tuple[int, int], cut: int
) -> None:
    program, model = PROGRAMS[name]
    early, later = [r for r in said if r.at < cut], [r for r in said if r.at >= cut]
    first, snapshots = ran(program, early, rules, stops, workers[0], [], 0, cut)
    second, _ = ran(program, later, rules, stops, workers[1], snapshots, cut, None)
    assert Counter(first + second) == Counter(model(said, rules))


AT_ONCE = Stops((), (0,), 0)


def on_both_sides(of: Any, columns: bool) -> Program:
    """A program of `keyed_operators`: records of odd value are the right side's."""

    def program(stream: Any, rules: Rules, state: Any) -> Any:
        sides = [stream.filter(lambda record, odd=odd: record.value % 2 == odd) for odd in (0, 1)]
        rows = [side.map(lambda record: record[:3]) for side in sides]
        if columns:
            return of(*[side.to_arrow(keyed_operators.SCHEMA) for side in rows], state).to_records()
        return of(*[side.key_by(lambda row: row[1]) for side in rows], state)

    return program


EVERY = {
    **{f"records, {name}": on_both_sides(of, False) for name, of in keyed_operators.RECORDS.items()},
    **{f"columns, {name}": on_both_sides(of, True) for name, of in keyed_operators.COLUMNS.items()},
}


@pytest.mark.parametrize("name", EVERY)
@settings(max_examples=examples(10))
@given(said=inputs(), stops=STOPS, workers=st.integers(1, 3))
def test_every_operator_by_key_sends_the_same_wherever_its_input_stops(
    name: str, said: list[Said], stops: Stops, workers: int
) -> None:
    """Results equal those of one worker that has the whole input in one step."""
    rules = Rules(None, ())
    found, _ = ran(EVERY[name], said, rules, stops, workers)
    whole, _ = ran(EVERY[name], said, rules, AT_ONCE, 1)
    if "count" in name or "number" in name:  # the rest of a counted window is sent at the end
        found, whole = ([(0, result) for _, result in sent] for sent in (found, whole))
    assert Counter(found) == Counter(whole)


def test_the_order_of_one_key_at_one_time() -> None:
    """The state expires, then the timer runs, then the records come."""
    seen: list[Any] = []

    def on_record(context: Any, value: str) -> None:
        seen.append((value, context.state))
        context.state = value
        if context.time == 0:
            context.set_timer(10)
            context.set_timer(9)

    def on_timer(context: Any) -> None:
        seen.append((context.time, context.state))

    def build(scope: ps.Scope) -> Any:
        on_time, _ = scope.to_stream([(0, "first"), (10, "second"), (10, "third")]).event_time(lambda r: r[0])
        return on_time.key_by(lambda _: 0, lambda r: r[1]).process(on_record, on_timer, ttl=10).probe()

    ps.example(build)
    assert seen == [("first", None), (9, "first"), (10, None), ("second", None), ("third", "second")]


def test_what_a_timer_keeps_is_forgotten_too() -> None:
    """Ten thousand keys, each silent for ever: its timer sets a state when it was forgotten already."""
    kept: ps.KeyedState[int, Any] = ps.KeyedState()
    most = 0

    def on_timer(context: Any) -> None:
        assert context.state is None
        context.state = "seen"

    def main(worker: ps.Worker) -> Any:
        nonlocal most
        source = ps.InputHandle[int]()
        with worker.dataflow() as scope:
            by_key = source.to_stream(scope).key_by(lambda n: n)
            by_key.process(lambda c, _: c.set_timer(c.time + 15), on_timer, ttl=10, state=kept)
        for number in range(10_000):
            source.send(number)
            source.advance_to(number + 1)
            if number % 10 == 0:
                worker.step()
                most = max(most, len(kept._seen), len(kept._due), len(kept))
        source.advance_to(20_000)
        worker.step_while(lambda: kept.frontier != 20_000)
        assert (len(kept), len(kept._seen), len(kept._due)) == (0, 0, 0)
        source.close()
        worker.run()

    ps.execute(main)
    assert most < 100
