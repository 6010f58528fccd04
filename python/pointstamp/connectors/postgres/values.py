"""Python's values of the texts that a server sends, the same in the snapshot and in changes.

A column of a domain has its base type's values, and an array of a domain those of an array of the base type:
the server names the base type in the results of queries, and the domain in changes. A value that Python's
type cannot hold (``date 'infinity'``, years before 1 or after 9999) is an error that names the table, the
column and the row, or the server's text where the program has requested it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pointstamp.connectors.postgres.stream import client
from pointstamp.errors import PointstampError

if TYPE_CHECKING:
    from collections.abc import Iterable

__all__ = ["OUT_OF_RANGE", "Field", "Values"]

OUT_OF_RANGE = ("raise", "text")
"""Kinds of treatment of values that Python's types cannot hold."""

FIRST_OWN = 16384
"""The least number of a type that is not the server's own."""

SHOWN = 100
"""Characters of a value that an error shows at most."""

BASES = """
with recursive base(oid, array_oid, of) as (
  select oid, typarray, typbasetype from pg_type where typtype = 'd'
  union all
  select b.oid, b.array_oid, t.typbasetype from base b join pg_type t on t.oid = b.of where t.typtype = 'd'
)
select b.oid::bigint, b.array_oid::bigint, b.of::bigint, t.typarray::bigint
from base b join pg_type t on t.oid = b.of where t.typtype <> 'd'
"""
"""Each domain and its array type, with the base type and the array type of that."""

Field = tuple[str, int, bool, Any]
"""A column's name, the number of its type, whether it is of the key, and the text of its value or None."""


class Values:
    """Makes rows of the texts of one server.

    Args:
        out_of_range: "raise" or "text": the treatment of values that Python's types cannot hold.
    """

    def __init__(self, out_of_range: str = "raise") -> None:
        self._as_text = out_of_range == "text"
        self._bases: dict[int, int] = {}
        self._known: set[int] = set()
        self._transformer: Any = None

    def of(self, connection: Any) -> None:
        """Converts values as this connection sends them: its settings determine the text of dates."""
        self._transformer = client().adapt.Transformer(connection)

    def learn(self, connection: Any) -> None:
        """Looks up the base types of all domains, over a connection for queries."""
        for domain, array, base, array_of_base in connection.execute(BASES).fetchall():
            self._bases[domain] = base
            if array and array_of_base:
                self._bases[array] = array_of_base

    def unknown(self, types: Iterable[int]) -> bool:
        """Whether a type may be a domain that was made since the last look; each type is unknown once."""
        own = {number for number in types if number >= FIRST_OWN}
        new = own - self._known - self._bases.keys()
        self._known |= own
        return bool(new)

    def has_base(self, number: int) -> bool:
        """Whether a type is a domain, or an array of one."""
        return number in self._bases

    def row(self, table: str, fields: list[Field]) -> dict[str, Any]:
        """The row of a table, with Python's values.

        Raises:
            PointstampError: If Python's type cannot hold a value, and no text was asked for.
        """
        row: dict[str, Any] = {}
        for name, number, _, text in fields:
            if text is None:
                row[name] = None
                continue
            kind = self._bases.get(number, number)
            loader = self._transformer.get_loader(kind, client().pq.Format.TEXT)
            try:
                row[name] = loader.load(bytes(text))  # ends with a zero: psycopg's errors show more else
            except Exception as error:
                if not self._as_text:
                    raise _unfit(table, name, fields, text, error) from error
                row[name] = bytes(text).decode(errors="replace")
        return row


def _unfit(table: str, name: str, fields: list[Field], text: Any, error: Exception) -> PointstampError:
    key = ", ".join(f"{column}={_shown(value)}" for column, _, of_key, value in fields if of_key)
    row = f"the row with {key}" if key else "a row of a table without a key"
    return PointstampError(
        f"column {name!r} of table {table}, in {row}: Python's type cannot hold the value {_shown(text)!r} "
        f"({type(error).__name__}: {error}). PostgresSource(..., out_of_range='text') reads such values as "
        "the server writes them; a publication of some columns or rows leaves them out"
    )


def _shown(text: Any) -> str:
    if text is None:
        return "null"
    shown = bytes(text).decode(errors="replace")
    return shown if len(shown) <= SHOWN else f"{shown[:SHOWN]}..."
