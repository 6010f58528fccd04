"""The plan of a dataflow as it was lowered: the step of each node, and the steps that were added between."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple, TypeAlias

from pointstamp.plan import shape
from pointstamp.plan.node import Form, Node, Read

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from pointstamp.plan.node import Output
    from pointstamp.plan.plan import PlanScope

__all__ = ["Noted", "Step", "steps_of"]

Noted: TypeAlias = "tuple[Node | list[Node], Form | None, Read | None]"
"""The note of a step, taken in little time.

It has a node, or the nodes of a chain; the form that is made, where a node makes several; and for a
conversion the converted output, with its form, for the node.
"""


class Step(NamedTuple):
    """One step of the lowering.

    Attributes:
        title: The step's name.
        nodes: The nodes that became this step: several functions are fused to one, and a conversion is of
            the first node that reads its result.
        scope: The scope that it is in.
        reads: Its inputs, and their forms.
        makes: Its outputs, and their forms.
    """

    title: str
    nodes: Sequence[Node]
    scope: PlanScope
    reads: Sequence[Read]
    makes: Sequence[Read]


def steps_of(noted: Sequence[Noted], instead: Mapping[Output, Output]) -> Iterator[Step]:
    """Makes the steps from the notes.

    Args:
        noted: In the order in which they were made.
        instead: The outputs that are read instead of others, whose nodes are left out.
    """
    first: dict[Node, Form] = {}
    for one, form, converted in noted:
        chain = one if isinstance(one, list) else [one]
        node = chain[0]
        if converted is not None:
            assert form is not None
            output = converted.output
            yield Step(form.value, chain, output.node.scope, [converted], [Read(output, form)])
            continue
        title = " > ".join(each.title for each in chain)
        reads = [Read(instead.get(read.output, read.output), read.form) for read in node.inputs]
        if form is not None and node.kind is shape.ENTER:
            reads = [Read(read.output, form) for read in reads]
        elif form is not None and first.setdefault(node, form) is not form:
            title, reads = form.value, [Read(node.output, first[node])]  # of its earlier output
        makes = [Read(output, form or output.form) for each in chain for output in each.outputs]
        yield Step(title, chain, node.scope, reads, makes)
