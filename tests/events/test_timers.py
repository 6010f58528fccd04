"""Timers of `process` that are taken back, contexts that are kept, and times that no datetime can tell."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime, timedelta, timezone
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import pointstamp as ps
from effort import examples
from pointstamp.event_time.clock import Clock
from pointstamp.logic.process import KeyContext, Process
from pointstamp.logic.timed_rows import Results, Rows

END = 10**9


def logic(on_record: Any, on_timer: Any) -> Process:
    return Process(ps.KeyedState(), Clock(False), on_record, on_timer)


@pytest.mark.parametrize("due", [lambda at: END, lambda at: END + at], ids=["the same", "another"])
def test_timers_that_are_taken_back_are_freed(due: Any) -> None:
    """Ten thousand times one timer is taken back and set, far ahead."""

    def again(context: KeyContext, at: int) -> None:
        context.cancel_timer(due(at - 1))
        context.set_timer(due(at))

    process = logic(again, lambda context: None)
    for at in range(1, 10_000, 100):
        times = list(range(at, at + 100))
        process.run(Rows([(times, ["key"] * 100, times)]), at + 99, Results())
        assert len(process._due) == sum(map(len, process._timers.values())) < 200


@settings(max_examples=examples(100))
@given(st.lists(st.tuples(st.booleans(), st.integers(1, 30), st.sampled_from("ab")), max_size=400))
def test_timers_fire_unless_they_are_taken_back(steps: list[tuple[bool, int, str]]) -> None:
    fired: list[tuple[Any, Any]] = []

    def change(context: KeyContext, step: tuple[bool, int, str]) -> None:
        is_set, ahead, _ = step
        due = 100 * (context.time // 100 + ahead)
        if is_set:
            context.set_timer(due)
        else:
            context.cancel_timer(due)

    process = logic(change, lambda context: fired.append((context.time, context.key)))
    expected: list[tuple[int, str]] = []
    timers: set[tuple[int, str]] = set()
    for at, (is_set, ahead, key) in enumerate(steps):
        expected += sorted(timer for timer in timers if timer[0] <= at)
        timers = {timer for timer in timers if timer[0] > at}
        (timers.add if is_set else timers.discard)((100 * (at // 100 + ahead), key))
    times = list(range(len(steps)))
    process.run(Rows([(times, [key for _, _, key in steps], steps)]), None, Results())
    assert sorted(fired) == sorted([*expected, *timers])
    for key in "ab":  # at the end they run key by key
        mine = [time for time, of in fired if of == key]
        assert mine == sorted(mine)


def test_a_context_that_is_kept_is_refused() -> None:
    kept: list[KeyContext] = []

    def build(scope: ps.Scope) -> Any:
        return (
            scope.to_stream([1]).key_by(lambda x: x).process(lambda context, _: kept.append(context)).probe()
        )

    ps.example(build)
    with pytest.raises(ps.CapabilityError, match="a context of process was kept"):
        kept[0].emit("late")
    with pytest.raises(ps.CapabilityError, match="a context of process was kept"):
        kept[0].set_timer(5)
    with pytest.raises(ps.CapabilityError, match="a context of process was kept"):
        kept[0].cancel_timer(5)
    with pytest.raises(ps.CapabilityError, match="a context of process was kept"):
        kept[0].state = 5


def test_an_on_timer_that_yields_is_refused() -> None:
    def on_timer(context: KeyContext) -> Iterator[None]:
        context.emit("never")
        yield

    def build(scope: ps.Scope) -> Any:
        return scope.to_stream([1]).key_by(lambda x: x).process(lambda *_: None, on_timer).probe()

    with pytest.raises(TypeError, match="on_timer"):
        ps.example(build)


LAST = datetime(9999, 12, 31, 12, tzinfo=timezone.utc)


def test_a_window_that_ends_after_the_last_datetime_is_named() -> None:
    def build(scope: ps.Scope) -> Any:
        on_time, _ = scope.to_stream([LAST]).event_time(lambda at: at)
        return on_time.key_by(lambda _: 0).window(ps.Tumbling(timedelta(days=1))).count().capture()

    with pytest.raises(ps.TimeError, match="after the year 9999 in UTC") as raised:
        ps.example(build)
    assert "the window that begins at 9999-12-31 00:00:00+00:00 ends there" in getattr(
        raised.value, "__notes__", [str(raised.value)]
    )


def test_a_time_that_is_no_datetime_in_utc_is_named() -> None:
    beyond = datetime.max.replace(tzinfo=timezone(timedelta(hours=-5)))

    def build(scope: ps.Scope) -> Any:
        on_time, _ = scope.to_stream([beyond]).event_time(lambda at: at)
        return on_time.key_by(lambda _: 0).process(lambda context, _: context.emit(context.time)).capture()

    with pytest.raises(ps.TimeError, match=r"the time 253402318799999999 microseconds .* 9999-12-31, before"):
        ps.example(build)
