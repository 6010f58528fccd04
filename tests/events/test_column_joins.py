"""Joins in time of columns against brute force, on events out of order, late, skewed, and of workers that
are idle."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from datetime import datetime, timedelta, timezone
from typing import Any

import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import pointstamp as ps
from effort import examples
from event_data import Event, events, shares, timely
from harness import WORKERS, run

LEFT = pa.schema([("at", pa.int64()), ("key", pa.string()), ("value", pa.int64())])
RIGHT = pa.schema([("at", pa.int64()), ("key", pa.string()), ("other", pa.int64())])
LATENESS = 7

Join = Callable[[ps.ArrowStream, ps.ArrowStream], ps.ArrowStream]


def rows(scope: ps.Scope, data: list[Event], schema: pa.Schema) -> ps.ArrowStream:
    records = scope.to_stream(data).map_batches(lambda batch: [tuple(event) for event in batch])
    return records.to_arrow(schema).event_time("at", lateness=LATENESS)[0]


def joined(
    workers: int, idle: bool, left: list[Event], right: list[Event], join: Join
) -> Counter[tuple[Any, ...]]:
    """Each result's time and columns."""

    def build(scope: ps.Scope) -> Any:
        sides = [
            rows(scope, shares(data, workers, idle)[scope.index], schema)
            for data, schema in ((left, LEFT), (right, RIGHT))
        ]
        return join(*sides).to_records().capture()

    return Counter(
        (time, *row.values())
        for capture in run(workers, build)
        for time, found in capture.extract()
        for row in found
    )


def on_workers(test: Callable[..., None]) -> Any:
    return pytest.mark.parametrize("workers", WORKERS)(settings(max_examples=examples(15))(test))


HOW = st.sampled_from(["inner", "left", "right", "full", "semi", "anti"])
KEYS: Any = st.sampled_from(["a", "a", "a", "b", None])


@st.composite
def sides(draw: st.DrawFn) -> list[Any]:
    """Events, of which some have no key."""
    return [event._replace(key=draw(KEYS)) for event in draw(events(25))]


@on_workers
@given(
    left=sides(),
    right=sides(),
    idle=st.booleans(),
    how=HOW,
    lower=st.integers(-15, 15),
    span=st.integers(0, 20),
)
def test_interval_join(
    workers: int, left: list[Event], right: list[Event], idle: bool, how: Any, lower: int, span: int
) -> None:
    upper = lower + span
    found = joined(
        workers,
        idle,
        left,
        right,
        lambda a, b: a.interval_join(b, "key", lower=lower, upper=upper, how=how),
    )
    sorted_sides: Any = [timely(data, workers, idle, LATENESS) for data in (left, right)]
    ours, theirs = sorted_sides
    pairs = [
        (a, b)
        for a in ours
        for b in theirs
        if None is not a.key == b.key and a.at + lower <= b.at <= a.at + upper
    ]
    expected: list[Any] = [(max(a.at, b.at), *a, b.at, b.value, max(a.at, b.at)) for a, b in pairs]
    if how == "semi":
        firsts = {a: min(max(a.at, b.at) for one, b in pairs if one is a) for a, _ in pairs}
        expected = [(first, *a, first) for a, first in firsts.items()]
    if how == "anti":
        expected = []
    if how in ("left", "full", "anti"):
        for a in set(ours) - {a for a, _ in pairs}:
            due = a.at if a.key is None else max(a.at, a.at + upper)
            expected.append((due, *a, due) if how == "anti" else (due, *a, None, None, due))
    if how in ("right", "full"):
        for b in set(theirs) - {b for _, b in pairs}:
            due = b.at if b.key is None else max(b.at, b.at - lower)
            expected.append((due, None, b.key, None, b.at, b.value, due))
    assert found == Counter(expected)


KINDS: Any = (
    st.builds(ps.Tumbling, st.integers(1, 30), offset=st.integers(0, 40))
    | st.tuples(st.integers(1, 30), st.integers(1, 30), st.integers(0, 40)).map(
        lambda drawn: ps.Sliding(drawn[0], every=min(drawn[:2]), offset=drawn[2])
    )
    | st.builds(lambda gap: ps.Session(gap=gap), st.integers(1, 30))
)


def windows_of(kind: Any, times: list[int]) -> list[tuple[int, int]]:
    """The windows in which rows of one key at these times are."""
    if isinstance(kind, ps.Session):
        gap: Any = kind.gap
        found: list[list[int]] = []
        for time in sorted(times):
            if not found or time - found[-1][1] >= gap:
                found.append([time, time])
            found[-1][1] = time
        return [(first, last + gap) for first, last in found]
    length: Any = kind.length
    every: Any = kind.every if isinstance(kind, ps.Sliding) else length
    offset: Any = kind.offset
    starts = {time - back for time in times for back in range(length) if (time - back - offset) % every == 0}
    return [(start, start + length) for start in starts]


@on_workers
@given(left=sides(), right=sides(), idle=st.booleans(), how=HOW, kind=KINDS)
def test_window_join(
    workers: int, left: list[Event], right: list[Event], idle: bool, how: Any, kind: Any
) -> None:
    found = joined(workers, idle, left, right, lambda a, b: a.window_join(b, "key", kind, how=how))
    sorted_sides: Any = [timely(data, workers, idle, LATENESS) for data in (left, right)]
    ours, theirs = sorted_sides
    expected: list[Any] = []
    # A null matches nothing: each row without a key is by itself.
    groups = [[event] for event in [*ours, *theirs] if event.key is None]
    groups += [[e for e in [*ours, *theirs] if e.key == key] for key in "ab"]
    mine = set(map(id, ours))
    for group in groups:
        for start, end in windows_of(kind, [event.at for event in group]):
            inside = [event for event in group if start <= event.at < end]
            lefts: list[Any] = [event for event in inside if id(event) in mine]
            rights: list[Any] = [event for event in inside if id(event) not in mine]
            if how in ("semi", "anti"):
                if bool(rights) == (how == "semi"):
                    expected += [(end - 1, *a, start, end) for a in lefts]
                continue
            for a in lefts or [None] * (how in ("right", "full")):
                for b in rights or [None] * (how in ("left", "full")):
                    here = tuple(a) if a else (None, b.key, None)
                    there = (b.at, b.value) if b else (None, None)
                    expected.append((end - 1, *here, *there, start, end))
    assert found == Counter(expected)


@on_workers
@given(left=sides(), right=sides(), how=HOW, kind=KINDS)
def test_window_join_of_records(
    workers: int, left: list[Event], right: list[Event], how: Any, kind: Any
) -> None:
    """Records may have None as their key, and columns may not."""
    given_sides: Any = (left, right)
    left, right = ([event for event in data if event.key is not None] for data in given_sides)
    found = joined(workers, False, left, right, lambda a, b: a.window_join(b, "key", kind, how=how))

    def build(scope: ps.Scope) -> Any:
        windowed = []
        for data in (left, right):
            mine = scope.to_stream(shares(data, workers, False)[scope.index])
            on_time, _ = mine.event_time(lambda event: event.at, lateness=LATENESS)
            windowed.append(on_time.key_by(lambda event: event.key).window(kind))
        return windowed[0].join(windowed[1], how=how).capture()

    expected: list[Any] = []
    for capture in run(workers, build):
        for time, results in capture.extract():
            for key, window, found_one in results:
                if how in ("semi", "anti"):
                    expected.append((time, *found_one, *window))
                    continue
                a, b = found_one
                here = tuple(a) if a else (None, key, None)
                there = (b.at, b.value) if b else (None, None)
                expected.append((time, *here, *there, *window))
    assert found == Counter(expected)


def told_apart(data: list[Event]) -> list[Event]:
    """One event of each key and time, since the latest of several is not defined."""
    return list({(event.at, event.key): event for event in data}.values())


@on_workers
@given(
    left=sides(),
    right=sides(),
    idle=st.booleans(),
    within=st.none() | st.integers(0, 20),
    how=st.sampled_from(["left", "inner"]),
)
def test_asof_join(
    workers: int, left: list[Event], right: list[Event], idle: bool, within: int | None, how: Any
) -> None:
    right = told_apart(right)
    found = joined(workers, idle, left, right, lambda a, b: a.asof_join(b, "key", within=within, how=how))
    theirs: list[Any] = timely(right, workers, idle, LATENESS)  # a key may be None
    expected: list[Any] = []
    for a in timely(left, workers, idle, LATENESS):
        before = [b for b in theirs if None is not a.key == b.key and b.at <= a.at]
        latest = max(before, key=lambda b: b.at, default=None)
        if latest is not None and (within is None or a.at - latest.at <= within):
            expected.append((a.at, *a, latest.at, latest.value))
        elif how == "left":
            expected.append((a.at, *a, None, None))
    assert found == Counter(expected)


@on_workers
@given(
    left=sides(),
    right=sides(),
    idle=st.booleans(),
    ttl=st.none() | st.integers(1, 20),
    how=st.sampled_from(["left", "inner"]),
)
def test_table_join(
    workers: int, left: list[Event], right: list[Event], idle: bool, ttl: int | None, how: Any
) -> None:
    """A row of the table whose value is a multiple of three ends the one before it."""
    right = told_apart(right)

    def join(a: ps.ArrowStream, b: ps.ArrowStream) -> ps.ArrowStream:
        table = b.with_columns(gone=pl.col("other") % 3 == 0)
        made = a.table_join(table, "key", ends="gone", ttl=ttl, how=how)
        return made.select("at", "key", "value", "other")

    found = joined(workers, idle, left, right, join)
    theirs: list[Any] = timely(right, workers, idle, LATENESS)  # a key may be None
    expected: list[Any] = []
    for a in timely(left, workers, idle, LATENESS):
        before = [b for b in theirs if None is not a.key == b.key and b.at <= a.at]
        row = max(before, key=lambda b: b.at, default=None)
        if row is not None and row.value % 3 and (ttl is None or a.at - row.at < ttl):
            expected.append((a.at, *a, row.value))
        elif how == "left":
            expected.append((a.at, *a, None))
    assert found == Counter(expected)


def test_timestamps_keys_of_several_columns_and_dictionaries() -> None:
    start = datetime(2024, 5, 1, tzinfo=timezone.utc)
    words = pa.dictionary(pa.int8(), pa.string())
    schema = pa.schema(
        [("at", pa.timestamp("ms", "UTC")), ("a", pa.int32()), ("b", words), ("more", pa.list_(pa.int64()))]
    )

    def side(scope: ps.Scope, step: int) -> ps.ArrowStream:
        table = [
            {"at": start + timedelta(seconds=n * step), "a": n % 2, "b": f"w{n % 3}", "more": [n]}
            for n in range(600)
        ]
        stream = scope.to_stream(table).to_arrow(schema.set(2, pa.field("b", pa.string())))
        packed = stream.map_batches(lambda batch: batch.cast(schema), schema)
        return packed.event_time("at", lateness=timedelta(hours=1))[0]

    def build(scope: ps.Scope) -> Any:
        left, right = side(scope, 2), side(scope, 3)
        pairs = left.interval_join(right, ["a", "b"], lower=timedelta(0), upper=timedelta(seconds=3))
        latest = left.asof_join(right, ["a", "b"], within=timedelta(seconds=30))
        return pairs.to_records().capture(), latest.to_records().capture()

    pairs, latest = ([row for _, rows in found.extract() for row in rows] for found in ps.example(build))
    match = [(n, m) for n in range(600) for m in range(600) if n % 6 == m % 6 and 0 <= 3 * m - 2 * n <= 3]
    assert sorted((row["more"][0], row["more_right"][0]) for row in pairs) == match
    assert all(row["joined_at"] == max(row["at"], row["at_right"]) for row in pairs)
    assert {row["b"] for row in pairs} == {"w0", "w1", "w2"}
    for row in latest:
        n = row["more"][0]
        before = [m for m in range(600) if m % 6 == n % 6 and 0 <= 2 * n - 3 * m <= 30]
        assert row["more_right"] == ([max(before)] if before else None)


def test_windows_of_pairs_go_by_the_time_of_the_pair() -> None:
    def build(scope: ps.Scope) -> Any:
        left = rows(scope, [Event(3, "a", 1), Event(9, "a", 2)], LEFT)
        right = rows(scope, [Event(12, "a", 5)], RIGHT)
        pairs = left.interval_join(right, "key", lower=0, upper=20)
        return pairs.window(ps.Tumbling(10), "key", value_sum=ps.col("value").sum()).to_records().capture()

    found = ps.example(build).extract()
    assert found == [(19, [{"key": "a", "window_start": 10, "window_end": 20, "value_sum": 3}])]


def test_what_makes_no_sense_is_refused() -> None:
    def build(join: Join, kind: Any = None) -> None:
        def both(scope: ps.Scope) -> None:
            left = rows(scope, [], LEFT)
            right = (
                scope.to_stream([])
                .to_arrow(RIGHT.set(0, pa.field("at", kind or pa.int64())))
                .event_time("at")[0]
            )
            join(left, right)

        ps.example(both)

    with pytest.raises(ValueError, match="lower is at most upper"):
        build(lambda a, b: a.interval_join(b, "key", lower=2, upper=1))
    with pytest.raises(TypeError, match="joins another ArrowStream"):
        build(lambda a, b: a.asof_join(b.to_records(), "key"))  # type: ignore[arg-type]
    with pytest.raises(ps.GraphError, match="the times of both sides need one type"):
        build(lambda a, b: a.asof_join(b, "key"), pa.timestamp("us"))
    with pytest.raises(ps.GraphError, match="no column of times is known of the left side"):
        build(lambda a, b: a.select("key").asof_join(b, "key"))
    with pytest.raises(ps.GraphError, match="is not of booleans"):
        build(lambda a, b: a.table_join(b, "key", ends="key"))
    with pytest.raises(ps.GraphError, match="'value'"):
        build(lambda a, b: a.interval_join(b, "key", lower=0, upper=1, joined_at="value"))
    with pytest.raises(ValueError, match="how is one of"):
        build(lambda a, b: a.interval_join(b, "key", lower=0, upper=1, how="sideways"))  # type: ignore[arg-type]
    for how in ("right", "full"):
        with pytest.raises(ValueError, match=f"asof_join looks up .* not '{how}'"):
            build(lambda a, b, how=how: a.asof_join(b, "key", how=how))  # type: ignore[misc]
        with pytest.raises(ValueError, match=f"table_join looks up .* not '{how}'"):
            build(lambda a, b, how=how: a.table_join(b, "key", how=how))  # type: ignore[misc]
    with pytest.raises(ValueError, match="at least 0, not -1"):
        build(lambda a, b: a.asof_join(b, "key", within=-1))
    for ttl in (0, -1):
        with pytest.raises(ValueError, match=f"more than 0, not {ttl}"):
            build(lambda a, b, ttl=ttl: a.table_join(b, "key", ttl=ttl))  # type: ignore[misc]
    with pytest.raises(ValueError, match=r"over tumbling or sliding windows or sessions, not Count"):
        build(lambda a, b: a.window_join(b, "key", ps.Count(2)))
    with pytest.raises(TypeError, match="a window is Tumbling"):
        build(lambda a, b: a.window_join(b, "key", 5))  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="or a pair of names, not 3"):
        build(lambda a, b: a.window_join(b, "key", ps.Tumbling(5), column=3))  # type: ignore[arg-type]
    with pytest.raises(ps.GraphError, match="'window_start'"):
        build(lambda a, b: a.with_columns(window_start=pl.col("at")).window_join(b, "key", ps.Tumbling(5)))
