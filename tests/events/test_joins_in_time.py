"""Joins in time against brute force: every pair looked at."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import pointstamp as ps
from effort import examples
from event_data import Event, collected, events
from harness import WORKERS, run
from pointstamp.logic.joins_in_time import AsOf, Interval
from pointstamp.logic.timed_rows import Results, Rows


def joined(
    workers: int,
    left: list[Event],
    right: list[Event],
    join: Callable[[ps.KeyedStream[str, Event], ps.KeyedStream[str, Event]], ps.Stream[Any]],
) -> Counter[Any]:
    """The pairs, with their times, of events that are all on time."""

    def build(scope: ps.Scope) -> Any:
        sides = []
        for data in (left, right):
            mine = scope.to_stream(data[scope.index :: scope.peers])
            on_time, _ = mine.event_time(lambda event: event.at, lateness=1000)
            sides.append(on_time.key_by(lambda event: event.key))
        return join(*sides).capture()

    return Counter(
        (time, record)
        for capture in run(workers, build)
        for time, records in capture.extract()
        for record in records
    )


def on_workers(test: Callable[..., None]) -> Any:
    return pytest.mark.parametrize("workers", WORKERS)(settings(max_examples=examples(15))(test))


HOW = st.sampled_from(["inner", "left", "right", "full", "semi", "anti"])


@on_workers
@given(left=events(20), right=events(20), how=HOW, lower=st.integers(-15, 15), span=st.integers(0, 20))
def test_interval_join(
    workers: int, left: list[Event], right: list[Event], how: Any, lower: int, span: int
) -> None:
    upper = lower + span
    found = joined(workers, left, right, lambda a, b: a.interval_join(b, lower=lower, upper=upper, how=how))
    pairs = [(a, b) for a in left for b in right if a.key == b.key and a.at + lower <= b.at <= a.at + upper]
    expected: list[Any] = [(max(a.at, b.at), (a.key, (a, b))) for a, b in pairs]
    alone = [(max(a.at, a.at + upper), a) for a in set(left) - {a for a, _ in pairs}]
    if how == "semi":
        firsts = {a: min(max(a.at, b.at) for one, b in pairs if one is a) for a, _ in pairs}
        expected = [(first, (a.key, a)) for a, first in firsts.items()]
    if how == "anti":
        expected = [(due, (a.key, a)) for due, a in alone]
    if how in ("left", "full"):
        expected += [(due, (a.key, (a, None))) for due, a in alone]
    if how in ("right", "full"):
        others = set(right) - {b for _, b in pairs}
        expected += [(max(b.at, b.at - lower), (b.key, (None, b))) for b in others]
    assert found == Counter(expected)


@on_workers
@given(
    left=events(20),
    right=events(20),
    within=st.none() | st.integers(0, 20),
    how=st.sampled_from(["left", "inner"]),
)
def test_asof_join(workers: int, left: list[Event], right: list[Event], within: int | None, how: Any) -> None:
    found = joined(workers, left, right, lambda a, b: a.asof_join(b, within=within, how=how))
    matches = Counter((time, ours) for time, (_, (ours, _)) in found.elements())
    for (time, (key, (ours, theirs))), count in found.items():
        assert (time, key, count) == (ours.at, ours.key, 1)
        before = [b.at for b in right if b.key == key and b.at <= ours.at]
        latest = max(before, default=None)
        if latest is not None and within is not None and latest < ours.at - within:
            latest = None
        assert (theirs.at if theirs is not None else None) == latest
        assert how == "left" or theirs is not None
    if how == "left":
        assert matches == Counter((a.at, a) for a in left)


@on_workers
@given(left=events(20), right=events(20), how=st.sampled_from(["inner", "left"]))
def test_table_join(workers: int, left: list[Event], right: list[Event], how: Any) -> None:
    # Of one time the last to arrive counts, which is not known: one change of a row at a time.
    changes = list({(event.key, event.at): event for event in right}.values())

    def join(a: ps.KeyedStream[str, Event], b: ps.KeyedStream[str, Event]) -> ps.Stream[Any]:
        rows = b.map_values(lambda event: None if event.value % 3 == 0 else event)
        return a.table_join(rows, how=how)

    expected: list[Any] = []
    for ours in left:
        before = [b for b in changes if b.key == ours.key and b.at <= ours.at]
        row = max(before, key=lambda b: b.at, default=None)
        if row is not None and row.value % 3 == 0:
            row = None
        if row is not None or how == "left":
            expected.append((ours.at, (ours.key, (ours, row))))
    assert joined(workers, left, changes, join) == Counter(expected)


def test_a_join_needs_two_sides_of_a_kind() -> None:
    def build(scope: ps.Scope) -> Any:
        keyed = scope.to_stream([1]).key_by(lambda x: x)
        return keyed.interval_join(scope.to_stream([1]), lower=0, upper=1)  # type: ignore[call-overload]

    with pytest.raises(TypeError, match="call key_by on both sides"):
        ps.example(build)


@pytest.mark.parametrize(
    ("lower", "upper", "how", "message"),
    [
        (2, 1, "inner", "lower is at most upper"),
        (0, 1, "cross", "how is one of .inner"),
        (0, "1", "inner", "upper is"),
    ],
)
def test_joins_that_make_no_sense_are_refused(lower: Any, upper: Any, how: Any, message: str) -> None:
    def build(scope: ps.Scope) -> Any:
        keyed = scope.to_stream([1]).key_by(lambda x: x)
        return keyed.interval_join(keyed, lower=lower, upper=upper, how=how)

    with pytest.raises((TypeError, ValueError), match=message):
        ps.example(build)


def test_state_of_joins_is_freed() -> None:
    for make in (
        lambda state: Interval(state, -2, 3, "full"),
        lambda state: AsOf(state, 5, left=True),
    ):
        state: ps.KeyedState[int, Any] = ps.KeyedState()
        logic = make(state)
        for at in range(0, 3000, 10):
            logic.run(Rows([([at, at + 1], [at, at], [(0, "l"), (1, "r")])]), at + 10, Results())
        assert len(state) <= 2
        logic.run(Rows([]), 4000, Results())
        assert not len(state)
        assert not logic._due


# ------------------------------------------------------------ what is looked up


@pytest.mark.parametrize("workers", WORKERS)
@settings(max_examples=examples(15))
@given(data=events(late=0), ttl=st.integers(1, 20), how=st.sampled_from(["left", "inner"]))
def test_rows_of_a_table_last_as_long_as_ttl(workers: int, data: list[Event], ttl: int, how: Any) -> None:
    """Rows last for less than `ttl` after their time, unless there is a new one, as on columns."""
    data = list({(event.at, event.key, event.value % 3 == 0): event for event in data}.values())

    def program(stream: ps.Stream[Event]) -> ps.Stream[Any]:
        left = stream.filter(lambda event: event.value % 3 > 0).key_by(lambda event: event.key)
        table = stream.filter(lambda event: event.value % 3 == 0).key_by(lambda event: event.key)
        return left.table_join(table, how=how, ttl=ttl)

    expected = []
    for event in data:
        if event.value % 3 == 0:
            continue
        before = [
            row
            for row in data
            if row.value % 3 == 0 and row.key == event.key and event.at - ttl < row.at <= event.at
        ]
        row = max(before, key=lambda row: row.at, default=None)
        if row is not None or how == "left":
            expected.append((event.at, (event.key, (event, row))))
    found = collected(workers, data, program, lateness=1000)
    assert Counter(map(repr, found)) == Counter(map(repr, expected))


def test_rows_of_a_table_that_have_ended_are_freed() -> None:
    state: ps.KeyedState[Any, Any] = ps.KeyedState()

    def build(scope: ps.Scope) -> Any:
        changes = [(at, at % 500) for at in range(5000)]
        table, _ = scope.to_stream(changes).event_time(lambda change: change[0])
        keyed = table.map(lambda change: (change[0], change[0])).key_by(lambda change: change[0])
        left, _ = scope.to_stream([(5000, 0)]).event_time(lambda row: row[0])
        return left.key_by(lambda row: row[0]).table_join(keyed, ttl=20, how="left", state=state).probe()

    ps.example(build)
    assert len(state) <= 1100  # what was final at the last frontier


@pytest.mark.parametrize("join", ["asof_join", "table_join"])
@pytest.mark.parametrize("how", ["full", "right", "semi"])
def test_a_join_that_looks_up_has_no_right_side_alone(join: str, how: str) -> None:
    def build(scope: ps.Scope) -> Any:
        stream = scope.to_stream([1]).key_by(lambda n: n)
        return getattr(stream, join)(stream, how=how)

    with pytest.raises(
        ValueError, match=f"{join} looks up a record .* how is 'left' or 'inner', not '{how}'"
    ):
        ps.example(build)


def test_spans_that_make_no_sense_are_refused() -> None:
    def build(scope: ps.Scope, **given: Any) -> Any:
        stream = scope.to_stream([1]).key_by(lambda n: n)
        return stream.table_join(stream, **given) if "ttl" in given else stream.asof_join(stream, **given)

    with pytest.raises(ValueError, match="at least 0, not -1"):
        ps.example(lambda scope: build(scope, within=-1))
    with pytest.raises(ValueError, match="more than 0, not 0"):
        ps.example(lambda scope: build(scope, ttl=0))
