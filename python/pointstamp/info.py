"""What an operator is told of itself when it is built."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from pointstamp._core import Activator

__all__ = ["OperatorInfo"]


class OperatorInfo(NamedTuple):
    """An operator's name and place, its worker, and what schedules it again.

    Attributes:
        name: The operator's name.
        address: The path to it from the worker's root: dataflow, scopes, operator.
        index: This worker, from 0.
        peers: How many workers there are.
        activator: Asks for this operator to run.
    """

    name: str
    address: tuple[int, ...]
    index: int  # type: ignore[assignment]  # in the place of a method of tuples, which nobody needs here
    peers: int
    activator: Activator
