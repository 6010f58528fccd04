"""A set of capabilities: the right to send at or after any of several times.

After timely dataflow's `CapabilitySet`. Invariant: all are for one output, and none of the times comes before
another. Costs follow the number of times held, which is the size of a frontier.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pointstamp._validation import suggesting
from pointstamp.errors import TimeError
from pointstamp.order import Antichain, less_equal

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from pointstamp._core import Capability
    from pointstamp.types import Time

__all__ = ["CapabilitySet"]


@suggesting
class CapabilitySet:
    """Capabilities for an antichain of times; `downgrade` moves them forward together.

    Capabilities that are put into the set are the set's from then on: do not drop or downgrade them.

    Args:
        capabilities: The capabilities that the set holds at the start.

    Examples:
        An operator that may say something at every time that its input can still reach:

        >>> import pointstamp as ps
        >>> def build(scope):
        ...     def echo(capability, info):
        ...         held = ps.CapabilitySet([capability])
        ...         def logic(input, output):
        ...             for message, records in input:
        ...                 with output.session(held.delayed(message.time)) as session:
        ...                     session.give_all(records)
        ...             held.downgrade(input.frontier)
        ...         return logic
        ...     numbers = scope.to_stream([4, 7]).delay(lambda x, time: x)
        ...     return numbers.unary_frontier(ps.Pipeline(), "echo", echo).capture()
        >>> ps.example(build).extract()
        [(4, [4]), (7, [7])]
    """

    __slots__ = ("_held",)

    def __init__(self, capabilities: Iterable[Capability] = ()) -> None:
        self._held: list[Capability] = []
        for capability in capabilities:
            self.insert(capability)

    def insert(self, capability: Capability) -> None:
        """Adds a capability, and drops those that it makes superfluous, or the new one if it is.

        Examples:
            >>> import pointstamp as ps
            >>> def main(worker):
            ...     with worker.dataflow(dims=2) as scope:
            ...         _, capability, _ = scope.new_unordered_input()
            ...     held = ps.CapabilitySet([capability.delayed((0, 2)), capability.delayed((1, 1))])
            ...     held.insert(capability.delayed((0, 1)))
            ...     return held.times
            >>> ps.execute(main)
            [[(0, 1)]]
        """
        time = capability.time
        if any(less_equal(held.time, time) for held in self._held):
            capability.drop()
            return
        after = [held for held in self._held if less_equal(time, held.time)]
        self._held = [held for held in self._held if held not in after]
        self._held.append(capability)
        for held in after:
            held.drop()

    def delayed(self, time: Time) -> Capability:
        """A capability for a time at or after one of the set's; the set stays as it is.

        Raises:
            TimeError: If the set holds no time at or before it.

        Examples:
            >>> import pointstamp as ps
            >>> def main(worker):
            ...     with worker.dataflow() as scope:
            ...         _, capability, _ = scope.new_unordered_input()
            ...     held = ps.CapabilitySet([capability])
            ...     return held.delayed(3).time, held.times
            >>> ps.execute(main)
            [(3, [0])]
        """
        for held in self._held:
            if less_equal(held.time, time):
                return held.delayed(time)
        raise TimeError(f"no capability of the set is for {time} or a time before it: it holds {self.times}")

    def downgrade(self, frontier: Iterable[Time]) -> None:
        """Moves to the times of a frontier, giving up all that is not at or after one of them.

        Args:
            frontier: Times, each at or after one of the set's; none at all gives everything up.

        Raises:
            TimeError: If the set holds no time at or before one of them; nothing changes then.

        Examples:
            >>> import pointstamp as ps
            >>> def main(worker):
            ...     with worker.dataflow() as scope:
            ...         _, capability, _ = scope.new_unordered_input()
            ...     held = ps.CapabilitySet([capability])
            ...     held.downgrade([3])
            ...     return held.times
            >>> ps.execute(main)
            [[3]]
        """
        times = Antichain(frontier).elements
        if times == self.times:
            return
        moved = [self.delayed(time) for time in times]
        given_up, self._held = self._held, moved
        for held in given_up:
            held.drop()

    @property
    def times(self) -> list[Time]:
        """The times of the capabilities, in the order of their coordinates."""
        return sorted(held.time for held in self._held)

    def __iter__(self) -> Iterator[Capability]:
        return iter(list(self._held))

    def __len__(self) -> int:
        return len(self._held)

    def __repr__(self) -> str:
        return f"CapabilitySet(times={self.times})"
