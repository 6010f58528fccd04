"""Values of other types than the plain ones, taken apart for the rows of collections and put together again.

The compiled half writes `None`, numbers, `str`, `bytes` and tuples itself, and calls `take_apart` for
anything else. That returns a plain value in its place, and either a tag, which makes it a type of its own, or
a note of the class that an equal of a plain value had. The tags and kinds are part of the format of rows:
they never change.
"""

from __future__ import annotations

import datetime
import decimal
import enum
import fractions
import importlib
import io
import math
import pickle
import sys
import uuid
from typing import Any

from ._dataclass_fields import fields_of

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
_IPV4 = 0x48
_IPV6 = 0x49
_TIME_ZONED = 0x4A
_PICKLED = 0x60

# Kinds of notes; 1 and 2 are the compiled half's.
_NAMED_TUPLE = 3
_PICKLED_NOTE = 4
_DECIMAL = 5
_FRACTION = 6
_ENUM_NOTE = 7

_EPOCH = datetime.datetime(1, 1, 1)
_EPOCH_UTC = datetime.datetime(1, 1, 1, tzinfo=datetime.timezone.utc)
_EPOCH_UNIX = datetime.datetime(1970, 1, 1)
_MICROSECOND = datetime.timedelta(microseconds=1)

# The number of NumPy's shorter units in a microsecond.
_PER_MICROSECOND = {"ns": 10**3, "ps": 10**6, "fs": 10**9, "as": 10**12}

# Of these, subclasses that compare as their base are kept as one of it.
_PLAIN: tuple[Any, ...] = (int, float, str, bytes, tuple)

# The base's part of a subclass's value, whatever the subclass adds.
_EXACTLY: dict[Any, Any] = {
    int: int.__pos__,
    float: float.__pos__,
    str: lambda value: str.__getitem__(value, slice(None)),
    bytes: lambda value: bytes.__getitem__(value, slice(None)),
    tuple: lambda value: tuple.__getitem__(value, slice(None)),
}

_DAY = datetime.timedelta(days=1) // _MICROSECOND
_OBJECT: Any = object
_TUPLES_EQ: Any = tuple.__eq__

Parts = tuple[int, Any, int, bytes]


def take_apart(value: Any) -> Parts:
    """``(tag, plain value, kind of note or 0, the note's payload)``.

    Raises:
        TypeError: For a value that cannot be hashed, or can neither be compared by its parts nor be pickled.
    """
    kind: Any = type(value)
    handler = _BY_TYPE.get(kind)
    if handler is not None:
        parts: Parts = handler(value)
        return parts
    if isinstance(value, enum.Enum):
        return _enum(value)
    if isinstance(value, tuple) and hasattr(kind, "_make") and kind.__eq__ is _TUPLES_EQ:
        return _SAME, tuple(value), _NAMED_TUPLE, _class_name(kind).encode()
    address = _ADDRESSES.get(kind.__qualname__) if kind.__module__ == "ipaddress" else None
    if address is not None and getattr(value, "scope_id", None) is None:
        return address, int(value), 0, b""
    if kind.__module__ == "numpy" and hasattr(value, "item") and kind.__hash__ is not None:
        return _numpy(value)
    parts_of_time = _time_of_a_subclass(value)
    if parts_of_time is not None:
        return parts_of_time
    for base in _PLAIN:
        if isinstance(value, base) and kind.__eq__ is base.__eq__:
            return _SAME, _EXACTLY[base](value), _PICKLED_NOTE, _pickled(value)
    try:
        hash(value)
    except TypeError:
        raise TypeError(
            f"a collection cannot keep {_shown(value)}: it cannot be hashed, so it could change while "
            "it is kept; use a "
            f"tuple for a list, a frozenset for a set, and a tuple of pairs for a dict"
        ) from None
    fields = fields_of(kind)
    if fields is not None and fields.ordered:
        note = (_PICKLED_NOTE, _pickled(value)) if fields.has_more(value) else (0, b"")
        return _DATACLASS, (_class_name(kind), fields.take(value)), *note
    return _PICKLED, _pickled_alike(value), 0, b""


def put_together(tag: int, plain: Any) -> Any:
    """The value of a type of its own."""
    return _BY_TAG[tag](plain)


def restore(kind: int, plain: Any, payload: bytes) -> Any:
    """Returns the equal of a plain value that has the noted class."""
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


def _pickled_alike(value: Any) -> bytes:
    """Pickles without marking whether two parts of a value are one object or two equal ones."""
    written = io.BytesIO()
    pickler = pickle.Pickler(written, protocol=5)
    pickler.fast = True
    try:
        pickler.dump(value)
    except Exception:  # for example, a value that refers to itself
        return _pickled(value)
    return written.getvalue()


def _dataclass_of(name: str, parts: tuple[Any, ...]) -> Any:
    kind = _class(name)
    fields = fields_of(kind)
    if fields is None:
        raise TypeError(f"{name} is not the class that it was: records of it are kept by its fields")
    return fields.put(kind, parts)


def _enum(value: enum.Enum) -> Parts:
    kind: Any = type(value)
    name = _class_name(kind)
    for base in _PLAIN:
        if isinstance(value, base) and type(value).__eq__ is base.__eq__:
            plain = _EXACTLY[base](value)
            if value.value == plain:
                return _SAME, plain, _ENUM_NOTE, name.encode()
            return _SAME, plain, _PICKLED_NOTE, _pickled(value)  # it has another value than it equals
    if kind.__lt__ is not _OBJECT.__lt__ or kind.__gt__ is not _OBJECT.__gt__:
        return _PICKLED, _pickled(value), 0, b""  # which has an order of its own
    # Of flags a combination may have no name.
    return _ENUM, (name, value.value if isinstance(value, enum.Flag) else value.name), 0, b""


def _enum_of(name: str, which: str | int) -> Any:
    kind = _class(name)
    return kind[which] if isinstance(which, str) else kind(which)


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
    negative = numerator < 0
    fraction = _beside(fractions.Fraction(abs(numerator) % denominator, denominator), above=negative)
    text = f"{_expansion(numerator % denominator, denominator)} {numerator}/{denominator}"
    return _RATIO, (numerator // denominator, negative, fraction, text), kind, payload


def _beside(fraction: fractions.Fraction, above: bool) -> float:
    """The float next to a fraction from 0 to 1, so that a ratio sorts behind the float that is below it."""
    near = float(fraction)
    if above:
        return near if near >= fraction else math.nextafter(near, 2.0)
    return near if near <= fraction else math.nextafter(near, 0.0)


# Characters in the opposite order.
_MIRROR = {code: 0xAA - code for code in range(0x30, 0x7B)}


def _expansion(numerator: int, denominator: int) -> str:
    """A ratio from 0 to 1 as a continued fraction, in characters that sort as the ratios do.

    The less its first part, the greater the ratio, and the greater the second, and so on: every other part is
    in mirrored characters. The end is as a part that is greater than all.
    """
    parts, mirrored = [], True
    while numerator:
        whole, rest = divmod(denominator, numerator)
        part = _length_first(whole)
        parts.append(part.translate(_MIRROR) if mirrored else part)
        numerator, denominator, mirrored = rest, numerator, not mirrored
    parts.append("0" if mirrored else "z")
    return "".join(parts)


def _length_first(number: int) -> str:
    """An integer in characters from 0 to Z that sort as the integers do."""
    digits = f"{number:x}"
    if len(digits) < 26:
        return chr(64 + len(digits)) + digits
    size = f"{len(digits):x}"
    return f"Z{chr(64 + len(size))}{size}{digits}"


def _numpy(value: Any) -> Parts:
    """A scalar of NumPy's: the value of Python's, where there is one for it."""
    plain, kind = value.item(), value.dtype.kind
    if kind in "mM" and (plain is None or isinstance(plain, int)):
        return _numpy_time(value, plain)
    if type(plain) is not type(value):
        return _SAME, plain, 0, b""
    if kind != "f":
        return _PICKLED, _pickled(value), 0, b""
    if not math.isfinite(value):
        return _SAME, float(value), 0, b""
    return _ratio(value, _PICKLED_NOTE, _pickled(value))


def _numpy_time(value: Any, plain: int | None) -> Parts:
    """A time of NumPy's that `datetime` has none for, such as one in nanoseconds."""
    unit, count = sys.modules["numpy"].datetime_data(value.dtype)
    if unit == "generic" and plain is not None:
        return _SAME, plain, 0, b""
    if unit not in _PER_MICROSECOND or plain is None:
        return _PICKLED, _pickled(value), 0, b""
    passed = fractions.Fraction(plain * count, _PER_MICROSECOND[unit])
    if value.dtype.kind == "M":
        passed += (_EPOCH_UNIX - _EPOCH) // _MICROSECOND
    tag = _DATETIME if value.dtype.kind == "M" else _TIMEDELTA
    return tag, _whole(passed), _PICKLED_NOTE, _pickled(value)


def _whole(number: fractions.Fraction) -> int | fractions.Fraction:
    return number.numerator if number.denominator == 1 else number


def _time_of_a_subclass(value: Any) -> Parts | None:
    """Returns a time whose class compares as `datetime` does, such as pandas'; None for other values."""
    kind: Any = type(value)
    try:
        if isinstance(value, datetime.datetime) and (
            kind.__eq__ is datetime.datetime.__eq__ or hasattr(value, "nanosecond")
        ):
            if value != value:  # pandas.NaT
                return None
            date = (value.year, value.month, value.day)
            clock = (value.hour, value.minute, value.second, value.microsecond)
            plain = datetime.datetime(*date, *clock, tzinfo=value.tzinfo, fold=value.fold)
            tag, passed, _, _ = _datetime(plain)
            beyond = getattr(value, "nanosecond", 0)
        elif isinstance(value, datetime.timedelta) and (
            kind.__eq__ is datetime.timedelta.__eq__ or hasattr(value, "nanoseconds")
        ):
            span = datetime.timedelta(value.days, value.seconds, value.microseconds)
            tag, passed = _TIMEDELTA, span // _MICROSECOND
            beyond = getattr(value, "nanoseconds", 0)
        elif isinstance(value, datetime.date) and kind.__eq__ is datetime.date.__eq__:
            plain_date = datetime.date(value.year, value.month, value.day)
            return _DATE, plain_date.toordinal(), _PICKLED_NOTE, _pickled(value)
        else:
            return None
    except (ValueError, OverflowError):  # beyond the years that datetime has
        return None
    passed = _whole(passed + fractions.Fraction(beyond, 1000))
    return tag, passed, _PICKLED_NOTE, _pickled(value)


def _complex(value: complex) -> Parts:
    if value.imag == 0:
        return _SAME, value.real, _PICKLED_NOTE, _pickled(value)
    # Without the sign of a zero, which is equal to the other.
    return _PICKLED, _pickled(complex(value.real + 0.0, value.imag + 0.0)), 0, b""


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
    seconds = (value.hour * 60 + value.minute) * 60 + value.second
    plain = seconds * 1_000_000 + value.microsecond
    note = (0, b"") if value.tzinfo is None and not value.fold else (_PICKLED_NOTE, _pickled(value))
    offset = value.utcoffset()
    if offset is None:
        return _TIME, plain, *note
    return _TIME_ZONED, plain - offset // _MICROSECOND, *note


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

_ADDRESSES = {"IPv4Address": _IPV4, "IPv6Address": _IPV6}

_BY_TAG: dict[int, Any] = {
    _DATE: datetime.date.fromordinal,
    # The part below a microsecond is in a note.
    _DATETIME: lambda plain: _EPOCH + int(plain) * _MICROSECOND,
    _DATETIME_ZONED: lambda plain: _EPOCH_UTC + int(plain) * _MICROSECOND,
    _TIME: lambda plain: (_EPOCH + plain * _MICROSECOND).time(),
    _TIME_ZONED: lambda plain: (_EPOCH + plain % _DAY * _MICROSECOND).time(),
    _TIMEDELTA: lambda plain: int(plain) * _MICROSECOND,
    _UUID: lambda plain: uuid.UUID(bytes=plain),
    _ENUM: lambda plain: _enum_of(*plain),
    _DATACLASS: lambda plain: _dataclass_of(*plain),
    _IPV4: lambda plain: _class("ipaddress:IPv4Address")(plain),
    _IPV6: lambda plain: _class("ipaddress:IPv6Address")(plain),
    _PICKLED: pickle.loads,
}
