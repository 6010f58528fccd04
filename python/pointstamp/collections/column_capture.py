"""The updates of a collection of columns, kept."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pointstamp import _core
from pointstamp.capture.events import Capture

if TYPE_CHECKING:
    from pointstamp._types import Time

__all__ = ["ColumnCapture"]


class ColumnCapture(Capture[Any]):
    """The updates of a collection of columns on one worker. It may be read from any thread, and after."""

    __slots__ = ("_columns",)

    def __init__(self, columns: _core.Schema) -> None:
        super().__init__()
        self._columns = columns

    def extract(self) -> list[tuple[Time, Any]]:
        """The changes per time, in the order of times: a record batch with a column ``diff`` more.

        They are added up, without zeros, in the order of rows.
        """
        return _core.extract_column_updates(self.core, self._columns)
