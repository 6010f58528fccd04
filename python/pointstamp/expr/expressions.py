"""Expressions over columns and over the parts of records, which run without calling Python.

Methods of columns take expressions of columns by name, such as ``col("amount") > 1``; methods of collections
of records take expressions of a record's parts in place of a function: `record` in `map` and `filter`; `key`,
`left` and `right` in `join`. A tuple of expressions makes a new record. An expression is evaluated in Rust,
for many rows at a time.

* Parts of tuples, from 0 on: ``record[0]``, ``left[1][0]``.
* ``+ - * /`` of bools, floats and ints of 64 bits; a result that does not fit is an `OverflowError`.
* Comparisons, of any values. They follow the order in which collections keep records: values of one type
  compare as in Python, and values of unlike types by their types, without a `TypeError`. None is before all
  others and equal to itself. NaN is equal to itself and greater than all other numbers.
* ``&``, ``|`` and ``~`` of comparisons, each in parentheses.
* ``record[1].is_null()``: whether a value is None, or a column is null.

Beside columns, constants are dates, timestamps, durations and decimals, too, and there are functions of
text, dates and numbers (``col("name").lower()``), casts, and `case` and `coalesce`. Types are those of SQL:
a product of decimals adds their scales, a quotient is a double, a date and an interval are a timestamp. A
division by 0 is null. A result that does not fit its type is an `OverflowError`, and a cast without a value a
`ValueError`, unless the row is gone when the updates of its time are added up.

Over columns a null is unknown, as in SQL: calculations and comparisons with a null are null, ``&`` and ``|``
of it are null unless the other side decides, and `filter` drops a row whose condition is null.

``aggregate``, ``window`` and ``running`` of columns take aggregates of expressions: the values of an
expression in all rows of a group, made one value.

* ``col("x").sum()``, ``.mean()``, ``.min()``, ``.max()``, ``.count()``; `count` counts rows.
* ``.first()``, ``.last()``, ``.collect()``, ``.distinct_count()``, ``.median()``, ``.quantile(share)`` and
  ``.top_k(n)`` keep the values of a group until it is complete. Streams of columns have them.

Nulls are skipped, but by `count` and ``collect``. Of no values, a count is 0 and the
others are null.

Methods of columns take the expressions of pyarrow (``pc.field("n") > 1``) and Polars (``pl.col("n") > 1``),
too.

Examples:
    >>> import pointstamp as ps
    >>> from pointstamp import left, record, right
    >>> def build(scope):
    ...     parents = scope.collection([("ann", "bea"), ("bea", "cy"), ("cy", "di")])
    ...     children = parents.map((record[1], record[0]))
    ...     return children.join(parents, (left, right)).filter(record[0] != "bea").capture()
    >>> ps.example(build).extract()
    [(0, [(('ann', 'cy'), 1)])]
"""

from __future__ import annotations

from typing import Any

from pointstamp import _core
from pointstamp._core import Aggregate, Expr

__all__ = ["Aggregate", "Expr", "col", "count", "key", "left", "lit", "record", "right"]

record: Expr = _core.source_expr("record")
"""The record, in `Collection.map` and `Collection.filter`."""
key: Expr = _core.source_expr("key")
"""The key of two records that are joined."""
left: Expr = _core.source_expr("left")
"""The value that the collection has for the key, in a join."""
right: Expr = _core.source_expr("right")
"""The value that the other collection has for the key, in a join."""


def col(name: str) -> Expr:
    """Returns the column of a name.

    Examples:
        >>> import pyarrow as pa
        >>> import pointstamp as ps
        >>> def build(scope):
        ...     prices = scope.to_stream(pa.table({"price": [3, 5], "limit": [4, 4]}))
        ...     return prices.filter(ps.col("price") < ps.col("limit")).to_records().capture()
        >>> ps.example(build).extract()
        [(0, [{'price': 3, 'limit': 4}])]
    """
    return _core.column_expr(name)


def lit(value: Any) -> Expr:
    """Returns an expression that is one value for every row or record.

    Examples:
        >>> import pointstamp as ps
        >>> ps.lit(1) - ps.col("share")
        (1 - col("share"))
    """
    return _core.literal_expr(value)


def count() -> Aggregate:
    """Returns the aggregate that counts rows; ``col(name).count()`` counts values that are not null.

    Examples:
        >>> import pyarrow as pa
        >>> import pointstamp as ps
        >>> def build(scope):
        ...     rain = scope.to_stream(pa.table({"city": ["Ulm", "Ulm"], "mm": [3, None]}))
        ...     days = rain.aggregate("city", days=ps.count(), measured=ps.col("mm").count())
        ...     return days.to_records().capture()
        >>> ps.example(build).extract()
        [(0, [{'city': 'Ulm', 'days': 2, 'measured': 1}])]
    """
    return _core.aggregate_expr("count")
