"""The form of a snapshot of keyed state: a mark, a form, a checksum, and the state.

The checksum is checked before anything else is read: the rest is unpickled, or passed to code that trusts its
offsets.
"""

from __future__ import annotations

from typing import Any
from zlib import crc32

from pointstamp._core import decode_batch, encode_batch
from pointstamp.errors import CodecError

__all__ = ["read", "read_table", "write", "write_table"]

_MARK = b"pointstamp keyed state"
_FORM = 5
"""Raised with every change of the format behind the checksum."""
_CHECKSUM = 4
"""Bytes."""
_BEGINS = len(_MARK) + 1 + _CHECKSUM


def write(entries: list[Any]) -> bytes:
    """A snapshot as bytes."""
    body = encode_batch(entries)
    return b"".join((_MARK, bytes([_FORM]), crc32(body).to_bytes(_CHECKSUM, "big"), body))


def read(snapshot: bytes) -> list[Any]:
    """Reads bytes of `write`.

    Raises:
        CodecError: For bytes that are no snapshot, or one of another version, or that have changed since.
        TypeError: For an object that is not bytes.
    """
    if not isinstance(snapshot, bytes | bytearray | memoryview):
        raise TypeError(f"a snapshot is the bytes that KeyedState.snapshot returned, not {snapshot!r}")
    snapshot = bytes(snapshot)
    if not snapshot.startswith(_MARK) or len(snapshot) < _BEGINS:
        raise CodecError(
            "these bytes are no snapshot of a KeyedState, or one from before snapshots had a checksum"
        )
    form = snapshot[len(_MARK)]
    if form != _FORM:
        raise CodecError(
            f"this snapshot is of form {form}, of another version, and this one reads form {_FORM}: let "
            "the run begin anew, and take a snapshot of it"
        )
    body = snapshot[_BEGINS:]
    if crc32(body) != int.from_bytes(snapshot[_BEGINS - _CHECKSUM : _BEGINS], "big"):
        raise CodecError(
            f"this snapshot of {len(snapshot)} bytes is damaged, as its checksum says: resume from an "
            "earlier one, or let the run begin anew"
        )
    entries: list[Any] = decode_batch(body)
    return entries


def write_table(batch: Any) -> bytes:
    """A record batch as bytes of Arrow's format of streams."""
    import pyarrow as pa

    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, batch.schema) as writer:
        writer.write_batch(batch)
    written: bytes = sink.getvalue().to_pybytes()
    return written


def read_table(written: bytes) -> Any:
    """Reads bytes of `write_table`."""
    import pyarrow as pa

    with pa.ipc.open_stream(written) as reader:
        return reader.read_next_batch()
