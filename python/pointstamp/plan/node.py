"""Nodes of a plan, and their outputs.

A node is the addition of one method call: its kind, its inputs, its arguments, and its outputs. An output has
a form, the one in which its node makes it. A reader names the form in which it reads: lowering converts where
the two differ, once for each form, however many read it.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Sequence

    import pyarrow as pa

    from pointstamp import _core
    from pointstamp.event_time.clock import Clock
    from pointstamp.plan.plan import PlanScope

__all__ = ["Form", "Kind", "Node", "Output", "Read", "State"]


class Form(Enum):
    """The form in which records travel, or are kept."""

    RECORDS = "records"
    COLUMNS = "columns"
    TIMED = "records at their event times"
    MIXED = "columns at their event times"
    UPDATES = "updates"
    BY_KEY = "arranged by key"
    BY_RECORD = "arranged by record"

    plain: Form
    """The form in which an operator reads it that wants nothing special."""

    # `Enum` has this method as a function of Python, and forms are keys wherever a plan is lowered.
    __hash__ = object.__hash__


for _form in Form:
    _form.plain = _form
Form.TIMED.plain = Form.RECORDS
Form.MIXED.plain = Form.COLUMNS
Form.BY_KEY.plain = Form.BY_RECORD.plain = Form.UPDATES


class State(Enum):
    """The state that an operator keeps from one activation to the next."""

    NONE = "none"
    POSITION = "how far it has read or sent"
    QUEUE = "records on their way round a loop"
    BY_TIME = "by time, until the time closes"
    BY_KEY = "by key"
    ARRANGED = "an arrangement"
    OWN = "its own"


@dataclass(frozen=True, eq=False)
class Kind:
    """A kind of nodes.

    Attributes:
        name: Its name in plans, and the name of its operator, unless the program names that.
        family: The module of `pointstamp.lowering` that lowers it.
        state: The kind of state of its operator.
        stage: For functions over records that are fused to chains: the extension's name for it.
    """

    name: str
    family: str
    state: State = State.NONE
    stage: Any = None


class Output:
    """An output of a node, which streams and collections hold.

    Attributes:
        form: The form in which its node makes it.
        schema: Of columns; None for records.
        placed: The numbers of the columns by which rows are on the worker where `exchange` moves them; None
            where that is not known.
        clocks: The outputs that know the unit of its times, through any operators.
        time_column: For columns at their event times, the column with these times.
        time_type: Of results of windows, the type of a column that their times would make.
        at_least_time: Of a source that reads: whether all its rows are at the least time; None where another
            node than the source decides.
        node: The node that makes it.
        port: Its number among the node's outputs.
    """

    __slots__ = (
        "at_least_time",
        "clocks",
        "form",
        "node",
        "placed",
        "port",
        "schema",
        "time_column",
        "time_type",
    )

    node: Node
    port: int

    def __init__(
        self,
        form: Form,
        schema: _core.Schema | None = None,
        *,
        placed: Sequence[int] | None = None,
        clock: Clock | None = None,
        time_column: str | None = None,
        time_type: pa.DataType | None = None,
    ) -> None:
        self.form = form
        self.schema = schema
        self.placed = None if placed is None else list(placed)
        self.time_column = time_column
        self.time_type = time_type
        self.at_least_time: bool | None = None
        self.clocks: tuple[Clock, ...] | None = None if clock is None else (clock,)

    def like(self) -> Output:
        """Returns an output of another node for records of this form, schema and place."""
        return Output(self.form.plain, self.schema, placed=self.placed, time_type=self.time_type)

    def read_as(self, form: Form) -> Read:
        """Returns this output as read in a form."""
        return Read(self, form)


class Read(NamedTuple):
    """An output, and the form in which a node reads it."""

    output: Output
    form: Form


class Node:
    """A part of a dataflow that one call of a method added.

    Attributes:
        kind: Its kind.
        inputs: The outputs that it reads.
        outputs: The outputs that it makes.
        arguments: By name; None once the plan is lowered: functions and data are released.
        name: Its name in the program.
        line: The line of the program that added it.
        scope: The scope that it is in.
        closes: The node that begins the loop which this one closes; None for others.
        number: Its place in the plan; -1 while it has none.
    """

    __slots__ = ("arguments", "closes", "inputs", "kind", "line", "name", "number", "outputs", "scope")

    def __init__(
        self,
        kind: Kind,
        inputs: Sequence[Read],
        outputs: Sequence[Output],
        arguments: dict[str, Any],
        name: str | None,
        line: Any,
        scope: PlanScope,
        closes: Node | None = None,
    ) -> None:
        self.kind = kind
        self.inputs = inputs
        self.outputs = outputs
        self.arguments: dict[str, Any] | None = arguments
        self.name = name
        self.line = line
        self.scope = scope
        self.closes = closes
        self.number = -1
        for port, output in enumerate(outputs):
            output.node, output.port = self, port
            if output.clocks is None:
                output.clocks = _clocks_of(inputs)

    def take_over_clocks(self) -> None:
        """Gives outputs without a clock the clocks of the inputs, which were added after the outputs."""
        for output in self.outputs:
            if output.clocks is None:
                output.clocks = _clocks_of(self.inputs)

    @property
    def output(self) -> Output:
        """The first output."""
        return self.outputs[0]

    @property
    def title(self) -> str:
        """The name in messages and pictures."""
        return self.name or self.kind.name

    def __getitem__(self, argument: str) -> Any:
        """Returns an argument."""
        assert self.arguments is not None, "a plan that was lowered has no arguments any more"
        return self.arguments[argument]

    def __repr__(self) -> str:
        return f"<Node {self.number} {self.title}>"


def _clocks_of(inputs: Sequence[Read]) -> tuple[Clock, ...]:
    """Returns the clocks that know the unit of the times of some inputs, each once."""
    if len(inputs) == 1:
        return inputs[0][0].clocks or ()
    if not inputs:
        return ()
    return tuple(dict.fromkeys(clock for read in inputs for clock in read.output.clocks or ()))
