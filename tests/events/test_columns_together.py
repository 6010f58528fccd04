"""Streams of columns that are put together: at event times, where all of them are, and what of late rows."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest

import pointstamp as ps
from columns import run as run_columns
from harness import WORKERS, run

SCHEMA = pa.schema([("at", pa.int64()), ("k", pa.string())])


@pytest.mark.parametrize("workers", WORKERS)
def test_rows_of_two_streams_at_their_event_times_are_in_windows_together(workers: int) -> None:
    feeds = [
        [(0, pa.table({"at": [3, 12], "k": ["a", "b"]})), (1, pa.table({"at": [25], "k": ["a"]}))],
        [(0, pa.table({"at": [11, 4], "k": ["b", "a"]})), (1, pa.table({"at": [24], "k": ["a"]}))],
    ]

    def together(first: ps.ArrowStream, second: ps.ArrowStream) -> list[Any]:
        return [stream.event_time("at", lateness=50)[0] for stream in (first, second)]

    def window(*streams: ps.ArrowStream) -> ps.ArrowStream:
        first, second = together(*streams)
        counts: ps.ArrowStream = first.concat(second).window(
            ps.Tumbling(10), "k", k_count=ps.col("k").count()
        )
        return counts

    def of_scope(*streams: ps.ArrowStream) -> ps.ArrowStream:
        first, second = together(*streams)
        both: Any = first.scope.concatenate([first, second])
        return both.running("k", k_count=ps.col("k").count()).select("at", "k_count")  # type: ignore[no-any-return]

    found = run_columns(window, *feeds, workers=workers)
    counts = {time: [(row["k"], row["k_count"]) for row in rows] for time, rows in found.items()}
    assert counts == {9: [("a", 2)], 19: [("b", 2)], 29: [("a", 2)]}
    scanned = run_columns(of_scope, *feeds, workers=workers)
    assert {time: [row["k_count"] for row in rows] for time, rows in scanned.items()} == {
        3: [1],
        4: [2],
        11: [1],
        12: [2],
        24: [3],
        25: [4],
    }


def test_windows_of_late_rows_say_that_records_have_them() -> None:
    feed = [(0, pa.table({"at": [25, 3, 26], "k": ["a", "a", "a"]}))]

    def both(rows: ps.ArrowStream) -> tuple[ps.ArrowStream, ps.ArrowStream]:
        return rows.event_time("at", lateness=2)

    def window(rows: ps.ArrowStream, column: str | None = None) -> ps.ArrowStream:
        on_time, late = both(rows)
        return on_time.concat(late).window(ps.Tumbling(10), "k", k_count=ps.col("k").count(), column=column)

    cure = r"on_time\.to_records\(\)\.concat\(late\.to_records\(\)\)"
    with pytest.raises(ps.GraphError, match=cure):
        run_columns(window, feed)
    with pytest.raises(ps.TimeError, match=f"event time 3, before 23.*{cure}"):
        run_columns(lambda rows: window(rows, "at"), feed)

    def cured(scope: ps.Scope) -> Any:
        on_time, late = both(scope.to_stream([(25, "a"), (3, "a"), (26, "a")]).to_arrow(SCHEMA))
        records: Any = on_time.to_records().concat(late.to_records())
        return records.key_by(lambda row: row["k"]).window(ps.Tumbling(10)).count().capture()

    [counts] = run(1, cured)
    assert counts.extract() == [(29, [("a", ps.Window(20, 30), 3)])]
