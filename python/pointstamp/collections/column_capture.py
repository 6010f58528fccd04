"""Outputs of collections of columns: streams of updates, captures, and probes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pointstamp import _core
from pointstamp._naming import named
from pointstamp.capture.events import Capture
from pointstamp.streams.arrow import ArrowStream

if TYPE_CHECKING:
    from pointstamp._core import ProbeHandle
    from pointstamp._types import Time
    from pointstamp.capture.events import EventWriter
    from pointstamp.collections.collection import Collection
    from pointstamp.scope import Scope

__all__ = ["ColumnCapture", "ColumnOutputs"]


class ColumnCapture(Capture[Any]):
    """The updates of a collection of columns on one worker. It may be read from any thread, and after."""

    __slots__ = ("_columns",)

    def __init__(self, columns: _core.Schema, worker: int = 0, peers: int = 1) -> None:
        super().__init__(worker, peers)
        self._columns = columns

    def extract(self) -> list[tuple[Time, Any]]:
        """The changes per time, in the order of times: a record batch with a column ``diff`` more.

        They are added up, without zeros, in the order of rows.
        """
        changes = _core.extract_column_updates(self.core, self._columns)
        self.check_empty(changes)
        return changes


@named
class ColumnOutputs:
    """Methods by which every `ColumnCollection` is read from outside."""

    __slots__ = ()

    scope: Scope
    core: Collection[Any]
    core_schema: _core.Schema

    def updates(self, *, name: str | None = None) -> ArrowStream:
        """The updates, as record batches with a column ``time`` and a column ``diff`` more.

        Each is at its own time in the stream, too; of one row and time there may be several. Times of
        several coordinates are lists. The two are the last columns, also where the collection has one of
        such a name: tell them by their places.
        """
        made, columns = _core.column_updates(self.core.core, self.core_schema)
        return ArrowStream(self.scope, made, columns)

    def capture_into(self, writer: EventWriter, *, name: str | None = None) -> None:
        """Writes the `updates`; ``scope.replay(...).as_collection(diffs=True)`` makes a collection of it."""
        self.updates().capture_into(writer, name=name)

    def capture(self, *, name: str | None = None) -> ColumnCapture:
        """Keeps the updates on this worker in memory."""
        capture = ColumnCapture(self.core_schema, self.scope.index, self.scope.peers)
        self.core.core.capture(capture.core)
        return capture

    def probe(self, *, name: str | None = None) -> ProbeHandle:
        """A handle that reports at which times the collection may still change."""
        return self.core.probe()
