"""Workers whose graphs are equal, and whose columns or keys are not."""

from collections.abc import Callable
from typing import Any

import pyarrow as pa
import pytest

import pointstamp as ps
from harness import WORKERS, run
from processes_in_threads import outcomes

NUMBERS = pa.table({"n": [1, 2], "k": [3, 4]})
WORDS = pa.table({"n": ["x", "y"], "k": [3, 4]})
Build = Callable[[ps.Scope], Any]


def own(scope: ps.Scope, first: Any, others: Any) -> Any:
    return first if scope.index == 0 else others


AGGREGATES = ({"n_sum": ps.col("n").sum()}, {"n_max": ps.col("n").max()})

DIFFERENT: dict[str, tuple[Build, str, str]] = {
    "types": (
        lambda s: s.to_stream(own(s, NUMBERS, WORDS)).exchange("k").probe(),
        "columns n: int64, k: int64 of 'Dataflow/to_stream'",
        "columns n: string, k: int64 of 'Dataflow/to_stream'",
    ),
    "names": (
        lambda s: s.to_stream(NUMBERS).rename({"n": own(s, "a", "b")}).distinct().probe(),
        "columns a: int64, k: int64 of 'Dataflow/rename'",
        "columns b: int64, k: int64 of 'Dataflow/rename'",
    ),
    "numbers of columns": (
        lambda s: s.to_stream(own(s, NUMBERS, NUMBERS.select(["k"]))).aggregate("k").probe(),
        "columns n: int64, k: int64 of 'Dataflow/to_stream'",
        "columns k: int64 of 'Dataflow/to_stream'",
    ),
    "keys": (
        lambda s: s.to_stream(NUMBERS).exchange(own(s, "n", "k")).to_records().probe(),
        "columns n: int64, k: int64 of 'Dataflow/exchange', placed by n",
        "columns n: int64, k: int64 of 'Dataflow/exchange', placed by k",
    ),
    "aggregations": (
        lambda s: s.to_stream(NUMBERS).aggregate("k", **own(s, *AGGREGATES)).probe(),
        "columns k: int64, n_sum: int64 of 'Dataflow/aggregate', placed by k",
        "columns k: int64, n_max: int64 of 'Dataflow/aggregate', placed by k",
    ),
    "columns of collections": (
        lambda s: s.column_collection(own(s, NUMBERS, WORDS)).distinct().probe(),
        "columns n: int64, k: int64 of 'Dataflow/input'",
        "columns n: string, k: int64 of 'Dataflow/input'",
    ),
}


@pytest.mark.parametrize("workers", WORKERS[1:])
@pytest.mark.parametrize("what", DIFFERENT)
def test_what_differs_is_named(what: str, workers: int) -> None:
    build, first, others = DIFFERENT[what]
    with pytest.raises(ps.GraphError, match="the workers built different dataflows: of dataflow 0") as caught:
        run(workers, build)
    said = str(caught.value)
    assert f"worker 0 has {first}" in said
    assert f"has {others}" in said


def test_what_differs_between_processes_is_named() -> None:
    def main(worker: ps.Worker) -> None:
        with worker.dataflow() as scope:
            DIFFERENT["types"][0](scope)
        worker.run()

    for outcome in outcomes(main, 2, 2):
        assert isinstance(outcome, ps.GraphError)
        assert "columns n: string, k: int64 of 'Dataflow/to_stream'" in str(outcome)


@pytest.mark.parametrize("workers", WORKERS)
def test_metadata_are_the_data_s(workers: int) -> None:
    """A data frame of pandas has the number of its rows there."""

    def main(worker: ps.Worker) -> str:
        with worker.dataflow() as scope:
            told = NUMBERS.replace_schema_metadata({"rows": str(worker.index)})
            scope.to_stream(told).exchange("n").probe()
        worker.run()
        return scope.plan().digest

    assert len(set(ps.execute(main, workers=workers))) == 1


def test_lines_of_the_program_are_not_compared() -> None:
    def build(scope: ps.Scope) -> Any:
        rows = scope.to_stream(NUMBERS)
        if scope.index == 0:
            return rows.exchange("n").to_records().capture()
        return rows.exchange("n").to_records().capture()

    assert sum(len(rows) for captured in run(2, build) for _, rows in captured.extract()) == 4
