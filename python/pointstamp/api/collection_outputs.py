"""Outputs of collections: streams of updates, captures, and probes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Generic, TypeVar

from pointstamp import _core
from pointstamp._core import ProbeHandle
from pointstamp.api.classes import stream_of
from pointstamp.api.collection_nodes import named_part
from pointstamp.capture.events import Capture
from pointstamp.plan import collections, shape
from pointstamp.plan.node import Form, Output

if TYPE_CHECKING:
    from typing_extensions import Self

    from pointstamp.api.scope import Scope
    from pointstamp.api.stream import Stream
    from pointstamp.capture.events import EventWriter
    from pointstamp.types import Time

__all__ = ["CollectionCapture", "CollectionOutputs", "Multiset"]

T = TypeVar("T")


class Multiset:
    """Updates of records, or of rows with columns, which a method of a scope or a collection has made.

    Attributes:
        scope: The scope that the collection is in.
    """

    __slots__ = ("_output", "scope")

    def __init__(self, scope: Scope, output: Output) -> None:
        self.scope = scope
        self._output = output

    def probe(self, *, name: str | None = None) -> ProbeHandle:
        """A handle that reports at which times the collection may still change."""
        handle = ProbeHandle()
        node = self.scope._append(shape.PROBE, [self._output], self._output.like(), name=name, handle=handle)
        self.scope._building.expect(node, handle)
        return handle

    def enter(self, scope: Scope) -> Self:
        """The same collection in a scope inside the collection's; it is there in every turn of a loop.

        A join in the scope uses the arrangement of the collection outside: it is built once, and kept once.

        Raises:
            GraphError: If `scope` is not directly inside the collection's scope.
        """
        return type(self)(scope, scope._entered(self._output))

    def leave(self) -> Self:
        """The same collection in the scope around its own; of a loop, what its last turn gives.

        Raises:
            GraphError: If the collection is in a root scope.
        """
        left = self.scope._left(self._output)
        assert self.scope.parent is not None
        return type(self)(self.scope.parent, left)


class CollectionOutputs(Multiset, Generic[T]):
    """Methods by which every `Collection` is read from outside."""

    __slots__ = ()

    def updates(self, *, name: str | None = None) -> Stream[tuple[T, Time, int]]:
        """The updates, as a stream of records ``(record, time, diff)``.

        Each is at its own time in the stream, too; of one record and time there may be several.
        """
        node = self.scope._append(collections.UPDATES, [self._output], Output(Form.RECORDS), name=name)
        stream: Stream[Any] = stream_of(self.scope, node.output)
        return stream

    def capture(self, *, name: str | None = None) -> CollectionCapture[T]:
        """Keeps the updates on this worker in memory."""
        capture: CollectionCapture[T] = CollectionCapture(self.scope.index, self.scope.peers)
        self.scope._append(shape.CAPTURE, [self._output], name=name, queue=capture.core)
        return capture

    def capture_into(self, writer: EventWriter, *, name: str | None = None) -> None:
        """Writes the updates as pairs ``(record, diff)``.

        ``scope.replay(...).as_collection(diffs=True)`` makes a collection of them again.
        """
        updates = self.updates(name=named_part(name, "updates"))
        pairs = updates.map(lambda update: (update[0], update[2]), name=named_part(name, "map"))
        pairs.capture_into(writer, name=name)


class CollectionCapture(Capture[tuple[T, int]]):
    """The updates of a collection on one worker. It may be read from any thread, and after the run.

    Iterating gives the events as they came: the data of `Messages` are updates ``(record, time, diff)``.
    """

    __slots__ = ()

    def extract(self) -> list[tuple[Time, list[tuple[T, int]]]]:
        """The changes per time, in the order of times: ``(record, diff)``, added up, in the order of records.

        Times that are not ordered come in the order of their coordinates, first coordinate first.
        """
        changes = _core.extract_updates(self.core)
        self.check_empty(changes)
        return changes
