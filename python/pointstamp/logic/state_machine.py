"""`Stream.state_machine`: keyed state that outlives times, and is changed in the order of times.

Values are applied in the order of the coordinates of their times, which is a linear extension of the order
of times (`LeastFirst`). Values of one time and key are applied in the order of their arrival.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pointstamp.logic.folds import outputs_of
from pointstamp.logic.least_first import LeastFirst
from pointstamp.logic.per_time import MOST
from pointstamp.logic.states import NO_STATE, Keys, States

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable

    from pointstamp._core import Capability, Disk, FrontieredInput, OutputPort
    from pointstamp.info import OperatorInfo
    from pointstamp.logic.declared_state import Division, Restored
    from pointstamp.logic.state_chain import StateChain

__all__ = ["state_machine"]


class StatesByKey:
    """The state of each key, and the records whose times are not closed."""

    division: Division = "groups"

    def __init__(self) -> None:
        self.states: States[Any, Any] = States()
        self.waiting = LeastFirst()
        self.chain: StateChain | None = None

    def spill_to(self, disk: Disk) -> None:
        """See `Spilling`."""
        self.states.spill_to(disk)
        self.waiting.spill_to(disk)

    def taken(self) -> Any:
        """See `Waiting`."""
        return self.waiting.taken()

    def give_back(self, taken: Any, restored: Restored) -> None:
        """See `Waiting`."""
        self.waiting.give_back(taken, restored)

    def keys(self) -> Collection[Any]:
        """See `WaitingByKey`."""
        return Keys([self.states])

    def entries(self, keys: Collection[Any]) -> Iterable[tuple[Any, Any]]:
        """See `WaitingByKey`."""
        found = ((key, self.states.find(key)) for key in keys)
        return ((key, None if state is NO_STATE else (state,)) for key, state in found)

    def take_back(self, entries: list[tuple[Any, Any]]) -> None:
        """See `WaitingByKey`."""
        self.states.bring([key for key, _ in entries])
        for key, entry in entries:
            if entry is None:
                self.states.pop(key, None)
            else:
                (self.states[key],) = entry
        self.states.settle()

    def has_all(self) -> None:
        """See `WaitingByKey`."""

    def follow(self, chain: StateChain) -> None:
        """See `WaitingByKey`."""
        self.chain = chain

    def brings(self, keys: list[Any]) -> None:
        """Has the states of some keys in memory, and notes that they change."""
        if self.chain is not None:
            self.chain.changes(keys)
        self.states.bring(keys)


def state_machine(
    fold: Callable[[Any, Any, Any], tuple[Any, Iterable[Any]]], default: Callable[[], Any]
) -> tuple[
    Callable[[Capability, OperatorInfo], Callable[[FrontieredInput[Any], OutputPort[Any]], None]],
    StatesByKey,
]:
    """The constructor and the state of the operator, whose input is exchanged by key."""
    kept = StatesByKey()
    states, waiting = kept.states, kept.waiting

    def build(
        capability: Capability, _info: OperatorInfo
    ) -> Callable[[FrontieredInput[Any], OutputPort[Any]], None]:
        capability.drop()

        def logic(port: FrontieredInput[Any], output: OutputPort[Any]) -> None:
            for message, records in port:
                waiting.add(message, records)
            for cap, records in waiting.closed(port.frontier):
                with output.session(cap) as session:
                    for first in range(0, len(records), MOST):
                        session.give_all(applied(records[first : first + MOST]))

        def applied(records: list[tuple[Any, Any]]) -> list[Any]:
            if kept.chain is None:
                return outputs_for(records)
            with kept.chain:
                return outputs_for(records)

        def outputs_for(records: list[tuple[Any, Any]]) -> list[Any]:
            """Changes the states by some records; returns the outputs."""
            made: list[Any] = []
            kept.brings([key for key, _ in records])
            for key, value in records:
                returned: Any = fold(key, value, states[key] if key in states else default())
                # Almost all functions return (state, [...]), which needs no further look.
                if type(returned) is not tuple or len(returned) != 2 or type(returned[1]) is not list:
                    returned = outputs_of(returned, fold)
                state, outputs = returned
                if state is None:
                    states.pop(key, None)
                else:
                    states[key] = state
                made += outputs
            states.settle()
            return made

        return logic

    return build, kept
