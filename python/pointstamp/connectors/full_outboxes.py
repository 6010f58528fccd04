"""Outboxes in which too many rows wait for a sink: the sources of the process pause meanwhile.

Owns the marks of full outboxes, one for each, by the location of their checkpoints. A mark is there only
while a checkpoint that is made, or is about to be, will take rows away: no source waits for its own records.
"""

from __future__ import annotations

__all__ = ["are_full", "mark"]

PAUSE = 0.02
"""Seconds after which a source looks again."""

# By lineage, the outboxes of this process. An entry is added and removed in one operation, on any thread.
_full: dict[str, set[int]] = {}


def mark(lineage: str, outbox: int, *, is_full: bool) -> None:
    """Notes whether an outbox is full."""
    if is_full:
        _full.setdefault(lineage, set()).add(outbox)
    elif marks := _full.get(lineage):
        marks.discard(outbox)


def are_full(lineage: str) -> bool:
    """Whether an outbox of this process is full."""
    return bool(_full.get(lineage))
