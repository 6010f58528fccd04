"""A call of a collection's input that is refused changes nothing, however much of it could have been made."""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest

import pointstamp as ps

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

MANY = 10_000
"""More changes than one message holds."""

MOST = 2**63 - 1


def fails_behind(records: list[Any]) -> Iterator[Any]:
    """An iterable that raises an error behind its records."""
    yield from records
    raise ZeroDivisionError("behind the records")


def left_by(call: Callable[[Any], None], *, strict: bool, schema: pa.Schema | None = None) -> Any:
    """The changes of an input at time 1, at which a call is made."""

    def main(worker: ps.Worker) -> Any:
        with worker.dataflow() as scope:
            made: Any = {} if schema is None else {"schema": schema}
            handle, collection = scope.new_collection(strict=strict, **made)
            captured = collection.capture()
        begin: Any = [*["a"] * 2, "b"]
        if schema is None:
            handle.insert_many(begin)
        else:
            handle.insert(pa.table({"name": begin}))
        handle.advance_to(1)
        call(handle)
        handle.close()
        worker.run()
        return captured.extract()

    [changes] = ps.execute(main)
    assert changes
    assert changes[0][0] == 0
    return changes[1:]


BAD: dict[str, tuple[type[BaseException], Callable[[Any], None]]] = {
    "insert_many": (TypeError, lambda words: words.insert_many(["p", ["q"], "r"])),
    "insert_many of many": (TypeError, lambda words: words.insert_many([*map(str, range(MANY)), ["q"]])),
    "insert_many of a generator": (ZeroDivisionError, lambda words: words.insert_many(fails_behind(["p"]))),
    "remove_many": (TypeError, lambda words: words.remove_many(["a", ["q"]])),
    "remove_many of a generator": (
        ZeroDivisionError,
        lambda words: words.remove_many(fails_behind(["a"] * 2)),
    ),
    "update_many": (TypeError, lambda words: words.update_many([("p", 1), (["q"], 1)])),
    "update_many without a diff": (TypeError, lambda words: words.update_many([("p", 1), "qrs"])),
    "update_many of a diff of 0": (ValueError, lambda words: words.update_many([("p", 1), ("q", 0)])),
}


@pytest.mark.parametrize("strict", [False, True])
@pytest.mark.parametrize("name", BAD)
def test_a_call_that_is_refused_changes_nothing(name: str, strict: bool) -> None:
    kind, call = BAD[name]

    def refused(words: Any) -> None:
        with pytest.raises(kind):
            call(words)

    assert left_by(refused, strict=strict) == []


def test_a_strict_input_counts_nothing_of_a_call_that_it_refuses() -> None:
    def refused(words: Any) -> None:
        calls: list[Callable[[], None]] = [
            lambda: words.remove_many(["a", "zz"]),
            lambda: words.remove_many(["a", "b", "a", "a"]),
            lambda: words.update_many([("n", 5), ("n", -5), ("a", -1), ("b", -2)]),
            lambda: words.update_many([("b", -1), ("b", 1), ("zz", -1)]),
            lambda: words.remove_many(iter(["b", *map(str, range(MANY))])),
        ]
        for call in calls:
            with pytest.raises(ValueError, match="cannot be removed at time 1: this input has added"):
                call()
        with pytest.raises(ValueError, match=r"1 of 'n' .* added 0 of it"):
            words.remove("n")
        words.remove_many(["a", "a", "b"])  # all that there is, and was before

    assert left_by(refused, strict=True) == [(1, [("a", -2), ("b", -1)])]


def test_many_changes_are_all_made() -> None:
    def made(words: Any) -> None:
        words.insert_many(range(MANY))
        words.update_many((number, 2) for number in range(MANY))
        words.remove_many(itertools.chain(range(MANY), range(1, MANY)))

    assert left_by(made, strict=True) == [(1, [(0, 2), *((number, 1) for number in range(1, MANY))])]


@pytest.mark.parametrize("call", ["insert", "remove", "update"])
def test_a_call_with_columns_that_is_refused_changes_nothing(call: str) -> None:
    schema = pa.schema({"name": pa.string()})
    good = pa.record_batch({"name": ["a"]})

    def batches() -> Iterator[pa.RecordBatch]:
        yield good
        raise ZeroDivisionError("behind the first batch")

    def refused(names: Any) -> None:
        more = (1,) if call == "update" else ()
        with pytest.raises(Exception, match="behind the first batch"):
            getattr(names, call)(pa.RecordBatchReader.from_batches(schema, batches()), *more)
        if call != "insert":
            less = (-1,) if call == "update" else ()
            table = pa.table({"name": pa.chunked_array([["a"], ["a", "zz"]])})
            with pytest.raises(ValueError, match=r"'zz'.* cannot be removed"):
                getattr(names, call)(table, *less)
            names.remove(pa.table({"name": ["a", "a", "b"]}))
            names.insert(pa.table({"name": ["a", "a", "b"]}))

    assert left_by(refused, strict=True, schema=schema) == []


def test_a_count_of_a_strict_input_that_leaves_64_bits_is_an_overflow() -> None:
    def refused(words: Any) -> None:
        words.update("n", MOST)
        with pytest.raises(OverflowError, match="a record's count left the range of 64 bits"):
            words.insert("n")
        with pytest.raises(OverflowError, match="a record's count left the range of 64 bits"):
            words.insert_many(["p", "n"])
        words.update("n", -MOST)

    assert left_by(refused, strict=True) == []
