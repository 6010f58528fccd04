"""Scopes: parts of a dataflow while it is built. Their methods append nodes to its plan."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal, NoReturn, TypeAlias, TypeVar, overload

from pointstamp import _core
from pointstamp._core import InputHandle
from pointstamp._validation import count_of, function_of, is_frame, several, unknown_attribute, without_with
from pointstamp.api.classes import collection_of, stream_of
from pointstamp.api.collection_nodes import named_part
from pointstamp.api.loops import LoopHandle
from pointstamp.api.operator_builder import OperatorBuilder
from pointstamp.api.stream import Stream
from pointstamp.capture.events import replayed
from pointstamp.errors import GraphError
from pointstamp.logic.declared_state import declaration
from pointstamp.logic.planned import single_output
from pointstamp.logic.timed import form_of
from pointstamp.observability.render import Drawable
from pointstamp.plan import collections, shape
from pointstamp.plan.node import Form, Output

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping
    from types import TracebackType

    import pyarrow as pa

    from pointstamp._core import Activator, Capability, OutputPort, UnorderedInput
    from pointstamp.api.arrow_stream import ArrowInput, ArrowStream
    from pointstamp.api.collection import Arranged, Collection, Trace, Variable
    from pointstamp.api.collection_input import CollectionInput
    from pointstamp.api.column_collection import ColumnCollection
    from pointstamp.api.column_input import ColumnInput
    from pointstamp.capture.events import Capture, EventReader
    from pointstamp.connectors.protocol import Source
    from pointstamp.info import OperatorInfo
    from pointstamp.logic.declared_state import Declared
    from pointstamp.types import Frame, Summary, Time

__all__ = ["Scope"]

Resume: TypeAlias = Literal["repeat", "continue"]

T = TypeVar("T")
K = TypeVar("K")
V = TypeVar("V")


class Nested:
    """The block in which a nested scope is built."""

    __slots__ = ("_dims", "_make", "_name", "_parent", "_scope")

    def __init__(
        self, parent: Scope, name: str, dims: int, make: Callable[[_core.Scope, Scope], Scope]
    ) -> None:
        if dims < 0:
            raise GraphError(f"a scope cannot append {dims} coordinates: dims is 0 or more")
        self._parent = parent
        self._name = name
        self._dims = dims
        self._make = make
        self._scope: Scope | None = None

    if not TYPE_CHECKING:  # type checkers find out by themselves

        def __getattr__(self, name: str) -> NoReturn:
            call = {0: "scoped()", 1: "iterative()"}.get(self._dims, f"scoped(dims={self._dims})")
            without_with(f"scope.{call}", name)

    def __enter__(self) -> Scope:
        if self._scope is not None:
            raise GraphError(f"the scope '{self._name}' was built already: make another")
        self._parent._plan_scope.check_building()
        self._scope = self._make(self._parent._engine.nested(self._name, self._dims), self._parent)
        return self._scope

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        assert self._scope is not None
        scope = self._scope._plan_scope
        scope.failed = kind is not None
        scope.complete = "its block raised an error" if scope.failed else "its block has ended"


class Scope(Drawable):
    """A part of a dataflow while it is being built: the dataflow itself, or a scope nested in it.

    Attributes:
        name: The scope's name.
        address: The path to it from the worker's root.
        dims: The number of coordinates of timestamps in the scope.
        index: This worker's number.
        peers: The number of workers.
        parent: The scope around it; None for the dataflow itself.
    """

    __slots__ = ()

    parent: Scope | None

    def __init__(self, engine: _core.Scope, parent: Scope | None) -> None:
        super().__init__(engine, parent)

    if not TYPE_CHECKING:  # type checkers find out by themselves

        def __getattr__(self, name: str) -> NoReturn:
            unknown_attribute(self, "a Scope", name)

    def __repr__(self) -> str:
        return f"<Scope '{self.name}' {self.address}>"

    # ------------------------------------------------------------ sources

    @overload
    def new_input(
        self, *, of: None = None, name: str | None = None, resume: Resume = "repeat"
    ) -> tuple[InputHandle[Any], Stream[Any]]: ...
    @overload
    def new_input(
        self, *, of: type[T], name: str | None = None, resume: Resume = "repeat"
    ) -> tuple[InputHandle[T], Stream[T]]: ...
    def new_input(
        self, *, of: Any = None, name: str | None = None, resume: Resume = "repeat"
    ) -> tuple[InputHandle[Any], Stream[Any]]:
        """An input that `main` drives, and its stream.

        Args:
            of: The type of its records, for type checkers: nothing looks at it when the program runs.
            name: The operator's name.
            resume: The behaviour of `main` after a resumption: "repeat", it sends its records again, which
                are skipped up to the position of the input; "continue": it reads the position, and sends the
                rest.

        Examples:
            >>> import pointstamp as ps
            >>> def main(worker):
            ...     with worker.dataflow() as scope:
            ...         words, stream = scope.new_input(of=str)
            ...         lengths = stream.map(len).capture()
            ...     words.send("tick")
            ...     words.advance_to(1)
            ...     words.send("tack!")
            ...     words.close()
            ...     worker.run()
            ...     return lengths.extract()
            >>> ps.execute(main)
            [[(0, [4]), (1, [5])]]
        """
        handle: InputHandle[Any] = InputHandle()
        stream = self.input_from(handle, name=name, resume=resume)
        return several("new_input", "handle, stream", (handle, stream))

    @overload
    def input_from(
        self, handle: ArrowInput, *, name: str | None = None, resume: Resume = "repeat"
    ) -> ArrowStream: ...
    @overload
    def input_from(
        self, handle: InputHandle[T], *, name: str | None = None, resume: Resume = "repeat"
    ) -> Stream[T]: ...
    def input_from(
        self, handle: ArrowInput | InputHandle[T], *, name: str | None = None, resume: Resume = "repeat"
    ) -> ArrowStream | Stream[T]:
        """The stream of an input handle, or of an input of record batches, from its current time on.

        Raises:
            TimeError: If the handle's times have another number of coordinates.
            CapabilityError: If the handle is closed.

        Examples:
            One handle feeds two dataflows:

            >>> import pointstamp as ps
            >>> def main(worker):
            ...     words = ps.InputHandle()
            ...     with worker.dataflow("lengths") as scope:
            ...         lengths = scope.input_from(words).map(len).capture()
            ...     with worker.dataflow("letters") as scope:
            ...         letters = scope.input_from(words).flat_map(list).capture()
            ...     words.send("to")
            ...     words.close()
            ...     worker.run()
            ...     return lengths.extract(), letters.extract()
            >>> ps.execute(main)
            [([(0, [2])], [(0, ['o', 't'])])]
        """
        if not isinstance(handle, InputHandle):
            from pointstamp.api.arrow_stream import ArrowInput  # few programs have columns

            if isinstance(handle, ArrowInput):
                return handle.to_stream(self, name=name, resume=resume)
        made = self._input_from(handle, _core.StreamKind.RECORDS, Output(Form.RECORDS), name, resume)
        return Stream(self, made)

    @overload
    def new_unordered_input(
        self, *, of: None = None, name: str | None = None
    ) -> tuple[UnorderedInput[Any], Capability, Stream[Any]]: ...
    @overload
    def new_unordered_input(
        self, *, of: type[T], name: str | None = None
    ) -> tuple[UnorderedInput[T], Capability, Stream[T]]: ...
    def new_unordered_input(
        self, *, of: Any = None, name: str | None = None
    ) -> tuple[UnorderedInput[Any], Capability, Stream[Any]]:
        """An input driven by capabilities, the first of them (at the minimum time), and its stream.

        The worker takes back the capabilities that are left when `main` returns.

        Args:
            of: The type of its records, as in `new_input`.
            name: The operator's name.

        Examples:
            >>> import pointstamp as ps
            >>> def main(worker):
            ...     with worker.dataflow() as scope:
            ...         numbers, capability, stream = scope.new_unordered_input(of=int)
            ...         captured = stream.capture()
            ...     for time in (2, 1):
            ...         with capability.delayed(time) as later, numbers.session(later) as session:
            ...             session.give(10 * time)
            ...     capability.drop()
            ...     worker.run()
            ...     return captured.extract()
            >>> ps.execute(main)
            [[(1, [10]), (2, [20])]]
        """
        self._plan_scope.check_building()
        if self._engine.recording is not None:
            raise GraphError(
                f"an unordered input{'' if name is None else f' ({name!r})'} has no position from which a "
                "checkpoint could go on, and checkpoints are on: use new_input, or a source with event times "
                "(scope.read)"
            )
        with self._building.making("unordered input", name):
            handle, capability, made = self._engine.unordered_input()
        node = self._append(shape.UNORDERED_INPUT, [], Output(Form.RECORDS), name=name)
        stream: Stream[Any] = Stream(self, self._building.reserve(node, made).output)
        return several("new_unordered_input", "handle, capability, stream", (handle, capability, stream))

    @overload
    def to_stream(self, items: Iterable[T], *, name: str | None = None) -> Stream[T]: ...
    @overload
    def to_stream(self, items: Frame, *, name: str | None = None) -> ArrowStream: ...
    def to_stream(self, items: Any, *, name: str | None = None) -> Any:
        """The items, at the minimum time; taken lazily, a bounded batch for each activation.

        Each worker has its own items. A data frame, a table or a record batch is a stream of columns.

        Args:
            items: The records; or a `pyarrow.Table` or `RecordBatch`, a data frame of pandas or Polars, or
                another object with columns and ``__arrow_c_stream__``.
            name: The operator's name.

        Returns:
            A `Stream` of the records, or of an object with columns an `ArrowStream`.

        Raises:
            TypeError: If it is no iterable of records: text, a dict and a named tuple iterate over parts
                of one.

        Examples:
            >>> import pyarrow as pa
            >>> import pointstamp as ps
            >>> rain = pa.table({"city": ["Ulm", "Bonn"], "mm": [3, 5]})
            >>> ps.example(lambda scope: scope.to_stream(rain).to_records().capture()).extract()
            [(0, [{'city': 'Ulm', 'mm': 3}, {'city': 'Bonn', 'mm': 5}])]
        """
        if is_frame(items):
            from pointstamp.logic.frames import frame_to_stream  # few programs have columns

            return stream_of(self, frame_to_stream(self, items, name))
        _core.check_records("to_stream", items)
        node = self._append(shape.TO_STREAM, [], Output(Form.RECORDS), name=name, items=iter(items))
        return Stream(self, node.output)

    def empty(self, *, name: str | None = None) -> Stream[Any]:
        """A stream without records.

        Examples:
            >>> import pointstamp as ps
            >>> ps.example(lambda scope: scope.empty().capture()).extract()
            []
        """
        return Stream(self, self._append(shape.EMPTY, [], Output(Form.RECORDS), name=name).output)

    def source(
        self,
        name: str,
        build: Callable[[Capability, OperatorInfo], Callable[[OutputPort[T]], None]],
        *,
        state: Declared = None,
    ) -> Stream[T]:
        """An operator without inputs.

        Args:
            name: The operator's name.
            build: Called once with the capability for the minimum time and the operator's info; returns the
                logic, which is called with the output: at the start, and whenever it was activated.
            state: As in `Stream.unary`. After a resumption, the capability is at the least time that the
                source held at the checkpoint; where it held none, it sends nothing.

        Raises:
            GraphError: If checkpoints are made, and `state` is left out.

        Examples:
            >>> import pointstamp as ps
            >>> def countdown(capability, info):
            ...     left = 3
            ...     def logic(output):
            ...         nonlocal left
            ...         if left == 0:
            ...             capability.drop()
            ...             return
            ...         with output.session(capability) as session:
            ...             session.give(left)
            ...         left -= 1
            ...         info.activator.activate()
            ...     return logic
            >>> ps.example(lambda scope: scope.source("countdown", countdown).inspect(print)) and None
            3
            2
            1
        """
        declares = declaration(self, name, state, [])
        made = single_output(self, name, (), build, notify=False, start=True, declares=declares)
        return Stream(self, made)

    def iterator_source(
        self, name: str, items: Iterable[tuple[Time, Iterable[T]]], *, in_flight: int = 2
    ) -> Stream[T]:
        """Times in order with their records; at most `in_flight` times are in the dataflow at once.

        A time is in the dataflow from when its records are sent until nothing of it is left in any operator
        that they can reach. The iterator is not asked for a time before there is room for it.

        Args:
            name: The operator's name.
            items: ``(time, records)`` pairs, each time strictly after the one before; taken lazily.
            in_flight: The maximum number of times in flight, 1 or more.

        Raises:
            GraphError: If `in_flight` is less than 1.
            TimeError: When the dataflow runs, for a time that is not after the one before.

        Examples:
            >>> import pointstamp as ps
            >>> def days():
            ...     for day in range(3):
            ...         print("made", day)
            ...         yield day, [day * 10, day * 10 + 1]
            >>> def build(scope):
            ...     numbers = scope.iterator_source("days", days(), in_flight=1)
            ...     sums = numbers.accumulate(int, lambda total, batch: total + sum(batch))
            ...     sums.inspect(lambda total: print("sum", total))
            >>> ps.example(build)
            made 0
            sum 1
            made 1
            sum 21
            made 2
            sum 41
        """
        from pointstamp.logic.iterator_source import Source

        if not isinstance(name, str):
            raise TypeError(f"iterator_source takes first the operator's name, a str, not {name!r}")
        what = f"source '{name}' takes a number of times in flight"
        in_flight = count_of(what, in_flight, error=GraphError)
        source = Source(name, items, in_flight, records=self._engine.recording is not None)
        stream = self.source(name, source.build, state=lambda: source)
        self._watch(stream._output, source.probe, source.info.activator)
        return stream

    def concatenate(self, streams: Iterable[Stream[T]], *, name: str | None = None) -> Stream[T]:
        """One stream with the records of all.

        Raises:
            TypeError: If one of them is no stream. Collections have `Collection.concat`.

        Examples:
            >>> import pointstamp as ps
            >>> def build(scope):
            ...     parts = [scope.to_stream([n]) for n in range(3)]
            ...     return scope.concatenate(parts).capture()
            >>> ps.example(build).extract()
            [(0, [0, 1, 2])]
        """
        given: list[Any] = list(streams)
        if given and hasattr(given[0], "join_so_far"):  # a stream of columns, which few programs have
            first, *others = given
            self._plan_scope.check_reads(first._output, name or "concatenate")
            columns: Any = first.concat(*others, name=name)
            return columns  # type: ignore[no-any-return]  # as many as there are kinds of streams
        for one in given:
            if not isinstance(one, Stream):
                kind = type(one).__name__
                concat = getattr(type(one), "concat", None)
                cure = f": call {kind}.concat, as in first.concat(*others)" if concat is not None else ""
                raise TypeError(f"concatenate puts streams of records together, not {one!r}{cure}")
        outputs = [stream._output for stream in given]
        form = form_of(outputs)
        reads = [output.read_as(form) for output in outputs]
        node = self._append(shape.CONCATENATE, reads, Output(form), name=name)
        return Stream(self, node.output)

    def operator(self, name: str, *, state: Declared = None) -> OperatorBuilder:
        """Builds an operator with any number of inputs and outputs.

        Args:
            name: Its name.
            state: As in `Stream.unary`.

        Examples:
            An operator that sends even numbers on one output, and odd ones on another:

            >>> import pointstamp as ps
            >>> def build(scope):
            ...     builder = scope.operator("parity")
            ...     builder.new_input(scope.to_stream(range(5)), ps.Pipeline())
            ...     _, evens = builder.new_output()
            ...     _, odds = builder.new_output()
            ...     def constructor(capabilities, info):
            ...         for capability in capabilities:
            ...             capability.drop()
            ...         def logic(inputs, outputs):
            ...             for cap, numbers in inputs[0]:
            ...                 for parity, output in enumerate(outputs):
            ...                     with output.session(cap.retain(parity)) as session:
            ...                         session.give_all(n for n in numbers if n % 2 == parity)
            ...         return logic
            ...     builder.build(constructor)
            ...     return evens.capture(), odds.capture()
            >>> [captured.extract() for captured in ps.example(build)]
            [[(0, [0, 2, 4])], [(0, [1, 3])]]
        """
        return OperatorBuilder(self, name, state)

    def activator_for(self, address: tuple[int, ...]) -> Activator:
        """Something that schedules the operator at an address.

        Raises:
            GraphError: If nothing has the address.

        Examples:
            >>> import pointstamp as ps
            >>> def main(worker):
            ...     addresses, runs = [], []
            ...     def idle(info):
            ...         addresses.append(info.address)
            ...         return lambda input: runs.append(len(input.frontier))
            ...     with worker.dataflow() as scope:
            ...         numbers, stream = scope.new_input()
            ...         stream.sink(ps.Pipeline(), "idle", idle)
            ...     worker.step()
            ...     before = len(runs)
            ...     with worker.dataflow() as scope:
            ...         activator = scope.activator_for(addresses[0])
            ...     activator.activate()
            ...     worker.step()
            ...     return len(runs) - before
            >>> ps.execute(main)
            [1]
        """
        return self._engine.activator_for(list(address))

    # ------------------------------------------------------------ scopes and loops

    def scoped(self, name: str = "Scope", *, dims: int = 0) -> Nested:
        """A scope inside this one, whose timestamps have `dims` more coordinates.

        Use it as a block: ``with scope.scoped() as inner:``. Streams come in with `Stream.enter` and go
        out with `Stream.leave`.

        Examples:
            >>> import pointstamp as ps
            >>> def build(scope):
            ...     words = scope.to_stream(["tick", "tack"])
            ...     with scope.scoped("lengths") as inner:
            ...         lengths = words.enter(inner).map(len).leave()
            ...     return lengths.capture()
            >>> ps.example(build).extract()
            [(0, [4, 4])]
        """
        return Nested(self, name, dims, Scope)

    def region(self, name: str = "Region") -> Nested:
        """A scope inside this one with the same timestamps.

        Examples:
            >>> import pointstamp as ps
            >>> def build(scope):
            ...     words = scope.to_stream(["tick", "tack"])
            ...     with scope.region("lengths") as region:
            ...         return words.enter(region).map(len).leave().capture()
            >>> ps.example(build).extract()
            [(0, [4, 4])]
        """
        return Nested(self, name, 0, Scope)

    def iterative(self, name: str = "Iterate") -> Nested:
        """A scope inside this one for a loop: its timestamps have one more coordinate.

        Examples:
            Halves numbers until they are odd:

            >>> import pointstamp as ps
            >>> def build(scope):
            ...     numbers = scope.to_stream([12, 7])
            ...     with scope.iterative() as inner:
            ...         handle, again = inner.loop_variable(of=int)
            ...         all_numbers = numbers.enter(inner).concat(again)
            ...         all_numbers.filter(lambda n: n % 2 == 0).map(lambda n: n // 2).connect_loop(handle)
            ...         return all_numbers.filter(lambda n: n % 2 == 1).leave().capture()
            >>> ps.example(build).extract()
            [(0, [3, 7])]
        """
        return Nested(self, name, 1, Scope)

    @overload
    def feedback(
        self, summary: Summary = 1, *, of: None = None, name: str | None = None
    ) -> tuple[LoopHandle[Any], Stream[Any]]: ...
    @overload
    def feedback(
        self, summary: Summary = 1, *, of: type[T], name: str | None = None
    ) -> tuple[LoopHandle[T], Stream[T]]: ...
    @overload
    def feedback(
        self, summary: Summary = 1, *, schema: pa.Schema, name: str | None = None
    ) -> tuple[LoopHandle[pa.RecordBatch], ArrowStream]: ...
    def feedback(
        self,
        summary: Summary = 1,
        *,
        schema: pa.Schema | None = None,
        of: Any = None,
        name: str | None = None,
    ) -> tuple[LoopHandle[Any], Any]:
        """A stream that is defined later, by `Stream.connect_loop`; each trip adds the summary to the time.

        Args:
            summary: The increment: of the last coordinate, or, as a tuple, of each.
            schema: Of a loop over record batches; None for one over records.
            of: The type of a loop's records, as in `new_input`.
            name: The operator's name.

        Returns:
            The loop's end, to connect, and the stream: a `Stream`, or with a schema an `ArrowStream`.

        Examples:
            Each trip adds 10 to the time:

            >>> import pointstamp as ps
            >>> def build(scope):
            ...     handle, again = scope.feedback(10, of=int)
            ...     numbers = scope.to_stream([3]).concat(again)
            ...     numbers.map(lambda n: n - 1).filter(lambda n: n > 0).connect_loop(handle)
            ...     return numbers.capture()
            >>> ps.example(build).extract()
            [(0, [3]), (10, [2]), (20, [1])]
        """
        columns = None if schema is None else _core.Schema(schema)
        node = self._feedback(summary, columns, name=name)
        handle: LoopHandle[Any] = LoopHandle(self, node)
        return several("feedback", "handle, stream", (handle, stream_of(self, node.output)))

    @overload
    def loop_variable(
        self, step: int = 1, *, of: None = None, name: str | None = None
    ) -> tuple[LoopHandle[Any], Stream[Any]]: ...
    @overload
    def loop_variable(
        self, step: int = 1, *, of: type[T], name: str | None = None
    ) -> tuple[LoopHandle[T], Stream[T]]: ...
    @overload
    def loop_variable(
        self, step: int = 1, *, schema: pa.Schema, name: str | None = None
    ) -> tuple[LoopHandle[pa.RecordBatch], ArrowStream]: ...
    def loop_variable(
        self, step: int = 1, *, schema: pa.Schema | None = None, of: Any = None, name: str | None = None
    ) -> tuple[LoopHandle[Any], Any]:
        """Makes a `feedback` where each trip adds `step` to the last coordinate.

        Examples:
            >>> import pointstamp as ps
            >>> def build(scope):
            ...     with scope.iterative() as inner:
            ...         handle, again = inner.loop_variable(of=int)
            ...         numbers = scope.to_stream([3]).enter(inner).concat(again)
            ...         numbers.map(lambda n: n - 1).filter(lambda n: n > 0).connect_loop(handle)
            ...         return numbers.capture()
            >>> ps.example(build).extract()
            [((0, 0), [3]), ((0, 1), [2]), ((0, 2), [1])]
        """
        return self.feedback(step, schema=schema, name=name)

    @overload
    def replay(self, captures: Iterable[Capture[T]], *, name: str | None = None) -> Stream[T]: ...
    @overload
    def replay(self, captures: Iterable[Capture[Any] | EventReader], *, name: str | None = None) -> Any: ...
    @overload
    def replay(
        self, captures: Iterable[Capture[Any] | EventReader], *, schema: pa.Schema, name: str | None = None
    ) -> ArrowStream: ...
    def replay(
        self,
        captures: Iterable[Capture[Any] | EventReader],
        *,
        schema: pa.Schema | None = None,
        name: str | None = None,
    ) -> Any:
        """The stream that was captured, with its times and its frontier.

        Several captures are one stream, whatever the number of workers that wrote them and that replay them.
        Each capture is replayed by one worker; a worker may have none. The captured dataflow may still run,
        in this process (`Stream.capture`) or in another.

        Args:
            captures: The captures that this worker replays: captures of streams in memory, and objects of
                `EventReader`. A reader of a socket, or of a file that it follows, is waited for until its
                capture has begun.
            schema: Of columns. Where a worker may have no capture, it says that the stream is an
                `ArrowStream`.
            name: The operator's name.

        Returns:
            A `Stream` of records, or an `ArrowStream` of columns.

        Raises:
            CodecError: For records of a reader that does not allow them; when the dataflow runs, for damage,
                with its offset.
            TimeError: If the times have another number of coordinates than the scope's.
            GraphError: If the captures have different schemas, or a reader was replayed before.

        Warns:
            TruncatedWarning: When the dataflow runs, if a capture ends before its stream did. Its complete
                events are replayed, and then its times are over.

        Examples:
            >>> import pointstamp as ps
            >>> first = ps.example(lambda scope: scope.to_stream(range(3)).capture())
            >>> second = ps.example(lambda scope: scope.to_stream(range(3, 5)).capture())
            >>> both = ps.example(lambda scope: scope.replay([first, second]).capture())
            >>> both.extract()
            [(0, [0, 1, 2, 3, 4])]
        """
        columns = None if schema is None else _core.Schema(schema)
        return stream_of(self, replayed(self, captures, columns, name))

    def read(
        self,
        source: Source[Any],
        *,
        time: Callable[[Any], int] | str | None = None,
        event_time: Callable[[Any], Any] | str | None = None,
        lateness: Any = 0,
        idle: float | None = 10.0,
        every: float | None = None,
        offsets: Mapping[str, Any] | None = None,
        durable: Callable[[str, Any], None] | None = None,
        acknowledge_past_state: bool = False,
        name: str = "read",
    ) -> Any:
        r"""Reads the records of a source, whose partitions are assigned to the workers.

        Each partition is read by one worker. By default everything has the minimum time, which ends with the
        source, unless the source has times. For times of arrival give `every`, for times in the records
        `time`.

        Args:
            source: The source; the same on every worker.
            time: A function of a record, or of columns the name of a column or a function of a batch, which
                gives the records' times: ints from 0 on. The frontier follows the latest time of each
                partition; records that arrive behind the frontier are sent at the frontier. `event_time=`
                separates them instead, and takes datetimes.
            event_time: As `time`, and datetimes with a zone or a column of timestamps, too; records that
                arrive behind the frontier are late, and on a stream of their own. It has a watermark for each
                partition, where `Stream.event_time` has one for each worker.
            lateness: With `time`: the maximum distance of a record behind the latest of its partition; with
                `event_time` an int or a timedelta.
            idle: With a time: the seconds without a record after which a partition holds the others up no
                longer; None for never. A partition that is read to its end, such as a file, is never idle.
            every: Seconds: the time of a batch is the number of such intervals since 1970.
            offsets: Where to begin, for some partitions: offsets that they gave. Others are read from their
                beginning.
            durable: A function that is called with a partition and an offset, plain JSON data, when nothing
                before the offset is needed any more: its results have left the dataflow and were committed by
                its sinks, and no operator keeps its records. A later run that is given the latest offset of
                each partition as `offsets` resumes there. It is called on the thread of the worker that reads
                the partition; an error that it raises ends the dataflow.
            acknowledge_past_state: Has offsets acknowledged (`durable`, `PartitionReader.durable`, a group of
                Kafka, a slot of PostgreSQL) even where an operator keeps state of the records before them for
                as long as it runs: for a program that brings the state back itself, or can do without.
            name: The operator's name.

        Returns:
            A `Stream` of records, or of a source with a schema an `ArrowStream`; with `event_time` two of
            them: the records at their event time, and the late ones.

        Raises:
            GraphError: If times have more than one coordinate here, or `offsets` names no partition.
            TypeError: If `source` is no source, or `durable` no function.

        Warns:
            NotAcknowledged: When the dataflow runs, if offsets are to be acknowledged, and none is because of
                an operator that keeps state.

        Examples:
            >>> import os, tempfile
            >>> import pointstamp as ps
            >>> from pointstamp.connectors import JSONLinesSource
            >>> path = os.path.join(tempfile.mkdtemp(), "numbers.jsonl")
            >>> with open(path, "w") as file:
            ...     _ = file.write("1\n2\n")
            >>> kept = {}
            >>> def build(scope):
            ...     source = JSONLinesSource(path)
            ...     numbers = scope.read(source, offsets=kept, durable=kept.__setitem__)
            ...     return numbers.capture()
            >>> ps.example(build).extract()
            [(0, [1, 2])]
            >>> with open(path, "a") as file:
            ...     _ = file.write("3\n")
            >>> ps.example(build).extract()
            [(0, [3])]
        """
        from pointstamp.connectors.reading import Reading
        from pointstamp.connectors.timing import Arrival, EventTime, Timing
        from pointstamp.logic.late import late_apart, times_of

        if self.dims != 1:
            raise GraphError(f"a source gives times of one coordinate, and they have {self.dims} here")
        if not hasattr(source, "schema"):
            raise TypeError(
                f"read takes a source, such as connectors.JSONLinesSource('orders.jsonl'), not {source!r}"
            )
        given = {"time": time, "event_time": event_time, "every": every}
        names = [f"{argument}=" for argument, value in given.items() if value is not None]
        if len(names) > 1:
            raise GraphError(
                f"read was given {' and '.join(names)}, which each say what the times of records are, so not "
                "both: keep one"
            )
        columns = None if source.schema is None else _core.Schema(source.schema)
        if not source.waits:
            idle = None  # its partitions are read one after another: one whose turn has not come is not idle
        if durable is not None:
            durable = function_of("durable", durable)
        terms: Any = {"past_state": acknowledge_past_state, "durable": durable}
        if event_time is not None:
            times, units, unit = times_of(event_time, lateness, source.schema)
            apart = EventTime(times, units, idle, apart=True)
            reading = Reading(name, source, offsets or {}, apart, **terms)
            read = reading.install(self, columns)
            column = None if columns is None else str(event_time)
            made = late_apart(self, read, times, unit, column)
            on_time, late = (stream_of(self, output) for output in made)
            return several("read", "on_time, late", (on_time, late))
        timing: Timing | None = None
        if time is not None:
            timing = EventTime(time, lateness, idle)
        elif every is not None:
            timing = Arrival(every)
        elif source.time_of is not None:
            timing = EventTime(source.time_of, lateness, idle, own=True)
        reading = Reading(name, source, offsets or {}, timing or Timing(), **terms)
        read = reading.install(self, columns)
        read.at_least_time = timing is None
        return stream_of(self, read)

    @overload
    def new_collection(
        self, *, strict: bool = False, name: str | None = None, resume: Resume = "repeat"
    ) -> tuple[CollectionInput[Any], Collection[Any]]: ...
    @overload
    def new_collection(
        self, *, schema: pa.Schema, strict: bool = False, name: str | None = None, resume: Resume = "repeat"
    ) -> tuple[ColumnInput, ColumnCollection]: ...
    def new_collection(
        self,
        *,
        schema: pa.Schema | None = None,
        strict: bool = False,
        name: str | None = None,
        resume: Resume = "repeat",
    ) -> Any:
        """An input that changes a collection, and the collection.

        Args:
            schema: The columns of a collection of columns; None for a collection of Python values.
            strict: Whether an update is refused that removes more of a record than this input has added so
                far. The input then keeps a count of each record. Without it counts may be below zero. Each
                worker's input counts the records added on that worker; in a session of `Interactive`, all
                records of a strict input go to one worker.
            name: The operator's name.
            resume: As in `new_input`.

        Raises:
            GraphError: If a collection cannot keep a column of the schema, or two have one name; or where
                checkpoints are made, of a strict input to which `main` does not send its records again.

        Examples:
            >>> import pointstamp as ps
            >>> def main(worker):
            ...     with worker.dataflow() as scope:
            ...         words, collection = scope.new_collection(strict=True)
            ...     words.insert("tick")
            ...     try:
            ...         words.remove("tock")
            ...     except ValueError as error:
            ...         print(str(error).partition(":")[0])
            >>> ps.execute(main) and None
            1 of 'tock' cannot be removed at time 0
        """
        columns = None if schema is None else _core.Schema(schema)
        if columns is not None:
            _core.check_columns(columns)
        continues = resume == "continue" or self._building.continues
        if strict and continues and self._engine.recording is not None:
            raise GraphError(
                "a strict input counts what it is given, and checkpoints do not have its counts: leave out "
                "strict= where checkpoints are made, unless main sends again what it has sent"
            )
        handle: InputHandle[Any] = InputHandle()
        output = Output(Form.UPDATES, columns)
        made = self._input_from(handle, _core.StreamKind.UPDATES, output, name, resume)
        changes: Any
        if columns is None:
            from pointstamp.api.collection_input import CollectionInput

            changes = CollectionInput(handle, strict=strict)
        else:
            from pointstamp.api.column_input import ColumnInput

            changes = ColumnInput(handle, columns, strict=strict)
        pair = (changes, collection_of(self, made))
        return several("new_collection", "handle, collection", pair)

    def collection(self, records: Iterable[T], *, name: str | None = None) -> Collection[T]:
        """A collection of the records, from the least time on. Each worker brings its own.

        Examples:
            >>> import pointstamp as ps
            >>> ps.example(lambda scope: scope.collection([2, 1, 2]).capture()).extract()
            [(0, [(1, 1), (2, 2)])]
        """
        if is_frame(records):
            raise TypeError(
                f"collection takes an iterable of records, not a {type(records).__name__}: column_collection "
                "makes a collection of its rows"
            )
        _core.check_records("collection", records)
        stream = self.to_stream(records, name=name)
        return stream.to_collection(name=named_part(name, "to_collection"))

    def column_collection(self, data: Any, *, name: str | None = None) -> ColumnCollection:
        """A collection of the rows of some data, as `collection` is of records.

        Args:
            data: The data for a `ColumnInput`: a table, a record batch, a data frame of pandas or Polars.
            name: The operator's name.

        Raises:
            TypeError: If the data has no columns.
            GraphError: If a collection cannot keep a column of it, or two have one name.

        Examples:
            >>> import pyarrow as pa
            >>> import pointstamp as ps
            >>> rain = pa.table({"city": ["Ulm", "Bonn", "Ulm"], "mm": [3, 5, 4]})
            >>> def build(scope):
            ...     totals = scope.column_collection(rain).aggregate("city", mm_sum=ps.col("mm").sum())
            ...     return totals.to_records().capture()
            >>> ps.example(build).extract()
            [(0, [(('Bonn', 5), 1), (('Ulm', 7), 1)])]
        """
        from pointstamp.logic.frames import schema_and_rows

        schema, given = schema_and_rows(data)
        changes, rows = self.new_collection(schema=schema, name=name)
        changes.insert(given)
        changes.close()
        return rows

    def sql(self, query: str, /, **tables: Any) -> ColumnCollection:
        """The result of a query over collections of columns, which stays right while they change.

        The chapter on SQL lists what is covered. A collection has no order: ORDER BY
        matters with LIMIT, and to `pointstamp.sql` and `Interactive`, which read a result in its order.

        Args:
            query: One SELECT, or a combination of such, in DuckDB's dialect.
            tables: The collections that it reads, by name; or data for `column_collection`.

        Raises:
            GraphError: If the query is not covered, or names what is not there; with the place in its text.
            ImportError: Without sqlglot, which the extra ``pointstamp[sql]`` installs.

        Examples:
            >>> import pyarrow as pa
            >>> import pointstamp as ps
            >>> rain = pa.table({"city": ["Ulm", "Bonn", "Ulm"], "mm": [3, 5, 4]})
            >>> def build(scope):
            ...     days = scope.column_collection(rain)
            ...     wet = scope.sql("SELECT city, sum(mm) AS mm FROM days GROUP BY city", days=days)
            ...     return wet.capture()
            >>> [(time, batch)] = ps.example(build).extract()
            >>> batch.to_pylist()
            [{'city': 'Bonn', 'mm': 5, 'diff': 1}, {'city': 'Ulm', 'mm': 7, 'diff': 1}]
        """
        from pointstamp.queries.lowering import lowered
        from pointstamp.queries.tables import collections_of

        return lowered(query, collections_of(self, tables)).visible()

    @overload
    def variable(
        self, initial: Collection[T] | None = None, *, name: str | None = None
    ) -> Variable[Collection[T]]: ...
    @overload
    def variable(
        self, initial: ColumnCollection, *, name: str | None = None
    ) -> Variable[ColumnCollection]: ...
    @overload
    def variable(self, *, schema: pa.Schema, name: str | None = None) -> Variable[ColumnCollection]: ...
    def variable(
        self, initial: Any = None, *, schema: pa.Schema | None = None, name: str | None = None
    ) -> Any:
        """A collection that is defined by itself, in a scope of `iterative`. Several define each other.

        Args:
            initial: Its value in the first turn of the loop; None for nothing.
            schema: The columns, for a collection of columns that begins with nothing.
            name: The operator's name.

        Raises:
            GraphError: If neither the scope nor one around it is of a loop, or `initial` is of another scope.

        Examples:
            >>> import pointstamp as ps
            >>> def build(scope):
            ...     edges = scope.collection([(1, 2), (2, 3)])
            ...     start = scope.collection([1])
            ...     with scope.iterative() as inner:
            ...         reached = inner.variable(start.enter(inner))
            ...         pairs = reached.collection.map(lambda node: (node, None))
            ...         steps = pairs.join(edges.enter(inner)).map(lambda step: step[1][1])
            ...         grown = steps.concat(reached.collection).distinct()
            ...         reached.set(grown)
            ...         return grown.leave().capture()
            >>> ps.example(build).extract()
            [(0, [(1, 1), (2, 1), (3, 1)])]
        """
        from pointstamp.api.collection import Variable

        columns = None if schema is None else _core.Schema(schema)
        if columns is not None:
            _core.check_columns(columns)
        made: Variable[Any] = Variable(self, initial, columns, name)
        return made

    def import_trace(self, trace: Trace[K, V], *, name: str | None = None) -> Arranged[K, V]:
        """The arrangement that a trace of another dataflow of this worker reads, for joins and reduces here.

        It is not copied: both dataflows use one index, from the trace's `since` on. Results are exact from
        there on, too. A trace of the result may have an earlier `since`, and is not exact before.

        Raises:
            GraphError: If the trace's times have another number of coordinates than the scope's, its dataflow
                is still being built, was never built, or was dropped before it was complete.
            PointstampError: If the trace is closed.
            TypeError: If it is not a `Trace`.

        Examples:
            >>> import pointstamp as ps
            >>> def main(worker):
            ...     with worker.dataflow("prices") as scope:
            ...         prices = scope.collection([("tea", 2), ("rye", 3)]).arrange().trace()
            ...     with worker.dataflow("orders") as scope:
            ...         orders = scope.collection([("tea", "ann")])
            ...         bills = scope.import_trace(prices).join(orders).capture()
            ...     prices.close()
            ...     worker.run()
            ...     return bills.extract()
            >>> ps.execute(main)
            [[(0, [(('tea', (2, 'ann')), 1)])]]
        """
        from pointstamp.api.collection import Arranged, Trace

        if not isinstance(trace, Trace):
            raise TypeError(
                f"import_trace needs the trace of an arrangement, as in arranged.trace(), not {trace!r}"
            )
        scope, reads = self, trace._reads
        scope._plan_scope.check_building()
        with scope._building.making(collections.IMPORT.name, name):
            imported = _core.import_trace(scope._engine, reads)
        node = scope._append(collections.IMPORT, [], Output(Form.BY_KEY), name=name)
        scope._building.reserve(node, imported)
        scope._imports.add(trace._dataflow.address[0])
        made: Arranged[K, V] = Arranged(scope, node.output)
        made._bind(imported)
        return made
