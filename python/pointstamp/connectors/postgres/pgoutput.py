"""Decodes changes as the server's plugin ``pgoutput`` sends them, in version 1 of its protocol.

Pure: bytes in, changes out. A transaction is a begin, its changes and a commit, and transactions come one
after another, in the order of their commits. A table is described before the first change to it.
"""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING, Any, NamedTuple

from pointstamp.errors import PointstampError

if TYPE_CHECKING:
    from collections.abc import Callable

    from pointstamp.connectors.postgres.values import Field, Values

__all__ = ["Begin", "Change", "Commit", "Decoder"]


class Change(NamedTuple):
    """A change to a row.

    Attributes:
        kind: "insert", "update", "delete" or "truncate"; "read" for a row that was there at first.
        table: The table, as ``schema.table``.
        row: The row's columns after the change; None where it was deleted. For an update that leaves a large
            value as it was, PostgreSQL does not send the value: it is taken from `old`, or missing.
        old: The row's columns before an update or a delete, as the server sends them: by default its key, for
            an update only if that changed; all columns where the table has ``replica identity full``. None if
            nothing is sent.
        lsn: The position in the log at which the change's transaction was committed. All changes of a
            transaction have the same, and later transactions a greater one. Rows of the initial snapshot have
            one that is less than all.

    Examples:
        >>> from pointstamp.connectors.postgres import Change
        >>> change = Change("insert", "public.orders", {"id": 1, "item": "tea"}, None, 24_023_128)
        >>> change.row["item"]
        'tea'
    """

    kind: str
    table: str
    row: dict[str, Any] | None
    old: dict[str, Any] | None
    lsn: int


class Begin(NamedTuple):
    """A transaction begins, which was committed at `lsn`."""

    lsn: int


class Commit(NamedTuple):
    """It is over, and `end` is behind it in the log."""

    end: int


class _Column(NamedTuple):
    name: str
    type: int
    key: bool


class _Table(NamedTuple):
    name: str
    columns: list[_Column]


class _Bytes:
    """Reads numbers and texts from a message."""

    def __init__(self, data: memoryview) -> None:
        self._data = data
        self._at = 0

    def numbers(self, form: str) -> tuple[Any, ...]:
        found = struct.unpack_from("!" + form, self._data, self._at)
        self._at += struct.calcsize("!" + form)
        return found

    def letter(self) -> str:
        (byte,) = self.numbers("B")
        return chr(byte)

    def text(self) -> str:
        end = self._at
        while self._data[end]:
            end += 1
        found = bytes(self._data[self._at : end]).decode()
        self._at = end + 1
        return found

    def bytes(self) -> memoryview:
        (length,) = self.numbers("I")
        if self._at + length > len(self._data):
            raise PointstampError("a change from the server is shorter than it says")
        found = self._data[self._at : self._at + length]
        self._at += length
        return found


class Decoder:
    """Decodes messages of one connection, which describes each table before it is used.

    Args:
        values: Makes rows of the texts of values.
        described: Called with the numbers of the types of a table's columns, before the first row of it.
    """

    def __init__(self, values: Values, described: Callable[[list[int]], None]) -> None:
        self._values = values
        self._described = described
        self._tables: dict[int, _Table] = {}
        self._lsn = 0

    def decode(self, message: memoryview) -> list[Begin | Commit | Change]:
        """Returns the changes of a message; nothing where it is no change.

        Raises:
            PointstampError: If it is none of the protocol, or a value that Python's type cannot hold is in
                it.
        """
        data = _Bytes(message)
        try:
            return self._decode(data.letter(), data)
        except (struct.error, IndexError, UnicodeDecodeError, KeyError) as error:
            kind = bytes(message[:1])
            raise PointstampError(
                f"a message of the server, of {len(message)} bytes and kind {kind!r}, cannot be decoded: it "
                "may be of a later version than 1 of the protocol pgoutput"
            ) from error

    def _decode(self, kind: str, data: _Bytes) -> list[Begin | Commit | Change]:
        if kind == "B":
            self._lsn, _, _ = data.numbers("QQI")
            return [Begin(self._lsn)]
        if kind == "C":
            _, _, end, _ = data.numbers("BQQQ")
            return [Commit(end)]
        if kind == "R":
            self._describe(data)
            return []
        if kind in "IUD":
            return [self._change(kind, data)]
        if kind == "T":
            count, _ = data.numbers("IB")
            names = [self._tables[number].name for number in data.numbers("I" * count)]
            return [Change("truncate", name, None, None, self._lsn) for name in names]
        if kind in "OYM":
            return []  # origins, types and messages of programs are no changes
        raise KeyError(kind)

    def _describe(self, data: _Bytes) -> None:
        (number,) = data.numbers("I")
        schema, name = data.text(), data.text()
        _, count = data.numbers("BH")
        columns = []
        for _ in range(count):
            (flags,) = data.numbers("B")
            column = data.text()
            oid, _ = data.numbers("Ii")
            columns.append(_Column(column, oid, bool(flags & 1)))
        self._described([column.type for column in columns])
        self._tables[number] = _Table(f"{schema}.{name}", columns)

    def _change(self, kind: str, data: _Bytes) -> Change:
        (number,) = data.numbers("I")
        table = self._tables[number]
        row = old = None
        letter = data.letter()
        if letter in "KO":
            old = self._row(table, data, letter == "K", None)
            letter = data.letter() if kind == "U" else ""
        if letter == "N":
            row = self._row(table, data, False, old)
        name = {"I": "insert", "U": "update", "D": "delete"}[kind]
        return Change(name, table.name, row, old, self._lsn)

    def _row(self, table: _Table, data: _Bytes, key: bool, old: dict[str, Any] | None) -> dict[str, Any]:
        (count,) = data.numbers("H")
        fields: list[Field] = []
        kept: dict[str, Any] = {}
        for column in table.columns[:count]:
            form = data.letter()
            if form == "t":
                fields.append((column.name, column.type, column.key, data.bytes()))
            elif form == "u":  # a large value that was not changed
                if old is not None and column.name in old:
                    kept[column.name] = old[column.name]
            elif form != "n":
                raise KeyError(form)
            elif not key or column.key:
                fields.append((column.name, column.type, column.key, None))
        row = self._values.row(table.name, fields)
        if not kept:
            return row
        return {
            column.name: kept[column.name] if column.name in kept else row[column.name]
            for column in table.columns[:count]
            if column.name in kept or column.name in row
        }
