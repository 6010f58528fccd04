"""Changing a collection of columns from `main`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pointstamp import _core

if TYPE_CHECKING:
    from types import TracebackType

    from typing_extensions import Self

    from pointstamp._core import InputHandle
    from pointstamp._types import Time

__all__ = ["ColumnInput"]


class ColumnInput:
    """What `main` changes a collection of columns with. `Scope.new_collection` gives it for a schema.

    Data is a `pyarrow.RecordBatch` or `Table`, or another object with ``__arrow_c_array__`` or
    ``__arrow_c_stream__``: a data frame of pandas or Polars, a result of DuckDB. It has the schema's columns,
    in its order; text may have offsets of any width, and dictionaries.
    """

    __slots__ = ("_columns", "_handle")

    def __init__(self, handle: InputHandle[Any], columns: _core.Schema) -> None:
        self._handle = handle
        self._columns = columns

    @property
    def time(self) -> Time:
        """The time of the changes made now."""
        return self._handle.time

    @property
    def closed(self) -> bool:
        """Whether nothing can be changed any more."""
        return self._handle.closed

    def insert(self, data: Any) -> None:
        """Adds every row of the data.

        Raises:
            TypeError: If the data has no columns, or not those of the schema.
            PointstampError: If the input is closed.
        """
        _core.update_columns(self._handle, data, self._columns, 1)

    def remove(self, data: Any) -> None:
        """Takes every row of the data away.

        Raises:
            TypeError: If the data has no columns, or not those of the schema.
            PointstampError: If the input is closed.
        """
        _core.update_columns(self._handle, data, self._columns, -1)

    def update(self, data: Any, diff: int) -> None:
        """Adds so many of every row of the data; takes them away where `diff` is negative.

        Raises:
            TypeError: If the data has no columns, or not those of the schema.
            ValueError: If `diff` is 0.
            PointstampError: If the input is closed.
        """
        if diff == 0:
            raise ValueError("an update of diff 0 changes nothing: leave it out")
        _core.update_columns(self._handle, data, self._columns, diff)

    def advance_to(self, time: Time) -> None:
        """Moves to a later time: nothing will be changed before it any more.

        Raises:
            TimeError: Unless `time` is at or after `self.time`.
            PointstampError: If the input is closed.
        """
        self._handle.advance_to(time)

    def flush(self) -> None:
        """Sends the changes that wait."""
        self._handle.flush()

    def close(self) -> None:
        """Ends the changes. Closing it twice does nothing."""
        self._handle.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.close()
