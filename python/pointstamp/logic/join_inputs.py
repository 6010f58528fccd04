"""Two keyed streams as one: the input of joins in time.

The values of both are ``(side, value)``, 0 for the left and 1 for the right, in one stream: its frontier is
the frontier of both together, so that the operator behind it sees both sides in the order of time.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pointstamp.errors import GraphError
from pointstamp.logic.timed import map_timed
from pointstamp.plan import records, shape
from pointstamp.plan.node import Form, Output

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pointstamp.logic.timed_rows import Keyed, Times
    from pointstamp.lowering.scope import BuildingScope

__all__ = ["both_sides", "check_sides"]


def both_sides(left: Any, right: Any, name: str | None) -> Output:
    """The records of two keyed or windowed streams of one scope, with the side that each is of.

    Args:
        left: The left one.
        right: The right one.
        name: The name of the join, where the program gives one.

    Raises:
        TypeError: If the right one is something else, or their times are of different kinds.
        GraphError: If they are of different scopes.
    """
    check_sides(left, right)
    left._clock.join(right._clock)
    scope: BuildingScope = left.scope
    if scope.dims > 1:
        return _both_as_pairs(scope, (left, right), name)
    sides = [
        map_timed(scope, stream._output, _tag(side), f"{name}: side" if name else "side")
        for side, stream in enumerate((left, right))
    ]
    reads = [side.read_as(Form.TIMED) for side in sides]
    together = name and f"{name}: concatenate"
    return scope._append(shape.CONCATENATE, reads, Output(Form.TIMED), name=together).output


def check_sides(left: Any, right: Any) -> None:
    """Refuses a right side that is no stream like the left one, of its scope.

    Raises:
        TypeError: If it is something else.
        GraphError: If it is of another scope.
    """
    if type(left) is not type(right):
        raise TypeError(
            f"a {type(left).__name__} joins another {type(left).__name__}, not {right!r}: call "
            "key_by on both sides"
        )
    if left.scope is not right.scope:
        raise GraphError("a join needs both streams in one scope: enter() or leave() it first")


def _both_as_pairs(scope: BuildingScope, streams: Sequence[Any], name: str | None) -> Output:
    """The same of records ``(key, value)``, in scopes whose times have several coordinates."""
    sides = [
        scope._append(
            records.MAP,
            [stream._output],
            Output(Form.RECORDS),
            name=f"{name}: side" if name else "side",
            function=_tag_pair(side),
        ).output
        for side, stream in enumerate(streams)
    ]
    together = name and f"{name}: concatenate"
    reads = [side.read_as(Form.RECORDS) for side in sides]
    return scope._append(shape.CONCATENATE, reads, Output(Form.RECORDS), name=together).output


def _tag_pair(side: int) -> Any:
    return lambda pair: (pair[0], (side, pair[1]))


def _tag(side: int) -> Any:
    def tag(times: Times, keys: list[Any], values: list[Any]) -> Keyed:
        return times, keys, [(side, value) for value in values]

    return tag
