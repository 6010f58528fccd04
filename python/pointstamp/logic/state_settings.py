"""The settings of an operator's state: a snapshot has them, and they are compared where it is restored.

Owns `StateSettings`. The form of state depends on the operator and some of its arguments: a session's gap,
the columns of a key. These are its settings, in words. A state with other settings would be read wrongly, or
lose its contents, and is refused. Functions are not compared: nothing shows whether two are the same.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pointstamp.event_time.clock import Clock
    from pointstamp.lowering.scope import BuildingScope

__all__ = ["StateSettings", "settings_of", "whole_run"]

_TIMES = "times"


@dataclass(frozen=True)
class StateSettings:
    """The operator of a state, the arguments on which its form depends, and the worker.

    Args:
        operator: Which.
        given: The arguments by name, as they are shown.
        index: The worker's number.
        peers: The number of workers.
        clock: The clock of the times, whose kind a record may decide; None where `given` has it.
    """

    operator: str
    given: Mapping[str, str]
    index: int
    peers: int
    clock: Clock | None = field(default=None, compare=False)

    def now(self) -> StateSettings:
        """Returns the settings with the present knowledge of the times."""
        unit = None if self.clock is None else self.clock.described()
        given = dict(self.given) if unit is None else {**self.given, _TIMES: unit}
        return StateSettings(self.operator, given, self.index, self.peers)

    def __str__(self) -> str:
        given = ", ".join(f"{name}={value}" for name, value in self.given.items())
        return f"{self.operator}({given})"

    def accept(self, restored: StateSettings) -> None:
        """Checks the settings of a snapshot from which this operator is to resume.

        Raises:
            ValueError: If they belong to another operator, or differ; or the state was restored for another
                worker.
        """
        ours = self.now()
        if not _agree(ours, restored):
            raise ValueError(
                f"this snapshot is of {restored}, and was given to {ours}: an operator resumes from a "
                "snapshot of its own kind, with the same settings"
            )
        if (ours.index, ours.peers) != (restored.index, restored.peers):
            raise ValueError(
                f"this state was restored for worker {restored.index} of {restored.peers}, and was given to "
                f"worker {ours.index} of {ours.peers}: write restore(snapshots, index=worker.index, "
                "peers=worker.peers)"
            )


def settings_of(
    scope: BuildingScope, operator: str, clock: Clock | None = None, /, **given: Any
) -> StateSettings:
    """The settings of an operator in a scope. An argument that is None is left out."""
    shown = {name: str(value) for name, value in given.items() if value is not None}
    return StateSettings(operator, shown, scope.index, scope.peers, clock)


def _agree(one: StateSettings, other: StateSettings) -> bool:
    """Whether they are of one operator. A worker that had no record may not know the kind of times."""
    names = {*one.given, *other.given} - {_TIMES}
    known = {settings.given[_TIMES] for settings in (one, other) if _TIMES in settings.given}
    same = all(one.given.get(name) == other.given.get(name) for name in names)
    return one.operator == other.operator and same and len(known) <= 1


def whole_run(snapshots: list[StateSettings], index: int, peers: int) -> StateSettings | None:
    """Returns the settings of snapshots that are restored together: one of each worker of a run.

    Args:
        snapshots: Their settings.
        index: The worker that resumes.
        peers: The number of workers now.

    Raises:
        ValueError: If they are of several operators, or not of all workers, each once.
    """
    if not snapshots:
        return None
    first = max(snapshots, key=lambda settings: len(settings.given))
    for other in snapshots:
        if not _agree(first, other):
            raise ValueError(f"these snapshots are not of one operator, but of {first} and of {other}")
    sizes = sorted({settings.peers for settings in snapshots})
    if len(sizes) > 1:
        raise ValueError(
            f"these snapshots are not of one run, but of runs of {sizes[0]} and {sizes[1]} workers"
        )
    found = sorted(settings.index for settings in snapshots)
    if found != list(range(first.peers)):
        shown = ", ".join(map(str, found))
        raise ValueError(
            f"these snapshots are of the workers {shown} of {first.peers}: restore takes one of each worker, "
            f"0 to {first.peers - 1}"
        )
    return StateSettings(first.operator, first.given, index, peers)
