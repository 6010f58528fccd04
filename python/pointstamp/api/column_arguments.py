"""Arguments that name columns: keys, and aggregates."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pointstamp._core import Aggregate, Expr
from pointstamp._validation import count_of
from pointstamp.errors import GraphError

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

__all__ = ["OF_COLLECTIONS", "Aggregates", "for_each", "key_names", "no_aggregate", "part_name"]


def key_names(by: str | Sequence[str]) -> list[str]:
    """The names of a key's columns.

    Raises:
        TypeError: If it is something else, such as a function.
    """
    if callable(by):
        raise TypeError("a key of columns is the name of a column, or several, not a function: add a column")
    if not isinstance(by, str) and not hasattr(by, "__iter__"):
        raise TypeError(f"a key is the name of a column, or several, not {by!r}")
    given = [by] if isinstance(by, str) else list(by)
    for name in given:
        if not isinstance(name, str):
            raise TypeError(f"a key is the name of a column, or several, not {name!r}")
    return given


class Aggregates:
    """The aggregates of a call, checked, with the expressions that have to be computed before.

    Args:
        call: The method that takes them.
        given: The aggregates by the names of their columns.
        columns: The columns of the rows.
        name: The operator's name, which the call takes by the keyword ``name``.
        beside: Functions of collections alone, if the call is of one.

    Attributes:
        call: The method that takes them.
        computed: Expressions that are no columns, by the names of the columns that they become.
        columns: Of each aggregate its name, the column that it is computed of, and the function as the
            extension calls it. An aggregate of rows has the first column.

    Raises:
        TypeError: If something is no aggregate.
        ValueError: For a number of values less than 1, or a share that is not from 0 to 1.
    """

    __slots__ = ("call", "columns", "computed")

    def __init__(
        self,
        call: str,
        given: Mapping[str, Any],
        columns: Sequence[str],
        name: Any = None,
        *,
        beside: tuple[str, ...] = (),
    ) -> None:
        if isinstance(name, Aggregate):
            raise TypeError(
                f"{call} takes the operator's name by `name`, not an aggregate: give the column another "
                "name, and rename() it afterwards"
            )
        self.call = call
        self.computed: dict[str, Expr] = {}
        self.columns: list[tuple[str, str, str]] = []
        for title, aggregate in given.items():
            if not isinstance(aggregate, Aggregate):
                raise TypeError(no_aggregate(call, title, aggregate))
            _check_function(call, aggregate, beside)
            self.columns.append((title, self._column(aggregate.of, columns), _function(aggregate)))

    def check_any(self) -> None:
        """Refuses a call without aggregates.

        Raises:
            GraphError: If there is none.
        """
        if not self.columns:
            raise GraphError(f"{self.call} needs an aggregate or more, such as total=ps.col('price').sum()")

    def _column(self, of: Expr | None, columns: Sequence[str]) -> str:
        """The column that an aggregate is computed of."""
        if of is None:
            return columns[0] if columns else ""
        if of._column is not None:
            return of._column
        title = repr(of)
        while title in columns:
            title += "'"
        self.computed[title] = of
        return title


_OF_ROWS = ("row_number", "rank", "dense_rank", "lag", "lead")
"""Functions that have a value for each row."""

OF_COLLECTIONS = ("var", "std")
"""Aggregates that collections have and streams do not."""


def _check_function(call: str, aggregate: Aggregate, beside: tuple[str, ...]) -> None:
    """Refuses functions that are not of groups, or not of this call."""
    if aggregate.function in _OF_ROWS:
        raise GraphError(
            f"{aggregate!r} has a value for each row, {call} one of all: write over() of a collection"
        )
    if aggregate.function in OF_COLLECTIONS and aggregate.function not in beside:
        raise GraphError(
            f"{call} of a stream has no {aggregate.function}: make a collection of it by to_collection()"
        )


def for_each(name: str, given: bool | Sequence[bool], columns: Sequence[str]) -> list[bool]:
    """A truth value for each of some columns.

    Raises:
        ValueError: If there are not as many as columns.
    """
    found = [given] * len(columns) if isinstance(given, bool) else [bool(one) for one in given]
    if len(found) != len(columns):
        raise ValueError(f"{name} has {len(found)} values, and the order {len(columns)} columns")
    return found


def _function(aggregate: Aggregate) -> str:
    """The function of an aggregate, as the extension calls it."""
    if aggregate.of is None:
        return "rows"
    if aggregate.function in OF_COLLECTIONS:
        return f"{aggregate.function}_{aggregate.argument}"
    if aggregate.function == "top_k":
        return f"top_{count_of('top_k takes a number of values', aggregate.argument)}"
    if aggregate.function == "quantile":
        share = aggregate.argument
        if isinstance(share, bool) or not isinstance(share, int | float):
            raise TypeError(f"quantile takes a share from 0 to 1, not {share!r}")
        if not 0 <= share <= 1:
            raise ValueError(f"{share} is not a quantile: it is a share, from 0 to 1")
        return f"quantile_{share!r}"
    return aggregate.function


def no_aggregate(call: str, title: str, given: Any) -> str:
    """The message for something that is no aggregate."""
    hint = f"write {title}=ps.col('price').sum(), or {title}=ps.count() for the number of rows"
    if isinstance(given, Expr):
        hint = f"it has a value for each row: write {title}={given!r}.sum(), .max(), .collect(), ..."
    elif type(given).__module__.startswith(("polars", "pyarrow")):
        hint = f"compute its column by with_columns or select, and write {title}=ps.col(column).sum()"
    elif isinstance(given, str):
        hint = f"write {title}=ps.col({given!r}).sum(), .max(), .collect(), ..."
    return f"{call} takes aggregates of expressions, and {title} is {given!r}: {hint}"


def part_name(name: str | None, part: str) -> str | None:
    """Returns the name of a part of a named call; None where it has no name."""
    return None if name is None else f"{name}: {part}"
