"""Keys of everyday types: the conversion of each to a key that the extension module hashes itself.

Owns `register_key` and the forms below. `stable_hash` hashes ints, strings, bytes, floats, None and tuples,
and calls `simplify` for everything else. A key that equals one of another type has that key's form:
``Decimal("0.5")`` has the form of ``0.5``. Where there is no such form, the result is a hash already: an int,
which hashes as itself. The schemes are in ``crates/columnar/src/hash.rs``; like it, they never change.

Types are found by their names, so that no module is imported for them that the program does not use. Cost: a
few microseconds per key.
"""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, Any, TypeVar

from pointstamp import _core

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable

__all__ = ["register_key", "simplify"]

T = TypeVar("T")

_registered: dict[type, Callable[[Any], Hashable]] = {}
_found: dict[type, Callable[[Any], Hashable] | None] = {}
"""Functions that simplify keys, by the types that were met."""

_MODULUS = 2**64
_MICROSECONDS = {"W": 604_800_000_000, "D": 86_400_000_000, "h": 3_600_000_000, "m": 60_000_000}
_MICROSECONDS |= {"s": 1_000_000, "ms": 1_000, "us": 1}
_PARTS = {"ns": 10**3, "ps": 10**6, "fs": 10**9, "as": 10**12}
"""Parts of a microsecond."""


def register_key(type: type[T], function: Callable[[T], Hashable]) -> None:
    """Makes keys of a type, and of its subclasses: a function says which simpler key stands for one.

    Register it where every worker does, in all processes: at the top of the module that has the type.

    Args:
        type: The type. A later registration replaces an earlier one. Subclasses of int, str, bytes, float and
            tuple are keys by their base class, whatever is registered.
        function: Called with an object; returns a key that `stable_hash` knows. Objects that are equal must
            have keys that are equal.

    Raises:
        TypeError: If `type` is not a class, or `function` not a function.

    Examples:
        >>> import pointstamp as ps
        >>> class Version:
        ...     def __init__(self, text):
        ...         self.parts = tuple(map(int, text.split(".")))
        >>> ps.register_key(Version, lambda version: version.parts)
        >>> ps.stable_hash(Version("1.12")) == ps.stable_hash((1, 12))
        True
    """
    if not isinstance(type, _type):
        raise TypeError(f"register_key takes a class and a function, not {type!r} as the class")
    if not callable(function):
        raise TypeError(f"register_key takes a class and a function, not {function!r} as the function")
    _registered[type] = function
    _found.clear()


_type = type


def simplify(key: Any) -> Any:
    """Returns a simpler key that represents a key; NotImplemented for an object that is not a key."""
    kind = key.__class__
    try:
        function = _found[kind]
    except KeyError:
        function = _found[kind] = _search(kind)
    return NotImplemented if function is None else function(key)


def _search(kind: type) -> Callable[[Any], Hashable] | None:
    for base in kind.__mro__:
        if base in _registered:
            return _registered[base]
        if "__dataclass_params__" in vars(base):
            return _of_dataclass if base.__dataclass_params__.frozen else _refuse_dataclass  # type: ignore[attr-defined]
        function = _BY_NAME.get(f"{base.__module__}.{base.__qualname__}")
        if function is not None:
            return function
    return None


# -------------------------------------------------------------------- numbers


def _of_fraction(key: Any) -> Any:
    numerator, denominator = key.numerator, key.denominator
    if denominator == 1:
        return int(numerator)
    try:
        nearest = numerator / denominator
    except OverflowError:
        nearest = 0.0
    if nearest == key:
        return nearest
    rest, fives = denominator >> (twos := (denominator & -denominator).bit_length() - 1), 0
    while rest % 5 == 0:
        rest, fives = rest // 5, fives + 1
    if rest == 1:  # a Decimal may equal it
        scale = max(twos, fives)
        return _decimal(numerator * 10**scale // denominator, scale)
    return _core.tagged_hash(b"ps:fract", _digits(numerator) + _digits(denominator))


def _of_decimal(key: Any) -> Any:
    if not key.is_finite():
        return float("nan") if key.is_nan() else float(key)
    sign, digits, scale = key.as_tuple()
    value = int("".join(map(str, digits)) or "0") * (-1 if sign else 1)
    while value and scale < 0 and value % 10 == 0:
        value, scale = value // 10, scale + 1
    if not value:
        return 0
    if scale >= 0:
        return value * pow(10, scale, _MODULUS) % _MODULUS
    nearest = float(key)
    if nearest == key:
        return nearest
    return _decimal(value, -scale)


def _decimal(value: int, scale: int) -> int:
    """``value / 10**scale``, without trailing zeros: as of a column of decimals."""
    return _core.tagged_hash(b"ps:decim", _digits(value) + scale.to_bytes(8, "little"))


def _digits(value: int) -> bytes:
    """An int of any size: 32 bytes where they suffice."""
    size = max(32, value.bit_length() // 8 + 1)
    return value.to_bytes(size, "little", signed=True)


def _of_numpy(key: Any) -> Any:
    match key.dtype.kind:
        case "b":
            return bool(key)
        case "i" | "u":
            return int(key)
        case "f":
            double = float(key)
            if key != key or double == key:
                return double
            from fractions import Fraction

            return _of_fraction(Fraction(*key.as_integer_ratio()))
        case "M" | "m":
            return _of_numpy_time(key)
    return NotImplemented


def _of_numpy_time(key: Any) -> Any:
    """Converts to a date, where the unit is a day or more, a datetime, or a timedelta; or to parts of these.

    So of two times of different units that NumPy takes to be equal, one may be a date and one a datetime,
    which are not.
    """
    import numpy as np

    value = int(key.astype(np.int64))
    unit, count = np.datetime_data(key.dtype)
    if np.isnat(key):
        return _of_nat(key)
    if key.dtype.kind == "M" and unit in ("Y", "M", "W", "D"):
        return _time(int(key.astype("datetime64[D]").astype(np.int64)))
    if unit in ("Y", "M", "generic"):  # spans that no number of seconds equals
        months = value * count * (12 if unit == "Y" else 1)
        return _core.tagged_hash(b"ps:intvl", _digits(months))
    value *= count
    if unit in _MICROSECONDS:
        return _time(value * _MICROSECONDS[unit])
    parts = _PARTS[unit]
    if value % parts == 0:
        return _time(value // parts)
    return _core.tagged_hash(b"ps:time.", _digits(value * (_PARTS["as"] // parts)))


# -------------------------------------------------------------------- times


def _time(value: int) -> int:
    """A point in time or a span of it, as columns in that unit have them."""
    size = 8 if -(2**63) <= value < 2**63 else 32
    return _core.tagged_hash(b"ps:time.", value.to_bytes(size, "little", signed=True))


_EPOCH = 719_163
"""The ordinal of 1970-01-01."""


def _of_nat(_key: Any) -> int:
    return _core.tagged_hash(b"ps:time.", b"NaT")


def _of_date(key: Any) -> int:
    return _time(key.toordinal() - _EPOCH)  # in days


def _of_datetime(key: Any) -> int:
    seconds = (key.toordinal() - _EPOCH) * 86_400
    return _time(seconds * 1_000_000 + _of_day(key))


def _of_time(key: Any) -> int:
    return _time(_of_day(key))


def _of_day(key: Any) -> int:
    """Microseconds since midnight, in UTC where the time knows."""
    micros: int = ((key.hour * 60 + key.minute) * 60 + key.second) * 1_000_000 + key.microsecond
    offset = key.replace(fold=0).utcoffset()  # times that differ in their fold are equal
    return micros if offset is None else micros - _micros(offset)


def _micros(span: Any) -> int:
    micros: int = (span.days * 86_400 + span.seconds) * 1_000_000 + span.microseconds
    return micros


def _of_timedelta(key: Any) -> int:
    return _time(_micros(key))


# -------------------------------------------------------------------- others


def _of_uuid(key: Any) -> Any:
    return key.bytes


def _of_enum(key: Any) -> Any:
    # Not by the module: a script's module is __main__ where it runs, and its name where it is imported.
    return (type(key).__qualname__, key.name)


def _of_flag(key: Any) -> Any:
    return (type(key).__qualname__, key.value)


def _of_frozenset(key: Any) -> int:
    hashes = sorted(map(_core.stable_hash, key))
    return _core.tagged_hash(b"ps:fzset", b"".join(each.to_bytes(8, "little") for each in hashes))


def _of_dataclass(key: Any) -> Any:
    compared = (field for field in dataclasses.fields(key) if field.compare)
    return (type(key).__qualname__, *(getattr(key, field.name) for field in compared))


def _refuse_dataclass(key: Any) -> Any:
    kind = type(key)
    raise TypeError(
        f"{kind.__module__}.{kind.__qualname__} has no stable hash: it is a dataclass that may change; "
        "declare it with @dataclass(frozen=True), or say which key stands for it with pointstamp.register_key"
    )


_BY_NAME: dict[str, Callable[[Any], Hashable]] = {
    "datetime.date": _of_date,
    "datetime.datetime": _of_datetime,
    "datetime.time": _of_time,
    "datetime.timedelta": _of_timedelta,
    "decimal.Decimal": _of_decimal,
    "fractions.Fraction": _of_fraction,
    "uuid.UUID": _of_uuid,
    "enum.Flag": _of_flag,
    "enum.Enum": _of_enum,
    "builtins.frozenset": _of_frozenset,
    "numpy.generic": _of_numpy,
    "pandas._libs.tslibs.nattype.NaTType": _of_nat,  # a datetime that has no parts
}
