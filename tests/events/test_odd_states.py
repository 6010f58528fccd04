"""State by key of columns: batches with dictionaries of their own, columns of any name, times at the end."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pyarrow as pa
import pytest

import pointstamp as ps
from aggregates import named

WANTED = [("v", "sum")]
TIMES: Any = {"column": "at"}
WORDS = pa.dictionary(pa.int8(), pa.string())
Program = Callable[[ps.ArrowStream, ps.ArrowStream, str, Any], ps.ArrowStream]

PROGRAMS: dict[str, tuple[Program, list[str]]] = {
    "scan": (lambda a, _, key, s: a.running(key, **named(WANTED), state=s, **TIMES), ["seen"]),
    "dedup": (lambda a, _, key, s: a.dedup(key, state=s, **TIMES), ["seen"]),
    "session": (
        lambda a, _, key, s: a.window(ps.Session(gap=10), key, **named(WANTED), state=s, **TIMES),
        ["first", "last", "rows"],
    ),
    "count": (lambda a, _, key, s: a.window(ps.Count(2), key, **named(WANTED), state=s, **TIMES), ["rows"]),
    "tumbling": (
        lambda a, _, key, s: a.window(ps.Tumbling(10), key, **named(WANTED), state=s, **TIMES),
        ["pane", "closed"],
    ),
    "early": (
        lambda a, _, key, s: a.window(ps.Tumbling(10), key, **named(WANTED), early=3, state=s, **TIMES),
        ["pane"],
    ),
    "kept": (
        lambda a, _, key, s: a.window(ps.Tumbling(10), key, v_list=ps.col("v").collect(), state=s, **TIMES),
        ["pane", "closed"],
    ),
    "kept in sessions": (
        lambda a, _, key, s: a.window(ps.Session(gap=10), key, v_last=ps.col("v").last(), state=s, **TIMES),
        ["first", "last", "rows"],
    ),
    "window join": (
        lambda a, b, key, s: a.window_join(b, key, ps.Sliding(10, every=5), state=s, **TIMES),
        ["matched", "closed"],
    ),
    "session join": (
        lambda a, b, key, s: a.window_join(b, key, ps.Session(gap=10), state=s, **TIMES),
        ["matched", "closed"],
    ),
    "interval join": (
        lambda a, b, key, s: a.interval_join(b, key, lower=-9, upper=9, state=s, **TIMES),
        ["matched"],
    ),
    "as-of join": (lambda a, b, key, s: a.asof_join(b, key, state=s, **TIMES), ["matched"]),
    "table join": (lambda a, b, key, s: a.table_join(b, key, state=s, **TIMES), ["matched"]),
}


def ran(
    program: Program, key: str, snapshots: list[bytes], rows: list[Any], start: int, end: int | None
) -> tuple[list[str], bytes, dict[Any, Any]]:
    schema = pa.schema([("at", pa.int64()), (key, pa.string()), ("v", pa.int64())])

    def main(worker: ps.Worker) -> Any:
        state: ps.KeyedState[Any, Any] = ps.KeyedState.restore(snapshots)
        sources = [ps.ArrowInput(schema), ps.ArrowInput(schema)]
        sent: list[str] = []
        with worker.dataflow() as scope:
            left, right = (source.to_stream(scope) for source in sources)
            results = program(left, right, key, state).to_records()
            results.inspect_time(lambda row, time: sent.append(repr((time, row))))
        for source in sources:
            source.advance_to(start)
            for row in rows:
                source.advance_to(row[0])
                named = dict(zip(schema.names, row, strict=True))
                source.send(pa.Table.from_pylist([named], schema=schema))
        if end is None:
            for source in sources:
                source.close()
            worker.run()
            return sent, b"", {}
        for source in sources:
            source.advance_to(end)
        worker.step_while(lambda: state.frontier != end)
        return list(sent), state.snapshot(), dict(state.items())

    [result] = ps.execute(main)
    return result  # type: ignore[no-any-return]


@pytest.mark.parametrize(
    ("name", "key"), [(name, key) for name, (_, keys) in PROGRAMS.items() for key in keys]
)
def test_a_key_may_be_named_as_what_is_kept(name: str, key: str) -> None:
    program = PROGRAMS[name][0]
    rows = [(1, "a", 5), (2, "b", 6), (3, "a", 7)]
    whole, _, _ = ran(program, key, [], [*rows, (6, "a", 1)], 0, None)
    first, snapshot, listed = ran(program, key, [], rows, 0, 5)
    assert set(listed) <= {"a", "b"}
    assert "b" in listed
    second, _, _ = ran(program, key, [snapshot], [(6, "a", 1)], 5, None)
    assert sorted(first + second) == sorted(whole)


def test_a_value_may_be_named_as_a_note() -> None:
    schema = pa.schema([("at", pa.int64()), ("k", pa.string()), ("matched", pa.int64())])

    def main(worker: ps.Worker) -> Any:
        state: ps.KeyedState[Any, Any] = ps.KeyedState()
        source = ps.ArrowInput(schema)
        with worker.dataflow() as scope:
            rows = source.to_stream(scope)
            rows.interval_join(rows, "k", lower=0, upper=9, column="at", state=state)
        source.send(pa.Table.from_pylist([{"at": 1, "k": "a", "matched": 7}], schema=schema))
        source.advance_to(3)
        worker.step_while(lambda: state.frontier != 3)
        return state["a"]

    [(left, _)] = ps.execute(main)
    assert left == [{"at": 1, "k": "a", "matched": 7, "matched_": True}]


@pytest.mark.parametrize("columns", [False, True])
def test_a_snapshot_before_the_input_has_moved_is_as_of_the_one_that_was_restored(columns: bool) -> None:
    schema = pa.schema([("at", pa.int64()), ("k", pa.string()), ("v", pa.int64())])

    def main(worker: ps.Worker, snapshot: bytes | None, moves: bool) -> bytes:
        state: ps.KeyedState[Any, Any] = ps.KeyedState.restore([snapshot] if snapshot else [])
        source: Any = ps.ArrowInput(schema) if columns else ps.InputHandle()
        with worker.dataflow() as scope:
            rows: Any = source.to_stream(scope)
            if columns:
                rows.running("k", **named(WANTED), column="at", state=state)
            else:
                rows.key_by(lambda pair: pair[0]).scan(
                    lambda _, pair, n: n + pair[1], default=int, state=state
                )
        if moves:
            row = {"at": 0, "k": "a", "v": 5}
            source.send(pa.Table.from_pylist([row], schema=schema) if columns else ("a", 5))
            source.advance_to(5)
            worker.step_while(lambda: state.frontier != 5)
        for _ in range(3):
            worker.step()
        assert state.frontier == 5
        assert list(dict(state.items())) == ["a"]
        return state.snapshot()

    [first] = ps.execute(lambda worker: main(worker, None, True))
    [second] = ps.execute(lambda worker: main(worker, first, False))
    assert ps.KeyedState.restore([second]).frontier == 5


# -------------------------------------------------------------------- dictionaries

ODD = pa.schema(
    [
        ("at", pa.int64()),
        ("k", WORDS),
        ("v", pa.int64()),
        ("nested", pa.struct([("word", WORDS)])),
        ("more", pa.list_(pa.field("item", WORDS))),
    ]
)


def odd_batch(number: int) -> pa.RecordBatch:
    words = pa.array([f"{number}-{place}" for place in range(100)]).dictionary_encode().cast(WORDS)
    some = pa.array([place % 3 == 0 for place in range(100)])
    nested = pa.StructArray.from_arrays([words], fields=list(ODD.field("nested").type), mask=some)
    more = pa.ListArray.from_arrays(pa.array(range(101), pa.int32()), words)
    columns = [pa.array([5] * 100), words, pa.array(range(100)), nested, more]
    return pa.RecordBatch.from_arrays(columns, schema=ODD)


OF_DICTIONARIES: dict[str, tuple[Callable[[Any, Any], Any], str | None]] = {
    "scan": (lambda a, _: a.running("k", **named(WANTED)), "v"),
    "dedup": (lambda a, _: a.dedup("k"), "v"),
    "session": (lambda a, _: a.window(ps.Session(gap=5), "k", **named(WANTED)), "v_sum"),
    "count": (lambda a, _: a.window(ps.Count(2), "k", **named(WANTED)), "v_sum"),
    "early": (lambda a, _: a.window(ps.Tumbling(50), "k", **named(WANTED), early=50), "v_sum"),
    "state": (lambda a, _: a.window(ps.Tumbling(50), "k", **named(WANTED), state=ps.KeyedState()), "v_sum"),
    "as-of join": (lambda a, b: a.asof_join(b, "k"), "v_right"),
    "interval join": (lambda a, b: a.interval_join(b, "k", lower=0, upper=0), "v_right"),
    "aggregate list": (lambda a, _: a.aggregate("k", v_list=ps.col("v").collect()), None),
    "window list": (lambda a, _: a.window(ps.Tumbling(50), "k", v_list=ps.col("v").collect()), None),
    "nunique": (
        lambda a, _: a.aggregate(
            "v",
            k_nunique=ps.col("k").distinct_count(),
            k_first=ps.col("k").first(),
            k_top_1=ps.col("k").top_k(1),
        ),
        None,
    ),
}


@pytest.mark.parametrize("name", OF_DICTIONARIES)
def test_batches_with_a_dictionary_each_wait_together(name: str) -> None:
    """There are more values in them than a dictionary of the column's type has room for."""
    build, total = OF_DICTIONARIES[name]

    def main(worker: ps.Worker) -> Any:
        sources = [ps.ArrowInput(ODD), ps.ArrowInput(ODD)]
        with worker.dataflow() as scope:
            sides = [source.to_stream(scope).event_time("at", lateness=9)[0] for source in sources]
            captured = build(*sides).to_records().capture()
        for number in range(3):
            for source in sources:
                source.send(odd_batch(number))
            worker.step()
        for source in sources:
            source.close()
        worker.run()
        return [row for _, rows in captured.extract() for row in rows]

    [rows] = ps.execute(main)
    expected = {f"{number}-{place}": place for number in range(3) for place in range(100)}
    if total is not None:
        assert {row["k"]: row[total] for row in rows} == expected
    elif name == "nunique":
        assert {row["v"] for row in rows} == set(range(100))
        assert {row["k_nunique"] for row in rows} == {3}
    else:
        assert {row["k"]: row["v_list"] for row in rows} == {k: [n] for k, n in expected.items()}
    for row in rows:
        if "more" in row:
            assert row["more"] == [row["k"]]
            assert row["nested"] in (None, {"word": row["k"]})


def test_null_structs_may_have_keys_of_no_value() -> None:
    """Values under a null are not looked at: a slice or a filter may leave anything there."""
    schema = pa.schema([("at", pa.int64()), ("k", pa.int64()), ("nested", pa.struct([("word", WORDS)]))])

    def batch(number: int) -> pa.RecordBatch:
        word = pa.DictionaryArray.from_arrays(pa.array([0, 7], pa.int8()), pa.array(["w"]), safe=False)
        fields = list(schema.field("nested").type)
        nested = pa.StructArray.from_arrays([word], fields=fields, mask=pa.array([False, True]))
        return pa.RecordBatch.from_arrays(
            [pa.array([5, 5]), pa.array([number, -number]), nested], schema=schema
        )

    def main(worker: ps.Worker) -> Any:
        source = ps.ArrowInput(schema)
        with worker.dataflow() as scope:
            captured = source.to_stream(scope).dedup("k", **TIMES).to_records().capture()
        for number in (1, 2):
            source.send(batch(number))
            worker.step()
        source.close()
        worker.run()
        return [row for _, rows in captured.extract() for row in rows]

    [made] = ps.execute(main)
    assert [row["nested"] for row in made] == [{"word": "w"}, None, {"word": "w"}, None]


# -------------------------------------------------------------------- where times end


@pytest.mark.parametrize("early", [None, 7, 2**62])
@pytest.mark.parametrize("offset", [0, -3])
def test_windows_at_the_end_of_times_end_there(early: int | None, offset: int) -> None:
    schema = pa.schema([("at", pa.int64()), ("v", pa.int64())])

    def build(scope: ps.Scope) -> Any:
        rows = scope.to_stream([(3, 1), (2**63 - 2, 2)]).to_arrow(schema)
        on_time, _ = rows.event_time("at", lateness=2**62)
        kind = ps.Tumbling(5, offset=offset)
        return on_time.window(kind, [], **named(WANTED), early=early).to_records().capture()

    found = ps.example(build).extract()
    sums = {row["v_sum"] for _, rows in found for row in rows}
    assert sums == {1, 2}


LAST = 2**63 - 1
"""The last of all times: no window has an end after it."""


@pytest.mark.parametrize("kept", [False, True])
@pytest.mark.parametrize(
    "kind", [ps.Tumbling(10), ps.Sliding(10, every=3), ps.Session(gap=10), ps.Count(1)], ids=repr
)
def test_a_row_at_the_last_time_is_in_its_windows(kind: Any, kept: bool) -> None:
    schema = pa.schema([("at", pa.int64()), ("k", pa.string()), ("v", pa.int64())])

    def build(scope: ps.Scope) -> Any:
        rows = scope.to_stream([(LAST - 20, "x", 1), (LAST, "x", 2)]).to_arrow(schema)
        on_time, late = rows.event_time("at", lateness=100)
        state: Any = {"state": ps.KeyedState()} if kept else {}
        made = on_time.window(kind, "k", v_list=ps.col("v").collect(), **state)
        return made.to_records().capture(), late.to_records().capture()

    windows, late = ps.example(build)
    found = [(time, row) for time, rows in windows.extract() for row in rows]
    assert late.extract() == []
    assert {value for _, row in found for value in row["v_list"]} == {1, 2}
    assert all(row["v_list"] in ([1], [2]) for _, row in found)
    assert max(time for time, _ in found) == LAST
    assert max(row["window_end"] for _, row in found) == LAST


@pytest.mark.parametrize("kind", [ps.Tumbling(10), ps.Sliding(10, every=3), ps.Session(gap=10)], ids=repr)
def test_rows_at_the_last_time_are_joined(kind: Any) -> None:
    left = pa.schema([("at", pa.int64()), ("k", pa.string()), ("v", pa.int64())])
    right = left.set(2, pa.field("o", pa.int64()))

    def build(scope: ps.Scope) -> Any:
        sides = [
            scope.to_stream([(LAST - 20, "x", 1), (LAST, "x", 2)])
            .to_arrow(schema)
            .event_time("at", lateness=9)[0]
            for schema in (left, right)
        ]
        return sides[0].window_join(sides[1], "k", kind, how="full").to_records().capture()

    found = [(time, row["v"], row["o"]) for time, rows in ps.example(build).extract() for row in rows]
    assert {(v, o) for _, v, o in found} == {(1, 1), (2, 2)}
    assert max(found)[0] == LAST
