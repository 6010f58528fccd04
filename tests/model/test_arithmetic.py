"""Sums, counts, means and the greatest few beside Python's exact numbers, with values near the limits.

A result is exact, or an `OverflowError` names its column and key.
"""

from __future__ import annotations

import decimal
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable
from fractions import Fraction
from functools import partial
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

import pointstamp as ps
from aggregates import named
from columns import run as run_columns
from effort import examples
from harness import notes, run

MOST = 2**63 - 1
KEYS = st.sampled_from(["ann", "bob", "eve"])

Rows = list[tuple[str, Any]]


def near(least: int, most: int) -> st.SearchStrategy[int]:
    """Integers of a range, most of them near its ends."""
    ends = [least, least + 1, most - 1, most, most // 2, most // 2 + 1, 0, 1, max(-1, least)]
    return st.one_of(st.sampled_from(ends), st.sampled_from(ends), st.integers(least, most))


def rows(values: st.SearchStrategy[Any]) -> st.SearchStrategy[Rows]:
    return st.lists(st.tuples(KEYS, values), max_size=12)


def decimals(digits: int, scale: int) -> st.SearchStrategy[decimal.Decimal]:
    most = 10**digits - 1
    return near(-most, most).map(lambda number: exactly(number, scale))


def exactly(number: int, scale: int) -> decimal.Decimal:
    digits = tuple(map(int, str(abs(number))))
    return decimal.Decimal((int(number < 0), digits, -scale))


def by_key(data: Iterable[tuple[str, Any]]) -> dict[str, list[Any]]:
    found: dict[str, list[Any]] = defaultdict(list)
    for key, value in data:
        found[key].append(value)
    return found


TYPES = {
    "int8": (pa.int8(), near(-(2**7), 2**7 - 1), (-(2**63), MOST)),
    "int64": (pa.int64(), near(-(2**63), MOST), (-(2**63), MOST)),
    "uint64": (pa.uint64(), near(0, 2**64 - 1), (0, 2**64 - 1)),
    "decimal128": (pa.decimal128(38, 3), decimals(38, 3), (-(10**38) + 1, 10**38 - 1)),
    "decimal256": (pa.decimal256(76, 3), decimals(76, 3), (-(10**76) + 1, 10**76 - 1)),
}
"""The types of columns that are added up, values of them, and the least and greatest sum, without scale."""


def exact(value: Any) -> Fraction:
    return Fraction(value)


def whole(value: Any) -> int:
    """A value as its type keeps it: a decimal without its scale."""
    scaled = exact(value) * (1000 if isinstance(value, decimal.Decimal) else 1)
    assert scaled.denominator == 1
    return scaled.numerator


def sums(data: Rows) -> dict[str, int]:
    return {key: sum(map(whole, values)) for key, values in by_key(data).items()}


def found_or_beyond(run: Callable[[], Any], beyond: Iterable[str], operator: str) -> Any:
    """Returns the result of a run; None where it names a key that may not fit, and is one of them."""
    keys = set(beyond)
    if not keys:
        return run()
    with pytest.raises(OverflowError, match=f"^{operator}: the sum of column 'v' for the key ") as raised:
        run()
    assert any(f"for the key k={key} is beyond" in str(raised.value) for key in keys)
    assert any("in operator '" in note for note in notes(raised.value))
    return None


@pytest.mark.parametrize("workers", [1, 2])
@pytest.mark.parametrize("name", TYPES)
@settings(max_examples=examples(25))
@given(data=st.data())
def test_sums_and_means_of_columns(workers: int, name: str, data: st.DataObject) -> None:
    data_type, values, (least, most) = TYPES[name]
    given_rows = data.draw(rows(values))
    schema = pa.schema([("k", pa.string()), ("v", data_type)])
    table = pa.table([[k for k, _ in given_rows], [v for _, v in given_rows]], schema=schema)
    halves = [(0, table.slice(0, len(table) // 2)), (0, table.slice(len(table) // 2))]
    wanted = [("v", "sum"), ("v", "mean"), ("v", "count")]
    expected = sums(given_rows)
    found = found_or_beyond(
        lambda: run_columns(lambda stream: stream.aggregate("k", **named(wanted)), halves, workers=workers),
        [key for key, total in expected.items() if not least <= total <= most],
        "aggregate",
    )
    if found is None:
        return
    results = {row["k"]: row for rows in found.values() for row in rows}
    assert {key: whole(row["v_sum"]) for key, row in results.items()} == expected
    for key, values_of_key in by_key(given_rows).items():
        mean = results[key]["v_mean"]
        assert results[key]["v_count"] == len(values_of_key)
        if isinstance(mean, decimal.Decimal):
            share = Fraction(expected[key], len(values_of_key))
            half_away = int(abs(share) + Fraction(1, 2)) * (1 if share >= 0 else -1)
            assert whole(mean) == half_away
        else:
            assert mean == pytest.approx(float(Fraction(expected[key], len(values_of_key))), abs=2**12)


WINDOWS = [ps.Tumbling(4), ps.Sliding(6, every=4), ps.Session(gap=3), ps.Count(3)]


@pytest.mark.parametrize("window", WINDOWS, ids=str)
@settings(max_examples=examples(20))
@given(data=rows(near(-(2**63), MOST)), kept=st.booleans())
def test_sums_of_windows(window: Any, data: Rows, kept: bool) -> None:
    """Sums of columns equal those of records, whose integers have no bound."""
    timed = [(key, 2 * at, value) for at, (key, value) in enumerate(data)]
    schema = pa.schema([("k", pa.string()), ("at", pa.int64()), ("v", pa.int64())])

    def of_columns(scope: ps.Scope) -> Any:
        on_time, _ = scope.to_stream(timed).to_arrow(schema).event_time("at", lateness=99)
        state: Any = {"state": ps.KeyedState()} if kept else {}
        return on_time.window(window, "k", v_sum=ps.col("v").sum(), **state).to_records().capture()

    def of_records(scope: ps.Scope) -> Any:
        on_time, _ = scope.to_stream(timed).event_time(lambda row: row[1], lateness=99)
        return on_time.key_by(lambda row: row[0]).window(window).sum(lambda row: row[2]).capture()

    [expected] = run(1, of_records)
    totals = [(at, key, span, total) for at, found in expected.extract() for key, span, total in found]
    beyond = [key for _, key, _, total in totals if not -(2**63) <= total <= MOST]
    found = found_or_beyond(lambda: run(1, of_columns), beyond, "window")
    if found is not None:
        got = [
            (at, row["k"], (row["window_start"], row["window_end"]), row["v_sum"])
            for at, some in found[0].extract()
            for row in some
        ]
        assert Counter(got) == Counter((at, key, tuple(span), total) for at, key, span, total in totals)


@settings(max_examples=examples(50))
@given(data=rows(near(-(2**63), MOST)), unsigned=st.booleans())
def test_running_sums(data: Rows, unsigned: bool) -> None:
    if unsigned:
        data = [(key, value + 2**63) for key, value in data]
    least, most = (0, 2**64 - 1) if unsigned else (-(2**63), MOST)
    schema = pa.schema(
        [("k", pa.string()), ("at", pa.int64()), ("v", pa.uint64() if unsigned else pa.int64())]
    )
    timed = [(key, at, value) for at, (key, value) in enumerate(data)]

    def build(scope: ps.Scope) -> Any:
        on_time, _ = scope.to_stream(timed).to_arrow(schema).event_time("at", lateness=99)
        return on_time.running("k", v_sum=ps.col("v").sum()).to_records().capture()

    so_far: Counter[str] = Counter()
    expected, beyond = [], []
    for key, at, value in timed:
        so_far[key] += value
        expected.append((at, so_far[key]))
        if not least <= so_far[key] <= most:
            beyond.append(key)
    found = found_or_beyond(lambda: run(1, build), beyond, "running")
    if found is not None:
        got = [(row["at"], row["v_sum"]) for _, some in found[0].extract() for row in some]
        assert sorted(got) == expected


UPDATES = st.dictionaries(
    st.tuples(KEYS, near(-(2**63), MOST)), near(-(2**63), MOST).filter(bool), max_size=10
).map(lambda updates: list(updates.items()))
"""Updates of records that differ: how many there are of each."""


def collected(updates: list[tuple[Any, int]], build: Callable[[Any], Any]) -> dict[Any, int]:
    """The records of a collection, each with its count, after the updates."""

    def main(worker: ps.Worker) -> Any:
        with worker.dataflow() as scope:
            source, collection = scope.new_collection()
            captured = build(collection).capture()
        source.update_many(updates)
        source.close()
        worker.run()
        return captured.extract()

    [result] = ps.execute(main)
    return {record: diff for _, changes in result for record, diff in changes}


WRAPS = [
    (("ann", value), diff)
    for value, diff in [
        (-(2**63), -(2**63)),
        (MOST, MOST),
        (MOST - 1, MOST),
        (MOST - 2, MOST),
        (17, 2**62 + 1),
        (2**62, 1),
    ]
]
"""Updates that add up to 2**128 + 7, which is 7 in 128 bits."""


@example(updates=WRAPS)
@settings(max_examples=examples(100))
@given(updates=UPDATES)
def test_sums_and_means_of_collections(updates: list[tuple[tuple[str, int], int]]) -> None:
    totals: Counter[str] = Counter()
    counts: Counter[str] = Counter()
    for (key, value), diff in updates:
        totals[key] += value * diff
        counts[key] += diff
    assert collected(updates, lambda c: c.sum()) == {(key, total): 1 for key, total in totals.items()}
    means = collected(updates, lambda c: c.mean())
    assert means == {(key, totals[key] / count): 1 for key, count in counts.items() if count}


@settings(max_examples=examples(100))
@given(updates=UPDATES)
def test_counts_of_collections(updates: list[tuple[tuple[str, int], int]]) -> None:
    """Counts that pass 64 bits on the way may be refused where they are added up as they come."""
    counts: Counter[str] = Counter()
    passed = False
    for (key, _), diff in updates:
        counts[key] += diff
    for key in counts:
        of_key = [diff for (other, _), diff in updates if other == key]
        up, down = sum(d for d in of_key if d > 0), sum(d for d in of_key if d < 0)
        passed = passed or up > MOST or down < -(2**63)

    beyond = any(not -(2**63) <= count <= MOST for count in counts.values())
    try:
        found = collected(updates, lambda c: c.count())
    except OverflowError:
        assert passed
    else:
        assert not beyond
        assert found == {(key, count): 1 for key, count in counts.items() if count}


@settings(max_examples=examples(60))
@given(
    updates=UPDATES,
    n=st.sampled_from([1, 2, 3, MOST, 2**63, 2**64 - 1, 2**64, 2**64 + 1, 2**127, 2**128, 2**200]),
)
def test_the_greatest_few_of_collections(updates: list[tuple[tuple[str, int], int]], n: int) -> None:
    expected = {}
    for key in {key for (key, _), _ in updates}:
        left = n
        for value, diff in sorted(((v, d) for (k, v), d in updates if k == key), reverse=True):
            if diff > 0 and left > 0:
                expected[key, value] = min(diff, left)
                left -= min(diff, left)
    assert collected(updates, lambda c: c.top_k(n)) == expected


@settings(max_examples=examples(60))
@given(updates=UPDATES, factor=near(-(2**63), MOST).filter(bool))
def test_multiplicities_of_joins(updates: list[tuple[tuple[str, int], int]], factor: int) -> None:
    def main(worker: ps.Worker) -> Any:
        with worker.dataflow() as scope:
            left, ours = scope.new_collection()
            right, theirs = scope.new_collection()
            captured = ours.join(theirs).capture()
        left.update_many(updates)
        right.update(("ann", 0), factor)
        left.close()
        right.close()
        worker.run()
        return captured.extract()

    expected = {("ann", (value, 0)): diff * factor for (key, value), diff in updates if key == "ann"}
    if all(-(2**63) <= diff <= MOST for diff in expected.values()):
        [result] = ps.execute(main)
        assert {record: diff for _, changes in result for record, diff in changes} == expected
    else:
        with pytest.raises(OverflowError, match="64 bits") as raised:
            ps.execute(main)
        assert "in operator 'join'" in notes(raised.value)[0]


NUMBERS = st.lists(st.tuples(near(-(2**63), MOST), near(-(2**63), MOST)), max_size=6, unique=True)


@pytest.mark.parametrize("symbol", ["+", "-", "*"])
@settings(max_examples=examples(40))
@given(numbers=NUMBERS)
def test_expressions(symbol: str, numbers: list[tuple[int, int]]) -> None:
    from pointstamp import record

    exactly: Any = {"+": lambda a, b: a + b, "-": lambda a, b: a - b, "*": lambda a, b: a * b}[symbol]
    expected: Counter[Any] = Counter((pair[0], exactly(*pair)) for pair in numbers)
    made = (record[0], exactly(record[0], record[1]))
    updates = [(pair, 1) for pair in numbers]
    if all(-(2**63) <= result <= MOST for _, result in expected):
        assert collected(updates, lambda c: c.map(made)) == expected
    else:
        with pytest.raises(
            OverflowError,
            match=rf"has no result for the record .*the result of \{symbol} is no int of 64 bits",
        ):
            collected(updates, lambda c: c.map(made))


@settings(max_examples=examples(60))
@given(updates=UPDATES)
def test_parts_of_rows(updates: list[tuple[tuple[str, int], int]]) -> None:
    """Rows that differ elsewhere are one in a column: together there may be more than 2**63 of them."""
    schema = pa.schema([("k", pa.string()), ("v", pa.int64()), ("w", pa.int64())])

    def main(worker: ps.Worker, *, as_columns: bool = False) -> Any:
        with worker.dataflow() as scope:
            source, rows = scope.new_collection(schema=schema)
            made = rows.aggregate("k", v_sum=ps.col("v").sum(), w_max=ps.col("w").max())
            captured = made.capture() if as_columns else made.to_records().capture()
        for (key, value), diff in updates:
            source.update(pa.table([[key], [value % 2], [value]], schema=schema), diff)
        source.close()
        worker.run()
        return captured.extract()

    counts: dict[str, Counter[int]] = defaultdict(Counter)
    for (key, value), diff in updates:
        counts[key][value % 2] += diff
    totals = {key: sum(value * count for value, count in of.items()) for key, of in counts.items()}
    beyond = [total for total in totals.values() if not -(2**63) <= total <= MOST]
    if beyond:
        with pytest.raises(OverflowError, match=r"column 'v_sum' is Int64.* in the row \('"):
            ps.execute(partial(main, as_columns=True))
    [result] = ps.execute(main)
    expected = {}
    for key in counts:
        there = [value for (other, value), diff in updates if other == key and diff > 0]
        total = totals[key] if any(counts[key].values()) else None
        expected[key, total, max(there, default=None)] = 1
    assert {record: diff for _, changes in result for record, diff in changes} == expected


@pytest.mark.parametrize(
    ("refuse", "given_number", "error"),
    [
        (lambda s, n: s.to_stream([1]).top_k(n), number, error)
        for number, error in [(0, ValueError), (-1, ValueError), (True, TypeError), (2.0, TypeError)]
    ]
    + [
        (build, number, error)
        for build in (
            lambda s, n: s.collection([("a", 1)]).top_k(n),
            lambda s, n: s.collection([("a", 1)]).arrange().top_k(n),
            lambda s, n: s.to_stream([1]).key_by(lambda x: x).top_k_so_far(n),
            lambda s, n: (
                s.to_stream([1])
                .event_time(lambda x: x)[0]
                .key_by(lambda x: x)
                .window(ps.Tumbling(2))
                .top_k(n)
            ),
            lambda s, n: s.to_stream([(1,)]).to_arrow(pa.schema([("n", pa.int64())])).limit(n - 1),
        )
        for number, error in [(0, ValueError), (2.0, TypeError)]
    ],
)
def test_numbers_of_things_are_refused_where_they_are_written(
    refuse: Any, given_number: Any, error: Any
) -> None:
    with pytest.raises(error, match="number of"):
        run(1, lambda scope: refuse(scope, given_number))


@pytest.mark.parametrize("n", [3, 4, 2**63, 2**64, 2**200])
def test_any_number_takes_all(n: int) -> None:
    schema = pa.schema([("k", pa.string()), ("at", pa.int64())])
    data = [("ann", 1), ("ann", 3), ("ann", 2)]

    def build(scope: ps.Scope) -> Any:
        on_time, _ = scope.to_stream(data).event_time(lambda row: row[1], lateness=9)
        keyed = on_time.key_by(lambda row: row[0])
        columns = scope.to_stream(data).to_arrow(schema)
        return [
            scope.to_stream(data).top_k(n).capture(),
            keyed.top_k_so_far(n).capture(),
            keyed.window(ps.Tumbling(10)).top_k(n).capture(),
            columns.aggregate("k", **named([("at", f"top_{n}")])).to_records().capture(),
            columns.limit(n).to_records().capture(),
        ]

    [captures] = run(1, build)
    ordered = [("ann", 3), ("ann", 2), ("ann", 1)]
    records, keyed, windows, columns, limited = [
        [record for _, some in capture.extract() for record in some] for capture in captures
    ]
    assert sorted(records, reverse=True) == ordered
    assert keyed[-1] == ("ann", ordered)
    assert windows == [("ann", ps.Window(0, 10), ordered)]
    assert columns == [{"k": "ann", f"at_top_{n}": [3, 2, 1]}]
    assert len(limited) == 3


GREATEST = 2**64 - 1


@pytest.mark.parametrize("early", [None, 7])
@pytest.mark.parametrize(
    ("window", "expected"),
    [
        (ps.Tumbling(10), [(GREATEST, ps.Window(GREATEST - 5, GREATEST), 2)]),
        (ps.Tumbling(2**80), [(GREATEST, ps.Window(0, GREATEST), 2)]),
        (ps.Session(gap=10), [(GREATEST, ps.Window(GREATEST - 3, GREATEST), 2)]),
        (ps.Count(2), [(GREATEST, ps.Window(GREATEST - 3, GREATEST), 2)]),
    ],
)
def test_windows_of_records_end_with_the_times(window: Any, expected: list[Any], early: int | None) -> None:
    if early is not None and not isinstance(window, ps.Tumbling):
        return

    def build(scope: ps.Scope) -> Any:
        on_time, _ = scope.to_stream([GREATEST - 3, GREATEST]).event_time(lambda at: at, lateness=9)
        return on_time.key_by(lambda _: "ann").window(window, early=early).count().capture()

    [captured] = run(1, build)
    found = [(at, span, count) for at, some in captured.extract() for _, span, count in some]
    assert found[-1:] == expected


@pytest.mark.parametrize(
    ("window", "start"),
    [
        (ps.Tumbling(10), MOST - 7),
        (ps.Sliding(2**62, every=2**61), 2**62 + 2**61),
        (ps.Session(gap=2**62), MOST - 3),
        (ps.Count(2), MOST - 3),
    ],
)
@pytest.mark.parametrize("kept", [False, True])
def test_windows_of_columns_end_with_the_times(window: Any, start: int, kept: bool) -> None:
    schema = pa.schema([("k", pa.string()), ("at", pa.int64())])

    def build(scope: ps.Scope) -> Any:
        rows = scope.to_stream([("ann", MOST - 3), ("ann", MOST)]).to_arrow(schema)
        on_time, _ = rows.event_time("at", lateness=9)
        state: Any = {"state": ps.KeyedState()} if kept else {}
        return on_time.window(window, "k", at_count=ps.col("at").count(), **state).to_records().capture()

    [captured] = run(1, build)
    at, rows = captured.extract()[-1]
    assert at == MOST
    assert rows[-1] == {"k": "ann", "window_start": start, "window_end": MOST, "at_count": 2}


@pytest.mark.parametrize("operator", ["delay", "event_time"])
def test_times_beyond_those_of_columns_are_named(operator: str) -> None:
    schema = pa.schema([("at", pa.uint64())])

    def build(scope: ps.Scope) -> Any:
        rows = scope.to_stream([(5,), (2**63 + 5,)]).to_arrow(schema)
        moved = rows.delay("at") if operator == "delay" else rows.event_time("at")[0]
        return moved.to_records().capture()

    with pytest.raises(ps.TimeError, match=r"9223372036854775813.* end at 2\*\*63 - 1") as raised:
        run(1, build)
    assert notes(raised.value) == [f"raised in operator '{operator}' on worker 0"]


def test_counts_that_programs_give_stay_within_64_bits() -> None:
    from pointstamp.order import MutableAntichain
    from pointstamp.progress import Graph, Scheduler, Source, Target

    graph = Graph()
    graph.add_node(0, 1)
    graph.add_node(1, 0)
    graph.add_edge(Source(0, 0), Target(1, 0))
    times, tracker, table = MutableAntichain(), graph.build(), Scheduler(graph)
    for update in (
        lambda diff: times.update([(3, diff)]),
        lambda diff: tracker.update(Source(0, 0), 3, diff),
        lambda diff: table.update(Source(0, 0), 3, diff),
    ):
        update(MOST - 1)
        for diff in (2, MOST, -(2**63)):
            with pytest.raises(OverflowError, match="2\\*\\*63"):
                update(diff)
        update(1)
    assert times.count_for(3) == MOST
