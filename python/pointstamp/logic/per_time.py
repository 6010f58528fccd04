"""State that an operator keeps for each time until the time closes.

Owns `PerTime`, `PerTimeAndKey`, and `at_closing`, the operators that need all of a time at once. Invariant: a
state and the capability to send at its time are created and dropped together, so that nothing is kept for a
time that is closed. Costs are those of `FrontierNotificator`, and a dict look-up for each access.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Generic, TypeVar

from pointstamp._core import with_one_nan
from pointstamp.logic.batches_by_time import BatchesByTime
from pointstamp.logic.notify import FrontierNotificator
from pointstamp.logic.states import States

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from pointstamp._core import Capability, CapabilityRef, Disk, FrontieredInput, OutputPort
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


class PerTimeAndKey(PerTime[States[Any, S]]):
    """State by time and key: each key is on the worker of its group."""

    __slots__ = ("_model",)

    def __init__(self) -> None:
        self._model: States[Any, S] = States()
        super().__init__(self._model.another, "groups", _merged)

    def spill_to(self, disk: Disk) -> None:
        """See `Spilling`."""
        self._model.spill_to(disk)

    def taken(self) -> list[tuple[Capability, Any]]:
        """See `Waiting`."""
        return [(capability, dict(states.every())) for capability, states in super().taken()]

    def part_of(self, state: dict[Any, S], restored: Restored) -> Any:
        """See `PerTime`."""
        keys = with_one_nan(list(state))
        states = zip(keys, state.values(), strict=True)
        part = self._make()
        part.update((key, state) for key, state in states if restored.is_mine(key))
        return part or NOTHING


def _merged(some: States[Any, S], more: States[Any, S]) -> States[Any, S]:
    """Returns states with others of other keys."""
    some.update(more)
    return some


class BatchesPerTime(PerTime[None]):
    """Batches by time, any of which any worker can have."""

    __slots__ = ("_batches",)

    def __init__(self) -> None:
        super().__init__(lambda: None, "parts")
        self._batches = BatchesByTime()

    def spill_to(self, disk: Disk) -> None:
        """See `Spilling`."""
        self._batches.spill_to(disk)

    def add(self, message: CapabilityRef, batch: Any) -> None:
        """Takes in a batch at a message's time."""
        self.at(message)
        self._batches.add(message.time, batch)

    def settle(self) -> None:
        """Has batches go to disk if there is too much in memory."""
        self._batches.settle()

    def pop(self, time: Time) -> list[Any]:
        """Takes out the batches of a time that is closed."""
        return self._batches.pop(time)

    def taken(self) -> list[tuple[Capability, Any]]:
        """See `Waiting`."""
        return [(self._ready._requests.at(time), batches) for time, batches in self._batches.every()]

    def give_back(self, taken: list[tuple[Capability, Any]], restored: Restored) -> None:
        """See `Waiting`."""
        for capability, batches in taken:
            time = capability.time
            if time not in self._states:
                self._states[time] = None
                self._ready.notify_at(capability)
            for batch in batches:
                self._batches.add(time, batch)


def at_closing(finish: Callable[[list[Any]], Any]) -> tuple[Callable[..., Any], BatchesPerTime]:
    """The constructor and the state of an operator that keeps a time's batches until it closes.

    Any worker can have any of the batches.

    Args:
        finish: Called with the batches, at least one: lists of records, or record batches. Returns the
            sent: a list of records, or columns.
    """
    times = BatchesPerTime()

    def build(capability: Capability, _info: Any) -> Callable[..., None]:
        capability.drop()

        def logic(port: FrontieredInput[Any], output: OutputPort[Any]) -> None:
            for message, batch in port:
                times.add(message, batch)
            times.settle()
            for cap, _ in times.closed(port.frontier):
                made = finish(times.pop(cap.time))
                with output.session(cap) as session:
                    give = session.give_all if isinstance(made, list) else session.give
                    give(made)

        return logic

    return build, times
