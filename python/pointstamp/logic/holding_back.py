"""Warning of an operator for which sources upstream acknowledge no offset, for long.

Windows end, and snapshots are taken: then an operator holds offsets back for a while, in silence. Where what
it needs does not move on, a broker or a database keeps its log for as long as the program runs, and a restart
begins at the same place again: of that it warns, once.
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
    """Watches what an operator needs, and warns once when that does not move on."""

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
            why: Asked after many batches: the reason, and what to do; None where it is only a matter of time.
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
