"""The building of one dataflow: its plan, objects of the engine that exist already, and its lowering.

Invariant: a node is lowered once, after its inputs, and an output is made once in each form in which it is
read.
"""

from __future__ import annotations

from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Any

from pointstamp import _core
from pointstamp.errors import GraphError
from pointstamp.lowering import passes
from pointstamp.lowering.rules import conversion, rules_of
from pointstamp.lowering.steps import Noted, Step, steps_of
from pointstamp.plan import shape
from pointstamp.plan.identity import columns_of, form_of, functions_of
from pointstamp.plan.node import Form, Node, Output, Read
from pointstamp.plan.plan import Plan, PlanScope, placed_at

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from pointstamp.plan.node import Kind

__all__ = ["Building"]


class Building:
    """A dataflow while it is being built.

    Attributes:
        plan: The nodes appended so far.
        scopes: The engine's scope for each of the plan's.
        prefix: The titles of the calls that append nodes now, which their names begin with.
        noted: The lowered steps, in order, for `steps`.
        checkpoints: The folder of the checkpoints; None where none are made.
        continuing: The names of inputs that send only new records in a run that resumes.
        continues: Whether it is a session's: worker 0 sends all records, and no earlier ones again.
        lowered: Whether operators were made of the whole plan.
        title: The name of the node whose operators are being made, unless the program names it.
    """

    __slots__ = (
        "_chains",
        "_expected",
        "_instead",
        "_left",
        "_line",
        "_made",
        "_wanted",
        "checkpoints",
        "compared",
        "continues",
        "continuing",
        "lowered",
        "noted",
        "plan",
        "prefix",
        "root",
        "scopes",
        "title",
    )

    def __init__(self, root: _core.Scope) -> None:
        self.plan = Plan()
        self.root = root
        self.checkpoints: Path | None = None
        self.continues = False
        self.continuing: list[str] = []
        self.scopes: dict[PlanScope, _core.Scope] = {}
        self.noted: list[Noted] = []
        # What operators add to the facts that workers compare.
        self.compared: list[str] = []
        self.lowered = False
        self._made: dict[Output, dict[Form, Any]] = {}
        self._left: dict[_core.Stream, _core.Stream] = {}
        self.prefix = ""
        self._line: _core.Line | None = None
        self.title = ""
        self._chains: dict[Node, list[Node]] = {}
        self._instead: dict[Output, Output] = {}
        self._wanted: passes.Wanted = {}
        self._expected: dict[Node, _core.ProbeHandle] = {}

    # ------------------------------------------------------------ appending

    def prefixed(self, title: str, name: str | None) -> str | None:
        """Returns the name of a node that is appended, within a title."""
        return f"{self.prefix}{name or title}" if self.prefix else name

    @contextmanager
    def within(self, title: str, line: _core.Line) -> Iterator[None]:
        """Gives all nodes that the block appends a title in front of their names, and one line.

        Args:
            title: As in ``graphs.bfs: join``.
            line: The line of the program that calls the function with this title.
        """
        before = self.prefix, self._line
        self._line = line
        self.prefix = f"{before[0]}{title}: "
        try:
            yield
        finally:
            self.prefix, self._line = before

    def line(self) -> _core.Line:
        """The line of the program that appends now."""
        return self._line or self.root.line()

    def reserve(self, node: Node, *made: Any) -> Node:
        """Notes the objects that the engine has already made for a node: one for each output."""
        for output, one in zip(node.outputs, made, strict=True):
            self._made[output] = {output.form: one}
        return node

    def reserve_output(self, output: Output, made: Any) -> None:
        """Notes the object that the engine has already made for an output."""
        self._made[output] = {output.form: made}

    def expect(self, node: Node, handle: _core.ProbeHandle) -> None:
        """Has a probe stand at the minimum time until the node that attaches it is lowered."""
        handle._expect(node.scope.dims)
        self._expected[node] = handle

    def attached(self, node: Node) -> None:
        """Notes that a node has attached its probe, which replaces the expected one."""
        del self._expected[node]

    def reserved(
        self,
        scope: PlanScope,
        kind: Kind,
        inputs: Sequence[Read],
        outputs: Sequence[Output],
        name: str,
        **arguments: Any,
    ) -> Node:
        """Makes a node that `Plan.add` appends later, when its inputs and outputs are complete."""
        return Node(kind, inputs, outputs, arguments, name, self.line(), scope)

    @contextmanager
    def making(self, title: str, name: str | None) -> Iterator[None]:
        """Names operators that are made at once: that with the title gets the name."""
        form = title if self.root.recording is not None else None
        self.root.lowering(title, self.prefixed(title, name), self._line, form)
        try:
            yield
        finally:
            self.root.lowered()

    # ------------------------------------------------------------ lowering

    def complete(self) -> None:
        """Makes operators of the whole plan: nothing is appended any more.

        Raises:
            GraphError: If something is missing, such as the end of a loop, or a scope's block has not ended.
        """
        for scope in self.scopes:
            if scope.failed:
                raise GraphError(
                    f"the `with` block of scope {scope} raised an error, and is not complete: let the error "
                    f"end the dataflow's block, too{placed_at(scope)}"
                )
            if scope.parent is not None and scope.complete is None:
                raise GraphError(
                    f"the scope {scope} is still open: end its `with` block before the dataflow's"
                    f"{placed_at(scope)}"
                )
        self.plan.check_complete()
        self.end("its dataflow is installed already")
        self._lower_all()
        self.lowered = True
        for scope, core in self.scopes.items():
            if scope.parent is not None:
                core.close()

    def _lower_all(self) -> None:
        nodes = self.plan.nodes
        if self.root.recording is not None:
            passes.check_recorded(nodes)
            if self.root.index == 0:
                from pointstamp.lowering.closures import warn_of_kept  # only where checkpoints are made

                warn_of_kept(nodes)
        passes.check_loops(nodes)
        self._chains = passes.chains(nodes)
        self._instead = passes.left_out(nodes)
        if any(node.kind.family == "collections" for node in nodes):
            from pointstamp.lowering.late_filters import late_filters  # only where collections are
            from pointstamp.lowering.sharing import shared, unread

            nodes, moved, passed_over = late_filters(self.plan)
            self._instead |= shared(nodes, moved)
            self._instead |= unread(nodes, self.plan.passed_over | passed_over, self._instead)
        self._wanted = passes.wanted(nodes, self._chains, self._instead)
        try:
            for node in nodes:
                self._lower(node)
        finally:
            self.root.lowered()

    def _lower(self, node: Node) -> None:
        kind, outputs = node.kind, node.outputs
        if self._instead and outputs and outputs[0] in self._instead:
            return
        if kind.stage is not None:
            chain = self._chains[node]
            if chain[0] is node:
                self._lower_chain(chain)
        elif outputs and outputs[0] in self._made and kind is not shape.OPERATOR:
            self.noted.append((node, None, None))  # made when it was appended
        else:
            self._lower_by_rule(node)
        for output in outputs:
            made = self._made.get(output, ())
            for form in self._wanted.get(output, ()):
                if form not in made:
                    self.take(output, form)

    def _lower_by_rule(self, node: Node) -> None:
        rule, make = rules_of(node.kind)
        if make is not None:
            if node.kind is not shape.ENTER and not self._wanted.get(node.output):
                self.take(node.output, node.output.form)  # nothing is left out for want of a reader
            return
        inputs = [self.take(output, form) for output, form in node.inputs]
        self._begin(node)
        made = rule(self, node, *inputs)
        self.noted.append((node, None, None))
        if made is None:
            return  # it has no outputs, or they were made when it was appended
        if len(node.outputs) == 1:
            [output] = node.outputs
            self._made[output] = {output.form: made}
            return
        for output, one in zip(node.outputs, made, strict=True):
            self._made[output] = {output.form: one}

    def _begin(self, node: Node) -> None:
        self.title = node.kind.name
        form = form_of(node) if self.root.recording is not None else None
        self.root.lowering(node.kind.name, node.name, node.line, form)

    def _lower_chain(self, chain: list[Node]) -> None:
        """Makes one operator of functions over records; only outputs that others read are made."""
        first, place = chain[0], {}
        stages, outputs, ports = [], [], []
        for index, node in enumerate(chain):
            place[node] = index
            before = node.inputs[0].output
            reads = None if node is first else (place[before.node], before.port)
            stages.append((node.kind.stage, node.title, node["function"], len(node.outputs), reads))
            for output in node.outputs:
                if output in self._wanted:
                    outputs.append(output)
                    ports.append((index, output.port))
        output, form = first.inputs[0]
        read = self.take(output, form)
        functions = None
        if self.root.recording is not None:
            functions = functions_of(chain)
        self.root.lowering(first.kind.name, None, first.line, functions)  # their names are the stages' names
        build = _core.collection_chain if first.output.form is Form.UPDATES else _core.chain
        for output, stream in zip(outputs, build(read, stages, ports), strict=True):
            self._made[output] = {output.form: stream}
        self.noted.append((chain, None, None))

    def taken(self, read: Read) -> Any:
        """Returns the inputs of a node, in the forms in which it reads them."""
        return self.take(read.output, read.form)

    def source_of(self, output: Output) -> Output:
        """The output that is read for one: another, where a pass has left out the node that makes it."""
        return self._instead.get(output, output)

    def take(self, output: Output, form: Form) -> Any:
        """An output in a form, which is made now if it was not before."""
        if self._instead:
            output = self.source_of(output)
        made = self._made.get(output)
        if made is None:
            made = self._made[output] = {}
        if form not in made:
            _, make = rules_of(output.node.kind)
            if make is not None:
                self._begin(output.node)
                made[form] = make(self, output.node, form)
                if made[form] is not None:
                    self.noted.append((output.node, form, None))
            if made.get(form) is None:
                made[form] = self._converted(output, output.form if make is None else output.form.plain, form)
        return made[form]

    def _converted(self, output: Output, found: Form, form: Form) -> Any:
        """Converts an output to a form in which its node does not make it.

        The operator of an arrangement is named after its reader; records at their own times have no reader's
        name.
        """
        made = self.take(output, found)
        reader = self._wanted.get(output, {}).get(form)
        if reader is not None and found not in (Form.TIMED, Form.MIXED):
            self._begin(reader)
        else:
            self.title = ""
            self.root.lowering("", None, (reader or output.node).line)
        self.noted.append((reader or output.node, form, Read(output, found)))
        return conversion(found, form)(self, output, made)

    def left(self, stream: _core.Stream) -> _core.Stream:
        """A stream in the scope around its own: it leaves once, for all outputs that it stands for."""
        if stream not in self._left:
            self._left[stream] = stream.leave()
        return self._left[stream]

    def steps(self) -> list[Step]:
        """Returns the steps in which the plan was lowered."""
        return list(steps_of(self.noted, self._instead))

    def described(self) -> list[str]:
        """The facts that workers compare besides the engine's graphs."""
        return [*columns_of(self.plan.nodes, self._instead), *self.compared]

    def wants(self, output: Output) -> set[Form]:
        """The forms in which an output is read."""
        return set(self._wanted.get(output, ()))

    # ------------------------------------------------------------ the end

    def end(self, why: str) -> None:
        """Has the plan refuse further nodes.

        Args:
            why: The reason why the dataflow cannot be built.
        """
        for scope in self.scopes:
            if scope.parent is None:
                scope.complete = why

    def give_up(self) -> None:
        """Releases the contents of nodes, before the dataflow is discarded.

        Captures in memory and replays that were not begun are begun, to end with the dataflow: a dataflow
        that replays such a capture sees it end, and the readers of a replay are closed.
        """
        begun = {node for node, _, _ in self.noted if isinstance(node, Node)}
        for node in self.plan.nodes:
            if node.kind in (shape.CAPTURE, shape.REPLAY) and node not in begun:
                rule, _ = rules_of(node.kind)
                scope = self.scopes[node.scope]
                with suppress(Exception):  # of a node whose error is why the dataflow is given up
                    rule(self, node, *(scope.empty() for _ in node.inputs))
        self.let_go()

    def let_go(self) -> None:
        """Releases the contents of nodes: the plan keeps kinds, names, lines, schemas and edges.

        Probes that were not attached report no times of this dataflow any more.
        """
        for node, handle in self._expected.items():
            handle._unexpect(node.scope.dims)
        self._expected.clear()
        for node in (*self.plan.nodes, *self.plan.missing):  # also operators that were never built
            node.arguments = None
        self.plan.keyed.clear()
        self.plan.alike = None
        self.plan.passed_over.clear()
        self._made.clear()
        self._left.clear()
        self._wanted.clear()
        self._chains.clear()
        self.scopes.clear()
