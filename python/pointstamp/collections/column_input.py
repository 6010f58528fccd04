"""Changing a collection of columns from `main`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pointstamp import _core
from pointstamp.collections.inputs import Changing

if TYPE_CHECKING:
    from pointstamp._core import InputHandle

__all__ = ["ColumnInput"]


class ColumnInput(Changing):
    """What `main` changes a collection of columns with. `Scope.new_collection` gives it for a schema.

    Data is a `pyarrow.RecordBatch` or `Table`, or another object with ``__arrow_c_array__`` or
    ``__arrow_c_stream__``: a data frame of pandas or Polars, a result of DuckDB. It has the schema's columns,
    in its order; text may have offsets of any width, and dictionaries.
    """

    __slots__ = ("_columns",)

    def __init__(self, handle: InputHandle[Any], columns: _core.Schema) -> None:
        super().__init__(handle)
        self._columns = columns

    def insert(self, data: Any) -> None:
        """Adds every row of the data.

        Raises:
            TypeError: If the data has no columns, or not those of the schema.
            PointstampError: If the input is closed.
        """
        _core.update_columns(self.handle, data, self._columns, 1)

    def remove(self, data: Any) -> None:
        """Takes every row of the data away.

        Raises:
            TypeError: If the data has no columns, or not those of the schema.
            PointstampError: If the input is closed.
        """
        _core.update_columns(self.handle, data, self._columns, -1)

    def update(self, data: Any, diff: int) -> None:
        """Adds so many of every row of the data; takes them away where `diff` is negative.

        Raises:
            TypeError: If the data has no columns, or not those of the schema.
            ValueError: If `diff` is 0.
            PointstampError: If the input is closed.
        """
        if diff == 0:
            raise ValueError("an update of diff 0 changes nothing: leave it out")
        _core.update_columns(self.handle, data, self._columns, diff)
