"""The operator under all that go by key: logic over records in the order of time, once they are final.

Its input is ``(time, key, value)``, exchanged by key. It holds one capability, at or before all that is
still to be sent: the earliest record that waits, or what the logic says that it will send without another
record. Logic gives pairs ``(time, result)``, which are sent together: see `EventStream`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

from pointstamp._core import PactKind
from pointstamp._errors import GraphError
from pointstamp.custom.builder import constructed, operator_info
from pointstamp.keyed.arrivals import Arrivals

if TYPE_CHECKING:
    from collections.abc import Callable

    from pointstamp._core import Capability, FrontieredInput, OutputPort
    from pointstamp._core import Stream as CoreStream
    from pointstamp.event_times.clock import Clock
    from pointstamp.keyed.arrivals import Triple
    from pointstamp.scope import Scope
    from pointstamp.streams.records import Stream

__all__ = ["Logic", "in_time_order", "root_only"]


class Logic(Protocol):
    """What an operator does with records in the order of their times."""

    def run(self, records: list[Triple], until: int | None, out: list[tuple[int, Any]]) -> None:
        """Takes all records before `until`, which come once; None when none can come any more.

        What it sends goes to `out`, with a time before `until` and not before its next time.
        """

    def next_time(self, until: int) -> int | None:
        """The earliest time of what it will send if no record comes; None if nothing."""


def root_only(scope: Scope, operator: str) -> None:
    """Refuses a scope whose times are not one number.

    Raises:
        GraphError: It says what there is in loops.
    """
    if scope.dims != 1:
        raise GraphError(
            f"{operator} goes by event time, which is one number, and times in {scope!r} have {scope.dims} "
            "coordinates: leave() the scope before, or use aggregate and state_machine inside it"
        )


def in_time_order(
    scope: Scope, triples: CoreStream, clock: Clock, name: str, make: Callable[[], Logic]
) -> Stream[Any]:
    """The operator, and its results as a stream of event times.

    Args:
        scope: Where it is.
        triples: Records ``(time, key, value)``, at a time that is not after any of them.
        clock: Their unit, and that of the results.
        name: For messages.
        make: Makes the logic; called once.
    """
    core = scope.core.operator(name)
    port = core.new_frontiered_input(triples, PactKind.EXCHANGE_SECOND)
    output, pairs, capability = core.new_output()

    def build(capability: Capability, _info: Any) -> Callable[..., None]:
        capability.drop()
        return Ordered(make()).run

    logic = constructed(name, build, capability, operator_info(scope, name, core))
    del capability
    core.build(logic, (port, output), True, False)
    return scope.event_stream_of(pairs, clock)


class Ordered:
    """Feeds the logic, and holds the capability for it."""

    __slots__ = ("_arrivals", "_held", "_logic", "_stands", "_until")

    def __init__(self, logic: Logic) -> None:
        self._logic = logic
        self._arrivals = Arrivals()
        self._held: Capability | None = None
        self._stands = 0
        self._until: int | None = -1

    def run(self, port: FrontieredInput[Any], output: OutputPort[Any]) -> None:
        """Takes what has come, and runs the logic if times have become final."""
        for message, records in port:
            self._arrivals.add(records)
            time: Any = message.time
            if self._held is None or time < self._stands:
                self._held = message.retain()
                self._stands = time
        frontier: list[Any] = port.frontier.elements
        until = frontier[0] if frontier else None
        if until == self._until:
            return  # nothing that has come is final
        self._until = until
        out: list[tuple[int, Any]] = []
        self._logic.run(self._arrivals.take(until), until, out)
        if self._held is None:
            return
        if out:
            with output.session(self._held) as session:
                session.give_all(out)
        if until is None:
            self._held.drop()
            self._held = None
            return
        needs = [time for time in (self._arrivals.least(), self._logic.next_time(until)) if time is not None]
        if not needs:
            self._held.drop()
            self._held = None
        elif min(needs) > self._stands:
            self._stands = min(needs)
            self._held.downgrade(self._stands)
