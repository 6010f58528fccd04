"""Notifications: capabilities handed back once their time is closed.

Owns `FrontierNotificator`, which an operator drives with its input frontiers, and `Notificator`, which
`unary_notify` and `binary_notify` pass to their logic with the frontiers already in it. The idea is
Naiad's ``OnNotify``; the names are timely dataflow's. A request costs a heap insertion, a notification a
removal; while no time has closed, asking costs one comparison under totally ordered times.
"""

from __future__ import annotations

from heapq import heapify, heappop, heappush
from typing import TYPE_CHECKING, Any

from pointstamp._validation import refuse_async, suggesting
from pointstamp.logic.declared_state import declaration
from pointstamp.logic.planned import single_output

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from pointstamp import _core
    from pointstamp._core import Capability, FrontieredInput
    from pointstamp.info import OperatorInfo
    from pointstamp.logic.declared_state import Declared
    from pointstamp.lowering.scope import BuildingScope
    from pointstamp.order import Antichain
    from pointstamp.pacts import Pact
    from pointstamp.plan.node import Output
    from pointstamp.types import Time

__all__ = ["FrontierNotificator", "Notificator"]


class _Requests:
    """Requested times with their capabilities, least first in an order that extends the order of times."""

    __slots__ = ("_heap", "_held", "restored")

    def __init__(self) -> None:
        self.restored = False
        self._held: dict[Time, list[Capability]] = {}
        self._heap: list[Time] = []

    def add(self, capability: Capability) -> None:
        time = capability.time
        held = self._held.get(time)
        if held is None:
            self._held[time] = [capability]
            # Python's order of tuples is a linear extension of the product order.
            heappush(self._heap, time)
        else:
            held.append(capability)

    def __bool__(self) -> bool:
        return bool(self._heap)

    def at(self, time: Time) -> Capability:
        """Returns a capability of a time that was requested, which stays here."""
        return self._held[time][0]

    def take(self, frontiers: Sequence[Antichain]) -> tuple[Capability, int] | None:
        """The first request whose time no frontier reaches, and the number of times that it was made."""
        heap = self._heap
        if not heap:
            return None
        least = heap[0]
        if not any(frontier.less_equal(least) for frontier in frontiers):
            heappop(heap)
            return self._pop(least)
        if isinstance(least, int):
            return None  # totally ordered: nothing behind it is closed either
        closed = [time for time in heap if not any(f.less_equal(time) for f in frontiers)]
        if not closed:
            return None
        first = min(closed)
        heap.remove(first)
        heapify(heap)
        return self._pop(first)

    def held(self) -> list[Capability]:
        """Returns the capability of each request; see `declared_state.Requests`."""
        return [capability for held in self._held.values() for capability in held]

    def take_back(self, held: list[Capability]) -> None:
        """Makes requests again."""
        self.restored = True
        for capability in held:
            self.add(capability)

    def _pop(self, time: Time) -> tuple[Capability, int]:
        held = self._held.pop(time)
        for spare in held[1:]:
            spare.drop()
        return held[0], len(held)


@suggesting
class FrontierNotificator:
    """Holds capabilities until the frontiers that it is shown have passed their times.

    Examples:
        >>> import pointstamp as ps
        >>> def build(scope):
        ...     def sums(capability, info):
        ...         capability.drop()
        ...         totals, ready = {}, ps.FrontierNotificator()
        ...         def logic(input, output):
        ...             for cap, numbers in input:
        ...                 totals[cap.time] = totals.get(cap.time, 0) + sum(numbers)
        ...                 ready.notify_at(cap.retain())
        ...             for cap in ready.ready(input.frontier):
        ...                 with output.session(cap) as session:
        ...                     session.give(totals.pop(cap.time))
        ...         return logic
        ...     return scope.to_stream(range(10)).unary_frontier(ps.Pipeline(), "sums", sums).capture()
        >>> ps.example(build).extract()
        [(0, [45])]
    """

    __slots__ = ("_requests",)

    def __init__(self) -> None:
        self._requests = _Requests()

    def held(self) -> list[Capability]:
        """Returns the capabilities that it holds, for the snapshot of an operator's state.

        Examples:
            >>> import pointstamp as ps
            >>> class Pending:
            ...     def __init__(self):
            ...         self.ready = ps.FrontierNotificator()
            ...     def snapshot(self):
            ...         return [("ready", self.ready.held())]
            ...     def restore(self, pairs, version):
            ...         for _, held in pairs:
            ...             for capability in held:
            ...                 self.ready.notify_at(capability)
        """
        return self._requests.held()

    def notify_at(self, capability: Capability) -> None:
        """Asks for the capability back once its time is closed.

        The notificator owns it afterwards: do not drop it.

        Examples:
            >>> import pointstamp as ps
            >>> def main(worker):
            ...     with worker.dataflow() as scope:
            ...         _, capability, _ = scope.new_unordered_input()
            ...     waiting = ps.FrontierNotificator()
            ...     waiting.notify_at(capability.delayed(2))
            ...     capability.drop()
            ...     return [held.time for held in waiting.ready(ps.order.Antichain([3]))]
            >>> ps.execute(main)
            [[2]]
        """
        self._requests.add(capability)

    def ready(self, *frontiers: Antichain) -> Iterator[Capability]:
        """Yields capabilities whose time every frontier has passed, least first, once per time.

        A capability that is yielded is the caller's: drop it, or let it go out of scope, when done.

        Examples:
            >>> import pointstamp as ps
            >>> from pointstamp.order import Antichain
            >>> def main(worker):
            ...     with worker.dataflow() as scope:
            ...         _, capability, _ = scope.new_unordered_input()
            ...     waiting = ps.FrontierNotificator()
            ...     waiting.notify_at(capability.delayed(2))
            ...     capability.drop()
            ...     early = [held.time for held in waiting.ready(Antichain([3]), Antichain([2]))]
            ...     return early, [held.time for held in waiting.ready(Antichain([3]), Antichain())]
            >>> ps.execute(main)
            [([], [2])]
        """
        while (found := self._requests.take(frontiers)) is not None:
            yield found[0]


@suggesting
class Notificator:
    """Returns capabilities whose time is closed on every input, least first, once per time."""

    __slots__ = ("_inputs", "_requests")

    def __init__(self, inputs: Sequence[FrontieredInput[Any]], requests: _Requests) -> None:
        self._inputs = inputs
        self._requests = requests

    def notify_at(self, capability: Capability) -> None:
        """Asks for the capability back once its time is closed on every input.

        Examples:
            >>> import pointstamp as ps
            >>> def ends(input, output, notificator):
            ...     for cap, _ in input:
            ...         notificator.notify_at(cap.retain())
            ...     for cap, _ in notificator:
            ...         with output.session(cap) as session:
            ...             session.give(f"{cap.time} is over")
            >>> def build(scope):
            ...     return scope.to_stream(range(3)).unary_notify(ps.Pipeline(), "ends", [], ends).capture()
            >>> ps.example(build).extract()
            [(0, ['0 is over'])]
        """
        self._requests.add(capability)

    def __iter__(self) -> Iterator[tuple[Capability, int]]:
        """Yields ``(capability, number of requests)`` for each time that is closed."""
        if not self._requests:
            return
        frontiers = [port.frontier for port in self._inputs]
        while (found := self._requests.take(frontiers)) is not None:
            yield found


def notified(
    scope: BuildingScope,
    inputs: Sequence[tuple[Output, Pact]],
    name: str,
    init: Iterable[Time],
    logic: Callable[..., None],
    *,
    schema: _core.Schema | None = None,
    state: Declared = None,
) -> Output:
    """Appends an operator of one output; its logic gets the inputs, the output and a notificator.

    Where it was given a class of states, the logic is called with the state, too.
    """
    if not callable(logic):
        raise TypeError(f"the logic of operator '{name}' is a function, not {logic!r}")
    refuse_async(f"operator '{name}'", logic)
    requests = _Requests()
    cure = (
        "give it state=C, where C is a class with snapshot() and restore(), with whose object its logic is "
        'called behind the notificator; or state="none" where it keeps nothing but its notifications'
    )
    pacts = [type(pact) for _, pact in inputs]
    declares = declaration(scope, name, state, pacts, requests=requests, cure=cure)

    def build(capability: Capability, info: OperatorInfo) -> Callable[..., None]:
        # After a resumption, the requests from the start are restored, or were delivered.
        if not requests.restored and not capability._revoked:
            for time in init:
                requests.add(capability.delayed(time))
        capability.drop()
        notificator: Notificator | None = None
        last = () if info.state is None else (info.state,)

        def run(*ports: Any) -> None:
            nonlocal notificator
            if notificator is None:
                notificator = Notificator(ports[:-1], requests)
            logic(*ports, notificator, *last)

        return run

    return single_output(
        scope, name, inputs, build, notify=True, start=True, schema=schema, declares=declares
    )
