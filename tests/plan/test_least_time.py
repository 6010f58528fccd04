"""Joins per time of sides that never meet, because one is at the least time, give a warning."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import pointstamp as ps
from pointstamp.connectors import CSVSource, JSONLinesSource

EVENTS = pa.table({"at": [3, 4], "k": ["a", "b"]})
ROWS = pa.table({"k": ["a"], "v": [1]})


def of_file(scope: ps.Scope, folder: Path, **times: Any) -> Any:
    path = folder / f"{len(times)}.csv"
    path.write_text("at,k\n3,a\n4,b\n", encoding="utf-8")
    return scope.read(CSVSource(path), **times)


def of_lines(scope: ps.Scope, folder: Path, **times: Any) -> Any:
    path = folder / f"{len(times)}.jsonl"
    path.write_text('{"at": 3, "k": "a"}\n', encoding="utf-8")
    return scope.read(JSONLinesSource(path), **times)


WHOLE: dict[str, Callable[[ps.Scope, Path], Any]] = {
    "a table": lambda scope, _: scope.to_stream(ROWS),
    "a table, filtered and moved": lambda scope, _: (
        scope.to_stream(ROWS).filter(ps.col("v") > 0).exchange("k")
    ),
    "a file": lambda scope, folder: of_file(scope, folder).select("k"),
    "two tables": lambda scope, _: scope.to_stream(ROWS).concat(scope.to_stream(ROWS)),
}
TIMED: dict[str, Callable[[ps.Scope, Path], Any]] = {
    "delayed": lambda scope, _: scope.to_stream(EVENTS).delay("at"),
    "at event times": lambda scope, _: scope.to_stream(EVENTS).event_time("at")[0].filter(ps.col("at") > 0),
    "read at times": lambda scope, folder: of_file(scope, folder, time="at"),
    "read at event times": lambda scope, folder: of_file(scope, folder, event_time="at")[0],
}
UNKNOWN: dict[str, Callable[[ps.Scope, Path], Any]] = {
    "an input": lambda scope, _: ps.ArrowInput(ROWS.schema).to_stream(scope),
    "of a window": lambda scope, _: scope.to_stream(EVENTS).window(
        ps.Tumbling(10), "k", n=ps.count(), column="at"
    ),
}


def warned(build: Callable[[ps.Scope], Any]) -> list[str]:
    with warnings.catch_warnings(record=True) as found:
        warnings.simplefilter("always")
        ps.example(build)
    return [str(one.message) for one in found if one.category is ps.UsageWarning]


@pytest.mark.parametrize("timed", TIMED)
@pytest.mark.parametrize("whole", WHOLE)
def test_a_table_and_rows_with_times_never_meet(tmp_path: Path, whole: str, timed: str) -> None:
    def build(scope: ps.Scope) -> Any:
        one, two = TIMED[timed](scope, tmp_path), WHOLE[whole](scope, tmp_path)
        return one.join(two, "k").probe(), two.join(one, "k").probe()

    first, second = warned(build)
    assert "all of the right side is at the least time, and the left side has times of its own" in first
    assert "all of the left side is at the least time" in second
    assert "join_so_far pairs rows across times" in first


@pytest.mark.parametrize("other", [*WHOLE, *UNKNOWN])
@pytest.mark.parametrize("side", WHOLE)
def test_sides_that_may_meet_give_no_warning(tmp_path: Path, side: str, other: str) -> None:
    def build(scope: ps.Scope) -> Any:
        one, two = WHOLE[side](scope, tmp_path), {**WHOLE, **UNKNOWN}[other](scope, tmp_path)
        return one.join(two, "k").probe()

    assert warned(build) == []


def test_joins_of_records_warn_too(tmp_path: Path) -> None:
    def build(scope: ps.Scope) -> Any:
        whole = of_lines(scope, tmp_path).map(lambda line: (line["k"], 1))
        timed = of_lines(scope, tmp_path, time=lambda line: line["at"]).map(lambda line: (line["k"], 2))
        on_time = scope.to_stream([("a", 3)]).event_time(lambda pair: pair[1])[0]
        return whole.join(timed).probe(), on_time.join(whole).probe(), whole.join(whole).probe()

    first, second = warned(build)
    assert "to_collection().join pairs records that stay" in first
    assert "all of the right side is at the least time" in second


def driven(main: Callable[[ps.Worker], Any], workers: int) -> list[warnings.WarningMessage]:
    with warnings.catch_warnings(record=True) as found:
        warnings.simplefilter("always")
        ps.execute(main, workers=workers)
    return [one for one in found if one.category is ps.UsageWarning]


@pytest.mark.parametrize("workers", [1, 2])
@pytest.mark.parametrize("later", [True, False])
@pytest.mark.parametrize("whole", [0, 1])
@pytest.mark.parametrize("kind", ["columns", "records"])
def test_later_rows_of_an_input_that_meet_nothing_give_a_warning(
    kind: str, whole: int, later: bool, workers: int
) -> None:
    """Once for each worker, at the line of the join."""

    def main(worker: ps.Worker) -> None:
        rows: Any = ps.ArrowInput(ROWS.schema) if kind == "columns" else ps.InputHandle()
        table: Any = ROWS if kind == "columns" else [("a", 1)]
        with worker.dataflow() as scope:
            sides: list[Any] = [scope.to_stream(table), rows.to_stream(scope)]
            on = ["k"] if kind == "columns" else []
            joined = sides[whole].join(sides[1 - whole], *on)
            probe = joined.probe()
        for time in range(4):
            rows.send(ROWS if kind == "columns" else ("a", 2)) if later or not time else None
            rows.advance_to(time + 1)
            worker.step_while(partial(probe.less_than, time + 1))
        rows.close()

    found = driven(main, workers)
    assert len(found) == (1 if later else 0)  # one worker has the key
    for warning in found:
        side, other = ("left", "right") if whole == 0 else ("right", "left")
        said = str(warning.message)
        assert f"all of the {side} side is at the least time, and rows of the {other} side come later" in said
        line = Path(__file__).read_text(encoding="utf-8").splitlines()[warning.lineno - 1]
        assert warning.filename == __file__
        assert ".join(" in line


@pytest.mark.parametrize(
    "whole",
    [
        lambda scope: scope.to_stream([("a", 1)]),
        lambda scope: scope.to_stream([("a", 1)]).distinct(),
        lambda scope: scope.to_stream(["a"]).value_counts(),
    ],
)
def test_records_at_the_least_time_and_records_with_times_never_meet(
    whole: Callable[[ps.Scope], Any],
) -> None:
    def build(scope: ps.Scope) -> Any:
        timed = scope.to_stream([("a", 2)]).delay(lambda record, _: record[1])
        return whole(scope).join(timed).probe(), whole(scope).join(timed.distinct()).probe()

    found = warned(build)
    assert len(found) == 2
    assert all("all of the left side is at the least time" in one for one in found)


def test_nothing_is_claimed_of_what_is_far_away() -> None:
    """A join looks at a bounded number of nodes."""

    def build(scope: ps.Scope) -> Any:
        rows = scope.to_stream(ROWS)
        for _ in range(200):
            rows = rows.filter(ps.col("v") > 0)
        return scope.to_stream(EVENTS).delay("at").join(rows, "k").probe()

    assert warned(build) == []
