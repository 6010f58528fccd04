"""Naiad's programming model: an operator as an object with two callbacks.

After "Naiad: A Timely Dataflow System" (SOSP 2013), section 2.2.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal

from pointstamp._validation import suggesting
from pointstamp.errors import CapabilityError
from pointstamp.logic.declared_state import declaration

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from pointstamp._core import Capability, CapabilityRef, FrontieredInput, OutputPort
    from pointstamp.info import OperatorInfo
    from pointstamp.logic.declared_state import Declares
    from pointstamp.logic.planned import PlannedOperator
    from pointstamp.lowering.scope import BuildingScope
    from pointstamp.pacts import Pact
    from pointstamp.types import Time

__all__ = ["Vertex"]

_CURE = (
    "give the class snapshot(), which returns pairs (key, state), and restore(pairs, version); or give "
    'vertex state="none" where it keeps nothing but its notifications'
)


@suggesting
class Vertex:
    """An operator with callbacks. Subclass it.

    Both callbacks may send, and request notifications, at times at or after theirs. `on_recv` is called
    with each message, `on_notify` once for each requested time when no more messages with that time, or
    an earlier one, can come.

    Where checkpoints are made, a vertex has two methods more: `snapshot`, which returns pairs of a key and a
    state, and `restore`, which takes such pairs back with the class's `version` (1 if it has none). Its
    notifications come back by themselves. A vertex that keeps nothing else is given ``state="none"``.

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

    _delivery: _Delivery | None = None

    def on_recv(self, edge: int, messages: list[Any], time: Time) -> None:
        """Called with the records of a message.

        Args:
            edge: The input that it came by, from 0.
            messages: Its records.
            time: Their time.

        Examples:
            >>> import pointstamp as ps
            >>> class Upper(ps.Vertex):
            ...     def on_recv(self, edge, messages, time):
            ...         self.send_by(0, [word.upper() for word in messages], time)
            >>> ps.example(lambda scope: scope.to_stream(["a", "b"]).vertex(Upper).capture()).extract()
            [(0, ['A', 'B'])]
        """

    def on_notify(self, time: Time) -> None:
        """Called once, for a time that was requested, when it is closed.

        Examples:
            >>> import pointstamp as ps
            >>> class Ends(ps.Vertex):
            ...     def on_recv(self, edge, messages, time):
            ...         self.notify_at(time)
            ...     def on_notify(self, time):
            ...         print("complete:", time)
            >>> ps.example(lambda scope: scope.to_stream(["a", "b"]).vertex(Ends)) and None
            complete: 0
        """

    def send_by(self, output: int, messages: Iterable[Any], time: Time) -> None:
        """Sends records on an output.

        Args:
            output: The output, from 0.
            messages: The records.
            time: At or after the time of the callback that runs.

        Raises:
            TimeError: If the time is before the callback's.
            CapabilityError: If no callback is running.

        Examples:
            >>> import pointstamp as ps
            >>> class Tomorrow(ps.Vertex):
            ...     def on_recv(self, edge, messages, time):
            ...         self.send_by(0, messages, time + 1)
            >>> ps.example(lambda scope: scope.to_stream(["a", "b"]).vertex(Tomorrow).capture()).extract()
            [(1, ['a', 'b'])]
        """
        self._running().send(output, messages, time)

    def notify_at(self, time: Time) -> None:
        """Requests a notification; several requests for a time make one.

        Args:
            time: At or after the time of the callback that runs.

        Raises:
            TimeError: If the time is before the callback's.
            CapabilityError: If no callback is running.

        Examples:
            >>> import pointstamp as ps
            >>> class Later(ps.Vertex):
            ...     def on_recv(self, edge, messages, time):
            ...         self.notify_at(time + 5)
            ...     def on_notify(self, time):
            ...         self.send_by(0, ["done"], time)
            >>> ps.example(lambda scope: scope.to_stream(["a", "b"]).vertex(Later).capture()).extract()
            [(5, ['done'])]
        """
        self._running().request(time)

    def _running(self) -> _Delivery:
        if self._delivery is None or self._delivery.current is None:
            raise CapabilityError("a vertex can send and request only in on_recv and on_notify")
        return self._delivery


class _Delivery:
    """Runs a vertex's callbacks, and holds the capabilities that they need."""

    __slots__ = ("current", "outputs", "requested", "vertex")

    def __init__(self) -> None:
        self.vertex: Vertex | None = None
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

    def held(self) -> list[Capability]:
        """Returns the capability of each request; see `declared_state.Requests`."""
        return list(self.requested.values())

    def take_back(self, held: list[Capability]) -> None:
        """Makes requests again."""
        for capability in held:
            self.requested.setdefault(capability.time, capability)


def drive(
    scope: BuildingScope,
    name: str,
    make: Callable[[], Vertex],
    pact: Pact,
    state: Literal["none"] | None,
) -> tuple[
    Callable[[Capability, OperatorInfo], Callable[[FrontieredInput[Any], OutputPort[Any]], None]], Declares
]:
    """Returns the constructor of a `unary_frontier` operator that runs a vertex, and its state's declaration.

    Args:
        scope: Where it is.
        name: The operator's name.
        make: Makes the vertex.
        pact: The distribution of records to it.
        state: "none" for an operator that keeps nothing but its notifications.

    Raises:
        TypeError: If the state is something else.
    """
    if state not in (None, "none"):
        raise TypeError(
            f"the state of a vertex is its own: give vertex {name!r} snapshot() and restore(), or "
            f'state="none", and not {state!r:.100}'
        )
    delivery = _Delivery()

    def declare(core: PlannedOperator) -> None:
        vertex: Any = make()
        delivery.vertex = vertex
        vertex._delivery = delivery
        has_state = any(hasattr(vertex, method) for method in ("snapshot", "restore"))
        if has_state and state == "none":
            raise TypeError(f'vertex {name!r} has snapshot() or restore(), and state="none": leave that out')
        declaration(
            scope, name, (lambda: vertex) if has_state else state, [type(pact)], requests=delivery, cure=_CURE
        )(core)

    def build(
        capability: Capability, _info: OperatorInfo
    ) -> Callable[[FrontieredInput[Any], OutputPort[Any]], None]:
        capability.drop()
        vertex = delivery.vertex
        assert vertex is not None

        def logic(port: FrontieredInput[Any], output: OutputPort[Any]) -> None:
            delivery.outputs = (output,)
            try:
                for message, records in port:
                    delivery.current = message
                    vertex.on_recv(0, records, message.time)
                if delivery.requested:
                    frontier = port.frontier
                    while closed := [t for t in delivery.requested if not frontier.less_equal(t)]:
                        time = min(closed)
                        with delivery.requested.pop(time) as held:
                            delivery.current = held
                            vertex.on_notify(time)
            finally:
                delivery.current = None

        return logic

    return build, declare
