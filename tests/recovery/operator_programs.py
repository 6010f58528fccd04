"""A small program around each operator of streams, by class and method."""

from __future__ import annotations

import asyncio
import io
import tempfile
from collections.abc import Callable
from functools import cache
from operator import add
from pathlib import Path
from typing import Any

import pointstamp as ps

Records = Any


def keyed(records: Records) -> Any:
    return records.key_by(lambda record: record["key"], lambda record: record["n"])


def in_turns(records: Records, operator: Callable[[Any, Any], Any]) -> Any:
    """An operator by key in a scope of a loop, over the records and some of them, in three turns."""
    with records.scope.iterative() as inner:
        entered = records.enter_at(inner, lambda record: record["n"] % 3)
        return operator(keyed(entered), others(entered)).leave()


def others(records: Records) -> Any:
    """Some of the records, for the other side of joins."""
    return keyed(records.filter(lambda record: record["n"] % 3 == 0))


def pairs(records: Records) -> Any:
    return records.map(lambda record: (record["key"], record["n"]))


def columns(records: Records) -> Any:
    import pyarrow as pa

    schema = pa.schema([("at", pa.int64()), ("key", pa.string()), ("n", pa.int64())])
    return records.to_arrow(schema)


def rows_of_others(records: Records) -> Any:
    return columns(records.filter(lambda record: record["n"] % 3 == 0))


def windowed(records: Records) -> Any:
    return keyed(records).window(ps.Tumbling(5))


def rows_windowed(records: Records) -> Any:
    rows, total = columns(records), ps.col("n").sum()
    return (
        rows.window(ps.Tumbling(5), "key", n_sum=total, column="at"),
        rows.window(ps.Sliding(6, every=2), "key", n_mean=ps.col("n").mean(), column="at", early=3),
        rows.window(ps.Session(gap=2), "key", n_sum=total, column="at"),
    )


def rows_counted(records: Records) -> Any:
    return columns(records).window(ps.Count(5), "key", n_sum=ps.col("n").sum(), column="at")


def at_one_time(records: Records) -> Records:
    """All records at the end of a window that has them all, whichever times they had."""
    return records.window(ps.Tumbling(1000)).collect().map(lambda made: sorted(made[1], key=repr))


def by_event_time(records: Records) -> Any:
    return records.event_time(lambda record: record["at"] - record["n"] % 4, lateness=2)


def rows_by_event_time(records: Records) -> Any:
    return columns(records).event_time("at", lateness=2)


async def _twice(record: dict[str, Any]) -> int:
    await asyncio.sleep(0)
    return 2 * int(record["n"])


def _on_record(context: Any, value: int) -> None:
    context.state = (context.state or 0) + value
    context.set_timer(context.time + 4)
    context.emit((context.key, "sum", context.state))


def _on_timer(context: Any) -> None:
    context.emit((context.key, "timer", context.state))


def _in_loop(records: Records, *, by_variable: bool = False) -> Records:
    with records.scope.iterative() as inner:
        again, numbers_again = inner.loop_variable() if by_variable else inner.feedback()
        numbers = records.map(lambda record: record["n"]).enter(inner).concat(numbers_again)
        done, more = numbers.map(lambda n: n - 1).branch(lambda _time, n: n > 0)
        more.connect_loop(again)
        return done.leave()


def _sums(key: Any, value: int, total: int) -> tuple[int, list[Any]]:
    return total + value, [(key, total + value)]


@cache
def _captured() -> Path:
    """Writes a capture to a file, which lasts as long as the tests."""
    path = Path(tempfile.mkdtemp(), "captured.events")
    ps.example(lambda scope: scope.to_stream([1]).capture_into(ps.EventWriter(path)))
    return path


PROGRAMS: dict[str, Callable[[Records], Any]] = {
    "Scope.concatenate": lambda s: s.scope.concatenate([s, s.map(lambda record: record["n"])]),
    "Scope.empty": lambda s: s.concat(s.scope.empty()),
    "Scope.feedback": lambda s: _in_loop(s),
    "Scope.iterative": lambda s: _entered(s),
    "Scope.loop_variable": lambda s: _in_loop(s, by_variable=True),
    "Scope.read": lambda s: s,
    "Scope.region": lambda s: _entered(s, s.scope.region()),
    "Scope.replay": lambda s: s.concat(s.scope.replay([ps.EventReader(_captured(), allow_pickle=True)])),
    "Scope.scoped": lambda s: _entered(s, s.scope.scoped(dims=1)),
    "Stream.accumulate": lambda s: (
        pairs(s).accumulate(int, lambda total, batch: total + len(batch)),
        pairs(s).accumulate(int, lambda total, batch: total + len(batch), combine=add),
    ),
    "Stream.aggregate": lambda s: pairs(s).aggregate(
        lambda _key, n, total: total + n, lambda key, total: (key, total), default=int
    ),
    "Stream.async_map": lambda s: s.async_map(_twice),
    "Stream.branch": lambda s: s.branch(lambda _time, record: record["n"] > 8),
    "Stream.branch_when": lambda s: s.branch_when(lambda time: time > 9),
    "Stream.broadcast": lambda s: s.broadcast(),
    "Stream.capture": lambda s: (s.capture(), s)[1],
    "Stream.capture_into": lambda s: (s.capture_into(ps.EventWriter(io.BytesIO())), s)[1],
    "Stream.concat": lambda s: s.concat(s.map(lambda record: record["n"])),
    "Stream.connect_loop": _in_loop,
    "Stream.count": lambda s: s.count(),
    "Stream.delay": lambda s: s.delay(lambda record, time: time + record["n"]),
    "Stream.delay_batch": lambda s: s.delay_batch(lambda time: time + 3),
    "Stream.distinct": lambda s: pairs(s).map(lambda pair: pair[0]).distinct(),
    "Stream.enter": lambda s: _entered(s),
    "Stream.leave": lambda s: _entered(s),
    "Stream.key_by": lambda s: keyed(s).reduce(max),
    "Stream.window": lambda s: pairs(s).window(ps.Tumbling(5)).count(),
    "Stream.enter_at": lambda s: _entered_at(s),
    "Stream.event_time": by_event_time,
    "Stream.exchange": lambda s: s.exchange(lambda record: record["key"]),
    "Stream.filter": lambda s: s.filter(lambda record: record["n"] > 3),
    "Stream.flat_map": lambda s: s.flat_map(lambda record: [record["n"]] * 2),
    "Stream.inspect": lambda s: s.inspect(lambda _record: None),
    "Stream.inspect_batch": lambda s: s.inspect_batch(lambda _time, _records: None),
    "Stream.inspect_time": lambda s: s.inspect_time(lambda _record, _time: None),
    "Stream.join": lambda s: pairs(s).join(pairs(s).filter(lambda pair: pair[1] > 8)),
    "Stream.map": lambda s: s.map(lambda record: record["n"]),
    "Stream.map_batches": lambda s: s.map_batches(lambda records: [record["n"] for record in records]),
    "Stream.map_in_place": lambda s: s.map_in_place(lambda record: record.update(more=1)),
    "Stream.ok_err": lambda s: s.ok_err(lambda record: (record["n"] > 8, record)),
    "Stream.partition": lambda s: s.partition(3, lambda record: (record["n"] % 3, record)),
    "Stream.probe": lambda s: (s.probe(), s)[1],
    "Stream.probe_with": lambda s: s.probe_with(ps.ProbeHandle()),
    "Stream.reclock": lambda s: s.reclock(s.filter(lambda record: record["at"] % 5 == 0).broadcast()),
    "Stream.reduce": lambda s: pairs(s).reduce(max),
    "Stream.sort": lambda s: pairs(s).sort(),
    "Stream.state_machine": lambda s: pairs(s).state_machine(_sums, default=int),
    "Stream.to_arrow": columns,
    "Stream.top_k": lambda s: pairs(s).top_k(2),
    "Stream.try_map": lambda s: s.try_map(lambda record: 7 // record["n"])[0],
    "Stream.value_counts": lambda s: pairs(s).map(lambda pair: pair[0]).value_counts(),
    "KeyedStream.asof_join": lambda s: (
        keyed(s).asof_join(others(s), within=4),
        in_turns(s, lambda one, other: one.asof_join(other, within=4)),
    ),
    "KeyedStream.dedup": lambda s: (keyed(s).dedup(ttl=3), in_turns(s, lambda one, _: one.dedup(ttl=3))),
    "KeyedStream.state_machine": lambda s: (
        keyed(s).state_machine(_sums, default=int),
        in_turns(s, lambda one, _: one.state_machine(_sums, default=int)),
    ),
    "KeyedStream.aggregate": lambda s: keyed(s).aggregate(lambda _, n, total: total + n, default=int),
    "KeyedStream.interval_join": lambda s: (
        keyed(s).interval_join(others(s), lower=-2, upper=3, how="full"),
        in_turns(s, lambda one, other: one.interval_join(other, lower=-2, upper=3, how="full")),
    ),
    "KeyedStream.join": lambda s: keyed(s).join(others(s), how="full"),
    "KeyedStream.map_values": lambda s: keyed(s).map_values(lambda n: n + 1).reduce(max),
    "KeyedStream.process": lambda s: (
        keyed(s).process(_on_record, _on_timer, ttl=9),
        in_turns(s, lambda one, _: one.process(_on_record, _on_timer, ttl=9)),
    ),
    "KeyedStream.reduce": lambda s: keyed(s).reduce(max),
    "KeyedStream.running": lambda s: keyed(s).running("mean"),
    "KeyedStream.scan": lambda s: (
        keyed(s).scan(lambda _, n, total: total + n, default=int, ttl=2),
        in_turns(s, lambda one, _: one.scan(lambda _, n, total: total + n, default=int, ttl=2)),
    ),
    "KeyedStream.table_join": lambda s: keyed(s).table_join(others(s), ttl=4, how="left"),
    "KeyedStream.top_k_so_far": lambda s: keyed(s).top_k_so_far(2),
    "KeyedStream.window": lambda s: (
        keyed(s).window(ps.Sliding(6, every=2), early=3).count(),
        keyed(s).window(ps.Session(gap=2)).sum(),
        keyed(s).window(ps.Count(5)).collect(),
        in_turns(s, lambda one, _: one.window(ps.Sliding(6, every=2), early=3).count()),
        in_turns(s, lambda one, _: one.window(ps.Session(gap=2)).sum()),
    ),
    "WindowedStream.collect": lambda s: windowed(s).collect().map(lambda made: (*made[:2], sorted(made[2]))),
    "WindowedStream.count": lambda s: windowed(s).count(),
    "WindowedStream.distinct_count": lambda s: windowed(s).distinct_count(),
    "WindowedStream.aggregate": lambda s: windowed(s).aggregate(lambda _, n, total: total + n, default=int),
    "WindowedStream.join": lambda s: windowed(s).join(others(s).window(ps.Tumbling(5))),
    "WindowedStream.max": lambda s: windowed(s).max(),
    "WindowedStream.mean": lambda s: windowed(s).mean(),
    "WindowedStream.min": lambda s: windowed(s).min(),
    "WindowedStream.quantiles": lambda s: windowed(s).quantiles([0.5, 0.9]),
    "WindowedStream.reduce": lambda s: windowed(s).reduce(max),
    "WindowedStream.sum": lambda s: windowed(s).sum(),
    "WindowedStream.top_k": lambda s: windowed(s).top_k(2),
    "ArrowStream.aggregate": lambda s: (
        columns(s).aggregate("key", s=ps.col("n").sum(), m=ps.col("n").mean(), x=ps.col("n").max()),
        columns(s).aggregate(
            "key", f=ps.col("n").first(), l=ps.col("n").collect(), d=ps.col("n").distinct_count()
        ),
        columns(s).exchange("key").aggregate("key", c=ps.col("n").count()),
    ),
    "ArrowStream.asof_join": lambda s: columns(s).asof_join(rows_of_others(s), "key", within=4, column="at"),
    "ArrowStream.branch_when": lambda s: columns(s).branch_when(lambda time: time > 9),
    "ArrowStream.broadcast": lambda s: columns(s).broadcast(),
    "ArrowStream.capture": lambda s: (columns(s).capture(), s)[1],
    "ArrowStream.capture_into": lambda s: (columns(s).capture_into(ps.EventWriter(io.BytesIO())), s)[1],
    "ArrowStream.concat": lambda s: columns(s).concat(columns(s)),
    "ArrowStream.count": lambda s: columns(s).count(),
    "ArrowStream.dedup": lambda s: columns(s).dedup("key", ttl=3, column="at"),
    "ArrowStream.delay": lambda s: columns(s).delay("at"),
    "ArrowStream.delay_batch": lambda s: columns(s).delay_batch(lambda time: time + 3),
    "ArrowStream.distinct": lambda s: columns(s).distinct("key").select("key"),
    "ArrowStream.distinct_so_far": lambda s: columns(s).distinct_so_far(["key", "n"]).select("key", "n"),
    "ArrowStream.event_time": rows_by_event_time,
    "ArrowStream.exchange": lambda s: columns(s).exchange("key"),
    "ArrowStream.inspect_batch": lambda s: columns(s).inspect_batch(lambda _time, _batch: None),
    "ArrowStream.interval_join": lambda s: columns(s).interval_join(
        rows_of_others(s), "key", lower=-2, upper=3, how="full", column="at"
    ),
    "ArrowStream.join": lambda s: columns(s).join(rows_of_others(s), "key", how="full"),
    "ArrowStream.join_so_far": lambda s: columns(s).join_so_far(rows_of_others(s), "key"),
    "ArrowStream.limit": lambda s: columns(s).select("at").limit(2),
    "ArrowStream.map_batches": lambda s: columns(s).map_batches(lambda batch: batch),
    "ArrowStream.connect_loop": lambda s: _in_loop_of_columns(columns(s)),
    "ArrowStream.enter": lambda s: _entered(columns(s)),
    "ArrowStream.leave": lambda s: _entered(columns(s)),
    "ArrowStream.probe": lambda s: (s.probe(), columns(s))[1],
    "ArrowStream.probe_with": lambda s: columns(s).probe_with(ps.ProbeHandle()),
    "ArrowStream.partition": lambda s: columns(s).partition(2, "key"),
    "ArrowStream.reclock": lambda s: columns(s).reclock(
        s.filter(lambda record: record["at"] % 5 == 0).broadcast()
    ),
    "ArrowStream.rename": lambda s: columns(s).rename({"n": "m"}),
    "ArrowStream.running": lambda s: (
        columns(s).running("key", n_sum=ps.col("n").sum(), column="at").select("key", "n_sum")
    ),
    "ArrowStream.select": lambda s: columns(s).select("n"),
    "ArrowStream.sort": lambda s: columns(s).sort(["n", "key", "at"]),
    "ArrowStream.table_join": lambda s: columns(s).table_join(rows_of_others(s), "key", ttl=4, column="at"),
    "ArrowStream.to_records": lambda s: columns(s).to_records(),
    "ArrowStream.window": lambda s: (*rows_windowed(s), rows_counted(s)),
    "ArrowStream.window_join": lambda s: columns(s).window_join(
        rows_of_others(s), "key", ps.Tumbling(5), column="at", how="full"
    ),
    "ArrowStream.with_columns": lambda s: columns(s).with_columns(m=ps.col("n") + 1),
    "ArrowStream.filter": lambda s: columns(s).filter(ps.col("n") > 3),
}


def _entered(stream: Any, block: Any = None) -> Any:
    with block or stream.scope.iterative() as inner:
        return stream.enter(inner).leave()


def _in_loop_of_columns(rows: Any) -> Any:
    with rows.scope.iterative() as inner:
        again, rows_again = inner.feedback(schema=rows.schema)
        less = rows.enter(inner).concat(rows_again).with_columns(n=ps.col("n") - 1)
        less.filter(ps.col("n") > 0).connect_loop(again)
        return less.filter(ps.col("n") <= 0).leave()


def _entered_at(records: Records) -> Records:
    with records.scope.iterative() as inner:
        return records.enter_at(inner, lambda record: record["n"]).leave()


RESCALED: dict[str, Callable[[Records], Any]] = {
    # Named, so that it is not the first that needs as many workers.
    "Scope.replay": lambda s: s.concat(s.scope.replay([s.capture(name="z")])),
    "Stream.broadcast": lambda s: pairs(s).broadcast().map(lambda pair: (pair, 1)).reduce(min),
    "ArrowStream.broadcast": lambda s: (
        columns(s)
        .broadcast()
        .to_records()
        .map(lambda row: (row["key"], row["n"]))
        .map(lambda pair: (pair, 1))
        .reduce(min)
    ),
    "ArrowStream.event_time": lambda s: columns(s).event_time("at", lateness=40)[0],
    # Rows left over for a window of a number of rows are sent at the latest time that their worker has seen.
    "ArrowStream.window": lambda s: (*rows_windowed(s), at_one_time(rows_counted(s).to_records())),
    # What is late depends on the order in which files are read.
    "Stream.event_time": lambda s: s.event_time(lambda record: record["at"] - record["n"] % 4, lateness=40)[
        0
    ],
}
"""Programs whose results are those of any number of workers, where the others' are not."""
