"""`Stream.aggregate`: per time and key, the values folded into a state, and at the end into a record."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pointstamp._core import pairs_with_one_nan
from pointstamp.logic.folds import no_state
from pointstamp.logic.per_time import PerTimeAndKey

if TYPE_CHECKING:
    from collections.abc import Callable

    from pointstamp._core import Capability, FrontieredInput, OutputPort
    from pointstamp.info import OperatorInfo

__all__ = ["aggregate"]


def aggregate(
    fold: Callable[[Any, Any, Any], Any],
    emit: Callable[[Any, Any], Any] | None,
    default: Callable[[], Any],
) -> tuple[
    Callable[[Capability, OperatorInfo], Callable[[FrontieredInput[Any], OutputPort[Any]], None]],
    PerTimeAndKey[Any],
]:
    """The constructor and the state of the operator, whose input is exchanged by key."""
    by_time: PerTimeAndKey[Any] = PerTimeAndKey()

    def build(
        capability: Capability, _info: OperatorInfo
    ) -> Callable[[FrontieredInput[Any], OutputPort[Any]], None]:
        capability.drop()

        def logic(port: FrontieredInput[Any], output: OutputPort[Any]) -> None:
            for message, records in port:
                states = by_time.at(message)
                pairs = pairs_with_one_nan(records)
                states.bring([key for key, _ in pairs])
                for key, value in pairs:
                    state = fold(key, value, states[key] if key in states else default())
                    if state is None and default() is not None:
                        raise TypeError(no_state("aggregate", fold))
                    states[key] = state
                states.settle()
            for cap, states in by_time.closed(port.frontier):
                with output.session(cap) as session:
                    every = states.every()
                    session.give_all(every if emit is None else (emit(*pair) for pair in every))

        return logic

    return build, by_time
