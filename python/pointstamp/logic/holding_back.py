"""Warning of an operator for which sources upstream acknowledge no offset, for long.

While windows end and snapshots are taken, an operator holds offsets back for a time. If the records that it
needs never become unneeded, a broker or a database keeps its log for as long as the program runs, and a
restart begins at the same offset again. The operator warns of that, once.
"""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING

from pointstamp.errors import NotAcknowledged

if TYPE_CHECKING:
    from collections.abc import Callable

    from pointstamp._core import Retention

__all__ = ["NO_SNAPSHOT", "TTLS", "HoldingBack"]

BATCHES = 4096
"""Batches that an operator takes, without needing any record less, until it warns."""

TTLS = 4
"""Times its `ttl` that a key is known, without being silent, until an operator warns of it."""

NO_SNAPSHOT = (
    "no snapshot of the KeyedState that it was given has been taken since. Offsets follow the snapshots: "
    "take them, with snapshot(), or leave state= out and give a ttl="
)


class HoldingBack:
    """Watches the earliest record that an operator needs, and warns once when it does not advance."""

    __slots__ = ("_batches", "_needed", "_retention", "_warned")

    def __init__(self, retention: Retention) -> None:
        self._retention = retention
        self._needed = -1
        self._batches = 0
        self._warned = False

    def took(self, batches: int = 1) -> None:
        """Counts batches."""
        self._batches += batches

    def needs(self, time: int, why: Callable[[], str | None]) -> None:
        """Notes the earliest time of a record that is needed.

        Args:
            time: That time.
            why: Called after many batches: returns the reason, and the remedy; None where the delay is
                temporary.
        """
        if time != self._needed:
            self._needed = time
            self._batches = 0
            return
        if self._batches < BATCHES or self._warned:
            return
        self._batches = 0
        reason = why()
        if reason is None:
            return
        self._warned = True
        asked = self._retention.asked()
        if asked is None:
            return  # no source upstream acknowledges
        operator, made = asked
        where = "" if made is None else f", made at {made[0]}:{made[1]},"
        warnings.warn(
            f"sources acknowledge no offset past time {time}: operator '{operator}'{where} has taken "
            f"{BATCHES} batches since, and still needs records from there on, as {reason}",
            NotAcknowledged,
            stacklevel=2,
        )
