# ruff: noqa: E501  (a case is a line)
# mypy: disable-error-code="misc, assignment, arg-type"
"""One meaning of null, None, NaN, -0.0 and negative counts, in every operator that compares or computes.

Each case is an operator on a few records, with the result of a model of a few lines of Python. The rows of
the table in `docs/missing-values.md` are the families of the cases: a cell there is a rule that the cases test.
"""

from __future__ import annotations

import math
import random
from collections import Counter
from collections.abc import Callable, Iterable
from itertools import permutations
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest

import pointstamp as ps
from aggregates import named
from pointstamp import _nan_order, col, graphs, record
from pointstamp.api.keyed_stream import KeyedStream
from pointstamp.api.windowed_stream import WindowedStream
from pointstamp.expr import reducers

NAN = math.nan
OTHER_NAN = float(np.array([0xFFF8000000000001], "uint64").view("float64")[0])
KEYS = [None, NAN, 0.0, OTHER_NAN, None, -0.0, 1.5]
NULLABLE = pa.schema([("at", pa.int64()), ("k", pa.float64()), ("v", pa.int64())])
VALUES = pa.schema([("at", pa.int64()), ("k", pa.int64()), ("v", pa.float64())])


# ------------------------------------------------------------ the model


def name(key: Any) -> Any:
    """The key as a text: equal keys have one."""
    if isinstance(key, tuple):
        return tuple(map(name, key))
    if key is None:
        return "None"
    return "nan" if key != key else repr(key + 0.0)


def order(value: Any) -> Any:
    """None is before all others, and NaN is the greatest number."""
    return (value is not None, value != value, 0 if value is None or value != value else value)


def matches(keys: Iterable[Any], others: Iterable[Any], *, null: bool) -> Counter[str]:
    """Counts the pairs of each key; `null`: whether a null matches."""
    ours, theirs = Counter(map(name, keys)), Counter(map(name, others))
    return Counter(
        {key: n * theirs[key] for key, n in ours.items() if theirs[key] and (null or key != "None")}
    )


def joined(how: str, keys: Iterable[Any], others: Iterable[Any], *, null: bool) -> Counter[str]:
    """Counts the results of each key of a join of one kind."""
    found = matches(keys, others, null=null)
    ours, theirs = (
        Counter({k: n for k, n in Counter(map(name, side)).items() if not found[k]})
        for side in (keys, others)
    )
    return {
        "inner": found,
        "left": found + ours,
        "right": found + theirs,
        "full": found + ours + theirs,
        "semi": Counter(map(name, keys)) - ours,
        "anti": ours,
    }[how]


HOWS = ("inner", "left", "right", "full", "semi", "anti")
OTHER_KEYS = [None, NAN, -0.0, 2.5]
"""The keys of the left side without 1.5, and 2.5, which the left side does not have."""

GROUPS = Counter(map(name, KEYS))
ONCE = Counter(dict.fromkeys(GROUPS, 1))
VALUES_PAIRS = matches(KEYS, KEYS, null=True)
NULLS_PAIRS = matches(KEYS, KEYS, null=False)


# ------------------------------------------------------------ running


def rows(keys: list[Any]) -> list[tuple[int, Any, int]]:
    """Rows of time, key and value: a key, and its place."""
    return [(place, key, place) for place, key in enumerate(keys)]


def table(given: list[Any], schema: pa.Schema) -> pa.Table:
    columns = list(zip(*given, strict=True)) or [()] * len(schema)
    return pa.table(
        [pa.array(one, field.type, from_pandas=False) for one, field in zip(columns, schema, strict=True)],
        schema=schema,
    )


def streams(build: Callable[..., Any], *given: list[Any], workers: int) -> list[Any]:
    """The records that come out of an operator on streams of records."""

    def main(worker: ps.Worker) -> Any:
        with worker.dataflow() as scope:
            made = [scope.to_stream(each[worker.index :: worker.peers]) for each in given]
            captured = build(*made).capture()
        worker.run()
        return [one for _, records in captured.extract() for one in records]

    return [one for found in ps.execute(main, workers=workers) for one in found]


def arrows(build: Callable[..., Any], *given: pa.Table, workers: int) -> list[dict[str, Any]]:
    """The rows that come out of an operator on streams of columns."""

    def main(worker: ps.Worker) -> Any:
        handles = [ps.ArrowInput(each.schema) for each in given]
        with worker.dataflow() as scope:
            made = build(*(handle.to_stream(scope) for handle in handles))
            captured = (made.to_records() if isinstance(made, ps.ArrowStream) else made).capture()
        for handle, each in zip(handles, given, strict=True):
            handle.send(each.take(list(range(worker.index, len(each), worker.peers))))
            handle.close()
        worker.run()
        return [one for _, records in captured.extract() for one in records]

    return [one for found in ps.execute(main, workers=workers) for one in found]


def collections(build: Callable[..., Any], *given: list[Any], workers: int) -> Counter[Any]:
    """Adds up a collection; an input is updates, or records that are there once."""

    def main(worker: ps.Worker) -> Any:
        with worker.dataflow() as scope:
            inputs, made = zip(*(scope.new_collection() for _ in given), strict=True)
            captured = build(*made).capture()
        for handle, each in zip(inputs, given, strict=True):
            handle.update_many(each[worker.index :: worker.peers])
            handle.close()
        worker.run()
        return captured.extract()

    total: Counter[Any] = Counter()
    for found in ps.execute(main, workers=workers):
        for _, changes in found:
            for one, diff in changes:
                total[plain(one)] += diff
    return Counter({one: n for one, n in total.items() if n})


def column_collections(
    build: Callable[..., Any], *given: list[tuple[tuple[Any, ...], int]], schema: pa.Schema, workers: int
) -> Counter[Any]:
    """Adds up a collection of columns, as tuples."""

    def main(worker: ps.Worker) -> Any:
        with worker.dataflow() as scope:
            inputs, made = zip(*(scope.new_collection(schema=schema) for _ in given), strict=True)
            captured = build(*made).capture()
        for handle, each in zip(inputs, given, strict=True):
            for row, diff in each[worker.index :: worker.peers]:
                handle.update(table([row], schema), diff)
            handle.close()
        worker.run()
        return captured.extract()

    total: Counter[Any] = Counter()
    for found in ps.execute(main, workers=workers):
        for _, batch in found:
            for one in batch.to_pylist():
                diff = one.pop("diff")
                total[plain(tuple(one.values()))] += diff
    return Counter({one: n for one, n in total.items() if n})


def plain(value: Any) -> Any:
    """A value in which NaN equals itself, and -0.0 is 0.0."""
    if isinstance(value, tuple | list):
        return tuple(map(plain, value))
    if isinstance(value, float):
        return "nan" if value != value else value + 0.0
    return value


# ------------------------------------------------------------ cases


class Case(NamedTuple):
    """An operator, its result on some workers, and the result of the model."""

    family: str
    operator: str
    run: Callable[[int], Any]
    expected: Any


CASES: list[Case] = []
NO_STATE: dict[str, Any] = {"column": "at"}


def keys_of_records(family: str, operator: str, build: Callable[..., Any], expected: Counter[str]) -> None:
    """An operator on streams of (time, key, value), of which the result is counted by key."""

    def counted(workers: int) -> Counter[str]:
        return Counter(name(key) for key in streams(build, rows(KEYS), rows(KEYS), workers=workers))

    CASES.append(Case(family, operator, counted, expected))


def keys_of_columns(family: str, operator: str, build: Callable[..., Any], expected: Counter[str]) -> None:
    """The same as `keys_of_records`, of columns `at`, `k` and `v`."""

    def counted(workers: int) -> Counter[str]:
        given = [table(rows(KEYS), NULLABLE)] * 2
        return Counter(name(one["k"]) for one in arrows(build, *given, workers=workers))

    CASES.append(Case(family, operator, counted, expected))


def pairs(stream: Any) -> Any:
    return stream.map(lambda row: row[1:])


def keyed(stream: Any) -> Any:
    on_time, _ = stream.event_time(lambda row: row[0], lateness=99)
    return on_time.key_by(lambda row: row[1])


def firsts(stream: Any) -> Any:
    return stream.map(lambda result: result[0])


def often(stream: Any) -> Any:
    """The first part of each result, as often as its last part states."""
    return stream.flat_map(lambda result: [result[0]] * result[-1])


STREAM, KEYED, ARROW, WINDOWS = "records", "records by key", "columns", "windows of columns"
JOIN, JOIN_COLUMNS = "joins of records", "joins of columns"

for operator, build, expected in [
    ("Stream.distinct", lambda a, b: pairs(a).map(lambda p: p[0]).distinct(), ONCE),
    ("Stream.value_counts", lambda a, b: often(a.map(lambda row: row[1]).value_counts()), GROUPS),
    ("Stream.reduce", lambda a, b: often(a.map(lambda row: (row[1], 1)).reduce(lambda x, y: x + y)), GROUPS),
    (
        "Stream.aggregate",
        lambda a, b: often(pairs(a).aggregate(lambda k, v, s: s + 1, lambda k, s: (k, s), default=int)),
        GROUPS,
    ),
    (
        "Stream.state_machine",
        lambda a, b: pairs(a).state_machine(lambda k, v, s: (s + 1, [k] if s == 0 else []), default=int),
        ONCE,
    ),
]:
    keys_of_records(STREAM, operator, build, expected)

tumbling = ps.Tumbling(100)
for operator, build, expected in [
    ("WindowedStream.count", lambda a, b: often(keyed(a).window(tumbling).count()), GROUPS),
    ("WindowedStream.sum", lambda a, b: often(keyed(a).window(tumbling).sum(lambda r: 1)), GROUPS),
    ("WindowedStream.min", lambda a, b: firsts(keyed(a).window(tumbling).min(lambda r: r[0])), ONCE),
    ("WindowedStream.max", lambda a, b: firsts(keyed(a).window(tumbling).max(lambda r: r[0])), ONCE),
    ("WindowedStream.mean", lambda a, b: firsts(keyed(a).window(tumbling).mean(lambda r: r[0])), ONCE),
    ("WindowedStream.top_k", lambda a, b: firsts(keyed(a).window(tumbling).top_k(1, lambda r: r[0])), ONCE),
    ("WindowedStream.collect", lambda a, b: firsts(keyed(a).window(tumbling).collect()), ONCE),
    (
        "WindowedStream.aggregate",
        lambda a, b: often(keyed(a).window(tumbling).aggregate(lambda k, r, s: s + 1, default=int)),
        GROUPS,
    ),
    ("WindowedStream.reduce", lambda a, b: firsts(keyed(a).window(tumbling).reduce(lambda x, y: x)), ONCE),
    (
        "WindowedStream.distinct_count",
        lambda a, b: often(a.event_time(lambda r: r[0], lateness=99)[0].key_by(lambda r: 0)
                           .window(tumbling).distinct_count(lambda r: r[1]).map(lambda r: (0.0, r[2]))),
        Counter({"0.0": len(ONCE)}),
    ),
    (
        "WindowedStream.quantiles",
        lambda a, b: firsts(keyed(a).window(tumbling).quantiles([0.5], lambda r: r[0])),
        ONCE,
    ),
    ("WindowedStream.count session", lambda a, b: often(keyed(a).window(ps.Session(gap=99)).count()), GROUPS),
    ("KeyedStream.reduce", lambda a, b: firsts(keyed(a).reduce(lambda x, y: x)), GROUPS),
    ("KeyedStream.aggregate", lambda a, b: firsts(keyed(a).aggregate(lambda k, r, s: s + 1, default=int)), GROUPS),
    ("KeyedStream.scan", lambda a, b: firsts(keyed(a).scan(lambda _, r, s: s + 1, default=int).filter(lambda r: r[1] == 1)), ONCE),
    ("KeyedStream.running", lambda a, b: firsts(keyed(a).running("count").filter(lambda r: r[1] == 1)), ONCE),
    (
        "KeyedStream.state_machine",
        lambda a, b: keyed(a).state_machine(lambda k, r, s: (1, [] if s else [k]), default=int),
        ONCE,
    ),
    ("KeyedStream.dedup", lambda a, b: keyed(a).dedup().map(lambda r: r[1]), ONCE),
    ("KeyedStream.top_k_so_far", lambda a, b: firsts(keyed(a).top_k_so_far(9, lambda r: r[0]).filter(lambda r: len(r[1]) == 1)), ONCE),
    ("KeyedStream.process", lambda a, b: firsts(keyed(a).process(lambda c, r: c.emit((r[1],)))), GROUPS),
]:  # fmt: skip
    keys_of_records(KEYED, operator, build, expected)

for operator, build, expected in [
    ("Stream.join", lambda a, b: firsts(pairs(a).join(pairs(b))), VALUES_PAIRS),
    ("KeyedStream.join", lambda a, b: firsts(a.key_by(lambda row: row[1]).join(b.key_by(lambda row: row[1]))), VALUES_PAIRS),
    ("WindowedStream.join", lambda a, b: firsts(keyed(a).window(tumbling).join(keyed(b).window(tumbling))), VALUES_PAIRS),
    ("Stream.join semi", lambda a, b: firsts(pairs(a).join(pairs(b), how="semi")), GROUPS),
    ("Stream.join anti", lambda a, b: firsts(pairs(a).join(pairs(b), how="anti")), Counter()),
    ("KeyedStream.join semi", lambda a, b: firsts(a.key_by(lambda row: row[1]).join(b.key_by(lambda row: row[1]), how="semi")), GROUPS),
    ("WindowedStream.join semi", lambda a, b: firsts(keyed(a).window(tumbling).join(keyed(b).window(tumbling), how="semi")), GROUPS),
    ("KeyedStream.interval_join", lambda a, b: firsts(keyed(a).interval_join(keyed(b), lower=-99, upper=99)), VALUES_PAIRS),
    ("KeyedStream.asof_join", lambda a, b: firsts(keyed(a).asof_join(keyed(b), how="inner")), GROUPS),
    ("KeyedStream.table_join", lambda a, b: firsts(keyed(a).table_join(keyed(b))), GROUPS),
]:  # fmt: skip
    keys_of_records(JOIN, operator, build, expected)

for how in HOWS:
    for operator, build in [
        ("Stream.join", lambda a, b, how: pairs(a).join(pairs(b), how=how)),
        ("KeyedStream.join", lambda a, b, how: a.key_by(lambda row: row[1]).join(b.key_by(lambda row: row[1]), how=how)),
        ("WindowedStream.join", lambda a, b, how: keyed(a).window(tumbling).join(keyed(b).window(tumbling), how=how)),
        ("KeyedStream.interval_join", lambda a, b, how: keyed(a).interval_join(keyed(b), lower=-99, upper=99, how=how)),
    ]:  # fmt: skip

        def keys_of_results(workers: int, build: Any = build, how: str = how) -> Counter[str]:
            given = rows(KEYS), rows(OTHER_KEYS)
            return Counter(map(name, streams(lambda a, b: firsts(build(a, b, how)), *given, workers=workers)))

        wanted_keys = joined(how, KEYS, OTHER_KEYS, null=True)
        CASES.append(Case(JOIN, f"{operator} {how} of other keys", keys_of_results, wanted_keys))
    for operator, build in [
        ("ArrowStream.join", lambda a, b, how: a.join(b, "k", how=how)),
        ("ArrowStream.interval_join", lambda a, b, how: a.interval_join(b, "k", lower=-99, upper=99, column="at", how=how)),
        ("ArrowStream.window_join", lambda a, b, how: a.window_join(b, "k", tumbling, column="at", how=how)),
    ]:  # fmt: skip

        def keys_of_rows(workers: int, build: Any = build, how: str = how) -> Counter[str]:
            given = table(rows(KEYS), NULLABLE), table(rows(OTHER_KEYS), NULLABLE)
            return Counter(
                name(row["k"]) for row in arrows(lambda a, b: build(a, b, how), *given, workers=workers)
            )

        wanted_keys = joined(how, KEYS, OTHER_KEYS, null=False)
        CASES.append(Case(JOIN_COLUMNS, f"{operator} {how} of other keys", keys_of_rows, wanted_keys))

COUNT = [("v", "count")]


def counted_column(stream: Any, column: str) -> Any:
    """The rows, each as often as a column states."""
    return stream.to_records().flat_map(lambda row: [row] * row[column])


for operator, build, expected in [
    ("ArrowStream.aggregate", lambda a, b: counted_column(a.aggregate("k", **named(COUNT)), "v_count"), GROUPS),
    ("ArrowStream.distinct", lambda a, b: a.distinct("k"), ONCE),
    ("ArrowStream.distinct_so_far", lambda a, b: a.distinct_so_far("k"), ONCE),
    ("ArrowStream.running", lambda a, b: a.running("k", **named(COUNT), column="at").filter(pc.field("v_count") == 1), ONCE),
    ("ArrowStream.dedup", lambda a, b: a.dedup("k", column="at"), ONCE),
    ("ArrowStream.window", lambda a, b: counted_column(a.window(tumbling, "k", **named(COUNT), column="at"), "v_count"), GROUPS),
    ("ArrowStream.window session", lambda a, b: counted_column(a.window(ps.Session(gap=99), "k", **named(COUNT), column="at"), "v_count"), GROUPS),
    ("ArrowStream.window early", lambda a, b: a.window(tumbling, "k", **named(COUNT), column="at", early=100), ONCE),
]:  # fmt: skip
    keys_of_columns(ARROW, operator, build, expected)

for operator, build, expected in [
    ("ArrowStream.join", lambda a, b: a.join(b, "k"), NULLS_PAIRS),
    ("ArrowStream.join left", lambda a, b: a.join(b, "k", how="left"), NULLS_PAIRS + Counter({"None": 2})),
    ("ArrowStream.join right", lambda a, b: a.join(b, "k", how="right"), NULLS_PAIRS + Counter({"None": 2})),
    ("ArrowStream.join full", lambda a, b: a.join(b, "k", how="full"), NULLS_PAIRS + Counter({"None": 4})),
    ("ArrowStream.join semi", lambda a, b: a.join(b, "k", how="semi"), GROUPS - Counter({"None": 2})),
    ("ArrowStream.join anti", lambda a, b: a.join(b, "k", how="anti"), Counter({"None": 2})),
    ("ArrowStream.join_so_far", lambda a, b: a.join_so_far(b, "k"), NULLS_PAIRS),
    ("ArrowStream.interval_join", lambda a, b: a.interval_join(b, "k", lower=-99, upper=99, column="at"), NULLS_PAIRS),
    ("ArrowStream.window_join", lambda a, b: a.window_join(b, "k", tumbling, column="at"), NULLS_PAIRS),
    ("ArrowStream.window_join session", lambda a, b: a.window_join(b, "k", ps.Session(gap=99), column="at"), NULLS_PAIRS),
    ("ArrowStream.asof_join", lambda a, b: a.asof_join(b, "k", how="inner", column="at"), GROUPS - Counter({"None": 2})),
    ("ArrowStream.table_join", lambda a, b: a.table_join(b, "k", column="at"), GROUPS - Counter({"None": 2})),
    # A row without a match is there for each of `how`.
    ("ArrowStream.asof_join left", lambda a, b: a.asof_join(b, "k", column="at"), GROUPS),
    ("ArrowStream.interval_join left", lambda a, b: a.interval_join(b, "k", lower=-99, upper=99, column="at", how="left"), NULLS_PAIRS + Counter({"None": 2})),
]:  # fmt: skip
    keys_of_columns(JOIN_COLUMNS, operator, build, expected)


# ------------------------------------------------------------ values in groups

GROUPED = [
    [NAN, 1.0, 2.0],
    [NAN, OTHER_NAN],
    [1.0, -0.0, 0.0],
    [None, 1.0, 2.0],
    [None, None],
    [None, NAN, 1.0],
]
WITHOUT_NONE = GROUPED[:3]


def of_records(function: str, values: list[Any]) -> Any:
    """Aggregates as Python does, in the order in which NaN is the greatest number."""
    if function == "count":
        return len(values)
    if function in {"min", "max"}:
        return (min if function == "min" else max)(values, key=order)
    return sum(values) if function == "sum" else sum(values) / len(values)


def of_columns(function: str, values: list[Any]) -> Any:
    """The same without nulls."""
    known = [value for value in values if value is not None]
    return of_records(function, known) if known or function == "count" else None


def aggregates(
    family: str,
    operator: str,
    one: Callable[[list[Any], int], Any],
    model: Callable[[list[Any]], Any],
    groups: list[list[Any]],
) -> None:
    """An operator that makes one value of a group: of groups in every order of arrival."""

    def made(workers: int) -> Any:
        orders = [(values, list(each)) for values in groups for each in permutations(values)]
        return [plain(one(each, workers)) for _, each in orders]

    expected = [plain(model(values)) for values in groups for _ in permutations(values)]
    CASES.append(Case(family, operator, made, expected))


def of_rows(build: Callable[[Any], Any], column: str) -> Callable[[list[Any], int], Any]:
    """The last row's value in a column, of an operator on columns."""

    def one(values: list[Any], workers: int) -> Any:
        rows = table([(at, 1, value) for at, value in enumerate(values)], VALUES)
        return arrows(build, rows, workers=workers)[-1][column]

    return one


def of_values(build: Callable[[Any], Any]) -> Callable[[list[Any], int], Any]:
    """The last result of an operator on values that are records of one key, with times."""

    def one(values: list[Any], workers: int) -> Any:
        def by_key(stream: Any) -> Any:
            return build(
                stream.event_time(lambda row: row[0], lateness=99)[0].key_by(
                    lambda row: 0, lambda row: row[1]
                )
            )

        return streams(by_key, list(enumerate(values)), workers=workers)[-1][-1]

    return one


def of_collection(build: Callable[[Any], Any]) -> Callable[[list[Any], int], Any]:
    def one(values: list[Any], workers: int) -> Any:
        [[(_, value)]] = [collections(build, [((0, value), 1) for value in values], workers=workers)]
        return value

    return one


def of_column_collection(build: Callable[[Any], Any]) -> Callable[[list[Any], int], Any]:
    def one(values: list[Any], workers: int) -> Any:
        given = [((at, 1, value), 1) for at, value in enumerate(values)]
        [row] = column_collections(build, given, schema=VALUES, workers=workers)
        return row[-1]

    return one


for function in ("sum", "count", "min", "max", "mean"):

    def model(values: list[Any], function: str = function) -> Any:
        return of_columns(function, values)

    def records_model(values: list[Any], function: str = function) -> Any:
        return of_records(function, values)

    wanted, made = named([("v", function)]), f"v_{function}"
    for operator, build in [
        ("ArrowStream.aggregate", lambda a, w=wanted: a.aggregate("k", **w)),
        ("ArrowStream.window", lambda a, w=wanted: a.window(tumbling, "k", **w, column="at")),
        (
            "ArrowStream.window sliding",
            lambda a, w=wanted: a.window(ps.Sliding(100, every=100), "k", **w, column="at"),
        ),
        (
            "ArrowStream.window session",
            lambda a, w=wanted: a.window(ps.Session(gap=99), "k", **w, column="at"),
        ),
        (
            "ArrowStream.window early",
            lambda a, w=wanted: a.window(tumbling, "k", **w, column="at", early=100),
        ),
        ("ArrowStream.running", lambda a, w=wanted: a.running("k", **w, column="at")),
    ]:
        aggregates("values of columns", f"{operator} {function}", of_rows(build, made), model, GROUPED)
    aggregates(
        "values of columns",
        f"ColumnCollection.aggregate {function}",
        of_column_collection(lambda c, w=wanted: c.aggregate("k", **w)),
        model,
        GROUPED,
    )
    if function != "count":
        for operator, of in [("", "v"), (" of two columns", ["v", "at"])]:
            if of == "v" or function in {"min", "max"}:
                aggregates(
                    "values of columns",
                    f"ColumnCollection.{function}{operator}",
                    of_column_collection(
                        lambda c, f=function, of=of: getattr(c, f)(of, by="k").select("k", "v")
                    ),
                    model,
                    GROUPED,
                )
        aggregates(
            "values of records",
            f"Collection.{function}",
            of_collection(lambda c, f=function: getattr(c, f)()),
            records_model,
            GROUPED if function in {"min", "max"} else WITHOUT_NONE,
        )
        aggregates(
            "values of records",
            f"WindowedStream.{function}",
            of_values(lambda a, f=function: getattr(a.window(tumbling), f)()),
            records_model,
            WITHOUT_NONE,
        )
    aggregates(
        "values of records",
        f"KeyedStream.running {function}",
        of_values(lambda a, f=function: a.running(f)),
        records_model,
        WITHOUT_NONE,
    )


def distinct_values(values: list[Any]) -> int:
    return len({name(value) for value in values if value is not None})


def variance(values: list[Any]) -> Any:
    """The variance of a sample; None of fewer than two values."""
    known = [value for value in values if value is not None]
    if len(known) < 2:
        return None
    mean = sum(known) / len(known)
    return sum((value - mean) ** 2 for value in known) / (len(known) - 1)


for operator, build in [
    ("ArrowStream.aggregate", lambda a: a.aggregate("k", n=ps.col("v").distinct_count())),
    ("ArrowStream.window", lambda a: a.window(tumbling, "k", n=ps.col("v").distinct_count(), column="at")),
]:
    aggregates(
        "values of columns", f"{operator} distinct_count", of_rows(build, "n"), distinct_values, GROUPED
    )
for function, model, build in [
    ("distinct_count", distinct_values, lambda c: c.aggregate("k", n=ps.col("v").distinct_count())),
    ("var", variance, lambda c: c.aggregate("k", n=ps.col("v").var())),
]:
    aggregates(
        "values of columns",
        f"ColumnCollection.aggregate {function}",
        of_column_collection(build),
        model,
        GROUPED,
    )


def last(values: list[Any]) -> Any:
    return max(values, key=order)


def first(values: list[Any]) -> Any:
    """The least value; nulls are last also where the greatest is not first."""
    return min(values, key=lambda value: (value is None, order(value)))


def of_top_k(values: list[Any], workers: int) -> Any:
    """The greatest of `top_k`, which leaves nulls out."""
    made = of_rows(lambda a: a.aggregate("k", top=ps.col("v").top_k(1)), "top")(values, workers)
    return made[0] if made else None


def of_quantile(values: list[Any], workers: int) -> Any:
    return of_rows(lambda a: a.aggregate("k", most=ps.col("v").quantile(1)), "most")(values, workers)


def in_order(build: Callable[[Any], Any], values: list[Any], workers: int) -> list[Any]:
    """Returns what an operator sends, in its order; a capture sorts records itself."""
    [records] = streams(lambda a: build(a).map_batches(lambda batch: [tuple(batch)]), values, workers=workers)
    return list(records)


def of_first_collected(values: list[Any], workers: int) -> Any:
    """The first value of `collect`, in the order of the values."""
    given = [((at, 1, value), 1) for at, value in enumerate(values)]
    [row] = column_collections(
        lambda c: c.collect("v", by="k", order="v"), given, schema=VALUES, workers=workers
    )
    return row[-1][0]


for operator, of_one, model, groups in [
    ("ArrowStream.sort", of_rows(lambda a: a.sort("v").limit(1), "v"), first, GROUPED),
    ("ArrowStream.sort descending", of_rows(lambda a: a.sort("v", descending=True).limit(1), "v"), last, GROUPED),
    ("ArrowStream.aggregate top_k", of_top_k, last, GROUPED),
    ("ColumnCollection.top_k", of_column_collection(lambda c: c.top_k(1, "v", by="k")), last, GROUPED),
    ("ColumnCollection.top_k ascending", of_column_collection(lambda c: c.top_k(1, "v", by="k", descending=False)), first, GROUPED),
    (
        "ColumnCollection.top_k of two columns",
        of_column_collection(lambda c: c.top_k(1, ["v", "at"], by="k").select("v")),
        last,
        GROUPED,
    ),
    ("ArrowStream.aggregate quantile", of_quantile, lambda v: of_columns("max", v), GROUPED),
    (
        "ColumnCollection.over",
        of_column_collection(
            lambda c: c.over("k", ["v", "at"], place=ps.row_number()).filter(ps.col("place") == 1).select("v")
        ),
        first,
        GROUPED,
    ),
    ("ColumnCollection.collect", of_first_collected, first, GROUPED),
]:  # fmt: skip
    aggregates("order of columns", operator, of_one, model, groups)

for operator, of_one, model, groups in [
    ("Collection.top_k", of_collection(lambda c: c.top_k(1)), last, GROUPED),
    ("WindowedStream.top_k", of_values(lambda a: a.window(tumbling).top_k(1).map(lambda r: r[-1])), last, WITHOUT_NONE),
    ("KeyedStream.top_k_so_far", of_values(lambda a: a.top_k_so_far(1).map(lambda r: r[-1])), last, WITHOUT_NONE),
    ("Stream.top_k", lambda v, w: [streams(lambda a: a.top_k(1), v, workers=w)], lambda v: [[last(v)]], WITHOUT_NONE),
    ("Stream.sort", lambda v, w: in_order(lambda a: a.sort(), v, w), lambda v: sorted(v, key=order), WITHOUT_NONE),
    (
        "Stream.sort by tuples",
        lambda v, w: in_order(lambda a: a.sort(lambda one: (one, 1)), v, w),
        lambda v: sorted(v, key=order),
        WITHOUT_NONE,
    ),
    (
        "Stream.sort reverse",
        lambda v, w: in_order(lambda a: a.sort(descending=True), v, w),
        lambda v: sorted(v, key=order, reverse=True),
        WITHOUT_NONE,
    ),
]:  # fmt: skip
    aggregates("order of records", operator, of_one, model, groups)

# ------------------------------------------------------------ conditions

TRUTHS = [(0, key, place) for place, key in enumerate([None, NAN, -0.0, 1.0, None])]


def conditions(family: str, operator: str, run: Callable[[int], Iterable[Any]], expected: list[int]) -> None:
    CASES.append(Case(family, operator, lambda workers: sorted(run(workers)), expected))


for operator, arrow, field, expected in [
    ("<", pc.field("k") < 1, col("k") < 1, [2]),
    ("==", pc.field("k") == 0.0, col("k") == 0.0, [2]),
    ("or", (pc.field("k") < 1) | (pc.field("v") > 3), (col("k") < 1) | (col("v") > 3), [2, 4]),
    ("is_null", pc.field("k").is_null(), col("k").is_null(), [0, 4]),
    ("plus", (pc.field("k") + 1) <= 1, (col("k") + 1) <= 1, [2]),
]:
    conditions(
        "conditions of columns",
        f"ArrowStream.filter {operator}",
        lambda w, c=arrow: [
            row["v"] for row in arrows(lambda a: a.filter(c), table(TRUTHS, NULLABLE), workers=w)
        ],
        expected,
    )
    conditions(
        "conditions of columns",
        f"ArrowStream.filter own {operator}",
        lambda w, c=field: [
            row["v"] for row in arrows(lambda a: a.filter(c), table(TRUTHS, NULLABLE), workers=w)
        ],
        expected,
    )
    conditions(
        "conditions of columns",
        f"ColumnCollection.filter {operator}",
        lambda w, c=field: [
            row[2]
            for row in column_collections(
                lambda a: a.filter(c), [(row, 1) for row in TRUTHS], schema=NULLABLE, workers=w
            )
        ],
        expected,
    )
conditions(
    "conditions of columns",
    "ColumnCollection.select",
    lambda w: [
        row[0]
        for row in column_collections(
            lambda a: a.select("v", known=~(col("k") < 1), sum=col("k") + 1).filter(col("known").is_null() & col("sum").is_null()),
            [(row, 1) for row in TRUTHS], schema=NULLABLE, workers=w,
        )
    ],
    [0, 4],
)  # fmt: skip
conditions(
    "conditions of columns",
    "ColumnCollection.with_columns",
    lambda w: [
        row[2]
        for row in column_collections(
            lambda a: a.with_columns(known=~(col("k") < 1), sum=col("k") + 1).filter(col("known").is_null() & col("sum").is_null()),
            [(row, 1) for row in TRUTHS], schema=NULLABLE, workers=w,
        )
    ],
    [0, 4],
)  # fmt: skip
for operator, computed in [
    ("ArrowStream.select", lambda a: a.select("v", known=~(col("k") < 1), sum=col("k") + 1)),
    ("ArrowStream.with_columns", lambda a: a.with_columns(known=~(col("k") < 1), sum=col("k") + 1)),
]:
    conditions(
        "conditions of columns",
        operator,
        lambda w, f=computed: [
            row["v"]
            for row in arrows(f, table(TRUTHS, NULLABLE), workers=w)
            if row["known"] is None and row["sum"] is None
        ],
        [0, 4],
    )
conditions(
    "conditions of columns",
    "ArrowStream.filter greatest",
    lambda w: [
        row["v"]
        for row in arrows(lambda a: a.filter((col("k") > 1e300) & (col("k") == col("k"))), table(TRUTHS, NULLABLE), workers=w)
    ],
    [1],
)  # fmt: skip
conditions(
    "conditions of columns",
    "ColumnCollection.filter greatest",
    lambda w: [
        row[2]
        for row in column_collections(
            lambda a: a.filter((col("k") > 1e300) & (col("k") == col("k"))), [(row, 1) for row in TRUTHS], schema=NULLABLE, workers=w
        )
    ],
    [1],
)  # fmt: skip
for operator, condition, expected in [
    ("<", record[1] < 1, [0, 2, 4]),
    ("== None", record[1] == None, [0, 4]),  # noqa: E711
    ("is_null", record[1].is_null(), [0, 4]),
    ("greatest", record[1] > 1e300, [1]),
]:
    conditions(
        "conditions of records",
        f"Collection.filter {operator}",
        lambda w, c=condition: [
            row[2] for row in collections(lambda a: a.filter(c), [(row, 1) for row in TRUTHS], workers=w)
        ],
        expected,
    )

# ------------------------------------------------------------ keys of collections

PLACED = [((key, place), 1) for place, key in enumerate(KEYS)]
ROWS = [(row, 1) for row in rows(KEYS)]
OTHERS = [(key, 1) for key in [NAN, -0.0, None]]


def keys_alone(keys: Any) -> Any:
    return keys.map((record, None))


def keys_of_collections(
    family: str, operator: str, build: Callable[..., Any], *given: Any, expected: Any
) -> None:
    def counted(workers: int) -> Any:
        found: Counter[Any] = Counter()
        for one, count in collections(build, *given, workers=workers).items():
            found[one] += count
        return found

    CASES.append(Case(family, operator, counted, Counter({plain_key(key): n for key, n in expected.items()})))


def plain_key(key: Any) -> Any:
    return None if key == "None" else key if key == "nan" else float(key)


for operator, build, given, expected in [
    ("Collection.distinct", lambda a: a.map(record[0]).distinct(), [PLACED], ONCE),
    ("Collection.consolidate", lambda a: a.map(record[0]).consolidate(), [PLACED], GROUPS),
    (
        "Collection.value_counts",
        lambda a: a.map(record[0]).value_counts().flat_map(lambda r: [r[0]] * r[1]),
        [PLACED],
        GROUPS,
    ),
    (
        "Collection.count",
        lambda a: a.count().flat_map(lambda r: [r[0]] * r[1]),
        [PLACED],
        GROUPS,
    ),
    ("Collection.threshold", lambda a: a.map(record[0]).threshold(lambda r, n: n), [PLACED], GROUPS),
    ("Collection.map_groups", lambda a: a.map_groups(lambda k, v: v).map(record[0]), [PLACED], GROUPS),
    ("Collection.min", lambda a: a.min().map(record[0]), [PLACED], ONCE),
    ("Collection.max", lambda a: a.max().map(record[0]), [PLACED], ONCE),
    ("Collection.sum", lambda a: a.sum().map(record[0]), [PLACED], ONCE),
    ("Collection.mean", lambda a: a.mean().map(record[0]), [PLACED], ONCE),
    ("Collection.top_k", lambda a: a.top_k(1).map(record[0]), [PLACED], ONCE),
    ("Collection.arrange", lambda a: a.arrange().to_collection().map(record[0]), [PLACED], GROUPS),
    ("Arranged.to_collection", lambda a: a.arrange().to_collection().map(record[0]), [PLACED], GROUPS),
    ("Arranged.count", lambda a: a.arrange().count().flat_map(lambda r: [r[0]] * r[1]), [PLACED], GROUPS),
    (
        "Arranged.map_groups",
        lambda a: a.arrange().map_groups(lambda k, v: v).map(record[0]),
        [PLACED],
        GROUPS,
    ),
    ("Arranged.min", lambda a: a.arrange().min().map(record[0]), [PLACED], ONCE),
    ("Arranged.max", lambda a: a.arrange().max().map(record[0]), [PLACED], ONCE),
    ("Arranged.sum", lambda a: a.arrange().sum().map(record[0]), [PLACED], ONCE),
    ("Arranged.mean", lambda a: a.arrange().mean().map(record[0]), [PLACED], ONCE),
    ("Arranged.top_k", lambda a: a.arrange().top_k(1).map(record[0]), [PLACED], ONCE),
]:
    keys_of_collections("collections of records", operator, build, *given, expected=expected)
SEMI = Counter({key: n for key, n in GROUPS.items() if key != "1.5"})
for operator, build, given, expected in [
    ("Collection.join", lambda a, b: a.join(b).map(record[0]), [PLACED, PLACED], VALUES_PAIRS),
    (
        "Arranged.join",
        lambda a, b: a.arrange().join(b.arrange()).map(record[0]),
        [PLACED, PLACED],
        VALUES_PAIRS,
    ),
    ("Collection.join semi", lambda a, b: a.join(b, how="semi").map(record[0]), [PLACED, PLACED], GROUPS),
    ("Collection.join anti", lambda a, b: a.join(b, how="anti").map(record[0]), [PLACED, PLACED], Counter()),
    (
        "Arranged.join semi",
        lambda a, b: a.arrange().join(b.arrange(), how="semi").map(record[0]),
        [PLACED, PLACED],
        GROUPS,
    ),
    (
        "Collection.join semi of keys",
        lambda a, b: a.join(keys_alone(b), how="semi").map(record[0]),
        [PLACED, OTHERS],
        SEMI,
    ),
    (
        "Collection.join anti of keys",
        lambda a, b: a.join(keys_alone(b), how="anti").map(record[0]),
        [PLACED, OTHERS],
        GROUPS - SEMI,
    ),
]:
    keys_of_collections(JOIN, operator, build, *given, expected=expected)


def keys_of_column_collections(
    family: str, operator: str, build: Callable[..., Any], sides: int, expected: Any
) -> None:
    def counted(workers: int) -> Any:
        found: Counter[Any] = Counter()
        for row, count in column_collections(
            build, *[ROWS] * sides, schema=NULLABLE, workers=workers
        ).items():
            found[row[0]] += count * (row[1] if len(row) > 1 else 1)
        return found

    CASES.append(Case(family, operator, counted, Counter({plain_key(key): n for key, n in expected.items()})))


for operator, build, expected in [
    ("ColumnCollection.distinct", lambda a: a.select("k").distinct(), ONCE),
    ("ColumnCollection.consolidate", lambda a: a.select("k").consolidate(), GROUPS),
    ("ColumnCollection.value_counts", lambda a: a.select("k").value_counts(), GROUPS),
    ("ColumnCollection.count", lambda a: a.count("k"), GROUPS),
    ("ColumnCollection.aggregate", lambda a: a.aggregate("k", v_count=ps.col("v").count()), GROUPS),
    ("ColumnCollection.min", lambda a: a.min("v", by="k").select("k"), ONCE),
    ("ColumnCollection.max", lambda a: a.max("v", by="k").select("k"), ONCE),
    ("ColumnCollection.sum", lambda a: a.sum("v", by="k").select("k"), ONCE),
    ("ColumnCollection.mean", lambda a: a.mean("v", by="k").select("k"), ONCE),
    ("ColumnCollection.top_k", lambda a: a.top_k(9, "v", by="k").select("k"), GROUPS),
    ("ColumnCollection.collect", lambda a: a.collect("v", by="k").select("k"), ONCE),
    ("ColumnCollection.over", lambda a: a.over("k", n=ps.row_number()).select("k"), GROUPS),
    ("ColumnCollection.union", lambda a: a.select("k").union(a.select("k")), ONCE),
    ("ColumnCollection.intersect", lambda a: a.select("k").intersect(a.select("k")), ONCE),
    (
        "ColumnCollection.except_",
        lambda a: a.select("k").except_(a.select("k").filter(ps.col("k") != ps.col("k"))),
        ONCE,
    ),
]:
    keys_of_column_collections("collections of columns", operator, build, 1, expected)
for operator, build, expected in [
    ("ColumnCollection.join", lambda a, b: a.join(b, on="k").select("k"), NULLS_PAIRS),
    (
        "ColumnCollection.join of two columns",
        lambda a, b: a.join(b, on=["k", "v"]).select("k"),
        GROUPS - Counter({"None": 2}),
    ),
    (
        "ColumnCollection.join semi",
        lambda a, b: a.join(b, on="k", how="semi").select("k"),
        GROUPS - Counter({"None": 2}),
    ),
    (
        "ColumnCollection.join anti",
        lambda a, b: a.join(b, on="k", how="anti").select("k"),
        Counter({"None": 2}),
    ),
    (
        "ColumnCollection.join anti on two columns",
        lambda a, b: a.join(b, on=["v", "k"], how="anti").select("k"),
        Counter({"None": 2}),
    ),
]:
    keys_of_column_collections(JOIN_COLUMNS, operator, build, 2, expected)

for how in HOWS:
    placed_others = [((key, place), 1) for place, key in enumerate(OTHER_KEYS)]
    for operator, build in [
        ("Collection.join", lambda a, b, how=how: a.join(b, how=how).map(record[0])),
        ("Arranged.join", lambda a, b, how=how: a.arrange().join(b.arrange(), how=how).map(record[0])),
    ]:
        wanted_keys = joined(how, KEYS, OTHER_KEYS, null=True)
        keys_of_collections(
            JOIN, f"{operator} {how} of other keys", build, PLACED, placed_others, expected=wanted_keys
        )
    for title, nulls_equal in ((f"{how} of other keys", False), (f"{how}, nulls_equal=True", True)):

        def keys_of_columns_joined(workers: int, how: str = how, nulls_equal: bool = nulls_equal) -> Any:
            def build(a: Any, b: Any) -> Any:
                return a.join(b, on="k", how=how, nulls_equal=nulls_equal).select("k")

            others = [(row, 1) for row in rows(OTHER_KEYS)]
            found: Counter[Any] = Counter()
            for row, count in column_collections(
                build, ROWS, others, schema=NULLABLE, workers=workers
            ).items():
                found[row[0]] += count
            return found

        wanted_rows = joined(how, KEYS, OTHER_KEYS, null=nulls_equal)
        CASES.append(
            Case(
                JOIN_COLUMNS,
                f"ColumnCollection.join {title}",
                keys_of_columns_joined,
                Counter({plain_key(key): n for key, n in wanted_rows.items()}),
            )
        )

# ------------------------------------------------------------ counts that are negative

COUNTED: Counter[Any] = Counter(
    {("a", 1): 2, ("a", 2): -1, ("b", 1): -1, ("c", 5): 1, ("c", 7): -3, ("d", 4): 3}
)
SIDE: Counter[Any] = Counter({("a", 9): -2, ("b", 8): 1, ("c", 7): 1, ("d", 4): -1, ("d", 3): 2})
KEPT = Counter({"a": 1, "b": -1, "c": -2, "d": 2})


def groups_of(rows: Counter[Any], *, positive: bool) -> dict[Any, list[tuple[Any, int]]]:
    found: dict[Any, list[tuple[Any, int]]] = {}
    for (key, value), n in sorted(rows.items()):
        if n > 0 or not positive:
            found.setdefault(key, []).append((value, n))
    return found


def totals(of: Callable[[list[tuple[Any, int]]], Any], *, positive: bool = False) -> Counter[Any]:
    made = {key: of(values) for key, values in groups_of(COUNTED, positive=positive).items()}
    return Counter({(key, value): 1 for key, value in made.items() if value is not None})


def mean_of(values: list[tuple[Any, int]]) -> Any:
    count = sum(n for _, n in values)
    return sum(value * n for value, n in values) / count if count else None


JOINED = Counter(
    {(k, (v, w)): n * m for (k, v), n in COUNTED.items() for (j, w), m in SIDE.items() if j == k}
)
IN_KEPT = Counter({(k, v): n for (k, v), n in COUNTED.items() if KEPT[k] > 0})
OUT_KEPT = Counter({(k, v): n for (k, v), n in COUNTED.items() if KEPT[k] <= 0})
TOP = Counter({("a", 1): 2, ("c", 5): 1, ("d", 4): 2})
EACH = {(key, value): n for (key, value), n in COUNTED.items()}

LINEAR, SETS = "linear operators", "operators on sets"
COLLECTION_COUNTS: list[tuple[str, str, Callable[..., Any], Callable[..., Any] | None, dict[Any, int]]] = [
    (LINEAR, "filter", lambda a, b, k: a.filter(record[1] > 1), lambda a, b, k: a.filter(col("v") > 1),
     {row: n for row, n in EACH.items() if row[1] > 1}),
    (LINEAR, "map", lambda a, b, k: a.map((record[0], record[1] + 1)), lambda a, b, k: a.select("k", v=col("v") + 1),
     {(key, v + 1): n for (key, v), n in EACH.items()}),
    (LINEAR, "concat", lambda a, b, k: a.concat(b), lambda a, b, k: a.concat(b),
     {row: COUNTED[row] + SIDE[row] for row in {*COUNTED, *SIDE}}),
    (LINEAR, "negate", lambda a, b, k: a.negate(), lambda a, b, k: a.negate(), {row: -n for row, n in EACH.items()}),
    (LINEAR, "consolidate", lambda a, b, k: a.consolidate(), lambda a, b, k: a.consolidate(), EACH),
    (LINEAR, "join", lambda a, b, k: a.join(b), lambda a, b, k: a.join(b.rename({"v": "w"}), on="k"), JOINED),
    (LINEAR, "join semi", lambda a, b, k: a.join(keys_alone(k), how="semi"), lambda a, b, k: a.join(k, on="k", how="semi"), IN_KEPT),
    (LINEAR, "join anti", lambda a, b, k: a.join(keys_alone(k), how="anti"), lambda a, b, k: a.join(k, on="k", how="anti"), OUT_KEPT),
    (LINEAR, "flat_map", lambda a, b, k: a.flat_map(lambda r: [r, r]), None, {row: 2 * n for row, n in EACH.items()}),
    (LINEAR, "arrange", lambda a, b, k: a.arrange().to_collection(), None, EACH),
    (LINEAR, "threshold", lambda a, b, k: a.threshold(lambda r, n: n), None, EACH),
    (LINEAR, "value_counts", lambda a, b, k: a.value_counts(), lambda a, b, k: a.value_counts(), {(row, n): 1 for row, n in EACH.items()}),
    (LINEAR, "count", lambda a, b, k: a.count(), lambda a, b, k: a.count("k"),
     totals(lambda values: sum(n for _, n in values) or None)),
    (LINEAR, "sum", lambda a, b, k: a.sum(), lambda a, b, k: a.sum("v", by="k"),
     totals(lambda values: sum(v * n for v, n in values))),
    (LINEAR, "mean", lambda a, b, k: a.mean(), lambda a, b, k: a.mean("v", by="k"), totals(mean_of)),
    (SETS, "distinct", lambda a, b, k: a.distinct(), lambda a, b, k: a.distinct(),
     {row: 1 for row, n in EACH.items() if n > 0}),
    (SETS, "min", lambda a, b, k: a.min(), lambda a, b, k: a.min("v", by="k"),
     totals(lambda values: values[0][0], positive=True)),
    (SETS, "max", lambda a, b, k: a.max(), lambda a, b, k: a.max("v", by="k"),
     totals(lambda values: values[-1][0], positive=True)),
    (SETS, "top_k", lambda a, b, k: a.top_k(2), lambda a, b, k: a.top_k(2, "v", by="k"), TOP),
    (SETS, "map_groups", lambda a, b, k: a.map_groups(lambda key, values: [sum(v * n for v, n in values)]),
     lambda a, b, k: a.map_groups(lambda key, values: [sum(v * n for v, n in values)], by="k", of="v",
                              schema=pa.schema({"s": pa.int64()})),
     totals(lambda values: sum(v * n for v, n in values), positive=True)),
    (SETS, "iterate", lambda a, b, k: a.iterate(lambda inner, c: c.distinct()),
     lambda a, b, k: a.iterate(lambda inner, c: c.distinct()), {row: 1 for row, n in EACH.items() if n > 0}),
]  # fmt: skip
PAIRS = pa.schema({"k": pa.string(), "v": pa.int64()})


def flat(row: Any) -> tuple[Any, ...]:
    return tuple(part for each in row for part in flat(each)) if isinstance(row, tuple) else (row,)


for family, operator, build, columns, expected in COLLECTION_COUNTS:
    wanted_counts = Counter({plain(row): n for row, n in expected.items() if n})
    CASES.append(
        Case(
            family,
            f"Collection.{operator}",
            lambda w, f=build: collections(
                f, [*COUNTED.items()], [*SIDE.items()], [*KEPT.items()], workers=w
            ),
            wanted_counts,
        )
    )
    if columns is not None:
        CASES.append(
            Case(
                family,
                "ColumnCollection.select" if operator == "map" else f"ColumnCollection.{operator}",
                lambda w, f=columns: column_collections(
                    f,
                    [*COUNTED.items()],
                    [*SIDE.items()],
                    [((k, 0), n) for k, n in KEPT.items()],
                    schema=PAIRS,
                    workers=w,
                ),
                Counter({flat(row): n for row, n in wanted_counts.items()}),
            )
        )

# ------------------------------------------------------------ event times


def refused(build: Callable[..., Any], *given: list[Any]) -> str | None:
    """The name of the error of an operator; None where it takes the records."""
    try:
        streams(build, *given, workers=1)
    except Exception as error:
        return type(error).__name__
    return None


def at_columns(stream: Any) -> Any:
    return stream.map(lambda at: {"at": at}).to_arrow(pa.schema([("at", pa.int64())]))


for operator, build, given, error in [
    ("Stream.event_time", lambda a: a.event_time(lambda at: at)[0], [1, None], TypeError),
    ("Stream.event_time nan", lambda a: a.event_time(lambda at: at)[0], [1, NAN], TypeError),
    ("Stream.delay", lambda a: a.delay(lambda at, _: at), [1, None], TypeError),
    ("Stream.delay nan", lambda a: a.delay(lambda at, _: at), [1, NAN], TypeError),
    ("ArrowStream.event_time", lambda a: at_columns(a).event_time("at")[0].to_records(), [1, None], ps.TimeError),
    ("ArrowStream.delay", lambda a: at_columns(a).delay("at").to_records(), [1, None], ps.TimeError),
]:  # fmt: skip
    CASES.append(Case("event times", operator, lambda w, f=build, g=given: refused(f, g), error.__name__))

# ------------------------------------------------------------ between records and columns

FLOATS = pa.schema([("f", pa.float64()), ("s", pa.string())])
NUMBERS = pa.schema([("f", pa.int64()), ("s", pa.string())])
VARIED = [{"f": None, "s": "a"}, {"f": NAN, "s": None}, {"f": -0.0, "s": "b"}]
MISSING = [{"f": None, "s": "a"}, {"f": 1, "s": None}]


def through_a_collection(stream: Any) -> Any:
    records = stream.to_arrow(NUMBERS).to_collection().to_records()
    return records.updates().map(lambda update: dict(zip("fs", update[0], strict=True)))


BETWEEN: list[tuple[str, Callable[[Any], Any], list[Any]]] = [
    ("Stream.to_arrow", lambda a: a.to_arrow(FLOATS).to_records(), VARIED),
    ("ArrowStream.to_records", lambda a: a.to_arrow(FLOATS).select("f", "s").to_records(), VARIED),
    ("ArrowStream.to_collection", through_a_collection, MISSING),
    ("ColumnCollection.to_records", through_a_collection, MISSING),
]
for operator, build, rows_given in BETWEEN:
    CASES.append(
        Case(
            "between records and columns",
            operator,
            lambda w, f=build, g=rows_given: sorted(
                repr((row["f"], row["s"])) for row in streams(f, g, workers=w)
            ),
            sorted(repr((row["f"], row["s"])) for row in rows_given),
        )
    )

# ------------------------------------------------------------ graphs

# Self-loops, both directions, and each of them with a count that is not positive.
EDGES: Counter[Any] = Counter(
    {(1, 2): 2, (2, 1): -1, (2, 3): -1, (2, 2): -2, (3, 4): 1, (4, 5): 1, (5, 3): 1, (1, 4): 1, (4, 1): 1, (6, 7): -1,
     (4, 3): 1, (1, 3): 3}
)  # fmt: skip
NODES: Counter[Any] = Counter({1: -1, 3: 1, 7: 2, 8: -1, 6: -2})
GRAPHS: dict[str, Callable[[Any, Any], Any]] = {
    "bfs": lambda e, n: graphs.bfs(e, n),
    "shortest_paths": lambda e, n: graphs.shortest_paths(
        e.map((record[0], (record[1], record[1] - record[0] + 9))), n
    ),
    "connected_components": lambda e, n: graphs.connected_components(e, n),
    "strongly_connected_components": lambda e, n: graphs.strongly_connected_components(e, n),
    "pagerank": lambda e, n: graphs.pagerank(e, n, iterations=4),
    "label_propagation": lambda e, n: graphs.label_propagation(e, n, iterations=3),
    "clustering_coefficients": lambda e, n: graphs.clustering_coefficients(e, n),
    "triangles": lambda e, n: graphs.triangles(e),
    "k_core": lambda e, n: graphs.k_core(e, 2),
}
for operator in graphs.__all__:
    function_of_graphs = GRAPHS[operator]

    def of_set(workers: int, f: Any = function_of_graphs) -> Counter[Any]:
        there = [[(one, 1) for one, n in counts.items() if n > 0] for counts in (EDGES, NODES)]
        return collections(f, *there, workers=workers)

    def in_steps(workers: int, f: Any = function_of_graphs) -> Counter[Any]:
        """One update after the other, which brings counts below 0 and up again."""
        chance = random.Random(3)
        updates: list[list[Any]] = []
        for counts in (EDGES, NODES):
            steps = [(one, 1 if n > 0 else -1) for one, n in counts.items() for _ in range(abs(n))]
            steps += [(one, sign) for one in counts for sign in (1, -1, -1, 1)]
            chance.shuffle(steps)
            updates.append(steps)

        def main(worker: ps.Worker) -> Any:
            with worker.dataflow() as scope:
                inputs, made = zip(*(scope.new_collection() for _ in updates), strict=True)
                captured = f(*made).capture()
            for time in range(max(map(len, updates))):
                for handle, steps in zip(inputs, updates, strict=True):
                    handle.advance_to(time)
                    if time % worker.peers == worker.index and time < len(steps):
                        handle.update(*steps[time])
            for handle in inputs:
                handle.close()
            worker.run()
            return captured.extract()

        total: Counter[Any] = Counter()
        for found in ps.execute(main, workers=workers):
            for _, changes in found:
                for one, diff in changes:
                    total[one] += diff
        return Counter({one: n for one, n in total.items() if n})

    CASES.append(Case("graphs", f"graphs.{operator}", in_steps, of_set))
    CASES.append(
        Case(
            "graphs",
            f"graphs.{operator} in one step",
            lambda w, f=function_of_graphs: collections(f, [*EDGES.items()], [*NODES.items()], workers=w),
            of_set,
        )
    )
    # None and NaN are nodes like any other.
    CASES.append(
        Case(
            "graphs",
            f"graphs.{operator} of None and NaN",
            lambda w, f=operator: shape(f, lambda node, _: {1: None, 6: NAN}.get(node, node), w),
            lambda w, f=operator: shape(f, lambda node, _: node, w),
        )
    )
    # 0.0 and -0.0 are one node.
    CASES.append(
        Case(
            "graphs",
            f"graphs.{operator} of 0.0 and -0.0",
            lambda w, f=operator: shape(
                f, lambda node, place: (0.0, -0.0)[place % 2] if node == 1 else node, w
            ),
            lambda w, f=operator: shape(f, lambda node, _: node, w),
        )
    )
for weight in (None, NAN):
    CASES.append(
        Case(
            "graphs",
            f"graphs.shortest_paths of the weight {weight}",
            lambda w, weight=weight: refused_weight(weight),
            True,
        )
    )


def refused_weight(weight: Any) -> bool:
    """Whether an edge of a weight is an error that names the edge and the weight."""
    try:
        collections(graphs.shortest_paths, [((1, (2, weight)), 1)], [(1, 1)], workers=1)
    except (TypeError, ValueError) as error:
        return f"edge from 1 to 2 has the weight {weight}" in str(error)
    return False


def shape(operator: str, named: Callable[[int, int], Any], workers: int) -> Any:
    """Returns the sizes of the results of a graph.

    Args:
        operator: The function of graphs.
        named: Returns the value that stands for a node in an edge, of the node and the edge's number.
        workers: The number of workers.
    """
    of = GRAPHS[operator]
    if operator == "shortest_paths":

        def of(e: Any, n: Any) -> Any:
            return graphs.shortest_paths(e.map((record[0], (record[1], 1))), n)

    edges = [(1, 2), (2, 3), (3, 1), (3, 4), (5, 6)]
    edges = [(tuple(named(end, place) for end in edge), 1) for place, edge in enumerate(edges)]
    found = collections(of, edges, [(named(1, 0), 1)], workers=workers)
    if operator in {"triangles", "k_core"}:
        return sum(found.values())
    # Labels are nodes: how many have each.
    if operator in {"connected_components", "strongly_connected_components", "label_propagation"}:
        return sorted(Counter(label for _, label in found).values())
    return sorted(round(value, 9) for _, value in found)


# ------------------------------------------------------------ the book

TABLE = {
    "records": ("", "one group", "one group", "0.0; the first is shown", ""),
    "records by key": ("", "one group", "one group", "0.0; the first is shown", ""),
    "joins of records": ("", "matches None", "matches NaN", "matches 0.0", "products of counts"),
    "columns": ("one group", "", "one group", "0.0; `aggregate` and `window` show 0.0", ""),
    "joins of columns": ("matches nothing", "", "matches NaN", "matches 0.0", "products of counts"),
    "collections of records": ("", "one group", "one group", "0.0; 0.0 is shown", "see below"),
    "collections of columns": ("one group", "", "one group", "0.0; 0.0 is shown", "see below"),
    "values of columns": (
        "skipped; of nulls alone null, and a count of 0",
        "",
        "sum, mean, var: NaN; else the greatest number",
        "0.0",
        "see below",
    ),
    "values of records": (
        "",
        "in collections before all others; else a `TypeError`",
        "sum, mean: NaN; else the greatest number",
        "0.0",
        "see below",
    ),
    "order of columns": ("last, also descending", "", "the greatest number", "0.0", ""),
    "order of records": (
        "",
        "in collections before all others; else a `TypeError`",
        "the greatest number",
        "0.0",
        "",
    ),
    "conditions of columns": (
        "unknown: the row is dropped",
        "",
        "the greatest number, equal to itself; in expressions of pyarrow and Polars as these say",
        "0.0",
        "",
    ),
    "conditions of records": (
        "",
        "before all others, equal to itself",
        "the greatest number, equal to itself",
        "0.0",
        "",
    ),
    "event times": ("a `TimeError`", "a `TypeError`", "a `TypeError`", "", ""),
    "between records and columns": ("None", "null", "NaN", "-0.0", ""),
    "linear operators": ("", "", "", "", "exact"),
    "operators on sets": ("", "", "", "", "left out"),
    "graphs": (
        "from Spark: the edge is left out; a weight: an error",
        "a node; a weight: an error",
        "a node; a weight: an error",
        "0.0",
        "left out",
    ),
}
"""The meanings for each family: null, None, NaN, -0.0 and negative counts. An empty one does not occur."""

UNCONCERNED = {
    "binary",
    "flat_map",
    "map_values",
    "inspect_batch",
    "leave",
    "window",
    "accumulate",
    "forwarded",
    "limit",
    "map_batches",
    "enter_at",
    "binary_notify",
    "broadcast",
    "capture",
    "write",
    "map_each_batch",
    "unary",
    "sink",
    "key_by",
    "capture_into",
    "show",
    "async_map",
    "vertex",
    "count",
    "with_keys",
    "concat",
    "unary_notify",
    "to_collection",
    "branch",
    "exchange",
    "inspect_time",
    "partition",
    "updates",
    "connect_loop",
    "map_in_place",
    "ok_err",
    "probe",
    "branch_when",
    "filter",
    "delay_batch",
    "unary_frontier",
    "probe_with",
    "trace",
    "try_map",
    "inspect",
    "enter",
    "rename",
    "with_one_key",
    "map",
    "reclock",
    "binary_frontier",
}
"""Methods that call functions of the user's, or pass on what they get; where keys go is in `tests/arrow`."""


def names_of(cases: Iterable[Case]) -> list[str]:
    return list(dict.fromkeys(case.operator.split()[0] for case in cases))


def test_the_book_has_the_table_and_the_operators() -> None:
    text = (Path(__file__).parents[2] / "docs" / "missing-values.md").read_text()
    head = "| | null | None | NaN | -0.0 is | negative count |\n|---|---|---|---|---|---|\n"
    table = head + "".join(f"| {' | '.join((family, *cells))} |\n" for family, cells in TABLE.items())
    assert table.replace("|  ", "| ") in text.replace("|  ", "| "), f"the table is to be:\n{table}"
    for family in TABLE:
        listed = ", ".join(f"`{operator}`" for operator in names_of(c for c in CASES if c.family == family))
        wanted = f"- *{family}*: {listed}"
        assert wanted in " ".join(text.split()), f"a point of the list is to be:\n{wanted}"


def test_every_operator_is_in_a_family() -> None:
    assert {case.family for case in CASES} == set(TABLE)
    tested = set(names_of(CASES))
    kinds: list[Any] = [
        ps.Stream,
        ps.ArrowStream,
        KeyedStream,
        WindowedStream,
        ps.Collection,
        ps.ColumnCollection,
        ps.Arranged,
    ]
    missing = [
        f"{kind.__name__}.{method}"
        for kind in kinds
        for method in dir(kind)
        if not method.startswith("_")
        and callable(getattr(kind, method))
        and f"{kind.__name__}.{method}" not in tested
        and method not in UNCONCERNED
    ]
    assert missing == [], "these are in no family of CASES, and not in UNCONCERNED"
    assert {f"graphs.{function}" for function in graphs.__all__} <= tested


# ------------------------------------------------------------ all of them


@pytest.mark.parametrize("workers", [1, 2])
@pytest.mark.parametrize("case", CASES, ids=[f"{case.family}-{case.operator}" for case in CASES])
def test_it_is_as_the_model_says(case: Case, workers: int) -> None:
    expected = case.expected(workers) if callable(case.expected) else case.expected
    assert case.run(workers) == expected


def test_only_values_that_have_no_order_need_more_than_a_comparison(monkeypatch: pytest.MonkeyPatch) -> None:
    """The helpers are slow: they are called where a NaN, or a tuple that may hold one, is."""
    called: list[str] = []
    for module, name in ((reducers, "is_greater"), (reducers, "is_less"), (_nan_order, "comparable")):
        monkeypatch.setattr(module, name, lambda *_, name=name: called.append(name))
    monkeypatch.setattr(reducers, "comparable", _nan_order.comparable, raising=False)
    for values in ([3, 1, 2, 2, 5], [2.5, 1.0, 1.0], ["b", "a"]):
        for reducer in (
            reducers.Extreme(None, greatest=True),
            reducers.Extreme(None, greatest=False),
            reducers.TopK(2, None),
            reducers.TopK(2, lambda value: value),
        ):
            states: dict[Any, Any] = {}
            keys = [0] * len(values)
            reducer.extend(states, keys, reducer.prepared(keys, values))
            reducer.finish(states[0])
    assert called == []


def test_columns_of_a_window_are_reduced_as_values_one_by_one() -> None:
    nan = float("nan")
    for pool in ([1, 1.0, 2, nan, True], [(1, nan), (1, 2), (nan, 0), (1, 2.0)]):
        for values in permutations(pool):
            for greatest in (True, False):
                reducer = reducers.Extreme(None, greatest=greatest)
                states: dict[Any, Any] = {}
                reducer.extend(states, [0] * len(values), list(values))
                state = reducer.first(values[0])
                for value in values[1:]:
                    state = reducer.step(state, value)
                assert states[0] is state
            top = reducers.TopK(3, None)
            states = {}
            top.extend(states, [0] * len(values), list(values))
            wanted = sorted(values, key=_nan_order.key_function(None), reverse=True)[:3]
            assert list(map(id, top.finish(states[0]))) == list(map(id, wanted))
