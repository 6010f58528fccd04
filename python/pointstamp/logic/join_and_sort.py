"""`Stream.join`, `top_k` and `sort`: operators on all the records of a time.

They keep a time's records until it closes.
"""

from __future__ import annotations

from itertools import chain
from typing import TYPE_CHECKING, Any

from pointstamp._core import pairs_with_one_nan
from pointstamp.logic.join_kinds import one_sided, outer_sides
from pointstamp.logic.per_time import NOTHING, PerTime, at_closing
from pointstamp.logic.planned import single_output
from pointstamp.pacts import Exchange, Pipeline
from pointstamp.plan.least_time import IN_RECORDS

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from pointstamp._core import Capability, FrontieredInput, OutputPort
    from pointstamp._validation import Line
    from pointstamp.logic.declared_state import Restored
    from pointstamp.lowering.scope import BuildingScope
    from pointstamp.pacts import Pact
    from pointstamp.plan.least_time import NeverMet
    from pointstamp.plan.node import Output
    from pointstamp.types import Time

__all__ = ["BothSides", "gathered", "join_per_time", "matched"]


class BothSides(PerTime[tuple[dict[Any, list[Any]], dict[Any, list[Any]]]]):
    """The values of each time, by side and key."""

    __slots__ = ()

    def __init__(self) -> None:
        super().__init__(
            lambda: ({}, {}), "groups", lambda some, more: (some[0] | more[0], some[1] | more[1])
        )

    def part_of(self, state: Any, restored: Restored) -> Any:
        """See `PerTime`."""
        mine = [
            {key: values for key, values in pairs_with_one_nan(list(side.items())) if restored.is_mine(key)}
            for side in state
        ]
        return tuple(mine) if any(mine) else NOTHING


def matched(
    ours: dict[Any, list[Any]],
    theirs: dict[Any, list[Any]],
    fn: Callable[[Any, Any, Any], Any] | None,
    how: str,
) -> Iterator[Any]:
    """Makes the results of a join of records by key.

    Args:
        ours: The values of the left side, by key.
        theirs: The values of the right side.
        fn: Makes a result of a key and two values; None for ``(key, (ours, theirs))``.
        how: The kind of the join, as in `Stream.join`.
    """
    if one_sided(how):
        for key, values in ours.items():
            if (key in theirs) == (how == "semi"):
                yield from ((key, value) for value in values)
        return
    left, right = outer_sides(how)
    missing = [None] if left else []
    pairs = ((key, a, b) for key, values in ours.items() for a in values for b in theirs.get(key, missing))
    alone = ((key, None, b) for key, values in theirs.items() if right and key not in ours for b in values)
    for key, a, b in chain(pairs, alone):
        yield (key, (a, b)) if fn is None else fn(key, a, b)


def join_per_time(
    times: BothSides,
    fn: Callable[[Any, Any, Any], Any] | None,
    how: str,
    unmet: NeverMet | None,
    line: Line,
    capability: Capability,
    _info: Any,
) -> Callable[..., None]:
    """The constructor of `join`, whose inputs are exchanged by key.

    Args:
        times: The values of each time.
        fn: As in `matched`.
        how: As in `matched`.
        unmet: The sides, where later records of one meet nothing: the first gives a warning.
        line: The line of the join.
        capability: Dropped.
    """
    capability.drop()

    def logic(left: FrontieredInput[Any], right: FrontieredInput[Any], output: OutputPort[Any]) -> None:
        nonlocal unmet
        for side, port in enumerate((left, right)):
            for message, records in port:
                if unmet is not None and side == unmet.other and not _is_least(message.time):
                    unmet.warn(IN_RECORDS, line)
                    unmet = None
                by_key = times.at(message)[side]
                for key, value in pairs_with_one_nan(records):
                    by_key.setdefault(key, []).append(value)
        for cap, (ours, theirs) in times.closed(left.frontier, right.frontier):
            with output.session(cap) as session:
                session.give_all(matched(ours, theirs, fn, how))

    return logic


def _is_least(time: Time) -> bool:
    return not (any(time) if isinstance(time, tuple) else time)


def gathered(
    scope: BuildingScope, read: Output, name: str, shape: Callable[[list[Any]], list[Any]], *, locally: bool
) -> Output:
    """Appends an operator that collects the records of each time on one worker, shaped by a function.

    Args:
        scope: Where it is.
        read: The records.
        name: The operator's name.
        shape: Makes the result of a time's records.
        locally: Whether it is applied before they move, too; on one worker also, so that plans are equal for
            any number of workers.
    """

    def shaped(read: Output, name: str, pact: Pact) -> Output:
        build, state = at_closing(lambda batches: shape(list(chain.from_iterable(batches))))
        return single_output(scope, name, [(read, pact)], build, notify=True, state=state)

    if locally:
        read = shaped(read, f"{name}: locally", Pipeline())
    return shaped(read, name, Exchange(_first_worker))


def _first_worker(_record: Any) -> int:
    return 0
