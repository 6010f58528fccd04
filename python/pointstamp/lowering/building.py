"""The building of one dataflow: its plan, what was made of it at once, and its lowering.

Invariant: a node is lowered once, after all that it reads, and an output is made once in each form in which
it is read.
"""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from pointstamp import _core
from pointstamp._errors import GraphError
from pointstamp.lowering import passes
from pointstamp.lowering.rules import conversion, rules_of
from pointstamp.lowering.steps import Step
from pointstamp.plan import shape
from pointstamp.plan.node import Form, Node, Output, Read
from pointstamp.plan.plan import Plan, PlanScope

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from pointstamp.plan.node import Kind

__all__ = ["Building"]


class Building:
    """A dataflow while it is being built.

    Attributes:
        plan: What was appended so far.
        scopes: The engine's scope for each of the plan's.
        steps: How the plan was lowered.
        title: What the node is called whose operators are being made, unless the program names it.
    """

    __slots__ = (
        "_chains",
        "_instead",
        "_left",
        "_made",
        "_prefix",
        "_wanted",
        "plan",
        "root",
        "scopes",
        "steps",
        "title",
    )

    def __init__(self, root: _core.Scope) -> None:
        self.plan = Plan()
        self.root = root
        self.scopes: dict[PlanScope, _core.Scope] = {}
        self.steps: list[Step] = []
        self._made: dict[Output, dict[Form, Any]] = {}
        self._left: dict[Output, Any] = {}
        self._prefix = ""
        self.title = ""
        self._chains: dict[Node, list[Node]] = {}
        self._instead: dict[Output, Output] = {}
        self._wanted: passes.Wanted = {}

    # ------------------------------------------------------------ appending

    def append(
        self,
        scope: PlanScope,
        kind: Kind,
        reads: Sequence[Output | Read],
        outputs: Sequence[Output],
        arguments: dict[str, Any],
        *,
        name: str | None = None,
        crosses: bool = False,
        closes: Node | None = None,
    ) -> Node:
        """Appends a node, with the line of the program that runs now; see `Plan.append`."""
        line = self.root.line()
        name = self._prefixed(kind.name, name)
        return self.plan.append(
            scope,
            kind,
            reads,
            outputs,
            arguments,
            name=name,
            line=line,
            crosses=crosses,
            closes=closes,
        )

    def _prefixed(self, title: str, name: str | None) -> str | None:
        return f"{self._prefix}{name or title}" if self._prefix else name

    @contextmanager
    def within(self, title: str) -> Iterator[None]:
        """Has what is appended in the block have a title in front of its name, as ``graphs.bfs: join``."""
        before = self._prefix
        self._prefix = f"{before}{title}: "
        try:
            yield
        finally:
            self._prefix = before

    def reserve(self, node: Node, *made: Any) -> Node:
        """Notes what the engine has made of a node at once: an object for each output."""
        for output, one in zip(node.outputs, made, strict=True):
            self._made[output] = {output.form: one}
        return node

    def reserve_output(self, output: Output, made: Any) -> None:
        """Notes what the engine has made of an output at once."""
        self._made[output] = {output.form: made}

    def reserved(
        self,
        scope: PlanScope,
        kind: Kind,
        inputs: Sequence[Read],
        outputs: Sequence[Output],
        name: str,
    ) -> Node:
        """Makes a node that `Plan.add` appends later, when its inputs and outputs are complete."""
        return Node(kind, inputs, outputs, {}, name=name, line=self.root.line(), scope=scope)

    @contextmanager
    def making(self, title: str, name: str | None) -> Iterator[None]:
        """Names operators that are made at once: that with the title gets the name."""
        self.root.lowering(title, self._prefixed(title, name), None)
        try:
            yield
        finally:
            self.root.lowered()

    # ------------------------------------------------------------ lowering

    def complete(self) -> None:
        """Makes operators of the whole plan: nothing is appended any more.

        Raises:
            GraphError: If something is missing, such as what defines a loop, or a scope's block has not ended.
        """
        for scope in self.scopes:
            if scope.parent is not None and scope.complete is None:
                raise GraphError(
                    f"the scope {scope} is still open: end its `with` block before the dataflow's"
                )
        self.plan.check_complete()
        self._lower_all()
        for scope, core in self.scopes.items():
            if scope.parent is not None:
                core.close()

    def _lower_all(self) -> None:
        nodes = self.plan.nodes
        self._chains = passes.chains(nodes)
        self._instead = passes.left_out(nodes)
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
            self._note(node)  # made when it was appended
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
        self._note(node)
        if len(node.outputs) == 1:
            [output] = node.outputs
            self._made[output] = {output.form: made}
        elif made is not None:
            for output, one in zip(node.outputs, made, strict=True):
                self._made[output] = {output.form: one}

    def _note(self, node: Node, form: Form | None = None) -> None:
        """Notes that a node has become a step, which makes its outputs, in a form that is not its own."""
        title, reads = node.title, node.inputs
        if form is not None:
            others = [other for other in self._made[node.output] if other is not form]
            if node.kind is shape.ENTER:
                reads = [Read(read.output, form) for read in reads]
            elif others:
                title, reads = form.value, [Read(node.output, others[0])]  # of what it has made before
        if self._instead:
            reads = [Read(self.source_of(read.output), read.form) for read in reads]
        makes = [(output, form or output.form) for output in node.outputs]
        self.steps.append(Step(title, [node], node.scope, reads, makes))

    def _begin(self, node: Node) -> None:
        self.title = node.kind.name
        self.root.lowering(node.kind.name, node.name, node.line)

    def _lower_chain(self, chain: list[Node]) -> None:
        """Makes one operator of functions over records; only what others read gets an output."""
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
        self.root.lowering(first.kind.name, None, first.line)  # their names are those of the stages
        build = _core.collection_chain if first.output.form is Form.UPDATES else _core.chain
        for output, stream in zip(outputs, build(read, stages, ports), strict=True):
            self._made[output] = {output.form: stream}
        title = first.title if len(chain) == 1 else " > ".join(node.title for node in chain)
        reads = [(self.source_of(first.inputs[0].output), form)]
        self.steps.append(Step(title, chain, first.scope, reads, [(one, one.form) for one in outputs]))

    def taken(self, read: Read) -> Any:
        """What a node reads, in the form in which it reads it."""
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
                    self._note(output.node, form)
            if made.get(form) is None:
                made[form] = self._converted(output, output.form if make is None else output.form.plain, form)
        return made[form]

    def _converted(self, output: Output, found: Form, form: Form) -> Any:
        """An output in a form in which its node does not make it.

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
        self.steps.append(
            Step(form.value, [reader or output.node], output.node.scope, [(output, found)], [(output, form)])
        )
        return conversion(found, form)(self, output, made)

    def once(self, output: Output, make: Callable[[], Any]) -> Any:
        """What is made of an output once for all that ask for it: the stream that leaves its scope."""
        if output not in self._left:
            self._left[output] = make()
        return self._left[output]

    def wants(self, output: Output) -> set[Form]:
        """The forms in which an output is read."""
        return set(self._wanted.get(output, ()))

    # ------------------------------------------------------------ the end

    def let_go(self, why: str) -> None:
        """Lets go of what nodes hold: the plan keeps kinds, names, lines, schemas and edges."""
        for node in self.plan.nodes:
            node.arguments = None
        for scope in self.scopes:
            if scope.parent is None:
                scope.complete = why
        self._made.clear()
        self._left.clear()
        self._wanted.clear()
        self._chains.clear()
        self._instead.clear()
        self.scopes.clear()
