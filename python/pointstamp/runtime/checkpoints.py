"""The checkpoints of a process, from before its workers begin until they have ended."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING

from pointstamp import _core

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from pointstamp.checkpoint import Checkpoint
    from pointstamp.config import Config

__all__ = ["begin", "checkpoints_of", "place_of", "recording"]


def checkpoints_of(config: Config) -> _core.Checkpoints | None:
    """Begins an execution at the location of a configuration; None where no checkpoints are made.

    Raises:
        CheckpointError: If the checkpoints of the location cannot be restored.
    """
    asked = config.checkpoint
    return None if asked is None else begin(asked, config.process)


def begin(asked: Checkpoint, process: int, turns: _core.WriterTurns | None = None) -> _core.Checkpoints:
    """Begins an execution in a process, where it is the first.

    Raises:
        CheckpointError: If the checkpoints of the location cannot be restored.
    """
    return _core.Checkpoints(
        asked.location,
        every=asked.every,
        keep=asked.keep,
        at=asked.at,
        new=asked.new,
        drop=asked.drop,
        drain=asked.drain,
        tolerate=asked.tolerate,
        process=process,
        turns=turns,
    )


def place_of(config: Config) -> Path | None:
    """Returns the folder of the checkpoints of a configuration; None where none are made, or in a bucket."""
    asked = config.checkpoint
    if asked is None or "://" in asked.location:
        return None
    from pathlib import Path  # not without checkpoints

    return Path(asked.location)


@contextmanager
def recording(checkpoints: _core.Checkpoints | None, cluster: _core.Cluster) -> Iterator[None]:
    """Has the process take part in checkpoints while the block runs."""
    if checkpoints is None:
        yield
        return
    cluster.records(checkpoints)
    whole = False
    try:
        yield
        whole = not cluster.stopped
    finally:
        checkpoints.end(whole)
