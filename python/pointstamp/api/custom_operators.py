"""Operators of the user's own, on streams of records and of columns alike.

Owns the methods that `Stream` and `ArrowStream` share: those that take a constructor or logic, and those that
only read times. The results of an operator have the type of its stream, unless ``schema`` says otherwise.
Rarely used modules are imported at the call, so that `import pointstamp` does not load them.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any, Generic, Literal, NoReturn, TypeVar

from pointstamp._core import ProbeHandle
from pointstamp._core import Schema as CoreSchema
from pointstamp._validation import called, stream_given, unknown_attribute
from pointstamp.api.classes import stream_of
from pointstamp.capture.events import Capture, EventWriter
from pointstamp.errors import GraphError
from pointstamp.logic.declared_state import declaration
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
    from pointstamp.logic.declared_state import Declared, Declares
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
        self,
        name: str,
        inputs: Sequence[tuple[Any, Pact]],
        build: Build,
        schema: Schema,
        declares: Declares,
        *,
        notify: bool,
    ) -> Any:
        read = [(stream_given(name, stream)._output, pact) for stream, pact in inputs]
        columns = self._columns_of(schema)
        made = single_output(self.scope, name, read, build, notify=notify, schema=columns, declares=declares)
        return stream_of(self.scope, made)

    # ------------------------------------------------------------ one input

    def unary(
        self, pact: Pact, name: str, build: Build, *, schema: Schema = ..., state: Declared = None
    ) -> Any:
        """An operator with one input and one output.

        Args:
            pact: The distribution of records to it.
            name: Its name, for messages.
            build: Called once with a capability for the minimum time (drop it, unless the operator sends
                by itself) and the operator's info; returns the logic, which is called with the input and
                the output whenever messages have arrived. The input yields ``(CapabilityRef, records)``,
                where the records are a list, or a `pyarrow.RecordBatch`.
            schema: Of the output's columns; None for records; left out, as the stream.
            state: Its state, for checkpoints: a class with `snapshot` and `restore`, whose object the
                constructor finds as ``info.state``, or "none" for an operator that keeps nothing from one
                call to the next.

        Raises:
            GraphError: If checkpoints are made, and `state` is left out.

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
        declares = declaration(self.scope, name, state, [type(pact)])
        return self._operator(name, [(self, pact)], build, schema, declares, notify=False)

    def unary_frontier(
        self, pact: Pact, name: str, build: Build, *, schema: Schema = ..., state: Declared = None
    ) -> Any:
        """Adds an operator as `unary`, whose logic is called when the input's frontier changes, too.

        Examples:
            A total of each name, which checkpoints keep and which can be resumed on any number of workers:

            >>> import pointstamp as ps
            >>> class Totals:
            ...     version = 1
            ...     def __init__(self):
            ...         self.by_name = {}
            ...     def snapshot(self):
            ...         return self.by_name.items()
            ...     def restore(self, pairs, version):
            ...         self.by_name.update(pairs)
            >>> def totals(capability, info):
            ...     capability.drop()
            ...     by_name = info.state.by_name
            ...     def logic(input, output):
            ...         for cap, sales in input:
            ...             with output.session(cap) as session:
            ...                 for name, amount in sales:
            ...                     by_name[name] = by_name.get(name, 0) + amount
            ...                     session.give((name, by_name[name]))
            ...     return logic
            >>> def build(scope):
            ...     sales = scope.to_stream([("ann", 1), ("bob", 2), ("ann", 3)])
            ...     by_name = ps.ByKey(lambda sale: sale[0])
            ...     return sales.unary_frontier(by_name, "totals", totals, state=Totals).capture()
            >>> ps.example(build).extract()
            [(0, [('ann', 1), ('ann', 4), ('bob', 2)])]
        """
        declares = declaration(self.scope, name, state, [type(pact)])
        return self._operator(name, [(self, pact)], build, schema, declares, notify=True)

    def unary_notify(
        self,
        pact: Pact,
        name: str,
        init: Iterable[Time],
        logic: Callable[..., None],
        *,
        schema: Schema = ...,
        state: Declared = None,
    ) -> Any:
        """An operator with one input, one output and notifications.

        Args:
            pact: The distribution of records to it.
            name: Its name.
            init: Times for which notifications are requested from the start.
            logic: Called with the input, the output and the notificator; where `state` is a class, with its
                object, too.
            schema: As in `unary`.
            state: Its state apart from the notifications, which checkpoints keep by themselves: a class with
                `snapshot` and `restore`, or "none". On another number of workers, each is notified of all
                times that any worker has requested.

        Examples:
            >>> import pointstamp as ps
            >>> def build(scope):
            ...     counts = {}
            ...     def count(input, output, notificator):
            ...         for cap, records in input:
            ...             counts[cap.time] = counts.get(cap.time, 0) + len(records)
            ...             notificator.notify_at(cap.retain())
            ...         for cap, _ in notificator:
            ...             with output.session(cap) as session:
            ...                 session.give(counts.pop(cap.time))
            ...     numbers = scope.to_stream([1, 2, 3])
            ...     return numbers.unary_notify(ps.Pipeline(), "count", [], count).capture()
            >>> ps.example(build).extract()
            [(0, [3])]
        """
        from pointstamp.logic.notify import notified

        columns = self._columns_of(schema)
        return stream_of(
            self.scope,
            notified(self.scope, [(self._output, pact)], name, init, logic, schema=columns, state=state),
        )

    def sink(
        self,
        pact: Pact,
        name: str,
        build: Callable[[OperatorInfo], Callable[[FrontieredInput[Any]], None]],
        *,
        state: Declared = None,
    ) -> None:
        """An operator with one input and no output.

        Args:
            pact: The distribution of records to it.
            name: Its name.
            build: Called once with the operator's info; returns the logic, which is called with the input
                whenever messages have arrived or its frontier has changed.
            state: As in `unary`. After a resumption the sink is called again with the records after the
                checkpoint; `write` shows each record once.

        Examples:
            >>> import pointstamp as ps
            >>> def show(info):
            ...     def logic(input):
            ...         for cap, records in input:
            ...             print(cap.time, records)
            ...     return logic
            >>> ps.example(lambda scope: scope.to_stream(list("ab")).sink(ps.Pipeline(), "show", show))
            0 ['a', 'b']
        """
        declares = declaration(self.scope, name, state, [type(pact)])
        core = PlannedOperator(self.scope, name)
        core.new_input(self._output, pact_of(pact, self._output, name))
        declares(core)
        core.build(core.constructed(build), tuple)

    def vertex(
        self,
        vertex: Callable[[], Vertex],
        *,
        pact: Pact | None = None,
        name: str | None = None,
        schema: Schema = ...,
        state: Literal["none"] | None = None,
    ) -> Any:
        """An operator in Naiad's style: an object with callbacks. See `Vertex`.

        Args:
            vertex: Makes the object; called once on each worker.
            pact: The distribution of records to it; by default they stay on their worker.
            name: Its name; left out: the class's.
            schema: As in `unary`.
            state: "none" where it keeps nothing but its notifications; left out, it has `snapshot` and
                `restore`, or no checkpoints are made.

        Examples:
            >>> import pointstamp as ps
            >>> class Lengths(ps.Vertex):
            ...     def on_recv(self, edge, messages, time):
            ...         self.send_by(0, map(len, messages), time)
            >>> ps.example(lambda scope: scope.to_stream(["a", "bb"]).vertex(Lengths).capture()).extract()
            [(0, [1, 2])]
        """
        from pointstamp.logic.vertex import drive

        if not callable(vertex):
            raise TypeError(f"vertex takes a class, or a function that makes a Vertex, not {vertex!r}")
        title: str = name or getattr(vertex, "__name__", None) or "vertex"
        moved = pact or Pipeline()
        build, declares = drive(self.scope, title, vertex, moved, state)
        return self._operator(title, [(self, moved)], build, schema, declares, notify=True)

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
        state: Declared = None,
    ) -> Any:
        """An operator with two inputs, of records or columns, and one output; as `unary`.

        Examples:
            >>> import pointstamp as ps
            >>> def both(capability, info):
            ...     capability.drop()
            ...     def logic(words, numbers, output):
            ...         for side, port in (("word", words), ("number", numbers)):
            ...             for cap, records in port:
            ...                 with output.session(cap) as session:
            ...                     session.give_all((side, record) for record in records)
            ...     return logic
            >>> def build(scope):
            ...     words, numbers = scope.to_stream(["a"]), scope.to_stream([1])
            ...     return words.binary(numbers, ps.Pipeline(), ps.Pipeline(), "both", both).capture()
            >>> ps.example(build).extract()
            [(0, [('number', 1), ('word', 'a')])]
        """
        declares = declaration(self.scope, name, state, [type(pact1), type(pact2)])
        return self._operator(name, [(self, pact1), (other, pact2)], build, schema, declares, notify=False)

    def binary_frontier(
        self,
        other: AnyStream,
        pact1: Pact,
        pact2: Pact,
        name: str,
        build: Build,
        *,
        schema: Schema = ...,
        state: Declared = None,
    ) -> Any:
        """Adds an operator as `binary`, with the inputs' frontiers; as `unary_frontier`.

        Examples:
            >>> import pointstamp as ps
            >>> def smaller(capability, info):
            ...     capability.drop()
            ...     def logic(left, right, output):
            ...         for port in (left, right):
            ...             for cap, numbers in port:
            ...                 with output.session(cap) as session:
            ...                     session.give_all(n for n in numbers if n < 5)
            ...     return logic
            >>> def build(scope):
            ...     left, right = scope.to_stream([1, 8]), scope.to_stream([9, 2])
            ...     pacts = ps.Pipeline(), ps.Pipeline()
            ...     return left.binary_frontier(right, *pacts, "smaller", smaller).capture()
            >>> ps.example(build).extract()
            [(0, [1, 2])]
        """
        declares = declaration(self.scope, name, state, [type(pact1), type(pact2)])
        return self._operator(name, [(self, pact1), (other, pact2)], build, schema, declares, notify=True)

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
        state: Declared = None,
    ) -> Any:
        """An operator with two inputs, one output and notifications; as `unary_notify`.

        Examples:
            >>> import pointstamp as ps
            >>> def build(scope):
            ...     seen = {}
            ...     def count(left, right, output, notificator):
            ...         for port in (left, right):
            ...             for cap, records in port:
            ...                 seen[cap.time] = seen.get(cap.time, 0) + len(records)
            ...                 notificator.notify_at(cap.retain())
            ...         for cap, _ in notificator:
            ...             with output.session(cap) as session:
            ...                 session.give(seen.pop(cap.time))
            ...     left, right = scope.to_stream([1, 2, 3]), scope.to_stream([4, 5])
            ...     pacts = ps.Pipeline(), ps.Pipeline()
            ...     return left.binary_notify(right, *pacts, "count", [], count).capture()
            >>> ps.example(build).extract()
            [(0, [5])]
        """
        from pointstamp.logic.notify import notified

        inputs = [(self._output, pact1), (stream_given(name, other)._output, pact2)]
        columns = self._columns_of(schema)
        return stream_of(
            self.scope, notified(self.scope, inputs, name, init, logic, schema=columns, state=state)
        )

    # ------------------------------------------------------------ observing

    def probe(self, *, name: str | None = None) -> ProbeHandle:
        """A handle that reports which times may still appear on the stream.

        Examples:
            >>> import pointstamp as ps
            >>> def main(worker):
            ...     with worker.dataflow() as scope:
            ...         numbers, stream = scope.new_input()
            ...         probe = stream.map(abs).probe()
            ...     numbers.send(-1)
            ...     numbers.advance_to(1)
            ...     worker.step_while(lambda: probe.less_than(1))
            ...     return probe.frontier.elements
            >>> ps.execute(main)
            [[1]]
        """
        handle = ProbeHandle()
        self._probed(handle, name)
        return handle

    def _probed(self, handle: ProbeHandle, name: str | None) -> Output:
        """The stream, behind a probe."""
        node = self.scope._append(shape.PROBE, [self._output], self._output.like(), name=name, handle=handle)
        self.scope._building.expect(node, handle)
        return node.output

    def capture(self, *, name: str | None = None) -> Capture[T]:
        """Keeps the stream's events on this worker in memory; of an `ArrowStream`, its record batches.

        Examples:
            >>> import pointstamp as ps
            >>> ps.example(lambda scope: scope.to_stream([3, 1, 2]).capture()).extract()
            [(0, [1, 2, 3])]
        """
        capture: Capture[T] = Capture(self.scope.index, self.scope.peers)
        capture._form = (self.scope.dims, self._output.schema)
        if self.scope._engine.recording is not None:
            capture._behind = self.scope._engine.behind
        self.scope._append(shape.CAPTURE, [self._output], name=name, queue=capture._queue)
        return capture

    def write(
        self, sink: Sink, *, commit: Literal["checkpoint", "time"] | None = None, name: str = "write"
    ) -> Stream[Any]:
        """Brings the stream to a sink, a whole time at once.

        When nothing of a time can come any more, every worker's part is prepared; when all are, each is
        committed. If the dataflow fails before, nothing of the time is shown.

        Args:
            sink: Where to; the same on every worker.
            commit: When results are shown: ``"checkpoint"``, when a complete checkpoint covers them, each
                once, whatever the sources and times are; or ``"time"``, as each time ends, for computations
                that give a time the same result again. Left out: ``"checkpoint"`` where checkpoints are
                made, else ``"time"``.
            name: The operators' name.

        Returns:
            The times that this worker has committed. Its frontier has the times that are committed on all
            workers: attach a probe to know.

        Examples:
            >>> import os, sqlite3, tempfile
            >>> from contextlib import closing
            >>> import pyarrow as pa
            >>> import pointstamp as ps
            >>> from pointstamp.connectors import SQLiteSink
            >>> path = os.path.join(tempfile.mkdtemp(), "rain.db")
            >>> rain = pa.table({"city": ["Ulm", "Bonn"], "mm": [3, 5]})
            >>> sink = SQLiteSink(path, "rain", columns=["city", "mm"])
            >>> ps.example(lambda scope: scope.to_stream(rain).write(sink)) and None
            >>> with closing(sqlite3.connect(path)) as database:
            ...     database.execute("SELECT city, mm FROM rain ORDER BY city").fetchall()
            [('Bonn', 5), ('Ulm', 3)]
        """
        from pointstamp.connectors.outbox import outbox
        from pointstamp.connectors.writing import writing

        if not hasattr(sink, "single") or isinstance(sink, type):
            cure = "make one of the class" if isinstance(sink, type) else "pointstamp.connectors has them"
            raise TypeError(
                f"write takes a sink, such as connectors.ParquetSink(directory), not {sink!r}: {cure}"
            )
        pact = Gather() if sink.single else Pipeline()
        recording = self.scope._engine.recording
        if commit not in (None, "checkpoint", "time"):
            raise ValueError(f'commit is "checkpoint" or "time", not {commit!r}')
        if commit == "checkpoint" and recording is None:
            raise GraphError(
                'commit="checkpoint" needs checkpoints: give execute a '
                'config=Config(checkpoint=Checkpoint("state/"))'
            )
        if recording is not None and commit != "time":
            return stream_of(self.scope, outbox(self.scope, self._output, sink, pact, name, recording))  # type: ignore[no-any-return]
        return stream_of(self.scope, writing(self.scope, self._output, sink, pact, name))  # type: ignore[no-any-return]

    def capture_into(self, writer: EventWriter, *, name: str | None = None) -> None:
        """Writes the stream's events on this worker, from which `Scope.replay` makes the same stream again.

        Args:
            writer: Where to; each worker has its own.
            name: The operator's name.

        Raises:
            GraphError: If the writer was given to a stream already.
            OSError: When the dataflow runs, if writing fails.

        Examples:
            >>> import os, tempfile
            >>> import pointstamp as ps
            >>> path = os.path.join(tempfile.mkdtemp(), "letters.events")
            >>> ps.example(lambda scope: scope.to_stream(list("ab")).capture_into(ps.EventWriter(path)))
            >>> def again(scope):
            ...     return scope.replay([ps.EventReader(path, allow_pickle=True)]).capture()
            >>> ps.example(again).extract()
            [(0, ['a', 'b'])]
        """
        given: Any = writer
        if not isinstance(given, EventWriter):
            cure = f": write EventWriter({given!r})" if isinstance(given, str | os.PathLike) else ""
            raise TypeError(f"capture_into takes an EventWriter, not {given!r}{cure}")
        self.scope._plan_scope.check_building()  # before the writer is taken
        self.scope._append(shape.CAPTURE_INTO, [self._output], name=name, sink=writer._taken())
