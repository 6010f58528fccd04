"""Expressions over parts of records give the results of a function of the same text; mistakes are refused."""

from __future__ import annotations

import copy
import pickle
from collections import Counter
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import pointstamp as ps
from pointstamp import col, key, left, record, right

if TYPE_CHECKING:
    from collections.abc import Callable

# Each is used twice: of `record` it makes an expression, and of a record a value.
MAPS: list[Callable[[Any], Any]] = [
    lambda r: r,
    lambda r: r[1],
    lambda r: (r[1], r[0]),
    lambda r: (r[1][0], (r[0], r[1])),
    lambda r: ((r[1][1], "x"), 7, None, r[0]),
    lambda r: (r[0] + 1, r[0] * 3 - 3),
    lambda r: (r[0] / 2, 1.5 * r[0], 10 - r[0], -r[0]),
    lambda r: (r[0], r[1][0] == 1),
    lambda r: (),
]
FILTERS: list[Callable[[Any], Any]] = [
    lambda r: r[0] > 1,
    lambda r: (r[0] + 1) * 2 <= 4,
    lambda r: (r[0] == 1) | (r[1][0] == 0),
    lambda r: (r[0] != 2) & (r[1] >= (1, 0)),
    lambda r: r[1] == (1, 1),
]
# The last ones are equal to integers, and are not the same records.
SMALL = st.integers(-2, 2)
NUMBERS = st.one_of(SMALL, st.sampled_from([1.0, True, False, 0.5, -(2**40), 2**31]))
RECORDS = st.one_of(
    st.tuples(SMALL, st.tuples(SMALL, SMALL)),
    st.tuples(NUMBERS, st.tuples(SMALL, NUMBERS)),
)


def captured(build: Callable[[ps.Scope], ps.Collection[Any]]) -> list[tuple[str, int]]:
    """The records of a collection, in the form that they have."""
    found: Counter[str] = Counter()
    for _, changes in ps.example(lambda scope: build(scope).capture()).extract():
        for changed, diff in changes:
            found[repr(changed)] += diff
    return sorted(found.items())


def counted(records: list[Any]) -> list[tuple[str, int]]:
    return sorted(Counter(map(repr, records)).items())


def one_form(records: list[Any]) -> list[Any]:
    """The records, with one form for equal records: a collection keeps one of their forms."""
    return [records[records.index(one)] for one in records]


@settings(max_examples=30, deadline=None)
@given(records=st.lists(RECORDS, max_size=12), which=st.integers(0, len(MAPS) - 1))
def test_maps_are_those_of_functions(records: list[Any], which: int) -> None:
    f, records = MAPS[which], one_form(records)
    ours = captured(lambda scope: scope.collection(records).map(f(record)))
    theirs = captured(lambda scope: scope.collection(records).map(f))
    assert ours == theirs
    assert len(ours) > 0 or not records


@settings(max_examples=30, deadline=None)
@given(records=st.lists(RECORDS, max_size=12), which=st.integers(0, len(FILTERS) - 1))
def test_filters_are_those_of_functions(records: list[Any], which: int) -> None:
    f, records = FILTERS[which], one_form(records)
    ours = captured(lambda scope: scope.collection(records).filter(f(record)))
    # Python's & and | of bools are theirs as well.
    assert ours == counted([one for one in records if f(one)])


def test_not_turns_a_condition_round() -> None:
    records = [(1, "a"), (2, "b"), ("c", None)]
    kept = captured(lambda scope: scope.collection(records).filter(~(record[0] == 2)))
    assert kept == counted([(1, "a"), ("c", None)])
    missing = captured(lambda scope: scope.collection(records).filter(record[1] == None))  # noqa: E711
    assert missing == counted([("c", None)])


@settings(max_examples=30, deadline=None)
@given(records=st.lists(st.tuples(NUMBERS, NUMBERS), max_size=10))
def test_joins_are_those_of_functions(records: list[Any]) -> None:
    records = one_form(records)

    def fields(scope: ps.Scope) -> ps.Collection[Any]:
        pairs = scope.collection(records)
        return pairs.join(pairs, ((key, left), right, left + right))

    def function(scope: ps.Scope) -> ps.Collection[Any]:
        pairs = scope.collection(records)
        return pairs.join(pairs, lambda k, a, b: ((k, a), b, a + b))

    ours, theirs = captured(fields), captured(function)
    assert ours == theirs
    total = sum(diff for _, diff in ours)
    assert total == sum(a[0] == b[0] for a in records for b in records)


@settings(max_examples=30, deadline=None)
@given(
    records=st.lists(
        st.one_of(NUMBERS, RECORDS, st.text(max_size=2), st.none(), st.just(2**70), st.tuples()),
        max_size=14,
    ),
    workers=st.sampled_from([1, 2]),
)
def test_integers_and_other_values_are_kept_together(records: list[Any], workers: int) -> None:
    """Integers meet values that are equal to them, and others that are not, and each is counted once."""

    def main(worker: ps.Worker) -> Any:
        with worker.dataflow() as scope:
            mine = scope.collection(records[worker.index :: worker.peers])
            counts = mine.value_counts().capture()
            keyed = mine.map(lambda one: (one, 1)).sum().capture()
        worker.run()
        return counts.extract(), keyed.extract()

    found: list[Counter[Any]] = [Counter(), Counter()]
    for results in ps.execute(main, workers=workers):
        for counter, times in zip(found, results, strict=True):
            for _, changes in times:
                counter.update(dict(changes))
    expected = Counter(Counter(records).items())
    assert found == [expected, expected]


@pytest.mark.parametrize(
    ("build", "error", "message"),
    [
        (lambda c: c.map(left), ps.GraphError, "reads 'left', and the operator has record"),
        (lambda c: c.map((record, right)), ps.GraphError, "reads 'right', and the operator has record"),
        (lambda c: c.join(c, record), ps.GraphError, "reads 'record', and the operator has key, left, right"),
        (lambda c: c.map(col("a")), TypeError, "these are records: read their parts with record"),
        (lambda c: c.map(record[-1]), IndexError, "counted from 0 on"),
        (lambda c: c.filter(record[0] > 1 and record[1] > 1), TypeError, "combine conditions with"),
        (lambda c: c.map((record, [])), TypeError, "list"),
    ],
)
def test_what_an_operator_does_not_have_is_told_at_once(build: Any, error: Any, message: str) -> None:
    with pytest.raises(error, match=message):
        ps.example(lambda scope: build(scope.collection([(1, 2)])).capture())


@pytest.mark.parametrize(
    ("given", "f", "error", "message"),
    [
        ((1, 2), record[2], TypeError, r"\(1, 2\) has no part record\[2\]"),
        ((1, "a"), record[1][0], TypeError, r"has no part record\[1\]\[0\]"),
        ((1, "a"), record[1] + 1, TypeError, r"expression's \+ takes .* got 'a'"),
        (
            (2**62, 2),
            (record[1], record[0] * record[1]),
            OverflowError,
            r"^\(record\[1\], .*\) has no result for the record \(4611686018427387904, 2\): the result of ",
        ),
        (
            (1.5, 0),
            record[0] / record[1],
            ZeroDivisionError,
            r"has no result for the record \(1.5, 0\): a number is divided by 0",
        ),
    ],
)
def test_records_that_an_expression_does_not_fit_are_told(
    given: Any, f: Any, error: Any, message: str
) -> None:
    with pytest.raises(error, match=message) as caught:
        ps.example(lambda scope: scope.collection([given]).map(f, name="mine").capture())
    assert any("mine" in note for note in getattr(caught.value, "__notes__", ["mine"]))


def test_a_condition_and_a_join_without_a_result_are_told_with_their_records() -> None:
    with pytest.raises(OverflowError, match=r"^\(\(record \+ 1\) > 0\) has no result for the record 922"):
        ps.example(lambda scope: scope.collection([2**63 - 1]).filter(record + 1 > 0).capture())

    def build(scope: ps.Scope) -> Any:
        sides = scope.collection([("a", 2**62)]), scope.collection([("a", 4)])
        return sides[0].join(sides[1], left * right).capture()

    with pytest.raises(
        OverflowError, match=r"has no result for the key 'a' with 4611686018427387904 and 4: "
    ):
        ps.example(build)


@pytest.mark.parametrize(
    "field",
    [
        record,
        key,
        left[1][0],
        col("amount") * 2 - 1,
        1 / right[0] + 2.5,
        ~((record[0] == "ann") & (record[1] >= 2**80)) | (record[2] != None),  # noqa: E711
        record[0] == (1, record[1], ("x", None)),
        record > (1, 2),
    ],
)
def test_an_expression_travels(field: Any) -> None:
    """Programs refer to it, and are sent to processes."""
    for copied in (pickle.loads(pickle.dumps(field)), copy.deepcopy(field)):
        assert type(copied) is type(field)
        assert repr(copied) == repr(field)
        assert copied.__reduce__()[1:] == () or repr(copied.__reduce__()) == repr(field.__reduce__())


def test_an_expression_that_travelled_computes_the_same() -> None:
    def both(scope: ps.Scope) -> Any:
        pairs = scope.collection([(1, "ann"), (2, "bea"), (3, "ann")])
        return [
            pairs.filter(condition).map(value).capture()
            for condition, value in (
                ((record[1] == "ann") & (record[0] < 2), (record[0] * 10, (record[1], 7))),
                pickle.loads(
                    pickle.dumps(((record[1] == "ann") & (record[0] < 2), (record[0] * 10, (record[1], 7))))
                ),
            )
        ]

    found, again = ps.example(both)
    assert found.extract() == again.extract() == [(0, [((10, ("ann", 7)), 1)])]


def test_a_condition_is_a_bool() -> None:
    with pytest.raises(TypeError, match="condition is a comparison or a bool, and got 1"):
        ps.example(lambda scope: scope.collection([(1, 2)]).filter(record[0]).capture())
    kept = captured(lambda scope: scope.collection([(True, 2), (False, 3)]).filter(record[0]))
    assert kept == [("(True, 2)", 1)]
