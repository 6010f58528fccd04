"""Tables of a query: collections of columns, or data that becomes such."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pointstamp.api.column_collection import ColumnCollection
from pointstamp.errors import GraphError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pointstamp.api.scope import Scope

__all__ = ["collections_of"]


def collections_of(scope: Scope, tables: Mapping[str, Any]) -> dict[str, ColumnCollection]:
    """Returns a collection in a scope for each table.

    Raises:
        GraphError: If there is no table, or a collection is of another scope.
        TypeError: If something has no columns.
    """
    if not tables:
        raise GraphError("a query reads tables: give them by name, as in sql(query, orders=orders)")
    found = {}
    for name, given in tables.items():
        if isinstance(given, ColumnCollection):
            if given.scope is not scope:
                raise GraphError(f"table {name!r} is a collection of another scope: use enter() or leave()")
            found[name] = given
        elif hasattr(given, "to_collection"):
            raise TypeError(f"table {name!r} is a stream: make a collection of its rows by to_collection()")
        else:
            found[name] = scope.column_collection(given, name=name)
    return found
