"""Building operators: any number of inputs and outputs, and the path summaries between them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeVar, overload

from pointstamp._core import Schema as CoreSchema
from pointstamp._core import check_summaries
from pointstamp._errors import GraphError
from pointstamp._mistakes import refuse_async, stream_of, suggesting
from pointstamp.info import OperatorInfo
from pointstamp.pacts import pact_of
from pointstamp.plan import shape
from pointstamp.plan.node import Form, Output
from pointstamp.streams.kinds import stream_of as stream_from

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    import pyarrow as pa

    from pointstamp import _core
    from pointstamp._core import Capability, FrontieredInput, OutputPort
    from pointstamp._types import Summary
    from pointstamp.event_times.clock import Clock
    from pointstamp.pacts import Pact
    from pointstamp.plan.node import Read
    from pointstamp.scope import Scope
    from pointstamp.streams.arrow import ArrowStream
    from pointstamp.streams.records import Stream

__all__ = ["OperatorBuilder", "PlannedOperator", "Retention"]

T = TypeVar("T")


@suggesting
class Retention:
    """The records that an operator still needs, by time: `OperatorBuilder.retention` makes one.

    A source that acknowledges its offsets, as Kafka's group, goes by it. Nobody else does: no frontier that
    is read anywhere is held up, and a dataflow ends when the operator needs nothing any more.
    """

    __slots__ = ("_core",)

    def __init__(self, core: _core.Retention | None) -> None:
        self._core = core

    def settle(self, sent: int, needed: int | None) -> None:
        """Says what is needed from now on.

        Until the first call, all records are needed.

        Args:
            sent: The latest time at which the operator has sent something.
            needed: Records at times before this one are not needed any more, once all that was sent up to
                `sent` has left the dataflow. At most the input's frontier. None: no record is, and none can
                come.
        """
        if self._core is not None:
            self._core.settle(sent, needed)


@suggesting
class OperatorBuilder:
    """Builds an operator with any number of inputs and outputs.

    Examples:
        An operator whose second input cannot result in records at its output:

        >>> import pointstamp as ps
        >>> def build(scope):
        ...     builder = scope.operator("data and diagnostics")
        ...     builder.new_input(scope.to_stream(range(3)), ps.Pipeline())
        ...     builder.new_input(scope.to_stream(["how goes it?"]), ps.Pipeline())
        ...     output, stream = builder.new_output()
        ...     builder.set_summary(1, output, None)
        ...     def constructor(capabilities, info):
        ...         for capability in capabilities:
        ...             capability.drop()
        ...         def logic(inputs, outputs):
        ...             for cap, records in inputs[0]:
        ...                 with outputs[0].session(cap) as session:
        ...                     session.give_all(records)
        ...             for _ in inputs[1]:
        ...                 pass
        ...         return logic
        ...     builder.build(constructor)
        ...     return stream.capture()
        >>> ps.example(build).extract()
        [(0, [0, 1, 2])]
    """

    __slots__ = ("_capabilities", "_core", "_outputs", "_scope")

    def __init__(self, scope: Scope, name: str) -> None:
        self._scope = scope
        self._core = PlannedOperator(scope, name)
        self._outputs: list[OutputPort[Any]] = []
        self._capabilities: list[Capability] = []

    def new_input(self, stream: Stream[Any] | ArrowStream, pact: Pact) -> int:
        """Adds an input.

        Returns:
            Its number, from 0.

        Raises:
            GraphError: If the stream is of another scope.
        """
        name = self._core.name
        return self._core.new_input(stream_of(name, stream)._output, pact_of(pact, stream, name))

    @overload
    def new_output(self, *, of: None = None) -> tuple[int, Stream[Any]]: ...
    @overload
    def new_output(self, *, of: type[T]) -> tuple[int, Stream[T]]: ...
    @overload
    def new_output(self, schema: pa.Schema) -> tuple[int, ArrowStream]: ...
    def new_output(self, schema: pa.Schema | None = None, *, of: Any = None) -> tuple[int, Any]:
        """Adds an output.

        Args:
            schema: Of an output for record batches; None for one of Python records.
            of: The type of its records, as in `Scope.new_input`.

        Returns:
            Its number, from 0, and its stream: a `Stream`, or with a schema an `ArrowStream`.
        """
        columns = None if schema is None else CoreSchema(schema)
        port, output, capability = self._core.new_output(columns)
        self._outputs.append(port)
        self._capabilities.append(capability)
        return output.port, stream_from(self._scope, output)

    def set_summary(self, input: int, output: int, summary: Summary | Iterable[Summary] | None) -> None:
        """Says what happens to a timestamp on its way from an input to an output.

        Args:
            input: The input's number.
            output: The output's number.
            summary: One summary or several; None says that there is no path. The default of every pair is
                the identity.

        Raises:
            GraphError: If there is no such input or output.
        """
        self._core.set_summary(input, output, summary)

    def retention(self, *streams: Stream[Any] | ArrowStream) -> Retention:
        """Makes the object by which the operator says which records it still needs.

        An operator that sends at the times of its messages, and holds a capability at the time of each record
        that it keeps, needs none. One that keeps records without, or sends at later times, says by this what
        a source may not acknowledge yet. In a nested scope, and on a loop, such a source
        acknowledges nothing.

        Args:
            streams: All streams that the operator sends on.

        Examples:
            >>> import pointstamp as ps
            >>> def build(scope):
            ...     builder = scope.operator("tomorrow")
            ...     builder.new_input(scope.to_stream(range(3)), ps.Pipeline())
            ...     _, stream = builder.new_output()
            ...     retention = builder.retention(stream)
            ...     def constructor(capabilities, info):
            ...         capabilities[0].drop()
            ...         sent = 0
            ...         def logic(inputs, outputs):
            ...             nonlocal sent
            ...             for message, records in inputs[0]:
            ...                 with outputs[0].session(message.delayed(message.time + 1)) as session:
            ...                     session.give_all(records)
            ...                 sent = max(sent, message.time + 1)
            ...             retention.settle(sent, min(inputs[0].frontier, default=None))
            ...         return logic
            ...     builder.build(constructor)
            ...     return stream.capture()
            >>> ps.example(build).extract()
            [(1, [0, 1, 2])]
        """
        return Retention(self._core.retention([stream._output for stream in streams]))

    def build(
        self,
        constructor: Callable[
            [list[Capability], OperatorInfo],
            Callable[[list[FrontieredInput[Any]], list[OutputPort[Any]]], None],
        ],
    ) -> None:
        """Ends the construction.

        Args:
            constructor: Called once, with a capability for each output at the minimum time and the
                operator's info. It returns the logic, which is called with the inputs and the outputs
                whenever the operator runs: at the start, when messages arrive, a frontier changes, or it
                was activated.

        Raises:
            GraphError: If the operator was built already.
        """
        self._core.check_unbuilt()
        capabilities, self._capabilities = self._capabilities, []
        logic = self._core.constructed(constructor, capabilities)
        outputs = self._outputs
        self._core.build(logic, lambda inputs: (inputs, outputs), start=True)


class PlannedOperator:
    """An operator of one's own, while it is being built: reserved in the engine, connected by lowering.

    Its outputs, capabilities and activator are made at once, so that its constructor can be called; its
    inputs are connected, and it is built, when the plan is lowered.

    Args:
        scope: Where it is.
        name: What it is called.
    """

    __slots__ = ("_inputs", "_outputs", "_pacts", "_ports", "_scope", "_summaries", "core", "name", "node")

    def __init__(self, scope: Scope, name: str) -> None:
        scope._plan_scope.check_building()
        self.name = name
        self.core: _core.Builder = scope.core.operator(name)
        self._scope = scope
        self._inputs: list[Read] = []
        self._pacts: list[tuple[_core.PactKind, Any, bool]] = []
        self._outputs: list[Output] = []
        self._ports = 0
        self._summaries: list[tuple[int, int, Any]] = []
        self.node = scope._building.reserved(
            scope._plan_scope, shape.OPERATOR, self._inputs, self._outputs, name
        )

    @property
    def info(self) -> OperatorInfo:
        """The description of the operator that its constructor is given."""
        core, scope = self.core, self._scope
        return OperatorInfo(self.name, core.address, scope.index, scope.peers, core.activator())

    def new_input(
        self, read: Output | Read, pact: tuple[_core.PactKind, Any], *, frontier: bool = True
    ) -> int:
        """Adds an input.

        Args:
            read: What it reads.
            pact: How that moves; see `pact_of`.
            frontier: Whether the operator is told of the input's frontier.

        Returns:
            Its number.

        Raises:
            GraphError: If it is of another scope.
        """
        if isinstance(read, Output):
            read = read.read_as(read.form.plain)
        self._scope._plan_scope.check_reads(read.output, self.name)
        if not self._inputs:
            self._scope._building.plan.require(
                self.node,
                f"operator '{self.name}' was never built: it has inputs and nothing that would read them, so "
                "that the dataflow could not end; call build(), and let errors of building it end the "
                "dataflow's block",
            )
        self._inputs.append(read)
        self._pacts.append((*pact, frontier))
        return len(self._inputs) - 1

    def new_output(
        self, schema: _core.Schema | None = None, *, form: Form | None = None, clock: Clock | None = None
    ) -> tuple[OutputPort[Any], Output, Capability]:
        """Adds an output.

        Args:
            schema: Of columns; None for records.
            form: The form in which it is made, where it is not the plain one.
            clock: What tells the unit of its times, where these are not those of the inputs.
        """
        form = form or (Form.RECORDS if schema is None else Form.COLUMNS)
        port, stream, capability = self.core.new_output(schema, timed=form is Form.TIMED)
        output = Output(form, schema, clock=clock)
        output.node, output.port = self.node, len(self._outputs)
        self._outputs.append(output)
        self._ports += 1
        self._scope._building.reserve_output(output, stream)
        return port, output, capability

    def set_summary(self, input: int, output: int, summary: Any) -> None:
        """Says what happens to a timestamp on its way; see `OperatorBuilder.set_summary`.

        Raises:
            GraphError: If there is no such input or output.
        """
        inputs, outputs = len(self._inputs), len(self._outputs)
        if not (0 <= input < inputs and 0 <= output < self._ports):
            raise GraphError(
                f"operator '{self.name}' has {inputs} inputs and {outputs} outputs: there is no path from "
                f"input {input} to output {output} to summarise"
            )
        summary = check_summaries(summary, self._scope.dims)
        self._summaries.append((input, output, summary))

    def retention(self, outputs: Sequence[Output]) -> _core.Retention | None:
        """The retention of the operator, whose results are in these outputs; None where there is none."""
        building = self._scope._building
        made = self.core.retention([building.take(output, output.form) for output in outputs])
        self._ports += made is not None  # it has an output of its own
        return made

    def retains_forever(self) -> None:
        """Says that the operator may need any record for as long as it runs."""
        self.core.retains_forever()

    def note_kept(self, size: Callable[[], tuple[int, int] | None]) -> None:
        """Notes how to ask how much the operator keeps: in rows and bytes, None where that is not known."""
        self.core.note_kept(size)

    def constructed(self, constructor: Callable[..., Any], *given: Any) -> Any:
        """The operator's logic, which its constructor makes of what it is given and the operator's info."""
        return constructed(self.name, constructor, *given, self.info)

    def check_unbuilt(self) -> None:
        """Checks that the operator has no logic yet.

        Raises:
            GraphError: If it has.
        """
        if self.node.number >= 0:
            raise GraphError(f"operator '{self.name}' was built already: it has one constructor")

    def build(
        self,
        logic: Callable[..., None],
        arguments: Callable[[list[Any]], tuple[Any, ...]],
        *,
        notify: bool = True,
        start: bool = False,
    ) -> None:
        """Ends the construction.

        Args:
            logic: What the operator does when it runs.
            arguments: Makes what the logic is called with of the list of inputs.
            notify: Whether it runs when a frontier changes.
            start: Whether it runs at the start.
        """
        plan = self._scope._building.plan
        self._scope._plan_scope.check_building()
        if self._inputs:
            plan.fulfil(self.node)
        self.node.arguments = {
            "core": self.core,
            "pacts": self._pacts,
            "summaries": self._summaries,
            "logic": logic,
            "ports": arguments,
            "notify": notify,
            "start": start,
        }
        self.node.told_of_inputs()
        plan.add(self.node)


def constructed(name: str, constructor: Callable[..., Any], *given: Any) -> Any:
    """Returns the result of an operator's constructor, which must be its logic.

    Raises:
        GraphError: If it is not a function.
        TypeError: If either is `async def`.
    """
    refuse_async(f"operator '{name}'", constructor)
    logic = constructor(*given)
    if not callable(logic):
        raise GraphError(
            f"the constructor of operator '{name}' must return its logic, a function, and returned {logic!r}"
        )
    refuse_async(f"operator '{name}'", logic)
    return logic


@overload
def single_output(
    scope: Scope,
    name: str,
    inputs: Sequence[tuple[Stream[Any] | ArrowStream, Pact]],
    build: Callable[[Capability, OperatorInfo], Callable[..., None]],
    *,
    notify: bool,
    start: bool = False,
    retains_forever: bool = False,
) -> Stream[Any]: ...
@overload
def single_output(
    scope: Scope,
    name: str,
    inputs: Sequence[tuple[Stream[Any] | ArrowStream, Pact]],
    build: Callable[[Capability, OperatorInfo], Callable[..., None]],
    *,
    notify: bool,
    start: bool = False,
    retains_forever: bool = False,
    schema: _core.Schema | None,
) -> Any: ...
def single_output(
    scope: Scope,
    name: str,
    inputs: Sequence[tuple[Stream[Any] | ArrowStream, Pact]],
    build: Callable[[Capability, OperatorInfo], Callable[..., None]],
    *,
    notify: bool,
    start: bool = False,
    retains_forever: bool = False,
    schema: _core.Schema | None = None,
) -> Any:
    """An operator with one output, whose logic is called with its inputs and the output.

    The output is a `Stream`, or with a schema an `ArrowStream`. With `retains_forever` a source upstream
    acknowledges nothing: the operator may need any record for as long as it runs.
    """
    core = PlannedOperator(scope, name)
    for stream, pact in inputs:
        core.new_input(stream_of(name, stream)._output, pact_of(pact, stream, name), frontier=notify)
    port, output, capability = core.new_output(schema)
    logic = core.constructed(build, capability)
    del capability
    if retains_forever:
        core.retains_forever()
    core.build(logic, lambda ports: (*ports, port), notify=notify, start=start)
    return stream_from(scope, output)
