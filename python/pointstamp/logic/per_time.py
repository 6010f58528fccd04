"""State that an operator keeps for each time until the time closes.

Owns `PerTime`, and `at_closing`, the operators that need all of a time at once. Invariant: a state and the
capability to send at its time come and go together, so that nothing is kept for a time that is closed. Costs
are those of `FrontierNotificator`, and a dict look-up for each access.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Generic, TypeVar

from pointstamp.logic.notify import FrontierNotificator

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from pointstamp._core import Capability, CapabilityRef, FrontieredInput, OutputPort
    from pointstamp.order import Antichain
    from pointstamp.types import Time

__all__ = ["MOST", "PerTime", "at_closing"]

MOST = 1024
"""The most records that an operator sends at once: the engine's batches have as many."""

S = TypeVar("S")


class PerTime(Generic[S]):
    """State by time, each with a capability to send at that time."""

    __slots__ = ("_make", "_ready", "_states")

    def __init__(self, make: Callable[[], S]) -> None:
        self._make = make
        self._states: dict[Time, S] = {}
        self._ready = FrontierNotificator()

    def at(self, message: CapabilityRef) -> S:
        """The state at a message's time, made by the function given to the class where there is none."""
        time = message.time
        states = self._states
        if time not in states:
            states[time] = self._make()
            self._ready.notify_at(message.retain())
        return states[time]

    def put(self, time: Time, state: S) -> None:
        """Replaces the state of a time that has one."""
        self._states[time] = state

    def closed(self, *frontiers: Antichain) -> Iterator[tuple[Capability, S]]:
        """Takes out the states whose times every frontier has passed, least first.

        Each comes with its capability, which is dropped when the next one is asked for.
        """
        for capability in self._ready.ready(*frontiers):
            with capability:
                yield capability, self._states.pop(capability.time)

    def __len__(self) -> int:
        return len(self._states)


def at_closing(finish: Callable[[list[Any]], Any]) -> Callable[..., Any]:
    """The constructor of an operator that keeps a time's batches until it closes.

    Args:
        finish: Called with the batches, at least one: lists of records, or record batches. Returns what is
            sent: a list of records, or columns.
    """

    def build(capability: Capability, _info: Any) -> Callable[..., None]:
        capability.drop()
        times: PerTime[list[Any]] = PerTime(list)

        def logic(port: FrontieredInput[Any], output: OutputPort[Any]) -> None:
            for message, batch in port:
                times.at(message).append(batch)
            for cap, batches in times.closed(port.frontier):
                made = finish(batches)
                with output.session(cap) as session:
                    give = session.give_all if isinstance(made, list) else session.give
                    give(made)

        return logic

    return build
