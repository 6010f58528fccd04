"""Positions of checkpoints in targets: the outboxes that a target has, and whether they fit the run."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pointstamp.errors import CheckpointError

if TYPE_CHECKING:
    from collections.abc import Iterable

    from pointstamp.connectors.protocol import Position

__all__ = ["has_other_results", "is_shown", "numbers_of"]

ELSE = "Resume from the newest checkpoint, or give the sink another name= or another target"


def numbers_of(found: Iterable[Position], lineage: str, sink: str, number: int, what: str) -> dict[int, int]:
    """Returns the last checkpoint that a sink has shown, by part.

    Args:
        found: The positions that the target has.
        lineage: The lineage of the computation.
        sink: The sink's name in positions.
        number: The number of the checkpoint from which the computation resumes; 0 where it begins.
        what: The sink, for errors.

    Raises:
        CheckpointError: If the target has a position of another lineage, or is ahead of the checkpoint.
    """
    numbers = {}
    for position in found:
        _check_lineage(position, lineage, what)
        if position.number > number:
            goes_on = f"resumes from checkpoint {number}" if number else "begins without a checkpoint"
            raise CheckpointError(
                f"the target of {what} has results up to checkpoint {position.number}, and this run "
                f"{goes_on}: results would be there twice. {ELSE}"
            )
        if position.sink == sink:
            numbers[position.part] = position.number
    return numbers


def is_shown(found: Position | None, position: Position, what: str) -> bool:
    """Whether a target has an outbox, asked in the transaction that would write it.

    Args:
        found: The position of the part that the target has; None for none.
        position: The position of the outbox.
        what: The sink, for errors.

    Raises:
        CheckpointError: If the position is of another lineage, or a later one.
    """
    if found is None:
        return False
    _check_lineage(found, position.lineage, what)
    if found.number > position.number:
        raise CheckpointError(
            f"the target of {what} has results up to checkpoint {found.number}, and those of checkpoint "
            f"{position.number} were to be written: another execution has taken over. End this one"
        )
    return found.number == position.number


def _check_lineage(found: Position, lineage: str, what: str) -> None:
    if found.lineage != lineage:
        raise CheckpointError(
            f"the target of {what} has results of another computation: of checkpoints of lineage "
            f"{found.lineage}, and this is {lineage}. The folder of the checkpoints was deleted, or is "
            "another one. Use the former folder, or give the sink another name= or another target"
        )


def has_other_results(what: str, up_to: str) -> CheckpointError:
    """Returns the error for a target that has results under the sink's name which no checkpoint covers."""
    return CheckpointError(
        f"the target of {what} has results that were shown without checkpoints, {up_to}: this run would "
        "write them again. Give the sink another name=, or write with commit='time'"
    )
