"""State that an operator keeps for each time until the time closes.

Owns `PerTime`, `PerTimeAndKey`, and `at_closing`, the operators that need all of a time at once. Invariant: a
state and the capability to send at its time are created and dropped together, so that nothing is kept for a
time that is closed. Costs are those of `FrontierNotificator`, and a dict look-up for each access.
"""

from __future__ import annotations

from operator import add, or_
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from pointstamp._core import with_one_nan
from pointstamp.logic.notify import FrontierNotificator

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from pointstamp._core import Capability, CapabilityRef, FrontieredInput, OutputPort
    from pointstamp.logic.declared_state import Division, Restored
    from pointstamp.order import Antichain
    from pointstamp.types import Time

__all__ = ["MOST", "NOTHING", "PerTime", "PerTimeAndKey", "at_closing"]

MOST = 1024
"""The most records that an operator sends at once: the engine's batches have as many."""

NOTHING: Any = object()
"""No state of a time; None can be one."""

S = TypeVar("S")


class PerTime(Generic[S]):
    """State by time, each with a capability to send at that time.

    Args:
        make: Makes the state of a time.
        division: Its division among workers in checkpoints. Where it is by group, a state is by key.
        add: Adds a second state of one time to the first, and returns both together. Needed where a worker
            can come to have the states of several.
    """

    __slots__ = ("_add", "_make", "_ready", "_states", "division")

    def __init__(
        self, make: Callable[[], S], division: Division = "workers", add: Callable[[S, S], S] | None = None
    ) -> None:
        self._make = make
        self._states: dict[Time, S] = {}
        self._ready = FrontierNotificator()
        self.division: Division = division
        self._add = add

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

    def taken(self) -> list[tuple[Capability, S]]:
        """See `Waiting`."""
        return [(self._ready._requests.at(time), state) for time, state in self._states.items()]

    def give_back(self, taken: list[tuple[Capability, S]], restored: Restored) -> None:
        """See `Waiting`."""
        for capability, state in taken:
            if (part := self.part_of(state, restored)) is not NOTHING:
                time = capability.time
                if time not in self._states:
                    self._states[time] = part
                    self._ready.notify_at(capability)
                else:
                    assert self._add is not None
                    self._states[time] = self._add(self._states[time], part)

    def part_of(self, state: S, _restored: Restored) -> Any:
        """Returns this worker's part of the state of a time; `NOTHING` for nothing."""
        return state


class PerTimeAndKey(PerTime[dict[Any, S]]):
    """State by time and key: each key is on the worker of its group."""

    __slots__ = ()

    def __init__(self) -> None:
        super().__init__(dict, "groups", or_)

    def part_of(self, state: dict[Any, S], restored: Restored) -> Any:
        """See `PerTime`."""
        keys = with_one_nan(list(state))
        states = zip(keys, state.values(), strict=True)
        return {key: state for key, state in states if restored.is_mine(key)} or NOTHING


def at_closing(finish: Callable[[list[Any]], Any]) -> tuple[Callable[..., Any], PerTime[list[Any]]]:
    """The constructor and the state of an operator that keeps a time's batches until it closes.

    Any worker can have any of the batches.

    Args:
        finish: Called with the batches, at least one: lists of records, or record batches. Returns the
            sent: a list of records, or columns.
    """
    times: PerTime[list[Any]] = PerTime(list, "parts", add)

    def build(capability: Capability, _info: Any) -> Callable[..., None]:
        capability.drop()

        def logic(port: FrontieredInput[Any], output: OutputPort[Any]) -> None:
            for message, batch in port:
                times.at(message).append(batch)
            for cap, batches in times.closed(port.frontier):
                made = finish(batches)
                with output.session(cap) as session:
                    give = session.give_all if isinstance(made, list) else session.give
                    give(made)

        return logic

    return build, times
