"""Snapshots record their operator, settings and worker; other operators, settings and workers refuse them."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime, timedelta, timezone
from functools import partial
from typing import Any

import pyarrow as pa
import pytest

import pointstamp as ps
from keyed_operators import COLUMNS, RECORDS, ROWS, SCHEMA
from pointstamp import _core

CUT = 5

Made = dict[str, Callable[[Any], Any]]


def operators(scope: ps.Scope, handles: list[Any]) -> Made:
    """Returns the program that makes each operator of a state."""
    left, right = (handle.to_stream(scope).key_by(lambda row: row[1]) for handle in handles[:2])
    rows, others = (handle.to_stream(scope) for handle in handles[2:])
    made: Made = {f"{name} of records": partial(make, left, right) for name, make in RECORDS.items()}
    made |= {f"{name} of columns": partial(make, rows, others) for name, make in COLUMNS.items()}
    return made


def inputs() -> list[Any]:
    return [ps.InputHandle(), ps.InputHandle(), ps.ArrowInput(SCHEMA), ps.ArrowInput(SCHEMA)]


@pytest.fixture(scope="module")
def snapshots() -> dict[str, bytes]:
    """One of each operator, with something in it."""

    def main(worker: ps.Worker) -> dict[str, bytes]:
        handles = inputs()
        states: dict[str, ps.KeyedState[Any, Any]] = {}
        with worker.dataflow() as scope:
            for name, make in operators(scope, handles).items():
                states[name] = ps.KeyedState()
                make(states[name])
        for row in ROWS:
            for handle in handles:
                handle.advance_to(row[0])
                record = dict(zip(SCHEMA.names, row, strict=True))
                columns = isinstance(handle, ps.ArrowInput)
                handle.send(pa.Table.from_pylist([record], schema=SCHEMA) if columns else row)
        for handle in handles:
            handle.advance_to(CUT)
        worker.step_while(lambda: any(state.frontier != CUT for state in states.values()))
        for state in states.values():
            assert len(state)
        return {name: state.snapshot() for name, state in states.items()}

    [found] = ps.execute(main)
    return found


def test_no_operator_takes_the_snapshot_of_another(snapshots: dict[str, bytes]) -> None:
    assert len(snapshots) >= 42
    taken: list[tuple[str, str]] = []
    said: list[str] = []

    def main(worker: ps.Worker) -> None:
        with worker.dataflow() as scope:
            for name, make in operators(scope, inputs()).items():
                for other, snapshot in snapshots.items():
                    state: ps.KeyedState[Any, Any] = ps.KeyedState.restore([snapshot])
                    if name == other:
                        make(state)
                        continue
                    try:
                        make(state)
                    except ValueError as error:
                        said.append(str(error))
                    else:
                        taken.append((name, other))

    ps.execute(main)
    assert taken == []
    assert all("this snapshot is of " in one and ", and was given to " in one for one in said)


def test_quantiles_go_on_with_other_shares() -> None:
    """The state is a sketch, whichever quantiles are requested: nothing is lost."""

    def run(shares: list[float], values: list[float], snapshots: list[bytes], end: int | None) -> Any:
        def main(worker: ps.Worker) -> Any:
            state: ps.KeyedState[Any, Any] = ps.KeyedState.restore(snapshots)
            source = ps.InputHandle[float]()
            sent: list[Any] = []
            with worker.dataflow() as scope:
                by_key = source.to_stream(scope).key_by(lambda _: "key")
                by_key.window(ps.Tumbling(10), state=state).quantiles(shares).inspect(sent.append)
            source.advance_to(3 if snapshots else 1)
            source.send_batch(values)
            if end is None:
                source.close()
                worker.run()
                return [quantiles for *_, quantiles in sent]
            source.advance_to(end)
            worker.step_while(lambda: state.frontier != end)
            return state.snapshot()

        return ps.execute(main)[0]

    snapshot = run([0.5], [1, 2, 3], [], 2)
    assert run([0, 0.5, 1], [10, 20], [snapshot], None) == run([0, 0.5, 1], [1, 2, 3, 10, 20], [], None)


def test_the_sentence_says_both_sides(snapshots: dict[str, bytes]) -> None:
    def build(scope: ps.Scope) -> None:
        state: ps.KeyedState[Any, Any] = ps.KeyedState.restore([snapshots["another gap of records"]])
        stream = scope.to_stream(ROWS).key_by(lambda row: row[1])
        RECORDS["session"](stream, stream, state)

    with pytest.raises(
        ValueError,
        match=r"of window: count\(window=Session\(gap=11\), times=ints\), and was given to "
        r"window: count\(window=Session\(gap=10\)",
    ):
        ps.example(build)


def of_workers(workers: int) -> list[bytes]:
    def main(worker: ps.Worker) -> bytes:
        state: ps.KeyedState[Any, Any] = ps.KeyedState()
        source = ps.InputHandle[Any]()
        with worker.dataflow() as scope:
            source.to_stream(scope).key_by(lambda n: n).scan(
                lambda _, n, most: max(most, n), default=int, state=state
            )
        source.send_batch(range(10))
        source.advance_to(5)
        worker.step_while(lambda: state.frontier != 5)
        return state.snapshot()

    return ps.execute(main, workers=workers)


def test_snapshots_are_one_of_each_worker() -> None:
    two, three = of_workers(2), of_workers(3)
    assert len(ps.KeyedState.restore(two)) == 10
    with pytest.raises(ValueError, match=r"the workers 0 of 2: restore takes one of each worker, 0 to 1"):
        ps.KeyedState.restore(two[:1])
    with pytest.raises(ValueError, match=r"the workers 1, 1 of 2"):
        ps.KeyedState.restore([two[1], two[1]])
    with pytest.raises(ValueError, match=r"the workers 0, 0, 1 of 2"):
        ps.KeyedState.restore([*two, two[0]])
    with pytest.raises(ValueError, match="of runs of 2 and 3 workers"):
        ps.KeyedState.restore([two[0], three[1], three[2]])
    with pytest.raises(ValueError, match="there is no worker 2 of 2"):
        ps.KeyedState.restore(two, index=2, peers=2)


def test_snapshots_are_of_one_operator(snapshots: dict[str, bytes]) -> None:
    with pytest.raises(ValueError, match="not of one operator, but of "):
        ps.KeyedState.restore([snapshots["scan of records"], snapshots["dedup of records"]])


def test_a_state_is_for_the_worker_that_it_was_restored_for() -> None:
    written = of_workers(2)

    def main(worker: ps.Worker) -> None:
        state: ps.KeyedState[Any, Any] = ps.KeyedState.restore(written)
        with worker.dataflow() as scope:
            scope.to_stream([1]).key_by(lambda n: n).scan(
                lambda _, n, most: max(most, n), default=int, state=state
            )

    with pytest.raises(
        ValueError, match=r"for worker 0 of 1, and was given to worker \d of 2: write restore"
    ):
        ps.execute(main, workers=2)


def test_times_of_another_kind_are_refused() -> None:
    noon = datetime(2024, 5, 1, 12, tzinfo=timezone.utc)

    def run(data: list[Any], lateness: Any, snapshot: list[bytes]) -> bytes:
        def main(worker: ps.Worker) -> bytes:
            state: ps.KeyedState[Any, Any] = ps.KeyedState.restore(snapshot)
            with worker.dataflow() as scope:
                on_time, _ = scope.to_stream(data).event_time(lambda at: at, lateness=lateness)
                on_time.key_by(lambda _: 0).scan(lambda _key, _, n: n + 1, default=int, state=state)
            worker.run()
            return state.snapshot()

        [found] = ps.execute(main)
        return found

    snapshot = run([noon], timedelta(1), [])
    with pytest.raises(
        ValueError, match=r"times=datetimes in units of 1/1 us\), and was given to .*times=ints"
    ):
        run([5], 1, [snapshot])


def snapshot_of(columns: bool) -> bytes:
    def main(worker: ps.Worker) -> bytes:
        state: ps.KeyedState[Any, Any] = ps.KeyedState()
        with worker.dataflow() as scope:
            if columns:
                rows = scope.to_stream([(0, "a", 1), (0, "b", 2)]).to_arrow(SCHEMA)
                rows.running("key", v_sum=ps.col("v").sum(), column="at", state=state)
            else:
                stream = scope.to_stream([("a", 1), ("b", 2)])
                stream.key_by(lambda pair: pair[0]).scan(
                    lambda _, pair, n: n + pair[1], default=int, state=state
                )
        worker.run()
        return state.snapshot()

    [snapshot] = ps.execute(main)
    return snapshot


@pytest.mark.parametrize("columns", [False, True], ids=["records", "columns"])
def test_a_damaged_snapshot_is_refused(columns: bool) -> None:
    snapshot = snapshot_of(columns)
    ps.KeyedState.restore([snapshot])
    for at in range(len(snapshot)):
        changed = bytearray(snapshot)
        changed[at] ^= 1 + at % 255
        with pytest.raises(ps.CodecError, match=r"damaged|no snapshot|another version"):
            ps.KeyedState.restore([bytes(changed)])
        with pytest.raises(ps.CodecError, match=r"damaged|no snapshot"):
            ps.KeyedState.restore([snapshot[:at]])


def test_what_is_no_snapshot_of_this_version_is_refused() -> None:
    snapshot = bytearray(snapshot_of(False))
    snapshot[len(b"pointstamp keyed state")] -= 1
    with pytest.raises(ps.CodecError, match="form 4, of another version, and this one reads form 5"):
        ps.KeyedState.restore([bytes(snapshot)])
    older = _core.encode_batch([("keyed state", 4, 5), ("key", True, 1, None, None)])
    for other in (b"", b"something", older):
        with pytest.raises(ps.CodecError, match="no snapshot of a KeyedState, or one from before"):
            ps.KeyedState.restore([other])
