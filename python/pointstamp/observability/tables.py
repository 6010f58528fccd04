"""Tables on the live page: the first rows of collections, and their numbers, as they are now.

Owns `ShownTable`, which a worker's operators change and the page's thread reads, and the list of those that
there are. A table is on the page of the process whose worker 0 has it, as long as its dataflow lives.
"""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Any
from weakref import WeakSet

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    import pyarrow as pa

    from pointstamp.logic.ordered_rows import Ordered

__all__ = ["Kept", "ShownTable", "tables"]

LONGEST = 80
"""The characters of a value that the page shows."""

_shown: WeakSet[ShownTable] = WeakSet()
_lock = threading.Lock()


class Kept:
    """The rows that an operator has got, with their counts; the state of the operator."""

    def __init__(self) -> None:
        self.rows: dict[str, tuple[Any, int]] = {}

    def snapshot(self) -> Iterable[Any]:
        """Returns the rows."""
        return self.rows.items()

    def restore(self, pairs: Iterable[Any], version: int) -> None:
        """Takes rows back."""
        self.rows.update(pairs)

    def change(self, batch: pa.RecordBatch) -> None:
        """Takes updates: rows, with their times and diffs in the last two columns."""
        rows = dict(self.rows)
        columns = [column.to_pylist() for column in batch.columns]
        for *row, _, diff in zip(*columns, strict=True):
            key = repr(row)
            count = rows.pop(key, (row, 0))[1] + diff
            if count:
                rows[key] = row, count
        self.rows = rows  # at once: the page reads it meanwhile


class ShownTable:
    """The first rows of a collection, and the number of all.

    Args:
        name: The table's name on the page.
        schema: The columns.
        order: The columns that the rows are ordered by.
        hidden: Columns that are there for the order alone.
    """

    __slots__ = ("__weakref__", "_count", "_hidden", "_name", "_order", "_rows", "_schema")

    def __init__(self, name: str, schema: pa.Schema, order: list[Ordered], hidden: list[str]) -> None:
        self._name, self._schema, self._order, self._hidden = name, schema, order, hidden
        self._rows = self._count = Kept()
        with _lock:
            _shown.add(self)

    def constructor(self, counts: bool) -> Callable[[Any], Callable[[Any], None]]:
        """Returns the constructor of the operator that takes the first rows, or the number of all."""

        def construct(info: Any) -> Callable[[Any], None]:
            if counts:
                self._count = info.state
            else:
                self._rows = info.state

            def logic(given: Any) -> None:
                kept = self._count if counts else self._rows
                for _, batch in given:
                    kept.change(batch)

            return logic

        return construct

    def data(self) -> dict[str, Any] | None:
        """Returns the table for JSON; None where this worker has got nothing of it."""
        import pyarrow as pa

        from pointstamp.logic.ordered_rows import in_order

        numbers = list(self._count.rows.values())
        if not numbers:
            return None
        rows = list(self._rows.rows.values())
        values = [*zip(*(row for row, _ in rows), strict=True)] or [()] * len(self._schema)
        arrays = [pa.array(column, field.type) for column, field in zip(values, self._schema, strict=True)]
        counts = pa.array([count for _, count in rows], pa.int64())
        schema = self._schema.append(pa.field("#", pa.int64()))
        batch = pa.RecordBatch.from_arrays([*arrays, counts], schema=schema)
        first = in_order(self._schema, [batch], self._order, self._hidden)
        return {
            "name": self._name,
            "columns": first.column_names,
            "rows": [[_text(value) for value in row.values()] for row in first.to_pylist()],
            "count": numbers[-1][0][0],
        }


def _text(value: Any) -> str:
    text = "" if value is None else str(value)
    return text if len(text) <= LONGEST else text[: LONGEST - 1] + "…"


def tables() -> list[dict[str, Any]]:
    """The tables of this process, by name, for JSON."""
    with _lock:
        known = list(_shown)
    found = [data for data in (table.data() for table in known) if data is not None]
    return sorted(found, key=lambda one: str(one["name"]))
