"""`Stream.accumulate`: the records of each time folded into one, a batch at a time, on this worker."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pointstamp.logic.folds import no_state
from pointstamp.logic.per_time import PerTime

if TYPE_CHECKING:
    from collections.abc import Callable

    from pointstamp._core import Capability, FrontieredInput, OutputPort
    from pointstamp.info import OperatorInfo

__all__ = ["accumulate"]


def accumulate(
    default: Callable[[], Any], fold: Callable[[Any, list[Any]], Any]
) -> tuple[
    Callable[[Capability, OperatorInfo], Callable[[FrontieredInput[Any], OutputPort[Any]], None]],
    PerTime[Any],
]:
    """The constructor and the state of the operator."""
    totals = PerTime(default)

    def build(
        capability: Capability, _info: OperatorInfo
    ) -> Callable[[FrontieredInput[Any], OutputPort[Any]], None]:
        capability.drop()

        def logic(port: FrontieredInput[Any], output: OutputPort[Any]) -> None:
            for message, records in port:
                total = fold(totals.at(message), records)
                if total is None and default() is not None:
                    raise TypeError(no_state("accumulate", fold))
                totals.put(message.time, total)
            for cap, total in totals.closed(port.frontier):
                with output.session(cap) as session:
                    session.give(total)

        return logic

    return build, totals
