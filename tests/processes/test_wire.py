"""Batches as bytes for other processes: decoded records, shared buffers, and refused records."""

import array
import pickle
import subprocess
import sys
import threading
from collections import Counter, deque
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import pointstamp as ps
from pointstamp import CodecError, encoders
from pointstamp._core import decode_batch, encode_batch


def there_and_back(records: list[Any]) -> list[Any]:
    result = decode_batch(encode_batch(records))
    assert isinstance(result, list)
    return result


@dataclass(frozen=True)
class Edge:
    source: int
    target: str


class Opaque:
    """Cannot be pickled, as a connection or a lock."""

    def __init__(self, number: int) -> None:
        self.number = number
        self.lock = threading.Lock()


@pytest.fixture
def registry() -> Iterator[None]:
    """Puts back what was registered before."""
    before = encoders._reducers.copy(), encoders._decoders.copy()
    yield
    encoders._reducers.clear()
    encoders._reducers.update(before[0])
    encoders._decoders.clear()
    encoders._decoders.update(before[1])


values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False)
    | st.text()
    | st.binary()
    | st.builds(Edge, st.integers(), st.text()),
    lambda inner: st.lists(inner) | st.tuples(inner, inner) | st.dictionaries(st.text(), inner),
    max_leaves=20,
)


@given(st.lists(values))
def test_records_come_back(records: list[Any]) -> None:
    assert there_and_back(records) == records


def test_classes_of_the_library_and_shared_objects() -> None:
    shared = [1]
    back = there_and_back([Counter("aab"), deque([1]), shared, shared, array.array("d", [1.5] * 9999)])
    assert back[:2] == [Counter("aab"), deque([1])]
    assert back[2] is back[3]
    assert back[4] == array.array("d", [1.5] * 9999)


@pytest.mark.parametrize("size", [0, 1, 100, 4096, 1_000_000])
def test_arrays_stay_writable(size: int) -> None:
    sent: list[Any] = [np.arange(size), (np.ones((size, 2), np.float32), "x"), bytearray(size)]
    back = there_and_back(sent)
    for before, after in [(sent[0], back[0]), (sent[1][0], back[1][0])]:
        assert after.dtype == before.dtype
        assert np.array_equal(before, after)
        after[...] = 7
        assert (after == 7).all()
    assert isinstance(back[2], bytearray)


def test_arrays_that_lie_in_any_order() -> None:
    block = np.arange(60_000).reshape(100, 600)
    for sent in [block.T, block[::2, ::3], np.asfortranarray(block), block[:0]]:
        assert np.array_equal(there_and_back([sent])[0], sent)


def test_large_buffers_are_beside_the_pickle() -> None:
    large = np.zeros(1 << 20, np.uint8)
    encoded = encode_batch([large, large[1:].copy()])
    assert len(encoded) < 2 * (1 << 20) + 2000
    start = encoded.index(b"\x80\x05")  # of a pickle, by protocol 5
    apart: list[Any] = [large, large[1:]]
    assert pickle.loads(encoded[start:], buffers=apart)[0].base is not None


def test_what_cannot_be_pickled_is_refused_by_its_type() -> None:
    with pytest.raises(CodecError) as refused:
        encode_batch([1, Opaque(3), 2])
    says = str(refused.value)
    assert "a record of type " in says
    assert "Opaque cannot be sent to a worker of another process" in says
    assert "cannot pickle '_thread.lock' object" in says
    assert isinstance(refused.value.__cause__, TypeError)
    for record in (lambda: 1, (i for i in "a")):
        with pytest.raises(CodecError, match=r"a record of type (function|generator) cannot be sent"):
            encode_batch([record])


def test_what_is_nested_too_deeply_is_refused() -> None:
    nested: list[Any] = []
    for _ in range(100_000):
        nested = [nested]
    with pytest.raises(CodecError, match="a record of type list cannot be sent"):
        encode_batch([nested])
    while nested:
        nested = nested.pop()


class Angry:
    def __reduce__(self) -> Any:
        raise ArithmeticError("no")


def test_an_error_of_a_class_of_the_users_own_is_not_changed() -> None:
    with pytest.raises(ArithmeticError, match="no"):
        encode_batch([Angry()])


@pytest.mark.usefixtures("registry")
def test_a_registered_encoder_is_used_at_any_depth() -> None:
    ps.register_encoder(Opaque, lambda item: item.number.to_bytes(2, "big"), from_bytes)
    back = there_and_back([Opaque(1), {"in": [Opaque(2), np.zeros(9999)]}, Edge(1, "x")])
    assert (back[0].number, back[1]["in"][0].number, back[2]) == (1, 2, Edge(1, "x"))
    assert len(encode_batch([Opaque(1)])) < 200

    # The last one counts.
    ps.register_encoder(Opaque, lambda item: item.number, lambda number: Opaque(number + 1))
    assert there_and_back([Opaque(1)])[0].number == 2


def from_bytes(form: bytes) -> Opaque:
    return Opaque(int.from_bytes(form, "big"))


@pytest.mark.usefixtures("registry")
def test_an_encoder_that_the_other_process_has_not() -> None:
    ps.register_encoder(Opaque, lambda item: item.number, Opaque)
    encoded = encode_batch([Opaque(1)])
    encoders._decoders.clear()
    with pytest.raises(CodecError, match="Opaque came from a process that has registered an encoder for it"):
        decode_batch(encoded)


@pytest.mark.usefixtures("registry")
def test_encoders_that_make_no_sense_are_refused() -> None:
    with pytest.raises(TypeError, match="registered for a class"):
        ps.register_encoder("Opaque", id, id)  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="list is always written in its own form"):
        ps.register_encoder(list, tuple, list)
    with pytest.raises(TypeError, match="must be functions"):
        ps.register_encoder(Opaque, None, id)  # type: ignore[arg-type]


def test_a_class_that_the_other_process_cannot_import() -> None:
    program = """
import sys
from pointstamp._core import encode_batch
class Mine: pass
sys.stdout.buffer.write(encode_batch([Mine()]))
"""
    encoded = subprocess.run([sys.executable, "-c", program], capture_output=True, timeout=380, check=True)
    with pytest.raises(CodecError, match=r"cannot be unpickled: .*Mine.*; every process must"):
        decode_batch(encoded.stdout)


def test_bytes_that_are_no_batch_are_refused() -> None:
    good = encode_batch([1, np.zeros(1000), 2])
    for bad in [b"", good[:8], good[:40], good[:-1], good + b"x", b"\x07" + good[1:]]:
        with pytest.raises(CodecError):
            decode_batch(bad)
    for at in range(16, 40):  # the lengths
        with pytest.raises(CodecError):
            decode_batch(good[:at] + bytes([good[at] ^ 0x41]) + good[at + 1 :])


def test_columns_come_back() -> None:
    batch = pa.record_batch(
        {
            "id": pa.array([1, None, 3]),
            "word": pa.array(["a", None, "ö" * 5000]).dictionary_encode(),
            "at": pa.array([0, 1, None], pa.timestamp("us", "UTC")),
            "parts": [[1], [], [2, None]],
        }
    )
    assert decode_batch(encode_batch(batch)).equals(batch)
    assert decode_batch(encode_batch(batch.slice(1, 1))).equals(batch.slice(1, 1))
    assert decode_batch(encode_batch(batch[:0])).schema == batch.schema
    with pytest.raises(CodecError, match="not a record batch"):
        decode_batch(encode_batch(batch)[:-300])
