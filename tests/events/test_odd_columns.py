"""What columns hold that is odd, and the greatest few of them."""

from __future__ import annotations

from datetime import datetime, timedelta, timezone
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import pointstamp as ps
from effort import examples

SCHEMA = pa.schema([("at", pa.int64()), ("key", pa.string()), ("value", pa.int64())])


def test_zeros_of_both_signs_are_one_key() -> None:
    schema = pa.schema([("key", pa.float64()), ("value", pa.int64())])

    def build(scope: ps.Scope) -> Any:
        rows = scope.to_stream([(0.0, 1), (-0.0, 2), (float("nan"), 3)]).to_arrow(schema)
        return rows.aggregate("key", [("value", "sum"), ("value", "list")]).to_records().capture()

    [(_, rows)] = ps.example(build).extract()
    assert sorted((row["value_sum"], sorted(row["value_list"])) for row in rows) == [(3, [1, 2]), (3, [3])]


@pytest.mark.parametrize("function", ["sum", "list"])
def test_a_result_has_no_two_columns_of_one_name(function: str) -> None:
    schema = pa.schema([(f"v_{function}", pa.int64()), ("v", pa.int64())])
    for by, wanted in ((f"v_{function}", [("v", function)]), ("v", [("v", function)] * 2)):
        with pytest.raises(ps.GraphError, match=f"two columns named 'v_{function}'"):
            ps.example(
                lambda scope, by=by, wanted=wanted: (
                    scope.to_stream([])  # type: ignore[misc]
                    .to_arrow(schema)
                    .aggregate(by, wanted)
                    .to_records()
                    .capture()
                )
            )


def test_times_and_lengths_that_are_too_long_are_named() -> None:
    schema = pa.schema([("at", pa.uint64())])
    with pytest.raises(ps.TimeError, match="an event time is 18446744073709551615"):
        ps.example(
            lambda scope: scope.to_stream([(2**64 - 1,)]).to_arrow(schema).event_time("at")[0].capture()
        )
    for kind in (ps.Tumbling(2**70), ps.Session(gap=2**63), ps.Tumbling(5, offset=2**64)):
        with pytest.raises(ValueError, match="longer than times of 64 bits reach"):
            ps.example(
                lambda scope, kind=kind: (
                    scope.to_stream([])  # type: ignore[misc]
                    .to_arrow(SCHEMA)
                    .window(kind, "key", [("value", "sum")], column="at")
                    .capture()
                )
            )


@settings(max_examples=examples(20))
@given(
    values=st.lists(st.tuples(st.sampled_from("ab"), st.none() | st.integers(-5, 5)), max_size=30),
    count=st.integers(1, 4),
)
def test_the_greatest_few_of_a_time_and_of_a_window(values: list[Any], count: int) -> None:
    rows = [(n, key, value) for n, (key, value) in enumerate(values)]

    def build(scope: ps.Scope) -> Any:
        stream = scope.to_stream(rows).to_arrow(SCHEMA)
        on_time, _ = stream.event_time("at")
        wanted = [("value", f"top_{count}")]
        return (
            stream.aggregate("key", wanted).to_records().capture(),
            on_time.window(ps.Tumbling(10), "key", wanted).to_records().capture(),
        )

    whole, windows = (
        [row for _, found in capture.extract() for row in found] for capture in ps.example(build)
    )

    def greatest(key: str, start: int, end: int) -> list[int]:
        return sorted(
            (v for n, k, v in rows if k == key and start <= n < end and v is not None), reverse=True
        )

    assert {row["key"]: row[f"value_top_{count}"] for row in whole} == {
        key: greatest(key, 0, 100)[:count] for key in {key for key, _ in values}
    }
    for row in windows:
        expected = greatest(row["key"], row["window_start"], row["window_end"])
        assert row[f"value_top_{count}"] == expected[:count]
    assert len(windows) == len({(n // 10, key) for n, key, _ in rows})


def test_the_greatest_are_so_many() -> None:
    with pytest.raises(ps.GraphError, match="such as top_3"):
        ps.example(
            lambda scope: (
                scope.to_stream([]).to_arrow(SCHEMA).aggregate("key", [("value", "top_0")]).capture()
            )
        )


@pytest.mark.parametrize("columns", [False, True])
def test_what_is_ahead_of_the_clock_moves_no_watermark(columns: bool) -> None:
    start = datetime(2024, 5, 1, tzinfo=timezone.utc)
    far = datetime(9999, 12, 31, tzinfo=timezone.utc)
    times = [start, far, start + timedelta(seconds=1)]
    schema = pa.schema([("at", pa.timestamp("us", "UTC"))])

    def build(scope: ps.Scope) -> Any:
        if columns:
            rows = scope.to_stream([(time,) for time in times]).to_arrow(schema)
            on_time, late = rows.event_time("at", ahead=timedelta(days=1))
            return [side.to_records().map(lambda row: row["at"]).capture() for side in (on_time, late)]
        return [
            side.capture()
            for side in scope.to_stream(times).event_time(lambda time: time, ahead=timedelta(days=1))
        ]

    found = [[time for _, some in capture.extract() for time in some] for capture in ps.example(build)]
    assert found == [[start, start + timedelta(seconds=1)], [far]]
    with pytest.raises(TypeError, match="ahead is a timedelta"):
        ps.example(lambda scope: scope.to_stream([1]).event_time(lambda n: n, ahead=5)[0].capture())  # type: ignore[arg-type]


@pytest.mark.parametrize("ahead", [None, timedelta(days=1)])
def test_rows_of_views_may_be_late(ahead: timedelta | None) -> None:
    """Polars hands texts over as views."""
    schema = pa.schema([("at", pa.timestamp("s")), ("text", pa.string_view()), ("raw", pa.binary_view())])
    start = datetime(2024, 5, 1)
    far = [] if ahead is None else [datetime(9999, 1, 1)]

    def build(scope: ps.Scope) -> Any:
        rows = [
            (at, None if at == start else str(at.year), b"x") for at in [start, datetime(2000, 1, 1), *far]
        ]
        streams = scope.to_stream(rows).to_arrow(schema).event_time("at", ahead=ahead)
        return [stream.to_records().map(lambda row: row["text"]).capture() for stream in streams]

    on_time, late = ([text for _, texts in found.extract() for text in texts] for found in ps.example(build))
    assert on_time == [None]
    assert late == ["2000", *(str(at.year) for at in far)]
