"""`Scope.iterator_source`: times with their records, a bounded number of times in the dataflow at once.

After sending a time the source keeps only the right to send at strictly later ones, so that the time can
leave the dataflow before the iterator is asked for the next. Which times are still there is watched from
inside the engine, over all that the source's stream leads to, and the source runs again when that changes.
"""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING, Any

from pointstamp import _core
from pointstamp._core import ProbeHandle
from pointstamp.errors import CheckpointError, TimeError
from pointstamp.logic.capability_set import CapabilitySet

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from pointstamp._core import Capability, OutputPort
    from pointstamp.info import OperatorInfo
    from pointstamp.types import Time

__all__ = ["Source"]

_LAST = 2**64 - 1

_END: Any = object()
"""Returned for the end of an iterator: None may come from one by mistake, and is refused."""


class Source:
    """The operator: its constructor, and its position in the iterator."""

    def __init__(
        self, name: str, items: Iterable[tuple[Time, Iterable[Any]]], in_flight: int, *, records: bool = False
    ) -> None:
        self._name = name
        self._records = records  # whether checkpoints are made
        _core.check_records(f"source '{name}'", items)
        self._items: Iterator[tuple[Time, Iterable[Any]]] = iter(items)
        self._most = in_flight
        self._in_flight: deque[Time] = deque()
        self._held = CapabilitySet()
        self._last: Time | None = None
        self._ended = False
        self._taken = self._digest = 0  # the number of times, and the digest of their records
        self.probe = ProbeHandle()

    def build(self, capability: Capability, info: OperatorInfo) -> Callable[[OutputPort[Any]], None]:
        """The constructor of the operator."""
        self.info = info
        if not self._taken:
            self._held.insert(capability)
        return self._run

    # ------------------------------------------------------------ checkpoints

    def snapshot(self) -> list[tuple[str, Any]]:
        """Returns the number of items taken of the iterator, and the capability to send the rest."""
        held = [self._held.delayed(time) for time in self._held.times]
        return [
            ("taken", (self._taken, self._digest)),
            ("last", self._last),
            ("ended", self._ended),
            ("in flight", list(self._in_flight)),
            ("held", held),
        ]

    def restore(self, pairs: Iterable[tuple[str, Any]], version: int) -> None:
        """Skips the items that were taken before the checkpoint.

        Raises:
            CheckpointError: If the iterator gives something else than before.
        """
        kept = dict(pairs)
        self._taken, self._digest = kept["taken"]
        self._last, self._ended = kept["last"], kept["ended"]
        self._in_flight.extend(kept["in flight"])
        for held in kept["held"]:
            self._held.insert(held)
        digest = 0
        for _ in range(self._taken):
            item = next(self._items, _END)
            if item is _END:
                break
            time, records = self._unpack(item)
            digest = (digest + _core.digest(time, [*records, time])) % 2**64
        if digest != self._digest:
            raise CheckpointError(
                f"the iterator of source '{self._name}' gave something else up to time {self._last} than "
                "before the checkpoint: after a resumption it gives the same again. Let it not depend on a "
                "clock, random numbers or changed files"
            )
        if self._ended:
            self._items = iter(())

    def _run(self, output: OutputPort[Any]) -> None:
        while self._in_flight and not self.probe.less_equal(self._in_flight[0]):
            self._in_flight.popleft()
        if self._ended or len(self._in_flight) >= self._most:
            return  # the watch runs it again
        item = next(self._items, _END)
        if item is _END:
            self._held.downgrade(())
            self._items = iter(())
            self._ended = True
            return
        time, records = self._unpack(item)
        if self._records:
            records = list(records)
            self._digest = (self._digest + _core.digest(time, [*records, time])) % 2**64
        self._taken += 1
        with self._capability(time) as capability, output.session(capability) as session:
            session.give_all(records)
        self._last = time
        self._in_flight.append(time)
        following = _successors(time)
        if not following and next(self._items, _END) is not _END:
            raise TimeError(f"source '{self._name}' got a time after {time}, which is the last there is")
        self._held.downgrade(following)
        self.info.activator.activate()  # one time in each run: others get their turn

    def _unpack(self, item: tuple[Time, Iterable[Any]]) -> tuple[Time, Iterable[Any]]:
        try:
            time, records = item
        except (TypeError, ValueError):
            raise TypeError(f"source '{self._name}' needs pairs (time, records), and got {item!r}") from None
        _core.check_records(f"source '{self._name}'", records)
        return time, records

    def _capability(self, time: Time) -> Capability:
        try:
            return self._held.delayed(time)
        except TimeError as error:
            if self._last is None:
                raise
            raise TimeError(
                f"source '{self._name}' got time {time} after {self._last}: "
                "times must increase, and each comes once, with all its records"
            ) from error


def _successors(time: Time) -> list[Time]:
    """The least times that are strictly after one."""
    if isinstance(time, int):
        return [time + 1] if time < _LAST else []
    steps = range(len(time))
    return [(*time[:i], time[i] + 1, *time[i + 1 :]) for i in steps if time[i] < _LAST]
