"""Columns by event time, compared with Polars and with operators on records."""

from __future__ import annotations

import statistics
from collections import Counter
from collections.abc import Callable
from datetime import datetime, timedelta, timezone
from typing import Any

import polars as pl
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import pointstamp as ps
from aggregates import named
from columns import bag
from columns import run as run_columns
from effort import examples
from event_data import Event, events, shares, split, timely
from harness import WORKERS, run

SCHEMA = pa.schema([("at", pa.int64()), ("key", pa.string()), ("value", pa.int64())])


def rows_of(scope: ps.Scope, data: list[Event], schema: pa.Schema = SCHEMA) -> ps.ArrowStream:
    return scope.to_stream(data).map_batches(lambda batch: [tuple(event) for event in batch]).to_arrow(schema)


def captured(workers: int, build: Callable[[ps.Scope], Any]) -> list[dict[str, Any]]:
    return [
        row
        for capture in run(workers, lambda scope: build(scope).to_records().capture())
        for _, rows in capture.extract()
        for row in rows
    ]


def on_workers(test: Callable[..., None]) -> Any:
    return pytest.mark.parametrize("workers", WORKERS)(settings(max_examples=examples(12))(test))


@on_workers
@given(data=events(), lateness=st.sampled_from([0, 2, 10, 1000]), idle=st.booleans())
def test_rows_are_on_time_or_late_as_records_are(
    workers: int, data: list[Event], lateness: int, idle: bool
) -> None:
    mine = shares(data, workers, idle)

    def build(scope: ps.Scope) -> Any:
        on_time, late = rows_of(scope, mine[scope.index]).event_time("at", lateness=lateness)
        return on_time.to_records().capture(), late.to_records().capture()

    for share, (on_time, late) in zip(mine, run(workers, build), strict=True):
        expected, behind = split(share, lateness)
        found = [(at, row) for at, rows in on_time.extract() for row in rows]
        assert all(at == row["at"] for at, row in found)
        assert bag(row for _, row in found) == bag(expected)
        assert bag(row for _, rows in late.extract() for row in rows) == bag(behind)


WANTED = [("value", "sum"), ("value", "count"), ("value", "min"), ("value", "max"), ("value", "mean")]


@on_workers
@given(
    data=events(),
    lateness=st.sampled_from([0, 5, 100]),
    idle=st.booleans(),
    kind=st.builds(lambda gap: ps.Session(gap=gap), st.integers(1, 30))
    | st.builds(ps.Count, st.integers(1, 5)),
)
def test_sessions_and_counted_windows_are_those_of_records(
    workers: int, data: list[Event], lateness: int, idle: bool, kind: Any
) -> None:
    """Records of one time and key come in no order where there are several workers: there is one of each."""
    data = list({(event.at, event.key): event for event in data}.values())
    mine = shares(data, workers, idle)

    def build(scope: ps.Scope) -> Any:
        rows, _ = rows_of(scope, mine[scope.index]).event_time("at", lateness=lateness)
        records, _ = scope.to_stream(mine[scope.index]).event_time(lambda event: event.at, lateness=lateness)
        values = records.key_by(lambda event: event.key, lambda event: event.value)
        return (
            rows.window(kind, "key", **named(WANTED)).to_records().capture(),
            values.window(kind).collect().capture(),
        )

    found, expected = [], []
    for columns, records in run(workers, build):
        found += [(at, *row.values()) for at, rows in columns.extract() for row in rows]
        expected += [
            (at, key, *window, sum(v), len(v), min(v), max(v), sum(v) / len(v))
            for at, results in records.extract()
            for key, window, v in results
        ]
    assert sorted(found) == sorted(expected)


@pytest.mark.parametrize("kind", [ps.Session(gap=timedelta(seconds=4)), ps.Count(2)])
@pytest.mark.parametrize("by", ["key", ["key", "odd"], []])
def test_sessions_of_timestamps_by_any_key(kind: Any, by: Any) -> None:
    """Null keys, keys of several columns and of none; enough windows that closed ones make room."""
    start = datetime(2024, 5, 1, tzinfo=timezone.utc)
    rows = [
        {"at": start + timedelta(seconds=n), "key": [None, "a", "b"][n % 3], "odd": n % 2 == 1, "value": n}
        for n in range(3000)
        if n % 10 < 6
    ]
    schema = pa.schema(
        [("at", pa.timestamp("ms", "UTC")), ("key", pa.string()), ("odd", pa.bool_()), ("value", pa.int32())]
    )
    keys = [by] if isinstance(by, str) else by

    def build(scope: ps.Scope) -> Any:
        on_time, _ = scope.to_stream(rows).to_arrow(schema).event_time("at", lateness=timedelta(seconds=50))
        records, _ = scope.to_stream(rows).event_time(lambda row: row["at"], lateness=timedelta(seconds=50))
        by_key = records.key_by(lambda row: tuple(row[name] for name in keys), lambda row: row["value"])
        return (
            on_time.window(kind, by, value_sum=ps.col("value").sum()).to_records().capture(),
            by_key.window(kind).sum().capture(),
        )

    columns, records = ps.example(build)
    # The end of a counted window is a unit after its last row, and the units differ.
    ended = isinstance(kind, ps.Session)
    found = [
        (
            *[row[name] for name in keys],
            row["window_start"],
            row["window_end"] if ended else None,
            row["value_sum"],
        )
        for _, some in columns.extract()
        for row in some
    ]
    expected = [
        (*key, window.start, window.end if ended else None, total)
        for _, some in records.extract()
        for key, window, total in some
    ]
    assert Counter(found) == Counter(expected)
    assert len(found) > 400 or by == []


KEPT = [
    *[("value", function) for function in ("list", "nunique", "sum", "quantile_1.0", "median", "top_2")],
    *[("value", function) for function in ("first", "last")],
]


@st.composite
def kinds(draw: st.DrawFn) -> Any:
    """A window of any kind."""
    length = draw(st.integers(1, 30))
    offset = draw(st.integers(0, 40))
    every = draw(st.integers(1, length))
    return draw(
        st.sampled_from(
            [
                ps.Tumbling(length, offset=offset),
                ps.Sliding(length, every=every, offset=offset),
                ps.Session(gap=length),
                ps.Count(1 + length % 5),
            ]
        )
    )


@on_workers
@given(data=events(), kind=kinds(), with_state=st.booleans())
def test_windows_that_keep_their_values_are_those_of_records(
    workers: int, data: list[Event], kind: Any, with_state: bool
) -> None:
    data = list({(event.at, event.key): event for event in data}.values())
    mine = shares(data, workers, False)

    def build(scope: ps.Scope) -> Any:
        rows, _ = rows_of(scope, mine[scope.index]).event_time("at", lateness=5)
        records, _ = scope.to_stream(mine[scope.index]).event_time(lambda event: event.at, lateness=5)
        values = records.key_by(lambda event: event.key)
        state: Any = ps.KeyedState() if with_state else None
        return (
            rows.window(kind, "key", **named(KEPT), state=state).to_records().capture(),
            values.window(kind).collect().capture(),
        )

    found, expected = [], []
    for columns, records in run(workers, build):
        in_order = with_state or isinstance(kind, ps.Session | ps.Count)
        for at, rows in columns.extract():
            for row in rows:
                key, start, end, values, *results = row.values()
                if not in_order:  # they are as they came
                    assert [values[0], values[-1]] == results[-2:]
                    results[-2:] = [None, None]
                    values.sort()
                found.append((at, key, start, end, values, *results))
        for at, made in records.extract():
            for key, window, kept in made:
                v = [event.value for event in kept]
                ends = [v[0], v[-1]] if in_order else [None, None]
                v = v if in_order else sorted(v)
                top = sorted(v, reverse=True)[:2]
                results = [len(set(v)), sum(v), float(max(v)), statistics.median(v), top, *ends]
                expected.append((at, key, *window, v, *results))
    assert sorted(found, key=repr) == sorted(expected, key=repr)


@pytest.mark.parametrize("kind", [ps.Tumbling(10), ps.Sliding(10, every=5)])
def test_early_results_of_windows_that_keep_their_values(kind: Any) -> None:
    data = [Event(at, "a", at) for at in (1, 3, 8, 12)]

    def build(scope: ps.Scope) -> Any:
        rows, _ = rows_of(scope, data).event_time("at", lateness=99)
        return rows.window(
            kind, "key", value_list=ps.col("value").collect(), value_median=ps.col("value").median(), early=4
        ).capture()

    found = [
        (at, row["window_start"], row["value_list"], row["value_median"])
        for at, batches in ps.example(build).extract()
        for batch in batches
        for row in batch.to_pylist()
    ]
    tumbling = [(3, 0, [1, 3], 2.0), (9, 0, [1, 3, 8], 3.0), (15, 10, [12], 12.0), (19, 10, [12], 12.0)]
    assert set(map(str, tumbling)) <= set(map(str, found))
    if isinstance(kind, ps.Tumbling):
        assert found == tumbling


def test_windows_that_keep_their_values_say_what_is_wrong() -> None:
    def build(window: Any, wanted: list[tuple[str, str]]) -> Any:
        return lambda scope: (
            rows_of(scope, []).window(window, [], **named(wanted), column="at").to_records().capture()
        )

    for window in (ps.Tumbling(5), ps.Session(gap=5), ps.Count(5)):
        assert ps.example(build(window, [("value", "first")])).extract() == []
        with pytest.raises(ps.GraphError, match="no column 'valu'"):
            ps.example(build(window, [("valu", "first")]))
        with pytest.raises(ValueError, match="top_k takes a number of values"):
            ps.example(build(window, [("value", "top_-1")]))
        with pytest.raises(ps.GraphError, match="quantile is not defined for column 'key'"):
            ps.example(build(window, [("key", "median")]))


@on_workers
@given(data=events(), length=st.integers(1, 30), every=st.integers(1, 30), offset=st.integers(0, 40))
def test_windows_are_those_of_polars(
    workers: int, data: list[Event], length: int, every: int, offset: int
) -> None:
    every = min(length, every)
    window: Any = ps.Tumbling(length, offset=offset)
    if every < length:
        window = ps.Sliding(length, every=every, offset=offset)

    def build(scope: ps.Scope) -> Any:
        on_time, _ = rows_of(scope, shares(data, workers, False)[scope.index]).event_time("at", lateness=5)
        return on_time.window(window, "key", **named(WANTED))

    found = captured(workers, build)
    frame = pl.DataFrame(
        [tuple(event) for event in timely(data, workers, False, 5)],
        schema={"at": pl.Int64, "key": pl.String, "value": pl.Int64},
        orient="row",
    )
    if frame.is_empty():
        assert found == []
        return
    # Polars leaves out windows that begin before the first row: a row of each key is put long before.
    first = pl.DataFrame([(-100, key, 0) for key in "ab"], schema=frame.schema, orient="row")
    value = pl.col("value")
    expected = (
        first.vstack(frame)
        .group_by_dynamic(
            "at",
            every=f"{every}i",
            period=f"{length}i",
            offset=f"{offset % every}i",
            group_by="key",
            start_by="window",
            closed="left",
        )
        .agg(
            value.sum().alias("value_sum"),
            value.count().alias("value_count"),
            value.min().alias("value_min"),
            value.max().alias("value_max"),
            value.mean().alias("value_mean"),
        )
    )
    rows = [
        (row["key"], row["at"], row["at"] + length, *[row[f"value_{name}"] for _, name in WANTED])
        for row in expected.to_dicts()
        if row["at"] > -100
    ]
    assert bag(found) == bag(rows)


@settings(max_examples=examples(20))
@given(data=events(), every=st.integers(1, 12))
def test_windows_over_all_rows_and_those_of_records_agree(data: list[Event], every: int) -> None:
    window = ps.Sliding(12, every=every)

    def columns(scope: ps.Scope) -> Any:
        on_time, _ = rows_of(scope, data if scope.index == 0 else []).event_time("at", lateness=5)
        return on_time.window(window, [], value_sum=ps.col("value").sum())

    def records(scope: ps.Scope) -> Any:
        mine = scope.to_stream(data if scope.index == 0 else [])
        on_time, _ = mine.event_time(lambda event: event.at, lateness=5)
        return on_time.window(window).sum(lambda event: event.value).capture()

    expected = [
        (*bounds, total)
        for capture in run(2, records)
        for _, found in capture.extract()
        for bounds, total in found
    ]
    assert bag(captured(2, columns)) == bag(expected)


def test_timestamps_have_the_units_of_their_column() -> None:
    start = datetime(2024, 5, 1, tzinfo=timezone.utc)
    times = [start + timedelta(seconds=seconds) for seconds in (1, 59, 60, 200)]
    for unit in ("s", "ms", "us", "ns"):
        schema = pa.schema([("at", pa.timestamp(unit, "UTC")), ("key", pa.string())])

        def build(scope: ps.Scope, schema: pa.Schema = schema) -> Any:
            rows = scope.to_stream([(at, "k") for at in times]).to_arrow(schema)
            on_time, _ = rows.event_time("at", lateness=timedelta(minutes=1))
            return on_time.window(ps.Tumbling(timedelta(minutes=1)), "key", key_count=ps.col("key").count())

        found = captured(1, build)
        assert [(row["window_start"], row["key_count"]) for row in found] == [
            (start, 2),
            (start + timedelta(minutes=1), 1),
            (start + timedelta(minutes=3), 1),
        ]
        assert all(row["window_end"] - row["window_start"] == timedelta(minutes=1) for row in found)


def test_windows_of_a_plain_stream_name_their_column() -> None:
    feed = [(0, pa.table({"at": [3, 12], "k": ["a", "a"]})), (10, pa.table({"at": [11], "k": ["a"]}))]

    def window(rows: ps.ArrowStream) -> ps.ArrowStream:
        return rows.window(ps.Tumbling(10), "k", k_count=ps.col("k").count(), column="at")

    found = run_columns(window, feed)
    assert {time: [row["k_count"] for row in rows] for time, rows in found.items()} == {9: [1], 19: [2]}
    with pytest.raises(ps.GraphError, match="no column of times is known"):
        run_columns(lambda rows: rows.window(ps.Tumbling(10), "k", k_count=ps.col("k").count()), feed)
    with pytest.raises(ps.TimeError, match="event time 11, before 12"):
        run_columns(window, [(12, feed[1][1])])


@pytest.mark.parametrize(
    ("times", "program", "error", "message"),
    [
        ([1, None], lambda rows: rows.event_time("at")[0], ps.TimeError, "no event time, but null"),
        ([-1], lambda rows: rows.event_time("at")[0], ps.TimeError, "below 0"),
        ([1], lambda rows: rows.event_time("key")[0], ps.GraphError, "tells no times"),
        ([1], lambda rows: rows.event_time("when")[0], ps.GraphError, "no column 'when'"),
        ([1], lambda rows: rows.event_time("at", lateness=timedelta(1))[0], TypeError, "give an int"),
        ([1], lambda rows: rows.event_time("at", lateness=-1)[0], ValueError, "at least 0"),
        (
            [1],
            lambda rows: rows.window("ten", "key", column="at"),
            TypeError,
            "a window is Tumbling, Sliding, Session or Count, not 'ten'",
        ),
        ([1], lambda rows: rows.select("nothing"), ps.GraphError, "no column 'nothing'"),
        ([1], lambda rows: rows.filter(3), TypeError, "an expression over columns is ps.col"),
        ([1], lambda rows: rows.limit(-1), ValueError, "at least 0"),
        (
            [1],
            lambda rows: rows.aggregate("key", at_quantile_2=ps.col("at").quantile(2)),
            ValueError,
            "is not a quantile",
        ),
        (
            [1],
            lambda rows: rows.aggregate("key", no_first=ps.col("no").first()),
            ps.GraphError,
            "no column 'no'",
        ),
    ],
)
def test_what_makes_no_sense_is_refused(
    times: list[Any], program: Callable[[Any], Any], error: type[Exception], message: str
) -> None:
    def build(scope: ps.Scope) -> Any:
        rows = scope.to_stream([(at, "k", 0) for at in times]).to_arrow(SCHEMA)
        return program(rows)

    with pytest.raises(error, match=message):
        captured(1, build)


def test_delay_moves_rows_to_their_times() -> None:
    def build(scope: ps.Scope) -> Any:
        rows = rows_of(scope, [Event(5, "a", 0), Event(2, "b", 1), Event(5, "c", 2)])
        return rows.delay("at").to_records().map(lambda row: row["key"]).capture()

    assert ps.example(build).extract() == [(2, ["b"]), (5, ["a", "c"])]


# ------------------------------------------------------------ every day

DATA = [Event(at, "abc"[at % 3], at * 7 % 10) for at in range(30)]
FRAME = pl.DataFrame([tuple(event) for event in DATA], schema=["at", "key", "value"], orient="row")

EXPRESSIONS: list[
    tuple[Callable[[ps.ArrowStream], ps.ArrowStream], Callable[[pl.DataFrame], pl.DataFrame]]
] = [
    (lambda s: s.filter(pc.field("value") > 4), lambda f: f.filter(pl.col("value") > 4)),
    (lambda s: s.filter(pl.col("key") == "a"), lambda f: f.filter(pl.col("key") == "a")),
    (lambda s: s.filter(lambda batch: pc.less(batch["at"], 9)), lambda f: f.filter(pl.col("at") < 9)),
    (lambda s: s.select("value", "at"), lambda f: f.select("value", "at")),
    (lambda s: s.rename({"value": "v"}), lambda f: f.rename({"value": "v"})),
    (
        lambda s: s.with_columns(double=pc.field("value") * 2, at=pl.col("at") + pl.col("value")),
        lambda f: f.with_columns(at=pl.col("at") + pl.col("value"), double=pl.col("value") * 2),
    ),
    (
        lambda s: s.with_columns(key=pl.col("key").str.to_uppercase(), one=lambda batch: batch["at"]),
        lambda f: f.with_columns(key=pl.col("key").str.to_uppercase(), one=pl.col("at")),
    ),
    (
        lambda s: s.aggregate([], value_sum=ps.col("value").sum(), value_max=ps.col("value").max()),
        lambda f: f.select(pl.col("value").sum().alias("s"), pl.col("value").max().alias("m")),
    ),
    (
        lambda s: s.aggregate(
            "key", value_nunique=ps.col("value").distinct_count(), at_sum=ps.col("at").sum()
        ),
        lambda f: f.group_by("key").agg(pl.col("value").n_unique(), pl.col("at").sum()),
    ),
    (
        lambda s: s.sort(["value", "at"]).aggregate(
            "key", at_list=ps.col("at").collect(), at_first=ps.col("at").first(), at_last=ps.col("at").last()
        ),
        lambda f: (
            f.sort("value", "at")
            .group_by("key")
            .agg(pl.col("at"), pl.col("at").first().alias("f"), pl.col("at").last().alias("l"))
        ),
    ),
    (
        lambda s: s.sort("value", descending=True).limit(3).select("value"),
        lambda f: f.select("value").top_k(3, by="value"),
    ),
]


@pytest.mark.parametrize("workers", WORKERS)
@pytest.mark.parametrize("number", range(len(EXPRESSIONS)))
@pytest.mark.parametrize("timely_rows", [False, True])
def test_every_day_as_polars_has_it(number: int, workers: int, timely_rows: bool) -> None:
    ours, theirs = EXPRESSIONS[number]

    def build(scope: ps.Scope) -> Any:
        rows = rows_of(scope, DATA[scope.index :: scope.peers])
        if timely_rows:  # what reads rows as they travel before they are at their times
            kept = ours(rows.with_columns(zero=pc.field("at") * 0).event_time("zero")[0])
            return kept.select(*[name for name in kept.schema.names if name != "zero"])
        return ours(rows)

    found = captured(workers, build)
    if number == 9:
        order = {at: n for n, at in enumerate(FRAME.sort("value", "at")["at"])}
        for row in found:
            assert row["at_list"] == sorted(row["at_list"], key=order.__getitem__)
    assert bag(found) == bag(theirs(FRAME).rows())


def test_quantiles_of_columns() -> None:
    wanted = [("value", "median"), ("value", "quantile_0.9"), ("value", "quantile_0")]
    found = captured(2, lambda s: rows_of(s, DATA[s.index :: 2]).aggregate([], **named(wanted)))
    assert found == [{"value_median": 4.5, "value_quantile_0.9": pytest.approx(8.1), "value_quantile_0": 0.0}]


def test_limit_and_sort_are_per_time() -> None:
    feed = [(0, pa.table({"n": [3, 1, 2]})), (1, pa.table({"n": [9, 7, 8]}))]
    found = run_columns(lambda rows: rows.sort("n").limit(2), feed, workers=2)
    assert found == {0: [{"n": 1}, {"n": 2}], 1: [{"n": 7}, {"n": 8}]}


def test_windows_after_expressions_read_rows_as_they_travel() -> None:
    def build(scope: ps.Scope) -> Any:
        on_time, _ = rows_of(scope, DATA).event_time("at")
        kept = on_time.filter(pc.field("value") < 5).with_columns(twice=pc.field("value") * 2)
        assert kept._output.time_column == "at"
        moved = on_time.with_columns(at=pc.field("at") + 1)
        assert moved._output.time_column is None
        return kept.window(ps.Tumbling(10), [], twice_sum=ps.col("twice").sum())

    expected = [
        (start, start + 10, sum(2 * e.value for e in DATA if start <= e.at < start + 10 and e.value < 5))
        for start in (0, 10, 20)
    ]
    assert bag(captured(1, build)) == bag(expected)


SECOND = [ps.Tumbling(12), ps.Tumbling(7, offset=3), ps.Sliding(20, every=8), ps.Session(gap=4)]


@pytest.mark.parametrize("second", SECOND, ids=str)
@pytest.mark.parametrize("first", [ps.Tumbling(4), ps.Sliding(6, every=3), ps.Session(gap=3)], ids=str)
@settings(max_examples=examples(8))
@given(data=events(), kept=st.booleans(), early=st.booleans())
def test_windows_of_windows_are_those_of_records(
    first: Any, second: Any, data: list[Event], kept: bool, early: bool
) -> None:
    """Their results are at the last instants of their windows, whatever is done with columns in between."""
    soon: Any = {"early": 5} if early and not isinstance(first, ps.Session) else {}

    def of_columns(scope: ps.Scope) -> Any:
        on_time, _ = rows_of(scope, data).event_time("at", lateness=10)
        sums = on_time.window(first, "key", value_sum=ps.col("value").sum(), **soon)
        sums = sums.filter(pc.field("value_sum") != 3).with_columns(double=pc.field("value_sum") * 2)
        halves = (
            sums.select("key", "double")
            .filter(pc.field("double") > 4)
            .concat(sums.select("key", "double").filter(pc.field("double") <= 4))
        )
        state: Any = {"state": ps.KeyedState()} if kept else {}
        made = halves.window(
            second, "key", double_sum=ps.col("double").sum(), double_count=ps.col("double").count(), **state
        )
        return made.to_records().capture()

    def of_records(scope: ps.Scope) -> Any:
        on_time, _ = scope.to_stream(data).event_time(lambda event: event.at, lateness=10)
        sums = on_time.key_by(lambda event: event.key).window(first, **soon).sum(lambda event: event.value)
        doubled = sums.filter(lambda row: row[2] != 3).map(lambda row: (row[0], 2 * row[2]))
        again = doubled.key_by(lambda row: row[0]).window(second)
        return again.collect(lambda row: row[1]).capture()

    [columns], [records] = run(1, of_columns), run(1, of_records)
    expected = Counter(
        (at, key, tuple(span), sum(values), len(values))
        for at, found in records.extract()
        for key, span, values in found
    )
    assert expected == Counter((at, *by_window(row)) for at, rows in columns.extract() for row in rows)


def by_window(row: dict[str, Any]) -> tuple[Any, ...]:
    span = (row["window_start"], row["window_end"])
    return row["key"], span, row["double_sum"], row["double_count"]


def test_windows_of_windows_of_timestamps() -> None:
    hour = timedelta(hours=1)
    start = datetime(2024, 5, 1, 9, tzinfo=timezone.utc)
    schema = pa.schema([("at", pa.timestamp("ms", "UTC")), ("key", pa.string()), ("value", pa.int64())])
    data = [(start + minutes * timedelta(minutes=1), "a", minutes) for minutes in (0, 59, 60, 61)]

    def build(scope: ps.Scope) -> Any:
        on_time, _ = scope.to_stream(data).to_arrow(schema).event_time("at", lateness=2 * hour)
        sums = on_time.window(ps.Tumbling(hour / 2), [], value_sum=ps.col("value").sum())
        return (
            sums.window(ps.Tumbling(hour), [], value_sum_list=ps.col("value_sum").collect())
            .to_records()
            .capture()
        )

    [captured] = run(1, build)
    assert [row for _, rows in captured.extract() for row in rows] == [
        {"window_start": start, "window_end": start + hour, "value_sum_list": [0, 59]},
        {"window_start": start + hour, "window_end": start + 2 * hour, "value_sum_list": [121]},
    ]


NUMBERS = st.sampled_from([float("nan"), None, -1.5, 0.0, 2.5, float("inf"), float("-inf")])


@pytest.mark.parametrize("data_type", [pa.float64(), pa.float32()], ids=str)
@settings(max_examples=examples(60))
@given(values=st.lists(NUMBERS, max_size=5))
def test_the_last_of_what_is_so_far_is_what_is_in_all(data_type: pa.DataType, values: list[Any]) -> None:
    """Extremes of NaNs and nulls: the last result of `scan` is that of `aggregate` and `window`."""
    schema = pa.schema([("at", pa.int64()), ("key", pa.string()), ("value", data_type)])
    wanted = [("value", "min"), ("value", "max"), ("value", "count"), ("value", "sum"), ("value", "mean")]
    columns = [f"value_{function}" for _, function in wanted]

    def build(scope: ps.Scope) -> Any:
        rows = scope.to_stream([(at, "a", value) for at, value in enumerate(values)]).to_arrow(schema)
        on_time, _ = rows.event_time("at", lateness=99)
        so_far = on_time.running("key", **named(wanted)).select("at", *columns)
        window = on_time.window(ps.Tumbling(100), "key", **named(wanted)).select(*columns)
        whole = rows.aggregate("key", **named(wanted)).select(*columns)
        return [stream.to_records().capture() for stream in (so_far, window, whole)]

    [captures] = run(1, build)
    so_far, window, whole = [[row for _, rows in each.extract() for row in rows] for each in captures]
    last = [list(row.values())[1:] for row in so_far if row["at"] == len(values) - 1]
    same = [[list(row.values()) for row in rows] for rows in (window, whole)]
    assert repr(same[0]) == repr(last)
    assert repr(same[1]) == repr(last)
