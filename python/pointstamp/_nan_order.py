"""The order of records in which NaN is the greatest number, as collections have it.

Python has no order for NaN, so the result of `sorted` and `max` depends on the order of arrival.
"""

from __future__ import annotations

from typing import Any

__all__ = ["comparable", "is_greater", "is_less", "key_function"]


class _Greatest:
    """Greater than everything but itself."""

    __slots__ = ()

    def __lt__(self, other: object) -> bool:
        return False

    def __gt__(self, other: object) -> bool:
        return other is not self

    def __le__(self, other: object) -> bool:
        return other is self

    def __ge__(self, other: object) -> bool:
        return True


_GREATEST = _Greatest()


def comparable(value: Any) -> Any:
    """Replaces NaN, also in tuples, by a value that is equal to itself and greater than all others."""
    if isinstance(value, float):
        return value if value == value else _GREATEST
    if isinstance(value, tuple):
        return tuple(map(comparable, value))
    return value


def key_function(by: Any) -> Any:
    """Returns the key for `sorted`: a record, or the result of `by`, with NaN as the greatest."""
    return comparable if by is None else lambda record: comparable(by(record))


def is_greater(value: Any, other: Any) -> bool:
    """Whether a value is greater than another."""
    if value > other:
        return True
    # Where neither is before the other and they differ, there is a NaN, or they have no order.
    return bool(value != other and not value < other and comparable(value) > comparable(other))


def is_less(value: Any, other: Any) -> bool:
    """Whether a value is less than another."""
    if value < other:
        return True
    return bool(value != other and not value > other and comparable(value) < comparable(other))
