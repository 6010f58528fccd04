"""Operators of one's own, and those of the library that are written in Python, as nodes of a plan.

Owns `PlannedOperator`: it reserves the operator in the engine when the method is called, so that its
constructor has capabilities, an address and an activator; lowering connects its inputs.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pointstamp._core import check_summaries
from pointstamp._validation import refuse_async
from pointstamp.errors import GraphError
from pointstamp.info import OperatorInfo
from pointstamp.pacts import pact_of
from pointstamp.plan import shape
from pointstamp.plan.node import Form, Output

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from pointstamp import _core
    from pointstamp._core import Capability, OutputPort
    from pointstamp.event_time.clock import Clock
    from pointstamp.lowering.scope import BuildingScope
    from pointstamp.pacts import Pact
    from pointstamp.plan.node import Read

__all__ = ["PlannedOperator", "constructed", "single_output"]


class PlannedOperator:
    """An operator of one's own, while it is being built: reserved in the engine, connected by lowering.

    Its outputs, capabilities and activator are made at once, so that its constructor can be called; its
    inputs are connected, and it is built, when the plan is lowered.

    Args:
        scope: Where it is.
        name: What it is called.
    """

    __slots__ = ("_inputs", "_outputs", "_ports", "_scope", "core", "name", "node")

    def __init__(self, scope: BuildingScope, name: str) -> None:
        scope._plan_scope.check_building()
        self.name = name
        self.core: _core.Builder = scope._engine.operator(name)
        self._scope = scope
        self._inputs: list[Read] = []
        self._outputs: list[Output] = []
        self._ports = 0
        self.node = scope._building.reserved(
            scope._plan_scope, shape.OPERATOR, self._inputs, self._outputs, name, pacts=[], summaries=[]
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
        self._scope._plan_scope.check_building()
        self._scope._plan_scope.check_reads(read.output, self.name)
        self._require_building()
        self._inputs.append(read)
        self.node["pacts"].append((*pact, frontier))
        return len(self._inputs) - 1

    def _require_building(self) -> None:
        """Notes that the dataflow is not complete without the operator's logic."""
        self._scope._building.plan.require(
            self.node,
            f"operator '{self.name}' was never built: it has inputs or outputs and no logic, so that the "
            "dataflow could not end; call build(), and let errors of building it end the dataflow's block",
        )

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
        self._scope._plan_scope.check_building()
        self._require_building()
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
        self._scope._plan_scope.check_building()
        self.node["summaries"].append((input, output, check_summaries(summary, self._scope.dims)))

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
        plan, node = self._scope._building.plan, self.node
        self._scope._plan_scope.check_building()
        if self._inputs or self._outputs:
            plan.fulfil(node)
        assert node.arguments is not None
        node.arguments.update(core=self.core, logic=logic, ports=arguments, notify=notify, start=start)
        node.take_over_clocks()
        plan.add(node)


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


def single_output(
    scope: BuildingScope,
    name: str,
    inputs: Sequence[tuple[Output, Pact]],
    build: Callable[[Capability, OperatorInfo], Callable[..., None]],
    *,
    notify: bool,
    start: bool = False,
    retains_forever: bool = False,
    schema: _core.Schema | None = None,
) -> Output:
    """Appends an operator with one output, whose logic is called with its inputs and the output.

    Args:
        scope: Where it is.
        name: What it is called.
        inputs: What it reads, and how that moves.
        build: Its constructor.
        notify: Whether it runs when a frontier changes.
        start: Whether it runs at the start.
        retains_forever: Whether it may need any record for as long as it runs: a source upstream then
            acknowledges nothing.
        schema: Of the output's columns; None for records.

    Raises:
        GraphError: If an input is of another scope; then nothing is appended.
    """
    moved = []
    for output, pact in inputs:
        scope._plan_scope.check_reads(output, name)
        moved.append((output, pact_of(pact, output, name)))
    core = PlannedOperator(scope, name)
    for output, route in moved:
        core.new_input(output, route, frontier=notify)
    port, made, capability = core.new_output(schema)
    logic = core.constructed(build, capability)
    del capability
    if retains_forever:
        core.retains_forever()
    core.build(logic, lambda ports: (*ports, port), notify=notify, start=start)
    return made
