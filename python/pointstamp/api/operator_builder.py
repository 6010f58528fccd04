"""Building operators: any number of inputs and outputs, and the path summaries between them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeVar, overload

from pointstamp._core import Schema as CoreSchema
from pointstamp._validation import stream_given, suggesting
from pointstamp.api.classes import stream_of
from pointstamp.errors import GraphError
from pointstamp.logic.declared_state import declaration
from pointstamp.logic.planned import PlannedOperator
from pointstamp.pacts import pact_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    import pyarrow as pa

    from pointstamp import _core
    from pointstamp._core import Capability, FrontieredInput, OutputPort
    from pointstamp.api.arrow_stream import ArrowStream
    from pointstamp.api.scope import Scope
    from pointstamp.api.stream import Stream
    from pointstamp.info import OperatorInfo
    from pointstamp.logic.declared_state import Declared
    from pointstamp.pacts import Pact
    from pointstamp.types import Summary

__all__ = ["OperatorBuilder", "Retention"]

T = TypeVar("T")

_CURE = (
    "write scope.operator(name, state=C), where C is a class with snapshot() and restore(), whose object its "
    'constructor finds as info.state; or state="none" where it keeps nothing from one call to the next'
)


@suggesting
class Retention:
    """The records that an operator still needs, by time: `OperatorBuilder.retention` makes one.

    A source that acknowledges its offsets, such as a Kafka group's, uses it. It has no other effect: no
    visible frontier is held up, and a dataflow ends when the operator needs no records any more.
    """

    __slots__ = ("_core",)

    def __init__(self, core: _core.Retention | None) -> None:
        self._core = core

    def settle(self, sent: int, needed: int | None) -> None:
        """Declares the records that are needed from then on.

        Until the first call, all records are needed.

        Args:
            sent: The latest time at which the operator has sent something.
            needed: Records at times before this one are not needed any more, once all that was sent up to
                `sent` has left the dataflow. At most the input's frontier. None: no record is, and none can
                come.

        Examples:
            `OperatorBuilder.retention` has an operator that calls it:

            >>> import pointstamp as ps
            >>> def build(scope):
            ...     builder = scope.operator("nothing kept")
            ...     builder.new_input(scope.to_stream(range(3)), ps.Pipeline())
            ...     _, stream = builder.new_output()
            ...     retention = builder.retention(stream)
            ...     def constructor(capabilities, info):
            ...         capabilities[0].drop()
            ...         def logic(inputs, outputs):
            ...             for _ in inputs[0]:
            ...                 pass
            ...             retention.settle(0, min(inputs[0].frontier, default=None))
            ...         return logic
            ...     builder.build(constructor)
            ...     return stream.capture()
            >>> ps.example(build).extract()
            []
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

    __slots__ = ("_begun", "_capabilities", "_core", "_outputs", "_pacts", "_scope", "_state")

    def __init__(self, scope: Scope, name: str, state: Declared = None) -> None:
        self._scope = scope
        self._state = state
        self._pacts: list[type[Pact]] = []  # their keys are the plan's
        self._core = PlannedOperator(scope, name)
        self._begun = False  # whether the constructor was called
        self._outputs: list[OutputPort[Any]] = []
        self._capabilities: list[Capability] = []

    def new_input(self, stream: Stream[Any] | ArrowStream, pact: Pact) -> int:
        """Adds an input.

        Returns:
            Its number, from 0.

        Raises:
            GraphError: If the stream is of another scope, or the operator was built already.

        Examples:
            >>> import pointstamp as ps
            >>> def build(scope):
            ...     builder = scope.operator("two inputs")
            ...     numbers = [builder.new_input(scope.empty(), ps.Pipeline()) for _ in range(2)]
            ...     builder.build(lambda capabilities, info: lambda inputs, outputs: None)
            ...     return numbers
            >>> ps.example(build)
            [0, 1]
        """
        self._check_unbuilt()
        name = self._core.name
        output = stream_given(name, stream)._output
        number = self._core.new_input(output, pact_of(pact, output, name))
        self._pacts.append(type(pact))
        return number

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

        Raises:
            GraphError: If the operator was built already.

        Examples:
            >>> import pointstamp as ps
            >>> def build(scope):
            ...     builder = scope.operator("greeting")
            ...     output, stream = builder.new_output(of=str)
            ...     def constructor(capabilities, info):
            ...         def logic(inputs, outputs):
            ...             if capabilities:
            ...                 with capabilities.pop() as cap, outputs[output].session(cap) as session:
            ...                     session.give("hello")
            ...         return logic
            ...     builder.build(constructor)
            ...     return stream.capture()
            >>> ps.example(build).extract()
            [(0, ['hello'])]
        """
        self._check_unbuilt()
        columns = None if schema is None else CoreSchema(schema)
        port, output, capability = self._core.new_output(columns)
        self._outputs.append(port)
        self._capabilities.append(capability)
        return output.port, stream_of(self._scope, output)

    def set_summary(self, input: int, output: int, summary: Summary | Iterable[Summary] | None) -> None:
        """Sets the effect on a timestamp on its way from an input to an output.

        Args:
            input: The input's number.
            output: The output's number.
            summary: One summary or several; None says that there is no path. The default of every pair is
                the identity.

        Raises:
            GraphError: If there is no such input or output, or the operator was built already.

        Examples:
            An operator that sends all records one time later:

            >>> import pointstamp as ps
            >>> def build(scope):
            ...     builder = scope.operator("later")
            ...     given = builder.new_input(scope.to_stream(range(3)), ps.Pipeline())
            ...     output, stream = builder.new_output()
            ...     builder.set_summary(given, output, 1)
            ...     def constructor(capabilities, info):
            ...         capabilities[0].drop()
            ...         def logic(inputs, outputs):
            ...             for cap, records in inputs[0]:
            ...                 with outputs[0].session(cap.delayed(cap.time + 1)) as session:
            ...                     session.give_all(records)
            ...         return logic
            ...     builder.build(constructor)
            ...     return stream.capture()
            >>> ps.example(build).extract()
            [(1, [0, 1, 2])]
        """
        self._check_unbuilt()
        self._core.set_summary(input, output, summary)

    def retention(self, *streams: Stream[Any] | ArrowStream) -> Retention:
        """Makes the object by which the operator says which records it still needs.

        An operator that sends at the times of its messages, and holds a capability at the time of each record
        that it keeps, needs none. An operator that keeps records without, or sends at later times, declares
        by this the records that a source may not acknowledge yet. In a nested scope, and on a loop, such a
        source acknowledges nothing.

        Args:
            streams: All streams that the operator sends on.

        Raises:
            GraphError: If one of them is another operator's, or the operator was built already.

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
        self._check_unbuilt()
        name = self._core.name
        outputs = [stream_given(name, stream)._output for stream in streams]
        for output in outputs:
            if output.node is not self._core.node:
                raise GraphError(
                    f"retention takes the streams that operator '{name}' sends on, and that of "
                    f"'{output.node.title}' is none of them: pass what new_output() has returned"
                )
        return Retention(self._core.retention(outputs))

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
            GraphError: If the operator was built already, also with a constructor that raised an error; or
                if checkpoints are made, and `Scope.operator` was given no `state`.

        Examples:
            >>> import pointstamp as ps
            >>> def build(scope):
            ...     builder = scope.operator("sink")
            ...     builder.new_input(scope.to_stream(range(3)), ps.Pipeline())
            ...     def constructor(capabilities, info):
            ...         def logic(inputs, outputs):
            ...             for _, records in inputs[0]:
            ...                 print(info.name, records)
            ...         return logic
            ...     builder.build(constructor)
            >>> ps.example(build)
            sink [0, 1, 2]
        """
        self._check_unbuilt()
        name = self._core.name
        declares = declaration(self._scope, name, self._state, self._pacts, cure=_CURE)
        self._begun = True
        declares(self._core)
        capabilities, self._capabilities = self._capabilities, []
        logic = self._core.constructed(constructor, capabilities)
        outputs = self._outputs
        self._core.build(logic, lambda inputs: (inputs, outputs), start=True)

    def _check_unbuilt(self) -> None:
        """Checks that the constructor was not called yet, which is given all outputs' capabilities."""
        if self._begun:
            raise GraphError(
                f"operator '{self._core.name}' was built already: it has one constructor, and its inputs and "
                "outputs are added before build()"
            )
