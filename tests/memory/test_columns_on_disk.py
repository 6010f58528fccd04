"""State of columns that memory has no room for: results are the same, and failures of the disk are errors."""

from __future__ import annotations

import random
import re
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import pointstamp as ps
from budgets import SMALL, budgets, metrics_of, written
from effort import examples

SCHEMA = pa.schema([("at", pa.int64()), ("key", pa.int64()), ("value", pa.int64()), ("word", pa.string())])

Rows = ps.ArrowStream
Program = Callable[[Rows, Rows], Rows]


def _in_time(program: Program) -> Program:
    """The program over the rows that are on time."""
    return lambda left, right: program(
        left.event_time("at", lateness=5)[0], right.event_time("at", lateness=5)[0]
    )


def _named(rows: Rows, name: str) -> Rows:
    return rows.rename({"value": name, "word": f"{name}_word"})


def _all_of(rows: Rows, window: Any, **more: Any) -> Rows:
    return rows.window(
        window,
        "key",
        n=ps.count(),
        total=ps.col("value").sum(),
        words=ps.col("word").collect(),
        **more,
    )


PER_TIME: dict[str, Program] = {
    "aggregate": lambda left, _: left.aggregate(
        "key", n=ps.count(), total=ps.col("value").sum(), least=ps.col("word").min()
    ),
    "aggregate, values": lambda left, _: left.aggregate("key", words=ps.col("word").collect()),
    "aggregate by several": lambda left, _: left.aggregate(["key", "word"], mean=ps.col("value").mean()),
    "distinct": lambda left, _: left.distinct(["key", "word"]),
    "distinct_so_far": lambda left, _: left.distinct_so_far(["key", "value"]),
    "join": lambda left, right: left.join(_named(right, "other"), "key", suffix="_2"),
    "join, full": lambda left, right: left.join(_named(right, "other"), "key", suffix="_2", how="full"),
    "join, anti": lambda left, right: left.join(right, ["key", "word"], how="anti"),
    "join_so_far": lambda left, right: left.join_so_far(_named(right, "other"), "key", suffix="_2"),
}

IN_TIME: dict[str, Program] = {
    "running": lambda left, _: left.running(
        "key", n=ps.count(), mean=ps.col("value").mean(), most=ps.col("word").max()
    ),
    "running, ttl": lambda left, _: left.running("key", total=ps.col("value").sum(), ttl=6),
    "dedup": lambda left, _: left.dedup(["key", "word"]),
    "dedup, ttl": lambda left, _: left.dedup("key", ttl=7),
    "tumbling": lambda left, _: _all_of(left, ps.Tumbling(7)),
    "sliding": lambda left, _: _all_of(left, ps.Sliding(9, every=4)),
    "sliding, early": lambda left, _: _all_of(left, ps.Sliding(9, every=4), early=3),
    "sessions": lambda left, _: _all_of(left, ps.Session(gap=4)),
    "counted": lambda left, _: _all_of(left, ps.Count(3)),
    "windows of windows": lambda left, _: _all_of(left, ps.Tumbling(4)).window(
        ps.Tumbling(12), "key", all=ps.col("total").sum()
    ),
    "interval_join": lambda left, right: left.interval_join(right, "key", lower=-3, upper=4),
    "interval_join, full": lambda left, right: left.interval_join(
        right, "key", lower=-3, upper=4, how="full"
    ),
    "asof_join": lambda left, right: left.asof_join(right, "key", within=5),
    "asof_join, for ever": lambda left, right: left.asof_join(right, "key"),
    "window_join": lambda left, right: left.window_join(right, "key", ps.Sliding(6, every=3), how="full"),
    "window_join, sessions": lambda left, right: left.window_join(right, "key", ps.Session(gap=4)),
}

PROGRAMS = PER_TIME | {name: _in_time(program) for name, program in IN_TIME.items()}


def drawn_rows(drawn: random.Random, time: int) -> pa.Table:
    """Rows of about a time, out of order."""
    rows = [
        (
            max(0, time + drawn.randrange(-3, 4)),
            drawn.choice([*range(30), None]),
            drawn.randrange(40),
            drawn.choice(["", "a", "bb", "a long word, longer than others", None]),
        )
        for _ in range(drawn.randrange(30))
    ]
    return pa.Table.from_pylist([dict(zip(SCHEMA.names, row, strict=True)) for row in rows], SCHEMA)


def run(name: str, seed: int, workers: int) -> list[Any]:
    """Returns all results of a program with random rows, in an order of its own."""
    drawn = random.Random(seed)
    rounds = [[drawn_rows(drawn, 3 * number) for _ in range(2)] for number in range(20)]

    def main(worker: ps.Worker) -> Any:
        sources = [ps.ArrowInput(SCHEMA), ps.ArrowInput(SCHEMA)]
        with worker.dataflow() as scope:
            captured = PROGRAMS[name](*(source.to_stream(scope) for source in sources)).to_records().capture()
        for number, sent in enumerate(rounds):
            for source, rows in zip(sources, sent, strict=True):
                if worker.index == 0 and rows.num_rows:  # so that rows of one time have an order
                    source.send(rows)
                source.advance_to(number + 1)
            worker.step()
        for source in sources:
            source.close()
        return captured

    made = []
    for captured in ps.execute(main, workers=workers):
        for time, results in captured.extract():
            made += [(time, repr(list(result.values()))) for result in results]
    return sorted(made)


@pytest.mark.parametrize("workers", [1, 2])
@pytest.mark.parametrize("name", PROGRAMS)
def test_results_are_those_of_memory_without_a_bound(name: str, workers: int) -> None:
    for seed in range(examples(3)):
        with budgets(None):
            expected = run(name, seed, workers)
        for memory in (SMALL, "8 KiB"):
            with budgets(memory) as made:
                assert run(name, seed, workers) == expected, memory
            assert memory != SMALL or written(made) > 0, "something was on disk"
        assert expected


def test_each_call_of_the_disk_may_fail_once(tmp_path: Path) -> None:
    """The error names the operator and the folder."""
    failures = 0
    rows = pa.Table.from_pylist([{"key": n % 50, "value": n} for n in range(400)])
    for calls in range(0, 600, 11):

        def main(worker: ps.Worker, calls: int = calls) -> None:
            made[0].fail_after(calls)
            with worker.dataflow() as scope:
                parts = [rows.slice(start, 100) for start in range(0, 400, 100)]
                columns = scope.to_stream(rows).concat(*(scope.to_stream(part) for part in parts))
                columns.aggregate("key", n=ps.col("value").sum(), name="sums")

        raised = ""
        with budgets(SMALL) as made:
            try:
                ps.execute(main, config=ps.Config(spill=tmp_path))
            except ps.PointstampError as error:
                raised = str(error)
        if not raised:
            break
        failures += 1
        assert re.search("sums(: total)? cannot", raised), raised
        assert str(tmp_path) in raised
    assert failures > 3


def test_a_state_is_listed_and_restored_wherever_it_is() -> None:
    schema = pa.schema([("at", pa.int64()), ("key", pa.int64())])

    def ran(start: int, state: Any) -> None:
        def main(worker: ps.Worker) -> None:
            source = ps.ArrowInput(schema)
            with worker.dataflow() as scope:
                source.to_stream(scope).running("key", n=ps.count(), column="at", state=state)
            times = list(range(start, start + 300))
            source.send(pa.table({"at": times, "key": [time % 40 for time in times]}, schema))
            source.advance_to(start + 300)
            worker.step_while(lambda: state.frontier < start + 300)
            source.close()

        ps.execute(main)

    with budgets(SMALL) as made:
        first: Any = ps.KeyedState()
        ran(0, first)
        assert len(first) == 40
        assert first[5]["n"] == 8
        second: Any = ps.KeyedState.restore([first.snapshot()])
        ran(300, second)
        assert {key: row["n"] for key, row in second.items()} == {key: 15 for key in range(40)}
    assert written(made) > 0


def test_state_in_memory_and_on_disk_is_shown(tmp_path: Path) -> None:
    schema = pa.schema([("at", pa.int64()), ("key", pa.int64()), ("text", pa.string())])

    def main(worker: ps.Worker) -> dict[str, float]:
        source = ps.ArrowInput(schema)
        with worker.dataflow() as scope:
            rows = source.to_stream(scope)
            probe = rows.running("key", last=ps.col("text").max(), column="at", name="counts").probe()
        for number in range(30):
            keys = list(range(1000 * number, 1000 * number + 1000))
            source.send(pa.table({"at": [number] * 1000, "key": keys, "text": ["x" * 100] * 1000}, schema))
            source.advance_to(number + 1)
            worker.step_while(partial(probe.less_than, number + 1))
        metrics = metrics_of(worker, "counts")
        source.close()
        return metrics

    [metrics] = ps.execute(main, config=ps.Config(memory="4 MiB", spill=tmp_path, dashboard=0))
    assert metrics["operator_state_rows"] == 30_000
    assert 0 < metrics["operator_state_bytes"] < 4 << 20
    assert metrics["operator_state_on_disk_bytes"] > 1 << 20
    assert 0.8 < metrics["operator_state_bytes"] / metrics["process_budget_used_bytes"] <= 1
