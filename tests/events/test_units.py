"""The unit of event times stays known, whatever is between `event_time` and what goes by them."""

from collections.abc import Callable
from datetime import date, datetime, timedelta, timezone
from typing import Any

import pyarrow as pa
import pytest

import pointstamp as ps
from pointstamp.connectors import Source

NOON = datetime(2024, 5, 1, 12, tzinfo=timezone.utc)
HOUR = timedelta(hours=1)
CLICKS = [("a", NOON + timedelta(minutes=25 * n)) for n in range(6)]
PER_HOUR = [(0, 3), (1, 2), (2, 1)]
"""The windows of all clicks: hours after noon, and how many."""


def at(record: Any) -> Any:
    return record[1]


def timed(scope: ps.Scope, records: Any = CLICKS) -> ps.Stream[Any]:
    stream: ps.Stream[Any] = scope.to_stream(records)
    return stream.event_time(at, lateness=HOUR)[0]


def hourly(stream: Any) -> Any:
    return stream.key_by(lambda record: record[0]).window(ps.Tumbling(HOUR)).count().capture()


def windows(captured: Any) -> list[tuple[int, int]]:
    return [
        ((window.start - NOON) // HOUR, count)
        for _, records in captured.extract()
        for _, window, count in records
    ]


async def same(record: Any) -> Any:
    return record


def custom(capability: ps.Capability, _info: Any) -> Callable[..., None]:
    capability.drop()

    def logic(port: Any, output: Any) -> None:
        for message, records in port:
            with output.session(message) as session:
                session.give_all(records)

    return logic


def through_a_region(scope: ps.Scope) -> Any:
    with scope.region() as inner:
        return timed(scope).enter(inner).map_batches(lambda records: records).leave()


def in_parts(scope: ps.Scope) -> Any:
    return timed(scope, CLICKS[:3]).concat(timed(scope, CLICKS[3:]))


@pytest.mark.parametrize(
    "build",
    [
        lambda scope: timed(scope).async_map(same)[0],
        lambda scope: timed(scope).try_map(lambda record: record)[0],
        lambda scope: timed(scope).branch(lambda _time, _record: True)[1],
        lambda scope: timed(scope).partition(2, lambda record: (0, record))[0],
        lambda scope: timed(scope).distinct(),
        lambda scope: timed(scope).inspect_time(lambda _record, _time: None),
        lambda scope: timed(scope).sort(),
        lambda scope: timed(scope).unary(ps.Pipeline(), "custom", custom),
        lambda scope: timed(scope).to_collection().updates().map(lambda update: update[0]),
        through_a_region,
        in_parts,
        lambda scope: in_parts(scope).map_batches(lambda records: records),
        lambda scope: timed(scope).map_batches(lambda records: records).concat(scope.empty()),
    ],
)
def test_windows_of_datetimes_behind_any_operator(build: Callable[[ps.Scope], Any]) -> None:
    assert windows(ps.example(lambda scope: hourly(build(scope)))) == PER_HOUR


def test_what_is_late_has_the_same_unit() -> None:
    def build(scope: ps.Scope) -> Any:
        _, late = scope.to_stream(list(reversed(CLICKS))).event_time(at)
        return hourly(late)

    [(_, [(_, window, count)])] = ps.example(build).extract()
    assert window.start == NOON + 2 * HOUR  # the watermark that they found
    assert count == 5


def test_timers_behind_any_operator_are_datetimes() -> None:
    fired = []

    def build(scope: ps.Scope) -> None:
        def on_record(context: Any, record: Any) -> None:
            context.set_timer(record[1] + HOUR)

        def on_timer(context: Any) -> None:
            fired.append(context.time)

        keyed = timed(scope, CLICKS[:1]).map_batches(lambda records: records).key_by(lambda record: record[0])
        keyed.process(on_record, on_timer)

    ps.example(build)
    assert fired == [NOON + HOUR]


@pytest.mark.parametrize("unit", ["s", "ms", "us", "ns"])
@pytest.mark.parametrize("length", [HOUR, None])
def test_rows_made_records_keep_the_unit_of_their_column(unit: Any, length: Any) -> None:
    schema = pa.schema([("key", pa.string()), ("at", pa.timestamp(unit, "UTC"))])
    steps = {"s": 1, "ms": 1000, "us": 10**6, "ns": 10**9}[unit]

    def build(scope: ps.Scope) -> Any:
        rows, _ = scope.to_stream(CLICKS).to_arrow(schema).event_time("at", lateness=HOUR)
        keyed = rows.to_records().key_by(lambda row: row["key"])
        return keyed.window(ps.Tumbling(length or 3600 * steps)).count().capture()

    captured = ps.example(build)
    if length is None:  # in the column's unit
        starts = [window.start for _, records in captured.extract() for _, window, _ in records]
        assert starts == [(int(NOON.timestamp()) + hour * 3600) * steps for hour, _ in PER_HOUR]
    else:
        assert windows(captured) == PER_HOUR


def test_days_take_lengths_of_whole_days() -> None:
    schema = pa.schema([("key", pa.string()), ("at", pa.date32())])
    days = [("a", date(2024, 5, day)) for day in (1, 2, 9)]

    def build(scope: ps.Scope, length: timedelta) -> Any:
        rows, _ = scope.to_stream(days).to_arrow(schema).event_time("at")
        keyed = rows.to_records().key_by(lambda row: row["key"])
        return keyed.window(ps.Tumbling(length, offset=timedelta(days=5))).count().capture()

    counted = ps.example(lambda scope: build(scope, timedelta(days=7))).extract()
    assert [(window.start.day, count) for _, records in counted for _, window, count in records] == [
        (30, 2),
        (7, 1),
    ]
    with pytest.raises(ValueError, match="no whole number of the event times' units"):
        ps.example(lambda scope: build(scope, HOUR))


def test_units_that_do_not_go_together_are_refused() -> None:
    seconds = pa.schema([("key", pa.string()), ("at", pa.timestamp("s", "UTC"))])

    def mixed(scope: ps.Scope) -> Any:
        rows, _ = scope.to_stream(CLICKS).to_arrow(seconds).event_time("at")
        records = rows.to_records().map(lambda row: (row["key"], row["at"]))
        return hourly(records.concat(timed(scope)))

    with pytest.raises(TypeError, match="have different units: cast the columns"):
        ps.example(mixed)

    def kinds(scope: ps.Scope) -> Any:
        ints, _ = scope.to_stream([("a", 1)]).event_time(at, lateness=1)
        return ints.concat(timed(scope)).capture()

    with pytest.raises(TypeError, match="of one kind, ints or datetimes"):
        ps.example(kinds)


@pytest.mark.parametrize("windowed", [False, True])
def test_timestamps_of_columns_meet_no_stream_without_event_times(windowed: bool) -> None:
    """Its records would be of 1970."""
    seconds = pa.schema([("key", pa.string()), ("at", pa.timestamp("s", "UTC"))])

    def build(scope: ps.Scope) -> Any:
        rows, _ = scope.to_stream(CLICKS).to_arrow(seconds).event_time("at", lateness=HOUR)
        left = rows.to_records().key_by(lambda row: row["key"])
        right = scope.to_stream(CLICKS).key_by(lambda click: click[0])
        if windowed:
            return left.window(ps.Tumbling(10)).join(right.window(ps.Tumbling(10))).capture()
        return right.interval_join(left, lower=0, upper=10).capture()

    with pytest.raises(TypeError, match=r"its records would be of 1970: take that one from event_time"):
        ps.example(build)


def test_a_stream_without_event_times_has_ints() -> None:
    with pytest.raises(TypeError, match="event times of this stream are ints: give an int"):
        ps.example(lambda scope: hourly(scope.to_stream(CLICKS).map_batches(lambda records: records)))


# ------------------------------------------------------------ windows that begin at an instant


@pytest.mark.parametrize("columns", [False, True])
@pytest.mark.parametrize("kind", [ps.Tumbling, ps.Sliding])
def test_an_offset_may_be_an_instant(columns: bool, kind: Any) -> None:
    """Weeks that begin on a Monday, in a zone of their own."""
    monday = datetime(2024, 1, 1, tzinfo=timezone(timedelta(hours=-5)))
    week = timedelta(days=7)
    window = kind(week, offset=monday) if kind is ps.Tumbling else kind(week, every=week, offset=monday)
    data = [monday - timedelta(seconds=1), monday, monday + week]

    def build(scope: ps.Scope) -> Any:
        if not columns:
            on_time, _ = scope.to_stream(data).event_time(lambda at: at)
            counts: Any = on_time.window(window).count()
            return counts.map(lambda result: result[0].start).capture()
        schema = pa.schema([("at", pa.timestamp("s", "UTC"))])
        on_rows, _ = scope.to_stream([(at,) for at in data]).to_arrow(schema).event_time("at")
        counted = on_rows.window(window, [], at_count=ps.col("at").count())
        return counted.to_records().map(lambda row: row["window_start"]).capture()

    starts = [start for _, some in ps.example(build).extract() for start in some]
    assert starts == [monday - week, monday, monday + week]


def test_offsets_that_make_no_sense_are_refused() -> None:
    with pytest.raises(TypeError, match=r"offset is .* which has no zone"):
        ps.Tumbling(timedelta(days=1), offset=datetime(2024, 1, 1))
    with pytest.raises(TypeError, match="mixes ints with timedeltas or datetimes"):
        ps.Tumbling(5, offset=datetime(2024, 1, 1, tzinfo=timezone.utc))
    with pytest.raises(TypeError, match=r"offset of .* is an int, a timedelta or a datetime, not 'noon'"):
        ps.Sliding(5, every=1, offset="noon")


@pytest.mark.parametrize(
    ("given", "says"),
    [
        (4.5, r"4\.5: return a whole number of some unit, such as int\(seconds \* 1000\)"),
        (date(2024, 5, 1), r": return datetime\.combine\(day, time\(\), timezone\.utc\)"),
        ("2024-05-01", r": return datetime\.fromisoformat\(text\)"),
        (None, ": filter such records out"),
        (True, "True(?m:$)"),
        ([1], r"\[1\](?m:$)"),
    ],
)
def test_what_is_no_event_time_says_what_to_return(given: Any, says: str) -> None:
    with pytest.raises(TypeError, match=f"an event time is an int or a datetime, not .*{says}"):
        ps.example(lambda scope: timed(scope, [("a", given)]).capture())


class _One(Source[Any]):
    waits = False

    def __init__(self, schema: pa.Schema | None) -> None:
        self.schema = schema

    def partitions(self) -> list[str]:
        return []

    def open(self, partition: str) -> Any:
        raise NotImplementedError


COLUMNS = pa.schema([("t", pa.int64())])


@pytest.mark.parametrize(
    "make",
    [
        lambda scope: scope.to_stream([]).event_time(at),
        lambda scope: scope.to_stream([]).to_arrow(COLUMNS).event_time("t"),
        lambda scope: scope.read(_One(None), event_time=at),
        lambda scope: scope.read(_One(COLUMNS), event_time="t"),
    ],
    ids=["records", "columns", "source of records", "source of columns"],
)
def test_both_streams_used_as_one_say_that_they_are_two(make: Callable[[ps.Scope], Any]) -> None:
    def build(scope: ps.Scope) -> None:
        both: Any = make(scope)
        on_time, late = both
        assert (on_time, late) == both == (both[0], both[1])
        assert not hasattr(both, "_asdict")
        with pytest.raises(AttributeError, match=r"two results.*'window': write `on_time, late = \.\.\.`"):
            both.window(ps.Tumbling(1))
        assert isinstance(both, tuple)

    ps.example(build)
