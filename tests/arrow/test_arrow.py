"""Arrow streams: batches in and out without copying, operators with the meaning they have on records."""

from __future__ import annotations

import subprocess
import sys
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest

import pointstamp as ps
from arrow_rows import SCHEMA, TABLE, run


def addresses(batch: pa.RecordBatch) -> list[int | None]:
    return [None if b is None else b.address for column in batch.columns for b in column.buffers()]


def test_importing_the_package_does_not_import_pyarrow() -> None:
    code = "import sys, pointstamp; sys.exit('pyarrow' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code]).returncode == 0


def test_a_round_trip_copies_nothing() -> None:
    batch = pa.record_batch({"k": np.arange(50_000), "s": pa.array(["x"] * 50_000)})
    seen = []

    def look(given: pa.RecordBatch) -> pa.RecordBatch:
        seen.append(addresses(given))
        return given

    def main(worker: ps.Worker) -> list[Any]:
        rows = ps.ArrowInput(batch.schema)
        with worker.dataflow() as scope:
            stream = rows.to_stream(scope).map_batches(look)
            captured = stream.capture()
        rows.send(batch)
        rows.close()
        worker.run()
        return captured.extract()

    [[(_, [back])]] = ps.execute(main)
    assert back.equals(batch)
    given = addresses(batch)
    assert any(given)
    for other in (seen[0], addresses(back)):
        # A buffer that holds nothing (no row is null) may be left out.
        assert [b for a, b in zip(given, other, strict=True) if a is not None] == [a for a in given if a]


def test_the_schema_comes_back_with_its_metadata() -> None:
    field = pa.field("k", pa.int64(), nullable=False, metadata={"unit": "m"})
    schema = pa.schema([field, ("t", pa.timestamp("us", "UTC"))], metadata={"made": "here"})
    rows = ps.ArrowInput(schema)
    assert rows.schema.equals(schema, check_metadata=True)

    def main(worker: ps.Worker) -> Any:
        inputs = ps.ArrowInput(schema)
        with worker.dataflow() as scope:
            captured = scope.input_from(inputs).capture()
        inputs.send(pa.table({"k": [1], "t": [0]}, schema=schema))
        inputs.close()
        worker.run()
        return captured.extract()

    [[(_, [batch])]] = ps.execute(main)
    assert batch.schema.equals(schema, check_metadata=True)


@pytest.mark.parametrize("workers", [1, 2, 4])
def test_rows_move_by_key(workers: int) -> None:
    where: dict[int, set[int]] = {}

    def main(worker: ps.Worker) -> None:
        rows = ps.ArrowInput(SCHEMA)

        def look(_time: ps.Time, batch: pa.RecordBatch) -> None:
            where.setdefault(worker.index, set()).update(batch["k"].to_pylist())

        with worker.dataflow() as scope:
            rows.to_stream(scope).exchange("k").inspect_batch(look)
        if worker.index == 0:
            rows.send(TABLE)
        rows.close()
        worker.run()

    ps.execute(main, workers=workers)
    assert where == {w: {k for k in range(12) if k % workers == w} for w in range(workers)}


def test_tiny_sends_become_one_batch_and_a_large_one_several() -> None:
    schema = pa.schema([("n", pa.int64())])
    sizes: list[int] = []

    def main(worker: ps.Worker) -> None:
        rows = ps.ArrowInput(schema)
        with worker.dataflow() as scope:
            rows.to_stream(scope).inspect_batch(lambda _time, batch: sizes.append(batch.num_rows))
        for n in range(1000):
            rows.send(pa.record_batch({"n": [n]}, schema=schema))
        rows.advance_to(1)
        rows.send(pa.table({"n": np.arange(1_000_000)}))
        rows.close()
        worker.run()

    ps.execute(main)
    assert sizes[0] == 1000
    assert sum(sizes[1:]) == 1_000_000
    assert max(sizes) <= 1 << 17


def test_wide_rows_go_in_few_bytes_a_message() -> None:
    schema = pa.schema([("b", pa.binary())])
    sizes: list[int] = []

    def main(worker: ps.Worker) -> None:
        rows = ps.ArrowInput(schema)
        with worker.dataflow() as scope:
            rows.to_stream(scope).inspect_batch(lambda _time, batch: sizes.append(batch.num_rows))
        rows.send(pa.table({"b": [b"x" * (1 << 20)] * 64}, schema=schema))
        rows.close()
        worker.run()

    ps.execute(main)
    assert sum(sizes) == 64
    assert max(sizes) <= 17


def test_map_batches_may_return_several_and_none() -> None:
    schema = pa.schema([("n", pa.int64())])
    numbers = pa.table({"n": [0, 1, 2, 3]}, schema=schema)

    def split(batch: pa.RecordBatch) -> Any:
        for n in batch["n"].to_pylist():
            if n % 2:
                yield pa.record_batch({"n": [n] * n}, schema=schema)

    assert run(lambda rows: rows.map_batches(split), numbers) == [(0, [{"n": n} for n in (1, 3, 3, 3)])]
    assert run(lambda rows: rows.map_batches(lambda batch: []), numbers) == []


def test_map_batches_may_change_the_schema() -> None:
    schema = pa.schema([("length", pa.int32())])

    def measure(batch: pa.RecordBatch) -> pa.RecordBatch:
        return pa.record_batch([pc.utf8_length(batch["s"])], names=["length"])

    [(_, rows)] = run(lambda rows: rows.map_batches(measure, schema))
    assert rows == [{"length": 2}] * 12


def test_scopes_and_shape() -> None:
    def build(rows: ps.ArrowStream) -> ps.ArrowStream:
        with rows.scope.region() as region:
            inside = rows.enter(region)
            no, yes = inside.branch_when(lambda time: time == 0)
            later = yes.delay_batch(lambda _time: 3)
            both = later.concat(no)
            assert both.schema == SCHEMA
            return both.leave()

    [(time, rows)] = run(build)
    assert time == 3
    assert rows == TABLE.to_pylist()


@pytest.mark.parametrize("workers", [1, 2, 4])
def test_broadcast_count_and_partition(workers: int) -> None:
    def main(worker: ps.Worker) -> Any:
        rows = ps.ArrowInput(SCHEMA)
        with worker.dataflow() as scope:
            stream = rows.to_stream(scope)
            everywhere = stream.broadcast().count().capture()
            parts = [part.to_records().capture() for part in stream.partition(3, "k")]
        if worker.index == 0:
            rows.send(TABLE)
        rows.close()
        worker.run()
        return everywhere.extract(), [part.extract() for part in parts]

    results = ps.execute(main, workers=workers)
    assert [counted for counted, _ in results] == [[(0, [12 * workers])], *[[]] * (workers - 1)]
    parts = results[0][1]
    assert [[row["k"] for row in part[0][1]] for part in parts] == [
        [k for k in range(12) if k % 3 == part] for part in range(3)
    ]


@pytest.mark.parametrize("workers", [1, 2, 4])
def test_a_loop_over_batches(workers: int) -> None:
    """Collatz: every number goes round until it is 1, its steps counted."""
    schema = pa.schema([("start", pa.int64()), ("n", pa.int64()), ("steps", pa.int64())])

    def step(batch: pa.RecordBatch) -> pa.RecordBatch:
        n = batch["n"].to_numpy()
        following = np.where(n % 2 == 0, n // 2, 3 * n + 1)
        steps = batch["steps"].to_numpy() + 1
        return pa.record_batch([batch["start"], following, steps], schema=schema)

    def build(rows: ps.ArrowStream) -> ps.ArrowStream:
        with rows.scope.iterative() as inner:
            handle, again = inner.loop_variable(schema=schema)
            assert isinstance(again, ps.ArrowStream)
            current = rows.enter(inner).concat(again).exchange("n")
            ones = current.map_batches(lambda b: b.filter(pc.equal(b["n"], 1)))
            others = current.map_batches(lambda b: b.filter(pc.not_equal(b["n"], 1)))
            others.map_batches(step).connect_loop(handle)
            return ones.leave()

    starts = np.arange(1, 50)
    table = pa.table([starts, starts, np.zeros(49, np.int64)], schema=schema)
    [(_, rows)] = run(build, table, workers=workers)

    def steps(n: int) -> int:
        return 0 if n == 1 else 1 + steps(n // 2 if n % 2 == 0 else 3 * n + 1)

    assert {row["start"]: row["steps"] for row in rows} == {n: steps(n) for n in range(1, 50)}


@pytest.mark.parametrize("workers", [1, 2])
def test_operators_of_ones_own(workers: int) -> None:
    """`unary_frontier` over columns, with another schema; its totals come out when the time closes."""
    totals = pa.schema([("total", pa.int64())])

    def build(capability: ps.Capability, info: ps.OperatorInfo) -> Any:
        capability.drop()
        held: dict[Any, list[Any]] = {}

        def logic(input: Any, output: Any) -> None:
            for cap, batch in input:
                assert isinstance(batch, pa.RecordBatch)
                entry = held.setdefault(cap.time, [cap.retain(), 0])
                entry[1] += pc.sum(batch["k"]).as_py()
            for time in [t for t in held if not input.frontier.less_equal(t)]:
                cap, total = held.pop(time)
                with cap, output.session(cap) as session:
                    session.give(pa.table({"total": [total]}, schema=totals))

        return logic

    found = run(
        lambda rows: rows.unary_frontier(ps.Exchange("k"), "sum", build, schema=totals), workers=workers
    )
    [(time, rows)] = found
    assert time == 0
    assert sum(row["total"] for row in rows) == sum(range(12))
    assert len(rows) == workers


def test_an_operator_mixes_ports() -> None:
    def build(scope: ps.Scope) -> Any:
        columns = scope.to_stream([{"n": 1}, {"n": 2}]).to_arrow(pa.schema([("n", pa.int64())]))
        builder = scope.operator("mixed")
        builder.new_input(scope.to_stream([10, 20]), ps.Exchange(lambda n: n))
        builder.new_input(columns, ps.Exchange(["n"]))
        records_out, records = builder.new_output()
        columns_out, rows = builder.new_output(schema=pa.schema([("m", pa.int64())]))
        assert isinstance(rows, ps.ArrowStream)

        def constructor(capabilities: list[ps.Capability], info: ps.OperatorInfo) -> Any:
            for capability in capabilities:
                capability.drop()

            def logic(inputs: Any, outputs: Any) -> None:
                for cap, numbers in inputs[0]:
                    kept = cap.retain(columns_out)
                    with outputs[columns_out].session(kept) as session:
                        session.give(pa.record_batch({"m": numbers}))
                for cap, batch in inputs[1]:
                    kept = cap.retain(records_out)
                    with outputs[records_out].session(kept) as session:
                        session.give_all(batch["n"].to_pylist())

            return logic

        builder.build(constructor)
        return records.capture(), rows.to_records().capture()

    records, rows = ps.example(build)
    assert records.extract() == [(0, [1, 2])]
    assert rows.extract() == [(0, [{"m": 10}, {"m": 20}])]


def test_notifications_vertices_and_sinks() -> None:
    seen: list[Any] = []

    class Rows(ps.Vertex):
        def on_recv(self, edge: int, messages: Any, time: ps.Time) -> None:
            self.send_by(0, [messages], time)

    def logic(input: Any, output: Any, notificator: Any) -> None:
        for cap, batch in input:
            notificator.notify_at(cap.retain())
            with output.session(cap) as session:
                session.give(batch)
        for cap, _count in notificator:
            seen.append(("closed", cap.time))

    def sink(info: ps.OperatorInfo) -> Any:
        def run(input: Any) -> None:
            for cap, batch in input:
                seen.append((cap.time, batch.num_rows))

        return run

    def build(rows: ps.ArrowStream) -> ps.ArrowStream:
        passed = rows.unary_notify(ps.Pipeline(), "notified", [], logic)
        assert isinstance(passed, ps.ArrowStream)
        passed.sink(ps.Pipeline(), "sink", sink)
        made: ps.ArrowStream = passed.vertex(Rows)
        return made

    assert run(build) == [(0, TABLE.to_pylist())]
    assert seen == [(0, 12), ("closed", 0)] or seen == [("closed", 0), (0, 12)]


def test_reclock() -> None:
    def build(rows: ps.ArrowStream) -> ps.ArrowStream:
        return rows.reclock(rows.scope.to_stream([5]).delay(lambda tick, _time: tick))

    assert run(build) == [(5, TABLE.to_pylist())]


def test_records_and_back() -> None:
    def build(scope: ps.Scope) -> Any:
        rows = scope.to_stream([(1, "a"), {"k": 2, "s": None}]).to_arrow(SCHEMA)
        assert rows.schema == SCHEMA
        return rows.to_records().capture()

    assert ps.example(build).extract() == [(0, [{"k": 1, "s": "a"}, {"k": 2, "s": None}])]


@pytest.mark.parametrize(
    ("record", "message"),
    [({"k": 1}, "lacks 's'"), ({"k": 1, "s": "", "x": 1}, "no column for 'x'"), (3, "not 3")],
)
def test_records_that_are_no_rows(record: Any, message: str) -> None:
    with pytest.raises(TypeError, match=message):
        ps.example(lambda scope: scope.to_stream([record]).to_arrow(SCHEMA).capture())
