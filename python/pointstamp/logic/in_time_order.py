"""The operator under all that go by key: logic over records in the order of time, once they are final.

Its input is records by key in columns (see `rows`), each record on the worker of its key. It holds one
capability, at or before the times of all future results: the earliest record that waits, or the time at which
the logic will send without another record. The logic's results are sent together, whatever their times: the
form is `Form.TIMED`. Records before the frontier of a restored snapshot are left out as they arrive: the
state has them.

Where a source acknowledges, the operator reports the records that it still needs (`Retention`): those that
its logic needs; where the program gave it the state, those that the latest snapshot does not have.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any, Protocol
from weakref import ref

from pointstamp._core import PactKind, give_timed, with_one_nan
from pointstamp.errors import CheckpointError, GraphError
from pointstamp.logic.arrivals import Arrivals
from pointstamp.logic.holding_back import NO_SNAPSHOT, TTLS, HoldingBack
from pointstamp.logic.in_scopes import in_scope
from pointstamp.logic.planned import PlannedOperator
from pointstamp.logic.timed_rows import Results, each_time
from pointstamp.plan.node import Form

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable

    from pointstamp._core import Capability, Disk, FrontieredInput, OutputPort, Retention
    from pointstamp.info import OperatorInfo
    from pointstamp.logic.declared_state import Division, Restored
    from pointstamp.logic.state import KeyedState
    from pointstamp.logic.state_chain import StateChain
    from pointstamp.logic.timed_rows import Keyed, Rows
    from pointstamp.lowering.scope import BuildingScope
    from pointstamp.plan.node import Output

__all__ = ["Logic", "in_time_order", "root_only"]


class Logic(Protocol):
    """The work of an operator on records in the order of their times."""

    def run(self, rows: Rows, until: int | None, out: Results) -> None:
        """Takes all records before `until`, which come once; None when none can come any more.

        Its results go to `out`, with a time before `until` and not before its next time.
        """

    def next_time(self, until: int) -> int | None:
        """Returns the earliest time of results that need no further record; None without any."""

    def needs(self, until: int) -> int | None:
        """The earliest time of a record before `until` that may still be needed, or `until`.

        None, and always so: any record may be needed for as long as the operator runs.
        """


def root_only(scope: BuildingScope, operator: str) -> None:
    """Refuses a scope whose times are not one number.

    Raises:
        GraphError: The message names the methods for loops.
    """
    if scope.dims != 1:
        raise GraphError(
            f"{operator} goes by event time, which is one number, and times in {scope!r} have {scope.dims} "
            "coordinates: leave() the scope before"
        )


def in_time_order(
    scope: BuildingScope,
    keyed: Output,
    name: str,
    make: Callable[[Any], Logic],
    state: KeyedState[Any, Any] | None = None,
    *,
    is_given: bool = False,
    by_turn: bool = False,
    sends_at_end: bool = False,
) -> Output:
    """The operator, and its results as a stream of event times.

    In a scope whose times have several coordinates the results are plain records (see `in_scopes`).

    Args:
        scope: Where it is.
        keyed: Columns ``(times, keys, values)``, at a time that is not after any of theirs; in a scope whose
            times have several coordinates, records ``(key, value)``.
        name: The operator's name.
        make: Makes the logic; called once.
        state: The kind of its state.
        is_given: Whether the program was given the state, and takes snapshots of it.
        by_turn: Whether each turn of a loop is by itself, since results come at later event times.
        sends_at_end: Whether results are sent when the input ends.

    Raises:
        GraphError: If the program was given the state in a scope whose times have several coordinates.
    """
    if scope.dims > 1:
        if is_given:
            raise GraphError(
                f"{name} in {scope!r} takes no state=: it is listed and restored at an event time, and times "
                f"here have {scope.dims} coordinates. Leave state= out, or leave() the scope before"
            )
        return in_scope(scope, keyed, name, make, state, by_turn=by_turn)
    operator = PlannedOperator(scope, name, sends_at_end=sends_at_end)
    operator.new_input(keyed.read_as(Form.TIMED), (PactKind.EXCHANGE_KEYS, None))
    port, results, capability = operator.new_output(form=Form.TIMED)
    arrivals = Arrivals()
    if state is not None:
        operator.note_kept(partial(_sizes, ref(state)))
    kept = KeptInOrder(name, arrivals, state)
    operator.keeps_waiting(kept)

    def build(capability: Capability, info: OperatorInfo) -> Callable[..., None]:
        ordered = Ordered(make(state), capability, state, arrivals)
        ordered.retain(operator, results, info.activator.activate, is_given=is_given)
        return ordered.run

    logic = operator.constructed(build, capability)
    del capability
    operator.build(logic, lambda inputs: (*inputs, port))
    return results


def _sizes(kept: ref[KeyedState[Any, Any]]) -> tuple[int, int, int] | None:
    state = kept()
    return None if state is None else state._sizes()


class KeptInOrder:
    """The state of the operator, for checkpoints: the logic's, and the records that are not final."""

    division: Division = "groups"

    def __init__(self, name: str, arrivals: Arrivals, state: KeyedState[Any, Any] | None) -> None:
        self._name = name
        self._arrivals = arrivals
        self._state = state

    def spill_to(self, disk: Disk) -> None:
        """See `Spilling`."""
        self._arrivals.spill_to(disk)
        if self._state is not None:
            self._state._states.spill_to(disk)

    def taken(self) -> tuple[Any, ...]:
        """See `Waiting`."""
        return None if self._state is None else self._state._head(), self._arrivals.kept()

    def keys(self) -> Collection[Any]:
        """See `WaitingByKey`."""
        return () if self._state is None else self._state._keys()

    def entries(self, keys: Collection[Any]) -> Iterable[tuple[Any, Any]]:
        """See `WaitingByKey`."""
        return () if self._state is None else self._state._entries_of(keys)

    def take_back(self, entries: list[tuple[Any, Any]]) -> None:
        """See `WaitingByKey`."""
        if self._state is not None:
            self._state._take_entries(entries)

    def has_all(self) -> None:
        """See `WaitingByKey`."""
        if self._state is not None:
            self._state._has_all_entries()

    def follow(self, chain: StateChain) -> None:
        """See `WaitingByKey`."""
        if self._state is not None:
            self._state._chain = chain

    def give_back(self, taken: tuple[Any, ...], restored: Restored) -> None:
        """See `Waiting`.

        Raises:
            CheckpointError: If that is of another operator.
        """
        head, arrived = taken
        if (head is None) != (self._state is None):
            some, none = "keeps a state for each key", "keeps none"
            now, was = (none, some) if self._state is None else (some, none)
            raise CheckpointError(
                f"operator '{self._name}' {now}, and in the checkpoint it {was}: give it another name, "
                "and say what becomes of the state: Checkpoint(..., new=, drop=)"
            )
        for times, unpickled, values in arrived:
            keys = with_one_nan(unpickled)
            places = [at for at, key in enumerate(keys) if restored.is_mine(key)]
            if isinstance(times, list):
                times = [times[at] for at in places]
            self._arrivals.add((times, [keys[at] for at in places], [values[at] for at in places]))
        if self._state is not None:
            self._state._take_head(head, restored.name)


class Ordered:
    """Feeds the logic, and holds the capability for it."""

    __slots__ = (
        "_arrivals",
        "_begins",
        "_given",
        "_held",
        "_holding_back",
        "_logic",
        "_retention",
        "_snapshot_at",
        "_stands",
        "_state",
        "_until",
    )

    def __init__(
        self, logic: Logic, capability: Capability, state: KeyedState[Any, Any] | None, arrivals: Arrivals
    ) -> None:
        self._logic = logic
        self._state = state
        self._begins = 0 if state is None else state._begins
        self._arrivals = arrivals
        self._held: Capability | None = None if capability._revoked else capability
        self._stands: Any = capability.time
        self._until: int | None = -1
        self._retention: Retention | None = None
        self._given: KeyedState[Any, Any] | None = None
        self._holding_back: HoldingBack | None = None
        # The value of `KeyedState.snapshot_at` that was last reported.
        self._snapshot_at = 0
        if logic.next_time(0) is None and arrivals.least() is None:
            self._let_go()  # nothing was restored that is to be sent

    def retain(
        self, operator: PlannedOperator, results: Output, wake: Callable[[], None], *, is_given: bool
    ) -> None:
        """Begins to report the records that are needed, if a source acknowledges.

        Args:
            operator: The operator that is being made.
            results: Its output.
            wake: Has the operator run.
            is_given: Whether the program was given the state: records in a snapshot are not needed.
        """
        if is_given and self._state is not None:
            self._given = self._state
            self._given._on_snapshot(wake)
        elif self._logic.needs(0) is None:
            operator.retains_forever()
            return
        self._retention = operator.retention([results])
        if self._retention is not None:
            self._holding_back = HoldingBack(self._retention)

    def _keep(self, until: int | None) -> None:
        """Reports the records that are needed at a frontier."""
        if self._retention is None:
            return
        if until is None:
            self._retention.keep(None, 0)
            return
        least = self._logic.needs(until) or 0
        if self._given is not None:
            self._snapshot_at = self._given._snapshot_at
            least = max(least, self._snapshot_at)
        self._retention.keep(until, min(least, until))
        if self._holding_back is not None:
            self._holding_back.needs(least, lambda: self._why(least, until))

    def _why(self, least: int, until: int) -> str | None:
        """Returns the reason why records are needed for long, and the remedy; None if temporary."""
        if self._given is not None and least == self._snapshot_at:
            return NO_SNAPSHOT
        key = None if self._state is None else self._state._never_silent(until, TTLS)
        if key is None:
            return None
        return (
            f"key {key!r} has not been silent for its ttl since then. Give the operator a state=KeyedState() "
            "and take snapshots of it: then offsets follow these"
        )

    def run(self, port: FrontieredInput[Any], output: OutputPort[Any]) -> None:
        """Takes waiting records, and runs the logic if times have become final."""
        add, begins, retention = self._arrivals.add, self._begins, self._retention
        for message, (times, keys, values) in port:
            time: Any = message.time
            if self._holding_back is not None:
                self._holding_back.took()
            part = times, with_one_nan(keys), values
            latest = add(part if time >= begins else self._later(part))
            if retention is not None:
                retention.take(time, max(time, latest))
            if self._held is None or time < self._stands:
                self._held = message.retain()
                self._stands = time
        self._arrivals.settle()
        frontier: list[Any] = port.frontier.elements
        until = frontier[0] if frontier else None
        if until == self._until:
            if self._given is not None and self._snapshot_at != self._given._snapshot_at:
                self._keep(until)
            return  # nothing that has come is final
        self._until = until
        out = Results()
        rows = self._arrivals.take(until)
        chain = None if self._state is None else self._state._chain
        if chain is None:
            self._logic.run(rows, until, out)
        else:
            with chain:
                for _, keys, _ in rows.parts():
                    chain.changes(keys)
                self._logic.run(rows, until, out)
        if self._held is None:
            self._keep(until)
            return
        for columns in out.columns:
            give_timed(output, self._held, columns)
        self._keep(until)
        if until is None:
            self._let_go()
            return
        needs = [time for time in (self._arrivals.least(), self._logic.next_time(until)) if time is not None]
        if not needs:
            self._let_go()
        elif min(needs) > self._stands:
            self._stands = min(needs)
            self._held.downgrade(self._stands)

    def _later(self, columns: Keyed) -> Keyed:
        """Returns the records that are not in the state already."""
        assert self._state is not None
        times, keys, values = columns
        places = [at for at, time in enumerate(each_time(times, len(keys))) if time >= self._begins]
        self._state.left_out += len(keys) - len(places)
        if isinstance(times, list):
            times = [times[at] for at in places]
        return times, [keys[at] for at in places], [values[at] for at in places]

    def _let_go(self) -> None:
        if self._held is not None:
            self._held.drop()
            self._held = None
