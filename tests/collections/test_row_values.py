"""Rows of Python values: equal values are one, the order is that of Python, and values come out unchanged."""

from __future__ import annotations

import dataclasses
import datetime
import decimal
import enum
import fractions
import ipaddress
import itertools
import math
import uuid
from typing import Any, NamedTuple

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import pointstamp as ps
from pointstamp._core import decode_term, encode_term
from pointstamp.errors import CodecError
from record_classes import Coordinate


class Pair(NamedTuple):
    left: int
    right: str


class Colour(enum.Enum):
    RED = 1


class Level(enum.IntEnum):
    LOW = 1


class Shade(enum.Flag):
    LIGHT = 1
    DARK = 2


class Bits(enum.IntFlag):
    A = 1
    B = 2


class Word(str):
    """A string with a `repr` of its own."""

    def __str__(self) -> str:
        return "a word"


@dataclasses.dataclass(frozen=True)
class Point:
    x: int
    y: str


@dataclasses.dataclass(frozen=True, kw_only=True)
class Named:
    x: int


@dataclasses.dataclass(frozen=True)
class Cents:
    """Made of euros: what is made again would be a hundred times as much."""

    cents: int

    def __post_init__(self) -> None:
        object.__setattr__(self, "cents", self.cents * 100)


@dataclasses.dataclass(frozen=True)
class Parsed:
    x: int

    def __init__(self, text: str) -> None:
        object.__setattr__(self, "x", int(text, 16))
        object.__setattr__(self, "text", text)


@dataclasses.dataclass(frozen=True, slots=True)
class Slotted:
    x: int
    y: int = dataclasses.field(init=False, default=3)


@dataclasses.dataclass(frozen=True)
class Noted:
    x: int
    said: str = dataclasses.field(compare=False)


@dataclasses.dataclass(frozen=True)
class Folded:
    """Equal as its own method says, which bytes do not know of."""

    name: str

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Folded) and self.name.lower() == other.name.lower()

    def __hash__(self) -> int:
        return hash(self.name.lower())


NUMBERS = st.one_of(
    st.integers(),
    st.integers(-300, 300),
    st.floats(allow_nan=False),
    st.floats(-10, 10, allow_nan=False),
    st.booleans(),
    st.fractions(max_denominator=9),
    st.decimals(allow_nan=False, allow_infinity=False, places=2),
)
PLAIN = st.one_of(NUMBERS, st.text(max_size=4), st.binary(max_size=4), st.none())
VALUES = st.recursive(
    st.one_of(
        PLAIN,
        st.dates(),
        st.datetimes(),
        st.datetimes(timezones=st.sampled_from([datetime.timezone.utc])),
        st.timedeltas(),
        st.uuids(),
        st.sampled_from([Colour.RED, Level.LOW, Pair(1, "x"), Point(1, "y"), complex(1, 2)]),
    ),
    lambda inner: st.one_of(
        st.lists(inner, max_size=3).map(tuple),
        st.frozensets(inner, max_size=3),
        st.builds(Pair, inner, inner),
    ),
    max_leaves=6,
)


def term(row: bytes) -> bytes:
    """A row without its notes."""
    if row[-1] == 255:
        return row[: -5 - int.from_bytes(row[-5:-1], "little")]
    return row[: -1 - row[-1]]


@given(VALUES)
def test_what_went_in_comes_out(value: Any) -> None:
    back = decode_term(encode_term(value))
    assert back == value
    assert type(back) is type(value)
    if not isinstance(value, frozenset):  # whose elements have no order
        assert repr(back) == repr(value) or "frozenset" in repr(value)


@settings(max_examples=400)
@given(st.one_of(NUMBERS, VALUES), st.one_of(NUMBERS, VALUES))
def test_equal_values_are_one_term_and_others_are_not(a: Any, b: Any) -> None:
    assert (a == b) == (term(encode_term(a)) == term(encode_term(b)))


DATACLASSES = [Named(x=1), Cents(3), Parsed("ff"), Slotted(4), Noted(1, "a"), Folded("A")]


@pytest.mark.parametrize("value", DATACLASSES, ids=repr)
def test_dataclasses_come_out_as_they_went_in(value: Any) -> None:
    """However they were made: nothing of theirs runs again."""
    for _ in range(3):
        back = decode_term(encode_term(value))
        assert (back, repr(back)) == (value, repr(value))
        assert getattr(back, "__dict__", None) == getattr(value, "__dict__", None)
        value = back


@pytest.mark.parametrize(
    "value",
    [
        Shade.LIGHT | Shade.DARK,
        Shade.LIGHT,
        Shade(0),
        Bits.A | Bits.B,
        *Coordinate,
        Word("x"),
        datetime.time(1, fold=1),
    ],
    ids=lambda value: type(value).__name__,
)
def test_subclasses_of_plain_types_come_out_as_they_went_in(value: Any) -> None:
    back = decode_term(encode_term((value, "x")))[0]
    assert (back, type(back)) == (value, type(value))
    assert getattr(back, "value", None) == getattr(value, "value", None)


def test_subclasses_of_plain_types_meet_what_they_equal() -> None:
    alike = [
        (Coordinate.PY, b"\x01"),
        (Word("x"), "x"),
        (Bits.A | Bits.B, 3),
        (datetime.time(1, fold=1), datetime.time(1)),
    ]
    for one, other in alike:
        assert one == other
        assert term(encode_term(one)) == term(encode_term(other))


def test_dataclasses_are_compared_by_the_fields_that_say_so() -> None:
    assert term(encode_term(Noted(1, "a"))) == term(encode_term(Noted(1, "b")))
    assert term(encode_term(Noted(1, "a"))) < term(encode_term(Noted(2, "a")))
    assert term(encode_term(Parsed("ff"))) == term(encode_term(Parsed("0xff")))


ALIKE = [1, 1.0, True, decimal.Decimal(1), fractions.Fraction(1), Level.LOW, complex(1, 0)]


@pytest.mark.parametrize(("a", "b"), list(itertools.combinations(ALIKE, 2)))
def test_ones_of_every_type_meet(a: Any, b: Any) -> None:
    assert term(encode_term((a, "x"))) == term(encode_term((b, "x")))


@given(st.lists(NUMBERS, max_size=12))
def test_numbers_sort_as_in_python(values: list[Any]) -> None:
    assert sorted(values, key=lambda value: term(encode_term(value))) == sorted(values)


# Numbers that have one nearest float, or two next to each other.
CLOSE = st.one_of(
    st.builds(
        lambda sign, near, digits: sign * decimal.Decimal(f"{near}{digits}"),
        st.sampled_from([1, -1]),
        st.sampled_from(["0.1", "0.99999999999999999", "100.00000000000000000", "12345678901234567890."]),
        st.integers(0, 10**9),
    ),
    st.builds(
        lambda whole, n, d: whole + fractions.Fraction(n, d),
        st.integers(-2, 2) | st.just(2**60),
        st.integers(0, 10**40),
        st.integers(1, 10**40) | st.integers(1, 9) | st.just(10**30),
    ),
    st.sampled_from([0.1, -0.1, 1 / 3, 0.0, 1.0, -1.0, 100.0, 5e-324, 0.9999999999999999]),
    st.sampled_from([fractions.Fraction(1, 3), fractions.Fraction(-1, 3), fractions.Fraction(1, 10**400)]),
)


@settings(max_examples=300)
@given(st.lists(CLOSE, max_size=8))
def test_numbers_that_are_close_sort_as_in_python(values: list[Any]) -> None:
    values = [fractions.Fraction(value) if isinstance(value, decimal.Decimal) else value for value in values]
    found = sorted(values, key=lambda value: term(encode_term((value, 1))))
    assert found == sorted(values)
    assert [decode_term(encode_term(value)) for value in values] == values
    assert len({term(encode_term(value)) for value in values}) == len(set(values))


@pytest.mark.parametrize(
    "values",
    [
        [decimal.Decimal("0.1000000000000000000002"), decimal.Decimal("0.1000000000000000000003")],
        [decimal.Decimal("-0.1000000000000000000003"), decimal.Decimal("-0.1000000000000000000002")],
        [decimal.Decimal("0.1"), 0.1],
        [-0.1, decimal.Decimal("-0.1")],
        [decimal.Decimal("0.99999999999999999998"), decimal.Decimal("0.99999999999999999999"), 1],
        [fractions.Fraction(1, 3) - fractions.Fraction(1, 10**30), fractions.Fraction(1, 3)],
    ],
)
def test_the_least_and_the_greatest_of_close_numbers(values: list[Any]) -> None:
    def build(scope: ps.Scope) -> Any:
        arranged = scope.collection([("k", value) for value in values]).arrange()
        return arranged.min().capture(), arranged.max().capture(), arranged.top_k(1).capture()

    found = [one for capture in ps.example(build) for _, [((_, one), _)] in capture.extract()]
    assert found == [values[0], values[-1], values[-1]]


@pytest.mark.parametrize(
    "kind", [st.text(), st.binary(), st.dates(), st.datetimes(), st.timedeltas(), st.uuids()]
)
def test_values_of_a_type_sort_as_in_python(kind: Any) -> None:
    @given(st.lists(st.tuples(kind, st.integers()), max_size=8))
    def property_(values: list[Any]) -> None:
        assert sorted(values, key=lambda value: term(encode_term(value))) == sorted(values)

    property_()


def test_every_nan_is_one_and_comes_after_the_numbers() -> None:
    rows = [encode_term(value) for value in (math.nan, -math.nan, decimal.Decimal("nan"))]
    assert len({term(row) for row in rows}) == 1
    assert term(rows[0]) > term(encode_term(math.inf))
    assert math.isnan(decode_term(rows[0]))
    assert encode_term(-0.0)[:1] == encode_term(0)[:1]


@pytest.mark.parametrize("value", [[1], {}, set(), (1, [2]), bytearray(b"x")])
def test_what_cannot_be_hashed_is_refused(value: Any) -> None:
    with pytest.raises(TypeError, match="it cannot be hashed, so it could change while it is kept"):
        encode_term(value)


def test_classes_in_functions_are_refused() -> None:
    class Inner(NamedTuple):
        x: int

    with pytest.raises(TypeError, match="define the class at the top level of its module"):
        encode_term(Inner(1))
    with pytest.raises(TypeError, match="cannot be pickled"):
        encode_term(lambda: None)


def test_deep_nesting_is_refused() -> None:
    value: Any = ()
    for _ in range(200):
        value = (value,)
    with pytest.raises(RecursionError, match="a collection takes flatter ones"):
        encode_term(value)


@given(st.binary(max_size=30))
def test_any_bytes_are_a_row_or_an_error(data: bytes) -> None:
    # A pickle is read only where the row is of a program's own making: not from damaged bytes.
    if b"\x60" in data or b"\x04" in data:
        return
    try:
        decode_term(data)
    except (CodecError, TypeError, ValueError, OverflowError, ImportError, AttributeError, KeyError):
        pass


def test_times_of_pandas_sort_and_meet_those_of_python() -> None:
    pd = pytest.importorskip("pandas")
    texts = [
        "1969-01-01",
        "2019-12-31",
        "2020-01-02",
        "2021-05-05 00:00:00.000000001",
        "2021-05-05 00:00:00.000001",
    ]
    stamps = [pd.Timestamp(text) for text in texts]
    assert [term(encode_term(stamp)) for stamp in stamps] == sorted(term(encode_term(x)) for x in stamps)
    assert [decode_term(encode_term(stamp)) for stamp in stamps] == stamps
    assert isinstance(decode_term(encode_term(stamps[0])), pd.Timestamp)
    assert term(encode_term(stamps[2])) == term(encode_term(datetime.datetime(2020, 1, 2)))
    zoned = stamps[2].tz_localize("UTC")
    utc = datetime.datetime(2020, 1, 2, tzinfo=datetime.timezone.utc)
    assert term(encode_term(zoned)) == term(encode_term(utc)) != term(encode_term(stamps[2]))
    spans = [pd.Timedelta(-1), pd.Timedelta(0), pd.Timedelta(1), pd.Timedelta("1s")]
    assert [term(encode_term(span)) for span in spans] == sorted(term(encode_term(x)) for x in spans)
    assert term(encode_term(spans[-1])) == term(encode_term(datetime.timedelta(seconds=1)))
    assert decode_term(encode_term(pd.NaT)) is pd.NaT


@pytest.mark.parametrize(
    "value",
    [
        np.datetime64("2020-01-02T03:04:05.000000006"),
        np.datetime64("1960-01-02T03:04:05", "ns"),
        np.timedelta64(5, "ns"),
        np.timedelta64(5, "Y"),
        np.longdouble("1.1"),
        np.longdouble(2),
    ],
    ids=repr,
)
def test_what_python_has_no_value_for_stays_one_of_numpy(value: Any) -> None:
    back = decode_term(encode_term(value))
    assert (back, type(back)) == (value, type(value))


def test_times_of_numpy_in_nanoseconds_sort_and_meet_others() -> None:
    times = [np.datetime64(count, "ns") for count in (-1001, -1, 0, 1, 1000, 1001, 10**18)]
    assert [term(encode_term(time)) for time in times] == sorted(term(encode_term(x)) for x in times)
    assert term(encode_term(times[2])) == term(encode_term(np.datetime64("1970-01-01", "us")))
    assert term(encode_term(np.longdouble(2))) == term(encode_term(2))
    assert np.isnat(decode_term(encode_term(np.datetime64("NaT"))))


class Version:
    """Ordered by its parts; kept as its pickle."""

    def __init__(self, *parts: int) -> None:
        self.parts = parts

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Version) and self.parts == other.parts

    def __lt__(self, other: Version) -> bool:
        return self.parts < other.parts

    def __hash__(self) -> int:
        return hash(self.parts)


class Thing:
    """A value of a type without an order."""

    def __init__(self, name: str) -> None:
        self.name = name

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Thing) and self.name == other.name

    def __hash__(self) -> int:
        return hash(self.name)


def extremes(values: list[Any], which: str) -> list[Any]:
    def build(scope: ps.Scope) -> Any:
        arranged = scope.collection([("k", value) for value in values]).arrange()
        return {"min": arranged.min, "max": arranged.max, "top_k": lambda: arranged.top_k(1)}[
            which
        ]().capture()

    return [value for _, changes in ps.example(build).extract() for (_, value), _ in changes]


@pytest.mark.parametrize("which", ["min", "max", "top_k"])
def test_the_order_of_pickles_is_not_taken_for_that_of_values(which: str) -> None:
    versions = [Version(2), Version(1, 5), Version(1)]
    with pytest.raises(TypeError, match=f"{which} cannot tell which of .* is greater: .* pickles; map them"):
        extremes(versions, which)
    with pytest.raises(TypeError, match="is greater"):
        extremes([(7, version) for version in versions], which)
    # What comes before tells.
    best = extremes([(sum(version.parts), version) for version in versions], which)
    assert best == ([(6, Version(1, 5))] if which != "min" else [(1, Version(1))])
    assert extremes([Version(2)], which) == [Version(2)]
    # Where Python has no order, any does.
    [one] = extremes([Thing("a"), Thing("b")], which)
    assert one in (Thing("a"), Thing("b"))


def test_addresses_sort_as_in_python() -> None:
    texts = ["10.0.0.255", "10.0.1.0", "9.255.0.1", "::1", "fe80::", "255.255.255.255"]
    addresses = [ipaddress.ip_address(text) for text in texts]
    for kind in (ipaddress.IPv4Address, ipaddress.IPv6Address):
        own = [address for address in addresses if isinstance(address, kind)]
        assert sorted(own, key=lambda value: term(encode_term(value))) == sorted(own)
    scoped = ipaddress.ip_address("fe80::1%eth0")
    for address in (*addresses, scoped):
        assert decode_term(encode_term(address)) == address
    assert extremes(addresses[:3], "min") == [addresses[2]]


def test_uuid_order() -> None:
    low, high = uuid.UUID(int=1), uuid.UUID(int=256)
    assert term(encode_term(low)) < term(encode_term(high))
