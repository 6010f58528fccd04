"""The distinct records of a time: `Stream.distinct`, and with their counts `Stream.value_counts`.

Records are exchanged by themselves, so that equal ones meet on one worker. Counts are taken where the records
are, before that: few records travel. The loops over records are those of `dict` and `Counter`, in C.
"""

from __future__ import annotations

from collections import Counter
from itertools import filterfalse, repeat
from typing import TYPE_CHECKING, Any

from pointstamp._core import pairs_with_one_nan, with_one_nan
from pointstamp.logic.per_time import PerTime, PerTimeAndKey

if TYPE_CHECKING:
    from collections.abc import Callable

    from pointstamp._core import Capability, FrontieredInput, OutputPort
    from pointstamp.info import OperatorInfo
    from pointstamp.logic.declared_state import Restored

    Logic = Callable[[FrontieredInput[Any], OutputPort[Any]], None]
    Build = Callable[[Capability, OperatorInfo], Logic]

__all__ = ["add_counts", "count_here", "distinct"]

MOST_COUNTS = 1 << 16
"""The most counts that `count_here` keeps of all times together. More are sent before their time closes."""


def distinct() -> tuple[Build, PerTimeAndKey[None]]:
    """Each record once per time, sent when it is first seen: the constructor, and its state."""
    seen: PerTimeAndKey[None] = PerTimeAndKey()

    def build(capability: Capability, _info: OperatorInfo) -> Logic:
        capability.drop()

        def logic(port: FrontieredInput[Any], output: OutputPort[Any]) -> None:
            for message, records in port:
                states = seen.at(message)
                once = dict.fromkeys(with_one_nan(records))
                states.bring(once)
                new = list(filterfalse(states.__contains__, once))
                states.update(zip(new, repeat(None)))
                states.settle()
                with output.session(message) as session:
                    session.give_all(new)
            for _ in seen.closed(port.frontier):
                pass  # nothing is left to be sent: its records are forgotten

        return logic

    return build, seen


class _Counts(PerTime["Counter[Any]"]):
    """Counts by time, any of which any worker can have, and the number of them."""

    __slots__ = ("kept",)

    def __init__(self) -> None:
        super().__init__(Counter, "parts", _added)
        self.kept = 0

    def give_back(self, taken: list[tuple[Capability, Any]], restored: Restored) -> None:
        """See `Waiting`."""
        super().give_back(taken, restored)
        self.kept = sum(map(len, self._states.values()))

    def part_of(self, state: Counter[Any], _restored: Restored) -> Counter[Any]:
        """See `PerTime`."""
        return Counter(dict(pairs_with_one_nan(list(state.items()))))


def _added(some: Counter[Any], more: Counter[Any]) -> Counter[Any]:
    some.update(more)
    return some


def count_here() -> tuple[Build, _Counts]:
    """Pairs of record and count, of the records that are on this worker: the constructor, and its state."""
    counts = _Counts()

    def build(capability: Capability, _info: OperatorInfo) -> Logic:
        capability.drop()

        def logic(port: FrontieredInput[Any], output: OutputPort[Any]) -> None:
            for message, records in port:
                here = counts.at(message)
                before = len(here)
                here.update(with_one_nan(records))
                counts.kept += len(here) - before
                if counts.kept > MOST_COUNTS:
                    counts.kept -= len(here)
                    counts.put(message.time, Counter())
                    with output.session(message) as session:
                        session.give_all(here.items())
            for held, here in counts.closed(port.frontier):
                counts.kept -= len(here)
                with output.session(held) as session:
                    session.give_all(here.items())

        return logic

    return build, counts


def add_counts() -> tuple[Build, PerTimeAndKey[int]]:
    """Adds up counts, which are exchanged by record: the constructor, and its state."""
    totals: PerTimeAndKey[int] = PerTimeAndKey()

    def build(capability: Capability, _info: OperatorInfo) -> Logic:
        capability.drop()

        def logic(port: FrontieredInput[Any], output: OutputPort[Any]) -> None:
            for message, records in port:
                states = totals.at(message)
                pairs = pairs_with_one_nan(records)
                states.bring([record for record, _ in pairs])
                before = states.get
                for record, count in pairs:
                    states[record] = before(record, 0) + count
                states.settle()
            for held, states in totals.closed(port.frontier):
                with output.session(held) as session:
                    session.give_all(states.every())

        return logic

    return build, totals
