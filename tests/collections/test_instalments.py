"""Work in instalments: a large batch, and a key with very many values, do not keep a worker to themselves."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

import pointstamp as ps
from small_fuel import fuel_of

MANY = 300_000


def steps_until(worker: ps.Worker, probe: ps.ProbeHandle, time: int) -> int:
    """Counts the steps until a time has passed."""
    steps = 0
    while probe.less_than(time):
        worker.step()
        steps += 1
        assert steps < 10_000
    return steps


def test_one_key_of_many_values_takes_many_steps() -> None:
    def main(worker: ps.Worker) -> None:
        with worker.dataflow() as scope:
            handle, pairs = scope.new_collection()
            least = pairs.min()
            captured, probe = least.capture(), least.probe()
        handle.insert_many((7, number) for number in range(MANY))
        handle.advance_to(1)
        # What is received, merged, loaded and added up in one step is bounded.
        assert steps_until(worker, probe, 1) > 5
        # One change, and the whole key is gone through again.
        handle.remove((7, 0))
        handle.advance_to(2)
        assert steps_until(worker, probe, 2) > 3
        handle.close()
        worker.run()
        assert captured.extract() == [(0, [((7, 0), 1)]), (1, [((7, 0), -1), ((7, 1), 1)])]

    ps.execute(main)


def test_consolidation_of_a_large_batch_takes_many_steps() -> None:
    def main(worker: ps.Worker) -> None:
        with worker.dataflow() as scope:
            handle, numbers = scope.new_collection()
            summed = numbers.consolidate()
            captured, probe = summed.capture(), summed.probe()
        half = range(MANY // 2)
        handle.insert_many(half)
        handle.insert_many(half)
        handle.advance_to(1)
        worker.step()
        # What comes while a batch is on its way is of its own time.
        handle.remove_many(half)
        handle.advance_to(2)
        assert steps_until(worker, probe, 2) > 3
        handle.close()
        worker.run()
        expected = [(time, [(number, diff) for number in half]) for time, diff in ((0, 2), (1, -1))]
        assert captured.extract() == expected

    ps.execute(main)


def test_a_large_arrangement_comes_out_in_many_steps() -> None:
    """An arrangement can be larger than memory, so its updates may not wait in a queue as a whole."""

    def main(worker: ps.Worker) -> None:
        came: list[int] = [0]
        with worker.dataflow() as scope:
            handle, pairs = scope.new_collection()
            out = pairs.arrange().to_collection()
            probe = out.inspect(lambda pair, time, diff: came.__setitem__(0, came[0] + 1)).probe()
        handle.insert_many((number, 0) for number in range(MANY))
        handle.advance_to(1)
        most = 0
        while probe.less_than(1):
            before = came[0]
            worker.step()
            most = max(most, came[0] - before)
        assert came == [MANY]
        assert most <= MANY // 2
        handle.close()

    ps.execute(main)


Pairs = ps.Collection[tuple[int, int]]
Derive = Callable[[Pairs], ps.Collection[Any]]
OPERATORS: dict[str, Derive] = {
    "consolidate": lambda pairs: pairs.consolidate(),
    "distinct": lambda pairs: pairs.distinct(),
    "min": lambda pairs: pairs.min(),
    "join": lambda pairs: pairs.join(pairs.distinct()),
    "to_collection": lambda pairs: pairs.arrange().to_collection(),
}


@pytest.mark.parametrize("name", OPERATORS)
def test_times_are_complete_while_more_comes_than_is_received(name: str) -> None:
    fuel, epochs = 64, 60

    def main(worker: ps.Worker) -> None:
        with worker.dataflow() as scope:
            handle, pairs = scope.new_collection()
            # Three messages for each that is sent, of which an activation receives one.
            thrice = pairs.concat(pairs, pairs)
            probe = OPERATORS[name](thrice).probe()
        behind = []
        for epoch in range(epochs):
            handle.insert_many((record % 5, 0) for record in range(fuel))
            handle.advance_to(epoch + 1)
            worker.step()
            # How many steps ago what is complete was sent.
            behind.append(next(lag for lag in range(epoch + 2) if not probe.less_than(epoch + 1 - lag)))
        # Input keeps coming, and times are complete some steps after; it does not get more.
        assert max(behind) < 12
        handle.close()
        worker.run()

    with fuel_of(fuel):
        ps.execute(main)


def standing(scope: ps.Scope, values: int) -> Pairs:
    """A collection with `values` values for each of five keys, from the first time on."""
    return scope.collection((key, -value) for key in range(5) for value in range(1, values + 1))


# What each update that comes owes several of: pairs of a join, the values of its key.
OWING: dict[str, Derive] = {
    "join": lambda pairs: pairs.join(standing(pairs.scope, 8)),
    "join by a function": lambda pairs: pairs.join(standing(pairs.scope, 8), lambda k, a, b: (k, a, b)),
    "min": lambda pairs: pairs.concat(standing(pairs.scope, 30)).min(),
    "reduce": lambda pairs: pairs.concat(standing(pairs.scope, 30)).map_groups(
        lambda _, values: [len(values)]
    ),
}


@pytest.mark.parametrize("name", OWING)
def test_times_are_complete_while_each_step_owes_more_than_is_done(name: str) -> None:
    fuel, epochs = 64, 120

    def main(worker: ps.Worker) -> None:
        with worker.dataflow() as scope:
            handle, pairs = scope.new_collection()
            probe = OWING[name](pairs).probe()
        handle.advance_to(1)
        steps_until(worker, probe, 1)
        changed = [(record % 5, record) for record in range(fuel // 4)]
        behind = []
        for epoch in range(1, epochs):
            handle.insert_many(changed)
            handle.advance_to(2 * epoch)
            handle.remove_many(changed)
            handle.advance_to(2 * epoch + 1)
            worker.step()
            behind.append(next(lag for lag in range(epoch + 1) if not probe.less_than(2 * (epoch - lag) + 1)))
        # It falls behind at first, and does more in a step then: the delay does not grow with the steps.
        assert max(behind[epochs // 2 :]) <= max(behind[: epochs // 2]) + 2
        handle.close()
        worker.run()

    with fuel_of(fuel):
        ps.execute(main)
