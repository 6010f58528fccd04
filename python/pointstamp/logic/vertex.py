"""Naiad's programming model: an operator as an object with two callbacks.

After "Naiad: A Timely Dataflow System" (SOSP 2013), section 2.2.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pointstamp._validation import suggesting
from pointstamp.errors import CapabilityError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from pointstamp._core import Capability, CapabilityRef, FrontieredInput, OutputPort
    from pointstamp.info import OperatorInfo
    from pointstamp.types import Time

__all__ = ["Vertex"]


@suggesting
class Vertex:
    """An operator with callbacks. Subclass it.

    Both callbacks may send, and request notifications, at times at or after theirs. `on_recv` is called
    with each message, `on_notify` once for each requested time when no more messages with that time, or
    an earlier one, can come.

    Examples:
        >>> import pointstamp as ps
        >>> class CountPerEpoch(ps.Vertex):
        ...     def __init__(self):
        ...         self.counts = {}
        ...     def on_recv(self, edge, messages, time):
        ...         self.counts[time] = self.counts.get(time, 0) + len(messages)
        ...         self.notify_at(time)
        ...     def on_notify(self, time):
        ...         self.send_by(0, [self.counts.pop(time)], time)
        >>> ps.example(lambda scope: scope.to_stream(list("abcd")).vertex(CountPerEpoch).capture()).extract()
        [(0, [4])]
    """

    _driver: _Driver | None = None

    def on_recv(self, edge: int, messages: list[Any], time: Time) -> None:
        """Called with the records of a message.

        Args:
            edge: The input that it came by, from 0.
            messages: Its records.
            time: Their time.
        """

    def on_notify(self, time: Time) -> None:
        """Called once, for a time that was requested, when it is closed."""

    def send_by(self, output: int, messages: Iterable[Any], time: Time) -> None:
        """Sends records on an output.

        Args:
            output: The output, from 0.
            messages: The records.
            time: At or after the time of the callback that runs.

        Raises:
            TimeError: If the time is before the callback's.
            CapabilityError: If no callback is running.
        """
        self._running().send(output, messages, time)

    def notify_at(self, time: Time) -> None:
        """Requests a notification; several requests for a time make one.

        Args:
            time: At or after the time of the callback that runs.

        Raises:
            TimeError: If the time is before the callback's.
            CapabilityError: If no callback is running.
        """
        self._running().request(time)

    def _running(self) -> _Driver:
        if self._driver is None or self._driver.current is None:
            raise CapabilityError("a vertex can send and request only in on_recv and on_notify")
        return self._driver


class _Driver:
    """Runs a vertex's callbacks, and holds the capabilities that they need."""

    __slots__ = ("current", "outputs", "requested")

    def __init__(self) -> None:
        self.current: Capability | CapabilityRef | None = None
        self.outputs: tuple[OutputPort[Any], ...] = ()
        self.requested: dict[Time, Capability] = {}

    def send(self, output: int, messages: Iterable[Any], time: Time) -> None:
        assert self.current is not None
        if not 0 <= output < len(self.outputs):
            raise CapabilityError(f"the vertex has no output {output}: it has {len(self.outputs)}")
        if time == self.current.time:
            with self.outputs[output].session(self.current) as session:
                session.give_all(messages)
        else:
            with self.current.delayed(time) as later, self.outputs[output].session(later) as session:
                session.give_all(messages)

    def request(self, time: Time) -> None:
        assert self.current is not None
        if time not in self.requested:
            self.requested[time] = self.current.delayed(time)


def drive(
    make: Callable[[], Vertex],
) -> Callable[[Capability, OperatorInfo], Callable[[FrontieredInput[Any], OutputPort[Any]], None]]:
    """The constructor of a `unary_frontier` operator that runs a vertex."""

    def build(
        capability: Capability, _info: OperatorInfo
    ) -> Callable[[FrontieredInput[Any], OutputPort[Any]], None]:
        capability.drop()
        vertex = make()
        driver = _Driver()
        vertex._driver = driver

        def logic(port: FrontieredInput[Any], output: OutputPort[Any]) -> None:
            driver.outputs = (output,)
            try:
                for message, records in port:
                    driver.current = message
                    vertex.on_recv(0, records, message.time)
                if driver.requested:
                    frontier = port.frontier
                    while closed := [t for t in driver.requested if not frontier.less_equal(t)]:
                        time = min(closed)
                        with driver.requested.pop(time) as held:
                            driver.current = held
                            vertex.on_notify(time)
            finally:
                driver.current = None

        return logic

    return build
