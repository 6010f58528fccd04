"""Every public operator beside the plainest thing that does its work: `python benches/python/operators.py`.

Owns `ROWS`, a row for each public method of streams, keyed streams, windows, Arrow streams and collections
that makes an operator, and for each function of graphs. A row compares the operator with a plain loop, with
pyarrow, with NetworkX, or, where nothing else does its work, with the plainest dataflow of the same records.
Both run by turns in one process, on one worker, and the ratio is that of the least processor times, which
other work on the machine hardly changes.
tests/package/test_operator_rows.py compares the rows with the methods.
"""

from __future__ import annotations

import argparse
import gc
import io
import time
from collections import Counter, defaultdict, deque
from collections.abc import Callable
from heapq import nlargest
from itertools import chain, repeat
from operator import itemgetter
from typing import Any, NamedTuple

import networkx as nx
import pyarrow as pa
import pyarrow.compute as pc
from figures import leave

import pointstamp as ps
from pointstamp import graphs

SUBJECT = "Operators, CPU seconds"
KEYS = 500
WINDOWS = 20
PIPELINE = ps.Pipeline()
SCHEMA = pa.schema([("at", pa.int64()), ("key", pa.int64()), ("v", pa.int64())])


class Data:
    """The records of a row, in the order of time."""

    def __init__(self, count: int) -> None:
        self.count = count
        self.length = max(1, count // WINDOWS)
        self.ints = list(range(count))
        self.pairs = [(n % KEYS, n) for n in self.ints]
        self.events = [(n, n % KEYS, n * 7919 % count) for n in self.ints]
        self.batch = pa.RecordBatch.from_pydict(
            {
                "at": self.ints,
                "key": [key for _, key, _ in self.events],
                "v": [value for _, _, value in self.events],
            },
            schema=SCHEMA,
        )
        self.table = pa.Table.from_batches([self.batch])
        nodes = max(1, count // 5)
        self.edges = [(n * 7919 % nodes, (n * 104_729 + n // nodes) % nodes) for n in self.ints]
        # A table of few rows, for joins.
        self.few = [(key, key) for key in range(KEYS)]
        self.few_events = [(key, key, key) for key in range(KEYS)]
        self.few_batch = self.batch.slice(0, KEYS)
        self.few_table = pa.Table.from_batches([self.few_batch])


Work = Callable[[Data], Any]


class Row(NamedTuple):
    """An operator: ``Class.method``; what it is compared with; both."""

    operator: str
    beside: str
    ours: Work
    theirs: Work


ROWS: list[Row] = []


def ended(made: Any) -> None:
    """Lets a dataflow run to its end."""
    for one in made if isinstance(made, (list, tuple)) else [made]:
        if hasattr(one, "updates"):
            one.updates().probe()
        elif hasattr(one, "probe"):
            one.probe()


def flow(build: Callable[[ps.Scope, Data], Any]) -> Work:
    """A dataflow of one worker."""
    return lambda data: ps.example(lambda scope: ended(build(scope, data)))


def columns(build: Callable[[Any, Any, Data], Any]) -> Work:
    """A dataflow of one worker over the batch, and over the small one."""

    def run(data: Data) -> None:
        def main(worker: ps.Worker) -> None:
            inputs = [ps.ArrowInput(SCHEMA), ps.ArrowInput(SCHEMA)]
            with worker.dataflow() as scope:
                rows, few = (handle.to_stream(scope) for handle in inputs)
                few.probe()
                ended(build(rows, few, data))
            for handle, batch in zip(inputs, (data.batch, data.few_batch), strict=True):
                handle.send(batch)
                handle.close()
            worker.run()

        ps.execute(main)

    return run


def row(operator: str, beside: str, ours: Work, theirs: Work) -> None:
    """Adds a row."""
    ROWS.append(Row(operator, beside, ours, theirs))


# ---------------------------------------------------------------- streams of records


BARE = flow(lambda scope, data: scope.to_stream(data.ints).map(lambda n: n))
BARE_PAIRS = flow(lambda scope, data: scope.to_stream(data.pairs).map(lambda pair: pair))


def stream(method: str, of: Callable[[Any], Any], theirs: Work | None = None, beside: str = "a loop") -> None:
    """A row of a stream of ints; beside `map`, where nothing else is given."""
    ours = flow(lambda scope, data: of(scope.to_stream(data.ints)))
    row(f"Stream.{method}", beside if theirs else "map", ours, theirs or BARE)


def pairs(method: str, of: Callable[[Any, Data], Any], theirs: Work) -> None:
    """A row of a stream of pairs."""
    row(f"Stream.{method}", "a loop", flow(lambda scope, data: of(scope.to_stream(data.pairs), data)), theirs)


def per_key(data: Data) -> dict[int, int]:
    """The sum of each key."""
    totals: dict[int, int] = {}
    add = lambda total, value: total + value  # noqa: E731  # as the operators' closures
    for key, value in data.pairs:
        totals[key] = add(totals.get(key, 0), value)
    return totals


def after_each(data: Data) -> list[tuple[int, int]]:
    """The sum of each key after each record."""
    totals: dict[int, int] = {}
    add = lambda total, value: total + value  # noqa: E731
    made = []
    for key, value in data.pairs:
        totals[key] = total = add(totals.get(key, 0), value)
        made.append((key, total))
    return made


def machine(data: Data) -> list[tuple[int, int]]:
    """The same by a state machine."""
    states: dict[int, int] = {}
    fold = lambda key, value, state: (state + value, [(key, state + value)])  # noqa: E731
    made: list[tuple[int, int]] = []
    for key, value in data.pairs:
        states[key], outputs = fold(key, value, states.get(key, 0))
        made += outputs
    return made


def hashed_join(ours: list[Any], theirs: list[Any]) -> list[Any]:
    """Pairs of equal keys."""
    kept = dict(theirs)
    return [(key, (value, kept[key])) for key, value in ours if key in kept]


def doubled(data: Data) -> list[int]:
    """A function of each."""
    f = lambda n: n * 2  # noqa: E731
    return [f(n) for n in data.ints]


def chosen(data: Data) -> list[int]:
    """Some of them."""
    f = lambda n: n % 2 == 0  # noqa: E731
    return [n for n in data.ints if f(n)]


def divided(data: Data) -> tuple[list[int], list[int]]:
    """Two lists."""
    f = lambda n: (n % 2, n)  # noqa: E731
    parts: tuple[list[int], list[int]] = ([], [])
    for n in data.ints:
        to, record = f(n)
        parts[to].append(record)
    return parts


def looked_at(data: Data) -> None:
    """A call for each."""
    f = lambda n: None  # noqa: E731
    for n in data.ints:
        f(n)


def passing(capability: Any, _info: Any) -> Any:
    """The constructor of an operator that passes all on."""
    capability.drop()

    def logic(*ports: Any) -> None:
        *inputs, output = ports
        for port in inputs:
            for message, batch in port:
                with output.session(message) as session:
                    (session.give_all if isinstance(batch, list) else session.give)(batch)

    return logic


def passing_notified(*ports: Any) -> None:
    """The logic of an operator that passes all on, with a notificator."""
    *inputs, output, _ = ports
    for port in inputs:
        for message, batch in port:
            with output.session(message) as session:
                (session.give_all if isinstance(batch, list) else session.give)(batch)


def swallowing(_info: Any) -> Any:
    """The constructor of an operator without an output."""

    def logic(port: Any) -> None:
        for _, _batch in port:
            pass

    return logic


class Passing(ps.Vertex):
    """A vertex that passes all on."""

    def on_recv(self, edge: int, messages: Any, time: Any) -> None:
        """See `Vertex`."""
        self.send_by(0, messages if isinstance(messages, list) else [messages], time)


class Nowhere(ps.connectors.Sink):
    """A sink that keeps nothing."""

    single = False

    def open(self, index: int, peers: int) -> Any:
        """See `Sink`."""
        return NowhereWriter()


class NowhereWriter(ps.connectors.SinkWriter):
    """Its writer."""

    def write(self, time: Any, batch: Any) -> None:
        """See `SinkWriter`."""

    def prepare(self, time: Any) -> None:
        """See `SinkWriter`."""

    def commit(self, time: Any) -> None:
        """See `SinkWriter`."""

    def abort(self) -> None:
        """See `SinkWriter`."""

    def close(self) -> None:
        """See `SinkWriter`."""


def once_round(stream: Any) -> Any:
    """All records go round a loop once."""
    handle, round_again = stream.scope.feedback(1)
    both = stream.map(lambda n: (0, n)).concat(round_again)
    again, out = both.branch(lambda _, pair: pair[0] > 0)
    again.map(lambda pair: (1, pair[1])).connect_loop(handle)
    return out


def there_and_back(stream: Any, enter: Callable[[Any, Any], Any] | None = None) -> Any:
    """Into a scope, and out of it."""
    with stream.scope.iterative() as inner:
        entered = stream.enter(inner) if enter is None else enter(stream, inner)
        return entered.leave()


async def doubled_later(n: int) -> int:
    """A call that waits for nothing."""
    return n * 2


def called(data: Data) -> None:
    """So many calls by asyncio."""
    import asyncio

    async def main() -> list[int]:
        return [await doubled_later(n) for n in data.ints[: len(data.ints) // 10]]

    asyncio.run(main())


def captured(stream: Any) -> None:
    """Written to memory."""
    stream.capture_into(ps.EventWriter(io.BytesIO()))


def on_page(rows: Any) -> Any:
    """The rows, which the live page has, too."""
    rows.show("rows", "v")
    return rows


stream("map", lambda s: s.map(lambda n: n * 2), doubled)
stream(
    "flat_map",
    lambda s: s.flat_map(lambda n: (n,)),
    lambda d: list(chain.from_iterable((n,) for n in d.ints)),
)
stream("filter", lambda s: s.filter(lambda n: n % 2 == 0), chosen)
stream(
    "map_batches",
    lambda s: s.map_batches(lambda batch: [n * 2 for n in batch]),
    lambda d: [n * 2 for n in d.ints],
)
stream("map_in_place", lambda s: s.map_in_place(lambda n: None), looked_at)
stream("try_map", lambda s: s.try_map(lambda n: n * 2), doubled)
stream("ok_err", lambda s: s.ok_err(lambda n: (n % 2 == 0, n)), divided)
stream("partition", lambda s: s.partition(2, lambda n: (n % 2, n)), divided)
stream("branch", lambda s: s.branch(lambda time, n: n % 2 == 0), divided)
stream("branch_when", lambda s: s.branch_when(lambda time: True))
stream("inspect", lambda s: s.inspect(lambda n: None), looked_at)
stream("inspect_time", lambda s: s.inspect_time(lambda n, time: None), looked_at)
stream("inspect_batch", lambda s: s.inspect_batch(lambda time, batch: None))
stream("concat", lambda s: s.concat(s))
stream("exchange", lambda s: s.exchange(lambda n: n))
stream("broadcast", lambda s: s.broadcast())
stream("probe", lambda s: s.probe())
stream("probe_with", lambda s: s.probe_with(ps.ProbeHandle()))
stream("capture", lambda s: s.capture())
stream("capture_into", captured)
stream("delay", lambda s: s.delay(lambda n, time: time + 1), doubled)
stream("delay_batch", lambda s: s.delay_batch(lambda time: time + 1))
stream("enter", there_and_back)
stream("leave", there_and_back)
stream("enter_at", lambda s: there_and_back(s, lambda s, inner: s.enter_at(inner, lambda n: n % 3)), doubled)
stream("connect_loop", once_round)
stream("reclock", lambda s: s.reclock(s.scope.to_stream([0])))
stream("count", lambda s: s.count())
stream(
    "value_counts",
    lambda s: s.map(lambda n: n % KEYS).value_counts(),
    lambda d: Counter(n % KEYS for n in d.ints),
)
stream("distinct", lambda s: s.map(lambda n: n % KEYS).distinct(), lambda d: {n % KEYS for n in d.ints})
stream("sort", lambda s: s.sort(lambda n: -n), lambda d: sorted(d.ints, key=lambda n: -n))
stream("top_k", lambda s: s.top_k(10), lambda d: nlargest(10, d.ints))
stream(
    "accumulate", lambda s: s.accumulate(int, lambda total, batch: total + sum(batch)), lambda d: sum(d.ints)
)
stream("unary", lambda s: s.unary(PIPELINE, "passing", passing))
stream("unary_frontier", lambda s: s.unary_frontier(PIPELINE, "passing", passing))
stream("unary_notify", lambda s: s.unary_notify(PIPELINE, "passing", [], passing_notified))
stream("binary", lambda s: s.binary(s, PIPELINE, PIPELINE, "passing", passing))
stream("binary_frontier", lambda s: s.binary_frontier(s, PIPELINE, PIPELINE, "passing", passing))
stream("binary_notify", lambda s: s.binary_notify(s, PIPELINE, PIPELINE, "passing", [], passing_notified))
stream("vertex", lambda s: s.vertex(Passing))
stream("sink", lambda s: s.sink(PIPELINE, "swallowing", swallowing))
stream("write", lambda s: s.write(Nowhere()))
stream("to_collection", lambda s: s.to_collection(), lambda d: Counter(d.ints), "Counter")
stream(
    "async_map",
    lambda s: s.filter(lambda n: n % 10 == 0).async_map(doubled_later, capacity=1000),
    called,
    "awaits one after the other",
)
stream("event_time", lambda s: s.event_time(lambda n: n)[0], doubled)
row(
    "Stream.to_arrow",
    "RecordBatch.from_pylist",
    flow(lambda scope, data: scope.to_stream(data.events).to_arrow(SCHEMA)),
    lambda d: pa.RecordBatch.from_pylist([dict(zip(SCHEMA.names, r, strict=True)) for r in d.events], SCHEMA),
)
pairs("aggregate", lambda s, _: s.aggregate(lambda k, v, t: t + v, lambda k, t: (k, t), default=int), per_key)
pairs("reduce", lambda s, _: s.reduce(lambda a, b: a + b), per_key)
pairs(
    "state_machine", lambda s, _: s.state_machine(lambda k, v, t: (t + v, [(k, t + v)]), default=int), machine
)
pairs("join", lambda s, d: s.join(s.scope.to_stream(d.few)), lambda d: hashed_join(d.pairs, d.few))


# ---------------------------------------------------------------- streams by key, and windows


def on_time(scope: ps.Scope, events: list[Any]) -> Any:
    """Events by key, at their own times."""
    return scope.to_stream(events).event_time(itemgetter(0))[0].key_by(itemgetter(1), itemgetter(2))


def keyed(method: str, of: Callable[[Any, Data], Any], theirs: Work) -> None:
    """A row of a keyed stream of events."""
    row(
        f"KeyedStream.{method}",
        "a loop",
        flow(lambda scope, data: of(on_time(scope, data.events), data)),
        theirs,
    )


def with_few(method: str, of: Callable[[Any, Any], Any], theirs: Work) -> None:
    """A row of a join in time with a few events."""
    keyed(method, lambda k, d: of(k, on_time(k.scope, d.few_events)), theirs)


def event_sums(data: Data) -> list[Any]:
    """The sum of each key's values after each event."""
    totals: dict[int, int] = {}
    f = lambda total, value: total + value  # noqa: E731
    made = []
    for at, key, value in data.events:
        totals[key] = total = f(totals.get(key, 0), value)
        made.append((at, (key, total)))
    return made


def event_best(data: Data) -> list[Any]:
    """The two greatest so far, where they change."""
    best: dict[int, list[int]] = {}
    made = []
    for at, key, value in data.events:
        before = best.get(key, [])
        after = nlargest(2, [*before, value])
        if after != before:
            best[key] = after
            made.append((at, (key, after)))
    return made


def first_events(data: Data) -> list[Any]:
    """The first event of each key."""
    seen: set[int] = set()
    made = []
    for at, key, value in data.events:
        if key not in seen:
            seen.add(key)
            made.append((at, value))
    return made


def latest_rows(data: Data) -> list[Any]:
    """Each event with its key's of the few."""
    kept = {key: value for _, key, value in data.few_events}
    return [(at, (key, (value, kept.get(key)))) for at, key, value in data.events]


def close_rows(data: Data) -> list[Any]:
    """Events with those of the few that are near."""
    kept: defaultdict[int, deque[tuple[int, int]]] = defaultdict(deque)
    for at, key, value in data.few_events:
        kept[key].append((at, value))
    made = []
    for at, key, value in data.events:
        rows = kept[key]
        while rows and rows[0][0] < at - 5:
            rows.popleft()
        made += [(at, (key, (value, other))) for when, other in rows if when <= at + 5]
    return made


def equal_rows(data: Data) -> list[Any]:
    """Events with those of the few that have their time."""
    kept: defaultdict[tuple[int, int], list[int]] = defaultdict(list)
    for at, key, value in data.few_events:
        kept[at, key].append(value)
    return [
        (at, (key, (value, other))) for at, key, value in data.events for other in kept.get((at, key), ())
    ]


def windowed(step: Callable[[Any, int], Any], first: Callable[[], Any]) -> Work:
    """A loop that folds each window and key."""

    def run(data: Data) -> Any:
        windows: dict[tuple[int, int], Any] = {}
        length = data.length
        for at, key, value in data.events:
            place = (at // length, key)
            state = windows.get(place)
            windows[place] = step(first() if state is None else state, value)
        return windows

    return run


def appended(state: list[int], value: int) -> list[int]:
    """A list that grows."""
    state.append(value)
    return state


def added(state: set[int], value: int) -> set[int]:
    """A set that grows."""
    state.add(value)
    return state


keyed("scan", lambda k, _: k.scan(lambda _, value, total: total + value, default=int), event_sums)
keyed("running", lambda k, _: k.running("sum"), event_sums)
keyed(
    "state_machine", lambda k, _: k.state_machine(lambda k, v, t: (t + v, [(k, v)]), default=int), event_sums
)
keyed("process", lambda k, _: k.process(lambda context, v: context.emit(v)), event_sums)
keyed("dedup", lambda k, _: k.dedup(), first_events)
keyed("top_k_so_far", lambda k, _: k.top_k_so_far(2), event_best)
keyed("reduce", lambda k, _: k.reduce(lambda a, b: a + b), event_sums)
keyed("aggregate", lambda k, _: k.aggregate(lambda _, v, t: t + v, default=int), event_sums)
keyed("map_values", lambda k, _: k.map_values(lambda v: v + 1).running("sum"), event_sums)
keyed("window", lambda k, d: k.window(ps.Session(gap=KEYS * 2)).count(), event_sums)
with_few("asof_join", lambda k, few: k.asof_join(few), latest_rows)
with_few("table_join", lambda k, few: k.table_join(few), latest_rows)
with_few("join", lambda k, few: k.join(few), equal_rows)
with_few("interval_join", lambda k, few: k.interval_join(few, lower=-5, upper=5), close_rows)
row(
    "Stream.key_by",
    "a loop",
    flow(
        lambda scope, data: scope.to_stream(data.events).key_by(itemgetter(1)).running("count", itemgetter(2))
    ),
    event_sums,
)
row(
    "Stream.window",
    "a loop",
    flow(
        lambda scope, data: (
            scope.to_stream(data.events).event_time(itemgetter(0))[0].window(ps.Tumbling(data.length)).count()
        )
    ),
    lambda d: Counter(at // d.length for at, _, _ in d.events),
)


def window(method: str, of: Callable[[Any], Any], theirs: Work) -> None:
    """A row of tumbling windows."""
    row(
        f"WindowedStream.{method}",
        "a loop",
        flow(lambda scope, d: of(on_time(scope, d.events).window(ps.Tumbling(d.length)))),
        theirs,
    )


window("count", lambda w: w.count(), lambda d: Counter((at // d.length, key) for at, key, _ in d.events))
window("sum", lambda w: w.sum(), windowed(lambda s, v: s + v, int))
window("min", lambda w: w.min(), windowed(min, lambda: 1 << 60))
window("max", lambda w: w.max(), windowed(max, int))
window("mean", lambda w: w.mean(), windowed(lambda s, v: (s[0] + v, s[1] + 1), lambda: (0, 0)))
window("top_k", lambda w: w.top_k(2), windowed(lambda s, v: nlargest(2, [*s, v]), list))
window("collect", lambda w: w.collect(), windowed(appended, list))
window("distinct_count", lambda w: w.distinct_count(), windowed(added, set))
window("quantiles", lambda w: w.quantiles([0.5]), windowed(appended, list))
window(
    "aggregate", lambda w: w.aggregate(lambda _, v, s: s + v, default=int), windowed(lambda s, v: s + v, int)
)
window("reduce", lambda w: w.reduce(lambda a, b: a + b), windowed(lambda s, v: s + v, int))
row(
    "WindowedStream.join",
    "a loop",
    flow(
        lambda scope, d: (
            on_time(scope, d.events)
            .window(ps.Tumbling(d.length))
            .join(on_time(scope, d.few_events).window(ps.Tumbling(d.length)))
        )
    ),
    windowed(appended, list),
)


# ---------------------------------------------------------------- Arrow streams


BARE_COLUMNS = columns(lambda rows, _, data: rows)


def arrow(
    method: str,
    of: Callable[[Any, Any], Any],
    theirs: Work | None = None,
) -> None:
    """A row of an Arrow stream: beside pyarrow, or beside no operator where nothing else is given."""
    ours = columns(lambda rows, few, _: of(rows, few))
    row(f"ArrowStream.{method}", "pyarrow" if theirs else "no operator", ours, theirs or BARE_COLUMNS)


def timed(method: str, of: Callable[[Any, Any, Data], Any], theirs: Work) -> None:
    """A row of an Arrow stream at event time."""
    row(
        f"ArrowStream.{method}",
        "pyarrow",
        columns(lambda rows, few, d: of(rows.event_time("at")[0], few.event_time("at")[0], d)),
        theirs,
    )


def sums(data: Data) -> Any:
    """The sum of each key."""
    return data.table.group_by("key").aggregate([("v", "sum")])


def window_sums(data: Data) -> Any:
    """The sum of each window and key."""
    windows = pc.divide(data.table["at"], data.length)
    return data.table.append_column("w", windows).group_by(["w", "key"]).aggregate([("v", "sum")])


def joined(data: Data) -> Any:
    """Rows of one key."""
    return data.table.join(data.few_table, "key", right_suffix="_right", join_type="inner")


def by_key(data: Data) -> Any:
    """Sorted by key and time."""
    return data.table.sort_by([("key", "ascending"), ("at", "ascending")])


def distinct(data: Data) -> Any:
    """The keys."""
    return data.table.group_by("key").aggregate([])


arrow("select", lambda rows, _: rows.select("key"))
arrow("rename", lambda rows, _: rows.rename({"v": "w"}))
arrow(
    "with_columns",
    lambda rows, _: rows.with_columns(w=pc.field("v") * 2),
    lambda d: d.table.append_column("w", pc.multiply(d.table["v"], 2)),
)
arrow(
    "filter",
    lambda rows, _: rows.filter(pc.field("v") > 100),
    lambda d: d.table.filter(pc.greater(d.table["v"], 100)),
)
arrow(
    "map_batches",
    lambda rows, _: rows.map_batches(lambda batch: batch.select(["key"]), pa.schema([("key", pa.int64())])),
)
arrow("aggregate", lambda rows, _: rows.aggregate("key", v_sum=ps.col("v").sum()), sums)
arrow("distinct", lambda rows, _: rows.select("key").distinct("key"), distinct)
arrow("distinct_so_far", lambda rows, _: rows.select("key").distinct_so_far("key"), distinct)
arrow("sort", lambda rows, _: rows.sort("v"), lambda d: d.table.sort_by("v"))
arrow("limit", lambda rows, _: rows.limit(10))
arrow("count", lambda rows, _: rows.count())
arrow("join", lambda rows, few: rows.join(few, "key"), joined)
arrow("join_so_far", lambda rows, few: rows.join_so_far(few, "key"), joined)
arrow("exchange", lambda rows, _: rows.exchange("key"))
arrow("broadcast", lambda rows, _: rows.broadcast())
arrow(
    "partition",
    lambda rows, _: rows.partition(2, "key"),
    lambda d: [d.table.filter(pc.equal(d.table["key"], 1))],
)
arrow("branch_when", lambda rows, _: rows.branch_when(lambda time: True))
arrow("concat", lambda rows, few: rows.concat(few))
arrow("enter", lambda rows, _: there_and_back(rows))
arrow("leave", lambda rows, _: there_and_back(rows))
arrow("delay_batch", lambda rows, _: rows.delay_batch(lambda time: time + 1))
arrow("delay", lambda rows, _: rows.limit(1000).delay("at"))
arrow("reclock", lambda rows, few: rows.reclock(few))
arrow("probe", lambda rows, _: rows.probe())
arrow("probe_with", lambda rows, _: rows.probe_with(ps.ProbeHandle()))
arrow("capture", lambda rows, _: rows.capture())
arrow("capture_into", lambda rows, _: captured(rows))
arrow("inspect_batch", lambda rows, _: rows.inspect_batch(lambda time, batch: None))
arrow("unary", lambda rows, _: rows.unary(PIPELINE, "passing", passing))
arrow("unary_frontier", lambda rows, _: rows.unary_frontier(PIPELINE, "passing", passing))
arrow("unary_notify", lambda rows, _: rows.unary_notify(PIPELINE, "passing", [], passing_notified))
arrow("binary", lambda rows, few: rows.binary(few, PIPELINE, PIPELINE, "passing", passing))
arrow("binary_frontier", lambda rows, few: rows.binary_frontier(few, PIPELINE, PIPELINE, "passing", passing))
arrow(
    "binary_notify",
    lambda rows, few: rows.binary_notify(few, PIPELINE, PIPELINE, "passing", [], passing_notified),
)
arrow("vertex", lambda rows, _: rows.vertex(Passing))
arrow("sink", lambda rows, _: rows.sink(PIPELINE, "swallowing", swallowing))
arrow("write", lambda rows, _: rows.write(Nowhere()))
arrow("to_records", lambda rows, _: rows.to_records(), lambda d: d.table.to_pylist())
arrow(
    "to_collection",
    lambda rows, _: rows.to_collection(),
    lambda d: d.table.group_by(SCHEMA.names).aggregate([]),
)
arrow("connect_loop", lambda rows, _: arrow_round(rows))
arrow("event_time", lambda rows, _: rows.event_time("at")[0])
timed("running", lambda rows, _, d: rows.running("key", v_sum=ps.col("v").sum()), by_key)
timed("dedup", lambda rows, _, d: rows.dedup("key"), distinct)
timed(
    "window",
    lambda rows, _, d: rows.window(ps.Tumbling(d.length), "key", v_sum=ps.col("v").sum()),
    window_sums,
)
timed("window_join", lambda rows, few, d: rows.window_join(few, "key", ps.Tumbling(d.length)), joined)
timed("interval_join", lambda rows, few, d: rows.interval_join(few, "key", lower=-5, upper=5), joined)
timed("asof_join", lambda rows, few, d: rows.asof_join(few, "key"), joined)
timed("table_join", lambda rows, few, d: rows.table_join(few, "key"), joined)


def arrow_round(rows: Any) -> Any:
    """A loop that nothing goes round in."""
    handle, again = rows.scope.feedback(1, schema=SCHEMA)
    both = rows.concat(again)
    back, out = both.branch_when(lambda time: True)
    back.connect_loop(handle)
    return out


# ---------------------------------------------------------------- collections


def collection(method: str, of: Callable[[Any, Any], Any], theirs: Work, beside: str = "a loop") -> None:
    """A row of a collection of pairs, beside a small one."""

    def build(scope: ps.Scope, data: Data) -> Any:
        rows = scope.to_stream(data.pairs).to_collection()
        few = scope.to_stream(data.few).to_collection()
        few.probe()
        return of(rows, few)

    row(f"Collection.{method}", beside, flow(build), theirs)


def arranged(method: str, of: Callable[[Any, Any], Any], theirs: Work) -> None:
    """A row of an arranged collection of pairs."""
    collection(f"arrange().{method}", lambda rows, few: of(rows.arrange(), few), theirs)
    ROWS[-1] = ROWS[-1]._replace(operator=f"Arranged.{method}")


def counted(data: Data) -> Any:
    """Pairs and how often each is there."""
    return Counter(data.pairs)


def extremes(data: Data) -> dict[int, int]:
    """The greatest of each key."""
    best: dict[int, int] = {}
    for key, value in data.pairs:
        if value > best.get(key, -1):
            best[key] = value
    return best


def grouped(data: Data) -> dict[int, list[int]]:
    """The values of each key."""
    found: dict[int, list[int]] = {}
    for key, value in data.pairs:
        found.setdefault(key, []).append(value)
    return found


def few_joined(data: Data) -> list[Any]:
    """The join with the small one."""
    return hashed_join(data.pairs, data.few)


def known(data: Data) -> list[Any]:
    """The pairs whose key the small one has."""
    keys = {key for key, _ in data.few}
    return [pair for pair in data.pairs if pair[0] in keys]


def once(scope: ps.Scope, rows: Any) -> Any:
    """The body of a loop that ends at once."""
    return rows.distinct()


collection("map", lambda rows, _: rows.map(lambda pair: pair), counted)
collection("flat_map", lambda rows, _: rows.flat_map(lambda pair: [pair]), counted)
collection("filter", lambda rows, _: rows.filter(lambda pair: pair[1] % 2 == 0), counted)
collection("concat", lambda rows, few: rows.concat(few), counted)
collection("negate", lambda rows, _: rows.negate(), counted)
collection("inspect", lambda rows, _: rows.inspect(lambda pair, time, diff: None), counted)
collection("probe", lambda rows, _: rows.probe(), counted)
collection("capture", lambda rows, _: rows.capture(), counted)
collection("capture_into", lambda rows, _: captured(rows), counted)
collection("updates", lambda rows, _: rows.updates(), counted)
collection("enter", lambda rows, _: there_and_back(rows), counted)
collection("leave", lambda rows, _: there_and_back(rows), counted)
collection("consolidate", lambda rows, _: rows.consolidate(), counted)
collection("distinct", lambda rows, _: rows.distinct(), counted)
collection("threshold", lambda rows, _: rows.threshold(lambda pair, diff: diff), counted)
collection(
    "value_counts",
    lambda rows, _: rows.map(itemgetter(0)).value_counts(),
    lambda d: Counter(k for k, _ in d.pairs),
)
collection("count", lambda rows, _: rows.count(), lambda d: Counter(k for k, _ in d.pairs))
collection("sum", lambda rows, _: rows.sum(), per_key)
collection("mean", lambda rows, _: rows.mean(), per_key)
collection("min", lambda rows, _: rows.min(), extremes)
collection("max", lambda rows, _: rows.max(), extremes)
collection("top_k", lambda rows, _: rows.top_k(2), extremes)
collection("map_groups", lambda rows, _: rows.map_groups(lambda key, values: [len(values)]), grouped)
collection("join", lambda rows, few: rows.join(few), few_joined)
collection("join semi", lambda rows, few: rows.join(few, how="semi"), known)
collection("join anti", lambda rows, few: rows.join(few, how="anti"), known)
collection("arrange", lambda rows, _: rows.arrange().to_collection(), grouped)
collection("iterate", lambda rows, _: rows.iterate(once), counted)

arranged("to_collection", lambda rows, _: rows.to_collection(), grouped)
arranged("enter", lambda rows, _: arranged_inside(rows), grouped)
arranged("trace", lambda rows, _: (rows.trace(), rows.to_collection())[1], grouped)
arranged("join", lambda rows, few: rows.join(few), few_joined)
arranged("count", lambda rows, _: rows.count(), grouped)
arranged("sum", lambda rows, _: rows.sum(), per_key)
arranged("mean", lambda rows, _: rows.mean(), per_key)
arranged("min", lambda rows, _: rows.min(), extremes)
arranged("max", lambda rows, _: rows.max(), extremes)
arranged("top_k", lambda rows, _: rows.top_k(2), extremes)
arranged("map_groups", lambda rows, _: rows.map_groups(lambda key, values: [len(values)]), grouped)


def arranged_inside(rows: Any) -> Any:
    """An arrangement in a scope."""
    with rows.scope.iterative() as inner:
        return rows.enter(inner).to_collection().leave()


def of_columns(method: str, of: Callable[[Any, Any], Any], theirs: Work) -> None:
    """A row of a collection of columns, beside a small one."""

    def build(rows: Any, few: Any, _data: Data) -> Any:
        small = few.to_collection()
        small.probe()
        return of(rows.to_collection(), small)

    row(f"ColumnCollection.{method}", "pyarrow", columns(build), theirs)


def all_distinct(data: Data) -> Any:
    """The rows that differ."""
    return data.table.group_by(SCHEMA.names).aggregate([])


def counted_rows(data: Data) -> Any:
    """The number of rows of each key."""
    return data.table.group_by("key").aggregate([("v", "count")])


def extreme_rows(data: Data) -> Any:
    """The least and the greatest of each key."""
    return data.table.group_by("key").aggregate([("v", "min"), ("v", "max")])


def listed_rows(data: Data) -> Any:
    """The values of each key."""
    return data.table.group_by("key").aggregate([("v", "list")])


def semi(data: Data) -> Any:
    """The rows whose key the small table has."""
    return data.table.join(data.few_table.select(["key"]), "key", join_type="left semi")


of_columns("aggregate", lambda rows, _: rows.aggregate("key", v_sum=ps.col("v").sum()), sums)
of_columns("select", lambda rows, _: rows.select("key"), distinct)
of_columns("with_columns", lambda rows, _: rows.with_columns(w=ps.col("v") * 2), all_distinct)
of_columns("rename", lambda rows, _: rows.rename({"v": "w"}), all_distinct)
of_columns("to_records", lambda rows, _: rows.to_records(), lambda d: d.table.to_pylist())
of_columns("filter", lambda rows, _: rows.filter(ps.col("v") > 100), all_distinct)
of_columns("concat", lambda rows, few: rows.concat(few), all_distinct)
of_columns("negate", lambda rows, _: rows.negate(), all_distinct)
of_columns("probe", lambda rows, _: rows.probe(), all_distinct)
of_columns("capture", lambda rows, _: rows.capture(), all_distinct)
of_columns("capture_into", lambda rows, _: captured(rows), all_distinct)
of_columns("updates", lambda rows, _: rows.updates(), all_distinct)
of_columns("show", lambda rows, _: on_page(rows), all_distinct)
of_columns("enter", lambda rows, _: there_and_back(rows), all_distinct)
of_columns("leave", lambda rows, _: there_and_back(rows), all_distinct)
of_columns("consolidate", lambda rows, _: rows.consolidate(), all_distinct)
of_columns("distinct", lambda rows, _: rows.distinct(), all_distinct)
of_columns("iterate", lambda rows, _: rows.iterate(once), all_distinct)
of_columns("value_counts", lambda rows, _: rows.select("key").value_counts(), counted_rows)
of_columns("count", lambda rows, _: rows.count("key"), counted_rows)
of_columns("sum", lambda rows, _: rows.sum("v", by="key"), sums)
of_columns("mean", lambda rows, _: rows.mean("v", by="key"), sums)
of_columns("min", lambda rows, _: rows.min("v", by="key"), extreme_rows)
of_columns("max", lambda rows, _: rows.max("v", by="key"), extreme_rows)
of_columns("top_k", lambda rows, _: rows.top_k(2, "v", by="key"), by_key)
of_columns("collect", lambda rows, _: rows.collect("v", by="key", order="v"), by_key)
of_columns("over", lambda rows, _: rows.over("key", "v", place=ps.row_number()), by_key)
of_columns("union", lambda rows, few: rows.union(few), all_distinct)
of_columns("intersect", lambda rows, few: rows.intersect(few), all_distinct)
of_columns("except_", lambda rows, few: rows.except_(few), all_distinct)
of_columns("join", lambda rows, few: rows.join(few, "key"), joined)
of_columns("join semi", lambda rows, few: rows.join(few.select("key"), "key", how="semi"), semi)
of_columns("join anti", lambda rows, few: rows.join(few.select("key"), "key", how="anti"), semi)
of_columns(
    "map_groups",
    lambda rows, _: rows.map_groups(
        lambda key, values: [len(values)], by="key", of="v", schema=pa.schema([("n", pa.int64())])
    ),
    listed_rows,
)


# ---------------------------------------------------------------- graphs


def of_graph(
    function: str, build: Callable[[Any], Any], theirs: Callable[[Any], Any], *, both: bool = False
) -> None:
    """Adds a row for a function of graphs, beside NetworkX on a directed graph or, if `both`, on another."""
    kind = nx.Graph if both else nx.DiGraph
    row(
        f"graphs.{function}",
        "NetworkX",
        flow(lambda scope, data: build(scope.collection(data.edges))),
        lambda data: theirs(kind(data.edges)),
    )


def lengths(graph: Any) -> Any:
    """The shortest paths from a node."""
    nx.set_edge_attributes(graph, 3, "weight")
    return nx.single_source_dijkstra_path_length(graph, 0)


def core(graph: Any) -> Any:
    """The core of nodes with three neighbours and more."""
    graph.remove_edges_from(list(nx.selfloop_edges(graph)))
    return nx.k_core(graph, 3)


def rooted(edges: Any) -> Any:
    """The node that searches begin at."""
    return edges.scope.collection([0])


def weighted(edges: Any) -> Any:
    """The edges with a weight."""
    return edges.map((ps.record[0], (ps.record[1], 3)))


of_graph("bfs", lambda e: graphs.bfs(e, rooted(e)), lambda g: nx.single_source_shortest_path_length(g, 0))
of_graph("shortest_paths", lambda e: graphs.shortest_paths(weighted(e), rooted(e)), lengths)
of_graph(
    "connected_components",
    graphs.connected_components,
    lambda g: list(nx.connected_components(g)),
    both=True,
)
of_graph(
    "strongly_connected_components",
    graphs.strongly_connected_components,
    lambda g: list(nx.strongly_connected_components(g)),
)
of_graph("pagerank", lambda e: graphs.pagerank(e, iterations=5), lambda g: nx.pagerank(g, max_iter=100))
of_graph(
    "label_propagation",
    lambda e: graphs.label_propagation(e, iterations=3),
    lambda g: list(nx.community.asyn_lpa_communities(g, seed=1)),
    both=True,
)
of_graph("triangles", graphs.triangles, nx.triangles, both=True)
of_graph("clustering_coefficients", graphs.clustering_coefficients, nx.clustering)
of_graph("k_core", lambda e: graphs.k_core(e, 3), core, both=True)


# ---------------------------------------------------------------- measuring


def measured(work: Work, data: Data) -> float:
    """The processor time of one run."""
    start = time.process_time()
    work(data)
    return time.process_time() - start


def compared(one: Row, data: Data, turns: int) -> tuple[float, float]:
    """The least processor times of both sides, which take turns; of a short peer, for a hundred runs."""
    gc.collect()
    often = 1 + int(0.002 // max(measured(one.theirs, data), 1e-6))
    ours, theirs = [], []

    def peer(data: Data) -> None:
        for _ in repeat(None, often):
            one.theirs(data)

    for _ in range(turns):
        ours.append(measured(one.ours, data))
        theirs.append(measured(peer, data) / often)
    return min(ours), min(theirs)


def main() -> None:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0] if __doc__ else None)
    parser.add_argument("--records", type=int, default=100_000, help="records of each row (100,000)")
    parser.add_argument("--turns", type=int, default=5, help="turns of each row (5)")
    parser.add_argument("--only", help="rows whose names have this in them")
    given = parser.parse_args()
    data = Data(given.records)
    for one in ROWS:
        if given.only is None or given.only in one.operator:
            ours, theirs = compared(one, data, given.turns)
            figure = leave(SUBJECT, one.operator, ours, one.beside, theirs)
            print(
                f"{one.operator:<36}{ours * 1e9 / given.records:8.0f} ns a record, {figure.ratio or 0:9.2f} "
                f"of {one.beside}",
                flush=True,
            )


if __name__ == "__main__":
    main()
