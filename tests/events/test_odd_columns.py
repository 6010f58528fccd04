"""Odd values of columns, and the greatest few of them."""

from __future__ import annotations

import math
from collections import Counter
from datetime import datetime, timedelta, timezone
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import pointstamp as ps
from aggregates import named
from effort import examples

SCHEMA = pa.schema([("at", pa.int64()), ("key", pa.string()), ("value", pa.int64())])


def test_zeros_of_both_signs_are_one_key() -> None:
    schema = pa.schema([("key", pa.float64()), ("value", pa.int64())])

    def build(scope: ps.Scope) -> Any:
        rows = scope.to_stream([(0.0, 1), (-0.0, 2), (float("nan"), 3)]).to_arrow(schema)
        return (
            rows.aggregate("key", value_sum=ps.col("value").sum(), value_list=ps.col("value").collect())
            .to_records()
            .capture()
        )

    [(_, rows)] = ps.example(build).extract()
    assert sorted((row["value_sum"], sorted(row["value_list"])) for row in rows) == [(3, [1, 2]), (3, [3])]


@pytest.mark.parametrize("function", ["sum", "list"])
def test_a_result_has_no_two_columns_of_one_name(function: str) -> None:
    schema = pa.schema([(f"v_{function}", pa.int64()), ("v", pa.int64())])
    for by, wanted in ((f"v_{function}", [("v", function)]),):
        with pytest.raises(ps.GraphError, match=f"two columns named 'v_{function}'"):
            ps.example(
                lambda scope, by=by, wanted=wanted: (
                    scope.to_stream([])  # type: ignore[misc]
                    .to_arrow(schema)
                    .aggregate(by, **named(wanted))
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
                    .window(kind, "key", value_sum=ps.col("value").sum(), column="at")
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
            stream.aggregate("key", **named(wanted)).to_records().capture(),
            on_time.window(ps.Tumbling(10), "key", **named(wanted)).to_records().capture(),
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
    with pytest.raises(ValueError, match="top_k takes a number of values, at least 1"):
        ps.example(
            lambda scope: (
                scope.to_stream([])
                .to_arrow(SCHEMA)
                .aggregate("key", value_top_0=ps.col("value").top_k(0))
                .capture()
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


NAN = float("nan")
OTHER_NAN = float(np.array([0xFFF8000000000001], "uint64").view("float64")[0])
KEYS = [NAN, 0.0, OTHER_NAN, -0.0, None, NAN, 1.5]
COUNT = [("value", "count")]
BY_KEY: dict[str, Any] = {
    "tumbling": lambda a, b, by, s: a.window(ps.Tumbling(50), by, **named(COUNT), state=s, column="at"),
    "session": lambda a, b, by, s: a.window(ps.Session(gap=50), by, **named(COUNT), state=s, column="at"),
    "scan": lambda a, b, by, s: a.running(by, **named(COUNT), state=s, column="at"),
    "dedup": lambda a, b, by, s: a.dedup(by, state=s, column="at"),
    "window join": lambda a, b, by, s: a.window_join(b, by, ps.Tumbling(50), state=s, column="at"),
    "interval join": lambda a, b, by, s: a.interval_join(b, by, lower=-9, upper=9, state=s, column="at"),
    "as-of join": lambda a, b, by, s: a.asof_join(b, by, how="inner", state=s, column="at"),
}


def rows_of_keys(form: str, first: int, last: int) -> pa.RecordBatch:
    """Rows of some of the keys, a unit apart: these as they are, in a struct, or beside another column."""
    numbers = list(range(first, last))
    column: Any = pa.array([KEYS[n] for n in numbers], pa.float64())
    if form == "struct":
        column = pa.StructArray.from_arrays([column], names=["x"], mask=pc.is_null(column))
    columns = [pa.array(numbers, pa.int64()), column, pa.array(numbers, pa.int64())]
    return pa.record_batch(
        [*columns, pa.array([7.0] * len(numbers), pa.float64())], ["at", "key", "value", "other"]
    )


def counted(name: str, form: str, parts: list[tuple[int, int]], snapshot: bytes | None) -> Any:
    """Returns the results of both sides' rows, by key; the rows kept then; and the keys that are listed."""
    by = ["key", "other"] if form == "two columns" else ["key"]

    def main(worker: ps.Worker) -> Any:
        state: ps.KeyedState[Any, Any] = ps.KeyedState.restore([] if snapshot is None else [snapshot])
        handles = [ps.ArrowInput(rows_of_keys(form, 0, 0).schema) for _ in range(2)]
        with worker.dataflow() as scope:
            captured = BY_KEY[name](*(handle.to_stream(scope) for handle in handles), by, state)
            results = captured.to_records().capture()
        for first, last in parts:
            for handle in handles:
                handle.advance_to(first)
                handle.send(rows_of_keys(form, first, last))
        end = parts[-1][1]
        for handle in handles:
            handle.advance_to(end)
        worker.step_while(lambda: state.frontier != end)
        kept, listed = state.snapshot(), list(dict(state.items()))
        if end == len(KEYS):
            for handle in handles:
                handle.close()
            worker.run()
        return [row for _, rows in results.extract() for row in rows], kept, listed

    [found] = ps.execute(main)
    return found


def shown(key: Any) -> str:
    while isinstance(key, dict | tuple):
        key = next(iter(key.values() if isinstance(key, dict) else key))
    return "None" if key is None else "nan" if math.isnan(key) else str(key + 0.0)


@pytest.mark.parametrize("form", ["plain", "struct", "two columns"])
@pytest.mark.parametrize("name", BY_KEY)
def test_nans_and_zeros_of_both_signs_are_one_key_each(name: str, form: str) -> None:
    """Each operator by key has one key, in its results, in the listed state, and after a restore."""
    whole, _, _ = counted(name, form, [(0, 3), (3, 7)], None)
    first, snapshot, listed = counted(name, form, [(0, 4)], None)
    second, _, _ = counted(name, form, [(4, 7)], snapshot)
    assert sorted(map(shown, listed)) == ["0.0", "nan"]
    assert sorted(map(repr, first + second)) == sorted(map(repr, whole))
    if "value_count" in whole[0]:
        most = Counter[str]()
        for row in whole:
            most[shown(row["key"])] = max(most[shown(row["key"])], row["value_count"])
        assert most == {"nan": 3, "0.0": 2, "None": 1, "1.5": 1}
        return
    expected = {"nan": 9, "0.0": 4, "1.5": 1}  # a null matches nothing
    if name == "as-of join":
        expected = {"nan": 3, "0.0": 2, "1.5": 1}
    elif name == "dedup":
        expected = {"nan": 1, "0.0": 1, "None": 1, "1.5": 1}
    assert Counter(shown(row["key"]) for row in whole) == expected


@pytest.mark.parametrize("workers", [1, 2])
def test_keys_that_are_lists_and_structs_are_listed(workers: int) -> None:
    schema = pa.schema([("at", pa.int64()), ("key", pa.list_(pa.struct([("x", pa.float64())])))])
    rows = [{"at": n, "key": [{"x": x}]} for n, x in enumerate([NAN, 0.0, -0.0, OTHER_NAN])]

    def main(worker: ps.Worker) -> Any:
        state: ps.KeyedState[Any, Any] = ps.KeyedState()
        source = ps.ArrowInput(schema)
        with worker.dataflow() as scope:
            source.to_stream(scope).running("key", at_count=ps.col("at").count(), column="at", state=state)
        source.send(pa.Table.from_pylist(rows[worker.index :: worker.peers], schema=schema))
        source.advance_to(9)
        worker.step_while(lambda: state.frontier != 9)
        return {key: row["at_count"] for key, row in state.items()}

    listed: dict[Any, int] = {}
    for found in ps.execute(main, workers=workers):
        listed.update(found)
    assert {shown(key): count for key, count in listed.items()} == {"nan": 2, "0.0": 2}
    assert listed[((math.nan,),)] == 2


WINDOWS: dict[str, Any] = {
    "tumbling": lambda rows, _: rows.window(ps.Tumbling(100), "key", value_count=ps.col("value").count()),
    "sliding": lambda rows, _: rows.window(
        ps.Sliding(10, every=5), "key", value_count=ps.col("value").count()
    ),
    "offset": lambda rows, _: rows.window(
        ps.Tumbling(50, offset=33), "key", value_count=ps.col("value").count()
    ),
    "early": lambda rows, _: rows.window(
        ps.Sliding(10, every=5), "key", value_sum=ps.col("value").sum(), early=5
    ),
    "session": lambda rows, _: rows.window(ps.Session(gap=10), "key", value_sum=ps.col("value").sum()),
    "window_join": lambda rows, more: rows.window_join(more, "key", ps.Sliding(10, every=5), how="full"),
    "interval_join": lambda rows, more: rows.interval_join(more, "key", lower=50, upper=99, how="full"),
}


@pytest.mark.parametrize("kind", WINDOWS)
@pytest.mark.parametrize("times", ["uint8", "uint64", "int8", "int32"])
def test_windows_reach_beyond_the_numbers_of_a_column(times: str, kind: str) -> None:
    """The first begins before 0, and the last ends after what 8 bits hold: their bounds are of 64 bits."""

    def found(times: pa.DataType, other: pa.DataType) -> Any:
        def stream(scope: ps.Scope, times: pa.DataType) -> Any:
            rows = [(3, "a", 1), (120, "a", 2), (127, "b", 4)]
            return scope.to_stream(rows).to_arrow(SCHEMA.set(0, pa.field("at", times))).event_time("at")[0]

        def build(scope: ps.Scope) -> Any:
            return WINDOWS[kind](stream(scope, times), stream(scope, other)).to_records().capture()

        return ps.example(build).extract()

    narrow, wide = getattr(pa, times)(), pa.int64()
    expected = found(wide, wide)
    assert expected
    assert found(narrow, narrow) == found(narrow, wide) == expected


def test_bounds_have_the_type_of_timestamps_and_64_bits_of_integers() -> None:
    types = {pa.uint16(): pa.int64(), pa.timestamp("ms"): pa.timestamp("ms"), pa.date32(): pa.date32()}
    for times, bounds in types.items():
        length = 10 if pa.types.is_integer(times) else timedelta(days=10)

        def build(scope: ps.Scope, times: Any = times, length: Any = length) -> Any:
            schema = SCHEMA.set(0, pa.field("at", times))
            rows = scope.to_stream([]).to_arrow(schema)
            window = rows.window(ps.Tumbling(length), "key", value_sum=ps.col("value").sum(), column="at")
            return [window.schema.field(name).type for name in ("window_start", "window_end")]

        assert ps.example(build) == [bounds, bounds]
