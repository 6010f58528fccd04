"""The bytes of Python records on their way to a worker of another process.

A batch is pickled as a whole, by protocol 5, with large buffers (of NumPy arrays, say) beside the pickle, so
that they are copied once and stay writable. Owns the encoders that a program registers for types with a
better form: they are part of the pickle, so that they also apply inside of other records. The extension
module calls `dumps` and `loads`.
"""

from __future__ import annotations

import copyreg
import pickle
from io import BytesIO
from typing import TYPE_CHECKING, Any, TypeVar

from pointstamp.errors import CodecError, type_name

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

__all__ = ["register_encoder"]

T = TypeVar("T")

PROTOCOL = 5

# Types that the pickler writes without calling an encoder.
_BUILT_IN = (type(None), bool, int, float, str, bytes, bytearray, tuple, list, dict, set, frozenset)

_REFUSALS = (pickle.PicklingError, TypeError, AttributeError, RecursionError)
"""Exceptions that pickle raises for an object that it cannot write."""

_UNREADABLE = (pickle.UnpicklingError, AttributeError, ImportError, EOFError)
"""Exceptions that pickle raises for bytes that it cannot read, or for classes that it cannot find."""

_reducers: dict[type, Callable[[Any], Any]] = {}
_decoders: dict[str, Callable[[Any], Any]] = {}


def register_encoder(cls: type[T], encode: Callable[[T], Any], decode: Callable[[Any], T]) -> None:
    """Registers how objects of a class travel to other processes, instead of by pickle.

    Every process must register the class, before it receives one: do it where the class is defined. It
    applies to objects of exactly this class, as records and inside of other records; a later registration
    replaces an earlier one. Within a process, objects are passed on as they are.

    Args:
        cls: The class.
        encode: Returns the encoded object: ``bytes``, or any object that can be pickled.
        decode: Makes an equal object of it.

    Raises:
        TypeError: If `cls` is not a class, or is a class that needs no encoder, such as ``int`` and ``list``.

    Examples:
        >>> import pointstamp as ps
        >>> class Point:
        ...     def __init__(self, x, y):
        ...         self.x, self.y = x, y
        >>> ps.register_encoder(Point, lambda point: (point.x, point.y), lambda xy: Point(*xy))
    """
    if not isinstance(cls, type):
        raise TypeError(f"an encoder is registered for a class, and {cls!r} is not one")
    if cls in _BUILT_IN:
        raise TypeError(f"{cls.__name__} is always written in its own form: give a class of your own")
    if not all(map(callable, (encode, decode))):
        raise TypeError("encode and decode must be functions")
    name = f"{cls.__module__}.{cls.__qualname__}"
    _decoders[name] = decode
    _reducers[cls] = lambda item: (_decoded, (name, encode(item)))


def _decoded(name: str, form: Any) -> Any:
    """Restores an object from its encoded form in a pickle."""
    decode = _decoders.get(name)
    if decode is None:
        raise CodecError(
            f"a {name} came from a process that has registered an encoder for it, and this process has not: "
            "call register_encoder where the class is defined, so that every process does"
        )
    return decode(form)


def dumps(records: list[Any], apart: Callable[[pickle.PickleBuffer], bool]) -> bytes:
    """The records as one pickle.

    Args:
        records: A batch.
        apart: Takes a buffer out of the pickle, or returns true to leave it in.

    Raises:
        CodecError: If a record cannot be pickled; the message names its type.
    """
    try:
        return _dumps(records, apart)
    except _REFUSALS as error:
        refused: Exception = error
    # Outside the handler, so that the traceback has one failure. Finds the record that failed.
    says = f"a batch of records cannot be pickled: {refused}"
    for record in records:
        try:
            _dumps(record, lambda _: True)
        except _REFUSALS as error:
            refused, says = error, _refusal(record, error)
            break
    raise CodecError(says) from refused


def _refusal(record: Any, why: Exception) -> str:
    return (
        f"a record of type {type_name(record)} cannot be sent to a worker of another process, because it "
        f"cannot be pickled: {why}; send another type, or call register_encoder for it"
    )


def _dumps(item: Any, apart: Callable[[pickle.PickleBuffer], bool]) -> bytes:
    if not _reducers:
        return pickle.dumps(item, PROTOCOL, buffer_callback=apart)
    out = BytesIO()
    pickler = pickle.Pickler(out, PROTOCOL, buffer_callback=apart)
    pickler.dispatch_table = {**copyreg.dispatch_table, **_reducers}
    pickler.dump(item)
    return out.getvalue()


def loads(pickled: bytes, buffers: Sequence[bytearray]) -> list[Any]:
    """The records that `dumps` pickled.

    Raises:
        CodecError: If they cannot be unpickled here.
    """
    try:
        records = pickle.loads(pickled, buffers=buffers)
    except _UNREADABLE as error:
        raise CodecError(
            f"records from another process cannot be unpickled: {error}; every process must be able to "
            "import their classes, under the same names"
        ) from error
    if type(records) is not list:
        raise CodecError(f"records from another process are a {type(records).__name__}, and not a list")
    return records
