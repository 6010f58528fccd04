"""Scopes: parts of a dataflow while it is built. Their methods append nodes to its plan."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NoReturn, TypeVar, overload

from pointstamp import _core
from pointstamp._core import InputHandle, ProbeHandle
from pointstamp._validation import count_of, is_frame, several, unknown_attribute
from pointstamp.api.classes import stream_of
from pointstamp.api.collection_scope import CollectionScope
from pointstamp.api.loops import LoopHandle
from pointstamp.api.nested import Nested
from pointstamp.api.operator_builder import OperatorBuilder
from pointstamp.api.sources import FromOutside
from pointstamp.api.stream import Stream
from pointstamp.errors import GraphError
from pointstamp.logic.planned import single_output
from pointstamp.logic.timed import form_of
from pointstamp.lowering.building import Building
from pointstamp.observability.drawn import Drawn
from pointstamp.plan import shape
from pointstamp.plan.node import Form, Output
from pointstamp.plan.plan import PlanScope

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    import pyarrow as pa

    from pointstamp._core import Activator, Capability, OutputPort, UnorderedInput
    from pointstamp.api.arrow_input import ArrowInput
    from pointstamp.api.arrow_stream import ArrowStream
    from pointstamp.info import OperatorInfo
    from pointstamp.plan.node import Kind, Node, Read
    from pointstamp.types import Frame, Summary, Time

__all__ = ["Scope"]

T = TypeVar("T")
K = TypeVar("K")
V = TypeVar("V")


class Scope(FromOutside, CollectionScope, Drawn):
    """A part of a dataflow while it is being built: the dataflow itself, or a scope nested in it.

    Attributes:
        name: The scope's name.
        address: The path to it from the worker's root.
        dims: How many coordinates timestamps have here.
        index: This worker's number.
        peers: How many workers there are.
        parent: The scope around it; None for the dataflow itself.
    """

    __slots__ = (
        "_building",
        "_imports",
        "_plan_scope",
        "address",
        "core",
        "dims",
        "index",
        "name",
        "parent",
        "peers",
    )

    core: _core.Scope
    parent: Scope | None
    _plan_scope: PlanScope

    def __init__(self, core: _core.Scope, parent: Scope | None) -> None:
        self.core = core
        self.parent = parent
        self._imports: set[int] = set() if parent is None else parent._imports  # dataflows of imported traces
        super().__init__()
        self.name = core.name
        self.address = core.address
        self.dims = core.dims
        self.index = core.index
        self.peers = core.peers
        around = None if parent is None else parent._plan_scope
        self._plan_scope = PlanScope(self.name, self.address, self.dims, around, core.line())
        self._building = Building(core) if parent is None else parent._building
        self._building.scopes[self._plan_scope] = core

    def _append(
        self,
        kind: Kind,
        reads: Sequence[Output | Read],
        *outputs: Output,
        name: str | None = None,
        crosses: bool = False,
        closes: Node | None = None,
        **arguments: Any,
    ) -> Node:
        """Appends a node to the plan, here, with the line of the program that runs; see `Plan.append`.

        Raises:
            GraphError: As there.
            PointstampError: On another thread than the worker's.
        """
        building = self._building
        if self._plan_scope.complete is None:
            _ = self.core.dims  # which only the worker's thread may read, as the plan has no lock
        if building.prefix:
            name = building.prefixed(kind.name, name)
        return building.plan.append(
            self._plan_scope, kind, reads, outputs, arguments, name, building.line(), crosses, closes
        )

    @property
    def in_loop(self) -> bool:
        """Whether the last coordinate of times here counts the turns of a loop, here or around this scope."""
        return self.parent is not None and (self.dims > self.parent.dims or self.parent.in_loop)

    if not TYPE_CHECKING:  # type checkers find out by themselves

        def __getattr__(self, name: str) -> NoReturn:
            unknown_attribute(self, "a Scope", name)

    def __repr__(self) -> str:
        return f"<Scope '{self.name}' {self.address}>"

    def _entered(self, output: Output, *, name: str | None = None) -> Output:
        """A stream of the scope around this one, here.

        Raises:
            GraphError: If it is of another scope, or there is none around.
        """
        if self.parent is None:
            raise GraphError(f"scope '{self.name}' is a root scope: no stream enters it")
        self.parent._plan_scope.check_reads(output, self.name)
        entered = Output(output.form.plain, output.schema, placed=output.placed)
        return self._append(shape.ENTER, [output], entered, name=name, crosses=True).output

    def _left(self, output: Output) -> Output:
        """A stream of this scope in the scope around it.

        Raises:
            GraphError: If there is no scope around it.
        """
        if self.parent is None:
            raise GraphError(
                f"the stream of '{output.node.title}' is in the root scope '{self.name}': there is no scope "
                "to leave to"
            )
        return self.parent._append(shape.LEAVE, [output], output.like(), crosses=True).output

    # ------------------------------------------------------------ sources

    @overload
    def new_input(
        self, *, of: None = None, name: str | None = None
    ) -> tuple[InputHandle[Any], Stream[Any]]: ...
    @overload
    def new_input(self, *, of: type[T], name: str | None = None) -> tuple[InputHandle[T], Stream[T]]: ...
    def new_input(self, *, of: Any = None, name: str | None = None) -> tuple[InputHandle[Any], Stream[Any]]:
        """An input that `main` drives, and its stream.

        Args:
            of: The type of its records, for type checkers: nothing looks at it when the program runs.
            name: The operator's name.
        """
        handle: InputHandle[Any] = InputHandle()
        return several("new_input", "handle, stream", (handle, self.input_from(handle, name=name)))

    @overload
    def input_from(self, handle: ArrowInput, *, name: str | None = None) -> ArrowStream: ...
    @overload
    def input_from(self, handle: InputHandle[T], *, name: str | None = None) -> Stream[T]: ...
    def input_from(
        self, handle: ArrowInput | InputHandle[T], *, name: str | None = None
    ) -> ArrowStream | Stream[T]:
        """The stream of an input handle, or of an input of record batches, from its current time on.

        Raises:
            TimeError: If the handle's times have another number of coordinates.
            CapabilityError: If the handle is closed.
        """
        if not isinstance(handle, InputHandle):
            from pointstamp.api.arrow_input import ArrowInput  # few programs have columns

            if isinstance(handle, ArrowInput):
                return handle.to_stream(self, name=name)
        return Stream(self, self._input_from(handle, _core.StreamKind.RECORDS, Output(Form.RECORDS), name))

    def _input_from(
        self, handle: InputHandle[Any], kind: _core.StreamKind, output: Output, name: str | None
    ) -> Output:
        """The stream of an input, which may be used at once."""
        self._plan_scope.check_building()
        with self._building.making("input", name):
            made = self.core.input_from(handle, kind)
        return self._building.reserve(self._append(shape.INPUT, [], output, name=name), made).output

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
        """
        self._plan_scope.check_building()
        with self._building.making("unordered input", name):
            handle, capability, made = self.core.unordered_input()
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
        """A stream without records."""
        return Stream(self, self._append(shape.EMPTY, [], Output(Form.RECORDS), name=name).output)

    def source(
        self,
        name: str,
        build: Callable[[Capability, OperatorInfo], Callable[[OutputPort[T]], None]],
    ) -> Stream[T]:
        """An operator without inputs.

        Args:
            name: The operator's name.
            build: Called once with the capability for the minimum time and the operator's info; returns the
                logic, which is called with the output: at the start, and whenever it was activated.
        """
        return Stream(self, single_output(self, name, (), build, notify=False, start=True))

    def iterator_source(
        self, name: str, items: Iterable[tuple[Time, Iterable[T]]], *, in_flight: int = 2
    ) -> Stream[T]:
        """Times in order with their records; at most `in_flight` times are in the dataflow at once.

        A time is in the dataflow from when its records are sent until nothing of it is left in any operator
        that they can reach. The iterator is not asked for a time before there is room for it.

        Args:
            name: The operator's name.
            items: ``(time, records)`` pairs, each time strictly after the one before; taken lazily.
            in_flight: How many times there may be at once, 1 or more.

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
        source = Source(name, items, in_flight)
        stream = self.source(name, source.build)
        self._watch(stream._output, source.probe, source.info.activator)
        return stream

    def _watch(
        self, output: Output, probe: ProbeHandle, activator: Activator, *, retained: bool = False
    ) -> None:
        """Has a probe report the times that are anywhere downstream, and activates an operator with it.

        With `retained`, the times of which operators still need records are there, too.
        """
        self._append(shape.WATCH, [output], probe=probe, activator=activator, retained=retained)

    def concatenate(self, streams: Iterable[Stream[T]], *, name: str | None = None) -> Stream[T]:
        """One stream with the records of all.

        Raises:
            TypeError: If one of them is no stream. Collections have `Collection.concat`.
        """
        given: list[Any] = list(streams)
        if given and hasattr(given[0], "map_batches"):  # a stream of columns, which few programs have
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

    def operator(self, name: str) -> OperatorBuilder:
        """Builds an operator with any number of inputs and outputs."""
        return OperatorBuilder(self, name)

    def activator_for(self, address: tuple[int, ...]) -> Activator:
        """Something that schedules the operator at an address.

        Raises:
            GraphError: If nothing has the address.
        """
        return self.core.activator_for(list(address))

    # ------------------------------------------------------------ scopes and loops

    def scoped(self, name: str = "Scope", *, dims: int = 0) -> Nested:
        """A scope inside this one, whose timestamps have `dims` more coordinates.

        Use it as a block: ``with scope.scoped() as inner:``. Streams come in with `Stream.enter` and go
        out with `Stream.leave`.
        """
        return Nested(self, name, dims, Scope)

    def region(self, name: str = "Region") -> Nested:
        """A scope inside this one with the same timestamps."""
        return Nested(self, name, 0, Scope)

    def iterative(self, name: str = "Iterate") -> Nested:
        """A scope inside this one for a loop: its timestamps have one more coordinate."""
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
            summary: What to add: to the last coordinate, or, as a tuple, to each.
            schema: Of a loop over record batches; None for one over records.
            of: The type of a loop's records, as in `new_input`.
            name: The operator's name.

        Returns:
            The loop's end, to connect, and the stream: a `Stream`, or with a schema an `ArrowStream`.
        """
        columns = None if schema is None else _core.Schema(schema)
        handle, made = self._feedback(summary, columns, name=name)
        return several("feedback", "handle, stream", (handle, stream_of(self, made)))

    def _feedback(
        self, summary: Summary, columns: _core.Schema | None, *, retains: bool = True, name: str | None = None
    ) -> tuple[LoopHandle[Any], Output]:
        """A stream that is defined later; see `feedback`.

        Args:
            summary: As in `feedback`.
            columns: The schema; None for records.
            retains: Whether records that go round may be needed for as long as the dataflow runs, where their
                times are those of a source.
            name: The operator's name.
        """
        self._plan_scope.check_building()
        with self._building.making("feedback", name):
            end, made = self.core.feedback(summary, columns, retains)
        form = Form.RECORDS if columns is None else Form.COLUMNS
        node = self._append(shape.FEEDBACK, [], Output(form, columns), name=name, end=end)
        self._building.reserve(node, made)
        return LoopHandle(self._building.plan, node), node.output

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
        """Makes a `feedback` where each trip adds `step` to the last coordinate."""
        return self.feedback(step, schema=schema, name=name)
