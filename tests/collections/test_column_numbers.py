"""Numbers in collections of columns: floats of every size are floats, whatever integers they equal."""

from __future__ import annotations

import decimal
import math
import operator
from collections import Counter
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import pointstamp as ps
from pointstamp import col

if TYPE_CHECKING:
    from collections.abc import Callable

FLOATS = [0.0, -0.0, 0.5, 3.0, -7.25, 4e9, 2.0**53 - 1, 2.0**63, 1e19, 2.0**126, 2.0**127, -(2.0**127)]
FLOATS += [3.4028234663852886e38, -2e38, 2.0**128, 1e300, -1.7e308, math.inf, math.nan]
CALCULATIONS: dict[str, Any] = {
    "+": operator.add,
    "-": operator.sub,
    "*": operator.mul,
    "/": operator.truediv,
}


def rows(build: Any, table: pa.Table) -> list[dict[str, Any]]:
    """Returns the rows that an operator makes of a table."""
    captured = ps.example(lambda scope: build(scope.column_collection(table)).capture())
    return [row for _, batch in captured.extract() for row in batch.drop_columns(["diff"]).to_pylist()]


def same(a: Any, b: Any) -> bool:
    return type(a) is type(b) and (a == b or (a != a and b != b))


@pytest.mark.parametrize("value", FLOATS, ids=str)
def test_floats_of_every_size_come_back(value: float) -> None:
    table = pa.table({"k": ["a"], "x": pa.array([value], pa.float64())})
    for build in (lambda c: c, lambda c: c.max("x", by="k"), lambda c: c.sum("x", by="k")):
        [row] = rows(build, table)
        assert same(row["x"], value)


@settings(max_examples=60)
@given(st.sampled_from(FLOATS) | st.floats(), st.sampled_from(FLOATS) | st.floats() | st.integers(-9, 9))
def test_what_is_calculated_of_floats_is_what_python_calculates(a: float, b: float) -> None:
    table = pa.table({"a": pa.array([a]), "b": pa.array([b])})
    calculated = {name: of for name, of in CALCULATIONS.items() if not (name == "/" and b == 0)}
    [row] = rows(
        lambda c: c.select(**{name: of(col("a"), col("b")) for name, of in calculated.items()}), table
    )
    for name, of in calculated.items():
        assert same(row[name], of(a, b)), (a, name, b)


def test_floats_are_compared_as_they_are_calculated() -> None:
    """The sum is no float: it is rounded before it is compared, as in Python."""
    table = pa.table({"x": [2.0**53]})
    assert rows(lambda c: c.filter(col("x") + 1.0 == col("x")), table) == [{"x": 2.0**53}]
    assert rows(lambda c: c.filter(col("x") * 1e300 > 1.0), pa.table({"x": [1e300]})) == [{"x": 1e300}]


def test_unsigned_integers_are_calculated_with_as_far_as_64_bits_hold_the_result() -> None:
    table = pa.table({"x": pa.array([2**63 + 5], pa.uint64())})
    made = rows(lambda c: c.select(a=col("x") - 6, b=col("x") / 2, c=col("x") * 1.0), table)
    assert made == [{"a": 2**63 - 1, "b": 2.0**62, "c": 2.0**63}]
    with pytest.raises(OverflowError, match=r"the result of \+ is no int of 64 bits"):
        rows(lambda c: c.select(a=col("x") + 1), table)


@pytest.mark.parametrize(
    ("values", "total", "mean"),
    [
        ([-1.7e308, -1.7e308, 0.5], -math.inf, -1.7e308 / 3 * 2),
        ([1.7e308, 1.6e308], math.inf, 1.65e308),
        ([1e30, 0.5], 1e30, 5e29),
        ([2e38, 1.0], 2e38, 1e38),
        ([math.inf, 1e300], math.inf, math.inf),
        ([1e16, 1.0, 1.0], 1e16 + 2, None),
        ([0.5, 0.25], 0.75, 0.375),
    ],
)
def test_floats_add_up_as_floats(values: list[float], total: float, mean: float | None) -> None:
    table = pa.table({"k": ["a"] * len(values), "x": pa.array(values, pa.float64())})
    assert rows(lambda c: c.sum("x", by="k"), table) == [{"k": "a", "x": total}]
    both = rows(lambda c: c.aggregate("k", x_sum=ps.col("x").sum(), x_mean=ps.col("x").mean()), table)
    [alone] = rows(lambda c: c.mean("x", by="k"), table)
    assert both == [{"k": "a", "x_sum": total, "x_mean": alone["x"]}]
    if mean is not None:
        assert alone["x"] == pytest.approx(mean)
    assert math.isfinite(alone["x"]) or math.inf in values


@pytest.mark.parametrize("kind", [pa.int64(), pa.uint64()])
def test_a_sum_that_its_column_has_no_room_for_is_named(kind: Any) -> None:
    greatest = 2**63 - 1 if kind == pa.int64() else 2**64 - 1
    table = pa.table({"k": ["a", "a"], "x": pa.array([greatest, 1], kind)})
    words = rf"column 'x' is U?Int64, which has no {greatest + 1}, in the row \('a', {greatest + 1}\): cast"
    with pytest.raises(OverflowError, match=words):
        rows(lambda c: c.sum("x", by="k"), table)


def test_columns_of_booleans_are_conditions_in_what_is_selected() -> None:
    table = pa.table({"b": [True, False, True], "x": [1, 2, 3]})
    made = rows(
        lambda c: c.select("x", n=~col("b"), a=col("b") & (col("x") > 1), o=(col("x") > 1) | col("b")), table
    )
    assert sorted(made, key=lambda row: row["x"]) == [
        {"x": 1, "n": False, "a": False, "o": True},
        {"x": 2, "n": True, "a": False, "o": True},
        {"x": 3, "n": False, "a": True, "o": True},
    ]
    with pytest.raises(ps.GraphError, match=r"a condition is true or false, and .* is of type Int64"):
        rows(lambda c: c.select(y=~col("x")), table)


# Each is used twice: of columns it makes an expression, and of a row's values a value.
NESTED: list[Callable[[Any, Any, Any], Any]] = [
    lambda x, y, n: (x + y) * (x - y),
    lambda x, y, n: 1.5 * x - n,
    lambda x, y, n: (n + n) * y,
    lambda x, y, n: (n - 1) + x,
    lambda x, y, n: x / (y * y + 1),
    lambda x, y, n: x / 2 + n / 4,
]
ANY_FLOATS = st.sampled_from(FLOATS) | st.floats()


@settings(max_examples=60)
@given(
    records=st.lists(st.tuples(ANY_FLOATS, ANY_FLOATS, st.integers(-(2**61), 2**61)), min_size=1, max_size=6),
    f=st.sampled_from(NESTED),
    bound=st.sampled_from([0.5, 1e19, -1e300, math.inf, 3]),
)
def test_nested_calculations_are_compared_as_python_compares_them(records: Any, f: Any, bound: float) -> None:
    """NaN is after all other numbers in a collection."""
    x, y, n = zip(*records, strict=True)
    table = pa.table({"x": pa.array(x, pa.float64()), "y": pa.array(y, pa.float64()), "n": pa.array(n)})
    calculated = f(col("x"), col("y"), col("n"))
    kept = rows(lambda c: c.filter(calculated > bound).select("n").consolidate(), table)
    expected = Counter(n for x, y, n in records if not f(x, y, n) <= bound)
    assert sorted(row["n"] for row in kept) == sorted(expected)
    made = rows(lambda c: c.select("n", z=calculated).distinct(), table)
    results = {(n, repr(f(x, y, n) + 0.0)) for x, y, n in records}
    assert {(row["n"], repr(row["z"] + 0.0)) for row in made} == results


def negated(a: bool | None) -> bool | None:
    return None if a is None else not a


def both(a: bool | None, b: bool | None) -> bool | None:
    return False if a is False or b is False else None if a is None or b is None else True


def known(f: Callable[..., Any], *values: Any) -> Any:
    """Applies a function to values; the result of an unknown one is unknown."""
    return None if None in values else f(*values)


# An expression on two columns of booleans and one of integers, and what SQL makes of their values.
CONDITIONS: list[tuple[Any, Callable[[Any, Any, int], bool | None]]] = [
    (~col("b"), lambda b, c, n: negated(b)),
    (col("b") & col("c"), lambda b, c, n: both(b, c)),
    (col("b") | col("c"), lambda b, c, n: negated(both(negated(b), negated(c)))),
    (col("b") & True, lambda b, c, n: b),
    (~(col("b") | ~col("c")), lambda b, c, n: both(negated(b), c)),
    ((~col("b")) == (col("n") > 1), lambda b, c, n: known(lambda b: (not b) == (n > 1), b)),
    (col("b") != col("c"), lambda b, c, n: known(lambda b, c: b != c, b, c)),
    ((col("b") == True) & (col("n") > 0), lambda b, c, n: both(b, n > 0)),  # noqa: E712
    ((~col("c")) + col("n") > 2, lambda b, c, n: known(lambda c: (not c) + n > 2, c)),
    (col("b").is_null(), lambda b, c, n: b is None),
    (~(col("b") & col("c")).is_null() | (col("n") == 1), lambda b, c, n: both(b, c) is not None or n == 1),
    (col("n").is_null(), lambda b, c, n: False),
]


@pytest.mark.parametrize("which", range(len(CONDITIONS)))
def test_booleans_and_nulls_are_conditions_wherever_one_may_stand(which: int) -> None:
    condition, of = CONDITIONS[which]
    truths = [True, False, None]
    records = [(b, c, n) for b in truths for c in truths for n in range(4)]
    b, c, n = zip(*records, strict=True)
    table = pa.table({"b": b, "c": c, "n": n})
    made = rows(lambda c: c.select("b", "c", "n", y=condition), table)
    assert {tuple(row.values()) for row in made} == {(*record, of(*record)) for record in records}
    kept = rows(lambda c: c.filter(condition), table)
    assert {tuple(row.values()) for row in kept} == {record for record in records if of(*record)}


@pytest.mark.parametrize("digits", ["5" + "0" * 35 + ".00", "9" * 36 + ".99"])
def test_a_sum_of_decimals_of_too_many_digits_is_named(digits: str) -> None:
    table = pa.table({"k": ["a"] * 2, "x": pa.array([decimal.Decimal(digits)] * 2, pa.decimal128(38, 2))})
    for build in (lambda c: c.sum("x", by="k"), lambda c: c.aggregate("k", x_sum=ps.col("x").sum())):
        with pytest.raises(
            OverflowError, match=r"column 'x.*' is Decimal128.* no number of more than 38 digits"
        ):
            rows(build, table)


def test_decimals_of_a_scale_below_0_come_back() -> None:
    numbers = [decimal.Decimal(12300), decimal.Decimal(-9999900), None]
    table = pa.table({"k": ["a"] * 3, "x": pa.array(numbers, pa.decimal128(5, -2))})
    assert Counter(row["x"] for row in rows(lambda c: c, table)) == Counter(numbers)
    assert [row["x"] for row in rows(lambda c: c.max("x", by="k"), table)] == numbers[:1]
