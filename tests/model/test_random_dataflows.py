"""Random dataflows with nested loops against a model, on several workers."""

from collections import Counter, defaultdict

import pytest
from hypothesis import given, settings

import pointstamp as ps
from effort import examples
from harness import WORKERS, merged, run, share
from random_dataflows import Data, Steps, dataflow, inputs, model, programs, written


@settings(max_examples=examples(60))
@given(steps=programs, data=inputs)
@pytest.mark.parametrize("workers", WORKERS)
def test_a_dataflow_is_the_function_that_it_says(
    workers: int, steps: Steps, data: list[tuple[int, int]]
) -> None:
    def build(scope: ps.Scope) -> ps.Capture[int]:
        stream = share(scope, data).delay(lambda item, _: item[0]).map(lambda item: item[1])
        return dataflow(steps, stream).capture()

    given_data: Data = defaultdict(Counter)
    for time, record in data:
        given_data[(time,)][record] += 1
    expected = {written(time): records for time, records in model(steps, given_data).items()}
    assert merged(run(workers, build)) == expected
