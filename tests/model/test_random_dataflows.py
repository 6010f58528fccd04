"""Random dataflows with nested loops against a model: on several workers, and in orders that seeds draw."""

from collections import Counter, defaultdict

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import pointstamp as ps
from effort import examples
from harness import WORKERS, merged, run, share
from pointstamp.testing import simulate
from random_dataflows import Data, Steps, dataflow, inputs, model, programs, written


@settings(max_examples=examples(60))
@given(steps=programs, data=inputs)
@pytest.mark.parametrize("workers", WORKERS)
def test_a_dataflow_is_the_function_that_it_says(
    workers: int, steps: Steps, data: list[tuple[int, int]]
) -> None:
    assert merged(run(workers, lambda scope: built(scope, steps, data))) == expected(steps, data)


@settings(max_examples=examples(40))
@given(
    steps=programs,
    data=inputs,
    workers=st.integers(1, 8),
    seed=st.integers(0, 2**32),
    group=st.integers(1, 4),
)
def test_in_whatever_order_workers_run_and_messages_arrive(
    steps: Steps, data: list[tuple[int, int]], workers: int, seed: int, group: int
) -> None:
    def main(worker: ps.Worker) -> ps.Capture[int]:
        with worker.dataflow() as scope:
            captured = built(scope, steps, data)
        worker.run()
        return captured

    results = simulate(main, workers=workers, seed=seed, progress_mode=f"tree:{group}")
    assert merged(results) == expected(steps, data)


def built(scope: ps.Scope, steps: Steps, data: list[tuple[int, int]]) -> ps.Capture[int]:
    stream = share(scope, data).delay(lambda item, _: item[0]).map(lambda item: item[1])
    return dataflow(steps, stream).capture()


def expected(steps: Steps, data: list[tuple[int, int]]) -> dict[ps.Time, Counter[int]]:
    given_data: Data = defaultdict(Counter)
    for time, record in data:
        given_data[(time,)][record] += 1
    return {written(time): records for time, records in model(steps, given_data).items()}
