"""States of keys that memory has no room for: results are the same, and failures of the disk are errors."""

from __future__ import annotations

import math
import random
from collections import Counter
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest

import pointstamp as ps
from budgets import SMALL, budgets, metrics_of, written
from effort import examples
from pointstamp._core import Budget
from pointstamp.logic.process import KeyContext
from pointstamp.logic.states import NO_STATE, States, size_of

KEYS: list[Any] = [*range(30), "a", "b", ("a", 1), ("a", math.nan), math.nan, 2.5, None, b"x"]


def _append(key: Any, value: int, state: list[int]) -> list[int]:
    state.append(value)
    return state


def _joined(key: Any, value: int, state: tuple[int, ...]) -> tuple[int, ...]:
    return (*state, value)


def _machine(key: Any, value: int, state: Any) -> tuple[Any, list[Any]]:
    if value % 11 == 0:
        return None, [("gone", key, list(state))]
    state.append(value)
    return state, [(key, len(state), sum(state))]


def _on_record(context: KeyContext, value: int) -> None:
    if context.state is None:
        context.state = []
        context.set_timer(context.time + 7)
    context.state.append(value)  # in place
    if value % 3 == 0:
        context.set_timer(context.time + value % 5 + 1)


def _on_timer(context: KeyContext) -> None:
    state = context.state
    context.emit((context.key, context.time, None if state is None else list(state)))
    if state is not None and len(state) > 4:
        context.state = None


def _keyed(stream: Any) -> Any:
    on_time, _ = stream.event_time(lambda record: record[0])
    return on_time.key_by(lambda record: record[1], lambda record: record[2])


PROGRAMS: dict[str, Callable[[Any, Any], Any]] = {
    "scan": lambda keyed, _: keyed.scan(_joined, default=tuple),
    "scan, ttl": lambda keyed, _: keyed.scan(_joined, default=tuple, ttl=4),
    "state_machine": lambda keyed, _: keyed.state_machine(_machine, default=list),
    "process": lambda keyed, _: keyed.process(_on_record, on_timer=_on_timer),
    "process, ttl": lambda keyed, _: keyed.process(_on_record, on_timer=_on_timer, ttl=5),
    "dedup, ttl": lambda keyed, _: keyed.dedup(ttl=6),
    "top_k_so_far": lambda keyed, _: keyed.top_k_so_far(2),
    "top_k_so_far, ttl": lambda keyed, _: keyed.top_k_so_far(2, ttl=5),
    "running": lambda keyed, _: keyed.running("mean"),
    "tumbling": lambda keyed, _: keyed.window(ps.Tumbling(7)).aggregate(_append, default=list),
    "sliding, early": lambda keyed, _: keyed.window(ps.Sliding(9, every=4), early=3).sum(),
    "sessions": lambda keyed, _: keyed.window(ps.Session(gap=5)).aggregate(_append, default=list),
    "counted": lambda keyed, _: keyed.window(ps.Count(3)).aggregate(_append, default=list),
    "interval_join": lambda keyed, other: keyed.interval_join(other, lower=-3, upper=5, how="full"),
    "asof_join": lambda keyed, other: keyed.asof_join(other, within=5, how="left"),
    "table_join": lambda keyed, other: keyed.table_join(other, ttl=9, how="left"),
}


def run(name: str, seed: int, workers: int) -> list[Any]:
    """Returns all results of a program with random records, in an order of its own."""
    drawn = random.Random(seed)
    rounds = [
        [
            (time + drawn.randrange(3), drawn.choice(KEYS), drawn.randrange(40))
            for _ in range(drawn.randrange(25))
        ]
        for time in range(0, 60, 3)
    ]

    def main(worker: ps.Worker) -> Any:
        with worker.dataflow() as scope:
            handle, records = scope.new_input()
            other = records.filter(lambda record: record[2] % 4 == 0)
            captured = PROGRAMS[name](_keyed(records), _keyed(other)).capture()
        for number, some in enumerate(rounds):
            handle.advance_to(3 * number)
            if worker.index == 0:  # so that records of one time have an order
                handle.send_batch(some)
            worker.step()
        handle.close()
        return captured

    made = []
    for captured in ps.execute(main, workers=workers):
        for time, results in captured.extract():
            made += [(time, repr(result)) for result in results]
    return sorted(made)


@pytest.mark.parametrize("workers", [1, 2])
@pytest.mark.parametrize("name", PROGRAMS)
def test_results_are_those_of_memory_without_a_bound(name: str, workers: int) -> None:
    for seed in range(examples(3)):
        with budgets(None):
            expected = run(name, seed, workers)
        with budgets(SMALL) as made:
            assert run(name, seed, workers) == expected
        assert expected
        assert written(made) > 0, "something was on disk"


def test_records_in_turn_have_the_states_of_a_stream_of_pairs() -> None:
    """`Stream.state_machine` keeps its states in the same way."""

    def build(scope: ps.Scope) -> Any:
        pairs = scope.to_stream([(number % 50, number) for number in range(3000)])
        return pairs.state_machine(_machine, default=list).capture()

    with budgets(None):
        expected = ps.example(build).extract()
    with budgets(SMALL) as made:
        assert ps.example(build).extract() == expected
    assert written(made) > 0


@pytest.mark.parametrize("how", ["inner", "left", "right", "full", "semi", "anti"])
def test_joins_of_a_time_have_the_results_of_memory_without_a_bound(how: Any) -> None:
    drawn = random.Random(7)
    sides = [[(drawn.choice(KEYS), number) for number in range(40)] for _ in range(2)]

    def build(scope: ps.Scope) -> Any:
        left, right = (scope.to_stream(side).filter(lambda pair: pair[1] % 7 > 1) for side in sides)
        return left.join(right, how=how).capture()

    with budgets(None):
        [(time, expected)] = ps.example(build).extract()
    assert time == 0
    assert expected
    with budgets(SMALL) as made:
        [(_, found)] = ps.example(build).extract()
    assert Counter(map(repr, found)) == Counter(map(repr, expected))
    assert written(made) > 0


@pytest.mark.parametrize("workers", [1, 2])
@pytest.mark.parametrize("verb", ["distinct", "value_counts"])
def test_distinct_records_of_a_time_have_the_results_of_memory_without_a_bound(
    verb: str, workers: int
) -> None:
    def main(worker: ps.Worker) -> Any:
        drawn = random.Random(worker.index)
        with worker.dataflow() as scope:
            handle, records = scope.new_input()
            captured = getattr(records, verb)().capture()
        for time in range(3):
            handle.advance_to(time)
            for _ in range(20):
                handle.send_batch([*KEYS, *(drawn.randrange(3000) for _ in range(200))])
                worker.step()
        handle.close()
        return captured

    def made() -> list[Any]:
        parts = ps.execute(main, workers=workers)
        return sorted((time, repr(one)) for part in parts for time, some in part.extract() for one in some)

    with budgets(None):
        expected = made()
    assert len({time for time, _ in expected}) == 3
    with budgets(SMALL) as used:
        assert made() == expected
    assert written(used) > 0, "something was on disk"


def test_states_are_read_listed_and_restored(tmp_path: Path) -> None:
    def build(scope: ps.Scope, numbers: range, state: Any) -> Any:
        return (
            scope.to_stream(numbers)
            .key_by(lambda n: n % 700)
            .scan(_append, default=list, state=state)
            .capture()
        )

    expected = {key: [*range(key, 2100, 700)] for key in range(700)}
    first: Any = ps.KeyedState()
    with budgets(SMALL):
        ps.example(lambda scope: build(scope, range(1400), first))
        assert len(first._states) == 0, "all are on disk"
        assert len(first) == 700
        assert first[5] == [5, 705]
        assert first.get(700) is None
        assert 699 in first
        assert 700 not in first
        second: Any = ps.KeyedState.restore([first.snapshot()])
        ps.example(lambda scope: build(scope, range(1400, 2100), second))
        assert dict(second.items()) == expected


def test_states_in_memory_and_on_disk_are_shown(tmp_path: Path) -> None:
    def main(worker: ps.Worker) -> dict[str, float]:
        with worker.dataflow() as scope:
            handle, numbers = scope.new_input()
            probe = (
                numbers.key_by(lambda n: n)
                .scan(lambda key, n, _: b"x" * 100, default=int, name="sizes")
                .probe()
            )
        for number in range(50):
            handle.send_batch(list(range(1000 * number, 1000 * number + 1000)))
            handle.advance_to(number + 1)
            worker.step_while(partial(probe.less_than, number + 1))
        metrics = metrics_of(worker, "sizes")
        handle.close()
        return metrics

    [metrics] = ps.execute(main, config=ps.Config(memory="4 MiB", spill=tmp_path, dashboard=0))
    assert metrics["operator_state_rows"] == 50_000
    assert 1 << 20 < metrics["operator_state_bytes"] < 4 << 20
    assert metrics["operator_state_on_disk_bytes"] > 50_000 * 100 - metrics["operator_state_bytes"]
    assert 0.8 < metrics["operator_state_bytes"] / metrics["process_budget_used_bytes"] <= 1


def test_files_do_not_grow_with_changes_and_hot_states_stay(tmp_path: Path) -> None:
    budget = Budget(1 << 20, str(tmp_path))
    states: States[int, list[int]] = States()
    states.spill_to(budget.disk("totals"))
    drawn = random.Random(1)
    model: dict[int, list[int]] = {}
    hot = range(200)
    for number in range(400):
        keys = [*hot, *(drawn.randrange(20_000) for _ in range(200))]
        states.bring(keys)
        for key in keys:
            state = states.setdefault(key, [])
            state[:] = [key, number]
            model[key] = [key, number]
        for key in drawn.sample(keys, 5):
            states.pop(key, None)
            model.pop(key, None)
        states.settle()
        if number > 100:
            here = sum(key in states for key in hot)
            assert here > 180, "those that are in each round stay in memory"
    assert states.count() == len(model)
    assert dict(states.every()) == model
    assert sorted(states.every_key()) == sorted(model)
    _, memory, on_disk = states.sizes()
    assert memory < 1 << 20
    assert 0 < on_disk < 150 * len(model)
    for key in range(20_000):
        assert states.find(key) == model.get(key, NO_STATE)


def test_what_cannot_be_pickled_stays_in_memory(tmp_path: Path) -> None:
    states: States[int, Any] = States()
    states.spill_to(Budget(64, str(tmp_path)).disk("totals"))
    states.bring(range(10))
    for key in range(10):
        states[key] = (lambda: 1) if key % 2 else [key]
    states.settle()
    assert sorted(states) == [1, 3, 5, 7, 9]
    assert states.count() == 10
    states.bring(range(10))
    states[3] = [3]
    states.settle()
    assert states.find(4) == [4]
    assert states.find(3) == [3]


def test_each_call_of_the_disk_may_fail_once(tmp_path: Path) -> None:
    """The error names the operator and the folder."""
    failures = 0
    for calls in range(0, 400, 7):

        def main(worker: ps.Worker, calls: int = calls) -> None:
            made[0].fail_after(calls)
            with worker.dataflow() as scope:
                numbers = scope.to_stream([n % 300 for n in range(900)])
                numbers.key_by(lambda n: n).scan(_append, default=list, name="sums")

        raised = ""
        with budgets(SMALL) as made:
            try:
                ps.execute(main, config=ps.Config(spill=tmp_path))
            except ps.PointstampError as error:
                raised = str(error)
        if not raised:
            break
        failures += 1
        assert "sums cannot" in raised
        assert str(tmp_path) in raised
    assert failures > 3


def test_an_error_of_the_logic_is_raised_as_it_is(tmp_path: Path) -> None:
    def fails(key: int, value: int, state: int) -> int:
        if value == 2000:
            raise ValueError("of the program")
        return state + value

    with budgets(SMALL), pytest.raises(ValueError, match="of the program"):
        ps.example(
            lambda scope: scope.to_stream(range(3000)).key_by(lambda n: n % 9).scan(fails, default=int)
        )


class Slotted:
    """A state with slots."""

    __slots__ = ("values",)

    def __init__(self, values: list[float]) -> None:
        self.values = values


def test_sizes_are_those_of_all_that_a_state_has() -> None:
    assert size_of(b"x" * 1000) > 1000
    many = [float(number) for number in range(100_000)]
    whole = 8 * len(many) + 24 * len(many)
    for state in (many, {"values": many}, Slotted(many), [[many]], dict(enumerate(many))):
        assert 0.9 * whole < size_of(state) < 4 * whole, type(state)
    around: list[Any] = []
    around.append(around)
    assert size_of(around) < 200
