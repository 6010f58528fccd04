"""Streams of columns that know their event times.

Owns `EventColumns`, an `ArrowStream` whose rows are at the times that a column tells. As in `event_records`,
rows travel in batches of mixed times, at a time that is not after any of them: windows, and expressions
before them, read those; any other operator finds each row at its time. The times are that column, in its own
type and unit, and not a second column beside it: kernels read it as it is, and an expression that makes other
rows would have to make the other column anew.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pointstamp import _core
from pointstamp._naming import named_later
from pointstamp.streams.arrow import ArrowStream

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    import pyarrow as pa

    from pointstamp._core import Stream as CoreStream
    from pointstamp.scope import Scope

__all__ = ["EventColumns", "WindowResults"]

OWN_TIME = "own time"
"""The column for the times of rows that have none: no column of a program's own."""


class EventColumns(ArrowStream):
    """An `ArrowStream` of rows at their event times."""

    __slots__ = ("batched", "time_column")

    def __init__(self, scope: Scope, batched: CoreStream, columns: _core.Schema, time_column: str) -> None:
        super().__init__(scope, None, columns)
        self.batched = batched
        self.time_column = time_column
        if scope.parent is not None:
            _ = self.core  # it may be read when the scope's block has ended

    @property
    def core(self) -> CoreStream:
        """The extension's stream of the rows at their times."""
        if self._made is None:
            at = _core.time_column_of(self.core_schema, self.time_column)
            with named_later(self.scope):
                self._made = _core.delay_columns(self.batched, at)
        return self._made

    def map_each_batch(
        self, function: Callable[[Any], Any], schema: pa.Schema, name: str, changes: Iterable[str]
    ) -> ArrowStream:
        """Each batch through a function; see `ArrowStream.map_each_batch`."""
        if self.time_column not in schema.names or self.time_column in changes:
            return super().map_each_batch(function, schema, name, changes)
        columns = _core.Schema(schema)
        made = _core.map_batches(self.batched, function, columns, name)
        return EventColumns(self.scope, made, columns, self.time_column)


class WindowResults(ArrowStream):
    """An `ArrowStream` of rows at the last instants of their windows, which no column tells.

    `window_end` is the instant after. Their times are made a column where a window asks for them, so that
    windows of these rows are those of the same results as records.

    Attributes:
        time_type: The type of the column that their times make.
    """

    __slots__ = ("time_type",)

    def __init__(self, scope: Scope, made: CoreStream, columns: _core.Schema, time_type: pa.DataType) -> None:
        super().__init__(scope, made, columns)
        self.time_type = time_type

    def with_times(self) -> tuple[ArrowStream, str]:
        """The rows with a column that tells their times, and its name."""
        import pyarrow as pa

        told = _core.Schema(pa.schema([pa.field(OWN_TIME, self.time_type)]))
        return self.scope.stream_of(*_core.with_own_times(self.core, self.core_schema, told)), OWN_TIME

    def map_each_batch(
        self, function: Callable[[Any], Any], schema: pa.Schema, name: str, changes: Iterable[str]
    ) -> ArrowStream:
        """Each batch through a function; see `ArrowStream.map_each_batch`."""
        made = super().map_each_batch(function, schema, name, changes)
        return WindowResults(self.scope, made.core, made.core_schema, self.time_type)

    def _like(self, core: CoreStream) -> ArrowStream:
        return WindowResults(self.scope, core, self.core_schema, self.time_type)
