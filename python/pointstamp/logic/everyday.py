"""`Stream.join`, `top_k` and `sort`: what is done with all the records of a time.

They keep a time's records until it closes.
"""

from __future__ import annotations

from itertools import chain
from typing import TYPE_CHECKING, Any

from pointstamp._core import pairs_with_one_nan
from pointstamp.logic.per_time import PerTime, at_closing
from pointstamp.logic.planned import single_output
from pointstamp.pacts import Exchange, Pipeline

if TYPE_CHECKING:
    from collections.abc import Callable

    from pointstamp._core import Capability, FrontieredInput, OutputPort
    from pointstamp.lowering.scope import BuildingScope
    from pointstamp.plan.node import Output

__all__ = ["gathered", "join_per_time"]


def join_per_time(capability: Capability, _info: Any) -> Callable[..., None]:
    """The constructor of `join`, whose inputs are exchanged by key."""
    capability.drop()
    times: PerTime[tuple[dict[Any, list[Any]], dict[Any, list[Any]]]] = PerTime(lambda: ({}, {}))

    def logic(left: FrontieredInput[Any], right: FrontieredInput[Any], output: OutputPort[Any]) -> None:
        for side, port in enumerate((left, right)):
            for message, records in port:
                by_key = times.at(message)[side]
                for key, value in pairs_with_one_nan(records):
                    by_key.setdefault(key, []).append(value)
        for cap, (ours, theirs) in times.closed(left.frontier, right.frontier):
            with output.session(cap) as session:
                for key, values in ours.items():
                    others = theirs.get(key, ())
                    session.give_all((key, (a, b)) for a in values for b in others)

    return logic


def gathered(
    scope: BuildingScope, read: Output, name: str, shape: Callable[[list[Any]], list[Any]], *, locally: bool
) -> Output:
    """Appends what has the records of each time on one worker, shaped by a function.

    Args:
        scope: Where it is.
        read: The records.
        name: What it is called.
        shape: Makes the result of a time's records.
        locally: Whether it is applied before they move, too; on one worker also, so that plans are equal for
            any number of workers.
    """
    build = at_closing(lambda batches: shape(list(chain.from_iterable(batches))))
    if locally:
        read = single_output(scope, f"{name}: locally", [(read, Pipeline())], build, notify=True)
    return single_output(scope, name, [(read, Exchange(_first_worker))], build, notify=True)


def _first_worker(_record: Any) -> int:
    return 0
