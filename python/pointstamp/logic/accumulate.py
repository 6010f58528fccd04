"""`Stream.accumulate`: the records of each time folded into one, a batch at a time."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pointstamp.logic.folds import no_state
from pointstamp.logic.per_time import PerTime

if TYPE_CHECKING:
    from collections.abc import Callable

    from pointstamp._core import Capability, FrontieredInput, OutputPort
    from pointstamp.info import OperatorInfo

    Made = tuple[
        Callable[[Capability, OperatorInfo], Callable[[FrontieredInput[Any], OutputPort[Any]], None]],
        PerTime[Any],
    ]

__all__ = ["accumulate", "combined"]

_MISSING: Any = object()


def accumulate(
    default: Callable[[], Any],
    fold: Callable[[Any, list[Any]], Any],
    combine: Callable[[Any, Any], Any] | None = None,
) -> Made:
    """The constructor and the state of the operator.

    Args:
        default: Makes the state of a time.
        fold: Adds a batch to it.
        combine: Adds two states of one time. None where one worker has all records.
    """
    return _folding(default, fold, PerTime(default, "parts", combine))


def combined(default: Callable[[], Any], combine: Callable[[Any, Any], Any]) -> Made:
    """The constructor and the state of the operator that makes one result of those of the workers."""

    def fold(total: Any, results: list[Any]) -> Any:
        for result in results:
            total = result if total is _MISSING else combine(total, result)
            if total is None and default() is not None:
                raise TypeError(no_state("accumulate", combine))
        return total

    return _folding(default, fold, PerTime(lambda: _MISSING, "parts"))


def _folding(default: Callable[[], Any], fold: Callable[[Any, list[Any]], Any], totals: PerTime[Any]) -> Made:
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
