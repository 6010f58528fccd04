"""Values of other types than the plain ones, taken apart for the rows of collections and put together again.

The compiled half writes `None`, numbers, `str`, `bytes` and tuples itself, and calls `take_apart` for
anything else. What comes back is a plain value in its place, and either a tag, which makes it a type of its
own, or a note, which says what
class an equal of a plain value had. The tags and kinds are part of the format of rows: they never change.
"""

from __future__ import annotations

import dataclasses
import datetime
import decimal
import enum
import fractions
import importlib
import math
import pickle
import uuid
from typing import Any

__all__ = ["put_together", "restore", "take_apart"]

_SAME = 0
_RATIO = 1
_FROZENSET = 0x33
_DATE = 0x40
_DATETIME = 0x41
_DATETIME_ZONED = 0x42
_TIME = 0x43
_TIMEDELTA = 0x44
_UUID = 0x45
_ENUM = 0x46
_DATACLASS = 0x47
_PICKLED = 0x60

# Kinds of notes; 1 and 2 are the compiled half's.
_NAMED_TUPLE = 3
_PICKLED_NOTE = 4
_DECIMAL = 5
_FRACTION = 6
_ENUM_NOTE = 7

_EPOCH = datetime.datetime(1, 1, 1)
_EPOCH_UTC = datetime.datetime(1, 1, 1, tzinfo=datetime.timezone.utc)
_MICROSECOND = datetime.timedelta(microseconds=1)

# Of these, subclasses that compare as their base are kept as one of it.
_PLAIN: tuple[Any, ...] = (int, float, str, bytes, tuple)

Parts = tuple[int, Any, int, bytes]


def take_apart(value: Any) -> Parts:
    """``(tag, plain value, kind of note or 0, the note's payload)``.

    Raises:
        TypeError: For a value that cannot be hashed, or can neither be compared by its parts nor be pickled.
    """
    kind = type(value)
    handler = _BY_TYPE.get(kind)
    if handler is not None:
        parts: Parts = handler(value)
        return parts
    if isinstance(value, enum.Enum):
        return _enum(value)
    if isinstance(value, tuple) and hasattr(kind, "_fields") and hasattr(kind, "_make"):
        return _SAME, tuple(value), _NAMED_TUPLE, _class_name(kind).encode()
    if kind.__module__ == "numpy" and hasattr(value, "item"):
        return _SAME, value.item(), 0, b""
    for base in _PLAIN:
        if isinstance(value, base) and kind.__eq__ is base.__eq__:
            return _SAME, base(value), _PICKLED_NOTE, _pickled(value)
    try:
        hash(value)
    except TypeError:
        raise TypeError(
            f"a collection cannot keep {_shown(value)}: it cannot be hashed, so it could change while "
            "it is kept; use a "
            f"tuple for a list, a frozenset for a set, and a tuple of pairs for a dict"
        ) from None
    parameters = getattr(kind, "__dataclass_params__", None)
    if parameters is not None and parameters.frozen and parameters.eq and "<locals>" not in kind.__qualname__:
        fields = [field for field in dataclasses.fields(value) if field.init]
        if len(fields) == len(dataclasses.fields(value)) and all(field.compare for field in fields):
            parts = tuple(getattr(value, field.name) for field in fields)
            return _DATACLASS, (_class_name(kind), parts), 0, b""
    return _PICKLED, _pickled(value), 0, b""


def put_together(tag: int, plain: Any) -> Any:
    """The value of a type of its own."""
    return _BY_TAG[tag](plain)


def restore(kind: int, plain: Any, payload: bytes) -> Any:
    """The equal of a plain value that the note tells of."""
    if kind == _NAMED_TUPLE:
        return _class(payload.decode())._make(plain)
    if kind == _DECIMAL:
        return decimal.Decimal(payload.decode())
    if kind == _FRACTION:
        return fractions.Fraction(plain)
    if kind == _ENUM_NOTE:
        return _class(payload.decode())(plain)
    return pickle.loads(payload)


def _shown(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 80 else f"{text[:77]}..."


def _class_name(kind: type) -> str:
    if "<locals>" in kind.__qualname__:
        raise TypeError(
            f"a collection cannot keep a {kind.__qualname__}: records are kept by their class's name, "
            "and a class inside a "
            f"function cannot be found by it; define the class at the top level of its module"
        )
    return f"{kind.__module__}:{kind.__qualname__}"


_classes: dict[str, Any] = {}


def _class(name: str) -> Any:
    found = _classes.get(name)
    if found is None:
        module, _, path = name.partition(":")
        found = importlib.import_module(module)
        for part in path.split("."):
            found = getattr(found, part)
        _classes[name] = found
    return found


def _pickled(value: Any) -> bytes:
    try:
        return pickle.dumps(value, protocol=5)
    except Exception as error:
        raise TypeError(
            f"a collection cannot keep {_shown(value)}: a value of type {type(value).__qualname__} is "
            "kept by its pickle, "
            f"and cannot be pickled ({error})"
        ) from error


def _enum(value: enum.Enum) -> Parts:
    name = _class_name(type(value))
    for base in _PLAIN:
        if isinstance(value, base) and type(value).__eq__ is base.__eq__:
            return _SAME, base(value.value), _ENUM_NOTE, name.encode()
    return _ENUM, (name, value.name), 0, b""


def _ratio(value: Any, kind: int, payload: bytes) -> Parts:
    """A rational number of another type than int and float."""
    if isinstance(value, decimal.Decimal) and not value.is_finite():
        return _SAME, float("nan") if value.is_nan() else float(value), kind, payload
    numerator, denominator = value.as_integer_ratio()
    if denominator == 1:
        return _SAME, numerator, kind, payload
    try:
        near = float(value)
    except OverflowError:
        near = math.inf
    if math.isfinite(near) and near == value:
        return _SAME, near, kind, payload
    magnitude = fractions.Fraction(abs(numerator), denominator)
    fraction = float(magnitude - int(magnitude))
    text = f"{numerator}/{denominator}"
    return _RATIO, (numerator // denominator, numerator < 0, fraction, text), kind, payload


def _complex(value: complex) -> Parts:
    if value.imag == 0:
        return _SAME, value.real, _PICKLED_NOTE, _pickled(value)
    return _PICKLED, _pickled(value), 0, b""


def _datetime(value: datetime.datetime) -> Parts:
    if value.utcoffset() is None:
        naive = value.replace(tzinfo=None, fold=0)
        note = (
            (_PICKLED_NOTE, _pickled(value))
            if naive is not value and (value.fold or value.tzinfo)
            else (0, b"")
        )
        return _DATETIME, (naive - _EPOCH) // _MICROSECOND, *note
    plain = (value - _EPOCH_UTC) // _MICROSECOND
    if value.tzinfo is datetime.timezone.utc and not value.fold:
        return _DATETIME_ZONED, plain, 0, b""
    return _DATETIME_ZONED, plain, _PICKLED_NOTE, _pickled(value)


def _time(value: datetime.time) -> Parts:
    if value.tzinfo is not None or value.fold:
        return _PICKLED, _pickled(value), 0, b""
    seconds = (value.hour * 60 + value.minute) * 60 + value.second
    return _TIME, seconds * 1_000_000 + value.microsecond, 0, b""


_BY_TYPE: dict[type, Any] = {
    frozenset: lambda value: (_FROZENSET, value, 0, b""),
    decimal.Decimal: lambda value: _ratio(value, _DECIMAL, str(value).encode()),
    fractions.Fraction: lambda value: _ratio(value, _FRACTION, b""),
    complex: _complex,
    datetime.date: lambda value: (_DATE, value.toordinal(), 0, b""),
    datetime.datetime: _datetime,
    datetime.time: _time,
    datetime.timedelta: lambda value: (_TIMEDELTA, value // _MICROSECOND, 0, b""),
    uuid.UUID: lambda value: (_UUID, value.bytes, 0, b""),
}

_BY_TAG: dict[int, Any] = {
    _DATE: datetime.date.fromordinal,
    _DATETIME: lambda plain: _EPOCH + plain * _MICROSECOND,
    _DATETIME_ZONED: lambda plain: _EPOCH_UTC + plain * _MICROSECOND,
    _TIME: lambda plain: (_EPOCH + plain * _MICROSECOND).time(),
    _TIMEDELTA: lambda plain: plain * _MICROSECOND,
    _UUID: lambda plain: uuid.UUID(bytes=plain),
    _ENUM: lambda plain: _class(plain[0])[plain[1]],
    _DATACLASS: lambda plain: _class(plain[0])(*plain[1]),
    _PICKLED: pickle.loads,
}
