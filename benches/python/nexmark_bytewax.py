"""Nexmark's queries with Bytewax, an optional peer: those that its operators express in a few lines.

Its keys are strings, its times datetimes, which are made before the run that is measured; the sink takes
whole batches. A join is one over all records of the run, which it emits at the end. What the queries of
`nexmark` tell of windows, these do too, except where a session begins, which is in another stream.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from datetime import datetime, timedelta, timezone
from typing import Any

import bytewax.operators as op
import bytewax.operators.windowing as win
from bytewax.dataflow import Dataflow
from bytewax.testing import run_main
from bytewax_programs import _Sink, _Source

START = datetime(1970, 1, 1, tzinfo=timezone.utc)
MILLISECOND = timedelta(milliseconds=1)
DAY = timedelta(days=1)

# Streams of persons, auctions and bids, each record with its time: (event, datetime).
Streams = tuple[Any, Any, Any]


def prepared(events: list[Any]) -> list[Any]:
    """The events with their times as Bytewax wants them."""
    return [(event, START + event.at * MILLISECOND) for event in events]


def _clock() -> Any:
    # Its watermark goes on with the clock of the machine, too: with less, a slow run has late records.
    return win.EventClock(lambda timed: timed[1], wait_for_system_duration=timedelta(seconds=10))


def _tumbling(length: timedelta) -> Any:
    return win.TumblingWindower(length=length, align_to=START)


def _keyed(stream: Any, name: str, key: Callable[[Any], Any]) -> Any:
    return op.key_on(name, stream, lambda timed: str(key(timed[0])))


def _start(window: int, every: timedelta) -> int:
    return window * every // MILLISECOND


def _joined(left: Any, right: Any) -> Any:
    pairs = op.join("join", left, right, insert_mode="product", emit_mode="final")
    return op.filter("both", pairs, lambda pair: None not in pair[1])


def _q3(streams: Streams) -> Any:
    auctions = op.filter("category", streams[1], lambda timed: timed[0].category == 10)
    persons = op.filter("state", streams[0], lambda timed: timed[0].state in ("OR", "ID", "CA"))
    pairs = _joined(_keyed(auctions, "seller", lambda a: a.seller), _keyed(persons, "id", lambda p: p.id))
    return op.map("row", pairs, lambda r: (r[1][1][0].name, r[1][1][0].state, r[1][0][0].id))


def _q5(streams: Streams) -> Any:
    every = timedelta(seconds=2)
    windower = win.SlidingWindower(length=timedelta(seconds=10), offset=every, align_to=START)
    counts = win.count_window("count", streams[2], _clock(), windower, lambda timed: str(timed[0].auction))
    by_window = op.map("window", counts.down, lambda r: (str(r[1][0]), (int(r[0]), r[1][1])))

    def hotter(so_far: list[tuple[int, int]], item: tuple[int, int]) -> list[tuple[int, int]]:
        if not so_far or item[1] > so_far[0][1]:
            return [item]
        return [*so_far, item] if item[1] == so_far[0][1] else so_far

    hot = op.fold_final("hot", by_window, list, hotter)
    return op.flat_map("rows", hot, lambda r: [(_start(int(r[0]), every), *item) for item in r[1]])


def _q7(streams: Streams) -> Any:
    def higher(so_far: list[Any], timed: Any) -> list[Any]:
        if not so_far or timed[0].price > so_far[0].price:
            return [timed[0]]
        return [*so_far, timed[0]] if timed[0].price == so_far[0].price else so_far

    length = timedelta(seconds=10)
    bids = op.key_on("all", streams[2], lambda _: "all")
    best = win.fold_window("best", bids, _clock(), _tumbling(length), list, higher, lambda a, b: a + b)
    return op.flat_map(
        "rows",
        best.down,
        lambda r: [(_start(r[1][0], length), b.auction, b.bidder, b.price) for b in r[1][1]],
    )


def _q8(streams: Streams) -> Any:
    length = timedelta(seconds=10)
    pairs = win.join_window(
        "join",
        _clock(),
        _tumbling(length),
        _keyed(streams[0], "id", lambda p: p.id),
        _keyed(streams[1], "seller", lambda a: a.seller),
        insert_mode="product",
        emit_mode="final",
    ).down
    pairs = op.filter("both", pairs, lambda r: None not in r[1][1])
    return op.map("row", pairs, lambda r: (int(r[0]), _start(r[1][0], length), r[1][1][1][0].id))


def _q11(streams: Streams) -> Any:
    windower = win.SessionWindower(gap=timedelta(seconds=2) - MILLISECOND)
    counts = win.count_window("count", streams[2], _clock(), windower, lambda timed: str(timed[0].bidder))
    return op.map("row", counts.down, lambda r: (int(r[0]), r[1][1]))


def _stats(key: Callable[[Any], Any], shown: Callable[[str], Any]) -> Callable[[Streams], Any]:
    def add(so_far: tuple[int, ...], timed: Any) -> tuple[int, ...]:
        count, cheap, least, most, total = so_far
        price = timed[0].price
        return count + 1, cheap + (price < 1000), min(least, price), max(most, price), total + price

    def query(streams: Streams) -> Any:
        bids = _keyed(streams[2], "key", key)
        made = win.fold_window(
            "stats",
            bids,
            _clock(),
            _tumbling(DAY),
            lambda: (0, 0, 10**9, 0, 0),
            add,
            lambda a, b: (a[0] + b[0], a[1] + b[1], min(a[2], b[2]), max(a[3], b[3]), a[4] + b[4]),
        )
        return op.map("row", made.down, lambda r: (shown(r[0]), _start(r[1][0], DAY), *r[1][1]))

    return query


def _q18(streams: Streams) -> Any:
    bids = op.map("pair", streams[2], lambda t: (f"{t[0].bidder} {t[0].auction}", t[0]))
    last = op.max_final("last", bids, lambda b: (b.at, b.price))
    return op.map("row", last, lambda r: (r[1].bidder, r[1].auction, r[1].at, r[1].price))


def _q20(streams: Streams) -> Any:
    auctions = op.filter("category", streams[1], lambda timed: timed[0].category == 10)
    pairs = _joined(
        _keyed(streams[2], "auction", lambda b: b.auction), _keyed(auctions, "id", lambda a: a.id)
    )
    return op.map("row", pairs, lambda r: (int(r[0]), r[1][0][0].bidder, r[1][0][0].price, r[1][1][0].seller))


QUERIES: dict[str, Callable[[Streams], Any]] = {
    "q0": lambda s: op.map("bid", s[2], lambda t: t[0]),
    "q1": lambda s: op.map("euros", s[2], lambda t: (t[0].auction, t[0].price * 908 // 1000, t[0].at)),
    "q2": lambda s: op.map(
        "row",
        op.filter("some", s[2], lambda t: t[0].auction % 123 == 0),
        lambda t: (t[0].auction, t[0].price),
    ),
    "q3": _q3,
    "q5": _q5,
    "q7": _q7,
    "q8": _q8,
    "q11": _q11,
    "q16": _stats(lambda b: b.channel, str),
    "q17": _stats(lambda b: b.auction, int),
    "q18": _q18,
    "q20": _q20,
}


def comparable(name: str, found: Counter[Any]) -> Counter[Any]:
    """Our results, as far as Bytewax's operators tell them."""
    if name == "q11":
        return Counter((bidder, count) for bidder, _, _, count in found.elements())
    return found


def run(name: str, timed: list[Any], kinds: tuple[type, type, type]) -> Counter[Any]:
    """The results of a query over `prepared` events."""
    results: Counter[Any] = Counter()
    flow = Dataflow("nexmark")
    events = op.input("events", flow, _Source(timed))
    streams: Any = tuple(
        op.filter(kind.__name__, events, lambda t, kind=kind: type(t[0]) is kind) for kind in kinds
    )
    sink = _Sink(lambda batch: results.update(map(tuple, batch)))
    op.output("keep", QUERIES[name](streams), sink)
    run_main(flow)
    return results
