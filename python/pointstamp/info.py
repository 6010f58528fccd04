"""The description that an operator is given of itself when it is built, and the traffic of a process."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from pointstamp._core import Activator

__all__ = ["OperatorInfo", "Traffic"]


class OperatorInfo(NamedTuple):
    """An operator's name and location, its worker, and its activator.

    Attributes:
        name: The operator's name.
        address: The path to it from the worker's root: dataflow, scopes, operator.
        index: This worker, from 0.
        peers: The number of workers.
        activator: Asks for this operator to run.
        state: The operator's state, where it was given a class of one (``state=``); else None.

    Examples:
        >>> import pointstamp as ps
        >>> def build(scope):
        ...     def describe(capability, info):
        ...         print(info.name, info.index, info.peers)
        ...         capability.drop()
        ...         return lambda output: None
        ...     scope.source("nothing", describe)
        >>> ps.example(build)
        nothing 0 1
    """

    name: str
    address: tuple[int, ...]
    index: int  # type: ignore[assignment]  # in the place of a method of tuples that is of no use here
    peers: int
    activator: Activator
    state: Any = None


class Traffic(NamedTuple):
    """Frames and bytes that a process has sent to the others since its cluster formed, for all its workers.

    Attributes:
        data_messages: Batches of records.
        data_bytes: Their bytes.
        progress_messages: Messages about completed times; messages of several workers that are combined count
            once. With ``progress_mode="tree"``, those that a process passes on for others are among its own.
        progress_bytes: Their bytes.

    Examples:
        >>> import pointstamp as ps
        >>> ps.execute(lambda worker: worker.traffic())
        [Traffic(data_messages=0, data_bytes=0, progress_messages=0, progress_bytes=0)]
    """

    data_messages: int
    data_bytes: int
    progress_messages: int
    progress_bytes: int
