"""What a type checker infers of programs without annotations: `make lint` checks this file, nothing runs it.

Each `assert_type` fails where an editor would know less than it says.
"""

from typing import Any

import pyarrow as pa
from typing_extensions import assert_type

import pointstamp as ps


def sources(scope: ps.Scope) -> None:
    handle, stream = scope.new_input()
    assert_type(handle, ps.InputHandle[Any])
    assert_type(stream, ps.Stream[Any])
    assert_type(scope.to_stream([1, 2]), ps.Stream[int])
    numbers: ps.InputHandle[int] = ps.InputHandle()
    assert_type(scope.input_from(numbers), ps.Stream[int])
    assert_type(scope.input_from(ps.ArrowInput(pa.schema([]))), ps.ArrowStream)


def loops(scope: ps.Scope) -> None:
    handle, again = scope.loop_variable(1)
    assert_type(handle, ps.LoopHandle)
    assert_type(again, ps.Stream[Any])
    assert_type(scope.feedback((0, 1)), tuple[ps.LoopHandle, ps.Stream[Any]])


def operators(stream: ps.Stream[str]) -> None:
    assert_type(stream.map(len), ps.Stream[int])
    assert_type(stream.filter(bool), ps.Stream[str])
    assert_type(stream.counts(), ps.Stream[tuple[str, int]])
    assert_type(stream.count(), ps.Stream[int])
    assert_type(stream.capture(), ps.Capture[str])
    pairs = stream.map(lambda word: (word, len(word)))
    assert_type(pairs, ps.Stream[tuple[str, int]])
    totals = pairs.aggregate(lambda _, n, total: total + n, lambda word, total: (word, total), default=int)
    assert_type(totals, ps.Stream[tuple[str, int]])
    # Records that are no pairs have no key to aggregate by.
    stream.map(len).aggregate(lambda _, n, s: s, lambda _, s: s, default=int)  # type: ignore[misc]


def custom(scope: ps.Scope, stream: ps.Stream[str]) -> None:
    builder = ps.OperatorBuilder(scope, "name")
    assert_type(builder.new_input(stream, ps.Pipeline()), int)
    assert_type(builder.new_output(), tuple[int, ps.Stream[Any]])
