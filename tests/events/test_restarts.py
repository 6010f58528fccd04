"""Resuming from snapshots: repeated records are left out, and timers due at the cut are not lost."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import pointstamp as ps
from effort import examples
from keyed_operators import COLUMNS, RECORDS, SCHEMA

NAMES = ("tumbling", "session", "scan", "interval join")
RECORD = {name: RECORDS[name] for name in (*NAMES, "process", "within")}
COLUMN = {name: COLUMNS[name] for name in NAMES}

Rows = list[tuple[int, str, int]]


def ran(
    program: Callable[..., Any],
    columns: bool,
    rows: Rows,
    workers: int,
    snapshots: list[bytes],
    end: int | None,
) -> tuple[Counter[str], list[bytes], int]:
    """Returns the results of rows that are all fed again; the state at `end`; and the rows left out."""

    def main(worker: ps.Worker) -> Any:
        state: ps.KeyedState[Any, Any] = ps.KeyedState.restore(
            snapshots, index=worker.index, peers=worker.peers
        )
        sources: list[Any] = [ps.ArrowInput(SCHEMA) if columns else ps.InputHandle() for _ in range(2)]
        sent: list[str] = []
        with worker.dataflow() as scope:
            streams = [source.to_stream(scope) for source in sources]
            if not columns:
                streams = [stream.key_by(lambda row: row[1]) for stream in streams]
            results = program(*streams, state)
            results = results.to_records() if columns else results
            results.inspect_time(lambda record, time: sent.append(repr((time, record))))
        for place, row in enumerate(rows):
            for source in sources:
                source.advance_to(row[0])
            if place % worker.peers == worker.index:
                record = dict(zip(SCHEMA.names, row, strict=True))
                sources[row[2] % 2].send(pa.Table.from_pylist([record], schema=SCHEMA) if columns else row)
        for source in sources:
            if end is None:
                source.close()
            else:
                source.advance_to(end)
        if end is None:
            worker.run()
            return sent, b"", state.left_out
        worker.step_while(lambda: state.frontier != end)
        return list(sent), state.snapshot(), state.left_out

    results = ps.execute(main, workers=workers)
    sent = Counter(item for some, _, _ in results for item in some)
    return sent, [snapshot for _, snapshot, _ in results], sum(left_out for *_, left_out in results)


@pytest.mark.parametrize("workers", [(1, 1), (2, 1), (1, 2)])
@pytest.mark.parametrize(
    ("name", "columns"), [*[(name, False) for name in RECORD], *[(name, True) for name in COLUMN]]
)
@settings(max_examples=examples(4))
@given(data=st.data())
def test_a_source_may_begin_anew(
    name: str, columns: bool, workers: tuple[int, int], data: st.DataObject
) -> None:
    """All rows are fed again: those before the cut are in the state already."""
    times = sorted(data.draw(st.sets(st.integers(0, 50), max_size=20)))
    rows = [(at, data.draw(st.sampled_from("aab")), value) for value, at in enumerate(times)]
    cut = data.draw(st.integers(1, 55))
    program = (COLUMN if columns else RECORD)[name]
    early = [row for row in rows if row[0] < cut]
    whole, _, none = ran(program, columns, rows, 1, [], None)
    first, snapshots, _ = ran(program, columns, early, workers[0], [], cut)
    second, _, left_out = ran(program, columns, rows, workers[1], snapshots, None)
    assert first + second == whole
    read = [row for row in early if name in ("interval join", "within") or row[2] % 2 == 0]
    assert (none, left_out) == (0, len(read))


def test_an_ended_run_is_gone_on_with_from_the_beginning() -> None:
    def run(snapshots: list[bytes]) -> Any:
        def main(worker: ps.Worker) -> Any:
            state: ps.KeyedState[Any, Any] = ps.KeyedState.restore(snapshots)
            source = ps.InputHandle[str]()
            with worker.dataflow() as scope:
                source.to_stream(scope).key_by(lambda word: word).scan(
                    lambda _key, _, n: n + 1, default=int, state=state
                )
            source.send_batch(["a", "b", "a"])
            source.advance_to(3)
            worker.step_while(lambda: state.frontier != 3)
            source.close()
            worker.run()
            assert (state.frontier, state.left_out) == (None, 0)
            return dict(state.items()), state.snapshot()

        [found] = ps.execute(main)
        return found

    first, snapshot = run([])
    second, _ = run([snapshot])
    assert (first, second) == ({"a": 2, "b": 1}, {"a": 4, "b": 2})


def alarms(rows: list[int], snapshots: list[bytes], end: int | None) -> tuple[Any, list[bytes]]:
    """Timers at 10 after each record, through a second operator that counts them."""

    def main(worker: ps.Worker) -> Any:
        states = [ps.KeyedState.restore(snapshots[n : n + 1]) for n in range(2)]
        source = ps.InputHandle[int]()
        with worker.dataflow() as scope:
            rung = (
                source.to_stream(scope)
                .key_by(lambda _: 0)
                .process(
                    lambda context, at: context.set_timer(at + 10),
                    lambda context: context.emit(context.time),
                    state=states[0],
                )
            )
            rung.key_by(lambda _: 0).scan(lambda _, at, times: [*times, at], default=list, state=states[1])
        for at in rows:
            source.advance_to(at)
            source.send(at)
        if end is None:
            source.close()
            worker.run()
        else:
            source.advance_to(end)
            worker.step_while(lambda: any(state.frontier != end for state in states))
        return states[1].get(0), [state.snapshot() for state in states]

    [found] = ps.execute(main)
    return found  # type: ignore[no-any-return]


def test_a_timer_at_the_cut_is_not_lost() -> None:
    """Its result is at the cut, so that the operator behind it has not taken it in."""
    before, snapshots = alarms([3, 5], [], 13)
    assert before is None
    after, _ = alarms([3, 5], snapshots, None)
    assert after == [13, 15]


@pytest.mark.parametrize("keys", [1, 1000])
def test_timers_that_are_set_after_the_end_for_ever_are_refused(keys: int) -> None:
    ran: list[int] = []

    def again(context: Any) -> None:
        assert context.ended
        ran.append(context.key)
        context.set_timer(context.time + 10)

    def build(scope: ps.Scope) -> Any:
        by_key = scope.to_stream(range(keys)).key_by(lambda n: n)
        return by_key.process(lambda c, _: c.set_timer(5), again).probe()

    with pytest.raises(ps.TimeError, match=r"again, set 10,000 timers .* for the key 0 .*context\.ended"):
        ps.example(build)
    assert set(ran) == {0}


def test_timers_that_timers_set_after_the_end_run() -> None:
    def again(context: Any) -> None:
        context.emit(context.key)
        if context.time < 50 + context.key:
            context.set_timer(context.time + 10)

    def build(scope: ps.Scope) -> Any:
        by_key = scope.to_stream(range(3)).key_by(lambda n: n)
        return by_key.process(lambda c, n: c.set_timer(5 + n), again).capture()

    assert ps.example(build).extract() == [(at + n, [n]) for at in range(5, 56, 10) for n in range(3)]


@pytest.mark.parametrize("which", ["on_record", "on_timer"])
def test_what_functions_of_process_return_is_refused(which: str) -> None:
    def sets(context: Any, _: int) -> None:
        context.set_timer(5)

    given: tuple[Any, Any] = (sets, lambda context: [context.key])
    if which == "on_record":
        given = (lambda context, record: [record], None)

    def build(scope: ps.Scope) -> Any:
        return scope.to_stream([1]).key_by(lambda _: 0).process(*given).probe()

    with pytest.raises(TypeError, match=rf"{which} of process, .*, returned \[\d\], which is dropped"):
        ps.example(build)
