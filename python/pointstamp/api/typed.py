"""Operators of the user's own, as type checkers see them for streams of records and of columns.

The methods are those of `CustomOperators`. The stub beside this file has the types of a port's records, and
of the result. The type of an operator's output is the type of the `OutputPort` that its logic is declared to
take: ``Callable[[InputPort[str], OutputPort[int]], None]`` makes a ``Stream[int]``.
"""

from typing import TypeVar

from pointstamp.api.custom_operators import CustomOperators

__all__ = ["ColumnOperators", "RecordOperators"]

T = TypeVar("T")


class RecordOperators(CustomOperators[T]):
    """Operators of a stream of records. Their output is a stream of records, too, unless it has a schema."""

    __slots__ = ()


class ColumnOperators(CustomOperators["pa.RecordBatch"]):  # type: ignore[name-defined]
    """Operators of a stream of columns. Their output is one, too, unless its schema is None."""

    __slots__ = ()
