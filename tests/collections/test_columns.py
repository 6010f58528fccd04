"""Collections of columns: what they compute is what Python computes of the rows, of every type."""

from __future__ import annotations

import datetime
import decimal
import re
from collections import Counter, defaultdict
from functools import partial
from typing import TYPE_CHECKING, Any

import duckdb
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import pointstamp as ps
from pointstamp import col

if TYPE_CHECKING:
    from collections.abc import Callable

Row = tuple[Any, ...]
Rows = Counter[Row]

INTS = pa.schema({"k": pa.int64(), "v": pa.int32()})
MIXED = pa.schema({"k": pa.string(), "v": pa.float64()})
VALUES: dict[Any, Any] = {
    INTS: st.tuples(st.integers(-2, 2), st.integers(-3, 3)),
    MIXED: st.tuples(st.sampled_from(["", "a", "b\0c", None]), st.sampled_from([-1.5, 0.0, 1.0, 2.5])),
}


def table(schema: pa.Schema, rows: list[Row]) -> pa.Table:
    columns = list(zip(*rows, strict=True)) or [()] * len(schema)
    return pa.table(
        [pa.array(column, field.type) for column, field in zip(columns, schema, strict=True)], schema=schema
    )


def accumulated(changes: list[tuple[Any, Any]], times: int) -> list[Rows]:
    """Adds up a capture at each time."""
    states, current = [], Rows()
    by_time = dict(changes)
    for time in range(times):
        if time in by_time:
            *columns, diffs = (column.to_pylist() for column in by_time[time].columns)
            for row, diff in zip(zip(*columns, strict=True), diffs, strict=True):
                assert diff != 0
                current[row] += diff
        states.append(Rows({row: n for row, n in current.items() if n}))
    return states


def groups(rows: Rows) -> dict[Any, list[Any]]:
    found: dict[Any, list[Any]] = defaultdict(list)
    for (key, value), n in rows.items():
        found[key] += [value] * n
    return found


# What a program of collections computes of `a` and `b`, and what Python does.
PROGRAMS: dict[str, tuple[Callable[[Any, Any], Any], Callable[[Rows, Rows], Rows]]] = {
    "filter": (
        lambda a, b: a.filter((col("v") > 0) | (col("v") == -1.5)),
        lambda a, b: Rows({r: n for r, n in a.items() if r[1] > 0 or r[1] == -1.5}),
    ),
    "select": (
        lambda a, b: a.select("v", twice=col("v") + col("v"), more=~col("k").is_null()),
        lambda a, b: sum((Rows({(v, v + v, k is not None): n}) for (k, v), n in a.items()), Rows()),
    ),
    "distinct": (lambda a, b: a.distinct(), lambda a, b: Rows(a.keys())),
    "count": (lambda a, b: a.value_counts(), lambda a, b: Rows({(*row, n): 1 for row, n in a.items()})),
    "concat": (lambda a, b: a.concat(b, a), lambda a, b: a + b + a),
    "join": (
        lambda a, b: a.join(b, on="k"),
        lambda a, b: sum(
            (
                Rows({(k, v, w): n * m})
                for (k, v), n in a.items()
                for (j, w), m in b.items()
                if j == k is not None
            ),
            Rows(),
        ),
    ),
    "join by both": (
        lambda a, b: a.join(b.rename({"v": "w"}).rename({"w": "v"}), on=["v", "k"]),
        lambda a, b: Rows({(v, k): n * b[k, v] for (k, v), n in a.items() if b[k, v] and k is not None}),
    ),
    "semi join": (
        lambda a, b: a.join(b, on="v", how="semi"),
        lambda a, b: Rows({r: n for r, n in a.items() if r[1] in {w for _, w in b}}),
    ),
    "anti join": (
        lambda a, b: a.join(b, on="k", how="anti"),
        lambda a, b: Rows({r: n for r, n in a.items() if r[0] not in {k for k, _ in b} - {None}}),
    ),
    "min": (lambda a, b: a.min("v", by="k"), lambda a, b: Rows((k, min(g)) for k, g in groups(a).items())),
    "max": (lambda a, b: a.max("v", by=["k"]), lambda a, b: Rows((k, max(g)) for k, g in groups(a).items())),
    "top": (
        lambda a, b: a.top_k(2, "v", by="k"),
        lambda a, b: Rows((k, v) for k, g in groups(a).items() for v in sorted(g)[-2:]),
    ),
    "sum": (lambda a, b: a.sum("v", by="k"), lambda a, b: Rows((k, sum(g)) for k, g in groups(a).items())),
    "mean": (
        lambda a, b: a.mean("v", by="k"),
        lambda a, b: Rows((k, sum(g) / len(g)) for k, g in groups(a).items()),
    ),
    "count by key": (
        lambda a, b: a.count("k"),
        lambda a, b: Rows((k, len(g)) for k, g in groups(a).items()),
    ),
}


@settings(max_examples=40, deadline=None)
@given(data=st.data(), name=st.sampled_from(sorted(PROGRAMS)), workers=st.sampled_from([1, 1, 2]))
def test_operators_follow_the_rows(data: Any, name: str, workers: int) -> None:
    schema = data.draw(st.sampled_from([INTS, MIXED]))
    build, expected = PROGRAMS[name]
    steps = data.draw(
        st.lists(st.tuples(*[st.lists(VALUES[schema], max_size=4)] * 3), min_size=1, max_size=3)
    )
    # Each step inserts rows of `a` and of `b`, and the next takes rows of `a` away that are there. Many at
    # once are columns up to an arrangement, and few are rows.
    at_once = data.draw(st.sampled_from([1, 300]))
    steps = [(more * at_once, others * at_once, fewer * at_once) for more, others, fewer in steps]
    states, a, b = [], Rows(), Rows()
    removed = []
    for more, others, fewer in steps:
        gone = list((Rows(fewer) & a).elements())
        a = a - Rows(gone) + Rows(more)
        b = b + Rows(others)
        removed.append(gone)
        states.append((a, b))

    def main(worker: ps.Worker) -> Any:
        with worker.dataflow() as scope:
            (left_input, left), (right_input, right) = (scope.new_collection(schema=schema) for _ in range(2))
            result = build(left, right).capture()
        for time, (more, others, _) in enumerate(steps):
            if worker.index == 0:
                left_input.remove(table(schema, removed[time]))
                left_input.insert(table(schema, more))
                right_input.insert(table(schema, others))
            for each in (left_input, right_input):
                each.advance_to(time + 1)
        left_input.close()
        right_input.close()
        worker.run()
        return result.extract()

    shares = [accumulated(changes, len(steps)) for changes in ps.execute(main, workers=workers)]
    for time, (a, b) in enumerate(states):
        assert sum((share[time] for share in shares), Rows()) == expected(a, b)


EVERYTHING = {
    "i8": (pa.int8(), [-128, 127, None]),
    "u64": (pa.uint64(), [0, 2**64 - 1, 2**63]),
    "f32": (pa.float32(), [1.0, -0.5, None]),
    "f64": (pa.float64(), [1e300, float("-inf"), 2.0]),
    "flag": (pa.bool_(), [True, False, None]),
    "text": (pa.large_string(), ["ä\0b", "", None]),
    "bytes": (pa.binary(), [b"\0\xff", b"", None]),
    "day": (pa.date32(), [datetime.date(1969, 1, 1), datetime.date(2024, 2, 29), None]),
    "clock": (pa.time32("ms"), [datetime.time(1, 2, 3, 4000), datetime.time(0), None]),
    "moment": (
        pa.timestamp("us", tz="UTC"),
        [datetime.datetime(1969, 1, 1, tzinfo=datetime.timezone.utc), None, None],
    ),
    "span": (pa.duration("ns"), [datetime.timedelta(microseconds=-5), None, None]),
    "money": (pa.decimal128(38, 2), [decimal.Decimal("-1.25"), decimal.Decimal(10**30), None]),
    "nothing": (pa.null(), [None, None, None]),
}


@pytest.mark.parametrize("times", [1, 200])
def test_every_type_comes_out_as_it_went_in(times: int) -> None:
    given = pa.table({name: pa.array(values, kind) for name, (kind, values) in EVERYTHING.items()})
    many = pa.concat_tables([given] * times).combine_chunks()

    def build(scope: ps.Scope) -> Any:
        collection = scope.column_collection(many)
        return collection.distinct().capture(), collection.select(*given.schema.names).updates().capture()

    distinct, updates = ps.example(build)
    [(_, batch)] = distinct.extract()
    [(_, batches)] = updates.extract()
    rows = pa.Table.from_batches([batch]).drop_columns(["diff"])
    all_rows = pa.Table.from_batches(batches).drop_columns(["time", "diff"])
    assert rows.schema.types == all_rows.schema.types == given.schema.types
    assert sorted(rows.to_pylist(), key=repr) == sorted(given.to_pylist(), key=repr)
    assert all_rows.to_pylist() == many.to_pylist()


def test_updates_are_batches_with_times_and_diffs() -> None:
    def main(worker: ps.Worker) -> Any:
        with worker.dataflow() as scope:
            changes, rows = scope.new_collection(schema=INTS)
            stream = rows.updates()
            flat = stream.capture()
            with scope.iterative() as inner:
                nested = rows.enter(inner).updates().schema.field("time").type
        changes.insert(table(INTS, [(1, 2)]))
        changes.advance_to(3)
        changes.update(table(INTS, [(1, 2)]), -1)
        changes.close()
        worker.run()
        batches = [batch for _, batches in flat.extract() for batch in batches]
        assert stream.schema == batches[0].schema
        return pa.Table.from_batches(batches).to_pylist(), nested

    [(rows, nested)] = ps.execute(main)
    assert rows == [{"k": 1, "v": 2, "time": 0, "diff": 1}, {"k": 1, "v": 2, "time": 3, "diff": -1}]
    assert nested == pa.list_(pa.field("item", pa.uint64(), nullable=False), 2)


DATES = pa.table({"day": [datetime.date(2024, 1, 1)], "n": [1], "who": ["ann"]})


@pytest.mark.parametrize(
    ("build", "message"),
    [
        (lambda c: c.filter(col("m") > 1), 'no column "m": there are day, n, who'),
        (
            lambda c: c.filter(col("day") > 1),
            r'^\(col\("day"\) > 1\) has no meaning for types Date32 and Int64',
        ),
        (lambda c: c.filter(col("n")), "is of type Int64: compare it with something"),
        (lambda c: c.select(x=col("who") + 1), "has no meaning for types"),
        (lambda c: c.select(x=(col("n"), 1)), "is no column: a column is"),
        (lambda c: c.select("n", n=1), "two columns the name 'n'"),
        (lambda c: c.rename({"n": "who"}), "two columns would have one name"),
        (lambda c: c.concat(c.select("n")), "concat takes collections of one schema"),
        (lambda c: c.sum("who", by="n"), "sum is not defined for column 'who' of type string"),
        (lambda c: c.min("n", by="n"), "two columns named 'n'"),
        (lambda c: c.value_counts("n"), "two columns named 'n'"),
        (lambda c: c.join(c.select(n=col("n") / 2), on="n"), "key column 'n' is int64 here and double"),
        (lambda c: c.join(c, on="x"), "no column 'x'"),
    ],
)
def test_what_has_no_meaning_is_told_while_the_dataflow_is_built(build: Any, message: str) -> None:
    with pytest.raises(ps.GraphError, match=message):
        ps.example(lambda scope: build(scope.column_collection(DATES)).capture())


def test_data_and_schemas_that_do_not_fit_are_told() -> None:
    def main(worker: ps.Worker) -> None:
        with worker.dataflow() as scope:
            changes, _ = scope.new_collection(schema=INTS)
            with pytest.raises(ps.GraphError, match="cannot keep column 'l' of type List"):
                scope.new_collection(schema=pa.schema({"l": pa.list_(pa.struct({"x": pa.int64()}))}))
            with pytest.raises(TypeError, match="filtered by an expression such as"):
                scope.column_collection(DATES).filter(lambda row: True)
            with pytest.raises(ps.GraphError, match="cannot have two columns named 'a'"):
                scope.column_collection(pa.Table.from_arrays([[1], [2]], names=["a", "a"]))
        with pytest.raises(TypeError, match="field 'v' is Utf8 and should be Int32"):
            changes.insert(pa.table({"k": [1], "v": ["a"]}))
        with pytest.raises(TypeError, match="a collection of columns takes"):
            changes.insert([(1, 2)])
        with pytest.raises(ValueError, match="diff 0 changes nothing"):
            changes.update(table(INTS, [(1, 2)]), 0)
        changes.close()

    ps.execute(main)


@pytest.mark.parametrize(
    "condition",
    [col("who") == None, col("who") != None, (col("n") < 1) & (col("n") > None)],  # noqa: E711
)
def test_a_comparison_with_null_names_what_to_write(condition: Any) -> None:
    message = r'\(col\("\w+"\) \S+ \.\.\.\) is never true.*: col\("\w+"\)\.is_null\(\) says whether'
    with pytest.raises(ps.GraphError, match=message):
        ps.example(lambda scope: scope.column_collection(DATES).filter(condition).capture())


FRAME = pd.DataFrame({"k": [1, 2, 3], "v": [4.5, 5.5, 6.5]})


@pytest.mark.parametrize(
    "make",
    [
        pa.Table.from_pandas,
        lambda frame: pa.Table.from_pandas(frame).to_batches()[0],
        lambda frame: frame,
        lambda frame: pd.concat([frame[1:], frame[:1]]),  # with an index, which is no column
        pl.from_pandas,
        lambda frame: pa.Table.from_pandas(frame).to_reader(),
        lambda frame: duckdb.from_arrow(pa.Table.from_pandas(frame)),
    ],
    ids=["table", "batch", "pandas", "pandas with an index", "polars", "reader", "duckdb"],
)
def test_a_collection_of_columns_is_made_of_what_its_input_takes(make: Callable[[Any], Any]) -> None:
    def build(scope: ps.Scope) -> Any:
        return scope.column_collection(make(FRAME)).capture()

    [(time, changes)] = ps.example(build).extract()
    assert time == 0
    assert sorted((row["k"], row["v"], row["diff"]) for row in changes.to_pylist()) == [
        (1, 4.5, 1),
        (2, 5.5, 1),
        (3, 6.5, 1),
    ]


@pytest.mark.parametrize("data", [[{"k": 1, "v": 2}], {"k": [1]}, None, 5])
def test_what_has_no_columns_is_refused_with_what_to_give(data: Any) -> None:
    def main(worker: ps.Worker) -> None:
        with worker.dataflow() as scope:
            changes, _ = scope.new_collection(schema=INTS)
            makes = (
                scope.column_collection,
                changes.insert,
                changes.remove,
                partial(changes.update, diff=2),
                changes.play,
            )
            for make in makes:
                with pytest.raises(TypeError) as raised:
                    make(data)
                says = f"a collection of columns takes .*, not {type(data).__name__}"
                assert re.match(says, str(raised.value))
                assert ("from_pylist" in str(raised.value)) == isinstance(data, list)
            changes.close()

    ps.execute(main)
