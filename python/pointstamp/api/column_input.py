"""Changing a collection of columns from `main`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pointstamp import _core
from pointstamp._validation import suggesting
from pointstamp.api.collection_input import Changing
from pointstamp.logic.frames import with_columns

if TYPE_CHECKING:
    from pointstamp._core import InputHandle, ProbeHandle

__all__ = ["ColumnInput"]


@suggesting
class ColumnInput(Changing):
    """Changes a collection of columns from `main`. `Scope.new_collection` makes it for a schema.

    Data is a `pyarrow.RecordBatch` or `Table`, or another object with ``__arrow_c_array__`` or
    ``__arrow_c_stream__``: a data frame of pandas or Polars, a result of DuckDB. It has the schema's columns,
    in its order; text may have offsets of any width, and dictionaries. An `insert`, `remove` or `update` that
    raises an error for its data has changed nothing, also where only the last of many batches is refused.

    Examples:
        >>> import pyarrow as pa
        >>> import pointstamp as ps
        >>> def main(worker):
        ...     with worker.dataflow() as scope:
        ...         schema = pa.schema({"item": pa.string(), "n": pa.int64()})
        ...         stock, rows = scope.new_collection(schema=schema)
        ...         totals = rows.sum("n", by="item").capture()
        ...     stock.insert(pa.table({"item": ["tea", "rye", "tea"], "n": [1, 2, 3]}))
        ...     stock.close()
        ...     worker.run()
        ...     return [(time, changes.to_pylist()) for time, changes in totals.extract()]
        >>> ps.execute(main)
        [[(0, [{'item': 'rye', 'n': 2, 'diff': 1}, {'item': 'tea', 'n': 4, 'diff': 1}])]]
    """

    __slots__ = ("_columns",)

    def __init__(self, handle: InputHandle[Any], columns: _core.Schema, *, strict: bool = False) -> None:
        super().__init__(handle, strict=strict)
        self._columns = columns

    def insert(self, data: Any) -> None:
        """Adds every row of the data.

        Raises:
            TypeError: If the data has no columns, or other columns than the schema.
            PointstampError: If the input is closed.

        Examples:
            >>> import pyarrow as pa
            >>> import pointstamp as ps
            >>> def main(worker):
            ...     with worker.dataflow() as scope:
            ...         stock, rows = scope.new_collection(schema=pa.schema({"item": pa.string()}))
            ...         captured = rows.capture()
            ...     stock.insert(pa.table({"item": ["tea", "rye", "tea"]}))
            ...     stock.close()
            ...     worker.run()
            ...     return [(time, changes.to_pylist()) for time, changes in captured.extract()]
            >>> ps.execute(main)
            [[(0, [{'item': 'rye', 'diff': 1}, {'item': 'tea', 'diff': 2}])]]
        """
        _core.update_columns(self._handle, with_columns(data), self._columns, 1)

    def remove(self, data: Any) -> None:
        """Takes every row of the data away. A count may be below zero, unless the input is strict.

        Raises:
            TypeError: If the data has no columns, or other columns than the schema.
            ValueError: If the input is strict, and has added fewer.
            PointstampError: If the input is closed.

        Examples:
            >>> import pyarrow as pa
            >>> import pointstamp as ps
            >>> def main(worker):
            ...     with worker.dataflow() as scope:
            ...         stock, rows = scope.new_collection(schema=pa.schema({"item": pa.string()}))
            ...         captured = rows.capture()
            ...     stock.insert(pa.table({"item": ["tea", "rye"]}))
            ...     stock.remove(pa.table({"item": ["rye"]}))
            ...     stock.close()
            ...     worker.run()
            ...     return [(time, changes.to_pylist()) for time, changes in captured.extract()]
            >>> ps.execute(main)
            [[(0, [{'item': 'tea', 'diff': 1}])]]
        """
        _core.update_columns(self._handle, with_columns(data), self._columns, -1)

    def update(self, data: Any, diff: int) -> None:
        """Adds so many of every row of the data; takes them away where `diff` is negative.

        Raises:
            TypeError: If the data has no columns, or other columns than the schema.
            ValueError: If `diff` is 0, or the input is strict and has added fewer.
            PointstampError: If the input is closed.

        Examples:
            >>> import pyarrow as pa
            >>> import pointstamp as ps
            >>> def main(worker):
            ...     with worker.dataflow() as scope:
            ...         stock, rows = scope.new_collection(schema=pa.schema({"item": pa.string()}))
            ...         captured = rows.capture()
            ...     stock.update(pa.table({"item": ["tea", "rye"]}), 5)
            ...     stock.close()
            ...     worker.run()
            ...     return [(time, changes.to_pylist()) for time, changes in captured.extract()]
            >>> ps.execute(main)
            [[(0, [{'item': 'rye', 'diff': 5}, {'item': 'tea', 'diff': 5}])]]
        """
        if diff == 0:
            raise ValueError("an update of diff 0 changes nothing: leave it out")
        _core.update_columns(self._handle, with_columns(data), self._columns, diff)

    def play(
        self, data: Any, *, time: str = "time", diff: str | None = "diff", probe: ProbeHandle | None = None
    ) -> None:
        """Makes changes that bring their times along, in the order of times, as `CollectionInput.play` does.

        The data has the schema's columns and two more, of times and of diffs: the form of
        `ColumnCollection.updates`.

        Args:
            data: The changes; a `pyarrow.RecordBatchReader` is read batch by batch.
            time: The column of times: integers, and lists of the fixed size where times have several
                coordinates. It may be one of the schema's own.
            diff: The column of diffs, integers; None where each row is inserted once.
            probe: The probe that each time has to pass before the next is sent.

        Raises:
            TypeError: If the data has no columns, or not these.
            TimeError: If a time is not at or after the one before it and `self.time`, or the probe's times
                have another number of coordinates.
            ValueError: If a diff is 0, or the input is strict and has added fewer of a record.
            PointstampError: If the input is closed. After each of these, the changes before are made.

        Examples:
            >>> import pyarrow as pa
            >>> import pointstamp as ps
            >>> def main(worker):
            ...     with worker.dataflow() as scope:
            ...         stock, collection = scope.new_collection(schema=pa.schema({"item": pa.string()}))
            ...         counts = collection.value_counts().capture()
            ...     stock.play(pa.table({"item": ["tea", "rye", "tea"], "time": [0, 1, 4]}), diff=None)
            ...     stock.close()
            ...     return counts
            >>> [counts] = ps.execute(main)
            >>> for time, changes in counts.extract():
            ...     print(time, changes.to_pylist())
            0 [{'item': 'tea', 'count': 1, 'diff': 1}]
            1 [{'item': 'rye', 'count': 1, 'diff': 1}]
            4 [{'item': 'tea', 'count': 1, 'diff': -1}, {'item': 'tea', 'count': 2, 'diff': 1}]
        """
        _core.play_columns(self._handle, with_columns(data), self._columns, time, diff, probe)
