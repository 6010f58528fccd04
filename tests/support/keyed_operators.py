"""Each operator by key, of records and of columns, on some terms: each keeps something after `ROWS`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pyarrow as pa

import pointstamp as ps
from aggregates import named

SCHEMA = pa.schema([("at", pa.int64()), ("key", pa.string()), ("v", pa.int64())])
ROWS = [(1, "a", 5), (2, "b", 6), (4, "a", 7)]
TIMES: Any = {"column": "at"}

Records = Callable[[ps.KeyedStream[Any, Any], ps.KeyedStream[Any, Any], Any], Any]
Columns = Callable[[ps.ArrowStream, ps.ArrowStream, Any], Any]


def windows(kind: Any, reduced: Callable[[Any], Any], **options: Any) -> Records:
    return lambda a, _, s: reduced(a.window(kind, state=s, **options))


def value(row: Any) -> Any:
    return row[2]


def heard(context: Any, row: Any) -> None:
    context.state = row
    context.set_timer(row[0] + 50)


RECORDS: dict[str, Records] = {
    "tumbling": windows(ps.Tumbling(10), lambda w: w.count()),
    "another length": windows(ps.Tumbling(11), lambda w: w.count()),
    "another offset": windows(ps.Tumbling(10, offset=3), lambda w: w.count()),
    "early": windows(ps.Tumbling(10), lambda w: w.count(), early=5),
    "sliding": windows(ps.Sliding(10, every=5), lambda w: w.count()),
    "another step": windows(ps.Sliding(10, every=2), lambda w: w.count()),
    "session": windows(ps.Session(gap=10), lambda w: w.count()),
    "another gap": windows(ps.Session(gap=11), lambda w: w.count()),
    "counted": windows(ps.Count(10), lambda w: w.count()),
    "another number": windows(ps.Count(11), lambda w: w.count()),
    "window sum": windows(ps.Tumbling(10), lambda w: w.sum(value)),
    "window min": windows(ps.Tumbling(10), lambda w: w.min(value)),
    "window max": windows(ps.Tumbling(10), lambda w: w.max(value)),
    "window mean": windows(ps.Tumbling(10), lambda w: w.mean(value)),
    "window top_k": windows(ps.Tumbling(10), lambda w: w.top_k(2)),
    "window top_k of another k": windows(ps.Tumbling(10), lambda w: w.top_k(3)),
    "window collect": windows(ps.Tumbling(10), lambda w: w.collect()),
    "window distinct": windows(ps.Tumbling(10), lambda w: w.distinct_count(value)),
    "window quantiles": windows(ps.Tumbling(10), lambda w: w.quantiles([0.5], value)),
    "window aggregate": windows(ps.Tumbling(10), lambda w: w.aggregate(lambda _, __, n: n + 1, default=int)),
    "window reduce": windows(ps.Tumbling(10), lambda w: w.reduce(max)),
    "window join": lambda a, b, s: a.window(ps.Tumbling(10), state=s).join(b.window(ps.Tumbling(10))),
    "interval join": lambda a, b, s: a.interval_join(b, lower=0, upper=9, state=s),
    "another lower": lambda a, b, s: a.interval_join(b, lower=-1, upper=9, state=s),
    "another upper": lambda a, b, s: a.interval_join(b, lower=0, upper=8, state=s),
    "as-of join": lambda a, b, s: a.asof_join(b, state=s),
    "within": lambda a, b, s: a.asof_join(b, within=90, state=s),
    "table join": lambda a, b, s: a.table_join(b, state=s),
    "table ttl": lambda a, b, s: a.table_join(b, ttl=90, state=s),
    "scan": lambda a, _, s: a.scan(lambda _key, _, n: n + 1, default=int, state=s),
    "running": lambda a, _, s: a.running("max", value, state=s),
    "another function": lambda a, _, s: a.running("mean", value, state=s),
    "state_machine": lambda a, _, s: a.state_machine(lambda _, __, n: (n + 1, [n]), default=int, state=s),
    "dedup": lambda a, _, s: a.dedup(state=s),
    "top_k_so_far": lambda a, _, s: a.top_k_so_far(2, value, state=s),
    "another k": lambda a, _, s: a.top_k_so_far(3, value, state=s),
    "process": lambda a, _, s: a.process(heard, lambda _: None, state=s),
}

SUM = [("v", "sum")]
COLUMNS: dict[str, Columns] = {
    "tumbling": lambda a, _, s: a.window(ps.Tumbling(10), "key", **named(SUM), state=s, **TIMES),
    "another length": lambda a, _, s: a.window(ps.Tumbling(11), "key", **named(SUM), state=s, **TIMES),
    "early": lambda a, _, s: a.window(ps.Tumbling(10), "key", **named(SUM), early=5, state=s, **TIMES),
    "another key": lambda a, _, s: a.window(ps.Tumbling(10), ["key", "v"], **named(SUM), state=s, **TIMES),
    "another sum": lambda a, _, s: a.window(
        ps.Tumbling(10), "key", v_max=ps.col("v").max(), state=s, **TIMES
    ),
    "largest": lambda a, _, s: a.window(
        ps.Tumbling(10), "key", v_top_2=ps.col("v").top_k(2), state=s, **TIMES
    ),
    "another k": lambda a, _, s: a.window(
        ps.Tumbling(10), "key", v_top_3=ps.col("v").top_k(3), state=s, **TIMES
    ),
    "counted another k": lambda a, _, s: a.window(
        ps.Count(10), "key", v_top_3=ps.col("v").top_k(3), state=s, **TIMES
    ),
    "counted largest": lambda a, _, s: a.window(
        ps.Count(10), "key", v_top_2=ps.col("v").top_k(2), state=s, **TIMES
    ),
    "quantile": lambda a, _, s: a.window(
        ps.Tumbling(10), "key", v_quantile=ps.col("v").quantile(0.9), state=s, **TIMES
    ),
    "sliding": lambda a, _, s: a.window(ps.Sliding(10, every=5), "key", **named(SUM), state=s, **TIMES),
    "session": lambda a, _, s: a.window(ps.Session(gap=10), "key", **named(SUM), state=s, **TIMES),
    "another gap": lambda a, _, s: a.window(ps.Session(gap=11), "key", **named(SUM), state=s, **TIMES),
    "counted": lambda a, _, s: a.window(ps.Count(10), "key", **named(SUM), state=s, **TIMES),
    "scan": lambda a, _, s: a.running("key", **named(SUM), state=s, **TIMES),
    "scan by v": lambda a, _, s: a.running("v", **named(SUM), state=s, **TIMES),
    "dedup": lambda a, _, s: a.dedup("key", state=s, **TIMES),
    "interval join": lambda a, b, s: a.interval_join(b, "key", lower=0, upper=9, state=s, **TIMES),
    "another upper": lambda a, b, s: a.interval_join(b, "key", lower=0, upper=8, state=s, **TIMES),
    "other rows": lambda a, b, s: a.interval_join(
        b.rename({"v": "w"}), "key", lower=0, upper=9, state=s, **TIMES
    ),
    "as-of join": lambda a, b, s: a.asof_join(b, "key", state=s, **TIMES),
    "within": lambda a, b, s: a.asof_join(b, "key", within=90, state=s, **TIMES),
    "on two": lambda a, b, s: a.asof_join(b, ["key", "v"], state=s, **TIMES),
    "table join": lambda a, b, s: a.table_join(b, "key", state=s, **TIMES),
    "window join": lambda a, b, s: a.window_join(b, "key", ps.Tumbling(10), state=s, **TIMES),
    "another window": lambda a, b, s: a.window_join(b, "key", ps.Tumbling(11), state=s, **TIMES),
    "session join": lambda a, b, s: a.window_join(b, "key", ps.Session(gap=10), state=s, **TIMES),
    "window list": lambda a, _, s: a.window(
        ps.Tumbling(10), "key", v_list=ps.col("v").collect(), state=s, **TIMES
    ),
}
