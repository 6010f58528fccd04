"""The operator under what is done with rows in the order of time: a kernel, fed when times are final.

A kernel is an object of the extension that takes rows in, and makes results of those that are final. The
operator holds one capability, at or before all that is still to be sent, and sends results as they are made,
in batches of mixed times (see `EventColumns`). Where a `KeyedState` is given, it lists what the kernel keeps.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, Protocol

from pointstamp._core import PactKind, Schema, rows_of_worker
from pointstamp.event_times.columns import whole_times
from pointstamp.keyed.holding_back import NO_SNAPSHOT, HoldingBack
from pointstamp.keyed.ordered import root_only
from pointstamp.keyed.terms import terms_of
from pointstamp.operators.picked import rows_where

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from pointstamp._core import Capability, FrontieredInput, OutputPort, Retention, Stream
    from pointstamp.keyed.state import KeyedState
    from pointstamp.scope import Scope

__all__ = ["Kept", "Kernel", "in_time_order", "kept_in"]


class Kernel(Protocol):
    """Takes rows, and makes results of those whose times are final."""

    def output(self) -> Schema:
        """The schema of results."""

    def add(self, right: bool, batch: Any, earliest: int) -> None:
        """Takes in rows of the right side or the left; none is before `earliest`."""

    def advance(self, frontier: int | None) -> list[Any]:
        """The results of the rows before a time, or of all; or pairs, with the instants of results."""

    def next_instant(self) -> int | None:
        """The earliest instant at which a result may be sent without another row."""

    def kept(self) -> list[Any]:
        """Returns the rows that are kept, as batches: of each kind one."""

    def put(self, right: bool, batch: Any) -> None:
        """Takes in what `kept` gave: of several kinds, the second is the right one."""


def in_time_order(
    scope: Scope,
    sides: list[tuple[Stream, list[int]]],
    kernel: Kernel,
    name: str,
    needs: Callable[[int], int] | None,
    state: KeyedState[Any, Any] | None = None,
    times: Sequence[int] = (),
) -> tuple[Stream, Schema]:
    """The operator.

    Args:
        scope: Where it is.
        sides: One stream or two, in batches of mixed times, with the columns by which rows are moved.
        kernel: What is fed.
        name: For messages.
        needs: Returns the earliest time of a row before a frontier that may still be needed; None where any
            row may be.
        state: Where what is kept is listed, which the kernel has been given already.
        times: The place of the column of times of each side.
    """
    root_only(scope, name)
    core = scope.core.operator(name)
    ports = [core.new_frontiered_input(rows, PactKind.EXCHANGE_COLUMNS, key) for rows, key in sides]
    schema = kernel.output()
    output, made, capability = core.new_output(schema)
    held = capability
    if kernel.next_instant() is None:
        capability.drop()  # nothing was restored that is to be sent without a row
        held = None  # type: ignore[assignment]
    feeding = _Feeding(kernel, held, state, times)
    if needs is None and state is None:
        core.retains_forever()
    else:
        feeding.retain(core.retention([made]), needs)
        if state is not None:
            state.on_snapshot(core.activator().activate)
    core.build(feeding.run, (*ports, output), True, False)
    return made, schema


class _Feeding:
    """Feeds the kernel, and holds the capability for it."""

    __slots__ = (
        "_begins",
        "_held",
        "_holding_back",
        "_kernel",
        "_needs",
        "_retention",
        "_snapshot_at",
        "_stands",
        "_state",
        "_times",
        "_until",
    )

    def __init__(
        self,
        kernel: Kernel,
        held: Capability | None,
        state: KeyedState[Any, Any] | None,
        times: Sequence[int],
    ) -> None:
        self._kernel = kernel
        self._times = times
        self._begins = 0 if state is None else state.begins
        self._held = held
        self._stands = 0
        self._until: int | None = -1
        self._state = state
        self._retention: Retention | None = None
        self._needs: Callable[[int], int] | None = None
        self._holding_back: HoldingBack | None = None
        # Of `KeyedState.snapshot_at`, what was said last.
        self._snapshot_at = 0

    def retain(self, retention: Retention | None, needs: Callable[[int], int] | None) -> None:
        """Says from now on which rows are needed, if a source wants to know."""
        self._retention = retention
        self._needs = needs
        if retention is not None and self._state is not None:
            self._holding_back = HoldingBack(retention)

    def _keep(self, until: int | None) -> None:
        """Says what is needed at a frontier; of what a snapshot has, nothing."""
        if self._retention is None:
            return
        if until is None:
            self._retention.keep(None, 0)
            return
        least = 0 if self._needs is None else self._needs(until)
        if self._state is not None:
            self._snapshot_at = self._state.snapshot_at
            least = max(least, self._snapshot_at)
        self._retention.keep(until, min(least, until))
        if self._holding_back is not None:
            self._holding_back.needs(least, lambda: NO_SNAPSHOT if least == self._snapshot_at else None)

    def _take(self, side: int, batch: Any, time: int) -> None:
        import pyarrow.compute as pc

        assert self._retention is not None
        latest = pc.max(whole_times(batch.column(self._times[side]))).as_py()
        self._retention.take(time, max(time, latest or 0))

    def run(self, *given: Any) -> None:
        """Takes what has come, and sends what has become final."""
        ports: tuple[FrontieredInput[Any], ...] = given[:-1]
        output: OutputPort[Any] = given[-1]
        kernel = self._kernel
        for side, port in enumerate(ports):
            for message, batch in port:
                time: Any = message.time
                kernel.add(side == 1, batch if time >= self._begins else self._later(side, batch), time)
                if self._retention is not None:
                    self._take(side, batch, time)
                if self._holding_back is not None:
                    self._holding_back.took()
                if self._held is None or time < self._stands:
                    self._held, self._stands = message.retain(), time
        frontiers: list[Any] = [time for port in ports for time in port.frontier.elements]
        until = min(frontiers) if frontiers else None
        if until == self._until:
            if self._state is not None and self._snapshot_at != self._state.snapshot_at:
                self._keep(until)
            return  # nothing that has come is final
        self._until = until
        for made in kernel.advance(until):
            assert self._held is not None
            if isinstance(made, tuple):  # an instant, and what is sent then
                with self._held.delayed(made[0]) as capability, output.session(capability) as session:
                    session.give(made[1])
            else:
                with output.session(self._held) as session:
                    session.give(made)
        if self._state is not None:
            self._state.stands_at(until)
        self._keep(until)
        self._move(kernel.next_instant() if until is not None else None)

    def _later(self, side: int, batch: Any) -> Any:
        """Returns the rows of a batch that are not in the state already; the others are counted."""
        import pyarrow.compute as pc

        assert self._state is not None
        later = pc.greater_equal(whole_times(batch.column(self._times[side])), self._begins)
        kept = rows_where(batch, later)
        self._state.left_out += batch.num_rows - kept.num_rows
        return kept

    def _move(self, needs: int | None) -> None:
        if self._held is None:
            return
        if needs is None:
            self._held.drop()
            self._held = None
        elif needs > self._stands:
            self._stands = needs
            self._held.downgrade(needs)


def kept_in(state: KeyedState[Any, Any], scope: Scope, operator: str, kept: Kept, /, **given: Any) -> None:
    """Has a `KeyedState` list what a kernel keeps, and the kernel go on with what was restored.

    Args:
        state: Which was given to the operator.
        scope: Where the operator is.
        operator: What it is called.
        kept: How what is kept is listed.
        given: Of the operator's arguments those that what is kept follows from.

    Raises:
        ValueError: If the state is another operator's already, or was restored for one of other terms.
    """
    columns = [str(batch.schema.remove_metadata()).replace("\n", ", ") for batch in kept.tables()]
    state.claim(terms_of(scope, f"{operator} of columns", **given, keeps=columns), None).keep_in(kept)


class Kept:
    """Lists what a kernel keeps for a `KeyedState`, and hands over what was restored.

    Args:
        kernel: Whose.
        keys: Of each kind of what is kept, the places of the key's columns.
        shown: Makes of the rows of a key, a list for each kind, what is listed.
        hidden: How many of the last columns are notes of the kernel's own, which are not listed.
    """

    __slots__ = ("_hidden", "_kernel", "_keys", "_shown")

    def __init__(
        self,
        kernel: Kernel,
        keys: list[list[int]],
        shown: Callable[[tuple[list[Any], ...]], Any],
        *,
        hidden: int = 0,
    ) -> None:
        self._kernel = kernel
        self._keys = keys
        self._shown = shown
        self._hidden = hidden

    def listed(self) -> dict[Any, Any]:
        """See `Keeper`: a key of several columns is a tuple, and so is a list or a struct in a key."""
        kinds = self._kernel.kept()
        found: dict[Any, tuple[list[Any], ...]] = {}
        for kind, batch in enumerate(kinds):
            columns = [map(_listed_key, batch.column(at).to_pylist()) for at in self._keys[kind]]
            keys = zip(*columns, strict=True)
            listed = batch.select(range(batch.num_columns - self._hidden))
            for key, row in zip(keys, listed.to_pylist(), strict=True):
                rows = found.setdefault(key, tuple([] for _ in kinds))
                rows[kind].append(row)
        return {key[0] if len(key) == 1 else key: self._shown(rows) for key, rows in found.items()}

    def notes(self) -> dict[Any, Any]:
        """See `Keeper`."""
        return {}

    def put(self, key: Any, state: Any, note: Any) -> None:
        """See `Keeper`: what is restored comes as tables."""
        raise TypeError("this snapshot is of an operator on records: restore it for one of those")

    def tables(self) -> list[Any]:
        """Returns the rows that are kept, as batches."""
        return self._kernel.kept()

    def put_tables(self, tables: list[list[Any]], index: int, peers: int) -> None:
        """Takes in what `tables` gave on all workers: what is this worker's of it."""
        for kind, batches in enumerate(tables):
            for batch in batches:
                for part in rows_of_worker(batch, self._keys[kind], index, peers):
                    self._kernel.put(kind == 1, part)


def _listed_key(value: Any) -> Any:
    """A value of a key as one of a dict: all NaNs are one, which is `math.nan`."""
    if isinstance(value, float):
        return value if value == value else math.nan
    if isinstance(value, dict):
        return tuple(map(_listed_key, value.values()))
    return tuple(map(_listed_key, value)) if isinstance(value, list) else value
