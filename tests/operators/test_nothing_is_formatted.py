"""No operator makes text of a record, a state, or a function's name while nothing is wrong with them.

Such text is for an error that never comes, and once took three quarters of the time of `state_machine`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pyarrow as pa
import pytest

import pointstamp as ps
from keyed_operators import RECORDS, ROWS

runs = False
"""Whether a dataflow runs: while it is built, a function may be asked for its name."""


class Mute:
    """Nothing can be made text."""

    __slots__ = ()

    def _refuse(self, *_: Any) -> str:
        assert not runs, "this was made text, and nothing is wrong with it"
        return "something"

    __repr__ = __str__ = __format__ = _refuse


class Row(Mute, tuple[Any, ...]):
    """A record."""

    __slots__ = ()


class Number(Mute, int):
    """A value, a key or a time."""

    __slots__ = ()


class Function(Mute):
    """A function without a name."""

    __slots__ = ("_function",)

    def __init__(self, function: Callable[..., Any]) -> None:
        self._function = function

    def __call__(self, *given: Any) -> Any:
        return self._function(*given)

    def __getattribute__(self, name: str) -> Any:
        asked = name in ("__name__", "__qualname__")
        assert not (runs and asked), "a function was asked for its name, and nothing is wrong with it"
        return object.__getattribute__(self, name)


def run(build: Callable[[ps.Scope], Any]) -> None:
    def main(worker: ps.Worker) -> None:
        global runs
        with worker.dataflow() as scope:
            build(scope)
        runs = True
        try:
            worker.run()
        finally:
            runs = False

    ps.execute(main)


def rows() -> list[Row]:
    return [Row((Number(at), key, Number(value))) for at, key, value in ROWS]


@pytest.mark.parametrize("name", RECORDS)
def test_operators_by_key(name: str) -> None:
    def build(scope: ps.Scope) -> Any:
        on_time, _ = scope.to_stream(rows()).event_time(Function(lambda row: row[0]), lateness=10)
        left = on_time.key_by(Function(lambda row: row[1]))
        right = on_time.key_by(Function(lambda row: row[1]))
        return RECORDS[name](left, right, None).probe()

    run(build)


def timers(stream: Any) -> Any:
    def on_record(context: Any, row: Any) -> None:
        context.state = row
        context.set_timer(context.time + 5)
        context.cancel_timer(context.time + 6)

    def on_timer(context: Any) -> None:
        context.emit(context.state)

    on_time, _ = stream.event_time(Function(lambda row: row[0]), lateness=10)
    return on_time.key_by(lambda row: row[1]).process(Function(on_record), Function(on_timer), ttl=20)


SCHEMA = pa.schema([("at", pa.int64()), ("key", pa.string()), ("v", pa.int64())])
OPERATORS: dict[str, Callable[[Any], Any]] = {
    "state_machine": lambda s: s.map(lambda row: (row[1], row)).state_machine(
        Function(lambda key, row, state: (row, [row])), default=Function(lambda: None)
    ),
    "aggregate": lambda s: s.map(lambda row: (row[1], row)).aggregate(
        Function(lambda key, row, state: row), Function(lambda key, state: state), default=Function(list)
    ),
    "accumulate": lambda s: s.accumulate(Function(list), Function(lambda state, rows: rows)),
    "state_machine by key": lambda s: s.key_by(lambda row: row[1]).state_machine(
        Function(lambda key, row, state: (row, [row])), default=Function(lambda: None)
    ),
    "aggregate by key": lambda s: s.key_by(lambda row: row[1]).aggregate(
        Function(lambda key, row, state: row), default=Function(list)
    ),
    "process with timers": timers,
    "join": lambda s: s.map(lambda row: (row[1], row)).join(s.map(lambda row: (row[1], row))),
    "sort": lambda s: s.sort(Function(lambda row: row[0])),
    "top_k": lambda s: s.top_k(2, Function(lambda row: row[0])),
    "delay": lambda s: s.delay(Function(lambda row, time: time + 1)),
    "to_arrow": lambda s: s.to_arrow(SCHEMA),
    "map": lambda s: s.map(Function(lambda row: row)),
    "filter": lambda s: s.filter(Function(lambda row: True)),
    "flat_map": lambda s: s.flat_map(Function(lambda row: [row])),
    "exchange": lambda s: s.exchange(Function(lambda row: 0)),
    "partition": lambda s: s.partition(2, Function(lambda row: (0, row)))[0],
}


@pytest.mark.parametrize("name", OPERATORS)
def test_operators_of_records(name: str) -> None:
    run(lambda scope: OPERATORS[name](scope.to_stream(rows())).probe())
