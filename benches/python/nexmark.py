"""Nexmark: queries over an auction's persons, auctions and bids, beside DuckDB on the same events.

    python benches/python/nexmark.py [--events N] [--workers N] [--query q5 ...] [--check]

For each query: how many events it takes in a second of a core; with `--check`, that it gives DuckDB's answer;
on one worker, where Bytewax is installed, how many it takes, and that it gives the same, for those that it
can express. The events have the proportions of the benchmark: of every 50, one is a person, three are
auctions and 46 are bids. Queries by the clock of the machine (q12) and those that no SQL of batches has (q6,
q10) are left out. The crate `dbsp` maintains queries as the collections of this package do; it has no windows
that close and no records, so that only q3, q4, q9 and q20 would be the same work: it is no peer here.
"""

from __future__ import annotations

import argparse
import importlib.util
import random
import time
from collections import Counter
from collections.abc import Callable
from typing import Any, NamedTuple

from figures import leave

import pointstamp as ps

SECOND = 1000
DAY = 86_400 * SECOND
EVER = 10 * DAY


class Person(NamedTuple):
    """A seller or bidder."""

    id: int
    name: str
    state: str
    at: int


class Auction(NamedTuple):
    """Something for sale, until it expires."""

    id: int
    seller: int
    category: int
    at: int
    expires: int


class Bid(NamedTuple):
    """An offer."""

    auction: int
    bidder: int
    price: int
    channel: str
    at: int


Event = Person | Auction | Bid
Streams = tuple[Any, Any, Any]


def make_events(count: int) -> list[Event]:
    """Events a few milliseconds apart; hot auctions and bidders get most of the bids."""
    source = random.Random(20010101)
    events: list[Event] = []
    persons = auctions = 0
    for n in range(count):
        at = 5 * n
        kind = n % 50
        if kind == 0:
            events.append(
                Person(persons, f"name {persons}", source.choice(["OR", "ID", "CA", "WA", "NY"]), at)
            )
            persons += 1
        elif kind <= 3:
            seller = source.randrange(persons)
            lasts = source.randrange(1, 20 * SECOND)
            events.append(Auction(auctions, seller, source.randrange(10, 15), at, at + lasts))
            auctions += 1
        else:
            hot = source.random() < 0.5
            auction = max(0, auctions - 1 - (0 if hot else source.randrange(100)))
            bidder = max(0, persons - 1 - (0 if source.random() < 0.5 else source.randrange(50)))
            channel = source.choice(["apple", "google", "baidu"])
            events.append(Bid(auction, bidder, source.randrange(1, 10_000), channel, at))
    return events


class Query(NamedTuple):
    """A query here, and as SQL."""

    ours: Callable[[Streams], Any]
    sql: str


def _flat(result: Any) -> tuple[Any, ...]:
    key, window, value = result
    keys = key if isinstance(key, tuple) else (key,)
    return (*keys, window.start, *(value if isinstance(value, tuple) else (value,)))


def _winning(streams: Streams) -> Any:
    _, auctions, bids = streams
    offers = auctions.key_by(lambda a: a.id).interval_join(
        bids.key_by(lambda b: b.auction), lower=0, upper=20 * SECOND
    )
    valid = offers.filter(lambda pair: pair[1][1].at < pair[1][0].expires)
    # The highest bid, and of those the first; an auction has ended within a window that holds all of it.
    best = valid.key_by(lambda pair: pair[1][0], lambda pair: pair[1][1])
    return best.window(ps.Tumbling(EVER)).min(lambda b: (-b.price, b.at, b.bidder))


def _q4(streams: Streams) -> Any:
    by_category = _winning(streams).key_by(lambda r: r[0].category, lambda r: -r[2][0])
    return by_category.window(ps.Tumbling(EVER)).mean().map(lambda r: (r[0], r[2]))


def _q5(streams: Streams) -> Any:
    counts = streams[2].key_by(lambda b: b.auction).window(ps.Sliding(10 * SECOND, every=2 * SECOND)).count()

    def most(results: list[tuple[int, int]]) -> list[tuple[int, int]]:
        top = max(count for _, count in results)
        return [(auction, count) for auction, count in results if count == top]

    per_window = counts.key_by(lambda r: r[1], lambda r: (r[0], r[2])).window(ps.Tumbling(1)).collect()
    return per_window.flat_map(lambda r: [(r[0].start, *hot) for hot in most(r[2])])


def _q7(streams: Streams) -> Any:
    best = streams[2].window(ps.Tumbling(10 * SECOND)).collect()

    def highest(result: Any) -> list[Any]:
        window, bids = result
        top = max(b.price for b in bids)
        return [(window.start, b.auction, b.bidder, b.price) for b in bids if b.price == top]

    return best.flat_map(highest)


def _q8(streams: Streams) -> Any:
    persons, auctions, _ = streams
    window = ps.Tumbling(10 * SECOND)
    new = persons.key_by(lambda p: p.id).window(window)
    pairs = new.join(auctions.key_by(lambda a: a.seller).window(window))
    return pairs.map(lambda r: (r[0], r[1].start, r[2][1].id))


def _stats(bids: list[Bid]) -> tuple[Any, ...]:
    prices = [b.price for b in bids]
    return len(bids), sum(p < 1000 for p in prices), min(prices), max(prices), sum(prices)


def _daily(key: Callable[[Bid], Any]) -> Callable[[Streams], Any]:
    def query(streams: Streams) -> Any:
        days = streams[2].key_by(key).window(ps.Tumbling(DAY)).collect()
        return days.map(lambda r: (r[0], r[1].start, *_stats(r[2])))

    return query


_OFFERS = "FROM auction a JOIN bid b ON a.id = b.auction AND b.ts >= a.ts AND b.ts < a.expires"
_WINNING = (
    f"SELECT a.*, b.* , row_number() OVER (PARTITION BY a.id ORDER BY b.price DESC, b.ts) AS rank {_OFFERS}"
)
_STATS = "count(*), count(*) FILTER (price < 1000), min(price), max(price), sum(price)"

QUERIES: dict[str, Query] = {
    "q0": Query(lambda s: s[2], "SELECT auction, bidder, price, channel, ts FROM bid"),
    "q1": Query(
        lambda s: s[2].map(lambda b: (b.auction, b.price * 908 // 1000, b.at)),
        "SELECT auction, price * 908 // 1000, ts FROM bid",
    ),
    "q2": Query(
        lambda s: s[2].filter(lambda b: b.auction % 123 == 0).map(lambda b: (b.auction, b.price)),
        "SELECT auction, price FROM bid WHERE auction % 123 = 0",
    ),
    "q3": Query(
        lambda s: (
            s[1]
            .filter(lambda a: a.category == 10)
            .key_by(lambda a: a.seller)
            .interval_join(
                s[0].filter(lambda p: p.state in ("OR", "ID", "CA")).key_by(lambda p: p.id),
                lower=-EVER,
                upper=EVER,
            )
            .map(lambda r: (r[1][1].name, r[1][1].state, r[1][0].id))
        ),
        "SELECT p.name, p.state, a.id FROM auction a JOIN person p ON a.seller = p.id "
        "WHERE a.category = 10 AND p.state IN ('OR', 'ID', 'CA')",
    ),
    "q4": Query(_q4, f"SELECT category, avg(price) FROM ({_WINNING}) WHERE rank = 1 GROUP BY category"),
    "q5": Query(
        _q5,
        "WITH w AS (SELECT b.auction, s AS start FROM bid b, range(-8000, 100000000, 2000) r(s) "
        "WHERE b.ts >= s AND b.ts < s + 10000), "
        "c AS (SELECT start, auction, count(*) AS n FROM w GROUP BY ALL) "
        "SELECT start, auction, n FROM c QUALIFY n = max(n) OVER (PARTITION BY start)",
    ),
    "q7": Query(
        _q7,
        "SELECT ts // 10000 * 10000, auction, bidder, price FROM bid "
        "QUALIFY price = max(price) OVER (PARTITION BY ts // 10000)",
    ),
    "q8": Query(
        _q8,
        "SELECT p.id, p.ts // 10000 * 10000, a.id FROM person p JOIN auction a "
        "ON p.id = a.seller AND p.ts // 10000 = a.ts // 10000",
    ),
    "q9": Query(
        lambda s: _winning(s).map(lambda r: (r[0].id, -r[2][0], r[2][1])),
        f"SELECT auction, price, ts_1 FROM ({_WINNING}) WHERE rank = 1",
    ),
    "q11": Query(
        lambda s: (
            s[2]
            .key_by(lambda b: b.bidder)
            .window(ps.Session(gap=2 * SECOND))
            .count()
            .map(lambda r: (r[0], r[1].start, r[1].end, r[2]))
        ),
        "WITH g AS (SELECT *, "
        "sum(CASE WHEN gap < 2000 THEN 0 ELSE 1 END) OVER (PARTITION BY bidder ORDER BY ts) AS n "
        "FROM (SELECT *, ts - lag(ts, 1, -10000) OVER (PARTITION BY bidder ORDER BY ts) AS gap FROM bid)) "
        "SELECT bidder, min(ts), max(ts) + 2000, count(*) FROM g GROUP BY bidder, n",
    ),
    "q13": Query(
        lambda s: (
            s[2]
            .key_by(lambda b: b.auction)
            .table_join(s[1].key_by(lambda a: a.id, lambda a: a.category))
            .map(lambda r: (r[0], r[1][0].price, r[1][1]))
        ),
        "SELECT b.auction, b.price, a.category "
        "FROM bid b JOIN auction a ON b.auction = a.id AND a.ts <= b.ts",
    ),
    "q14": Query(
        lambda s: (
            s[2]
            .filter(lambda b: 1000 < b.price * 908 // 1000 < 5000)
            .map(lambda b: (b.auction, "day" if 8 <= b.at // (3600 * SECOND) % 24 <= 18 else "night", b.at))
        ),
        "SELECT auction, "
        "CASE WHEN ts // 3600000 % 24 BETWEEN 8 AND 18 THEN 'day' ELSE 'night' END, ts FROM bid "
        "WHERE price * 908 // 1000 > 1000 AND price * 908 // 1000 < 5000",
    ),
    "q15": Query(
        lambda s: (
            s[2].window(ps.Tumbling(DAY)).distinct_count(lambda b: b.bidder).map(lambda r: (r[0].start, r[1]))
        ),
        "SELECT ts // 86400000 * 86400000, count(DISTINCT bidder) FROM bid GROUP BY ALL",
    ),
    "q16": Query(
        _daily(lambda b: b.channel),
        f"SELECT channel, ts // 86400000 * 86400000, {_STATS} FROM bid GROUP BY ALL",
    ),
    "q17": Query(
        _daily(lambda b: b.auction),
        f"SELECT auction, ts // 86400000 * 86400000, {_STATS} FROM bid GROUP BY ALL",
    ),
    "q18": Query(
        lambda s: (
            s[2]
            .key_by(lambda b: (b.bidder, b.auction))
            .window(ps.Tumbling(EVER))
            .max(lambda b: (b.at, b.price))
            .map(_flat)
            .map(lambda r: (r[0], r[1], r[3], r[4]))
        ),
        "SELECT bidder, auction, ts, price FROM bid "
        "QUALIFY row_number() OVER (PARTITION BY bidder, auction ORDER BY ts DESC) = 1",
    ),
    "q19": Query(
        lambda s: (
            s[2]
            .key_by(lambda b: b.auction)
            .window(ps.Tumbling(EVER))
            .top_k(10, lambda b: (b.price, -b.at))
            .flat_map(lambda r: [(r[0], b.price, b.at) for b in r[2]])
        ),
        "SELECT auction, price, ts FROM bid "
        "QUALIFY row_number() OVER (PARTITION BY auction ORDER BY price DESC, ts) <= 10",
    ),
    "q20": Query(
        lambda s: (
            s[2]
            .key_by(lambda b: b.auction)
            .interval_join(
                s[1].filter(lambda a: a.category == 10).key_by(lambda a: a.id), lower=-EVER, upper=EVER
            )
            .map(lambda r: (r[0], r[1][0].bidder, r[1][0].price, r[1][1].seller))
        ),
        "SELECT b.auction, b.bidder, b.price, a.seller FROM bid b JOIN auction a ON b.auction = a.id "
        "WHERE a.category = 10",
    ),
}


def run(query: Query, events: list[Event], workers: int) -> Counter[Any]:
    """The results of a query, of all workers."""

    def main(worker: ps.Worker) -> Counter[Any]:
        results: list[Any] = []
        with worker.dataflow() as scope:
            mine = scope.to_stream(events[worker.index :: worker.peers])
            on_time, _ = mine.event_time(lambda event: event.at, lateness=SECOND)
            streams = tuple(
                on_time.filter(lambda e, kind=kind: type(e) is kind) for kind in (Person, Auction, Bid)
            )
            query.ours(streams).inspect(results.append)
        worker.run()
        return Counter(map(tuple, results))

    found: Counter[Any] = Counter()
    for results in ps.execute(main, workers=workers):
        found.update(results)
    return found


def _row(event: Event) -> dict[str, Any]:
    """An event as a row; `at` is a word of SQL's."""
    return {"ts" if name == "at" else name: value for name, value in event._asdict().items()}


def answer(sql: str, events: list[Event]) -> Counter[Any]:
    """DuckDB's answer."""
    import duckdb
    import pyarrow as pa

    with duckdb.connect() as connection:
        for kind in (Person, Auction, Bid):
            rows = [_row(event) for event in events if type(event) is kind]
            connection.register(kind.__name__.lower(), pa.Table.from_pylist(rows))
        return Counter(map(tuple, connection.execute(sql).fetchall()))


def peer_rate(peer: Any, name: str, events: list[Event], ours: Counter[Any]) -> float:
    """The number of events that Bytewax takes in a second of a core; its results are ours."""
    timed = peer.prepared(events)
    start = time.process_time()
    found = peer.run(name, timed, (Person, Auction, Bid))
    seconds = time.process_time() - start
    expected = peer.comparable(name, ours)
    if found != expected:
        raise SystemExit(
            f"{name}: Bytewax gives {list((found - expected).items())[:3]} too many, and lacks "
            f"{list((expected - found).items())[:3]}"
        )
    return len(events) / seconds


def main() -> None:
    """Runs the queries and prints a line for each."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0] if __doc__ else None)
    parser.add_argument("--events", type=int, default=200_000)
    parser.add_argument("--workers", type=int, default=1)
    parser.add_argument("--query", nargs="*", choices=QUERIES, default=list(QUERIES))
    parser.add_argument("--check", action="store_true", help="compare with DuckDB")
    given = parser.parse_args()
    peer = None
    if given.workers == 1 and importlib.util.find_spec("bytewax") is not None:
        import nexmark_bytewax as peer
    events = make_events(given.events)
    for name in given.query:
        start = time.process_time()
        found = run(QUERIES[name], events, given.workers)
        rate = len(events) / (time.process_time() - start)
        verdict = ""
        if given.check:
            expected = answer(QUERIES[name].sql, events)
            if found != expected:
                raise SystemExit(
                    f"{name}: {sum((found - expected).values())} results too many, such as "
                    f"{list(found - expected)[:3]}, and {sum((expected - found).values())} missing, such as "
                    f"{list(expected - found)[:3]}"
                )
            verdict = ", DuckDB's answer"
        theirs: float | None = None
        if peer is not None and name in peer.QUERIES:
            theirs = peer_rate(peer, name, events, found)
            verdict += f", Bytewax {theirs:,.0f}: ours is {rate / theirs:.2f} times as fast"
        print(f"{name:4} {rate:12,.0f} events a second of a core, {sum(found.values())} results{verdict}")
        leave(
            "Nexmark",
            f"{name}, {len(events):,} events, {given.workers} worker(s)",
            rate,
            "Bytewax" if theirs else "",
            theirs,
            unit="events/s of a core",
            rate=True,
        )


if __name__ == "__main__":
    main()
