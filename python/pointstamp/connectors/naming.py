"""The names by which targets and journals know an operator in every run."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pointstamp.plan.identity import identities

if TYPE_CHECKING:
    from pointstamp.logic.planned import PlannedOperator
    from pointstamp.lowering.scope import BuildingScope

__all__ = ["identity_of"]


def identity_of(scope: BuildingScope, operator: PlannedOperator) -> str:
    """Returns the identity of an operator that is being built, with the number of its dataflow before it.

    Operators of a computation have different ones; the same operator has the same one in the next run.
    """
    plan = scope._building.plan
    return f"{operator.core.address[0]} {identities([*plan.nodes, operator.node])[operator.node]}"
