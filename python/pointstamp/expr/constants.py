"""Constants of the types that columns have and records do not: dates, timestamps, durations and decimals."""

from __future__ import annotations

import sys
from datetime import date, datetime, timedelta, timezone
from decimal import Decimal
from typing import TYPE_CHECKING, Any

from pointstamp import _core

if TYPE_CHECKING:
    from pointstamp._core import Expr

__all__ = ["typed_constant"]

_EPOCH_DAY = date(1970, 1, 1).toordinal()
_EPOCH = datetime(1970, 1, 1)
_MICROSECOND = timedelta(microseconds=1)
_MOST_DIGITS = 38


def typed_constant(value: Any) -> Expr | None:
    """Returns the constant of a date, a time, a duration, a decimal or a scalar of pyarrow; None for others.

    Raises:
        ValueError: For a decimal that is not finite or has more than 38 digits.

    Examples:
        >>> from datetime import date
        >>> import pointstamp as ps
        >>> ps.col("day") < date(1970, 1, 3)
        (col("day") < 2:Date32)
    """
    if isinstance(value, datetime):
        if value.tzinfo is None:
            return _typed("Timestamp(µs)", (value - _EPOCH) // _MICROSECOND)
        moment = value.astimezone(timezone.utc).replace(tzinfo=None)
        return _typed('Timestamp(µs, "UTC")', (moment - _EPOCH) // _MICROSECOND)
    if isinstance(value, date):
        return _typed("Date32", value.toordinal() - _EPOCH_DAY)
    if isinstance(value, timedelta):
        return _typed("Duration(µs)", value // _MICROSECOND)
    if isinstance(value, Decimal):
        return _decimal(value)
    arrow = sys.modules.get("pyarrow")
    if arrow is not None and isinstance(value, arrow.Scalar):
        plain = value.as_py()
        constant = typed_constant(plain)
        return _core.literal_expr(plain) if constant is None else constant
    return None


def _decimal(value: Decimal) -> Expr:
    sign, digits, exponent = value.as_tuple()
    if not isinstance(exponent, int):
        raise ValueError(f"{value} is no number: a decimal in an expression is finite")
    number = int("".join(map(str, digits))) * 10 ** max(exponent, 0)
    scale = max(-exponent, 0)
    precision = max(len(str(number)), scale, 1)
    if precision > _MOST_DIGITS:
        raise ValueError(f"{value} has more than {_MOST_DIGITS} digits, which no decimal column holds")
    return _typed(f"Decimal128({precision}, {scale})", -number if sign else number)


def _typed(kind: str, plain: int) -> Expr:
    return _core.call_expr("typed", kind, [plain])
