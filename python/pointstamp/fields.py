"""Parts of records, and what is computed of them, without calling Python.

Where a method of `Collection` takes a function of a record, it takes an expression over the record's parts
as well: `record[1]` for a part, `record[1] + 1` for what is computed of it, a tuple of such for a new record.
An expression is applied in Rust, to many records at a time; records of integers are never made objects of.

What there is depends on the operator: `record` in `map` and `filter`; `key`, `left` and `right` in `join`;
and columns by name, `col("amount")`, in collections of columns.

* Parts of tuples, from 0 on: ``record[0]``, ``left[1][0]``.
* ``+ - * /`` of bools, floats and ints of 64 bits; a result that does not fit is an `OverflowError`.
* Comparisons, of any values. They follow the order in which collections keep records: values of one type
  compare as Python does, and those of unlike types by their types, without a `TypeError`. None is before all
  others and equal to itself. NaN is equal to itself and greater than all other numbers.
* ``&``, ``|`` and ``~`` of comparisons, each in parentheses.
* ``record[1].is_null()``: whether a value is None, or a column is null.

In collections of columns a null is unknown, as in SQL: what is calculated of it or compared with it is
null, ``&`` and ``|`` of it are null unless the other side decides, and `filter` drops a row whose condition
is null.

Examples:
    >>> import pointstamp as ps
    >>> from pointstamp.fields import left, record, right
    >>> def build(scope):
    ...     parents = scope.collection([("ann", "bea"), ("bea", "cy"), ("cy", "di")])
    ...     children = parents.map((record[1], record[0]))
    ...     return children.join(parents, (left, right)).filter(record[0] != "bea").capture()
    >>> ps.example(build).extract()
    [(0, [(('ann', 'cy'), 1)])]
"""

from __future__ import annotations

from pointstamp import _core
from pointstamp._core import Field

__all__ = ["Field", "col", "key", "left", "record", "right"]

record: Field = _core.source_field("record")
"""The record, in `Collection.map` and `Collection.filter`."""
key: Field = _core.source_field("key")
"""The key of two records that are joined."""
left: Field = _core.source_field("left")
"""The value that the collection has for the key, in a join."""
right: Field = _core.source_field("right")
"""The value that the other collection has for the key, in a join."""


def col(name: str) -> Field:
    """The column of a name, of a collection of columns."""
    return _core.column_field(name)
