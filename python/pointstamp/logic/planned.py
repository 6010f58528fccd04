"""Custom operators, and the library's operators in Python, as nodes of a plan.

Owns `PlannedOperator`: it reserves the operator in the engine when the method is called, so that its
constructor has capabilities, an address and an activator; lowering connects its inputs.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeVar

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
    from pointstamp.logic.declared_state import Declares, Requests, Restored, Snapshots, Waiting
    from pointstamp.lowering.scope import BuildingScope
    from pointstamp.pacts import Pact
    from pointstamp.plan.node import Read

__all__ = ["PlannedOperator", "constructed", "scope_records", "single_output"]

S = TypeVar("S", bound="Snapshots")


def scope_records(scope: BuildingScope) -> bool:
    """Whether checkpoints are made of the computation."""
    return scope._engine.recording is not None


class PlannedOperator:
    """A custom operator, while it is being built: reserved in the engine, connected by lowering.

    Its outputs, capabilities and activator are made at once, so that its constructor can be called; its
    inputs are connected, and it is built, when the plan is lowered.

    Args:
        scope: Where it is.
        name: The operator's name.
        sends_at_end: Whether results are sent when the inputs end.
    """

    __slots__ = ("_begun", "_inputs", "_outputs", "_ports", "_scope", "core", "name", "node", "state")

    def __init__(self, scope: BuildingScope, name: str, *, sends_at_end: bool = False) -> None:
        scope._plan_scope.check_building()
        self.name = name
        self.core: _core.Builder = scope._engine.operator(name)
        self._scope = scope
        self._inputs: list[Read] = []
        self._outputs: list[Output] = []
        self._ports = 0
        self._begun: list[Capability] = []
        self.state: Any = None  # the state of a custom operator, for its constructor
        self.node = scope._building.reserved(
            scope._plan_scope,
            shape.OPERATOR,
            self._inputs,
            self._outputs,
            name,
            pacts=[],
            summaries=[],
            sends_at_end=sends_at_end,
        )

    @property
    def info(self) -> OperatorInfo:
        """The description of the operator that its constructor is given."""
        core, scope = self.core, self._scope
        activator = core.activator()
        return OperatorInfo(self.name, core.address, scope.index, scope.peers, activator, self.state)

    def new_input(
        self, read: Output | Read, pact: tuple[_core.PactKind, Any], *, frontier: bool = True
    ) -> int:
        """Adds an input.

        Args:
            read: The output that it reads.
            pact: Its distribution to workers; see `pact_of`.
            frontier: Whether the operator receives the input's frontier.

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
            clock: The clock of its times, where these are not the times of the inputs.
        """
        form = form or (Form.RECORDS if schema is None else Form.COLUMNS)
        self._scope._plan_scope.check_building()
        self._require_building()
        port, stream, capability = self.core.new_output(schema, timed=form is Form.TIMED)
        output = Output(form, schema, clock=clock)
        output.node, output.port = self.node, len(self._outputs)
        self._outputs.append(output)
        self._ports += 1
        if scope_records(self._scope):
            self._begun.append(capability)
        self._scope._building.reserve_output(output, stream)
        return port, output, capability

    def set_summary(self, input: int, output: int, summary: Any) -> None:
        """Sets the effect of the operator on a timestamp; see `OperatorBuilder.set_summary`.

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
        """Returns the retention of the operator with results in these outputs; None for none."""
        building = self._scope._building
        made = self.core.retention([building.take(output, output.form) for output in outputs])
        self._ports += made is not None  # it has an output of its own
        return made

    def retains_forever(self) -> None:
        """Says that the operator may need any record for as long as it runs."""
        self.core.retains_forever()

    def stateless(self) -> None:
        """Declares that the operator keeps nothing from one run to the next, except batches at its inputs."""
        self._begun = []
        self.core.stateless()

    def restored(self) -> Restored | None:
        """Returns the operator's state in the checkpoint from which the computation resumes; None for none.

        To be called once, after its outputs were added.
        """
        if not scope_records(self._scope):
            return None
        begun, self._begun = self._begun, []
        found = self.core.restored()
        if found is None:
            return None
        from pointstamp.logic.declared_state import Restored

        return Restored(self.name, *found, begun, self._scope.index, self._scope.peers)

    def keeps(
        self, make: Callable[[], S], *, by_key: bool, version: int = 1, requests: Requests | None = None
    ) -> S:
        """Makes the state of the operator, which checkpoints take and give back; see `declared_state`.

        To be called once, after its outputs were added.

        Args:
            make: Makes the initial state.
            by_key: Whether its keys are those that distribute the operator's records to workers.
            version: The version of the pairs that it returns.
            requests: The notifications that it waits for.
        """
        state = make()
        if scope_records(self._scope):
            from pointstamp.logic.declared_state import keep

            keep(
                self.core,
                self.name,
                state,
                self.restored(),
                by_key=by_key,
                place=(self._scope.index, self._scope.peers),
                version=version,
                requests=requests,
            )
        return state

    def keeps_waiting(self, state: Waiting) -> None:
        """Has checkpoints take and give back state of the library's own; see `declared_state.Waiting`.

        Where memory is bounded, state that can leave it is given the place. To be called once, after its
        outputs were added.
        """
        disk = self.core.disk(self.name)
        if disk is not None:
            from pointstamp.logic.declared_state import Spilling

            if isinstance(state, Spilling):
                state.spill_to(disk)
        if scope_records(self._scope):
            from pointstamp.logic.declared_state import keep_waiting

            place = (self._scope.index, self._scope.peers)
            keep_waiting(self.core, self.name, state, self.restored(), place)

    def note_kept(self, size: Callable[[], tuple[int, int, int] | None]) -> None:
        """Registers the function for the size of the state: rows, bytes in memory and on disk; or None."""
        self.core.note_kept(size)

    def constructed(self, constructor: Callable[..., Any], *given: Any) -> Any:
        """Returns the logic that the constructor makes of its arguments and the operator's info."""
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
            logic: The logic of the operator when it runs.
            arguments: Makes the arguments of the logic from the list of inputs.
            notify: Whether it runs when a frontier changes.
            start: Whether it runs at the start.
        """
        plan, node = self._scope._building.plan, self.node
        self._scope._plan_scope.check_building()
        if scope_records(self._scope):
            from pointstamp.plan.functions import MAKER, digest_of  # only where checkpoints are made

            if digest := digest_of(*node["pacts"], made=logic):
                self.core.functions(MAKER, digest)
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
    declares: Declares | None = None,
    state: Waiting | None = None,
    keeps_times: bool = False,
) -> Output:
    """Appends an operator with one output, whose logic is called with its inputs and the output.

    Args:
        scope: Where it is.
        name: The operator's name.
        inputs: The outputs that it reads, and their pacts.
        build: Its constructor.
        notify: Whether it runs when a frontier changes.
        start: Whether it runs at the start.
        retains_forever: Whether it may need any record for as long as it runs: a source upstream then
            acknowledges nothing.
        schema: Of the output's columns; None for records.
        declares: Declares its state, before its constructor is called.
        state: The kind of its state, for `build`; None where it is not declared.
        keeps_times: Whether all that it sends is at the times of what it reads.

    Raises:
        GraphError: If an input is of another scope; then nothing is appended.
    """
    moved = []
    for output, pact in inputs:
        scope._plan_scope.check_reads(output, name)
        moved.append((output, pact_of(pact, output, name)))
    core = PlannedOperator(scope, name)
    assert core.node.arguments is not None
    core.node.arguments["keeps_times"] = keeps_times
    for output, route in moved:
        core.new_input(output, route, frontier=notify)
    port, made, capability = core.new_output(schema)
    if declares is not None:
        declares(core)
    if state is not None:
        core.keeps_waiting(state)
    logic = core.constructed(build, capability)
    del capability
    if retains_forever:
        core.retains_forever()
    core.build(logic, lambda ports: (*ports, port), notify=notify, start=start)
    return made
