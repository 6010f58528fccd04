"""Runs tests on simulated workers: `pytest -p on_simulation --seed 7 ...`, with tests/support on the path.

Where a test asks `pointstamp.execute` for several workers, `pointstamp.testing.simulate` runs them, each time
with another seed, counted from the given one: so each run of a test sees another order.
"""

import itertools
from collections.abc import Callable
from typing import Any

import pytest

import pointstamp as ps
from pointstamp.testing import simulate

alone = ps.execute
seeds = itertools.count()
simulated = 0
"""The number of computations."""


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--seed", type=int, default=0, help="the first seed")


def pytest_configure(config: pytest.Config) -> None:
    global seeds
    seeds = itertools.count(config.getoption("--seed"))

    def execute(main: Callable[[ps.Worker], Any], *, workers: int = 1, **options: Any) -> list[Any]:
        if options or workers < 2:
            return alone(main, workers=workers, **options)
        global simulated
        simulated += 1
        seed = next(seeds)
        print(f"simulated with seed {seed}")  # which pytest shows where a test fails
        try:
            return simulate(main, workers=workers, seed=seed)
        except BaseException as error:
            others: Any = error  # the tests look at the notes before the last
            others.__notes__.pop()
            if not others.__notes__:
                del others.__notes__
            raise

    ps.execute = execute


def pytest_sessionfinish() -> None:
    assert simulated, "no test has asked for several workers"
    print(f"\n{simulated} computations were simulated")
