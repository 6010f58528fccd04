"""Outputs of collections of columns: streams of updates, captures, and probes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pointstamp import _core
from pointstamp.api.classes import stream_of
from pointstamp.api.collection_nodes import named_part
from pointstamp.api.collection_outputs import Multiset
from pointstamp.capture.events import Capture
from pointstamp.plan import collections, shape
from pointstamp.plan.node import Form, Output

if TYPE_CHECKING:
    from pointstamp.api.arrow_stream import ArrowStream
    from pointstamp.capture.events import EventWriter
    from pointstamp.types import Time

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


class ColumnOutputs(Multiset):
    """Methods by which every `ColumnCollection` is read from outside."""

    __slots__ = ()

    @property
    def _columns(self) -> _core.Schema:
        """The extension's schema of the columns."""
        schema = self._output.schema
        assert schema is not None
        return schema

    def updates(self, *, name: str | None = None) -> ArrowStream:
        """The updates, as record batches with a column ``time`` and a column ``diff`` more.

        Each is at its own time in the stream, too; of one row and time there may be several. Times of
        several coordinates are lists. The two are the last columns, also where the collection has one of
        such a name: tell them by their places.
        """
        schema = _core.column_updates_schema(self._columns, self.scope.dims)
        made = Output(Form.COLUMNS, schema)
        self.scope._append(collections.COLUMN_UPDATES, [self._output], made, name=name)
        stream: ArrowStream = stream_of(self.scope, made)
        return stream

    def capture_into(self, writer: EventWriter, *, name: str | None = None) -> None:
        """Writes the `updates`; ``scope.replay(...).as_collection(diffs=True)`` makes a collection of it."""
        self.updates(name=named_part(name, "updates")).capture_into(writer, name=name)

    def capture(self, *, name: str | None = None) -> ColumnCapture:
        """Keeps the updates on this worker in memory."""
        capture = ColumnCapture(self._columns, self.scope.index, self.scope.peers)
        self.scope._append(shape.CAPTURE, [self._output], name=name, queue=capture.core)
        return capture
