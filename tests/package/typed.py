"""Types that a checker infers of programs without annotations: `make lint` checks this file, nothing runs it.

Each `assert_type` fails where an editor would know less than it says.
"""

from collections.abc import Callable
from typing import Any

import pyarrow as pa
from typing_extensions import assert_type

import pointstamp as ps


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
