"""Keeps sinks from losing records silently: one sink for each target, and a warning for skipped records.

A time that a target already has is not written again, so that a sink can run again after a failure. The same
rule would drop the records of a second sink of one target, and those of the next day's run.
"""

from __future__ import annotations

import threading
import warnings
from typing import TYPE_CHECKING

from pointstamp.errors import GraphError, WrittenBefore

if TYPE_CHECKING:
    from collections.abc import Hashable

__all__ = ["Claim", "warn_of"]

# Not a plain lock: the collector may run while it is held, and drop another claim on this thread.
_lock = threading.RLock()
_claimed: set[Hashable] = set()


class Claim:
    """A target that one sink of this process writes to, until it is dropped.

    Raises:
        GraphError: If another one does.
    """

    def __init__(self, target: Hashable, what: str) -> None:
        with _lock:
            if target in _claimed:
                raise GraphError(
                    f"{what} is open already: of two the second would take the first's times for its own, "
                    "and skip them. Give each its own name="
                )
            _claimed.add(target)
        self._target: Hashable | None = target

    def drop(self) -> None:
        """Lets another one have it. Dropping it twice does nothing."""
        with _lock:
            target, self._target = self._target, None
            if target is not None:
                _claimed.discard(target)

    def __del__(self) -> None:
        if getattr(self, "_target", None) is not None:
            self.drop()


def warn_of(skipped: int, there: str) -> None:
    """Warns of records that were not written, as their times were there."""
    if skipped:
        warnings.warn(
            f"{skipped} records were not written: {there}. That is right for what an earlier run has "
            "written, and a failure has run again. A job that runs again with new records gives its sink a "
            "name= of its own for each run",
            WrittenBefore,
            stacklevel=2,
        )
