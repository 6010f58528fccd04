"""`Stream.join`, `top_k` and `sort`: operators on all the records of a time.

They keep a time's records until it closes.
"""

from __future__ import annotations

from itertools import chain, product
from typing import TYPE_CHECKING, Any, TypeAlias

from pointstamp._core import pairs_with_one_nan
from pointstamp.logic.join_kinds import one_sided, outer_sides
from pointstamp.logic.per_time import at_closing
from pointstamp.logic.planned import single_output
from pointstamp.pacts import Exchange, Pipeline
from pointstamp.plan.least_time import IN_RECORDS

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from pointstamp._core import Capability, FrontieredInput, OutputPort
    from pointstamp._validation import Line
    from pointstamp.logic.per_time import PerTimeAndKey
    from pointstamp.lowering.scope import BuildingScope
    from pointstamp.pacts import Pact
    from pointstamp.plan.least_time import NeverMet
    from pointstamp.plan.node import Output
    from pointstamp.types import Time

__all__ = ["Sides", "gathered", "join_per_time", "matched"]


Sides: TypeAlias = "tuple[list[Any], list[Any]]"
"""The values of a key, of the left side and of the right."""


def matched(
    keys: Iterable[tuple[Any, Sides]], fn: Callable[[Any, Any, Any], Any] | None, how: str
) -> Iterator[Any]:
    """Makes the results of a join of records by key.

    Args:
        keys: Each key with its values.
        fn: Makes a result of a key and two values; None for ``(key, (ours, theirs))``.
        how: The kind of the join, as in `Stream.join`.
    """
    if one_sided(how):
        for key, (ours, theirs) in keys:
            if bool(theirs) == (how == "semi"):
                yield from ((key, value) for value in ours)
        return
    left, right = outer_sides(how)
    for key, (ours, theirs) in keys:
        pairs = product(ours or ([None] if right else []), theirs or ([None] if left else []))
        yield from ((key, pair) for pair in pairs) if fn is None else (fn(key, *pair) for pair in pairs)


def join_per_time(
    times: PerTimeAndKey[Sides],
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
                keys = times.at(message)
                pairs = pairs_with_one_nan(records)
                keys.bring([key for key, _ in pairs])
                for key, value in pairs:
                    if (sides := keys.get(key)) is None:
                        sides = keys[key] = ([], [])
                    sides[side].append(value)
                keys.settle()
        for cap, keys in times.closed(left.frontier, right.frontier):
            with output.session(cap) as session:
                session.give_all(matched(keys.every(), fn, how))

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
