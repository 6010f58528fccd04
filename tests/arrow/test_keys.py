"""Keys of everyday types: what Python holds equal hashes the same; and types of one's own."""

from __future__ import annotations

import dataclasses
import datetime
import decimal
import enum
import os
import subprocess
import sys
import uuid
import zoneinfo
from collections import Counter
from collections.abc import Hashable
from decimal import Decimal
from fractions import Fraction
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import pointstamp as ps
from pointstamp import stable_hash

DAY = datetime.date(2024, 2, 29)
MOMENT = datetime.datetime(2024, 2, 29, 12, 30, 0, 5)
ULM = zoneinfo.ZoneInfo("Europe/Berlin")


class Shade(enum.Enum):
    DARK = 1
    LIGHT = 2


class Level(enum.IntEnum):
    LOW = 1


class Name(str, enum.Enum):
    X = "x"


class Right(enum.Flag):
    READ = 1
    WRITE = 2


class Price(Decimal, enum.Enum):
    HALF = "0.5"


class Pair(NamedTuple):
    a: Any
    b: Any


@dataclasses.dataclass(frozen=True)
class Place:
    street: Any
    number: int = 0
    seen: int = dataclasses.field(default=0, compare=False)


@dataclasses.dataclass
class Open:
    x: int = 0


class Version:
    def __init__(self, text: str) -> None:
        self.parts = tuple(map(int, text.split(".")))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Version) and self.parts == other.parts

    def __hash__(self) -> int:
        return hash(self.parts)


class Release(Version):
    pass


ps.register_key(Version, lambda version: ("version", *version.parts))

# Never change one: workers of different builds would send a key to different places.
VECTORS: list[tuple[Hashable, int]] = [
    (Decimal("0.1"), 11548973640187329715),
    (Fraction(1, 3), 8265942620517100304),
    (DAY, 5794936985518921921),
    (MOMENT, 3044884371093805637),
    (datetime.time(12, 30), 8115831753633677222),
    (datetime.timedelta(days=-1), 7820629161834074526),
    (uuid.UUID(int=7), 1151967513599277242),
    (Shade.DARK, 9260263077278295709),
    (Right.READ | Right.WRITE, 131834002641616288),
    (frozenset({1, "a"}), 7119756588613723060),
    (Place("Weg", 3), 17773839882740938603),
]


# Names without the keys' own: the order in a set's depends on the process.
@pytest.mark.parametrize(
    ("key", "expected"), VECTORS, ids=[f"{type(key).__name__}-{value}" for key, value in VECTORS]
)
def test_vectors(key: Hashable, expected: int) -> None:
    assert stable_hash(key) == expected


def test_they_hold_in_another_process_whatever_its_hash_seed() -> None:
    program = "import test_keys as t; print([t.stable_hash(key) for key, _ in t.VECTORS])"
    for seed in ("1", "2"):
        output = subprocess.run(
            [sys.executable, "-c", program],
            env={**os.environ, "PYTHONHASHSEED": seed},
            cwd=os.path.dirname(__file__),
            capture_output=True,
            text=True,
            check=True,
            timeout=380,
        ).stdout
        assert output.strip() == repr([expected for _, expected in VECTORS])


# -------------------------------------------------------------------- equal keys

small = st.integers(-4, 4)
numbers = st.one_of(
    small,
    st.integers(),
    st.floats(allow_nan=False),
    small.map(float),
    st.booleans(),
    st.booleans().map(np.bool_),
    small.map(np.int8),
    small.map(np.int64),
    st.integers(0, 4).map(np.uint16),
    st.floats(allow_nan=False).map(np.float64),
    small.map(np.float32),
    small.map(np.float16),
    small.map(np.longdouble),
    small.map(Decimal),
    st.decimals(allow_nan=False),
    st.floats(allow_nan=False).map(Decimal),
    small.map(lambda n: Decimal(n) / 4),
    small.map(lambda n: n / 4),
    st.fractions(),
    small.map(lambda n: Fraction(n, 4)),
    small.map(lambda n: Fraction(n, 3)),
    st.just(Level.LOW),
    st.just(Price.HALF),
    st.sampled_from([Decimal("1E+3"), Decimal(1000), 1000, Decimal("0.1"), Decimal("0.10"), 0.1]),
    st.sampled_from([Decimal("1E+400"), 10**400, Fraction(10**400), Fraction(1, 10**400), Decimal("-0")]),
    st.sampled_from([Decimal("Infinity"), float("inf"), -float("inf"), Decimal("-Infinity")]),
)
texts = st.sampled_from(["x", "y"]) | st.sampled_from([Name.X, np.str_("x"), b"x", np.bytes_(b"x")])
zones = st.sampled_from([None, datetime.timezone.utc, ULM, datetime.timezone(datetime.timedelta(hours=1))])
moments = st.builds(
    datetime.datetime,
    st.sampled_from([1969, 2024]),
    st.sampled_from([3, 10]),
    st.sampled_from([27, 31]),
    st.integers(0, 3),
    st.sampled_from([0, 30]),
    microsecond=st.sampled_from([0, 5]),
    tzinfo=zones,
    fold=st.integers(0, 1),
)
spans = st.timedeltas(datetime.timedelta(-3), datetime.timedelta(3)) | small.map(datetime.timedelta)
times = st.one_of(
    moments,
    moments.map(lambda moment: moment.date()),
    moments.map(lambda moment: moment.timetz()),
    moments.map(lambda moment: np.datetime64(moment.date())),
    moments.map(lambda moment: np.datetime64(moment.replace(tzinfo=None))),
    spans,
    spans.map(np.timedelta64),
    spans.map(lambda span: np.timedelta64(span).astype("timedelta64[ns]")),
)
others = st.one_of(
    st.none(),
    st.sampled_from(list(Shade)),
    st.sampled_from([Right.READ, Right.WRITE, Right.READ | Right.WRITE]),
    st.sampled_from([uuid.UUID(int=1), uuid.UUID(int=2)]),
    st.sampled_from([Version("1.2"), Version("1.02"), Release("1.2"), Version("1.3")]),
)
scalars = numbers | texts | times | others
keys = st.recursive(
    scalars,
    lambda inner: st.one_of(
        st.tuples(inner, inner),
        st.builds(Pair, inner, inner),
        st.builds(Place, inner, small, small),
        st.frozensets(inner, max_size=3),
    ),
    max_leaves=4,
)


def comparable(key: Any) -> bool:
    """Whether its equality is that of its hash, in Python itself: NumPy's is not for these."""
    return not isinstance(key, np.generic) or key.dtype.kind not in "Mm"


def is_day(key: Any) -> bool:
    """Whether it is a NumPy time that hashes as a date: equal to a datetime for NumPy, not for Python."""
    is_time = isinstance(key, np.datetime64)
    return is_time and np.datetime_data(key.dtype)[0] in ("Y", "M", "W", "D")


def equal(a: Any, b: Any) -> bool:
    if isinstance(a, np.datetime64) and isinstance(b, np.datetime64) and is_day(a) != is_day(b):
        return False
    try:
        with np.errstate(all="ignore"):  # an int too large for a float16 is not equal to it, which is no news
            return bool(a == b)
    except (TypeError, ValueError, OverflowError, decimal.InvalidOperation):
        return False  # NumPy refuses to compare some


@given(scalars, scalars)
def test_equal_scalars_hash_the_same(a: Hashable, b: Hashable) -> None:
    # NumPy takes a span of time to equal the number that it has of its unit.
    odd = isinstance(a, np.timedelta64 | np.datetime64) != isinstance(b, np.timedelta64 | np.datetime64)
    spans = np.timedelta64 | np.datetime64 | datetime.date | datetime.timedelta
    if odd and not all(isinstance(key, spans) for key in (a, b)):
        return
    if equal(a, b) and (comparable(a) == comparable(b) or hash(a) == hash(b) or odd):
        assert stable_hash(a) == stable_hash(b), (a, b)


@pytest.mark.filterwarnings("ignore:Generating overly large repr")  # of the strategy, by what draws from it
@given(keys, keys)
def test_equal_keys_hash_the_same(a: Hashable, b: Hashable) -> None:
    assert 0 <= stable_hash(a) < 2**64
    if equal(a, b) and hash(a) == hash(b):
        assert stable_hash(a) == stable_hash(b), (a, b)


@given(numbers, st.integers(-2, 2))
def test_numbers_of_every_type(value: Any, sign: int) -> None:
    """Equal numbers are rare among random ones: each is compared with what it is as another type, too."""
    makes: tuple[Any, ...] = (int, float, Fraction, Decimal, np.float64, np.longdouble)
    for make in makes:
        try:
            other = make(value) * make(sign) if abs(sign) == 1 else make(value)
            same = bool(other == value)
        except (TypeError, ValueError, ArithmeticError, RuntimeError):  # the last: NumPy 2.2, of an enum
            continue
        if same:
            assert stable_hash(other) == stable_hash(value), (other, value)


def test_one_is_one() -> None:
    ones: list[Any] = [1, 1.0, True, Decimal(1), Decimal("1.00"), Fraction(1), Level.LOW]
    ones += [np.int64(1), np.uint8(1), np.float32(1), np.bool_(True), np.longdouble(1)]
    assert {stable_hash(one) for one in ones} == {1}
    assert {stable_hash((one, frozenset({one}))) for one in ones} == {stable_hash((1, frozenset({1})))}


def test_the_same_moment_in_every_zone() -> None:
    moment = MOMENT.replace(tzinfo=datetime.timezone.utc)
    zones = [ULM, zoneinfo.ZoneInfo("Asia/Kolkata"), datetime.timezone(datetime.timedelta(hours=-3))]
    assert {stable_hash(moment.astimezone(zone)) for zone in zones} == {stable_hash(moment)}
    twice = datetime.datetime(2024, 10, 27, 2, 30, tzinfo=ULM)
    assert twice == twice.replace(fold=1)
    assert stable_hash(twice) == stable_hash(twice.replace(fold=1))


def test_what_differs_is_told_apart() -> None:
    different: list[Any] = [Shade.DARK, Shade.LIGHT, Right.READ, Right.WRITE, Right.READ | Right.WRITE]
    different += [
        Decimal("0.1"),
        Decimal("0.2"),
        Fraction(1, 3),
        Fraction(2, 3),
        Fraction(1, 7),
        Decimal("0.01"),
    ]
    different += [
        DAY,
        MOMENT,
        MOMENT.replace(microsecond=6),
        datetime.time(12),
        datetime.timedelta(seconds=1),
    ]
    different += [uuid.UUID(int=1), uuid.UUID(int=2), frozenset(), frozenset({1}), frozenset({1, 2})]
    different += [Place("a"), Place("b"), Place("a", 1), Version("1"), Version("2")]
    assert len({stable_hash(key) for key in different}) == len(different)


@pytest.mark.parametrize("peers", [2, 3, 7])
@pytest.mark.parametrize(
    "make",
    [
        lambda n: DAY + datetime.timedelta(n),
        lambda n: MOMENT + datetime.timedelta(hours=n),
        lambda n: Decimal(n) + Decimal("0.1"),
        lambda n: uuid.UUID(int=n),
        lambda n: Place("x", n),
        lambda n: frozenset({n, "x"}),
    ],
)
def test_keys_spread_over_workers(make: Any, peers: int) -> None:
    loads = Counter(stable_hash(make(n)) % peers for n in range(3000))
    assert len(loads) == peers
    assert min(loads.values()) > 3000 / peers / 2


# -------------------------------------------------------------------- columns


@pytest.mark.parametrize(
    ("values", "data_type"),
    [
        ([DAY, None, datetime.date(1969, 1, 1)], pa.date32()),
        ([MOMENT, datetime.datetime(1, 1, 1)], pa.timestamp("us")),
        ([MOMENT.replace(tzinfo=datetime.timezone.utc)], pa.timestamp("us", "UTC")),
        ([datetime.time(1, 2, 3, 4)], pa.time64("us")),
        ([datetime.timedelta(-1, 5)], pa.duration("us")),
        ([Decimal("0.10"), Decimal("-7.00"), Decimal("12.34")], pa.decimal128(9, 2)),
        ([Decimal("0.10"), Decimal("-7.00")], pa.decimal256(50, 2)),
        ([uuid.UUID(int=5).bytes], pa.binary(16)),
        ([[1, "a"]], None),
    ],
)
def test_a_column_goes_where_the_same_values_go(values: list[Any], data_type: pa.DataType | None) -> None:
    if data_type is None:
        column = pa.StructArray.from_arrays([pa.array([1]), pa.array(["a"])], names=["a", "b"])
        expected = [stable_hash((1, "a"))]
    else:
        column = pa.array(values, data_type)
        expected = [stable_hash(value) for value in values]
    parts = 997

    def build(scope: ps.Scope, rows: ps.ArrowInput) -> list[Any]:
        streams = rows.to_stream(scope).partition(parts, "k")
        return [stream.count().capture() for stream in streams]

    def main(worker: ps.Worker) -> list[int]:
        table = pa.table({"k": column})
        rows = ps.ArrowInput(table.schema)
        with worker.dataflow() as scope:
            captured = build(scope, rows)
        rows.send(table)
        rows.close()
        worker.run()
        return [part for part, counts in enumerate(captured) if counts.extract()]

    [found] = ps.execute(main)
    assert found == sorted({value % parts for value in expected})


# -------------------------------------------------------------------- everywhere


EVERYDAY: list[Any] = [
    np.int64(3),
    DAY,
    MOMENT,
    uuid.UUID(int=9),
    Shade.DARK,
    Decimal("0.1"),
    Fraction(1, 3),
    Place("x", 1),
    Pair(1, DAY),
    frozenset({1, 2}),
    Version("1.2"),
]


@pytest.mark.parametrize("workers", [1, 2])
def test_they_are_keys_wherever_keys_are(workers: int) -> None:
    def main(worker: ps.Worker) -> Any:
        with worker.dataflow() as scope:
            records = scope.to_stream(EVERYDAY)
            pairs = records.map(lambda key: (key, 1))
            captured = [
                records.exchange(lambda key: key).map(lambda key: (key, 1)).capture(),
                records.distinct().map(lambda key: (key, 1)).capture(),
                records.value_counts().capture(),
                pairs.aggregate(lambda _key, n, total: total + n, lambda *item: item, default=int).capture(),
                pairs.state_machine(lambda key, n, state: (n, [(key, n)]), default=int).capture(),
            ]
        worker.run()
        return [[item for _, items in each.extract() for item in items] for each in captured]

    exchanged, distinct, counts, sums, states = (
        [item for worker in way for item in worker]
        for way in zip(*ps.execute(main, workers=workers), strict=True)
    )
    assert Counter(exchanged) == Counter(states) == Counter((key, 1) for key in EVERYDAY * workers)
    assert Counter(distinct) == Counter((key, 1) for key in EVERYDAY)
    assert Counter(counts) == Counter(sums) == Counter((key, workers) for key in EVERYDAY)


# -------------------------------------------------------------------- types of one's own


def test_a_later_registration_takes_the_place_of_an_earlier_one() -> None:
    class Thing:
        pass

    class Other(Thing):
        pass

    with pytest.raises(TypeError, match=r"Thing has no stable hash: .*register_key"):
        stable_hash(Thing())
    ps.register_key(Thing, lambda thing: 5)
    assert stable_hash(Thing()) == stable_hash(Other()) == 5
    ps.register_key(Other, lambda other: (DAY, 6))
    assert stable_hash(Thing()) == 5
    assert stable_hash(Other()) == stable_hash((DAY, 6))
    ps.register_key(Thing, lambda thing: thing)
    with pytest.raises(RecursionError, match="100 deep"):
        stable_hash(Thing())


def test_what_a_key_function_raises_is_raised() -> None:
    class Bad:
        pass

    ps.register_key(Bad, lambda bad: 1 // 0)
    with pytest.raises(ZeroDivisionError):
        stable_hash(Bad())


@pytest.mark.parametrize(("type", "function"), [("x", str), (Version("1"), str), (int, None)])
def test_register_key_takes_a_class_and_a_function(type: Any, function: Any) -> None:
    with pytest.raises(TypeError, match="a class and a function"):
        ps.register_key(type, function)


@pytest.mark.parametrize(
    ("key", "message"),
    [
        (Open(), r"Open has no stable hash: .*frozen=True"),
        (Place([1]), "list has no stable hash"),
        ((1, {2}), "set has no stable hash"),
        (np.array([1]), "ndarray has no stable hash"),
        (np.complex64(1), "complex64 has no stable hash"),
    ],
)
def test_what_is_not_a_key_is_refused_with_a_sentence(key: Any, message: str) -> None:
    with pytest.raises(TypeError, match=message):
        stable_hash(key)
