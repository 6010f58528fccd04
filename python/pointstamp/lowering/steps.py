"""The plan of a dataflow as it was lowered: which nodes became which step, and what was added between them."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pointstamp.plan.node import Form, Node, Output
    from pointstamp.plan.plan import PlanScope

__all__ = ["Step"]


class Step(NamedTuple):
    """One step of the lowering.

    Attributes:
        title: What it is called.
        nodes: The nodes that became this step: several functions are fused to one, and a conversion is of
            the first node that reads its result.
        scope: The scope that it is in.
        reads: What it reads, and in which form.
        makes: What it makes, and in which form.
    """

    title: str
    nodes: Sequence[Node]
    scope: PlanScope
    reads: Sequence[tuple[Output, Form]]
    makes: Sequence[tuple[Output, Form]]
