"""Joins in time: the logic of interval joins, as-of joins and joins with a table that changes.

Both sides come as one stream (`sides`), in the order of time, so that a record meets the earlier ones and is
kept for the later ones. It is kept until the frontier shows that nothing can match it any more; a key without
records leaves nothing. The records are plain data by key, which a `KeyedState` lists.
"""

from __future__ import annotations

from collections import deque
from heapq import heappop, heappush
from typing import TYPE_CHECKING, Any

from pointstamp.logic.join_kinds import one_sided, outer_sides
from pointstamp.logic.states import NO_STATE, Keys, States
from pointstamp.logic.timed_rows import MOST, Rows

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator

    from pointstamp.logic.join_kinds import How, OneSided
    from pointstamp.logic.state import KeyedState
    from pointstamp.logic.timed_rows import Results

__all__ = ["AsOf", "Interval", "Table"]

_LEFT, _RIGHT = 0, 1


class Interval:
    """Pairs whose times are no further apart than the bounds.

    Per key and side it keeps ``[time, value, matched]`` in the order of time. An entry is due when no match
    can come: a left one after ``time + upper``, a right one after ``time - lower``.

    Args:
        state: Where it is listed.
        lower: The least that a right record's time may be after the left one's, in units.
        upper: The most.
        how: The kind of join. Records without a match are sent when they are due.
    """

    def __init__(self, state: KeyedState[Any, Any], lower: int, upper: int, how: How | OneSided) -> None:
        # The time after its own time during which a record of each side can be matched.
        self._lasts = (upper, -lower)
        self._reach = ((lower, upper), (-upper, -lower))
        self._how = how
        self._one_sided = one_sided(how)
        self._unmatched = (how == "anti", False) if self._one_sided else outer_sides(how)
        another = state._states.another
        self._kept: tuple[States[Any, deque[list[Any]]], ...] = (another(), another())
        self._expired = 0
        self._due: list[tuple[int, int, int, Any]] = []
        self._entries = 0
        self._state = state
        state._keep_in(self)

    def run(self, rows: Rows, until: int | None, out: Results) -> None:
        """See `Logic`."""
        times: list[int] = []
        pairs: list[Any] = []
        for part in rows.chunks():
            self._bring(part[1])
            for time, key, (side, value) in Rows([part]):
                if self._due and self._due[0][0] < time:
                    self._expire(time, times, pairs, part[1])
                matched = False
                least, most = self._reach[side]
                for entry in self._kept[1 - side].get(key, ()):
                    if entry[0] > time + most:
                        break
                    if entry[0] >= time + least:
                        if not self._one_sided:
                            pair = (value, entry[1]) if side == _LEFT else (entry[1], value)
                            times.append(time)
                            pairs.append((key, pair))
                        elif self._how == "semi" and not (matched if side == _LEFT else entry[2]):
                            times.append(time)
                            pairs.append((key, value if side == _LEFT else entry[1]))
                        entry[2] = matched = True
                if self._lasts[side] >= 0:
                    self._keep(side, key, [time, value, matched])
                elif self._unmatched[side] and not matched:
                    times.append(time)
                    pairs.append(self._alone(side, key, value))
            self._settle()
        self._expire(until, times, pairs)
        self._settle()
        out.give(times, pairs)
        self._state._stands_at(until)

    def _bring(self, keys: Collection[Any]) -> None:
        for kept in self._kept:
            kept.bring(keys)

    def _settle(self) -> None:
        for kept in self._kept:
            kept.settle()

    def keys(self) -> Collection[Any]:
        """See `Keeper`."""
        return Keys(self._kept)

    def entries(self, keys: Collection[Any]) -> Iterator[tuple[Any, Any, Any]]:
        """See `Keeper`: the kept records of the left and of the right, ``[time, value, matched]``."""
        for key in keys:
            left, right = ([list(entry) for entry in kept.find(key, ())] for kept in self._kept)
            yield key, (left, right) if left or right else NO_STATE, None

    def put(self, key: Any, state: Any, note: Any) -> None:
        """See `Keeper`."""
        for side, entries in enumerate(state):
            for entry in entries:
                self._keep(side, key, entry)
            if len(self._kept[side]) % MOST == 0:
                self._kept[side].settle()

    def _keep(self, side: int, key: Any, entry: list[Any]) -> None:
        kept = self._kept[side].get(key)
        if kept is None:
            kept = self._kept[side][key] = deque()
            self._watch(side, key, entry[0])
        kept.append(entry)

    def _watch(self, side: int, key: Any, time: int) -> None:
        self._entries += 1
        heappush(self._due, (time + self._lasts[side], self._entries, side, key))

    def _expire(
        self, until: int | None, times: list[int], pairs: list[Any], in_hand: Collection[Any] = ()
    ) -> None:
        """Releases records that were due before a time. A key's side is in the heap once, with its oldest.

        The records of the keys in hand stay in memory.
        """
        while self._due and (until is None or self._due[0][0] < until):
            due, _, side, key = heappop(self._due)
            self._state._changes((key,))
            self._kept[side].bring((key,))
            kept = self._kept[side][key]
            while kept and kept[0][0] + self._lasts[side] == due:
                _, value, matched = kept.popleft()
                if self._unmatched[side] and not matched:
                    times.append(due)
                    pairs.append(self._alone(side, key, value))
            if kept:
                self._watch(side, key, kept[0][0])
            else:
                del self._kept[side][key]
            self._expired += 1
            if self._expired % MOST == 0:
                self._settle()
                self._bring(in_hand)

    def needs(self, until: int) -> int | None:
        """See `Logic`: the kept records, and those that they were matched with, unless all pairs are sent."""
        reach = max(0, *self._lasts)
        return max(until - (reach if self._how == "inner" else 2 * reach), 0)

    def _alone(self, side: int, key: Any, value: Any) -> tuple[Any, Any]:
        if self._one_sided:
            return key, value
        return key, ((value, None) if side == _LEFT else (None, value))

    def next_time(self, until: int) -> int | None:
        """See `Logic`."""
        return self._due[0][0] if self._due and any(self._unmatched) else None


class AsOf:
    """Each left record with the latest right one at or before its time.

    Args:
        state: Where it is listed: of each key the time and the value of its latest right record.
        within: The maximum distance back in time, in units; None: any.
        left: Whether left records come without one, too, with None in its place.
    """

    def __init__(self, state: KeyedState[Any, Any], within: int | None, *, left: bool) -> None:
        self._within = within
        self._left = left
        self._state = state
        # When the record of a key may be too old: one entry for each, which are watched.
        self._due: list[tuple[int, int, Any]] = []
        self._watched: set[Any] = set()
        self._entries = 0
        state._keep_in(self)

    def run(self, rows: Rows, until: int | None, out: Results) -> None:
        """See `Logic`."""
        # Of one time, the right side comes first.
        records = sorted(rows, key=lambda record: (record[0], -record[2][0]))
        latest, within = self._state._states, self._within
        times: list[int] = []
        pairs: list[Any] = []
        for first in range(0, len(records), MOST):
            some = records[first : first + MOST]
            latest.bring([key for _, key, _ in some])
            for time, key, (side, value) in some:
                if side == _RIGHT:
                    self._take(key, time, value)
                    continue
                found = latest.get(key)
                if found is not None and (within is None or time - found[0] <= within):
                    times.append(time)
                    pairs.append((key, (value, found[1])))
                elif self._left:
                    times.append(time)
                    pairs.append((key, (value, None)))
            latest.settle()
        out.give(times, pairs)
        self._forget(until)
        self._state._stands_at(until)

    def _take(self, key: Any, time: int, value: Any) -> None:
        if self._within is not None and key not in self._watched:
            self._watched.add(key)
            self._entries += 1
            heappush(self._due, (time + self._within, self._entries, key))
        self._state._states[key] = (time, value)

    def _forget(self, until: int | None) -> None:
        within = self._within
        while within is not None and self._due and (until is None or self._due[0][0] < until):
            due, entry, key = heappop(self._due)
            found = self._state._states.find(key, None)
            if found is not None and found[0] + within > due:
                heappush(self._due, (found[0] + within, entry, key))
            else:
                self._state._changes((key,))
                self._watched.discard(key)
                self._state._states.pop(key, None)

    def next_time(self, until: int) -> int | None:
        """It sends nothing without a record."""
        return None

    def needs(self, until: int) -> int | None:
        """See `Logic`."""
        return None if self._within is None else max(until - self._within, 0)

    def keys(self) -> Collection[Any]:
        """See `Keeper`."""
        return Keys([self._state._states])

    def entries(self, keys: Collection[Any]) -> Iterator[tuple[Any, Any, Any]]:
        """See `Keeper`."""
        for key in keys:
            yield key, self._state._states.find(key), None

    def put(self, key: Any, state: Any, note: Any) -> None:
        """See `Keeper`."""
        self._take(key, *state)


class Table(AsOf):
    """Each left record with its key's row as of its time: a right one is the new row, None ends it.

    Args:
        state: Where it is listed: of each key the time and the row.
        ttl: The time after which a row is removed, in units; None: only once another replaces it.
        left: As of `AsOf`.
    """

    def __init__(self, state: KeyedState[Any, Any], ttl: int | None, *, left: bool) -> None:
        super().__init__(state, None if ttl is None else ttl - 1, left=left)  # times are whole units

    def _take(self, key: Any, time: int, value: Any) -> None:
        if value is None:
            self._state._states.pop(key, None)
        else:
            super()._take(key, time, value)
