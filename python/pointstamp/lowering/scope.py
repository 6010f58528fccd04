"""A scope while its dataflow is built: the engine's, the plan's, and the building that both are part of.

`pointstamp.Scope` adds the methods that programs call. Operators and sources, which append nodes and make no
streams, need nothing else.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal

from pointstamp import _core
from pointstamp.errors import GraphError
from pointstamp.lowering.building import Building
from pointstamp.plan import shape
from pointstamp.plan.node import Form, Output
from pointstamp.plan.plan import PlanScope

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pointstamp._core import Activator, InputHandle, ProbeHandle
    from pointstamp.plan.node import Kind, Node, Read
    from pointstamp.types import Summary

__all__ = ["BuildingScope"]

_RESUMES = {"repeat": _core.Resume.REPEAT, "continue": _core.Resume.CONTINUE}


class BuildingScope:
    """A scope to which nodes are appended.

    Attributes:
        name: The scope's name.
        address: The path to it from the worker's root.
        dims: The number of coordinates of timestamps in the scope.
        index: This worker's number.
        peers: The number of workers.
        parent: The scope around it; None for the dataflow itself.
    """

    __slots__ = (
        "_building",
        "_engine",
        "_imports",
        "_plan_scope",
        "address",
        "dims",
        "index",
        "name",
        "parent",
        "peers",
    )

    _plan_scope: PlanScope
    _building: Building

    def __init__(self, engine: _core.Scope, parent: BuildingScope | None) -> None:
        self._engine = engine
        self.parent = parent
        self._imports: set[int] = set() if parent is None else parent._imports  # dataflows of imported traces
        self.name = engine.name
        self.address = engine.address
        self.dims = engine.dims
        self.index = engine.index
        self.peers = engine.peers
        around = None if parent is None else parent._plan_scope
        self._plan_scope = PlanScope(self.name, self.address, self.dims, around, engine.line())
        self._building = Building(engine) if parent is None else parent._building
        self._building.scopes[self._plan_scope] = engine

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
            _ = self._engine.dims  # which only the worker's thread may read, as the plan has no lock
        if building.prefix:
            name = building.prefixed(kind.name, name)
        return building.plan.append(
            self._plan_scope, kind, reads, outputs, arguments, name, building.line(), crosses, closes
        )

    @property
    def _in_loop(self) -> bool:
        """Whether the last coordinate of times here counts the turns of a loop, here or around this scope."""
        return self.parent is not None and (self.dims > self.parent.dims or self.parent._in_loop)

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

    def _watch(
        self, output: Output, probe: ProbeHandle, activator: Activator, *, retained: bool = False
    ) -> None:
        """Has a probe report the times that are anywhere downstream, and activates an operator with it.

        With `retained`, the times of which operators still need records are there, too.
        """
        self._append(shape.WATCH, [output], probe=probe, activator=activator, retained=retained)

    def _input_from(
        self,
        handle: InputHandle[Any],
        kind: _core.StreamKind,
        output: Output,
        name: str | None,
        resume: Literal["repeat", "continue"] = "repeat",
    ) -> Output:
        """The stream of an input, which may be used at once.

        Raises:
            ValueError: If `resume` is neither of its values.
        """
        if resume not in _RESUMES:
            raise ValueError(f'resume is "repeat" or "continue", not {resume!r}')
        self._plan_scope.check_building()
        with self._building.making("input", name):
            sends = _core.Resume.FOLLOW if self._building.continues else _RESUMES[resume]
            made = self._engine.input_from(handle, kind, sends)
        if sends is not _core.Resume.REPEAT:
            self._building.continuing.append(name or "input")
        return self._building.reserve(self._append(shape.INPUT, [], output, name=name), made).output

    def _feedback(
        self, summary: Summary, columns: _core.Schema | None, *, retains: bool = True, name: str | None = None
    ) -> Node:
        """Appends a node whose output `_connect` defines later; see `Scope.feedback`.

        Args:
            summary: As in `Scope.feedback`.
            columns: The schema; None for records.
            retains: Whether records in the loop may be needed for as long as the dataflow runs, where their
                times are a source's.
            name: The operator's name.
        """
        self._plan_scope.check_building()
        with self._building.making("feedback", name):
            end, made = self._engine.feedback(summary, columns, retains)
        form = Form.RECORDS if columns is None else Form.COLUMNS
        node = self._append(shape.FEEDBACK, [], Output(form, columns), name=name, end=end)
        self._building.reserve(node, made)
        self._building.plan.require(
            node,
            f"a loop variable of scope {node.scope} is never connected: call connect_loop(handle) on the "
            "stream that defines it, in the same scope",
        )
        return node

    def _connect(self, node: Node, output: Output) -> None:
        """Closes the loop that a node of `_feedback` begins with the output that defines it.

        Raises:
            GraphError: If it is closed already, or the output has another scope or other columns.
        """
        schema: Any = node.output.schema
        if problem := _core.loop_difference(schema, output.schema):
            raise GraphError(f"this stream cannot define the loop variable: {problem}")
        node.scope.check_reads(output, node.title)
        if node not in self._building.plan.missing:
            raise GraphError(
                "this loop variable is connected already: a loop has one definition; concat the streams first"
            )
        self._append(shape.CONNECT, [output], closes=node)
        self._building.plan.fulfil(node)
