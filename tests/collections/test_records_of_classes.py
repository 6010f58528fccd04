"""Records of every kind go through collections as they are, and equal ones are one.

The least of them and the greatest are Python's, or refused.
"""

from __future__ import annotations

import datetime
import decimal
import enum
import fractions
import ipaddress
import pathlib
from collections import Counter
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import pointstamp as ps
from effort import examples
from pointstamp import graphs
from record_classes import (
    Backwards,
    Bits,
    ByKeyword,
    Caseless,
    Cents,
    Colour,
    Coordinate,
    Day,
    Derived,
    Grade,
    Hexadecimal,
    Knot,
    Lazy,
    Length,
    Loose,
    Modulo,
    Named,
    Noted,
    Plain,
    Rights,
    Same,
    Slotted,
    Titled,
)

ZONES = [datetime.timezone.utc, datetime.timezone(datetime.timedelta(hours=1))]
ATOMS = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(),
    st.integers(-3, 3),
    st.floats(allow_nan=False),
    st.decimals(allow_nan=False, allow_infinity=False),
    st.fractions(max_denominator=99),
    st.complex_numbers(allow_nan=False, allow_infinity=False),
    st.text(max_size=4),
    st.binary(max_size=4),
    st.dates(),
    st.datetimes(),
    st.datetimes(timezones=st.sampled_from(ZONES)),
    st.times(timezones=st.one_of(st.none(), st.sampled_from(ZONES))),
    st.timedeltas(),
    st.uuids(),
    st.sampled_from(
        [
            *Colour,
            *Rights,
            Rights(0),
            Rights.READ | Rights.WRITE,
            *Bits,
            Bits(3),
            *Coordinate,
            *Length,
            *Grade,
        ]
    ),
    st.builds(Titled, st.text(max_size=2)),
    st.builds(Cents, st.integers(-9, 9), st.integers(0, 3)),
    st.builds(Hexadecimal, st.sampled_from(["ff", "1"])),
    st.builds(Derived, st.integers(0, 3)),
    st.builds(Backwards, st.integers(0, 3)),
    st.builds(Day, st.integers(1, 9), st.integers(1, 12), st.just(1)),
    st.sampled_from([ipaddress.ip_address("10.0.0.255"), ipaddress.ip_address("10.0.1.0")]),
)
RECORDS = st.recursive(
    ATOMS,
    lambda inner: st.one_of(
        st.lists(inner, max_size=3).map(tuple),
        st.frozensets(inner, max_size=3),
        st.builds(Named, inner, inner),
        st.builds(Plain, inner),
        st.builds(lambda x: ByKeyword(x=x), inner),
        st.builds(Slotted, inner),
        st.builds(Loose, inner),
        st.builds(Noted, inner, st.lists(st.text(max_size=1), max_size=1)),
    ),
    max_leaves=5,
)


def added_up(captured: Any) -> list[tuple[Any, int]]:
    """Adds up a collection at its last time, from a capture."""
    total: Counter[Any] = Counter()
    for _, changes in captured.extract():
        for record, diff in changes:
            total[record] += diff
    return [(record, diff) for record, diff in total.items() if diff]


@settings(max_examples=examples(60))
@given(st.lists(RECORDS, max_size=6))
def test_records_come_out_of_every_operator_equal_to_what_went_in(records: list[Any]) -> None:
    def build(scope: ps.Scope) -> Any:
        collection = scope.collection(records)
        pairs = collection.map(lambda record: (record, 1))
        there = scope.collection([(record, 2) for record in reversed(records)])
        return (
            collection.map(lambda record: record).capture(),
            collection.distinct().capture(),
            pairs.join(there, lambda record, one, two: record).distinct().capture(),
            collection.concat(collection.map(lambda record: record).negate()).consolidate().capture(),
        )

    mapped, distinct, joined, nothing = ps.example(build)
    assert dict(added_up(mapped)) == dict(Counter(records))
    assert {type(record) for record, _ in added_up(mapped)} <= {type(record) for record in records}
    assert dict(added_up(distinct)) == dict.fromkeys(records, 1)
    assert dict(added_up(joined)) == dict.fromkeys(records, 1)
    assert added_up(nothing) == []


def beside(number: float) -> st.SearchStrategy[Any]:
    """A float, and numbers of other types that are next to it, many of which have no other nearest float."""
    exact = fractions.Fraction(number)
    offsets = st.builds(
        lambda n, digits: fractions.Fraction(n, 7 * 10**digits), st.integers(-9, 9), st.integers(14, 40)
    )
    precise = decimal.Context(prec=60)
    return st.one_of(
        st.sampled_from([number, exact, decimal.Decimal(number), decimal.Decimal(repr(number))]),
        offsets.map(exact.__add__),
        offsets.map(
            lambda offset: precise.add(
                decimal.Decimal(number), precise.divide(offset.numerator, offset.denominator)
            )
        ),
    )


NUMBERS = st.one_of(
    st.integers(-2, 2),
    st.floats(-2.0, 2.0),
    st.decimals(-2, 2, places=20),
    st.builds(lambda n: 2**53 + 2 + fractions.Fraction(n, 7), st.integers(-14, 14)),
    st.fractions(-2, 2),
    st.sampled_from(
        [2.0**53 + 2, fractions.Fraction(1, 10**400), fractions.Fraction(-1, 10**400), 5e-324, -5e-324]
    ),
)
NEIGHBOURS = st.one_of(
    st.floats(-2.0, 2.0),
    st.floats(allow_nan=False, allow_infinity=False),
    st.sampled_from([0.1, -0.1, 100.0]),
).flatmap(lambda number: st.lists(beside(number), min_size=1, max_size=8))
ORDERED = (
    NUMBERS,
    st.text(max_size=3),
    st.dates(),
    st.datetimes(timezones=st.sampled_from(ZONES)),
    st.timedeltas(),
    st.times(),
    st.builds(Plain, NUMBERS, st.text(max_size=2)),
    st.tuples(NUMBERS, NUMBERS),
)


@settings(max_examples=examples(100))
@given(st.one_of(NEIGHBOURS, *(st.lists(kind, min_size=1, max_size=8) for kind in ORDERED)))
def test_the_least_and_the_greatest_are_pythons(values: list[Any]) -> None:
    in_order = sorted(values)

    def build(scope: ps.Scope) -> Any:
        arranged = scope.collection([("k", value) for value in values]).arrange()
        return arranged.min().capture(), arranged.max().capture(), arranged.top_k(3).capture()

    least, greatest, top = ps.example(build)
    assert added_up(least) == [(("k", in_order[0]), 1)]
    assert added_up(greatest) == [(("k", in_order[-1]), 1)]
    assert dict(added_up(top)) == dict(Counter(("k", value) for value in in_order[-3:]))


@pytest.mark.parametrize(
    "value",
    [
        ByKeyword(x=1),
        Cents(3),
        Cents(3, 4),
        Hexadecimal("ff"),
        Slotted(2),
        Noted(1, ["a"]),
        Derived(4),
        Loose(5),
        Caseless("A"),
        Rights.READ | Rights.WRITE,
        Coordinate.PY,
        Length.MINUTE,
        datetime.time(1, tzinfo=ZONES[1]),
        Day(2020, 1, 1),
        complex(1, 2),
    ],
)
def test_objects_are_made_again_without_their_class_being_called(value: Any) -> None:
    def build(scope: ps.Scope) -> Any:
        return scope.collection([value]).map(lambda record: record).map(lambda record: record).capture()

    [(record, diff)] = added_up(ps.example(build))
    assert type(record) is type(value)
    assert (record, diff) == (value, 1)
    if not isinstance(value, enum.Enum) and hasattr(value, "__dict__"):
        assert vars(record) == vars(value)


def test_a_cached_property_is_no_part_of_a_record() -> None:
    value = Lazy(4)
    assert value.lazily() == 4  # what is cached cannot be pickled

    def build(scope: ps.Scope) -> Any:
        return scope.collection([value]).map(lambda record: (record, record.lazily())).capture()

    assert added_up(ps.example(build)) == [((Lazy(4), 4), 1)]


EQUAL = [
    (Noted(1, ["a"]), Noted(1.0, ["b"])),
    (Loose(1), Loose(True)),
    (Plain(decimal.Decimal("1.50")), Plain(1.5)),
    (complex(0.0, 1), complex(-0.0, 1)),
    (complex(2, 0), 2),
    (Bits(3), 3),
    (Coordinate.PX, b"\0"),
    (Length.MINUTE, 60),
    (Titled("Who"), "Who"),
    (datetime.time(1), datetime.time(1, fold=1)),
    (datetime.time(1, tzinfo=ZONES[0]), datetime.time(2, tzinfo=ZONES[1])),
    (Day(2020, 1, 1), datetime.date(2020, 1, 1)),
    # Two objects that are equal in one, and one object twice in the other.
    (Same("Ulm", "".join(["U", "lm"])), Same(*["Ulm"] * 2)),
]


@pytest.mark.parametrize(("a", "b"), EQUAL)
def test_records_that_are_equal_cancel_and_join(a: Any, b: Any) -> None:
    assert a == b

    def build(scope: ps.Scope) -> Any:
        left, right = scope.collection([a]), scope.collection([b])
        joined = left.map(lambda a: (a, 1)).join(right.map(lambda b: (b, 2)), lambda _, one, two: (one, two))
        return left.concat(right.negate()).consolidate().capture(), joined.capture()

    difference, joined = ps.example(build)
    assert added_up(difference) == []
    assert added_up(joined) == [((1, 2), 1)]


def test_records_of_other_classes_with_an_equality_of_their_own_are_told_apart_by_their_pickles() -> None:
    def build(scope: ps.Scope) -> Any:
        return (
            scope.collection([Caseless("A"), Caseless("a"), Modulo(1), Modulo(11), Knot()])
            .value_counts()
            .capture()
        )

    [(_, changes)] = ps.example(build).extract()
    assert sorted(diff for _, diff in changes) == [1] * 5


UNORDERED = [[Backwards(1), Backwards(2)], [Grade.GOOD, Grade.BAD], [(1, Grade.GOOD), (1, Grade.BAD)]]


@pytest.mark.parametrize("values", UNORDERED)
@pytest.mark.parametrize("operator", ["min", "max", "top_k"])
def test_what_has_an_order_that_rows_do_not_have_is_not_compared(operator: str, values: list[Any]) -> None:
    def build(scope: ps.Scope) -> Any:
        arranged = scope.collection([("k", value) for value in values]).arrange()
        return (arranged.top_k(1) if operator == "top_k" else getattr(arranged, operator)()).capture()

    with pytest.raises(TypeError, match=r"cannot tell which of .* is greater"):
        ps.example(build)


def test_values_without_an_order_are_fine_where_it_is_not_asked_for() -> None:
    low, high = ipaddress.ip_address("10.0.0.255"), ipaddress.ip_address("10.0.1.0")

    def build(scope: ps.Scope) -> Any:
        by_number = scope.collection([("k", (1, low)), ("k", (2, high)), ("k", (2, high))]).arrange()
        few = scope.collection([("k", low), ("k", high)]).arrange()
        pairs: list[Any] = [("k", low), ("k", low), ("j", high), ("j", None)]
        same = scope.collection(pairs).arrange()
        return [
            collection.capture()
            for collection in (by_number.min(), by_number.max(), by_number.top_k(2), few.top_k(2), same.max())
        ]

    least, greatest, top, few, same = ps.example(build)
    assert added_up(least) == [(("k", (1, low)), 1)]
    assert added_up(greatest) == [(("k", (2, high)), 1)]
    assert added_up(top) == [(("k", (2, high)), 2)]
    assert dict(added_up(few)) == {("k", low): 1, ("k", high): 1}
    assert dict(added_up(same)) == {("k", low): 1, ("j", high): 1}


def test_nodes_of_graphs_need_no_order() -> None:
    a, b, c = (ipaddress.ip_address(f"10.0.{n}.{255 - n}") for n in range(3))

    def build(scope: ps.Scope) -> Any:
        edges = scope.collection([(a, b), (b, a), (c, c)])
        strong = graphs.strongly_connected_components(edges)
        return (
            graphs.connected_components(edges).capture(),
            strong.capture(),
            graphs.triangles(edges).capture(),
        )

    components, strong, triangles = ps.example(build)
    assert added_up(triangles) == []
    for labels in (dict(record for record, _ in added_up(found)) for found in (components, strong)):
        assert labels.keys() == {a, b, c}
        assert labels[a] == labels[b] != labels[c]


def test_times_of_pandas_have_their_order_and_are_the_times_that_they_equal() -> None:
    pd = pytest.importorskip("pandas")
    times = [
        pd.Timestamp("2020-01-02"),
        pd.Timestamp("1969-12-31"),
        pd.Timestamp("2021-05-05 00:00:00.000000001"),
        pd.Timestamp("2021-05-05"),
    ]
    spans = [pd.Timedelta(-1, "ns"), pd.Timedelta(1, "ns"), pd.Timedelta(-2, "us")]

    def build(scope: ps.Scope) -> Any:
        arranged = scope.collection(
            [("t", time) for time in times] + [("s", span) for span in spans]
        ).arrange()
        equal = scope.collection(
            [times[0], datetime.datetime(2020, 1, 2), spans[2], datetime.timedelta(0, 0, -2)]
        )
        mapped = scope.collection(times + spans).map(lambda time: time)
        return (
            arranged.min().capture(),
            arranged.max().capture(),
            equal.value_counts().capture(),
            mapped.capture(),
        )

    least, greatest, equal, mapped = ps.example(build)
    assert dict(added_up(least)) == {("t", min(times)): 1, ("s", min(spans)): 1}
    assert dict(added_up(greatest)) == {("t", max(times)): 1, ("s", max(spans)): 1}
    assert sorted(count for (_, count), _ in added_up(equal)) == [2, 2]
    assert dict(added_up(mapped)) == dict.fromkeys(times + spans, 1)
    assert {type(time) for time, _ in added_up(mapped)} == {pd.Timestamp, pd.Timedelta}


def test_an_array_of_one_element_is_no_record() -> None:
    np = pytest.importorskip("numpy")
    with pytest.raises(TypeError, match="it cannot be hashed"):
        ps.example(lambda scope: scope.collection([np.array([5])]).capture())


PATH = pathlib.PurePosixPath
"""Ordered by Python, and kept as its pickle: a collection does not know the order."""


@pytest.mark.parametrize("name", graphs.__all__)
def test_nodes_of_a_graph_need_no_order(name: str) -> None:
    ends = [(0, 1), (1, 2), (2, 0), (2, 3), (4, 5), (5, 4)]
    options = {"iterations": 4} if name in ("pagerank", "label_propagation") else {}

    def run(named: Any) -> dict[Any, Any]:
        def build(scope: ps.Scope) -> Any:
            edges: Any = scope.collection([(named(a), named(b)) for a, b in ends])
            more: list[Any] = []
            if name in ("bfs", "shortest_paths"):
                more = [scope.collection([named(0)])]
            if name == "shortest_paths":
                edges = edges.map(lambda edge: (edge[0], (edge[1], 1)))
            if name == "k_core":
                more = [2]
            return getattr(graphs, name)(edges, *more, **options).capture()

        ((_, found),) = ps.example(build).extract()
        return Counter(dict(found))

    found, expected = run(lambda node: PATH("ab"[node % 2], str(node))), run(lambda node: node)
    if name in ("connected_components", "strongly_connected_components", "label_propagation"):
        sizes = [sorted(Counter(label for _, label in labels).values()) for labels in (found, expected)]
        assert sizes[0] == sizes[1]
    else:
        assert len(found) == len(expected)


@pytest.mark.parametrize(
    "values",
    [
        [(PATH("b"), 1), (PATH("b"), 2), (PATH("a/c"), 0)],
        [(PATH("a/c"), 1), (PATH("b"), 2), (PATH("b"), 0)],
    ],
)
@pytest.mark.parametrize("reduced", [ps.Collection.min, ps.Collection.max, lambda c: c.top_k(2)])
def test_a_value_is_compared_with_every_other(values: list[Any], reduced: Any) -> None:
    def build(scope: ps.Scope) -> Any:
        return reduced(scope.collection([("k", value) for value in values])).capture()

    with pytest.raises(TypeError, match="cannot tell which of"):
        ps.example(build)
