"""Event time: records on time and late records, compared with a loop; watermarks of several workers."""

from __future__ import annotations

import time
from collections import Counter
from datetime import datetime, timedelta, timezone
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import pointstamp as ps
from effort import examples
from event_data import Event, events, shares, split, watermarks
from harness import WORKERS, run

EVENTS = pa.schema([("at", pa.int64()), ("key", pa.string()), ("value", pa.int64())])


@pytest.mark.parametrize("workers", WORKERS)
@settings(max_examples=examples(20))
@given(data=events(), lateness=st.sampled_from([0, 2, 10, 1000]), idle=st.booleans())
def test_each_record_is_on_time_or_late(workers: int, data: list[Event], lateness: int, idle: bool) -> None:
    mine = shares(data, workers, idle)

    def build(scope: ps.Scope) -> Any:
        stream = scope.to_stream(mine[scope.index])
        on_time, late = stream.event_time(lambda event: event.at, lateness=lateness)
        return on_time.capture(), late.capture(), late.count().capture()

    found, counted, total = run(workers, build), 0, 0
    for share, (on_time, late, counts) in zip(mine, found, strict=True):
        expected, _ = split(share, lateness)
        behind = watermarks(share, lateness)
        times: dict[int, list[Event]] = {}
        for event in sorted(expected):
            times.setdefault(event.at, []).append(event)
        assert on_time.extract() == sorted(times.items())
        assert Counter((at, event) for at, batch in late.extract() for event in batch) == Counter(behind)
        counted += sum(count for _, some in counts.extract() for count in some)
        total += len(behind)
    assert counted == total


@pytest.mark.parametrize("columns", [False, True])
@settings(max_examples=examples(20))
@given(data=events(), lateness=st.sampled_from([0, 2, 10]), cuts=st.sets(st.integers(0, 40)))
def test_late_is_at_the_watermark_that_it_came_behind(
    columns: bool, data: list[Event], lateness: int, cuts: set[int]
) -> None:
    """The same times however records are cut into batches, for sinks that write each time once."""

    def main(worker: ps.Worker) -> Any:
        with worker.dataflow() as scope:
            source, stream = scope.new_input()
            if columns:
                rows = stream.map(Event._asdict).to_arrow(EVENTS)
                _, late = rows.event_time("at", lateness=lateness)
                found = late.to_records().map(lambda row: Event(**row)).capture()
            else:
                _, records = stream.event_time(lambda event: event.at, lateness=lateness)
                found = records.capture()
        for number, event in enumerate(data):
            source.send(event)
            if number in cuts:
                source.flush()
                worker.step()
        source.close()
        worker.run()
        return [(at, event) for at, batch in found.extract() for event in batch]

    assert Counter(ps.execute(main)[0]) == Counter(watermarks(data, lateness))


def test_the_frontier_is_the_watermark() -> None:
    frontiers = []

    def main(worker: ps.Worker) -> None:
        with worker.dataflow() as scope:
            source, stream = scope.new_input()
            on_time, _ = stream.event_time(lambda at: at, lateness=3)
            probe = on_time.probe()
        for at in (5, 4, 20, 18):
            source.send(at)
            source.flush()
            worker.step_while(lambda: not worker.step() and False)
            for _ in range(10):
                worker.step()
            frontiers.append(probe.frontier.elements)
        source.close()
        worker.run()
        assert probe.done()

    ps.execute(main)
    assert frontiers == [[2], [2], [17], [17]]


@pytest.mark.parametrize("workers", [2, 4])
def test_an_idle_worker_does_not_hold_the_others_up(workers: int) -> None:
    def main(worker: ps.Worker) -> bool:
        with worker.dataflow() as scope:
            source, stream = scope.new_input()
            on_time, _ = stream.event_time(lambda at: at, idle=0.05)
            counts = on_time.key_by(lambda at: at % 3).window(ps.Tumbling(10)).count()
            probe = counts.probe()
        if worker.index == 0:
            source.send_batch([1, 2, 3, 25])
            source.flush()
        deadline = time.monotonic() + 120
        while probe.less_than(25) and time.monotonic() < deadline:
            worker.step_or_park(0.01)  # no input was closed
        passed = not probe.less_than(25)
        source.close()
        worker.run()
        return passed

    assert all(ps.execute(main, workers=workers))


def test_a_worker_that_was_idle_finds_its_old_records_late() -> None:
    def main(worker: ps.Worker) -> Any:
        with worker.dataflow() as scope:
            source, stream = scope.new_input()
            on_time, late = stream.event_time(lambda at: at, idle=0.05)
            probe, found, behind = on_time.probe(), on_time.capture(), late.capture()
        if worker.index == 0:
            source.send(100)
            source.flush()
        while probe.less_than(100):
            worker.step_or_park(0.01)
        if worker.index == 1:
            source.send_batch([99, 100, 3, 107])
        source.close()
        worker.run()
        return found.extract(), [at for _, records in behind.extract() for at in records]

    (first, behind), (second, late) = ps.execute(main, workers=2)
    assert (first, behind) == ([(100, [100])], [])
    assert (second, sorted(late)) == ([(100, [100]), (107, [107])], [3, 99])


def test_datetimes_are_instants_whatever_their_zone() -> None:
    noon = datetime(2024, 5, 1, 12, tzinfo=timezone.utc)
    there = noon.astimezone(timezone(timedelta(hours=2)))
    data = [noon + timedelta(seconds=70), there, noon - timedelta(minutes=2), noon + timedelta(seconds=59)]

    def build(scope: ps.Scope) -> Any:
        on_time, _ = scope.to_stream(data).event_time(lambda at: at, lateness=timedelta(minutes=4))
        return on_time.window(ps.Tumbling(timedelta(minutes=1))).count().capture()

    results = [record for _, records in ps.example(build).extract() for record in records]
    minute = timedelta(minutes=1)
    assert results == [
        (ps.Window(noon - 2 * minute, noon - minute), 1),
        (ps.Window(noon, noon + minute), 2),
        (ps.Window(noon + minute, noon + 2 * minute), 1),
    ]


@pytest.mark.parametrize(
    ("times", "lateness", "error", "message"),
    [
        ([datetime(2024, 5, 1)], timedelta(0), TypeError, "has no zone"),
        ([datetime(1960, 5, 1, tzinfo=timezone.utc)], timedelta(0), ps.TimeError, "before 1970"),
        ([-3], 0, ps.TimeError, "below 0"),
        (["noon"], 0, TypeError, "an int or a datetime, not 'noon'"),
        ([True], 0, TypeError, "an int or a datetime, not True"),
        ([1.5], 0, TypeError, "not 1.5"),
        # The lateness is what has to change: the times are the records'.
        (
            [datetime(2024, 5, 1, tzinfo=timezone.utc)],
            5,
            TypeError,
            r"^lateness is 5, and a record has the event time datetime.*: give a timedelta",
        ),
        (
            [7],
            timedelta(seconds=1),
            TypeError,
            r"^lateness is .*seconds=1\), and a record has the event time 7: give an int, in their unit",
        ),
        ([7, datetime(2024, 5, 1, tzinfo=timezone.utc)], 0, TypeError, "give one kind"),
        ([7, datetime(2024, 5, 1, tzinfo=timezone.utc)], 3, TypeError, "those before it are ints"),
    ],
)
def test_what_is_no_time_is_refused(
    times: list[Any], lateness: Any, error: type[Exception], message: str
) -> None:
    with pytest.raises(error, match=message):
        ps.example(
            lambda scope: scope.to_stream(times).event_time(lambda at: at, lateness=lateness)[0].capture()
        )


def test_windows_of_the_wrong_kind_of_length_are_refused() -> None:
    def build(scope: ps.Scope) -> Any:
        on_time, _ = scope.to_stream([1]).event_time(lambda at: at, lateness=2)
        return on_time.window(ps.Tumbling(timedelta(minutes=1))).count().capture()

    with pytest.raises(
        TypeError, match=r"^the length of a window is .*, and lateness is 2: give both as timed"
    ):
        ps.example(build)

    def plain(scope: ps.Scope) -> Any:
        return scope.to_stream([1]).window(ps.Tumbling(timedelta(minutes=1))).count().capture()

    with pytest.raises(TypeError, match="event times of this stream are ints: give an int"):
        ps.example(plain)


def test_negative_lateness_is_refused() -> None:
    with pytest.raises(ValueError, match="lateness is at least 0"):
        ps.example(lambda scope: scope.to_stream([1]).event_time(lambda at: at, lateness=-1)[0].capture())


def test_functions_before_a_window_keep_the_times() -> None:
    def build(scope: ps.Scope) -> Any:
        on_time, _ = scope.to_stream(range(20)).event_time(lambda at: at)
        stream = on_time.map(lambda at: at * 10).filter(lambda at: at % 20 == 0)
        stream = stream.flat_map(lambda at: [at, at]).inspect(lambda at: at).exchange(lambda at: at)
        return stream.concat(on_time.filter(lambda at: at == 3)).capture()

    expected = [(at, [10 * at] * 2) for at in range(0, 20, 2)] + [(3, [3])]
    assert ps.example(build).extract() == sorted(expected)


def test_an_idle_worker_follows_the_least_of_those_that_are_not() -> None:
    """Driven by hand: which of the others are idle is a matter of the machine's clock."""
    from types import SimpleNamespace
    from unittest.mock import MagicMock

    from pointstamp.logic.event_time import Neighbours

    watermark = SimpleNamespace(floor=0, own=0, ended=False, run=lambda _data: False, settle=lambda: None)
    info = SimpleNamespace(index=0, peers=3, activator=MagicMock())
    worker = Neighbours(watermark, info, MagicMock(), MagicMock(), 0.0)  # type: ignore[arg-type]
    active, idle, ended = 0, 1, 2
    floors = []
    for said in (
        [(1, active, 50), (2, active, 20)],
        [(2, active, 40), (0, active, 1)],
        [(2, idle, 40)],
        [(1, idle, 60)],
        [(1, ended, 60), (2, active, 55)],
        [(2, active, 70)],
    ):
        worker.run(MagicMock(), [(None, said)])  # type: ignore[arg-type]
        floors.append(watermark.floor)
    assert floors == [20, 40, 50, 60, 60, 70]


def test_a_timestamp_function_that_stops_iterating_is_named() -> None:
    """A function that raises StopIteration must not end the batch as if that were its end."""
    for records in ([1, 2], [2, 1]):
        with pytest.raises(StopIteration):
            ps.example(
                lambda scope, records=records: (
                    scope.to_stream(records)  # type: ignore[misc]
                    .event_time(lambda n: next(iter([5] * (n - 1))))[0]
                    .capture()
                )
            )


def test_a_missing_datetime_is_no_time() -> None:
    class Missing(datetime):
        """A datetime that equals nothing, itself included, as pandas.NaT."""

        def __eq__(self, other: object) -> bool:
            return False

        def __ne__(self, other: object) -> bool:
            return True

        __hash__ = None  # type: ignore[assignment]

    good = datetime(2020, 1, 1, tzinfo=timezone.utc)
    for times in ([good, Missing(2020, 1, 1)], [Missing(2020, 1, 1)]):
        with pytest.raises(TypeError, match="stands for none"):
            ps.example(
                lambda scope, times=times: scope.to_stream(times).event_time(lambda time: time)[0].capture()  # type: ignore[misc]
            )


@pytest.mark.parametrize("idle", [float("nan"), -1.0])
def test_no_number_of_seconds_to_be_idle_for(idle: float) -> None:
    with pytest.raises(ValueError, match="idle is a number of seconds"):
        ps.example(lambda scope: scope.to_stream([1]).event_time(lambda n: n, idle=idle)[0].capture())


def test_idle_for_ever_is_never() -> None:
    found = run(2, lambda scope: scope.to_stream([3]).event_time(lambda n: n, idle=float("inf"))[0].capture())
    assert [capture.extract() for capture in found] == [[(3, [3])], [(3, [3])]]


@pytest.mark.parametrize("early", [0, -3])
def test_early_results_need_a_length(early: int) -> None:
    """A tick of no length never ended."""
    with pytest.raises(ValueError, match="more than 0"):
        ps.example(lambda scope: scope.to_stream([1]).window(ps.Tumbling(10), early=early).count().capture())
