"""NaN is one key and one value across a checkpoint, too: unpickled NaNs are other objects."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import pointstamp as ps
from resuming import Found, run_until_stopped, settings, stop_at_checkpoint

NAN = float("nan")

Build = Callable[[ps.Stream[Any]], ps.Stream[Any]]


def keyed(records: ps.Stream[Any]) -> ps.KeyedStream[Any, int]:
    """Keys the records; each waits for a time of its own."""
    return records.delay(lambda record, _: record[2]).key_by(
        lambda record: record[0], lambda record: record[1]
    )


@pytest.mark.parametrize("key", [NAN, (1, NAN)], ids=["nan", "tuple"])
@pytest.mark.parametrize(
    ("build", "expected"),
    [
        (lambda records: keyed(records).scan(lambda _, n, total: total + n, default=int), [1, 11]),
        (lambda records: keyed(records).running("sum"), [1, 11]),
        (lambda records: keyed(records).window(ps.Tumbling(10)).count(), [2]),
    ],
    ids=["scan", "running", "window"],
)
def test_a_key_with_nan_is_one_key(tmp_path: Path, key: Any, build: Build, expected: list[int]) -> None:
    shown: list[int] = []

    def main(worker: ps.Worker) -> None:
        with worker.dataflow() as scope:
            handle, stream = scope.new_input(resume="continue")
            found = Found(build(stream))
        if worker.resumed is None:
            handle.send((key, 1, 0))
            handle.send((key, 10, 5))  # it waits for time 5
            handle.advance_to(1)
            try:
                stop_at_checkpoint(worker)
            finally:
                shown.extend(record[-1] for _, record in found.records)
        handle.close()
        worker.run()
        shown.extend(record[-1] for _, record in found.records)

    run_until_stopped(main, settings(tmp_path))
    ps.execute(main, config=settings(tmp_path))
    assert shown == expected


def test_nan_is_one_of_the_values_that_are_counted(tmp_path: Path) -> None:
    def main(worker: ps.Worker) -> list[Any]:
        with worker.dataflow() as scope:
            handle, stream = scope.new_input(resume="continue")
            counts = stream.key_by(lambda _: "a").window(ps.Tumbling(10)).distinct_count()
            found = Found(counts)
        handle.send(float("nan"))
        handle.send((1, float("nan")))
        if worker.resumed is None:
            handle.advance_to(1)
            stop_at_checkpoint(worker)
        handle.close()
        worker.run()
        return [record[-1] for _, record in found.records]

    run_until_stopped(main, settings(tmp_path))
    [found] = ps.execute(main, config=settings(tmp_path))
    assert found == [2]
