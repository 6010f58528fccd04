"""Operators by key in scopes whose times have several coordinates, such as loops.

The first coordinate of a time is the event time; the others count turns. Records travel as pairs ``(key,
value)``, each at its time. There are two orders:

- Operators whose results come at their records' times (`scan`, `state_machine`, `dedup`, `asof_join`, ...)
  see all records in the order of the coordinates: all turns of one event time before the next event time.
  The order is that of the times, and the same in every run.
- Operators that also send at later event times (`window`, `interval_join`, `process`) see each turn by
  itself, as if the other coordinates belonged to the key. Their results in a turn depend on no later turn, so
  that a loop through them makes progress.

Invariant: a capability is held for each time, or turn, of which something is still to be sent, and for
nothing else: a capability for several would hold back the turns that are waited for.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pointstamp._core import pairs_with_one_nan, with_one_nan
from pointstamp.logic.arrivals import Arrivals
from pointstamp.logic.least_first import LeastFirst
from pointstamp.logic.planned import single_output
from pointstamp.logic.timed_rows import Results, Rows
from pointstamp.pacts import ByKey

if TYPE_CHECKING:
    from collections.abc import Callable

    from pointstamp._core import Capability, Disk, FrontieredInput, OutputPort
    from pointstamp.info import OperatorInfo
    from pointstamp.logic.declared_state import Division, Restored
    from pointstamp.logic.in_time_order import Logic
    from pointstamp.logic.state import KeyedState
    from pointstamp.lowering.scope import BuildingScope
    from pointstamp.plan.node import Output

    Make = Callable[[Any], Logic]

__all__ = ["in_scope"]


def in_scope(
    scope: BuildingScope,
    pairs: Output,
    name: str,
    make: Make,
    state: KeyedState[Any, Any] | None,
    *,
    by_turn: bool,
) -> Output:
    """The operator, and its results as a stream of records.

    Args:
        scope: Where it is.
        pairs: Records ``(key, value)``.
        name: The operator's name.
        make: Makes the logic of what keeps its state.
        state: What keeps its state; of an operator by turn, that of the first one.
        by_turn: Whether each turn is by itself.
    """
    kept: InTurns | InOrder = InTurns(make, state) if by_turn else InOrder(make, state)

    def build(capability: Capability, _info: OperatorInfo) -> Callable[..., None]:
        capability.drop()
        return kept.run

    inputs = [(pairs, ByKey())]
    return single_output(scope, name, inputs, build, notify=True, retains_forever=True, state=kept)


def _taken(state: KeyedState[Any, Any] | None) -> Any:
    """Returns a whole state as plain data; None for none."""
    if state is None:
        return None
    entries = state._entries_of(state._keys())
    return state._head(), [(key, entry) for key, entry in entries if entry is not None]


def _give_back(state: KeyedState[Any, Any] | None, taken: Any, restored: Restored) -> None:
    """Gives a state what `_taken` returned of it, for the keys that this worker owns."""
    if state is not None:
        head, entries = taken
        state._take_head(head, restored.name)
        mine = [(key, entry) for key, entry in pairs_with_one_nan(entries) if restored.is_mine(key)]
        state._take_entries(mine)
        state._has_all_entries()


class InOrder:
    """The state of an operator that sees all records in the order of the coordinates of their times."""

    division: Division = "groups"

    def __init__(self, make: Make, state: KeyedState[Any, Any] | None) -> None:
        self._make = make
        self._state = state
        self._waiting = LeastFirst()
        self._logic: Logic | None = None

    def spill_to(self, disk: Disk) -> None:
        """See `Spilling`."""
        self._waiting.spill_to(disk)
        if self._state is not None:
            self._state._states.spill_to(disk)

    def run(self, port: FrontieredInput[Any], output: OutputPort[Any]) -> None:
        """Takes waiting records, and runs the logic on the times that have become final."""
        for message, records in port:
            self._waiting.add(message, records)
        for capability, records in self._waiting.closed(port.frontier):
            if self._logic is None:
                self._logic = self._make(self._state)
            time: Any = capability.time
            out = Results()
            rows = Rows([(time[0], [key for key, _ in records], [value for _, value in records])])
            self._logic.run(rows, time[0], out)
            with output.session(capability) as session:
                for _, made in out.columns:
                    session.give_all(made)

    def taken(self) -> tuple[Any, Any]:
        """See `Waiting`."""
        return _taken(self._state), self._waiting.taken()

    def give_back(self, taken: tuple[Any, Any], restored: Restored) -> None:
        """See `Waiting`."""
        kept, waiting = taken
        self._waiting.give_back(waiting, restored)
        _give_back(self._state, kept, restored)


class Turn:
    """One turn of a loop: its records by event time, its state, and the capability to send in it."""

    __slots__ = ("arrivals", "held", "logic", "stands", "state", "until")

    def __init__(self, state: KeyedState[Any, Any] | None) -> None:
        self.state = state
        self.logic: Logic | None = None
        self.arrivals = Arrivals()
        self.held: Capability | None = None
        self.stands = 0
        self.until: int | None = -1

    def hold(self, capability: Capability) -> None:
        """Takes a capability that is earlier than the one that is held, if any."""
        time: Any = capability.time
        self.held, self.stands = capability, time[0]

    def needs(self, until: int) -> int | None:
        """Returns the earliest event time of future results; None for nothing."""
        assert self.logic is not None
        needs = [time for time in (self.arrivals.least(), self.logic.next_time(until)) if time is not None]
        return min(needs, default=None)

    def let_go(self) -> None:
        """Sends nothing any more, unless more comes."""
        if self.held is not None:
            self.held.drop()
            self.held = None


class InTurns:
    """The state of an operator that sees each turn by itself, in the order of event time."""

    division: Division = "groups"

    def __init__(self, make: Make, state: KeyedState[Any, Any] | None) -> None:
        self._make = make
        self._state = state
        self._turns: dict[tuple[int, ...], Turn] = {}

    def spill_to(self, disk: Disk) -> None:
        """See `Spilling`."""
        if self._state is not None:
            self._state._states.spill_to(disk)

    def _turn(self, others: tuple[int, ...]) -> Turn:
        turn = self._turns.get(others)
        if turn is None:
            turn = self._turns[others] = Turn(None if self._state is None else self._state._another())
        return turn

    def run(self, port: FrontieredInput[Any], output: OutputPort[Any]) -> None:
        """Takes waiting records, and runs the logic of each turn whose frontier has moved."""
        for message, records in port:
            time: Any = message.time
            turn = self._turn(time[1:])
            pairs = pairs_with_one_nan(records)
            turn.arrivals.add((time[0], [key for key, _ in pairs], [value for _, value in pairs]))
            if turn.held is None or time[0] < turn.stands:
                turn.hold(message.retain())
        frontier: list[Any] = port.frontier.elements
        for others in sorted(self._turns):
            open_from = [
                time[0]
                for time in frontier
                if all(ours >= theirs for ours, theirs in zip(others, time[1:], strict=True))
            ]
            self._run(others, self._turns[others], min(open_from, default=None), output)

    def _run(self, others: tuple[int, ...], turn: Turn, until: int | None, output: OutputPort[Any]) -> None:
        """Runs the logic of a turn whose event times are final before `until`."""
        if until == turn.until:
            return
        turn.until = until
        if turn.logic is None:
            turn.logic = self._make(turn.state)
        out = Results()
        turn.logic.run(turn.arrivals.take(until), until, out)
        by_time: dict[int, list[Any]] = {}
        for time, record in out.pairs():
            by_time.setdefault(time, []).append(record)
        for time, records in by_time.items():
            assert turn.held is not None
            with turn.held.delayed((time, *others)) as capability, output.session(capability) as session:
                session.give_all(records)
        if until is None:
            turn.let_go()
            del self._turns[others]
            return
        needs = turn.needs(until)
        if needs is None:
            turn.let_go()
        elif needs > turn.stands and turn.held is not None:
            turn.held.downgrade((needs, *others))
            turn.stands = needs

    def taken(self) -> list[Any]:
        """See `Waiting`."""
        return [
            (others, _taken(turn.state), turn.arrivals.kept(), turn.held)
            for others, turn in self._turns.items()
        ]

    def give_back(self, taken: list[Any], restored: Restored) -> None:
        """See `Waiting`."""
        for others, kept, arrived, held in taken:
            turn = self._turn(others)
            _give_back(turn.state, kept, restored)
            for times, unpickled, values in arrived:
                keys = with_one_nan(unpickled)
                places = [at for at, key in enumerate(keys) if restored.is_mine(key)]
                if isinstance(times, list):
                    times = [times[at] for at in places]
                turn.arrivals.add((times, [keys[at] for at in places], [values[at] for at in places]))
            if held is not None and (turn.held is None or held.time[0] < turn.stands):
                turn.let_go()
                turn.hold(held)
