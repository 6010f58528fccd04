"""Operators on rows in the order of time: a kernel, fed when times are final.

A `Kernel` of the extension takes rows, and makes results of the rows whose times are final; the extension's
operator feeds it. Where a `KeyedState` is given, it lists the kernel's state, and takes part in each
activation.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from pointstamp.logic.holding_back import NO_SNAPSHOT, HoldingBack
from pointstamp.logic.in_time_order import root_only
from pointstamp.logic.state_settings import settings_of

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from pointstamp._core import Activator, Kernel, Retention
    from pointstamp.logic.state import KeyedState
    from pointstamp.lowering.scope import BuildingScope
    from pointstamp.plan.node import Kind, Output, Read

__all__ = ["Kept", "in_time_order", "kept_in"]


def in_time_order(
    scope: BuildingScope,
    kind: Kind,
    sides: Sequence[tuple[Read, list[int] | None, int]],
    kernel: Kernel,
    output: Output,
    state: KeyedState[Any, Any] | None,
    *,
    name: str | None,
    sends_at_end: bool = False,
) -> Output:
    """Adds the operator that feeds a kernel, and returns the output with the results.

    Args:
        scope: The scope of the operator.
        kind: Its kind.
        sides: One stream or two, in batches of mixed times, each with the columns by which rows are moved,
            None where they are in place, and its column of times.
        kernel: The kernel.
        output: For the results.
        state: The state that lists the kernel's contents, and was already given the kernel.
        name: The operator's name in the program.
        sends_at_end: Whether results are sent when the inputs end.

    Raises:
        GraphError: If the scope is not the outermost one.
    """
    root_only(scope, kind.name)
    keeper = None if state is None else _Keeper(state)
    reads = [read for read, _, _ in sides]
    moved = [(key, at) for _, key, at in sides]
    terms: dict[str, Any] = {"sides": moved, "kernel": kernel, "keeper": keeper, "sends_at_end": sends_at_end}
    return scope._append(kind, reads, output, name=name, **terms).output


class _Keeper:
    """Takes part in the activations of an operator on behalf of its `KeyedState`."""

    __slots__ = ("_holding_back", "_snapshot_at", "_state", "begins")

    def __init__(self, state: KeyedState[Any, Any]) -> None:
        self._state = state
        self._holding_back: HoldingBack | None = None
        self._snapshot_at = state._snapshot_at
        self.begins = state._begins
        """The time at which the operator begins: rows before it are in the state."""

    def made(self, activator: Activator, retention: Retention | None) -> None:
        """Sets the activator of the operator, and the retention of rows, if a source acknowledges."""
        self._state._on_snapshot(activator.activate)
        if retention is not None:
            self._holding_back = HoldingBack(retention)

    def ran(self, batches: int, left_out: int, until: int | None, moved: bool, needed: int) -> int:
        """Notes an activation, and returns the earliest time of a row that is needed.

        Rows that a snapshot has are not needed.

        Args:
            batches: The number of batches that were taken.
            left_out: The number of rows that were left out, because the state has them.
            until: The frontier; None when nothing can come any more.
            moved: Whether the frontier is another than in the activation before.
            needed: The earliest time of a row that the kernel needs.
        """
        self._state.left_out += left_out
        if moved:
            self._state._stands_at(until)
        needed = max(needed, self._state._snapshot_at)
        if self._holding_back is not None and until is not None:
            self._holding_back.took(batches)
            # Before the frontier moves, or a snapshot is taken, no row can be released.
            if moved or self._state._snapshot_at != self._snapshot_at:
                self._snapshot_at = self._state._snapshot_at
                waits = needed == self._snapshot_at
                self._holding_back.needs(needed, lambda: NO_SNAPSHOT if waits else None)
        return needed


def kept_in(
    state: KeyedState[Any, Any], scope: BuildingScope, operator: str, kept: Kept, /, **given: Any
) -> None:
    """Lets a `KeyedState` list a kernel's contents, and the kernel continue with restored ones.

    Args:
        state: Which was given to the operator.
        scope: Where the operator is.
        operator: The operator's name.
        kept: The listing of the contents.
        given: The arguments of the operator on which the contents depend.

    Raises:
        ValueError: If the state is another operator's already, or was restored for one of other terms.
    """
    columns = [str(batch.schema.remove_metadata()).replace("\n", ", ") for batch in kept.tables()]
    state._claim(settings_of(scope, f"{operator} of columns", **given, keeps=columns), None)._keep_rows_in(
        kept
    )


class Kept:
    """Lists a kernel's contents for a `KeyedState`, and passes it the restored ones.

    Args:
        kernel: The kernel.
        keys: For each kind of contents, the positions of the key's columns.
        shown: Makes the listed value from the rows of a key, a list for each kind.
        hidden: The number of last columns that are notes of the kernel's own, which are not listed.
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
        """See `Tabular`: a key of several columns is a tuple, and so is a list or a struct in a key."""
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

    def tables(self) -> list[Any]:
        """Returns the rows that are kept, as batches."""
        return self._kernel.kept()

    def put_tables(self, tables: list[list[Any]], index: int, peers: int) -> None:
        """Takes the results of `tables` on all workers, and keeps this worker's part."""
        for kind, batches in enumerate(tables):
            for batch in batches:
                self._kernel.put(kind, batch, self._keys[kind], index, peers)


def _listed_key(value: Any) -> Any:
    """A value of a key as one of a dict: all NaNs are one, which is `math.nan`."""
    if isinstance(value, float):
        return value if value == value else math.nan
    if isinstance(value, dict):
        return tuple(map(_listed_key, value.values()))
    return tuple(map(_listed_key, value)) if isinstance(value, list) else value
