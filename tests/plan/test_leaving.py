"""A stream that stands for several outputs of the plan leaves its scope for all of them."""

from collections import Counter
from typing import Any

import pyarrow as pa
import pytest

import pointstamp as ps
from harness import WORKERS, run

TABLE = pa.table({"a": [1, 2, 3], "b": [4, 5, 6]})


def counted(captures: Any) -> int:
    return sum(len(records) for capture in captures for _, records in capture.extract())


@pytest.mark.parametrize("workers", WORKERS)
def test_rows_before_and_after_an_exchange_that_is_left_out(workers: int) -> None:
    def build(scope: ps.Scope) -> Any:
        with scope.region() as inner:
            placed = scope.to_stream(TABLE).enter(inner).exchange("a")
            again = placed.exchange("a").exchange("a")
            return [rows.leave().to_records().capture() for rows in (placed, again, placed, again)]

    for captures in zip(*run(workers, build), strict=True):
        assert counted(captures) == 3 * workers


@pytest.mark.parametrize("workers", WORKERS)
def test_a_collection_before_and_after_it_gets_other_names(workers: int) -> None:
    def build(scope: ps.Scope) -> Any:
        with scope.region() as inner:
            rows = scope.column_collection(TABLE).enter(inner)
            renamed = rows.rename({"a": "c"})
            left = [rows.leave().to_records(), renamed.leave().to_records(), renamed.to_records().leave()]
            return [rows.capture() for rows in left]

    for captures in zip(*run(workers, build), strict=True):
        found = sum((Counter(dict(changes)) for each in captures for _, changes in each.extract()), Counter())
        assert found == dict.fromkeys([(1, 4), (2, 5), (3, 6)], workers)
