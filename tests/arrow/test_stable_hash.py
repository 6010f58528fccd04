"""`stable_hash` is a wire format: its vectors are pinned, and equal keys hash the same."""

import enum
import math
import os
import struct
import subprocess
import sys
from collections import Counter
from collections.abc import Callable, Hashable
from typing import NamedTuple

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pointstamp import stable_hash

# Never change one: workers of different builds would send a key to different places.
VECTORS: list[tuple[Hashable, int]] = [
    (0, 0),
    (7, 7),
    (-1, 0xFFFF_FFFF_FFFF_FFFF),
    (2**64 + 5, 5),
    (True, 1),
    (3.0, 3),
    (-3.0, 0xFFFF_FFFF_FFFF_FFFD),
    (2.0**63, 2**63),
    (1e300, 0),
    (1.5, 6243895168198900316),
    (math.inf, 14310989172426485580),
    (math.nan, 16408649432360982816),
    (None, 17861760335779843608),
    ("", 3244421341483603138),
    ("timely", 26518521954623817),
    (b"", 16029805462815443058),
    ((), 18320425563114248294),
    ((1, 2), 722995550223476967),
    ((2, 1), 9581753112940021860),
    (("a", 1), 14484508852125097420),
]


class Point(NamedTuple):
    x: int
    y: int


class Colour(enum.IntEnum):
    RED = 4


class Text(str):
    __slots__ = ()


scalars = (
    st.integers()
    | st.booleans()
    | st.floats(allow_nan=False)
    | st.text()
    | st.binary()
    | st.none()
    | st.integers(-5, 5)
    | st.sampled_from([0.0, -0.0, 1.0, -1.0, 2.0**63, 2.0**64, 2.0**70, -(2.0**63)])
)
keys = st.recursive(scalars, lambda inner: st.lists(inner, max_size=10).map(tuple), max_leaves=12)


@pytest.mark.parametrize(("key", "expected"), VECTORS, ids=lambda value: repr(value)[:20])
def test_vectors(key: Hashable, expected: int) -> None:
    assert stable_hash(key) == expected


def test_the_vectors_hold_in_another_process_whatever_its_hash_seed() -> None:
    program = "import sys, pointstamp, math; print([pointstamp.stable_hash(k) for k in eval(sys.argv[1])])"
    listing = repr([key for key, _ in VECTORS]).replace("inf", "math.inf").replace("nan", "math.nan")
    seen = set()
    for seed in ("1", "2"):
        output = subprocess.run(
            [sys.executable, "-c", program + "; print(hash('timely'))", listing],
            env={**os.environ, "PYTHONHASHSEED": seed},
            capture_output=True,
            text=True,
            check=True,
            timeout=380,
        ).stdout
        hashes, own = output.splitlines()
        assert hashes == repr([expected for _, expected in VECTORS])
        seen.add(own)
    assert len(seen) == 2, "PYTHONHASHSEED made no difference: this test shows nothing"


@given(st.integers())
def test_an_int_is_its_value_modulo_2_to_the_64(value: int) -> None:
    assert stable_hash(value) == value % 2**64


@given(st.floats(allow_nan=False, allow_infinity=False))
def test_a_float_that_is_an_integer_hashes_as_the_integer(value: float) -> None:
    whole = math.floor(value)
    assert stable_hash(float(whole)) == stable_hash(int(float(whole)))


@given(keys, keys)
def test_equal_keys_hash_the_same(a: Hashable, b: Hashable) -> None:
    assert stable_hash(a) == stable_hash(twin(a))
    if a == b:
        assert stable_hash(a) == stable_hash(b)


def twin(key: Hashable) -> Hashable:
    """A key that is equal to this one, of other types where there are any."""
    if isinstance(key, tuple):
        return tuple(twin(element) for element in key)
    if isinstance(key, bool):
        return float(key)
    if isinstance(key, float) and key.is_integer():
        return int(key)
    if isinstance(key, int) and abs(key) < 2**53:
        return float(key)
    if isinstance(key, str):
        return Text(key)
    return key


def test_subclasses_hash_as_what_they_equal() -> None:
    assert stable_hash(Point(3, 4)) == stable_hash((3, 4))
    assert stable_hash(Colour.RED) == 4
    assert stable_hash(Text("x")) == stable_hash("x")


def test_every_nan_hashes_the_same() -> None:
    [other] = struct.unpack("<d", struct.pack("<Q", 0xFFF8_0000_0000_1234))
    assert math.isnan(other)
    assert stable_hash(other) == stable_hash(math.nan)


def test_lone_surrogates_are_keys_too() -> None:
    assert stable_hash("\ud800") != stable_hash("\ud801")
    assert stable_hash(("\ud800", 1)) == stable_hash(("\ud800", 1))


def test_kinds_and_shapes_are_told_apart() -> None:
    different: list[Hashable] = ["", b"", "a", b"a", None, 0.5, (), ((),), (None,), ("",)]
    different += [("a", "b"), ("ab",), ("b", "a"), ("a", ("b",))]
    assert len({stable_hash(key) for key in different}) == len(different)


@pytest.mark.parametrize(
    ("key", "name"),
    [
        ([1], "list"),
        ({}, "dict"),
        (bytearray(b"x"), "bytearray"),
        (object(), "object"),
        (1j, "complex"),
        (("a", ("b", {1})), "set"),
    ],
)
def test_anything_else_is_refused_by_the_name_of_its_type(key: Hashable, name: str) -> None:
    with pytest.raises(TypeError, match=f"^{name} has no stable hash: .* convert it"):
        stable_hash(key)


def test_a_key_that_is_nested_too_deep_is_refused() -> None:
    key: Hashable = ()
    for _ in range(100_000):
        key = (key,)
    with pytest.raises(RecursionError, match="100 deep"):
        stable_hash(key)


@pytest.mark.parametrize("peers", [2, 3, 4, 7, 16])
@pytest.mark.parametrize("kind", ["str", "bytes", "float", "pair", "long"])
def test_keys_spread_over_workers(kind: str, peers: int) -> None:
    make: Callable[[int], Hashable] = {
        "str": lambda i: f"user-{i}",
        "bytes": lambda i: i.to_bytes(4, "little"),
        "float": lambda i: i + 0.5,
        "pair": lambda i: (i, 2 * i),
        "long": lambda i: (i,) * 9,
    }[kind]
    count = 20_000
    loads = Counter(stable_hash(make(i)) % peers for i in range(count))
    # Five standard deviations of a binomial.
    slack = 5 * math.sqrt(count / peers)
    assert all(abs(loads[worker] - count / peers) < slack for worker in range(peers)), loads
