"""`Stream.state_machine`: keyed state that outlives times, and is changed in the order of times.

Values are applied in the order of the coordinates of their times, which is a linear extension of the order
of times (`LeastFirst`). Values of one time and key are applied in the order of their arrival.
"""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING, Any

from pointstamp.logic.folds import outputs_of
from pointstamp.logic.least_first import LeastFirst
from pointstamp.logic.per_time import MOST

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable

    from pointstamp._core import Capability, FrontieredInput, OutputPort
    from pointstamp.info import OperatorInfo
    from pointstamp.logic.declared_state import Division, Restored
    from pointstamp.logic.state_chain import StateChain

__all__ = ["state_machine"]


class StatesByKey:
    """The state of each key, and the records whose times are not closed."""

    division: Division = "groups"

    def __init__(self, default: Callable[[], Any]) -> None:
        self.states: defaultdict[Any, Any] = defaultdict(default)
        self.waiting = LeastFirst()
        self.chain: StateChain | None = None

    def taken(self) -> Any:
        """See `Waiting`."""
        return self.waiting.taken()

    def give_back(self, taken: Any, restored: Restored) -> None:
        """See `Waiting`."""
        self.waiting.give_back(taken, restored)

    def keys(self) -> Collection[Any]:
        """See `WaitingByKey`."""
        return self.states.keys()

    def entries(self, keys: Collection[Any]) -> Iterable[tuple[Any, Any]]:
        """See `WaitingByKey`."""
        return ((key, (self.states[key],) if key in self.states else None) for key in keys)

    def take_back(self, entries: dict[Any, Any]) -> None:
        """See `WaitingByKey`."""
        self.states.update((key, state) for key, (state,) in entries.items())

    def follow(self, chain: StateChain) -> None:
        """See `WaitingByKey`."""
        self.chain = chain


def state_machine(
    fold: Callable[[Any, Any, Any], tuple[Any, Iterable[Any]]], default: Callable[[], Any]
) -> tuple[
    Callable[[Capability, OperatorInfo], Callable[[FrontieredInput[Any], OutputPort[Any]], None]],
    StatesByKey,
]:
    """The constructor and the state of the operator, whose input is exchanged by key."""
    kept = StatesByKey(default)
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
                kept.chain.changes([key for key, _ in records])
                return outputs_for(records)

        def outputs_for(records: list[tuple[Any, Any]]) -> list[Any]:
            """Changes the states by some records; returns the outputs."""
            made: list[Any] = []
            for key, value in records:
                returned: Any = fold(key, value, states[key])
                # Almost all functions return (state, [...]), which needs no further look.
                if type(returned) is not tuple or len(returned) != 2 or type(returned[1]) is not list:
                    returned = outputs_of(returned, fold)
                state, outputs = returned
                if state is None:
                    states.pop(key, None)
                else:
                    states[key] = state
                made += outputs
            return made

        return logic

    return build, kept
