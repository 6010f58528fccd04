"""Graphs that are large in one way or another are built and run: in linear time, or the test times out."""

from typing import Any

import pytest

import pointstamp as ps

PORTS = 100_000


def total(stream: ps.Stream[Any]) -> list[int]:
    counts: list[int] = []
    stream.count().inspect(counts.append)
    return counts


def test_an_operator_with_very_many_inputs() -> None:
    def build(scope: ps.Scope) -> list[int]:
        return total(scope.concatenate([scope.to_stream([1])] * PORTS))

    assert ps.example(build) == [PORTS]


def test_an_operator_with_very_many_outputs() -> None:
    def build(scope: ps.Scope) -> list[int]:
        return total(scope.concatenate(scope.to_stream(range(PORTS)).partition(PORTS, lambda x: (x, x))))

    assert ps.example(build) == [PORTS]


@pytest.mark.parametrize("workers", [1, 2])
def test_a_grid_of_operators(workers: int) -> None:
    """Each operator reads its neighbours above and to the left; a frontier moves through all of them."""
    size = 100

    def main(worker: ps.Worker) -> list[int]:
        handle: ps.InputHandle[int] = ps.InputHandle()
        with worker.dataflow() as scope:
            first = handle.to_stream(scope)
            row = [first.filter(lambda x: x == column) for column in range(size)]
            for _ in range(size):
                left = first.filter(lambda x: False)
                for column in range(size):
                    left = row[column] = scope.concatenate([left, row[column]])
            counts = total(row[-1])
            probe = row[-1].probe()
        for time in range(3):
            handle.advance_to(time + 1)
            worker.step_while(lambda: probe.less_than(time + 1))
        handle.close()
        return counts

    assert ps.execute(main, workers=workers) == [[]] * workers


@pytest.mark.parametrize("depth", [60])
def test_scopes_nested_very_deep(depth: int) -> None:
    def build(scope: ps.Scope) -> Any:
        def inside(scope: ps.Scope, stream: ps.Stream[int], left: int) -> ps.Stream[int]:
            if left == 0:
                return stream.map(lambda x: x + 1)
            with scope.iterative() as inner:
                return inside(inner, stream.enter(inner), left - 1).leave()

        return inside(scope, scope.to_stream([1, 2]), depth).capture()

    assert ps.example(build).extract() == [(0, [2, 3])]
