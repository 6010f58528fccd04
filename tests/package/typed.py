"""Types that a checker infers of programs without annotations: `make lint` checks this file, nothing runs it.

Each `assert_type` fails where an editor would infer another type.
"""

from collections.abc import Callable
from typing import Any

import pyarrow as pa
from typing_extensions import assert_type

import pointstamp as ps
from pointstamp.connectors import Sink


def sources(scope: ps.Scope) -> None:
    handle, stream = scope.new_input()
    assert_type(handle, ps.InputHandle[Any])
    assert_type(stream, ps.Stream[Any])
    assert_type(scope.new_input(of=int), tuple[ps.InputHandle[int], ps.Stream[int]])
    assert_type(scope.new_input(of=tuple[str, int])[1], ps.Stream[tuple[str, int]])
    assert_type(scope.new_unordered_input(of=str)[2], ps.Stream[str])
    assert_type(scope.to_stream([1, 2]), ps.Stream[int])
    numbers: ps.InputHandle[int] = ps.InputHandle()
    assert_type(scope.input_from(numbers), ps.Stream[int])
    assert_type(scope.input_from(ps.ArrowInput(pa.schema([]))), ps.ArrowStream)
    assert_type(scope.iterator_source("days", [(0, ["rye"])]), ps.Stream[str])


def loops(scope: ps.Scope, words: ps.Stream[str]) -> None:
    handle, again = scope.loop_variable(1)
    assert_type(handle, ps.LoopHandle[Any])
    assert_type(again, ps.Stream[Any])
    words.connect_loop(handle)
    assert_type(scope.feedback((0, 1)), tuple[ps.LoopHandle[Any], ps.Stream[Any]])
    numbers, once_more = scope.loop_variable(of=int)
    assert_type(once_more, ps.Stream[int])
    once_more.map(abs).connect_loop(numbers)
    # Another kind of record than the loop was said to have.
    words.connect_loop(numbers)  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
    columns = scope.loop_variable(schema=pa.schema([]))
    assert_type(columns[1], ps.ArrowStream)


def operators(stream: ps.Stream[str]) -> None:
    assert_type(stream.map(len), ps.Stream[int])
    assert_type(stream.filter(bool), ps.Stream[str])
    assert_type(stream.value_counts(), ps.Stream[tuple[str, int]])
    assert_type(stream.count(), ps.Stream[int])
    assert_type(stream.capture(), ps.Capture[str])
    pairs = stream.map(lambda word: (word, len(word)))
    assert_type(pairs, ps.Stream[tuple[str, int]])
    totals = pairs.aggregate(lambda _, n, total: total + n, lambda word, total: (word, total), default=int)
    assert_type(totals, ps.Stream[tuple[str, int]])
    # Records that are no pairs have no key to aggregate by.
    stream.map(len).aggregate(lambda _, n, s: s, lambda _, s: s, default=int)  # type: ignore[misc]  # pyright: ignore[reportAttributeAccessIssue]


def custom(scope: ps.Scope, stream: ps.Stream[str]) -> None:
    builder = ps.OperatorBuilder(scope, "name")
    assert_type(builder.new_input(stream, ps.Pipeline()), int)
    assert_type(builder.new_output(), tuple[int, ps.Stream[Any]])
    assert_type(builder.new_output(of=int), tuple[int, ps.Stream[int]])
    assert_type(builder.new_output(pa.schema([])), tuple[int, ps.ArrowStream])


def lengths(
    capability: ps.Capability, info: ps.OperatorInfo
) -> Callable[[ps.InputPort[str], ps.OutputPort[int]], None]:
    capability.drop()

    def logic(input: ps.InputPort[str], output: ps.OutputPort[int]) -> None:
        for cap, words in input:
            assert_type(words, list[str])
            with output.session(cap) as session:
                session.give_all(map(len, words))
                session.give("x")  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]

    return logic


def joined(
    capability: ps.Capability, info: ps.OperatorInfo
) -> Callable[[ps.FrontieredInput[str], ps.FrontieredInput[int], ps.OutputPort[tuple[str, int]]], None]:
    return lambda words, numbers, output: None


def per_time(
    input: ps.FrontieredInput[str], output: ps.OutputPort[float], notificator: ps.Notificator
) -> None: ...


def columns_of(
    capability: ps.Capability, info: ps.OperatorInfo
) -> Callable[[ps.InputPort[pa.RecordBatch], ps.OutputPort[Any]], None]:
    return lambda batches, output: None


def custom_results(words: ps.Stream[str], numbers: ps.Stream[int], columns: ps.ArrowStream) -> None:
    assert_type(words.unary(ps.Pipeline(), "lengths", lengths), ps.Stream[int])
    assert_type(words.unary_frontier(ps.Pipeline(), "lengths", lengths), ps.Stream[int])
    assert_type(words.unary_notify(ps.Pipeline(), "per time", [], per_time), ps.Stream[float])
    both = words.binary_frontier(numbers, ps.Pipeline(), ps.Pipeline(), "joined", joined)
    assert_type(both, ps.Stream[tuple[str, int]])
    # Logic for records of another type than the stream's.
    numbers.unary(ps.Pipeline(), "lengths", lengths)  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
    assert_type(columns.unary(ps.Pipeline(), "columns", columns_of), ps.ArrowStream)
    assert_type(words.unary(ps.Pipeline(), "as columns", as_columns, schema=pa.schema([])), ps.ArrowStream)


def as_columns(
    capability: ps.Capability, info: ps.OperatorInfo
) -> Callable[[ps.InputPort[str], ps.OutputPort[Any]], None]:
    return lambda words, output: None


def keyed_state(pairs: ps.Stream[tuple[str, int]]) -> None:
    def deposit(name: str, amount: int, balance: float) -> tuple[float | None, list[str]]:
        return balance + amount, [name]

    assert_type(pairs.state_machine(deposit, default=float), ps.Stream[str])
    # Records that are no pairs have no key.
    pairs.map(str).state_machine(deposit, default=float)  # type: ignore[misc]  # pyright: ignore[reportAttributeAccessIssue]


def record_verbs(words: ps.Stream[str], pairs: ps.Stream[tuple[str, int]], sink: Sink) -> None:
    assert_type(words.flat_map(list), ps.Stream[str])
    assert_type(words.map_in_place(print), ps.Stream[str])
    assert_type(words.map_batches(lambda batch: [len(batch)]), ps.Stream[int])
    assert_type(words.try_map(len), tuple[ps.Stream[int], ps.Stream[tuple[str, Exception]]])
    assert_type(words.async_map(awaited), tuple[ps.Stream[Any], ps.Stream[tuple[str, Exception]]])
    assert_type(words.ok_err(lambda word: (True, word)), tuple[ps.Stream[Any], ps.Stream[Any]])
    assert_type(words.branch(lambda time, word: word == "a"), tuple[ps.Stream[str], ps.Stream[str]])
    assert_type(words.branch_when(lambda time: time == 1), tuple[ps.Stream[str], ps.Stream[str]])
    assert_type(words.partition(2, lambda word: (0, len(word))), list[ps.Stream[int]])
    assert_type(words.concat(words), ps.Stream[str])
    assert_type(pairs.join(pairs), ps.Stream[tuple[str, tuple[int, int]]])
    assert_type(pairs.join(pairs, how="full"), ps.Stream[tuple[str, tuple[int | None, int | None]]])
    assert_type(pairs.join(pairs, how="semi"), ps.Stream[tuple[str, int]])
    assert_type(pairs.join(pairs, lambda word, a, b: a * 0.5), ps.Stream[float])
    assert_type(pairs.aggregate(lambda _, n, total: total + n, default=float), ps.Stream[tuple[str, float]])
    assert_type(words.accumulate(int, lambda n, batch: n + len(batch), combine=max), ps.Stream[int])
    assert_type(words.window(ps.Tumbling(10)), ps.WindowedStream[None, str])
    assert_type(words.count(), ps.Stream[int])
    assert_type(pairs.reduce(max), ps.Stream[tuple[str, int]])
    assert_type(words.accumulate(int, lambda total, batch: total + len(batch)), ps.Stream[int])
    assert_type(words.distinct(), ps.Stream[str])
    assert_type(words.top_k(2, len), ps.Stream[str])
    assert_type(words.sort(len), ps.Stream[str])
    assert_type(words.event_time(len), tuple[ps.Stream[str], ps.Stream[str]])
    assert_type(words.delay(lambda word, time: time), ps.Stream[str])
    assert_type(words.delay_batch(lambda time: time), ps.Stream[str])
    assert_type(words.reclock(pairs), ps.Stream[str])
    assert_type(words.exchange(len), ps.Stream[str])
    assert_type(words.broadcast(), ps.Stream[str])
    assert_type(words.inspect(print), ps.Stream[str])
    assert_type(words.inspect_time(print), ps.Stream[str])
    assert_type(words.inspect_batch(print), ps.Stream[str])
    assert_type(words.probe(), ps.ProbeHandle)
    assert_type(words.probe_with(ps.ProbeHandle()), ps.Stream[str])
    assert_type(words.write(sink), ps.Stream[Any])
    assert_type(words.to_arrow(pa.schema([])), ps.ArrowStream)
    assert_type(words.to_collection(), ps.Collection[str])
    assert_type(pairs.to_collection(diffs=True), ps.Collection[str])
    words.capture_into(ps.EventWriter("words.events"))
    words.sink(ps.Pipeline(), "sink", nothing)
    assert_type(words.vertex(Echo), ps.Stream[Any])


def nested_verbs(words: ps.Stream[str], columns: ps.ArrowStream, inner: ps.Scope) -> None:
    assert_type(words.enter(inner), ps.Stream[str])
    assert_type(words.enter_at(inner, len), ps.Stream[str])
    assert_type(words.leave(), ps.Stream[str])
    assert_type(columns.enter(inner), ps.ArrowStream)
    assert_type(columns.leave(), ps.ArrowStream)


async def awaited(word: str) -> int:
    return len(word)


def nothing(info: ps.OperatorInfo) -> Callable[[ps.FrontieredInput[Any]], None]:
    return lambda input: None


class Echo(ps.Vertex):
    def on_recv(self, edge: int, messages: list[Any], time: ps.Time) -> None:
        self.send_by(0, messages, time)


def nested_collections(
    words: ps.Collection[str],
    rows: ps.ColumnCollection,
    arranged: ps.Arranged[str, int],
    inner: ps.Scope,
) -> None:
    assert_type(words.enter(inner), ps.Collection[str])
    assert_type(words.leave(), ps.Collection[str])
    assert_type(rows.enter(inner), ps.ColumnCollection)
    assert_type(rows.leave(), ps.ColumnCollection)
    assert_type(arranged.enter(inner), ps.Arranged[str, int])


def captures(
    words: ps.Stream[str], columns: ps.ArrowStream, changes: ps.Collection[str], rows: ps.ColumnCollection
) -> None:
    assert_type(words.capture().extract(), list[tuple[ps.Time, list[str]]])
    assert_type(columns.capture().extract(), list[tuple[ps.Time, list[pa.RecordBatch]]])
    assert_type(changes.capture().extract(), list[tuple[ps.Time, list[tuple[str, int]]]])
    assert_type(rows.capture().extract(), list[tuple[ps.Time, Any]])


def columns_of_both(capability: ps.Capability, info: ps.OperatorInfo) -> Callable[..., None]:
    return lambda left, right, output: None


def column_operators(columns: ps.ArrowStream, words: ps.Stream[str], sink: Sink) -> None:
    pacts = (ps.Pipeline(), ps.Pipeline())
    assert_type(columns.unary_frontier(ps.Pipeline(), "columns", columns_of), ps.ArrowStream)
    assert_type(columns.unary_notify(ps.Pipeline(), "columns", [], print), ps.ArrowStream)
    assert_type(columns.binary(words, *pacts, "columns", columns_of_both), ps.ArrowStream)
    assert_type(columns.binary_frontier(words, *pacts, "columns", columns_of_both), ps.ArrowStream)
    assert_type(columns.binary_notify(words, *pacts, "columns", [], print), ps.ArrowStream)
    assert_type(columns.vertex(Echo), ps.ArrowStream)
    assert_type(columns.write(sink), ps.Stream[Any])
    columns.sink(ps.Pipeline(), "sink", nothing)


def column_loop(scope: ps.Scope) -> None:
    handle, turns = scope.loop_variable(schema=pa.schema([]))
    assert_type(turns, ps.ArrowStream)
    turns.connect_loop(handle)


def two_inputs(words: ps.Stream[str], numbers: ps.Stream[int]) -> None:
    pacts = (ps.Pipeline(), ps.Pipeline())
    assert_type(words.binary(numbers, *pacts, "both", both), ps.Stream[int])
    assert_type(words.binary_notify(numbers, *pacts, "per time", [], both_per_time), ps.Stream[int])


def both(
    capability: ps.Capability, info: ps.OperatorInfo
) -> Callable[[ps.InputPort[str], ps.InputPort[int], ps.OutputPort[int]], None]:
    return lambda words, numbers, output: None


def both_per_time(
    words: ps.FrontieredInput[str],
    numbers: ps.FrontieredInput[int],
    output: ps.OutputPort[int],
    notificator: ps.Notificator,
) -> None: ...


def keyed_verbs(words: ps.Stream[str]) -> None:
    by_length = words.key_by(len)
    assert_type(by_length, ps.KeyedStream[int, str])
    assert_type(words.key_by(len, str.upper), ps.KeyedStream[int, str])
    assert_type(words.key_by(str.upper, len), ps.KeyedStream[str, int])
    assert_type(by_length.map_values(str), ps.KeyedStream[int, str])
    lengths = by_length.map_values(str)
    assert_type(lengths, ps.KeyedStream[int, str])
    counted = lengths.aggregate(lambda _, word, total: total + len(word), default=int)
    assert_type(counted, ps.Stream[tuple[int, int]])
    said = lengths.aggregate(
        lambda _, word, total: total + len(word), lambda length, total: str(total), default=int
    )
    assert_type(said, ps.Stream[str])
    assert_type(
        lengths.scan(lambda _, word, total: total + len(word), default=int), ps.Stream[tuple[int, int]]
    )
    assert_type(lengths.running("count"), ps.Stream[tuple[int, Any]])
    assert_type(lengths.state_machine(with_state, default=int), ps.Stream[str])
    assert_type(lengths.reduce(max), ps.Stream[tuple[int, str]])
    assert_type(lengths.top_k_so_far(2, len), ps.Stream[tuple[int, list[str]]])
    assert_type(lengths.window(ps.Tumbling(10)), ps.WindowedStream[int, str])
    assert_type(lengths.join(by_length), ps.Stream[tuple[int, tuple[str, str]]])
    assert_type(lengths.join(by_length, how="left"), ps.Stream[tuple[int, tuple[str | None, str | None]]])
    assert_type(lengths.join(by_length, how="anti"), ps.Stream[tuple[int, str]])
    assert_type(lengths.join(by_length, lambda length, a, b: length * 0.5), ps.Stream[float])
    assert_type(lengths.dedup(), ps.Stream[str])
    assert_type(lengths.process(print), ps.Stream[Any])
    assert_type(lengths.interval_join(by_length, lower=0, upper=1), ps.Stream[tuple[int, tuple[str, str]]])
    assert_type(
        lengths.interval_join(by_length, lower=0, upper=1, how="full"),
        ps.Stream[tuple[int, tuple[str | None, str | None]]],
    )
    assert_type(lengths.interval_join(by_length, lower=0, upper=1, how="anti"), ps.Stream[tuple[int, str]])
    assert_type(lengths.asof_join(lengths), ps.Stream[tuple[int, tuple[str, str | None]]])
    assert_type(lengths.table_join(lengths), ps.Stream[tuple[int, tuple[str, str | None]]])


def with_state(length: int, word: str, state: int) -> tuple[int | None, list[str]]:
    return state + length, [word]


def windowed_verbs(words: ps.KeyedStream[int, str]) -> None:
    windows = words.window(ps.Tumbling(10))
    assert_type(windows, ps.WindowedStream[int, str])
    assert_type(windows.count(), ps.Stream[tuple[int, ps.Window, int]])
    assert_type(windows.reduce(max), ps.Stream[tuple[int, ps.Window, str]])
    assert_type(windows.top_k(2, len), ps.Stream[tuple[int, ps.Window, list[str]]])
    lengths = words.map_values(len).window(ps.Tumbling(10))
    assert_type(windows.join(lengths), ps.Stream[tuple[int, ps.Window, tuple[str, int]]])
    outer = windows.join(lengths, how="left")
    assert_type(outer, ps.Stream[tuple[int, ps.Window, tuple[str | None, int | None]]])
    assert_type(windows.join(lengths, how="semi"), ps.Stream[tuple[int, ps.Window, str]])
    said_once = windows.join(lengths, lambda length, word, n: word * n)
    assert_type(said_once, ps.Stream[tuple[int, ps.Window, str]])
    counted = windows.aggregate(lambda _, word, total: total + len(word), default=int)
    assert_type(counted, ps.Stream[tuple[int, ps.Window, int]])
    said = windows.aggregate(lambda _, word, n: n + len(word), lambda _, n: str(n), default=int)
    assert_type(said, ps.Stream[tuple[int, ps.Window, str]])
    assert_type(windows.sum(len), ps.Stream[tuple[int, ps.Window, Any]])
    assert_type(windows.min(), ps.Stream[tuple[int, ps.Window, str]])
    assert_type(windows.max(len), ps.Stream[tuple[int, ps.Window, int]])
    assert_type(windows.mean(len), ps.Stream[tuple[int, ps.Window, Any]])
    assert_type(windows.quantiles([0.5], len), ps.Stream[tuple[int, ps.Window, list[float]]])
    assert_type(windows.distinct_count(), ps.Stream[tuple[int, ps.Window, int]])
    assert_type(windows.collect(len), ps.Stream[tuple[int, ps.Window, list[int]]])


def column_verbs(columns: ps.ArrowStream, rows: ps.ColumnCollection) -> None:
    assert_type(columns.map_batches(lambda batch: batch), ps.ArrowStream)
    assert_type(columns.select("a"), ps.ArrowStream)
    assert_type(columns.with_columns(b=ps.col("a")), ps.ArrowStream)
    assert_type(columns.rename({"a": "b"}), ps.ArrowStream)
    assert_type(columns.window_join(columns, "a", ps.Tumbling(10)), ps.ArrowStream)
    assert_type(columns.distinct_so_far("a"), ps.ArrowStream)
    assert_type(columns.limit(2), ps.ArrowStream)
    assert_type(columns.filter(ps.col("a") > 1), ps.ArrowStream)
    assert_type(columns.count(), ps.Stream[int])
    assert_type(columns.aggregate("a", n=ps.count()), ps.ArrowStream)
    assert_type(columns.running("a", n=ps.count()), ps.ArrowStream)
    assert_type(columns.window(ps.Tumbling(10), "a", n=ps.count()), ps.ArrowStream)
    assert_type(columns.distinct("a"), ps.ArrowStream)
    assert_type(columns.dedup("a"), ps.ArrowStream)
    assert_type(columns.sort("a"), ps.ArrowStream)
    assert_type(columns.join(columns, "a", how="full"), ps.ArrowStream)
    assert_type(columns.join_so_far(columns, "a"), ps.ArrowStream)
    assert_type(columns.interval_join(columns, "a", lower=0, upper=1), ps.ArrowStream)
    assert_type(columns.asof_join(columns, "a"), ps.ArrowStream)
    assert_type(columns.table_join(columns, "a"), ps.ArrowStream)
    assert_type(columns.event_time("a"), tuple[ps.ArrowStream, ps.ArrowStream])
    assert_type(columns.delay("a"), ps.ArrowStream)
    assert_type(columns.exchange("a"), ps.ArrowStream)
    assert_type(columns.partition(2, "a"), list[ps.ArrowStream])
    assert_type(columns.concat(columns), ps.ArrowStream)
    assert_type(columns.branch_when(lambda time: time == 1), tuple[ps.ArrowStream, ps.ArrowStream])
    assert_type(columns.inspect_batch(print), ps.ArrowStream)
    assert_type(columns.to_collection(), ps.ColumnCollection)
    assert_type(columns.broadcast(), ps.ArrowStream)
    assert_type(columns.delay_batch(lambda time: time), ps.ArrowStream)
    assert_type(columns.reclock(columns), ps.ArrowStream)
    assert_type(columns.probe(), ps.ProbeHandle)
    assert_type(columns.probe_with(ps.ProbeHandle()), ps.ArrowStream)
    columns.capture_into(ps.EventWriter("columns.events"))
    assert_type(rows.select("a", b=ps.col("a") * 2), ps.ColumnCollection)
    assert_type(rows.with_columns(b=ps.col("a") * 2), ps.ColumnCollection)
    assert_type(rows.rename({"a": "b"}), ps.ColumnCollection)
    assert_type(rows.filter(ps.col("a") > 1), ps.ColumnCollection)
    assert_type(rows.join(rows, "a", how="anti"), ps.ColumnCollection)
    assert_type(rows.aggregate("a", n=ps.count()), ps.ColumnCollection)
    assert_type(rows.count("a"), ps.ColumnCollection)
    assert_type(rows.value_counts(), ps.ColumnCollection)
    assert_type(rows.min("b", by="a"), ps.ColumnCollection)
    assert_type(rows.max("b", by="a"), ps.ColumnCollection)
    assert_type(rows.sum("b", by="a"), ps.ColumnCollection)
    assert_type(rows.mean("b", by="a"), ps.ColumnCollection)
    assert_type(rows.top_k(2, "b", by="a"), ps.ColumnCollection)
    assert_type(rows.collect("b", by="a", order="b", into="c"), ps.ColumnCollection)
    assert_type(rows.over("a", "b", place=ps.rank(), last=ps.col("b").lag(2)), ps.ColumnCollection)
    assert_type(rows.union(rows), ps.ColumnCollection)
    assert_type(rows.intersect(rows, distinct=False), ps.ColumnCollection)
    assert_type(rows.except_(rows), ps.ColumnCollection)
    assert_type(ps.col("b").std(ddof=0), ps.Aggregate)
    assert_type(ps.dense_rank(), ps.Aggregate)
    assert_type(ps.row_number(), ps.Aggregate)
    assert_type(rows.distinct(), ps.ColumnCollection)
    assert_type(rows.concat(rows), ps.ColumnCollection)
    assert_type(rows.negate(), ps.ColumnCollection)
    assert_type(rows.consolidate(), ps.ColumnCollection)
    assert_type(rows.iterate(lambda scope, turn: turn), ps.ColumnCollection)
    groups = rows.map_groups(lambda key, values: [], by="a", of="b", schema=pa.schema([]))
    assert_type(groups, ps.ColumnCollection)
    assert_type(rows.probe(), ps.ProbeHandle)
    rows.capture_into(ps.EventWriter("rows.events"))
    rows.show("rows", "a", descending=True)
    assert_type(rows.iterate(lambda scope, turn: turn, iterations=3), ps.ColumnCollection)
    assert_type(rows.updates(), ps.ArrowStream)
    assert_type(columns.to_records(), ps.Stream[dict[str, Any]])
    assert_type(rows.to_records(), ps.Collection[tuple[Any, ...]])


def collection_verbs(words: ps.Collection[str]) -> None:
    pairs = words.map(lambda word: (word, len(word)))
    assert_type(pairs, ps.Collection[tuple[str, int]])
    assert_type(words.filter(bool), ps.Collection[str])
    assert_type(words.flat_map(list), ps.Collection[str])
    assert_type(words.concat(words), ps.Collection[str])
    assert_type(words.distinct(), ps.Collection[str])
    assert_type(words.value_counts(), ps.Collection[tuple[str, int]])
    assert_type(words.inspect(print), ps.Collection[str])
    assert_type(words.probe(), ps.ProbeHandle)
    assert_type(pairs.join(pairs), ps.Collection[tuple[str, tuple[int, int]]])
    assert_type(pairs.join(pairs, how="left"), ps.Collection[tuple[str, tuple[int | None, int | None]]])
    assert_type(pairs.join(pairs, how="anti"), ps.Collection[tuple[str, int]])
    assert_type(pairs.join(pairs, lambda word, a, b: a * 0.5), ps.Collection[float])
    assert_type(pairs.min(), ps.Collection[tuple[str, int]])
    assert_type(pairs.max(), ps.Collection[tuple[str, int]])
    assert_type(pairs.sum(), ps.Collection[tuple[str, int]])
    assert_type(pairs.mean(), ps.Collection[tuple[str, float]])
    assert_type(pairs.count(), ps.Collection[tuple[str, int]])
    assert_type(pairs.top_k(2), ps.Collection[tuple[str, int]])
    assert_type(pairs.top_k(2, abs), ps.Collection[tuple[str, int]])
    assert_type(pairs.map_groups(lambda word, counted: [1.0]), ps.Collection[tuple[str, float]])
    assert_type(words.threshold(lambda word, n: 1), ps.Collection[str])
    assert_type(words.negate(), ps.Collection[str])
    assert_type(words.consolidate(), ps.Collection[str])
    assert_type(words.iterate(lambda scope, turn: turn), ps.Collection[str])
    assert_type(words.updates(), ps.Stream[tuple[str, ps.Time, int]])
    arranged = pairs.arrange()
    assert_type(arranged, ps.Arranged[str, int])
    assert_type(arranged.trace(), ps.Trace[str, int])
    assert_type(arranged.to_collection(), ps.Collection[tuple[str, int]])
    assert_type(arranged.join(pairs), ps.Collection[tuple[str, tuple[int, int]]])
    assert_type(arranged.count(), ps.Collection[tuple[str, int]])
    assert_type(arranged.sum(), ps.Collection[tuple[str, int]])
    assert_type(arranged.mean(), ps.Collection[tuple[str, float]])
    assert_type(arranged.min(), ps.Collection[tuple[str, int]])
    assert_type(arranged.max(), ps.Collection[tuple[str, int]])
    assert_type(arranged.top_k(2), ps.Collection[tuple[str, int]])
    assert_type(arranged.map_groups(lambda word, counted: [1.0]), ps.Collection[tuple[str, float]])
    assert_type(arranged.join(pairs, how="semi"), ps.Collection[tuple[str, int]])
    words.capture_into(ps.EventWriter("words.events"))
