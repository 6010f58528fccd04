"""Expressions of a query as expressions of columns."""

from __future__ import annotations

import re
from decimal import Decimal
from typing import TYPE_CHECKING, Any

from pointstamp import _core
from pointstamp.expr.functions import case, coalesce
from pointstamp.queries.parsing import DIALECT, check_parts, key_of, refuse
from pointstamp.queries.places import note

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from sqlglot import exp

    from pointstamp._core import Expr

__all__ = ["Scalars"]

_UNITS = {
    "YEAR": (12, 0, 0),
    "QUARTER": (3, 0, 0),
    "MONTH": (1, 0, 0),
    "WEEK": (0, 7, 0),
    "DAY": (0, 1, 0),
    "HOUR": (0, 0, 3_600_000_000),
    "MINUTE": (0, 0, 60_000_000),
    "SECOND": (0, 0, 1_000_000),
}
"""Months, days and microseconds of units of time."""

_WITHOUT_SECONDS = re.compile(r"^\d{4}-\d\d-\d\d[ T]\d\d:\d\d(?![:\d])")
"""A timestamp without seconds, as SQL allows it."""

_PARTS = {
    "DOW": "dayofweek",
    "DAYOFWEEK": "dayofweek",
    "DAYOFWEEKISO": "isodow",
    "DOY": "dayofyear",
    "WEEKISO": "week",
}
"""Parts of dates that expressions call by another name."""


class Scalars:
    """The translation of a query's expressions.

    Args:
        column: The name of the collection's column that a column of the query is.
        known: Columns that hold the values of parts of the query, such as aggregates, by their texts.
    """

    __slots__ = ("_column", "_known")

    def __init__(self, column: Callable[[exp.Column], str], known: Mapping[str, str]) -> None:
        self._column, self._known = column, known

    def of(self, node: exp.Expr) -> Expr:
        """Returns the expression of a part of a query.

        Raises:
            GraphError: If it is not covered.
        """
        made = self._value(node)
        return made if isinstance(made, _core.Expr) else _core.literal_expr(made)

    def _value(self, node: exp.Expr) -> Any:
        """The expression, or the constant, that a part of a query is."""
        made = self._translated(node)
        if isinstance(made, _core.Expr):
            note(made, node)
        return made

    def _translated(self, node: exp.Expr) -> Any:
        from sqlglot import exp

        if self._known and not isinstance(node, exp.Literal):
            found = self._known.get(key_of(node))
            if found is not None:
                return _core.column_expr(found)
        if isinstance(node, exp.Column):
            return _core.column_expr(self._column(node))
        for kind in type(node).__mro__:
            translate = _TRANSLATIONS.get(kind.__name__)
            if translate is not None:
                check_parts(node, "this", "expression", "expressions", *_PARTS_OF.get(kind.__name__, ()))
                return translate(self, node)
        name = node.sql_name() if isinstance(node, exp.Func) else type(node).__name__
        return refuse(
            node,
            f"{node.sql(DIALECT)} is not covered ({name}): the page on SQL lists the functions; compute "
            "others before the rows become a collection, by with_columns of a stream, and name the column "
            "here",
        )


def _binary(apply: Callable[[Any, Any], Any]) -> Callable[[Scalars, Any], Any]:
    def translate(self: Scalars, node: Any) -> Any:
        return apply(self.of(node.this), self._value(node.expression))

    return translate


def _method(name: str) -> Callable[[Scalars, Any], Any]:
    def translate(self: Scalars, node: Any) -> Any:
        return getattr(self.of(node.this), name)()

    return translate


def _literal(_: Scalars, node: Any) -> Any:
    text = node.this
    if node.is_string:
        return text
    if "e" in text.lower():
        return float(text)
    if "." in text or len(text) > 18:
        return _core.literal_expr(Decimal(text))
    return int(text)


def _cast(self: Scalars, node: Any, *, attempt: bool = False) -> Any:
    import pyarrow as pa

    kind = arrow_type(node.to)
    function = "try_cast" if attempt else "cast"
    of = self.of(node.this)
    if pa.types.is_timestamp(kind) and node.this.key == "literal" and node.this.is_string:
        of = _core.literal_expr(_WITHOUT_SECONDS.sub(r"\g<0>:00", node.this.name))
    return _core.call_expr(function, _core.expr_type(kind), [of])


def arrow_type(node: Any) -> Any:
    """The type of columns that a type of SQL is.

    Raises:
        GraphError: If there is none.
    """
    import pyarrow as pa
    from sqlglot import exp

    kinds = exp.DataType.Type
    kind = node.this
    if kind in {kinds.DECIMAL, kinds.BIGDECIMAL}:
        given = [int(part.name) for part in node.expressions] or [18, 3]
        return pa.decimal128(given[0], given[1] if len(given) > 1 else 0)
    plain = {
        "BOOLEAN": pa.bool_(),
        "TINYINT": pa.int8(),
        "SMALLINT": pa.int16(),
        "INT": pa.int32(),
        "BIGINT": pa.int64(),
        "UTINYINT": pa.uint8(),
        "USMALLINT": pa.uint16(),
        "UINT": pa.uint32(),
        "UBIGINT": pa.uint64(),
        "INT128": pa.decimal128(38, 0),
        "FLOAT": pa.float32(),
        "DOUBLE": pa.float64(),
        "DATE": pa.date32(),
        "DATETIME": pa.timestamp("us"),
        "TIMESTAMP": pa.timestamp("us"),
        "TIMESTAMPNTZ": pa.timestamp("us"),
        "TIMESTAMPTZ": pa.timestamp("us", "UTC"),
        "TEXT": pa.large_string(),
        "VARCHAR": pa.large_string(),
        "CHAR": pa.large_string(),
        "BLOB": pa.large_binary(),
        "VARBINARY": pa.large_binary(),
    }
    name = kind.name
    if name not in plain:
        refuse(node, f"type {node.sql(DIALECT)} is not covered: columns are of {', '.join(_TYPES)}")
    return plain[name]


_TYPES = ("BOOLEAN", "integers", "DOUBLE", "DECIMAL", "DATE", "TIMESTAMP", "VARCHAR", "BLOB")


def _sum(sign: int) -> Callable[[Scalars, Any], Any]:
    """A sum or difference, of which one side may be an interval."""

    def translate(self: Scalars, node: Any) -> Any:
        from sqlglot import exp

        left, right = node.this.unnest(), node.expression.unnest()
        if isinstance(right, exp.Interval):
            return _later(self.of(left), right, sign)
        if isinstance(left, exp.Interval) and sign > 0:
            return _later(self.of(right), left, sign)
        a, b = self.of(node.this), self._value(node.expression)
        return a + b if sign > 0 else a - b

    return translate


def _later(of: Expr, interval: Any, sign: int) -> Expr:
    unit = interval.args.get("unit")
    name = "" if unit is None else unit.name.upper().removesuffix("S")
    number = _whole(interval.this)
    if number is None or name not in _UNITS:
        return refuse(interval, "an interval is a whole number of years to seconds, as in INTERVAL '3' MONTH")
    months, days, microseconds = (sign * number * part for part in _UNITS[name])
    return of.add_interval(months=months, days=days, microseconds=microseconds)


def _case(self: Scalars, node: Any) -> Any:
    branches = []
    for branch in node.args["ifs"]:
        condition = self.of(branch.this)
        if node.this is not None:
            condition = self.of(node.this) == condition
        branches.append((condition, self._value(branch.args["true"])))
    default = node.args.get("default")
    return case(*branches, default=None if default is None else self._value(default))


def _if(self: Scalars, node: Any) -> Any:
    default = node.args.get("false")
    value = None if default is None else self._value(default)
    return case((self.of(node.this), self._value(node.args["true"])), default=value)


def _coalesce(self: Scalars, node: Any) -> Any:
    return coalesce(*(self._value(part) for part in (node.this, *node.expressions)))


def _null_if(self: Scalars, node: Any) -> Any:
    value = self.of(node.this)
    return case((value == self._value(node.expression), None), default=value)


def _in(self: Scalars, node: Any) -> Any:
    if node.args.get("query") is not None or node.args.get("unnest") is not None:
        refuse(node, "IN takes values or a subquery in WHERE, HAVING, CASE and SELECT")
    return self.of(node.this).is_in([self._value(part) for part in node.expressions])


def _between(self: Scalars, node: Any) -> Any:
    value = self.of(node.this)
    return (value >= self._value(node.args["low"])) & (value <= self._value(node.args["high"]))


def _is(self: Scalars, node: Any) -> Any:
    import pyarrow as pa
    from sqlglot import exp

    other = node.expression
    if isinstance(other, exp.Null):
        return self.of(node.this).is_null()
    if isinstance(other, exp.Boolean):
        truth = _core.call_expr("cast", _core.expr_type(pa.bool_()), [self.of(node.this)])
        return coalesce(truth == bool(other.this), False)
    return refuse(node, "IS takes NULL, TRUE and FALSE: write = for other values")


def _distinct_from(alike: bool) -> Callable[[Scalars, Any], Any]:
    def translate(self: Scalars, node: Any) -> Any:
        a, b = self.of(node.this), self.of(node.expression)
        both = a.is_null() & b.is_null()
        same = coalesce(a == b, False) | both
        return same if alike else ~same

    return translate


def _substring(self: Scalars, node: Any) -> Any:
    start, length = node.args.get("start"), node.args.get("length")
    numbers = [None if part is None else _whole(part) for part in (start, length)]
    if None in (numbers[0], 0 if length is None else numbers[1]):
        refuse(node, "the start and the length of a substring are whole numbers, as in substring(name, 1, 2)")
    first, count = numbers
    assert first is not None
    if count is not None and count < 0:
        refuse(node, "the length of a substring is not negative")
    return self.of(node.this).substr(first, count)


def _whole(node: Any) -> int | None:
    """The whole number that a part of a query is."""
    if node.key == "neg":
        inner = _whole(node.this)
        return None if inner is None else -inner
    try:
        return int(node.name) if node.key == "literal" else None
    except ValueError:
        return None


def _extract(self: Scalars, node: Any) -> Any:
    part = node.this.name.upper()
    name = _PARTS.get(part, part.lower())
    try:
        return self.of(node.expression).extract(name)
    except ValueError as error:
        return refuse(node, str(error))


def _part(name: str) -> Callable[[Scalars, Any], Any]:
    def translate(self: Scalars, node: Any) -> Any:
        of = node.this
        from sqlglot import exp

        if isinstance(of, (exp.TsOrDsToDate, exp.TsOrDsToTimestamp)):
            of = of.this
        return self.of(of).extract(name)

    return translate


def _truncate(self: Scalars, node: Any) -> Any:
    unit = node.args["unit"].name.lower()
    value = self.of(node.this)
    try:
        truncated = value.truncate(unit)
    except ValueError as error:
        return refuse(node, str(error))
    return truncated.add_interval()  # of a date, a timestamp


def _like(method: str) -> Callable[[Scalars, Any], Any]:
    def translate(self: Scalars, node: Any) -> Any:
        made = getattr(self.of(node.this), method)(self._value(node.expression))
        return ~made if node.args.get("negate") else made

    return translate


def _regexp(flags: str) -> Callable[[Scalars, Any], Any]:
    def translate(self: Scalars, node: Any) -> Any:
        pattern = node.expression
        if pattern.key != "literal":
            refuse(node, "a regular expression is a constant")
        return self.of(node.this).matches(flags + pattern.name)

    return translate


def _concat(self: Scalars, node: Any) -> Any:
    # concat() skips nulls, and || is null where a part is.
    from sqlglot import exp

    if isinstance(node, exp.DPipe):
        return _core.call_expr("concat", "", [self._value(node.this), self._value(node.expression)])
    return _core.call_expr("concat", "", [coalesce(self._value(part), "") for part in node.expressions])


def _round(self: Scalars, node: Any) -> Any:
    digits = node.args.get("decimals")
    number = 0 if digits is None else _whole(digits)
    if number is None or number < 0:
        refuse(node, "round takes a number of digits that is 0 or more, as in round(price, 2)")
    return self.of(node.this).round(number)


def _trim(self: Scalars, node: Any) -> Any:
    if node.args.get("expression") is not None:
        refuse(node, "trim takes spaces from both ends: take others away before the rows become a collection")
    return self.of(node.this).trim()


def _window(_: Scalars, node: Any) -> Any:
    return refuse(
        node,
        "a window function is computed after WHERE, GROUP BY and HAVING: write it in SELECT, in "
        "ORDER BY, or in QUALIFY",
    )


def _most(greatest: bool) -> Callable[[Scalars, Any], Any]:
    def translate(self: Scalars, node: Any) -> Any:
        best, *others = [self.of(part) for part in (node.this, *node.expressions)]
        for other in others:
            ahead = other > best if greatest else other < best
            best = case((best.is_null() | coalesce(ahead, False), other), default=best)
        return best

    return translate


_TRANSLATIONS: dict[str, Callable[[Scalars, Any], Any]] = {
    "Literal": _literal,
    "Boolean": lambda _, node: bool(node.this),
    "Null": lambda _, node: None,
    "Paren": lambda self, node: self._value(node.this),
    "Alias": lambda self, node: self._value(node.this),
    "Add": _sum(1),
    "Sub": _sum(-1),
    "Mul": _binary(lambda a, b: a * b),
    "Div": _binary(lambda a, b: a / b),
    "Mod": _binary(lambda a, b: a % b),
    "Neg": lambda self, node: -self.of(node.this),
    "EQ": _binary(lambda a, b: a == b),
    "NEQ": _binary(lambda a, b: a != b),
    "LT": _binary(lambda a, b: a < b),
    "LTE": _binary(lambda a, b: a <= b),
    "GT": _binary(lambda a, b: a > b),
    "GTE": _binary(lambda a, b: a >= b),
    "And": _binary(lambda a, b: a & b),
    "Or": _binary(lambda a, b: a | b),
    "Not": lambda self, node: ~self.of(node.this),
    "NullSafeEQ": _distinct_from(True),
    "NullSafeNEQ": _distinct_from(False),
    "Is": _is,
    "In": _in,
    "Between": _between,
    "Case": _case,
    "If": _if,
    "Coalesce": _coalesce,
    "Nullif": _null_if,
    "Cast": _cast,
    "TryCast": lambda self, node: _cast(self, node, attempt=True),
    "Like": _like("like"),
    "ILike": _like("ilike"),
    "StartsWith": _like("starts_with"),
    "EndsWith": _like("ends_with"),
    "Contains": _like("contains"),
    "RegexpLike": _regexp(""),
    "RegexpILike": _regexp("(?i)"),
    "Substring": _substring,
    "Lower": _method("lower"),
    "Upper": _method("upper"),
    "Trim": _trim,
    "Length": _method("length"),
    "DPipe": _concat,
    "Concat": _concat,
    "Extract": _extract,
    "Year": _part("year"),
    "Quarter": _part("quarter"),
    "Month": _part("month"),
    "Day": _part("day"),
    "DayOfMonth": _part("day"),
    "DayOfWeek": _part("dayofweek"),
    "DayOfYear": _part("dayofyear"),
    "Hour": _part("hour"),
    "Minute": _part("minute"),
    "Second": _part("second"),
    "TimestampTrunc": _truncate,
    "DateTrunc": _truncate,
    "Abs": _method("abs"),
    "Floor": _method("floor"),
    "Ceil": _method("ceil"),
    "Round": _round,
    "Greatest": _most(True),
    "Least": _most(False),
    "Window": _window,
}

_PARTS_OF: dict[str, tuple[str, ...]] = {
    "Literal": ("is_string",),
    "Between": ("low", "high"),
    "In": ("query", "unnest"),
    "Case": ("ifs", "default"),
    "If": ("true", "false"),
    "Cast": ("to", "safe"),
    "TryCast": ("to", "safe"),
    "Alias": ("alias",),
    "Like": ("negate",),
    "ILike": ("negate",),
    "Substring": ("start", "length"),
    "DPipe": ("safe",),
    "Concat": ("safe", "coalesce"),
    "TimestampTrunc": ("unit",),
    "DateTrunc": ("unit",),
    "Round": ("decimals",),
    "Greatest": ("ignore_nulls",),
    "Least": ("ignore_nulls",),
    "Div": ("typed", "safe"),
    "Trim": ("position",),
    "Window": ("partition_by", "order", "spec", "over", "alias", "first"),
}
"""The parts that nodes have besides their operands."""
