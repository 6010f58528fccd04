"""Operators of the user's own, on streams of records and of columns alike.

Owns the methods that `Stream` and `ArrowStream` share: those that take a constructor or logic, and those
that only look at times. What an operator gives is as its stream carries, unless ``schema`` says otherwise.
What few programs use is imported where it is called, so that `import pointstamp` does not load it.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any, Generic, NoReturn, TypeVar

from pointstamp._core import ProbeHandle
from pointstamp._core import Schema as CoreSchema
from pointstamp._validation import called, stream_given, unknown_attribute
from pointstamp.api.classes import stream_of
from pointstamp.capture.events import Capture, EventWriter
from pointstamp.logic.planned import PlannedOperator, single_output
from pointstamp.pacts import Gather, Pipeline, pact_of
from pointstamp.plan import shape

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence
    from types import EllipsisType
    from typing import TypeAlias

    import pyarrow as pa

    from pointstamp._core import Capability, FrontieredInput
    from pointstamp.api.arrow_stream import ArrowStream
    from pointstamp.api.scope import Scope
    from pointstamp.api.stream import Stream
    from pointstamp.connectors.protocol import Sink
    from pointstamp.info import OperatorInfo
    from pointstamp.logic.vertex import Vertex
    from pointstamp.pacts import Pact
    from pointstamp.plan.node import Output
    from pointstamp.types import Time

    AnyStream: TypeAlias = Stream[Any] | ArrowStream
    Build: TypeAlias = Callable[[Capability, OperatorInfo], Callable[..., None]]
    Schema: TypeAlias = pa.Schema | EllipsisType | None

__all__ = ["CustomOperators"]

T = TypeVar("T")


class CustomOperators(Generic[T]):
    """Methods of streams of both kinds that run operators of the user's own, and observe the stream.

    The operators with an output take a ``schema`` for it: a `pyarrow.Schema` makes the output an
    `ArrowStream` of it, to which the logic gives batches or tables; None makes it a `Stream` of records.
    Left out, the output is of the same kind as the stream, and has its schema.
    """

    __slots__ = ()

    scope: Scope

    _output: Output

    if not TYPE_CHECKING:  # type checkers find out by themselves

        def __getattr__(self, name: str) -> NoReturn:
            unknown_attribute(self, called(type(self)), name)

    def _columns_of(self, schema: Schema) -> CoreSchema | None:
        """An output's columns; None for records."""
        if schema is ...:
            return self._output.schema
        return None if schema is None else CoreSchema(schema)

    def _operator(
        self, name: str, inputs: Sequence[tuple[Any, Pact]], build: Build, schema: Schema, *, notify: bool
    ) -> Any:
        read = [(stream_given(name, stream)._output, pact) for stream, pact in inputs]
        columns = self._columns_of(schema)
        return stream_of(
            self.scope, single_output(self.scope, name, read, build, notify=notify, schema=columns)
        )

    # ------------------------------------------------------------ one input

    def unary(self, pact: Pact, name: str, build: Build, *, schema: Schema = ...) -> Any:
        """An operator with one input and one output.

        Args:
            pact: How records reach it.
            name: Its name, for messages.
            build: Called once with a capability for the minimum time (drop it, unless the operator sends
                by itself) and the operator's info; returns the logic, which is called with the input and
                the output whenever messages have arrived. The input yields ``(CapabilityRef, records)``,
                where the records are a list, or a `pyarrow.RecordBatch`.
            schema: Of the output's columns; None for records; left out, as the stream.

        Examples:
            Records in, columns out:

            >>> import pyarrow as pa
            >>> import pointstamp as ps
            >>> def lengths(capability, info):
            ...     capability.drop()
            ...     def logic(input, output):
            ...         for cap, words in input:
            ...             with output.session(cap) as session:
            ...                 session.give(pa.record_batch({"length": [len(word) for word in words]}))
            ...     return logic
            >>> def build(scope):
            ...     schema = pa.schema([("length", pa.int64())])
            ...     words = scope.to_stream(["a", "bb"])
            ...     columns = words.unary(ps.Pipeline(), "lengths", lengths, schema=schema)
            ...     return columns.to_records().capture()
            >>> ps.example(build).extract()
            [(0, [{'length': 1}, {'length': 2}])]
        """
        return self._operator(name, [(self, pact)], build, schema, notify=False)

    def unary_frontier(self, pact: Pact, name: str, build: Build, *, schema: Schema = ...) -> Any:
        """Adds an operator as `unary`, whose logic is called when the input's frontier changes, too."""
        return self._operator(name, [(self, pact)], build, schema, notify=True)

    def unary_notify(
        self,
        pact: Pact,
        name: str,
        init: Iterable[Time],
        logic: Callable[..., None],
        *,
        schema: Schema = ...,
    ) -> Any:
        """An operator with one input, one output and notifications.

        Args:
            pact: How records reach it.
            name: Its name.
            init: Times for which notifications are requested from the start.
            logic: Called with the input, the output and the notificator.
            schema: As in `unary`.
        """
        from pointstamp.logic.notify import notified

        columns = self._columns_of(schema)
        return stream_of(
            self.scope, notified(self.scope, [(self._output, pact)], name, init, logic, schema=columns)
        )

    def sink(
        self, pact: Pact, name: str, build: Callable[[OperatorInfo], Callable[[FrontieredInput[Any]], None]]
    ) -> None:
        """An operator with one input and no output.

        Args:
            pact: How records reach it.
            name: Its name.
            build: Called once with the operator's info; returns the logic, which is called with the input
                whenever messages have arrived or its frontier has changed.
        """
        core = PlannedOperator(self.scope, name)
        core.new_input(self._output, pact_of(pact, self._output, name))
        core.build(core.constructed(build), tuple)

    def vertex(
        self,
        vertex: Callable[[], Vertex],
        *,
        pact: Pact | None = None,
        name: str | None = None,
        schema: Schema = ...,
    ) -> Any:
        """An operator in Naiad's style: an object with callbacks. See `Vertex`.

        Args:
            vertex: Makes the object; called once on each worker.
            pact: How records reach it; left out: they stay on their worker.
            name: Its name; left out: the class's.
            schema: As in `unary`.
        """
        from pointstamp.logic.vertex import drive

        if not callable(vertex):
            raise TypeError(f"vertex takes a class, or a function that makes a Vertex, not {vertex!r}")
        title: str = name or getattr(vertex, "__name__", None) or "vertex"
        inputs = [(self, pact or Pipeline())]
        return self._operator(title, inputs, drive(vertex), schema, notify=True)

    # ------------------------------------------------------------ two inputs

    def binary(
        self,
        other: AnyStream,
        pact1: Pact,
        pact2: Pact,
        name: str,
        build: Build,
        *,
        schema: Schema = ...,
    ) -> Any:
        """An operator with two inputs, of records or columns, and one output; as `unary`."""
        return self._operator(name, [(self, pact1), (other, pact2)], build, schema, notify=False)

    def binary_frontier(
        self,
        other: AnyStream,
        pact1: Pact,
        pact2: Pact,
        name: str,
        build: Build,
        *,
        schema: Schema = ...,
    ) -> Any:
        """Adds an operator as `binary`, with the inputs' frontiers; as `unary_frontier`."""
        return self._operator(name, [(self, pact1), (other, pact2)], build, schema, notify=True)

    def binary_notify(
        self,
        other: AnyStream,
        pact1: Pact,
        pact2: Pact,
        name: str,
        init: Iterable[Time],
        logic: Callable[..., None],
        *,
        schema: Schema = ...,
    ) -> Any:
        """An operator with two inputs, one output and notifications; as `unary_notify`."""
        from pointstamp.logic.notify import notified

        inputs = [(self._output, pact1), (stream_given(name, other)._output, pact2)]
        columns = self._columns_of(schema)
        return stream_of(self.scope, notified(self.scope, inputs, name, init, logic, schema=columns))

    # ------------------------------------------------------------ observing

    def probe(self, *, name: str | None = None) -> ProbeHandle:
        """A handle that reports which times may still appear on the stream."""
        handle = ProbeHandle()
        self._probed(handle, name)
        return handle

    def _probed(self, handle: ProbeHandle, name: str | None) -> Output:
        """The stream, behind a probe."""
        node = self.scope._append(shape.PROBE, [self._output], self._output.like(), name=name, handle=handle)
        self.scope._building.expect(node, handle)
        return node.output

    def capture(self, *, name: str | None = None) -> Capture[T]:
        """Keeps the stream's events on this worker in memory; of an `ArrowStream`, its record batches."""
        capture: Capture[T] = Capture(self.scope.index, self.scope.peers)
        capture._form = (self.scope.dims, self._output.schema)
        self.scope._append(shape.CAPTURE, [self._output], name=name, queue=capture._queue)
        return capture

    def write(self, sink: Sink, *, name: str = "write") -> Stream[Any]:
        """Brings the stream to a sink, a whole time at once.

        When nothing of a time can come any more, every worker's part is prepared; when all are, each is
        committed. If the dataflow fails before, nothing of the time is shown.

        Args:
            sink: Where to; the same on every worker.
            name: The operators' name.

        Returns:
            The times that this worker has committed. Its frontier is that of times that are committed on all
            workers: attach a probe to know.
        """
        from pointstamp.connectors.writing import Writing

        if not hasattr(sink, "single") or isinstance(sink, type):
            cure = "make one of the class" if isinstance(sink, type) else "pointstamp.connectors has them"
            raise TypeError(
                f"write takes a sink, such as connectors.ParquetSink(directory), not {sink!r}: {cure}"
            )
        writing = Writing(sink)
        pact = Gather() if sink.single else Pipeline()
        prepared = single_output(self.scope, name, [(self._output, pact)], writing.build_writing, notify=True)
        inputs = [(prepared, Pipeline())]
        committed = single_output(
            self.scope, f"{name}: commit", inputs, writing.build_committing, notify=True
        )
        return stream_of(self.scope, committed)  # type: ignore[no-any-return]

    def capture_into(self, writer: EventWriter, *, name: str | None = None) -> None:
        """Writes the stream's events on this worker, from which `Scope.replay` makes the same stream again.

        Args:
            writer: Where to; each worker has its own.
            name: The operator's name.

        Raises:
            GraphError: If the writer was given to a stream already.
            OSError: When the dataflow runs, if writing fails.
        """
        given: Any = writer
        if not isinstance(given, EventWriter):
            cure = f": write EventWriter({given!r})" if isinstance(given, str | os.PathLike) else ""
            raise TypeError(f"capture_into takes an EventWriter, not {given!r}{cure}")
        self.scope._plan_scope.check_building()  # before the writer is taken
        self.scope._append(shape.CAPTURE_INTO, [self._output], name=name, sink=writer._taken())
